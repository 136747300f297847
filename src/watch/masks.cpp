#include "msdbg/masks.h"

#include <algorithm>
#include <array>

namespace msdbg {
namespace {

// PyTorch's names, then MindSpore's.
constexpr std::array<std::string_view, 15> kCopying = {"where",      "masked_fill", "masked_fill_", "fill_", "full",
                                                       "full_like",  "index_fill",  "index_fill_",  "index_put", "index_put_",
                                                       "copy_",      "MaskedFill",  "Select",       "FillV2", "IndexFill"};

constexpr std::array<std::string_view, 32> kMaking = {
    "ones",      "zeros",      "full",      "arange",    "range",  "eye",     "linspace", "logspace",      "tril_indices",  "triu_indices", "scalar_tensor",
    "ones_like", "zeros_like", "full_like", "new_ones",  "new_zeros", "new_full", "Ones", "Zeros",         "OnesLike",      "ZerosLike",    "OnesLikeExt",
    "ZerosLikeExt", "FullLike", "Fill",     "FillV2",    "FillScalar", "Range", "Arange", "Eye",           "LinSpace",      "LinSpaceExt"};

constexpr std::array<std::string_view, 11> kLimiting = {"clamp",   "clamp_",  "clamp_min",   "clamp_max",   "minimum", "maximum",
                                                        "Minimum", "Maximum", "ClipByValue", "ClampScalar", "ClampTensor"};

constexpr std::array<std::string_view, 8> kWithTable = {"_ctc_loss",
                                                        "_cudnn_ctc_loss",
                                                        "CTCLossV2",
                                                        "_efficient_attention_forward",
                                                        "_flash_attention_forward",
                                                        "_scaled_dot_product_efficient_attention",
                                                        "_scaled_dot_product_flash_attention",
                                                        "_scaled_dot_product_cudnn_attention"};

constexpr std::array<std::string_view, 5> kAdding = {"add", "sub", "Add", "Sub", "TensorAdd"};
/// A sum of smaller numbers does not overflow.
constexpr double kFarFromOverflow = 1e4;

}  // namespace

bool only_copies(std::string_view op) { return std::ranges::find(kCopying, op) != kCopying.end(); }

bool takes_limits(std::string_view op) { return std::ranges::find(kLimiting, op) != kLimiting.end(); }

bool makes_values(std::string_view op) { return std::ranges::find(kMaking, op) != kMaking.end(); }

bool adds_mask(std::string_view op, const Stats& result, std::span<const Stats> taken) {
  if (std::ranges::find(kAdding, op) == kAdding.end() || !result.knows(kStatPosInf) || result.pos_inf_count > 0) return false;
  return std::ranges::all_of(taken, [](const Stats& each) {
    return each.knows(kStatMin | kStatMax) && each.min > -kFarFromOverflow && each.max < kFarFromOverflow;
  });
}

bool is_table_with_infinities(std::string_view op, uint32_t slot) {
  return slot == 1 && std::ranges::find(kWithTable, op) != kWithTable.end();
}

const Attribute* infinite_argument(const std::vector<Attribute>& attributes) {
  const auto is_infinity = [](const Attribute& each) { return each.value == "Infinity" || each.value == "-Infinity"; };
  const auto found = std::ranges::find_if(attributes, is_infinity);
  return found == attributes.end() ? nullptr : &*found;
}

bool is_additive_mask(const Stats& stats, bool held) {
  if (stats.count < 2 || !stats.knows(kStatMax | kStatPosInf) || stats.max != 0 || stats.pos_inf_count > 0) return false;
  return !held || (stats.knows(kStatMin) && stats.min == 0);
}

bool is_unset_limit(const Stats& stats) {
  return stats.count > 0 && stats.knows(kStatPosInf | kStatNegInf) && (stats.pos_inf_count == stats.count || stats.neg_inf_count == stats.count);
}

}  // namespace msdbg
