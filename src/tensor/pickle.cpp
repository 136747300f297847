// Definition: Python's Lib/pickletools.py, protocol 2.
#include "tensor/pickle.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

namespace msdbg {
namespace {

/// The opcodes by which a pickle would build anything but a tensor, for messages.
std::string opcode_name(unsigned char code) {
  static constexpr std::pair<unsigned char, std::string_view> kNames[] = {
      {'b', "BUILD"},       {'i', "INST"},        {'o', "OBJ"},           {0x81, "NEWOBJ"},   {0x82, "EXT1"},         {0x83, "EXT2"},
      {0x84, "EXT4"},       {'P', "PERSID"},      {'0', "POP"},           {'2', "DUP"},       {'1', "POP_MARK"},      {'F', "FLOAT"},
      {'I', "INT"},         {'L', "LONG"},        {0x8b, "LONG4"},        {'S', "STRING"},    {'T', "BINSTRING"},
      {'U', "SHORT_BINSTRING"},
      {'V', "UNICODE"},     {'B', "BINBYTES"},    {'C', "SHORT_BINBYTES"}, {'l', "LIST"},     {'d', "DICT"},          {'p', "PUT"},
      {'g', "GET"},         {0x8c, "SHORT_BINUNICODE"}, {0x92, "NEWOBJ_EX"}, {0x93, "STACK_GLOBAL"}, {0x94, "MEMOIZE"}, {0x95, "FRAME"},
  };
  for (const auto& [known, name] : kNames) {
    if (known == code) return std::string(name);
  }
  return fmt::format("0x{:02x}", code);
}

}  // namespace

/// Pickle's stack machine. The stack holds numbers of values; a mark is the stack's height at that time.
class PickleMachine {
 public:
  explicit PickleMachine(std::string_view bytes) : bytes_(bytes) {}

  Result<Pickle> run() {
    while (step()) {
    }
    if (!status_.ok()) return status_;
    return std::move(out_);
  }

 private:
  bool fail(Code code, std::string text) {
    status_ = Status(code, std::move(text));
    return false;
  }
  bool damaged(std::string_view what) { return fail(Code::kCorrupt, fmt::format("has a damaged description of its tensor: {}", what)); }

  bool take(size_t count, std::string_view& out) {
    if (count > bytes_.size()) return damaged("it is cut off");
    out = bytes_.substr(0, count);
    bytes_.remove_prefix(count);
    return true;
  }
  bool number(size_t width, uint64_t& out) {
    std::string_view text;
    if (!take(width, text)) return false;
    out = 0;
    for (size_t i = width; i-- > 0;) out = out << 8 | static_cast<unsigned char>(text[i]);
    return true;
  }
  bool line(std::string_view& out) {
    const size_t end = bytes_.find('\n');
    if (end == std::string_view::npos) return damaged("a name is cut off");
    return take(end, out) && (bytes_.remove_prefix(1), true);
  }

  bool push(PickleValue value) {
    stack_.push_back(static_cast<uint32_t>(out_.values_.size()));
    out_.values_.push_back(value);
    return true;
  }
  bool push_number(PickleKind kind, int64_t number) {
    PickleValue value;
    value.kind = kind;
    value.number = number;
    return push(value);
  }
  bool push_integer(size_t width, bool is_signed) {
    uint64_t bits = 0;
    if (!number(width, bits)) return false;
    if (is_signed) return push_number(PickleKind::kInteger, static_cast<int32_t>(static_cast<uint32_t>(bits)));
    return push_number(PickleKind::kInteger, static_cast<int64_t>(bits));
  }
  /// Little-endian two's complement of any length.
  bool push_long() {
    uint64_t size = 0;
    std::string_view text;
    if (!number(1, size) || !take(size, text)) return false;
    const bool negative = !text.empty() && (static_cast<unsigned char>(text.back()) & 0x80) != 0;
    const char filler = negative ? '\xff' : '\0';
    uint64_t bits = negative ? UINT64_MAX : 0;
    for (size_t i = text.size(); i-- > 0;) {
      if (i >= 8 && text[i] != filler) return damaged("it has a number that needs more than 64 bits");
      if (i < 8) bits = bits << 8 | static_cast<unsigned char>(text[i]);
    }
    const auto value = static_cast<int64_t>(bits);
    if (text.size() >= 8 && (value < 0) != negative) return damaged("it has a number that needs more than 64 bits");
    return push_number(PickleKind::kInteger, value);
  }
  bool push_text() {
    uint64_t size = 0;
    PickleValue value;
    value.kind = PickleKind::kText;
    return number(4, size) && take(size, value.text) && push(value);
  }
  bool push_global() {
    const char* const begin = bytes_.data();
    std::string_view module, name;
    if (!line(module) || !line(name)) return false;
    PickleValue value;
    value.kind = PickleKind::kGlobal;
    value.text = {begin, static_cast<size_t>(name.data() + name.size() - begin)};
    return push(value);
  }

