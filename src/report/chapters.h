// The chapters of a report. Each reads the results and, if needed, tensors.
//
// The session's owner thread only.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "msdbg/answers.h"
#include "msdbg/html_report.h"
#include "report/document.h"
#include "report/origin_words.h"

namespace msdbg::page {

/// The results and the names for them. Lives while one page is made.
class Context {
 public:
  Context(Session& session, const PageInput& input, const PageOptions& options);

  Session& session;
  const PageInput& input;
  const PageOptions& options;
  /// Steps in the order of events: by step, then rank and graph.
  std::vector<const StepOrigins*> origins;
  /// Origins that add something: at another node than in the previous step. At most kMostStories.
  std::vector<const StepOrigins*> stories;
  std::vector<Line> remarks;  ///< that chapters add to the verdict
  Status failure;             ///< kInterrupted after Ctrl-C

  static constexpr size_t kMostStories = 4;

  const Node& node(const TensorId& id) const { return session.node(id); }
  /// The shortest unique end of the node's name.
  const std::string& short_name(const TensorId& id);
  /// `Log-op0:output:0`; a parameter by its name only.
  std::string tensor_text(const TensorId& id);
  Run tensor_run(const TensorId& id);
  Run node_run(const TensorId& id);
  /// `step 0`, with rank, graph and execution if there are several.
  std::string when_text(const TensorId& id) const;
  /// For the step that an origin broke, with all its ranks: a parameter that was already broken has its value from the step before.
  std::string when_text(const TensorId& id, const StepOrigins& step) const;
  bool several_ranks() const { return session.ranks().size() > 1; }
  bool several_graphs() const { return session.graphs().size() > session.ranks().size(); }
  /// The name of the node that is the cause, with its rank if there are several.
  Run cause_run(const Cause& cause);
  /// The user's line, with the full path as hint; may be empty.
  Line source_line(const Node& node) const;
  /// Abbreviations of the rules that hit any output of that node in that step.
  std::vector<std::string> marks(const TensorId& id) const;
  /// The anchor of the tensor in the page; "" when it is not shown.
  std::string anchor(const TensorId& id) const;
  void set_anchor(const TensorId& id, std::string anchor) { anchors_[id] = std::move(anchor); }

  Semantics semantics() const;
  std::vector<int64_t> steps_looked_at() const;
  Coverage coverage() const;
  bool partial() const;

 private:
  std::string when_text(const TensorId& id, int64_t step, std::span<const int> ranks) const;

  using NodeKey = std::tuple<int, int, NodeId>;
  using PlaceKey = std::tuple<int, int, int64_t, NodeId>;

  std::map<NodeKey, std::string> names_;
  std::map<PlaceKey, std::vector<std::string>> marks_;
  std::map<TensorId, std::string> anchors_;
};

/// A text of an answer; "" for null.
std::string text_at(const Answer& answer, const char* key);
/// A number of an answer in short form; "" for null.
std::string number_at(const Answer& answer, const char* key);

/// The input that was judged: the producer's output, the recorded input or the parameter.
std::string input_from(Context& context, const Origin& origin, const OriginInput& input);

void add_verdict(Context& context, Document* document);
/// Error: kInvalidArgument for an invalid SOURCE_DATE_EPOCH.
Status add_provenance(Context& context, Document* document);
// nullopt if there is nothing to report.
std::optional<Section> origin_chapter(Context& context);
std::optional<Section> ranks_chapter(Context& context);
std::optional<Section> graph_chapter(Context& context);
std::optional<Section> tensor_chapter(Context& context);
std::optional<Section> trend_chapter(Context& context);
std::optional<Section> layers_chapter(Context& context);
std::optional<Section> hit_chapter(Context& context);
std::optional<Section> guide_chapter(Context& context);
std::optional<Section> source_chapter(Context& context);
std::optional<Section> coverage_chapter(Context& context);
std::optional<Section> environment_chapter(Context& context);
std::optional<Section> command_chapter(Context& context);

}  // namespace msdbg::page
