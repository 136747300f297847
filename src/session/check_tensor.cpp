#include "session/check_tensor.h"

#include <fmt/format.h>

#include <algorithm>
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
  uint64_t bytes = 0;
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
    previous.bytes = opened->info.bytes;
    previous.reader = std::make_unique<TracedReader>(std::move(opened->reader));
    previous.state = Previous::kPresent;
  }
  return previous;
}

ExpressionInputs inputs_of(const KeptStats& kept, DType previous) {
  const TensorId& id = kept.info.id;
  return {kept.info.dtype, previous, kept.info.count, static_cast<double>(id.step), static_cast<double>(id.rank)};
}

/// Whether the entry has the values of all expressions, or statistics that decide the others.
bool decides(const KeptStats& kept, const WatchSet& set) {
  if (kept.holds(set.expressions) || set.compiled->decided_by_stats()) return true;
  for (size_t i = 0; i < set.expressions.size(); ++i) {
    if (!kept.holds({&set.expressions[i], 1}) && !set.compiled->decided_by_stats(i)) return false;
  }
  return true;
}

class Measurement {
 public:
  Measurement(Session& session, StatsCache& cache, const TensorId& id, const WatchSet& set, PassBuffers& buffers)
      : session_(session), cache_(cache), id_(id), set_(set), buffers_(buffers) {}

  Measured run() {
    const auto enough = [&](const KeptStats& entry) { return !reads_elements(&entry, set_); };
    auto [old, from_store, ticket] = set_.needs_stats ? cache_.look_up(session_, id_, set_.needs_previous, enough)
                                              : StatsCache::Found{cache_.find(id_)};
    if (!reads_elements(old.get(), set_)) {
      if (!old || !old->answers(set_.request)) return described();
      result_.from_cache = !from_store;
      if (from_store) {
        result_.bytes = reading(*old);
        if (set_.request.bits) cache_.bits.put(old->info, *old->bits);
      }
      result_.values = values_from_stats(*old, set_);
      result_.kept = std::move(old);
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
    kept.request = extended_request(old.get(), set_);
    Result<Stats> stats = pass(*opened->reader, previous, kept);
    if (!stats) {
      result_.info = std::move(kept.info);
      return fail(stats.status());
    }
    kept.stats = std::move(*stats);
    if (old) keep_values(*old, kept);
    kept.previous = previous.state;
    kept.previous_reason = std::move(previous.reason);
    if (previous.state == Previous::kPresent) {
      kept.previous_id = previous.id;
      kept.previous_bytes = previous.bytes;
    }
    result_.values = values_from_stats(kept, set_);
    result_.kept = std::make_shared<const KeptStats>(std::move(kept));
    cache_.keep(result_.kept, ticket, opened->reader->file());
    return std::move(result_);
  }

 private:
  /// The bytes that would be read without the store.
  uint64_t reading(const KeptStats& kept) const {
    const bool both = set_.needs_previous && kept.previous == Previous::kPresent;
    const auto passes = static_cast<uint64_t>(set_.compiled ? std::max(1, set_.compiled->passes()) : 1);
    return passes * (kept.info.bytes + (both ? kept.previous_bytes : 0));
  }

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

  void keep_results(const ExpressionRun& run, KeptStats& kept) const {
    for (size_t i = 0; i < set_.expressions.size(); ++i)
      kept.values.insert_or_assign(set_.expressions[i].text(), run.value(i));
  }

  Result<Stats> walk(ElementReader& reader, TracedReader* previous, const StatsRequest& request, KeptStats& kept) {
    std::optional<BitsPrinter> bits;
    if (request.bits) bits.emplace(reader.dtype());
    std::optional<ExpressionRun> run;
    if (set_.compiled && !set_.compiled->decided_by_stats())
      run.emplace(*set_.compiled, inputs_of(kept, previous ? previous->dtype() : DType::kUnknown));
    Result<Stats> stats = run_pass(reader, previous, request, buffers_, &result_.bytes, run ? &*run : nullptr, bits ? &*bits : nullptr);
    if (stats && run) keep_results(*run, kept);
    if (stats && bits) kept.bits = bits->print();
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
    return walk(reader, nullptr, StatsRequest{request.ranges, {}, false, request.bits}, kept);
  }

  Session& session_;
  StatsCache& cache_;
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
  return kept == nullptr || !kept->answers(set.request) || !decides(*kept, set);
}

std::vector<std::optional<ExpressionValue>> values_from_stats(const KeptStats& kept, const WatchSet& set) {
  std::vector<std::optional<ExpressionValue>> values;
  if (!set.compiled || kept.holds(set.expressions)) return values;
  const ExpressionInputs inputs = inputs_of(kept, DType::kUnknown);  // an expression with a previous value needs elements
  if (set.compiled->decided_by_stats()) {
    ExpressionRun run(*set.compiled, inputs);
    run.end_pass(kept.stats, kept.request);
    for (size_t i = 0; i < set.expressions.size(); ++i) values.push_back(run.value(i));
    return values;
  }
  if (!decides(kept, set)) return values;
  for (const Expression& expression : set.expressions) {
    if (const auto held = kept.values.find(expression.text()); held != kept.values.end()) {
      values.push_back(held->second);
      continue;
    }
    ExpressionRun run(ExpressionSet({&expression, 1}), inputs);
    run.end_pass(kept.stats, kept.request);
    values.push_back(run.value(0));
  }
  return values;
}

StatsRequest extended_request(const KeptStats* old, const WatchSet& set) {
  StatsRequest request = set.request;
  if (old != nullptr && old->request.ranges.size() + old->request.close.size() < kMaxCounts) merge_request(old->request, request);
  return request;
}

void keep_values(const KeptStats& old, KeptStats& kept) {
  if (old.values.size() < kMaxCounts) kept.values.insert(old.values.begin(), old.values.end());
}

Measured measure(Session& session, StatsCache& cache, const TensorId& id, const WatchSet& set,
                 PassBuffers& buffers) noexcept {
  try {
    return Measurement(session, cache, id, set, buffers).run();
  } catch (const std::bad_alloc&) {
    return failed(Code::kOutOfMemory, "out of memory");
  } catch (const std::exception& error) {
    return failed(Code::kInternal, error.what());
  }
}

}  // namespace msdbg
