// Field numbers: debugger.dump (toolkit.dumpdata) of the Ascend runtime's dump_data.proto; docs/ascend.md.
#include "session/dump/container.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <mutex>
#include <set>

#include "msdbg/device_format.h"
#include "session/dump/file_name.h"

namespace msdbg::dump {
namespace {

constexpr uint64_t kLengthBytes = 8;
constexpr size_t kWindowBytes = 4096;
constexpr size_t kMostAxes = 64;

Status container_damage(std::string text) { return Status(Code::kCorrupt, std::move(text)); }

// By the runtime's number (enum OutputDataType).
constexpr std::array<std::pair<std::string_view, DType>, 32> kTypes = {{
    {"UNDEFINED", DType::kUnknown},       {"FLOAT", DType::kFloat32},      {"FLOAT16", DType::kFloat16},
    {"INT8", DType::kInt8},               {"UINT8", DType::kUInt8},        {"INT16", DType::kInt16},
    {"UINT16", DType::kUInt16},           {"INT32", DType::kInt32},        {"INT64", DType::kInt64},
    {"UINT32", DType::kUInt32},           {"UINT64", DType::kUInt64},      {"BOOL", DType::kBool},
    {"DOUBLE", DType::kFloat64},          {"STRING", DType::kString},      {"DUAL_SUB_INT8", DType::kUnknown},
    {"DUAL_SUB_UINT8", DType::kUnknown},  {"COMPLEX64", DType::kComplex64}, {"COMPLEX128", DType::kComplex128},
    {"QINT8", DType::kUnknown},           {"QINT16", DType::kUnknown},     {"QINT32", DType::kUnknown},
    {"QUINT8", DType::kUnknown},          {"QUINT16", DType::kUnknown},    {"RESOURCE", DType::kUnknown},
    {"STRING_REF", DType::kUnknown},      {"DUAL", DType::kUnknown},       {"VARIANT", DType::kUnknown},
    {"BF16", DType::kBFloat16},           {"INT4", DType::kInt4},          {"UINT1", DType::kUnknown},
    {"INT2", DType::kUnknown},            {"UINT2", DType::kUnknown},
}};

/// The fields of an OpInput; those of an OpOutput have other numbers.
struct TensorFields {
  uint32_t data, size, original_shape, sub_format;
};
constexpr TensorFields kInputFields = {4, 5, 6, 7}, kOutputFields = {5, 6, 7, 8};
enum DumpDataField : uint32_t { kOutput = 3, kInput = 4, kOpName = 6 };

class ContainerReader {
 public:
  explicit ContainerReader(const File& file) : file_(file), window_(file, kWindowBytes) {}

  Result<Container> run() {
    if (file_.size() < kLengthBytes) return container_damage(fmt::format("is cut off: the file has {} bytes", file_.size()));
    std::byte raw[kLengthBytes];
    if (Status status = window_.read(0, raw); !status.ok()) return without_path(status, file_.path());
    uint64_t length;
    std::memcpy(&length, raw, sizeof length);
    if (length > file_.size() - kLengthBytes) {
      return container_damage(
          fmt::format("is cut off or no container: its description should have {} bytes, {} follow", length, file_.size() - kLengthBytes));
    }
    end_ = kLengthBytes + length;
    WireReader in(window_, kLengthBytes, end_);
    WireField field;
    while (in.next(field)) {
      if (field.cut()) break;
      if (field.is(kInput, WireType::kBytes)) inputs_.push_back(tensor(in.inside(field), {Io::kInput, count(inputs_)}, kInputFields));
      if (field.is(kOutput, WireType::kBytes)) outputs_.push_back(tensor(in.inside(field), {Io::kOutput, count(outputs_)}, kOutputFields));
      if (field.is(kOpName, WireType::kBytes)) in.text(field, 4096, out_.op_name);
      if (!status_.ok()) return status_;
      if (inputs_.size() > kMaxSlot || outputs_.size() > kMaxSlot) return container_damage("has more tensors than any kernel");
    }
    if (field.cut() || !in.status().ok()) {
      if (in.status().code() == Code::kIoError || in.status().code() == Code::kInterrupted) return without_path(in.status(), file_.path());
      return container_damage("has a damaged description");
    }
    place();
    return std::move(out_);
  }

