// An encrypted checkpoint. With a first byte of 0 to 2, the following bytes are the file, read as GCM, CBC or SM4. With 3 to 6 they
// are the plain text, in blocks after two length bytes, and are encrypted here: damaged cipher text rarely survives its padding or
// its tag.
#include <openssl/evp.h>

#include "fuzz/checkpoint_walk.h"

using namespace msdbg;

namespace {

constexpr std::string_view kKey = "0123456789abcdef", kIv = "abcdefghijklmnop";

const unsigned char* raw(std::string_view text) { return reinterpret_cast<const unsigned char*>(text.data()); }
unsigned char* raw(std::string& text) { return reinterpret_cast<unsigned char*>(text.data()); }

std::string number(uint64_t value) {
  std::string out;
  for (int i = 0; i < 4; ++i) out += static_cast<char>(value >> 8 * i);
  return out;
}

/// `tag` receives the tag of GCM.
std::string encrypt(std::string_view plain, const EVP_CIPHER* cipher, bool gcm, std::string* tag) {
  EVP_CIPHER_CTX* context = EVP_CIPHER_CTX_new();
  std::string out(plain.size() + 32, '\0');
  int made = 0, last = 0;
  EVP_EncryptInit_ex(context, cipher, nullptr, nullptr, nullptr);
  if (gcm) EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_GCM_SET_IVLEN, static_cast<int>(kIv.size()), nullptr);
  EVP_EncryptInit_ex(context, nullptr, nullptr, raw(kKey), raw(kIv));
  EVP_EncryptUpdate(context, raw(out), &made, raw(plain), static_cast<int>(plain.size()));
  EVP_EncryptFinal_ex(context, raw(out) + made, &last);
  out.resize(static_cast<size_t>(made + last));
  tag->assign(16, '\0');
  if (gcm) EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_GCM_GET_TAG, 16, tag->data());
  EVP_CIPHER_CTX_free(context);
  return out;
}

std::string block(std::string_view plain, CipherMode mode, bool tagged) {
  const bool gcm = mode == CipherMode::kGcm;
  std::string tag;
  const std::string cipher = encrypt(plain,
                                     gcm                        ? EVP_aes_128_gcm()
                                     : mode == CipherMode::kCbc ? EVP_aes_128_cbc()
                                                                : EVP_sm4_cbc(),
                                     gcm, &tag);
  const uint64_t magic = gcm ? 0x7F3A5ED8 : mode == CipherMode::kCbc ? 0x7F3A5ED9 : 0x7F3A5EDA;
  return number(magic) + (tagged ? tag : "") + number(4 + kIv.size() + 4 + cipher.size()) + number(kIv.size()) + std::string(kIv) +
         number(cipher.size()) + cipher;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr CipherMode kModes[] = {CipherMode::kGcm, CipherMode::kCbc, CipherMode::kSm4Cbc};
  fuzz::Input input(data, size);
  const size_t choice = input.below(7);
  CheckpointOptions options;
  options.key = kKey;
  std::string file;
  if (choice < 3) {
    options.mode = kModes[choice];
    file = input.rest();
  } else {
    const CipherMode mode = kModes[std::min<size_t>(choice - 3, 2)];
    while (!input.empty()) file += block(input.chunk(), mode, choice == 3);
  }
  fuzz::walk_checkpoint(file, options);
  return 0;
}
