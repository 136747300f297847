// Texts and lists that many owners hold once: a copy is a pointer. Any thread may copy and read them.
#pragma once

#include <atomic>
#include <compare>
#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace msdbg {

/// An immutable container; an empty one takes no memory.
template <typename Container>
class Shared {
 public:
  using value_type = typename Container::value_type;
  using const_iterator = typename Container::const_iterator;
  static constexpr bool kIsText = std::same_as<Container, std::string>;

  Shared() = default;
  Shared(Container items) : block_(items.empty() ? nullptr : new Block(std::move(items))) {}
  Shared(std::initializer_list<value_type> items) requires(!kIsText) : Shared(Container(items)) {}
  Shared(std::string_view text) requires kIsText : Shared(std::string(text)) {}
  Shared(const char* text) requires kIsText : Shared(std::string(text)) {}
  Shared(const Shared& other) : block_(other.block_) {
    if (block_) block_->owners.fetch_add(1, std::memory_order_relaxed);
  }
  Shared(Shared&& other) noexcept : block_(std::exchange(other.block_, nullptr)) {}
  Shared& operator=(Shared other) noexcept {
    std::swap(block_, other.block_);
    return *this;
  }
  ~Shared() {
    if (block_ && block_->owners.fetch_sub(1, std::memory_order_acq_rel) == 1) delete block_;
  }

  const Container& get() const {
    static const Container nothing;
    return block_ ? block_->items : nothing;
  }
  operator const Container&() const { return get(); }
  operator std::string_view() const requires kIsText { return get(); }
  const Container* operator->() const { return &get(); }

  bool empty() const { return block_ == nullptr; }
  /// Whether somebody else holds it, too.
  bool has_other_owners() const { return block_ && block_->owners.load(std::memory_order_relaxed) > 1; }
  size_t size() const { return get().size(); }
  const_iterator begin() const { return get().begin(); }
  const_iterator end() const { return get().end(); }
  const value_type& operator[](size_t at) const { return get()[at]; }
  const value_type& at(size_t place) const { return get().at(place); }
  const value_type& front() const { return get().front(); }
  const value_type& back() const { return get().back(); }

  bool operator==(const Shared& other) const requires(!kIsText) { return block_ == other.block_ || get() == other.get(); }
  template <std::convertible_to<std::string_view> T>
  friend bool operator==(const Shared& a, const T& b) requires kIsText {
    return std::string_view(a) == std::string_view(b);
  }
  template <std::convertible_to<std::string_view> T>
  friend auto operator<=>(const Shared& a, const T& b) requires kIsText {
    return std::string_view(a) <=> std::string_view(b);
  }
  friend std::string operator+(const Shared& a, std::string_view b) requires kIsText { return std::string(a.get()).append(b); }
  friend std::string operator+(std::string a, const Shared& b) requires kIsText { return std::move(a.append(b.get())); }

 private:
  struct Block {
    explicit Block(Container from) : items(std::move(from)) {}
    std::atomic<uint32_t> owners{1};
    const Container items;
  };
  Block* block_ = nullptr;
};

using SharedText = Shared<std::string>;
template <typename T>
using SharedList = Shared<std::vector<T>>;

}  // namespace msdbg
