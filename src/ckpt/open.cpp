// Detects the kind of a file and opens it.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>

#include "ckpt/checkpoint_session.h"
#include "msdbg/log.h"

namespace msdbg {
namespace {

using namespace ckpt;

enum class Kind : uint8_t { kUnknown, kEmpty, kRecords, kEncrypted, kSafetensors, kNpy, kStrategy, kZip };

constexpr size_t kHead = 16;

Kind kind_of(std::span<const std::byte> head, uint64_t size) {
  const auto at = [&](size_t i) { return i < head.size() ? std::to_integer<unsigned>(head[i]) : 0u; };
  if (head.empty()) return Kind::kEmpty;
  if (has_cipher_magic(head)) return Kind::kEncrypted;
  if (head.size() >= 6 && std::memcmp(head.data(), "\x93NUMPY", 6) == 0) return Kind::kNpy;
  if (head.size() >= 4 && std::memcmp(head.data(), "PK\3\4", 4) == 0) return Kind::kZip;
  if (head.size() >= 9 && at(8) == '{' && little_endian(head.first(8)) < (uint64_t{1} << 40)) return Kind::kSafetensors;
  if (at(0) == 0x0A) {
    // The record's length, then field 1 of the parameter.
    size_t i = 1;
    while (i < 11 && at(i) >= 0x80) ++i;
    if (at(i + 1) == 0x0A || size <= i + 1) return Kind::kRecords;
  }
  if (at(0) == 0x08 && size > 4) return Kind::kStrategy;
  return Kind::kUnknown;
}

/// Adds the file name once.
Status named(const std::string& path, const Status& status) {
  if (status.message().starts_with(path)) return status;
  return Status(status.code(), fmt::format("{}: {}", path, status.message()));
}

Status other_kind(const std::string& path, Kind kind, std::span<const std::byte> head) {
  const auto refuse = [&](std::string_view what) { return Status(Code::kUnsupported, fmt::format("{}: {}", path, what)); };
  switch (kind) {
    case Kind::kEmpty:
      return Status(Code::kCorrupt,
                    fmt::format("{}: is empty (0 bytes); the program that saved it may have been stopped, take an earlier one", path));
    case Kind::kNpy: return refuse("is an npy file, not a checkpoint");
    case Kind::kZip: return refuse("is a zip archive, as PyTorch's checkpoints are; save it as safetensors");
    case Kind::kStrategy: return refuse("begins like a parallel strategy or a graph file, not like a checkpoint");
    default: break;
  }
  std::string bytes;
  for (const std::byte byte : head.first(std::min<size_t>(head.size(), 4)))
    bytes += fmt::format("{}{:02x}", bytes.empty() ? "" : " ", std::to_integer<int>(byte));
  return refuse(fmt::format("is neither a .ckpt nor a safetensors file (offset 0: {})", bytes));
}

Result<std::vector<std::byte>> head_of(const File& file) {
  std::vector<std::byte> head(std::min<uint64_t>(kHead, file.size()));
  if (const Status status = file.read(0, head); !status.ok()) return status;
  return head;
}

bool by_ending(const std::string& path) { return path.ends_with(".ckpt") || path.ends_with(".safetensors"); }

/// `key` is "" for an unencrypted file.
Result<std::unique_ptr<Checkpoint>> open_with(const std::string& path, const std::shared_ptr<File>& file, Kind kind, const std::string& key,
                                              CipherMode mode) {
  Contents contents;
  contents.file = file;
  contents.facts.file_bytes = file->size();
  contents.facts.format = kind == Kind::kSafetensors ? "safetensors" : "ckpt";
  if (kind != Kind::kEncrypted) {
    const Status status = kind == Kind::kSafetensors ? read_safetensors(contents) : read_records(contents);
    if (!status.ok()) return named(path, status);
    if (!key.empty()) contents.problem(Severity::kInfo, "the key was not needed: the file is not encrypted");
    return std::unique_ptr<Checkpoint>(std::make_unique<CheckpointSession>(path, std::move(contents)));
  }
  if (const Status status = decrypt(contents, key, mode); !status.ok()) return named(path, status);
  const auto head = head_of(*contents.file);
  if (!head) return head.status();
  const Status status =
      kind_of(*head, contents.file->size()) == Kind::kRecords ? read_records(contents) : Status(Code::kCorrupt, "no record at offset 0");
  if (status.code() == Code::kCorrupt) {
    return Status(Code::kCorrupt, fmt::format("{}: what {} gives with this key is no checkpoint: the key or --dec-mode is wrong, or the "
                                              "file is damaged ({} of the decrypted data)",
                                              path, contents.facts.cipher, status.message()));
  }
  if (!status.ok()) return named(path, status);
  contents.problem(Severity::kInfo, fmt::format("encrypted with {}; offsets are those of the decrypted data", contents.facts.cipher));
  return std::unique_ptr<Checkpoint>(std::make_unique<CheckpointSession>(path, std::move(contents)));
}

}  // namespace

bool is_checkpoint(const std::string& path) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) return false;
  if (by_ending(path)) return true;
  const auto file = File::open(path);
  if (!file) return false;
  const auto head = head_of(*file);
  if (!head) return false;
  const Kind kind = kind_of(*head, file->size());
  return kind == Kind::kRecords || kind == Kind::kEncrypted || kind == Kind::kSafetensors;
}

Result<std::unique_ptr<Checkpoint>> open_checkpoint(const std::string& path, const CheckpointOptions& options) {
  auto opened_file = File::open(path);
  if (!opened_file) return opened_file.status();
  const auto file = std::make_shared<File>(std::move(*opened_file));
  const auto head = head_of(*file);
  if (!head) return head.status();
  const Kind kind = kind_of(*head, file->size());
  if (kind != Kind::kRecords && kind != Kind::kEncrypted && kind != Kind::kSafetensors) return other_kind(path, kind, *head);
  const Stopwatch watch;
  auto opened = open_with(path, file, kind, options.key, options.mode);
  if (opened && log_wanted(LogLevel::kInfo)) {
    log(LogLevel::kInfo, fmt::format("opened {} in {}: {}", path, format_duration(watch.seconds()), format_bytes(file->size())));
  }
  if (opened || options.other_key.empty() || opened.status().code() != Code::kCorrupt) return opened;
  auto other = open_with(path, file, kind, options.other_key, options.mode);
  return other ? std::move(other) : std::move(opened);
}

}  // namespace msdbg
