// MindSpore's numbers of the conditions that code must distinguish (ConditionSpec::enumerator); the complete list is the catalogue
// in watch.h.
#pragma once

namespace msdbg::condition_number {

inline constexpr int kNan = 0;
inline constexpr int kInf = 1;
inline constexpr int kOperatorOverflow = 2;  ///< a flag that an operator raised, not a property of values
inline constexpr int kFirstLegacy = 3;       ///< max_gt; for this and later ones, peers of 1.0 know only a threshold
inline constexpr int kLastLegacy = 12;
inline constexpr int kTensorOverflow = 13;
inline constexpr int kInitialization = 14;
inline constexpr int kChangeTooLarge = 18;
inline constexpr int kChangeTooSmall = 19;
inline constexpr int kNotChanged = 20;
inline constexpr int kRange = 21;

}  // namespace msdbg::condition_number
