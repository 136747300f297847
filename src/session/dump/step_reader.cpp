#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "msdbg/dump_step.h"
#include "msdbg/file.h"
#include "msdbg/wire.h"
#include "session/dump/directory.h"
#include "session/dump/history.h"
#include "session/dump/join.h"
#include "session/dump/step_files.h"

namespace msdbg {
namespace {

constexpr int kRank = 0;  // has no say: there is one graph

Result<GraphBuilder> read_step_graph(const std::string& rank_directory, int graph) {
  const std::string path = dump::join_path(rank_directory, fmt::format("graphs/ms_output_trace_code_graph_{}.pb", graph));
  std::vector<std::string> notes;
  Result<GraphBuilder> builder = read_graph_file(path, kRank, graph, &notes);
  if (!builder) return builder;
  // Without it, the order is that of the file.
  const std::string order = dump::join_path(rank_directory, fmt::format("execution_order/ms_execution_order_graph_{}.csv", graph));
  if (const auto names = dump::read_execution_order(order); names) builder->set_execution_order(*names);
  return builder;
}

}  // namespace

struct StepReader::State {
  GraphBuilder builder;  // the names, for the joiner
  GraphPtr graph;
};

StepReader::StepReader(std::unique_ptr<State> state) : state_(std::move(state)) {}
StepReader::~StepReader() = default;

const Graph& StepReader::graph() const { return *state_->graph; }

Result<std::unique_ptr<StepReader>> StepReader::open(const std::string& rank_directory, int graph) {
  Result<GraphBuilder> names = read_step_graph(rank_directory, graph);
  if (!names) return names.status();
  Result<GraphBuilder> built = read_step_graph(rank_directory, graph);
  if (!built) return built.status();
  GraphPtr whole = built->build();
  // Both were read from the same file, unless it was replaced meanwhile.
  if (whole->nodes().size() != names->size()) {
    return Status(Code::kIoError, fmt::format("graph {} in {} changed while it was read: try again", graph, rank_directory));
  }
  auto state = std::make_unique<State>(State{std::move(*names), std::move(whole)});
  return std::unique_ptr<StepReader>(new StepReader(std::move(state)));
}

Result<std::vector<StepValue>> StepReader::list(const std::string& directory) {
  if (const auto entries = dump::list_directory(directory); !entries) return entries.status();
  TextArena names;
  dump::DirectoryLister lister;
  const dump::StepFiles files = dump::list_step(directory, false, lister, names);
  dump::Joiner joiner;
  joiner.add_graph(state_->graph->id(), state_->builder);
  for (const dump::ListedFile& file : files.files) joiner.announce(file.name);
  joiner.finish();
  struct Written {
    uint64_t timestamp = 0;
    StepValue value;
  };
  std::map<std::tuple<uint32_t, NodeId, uint32_t>, Written> last;
  for (const dump::ListedFile& file : files.files) {
    const dump::FileName& name = file.name;
    const bool readable = name.kind == dump::FileKind::kNpy || name.kind == dump::FileKind::kRaw;
    if (!readable || name.io != Io::kOutput || (!name.format.empty() && !dump::is_host_format(name.format))) continue;
    const std::vector<dump::JoinedNode> nodes = joiner.find(name);
    // A name that fits several nodes says nothing about either.
    if (nodes.size() != 1) continue;
    const Node& node = state_->graph->node(nodes.front().node);
    if (node.kind != NodeKind::kOperator) continue;
    Written& written = last[{node.order, node.id, name.slot}];
    if (written.value.node != kNoNode && written.timestamp > name.timestamp) continue;
    written.timestamp = name.timestamp;
    written.value = {node.id, name.slot, dump::join_path(directory, std::string(file.path)), {}};
    written.value.hints.form = name.kind == dump::FileKind::kRaw ? FileForm::kRaw : FileForm::kNpy;
    written.value.hints.dtype = dtype_from_name(name.dtype);
    if (name.kind == dump::FileKind::kRaw && !name.scalar) written.value.hints.shape = name.shape.get();
  }
  std::vector<StepValue> values;
  values.reserve(last.size());
  for (auto& [place, written] : last) values.push_back(std::move(written.value));
  return values;
}

}  // namespace msdbg
