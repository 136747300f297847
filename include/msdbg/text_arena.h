// Texts that live as long as their owner, without an allocation for each.
#pragma once

#include <cstring>
#include <memory>
#include <string_view>
#include <vector>

namespace msdbg {

class TextArena {
 public:
  /// A copy that stays where it is, with a zero byte behind it. One thread.
  std::string_view add(std::string_view text) {
    if (text.size() + 1 > left_) grow(text.size() + 1);
    char* const at = next_;
    if (!text.empty()) std::memcpy(at, text.data(), text.size());
    at[text.size()] = 0;
    next_ += text.size() + 1;
    left_ -= text.size() + 1;
    return {at, text.size()};
  }

  /// Takes over the texts of another arena; they stay where they are.
  void adopt(TextArena&& other) {
    for (std::unique_ptr<char[]>& block : other.blocks_) blocks_.push_back(std::move(block));
    other = TextArena();
  }

 private:
  void grow(size_t least) {
    const size_t size = least > kBlock ? least : kBlock;
    blocks_.push_back(std::make_unique_for_overwrite<char[]>(size));
    next_ = blocks_.back().get();
    left_ = size;
  }

  static constexpr size_t kBlock = 64 << 10;
  std::vector<std::unique_ptr<char[]>> blocks_;
  char* next_ = nullptr;
  size_t left_ = 0;
};

}  // namespace msdbg
