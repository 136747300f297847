#include "graph/glob.h"

#include <algorithm>

namespace msdbg {

Glob::Glob(std::string_view pattern, bool ignore_case) : ignore_case_(ignore_case) {
  for (size_t at = 0; at < pattern.size(); ++at) {
    const char c = pattern[at];
    if (c == '?') {
      tokens_.push_back({Kind::kOne, 0});
    } else if (c != '*') {
      if (prefix_.size() == tokens_.size()) prefix_ += fold(c);
      tokens_.push_back({Kind::kLiteral, fold(c)});
    } else {
      const size_t begin = at;
      while (at + 1 < pattern.size() && pattern[at + 1] == '*') ++at;
      if (at == begin) {
        tokens_.push_back({Kind::kStar, 0});
      } else if (at + 1 < pattern.size() && pattern[at + 1] == '/' && (begin == 0 || pattern[begin - 1] == '/')) {
        tokens_.push_back({Kind::kScopes, 0});
        ++at;
      } else {
        tokens_.push_back({Kind::kDeep, 0});
      }
    }
  }
  if (prefix_.size() == tokens_.size()) return;
  const auto is_literal = [](const Token& token) { return token.kind == Kind::kLiteral; };
  const auto others = std::ranges::count_if(tokens_, [&](const Token& token) { return !is_literal(token); });
  const bool all_deep = std::ranges::all_of(tokens_, [&](const Token& token) { return is_literal(token) || token.kind == Kind::kDeep; });
  ends_decide_ = all_deep && others == 1;
  if (all_deep && others == 2 && !is_literal(tokens_.front()) && !is_literal(tokens_.back())) {
    for (const Token& token : tokens_) part_.append(is_literal(token) ? 1 : 0, token.literal);
  }
  for (auto token = tokens_.rbegin(); token->kind == Kind::kLiteral; ++token) suffix_.insert(suffix_.begin(), token->literal);
}

// A state is the index of the token to match next; entering a state also enters its successor if its token may match nothing.
// Values: 1 for the state itself, 2 with its successors; a row of stars is then not walked again from each star.
void Glob::enter(std::vector<char>& states, size_t state) const {
  while (states[state] != 2) {
    states[state] = 2;
    if (state == tokens_.size() || tokens_[state].kind == Kind::kLiteral || tokens_[state].kind == Kind::kOne) return;
    ++state;
  }
}

bool Glob::matches(std::string_view text) const {
  if (text.size() < prefix_.size() + suffix_.size()) return false;
  const auto same = [this](char a, char b) { return a == fold(b); };
  if (!std::equal(prefix_.begin(), prefix_.end(), text.begin(), same) ||
      !std::equal(suffix_.rbegin(), suffix_.rend(), text.rbegin(), same)) {
    return false;
  }
  if (ends_decide_) return true;
  if (!part_.empty()) {
    const auto folded = [this](char a, char b) { return fold(a) == b; };
    return std::search(text.begin(), text.end(), part_.begin(), part_.end(), folded) != text.end();
  }
  std::vector<char> now(tokens_.size() + 1, 0), next(tokens_.size() + 1, 0);
  enter(now, prefix_.size());
  for (const char c : text.substr(prefix_.size())) {
    std::fill(next.begin(), next.end(), 0);
    bool alive = false;
    for (size_t state = prefix_.size(); state < tokens_.size(); ++state) {
      if (!now[state]) continue;
      const Token& token = tokens_[state];
      bool stay = false, advance = false;
      switch (token.kind) {
        case Kind::kLiteral:
          advance = token.literal == fold(c);
          break;
        case Kind::kOne:
          advance = c != '/';
          break;
        case Kind::kStar:
          stay = c != '/';
          break;
        case Kind::kDeep:
          stay = true;
          break;
        // It may end only at a '/'; entering it through enter() allows zero scopes.
        case Kind::kScopes:
          stay = true, advance = c == '/';
          break;
      }
      if (token.kind == Kind::kScopes && stay) {
        next[state] = std::max(next[state], char{1});
      } else if (stay) {
        enter(next, state);
      }
      if (advance) enter(next, state + 1);
      alive = alive || stay || advance;
    }
    if (!alive) return false;
    std::swap(now, next);
  }
  return now[tokens_.size()] != 0;
}

}  // namespace msdbg
