#include "session/msprobe/json_members.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <memory>

// Its stack adds to a null pointer before its first allocation, which the sanitizer for undefined behaviour reports.
#ifdef __clang__
#pragma clang attribute push(__attribute__((no_sanitize("pointer-overflow"))), apply_to = function)
#endif
#include <rapidjson/error/en.h>
#include <rapidjson/reader.h>
#ifdef __clang__
#pragma clang attribute pop
#endif

namespace msdbg::msprobe {
namespace {

/// Real values are five deep; a peer of 20,000 must not cost a stack or the memory of one.
constexpr size_t kMaxDepth = 64;
/// Of one member. A fused optimizer call with ten thousand parameters has two million.
constexpr size_t kMaxItems = size_t{1} << 23;

class MemberHandler {
 public:
  /// `skip`: members that were taken before.
  MemberHandler(std::string_view opened, const TakeMember& take, uint64_t skip) : opened_(opened), take_(take), skip_(skip) {}

  // The functions that RapidJSON calls; false ends the reading.
  bool Null() { return leaf({}); }
  bool Bool(bool truth) {
    JsonTree::Item item;
    item.kind = JsonKind::kBool;
    item.truth = truth;
    item.number = truth ? 1 : 0;
    return leaf(item);
  }
  bool Int(int) { return fail("a number was decoded"); }
  bool Uint(unsigned) { return fail("a number was decoded"); }
  bool Int64(int64_t) { return fail("a number was decoded"); }
  bool Uint64(uint64_t) { return fail("a number was decoded"); }
  bool Double(double) { return fail("a number was decoded"); }
  bool RawNumber(const char* text, rapidjson::SizeType size, bool) {
    JsonTree::Item item;
    item.kind = JsonKind::kNumber;
    const char* const end = text + size;
    const std::from_chars_result whole = std::from_chars(text, end, item.integer);
    item.whole = whole.ec == std::errc() && whole.ptr == end;
    if (item.whole) {
      item.number = static_cast<double>(item.integer);
    } else if (std::from_chars(text, end, item.number).ec == std::errc::result_out_of_range) {
      // Too small for a double; what is too big has been replaced.
      item.number = 0;
    }
    return leaf(item);
  }
  bool String(const char* text, rapidjson::SizeType size, bool) {
    JsonTree::Item item;
    item.kind = JsonKind::kText;
    item.text = tree_.texts.size();
    item.text_size = size;
    tree_.texts.append(text, size);
    return leaf(item);
  }
  bool Key(const char* text, rapidjson::SizeType size, bool) {
    key_.assign(text, size);
    return true;
  }
  bool StartObject() {
    if (level_ == 0 || (level_ == 1 && open_.empty() && !opened_.empty() && key_ == opened_)) {
      ++level_;
      return true;
    }
    return start(JsonKind::kObject);
  }
  bool EndObject(rapidjson::SizeType) {
    if (!open_.empty()) return finish();
    --level_;
    return true;
  }
  bool StartArray() { return start(JsonKind::kList); }
  bool EndArray(rapidjson::SizeType) { return finish(); }

  const std::string& problem() const { return problem_; }
  const std::string& last() const { return last_; }
  uint64_t members() const { return members_; }

 private:
  bool fail(std::string problem) {
    problem_ = std::move(problem);
    return false;
  }

  bool add(JsonTree::Item item) {
    if (level_ == 0) return fail("it is not a JSON object");
    if (tree_.items.size() >= kMaxItems) return fail(fmt::format("'{}' holds more than {} values", printable(top()), kMaxItems));
    const bool named = open_.empty() || tree_.items[open_.back()].kind == JsonKind::kObject;
    if (named) {
      item.key = tree_.texts.size();
      item.key_size = static_cast<uint32_t>(key_.size());
      tree_.texts += key_;
    }
    item.end = static_cast<uint32_t>(tree_.items.size() + 1);
    tree_.items.push_back(item);
    return true;
  }

  bool leaf(const JsonTree::Item& item) { return add(item) && (!open_.empty() || deliver()); }

  bool start(JsonKind kind) {
    if (open_.size() >= kMaxDepth) return fail(fmt::format("'{}' is nested more than {} deep", printable(top()), kMaxDepth));
    JsonTree::Item item;
    item.kind = kind;
    if (!add(item)) return false;
    open_.push_back(static_cast<uint32_t>(tree_.items.size() - 1));
    return true;
  }

  bool finish() {
    tree_.items[open_.back()].end = static_cast<uint32_t>(tree_.items.size());
    open_.pop_back();
    return !open_.empty() || deliver();
  }

  std::string top() const { return tree_.items.empty() ? key_ : std::string(JsonValue(tree_, 0).key()); }

