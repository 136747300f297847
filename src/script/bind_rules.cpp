// C++ support for scripts/msdbg/rule*.lua: files, the catalogue, calls under limits, test cases, and the check.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <ranges>

#include "script/embedded.h"
#include "script/loader.h"
#include "script/memory_session.h"
#include "script/rule_clock.h"
#include "script/rule_run.h"

namespace msdbg::script {
namespace {

namespace fs = std::filesystem;

constexpr uint32_t kMostCaseSlots = 1000;  ///< all slots below it are created, too

// core.check_when(text) -> true; or nil, reason
int check_when(lua_State* L) {
  const auto parsed = parse_when(text_argument(L, 1, "check_when: text"));
  return parsed ? give(L, true) : push_absence(L, parsed.status());
}

// core.check_selector(text) -> true; or nil, reason
int check_selector(lua_State* L) {
  const auto parsed = Selector::parse(text_argument(L, 1, "check_selector: text"));
  return parsed ? give(L, true) : push_absence(L, parsed.status());
}

// core.rule_files(path) -> the file itself, or the *.lua of a directory by name; or nil, reason, code
int rule_files(lua_State* L) {
  const std::string path = text_argument(L, 1, "rule_files: path");
  std::error_code error;
  if (fs::is_regular_file(path, error)) {
    return give(L, std::vector{path});
  }
  if (!fs::is_directory(path, error)) {
    return push_absence(L,
                        Status(fs::exists(path, error) ? Code::kInvalidArgument : Code::kNotFound,
                               fs::exists(path, error) ? path + ": neither a file nor a directory" : path + ": no such file or directory"));
  }
  std::vector<std::string> files;
  for (fs::directory_iterator it(path, error), end; !error && it != end; it.increment(error)) {
    std::error_code ignored;
    if (it->path().extension() == ".lua" && fs::is_regular_file(it->path(), ignored)) files.push_back(it->path().string());
  }
  if (error) return push_absence(L, Status(Code::kIoError, fmt::format("{}: {}", path, error.message())));
  std::sort(files.begin(), files.end());
  return give(L, files);
}

// core.rule_text(path) -> the text of a file, or of an embedded file for `embedded:NAME`; or nil, reason, code
int rule_text(lua_State* L) {
  const std::string path = text_argument(L, 1, "rule_text: path");
  if (path.starts_with("embedded:")) {
    if (const auto text = embedded_file(path.substr(9))) return give(L, *text);
    return push_absence(L, Status(Code::kNotFound, path));
  }
  const auto text = read_script(path);
  if (!text) return push_absence(L, text.status());
  return give(L, *text);
}

// core.rule_places() -> {script=, variable={...}, project=, user=, development=, embedded={...}}
int rule_places(lua_State* L) {
  Vm& vm = vm_of(L);
  lua_newtable(L);
  const auto add = [L](const char* key, const fs::path& path) {
    std::error_code error;
    if (fs::is_directory(path, error)) set_field(L, key, path.string());
  };
  if (!vm.script_dirs.empty()) add("script", fs::path(vm.script_dirs.back()) / "rules");
  std::vector<std::string> variable;
  if (const char* more = std::getenv("MSDBG_RULE_PATH")) {
    for (const std::string_view part : split(more, ':')) {
      if (!part.empty()) variable.emplace_back(part);
    }
  }
  set_field(L, "variable", variable);
  set_field(L, "project", text_or_nil(project_rule_directory()));
  const char* config = std::getenv("XDG_CONFIG_HOME");
  const char* home = std::getenv("HOME");
  if (config != nullptr && *config == '/') add("user", fs::path(config) / "msdbg/rules");
  else if (home != nullptr && *home != '\0') add("user", fs::path(home) / ".config/msdbg/rules");
  if (const std::string directory = development_scripts(); !directory.empty()) add("development", fs::path(directory) / "rules");
  std::vector<std::string> embedded;
  for (const std::string_view name : embedded_files()) {
    if (name.starts_with("rules/")) embedded.emplace_back(name);
  }
  std::sort(embedded.begin(), embedded.end());
  set_field(L, "embedded", embedded);
  return 1;
}

// core.catalogue() -> the 17 conditions as tables
int catalogue(lua_State* L) {
  static constexpr const char* kTargets[] = {"tensor", "weight", "gradient", "activation"};
  auto conditions = condition_catalogue() | std::views::filter([](const ConditionSpec& spec) { return !spec.abbr.empty(); });
  push_list(L, conditions, [L](const ConditionSpec& spec) {
    lua_newtable(L);
    set_field(L, "id", spec.id);
    set_field(L, "abbr", spec.abbr);
    set_field(L, "target", kTargets[static_cast<int>(spec.target)]);
    set_field(L, "severity", severity_name(spec.severity));
    set_field(L, "summary", spec.summary);
    set_field(L, "advice", spec.advice);
    push_list(L, spec.params, [L](const ParamSpec& param) {
      lua_newtable(L);
      set_field(L, "name", param.name);
      set_field(L, "is_bool", param.is_bool);
      set_field(L, "min_open", param.low_open);
      set_field(L, "default", param.default_value);
      if (std::isfinite(param.low)) set_field(L, "min", param.low);
      if (std::isfinite(param.high)) set_field(L, "max", param.high);
      set_field(L, "unit", text_or_nil(std::string(param.unit)));
      set_field(L, "help", param.help);
    });
    lua_setfield(L, -2, "params");
  });
  return 1;
}

// core.has_inputs(session, step) -> whether inputs of nodes were dumped in this step
int has_inputs(lua_State* L) {
  const auto box = object_argument<SessionBox>(L, 1, "has_inputs: session");
  TensorQuery query;
  query.steps = IntSet::of(integer_argument(L, 2, "has_inputs: step"));
  query.inputs = true;
  query.outputs = false;
  return give(L, !box->open().tensors(query).empty());
}

// core.limited(seconds, function, ...) -> true, one result; or false, reason
int limited(lua_State* L) {
  Vm& vm = vm_of(L);
  const double seconds = number_argument(L, 1, "limited: seconds");
  if (!(seconds >= 0)) misuse(fmt::format("limited: seconds: 0 or more is expected, not {}", format_double(seconds)));
  if (!lua_isfunction(L, 2)) misuse(fmt::format("limited: a function is expected, not {}", value_text(L, 2)));
  const int nargs = lua_gettop(L) - 2;
  RuleCall call(vm, seconds, "(its setup, its select, or the file itself)");
  if (call.call(L, nargs, 1)) {
    lua_pushboolean(L, 1);
    lua_insert(L, -2);
    return 2;
  }
  if (call.cancelled()) throw PendingError();
  lua_pushboolean(L, 0);
  push(L, call.problem());
  return 2;
}

// core.rule_memory(mb) -> the previous limit
int rule_memory(lua_State* L) {
  const double mb = number_argument(L, 1, "rule_memory: megabytes");
  if (!(mb > 0)) misuse("rule_memory: a number above 0 is expected");
  lua_pushnumber(L, set_rule_memory(mb));
  return 1;
}

// ---- cases

MemoryTensor read_memory_tensor(lua_State* L, int index) {
  OptionTable options(L, index, "case");
  MemoryTensor out;
  out.node = options.text("node").value_or("");
  out.op = options.text("op").value_or("");
  out.rank = options.id("rank").value_or(0);
  out.step = options.integer("step").value_or(0);
  out.overflow = options.boolean("overflow");
  out.equals = options.text("equals").value_or("");
  out.trainable = options.boolean("trainable").value_or(false);
  const std::string slot = options.text("slot").value_or("output:0");
  const auto parsed = parse_slot(slot);
  if (!parsed) misuse(fmt::format("slot '{}': e.g. output:0 or input:1 is expected", slot));
  if (parsed->index >= kMostCaseSlots) misuse(fmt::format("slot '{}': a case has slots 0 to {}", slot, kMostCaseSlots - 1));
  out.slot = *parsed;
  out.inputs = options.list<std::string>("inputs");
  const std::string type = options.text("dtype").value_or("float32");
  const DType dtype = dtype_from_name(type);
  if (!is_evaluable(dtype)) misuse(fmt::format("dtype '{}': an evaluable type like float32, float16 or int32 is expected", type));
  const Shape shape = options.list<int64_t>("shape");
  const std::vector<double> values = options.list<double>("values");
  options.finish();
  out.value = value_or_throw(tensor_of(dtype, shape, values));
  return out;
}

// core.memory_session(kind, tensors) -> session
int memory_session(lua_State* L) {
  const auto kind = session_kind_from_name(text_argument(L, 1, "memory_session: kind"));
  if (!kind) misuse("memory_session: kind: expected \"dump\" or \"live\"");
  std::vector<MemoryTensor> tensors;
  for_each_element(L, 2, "memory_session: tensors", [&](int) { tensors.push_back(read_memory_tensor(L, -1)); });
  if (tensors.empty()) misuse("the case has no tensor");
  push_object(L, make_session_box(vm_of(L), std::make_unique<MemorySession>(tensors, *kind)));
  return 1;
}

// core.run_rules(session, instances, problems, options, plan) -> result
int run_rules(lua_State* L) {
  const auto box = object_argument<SessionBox>(L, 1, "run_rules: session");
  box->open();
  const CheckOptions options = check_options_at(L, 4, *box, "check");
  const ChosenRules chosen = read_plan(L, 5);
  return give_check(L, *box, value_or_throw(check_with_rules(L, *box, 2, 3, {}, options)), chosen.asked, chosen.names);
}

}  // namespace

void bind_rules(lua_State* L) {
  add_functions(L, {{"check_when", guard<check_when>}, {"check_selector", guard<check_selector>}, {"rule_files", guard<rule_files>},
                    {"rule_text", guard<rule_text>}, {"rule_places", guard<rule_places>}, {"catalogue", guard<catalogue>},
                    {"has_inputs", guard<has_inputs>}, {"limited", guard<limited>}, {"rule_memory", guard<rule_memory>}, {"memory_session", guard<memory_session>},
                    {"run_rules", guard<run_rules>}});
}

}  // namespace msdbg::script

namespace msdbg {

std::string project_rule_directory() {
  namespace fs = std::filesystem;
  std::error_code error;
  for (fs::path at = fs::current_path(error); !error && !at.empty(); at = at.parent_path()) {
    if (fs::is_directory(at / ".msdbg/rules", error)) return (at / ".msdbg/rules").string();
    error.clear();
    if (at == at.parent_path()) break;
  }
  return "";
}

}  // namespace msdbg
