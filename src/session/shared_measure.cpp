#include "session/shared_measure.h"

#include <algorithm>

#include "msdbg/threads.h"
#include "session/kept_stats_bytes.h"

namespace msdbg {
namespace {

constexpr uint64_t kMostSets = 1u << 20, kMostRequests = 4096;

enum Earlier : uint8_t { kNone, kNoHistory, kLocated };

// ---- what is sent, and how it is read again ----

void write(ByteWriter& out, const StatsRequest& request) {
  write_counts(out, request);
  out.flag(request.change);
  out.flag(request.bits);
}

StatsRequest read_request(ByteReader& in) {
  StatsRequest request;
  read_counts(in, request);
  request.change = in.flag();
  request.bits = in.flag();
  return request;
}

void write(ByteWriter& out, const WatchSet& set) {
  write(out, set.request);
  out.flag(set.needs_previous);
  out.number(set.expressions.size());
  for (const Expression& expression : set.expressions) out.text(expression.text());
}

WatchSet read_set(ByteReader& in) {
  WatchSet set;
  set.needs_stats = true;
  set.request = read_request(in);
  set.needs_previous = in.flag();
  for (size_t left = in.items(kMostRequests); left > 0 && in.good(); --left) {
    auto expression = Expression::parse(in.text());
    in.require(expression.ok());
    if (expression) set.expressions.push_back(std::move(*expression));
  }
  if (!set.expressions.empty()) set.compiled = std::make_shared<const ExpressionSet>(set.expressions);
  return set;
}

// ---- the processes that read ----

class MeasureJob final : public SharedJob {
 public:
  MeasureJob(OpenLocated open, std::vector<WatchSet> sets, unsigned threads)
      : open_(std::move(open)), sets_(std::move(sets)), buffers_(threads) {}

  Result<std::string> run(std::string_view item, unsigned worker) override {
    ByteReader in(item);
    LocatedSession session(open_);
    const TensorId id = read_tensor_id(in);
    session.add(id, in.text());
    const uint64_t number = in.number();
    switch (in.number(kLocated)) {
      case kNoHistory:
        session.set_previous(std::nullopt, true);
        break;
      case kLocated: {
        const TensorId previous = read_tensor_id(in);
        TensorId same = previous;
        same.step = id.step;
        in.require(same == id);
        session.add(previous, in.text());
        session.set_previous(previous, false);
        break;
      }
      default:
        break;
    }
    const bool extended = in.flag();
    const StatsRequest request = extended ? read_request(in) : StatsRequest();
    if (!in.at_end() || number >= sets_.size()) return Status(Code::kCorrupt, "a message between processes cannot be read");
    StatsCache cache(0);  // process 0 keeps the statistics
    Measured measured;
    if (extended) {
      WatchSet set = sets_[number];
      set.request = request;
      measured = measure(session, cache, id, set, buffers_[worker]);
    } else {
      measured = measure(session, cache, id, sets_[number], buffers_[worker]);
    }
    if (!measured.kept) return measured.problem;
    ByteWriter out;
    out.number(measured.bytes);
    out.text(encode(*measured.kept));
    return out.take();
  }

