// The second half of opening a rank: builds the graphs and the indexes of their steps.
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <tuple>

#include "session/dump/directory.h"
#include "session/dump/rank_opener.h"

namespace msdbg::dump {
namespace {

uint64_t distance(uint64_t a, uint64_t b) { return a > b ? a - b : b - a; }

}  // namespace

void RankOpener::note_graphs() {
  std::map<int, std::set<int64_t>> steps;
  for (const DataDirectory& data : rank_.data) {
    if (!data.constants) steps[layout_.graphs_share_directories() ? 0 : data.graph].insert(data.step);
  }
  for (const auto& [graph, numbers] : steps) {
    if (from_file_.count(graph) > 0) continue;
    if (layout_.kind == "files") continue;
    add_problem(out_.problems, Severity::kInfo, join_path(rank_.path, "graphs"),
                fmt::format("no graph file of graph {}: its nodes are known from file names only, without inputs, "
                            "scopes and source lines",
                            graph));
  }
  for (const auto& [graph, strangers] : unmatched_) {
    if (from_file_.count(graph) == 0 || strangers.empty()) continue;
    size_t files = 0;
    for (const auto& [key, unmatched] : strangers) files += unmatched.items.size();
    const auto& [type, op] = strangers.begin()->first;
    add_problem(out_.problems, Severity::kInfo, rank_.path,
                fmt::format("{} files of graph {} match no node of its graph file and got {} nodes of their own, the "
                            "first is {}.{}",
                            files, graph, strangers.size(), printable(type), printable(op)));
  }
}

void RankOpener::fill_indexes() {
  for (auto& [id, builder] : builders_) {
    GraphPtr graph = builder.build();
    out_.data[{rank_.rank, id}].graph = graph;
    out_.graphs.push_back(std::move(graph));
  }
  std::vector<std::vector<Item*>> by_directory(rank_.data.size());
  for (Item& item : items_) by_directory[item.directory].push_back(&item);
  for (size_t d = 0; d < by_directory.size(); ++d) fill_directory(d, by_directory[d]);
  for (size_t d = 0; d < listed_.size(); ++d) out_.directories[directory_index_[d]].rows = std::move(listed_[d].rows);
  for (auto& [id, builder] : builders_) {
    GraphData& data = out_.data[{rank_.rank, id}];
    data.constants.finish(*data.graph);
    for (auto& [step, index] : data.steps) index.finish(*data.graph);
  }
}

void RankOpener::fill_directory(size_t directory, std::vector<Item*>& items) {
  const DataDirectory& data = rank_.data[directory];
  const auto add = [&](const Item& item, Value value) {
    GraphData& target = out_.data[{rank_.rank, item.node.graph}];
    StepIndex& index = data.constants ? target.constants : target.steps[data.step];
    index.add(item.node.node, Slot{item.name->io, item.name->slot}, std::move(value));
  };
  if (listed_[directory].rows.empty()) {
    for (const Item* item : items) add(*item, value_of(*item));
    return;
  }
  // Matches files and rows of one slot: one to one if their numbers agree, else by nearest time.
  struct Group {
    std::vector<Item*> files, rows;
  };
  std::map<std::tuple<int, NodeId, Io, uint32_t>, Group> groups;
  for (Item* item : items) {
    Group& group = groups[{item->node.graph, item->node.node, item->name->io, item->name->slot}];
    (item->file >= 0 ? group.files : group.rows).push_back(item);
  }
  const auto earlier = [](const Item* a, const Item* b) { return a->name->timestamp < b->name->timestamp; };
  for (auto& [key, group] : groups) {
    std::stable_sort(group.files.begin(), group.files.end(), earlier);
    std::stable_sort(group.rows.begin(), group.rows.end(), earlier);
    for (size_t k = 0; k < group.files.size(); ++k) {
      Value value = value_of(*group.files[k]);
      if (group.files.size() == group.rows.size()) {
        value.row = group.rows[k]->row;
      } else if (!group.rows.empty()) {
        const uint64_t time = group.files[k]->name->timestamp;
        value.row = (*std::min_element(group.rows.begin(), group.rows.end(), [&](const Item* a, const Item* b) {
                      return distance(a->name->timestamp, time) < distance(b->name->timestamp, time);
                    }))->row;
      }
      add(*group.files[k], std::move(value));
    }
    if (!group.files.empty()) continue;
    for (const Item* row : group.rows) add(*row, value_of(*row));
  }
}

Value RankOpener::value_of(const Item& item) {
  const FileName& name = *item.name;
  Value value;
  value.kind = item.file >= 0 ? name.kind : FileKind::kStatistics;
  value.note = item.node.note;
  value.dtype = dtype_from_name(name.dtype);
  value.format = format_index(name.format);
  value.directory = directory_index_[item.directory];
  value.row = item.row;
  value.timestamp = name.timestamp;
  value.task = name.task;
  value.stream = name.stream;
  if (item.file >= 0) value.file = std::move(listed_[item.directory].files[static_cast<size_t>(item.file)].path);
  if (name.kind == FileKind::kRaw && !name.scalar) value.shape = name.shape;
  return value;
}

uint16_t RankOpener::format_index(const std::string& format) {
  const auto found = std::find(out_.formats.begin(), out_.formats.end(), format);
  if (found != out_.formats.end()) return static_cast<uint16_t>(found - out_.formats.begin());
  if (out_.formats.size() >= UINT16_MAX) return 0;
  out_.formats.push_back(format);
  return static_cast<uint16_t>(out_.formats.size() - 1);
}

void RankOpener::read_history() {
  const std::string directory = join_path(rank_.path, "execution_order");
  std::map<int, std::set<int64_t>> dumped;
  for (const DataDirectory& data : rank_.data) {
    if (!data.constants) dumped[data.graph].insert(data.step);
  }
  History history = History::read(directory, out_.problems);
  history.reconcile(dumped, directory, out_.problems);
  // Rank 0 alone writes it, as a rule; the ranks of a training take the same steps.
  for (const RankDirectory& other : layout_.ranks) {
    if (!history.empty()) break;
    if (other.rank == rank_.rank) continue;
    std::vector<Problem> of_other;
    history = History::read(join_path(other.path, "execution_order"), of_other);
    history.reconcile(dumped, directory, of_other);
  }
  out_.history[rank_.rank] = std::move(history);
}

}  // namespace msdbg::dump
