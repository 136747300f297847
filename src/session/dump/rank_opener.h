// Opens one rank: reads its graphs and execution orders, lists its directories, joins files with nodes.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "session/dump/dump_session.h"
#include "session/dump/join.h"
#include "session/dump/layout.h"

namespace msdbg::dump {

class RankOpener {
 public:
  RankOpener(const Layout& layout, const RankDirectory& rank, DirectoryLister& lister, DumpData& out);
  /// Error: kInterrupted.
  Status run();
  /// Epochs proven by the file names, in order of graph.
  const std::vector<std::string>& epochs() const { return epochs_; }

 private:
  /// A file or a row that has no node yet.
  struct Item {
    uint32_t directory;  // in listed_
    uint32_t at;         // in its files or rows
    bool is_file;
    uint16_t format;     // in out_.formats
    JoinedNode node;
  };
  /// Files whose name no graph contains. By type and name.
  struct UnmatchedNames {
    std::vector<uint32_t> items;
    size_t names = 0;
  };

  const FileName& name_of(const Item& item) const {
    return item.is_file ? listed_[item.directory].files[item.at].name : listed_[item.directory].rows[item.at].name;
  }
  Status read_graphs_and_directories();
  std::vector<std::pair<int, std::string>> graph_files();
  void read_graphs();
  void read_orders(std::span<const std::pair<int, std::string>> orders);
  void borrow_order(int id, GraphBuilder& builder);
  Status list_directories();
  void take_listed(const DataDirectory& data, StepFiles& step);
  void list_debug_files(TextArena& names);
  /// Error: kInterrupted.
  Status join_graph(int graph);
  void assign_shared_names(std::map<std::string, std::pair<std::vector<JoinedNode>, std::vector<size_t>>>& shared);
  void add_unmatched_names(int graph);
  static Node node_named(std::string_view type, std::string_view op);
  void add_slots();
  Status fill_indexes();
  void add_items(std::span<const Item> items);
  void read_history();
  void note_graphs();
  GraphBuilder& builder_of(int graph);
  Value value_of(const Item& item) const;
  uint16_t format_index(std::string_view format);

  const Layout& layout_;
  const RankDirectory& rank_;
  DirectoryLister& lister_;
  DumpData& out_;
  std::map<int, GraphBuilder> builders_;
  std::map<int, bool> from_file_;
  std::vector<Problem> graph_problems_;    // of read_graphs() and read_orders()
  std::vector<StepFiles> listed_;          // per rank_.data
  std::vector<uint32_t> directory_index_;  // into out_.directories
  std::vector<Item> items_;
  std::map<int, UnmatchedNames> unmatched_;
  std::vector<std::string> epochs_;
};

}  // namespace msdbg::dump
