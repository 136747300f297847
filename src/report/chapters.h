// The chapters of a report. Each reads the results and, if needed, tensors.
//
// The session's owner thread only.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "msdbg/html_report.h"
#include "report/document.h"
#include "report/origin_words.h"

namespace msdbg::page {

/// The results and how things are called. Lives as long as one page is made.
class Context {
 public:
  Context(Session& session, const PageInput& input, const PageOptions& options);

  Session& session;
  const PageInput& input;
  const PageOptions& options;
  /// Steps in the order in which things happened: by step, then rank and graph.
  std::vector<const StepOrigins*> origins;
  /// Those that add something: another node than in the previous step. At most kMostStories.
  std::vector<const StepOrigins*> stories;
  std::vector<Line> remarks;  ///< that chapters add to the verdict
  Status failure;             ///< kInterrupted once Ctrl-C was pressed

  static constexpr size_t kMostStories = 4;

  const Node& node(const TensorId& id) const { return session.node(id); }
  /// The unique end of the node's name.
  const std::string& short_name(const TensorId& id);
  /// `Log-op0:output:0`; a parameter by its name alone.
  std::string tensor_text(const TensorId& id);
  Run tensor_run(const TensorId& id);
  Run node_run(const TensorId& id);
  /// `step 0`, with rank, graph and execution where there are several.
  std::string when_text(const TensorId& id) const;
  /// Of the step that an origin broke: a parameter that was broken when it began is a value of the step before.
  std::string when_text(const TensorId& id, const StepOrigins& step) const;
  bool several_ranks() const { return session.ranks().size() > 1; }
  bool several_graphs() const { return session.graphs().size() > session.ranks().size(); }
  /// The origin that a bad tensor, or what was made of a bad input, follows from; it is in an earlier step where a broken parameter
  /// carried the fault on. nullptr: none is known.
  const Origin* cause(const TensorId& id) const;
  /// The name of the node that broke first, with its rank where there are several.
  Run cause_run(const Origin& origin);
  /// The user's line, with the whole path as hint; empty without one.
  Line source_line(const Node& node) const;
  /// Abbreviations of what hit any output of that node in that step.
  std::vector<std::string> marks(const TensorId& id) const;
  /// Where in the page a tensor is shown; "" when it is not.
  std::string anchor(const TensorId& id) const;
  void set_anchor(const TensorId& id, std::string anchor) { anchors_[id] = std::move(anchor); }

  Semantics semantics() const;
  std::vector<int64_t> steps_looked_at() const;
  Coverage coverage() const;
  bool partial() const;

 private:
  using NodeKey = std::tuple<int, int, NodeId>;
  using PlaceKey = std::tuple<int, int, int64_t, NodeId>;
  const Origin* origin_of(const TensorId& bad) const;

  std::map<NodeKey, std::string> names_;
  std::map<std::tuple<int, int, int64_t>, const StepOrigins*> origins_of_;
  std::map<PlaceKey, std::vector<std::string>> marks_;
  std::map<TensorId, std::string> anchors_;
};

/// Reads the input as judged: the producer's output, the recorded input or the parameter.
std::string input_from(Context& context, const Origin& origin, const OriginInput& input);

void tell_verdict(Context& context, Document* document);
/// Error: kInvalidArgument for a SOURCE_DATE_EPOCH that is no time.
Status tell_making(Context& context, Document* document);
// Nothing if there is nothing to report.
std::optional<Section> origin_chapter(Context& context);
std::optional<Section> graph_chapter(Context& context);
std::optional<Section> tensor_chapter(Context& context);
std::optional<Section> trend_chapter(Context& context);
std::optional<Section> hit_chapter(Context& context);
std::optional<Section> guide_chapter(Context& context);
std::optional<Section> source_chapter(Context& context);
std::optional<Section> coverage_chapter(Context& context);
std::optional<Section> environment_chapter(Context& context);
std::optional<Section> command_chapter(Context& context);

}  // namespace msdbg::page
