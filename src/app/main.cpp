#include "app/run.h"

int main(int argc, char** argv) { return msdbg::app::run(std::vector<std::string>(argv + 1, argv + argc)); }
