// The C++ half of the prompt; the other is scripts/msdbg/repl.lua.
#include "msdbg/terminal.h"
#include "script/interrupt.h"
#include "script/state.h"

namespace msdbg {

using namespace script;

namespace {

// Pushes a function of msdbg.repl. False: leaves an error object.  [-0, +1, -]
bool push_repl(lua_State* L, const char* name) {
  lua_pushcfunction(L, [](lua_State* state) {
    lua_getglobal(state, "require");
    lua_pushliteral(state, "msdbg.repl");
    lua_call(state, 1, 1);
    push_raw(state, -1, static_cast<const char*>(lua_touserdata(state, 1)));
    return 1;
  });
  lua_pushlightuserdata(L, const_cast<char*>(name));
  return protected_call(L, 1, 1);
}

}  // namespace

Script::Eval Script::eval(const std::string& text) {
  Vm& vm = state_->vm;
  lua_State* L = vm.L;
  const Entry entry(vm);
  vm.at_prompt = true;
  vm.interrupt_reported = false;
  lua_settop(L, 0);
  bool ok = push_repl(L, "eval");
  if (ok) {
    push(L, text);
    ok = protected_call(L, 1, 3);
  }
  Eval out;
  if (vm.exit_status) {
    out = {EvalState::kExit, "", *vm.exit_status};
  } else if (!ok) {
    const ErrorView error = read_error(L, -1);
    if (error.code == code_name(Code::kInterrupted) || interrupt_requested()) {
      out = {EvalState::kError, error.code == code_name(Code::kInterrupted) ? error.message : "interrupted", 0};
    } else {
      out = {EvalState::kError, "error: " + error_text(error, true), 0};
    }
  } else {
    const std::string state = text_at(L, -3).value_or("done");
    out.state = state == "exit" ? EvalState::kExit : state == "incomplete" ? EvalState::kIncomplete : EvalState::kDone;
    out.output = text_at(L, -2).value_or("");
    while (out.output.ends_with('\n')) out.output.pop_back();
    out.exit_status = static_cast<int>(integer_at(L, -1).value_or(0));
  }
  out.output = visible(out.output, wants_colour(vm));
  out.pager = vm.options.pager;
  lua_settop(L, 0);
  return out;
}

std::string Script::prompt() {
  lua_State* L = state_->vm.L;
  lua_settop(L, 0);
  std::string text = "msdbg > ";
  if (push_repl(L, "prompt") && protected_call(L, 0, 1)) text = printable(text_at(L, -1).value_or(text));
  lua_settop(L, 0);
  return text;
}

std::vector<std::string> Script::complete(const std::string& line, size_t cursor) {
  lua_State* L = state_->vm.L;
  lua_settop(L, 0);
  std::vector<std::string> out;
  bool ok = push_repl(L, "complete");
  if (ok) {
    push(L, line);
    push(L, cursor);
    ok = protected_call(L, 2, 1);
  }
  if (ok && lua_istable(L, -1)) {
    for_each_element(L, -1, "complete", [&](int) {
      const std::string name = text_at(L, -1).value_or("");
      if (printable(name) == name) out.push_back(name);  // other names cannot be typed
    });
  }
  lua_settop(L, 0);
  return out;
}

}  // namespace msdbg
