// The lines of the user's program, with the results for each.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>
#include <tuple>

#include "msdbg/file.h"
#include "msdbg/follow_report.h"

namespace msdbg {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kMostBytes = uint64_t{8} << 20;

struct Line {
  std::string code;
  std::vector<NodeRef> nodes;
};
using Lines = std::map<int, Line>;

const StackFrame* frame_of(const Node& node, const SourceOptions& options) {
  if (options.framework) return node.stack.empty() ? nullptr : &node.stack.front();
  const StackFrame* frame = user_frame(node);
  // Without a user frame, this is a framework frame.
  const bool foreign =
      frame != nullptr && (frame->file->find("/mindspore/") != std::string::npos || frame->file->starts_with("mindspore/"));
  return foreign ? nullptr : frame;
}

/// `train.py` names `/data/lenet/train.py`, but not `/data/lenet/pretrain.py`.
bool names_file(std::string_view path, std::string_view end) {
  if (end.empty() || path == end) return true;
  return path.ends_with(end) && (end.front() == '/' || path[path.size() - end.size() - 1] == '/');
}

/// A recorded line may be only the first of a statement, and has lost its indentation.
bool same_code(std::string_view recorded, std::string_view line) {
  recorded = trim(recorded);
  line = trim(line);
  return recorded == line || (!recorded.empty() && line.starts_with(recorded));
}

/// Reads the file if it agrees with the lines that the graph recorded.
std::vector<std::string> text_for(SourceFile& file, const Lines& recorded, const SourceOptions& options) {
  std::vector<fs::path> places = {file.path};
  if (!options.root.empty())
    places = {fs::path(options.root) / fs::path(file.path).filename(), fs::path(options.root) / fs::path(file.path).relative_path()};
  for (const fs::path& place : places) {
    Result<std::vector<std::string>> text = read_lines(place.string(), kMostBytes);
    if (!text) continue;
    size_t same = 0, known = 0;
    for (const auto& [number, line] : recorded) {
      if (line.code.empty() || number <= 0) continue;
      ++known;
      same += static_cast<size_t>(number) <= text->size() && same_code(line.code, (*text)[static_cast<size_t>(number) - 1]) ? 1 : 0;
    }
    if (known > 0 && same * 2 >= known) {
      file.read_from = place.string();
      if (same < known) file.note = fmt::format("{} of {} recorded lines read differently in the file now", known - same, known);
      return std::move(*text);
    }
    file.note = fmt::format("{} says something else than the program that ran: only recorded lines are shown", place.string());
  }
  if (file.note.empty()) file.note = fmt::format("{} is not here: only recorded lines are shown", file.path);
  return {};
}

double share_bad(const Stats& stats) {
  return stats.count == 0 ? 0 : static_cast<double>(stats.nan_count + stats.inf_count()) / static_cast<double>(stats.count);
}
double magnitude(const Stats& stats) {
  return std::max(std::isnan(stats.max) ? 0 : std::abs(stats.max), std::isnan(stats.min) ? 0 : std::abs(stats.min));
}
bool worse(const Stats& a, const Stats& b) { return std::tuple(share_bad(a), magnitude(a)) > std::tuple(share_bad(b), magnitude(b)); }

using NodeKey = std::tuple<int, int, NodeId>;  // rank, graph, node
NodeKey key_of(const TensorId& id) { return {id.rank, id.graph, id.node}; }

/// Findings of each node, by rule.
std::map<NodeKey, std::vector<SourceHit>> findings_of(const CheckResult& result) {
  std::map<NodeKey, std::vector<SourceHit>> found;
  for (const Hit& hit : result.hits) {
    std::vector<SourceHit>& list = found[key_of(hit.tensor)];
    auto at = std::find_if(list.begin(), list.end(), [&](const SourceHit& each) { return each.rule == hit.rule; });
    if (at == list.end()) {
      list.push_back({hit.abbr.empty() ? hit.rule : hit.abbr, hit.rule, 0, hit.tensor.step, hit.tensor});
      at = std::prev(list.end());
    }
    ++at->count;
  }
  return found;
}

void add_findings(SourceRow& row, const std::vector<SourceHit>& more) {
  for (const SourceHit& hit : more) {
    const auto at = std::find_if(row.hits.begin(), row.hits.end(), [&](const SourceHit& each) { return each.rule == hit.rule; });
    if (at == row.hits.end()) {
      row.hits.push_back(hit);
      continue;
    }
    at->count += hit.count;
    if (hit.first_step < at->first_step) at->first_step = hit.first_step, at->tensor = hit.tensor;
  }
}

/// The worst output of each node in the steps of the check.
std::map<NodeKey, std::pair<TensorId, Stats>> worst_of(Session& session, const CheckResult& result, const std::vector<NodeRef>& nodes) {
  std::map<NodeKey, std::pair<TensorId, Stats>> worst;
  for (const int64_t step : result.steps) {
    TensorQuery query;
    query.steps = IntSet::of(step);
    query.nodes = &nodes;
    for (const TensorId& id : session.tensors(query)) {
      if (interrupt_requested()) return worst;
      const Result<Stats> stats = session.stats(id);
      if (!stats) continue;
      const auto [at, added] = worst.try_emplace(key_of(id), id, *stats);
      if (!added && worse(*stats, at->second.second)) at->second = {id, *stats};
    }
  }
  return worst;
}

/// The nodes that came from the file that was asked for.
struct SourceNodes {
  std::map<std::string, Lines> by_file;
  std::vector<NodeRef> nodes;
};

Result<SourceNodes> nodes_of(Session& session, const SourceOptions& options) {
  SourceNodes out;
  std::set<std::string> others;
  for (const GraphPtr& graph : session.graphs()) {
    for (const NodeId id : graph->execution_order()) {
      const StackFrame* frame = frame_of(graph->node(id), options);
      if (frame == nullptr || frame->file.empty() || frame->line <= 0) continue;
      if (!names_file(frame->file, options.file)) {
        others.insert(frame->file);
        continue;
      }
      Line& line = out.by_file[frame->file][frame->line];
      if (line.code.empty()) line.code = frame->code;
      line.nodes.push_back({graph.get(), id});
      out.nodes.push_back({graph.get(), id});
    }
  }
  if (!out.by_file.empty()) return out;
  if (others.empty()) return Status(Code::kNotFound, "source: no node of this dump says which line of a program it came from");
  const std::vector<std::string> all(others.begin(), others.end());
  return Status(Code::kNotFound, fmt::format("source: no node came from '{}'; files with nodes are {}", options.file, fmt::join(all, ", ")));
}

}  // namespace

