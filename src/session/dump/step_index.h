// Locates the values of one graph and step: a file or a row of statistic.csv for each node, slot and execution. Filled while a dump
// is opened, then immutable; any thread.
#pragma once

#include <cstdint>
#include <ranges>
#include <span>
#include <string_view>
#include <vector>

#include "msdbg/session.h"
#include "session/dump/file_name.h"

namespace msdbg::dump {

enum class Note : uint8_t { kNone, kUncertainNumber, kSharedName, kOtherType };

/// One value. A dump may have a million: no larger than necessary.
class Value {
 public:
  NodeId node = kNoNode;
  Slot slot;
  uint32_t execution = 0;
  uint32_t directory = 0;             ///< index into the session's list
  int32_t row = -1;                   ///< index into the directory's rows; -1 without statistics
  uint32_t task = 0, stream = 0;      ///< UINT32_MAX: larger than that
  uint64_t timestamp = 0;
  SharedList<int64_t> shape;          ///< kRaw: from the name
  FileKind kind = FileKind::kNpy;     ///< kStatistics: only a row
  Note note = Note::kNone;
  DType dtype = DType::kUnknown;      ///< according to the name or the row
  bool has_shape = false;
  uint16_t format = 0;                ///< index into the session's list

  /// Below the directory; kept by the session, with a zero byte behind it.
  std::string_view file() const { return {file_, file_size_}; }
  void set_file(std::string_view path) {
    MSDBG_CHECK(path.size() <= UINT16_MAX);
    file_ = path.data();
    file_size_ = static_cast<uint16_t>(path.size());
  }

 private:
  uint16_t file_size_ = 0;
  const char* file_ = "";
};
static_assert(sizeof(Value) <= 64);

class StepIndex {
 public:
  void reserve(size_t more) { values_.reserve(values_.size() + more); }
  void add(Value value) { values_.push_back(std::move(value)); }
  /// Sorts, and counts executions; call once, after the last add().
  void finish(const Graph& graph);

  bool empty() const { return values_.empty(); }
  /// nullptr if the value does not exist.
  const Value* find(NodeId node, Slot slot, uint32_t execution) const;
  /// Executions of a node: the largest number of values in any of its slots.
  uint32_t executions(NodeId node) const;
  /// The values of a node, by slot and execution.
  std::span<const Value> values_of(NodeId node) const;
  std::span<const Value> values() const { return values_; }
  /// Everything in the order of execution: parameters and constants, then the operators of the first iteration of a loop, of the
  /// second, ...
  auto listed() const {
    return std::views::transform(order_, [this](uint32_t at) -> const Value& { return values_[at]; });
  }

 private:
  /// Where the values of the node are, or would be.
  size_t place_of(NodeId node) const;

  size_t nodes_ = 0;             // of the graph
  std::vector<Value> values_;    // by node, slot, execution
  std::vector<uint32_t> order_;  // into values_
};

}  // namespace msdbg::dump
