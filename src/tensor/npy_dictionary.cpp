#include "tensor/npy_dictionary.h"

#include <fmt/format.h>

#include <algorithm>

namespace msdbg {
namespace {

constexpr size_t kMaxAxes = 64;  // NumPy's own limit

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\0'; }

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Result<NpyDictionary> run() {
    if (!take('{')) return expected("'{'");
    while (!take('}')) {
      if (Status status = item(); !status.ok()) return status;
      if (!take(',') && peek() != '}') return expected("',' or '}'");
    }
    if (!has_descr_) return missing("descr");
    if (!has_order_) return missing("fortran_order");
    if (!has_shape_) return missing("shape");
    return std::move(result_);
  }

 private:
  Status item() {
    std::string key;
    if (!string(&key)) return expected("a key in quotes");
    if (!take(':')) return expected("':'");
    if (key == "descr") {
      has_descr_ = true;
      if (string(&result_.descr)) return Status();
      const size_t begin = at_;
      if (Status status = skip_value(); !status.ok()) return status;
      result_.descr = trim(text_.substr(begin, at_ - begin));
      return Status();
    }
    if (key == "fortran_order") {
      has_order_ = true;
      if (word("True") || word("1")) {
        result_.fortran_order = true;
      } else if (!word("False") && !word("0")) {
        return expected("True or False");
      }
      return Status();
    }
    if (key == "shape") {
      has_shape_ = true;
      return shape();
    }
    return skip_value();
  }

  Status shape() {
    const char close = peek() == '[' ? ']' : ')';
    if (!take('(') && !take('[')) return expected("a shape like (2, 3)");
    result_.shape.clear();
    while (!take(close)) {
      skip_blanks();
      size_t end = at_;
      if (end < text_.size() && text_[end] == '-') ++end;
      while (end < text_.size() && text_[end] >= '0' && text_[end] <= '9') ++end;
      const std::optional<int64_t> length = parse_int(text_.substr(at_, end - at_));
      if (!length) return expected("the length of an axis");
      if (*length < 0) return Status(Code::kCorrupt, fmt::format("npy: the shape has an axis of length {}", *length));
      if (result_.shape.size() == kMaxAxes)
        return Status(Code::kCorrupt, fmt::format("npy: the shape has more than {} axes", kMaxAxes));
      result_.shape.push_back(*length);
      at_ = end;
      if (at_ < text_.size() && text_[at_] == 'L') ++at_;  // a long of Python 2
      if (!take(',') && peek() != close) return expected("',' or the end of the shape");
    }
    return Status();
  }

  // Any value: a string, a bracket with its contents, or a word. Brackets need only a depth counter, no recursion.
  Status skip_value() {
    size_t depth = 0;
    const size_t begin = at_;
    std::string ignored;
    for (skip_blanks(); at_ < text_.size();) {
      const char c = text_[at_];
      if (c == '\'' || c == '"') {
        if (!string(&ignored)) return expected("the end of a string");
        continue;
      }
      if (depth == 0 && (c == ',' || c == '}')) break;
      if (c == '(' || c == '[' || c == '{') ++depth;
      if (c == ')' || c == ']' || c == '}') {
        if (depth == 0) return expected("a value");
        --depth;
      }
      ++at_;
    }
    if (depth != 0 || trim(text_.substr(begin, at_ - begin)).empty()) return expected("a value");
    return Status();
  }

  bool string(std::string* out) {
    skip_blanks();
    size_t at = at_;
    if (at + 1 < text_.size() && (text_[at] == 'u' || text_[at] == 'b')) ++at;
    if (at >= text_.size() || (text_[at] != '\'' && text_[at] != '"')) return false;
    const size_t end = text_.find(text_[at], at + 1);
    if (end == std::string_view::npos) return false;
    *out = text_.substr(at + 1, end - at - 1);
    at_ = end + 1;
    return true;
  }

  void skip_blanks() {
    while (at_ < text_.size() && is_blank(text_[at_])) ++at_;
  }
  char peek() {
    skip_blanks();
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool take(char c) {
    if (peek() != c || at_ >= text_.size()) return false;
    ++at_;
    return true;
  }
  bool word(std::string_view expected_word) {
    skip_blanks();
    if (!text_.substr(at_).starts_with(expected_word)) return false;
    at_ += expected_word.size();
    return true;
  }

  Status expected(std::string_view what) const {
    return Status(Code::kCorrupt, fmt::format("npy: {} expected at byte {} of the header, found '{}'", what, at_,
                                              printable(text_.substr(std::min(at_, text_.size()), 16))));
  }
  static Status missing(std::string_view key) {
    return Status(Code::kCorrupt, fmt::format("npy: the header has no '{}'; the file is damaged", key));
  }

  std::string_view text_;
  size_t at_ = 0;
  NpyDictionary result_;
  bool has_descr_ = false, has_order_ = false, has_shape_ = false;
};

}  // namespace

Result<NpyDictionary> parse_npy_dictionary(std::string_view text) { return Parser(text).run(); }

}  // namespace msdbg
