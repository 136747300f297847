// What the readers of the two formats extract from a file: the location of each parameter's bytes, and its problems.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "msdbg/checkpoint.h"
#include "msdbg/file.h"

namespace msdbg::ckpt {

struct Extent {
  uint64_t offset = 0, bytes = 0;
};

struct Entry {
  std::string name;
  std::string type_text;          ///< as spelled in the file
  DType dtype = DType::kUnknown;
  Shape shape;
  uint64_t count = 0;
  uint64_t bytes = 0;             ///< of all extents
  std::vector<Extent> extents;    ///< in order; large parameters come in several pieces
  std::string note;
  Status problem;
};

struct Contents {
  std::shared_ptr<File> file;     ///< the file that the extents refer to; for an encrypted checkpoint, the decrypted copy
  std::vector<Entry> entries;     ///< in file order; names are unique
  CheckpointFacts facts;

  /// A later entry replaces an earlier one with the same name; the facts mention that.
  void add(Entry entry);
  void problem(Severity severity, std::string message);

 private:
  std::unordered_map<std::string, size_t> by_name_;
};

/// Counts elements and compares them with the available bytes; sets `problem` if they do not fit or have no statistics.
void check_type_and_size(Entry& entry);

/// Error: not a .ckpt file, kIoError, kInterrupted. Damage after the first parameter becomes a problem.
Status read_records(Contents& contents);
/// The same for safetensors.
Status read_safetensors(Contents& contents);
/// Replaces contents.file by its decrypted copy. Error: kCorrupt if the key does not decrypt the first block.
Status decrypt(Contents& contents, const std::string& key, CipherMode asked);

/// Removes a CRC trailer from `end` and compares it with the bytes before it; stores the outcome in the facts.
Status strip_crc(Contents& contents, uint64_t& end);

/// Little-endian numbers of the formats.
inline uint64_t little_endian(std::span<const std::byte> bytes) {
  uint64_t value = 0;
  for (size_t i = bytes.size(); i-- > 0;) value = value << 8 | std::to_integer<uint64_t>(bytes[i]);
  return value;
}

/// True if `head` starts like an encrypted file.
bool has_cipher_magic(std::span<const std::byte> head);

}  // namespace msdbg::ckpt
