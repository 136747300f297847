// msdbg.diff and its result; t:diff().
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "msdbg/diff.h"
#include "script/bind_series.h"
#include "script/objects.h"

namespace msdbg::script {
namespace {

// ---- two sessions ----------------------------------------------------------------------------------------------------

// A path, or { ["name in a"] = "name in b" }.
NameMap read_map(lua_State* L) {
  if (const auto path = text_at(L, -1)) return value_or_throw(parse_name_map(file_text(*path, "diff: option 'map'"), *path));
  if (!lua_istable(L, -1)) misuse(fmt::format("diff: option 'map': a path or a table of names is expected, not {}", value_text(L, -1)));
  NameMap map;
  map.source = "map";
  for_each_entry(L, -1, "diff: option 'map'", [&] {
    const auto a = text_at(L, -2), b = text_at(L, -1);
    if (!a || !b) misuse("diff: option 'map': names of a as keys and names of b as values are expected");
    map.entries.push_back({*a, *b, 0});
  });
  std::sort(map.entries.begin(), map.entries.end(), [](const auto& x, const auto& y) { return x.a < y.a; });
  for (size_t i = 0; i < map.entries.size(); ++i) map.entries[i].line = static_cast<int>(i) + 1;
  return map;
}

DiffOptions read_diff_options(OptionTable& options) {
  DiffOptions made;
  if (const auto steps = options.numbers("steps")) made.steps_a = made.steps_b = *steps;
  if (const auto ranks = options.numbers("ranks")) made.ranks_a = made.ranks_b = *ranks;
  for (const auto& [key, into] : {std::pair("steps_a", &made.steps_a), std::pair("steps_b", &made.steps_b),
                                  std::pair("ranks_a", &made.ranks_a),
                                  std::pair("ranks_b", &made.ranks_b)}) {
    if (const auto numbers = options.numbers(key)) *into = *numbers;
  }
  made.graph_a = options.id("graph_a");
  made.graph_b = options.id("graph_b");
  for (const auto& [key, into] : {std::pair("rtol", &made.rtol), std::pair("atol", &made.atol)}) {
    *into = options.number(key);
    if (*into && !(**into >= 0)) misuse(fmt::format("diff: option '{}': 0 or more is expected", key));
  }
  if (const auto threads = options.integer("threads")) made.threads = static_cast<unsigned>(std::clamp<int64_t>(*threads, 0, 1024));
  lua_State* L = options.state();
  options.with("on", [&](int at) { made.on = selector_argument(L, at, options.what("on")); });
  options.with("map", [&](int) { made.map = read_map(L); });
  options.finish();
  return made;
}

int diff(lua_State* L) {
  auto box = std::make_shared<DiffBox>();
  box->a = object_argument<SessionBox>(L, 1, "diff: first session");
  // One session against itself: two of its steps, ranks or graphs.
  const bool alone = lua_isnoneornil(L, 2) || (lua_istable(L, 2) && lua_isnoneornil(L, 3));
  box->b = alone ? box->a : object_argument<SessionBox>(L, 2, "diff: second session");
  OptionTable options(L, alone && lua_istable(L, 2) ? 2 : 3, "diff");
  const DiffOptions made = read_diff_options(options);
  Session &a = box->a->open(), &b = box->b->open();
  const InUse guard_a(*box->a, "diff");
  std::optional<InUse> guard_b;
  if (box->a != box->b) guard_b.emplace(*box->b, "diff");
  box->result = value_or_throw(diff_sessions(a, b, made));
  if (box->result.interrupted) throw ScriptError(Status(Code::kInterrupted, "diff: interrupted"));
  push_object(L, std::move(box));
  return 1;
}

void set_measures(lua_State* L, const Comparison& m, const Shape& shape) {
  const auto put = [&](const char* key, double value) {
    if (!std::isnan(value)) set_field(L, key, value);
  };
  const auto place = [&](const char* key, const std::optional<uint64_t>& flat) {
    if (!flat) return;
    push_coordinates(L, *flat, shape);
    lua_setfield(L, -2, key);
  };
  set_field(L, "equal", m.bit_equal);
  put("max_abs_error", m.max_abs_error);
  place("max_abs_at", m.max_abs_at);
  put("max_rel_error", m.max_rel_error);
  place("max_rel_at", m.max_rel_at);
  put("mean_abs_error", m.mean_abs_error);
  put("norm_a", m.norm_a);
  put("norm_b", m.norm_b);
  put("norm_error", m.norm_error);
  put("relative_error", m.relative_error());
  put("cosine", m.cosine);
  set_field(L, "max_ulp", m.max_ulp);
  put("within_tolerance", m.within_share());
  set_field(L, "rtol", m.tolerance.rtol);
  set_field(L, "atol", m.tolerance.atol);
  set_field(L, "nan_mismatch", m.nan_mismatch);
  set_field(L, "inf_mismatch", m.inf_mismatch);
  place("first_difference", m.first_difference);
}

void push_entry(lua_State* L, const DiffBox& box, const TensorDiff& entry) {
  lua_newtable(L);
  set_place(L, *box.b, entry.b);
  set_field(L, "node_a", box.a->session->node(entry.a).name);
  set_field(L, "node_b", box.b->session->node(entry.b).name);
  set_field(L, "step_a", entry.a.step);
  set_field(L, "matched_by", match_how_name(entry.how));
  set_field(L, "state", diff_state_name(entry.state));
  if (!entry.reason.empty()) set_field(L, "reason", entry.reason);
  set_field(L, "dtype_a", dtype_name(entry.dtype_a));
  set_field(L, "dtype_b", dtype_name(entry.dtype_b));
  push_shape(L, entry.shape_a);
  lua_setfield(L, -2, "shape_a");
  push_shape(L, entry.shape_b);
  lua_setfield(L, -2, "shape_b");
  if (entry.compared()) set_measures(L, entry.measures, entry.shape_b);
  if (entry.role != DiffRole::kNone) set_field(L, "role", diff_role_name(entry.role));
  set_field(L, "error_in", entry.error_in);
  set_field(L, "amplification", entry.amplification);
  if (!entry.worst_input.empty()) set_field(L, "worst_input", entry.worst_input);
  set_record_class(L, "diff_entry");
}

const DiffBox& open_diff(lua_State* L) {
  const DiffBox& box = self<DiffBox>(L);
  box.a->open();
  box.b->open();
  return box;
}

int get_verdict(lua_State* L) { return give(L, self<DiffBox>(L).result.verdict()); }
int get_edges_known(lua_State* L) { return give(L, self<DiffBox>(L).result.unknown_edges.empty()); }
int get_equal(lua_State* L) { return give(L, self<DiffBox>(L).result.is_equal()); }
int get_complete(lua_State* L) { return give(L, self<DiffBox>(L).result.is_complete()); }
int get_matched(lua_State* L) { return give(L, self<DiffBox>(L).result.matched_nodes); }

int get_first(lua_State* L) {
  const DiffBox& box = open_diff(L);
  if (box.result.first) push_entry(L, box, box.result.tensors[*box.result.first]);
  else lua_pushnil(L);
  return 1;
}
int get_tensors(lua_State* L) {
  const DiffBox& box = open_diff(L);
  push_list(L, box.result.tensors, [&](const TensorDiff& entry) { push_entry(L, box, entry); });
  set_record_class(L, "hits");
  return 1;
}
int get_culprits(lua_State* L) {
  const DiffBox& box = open_diff(L);
  push_list(L, box.result.culprits, [&](size_t at) { push_entry(L, box, box.result.tensors[at]); });
  set_record_class(L, "hits");
  return 1;
}
int get_counts(lua_State* L) {
  const DiffResult& result = self<DiffBox>(L).result;
  lua_newtable(L);
  set_field(L, "equal", result.equal);
  set_field(L, "close", result.close);
  set_field(L, "different", result.different);
  set_field(L, "reshaped", result.reshaped);
  set_field(L, "uncompared", result.uncompared);
  set_field(L, "dtype_changes", result.dtype_changes);
  return 1;
}
int push_names(lua_State* L, const SessionBox& box, const std::vector<UnmatchedNode>& nodes) {
  push_list(L, nodes, [&](const UnmatchedNode& each) { push(L, box.session->graph(each.rank, each.graph)->node(each.node).name); });
  set_record_class(L, "list");
  return 1;
}
int get_only_a(lua_State* L) { return push_names(L, *open_diff(L).a, self<DiffBox>(L).result.only_a); }
int get_only_b(lua_State* L) { return push_names(L, *open_diff(L).b, self<DiffBox>(L).result.only_b); }
int get_notes(lua_State* L) {
  push_list(L, self<DiffBox>(L).result.notes, [L](const DiffNote& note) { push(L, note.text); });
  set_record_class(L, "list");
  return 1;
}

template <Format format>
int render(lua_State* L) {
  const DiffBox& box = open_diff(L);
  ReportStyle style = table_style();
  style.format = format;
  const std::string text = diff_report(box.a->open(), box.b->open(), box.result, style);
  return give(L, format == Format::kTable ? without_last_newline(text) : text);
}

constexpr Member kFields[] = {
    {"verdict", guard<get_verdict>}, {"equal", guard<get_equal>},     {"complete", guard<get_complete>},
    {"matched", guard<get_matched>}, {"first", guard<get_first>},     {"tensors", guard<get_tensors>},
    {"counts", guard<get_counts>},   {"only_a", guard<get_only_a>},   {"culprits", guard<get_culprits>},
    {"notes", guard<get_notes>},     {"only_b", guard<get_only_b>},   {"edges_known", guard<get_edges_known>}};
constexpr Member kMethods[] = {{"table", guard<render<Format::kTable>>},       {"json", guard<render<Format::kJson>>},
                               {"jsonl", guard<render<Format::kJsonl>>},       {"csv", guard<render<Format::kCsv>>},
                               {"markdown", guard<render<Format::kMarkdown>>}, {"junit", guard<render<Format::kJunit>>},
                               {"sarif", guard<render<Format::kSarif>>}};
constexpr Member kMeta[] = {{"__tostring", guard<render<Format::kTable>>}};

// ---- two tensors -----------------------------------------------------------------------------------------------------

TensorPtr numbers_of_box(TensorBox& tensor) {
  TensorPtr elements = tensor.session->elements(tensor);
  if (!is_evaluable(elements->dtype())) {
    throw ScriptError("unsupported",
                      fmt::format("diff: {}: elements of type {} have no number", printable(tensor.name), dtype_name(elements->dtype())),
                      true);
  }
  return elements;
}

// core.tensor_diff(t, other, tolerance, rtol, atol) -> measures, difference with what lies within the tolerance as 0, its boundary
int tensor_diff(lua_State* L) {
  const auto left = object_argument<TensorBox>(L, 1, "diff: tensor");
  const auto right = object_argument<TensorBox>(L, 2, "diff: other tensor");
  const std::optional<double> share = number_at(L, 3), rtol = number_at(L, 4), atol = number_at(L, 5);
  if (share && !(*share >= 0 && *share <= 1)) misuse(fmt::format("diff: tolerance {}: a share from 0 to 1 is expected", *share));
  const auto expect_equal = [&](const Shape& one, const Shape& other) {
    if (one == other) return;
    throw ScriptError("invalid_argument",
                      fmt::format("diff: {} has shape {}, {} has shape {}; only equal shapes have a difference", printable(left->name),
                                  shape_text(one), printable(right->name), shape_text(other)),
                      true);
  };
  expect_equal(left->info.shape, right->info.shape);
  const TensorPtr a = numbers_of_box(*left), b = numbers_of_box(*right);
  expect_equal(a->shape(), b->shape());
  CloseRequest tolerance = {rtol.value_or(0), atol.value_or(0)};
  if (!rtol && !atol) {
    tolerance = default_tolerance(a->dtype(), b->dtype(), {1, 1});
    const Stats stats = compute_stats(b->view());
    tolerance.atol = stats.finite_count() > 0 ? tolerance.atol * stats.l2_norm / std::sqrt(static_cast<double>(stats.finite_count())) : 0;
  }
  const Comparison measures = compare_tensors(a->view(), b->view(), tolerance);

  const uint64_t limit = left->session->defaults.mem_limit_bytes;
  if (a->count() > limit / sizeof(double)) {
    throw ScriptError("out_of_memory",
                      fmt::format("diff: the difference of {} elements takes {}, the limit is {}; take a slice or raise mem_limit",
                                  a->count(), format_bytes(a->count() * sizeof(double)), format_bytes(limit)),
                      true);
  }
  std::vector<std::byte> bytes(a->count() * sizeof(double));
  double boundary = 0;
  for (uint64_t i = 0; i < a->count(); ++i) {
    if (i % kPollEvery == 0 && interrupt_requested()) throw ScriptError(Status(Code::kInterrupted, "diff: interrupted"));
    const double d = a->view().at(i) - b->view().at(i);
    if (std::isfinite(d)) boundary = std::max(boundary, std::fabs(d));
    std::memcpy(bytes.data() + i * sizeof d, &d, sizeof d);
  }
  const auto made = std::make_shared<TensorBox>();
  made->session = left->session;
  made->info = left->info;
  made->info.dtype = DType::kFloat64;
  made->info.bytes = bytes.size();
  made->name = fmt::format("{} - {}", left->name, right->name);
  boundary *= share.value_or(0);
  const TensorView plain = {DType::kFloat64, a->shape(), bytes.data(), a->count()};
  const Stats stats = compute_stats(plain);
  for (uint64_t i = 0; boundary > 0 && i < a->count(); ++i) {
    const double zero = 0;
    if (std::fabs(plain.at(i)) <= boundary) std::memcpy(bytes.data() + i * sizeof zero, &zero, sizeof zero);
  }
  made->memory = value_or_throw(TensorBuffer::create(DType::kFloat64, a->shape(), std::move(bytes)));
  lua_newtable(L);
  set_measures(L, measures, left->info.shape);
  set_field(L, "count", measures.count);
  set_field(L, "boundary", boundary);
  push_stats(L, stats, left->info.shape);
  lua_setfield(L, -2, "stats");
  push_stats(L, stats_of(*left), left->info.shape);
  lua_setfield(L, -2, "current_stats");
  push_stats(L, stats_of(*right), right->info.shape);
  lua_setfield(L, -2, "other_stats");
  push_object(L, std::shared_ptr<TensorBox>(made));
  lua_setfield(L, -2, "difference");
  return 1;
}

}  // namespace

void bind_diff(lua_State* L) {
  define_class<DiffBox>(L, {.methods = kMethods, .fields = kFields, .meta = kMeta});
  add_functions(L, {{"diff", guard<diff>}, {"tensor_diff", guard<tensor_diff>}});
  bind_series(L);
}

}  // namespace msdbg::script
