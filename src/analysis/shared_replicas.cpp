#include <numeric>

#include "analysis/shared_work.h"
#include "msdbg/threads.h"

namespace msdbg {
namespace {

Status read_one(Session& session, ReplicaRead& read, ReplicaBuffers& buffers, uint64_t* bytes) {
  Result<ReplicaPrint> print = fingerprint(session, read.tensor, buffers, bytes);
  if (print) read.print = std::move(*print);
  else if (print.status().code() == Code::kInterrupted) return print.status();
  else read.reason = print.status().message();
  return {};
}

class ReplicaJob final : public SharedJob {
 public:
  ReplicaJob(OpenLocated open, unsigned threads) : open_(std::move(open)), buffers_(threads) {}

  Result<std::string> run(std::string_view item, unsigned worker) override {
    ByteReader in(item);
    LocatedSession session(open_);
    const TensorId id = read_tensor_id(in);
    session.add(id, in.text());
    if (!in.at_end()) return Status(Code::kCorrupt, "a message between processes cannot be read");
    uint64_t bytes = 0;
    const Result<ReplicaPrint> print = fingerprint(session, id, buffers_[worker], &bytes);
    if (!print) return print.status();
    ByteWriter out;
    out.number(bytes);
    if (print->by != ReplicaEvidence::kElements) return Status(Code::kNoData, "no elements");  // process 0 has its statistics
    write(out, print->dtype);
    write(out, print->shape);
    out.number(print->low);
    out.number(print->high);
    out.number(print->nan ? 1 : 0);
    return out.take();
  }

 private:
  const OpenLocated open_;
  std::vector<ReplicaBuffers> buffers_;  // by worker
};

}  // namespace

SharedHandler replica_handler(OpenLocated open) {
  return [open = std::move(open)](std::string_view, unsigned threads) -> Result<std::unique_ptr<SharedJob>> {
    return std::unique_ptr<SharedJob>(std::make_unique<ReplicaJob>(open, threads));
  };
}

Result<uint64_t> read_replicas(Session& session, unsigned threads, std::span<ReplicaRead> reads) {
  const unsigned workers = thread_count(threads, reads.size());
  std::vector<ReplicaBuffers> buffers(workers);
  std::vector<uint64_t> bytes(workers, 0);
  uint64_t elsewhere = 0;
  const auto here = [&](uint64_t i, unsigned worker) { return read_one(session, reads[i], buffers[worker], &bytes[worker]); };
  Team* team = Team::current();
  Status status;
  if (team == nullptr || session.info().kind != SessionKind::kDump) {
    status = parallel_for(reads.size(), threads, here);
  } else {
    SharedRun::Work work;
    work.kind = kReplicaWork;
    work.threads = threads;
    std::vector<TensorId> tensors;
    for (const ReplicaRead& read : reads) tensors.push_back(read.tensor);
    work.bytes = expected_bytes(session, tensors);
    work.describe = [&](uint64_t i) {
      ByteWriter out;
      write(out, reads[i].tensor);
      out.text(location_of(session, reads[i].tensor));
      return out.take();
    };
    work.take = [&](uint64_t i, std::string_view result) {
      ByteReader in(result);
      const uint64_t read = in.number();
      ReplicaPrint print;
      print.dtype = read_dtype(in);
      print.shape = read_shape(in);
      print.low = in.number();
      print.high = in.number();
      print.nan = in.number() != 0;
      if (!in.at_end()) return Taken::kDamaged;
      reads[i].print = std::move(print);
      elsewhere += read;
      return Taken::kYes;
    };
    status = share_for(*team, std::move(work), here);
  }
  if (!status.ok()) return status;
  return std::accumulate(bytes.begin(), bytes.end(), elsewhere);
}

}  // namespace msdbg
