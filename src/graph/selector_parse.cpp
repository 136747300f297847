// Text to terms: `expr = conj { or conj }`, `conj = unary { and unary }`, `unary = not unary | ( expr ) | term`.
#include <fmt/format.h>

#include <array>

#include "graph/selector_term.h"

namespace msdbg {
namespace {

using Term = Selector::Term;
using TermPtr = std::shared_ptr<const Term>;

constexpr size_t kMaxText = 65536;
constexpr int kMaxDepth = 200;

struct Collection {
  std::string_view name;
  Category category;
};
constexpr std::array<Collection, 10> kCollections = {{
    {"all", Category::kAll},
    {"weight", Category::kWeight},
    {"gradient", Category::kGradient},
    {"activation", Category::kActivation},
    {"parameter", Category::kParameter},
    {"constant", Category::kConstant},
    {"optimizer", Category::kOptimizer},
    {"loss", Category::kLoss},
    {"from_weights", Category::kFromWeights},
    {"scaled", Category::kScaled},
}};

struct Prefix {
  std::string_view name;
  Term::Kind kind;
};
constexpr std::array<Prefix, 6> kPrefixes = {{
    {"op", Term::Kind::kOp},
    {"dtype", Term::Kind::kDtype},
    {"scope", Term::Kind::kScope},
    {"stack", Term::Kind::kStack},
    {"rank", Term::Kind::kRank},
    {"graph", Term::Kind::kGraph},
}};

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

// The position of `:0`, `:output:0` or `:input:1` at the end of a word, as in a tensor's name.
size_t slot_suffix(std::string_view word) {
  for (size_t colon = word.find(':'); colon != std::string_view::npos; colon = word.find(':', colon + 1)) {
    if (parse_slot(word.substr(colon + 1))) return colon;
  }
  return std::string::npos;
}

template <typename Known>
std::string did_you_mean(std::string_view word, const Known& known, std::string_view before, std::string_view after) {
  std::vector<std::string> names;
  for (const auto& entry : known) names.emplace_back(entry.name);
  const std::vector<std::string> close = nearest(word, names, 1);
  if (!close.empty()) return fmt::format("did you mean {}{}{}?", before, close[0], after);
  std::string all;
  for (const std::string& name : names) all += fmt::format("{}{}{}{}", all.empty() ? "" : ", ", before, name, after);
  return "known are " + all;
}

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Result<TermPtr> parse() {
    if (text_.size() > kMaxText)
      return error(0, fmt::format("selector of {} bytes is longer than {}", text_.size(), kMaxText));
    skip_blanks();
    if (at_ == text_.size()) return error(at_, "empty selector; use @all for every node");
    Result<TermPtr> root = parse_or(0);
    if (!root) return root;
    skip_blanks();
    if (at_ < text_.size()) {
      if (text_[at_] == ')') return error(at_, "')' without '('");
      return error(at_, "expected 'and' or 'or'; put a name that holds blanks in double quotes");
    }
    return root;
  }

 private:
  Status error(size_t at, std::string_view what) const {
    return {Code::kInvalidArgument,
            fmt::format("selector '{}': {} (at character {})", printable(text_.substr(0, 200)), what, at + 1)};
  }

  void skip_blanks() {
    while (at_ < text_.size() && is_blank(text_[at_])) ++at_;
  }

  // The keyword at `at`, or empty; `and(` is one, `and/x` is a name.
  std::string_view keyword_at(size_t at) const {
    for (const std::string_view word : {"and", "or", "not"}) {
      if (!text_.substr(at).starts_with(word)) continue;
      const size_t end = at + word.size();
      if (end == text_.size() || is_blank(text_[end]) || text_[end] == '(' || text_[end] == ')') return word;
    }
    return {};
  }

  bool eat_keyword(std::string_view word) {
    skip_blanks();
    if (keyword_at(at_) != word) return false;
    at_ += word.size();
    return true;
  }

  Result<TermPtr> parse_list(int depth, bool conjunction) {
    std::vector<TermPtr> parts;
    do {
      Result<TermPtr> part = conjunction ? parse_unary(depth) : parse_list(depth, true);
      if (!part) return part;
      parts.push_back(*part);
    } while (eat_keyword(conjunction ? "and" : "or"));
    if (parts.size() == 1) return parts[0];
    auto term = std::make_shared<Term>();
    term->kind = conjunction ? Term::Kind::kAnd : Term::Kind::kOr;
    term->parts = std::move(parts);
    return TermPtr(std::move(term));
  }