  bool deliver() {
    if ((++members_ & 0xff) == 0 && interrupt_requested()) return fail("interrupted");
    last_ = top();
    std::string problem;
    if (members_ > skip_) problem = take_(level_ == 2 ? opened_ : std::string_view(), JsonValue(tree_, 0));
    tree_.items.clear();
    tree_.texts.clear();
    return problem.empty() || fail(std::move(problem));
  }

  std::string_view opened_;
  const TakeMember& take_;
  JsonTree tree_;
  std::vector<uint32_t> open_;  // lists and objects of the member that have not ended
  std::string key_, last_, problem_;
  int level_ = 0;  // objects around the member
  uint64_t members_ = 0;
  const uint64_t skip_;
};

/// Replaces numbers that no double can hold by infinities of the same length or shorter, as Python reads them.
void replace_huge_numbers(std::string& text) {
  constexpr std::string_view kNumber = "+-.0123456789eE";
  for (size_t at = 0; at < text.size();) {
    if (text[at] == '"') {
      for (++at; at < text.size() && text[at] != '"'; ++at) {
        if (text[at] == '\\') ++at;
      }
      ++at;
    } else if (text[at] == '-' || (text[at] >= '0' && text[at] <= '9')) {
      const size_t end = std::min(text.find_first_not_of(kNumber, at), text.size());
      double value = 0;
      const std::from_chars_result parsed = std::from_chars(text.data() + at, text.data() + end, value);
      constexpr size_t kShortest = 5;  // 1e999
      if (parsed.ec == std::errc::result_out_of_range && end - at >= kShortest && text.find_first_of("eE", at) < end &&
          text.substr(at, end - at).find("-", 1) == std::string::npos) {
        std::string infinity = text[at] == '-' ? "-Inf" : "Inf";
        infinity.resize(end - at, ' ');
        text.replace(at, end - at, infinity);
      }
      at = end;
    } else {
      ++at;
    }
  }
}

/// The library's own conversion of numbers shifts too far for some of them.
constexpr unsigned kFlags = rapidjson::kParseNanAndInfFlag | rapidjson::kParseIterativeFlag | rapidjson::kParseNumbersAsStringsFlag;

rapidjson::ParseResult parse(const std::string& text, MemberHandler& handler) {
  rapidjson::Reader reader;
  rapidjson::StringStream stream(text.c_str());
  return reader.Parse<kFlags>(stream, handler);
}

/// The text ends at `offset`, or in an escape sequence that begins there.
bool ends_at(const std::string& text, size_t offset) {
  if (offset >= text.size()) return true;
  const size_t rest = text.size() - offset;
  return text[offset] == '\\' && rest < (rest > 1 && text[offset + 1] == 'u' ? 6 : 2);
}

std::string place_of(const std::string& text, bool cut, size_t offset, const std::string& last) {
  std::string where = cut ? fmt::format("cut off after {} bytes", text.size()) : fmt::format("not JSON at byte {}", offset);
  return last.empty() ? where : fmt::format("{}, behind '{}'", where, printable(last));
}

}  // namespace

std::optional<JsonValue> JsonValue::find(std::string_view key) const {
  if (!is(JsonKind::kObject)) return std::nullopt;
  for (const JsonValue child : children()) {
    if (child.key() == key) return child;
  }
  return std::nullopt;
}

std::string JsonValue::printed() const {
  switch (kind()) {
    case JsonKind::kNull:
      return "None";
    case JsonKind::kBool:
      return truth() ? "true" : "false";
    case JsonKind::kNumber:
      return item().whole ? std::to_string(item().integer) : format_double(item().number);
    case JsonKind::kText:
      return std::string(text());
    case JsonKind::kList:
    case JsonKind::kObject:
      break;
  }
  return "";
}

Status read_members(std::string text, std::string_view opened, const TakeMember& take) {
  if (text.empty()) return Status(Code::kCorrupt, "file is empty (0 bytes)");
  auto handler = std::make_unique<MemberHandler>(opened, take, 0);
  rapidjson::ParseResult result = parse(text, *handler);
  if (result.Code() == rapidjson::kParseErrorNumberTooBig) {
    // An infinity for Python, an error for RapidJSON.
    replace_huge_numbers(text);
    handler = std::make_unique<MemberHandler>(opened, take, handler->members());
    result = parse(text, *handler);
  }
  if (!result.IsError()) return {};
  if (!handler->problem().empty()) {
    const Code code = handler->problem() == "interrupted" ? Code::kInterrupted : Code::kCorrupt;
    return Status(code, handler->problem());
  }
  const bool cut = ends_at(text, result.Offset());
  const std::string place = place_of(text, cut, result.Offset(), handler->last());
  if (cut) return Status(Code::kCorrupt, place);
  return Status(Code::kCorrupt, fmt::format("{}: {}", place, to_lower(rapidjson::GetParseError_En(result.Code()))));
}

}  // namespace msdbg::msprobe
