#include <algorithm>
#include <array>

#include "msdbg/analysis.h"

namespace msdbg {
namespace {

// What was seen: trainings on a CPU whose dumps were compared with the parameters that the operators had updated. 1.5.0: all optimizers
// (ApplyMomentum). 2.0.0, 2.7.1, 2.10.0: these four; the outputs of ApplyMomentum, SGD, ApplyAdagrad, ApplyFtrl, ApplyAdaMax,
// ApplyProximalAdagrad and ApplyAdadelta hold the updated parameters there. Releases in between are assumed to do the same.
constexpr std::array<std::string_view, 4> kFrom2OnCpu = {"adam", "adamweightdecay", "applyrmsprop", "applycenteredrmsprop"};

}  // namespace

bool has_unwritten_outputs(const SessionInfo& info, const Node& node) {
  if (info.kind != SessionKind::kDump || node.kind != NodeKind::kOperator || !in_category(node, Category::kOptimizer)) return false;
  if (info.epoch == "B") return true;  // 1.3 to 1.5, on every device
  return to_lower(info.device_target) == "cpu" &&
         std::find(kFrom2OnCpu.begin(), kFrom2OnCpu.end(), to_lower(node.op)) != kFrom2OnCpu.end();
}

}  // namespace msdbg
