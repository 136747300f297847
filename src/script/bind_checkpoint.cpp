// msdbg.checkpoint and msdbg.checkpoint_diff.
#include <fmt/format.h>

#include "msdbg/checkpoint_report.h"
#include "script/objects.h"

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

void push_side(lua_State* L, const char* key, DType dtype, const Shape& shape) {
  lua_newtable(L);
  set_field(L, "dtype", dtype_name(dtype));
  push_shape(L, shape);
  lua_setfield(L, -2, "shape");
  lua_setfield(L, -2, key);
}

void push_change(lua_State* L, const ParameterChange& change) {
  lua_newtable(L);
  set_field(L, "name", change.name);
  set_field(L, "change", change_kind_name(change.kind));
  if (!change.new_name.empty()) set_field(L, "new_name", change.new_name);
  if (change.kind != ChangeKind::kAdded) push_side(L, "a", change.dtype_a, change.shape_a);
  if (change.kind != ChangeKind::kLost) push_side(L, "b", change.dtype_b, change.shape_b);
  if (!change.note.empty()) set_field(L, "note", change.note);
  set_field(L, "breaks", change.breaks());
  if (!change.values) return;
  const Comparison& values = *change.values;
  set_field(L, "update_ratio", update_ratio(values));
  set_field(L, "max_abs_difference", values.max_abs_error);
  set_field(L, "differing", values.count - values.within);
  set_field(L, "count", values.count);
  set_field(L, "nan_a", values.nan_a);
  set_field(L, "nan_b", values.nan_b);
  set_field(L, "inf_a", values.inf_a);
  set_field(L, "inf_b", values.inf_b);
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
  lua_newtable(L);
  set_field(L, "equal", diff.equal());
  set_field(L, "complete", diff.complete());
  lua_newtable(L);
  for (const ChangeKind kind : {ChangeKind::kUnchanged, ChangeKind::kChanged, ChangeKind::kRetyped, ChangeKind::kReshaped,
                                ChangeKind::kRenamed, ChangeKind::kLost, ChangeKind::kAdded}) {
    set_field(L, std::string(change_kind_name(kind)).c_str(), diff.count(kind));
  }
  set_field(L, "not_compared", diff.count(ChangeKind::kNotCompared));
  lua_setfield(L, -2, "counts");
  push_list(L, diff.changes, [L](const ParameterChange& change) { push_change(L, change); });
  lua_setfield(L, -2, "parameters");
  set_field(L, "text", parameter_diff_report(diff, table_style(L)));
  return 1;
}

}  // namespace

void bind_checkpoint(lua_State* L) {
  add_functions(L, {{"checkpoint", guard<open_checkpoint_session>}, {"checkpoint_diff", guard<diff_checkpoints>}});
}

}  // namespace msdbg::script
