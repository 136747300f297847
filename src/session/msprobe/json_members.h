// Reads a JSON file member by member, so that what precedes the end of a cut file is served. The only user of RapidJSON.
//
// Accepts what Python's json module writes: NaN, Infinity and -Infinity as bare words, numbers beyond the range of a double.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "msdbg/base.h"

namespace msdbg::msprobe {

enum class JsonKind : uint8_t { kNull, kBool, kNumber, kText, kList, kObject };

/// The value of one member with everything in it.
class JsonTree {
 public:
  struct Item {
    JsonKind kind = JsonKind::kNull;
    bool truth = false;
    bool whole = false;       ///< a number that is exactly `integer`
    uint32_t end = 0;         ///< index behind the last item in this one
    uint32_t key_size = 0, text_size = 0;
    size_t key = 0, text = 0; ///< places in `texts`
    int64_t integer = 0;
    double number = 0;
  };
  std::vector<Item> items;  ///< children behind their parent
  std::string texts;
};

/// A place in a tree, valid as long as the tree.
class JsonValue {
 public:
  JsonValue(const JsonTree& tree, uint32_t at) : tree_(&tree), at_(at) {}

  JsonKind kind() const { return item().kind; }
  bool is(JsonKind kind) const { return item().kind == kind; }
  std::string_view key() const { return std::string_view(tree_->texts).substr(item().key, item().key_size); }
  std::string_view text() const { return std::string_view(tree_->texts).substr(item().text, item().text_size); }
  double number() const { return item().number; }
  bool truth() const { return item().truth; }
  /// nullopt: not a number, or none that fits.
  std::optional<int64_t> integer() const { return item().whole ? std::optional(item().integer) : std::nullopt; }
  /// A member of an object.
  std::optional<JsonValue> find(std::string_view key) const;
  /// As text: `3`, `0.1`, `-Infinity`, `true`, `None`; "" for lists and objects.
  std::string printed() const;

  /// What is directly in a list or an object.
  class Children {
   public:
    class Iterator {
     public:
      Iterator(const JsonTree& tree, uint32_t at) : tree_(&tree), at_(at) {}
      JsonValue operator*() const { return {*tree_, at_}; }
      Iterator& operator++() {
        at_ = tree_->items[at_].end;
        return *this;
      }
      bool operator!=(const Iterator& other) const { return at_ != other.at_; }

     private:
      const JsonTree* tree_;
      uint32_t at_;
    };
    Children(const JsonTree& tree, uint32_t first, uint32_t end) : tree_(&tree), first_(first), end_(end) {}
    Iterator begin() const { return {*tree_, first_}; }
    Iterator end() const { return {*tree_, end_}; }

   private:
    const JsonTree* tree_;
    uint32_t first_, end_;
  };
  Children children() const { return {*tree_, at_ + 1, item().end}; }

 private:
  const JsonTree::Item& item() const { return tree_->items[at_]; }

  const JsonTree* tree_;
  uint32_t at_;
};

/// A member of the root, or of the object that is the root's member `inside`. Returns "" or why reading must end.
using TakeMember = std::function<std::string(std::string_view inside, JsonValue value)>;

/// Calls `take` for each member of the root object. The members of the object `opened` in it are taken one by one.
/// Error: kCorrupt with the place: the text is no JSON object, is cut off, or nested too deeply; `take` got what precedes it.
Status read_members(std::string text, std::string_view opened, const TakeMember& take);

}  // namespace msdbg::msprobe