Status find_source(Session& session, const SourceOptions& options) { return nodes_of(session, options).status(); }

Result<std::vector<SourceFile>> annotate_source(Session& session, const CheckResult& result, const SourceOptions& options) {
  const Result<SourceNodes> found = nodes_of(session, options);
  if (!found) return found.status();

  const auto findings = findings_of(result);
  const auto worst = worst_of(session, result, found->nodes);
  std::vector<SourceFile> files;
  for (const auto& [path, lines] : found->by_file) {
    SourceFile file;
    file.path = path;
    const std::vector<std::string> text = text_for(file, lines, options);
    std::map<int, SourceRow> rows;
    for (size_t i = 0; i < text.size(); ++i) {
      SourceRow& row = rows[static_cast<int>(i) + 1];
      row.line = static_cast<int>(i) + 1;
      row.code = text[i];
    }
    for (const auto& [number, line] : lines) {
      SourceRow& row = rows[number];
      row.line = number;
      row.recorded = true;
      if (text.empty() || static_cast<size_t>(number) > text.size()) {
        row.code = line.code;
      } else if (!line.code.empty() && !same_code(line.code, row.code)) {
        row.differs = true;
        row.recorded_code = line.code;
      }
      row.nodes = line.nodes;
      for (const NodeRef& ref : line.nodes) {
        const Node& node = ref.graph->node(ref.node);
        row.gradients += in_category(node, Category::kGradient) ? 1 : 0;
        const NodeKey key{ref.graph->rank(), ref.graph->id(), ref.node};
        if (const auto found = findings.find(key); found != findings.end()) add_findings(row, found->second);
        const auto seen = worst.find(key);
        if (seen == worst.end() || (row.worst && !worse(seen->second.second, *row.worst))) continue;
        row.worst_tensor = seen->second.first;
        row.worst = seen->second.second;
      }
      std::stable_sort(row.hits.begin(), row.hits.end(), [](const SourceHit& a, const SourceHit& b) { return a.count > b.count; });
      for (const SourceHit& hit : row.hits) file.findings += hit.count;
    }
    for (auto& [number, row] : rows) file.rows.push_back(std::move(row));
    files.push_back(std::move(file));
  }
  return files;
}

}  // namespace msdbg