 private:
  static uint32_t count(const std::vector<ContainerTensor>& tensors) { return static_cast<uint32_t>(tensors.size()); }

  ContainerTensor tensor(WireReader in, Slot slot, const TensorFields& fields) {
    ContainerTensor out;
    out.slot = slot;
    WireField field;
    while (in.next(field) && !field.cut()) {
      if (field.is(1, WireType::kVarint)) out.type = field.value;
      else if (field.is(2, WireType::kVarint)) out.format = field.value;
      else if (field.is(3, WireType::kBytes)) out.device_shape = shape(in.inside(field)).value_or(Shape());
      else if (field.is(fields.size, WireType::kVarint)) out.bytes = field.value;
      else if (field.is(fields.original_shape, WireType::kBytes)) out.host_shape = shape(in.inside(field));
      else if (field.is(fields.sub_format, WireType::kVarint)) out.sub_format = static_cast<int32_t>(static_cast<uint32_t>(field.value));
      else if (field.is(fields.data, WireType::kBytes) && field.size > 0) out.offset = field.start, out.present = field.size;
    }
    if (field.cut() || !in.status().ok()) fail("has a damaged description");
    return out;
  }

  /// nullopt if a length is unknown to the runtime.
  std::optional<Shape> shape(WireReader in) {
    Shape out;
    bool known = true;
    const auto take = [&](uint64_t length) {
      if (length > INT64_MAX) known = false;
      else out.push_back(static_cast<int64_t>(length));
      if (out.size() > kMostAxes) fail(fmt::format("has a shape of more than {} axes", kMostAxes));
    };
    WireField field;
    while (status_.ok() && in.next(field) && !field.cut()) {
      if (field.is(1, WireType::kVarint)) take(field.value);
      if (!field.is(1, WireType::kBytes)) continue;
      WireReader packed = in.inside(field);
      uint64_t length = 0;
      while (status_.ok() && !packed.done() && packed.number(length)) take(length);
      if (!packed.status().ok()) fail("has a damaged description");
    }
    if (field.cut() || !in.status().ok()) fail("has a damaged description");
    return known ? std::optional(out) : std::nullopt;
  }

  void fail(std::string text) {
    if (status_.ok()) status_ = container_damage(std::move(text));
  }

  /// Inputs, then outputs, one after another behind the description; those that are inside of it are already placed.
  void place() {
    uint64_t at = end_;
    for (std::vector<ContainerTensor>* tensors : {&inputs_, &outputs_}) {
      for (ContainerTensor& tensor : *tensors) {
        if (tensor.present > 0) {
          // The bytes inside count; the size may be missing or say the same.
          if (tensor.bytes == 0) tensor.bytes = tensor.present;
          tensor.present = std::min(tensor.present, tensor.bytes);
        } else {
          tensor.offset = at;
          tensor.present = std::min(tensor.bytes, file_.size() - at);
          at += tensor.present;
        }
        out_.tensors.push_back(std::move(tensor));
      }
    }
  }

  const File& file_;
  FileWindow window_;
  uint64_t end_ = 0;
  std::vector<ContainerTensor> inputs_, outputs_;
  Container out_;
  Status status_;
};

}  // namespace

Result<Container> read_container(const File& file) { return ContainerReader(file).run(); }

DType container_dtype(uint64_t type) { return type < kTypes.size() ? kTypes[type].second : DType::kUnknown; }

std::string container_type_name(uint64_t type) {
  return type < kTypes.size() ? std::string(kTypes[type].first) : fmt::format("type {}", type);
}

std::string_view container_format_name(uint64_t format) {
  if (const std::string_view name = device_format_name(format); !name.empty()) return name;
  if (format == 255) return "MAX";
  // The names of a session last as long as the program; few numbers are unknown.
  if (format > 999) return "unknown format";
  static std::mutex mutex;
  static std::set<std::string> names;
  std::lock_guard lock(mutex);
  return *names.insert(fmt::format("format {}", format)).first;
}

}  // namespace msdbg::dump
