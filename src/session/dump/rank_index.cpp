// The second half of opening a rank: nodes for names without one, the graphs, and the indexes of their steps.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <numeric>
#include <set>
#include <tuple>

#include "msdbg/hash.h"
#include "msdbg/threads.h"
#include "session/dump/directory.h"
#include "session/dump/rank_opener.h"

namespace msdbg::dump {
namespace {

uint64_t distance(uint64_t a, uint64_t b) { return a > b ? a - b : b - a; }

}  // namespace

/// Adds nodes for names that no graph contains, in the order in which they were first written.
void RankOpener::add_unmatched_names(int graph) {
  UnmatchedNames& unmatched = unmatched_[graph];
  struct Group {
    uint64_t time = 0;  // the earliest
    uint32_t item = 0;  // one of them, for its name
    NodeId node = kNoNode;
    uint32_t next = 0;  // the group that followed the last time
  };
  const auto key = [&](uint32_t item) { return std::tie(name_of(items_[item]).op_type, name_of(items_[item]).op); };
  std::vector<Group> groups;
  std::vector<uint32_t> group_of(unmatched.items.size());
  // By hash, with linear probing; a place holds the number of a group and one, or 0.
  std::vector<uint32_t> places(std::bit_ceil(unmatched.items.size() + unmatched.items.size() / 2 + 1), 0);
  const auto find_or_add = [&](uint32_t item, const FileName& name) {
    size_t place = hash_of(name.op, hash_of(name.op_type)) & (places.size() - 1);
    while (places[place] != 0 && key(groups[places[place] - 1].item) != key(item)) place = (place + 1) & (places.size() - 1);
    if (places[place] == 0) {
      groups.push_back({name.timestamp, item, kNoNode, 0});
      places[place] = static_cast<uint32_t>(groups.size());
    }
    return places[place] - 1;
  };
  uint32_t before = 0;
  for (size_t i = 0; i < unmatched.items.size(); ++i) {
    const uint32_t item = unmatched.items[i];
    const FileName& name = name_of(items_[item]);
    // The names of one step follow one another as those of the last one did.
    const uint32_t expected = i == 0 ? 0 : groups[before].next;
    const uint32_t at = i > 0 && key(groups[expected].item) == key(item) ? expected : find_or_add(item, name);
    groups[before].next = group_of[i] = at;
    before = at;
    groups[at].time = std::min(groups[at].time, name.timestamp);
  }
  unmatched.names = groups.size();
  std::vector<uint32_t> order(groups.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    return groups[a].time != groups[b].time ? groups[a].time < groups[b].time : key(groups[a].item) < key(groups[b].item);
  });
  GraphBuilder& builder = builder_of(graph);
  builder.reserve(groups.size());
  for (const uint32_t at : order) {
    const FileName& name = name_of(items_[groups[at].item]);
    groups[at].node = builder.add(node_named(name.op_type, name.op));
  }
  for (size_t i = 0; i < unmatched.items.size(); ++i) {
    items_[unmatched.items[i]].node = {graph, groups[group_of[i]].node, Note::kNone};
  }
}

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
    if (from_file_.count(graph) == 0 || strangers.items.empty()) continue;
    const FileName& first = name_of(items_[strangers.items.front()]);
    add_problem(out_.problems, Severity::kInfo, rank_.path,
                fmt::format("{} files of graph {} match no node of its graph file and got {} nodes of their own, the "
                            "first is {}.{}",
                            strangers.items.size(), graph, strangers.names, printable(first.op_type), printable(first.op)));
  }
}

