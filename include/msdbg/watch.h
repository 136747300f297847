// Watchpoint conditions: the catalogue, validated parameters, and the decision from finished statistics.
//
// Pure functions over values; any thread. Definitions: docs/conditions.md.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "msdbg/base.h"
#include "msdbg/graph.h"
#include "msdbg/simd.h"

namespace msdbg {

enum class Semantics : uint8_t { kCompat, kFinite };
std::string_view semantics_name(Semantics semantics);
Result<Semantics> parse_semantics(std::string_view text);

/// What a condition or an expression says about a tensor whose NaN keeps it from an answer.
enum class NanVerdict : uint8_t { kNotChecked, kHit, kClean };
/// "hit" or "clean".
Result<NanVerdict> parse_nan_verdict(std::string_view text);

/// Bits of an error code, numbered as in MindSpore's evaluator.
enum ErrorBit : uint32_t {
  kErrorNan = 1, kErrorInf = 2, kErrorNoPrevious = 4, kErrorOutOfMemory = 8, kErrorNoHistory = 16, kErrorNoValue = 32,
};
/// "NaN in the tensor", ...: one text per set bit, ascending.
std::vector<std::string> error_texts(uint32_t error_code);

// ---- catalogue -----------------------------------------------------------------------------------------------------

enum class ParamKind : uint8_t { kCheck, kSupport, kHidden };
struct ParamSpec {
  std::string_view name;
  ParamKind kind;
  bool is_bool = false;
  std::optional<double> default_value;
  double low, high;             ///< accepted interval
  bool low_open = false;        ///< the lower end itself is excluded
  std::string_view unit;        ///< "percent", "fraction", "" = the tensor's own
  std::string_view help;
};

enum class Target : uint8_t { kTensor, kWeight, kGradient, kActivation };
enum class Severity : uint8_t { kError, kWarning, kInfo };
std::string_view severity_name(Severity severity);

struct ConditionSpec {
  std::string_view id;    ///< "tensor_overflow"; legacy conditions by enumerator name ("max_gt")
  std::string_view abbr;  ///< "TO"; empty for legacy ones
  int enumerator;         ///< MindSpore's number on the wire
  Target target;
  Severity severity;
  bool needs_previous;
  std::span<const ParamSpec> params;  ///< in wire order, including hidden ones
  std::string_view summary;
  std::string_view advice;            ///< what to try next, printed with a hit
};

std::span<const ConditionSpec> condition_catalogue();  ///< the 17, then the legacy ones
/// Finds a condition by id or abbreviation, ignoring case. Error: kNotFound with the nearest ids.
Result<const ConditionSpec*> find_condition(std::string_view id_or_abbr);
/// The same; null instead of an error.
const ConditionSpec* condition_named(std::string_view id_or_abbr);

/// A condition with validated parameters.
struct Condition {
  const ConditionSpec* spec = nullptr;
  std::map<std::string, double, std::less<>> params;  ///< enabled parameters only; booleans as 0 and 1

  std::optional<double> param(std::string_view name) const;
  /// `tensor_all_zero zero_percentage_ge 50`
  std::string text() const;
};

/// Validates a condition: unknown, out-of-range or NaN parameters, missing bounds, inverted range, no check parameter (set to the
/// catalogue default if there is one).
/// Error: kInvalidArgument with the condition, the parameter, its value and what is accepted.
Result<Condition> make_condition(std::string_view id_or_abbr, const std::map<std::string, double, std::less<>>& params);

/// `TO`, `TL max_gt=3`, `TZ 50` (a lone number is the first check parameter), `tensor_range range_start_inclusive=0,...`.
/// Parameters are separated by blanks or commas.
Result<Condition> parse_condition(std::string_view text);

// ---- decision ------------------------------------------------------------------------------------------------------

/// State of the previous value.
enum class Previous : uint8_t {
  kNotNeeded,
  kMissing,     ///< missing or empty: bit 4
  kNoHistory,   ///< the graph's execution history is missing: bits 4 and 16
  kSizeDiffers, ///< different element count
  kPresent,
};

enum class Verdict : uint8_t { kClean, kHit, kNotChecked };

struct ParamResult {
  std::string name;
  double threshold = 0;
  std::optional<double> actual;  ///< nullopt: not evaluated, or not applicable to the parameter
  bool hit = false;
};

struct Decision {
  Verdict verdict = Verdict::kClean;
  uint32_t error_code = 0;
  std::string reason;                ///< for kNotChecked
  std::vector<ParamResult> params;   ///< enabled parameters, wire order
  bool hit() const { return verdict == Verdict::kHit; }
};

/// Adds the requirements of `condition` to `request` (equal ranges and tolerances are shared).
void add_needs(const Condition& condition, StatsRequest& request);
/// StatField bits that must be known; without them, conditions on a statistic.csv are undecided.
uint32_t needed_fields(const Condition& condition, Semantics semantics);

/// Decides from finished statistics. `request` is the one used to compute them, which identifies range and close counts. Empty
/// tensors are clean. Statistics that lack a needed field give kNotChecked "no tensor data". `operator_overflow` is not decided
/// here: see Session::operator_overflow.
///
/// `steps`: how many steps the change from the previous value took, or 1 to judge all of it as MindSpore does. "Too large" is judged
/// by the change per step, since the change of at least one step was that large; "too small" by the whole change.
Decision decide(const Condition& condition, const Stats& stats, const StatsRequest& request, Previous previous,
                Semantics semantics, int64_t steps = 1);

// ---- sets of rules ---------------------------------------------------------------------------------------------------

struct PresetRule {
  std::string_view name, on, when;  ///< in the syntax of `--on` and `--when`
  int64_t from_step = 0;            ///< live: earlier steps do not count
  bool later = false;               ///< live: for nodes that the program shows in its first step
};

/// Faults in any training, for every network.
std::span<const PresetRule> default_rules();
/// MindInsight's recommended conditions for a dump. They search for trouble rather than errors: a healthy run may hit some.
std::span<const PresetRule> recommended_rules();
/// The same for a training: includes initial weights, and excludes what would stop it in every step. `ascend` has a hardware flag
/// for overflow; if the peer keeps no previous values, its weights would have to be fetched in every step. `each_operator`: a program that shows all that
/// it does, down to filling memory with zeros.
std::vector<PresetRule> recommended_live_rules(bool ascend, bool keeps_previous, bool each_operator);

}  // namespace msdbg
