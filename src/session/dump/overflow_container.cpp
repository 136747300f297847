// The overflow detector's record in a container: one output with a block of 64-bit numbers. docs/ascend.md.
#include <fmt/format.h>

#include <array>
#include <cstring>

#include "msdbg/file.h"
#include "session/dump/container.h"
#include "session/dump/metadata.h"

namespace msdbg::dump {
namespace {

/// Where the numbers of a unit are in the block: model, stream, task, type, start and base one after another; and its status.
struct OverflowUnit {
  uint64_t numbers, status;
  std::string_view name;
};
constexpr OverflowUnit kUnits[] = {{0, 512, "DHA Atomic Add"}, {128, 768, "L2 Atomic Add"}, {256, 1024 + 16, "AI Core"}};
constexpr uint64_t kStreamAt = 8, kTaskAt = 16;
/// The numbers of all three units; drivers differ in what follows.
constexpr uint64_t kLeastBlock = 512;

}  // namespace

Result<std::vector<OverflowEntry>> read_overflow_container(const std::string& path) {
  const auto failed = [&](Code code, std::string_view why) { return Status(code, fmt::format("{}: {}", path, why)); };
  Result<File> file = File::open(path);
  if (!file) return file.status();
  const Result<Container> container = read_container(*file);
  if (!container) return failed(container.status().code(), container.status().message());
  std::vector<OverflowEntry> flagged;
  bool recorded = false;
  for (const ContainerTensor& tensor : container->tensors) {
    if (tensor.slot.io != Io::kOutput) continue;
    std::array<std::byte, 2048> block{};
    const uint64_t bytes = std::min<uint64_t>(block.size(), tensor.present);
    if (tensor.present < tensor.bytes || bytes < kLeastBlock) {
      return failed(Code::kCorrupt, fmt::format("the record has {} bytes, at least {} are needed", tensor.present, kLeastBlock));
    }
    if (Status status = file->read(tensor.offset, std::span(block).first(bytes)); !status.ok()) return status;
    recorded = true;
    const auto number = [&](uint64_t at) {
      uint64_t value = 0;
      if (at + sizeof value <= bytes) std::memcpy(&value, block.data() + at, sizeof value);
      return static_cast<int64_t>(value);
    };
    // Units that raised no flag have zeros.
    for (const OverflowUnit& unit : kUnits) {
      const int64_t task = number(unit.numbers + kTaskAt), stream = number(unit.numbers + kStreamAt);
      if (task != 0 || stream != 0 || number(unit.status) != 0) flagged.push_back({task, stream, std::string(unit.name)});
    }
  }
  if (!recorded) return failed(Code::kCorrupt, "the container has no output with a record");
  return flagged;
}

}  // namespace msdbg::dump
