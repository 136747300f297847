// Globs on names with scopes. Private to the graph module.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace msdbg {

/// `*` any characters except '/', `**` any characters, `?` one character except '/', `**/` zero or more scopes. A pattern matches
/// the whole text. The worst-case time is pattern * text for any number of stars.
class Glob {
 public:
  Glob() = default;
  explicit Glob(std::string_view pattern, bool ignore_case = false);
  /// True if `text` contains a glob character.
  static bool has_wildcard(std::string_view text) { return text.find_first_of("*?") != std::string_view::npos; }
  bool matches(std::string_view text) const;

 private:
  enum class Kind : uint8_t { kLiteral, kOne, kStar, kDeep, kScopes };
  struct Token {
    Kind kind;
    char literal;
  };
  void enter(std::vector<char>& states, size_t state) const;
  char fold(char c) const { return ignore_case_ && c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

  std::vector<Token> tokens_;
  std::string prefix_, suffix_;  // literal start and end; compared first because they exclude most names
  bool ends_decide_ = false;     // nothing but `**` is between them
  std::string part_;             // of `**part**`
  bool ignore_case_ = false;
};

}  // namespace msdbg
