// The inside of Script, shared by state.cpp and repl.cpp.
#pragma once

#include "msdbg/script.h"
#include "script/objects.h"

namespace msdbg {

struct Script::State {
  script::Vm vm;
};

}  // namespace msdbg