  Result<TermPtr> parse_or(int depth) { return parse_list(depth, false); }

  Result<TermPtr> parse_unary(int depth) {
    if (depth > kMaxDepth) return error(at_, "nested too deeply");
    skip_blanks();
    if (at_ == text_.size()) return error(at_, "a term is missing at the end");
    const size_t start = at_;
    if (eat_keyword("not")) {
      Result<TermPtr> part = parse_unary(depth + 1);
      if (!part) return part;
      auto term = std::make_shared<Term>();
      term->kind = Term::Kind::kNot;
      term->parts = {*part};
      return TermPtr(std::move(term));
    }
    if (const std::string_view word = keyword_at(at_); !word.empty()) {
      return error(start, fmt::format("a term is missing before '{0}'; a node of that name is \"{0}\"", word));
    }
    if (text_[at_] == ')') return error(at_, "a term is missing before ')'");
    if (text_[at_] == '(') {
      ++at_;
      Result<TermPtr> inside = parse_or(depth + 1);
      if (!inside) return inside;
      skip_blanks();
      if (at_ == text_.size() || text_[at_] != ')') return error(start, "this '(' is never closed");
      ++at_;
      return inside;
    }
    if (text_[at_] == '/') return parse_regex();
    return parse_term();
  }

  // Ends at the first '/' before a blank, an outer ')' or the end: `/Default/.*relu/` needs no escapes.
  Result<TermPtr> parse_regex() {
    const size_t start = at_;
    int open = 0;
    bool in_class = false;
    for (size_t end = at_ + 1; end < text_.size(); ++end) {
      const char c = text_[end];
      if (c == '\\') {
        ++end;
      } else if (in_class) {
        in_class = c != ']';
      } else if (c == '[') {
        in_class = true;
      } else if (c == '(') {
        ++open;
      } else if (c == ')') {
        --open;
      } else if (c == '/') {
        size_t after = end + 1;
        const bool ignore_case = after < text_.size() && text_[after] == 'i';
        if (ignore_case) ++after;
        if (after < text_.size() && !is_blank(text_[after]) && !(text_[after] == ')' && open == 0)) continue;
        at_ = after;
        return make_regex(start, text_.substr(start + 1, end - start - 1), ignore_case);
      }
    }
    return error(start, "this regular expression has no closing '/'");
  }

  Result<TermPtr> make_regex(size_t start, std::string_view pattern, bool ignore_case) const {
    auto term = std::make_shared<Term>();
    term->kind = Term::Kind::kRegex;
    term->text = pattern;
    Result<std::shared_ptr<const NameRegex>> regex = NameRegex::compile(term->text, ignore_case);
    if (!regex) return error(start, regex.status().message());
    term->regex = std::move(*regex);
    return TermPtr(std::move(term));
  }

