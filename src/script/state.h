// The internals of Script, shared by state.cpp and repl.cpp.
#pragma once

#include "msdbg/script.h"
#include "script/objects.h"

namespace msdbg {

namespace script {
/// The option if set; otherwise whether standard output is a terminal with colours.
bool wants_colour(const Vm& vm);
}  // namespace script

struct Script::State {
  script::Vm vm;
};

}  // namespace msdbg
