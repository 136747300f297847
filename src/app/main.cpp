#include "app/run.h"

int main(int argc, char** argv) {
  return msdbg::app::run_guarded([&] { return msdbg::app::run_program(std::vector<std::string>(argv + (argc > 0 ? 1 : 0), argv + argc)); });
}
