// Commands of the application at the prompt, and their calls into the Lua machine.
#include "script/command_calls.h"

#include "script/bind_parts.h"
#include "script/interrupt.h"
#include "script/push_answer.h"
#include "script/state.h"

namespace msdbg {

using namespace script;

namespace script {
namespace {

void push_words(lua_State* L, const std::vector<CommandInfo::Word>& words) {
  push_list(L, words, [&](const CommandInfo::Word& word) {
    lua_createtable(L, 2, 0);
    push(L, word.name);
    lua_rawseti(L, -2, 1);
    push(L, word.help);
    lua_rawseti(L, -2, 2);
  });
}

void push_info(lua_State* L, const CommandInfo& info) {
  lua_newtable(L);
  set_field(L, "name", info.name);
  set_field(L, "group", info.group);
  set_field(L, "usage", info.usage);
  set_field(L, "summary", info.summary);
  set_field(L, "details", text_or_nil(info.details));
  set_field(L, "complete", text_or_nil(info.complete));
  set_field(L, "also", info.also);
  push_words(L, info.words);
  lua_setfield(L, -2, "words");
  push_words(L, info.examples);
  lua_setfield(L, -2, "examples");
  push_list(L, info.options, [&](const CommandInfo::Option& option) {
    lua_newtable(L);
    set_field(L, "names", option.names);
    set_field(L, "value", option.value);
    set_field(L, "help", option.help);
    set_field(L, "common", option.common);
  });
  lua_setfield(L, -2, "options");
  push_list(L, info.verbs, [&](const CommandInfo& verb) { push_info(L, verb); });
  lua_setfield(L, -2, "verbs");
}

// core.commands() -> the commands that the application adds to the prompt
int list_commands(lua_State* L) {
  const auto& commands = vm_of(L).options.commands;
  const std::vector<CommandInfo> list = commands.describe ? commands.describe() : std::vector<CommandInfo>();
  push_list(L, list, [&](const CommandInfo& info) { push_info(L, info); });
  return 1;
}

/// The session of the running command; commands can be nested.
class AtHand {
 public:
  AtHand(Vm& vm, std::shared_ptr<SessionBox> session) : vm_(vm), outer_(std::exchange(vm.at_hand, std::move(session))) {}
  ~AtHand() { vm_.at_hand = outer_; }
  AtHand(const AtHand&) = delete;
  AtHand& operator=(const AtHand&) = delete;