Status RankOpener::fill_indexes() {
  for (auto& [id, builder] : builders_) {
    GraphPtr graph = builder.build();
    out_.data[{rank_.rank, id}].graph = graph;
    out_.graphs.push_back(std::move(graph));
  }
  // The items of a directory follow one another. Directories of one step, or with constants, fill the same indexes, others do not.
  std::map<std::optional<int64_t>, std::vector<std::span<const Item>>> by_step;
  for (size_t first = 0, last = 0; first < items_.size(); first = last) {
    while (last < items_.size() && items_[last].directory == items_[first].directory) ++last;
    const DataDirectory& data = rank_.data[items_[first].directory];
    by_step[data.constants ? std::nullopt : std::optional(data.step)].push_back(std::span(items_).subspan(first, last - first));
  }
  std::vector<std::pair<std::optional<int64_t>, std::span<const std::span<const Item>>>> tasks;
  for (const auto& [step, directories] : by_step) {
    tasks.emplace_back(step, directories);
    for (auto& [id, builder] : builders_) {
      if (step) out_.data[{rank_.rank, id}].steps[*step];
    }
  }
  Status status = parallel_for(tasks.size(), 0, [&](uint64_t at, unsigned) {
    for (const std::span<const Item> items : tasks[at].second) add_items(items);
    for (auto& [id, builder] : builders_) {
      GraphData& data = out_.data.at({rank_.rank, id});
      (tasks[at].first ? data.steps.at(*tasks[at].first) : data.constants).finish(*data.graph);
    }
    return Status();
  });
  for (auto& [id, builder] : builders_) {
    std::erase_if(out_.data[{rank_.rank, id}].steps, [](const auto& step) { return step.second.empty(); });
  }
  for (size_t d = 0; d < listed_.size(); ++d) out_.directories[directory_index_[d]].rows = std::move(listed_[d].rows);
  return status;
}

/// The items of one directory.
void RankOpener::add_items(std::span<const Item> items) {
  const DataDirectory& data = rank_.data[items.front().directory];
  const auto index_of = [&](const Item& item) -> StepIndex& {
    GraphData& target = out_.data.at({rank_.rank, item.node.graph});
    return data.constants ? target.constants : target.steps.at(data.step);
  };
  if (listed_[items.front().directory].rows.empty()) {
    index_of(items.front()).reserve(items.size());
    for (const Item& item : items) index_of(item).add(value_of(item));
    return;
  }
  // Matches files and rows of one slot: one to one if their numbers agree, else by nearest time.
  struct Group {
    std::vector<const Item*> files, rows;
  };
  std::map<std::tuple<int, NodeId, Io, uint32_t>, Group> groups;
  for (const Item& item : items) {
    Group& group = groups[{item.node.graph, item.node.node, name_of(item).io, name_of(item).slot}];
    (item.is_file ? group.files : group.rows).push_back(&item);
  }
  const auto time_of = [this](const Item* item) { return name_of(*item).timestamp; };
  const auto earlier = [&](const Item* a, const Item* b) { return time_of(a) < time_of(b); };
  for (auto& [key, group] : groups) {
    std::stable_sort(group.files.begin(), group.files.end(), earlier);
    std::stable_sort(group.rows.begin(), group.rows.end(), earlier);
    for (size_t k = 0; k < group.files.size(); ++k) {
      Value value = value_of(*group.files[k]);
      if (group.files.size() == group.rows.size()) {
        value.row = static_cast<int32_t>(group.rows[k]->at);
      } else if (!group.rows.empty()) {
        const uint64_t time = time_of(group.files[k]);
        const Item* const nearest = *std::min_element(group.rows.begin(), group.rows.end(), [&](const Item* a, const Item* b) {
          return distance(time_of(a), time) < distance(time_of(b), time);
        });
        value.row = static_cast<int32_t>(nearest->at);
      }
      index_of(*group.files[k]).add(std::move(value));
    }
    if (!group.files.empty()) continue;
    for (const Item* row : group.rows) index_of(*row).add(value_of(*row));
  }
}

Value RankOpener::value_of(const Item& item) const {
  const FileName& name = name_of(item);
  const auto narrow = [](int64_t number) { return static_cast<uint32_t>(std::min<int64_t>(number, UINT32_MAX)); };
  Value value;
  value.node = item.node.node;
  value.slot = {name.io, name.slot};
  value.kind = item.is_file ? name.kind : FileKind::kStatistics;
  value.note = item.node.note;
  value.dtype = dtype_from_name(name.dtype);
  value.format = item.format;
  value.directory = directory_index_[item.directory];
  value.timestamp = name.timestamp;
  value.task = narrow(name.task);
  value.stream = narrow(name.stream);
  if (item.is_file) value.set_file(listed_[item.directory].files[item.at].path);
  else value.row = static_cast<int32_t>(item.at);
  value.shape = name.shape;
  value.has_shape = name.kind == FileKind::kRaw && !name.scalar;
  return value;
}

uint16_t RankOpener::format_index(std::string_view format) {
  const auto found = std::find(out_.formats.begin(), out_.formats.end(), format);
  if (found != out_.formats.end()) return static_cast<uint16_t>(found - out_.formats.begin());
  if (out_.formats.size() >= UINT16_MAX) return 0;
  out_.formats.emplace_back(format);
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
