#include "analysis/shared_work.h"
#include "msdbg/threads.h"

namespace msdbg {
namespace {

constexpr size_t kLeastPerThread = 8;

void write(ByteWriter& out, const std::optional<uint64_t>& value) {
  out.flag(value.has_value());
  if (value) out.number(*value);
}

std::optional<uint64_t> read_optional(ByteReader& in) { return in.flag() ? std::optional(in.number()) : std::nullopt; }

void write(ByteWriter& out, const std::optional<double>& value) {
  out.flag(value.has_value());
  if (value) out.real(*value);
}

std::optional<double> read_real(ByteReader& in) { return in.flag() ? std::optional(in.real()) : std::nullopt; }

void write(ByteWriter& out, const Comparison& value) {
  out.number(value.count);
  out.number(value.pairs);
  out.flag(value.bit_equal);
  for (const auto& place : {value.first_difference, value.max_abs_at, value.max_rel_at, value.max_ulp}) write(out, place);
  for (const double number : {value.tolerance.rtol, value.tolerance.atol, value.max_abs_error, value.max_rel_error, value.mean_abs_error,
                              value.norm_a, value.norm_b, value.norm_error, value.cosine}) {
    out.real(number);
  }
  for (const uint64_t number : {value.within, value.nan_a, value.nan_b, value.inf_a, value.inf_b, value.nan_mismatch, value.inf_mismatch})
    out.number(number);
}

Comparison read_comparison(ByteReader& in) {
  Comparison value;
  value.count = in.number();
  value.pairs = in.number();
  value.bit_equal = in.flag();
  for (auto* place : {&value.first_difference, &value.max_abs_at, &value.max_rel_at, &value.max_ulp}) *place = read_optional(in);
  for (double* number : {&value.tolerance.rtol, &value.tolerance.atol, &value.max_abs_error, &value.max_rel_error, &value.mean_abs_error,
                         &value.norm_a, &value.norm_b, &value.norm_error, &value.cosine}) {
    *number = in.real();
  }
  for (uint64_t* number : {&value.within, &value.nan_a, &value.nan_b, &value.inf_a, &value.inf_b, &value.nan_mismatch, &value.inf_mismatch})
    *number = in.number();
  const auto inside = [&](const std::optional<uint64_t>& place) { return !place || *place < value.count; };
  in.require(inside(value.first_difference) && inside(value.max_abs_at) && inside(value.max_rel_at) && value.pairs <= value.count);
  return value;
}

/// What compare_entry() fills.
void write(ByteWriter& out, const TensorDiff& entry, uint64_t bytes) {
  out.number(bytes);
  write(out, entry.dtype_a);
  write(out, entry.dtype_b);
  write(out, entry.shape_a);
  write(out, entry.shape_b);
  out.byte(static_cast<unsigned>(entry.state));
  out.text(entry.reason);
  if (!entry.compared()) return;
  out.real(entry.tolerance.rtol);
  out.real(entry.tolerance.atol);
  write(out, entry.measures);
}

uint64_t read(ByteReader& in, TensorDiff& entry) {
  const uint64_t bytes = in.number();
  for (DType* dtype : {&entry.dtype_a, &entry.dtype_b}) *dtype = read_dtype(in);
  entry.shape_a = read_shape(in);
  entry.shape_b = read_shape(in);
  entry.state = static_cast<DiffState>(in.number(static_cast<uint64_t>(DiffState::kUncompared)));
  entry.reason = std::string(in.text());
  if (!entry.compared()) return bytes;
  entry.tolerance.rtol = in.real();
  entry.tolerance.atol = in.real();
  entry.measures = read_comparison(in);
  entry.measures.dtype_a = entry.dtype_a;
  entry.measures.dtype_b = entry.dtype_b;
  return bytes;
}

class CompareJob final : public SharedJob {
 public:
  CompareJob(OpenLocated open, DiffOptions options, unsigned threads)
      : open_(std::move(open)), options_(std::move(options)), buffers_(threads) {}

  Result<std::string> run(std::string_view item, unsigned worker) override {
    ByteReader in(item);
    LocatedSession a(open_), b(open_);
    TensorDiff entry;
    entry.a = read_tensor_id(in);
    a.add(entry.a, in.text());
    entry.b = read_tensor_id(in);
    b.add(entry.b, in.text());
    entry.path.additions = in.number();
    entry.path.operators = in.number();
    if (!in.at_end()) return Status(Code::kCorrupt, "a message between processes cannot be read");
    uint64_t bytes = 0;
    if (const Status status = compare_entry(a, b, options_, entry, buffers_[worker], &bytes); !status.ok()) return status;
    if (entry.state == DiffState::kUncompared) return Status(Code::kIoError, entry.reason);
    ByteWriter out;
    write(out, entry, bytes);
    return out.take();
  }

 private:
  const OpenLocated open_;
  const DiffOptions options_;
  std::vector<DiffBuffers> buffers_;  // by worker
};

}  // namespace

SharedHandler compare_handler(OpenLocated open) {
  return [open = std::move(open)](std::string_view common, unsigned threads) -> Result<std::unique_ptr<SharedJob>> {
    ByteReader in(common);
    const Status target = use_target(in);
    if (!target.ok()) return target;
    DiffOptions options;
    options.rtol = read_real(in);
    options.atol = read_real(in);
    if (!in.at_end()) return Status(Code::kCorrupt, "a comparison that cannot be read");
    return std::unique_ptr<SharedJob>(std::make_unique<CompareJob>(open, std::move(options), threads));
  };
}

Status compare_entries(Session& a, Session& b, const DiffOptions& options, std::span<TensorDiff> entries, std::atomic<size_t>& done,
                       std::atomic<uint64_t>& bytes, const std::function<void()>& between) {
  const unsigned threads = thread_count(options.threads, entries.size() / kLeastPerThread);
  std::vector<DiffBuffers> buffers(thread_count(options.threads, entries.size()));
  const auto here = [&](uint64_t i, unsigned worker) {
    uint64_t read = 0;
    Status compared = compare_entry(a, b, options, entries[i], buffers[worker], &read);
    bytes += read;
    ++done;
    return compared;
  };
  Team* team = Team::current();
  const bool dumps = a.info().kind == SessionKind::kDump && b.info().kind == SessionKind::kDump;
  if (team == nullptr || !dumps) return parallel_for(entries.size(), threads, here, between);
  SharedRun::Work work;
  work.kind = kCompareWork;
  work.threads = options.threads;
  ByteWriter common;
  write_target(common);
  write(common, options.rtol);
  write(common, options.atol);
  work.common = common.take();
  std::vector<TensorId> tensors;
  for (const TensorDiff& entry : entries) tensors.push_back(entry.a);
  work.bytes = expected_bytes(a, tensors);
  for (uint64_t& each : work.bytes) each *= 2;
  work.describe = [&](uint64_t i) {
    ByteWriter out;
    write(out, entries[i].a);
    out.text(location_of(a, entries[i].a));
    write(out, entries[i].b);
    out.text(location_of(b, entries[i].b));
    out.number(entries[i].path.additions);
    out.number(entries[i].path.operators);
    return out.take();
  };
  work.take = [&](uint64_t i, std::string_view result) {
    ByteReader in(result);
    TensorDiff entry = entries[i];
    const uint64_t read_bytes = read(in, entry);
    if (!in.at_end()) return Taken::kDamaged;
    entries[i] = std::move(entry);
    bytes += read_bytes;
    ++done;
    return Taken::kYes;
  };
  return share_for(*team, std::move(work), here, between);
}

}  // namespace msdbg
