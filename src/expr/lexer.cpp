#include "expr/lexer.h"

#include <fmt/format.h>

#include <cmath>

namespace msdbg::expr {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

constexpr std::string_view kSigns[] = {"<=", ">=", "==", "!=", "~=", "+", "-", "*", "/", "^", "<", ">", "(", ")", ","};

/// Operators of other languages, and their spelling here.
struct Foreign {
  std::string_view sign, instead;
};
constexpr Foreign kForeign[] = {{"**", "^"}, {"&&", "and"}, {"||", "or"}, {"&", "and"},
                                {"|", "or"}, {"=", "=="},   {"!", "not"}, {"<>", "!="}};

}  // namespace

std::optional<Problem> Lexer::next(Token* token) {
  while (at_ < text_.size() && is_blank(text_[at_])) ++at_;
  *token = Token();
  token->place = {at_, 0};
  if (at_ == text_.size()) return std::nullopt;
  const char c = text_[at_];
  if (is_digit(c) || (c == '.' && at_ + 1 < text_.size() && is_digit(text_[at_ + 1]))) return number(token);
  if (!is_letter(c)) return sign(token);
  size_t end = at_ + 1;
  while (end < text_.size() && (is_letter(text_[end]) || is_digit(text_[end]))) ++end;
  token->kind = TokenKind::kName;
  token->text = text_.substr(at_, end - at_);
  token->place.length = end - at_;
  at_ = end;
  return std::nullopt;
}

std::optional<Problem> Lexer::number(Token* token) {
  size_t end = at_;
  const auto digits = [&] {
    while (end < text_.size() && is_digit(text_[end])) ++end;
  };
  digits();
  if (end < text_.size() && text_[end] == '.') {
    ++end;
    digits();
  }
  if (end < text_.size() && (text_[end] == 'e' || text_[end] == 'E')) {
    size_t power = end + 1;
    if (power < text_.size() && (text_[power] == '+' || text_[power] == '-')) ++power;
    if (power < text_.size() && is_digit(text_[power])) {
      end = power;
      digits();
    }
  }
  const size_t number_end = end;
  while (end < text_.size() && (is_letter(text_[end]) || is_digit(text_[end]) || text_[end] == '.')) ++end;
  token->text = text_.substr(at_, end - at_);
  token->place.length = end - at_;
  const std::optional<double> value = number_end == end ? parse_double(token->text) : std::nullopt;
  if (!value) {
    return Problem{fmt::format("'{}' is not a number (numbers look like 3, 0.5 or 1e-3)", token->text), token->place};
  }
  if (std::isinf(*value)) return Problem{fmt::format("'{}' is larger than a double holds: write inf", token->text), token->place};
  token->kind = TokenKind::kNumber;
  token->value = *value;
  at_ = end;
  return std::nullopt;
}

std::optional<Problem> Lexer::sign(Token* token) {
  const std::string_view rest = text_.substr(at_);
  for (const Foreign& foreign : kForeign) {
    if (!rest.starts_with(foreign.sign) || rest.starts_with("==") || rest.starts_with("!=")) continue;
    return Problem{fmt::format("'{}' is not part of the language: write {}", foreign.sign, foreign.instead),
                   {at_, foreign.sign.size()}};
  }
  for (std::string_view candidate : kSigns) {
    if (!rest.starts_with(candidate)) continue;
    token->kind = TokenKind::kSign;
    token->text = candidate;
    token->place.length = candidate.size();
    at_ += candidate.size();
    return std::nullopt;
  }
  size_t length = 1;
  while (length < rest.size() && (static_cast<unsigned char>(rest[length]) & 0xc0) == 0x80) ++length;
  return Problem{fmt::format("unexpected character '{}'", printable(rest.substr(0, length))), {at_, length}};
}

}  // namespace msdbg::expr
