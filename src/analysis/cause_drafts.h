// The causes of a check while they are searched: one for a node and a kind, whatever the number of steps.
//
// The session's owner thread only.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "msdbg/analysis.h"

namespace msdbg {

struct CauseDraft {
  Cause cause;
  std::set<int64_t> steps;
  std::optional<size_t> because;   ///< what it follows from itself
  bool shared = false;             ///< of NaN and Inf: several ranks tell the same
  const Origin* origin = nullptr;  ///< of NaN and Inf, in the first step
};

class CauseDrafts {
 public:
  /// The index of each hit's cause.
  using OfHit = std::vector<std::optional<size_t>>;

  /// Returns its index. Of several steps, the first one tells what it was.
  size_t add(CauseKind kind, const TensorId& tensor, const std::string& what, const std::string& evidence);
  void explain(size_t draft, size_t because);
  /// Replicas come to the same end for the same reason: such causes are one. Those before `first_draft` tell their ranks already.
  void join_ranks(Session& session, size_t first_draft, OfHit& of_hit);
  /// Sorts the causes that have hits into the result. Takes them from here.
  void finish(Session& session, OfHit& of_hit, CheckResult* result);

  size_t size() const { return drafts_.size(); }
  CauseDraft& operator[](size_t index) { return drafts_[index]; }
  auto begin() { return drafts_.begin(); }
  auto end() { return drafts_.end(); }

 private:
  std::vector<CauseDraft> drafts_;
  std::map<std::tuple<CauseKind, int, int, NodeId>, size_t> places_;
};

}  // namespace msdbg
