// The hyper-parameters of a training: single numbers that steer the optimizer, on each rank and in each step. docs/ranks.md.
//
// The session's owner thread only.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "msdbg/follow.h"

namespace msdbg {

enum class SettingRole : uint8_t { kLearningRate, kMomentum, kWeightDecay, kLossScale, kStepCounter, kOther };
/// "learning_rate", "momentum", "weight_decay", "loss_scale", "step_counter", "other"
std::string_view setting_role_name(SettingRole role);

/// kComputed: an operator computes it, as it does for a schedule.
enum class SettingFrom : uint8_t { kParameter, kConstant, kComputed };
std::string_view setting_from_name(SettingFrom from);  ///< "parameter", "constant", "computed"

/// The values of ranks that agree.
struct SettingSeries {
  std::vector<int> ranks;
  std::vector<std::optional<double>> values;  ///< one for each of SettingsResult::steps; nullopt: not dumped
};

struct Setting {
  std::string name;     ///< the parameter, or `learning_rate (Adam)`: an input of an optimizer
  SettingRole role = SettingRole::kOther;
  SettingFrom from = SettingFrom::kParameter;
  TensorId place;       ///< the parameter, constant or operator, on the first rank that has it
  uint64_t elements = 1;  ///< more than one: a schedule, whose values are not listed
  std::vector<SettingSeries> series;  ///< the largest set of ranks first

  /// Ranks have different values in the same step.
  bool differs() const;
  /// Differs, and most ranks agree: the ranks of the other series are odd.
  bool has_majority() const;
};

struct SettingsResult {
  std::vector<int> ranks;
  std::vector<int64_t> steps;
  std::vector<Setting> settings;  ///< by role
};

/// Looks at the parameters of optimizers, the loss scale, and the inputs of optimizers that are constants or computed. A constant whose
/// value the graph file holds needs no file.
Result<SettingsResult> settings(Session& session, const FollowOptions& options);

}  // namespace msdbg
