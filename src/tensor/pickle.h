// The part of Python's pickle format that torch.save needs for a tensor. Reads what a pickle says and runs nothing: a call is a value
// that names its function and has its arguments.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "msdbg/base.h"

namespace msdbg {

enum class PickleKind : uint8_t { kNone, kBool, kInteger, kReal, kText, kGlobal, kTuple, kList, kDict, kStored, kCall };

struct PickleValue {
  PickleKind kind = PickleKind::kNone;
  int64_t number = 0;     ///< kBool, kInteger
  std::string_view text;  ///< kText; kGlobal: module, a newline, name
  uint32_t first = 0, count = 0;

  bool is(PickleKind wanted) const { return kind == wanted; }
  /// kGlobal: "torch._utils._rebuild_tensor_v2", safe to print.
  std::string global_name() const;
};

/// The values of one pickle. `text` of its values refers to the parsed bytes.
class Pickle {
 public:
  /// Error, to follow "the file": kUnsupported with the name of an opcode that tensors do not need; kCorrupt.
  static Result<Pickle> parse(std::string_view bytes);

  const PickleValue& root() const { return values_[root_]; }
  std::span<const PickleValue> values() const { return values_; }
  /// kTuple: item `at` below `count`. kCall: 0 the function, 1 the arguments. kStored: 0 the key under which bytes were stored.
  const PickleValue& item(const PickleValue& value, uint32_t at) const { return values_[items_[value.first + at]]; }
  /// The value of a dict's text key; null without it. Precondition: `dict` is one of values().
  const PickleValue* entry(const PickleValue& dict, std::string_view key) const;

 private:
  friend class PickleMachine;
  struct Entry {
    uint32_t dict = 0, key = 0, value = 0;
  };

  std::vector<PickleValue> values_;
  std::vector<uint32_t> items_;
  std::vector<Entry> entries_;  // of all dicts
  uint32_t root_ = 0;
};

}  // namespace msdbg
