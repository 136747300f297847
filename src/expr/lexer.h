// Splits an expression into words, numbers and signs. Private to the module.
#pragma once

#include <optional>
#include <string_view>

#include "expr/syntax.h"

namespace msdbg::expr {

enum class TokenKind : uint8_t { kEnd, kNumber, kName, kSign };

struct Token {
  TokenKind kind = TokenKind::kEnd;
  std::string_view text;
  double value = 0;  ///< for numbers
  Place place;
};

class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) {}
  /// Fills `*token`, or reports the problem at this position.
  std::optional<Problem> next(Token* token);

 private:
  std::optional<Problem> number(Token* token);
  std::optional<Problem> sign(Token* token);

  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace msdbg::expr
