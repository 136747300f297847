// The trailer of .ckpt files that were saved with crc_check: "crc_num" and ten bytes, big-endian.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "ckpt/contents.h"
#include "ckpt/crc.h"

namespace msdbg::ckpt {
namespace {

constexpr std::string_view kMark = "crc_num";
constexpr size_t kTrailer = 17;
constexpr size_t kCrcBlock = 1 << 20;

}  // namespace

Status strip_crc(Contents& contents, uint64_t& end) {
  const File& file = *contents.file;
  if (end < kTrailer) return {};
  std::vector<std::byte> block(kTrailer);
  if (const Status status = file.read(end - kTrailer, block); !status.ok()) return status;
  if (std::memcmp(block.data(), kMark.data(), kMark.size()) != 0) return {};
  end -= kTrailer;
  uint64_t stored = 0;
  for (size_t i = kMark.size(); i < kTrailer; ++i) stored = stored << 8 | std::to_integer<uint64_t>(block[i]);
  Crc32 crc;
  block.resize(kCrcBlock);
  for (uint64_t at = 0; at < end; at += kCrcBlock) {
    if (interrupt_requested()) return Status(Code::kInterrupted, fmt::format("{}: interrupted while its CRC was computed", file.path()));
    const std::span part(block.data(), std::min<uint64_t>(kCrcBlock, end - at));
    if (const Status status = file.read(at, part); !status.ok()) return status;
    crc.update(part);
  }
  contents.facts.crc = crc.value() == stored ? CrcState::kMatches : CrcState::kDiffers;
  if (contents.facts.crc == CrcState::kDiffers) {
    contents.problem(Severity::kError,
                     fmt::format("CRC mismatch: the trailer at offset {} says {:08x}, the {} bytes before it give {:08x}; some value is "
                                 "damaged, take another copy",
                                 end, stored, end, crc.value()));
  }
  return {};
}

}  // namespace msdbg::ckpt
