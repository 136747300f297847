// Locates the values of one graph and step: a file or a row of statistic.csv for each node, slot and execution. Filled while a dump
// is opened, then immutable; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "msdbg/session.h"
#include "session/dump/file_name.h"

namespace msdbg::dump {

enum class Note : uint8_t { kNone, kUncertainNumber, kSharedName, kOtherType };

/// One value.
struct Value {
  FileKind kind = FileKind::kNpy;  ///< kStatistics: only a row
  Note note = Note::kNone;
  DType dtype = DType::kUnknown;  ///< according to the name or the row
  uint16_t format = 0;            ///< index into the session's list
  uint32_t directory = 0;         ///< index into the session's list
  int32_t row = -1;               ///< index into the directory's rows; -1 without statistics
  uint64_t timestamp = 0;
  int64_t task = 0, stream = 0;
  std::string file;            ///< below the directory
  std::optional<Shape> shape;  ///< kRaw: from the name; a scalar is empty
};

/// The values of one slot, by execution.
struct SlotValues {
  NodeId node = kNoNode;
  Slot slot;
  uint32_t first = 0, count = 0;
};

class StepIndex {
 public:
  void add(NodeId node, Slot slot, Value value);
  /// Sorts and groups; call once, after the last add().
  void finish(const Graph& graph);

  bool empty() const { return values_.empty(); }
  std::span<const SlotValues> slots() const { return slots_; }
  /// nullptr if the value does not exist.
  const Value* find(NodeId node, Slot slot, uint32_t execution) const;
  /// Number of values of a slot.
  uint32_t count(NodeId node, Slot slot) const;
  /// Executions of a node: the largest number of values in any of its slots.
  uint32_t executions(NodeId node) const;
  /// Slots of a node that have values.
  std::span<const SlotValues> slots_of(NodeId node) const;
  std::span<const Value> values() const { return values_; }

  struct Listed {
    NodeId node;
    Slot slot;
    uint32_t execution;
  };
  /// Everything in the order of execution: parameters and constants, then the operators of the first iteration of a loop, of the
  /// second, ...
  std::span<const Listed> listed() const { return listed_; }

 private:
  struct Pending {
    NodeId node;
    Slot slot;
    Value value;
  };
  std::vector<Pending> pending_;
  std::vector<Value> values_;
  std::vector<SlotValues> slots_;  // by node, slot
  std::vector<Listed> listed_;
};

}  // namespace msdbg::dump
