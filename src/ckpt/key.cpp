// Parses keys and cipher names.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "msdbg/checkpoint.h"
#include "msdbg/file.h"

namespace msdbg {
namespace {

constexpr uint64_t kMostKeyFile = 4096;

int digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  const char lower = static_cast<char>(c | 0x20);
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

bool key_length(size_t bytes) { return bytes == 16 || bytes == 24 || bytes == 32; }

Status key_from(std::string_view text, std::string_view source, CheckpointOptions& into) {
  std::string_view digits = text;
  while (!digits.empty() && (digits.back() == '\n' || digits.back() == '\r')) digits.remove_suffix(1);
  into.key = key_length(text.size()) ? text : key_length(digits.size()) ? digits : "";
  into.other_key.clear();
  if (digits.starts_with("0x") || digits.starts_with("0X")) digits.remove_prefix(2);
  const bool hex = std::all_of(digits.begin(), digits.end(), [](char c) { return digit(c) >= 0; });
  if (hex && digits.size() % 2 == 0 && key_length(digits.size() / 2)) {
    into.other_key = std::exchange(into.key, "");
    for (size_t i = 0; i < digits.size(); i += 2) into.key += static_cast<char>(digit(digits[i]) << 4 | digit(digits[i + 1]));
  }
  if (!into.key.empty()) return {};
  return Status(
      Code::kInvalidArgument,
      fmt::format("the key {} has {} characters; give 32, 48 or 64 hexadecimal digits, or 16, 24 or 32 bytes", source, text.size()));
}

}  // namespace

Status read_checkpoint_key(std::string_view text, CheckpointOptions* into) {
  if (text.starts_with("env:")) {
    const std::string name(text.substr(4));
    const char* value = std::getenv(name.c_str());
    if (value == nullptr || *value == '\0')
      return Status(Code::kInvalidArgument, fmt::format("the environment has no variable '{}' to take the key from", name));
    return key_from(value, fmt::format("of environment variable {}", name), *into);
  }
  if (!text.starts_with("@")) return key_from(text, "given", *into);
  const std::string path(text.substr(1));
  const auto content = read_text(path, kMostKeyFile);
  if (content) return key_from(*content, "of " + path, *into);
  const bool long_text = content.status().code() == Code::kCorrupt;
  return Status(long_text ? Code::kInvalidArgument : content.status().code(), "key file " + content.status().message());
}

Result<CipherMode> parse_cipher_mode(std::string_view text) {
  const std::string lower = to_lower(text);
  const std::string_view bare = lower.starts_with("aes-") ? std::string_view(lower).substr(4) : std::string_view(lower);
  if (bare == "auto") return CipherMode::kAuto;
  if (bare == "gcm") return CipherMode::kGcm;
  if (bare == "cbc") return CipherMode::kCbc;
  if (bare == "sm4-cbc" || bare == "sm4") return CipherMode::kSm4Cbc;
  return Status(Code::kInvalidArgument, fmt::format("cipher mode '{}' is not known; use auto, gcm, cbc or sm4-cbc", text));
}

std::string_view cipher_mode_name(CipherMode mode) {
  switch (mode) {
    case CipherMode::kAuto: return "auto";
    case CipherMode::kGcm: return "AES-GCM";
    case CipherMode::kCbc: return "AES-CBC";
    case CipherMode::kSm4Cbc: return "SM4-CBC";
  }
  return "";
}

}  // namespace msdbg
