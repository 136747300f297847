// What several processes need to work on the tensors of one session, and the work of a check.
//
// Only process 0 opens the dump. It tells the others where each tensor's elements are (SharedFiles::location), so they list nothing and
// read no graph.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "msdbg/bytes.h"
#include "msdbg/session.h"
#include "msdbg/team.h"

namespace msdbg {

/// A session whose tensors other processes can read, because they see the same files.
class SharedFiles {
 public:
  virtual ~SharedFiles() = default;
  /// Where the elements are, for OpenLocated; "" if only this session can read them. Any thread.
  virtual std::string location(const TensorId& id) = 0;
};
/// "" for other sessions.
std::string location_of(Session& session, const TensorId& id);

/// Opens a tensor by its location. Any thread.
using OpenLocated = std::function<Result<OpenTensor>(const TensorId& id, std::string_view location)>;

/// The kind of work in which processes measure tensors for check(), and its handler.
inline constexpr std::string_view kMeasureWork = "measure";
SharedHandler measure_handler(OpenLocated open);

/// A few tensors of another process's session. One thread.
class LocatedSession final : public Session {
 public:
  explicit LocatedSession(const OpenLocated& open) : Session(0), open_(open) {}
  void add(const TensorId& id, std::string_view location) { locations_[id] = location; }
  /// The answer of previous() for every tensor.
  void set_previous(std::optional<TensorId> id, bool history_missing) {
    previous_ = id;
    history_missing_ = history_missing;
  }

  const SessionInfo& info() const override { return info_; }
  std::span<const int> ranks() const override { return {}; }
  std::span<const GraphPtr> graphs() const override { return {}; }
  std::vector<int64_t> steps() const override { return {}; }
  std::vector<int64_t> steps(int, int) const override { return {}; }
  std::vector<TensorId> tensors(const TensorQuery&) override { return {}; }
  uint32_t executions(int, int, int64_t, NodeId) override { return 0; }
  Result<OpenTensor> open(const TensorId& id) override;
  std::optional<Stats> given_statistics(const TensorId&) override { return std::nullopt; }
  Result<TensorId> previous(const TensorId& id, bool* history_missing) override;
  Result<bool> operator_overflow(const TensorId&) override { return Status(Code::kUnsupported, "not known here"); }
  SessionReport inspect() override { return {}; }

 private:
  const OpenLocated& open_;
  const SessionInfo info_;
  std::map<TensorId, std::string_view> locations_;
  std::optional<TensorId> previous_;
  bool history_missing_ = false;
};

/// About how many bytes each tensor has, by its graph; where that does not tell, the mean of the others. Opens nothing.
std::vector<uint64_t> expected_bytes(const Session& session, std::span<const TensorId> tensors);

/// All processes must use the same SIMD target: targets differ in the last digit of a sum.
void write_target(ByteWriter& out);
/// Switches to it. Error: this processor lacks it.
Status use_target(ByteReader& in);

void write(ByteWriter& out, const TensorId& id);
TensorId read_tensor_id(ByteReader& in);
void write(ByteWriter& out, const Shape& shape);
Shape read_shape(ByteReader& in);
void write(ByteWriter& out, DType dtype);
DType read_dtype(ByteReader& in);

}  // namespace msdbg
