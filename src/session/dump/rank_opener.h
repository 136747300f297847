// Opens one rank: reads its graphs and execution orders, lists its directories, joins files with nodes.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "session/dump/dump_session.h"
#include "session/dump/join.h"
#include "session/dump/layout.h"

namespace msdbg::dump {

class RankOpener {
 public:
  RankOpener(const Layout& layout, const RankDirectory& rank, DumpData& out);
  void run();
  /// Epochs proven by the file names, in order of graph.
  const std::vector<std::string>& epochs() const { return epochs_; }

 private:
  /// A file or a row that has no node yet.
  struct Item {
    const FileName* name;
    size_t directory;  // in listed_
    int file = -1, row = -1;
    JoinedNode node;
  };
  /// A name that no graph contains.
  struct UnmatchedName {
    std::vector<size_t> items;
    uint64_t first_timestamp = UINT64_MAX;
  };
  using UnmatchedKey = std::pair<std::string, std::string>;  // type, op

  void read_graphs();
  void read_orders();
  void borrow_order(int id, GraphBuilder& builder);
  void list_directories();
  void join_graph(int graph);
  void assign_shared_names(std::map<std::string, std::pair<std::vector<JoinedNode>, std::vector<size_t>>>& shared);
  void add_unmatched_names(int graph);
  void add_slot(GraphBuilder& builder, NodeId node, const FileName& name);
  void fill_indexes();
  void fill_directory(size_t directory, std::vector<Item*>& items);
  void read_history();
  void note_graphs();
  GraphBuilder& builder_of(int graph);
  Value value_of(const Item& item);
  uint16_t format_index(const std::string& format);

  const Layout& layout_;
  const RankDirectory& rank_;
  DumpData& out_;
  std::map<int, GraphBuilder> builders_;
  std::map<int, bool> from_file_;
  std::vector<StepFiles> listed_;          // per rank_.data
  std::vector<uint32_t> directory_index_;  // into out_.directories
  std::vector<Item> items_;
  std::map<int, std::map<UnmatchedKey, UnmatchedName>> unmatched_;
  std::vector<std::string> epochs_;
};

}  // namespace msdbg::dump
