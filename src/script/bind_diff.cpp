// msdbg.diff and its result; t:diff().
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "msdbg/diff.h"
#include "script/bind_series.h"
#include "script/objects.h"
#include "script/push_answer.h"

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

DiffOptions read_diff_options(OptionTable& options, const SessionBox& a) {
  DiffOptions made;
  if (a.current_rank) made.ranks_a = made.ranks_b = IntSet::of(*a.current_rank);
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
  // A session compared with itself: two of its steps, ranks or graphs.
  const bool alone = lua_isnoneornil(L, 2) || (lua_istable(L, 2) && lua_isnoneornil(L, 3));
  box->b = alone ? box->a : object_argument<SessionBox>(L, 2, "diff: second session");
  OptionTable options(L, alone && lua_istable(L, 2) ? 2 : 3, "diff");
  DiffOptions made = read_diff_options(options, *box->a);
  made.progress = progress_of(vm_of(L), "comparing");
  Session &a = box->a->open(), &b = box->b->open();
  const InUse guard_a(*box->a, "diff");
  std::optional<InUse> guard_b;
  if (box->a != box->b) guard_b.emplace(*box->b, "diff");
  box->result = value_or_throw(diff_sessions(a, b, made));
  if (box->result.interrupted) throw ScriptError(Status(Code::kInterrupted, "diff: interrupted"));
  push_object(L, std::move(box));
  return 1;
}

Answer answer_of(const DiffBox& box) { return diff_answer(*box.a->session, *box.b->session, box.result); }

template <Key key, Key as = key>
constexpr auto diff_field = answer_field<DiffBox, answer_of, key, as>;

template <Format format>
int render(lua_State* L) {
  const DiffBox& box = self<DiffBox>(L);
  ReportStyle style = table_style(L);
  style.format = format;
  const std::string text = diff_report(box.a->open(), box.b->open(), box.result, style);
  return give(L, format == Format::kTable ? without_last_newline(text) : text);
}

constexpr Member kFields[] = {
    {"a", guard<diff_field<"a">>},
    {"b", guard<diff_field<"b">>},
    {"verdict", guard<diff_field<"verdict">>},
    {"equal", guard<diff_field<"equal">>},
    {"complete", guard<diff_field<"complete">>},
    {"interrupted", guard<diff_field<"interrupted">>},
    {"edges_known", guard<diff_field<"edges_known">>},
    {"first", guard<diff_field<"first", "tensors">>},
    {"culprits", guard<diff_field<"culprits">>},
    {"random", guard<diff_field<"random">>},
    {"matched", guard<diff_field<"matched">>},
    {"matched_by", guard<diff_field<"matched_by">>},
    {"counts", guard<diff_field<"counts">>},
    {"only_a", guard<diff_field<"only_a">>},
    {"only_b", guard<diff_field<"only_b">>},
    {"notes", guard<diff_field<"notes">>},
    {"tensors", guard<diff_field<"tensors">>}};
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

// core.tensor_diff(t, other, tolerance, rtol, atol) -> measures, difference with 0 for elements within the tolerance, its boundary
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
  push_answer(L, measures_answer(measures, left->info.shape));
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