  // Reads one word; double quotes protect blanks and parentheses. A `(` inside a word belongs to it, together with its `)`.
  // `blanks` lets `=NAME` continue across blanks up to a keyword.
  Result<std::string> read_word(bool blanks) {
    std::string word;
    int open = 0;
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '"') {
        const size_t start = at_++;
        while (at_ < text_.size() && text_[at_] != '"') {
          if (text_[at_] == '\\' && at_ + 1 < text_.size() && (text_[at_ + 1] == '"' || text_[at_ + 1] == '\\')) ++at_;
          word += text_[at_++];
        }
        if (at_ == text_.size()) return error(start, "this quote is never closed");
        ++at_;
        continue;
      }
      if (is_blank(c)) {
        size_t next = at_;
        while (next < text_.size() && is_blank(text_[next])) ++next;
        if (!blanks || next == text_.size() || text_[next] == ')' || !keyword_at(next).empty()) break;
        word += text_.substr(at_, next - at_);
        at_ = next;
        continue;
      }
      if (c == '(') ++open;
      if (c == ')' && --open < 0) break;
      word += c;
      ++at_;
    }
    return word;
  }

  Result<TermPtr> parse_term() {
    const size_t start = at_;
    auto term = std::make_shared<Term>();
    if (text_[at_] == '=') {
      ++at_;
      Result<std::string> name = read_word(true);
      if (!name) return name.status();
      if (name->empty()) return error(start, "'=' needs the full name of a node");
      term->kind = Term::Kind::kExact;
      term->text = std::move(*name);
      return TermPtr(std::move(term));
    }
    if (text_[at_] == '@') return parse_collection();
    size_t colon = at_;
    while (colon < text_.size() && is_letter(text_[colon])) ++colon;
    if (colon > at_ && colon < text_.size() && text_[colon] == ':') return parse_prefixed(colon);

    Result<std::string> word = read_word(false);
    if (!word) return word.status();
    if (word->empty()) return error(start, "an empty name matches nothing; use @all for every node");
    if (Status status = drop_slot(*word, start); !status.ok()) return status;
    term->text = without_mark(*word);
    term->has_glob = Glob::has_wildcard(term->text);
    term->kind = term->has_glob ? Term::Kind::kGlob : Term::Kind::kSubstring;
    if (term->has_glob) term->glob = Glob(term->text);
    return TermPtr(std::move(term));
  }

  // An output's name, as printed in tables, selects its node, because outputs are checked. An input is another tensor.
  Status drop_slot(std::string& word, size_t start) const {
    const size_t at = slot_suffix(word);
    if (at == std::string::npos) return {};
    if (parse_slot(std::string_view(word).substr(at + 1))->io == Io::kInput || at == 0) {
      return error(start, fmt::format("a selector names nodes, not inputs: write '{}'", printable(word.substr(0, at))));
    }
    word.resize(at);
    return {};
  }

  Result<TermPtr> parse_collection() {
    const size_t start = at_++;
    Result<std::string> name = read_word(false);
    if (!name) return name.status();
    for (const Collection& known : kCollections) {
      if (known.name != *name) continue;
      auto term = std::make_shared<Term>();
      term->kind = Term::Kind::kCategory;
      term->text = std::move(*name);
      term->category = known.category;
      return TermPtr(std::move(term));
    }
    return error(start, fmt::format("unknown collection '@{}'; {}", printable(*name),
                                    did_you_mean(*name, kCollections, "@", "")));
  }

  Result<TermPtr> parse_prefixed(size_t colon) {
    const size_t start = at_;
    const std::string_view prefix = text_.substr(start, colon - start);
    at_ = colon + 1;
    Result<std::string> value = read_word(false);
    if (!value) return value.status();
    auto term = std::make_shared<Term>();
    const Prefix* known = nullptr;
    for (const Prefix& entry : kPrefixes) known = entry.name == prefix ? &entry : known;
    if (known == nullptr) {
      if (parse_slot(*value)) {
        term->text = fmt::format("{}:{}", prefix, *value);
        if (Status status = drop_slot(term->text, start); !status.ok()) return status;
        return TermPtr(std::move(term));
      }
      return error(start, fmt::format("unknown prefix '{}:'; {}; a name that holds ':' is written =NAME", prefix,
                                      did_you_mean(prefix, kPrefixes, "", ":")));
    }
    if (value->empty()) return error(start, fmt::format("'{}:' needs a value after it", prefix));
    term->kind = known->kind;
    if (term->kind == Term::Kind::kRank) {
      Result<IntSet> ranks = IntSet::parse(*value);
      if (!ranks) return error(colon + 1, ranks.status().message());
      term->ranks = std::move(*ranks);
    }
    if (term->kind == Term::Kind::kStack) {
      const size_t last = value->rfind(':');
      const auto line = last == std::string::npos ? std::nullopt : parse_int(std::string_view(*value).substr(last + 1));
      if (line && (*line < 1 || *line > INT32_MAX))
        return error(colon + 1, fmt::format("no line {}; lines count from 1", *line));
      if (line) {
        term->line = static_cast<int>(*line);
        value->resize(last);
      }
      if (value->empty()) return error(colon + 1, "stack: needs a file, e.g. stack:train.py:42");
    }
    if (term->kind == Term::Kind::kDtype && !Glob::has_wildcard(*value)) {
      const DType dtype = dtype_from_name(*value);
      if (dtype == DType::kUnknown) {
        return error(colon + 1,
                     fmt::format("no element type '{}'; there are float16, bfloat16, float32, int64 and others", printable(*value)));
      }
      *value = dtype_name(dtype);
    }
    if (term->kind == Term::Kind::kScope) {
      while (value->size() > 1 && value->back() == '/') value->pop_back();
    }
    term->text = std::move(*value);
    term->has_glob = Glob::has_wildcard(term->text);
    if (term->has_glob) term->glob = Glob(term->text, term->kind != Term::Kind::kStack);
    return TermPtr(std::move(term));
  }

  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace

Result<std::shared_ptr<const Selector::Term>> parse_selector(std::string_view text) { return Parser(text).parse(); }

}  // namespace msdbg
