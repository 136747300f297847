// msdbg.bisect, trend, histogram, layers, replicas, settings, propagation, why, source and plan. The object of an answer provides its
// tables and renders the other formats; scripts/msdbg/follow.lua combines the two.
#include <fmt/format.h>

#include <algorithm>
#include <variant>

#include "msdbg/dump_plan.h"
#include "msdbg/follow_report.h"
#include "msdbg/histogram_report.h"
#include "msdbg/layers_report.h"
#include "script/bins.h"
#include "msdbg/replicas_report.h"
#include "msdbg/settings_report.h"
#include "script/predicate.h"
#include "script/push_answer.h"

namespace msdbg::script {

struct FollowBox {
  std::shared_ptr<SessionBox> session;
  std::variant<BisectResult, TrendResult, HistogramResult, LayersResult, ReplicasResult, SettingsResult, Propagation, WhyAnswer,
               std::vector<SourceFile>> answer;
  CheckResult check;  ///< source: what it was made from
};

template <>
struct ClassName<FollowBox> {
  static constexpr const char* value = "followed";
  static constexpr const char* registry = "msdbg.followed";
};

namespace {

FollowOptions follow_options(OptionTable& options, const SessionBox& box) {
  FollowOptions made;
  CheckOptions common = box.defaults;
  if (const auto steps = options.numbers("steps")) made.steps = *steps;
  made.ranks = ranks_option(options, box);
  read_check_options(options, &common);
  made.semantics = common.semantics;
  made.threads = common.threads;
  made.mem_limit_bytes = common.mem_limit_bytes;
  return made;
}

/// Accepts text, a tensor, or anything that selector_argument() accepts.
FollowTarget target_argument(lua_State* L, int index, const std::string& what, SessionBox& box, const IntSet& ranks,
                             std::optional<int> graph) {
  if (const auto* tensor = holder_at<TensorBox>(L, index)) return value_or_throw(follow_target(box.open(), (*tensor)->name, ranks, graph));
  if (const auto text = text_at(L, index)) return value_or_throw(follow_target(box.open(), *text, ranks, graph));
  FollowTarget target;
  target.on = selector_argument(L, index, what);
  target.text = target.on.text();
  target.nodes = value_or_throw(resolve_or_explain(target.on, box.open().graphs()));
  std::erase_if(target.nodes,
                [&](const NodeRef& ref) { return !ranks.contains(ref.graph->rank()) || (graph && ref.graph->id() != *graph); });
  return target;
}

template <typename Found>
int give_followed(lua_State* L, std::shared_ptr<SessionBox> session, Found answer, CheckResult check = {}) {
  auto made = std::make_shared<FollowBox>();
  made->session = std::move(session);
  made->answer = std::move(answer);
  made->check = std::move(check);
  push_object(L, std::move(made));
  return 1;
}

int run_bisect(lua_State* L) {
  const auto box = object_argument<SessionBox>(L, 1, "bisect: session");
  box->open();
  OptionTable options(L, 2, "bisect");
  FollowOptions follow = follow_options(options, *box);
  const std::optional<int> graph = options.id("graph");
  const ScriptPredicate predicate(L, options, *box, "bisect");
  follow.cancelled = [&predicate] { return predicate.failed(); };
  if (!options.push("on")) misuse("bisect: option 'on' names the tensor to look at: a name, a selector, a node or a tensor");
  const FollowTarget target = target_argument(L, lua_gettop(L), "bisect: option 'on'", *box, follow.ranks, graph);
  lua_pop(L, 1);
  options.finish();
  const InUse guard(*box, "bisect");
  follow.progress = progress_of(vm_of(L), "bisecting", "step");
  Result<BisectResult> found = bisect(*box->session, target, predicate.predicate(), follow);
  predicate.throw_failure();
  BisectResult result = value_or_throw(std::move(found));
  if (result.interrupted) throw ScriptError(Status(Code::kInterrupted, "bisect: interrupted"));
  return give_followed(L, box, std::move(result));
}

int run_trend(lua_State* L) {
  const auto box = object_argument<SessionBox>(L, 1, "trend: session");
  box->open();
  const std::string statistic = text_argument(L, 2, "trend: statistic");
  OptionTable options(L, 4, "trend");
  FollowOptions follow = follow_options(options, *box);
  const std::optional<int> graph = options.id("graph");
  options.finish();
  const bool all = lua_isnoneornil(L, 3);
  const FollowTarget target = all ? value_or_throw(follow_target(*box->session, "@all", follow.ranks, graph))
                                  : target_argument(L, 3, "trend: selector", *box, follow.ranks, graph);
  const InUse guard(*box, "trend");
  follow.progress = progress_of(vm_of(L), "reading");
  TrendResult result = value_or_throw(trend(*box->session, target, statistic, follow));
  if (result.interrupted) throw ScriptError(Status(Code::kInterrupted, "trend: interrupted"));
  return give_followed(L, box, std::move(result));
}

int run_histogram(lua_State* L) {
  const auto box = object_argument<SessionBox>(L, 1, "histogram: session");
  box->open();
  OptionTable options(L, 3, "histogram");
  FollowOptions follow = follow_options(options, *box);
  const BinOptions bins = bin_options(options);
  const std::string part = options.text("slice").value_or("");
  const std::optional<int> graph = options.id("graph");
  options.finish();
  const FollowTarget target = target_argument(L, 2, "histogram: tensor", *box, follow.ranks, graph);
  const InUse guard(*box, "histogram");
  follow.progress = progress_of(vm_of(L), "reading");
  HistogramResult result = value_or_throw(histograms(*box->session, target, bins, part, follow));
  if (result.interrupted) throw ScriptError(Status(Code::kInterrupted, "histogram: interrupted"));
  return give_followed(L, box, std::move(result));
}

int run_layers(lua_State* L) {
  const auto box = object_argument<SessionBox>(L, 1, "layers: session");
  box->open();
  OptionTable options(L, 2, "layers");
  LayersOptions asked;
  static_cast<FollowOptions&>(asked) = follow_options(options, *box);
  asked.by_layer = options.boolean("by_layer").value_or(false);
  if (options.push("on")) {
    asked.on = selector_argument(L, lua_gettop(L), "layers: option 'on'").in(box->session->graphs());
    lua_pop(L, 1);
  }
  options.finish();
  const InUse guard(*box, "layers");
  asked.progress = progress_of(vm_of(L), "reading");
  LayersResult result = value_or_throw(layers(*box->session, asked));
  if (result.interrupted) throw ScriptError(Status(Code::kInterrupted, "layers: interrupted"));
  return give_followed(L, box, std::move(result));
}

int run_replicas(lua_State* L) {
  const auto box = object_argument<SessionBox>(L, 1, "replicas: session");
  box->open();
  OptionTable options(L, 2, "replicas");
  FollowOptions asked = follow_options(options, *box);
  asked.ranks = options.numbers("ranks").value_or(IntSet::all());  // one rank has nothing to be compared with
  options.finish();
  const InUse guard(*box, "replicas");
  asked.progress = progress_of(vm_of(L), "comparing", "step");
  ReplicasResult result = value_or_throw(replicas(*box->session, asked));
  if (result.interrupted) throw ScriptError(Status(Code::kInterrupted, "replicas: interrupted"));
  return give_followed(L, box, std::move(result));
}

int run_settings(lua_State* L) {
  const auto box = object_argument<SessionBox>(L, 1, "settings: session");
  box->open();
  OptionTable options(L, 2, "settings");
  const FollowOptions asked = follow_options(options, *box);
  options.finish();
  const InUse guard(*box, "settings");
  return give_followed(L, box, value_or_throw(settings(*box->session, asked)));
}

int run_propagation(lua_State* L) {
  const auto box = object_argument<SessionBox>(L, 1, "propagation: session");
  Session& session = box->open();
  OptionTable options(L, 3, "propagation");
  PropagationOptions asked;
  static_cast<FollowOptions&>(asked) = follow_options(options, *box);
  const ScriptPredicate predicate(L, options, *box, "propagation");
  asked.predicate = predicate.predicate();
  asked.up = options.boolean("up").value_or(false);
  const std::optional<int> graph = options.id("graph");
  const auto rank = rank_option(options, *box);
  const auto execution = options.integer("execution", 0, UINT32_MAX);
  TensorId id;
  if (const auto* tensor = holder_at<TensorBox>(L, 2)) {
    if ((*tensor)->session != box) misuse("propagation: the tensor belongs to another session");
    id = (*tensor)->info.id;
    options.know("step");
  } else {
    const std::string name = text_argument(L, 2, "propagation: tensor (a name or a tensor)");
    id = value_or_throw(resolve_tensor(session, name, step_option(options, *box),
                                       rank, graph,
                                       static_cast<uint32_t>(execution.value_or(0))));
  }
  options.finish();
  const InUse guard(*box, "propagation");
  asked.progress = progress_of(vm_of(L), "checking");
  Result<Propagation> found = propagation(session, id, asked);
  predicate.throw_failure();
  Propagation result = value_or_throw(std::move(found));
  if (result.interrupted) throw ScriptError(Status(Code::kInterrupted, "propagation: interrupted"));
  return give_followed(L, box, std::move(result));
}

int run_why(lua_State* L) {
  const auto box = object_argument<SessionBox>(L, 1, "why: session");
  Session& session = box->open();
  const auto* tensor = holder_at<TensorBox>(L, 2);
  const std::string name = tensor != nullptr ? (*tensor)->name : text_argument(L, 2, "why: tensor (a name or a tensor)");
  OptionTable options(L, 3, "why");
  WhyOptions asked;
  asked.step = options.integer("step");
  if (!asked.step) asked.step = tensor != nullptr ? std::optional((*tensor)->info.id.step) : box->current_step;
  asked.rank = rank_option(options, *box);
  asked.graph = options.id("graph");
  asked.execution = static_cast<uint32_t>(options.integer("execution", 0, UINT32_MAX).value_or(0));
  options.finish();
  asked.mem_limit_bytes = box->defaults.mem_limit_bytes;
  return give_followed(L, box, value_or_throw(why(session, name, asked)));
}

int run_source(lua_State* L) {
  const auto result = object_argument<ResultBox>(L, 2, "source: result of a check");
  const auto box = object_argument<SessionBox>(L, 1, "source: session");
  Session& session = box->open();
  if (result->session != box) misuse("source: the result belongs to another session");
  OptionTable options(L, 3, "source");
  SourceOptions asked;
  asked.file = options.text("file").value_or("");
  asked.root = options.text("root").value_or("");
  asked.framework = options.boolean("framework").value_or(false);
  options.finish();
  return give_followed(L, box, value_or_throw(annotate_source(session, result->result, asked)), result->result);
}

// core.plan(session, options) -> the plan, the text of the configuration file
int run_plan(lua_State* L) {
  const auto box = object_argument<SessionBox>(L, 1, "plan: session");
  const Session& session = box->open();
  OptionTable options(L, 2, "plan");
  const auto around = options.text("around");
  const int64_t hops = options.integer("hops", 0, 1000).value_or(2);
  const bool chosen = options.push("on");
  if (chosen && around) misuse("plan: options 'on' and 'around' both choose nodes; give one of them");
  std::vector<NodeRef> nodes;
  if (around) {
    const NodeRef centre = value_or_throw(find_node(session.graphs(), *around));
    nodes = nodes_around(*centre.graph, centre.node, static_cast<int>(hops));
  } else {
    const Selector on = chosen ? selector_argument(L, lua_gettop(L), "plan: option 'on'") : value_or_throw(Selector::parse("**"));
    nodes = value_or_throw(resolve_or_explain(on, session.graphs()));
  }
  if (chosen) lua_pop(L, 1);
  DumpPlanOptions asked = plan_options_of(session.info(), !chosen && !around);
  if (const auto steps = options.numbers("steps")) asked.steps = *steps;
  const auto one_of = [&](const char* key, std::initializer_list<std::string> words) -> std::optional<size_t> {
    const auto word = options.text(key);
    if (!word) return std::nullopt;
    const auto found = std::find(words.begin(), words.end(), *word);
    if (found == words.end()) misuse(fmt::format("plan: option '{}' is '{}': {} is possible", key, *word, fmt::join(words, ", ")));
    return static_cast<size_t>(found - words.begin());
  };
  if (const auto mode = one_of("mode", {"tensor", "statistic", "full"})) asked.saved = static_cast<SavedData>(*mode);
  if (const auto slots = one_of("slots", {"both", "inputs", "outputs"})) asked.slots = static_cast<DumpedSlots>(*slots);
  asked.path = options.text("path").value_or(asked.path);
  asked.net_name = options.text("net_name").value_or(asked.net_name);
  asked.version = options.text("version").value_or(asked.version);
  options.finish();
  const DumpPlan plan = value_or_throw(plan_dump(session.graphs(), nodes, asked));
  push_plain_answer(L, Answer::parse(plan_json(plan)));
  push(L, plan.json);
  return 2;
}

std::string rendered(lua_State* L, FollowBox& box, const std::string& format, size_t context) {
  Session& session = box.session->open();
  if (const auto* cone = std::get_if<Propagation>(&box.answer); cone != nullptr && (format == "svg" || format == "dot")) {
    const PictureGraph picture = propagation_picture(session, *cone, nullptr, format == "svg" ? 120 : SIZE_MAX);
    return format == "dot" ? graph_dot(picture) : value_or_throw(graph_svg_file(picture));
  }
  ReportStyle style = table_style(L);
  style.format = value_or_throw(parse_format(format));
  return std::visit(
      [&](const auto& answer) {
        using Answer = std::decay_t<decltype(answer)>;
        if constexpr (std::is_same_v<Answer, BisectResult>)
          return bisect_report(session, answer, style);
        else if constexpr (std::is_same_v<Answer, TrendResult>)
          return trend_report(session, answer, style);
        else if constexpr (std::is_same_v<Answer, HistogramResult>)
          return histogram_report(session, answer, style);
        else if constexpr (std::is_same_v<Answer, LayersResult>)
          return layers_report(session, answer, style);
        else if constexpr (std::is_same_v<Answer, ReplicasResult>)
          return replicas_report(session, answer, style);
        else if constexpr (std::is_same_v<Answer, SettingsResult>)
          return settings_report(session, answer, style);
        else if constexpr (std::is_same_v<Answer, Propagation>)
          return propagation_report(session, answer, style);
        else if constexpr (std::is_same_v<Answer, WhyAnswer>)
          return why_report(session, answer, style);
        else
          return source_report(session, answer, box.check, style, context);
      },
      box.answer);
}

// core.follow_tree(answer) -> its tables
int tree(lua_State* L) {
  const auto box = object_argument<FollowBox>(L, 1, "follow: answer");
  Session& session = box->session->open();
  push_plain_answer(L, std::visit(
                           [&](const auto& found) {
                             using Found = std::decay_t<decltype(found)>;
                             if constexpr (std::is_same_v<Found, BisectResult>) return bisect_answer(session, found);
                             else if constexpr (std::is_same_v<Found, TrendResult>) return trend_answer(session, found);
                             else if constexpr (std::is_same_v<Found, HistogramResult>) return histogram_answer(session, found);
                             else if constexpr (std::is_same_v<Found, LayersResult>) return layers_answer(session, found);
                             else if constexpr (std::is_same_v<Found, ReplicasResult>) return replicas_answer(session, found);
                             else if constexpr (std::is_same_v<Found, SettingsResult>) return settings_answer(session, found);
                             else if constexpr (std::is_same_v<Found, Propagation>) return propagation_answer(session, found);
                             else if constexpr (std::is_same_v<Found, WhyAnswer>) return why_answer(session, found);
                             else return lines_answer(session, found, box->check);
                           },
                           box->answer));
  return 1;
}

int render(lua_State* L) {
  const auto box = object_argument<FollowBox>(L, 1, "render: answer");
  const std::string format = text_argument(L, 2, "render: format");
  const auto context = static_cast<size_t>(integer_argument(L, 3, "render: context", 2, 0, INT32_MAX));
  return give(L, rendered(L, *box, format, context));
}

}  // namespace

void bind_follow(lua_State* L) {
  define_class<FollowBox>(L, {});
  add_functions(L, {{"bisect", guard<run_bisect>}, {"trend", guard<run_trend>}, {"histogram", guard<run_histogram>},
                    {"layers", guard<run_layers>}, {"replicas", guard<run_replicas>}, {"settings", guard<run_settings>},
                    {"why", guard<run_why>}, {"propagation", guard<run_propagation>}, {"source", guard<run_source>},
                    {"follow_render", guard<render>}, {"follow_tree", guard<tree>},
                    {"plan", guard<run_plan>}});
}

}  // namespace msdbg::script