 private:
  const OpenLocated open_;
  const std::vector<WatchSet> sets_;
  std::vector<PassBuffers> buffers_;  // by worker
};

}  // namespace

SharedHandler measure_handler(OpenLocated open) {
  return [open = std::move(open)](std::string_view common, unsigned threads) -> Result<std::unique_ptr<SharedJob>> {
    ByteReader in(common);
    const Status target = use_target(in);
    if (!target.ok()) return target;
    std::vector<WatchSet> sets;
    for (size_t left = in.items(kMostSets); left > 0 && in.good(); --left) sets.push_back(read_set(in));
    if (!in.at_end()) return Status(Code::kCorrupt, "a check that cannot be read");
    return std::unique_ptr<SharedJob>(std::make_unique<MeasureJob>(open, std::move(sets), threads));
  };
}

SharedMeasure::SharedMeasure(Team& team, Session& session, StatsCache& cache, const CheckPlan& plan, unsigned threads,
                             std::function<void(size_t, Measured)> taker)
    : session_(session), cache_(cache), plan_(plan), take_(std::move(taker)) {
  choose();
  SharedRun::Work work;
  work.kind = kMeasureWork;
  work.threads = threads;
  ByteWriter common;
  write_target(common);
  common.number(plan.sets.size());
  for (const WatchSet& set : plan.sets) write(common, set);
  work.common = common.take();
  std::vector<TensorId> tensors;
  tensors.reserve(items_.size());
  for (const Item& item : items_) tensors.push_back(plan.tensors[item.at].id);
  work.bytes = expected_bytes(session, tensors);
  for (size_t i = 0; i < items_.size(); ++i) {
    if (plan.sets[plan.tensors[items_[i].at].set].needs_previous) work.bytes[i] *= 2;
  }
  work.describe = [this](uint64_t item) { return describe(items_[item]); };
  work.take = [this](uint64_t item, std::string_view result) { return take(items_[item], result); };
  run_.emplace(team, std::move(work));
}

/// Divides the plan into what this process knows already and what somebody must read.
void SharedMeasure::choose() {
  std::vector<StatsCache::Found> known(plan_.tensors.size());
  // The store may have to look at a file.
  (void)parallel_for(plan_.tensors.size(), cache_.store ? 0 : 1, [&](uint64_t at, unsigned) {
    const PlannedTensor& planned = plan_.tensors[at];
    const WatchSet& set = plan_.sets[planned.set];
    if (planned.missing || !set.needs_stats) return Status();
    const auto enough = [&](const KeptStats& entry) { return !reads_elements(&entry, set); };
    // What this process knows is measured later, and counted then as by one process alone.
    known[at] = cache_.look_up(session_, planned.id, set.needs_previous, enough, false);
    if (known[at].ticket && !known[at].from_store) cache_.store->look(planned.id, *known[at].ticket);
    return Status();
  });
  for (size_t at = 0; at < plan_.tensors.size(); ++at) {
    const PlannedTensor& planned = plan_.tensors[at];
    const WatchSet& set = plan_.sets[planned.set];
    if (planned.missing || !reads_elements(known[at].kept.get(), set) || !is_located(planned)) here_.push_back(at);
    else items_.push_back({at, std::move(known[at])});
  }
}

bool SharedMeasure::is_located(const PlannedTensor& planned) const {
  if (location_of(session_, planned.id).empty()) return false;
  if (!plan_.sets[planned.set].needs_previous) return true;
  const Result<TensorId> previous = session_.previous(planned.id, nullptr);
  return !previous || !location_of(session_, *previous).empty();
}

std::optional<size_t> SharedMeasure::next() {
  const size_t at = next_.fetch_add(1, std::memory_order_relaxed);
  if (at < here_.size()) return here_[at];
  const std::optional<uint64_t> item = run_->next();
  return item ? std::optional(items_[*item].at) : std::nullopt;
}

std::string SharedMeasure::describe(const Item& item) const {
  const PlannedTensor& planned = plan_.tensors[item.at];
  ByteWriter out;
  write(out, planned.id);
  out.text(location_of(session_, planned.id));
  out.number(planned.set);
  bool history_missing = false;
  std::optional<TensorId> previous;
  if (plan_.sets[planned.set].needs_previous) {
    if (const Result<TensorId> found = session_.previous(planned.id, &history_missing)) previous = *found;
  }
  out.number(previous ? kLocated : history_missing ? kNoHistory : kNone);
  if (previous) {
    write(out, *previous);
    out.text(location_of(session_, *previous));
  }
  out.flag(item.found.kept != nullptr);
  if (item.found.kept) write(out, extended_request(item.found.kept.get(), plan_.sets[planned.set]));
  return out.take();
}

Taken SharedMeasure::take(const Item& item, std::string_view result) {
  const PlannedTensor& planned = plan_.tensors[item.at];
  const WatchSet& set = plan_.sets[planned.set];
  ByteReader in(result);
  Measured measured;
  measured.bytes = in.number();
  const auto kept = decode(in.text(), session_.identify(planned.id));
  if (!kept || !in.at_end() || !covers((*kept)->request, set.request)) return Taken::kDamaged;
  measured.values = values_from_stats(**kept, set);
  if (measured.values.empty() && !(*kept)->holds(set.expressions)) return Taken::kDamaged;
  // Why an earlier value cannot be used is told as if there were only one process.
  if (!(*kept)->previous_reason.empty()) return Taken::kAgain;
  if (item.found.kept) keep_values(*item.found.kept, **kept);
  measured.kept = *kept;
  cache_.keep(measured.kept, item.found.ticket, nullptr);
  take_(item.at, std::move(measured));
  return Taken::kYes;
}

}  // namespace msdbg
