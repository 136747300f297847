// Encrypted checkpoints: blocks of AES-GCM, AES-CBC or SM4-CBC. The only file that uses OpenSSL.
//
// The plain text goes to an unlinked temporary file: a parameter may start in one block and end in another, and is read in any
// order afterwards.
#include <fmt/format.h>
#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <vector>

#include "ckpt/contents.h"

namespace msdbg::ckpt {
namespace {

constexpr uint32_t kMagicGcm = 0x7F3A5ED8, kMagicCbc = 0x7F3A5ED9, kMagicSm4 = 0x7F3A5EDA;
constexpr size_t kTagBytes = 16, kIvBytes = 16;
// 12 is GCM's usual length: 2.7.1 and writers up to 1.6 store 16 bytes and use the first 12; others may use all 16. The tag shows
// which.
constexpr size_t kGcmIvBytes[] = {12, kIvBytes};
constexpr size_t kStep = 1 << 20;

/// The header before the cipher text of a block.
struct BlockHead {
  uint64_t offset = 0;
  CipherMode mode = CipherMode::kGcm;
  bool tagged = false;
  std::array<std::byte, kTagBytes> tag{};
  std::array<std::byte, kIvBytes> iv{};
  uint64_t cipher_begin = 0, cipher_bytes = 0;
};

Status at_offset(const File& file, uint64_t offset, std::string_view text) {
  return Status(Code::kCorrupt, fmt::format("{}: encrypted block at offset {}: {}", file.path(), offset, text));
}

Result<BlockHead> read_head(const File& file, uint64_t offset, CipherMode asked) {
  std::array<std::byte, 4 + kTagBytes + 4 + 4 + kIvBytes + 4> bytes{};
  const uint64_t there = std::min<uint64_t>(bytes.size(), file.size() - offset);
  if (const Status status = file.read(offset, std::span(bytes.data(), there)); !status.ok()) return status;
  const auto number = [&](size_t at) { return little_endian(std::span(bytes).subspan(at, 4)); };
  BlockHead head;
  head.offset = offset;
  const uint64_t magic = number(0);
  head.mode = magic == kMagicCbc ? CipherMode::kCbc : magic == kMagicSm4 ? CipherMode::kSm4Cbc : CipherMode::kGcm;
  if (magic != kMagicGcm && head.mode == CipherMode::kGcm) {
    return at_offset(
        file, offset,
        "it does not begin like a block. Unencrypted records (map, huge or random-state parameters) between the blocks "
        "cannot be read; save the checkpoint without encryption");
  }
  // Writers up to 1.6 stored no tag, and marked CBC the same as GCM.
  constexpr size_t kOldHead = 4 + 4 + 4 + kIvBytes + 4;
  const bool old_form = number(8) == kIvBytes && number(4) == 4 + kIvBytes + 4 + number(kOldHead - 4);
  head.tagged = magic == kMagicGcm && !old_form;
  if (asked != CipherMode::kAuto) head.mode = asked;
  const size_t shift = head.tagged ? kTagBytes : 0;
  const size_t head_bytes = kOldHead + shift;
  if (there < head_bytes) return at_offset(file, offset, fmt::format("the file is cut off: {} bytes are there", there));
  if (number(shift + 8) != kIvBytes)
    return at_offset(file, offset,
                     fmt::format("an initialisation vector of {} bytes, where 16 are expected; the file is damaged", number(shift + 8)));
  std::copy_n(bytes.begin() + 4, kTagBytes, head.tag.begin());
  std::copy_n(bytes.begin() + static_cast<ptrdiff_t>(shift) + 12, kIvBytes, head.iv.begin());
  head.cipher_begin = offset + head_bytes;
  head.cipher_bytes = number(head_bytes - 4);
  if (head.cipher_bytes > file.size() - head.cipher_begin) {
    return at_offset(file, offset,
                     fmt::format("{} bytes are promised, {} are there: the file is cut off or damaged", head.cipher_bytes,
                                 file.size() - head.cipher_begin));
  }
  return head;
}

const EVP_CIPHER* cipher_of(CipherMode mode, size_t key_bytes) {
  if (mode == CipherMode::kSm4Cbc) return key_bytes == 16 ? EVP_sm4_cbc() : nullptr;
  const bool gcm = mode == CipherMode::kGcm;
  switch (key_bytes) {
    case 16: return gcm ? EVP_aes_128_gcm() : EVP_aes_128_cbc();
    case 24: return gcm ? EVP_aes_192_gcm() : EVP_aes_192_cbc();
    case 32: return gcm ? EVP_aes_256_gcm() : EVP_aes_256_cbc();
    default: return nullptr;
  }
}

const unsigned char* raw(const std::byte* bytes) { return reinterpret_cast<const unsigned char*>(bytes); }
unsigned char* raw(std::byte* bytes) { return reinterpret_cast<unsigned char*>(bytes); }

/// Decrypts one block and appends it to `out`; on an error `out` is unchanged.
Status decrypt_block(const File& file, const BlockHead& head, const std::string& key, size_t gcm_iv_bytes, File& out) {
  const uint64_t kept = out.size();
  const auto fail = [&](Status status) {
    const Status dropped = out.truncate(kept);
    return dropped.ok() ? status : dropped;
  };
  const EVP_CIPHER* cipher = cipher_of(head.mode, key.size());
  if (cipher == nullptr) {
    return Status(Code::kInvalidArgument,
                  fmt::format("{}: a key of {} bytes is not for {}; give {}", file.path(), key.size(), cipher_mode_name(head.mode),
                              head.mode == CipherMode::kSm4Cbc ? "16" : "16, 24 or 32"));
  }
  const std::unique_ptr<EVP_CIPHER_CTX, decltype(&EVP_CIPHER_CTX_free)> context(EVP_CIPHER_CTX_new(), EVP_CIPHER_CTX_free);
  const bool gcm = head.mode == CipherMode::kGcm;
  bool good = context && EVP_DecryptInit_ex(context.get(), cipher, nullptr, nullptr, nullptr) == 1;
  if (good && gcm) good = EVP_CIPHER_CTX_ctrl(context.get(), EVP_CTRL_GCM_SET_IVLEN, static_cast<int>(gcm_iv_bytes), nullptr) == 1;
  good = good &&
         EVP_DecryptInit_ex(context.get(), nullptr, nullptr, reinterpret_cast<const unsigned char*>(key.data()), raw(head.iv.data())) == 1;
  if (!good) return Status(Code::kInternal, fmt::format("{}: OpenSSL refuses {}", file.path(), cipher_mode_name(head.mode)));

  // No larger than the block: a file may contain many small ones.
  std::vector<std::byte> in(std::min<uint64_t>(kStep, head.cipher_bytes)), plain(in.size() + EVP_MAX_BLOCK_LENGTH);
  int made = 0;
  for (uint64_t done = 0; done < head.cipher_bytes; done += kStep) {
    if (interrupt_requested()) return fail(Status(Code::kInterrupted, fmt::format("{}: interrupted while it was decrypted", file.path())));
    const std::span part(in.data(), std::min<uint64_t>(kStep, head.cipher_bytes - done));
    if (const Status status = file.read(head.cipher_begin + done, part); !status.ok()) return fail(status);
    if (EVP_DecryptUpdate(context.get(), raw(plain.data()), &made, raw(part.data()), static_cast<int>(part.size())) != 1)
      return fail(at_offset(file, head.offset, "cannot be decrypted; the file is damaged"));
    if (const Status status = out.append(std::span(plain.data(), static_cast<size_t>(made))); !status.ok()) return fail(status);
  }
  if (gcm && !head.tagged) return {};  // nothing to compare the result with
  std::array<std::byte, kTagBytes> tag = head.tag;
  if (gcm) EVP_CIPHER_CTX_ctrl(context.get(), EVP_CTRL_GCM_SET_TAG, kTagBytes, tag.data());
  if (EVP_DecryptFinal_ex(context.get(), raw(plain.data()), &made) != 1) {
    return fail(at_offset(file, head.offset,
                          fmt::format("{} fails: the key is wrong or the block damaged; compare --key{} with what the training used",
                                      gcm ? "its authentication" : "its padding", gcm ? "" : " and --dec-mode")));
  }
  const Status status = out.append(std::span(plain.data(), static_cast<size_t>(made)));
  return status.ok() ? status : fail(status);
}

/// Tries lengths of the initialisation vector until the tag matches, starting with `iv_bytes`; stores the right one there.
Status decrypt_block(const File& file, const BlockHead& head, const std::string& key, size_t* iv_bytes, File& out) {
  const Status first = decrypt_block(file, head, key, *iv_bytes, out);
  if (first.ok() || first.code() != Code::kCorrupt || !head.tagged || head.mode != CipherMode::kGcm) return first;
  const size_t other = *iv_bytes == kGcmIvBytes[0] ? kGcmIvBytes[1] : kGcmIvBytes[0];
  const Status second = decrypt_block(file, head, key, other, out);
  if (!second.ok()) return second.code() == Code::kCorrupt ? first : second;
  *iv_bytes = other;
  return {};
}

}  // namespace

bool has_cipher_magic(std::span<const std::byte> head) {
  if (head.size() < 4) return false;
  const uint64_t magic = little_endian(head.first(4));
  return magic == kMagicGcm || magic == kMagicCbc || magic == kMagicSm4;
}

Status decrypt(Contents& contents, const std::string& key, CipherMode asked) {
  const std::shared_ptr<File> cipher = contents.file;
  const std::string& path = cipher->path();
  auto first = read_head(*cipher, 0, asked);
  if (!first) return first.status();
  const std::string mode(cipher_mode_name(first->mode));
  if (key.empty()) {
    return Status(
        Code::kInvalidArgument,
        fmt::format(
            "{}: is encrypted ({}); give the key with --key HEX, @FILE or env:NAME (in Lua: msdbg.checkpoint(path, {{ key = ... }}))", path,
            mode));
  }
  contents.facts.cipher = mode;
  auto plain = File::temporary(path);
  if (!plain) return plain.status();
  uint64_t offset = 0;
  size_t iv_bytes = kGcmIvBytes[0];
  for (size_t blocks = 0; offset < cipher->size(); ++blocks) {
    const auto head = read_head(*cipher, offset, asked);
    const Status status = head ? decrypt_block(*cipher, *head, key, &iv_bytes, *plain) : head.status();
    if (status.ok()) {
      offset = head->cipher_begin + head->cipher_bytes;
      continue;
    }
    // If the first block was decrypted, the key was right; this block and later ones may still be readable.
    if (blocks == 0 || status.code() != Code::kCorrupt) return status;
    contents.facts.problems.push_back({Severity::kError, path, without_path(status, path).message()});
    break;
  }
  contents.file = std::make_shared<File>(std::move(*plain));
  return {};
}

}  // namespace msdbg::ckpt
