#include "analysis/cause_drafts.h"

#include <fmt/format.h>

#include <algorithm>

#include "analysis/cause_order.h"

namespace msdbg {

size_t CauseDrafts::add(CauseKind kind, const TensorId& tensor, const std::string& what, const std::string& evidence) {
  const auto [at, fresh] = places_.try_emplace({kind, tensor.rank, tensor.graph, tensor.node}, drafts_.size());
  if (fresh) {
    Cause cause;
    cause.kind = kind;
    cause.tensor = tensor;
    cause.what = what;
    cause.evidence = evidence;
    drafts_.emplace_back().cause = std::move(cause);
  }
  CauseDraft& draft = drafts_[at->second];
  draft.steps.insert(tensor.step);
  if (tensor.step < draft.cause.tensor.step) {
    draft.cause.tensor = tensor;
    draft.cause.what = what;
    draft.cause.evidence = evidence;
  }
  return at->second;
}

void CauseDrafts::explain(size_t draft, size_t because) {
  if (draft != because && !drafts_[draft].because) drafts_[draft].because = because;
}

void CauseDrafts::join_ranks(Session& session, size_t first_draft, OfHit& of_hit) {
  std::map<std::tuple<CauseKind, int, std::string_view, int64_t, std::string, std::string>, std::vector<size_t>> alike;
  for (size_t i = first_draft; i < drafts_.size(); ++i) {
    const Cause& cause = drafts_[i].cause;
    if (cause.kind == CauseKind::kReplica) continue;
    alike[{cause.kind, cause.tensor.graph, session.node(cause.tensor).name, cause.tensor.step, cause.what, cause.evidence}].push_back(i);
  }
  std::map<size_t, size_t> first_of;
  for (const auto& [key, drafts] : alike) {
    if (drafts.size() < 2) continue;
    const auto first = *std::ranges::min_element(drafts, {}, [&](size_t i) { return drafts_[i].cause.tensor.rank; });
    std::vector<int64_t> ranks;
    for (const size_t i : drafts) {
      ranks.push_back(drafts_[i].cause.tensor.rank);
      if (i == first) continue;
      first_of[i] = first;
      drafts_[first].steps.insert(drafts_[i].steps.begin(), drafts_[i].steps.end());
    }
    std::ranges::sort(ranks);
    drafts_[first].cause.what += fmt::format(", the same on ranks {}", numbers_text(ranks));
  }
  const auto join = [&](std::optional<size_t>& of) {
    if (const auto at = of ? first_of.find(*of) : first_of.end(); at != first_of.end()) of = at->second;
  };
  for (std::optional<size_t>& cause : of_hit) join(cause);
  for (CauseDraft& draft : drafts_) join(draft.because);
}

void CauseDrafts::finish(Session& session, OfHit& of_hit, CheckResult* result) {
  for (std::optional<size_t>& cause : of_hit) {
    // Only what came of NaN and Inf follows from another cause, which follows from none.
    if (cause && drafts_[*cause].because) cause = drafts_[*cause].because;
    if (cause) ++drafts_[*cause].cause.findings;
  }
  std::vector<size_t> order;
  for (size_t i = 0; i < drafts_.size(); ++i) {
    if (drafts_[i].cause.findings > 0) order.push_back(i);
  }
  sort_causes(session, order, [&](size_t i) -> const Cause& { return drafts_[i].cause; });
  std::vector<size_t> place(drafts_.size());
  result->causes.emplace();
  for (const size_t i : order) {
    place[i] = result->causes->size();
    Cause& cause = result->causes->emplace_back(std::move(drafts_[i].cause));
    cause.steps.assign(drafts_[i].steps.begin(), drafts_[i].steps.end());
    cause.total = result->hits.size();
  }
  for (size_t i = 0; i < result->hits.size(); ++i) {
    result->hits[i].follows.reset();
    if (of_hit[i]) result->hits[i].follows = place[*of_hit[i]];
  }
}

}  // namespace msdbg
