#include "msdbg/bits.h"

#include "msdbg/threads.h"
#include "session/answer.h"
#include "session/check_plan.h"
#include "session/check_tensor.h"
#include "session/shared_measure.h"
#include "session/stats_cache.h"

namespace msdbg {

class BitsReader {
 public:
  BitsReader(Session& session, unsigned threads, std::span<BitsRead> reads) : session_(session), threads_(threads), reads_(reads) {}

  Result<uint64_t> run() {
    uint64_t bytes = take_known();
    if (unknown_.empty()) return bytes;
    if (Status status = measure_unknown(); !status.ok()) return status;
    return bytes + take_known();
  }

 private:
  KeptBits& known() { return session_.stats_cache_->bits; }

  /// The bytes of those that are known by now; all others are in `unknown_`.
  uint64_t take_known() {
    uint64_t bytes = 0;
    unknown_.clear();
    for (size_t i = 0; i < reads_.size(); ++i) {
      BitsRead& read = reads_[i];
      if (read.bits) continue;
      read.bits = known().take(read.tensor);
      if (read.bits) bytes += element_count(read.bits->shape).value_or(0) * item_size(read.bits->dtype);
      else unknown_.push_back(i);
    }
    return bytes;
  }

  Status measure_unknown() {
    CheckPlan plan;
    WatchSet& set = plan.sets.emplace_back();
    set.needs_stats = set.request.bits = true;
    for (const size_t i : unknown_) plan.tensors.push_back({reads_[i].tensor, {}, 0, false});
    const unsigned workers = thread_count(threads_, plan.tensors.size());
    std::vector<PassBuffers> buffers(workers);
    StatsCache& cache = *session_.stats_cache_;
    const auto here = [&](uint64_t at, unsigned worker) {
      const Measured measured = measure(session_, cache, plan.tensors[at].id, plan.sets.front(), buffers[worker]);
      // Statistics that were already in the cache have not put them there.
      if (measured.kept) cache.bits.put(measured.kept->info, *measured.kept->bits);
      reads_[unknown_[at]].problem = measured.problem;
      return measured.interrupted ? measured.problem : Status();
    };
    Team* const team = Team::current();
    if (team == nullptr || session_.info().kind != SessionKind::kDump) return parallel_for(plan.tensors.size(), workers, here);
    SharedMeasure shared(*team, session_, cache, plan, threads_, [](size_t, const Measured&) {});
    return work_off({[&] { return std::optional<uint64_t>(shared.next()); }, [&] { shared.poll(); }, [&] { shared.stop(); }}, workers, here);
  }

  Session& session_;
  const unsigned threads_;
  const std::span<BitsRead> reads_;
  std::vector<size_t> unknown_;
};

Result<uint64_t> read_bits(Session& session, unsigned threads, std::span<BitsRead> reads) {
  return answer([&]() -> Result<uint64_t> { return BitsReader(session, threads, reads).run(); });
}

}  // namespace msdbg
