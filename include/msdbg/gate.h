// A check as a gate: its findings are new, known from an earlier run, or suppressed with a reason.
//
// Any thread. Files are passed as text; the program reads and writes them.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "msdbg/check.h"


namespace msdbg {

/// Identifies a finding across runs. Graph ids and execution numbers change between runs, names do not.
struct Fingerprint {
  std::string graph, node, rule, slot;
  int rank = 0;
  std::optional<int64_t> step;  ///< only if the baseline distinguishes steps
  auto operator<=>(const Fingerprint&) const = default;
  /// One JSON object on one line, without the newline.
  std::string text() const;
  /// 16 hexadecimal digits, the same in every run and on every machine.
  std::string hash() const;
};
Fingerprint fingerprint(const Session& session, const Hit& hit, bool with_step);

/// The findings of an earlier run: JSON lines, sorted.
class Baseline {
 public:
  /// `name` is the file name for messages. Error: kCorrupt with the line and what is accepted.
  static Result<Baseline> parse(std::string_view text, std::string_view name);
  static Baseline of(const Session& session, const std::vector<Hit>& hits, bool with_steps);

  /// An entry without a step matches every step.
  bool contains(const Session& session, const Hit& hit) const;
  std::string text() const;
  size_t size() const { return entries_.size(); }

 private:
  std::set<Fingerprint> entries_;
};

/// `RULE NODE-GLOB[:slot] [step=0:3] # reason`
struct Suppression {
  std::string rule, node;    ///< rule: id, abbreviation or `*`; node: glob over the full name
  std::optional<Slot> slot;  ///< nullopt: every slot
  IntSet steps = IntSet::all();
  std::string reason;
  size_t line = 0;           ///< in its file
  std::string text;          ///< as written, without the reason

  bool matches(const Session& session, const Hit& hit) const;
};
/// Skips empty lines and lines that start with `#`. Error: kCorrupt with the line and what is accepted.
Result<std::vector<Suppression>> parse_suppressions(std::string_view text, std::string_view name);

enum class GateStatus : uint8_t { kNew, kKnown, kSuppressed };
std::string_view gate_status_name(GateStatus status);  ///< "new", "known", "suppressed"

/// The classification of each finding of a check.
struct Gate {
  std::vector<GateStatus> statuses;    ///< one per CheckResult::hits
  std::vector<std::string> reasons;  ///< the same length; "" unless suppressed
  uint64_t fresh = 0, known = 0, suppressed = 0;  ///< counts of all findings, listed or not
  std::vector<Suppression> unused;                                ///< suppressions that matched nothing, if the run proves that
  bool has_baseline = false, has_suppressions = false;
};

/// True if something was not checked that should have been: `--strict` then fails. Ignores a rule without nodes in this network.
bool is_incomplete(const CheckResult& result);
/// No watchpoint reached a verdict on any tensor.
bool nothing_checked(const CheckResult& result);
/// Every rule of `chosen` failed or had nothing to judge, and at least one failed: there is no verdict.
bool none_judged(const CheckResult& result, const std::vector<std::string>& chosen);

/// Classifies all findings, then cuts `result->hits` to `max_hits` new ones and `max_hits` others. The result must contain every
/// hit. A finding that is both known and suppressed is suppressed. nullptr: no such file. An interrupted run proves no suppression
/// unused; neither does a run over only some steps or ranks (`partial`).
Gate judge(const Session& session, CheckResult* result, const Baseline* baseline, const std::vector<Suppression>* suppressions,
           size_t max_hits = SIZE_MAX, bool partial = false);

}  // namespace msdbg