 private:
  Vm& vm_;
  std::shared_ptr<SessionBox> outer_;
};

// core.run_command(session or nil, {words}) -> text
int run_command(lua_State* L) {
  Vm& vm = vm_of(L);
  const auto words = list_argument<std::string>(L, 2, "run_command: words");
  const auto* session = holder_at<SessionBox>(L, 1);
  if (!vm.options.commands.run) misuse("run_command: this program adds no commands to the prompt");
  const AtHand scope(vm, session != nullptr ? *session : nullptr);
  return give(L, value_or_throw(vm.options.commands.run(*vm.owner, words)));
}

struct TextCall {
  const std::string &module, &function;
  const std::vector<std::string>& words;
  Script::Answer answer;
};

// (call, session) -> nothing
int call_text(lua_State* L) {
  auto& call = *static_cast<TextCall*>(lua_touserdata(L, 1));
  lua_getglobal(L, "require");
  push(L, call.module);
  if (!protected_call(L, 1, 1)) throw PendingError();
  push_raw(L, -1, call.function.c_str());
  lua_pushvalue(L, 2);
  if (!lua_checkstack(L, static_cast<int>(call.words.size()) + 4)) throw ScriptError("out_of_memory", "the Lua stack is full");
  for (const std::string& word : call.words) push(L, word);
  if (!protected_call(L, static_cast<int>(call.words.size()) + 1, 3)) throw PendingError();
  call.answer.text = text_at(L, -3).value_or("");
  call.answer.exit_status = static_cast<int>(integer_at(L, -2).value_or(0));
  if (lua_istable(L, -1)) call.answer.notes = list_argument<std::string>(L, lua_gettop(L), call.function + ": notes");
  return 0;
}

// (rows) -> nothing
int call_rows(lua_State* L) {
  const auto& list = *static_cast<const AnswerRows*>(lua_touserdata(L, 1));
  lua_getglobal(L, "require");
  push(L, "msdbg.repl_rows");
  if (!protected_call(L, 1, 1)) throw PendingError();
  push_raw(L, -1, "list");
  push_answer(L, list.rows, list.key);
  if (!protected_call(L, 1, 0)) throw PendingError();
  return 0;
}

struct CheckCall {
  const std::vector<Watchpoint>& points;
  const CheckOptions& options;
  Result<CheckResult> result = Status(Code::kInternal, "");
};

// (call, session) -> nothing
int run_check(lua_State* L) {
  auto& call = *static_cast<CheckCall*>(lua_touserdata(L, 1));
  const auto box = object_argument<SessionBox>(L, 2, "check: session");
  box->last_check = call.options;
  call.result = check_here(L, *box, call.points, call.options);
  return 0;
}

/// The session of the running command, or null.
SessionBox* at_hand(Vm& vm) {
  const StackMark mark(vm.L);
  push_session(vm);
  const auto* box = holder_at<SessionBox>(vm.L, -1);
  return box != nullptr && (*box)->session ? box->get() : nullptr;
}

}  // namespace

void push_session(Vm& vm) {
  if (vm.at_hand) push_object(vm.L, vm.at_hand);
  else lua_getglobal(vm.L, "s");
}

Status status_of_error(lua_State* L) {
  const ErrorView error = read_error(L, -1);
  if (interrupt_requested()) return Status(Code::kInterrupted, "interrupted");
  if (!error.expected) return Status(Code::kInternal, error_text(error, true));
  // A damaged or unreadable file is not a usage error.
  for (const Code code : {Code::kNotFound, Code::kUnsupported, Code::kIoError, Code::kCorrupt, Code::kNoData, Code::kOutOfMemory,
                          Code::kPeerLost}) {
    if (error.code == code_name(code)) return Status(code, error.message);
  }
  return Status(Code::kInvalidArgument, error.message);
}

void bind_commands(lua_State* L) {
  add_functions(L, {{"commands", guard<list_commands>}, {"run_command", guard<run_command>}});
}

}  // namespace script

Result<Script::Answer> Script::call(const std::string& module, const std::string& function, const std::vector<std::string>& words) {
  lua_State* L = state_->vm.L;
  const Entry entry(state_->vm);
  const StackMark mark(L);
  TextCall call{module, function, words, {}};
  lua_pushcfunction(L, guard<call_text>);
  lua_pushlightuserdata(L, &call);
  push_session(state_->vm);
  if (!protected_call(L, 2, 0)) return status_of_error(L);
  return std::move(call.answer);
}

void Script::list_rows(const AnswerRows& rows) {
  lua_State* L = state_->vm.L;
  const Entry entry(state_->vm);
  const StackMark mark(L);
  lua_pushcfunction(L, guard<call_rows>);
  lua_pushlightuserdata(L, const_cast<AnswerRows*>(&rows));
  // Failing to keep the rows is no reason to withhold the result.
  (void)protected_call(L, 1, 0);
}

Result<CheckResult> Script::check(const std::vector<Watchpoint>& watchpoints, const CheckOptions& options) {
  lua_State* L = state_->vm.L;
  const Entry entry(state_->vm);
  const StackMark mark(L);
  CheckCall call{watchpoints, options};
  lua_pushcfunction(L, guard<run_check>);
  lua_pushlightuserdata(L, &call);
  push_session(state_->vm);
  if (!protected_call(L, 2, 0)) return status_of_error(L);
  return std::move(call.result);
}

Session* Script::session() {
  SessionBox* box = at_hand(state_->vm);
  return box != nullptr ? box->session.get() : nullptr;
}

std::optional<int64_t> Script::current_step() {
  const SessionBox* box = at_hand(state_->vm);
  return box != nullptr ? box->current_step : std::nullopt;
}

std::optional<int> Script::current_rank() {
  const SessionBox* box = at_hand(state_->vm);
  return box != nullptr ? box->current_rank : std::nullopt;
}

void Script::set_current_rank(std::optional<int> rank) {
  if (SessionBox* box = at_hand(state_->vm); box != nullptr) box->current_rank = rank;
}

std::vector<Watchpoint> Script::watchpoints() {
  SessionBox* box = at_hand(state_->vm);
  return box != nullptr ? watchpoints_of(*box) : std::vector<Watchpoint>();
}

const CheckResult* Script::last_result() {
  const SessionBox* box = at_hand(state_->vm);
  return box != nullptr && box->last_result ? &box->last_result->result : nullptr;
}

void Script::keep(const CheckResult& result, const std::string& asked, const std::vector<std::string>& names) {
  if (SessionBox* box = at_hand(state_->vm); box != nullptr)
    box->last_result = std::make_shared<ResultBox>(ResultBox{nullptr, result, asked, names, box->suspension});
}

}  // namespace msdbg
