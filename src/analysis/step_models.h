// The models of steps and graphs that a question reaches, made when they are first asked for.
//
// The session's owner thread only.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <tuple>
#include <vector>

#include "analysis/collectives.h"
#include "analysis/step_model.h"

namespace msdbg {

class StepModels {
 public:
  /// Coverage, tensors that could not be judged and interrupts go to `seen`. Both must outlive this.
  StepModels(Evidence& evidence, OriginResult& seen)
      : evidence_(evidence), session_(evidence.session()), collectives_(session_.graphs()), seen_(seen) {}

  /// nullptr: there is no such graph, the user interrupted, or a check failed; see status(). Models live as long as this.
  const StepModel* find(int rank, int graph, int64_t step);
  const StepModel* find(const TensorId& id) { return find(id.rank, id.graph, id.step); }

  const Status& status() const { return status_; }
  Evidence& evidence() { return evidence_; }
  Session& session() { return session_; }
  const Collectives& collectives() const { return collectives_; }

 private:
  bool judge(int64_t step);

  using Place = std::tuple<int, int, int64_t>;  ///< rank, graph, step
  Evidence& evidence_;
  Session& session_;
  Collectives collectives_;
  OriginResult& seen_;
  std::map<Place, std::unique_ptr<StepModel>> models_;
  std::map<Place, std::vector<TensorId>> tensors_;  ///< of all ranks and graphs of the judged steps
  std::set<int64_t> judged_, parameters_;
  Status status_;
};

}  // namespace msdbg
