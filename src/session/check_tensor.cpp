#include "session/check_tensor.h"

#include <fmt/format.h>

#include <exception>
#include <new>

namespace msdbg {
namespace {

/// Cached statistics grow with each check; beyond this many counts an entry is rebuilt.
constexpr size_t kMaxCounts = 32;

/// Remembers its own failure: a broken previous value must not look like a broken tensor.
class TracedReader : public ElementReader {
 public:
  explicit TracedReader(std::unique_ptr<ElementReader> inner)
      : ElementReader(inner->dtype(), inner->count()), inner_(std::move(inner)) {}
  const Status& status() const { return status_; }

 private:
  Status fill(uint64_t first, std::span<std::byte> out) override {
    status_ = inner_->read(first, out);
    return status_;
  }

  std::unique_ptr<ElementReader> inner_;
  Status status_;
};

struct PreviousValue {
  Previous state = Previous::kNotNeeded;
  std::string reason;
  std::optional<TensorId> id;
  std::unique_ptr<TracedReader> reader;

  void set_missing(std::string why) {
    state = Previous::kMissing;
    reason = std::move(why);
    reader.reset();
  }
};

PreviousValue find_previous(Session& session, const TensorId& id, uint64_t count) {
  PreviousValue previous;
  bool history_missing = false;
  Result<TensorId> found = session.previous(id, &history_missing);
  if (!found) {
    previous.state = history_missing ? Previous::kNoHistory : Previous::kMissing;
    return previous;
  }
  previous.id = *found;
  auto cannot = [&](std::string_view why) {
    previous.set_missing(fmt::format("previous step {} cannot be used: {}", found->step, why));
  };
  Result<OpenTensor> opened = session.open(*found);
  if (!opened) {
    cannot(opened.status().message());
  } else if (!opened->reader) {
    cannot(opened->info.elements().message());
  } else if (opened->info.count == 0) {
    cannot("the value is empty");
  } else if (opened->info.count != count) {
    previous.state = Previous::kSizeDiffers;
  } else {
    previous.reader = std::make_unique<TracedReader>(std::move(opened->reader));
    previous.state = Previous::kPresent;
  }
  return previous;
}

class Measurement {
 public:
  Measurement(Session& session, KeptStatsTable& table, const TensorId& id, const WatchSet& set, PassBuffers& buffers)
      : session_(session), table_(table), id_(id), set_(set), buffers_(buffers) {}

  Measured run() {
    KeptStatsPtr old = table_.find(id_);
    if (!reads_elements(old.get(), set_)) {
      if (!old || !old->answers(set_.request)) return described();
      if (!old->holds(set_.expressions)) return from_kept(*old);
      result_.kept = std::move(old);
      result_.from_cache = true;
      return std::move(result_);
    }
    Result<OpenTensor> opened = session_.open(id_);
    if (!opened) return fail(opened.status());
    if (!opened->reader) {
      result_.info = std::move(opened->info);
      return fail(result_.info->elements());
    }
    KeptStats kept;
    kept.info = std::move(opened->info);
    PreviousValue previous;
    // An empty tensor is clean whatever its previous value.
    if (set_.needs_previous && kept.info.count > 0) previous = find_previous(session_, id_, kept.info.count);
    kept.request = set_.request;
    if (old && old->request.ranges.size() + old->request.close.size() < kMaxCounts)
      merge_request(old->request, kept.request);

    Result<Stats> stats = pass(*opened->reader, previous, kept);
    if (!stats) {
      result_.info = std::move(kept.info);
      return fail(stats.status());
    }
    kept.stats = std::move(*stats);
    if (old && old->values.size() < kMaxCounts) kept.values.insert(old->values.begin(), old->values.end());
    kept.previous = previous.state;
    kept.previous_reason = std::move(previous.reason);
    kept.previous_id = previous.state == Previous::kPresent ? previous.id : std::nullopt;
    result_.kept = std::make_shared<const KeptStats>(std::move(kept));
    table_.put(result_.kept);
    return std::move(result_);
  }

 private:
  Measured described() {
    Result<TensorInfo> info = session_.describe(id_);
    if (!info) return fail(info.status());
    result_.info = std::move(*info);
    return std::move(result_);
  }

  Measured fail(Status status) {
    result_.interrupted = status.code() == Code::kInterrupted;
    result_.problem = std::move(status);
    return std::move(result_);
  }

  ExpressionInputs inputs(const KeptStats& kept, DType previous) const {
    return {kept.info.dtype, previous, kept.info.count, static_cast<double>(id_.step), static_cast<double>(id_.rank)};
  }

  void keep_values(const ExpressionRun& run, KeptStats& kept) const {
    for (size_t i = 0; i < set_.expressions.size(); ++i)
      kept.values.insert_or_assign(set_.expressions[i].text(), run.value(i));
  }

  /// For when the statistics are cached and the expressions need nothing else.
  Measured from_kept(const KeptStats& old) {
    auto kept = std::make_shared<KeptStats>(old);
    ExpressionRun run(*set_.compiled, inputs(*kept, DType::kUnknown));
    run.end_pass(kept->stats, kept->request);
    keep_values(run, *kept);
    result_.kept = kept;
    result_.from_cache = true;
    table_.put(std::move(kept));
    return std::move(result_);
  }

  Result<Stats> walk(ElementReader& reader, TracedReader* previous, const StatsRequest& request, KeptStats& kept) {
    if (!set_.compiled) return run_pass(reader, previous, request, buffers_, &result_.bytes);
    ExpressionRun run(*set_.compiled, inputs(kept, previous ? previous->dtype() : DType::kUnknown));
    Result<Stats> stats = run_pass(reader, previous, request, buffers_, &result_.bytes, &run);
    if (stats) keep_values(run, kept);
    return stats;
  }

  Result<Stats> pass(ElementReader& reader, PreviousValue& previous, KeptStats& kept) {
    const StatsRequest& request = kept.request;
    if (previous.reader) {
      Result<Stats> stats = walk(reader, previous.reader.get(), request, kept);
      if (stats || previous.reader->status().ok() || stats.status().code() == Code::kInterrupted) return stats;
      previous.set_missing(
          fmt::format("previous step {} cannot be used: {}", previous.id->step, previous.reader->status().message()));
    }
    return walk(reader, nullptr, StatsRequest{request.ranges, {}, false}, kept);
  }

  Session& session_;
  KeptStatsTable& table_;
  const TensorId& id_;
  const WatchSet& set_;
  PassBuffers& buffers_;
  Measured result_;
};

Measured failed(Code code, const char* text) noexcept {
  Measured result;
  try {
    result.problem = Status(code, text);
  } catch (...) {
    result.problem = Status(code, {});  // no memory for the text; the code is enough
  }
  return result;
}

}  // namespace

bool reads_elements(const KeptStats* kept, const WatchSet& set) {
  if (!set.needs_stats) return false;
  return kept == nullptr || !kept->answers(set.request) || !(kept->holds(set.expressions) || set.compiled->decided_by_stats());
}

Measured measure(Session& session, KeptStatsTable& table, const TensorId& id, const WatchSet& set,
                 PassBuffers& buffers) noexcept {
  try {
    return Measurement(session, table, id, set, buffers).run();
  } catch (const std::bad_alloc&) {
    return failed(Code::kOutOfMemory, "out of memory");
  } catch (const std::exception& error) {
    return failed(Code::kInternal, error.what());
  }
}

}  // namespace msdbg
