#include "app/program.h"
#include "app/run.h"

int main(int argc, char** argv) {
  return msdbg::app::run_guarded([&] {
    msdbg::app::program_file();
    return msdbg::app::run_program(std::vector<std::string>(argv + (argc > 0 ? 1 : 0), argv + argc));
  });
}
