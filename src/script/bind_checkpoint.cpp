// msdbg.checkpoint and msdbg.checkpoint_diff.
#include <fmt/format.h>

#include "msdbg/checkpoint_report.h"
#include "script/push_answer.h"

namespace msdbg::script {
namespace {

int open_checkpoint_session(lua_State* L) {
  Vm& vm = vm_of(L);
  const std::string path = text_argument(L, 1, "checkpoint: path");
  OptionTable options(L, 2, "checkpoint");
  CheckpointOptions made;
  if (const auto key = options.text("key")) {
    const Status status = read_checkpoint_key(*key, &made);
    if (!status.ok()) misuse(fmt::format("checkpoint: option 'key': {}", status.message()));
  }
  if (const auto mode = options.text("dec_mode")) made.mode = value_or_throw(parse_cipher_mode(*mode));
  CheckOptions defaults = vm.options.check_defaults;
  read_check_options(options, &defaults);
  options.finish();
  auto opened = value_or_throw(open_checkpoint(path, made));
  for (const Problem& problem : opened->facts().problems) {
    if (problem.severity != Severity::kInfo) log(LogLevel::kWarning, fmt::format("{}: {}", problem.path, problem.message));
  }
  auto box = make_session_box(vm, std::move(opened));
  box->defaults = defaults;
  push_object(L, std::move(box));
  return 1;
}

// Two sessions: compares the parameters of their current steps on rank `rank`.
int diff_checkpoints(lua_State* L) {
  const auto a = object_argument<SessionBox>(L, 1, "checkpoint_diff: a (session)");
  const auto b = object_argument<SessionBox>(L, 2, "checkpoint_diff: b (session)");
  OptionTable options(L, 3, "checkpoint_diff");
  ParameterDiffOptions made;
  made.threads = a->defaults.threads;
  options.with("on", [&](int at) { made.on = selector_argument(L, at, options.what("on")); });
  if (const auto by_content = options.boolean("by_content")) made.find_renamed = *by_content;
  const auto step_a = options.integer("step_a"), step_b = options.integer("step_b");
  const int rank = static_cast<int>(options.integer("rank").value_or(0));
  options.finish();
  const auto source = [&](SessionBox& box, std::optional<int64_t> step) {
    Session& session = box.open();
    return ParameterSource{&session, step ? *step : box.current_step.value_or(0), rank, box.source};
  };
  const ParameterDiff diff = value_or_throw(diff_parameters(source(*a, step_a), source(*b, step_b), made));
  if (diff.interrupted) throw ScriptError(Status(Code::kInterrupted, "checkpoint_diff: interrupted"));
  push_answer(L, parameter_diff_answer(diff), "parameter_diff");
  set_field(L, "text", parameter_diff_report(diff, table_style(L)));
  return 1;
}

}  // namespace

void bind_checkpoint(lua_State* L) {
  add_functions(L, {{"checkpoint", guard<open_checkpoint_session>}, {"checkpoint_diff", guard<diff_checkpoints>}});
}

}  // namespace msdbg::script
