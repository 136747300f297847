#include "msdbg/masks.h"

#include <algorithm>
#include <array>

namespace msdbg {
namespace {

// PyTorch's names, then MindSpore's.
constexpr std::array<std::string_view, 15> kCopying = {"where",      "masked_fill", "masked_fill_", "fill_", "full",
                                                       "full_like",  "index_fill",  "index_fill_",  "index_put", "index_put_",
                                                       "copy_",      "MaskedFill",  "Select",       "FillV2", "IndexFill"};

}  // namespace

bool only_copies(std::string_view op) { return std::ranges::find(kCopying, op) != kCopying.end(); }

const Attribute* infinite_argument(const std::vector<Attribute>& attributes) {
  const auto is_infinity = [](const Attribute& each) { return each.value == "Infinity" || each.value == "-Infinity"; };
  const auto found = std::ranges::find_if(attributes, is_infinity);
  return found == attributes.end() ? nullptr : &*found;
}

bool is_additive_mask(const Stats& stats, bool held) {
  if (stats.count < 2 || !stats.knows(kStatMax | kStatPosInf) || stats.max != 0 || stats.pos_inf_count > 0) return false;
  return !held || (stats.knows(kStatMin) && stats.min == 0);
}

}  // namespace msdbg
