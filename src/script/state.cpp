// The Script: one virtual machine, its library, and how scripts start and end.
#include "script/state.h"

#include <fmt/format.h>

#include <filesystem>

#include "script/interrupt.h"
#include "script/loader.h"

namespace msdbg {

using namespace script;

namespace script {
namespace {

char g_vm_key, g_records_key;  // their addresses are registry keys

constexpr int kStatusError = 5;
constexpr int kStatusPeerLost = 6;
constexpr int kStatusInterrupted = 130;

int exit_script(lua_State* L) {
  int status = 0;
  if (lua_isboolean(L, 1))
    status = truth_at(L, 1) ? 0 : 1;
  else if (!lua_isnoneornil(L, 1)) {
    const int64_t wanted = integer_argument(L, 1, "os.exit: status");
    if (wanted < 0 || wanted > 255) misuse(fmt::format("os.exit: status: 0 to 255 is expected, not {}", wanted));
    status = static_cast<int>(wanted);
  }
  Vm& vm = vm_of(L);
  vm.exit_status = status;
  arm_hook(vm);
  throw ScriptError("exit", "os.exit", true);
}

// core.raise(code, message, expected): raises an error object at the caller's position.
int raise(lua_State* L) {
  const std::string code = text_argument(L, 1, "raise: code");
  throw ScriptError(code, text_argument(L, 2, "raise: message"), truth_at(L, 3));
}

// core.nearest(word, list) -> the closest words
int nearest_words(lua_State* L) {
  const std::string word = text_argument(L, 1, "nearest: word");
  const auto candidates = list_argument<std::string>(L, 2, "nearest: words");
  return give(L, nearest(word, candidates, static_cast<size_t>(integer_argument(L, 3, "nearest: limit", 3, 0, 1000))));
}

// core.members(class) -> methods, fields: the live tables, to which the Lua half of the library adds methods.
int class_members(lua_State* L) {
  const std::string name = text_argument(L, 1, "members: class");
  for (const char* which : {"methods", "fields"}) {
    push_class_table(L, ("msdbg." + name).c_str(), which);
    if (!lua_istable(L, -1)) misuse(fmt::format("members: no class '{}'", name));
  }
  return 2;
}

// core.class_of(value) -> the name of our class, or nil
int class_of(lua_State* L) {
  if (lua_type(L, 1) != LUA_TUSERDATA || !lua_getmetatable(L, 1)) return lua_pushnil(L), 1;
  push_raw(L, -1, "__name");
  return 1;
}

// core.record(name, metatable): sets the metatable of result tables created by C++.
int set_result_metatable(lua_State* L) {
  const std::string name = text_argument(L, 1, "record: name");
  if (!lua_istable(L, 2)) misuse(fmt::format("record: a metatable is expected, not {}", value_text(L, 2)));
  push_registered(L, &g_records_key);
  lua_pushvalue(L, 2);
  lua_setfield(L, -2, name.c_str());
  return 0;
}

// core.new_result(name) -> an empty table of that record class
int new_result(lua_State* L) {
  const std::string name = text_argument(L, 1, "new_record: name");
  lua_newtable(L);
  set_result_class(L, name.c_str());
  return 1;
}

int open_core(lua_State* L) {
  lua_newtable(L);
  set_field(L, "version", kVersion);
  set_field(L, "development", text_or_nil(development_scripts()));
  add_functions(L, {{"raise", guard<raise>}, {"nearest", guard<nearest_words>}, {"members", guard<class_members>},
                    {"class_of", guard<class_of>}, {"record", guard<set_result_metatable>}, {"new_record", guard<new_result>}});
  bind_abi(L);
  bind_session(L);
  bind_node(L);
  bind_node_set(L);
  bind_tensor(L);
  bind_tensor_numbers(L);
  bind_watch(L);
  bind_expression(L);
  bind_check(L);
  bind_live(L);
  bind_run(L);
  bind_analysis(L);
  bind_checkpoint(L);
  bind_diff(L);
  bind_follow(L);
  bind_text(L);
  bind_rules(L);
  bind_commands(L);
  bind_completion(L);
  bind_json(L);
  bind_guide(L);
  bind_table(L);
  bind_terminal(L);
  bind_output(L);
  return 1;
}

// Everything that can raise during creation of the machine.
int set_up(lua_State* L) {
  luaL_openlibs(L);
  define_error_class(L);
  lua_newtable(L);
  register_value(L, &g_records_key);
  lua_getglobal(L, "os");
  lua_pushcfunction(L, guard<exit_script>);
  lua_setfield(L, -2, "exit");
  lua_pop(L, 1);
  lua_getglobal(L, "package");
  push_raw(L, -1, "preload");
  lua_pushcfunction(L, guard<open_core>);
  lua_setfield(L, -2, "msdbg.core");
  lua_pop(L, 2);
  install_loader(vm_of(L));
  lua_getglobal(L, "require");
  lua_pushliteral(L, "msdbg");
  lua_call(L, 1, 1);
  lua_setglobal(L, "msdbg");
  return 0;
}

}  // namespace

Vm& vm_of(lua_State* L) {
  lua_pushlightuserdata(L, &g_vm_key);
  lua_rawget(L, LUA_REGISTRYINDEX);
  Vm* vm = static_cast<Vm*>(lua_touserdata(L, -1));
  lua_pop(L, 1);
  return *vm;
}

void set_result_class(lua_State* L, const char* name) {
  push_registered(L, &g_records_key);
  push_raw(L, -1, name);
  lua_remove(L, -2);
  if (lua_istable(L, -1))
    lua_setmetatable(L, -2);
  else
    lua_pop(L, 1);
}

}  // namespace script

Script::Script() : state_(std::make_unique<State>()) {}

Script::~Script() {
  if (state_->vm.L == nullptr) return;
  before_exit();
  lua_close(state_->vm.L);
}

void Script::before_exit() {
  Vm& vm = state_->vm;
  vm.closing = true;
  if (vm.options.interruptible) stop_exit_checks(vm.L);
}

Result<std::unique_ptr<Script>> Script::create(ScriptOptions options) {
  std::unique_ptr<Script> made(new Script());
  Vm& vm = made->state_->vm;
  vm.owner = made.get();
  vm.options = std::move(options);
  vm.L = luaL_newstate();
  if (vm.L == nullptr) return Status(Code::kOutOfMemory, "Lua: the virtual machine cannot be made: not enough memory");
  lua_pushlightuserdata(vm.L, &g_vm_key);
  lua_pushlightuserdata(vm.L, &vm);
  lua_rawset(vm.L, LUA_REGISTRYINDEX);
  lua_pushcfunction(vm.L, set_up);
  if (!protected_call(vm.L, 0, 0)) {
    return Status(Code::kInternal, "Lua: the library cannot be loaded: " + error_text(read_error(vm.L, -1), true));
  }
  if (vm.options.interruptible) start_exit_checks(vm.L);
  return made;
}

ScriptOutcome Script::run_file(const std::string& path, const std::vector<std::string>& args) {
  const auto text = read_script(path);
  if (!text) return {kStatusError, text.status().message()};
  const std::string directory = path == "-" ? "." : std::filesystem::path(path).parent_path().string();
  state_->vm.script_dirs.push_back(directory.empty() ? "." : directory);
  ScriptOutcome outcome = run_text(*text, path == "-" ? "=stdin" : "@" + path, args);
  state_->vm.script_dirs.pop_back();
  return outcome;
}

ScriptOutcome Script::check_file(const std::string& path) {
  const auto text = read_script(path);
  if (!text) return {kStatusError, text.status().message()};
  lua_State* L = state_->vm.L;
  ScriptOutcome outcome;
  if (!load_text(L, *text, "@" + path)) outcome = {kStatusError, error_text(read_error(L, -1), true)};
  lua_settop(L, 0);
  return outcome;
}

ScriptOutcome Script::run_text(std::string_view text, const std::string& chunk_name,
                               const std::vector<std::string>& args) {
  lua_State* L = state_->vm.L;
  const std::string chunk = chunk_name.starts_with('@') || chunk_name.starts_with('=') ? chunk_name : "=" + chunk_name;
  Entry entry(state_->vm);
  state_->vm.at_prompt = false;
  const auto failure = [&]() -> ScriptOutcome {
    const ErrorView error = read_error(L, -1);
    lua_settop(L, 0);
    if (state_->vm.exit_status) return {*state_->vm.exit_status, ""};
    if (interrupt_requested()) return {kStatusInterrupted, "interrupted"};
    const bool lost = error.code == code_name(Code::kPeerLost);
    const bool usage = error.expected && (error.code == code_name(Code::kInvalidArgument) || error.code == code_name(Code::kNotFound));
    return {lost ? kStatusPeerLost : kStatusError, error_text(error, true), usage, error.expected};
  };
  if (!load_text(L, text, chunk)) return failure();
  lua_pushcfunction(L, [](lua_State* state) {
    lua_pushvalue(state, 1);
    if (!isolate(state)) return lua_error(state);
    lua_getfenv(state, 1);
    lua_pushliteral(state, "arg");  // [0] is the script
    lua_pushvalue(state, 2);
    lua_rawset(state, -3);
    return 0;
  });
  lua_pushvalue(L, -2);
  lua_createtable(L, static_cast<int>(args.size()), 1);
  push(L, chunk.substr(1));
  lua_rawseti(L, -2, 0);
  for (size_t i = 0; i < args.size(); ++i) {
    push(L, args[i]);
    lua_rawseti(L, -2, static_cast<int>(i) + 1);
  }
  if (!protected_call(L, 2, 0)) return failure();
  for (const std::string& arg : args) push(L, arg);
  if (!protected_call(L, static_cast<int>(args.size()), 0)) return failure();
  if (state_->vm.exit_status) return {*state_->vm.exit_status, ""};
  if (interrupt_requested()) return {kStatusInterrupted, "interrupted"};
  return {};
}

Session& Script::set_session(std::unique_ptr<Session> session) {
  lua_State* L = state_->vm.L;
  Session& kept = *session;
  push_object(L, make_session_box(state_->vm, std::move(session)));
  lua_setglobal(L, "s");
  return kept;
}

}  // namespace msdbg