  /// True if `count` values are above the last mark.
  bool has(size_t count) { return stack_.size() - floor() >= count || damaged("it takes more values than there are"); }
  size_t floor() const { return marks_.empty() ? 0 : marks_.back(); }
  /// Replaces the last `count` values by one that has them.
  bool combine(PickleKind kind, size_t count) {
    if (!has(count)) return false;
    PickleValue value;
    value.kind = kind;
    value.first = static_cast<uint32_t>(out_.items_.size());
    value.count = static_cast<uint32_t>(count);
    out_.items_.insert(out_.items_.end(), stack_.end() - static_cast<ptrdiff_t>(count), stack_.end());
    stack_.resize(stack_.size() - count);
    return push(value);
  }
  bool pop_mark(size_t& count) {
    if (marks_.empty()) return damaged("it ends a group that it did not begin");
    count = stack_.size() - marks_.back();
    marks_.pop_back();
    return true;
  }
  /// The last `count` values, keys and values in turn, go to the dict before them.
  bool set_items(size_t count) {
    if (!has(count + 1)) return false;
    if (count % 2 != 0) return damaged("a key has no value");
    const size_t first = stack_.size() - count;
    const uint32_t dict = stack_[first - 1];
    const bool takes_keys = out_.values_[dict].is(PickleKind::kDict) || out_.values_[dict].is(PickleKind::kCall);
    if (!takes_keys) return damaged("it adds keys to what is no dict");
    for (size_t i = first; i < stack_.size(); i += 2) out_.entries_.push_back({dict, stack_[i], stack_[i + 1]});
    stack_.resize(first);
    return true;
  }
  /// The elements of lists are never looked at.
  bool append(size_t count) {
    if (!has(count + 1)) return false;
    if (!out_.values_[stack_[stack_.size() - count - 1]].is(PickleKind::kList)) return damaged("it appends to what is no list");
    stack_.resize(stack_.size() - count);
    return true;
  }
  bool call() {
    if (!has(2)) return false;
    if (!out_.values_[stack_[stack_.size() - 2]].is(PickleKind::kGlobal)) return damaged("it calls what is no function");
    if (!out_.values_[stack_.back()].is(PickleKind::kTuple)) return damaged("a function has no arguments");
    return combine(PickleKind::kCall, 2);
  }

  bool store(size_t width) {
    uint64_t key = 0;
    if (!number(width, key) || !has(1)) return false;
    memo_[static_cast<uint32_t>(key)] = stack_.back();
    return true;
  }
  bool recall(size_t width) {
    uint64_t key = 0;
    if (!number(width, key)) return false;
    const auto found = memo_.find(static_cast<uint32_t>(key));
    if (found == memo_.end()) return damaged(fmt::format("it uses value {}, which it did not store", key));
    stack_.push_back(found->second);
    return true;
  }
  bool stop() {
    if (stack_.size() != 1 || !marks_.empty()) return damaged("it ends before its tensor is complete");
    out_.root_ = stack_.back();
    return false;
  }

  /// False at the end and after a failure.
  bool step() {
    uint64_t code = 0, version = 0;
    size_t count = 0;
    std::string_view skipped;
    if (!number(1, code)) return false;
    switch (code) {
      case 0x80:
        if (!number(1, version)) return false;
        return version <= 3 || fail(Code::kUnsupported, fmt::format("has a pickle of protocol {}; torch.save writes protocol 2", version));
      case 'c': return push_global();
      case 'q': return store(1);
      case 'r': return store(4);
      case 'h': return recall(1);
      case 'j': return recall(4);
      case '(': marks_.push_back(stack_.size()); return true;
      case 'X': return push_text();
      case 'K': return push_integer(1, false);
      case 'M': return push_integer(2, false);
      case 'J': return push_integer(4, true);
      case 0x8a: return push_long();
      case 'G': return take(8, skipped) && push_number(PickleKind::kReal, 0);
      case 'N': return push_number(PickleKind::kNone, 0);
      case 0x88: return push_number(PickleKind::kBool, 1);
      case 0x89: return push_number(PickleKind::kBool, 0);
      case ')': return combine(PickleKind::kTuple, 0);
      case 0x85: return combine(PickleKind::kTuple, 1);
      case 0x86: return combine(PickleKind::kTuple, 2);
      case 0x87: return combine(PickleKind::kTuple, 3);
      case 't': return pop_mark(count) && combine(PickleKind::kTuple, count);
      case ']': return push_number(PickleKind::kList, 0);
      case 'a': return append(1);
      case 'e': return pop_mark(count) && append(count);
      case '}': return push_number(PickleKind::kDict, 0);
      case 's': return set_items(2);
      case 'u': return pop_mark(count) && set_items(count);
      case 'Q': return combine(PickleKind::kStored, 1);
      case 'R': return call();
      case '.': return stop();
      default:
        return fail(Code::kUnsupported,
                    fmt::format("does not hold a plain tensor: its pickle has the opcode {}",
                                opcode_name(static_cast<unsigned char>(code))));
    }
  }

  std::string_view bytes_;
  std::vector<uint32_t> stack_;
  std::vector<size_t> marks_;
  std::unordered_map<uint32_t, uint32_t> memo_;
  Pickle out_;
  Status status_;
};

std::string PickleValue::global_name() const {
  std::string name(text.substr(0, 200));
  if (const size_t at = name.find('\n'); at != std::string::npos) name[at] = '.';
  return printable(name);
}

Result<Pickle> Pickle::parse(std::string_view bytes) { return PickleMachine(bytes).run(); }

const PickleValue* Pickle::entry(const PickleValue& dict, std::string_view key) const {
  const auto number = static_cast<uint32_t>(&dict - values_.data());
  for (const Entry& entry : entries_) {
    if (entry.dict == number && values_[entry.key].is(PickleKind::kText) && values_[entry.key].text == key) return &values_[entry.value];
  }
  return nullptr;
}

}  // namespace msdbg
