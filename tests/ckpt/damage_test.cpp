// Damaged files: an error with the position, or the other parameters with a note; never a crash, never a hang.
#include <random>

#include "ckpt/ckpt_support.h"

namespace msdbg::test {
namespace {

using Damage = CheckpointTest;

TEST_F(Damage, AFileCutInHalfServesTheFirstHalf) {
  const std::string whole = read_bytes(lenet("ok", 0, ".ckpt"));
  const auto checkpoint = open(write(whole.substr(0, whole.size() / 2)));
  EXPECT_CONTAINS(problems(*checkpoint), "cut off: the record at offset");
  size_t sound = 0, broken = 0;
  for (const TensorId& id : checkpoint->tensors({})) (checkpoint->describe(id)->problem.ok() ? sound : broken) += 1;
  EXPECT_GT(sound, 0u);
  EXPECT_EQ(broken, 1u);
}

TEST_F(Damage, WhatLiesBehindACutIsNotCalledLost) {
  const std::string whole = read_bytes(lenet("ok", 0, ".ckpt"));
  const auto full = open(write(whole, "full.ckpt")), cut = open(write(whole.substr(0, whole.size() / 2), "cut.ckpt"));
  EXPECT_TRUE(cut->facts().breaks_off);
  EXPECT_FALSE(full->facts().breaks_off);
  for (const bool cut_first : {false, true}) {
    const ParameterSource a{cut_first ? cut.get() : full.get(), 0, 0, "a"}, b{cut_first ? full.get() : cut.get(), 0, 0, "b"};
    const auto diff = diff_parameters(a, b);
    ASSERT_TRUE(diff.ok()) << diff.status().message();
    EXPECT_EQ(diff->count(ChangeKind::kLost) + diff->count(ChangeKind::kAdded), 0u);
    EXPECT_EQ(diff->count(ChangeKind::kUnchanged) + diff->count(ChangeKind::kNotCompared), 8u);
    EXPECT_GT(diff->count(ChangeKind::kNotCompared), 1u);
    EXPECT_FALSE(diff->complete());
  }
}

TEST_F(Damage, ACutSafetensorsFileRefusesWhatLiesBehindItsEnd) {
  const std::string whole = read_bytes(lenet("ok", 0, ".safetensors"));
  const auto checkpoint = open(write(whole.substr(0, whole.size() - 100), "a.safetensors"));
  EXPECT_CONTAINS(problems(*checkpoint), "reach past the end of the file");
  EXPECT_CONTAINS(failure(whole.substr(0, 40), "b.safetensors"), "cut off");
}

TEST_F(Damage, AWrongKeyIsToldFromADamagedFileByWordsThatNameBoth) {
  CheckpointOptions options;
  ASSERT_TRUE(read_checkpoint_key("0123456789ABCDE!", &options).ok());
  for (const char* file : {"gcm16.ckpt", "sm4.ckpt", "cbc.ckpt"}) {
    const auto opened = open_checkpoint(corner(file), options);
    ASSERT_FALSE(opened.ok()) << file;
    EXPECT_EQ(opened.status().code(), Code::kCorrupt);
    EXPECT_CONTAINS(opened.status().message(), file);
    EXPECT_CONTAINS(opened.status().message(), "key");
  }
  const auto without = open_checkpoint(corner("gcm.ckpt"));
  EXPECT_EQ(without.status().code(), Code::kInvalidArgument);
  EXPECT_CONTAINS(without.status().message(), "--key");
}

TEST_F(Damage, AFlippedBitOfAValueIsFoundByTheCrc) {
  std::string bytes = read_bytes(corner("crc.ckpt"));
  bytes[bytes.size() - 20] ^= 1;  // inside the last value
  const auto checkpoint = open(write(bytes));
  EXPECT_EQ(checkpoint->facts().crc, CrcState::kDiffers);
  EXPECT_CONTAINS(problems(*checkpoint), "CRC mismatch: the trailer at offset 285");
  EXPECT_CONTAINS(info(*checkpoint, "table").note, "CRC does not match");
  std::string tensors = read_bytes(corner("crc.safetensors"));
  tensors.back() ^= 1;
  EXPECT_EQ(open(write(tensors, "b.safetensors"))->facts().crc, CrcState::kDiffers);
}

TEST_F(Damage, LengthsThatNoFileCanHoldAreRefused) {
  const std::string huge = "\x0A\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x7F";
  EXPECT_CONTAINS(failure(huge + "\x0A\x01w"), "cut off");
  const auto after_good = open(write(floats("w", {1}) + huge));
  EXPECT_EQ(values(*after_good, "w"), std::vector<double>{1});
  EXPECT_CONTAINS(problems(*after_good), "promises 9223372036854775807 bytes");
  const auto shapes = open(write(floats("w", {1}) + record("big", "Float32", {INT64_MAX, 8}, "1234") +
                                 record("minus", "Float32", {-2}, "1234") + record("short", "Float32", {3}, "1234")));
  EXPECT_CONTAINS(info(*shapes, "big").problem.message(), "no file can hold");
  EXPECT_CONTAINS(info(*shapes, "minus").problem.message(), "no file can hold");
  EXPECT_CONTAINS(info(*shapes, "short").problem.message(), "takes 12 bytes, but 4 are stored");
  EXPECT_CONTAINS(failure(std::string("\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x7F{\"a\":1}", 15), "c.safetensors"), "neither");
}

std::string safetensors(const std::string& header, size_t data) {
  std::string out(8, '\0');
  const uint64_t size = header.size();
  std::memcpy(out.data(), &size, 8);
  return out + header + std::string(data, '\0');
}

TEST_F(Damage, SafetensorsOffsetsThatOverlapOrDoNotFitAreRefused) {
  const auto checkpoint = open(write(safetensors(
      R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"F32","shape":[2],"data_offsets":[4,12]},)"
      R"("c":{"dtype":"F32","shape":[1],"data_offsets":[12,99]},"d":{"dtype":"F32","shape":[3],"data_offsets":[12,16]},)"
      R"("e":{"dtype":"F32","shape":[-1],"data_offsets":[16,20]},"f":7,"g":{"dtype":"F32","shape":[1],"data_offsets":[20,16]}})",
      20)));
  EXPECT_TRUE(info(*checkpoint, "a").problem.ok());
  EXPECT_CONTAINS(info(*checkpoint, "b").problem.message(), "overlap those of 'a'");
  EXPECT_CONTAINS(info(*checkpoint, "c").problem.message(), "reach past the end");
  EXPECT_CONTAINS(info(*checkpoint, "d").problem.message(), "takes 12 bytes, but 4");
  EXPECT_CONTAINS(info(*checkpoint, "e").problem.message(), "not a length");
  EXPECT_CONTAINS(info(*checkpoint, "f").problem.message(), "lacks dtype");
  EXPECT_CONTAINS(info(*checkpoint, "g").problem.message(), "backwards");
  EXPECT_CONTAINS(problems(*open(write(safetensors(
                      R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})", 1)))),
                  "stored twice");
}

TEST_F(Damage, OtherFilesAreNamed) {
  EXPECT_CONTAINS(failure(""), "empty");
  EXPECT_CONTAINS(failure("\x93NUMPY\x01"), "npy");
  EXPECT_CONTAINS(failure("PK\x03\x04 and more"), "safetensors");
  EXPECT_CONTAINS(failure("plain words"), "neither a .ckpt nor a safetensors file (offset 0: 70 6c 61 69)");
  EXPECT_EQ(open_checkpoint(dir_.file("none.ckpt")).status().code(), Code::kNotFound);
}

// Reads everything, like a check.
void read_all(const std::string& path) {
  CheckpointOptions options;
  options.key = "0123456789ABCDEF";
  const auto opened = open_checkpoint(path, options);
  if (!opened) {
    EXPECT_CONTAINS(opened.status().message(), path);
    return;
  }
  for (const TensorId& id : (*opened)->tensors({})) {
    const auto described = (*opened)->describe(id);
    ASSERT_TRUE(described.ok());
    ASSERT_TRUE(described->problem.code() != Code::kOk || described->bytes <= (*opened)->facts().file_bytes);
    (void)(*opened)->stats(id);
  }
}

TEST_F(Damage, FourThousandMutationsNeitherCrashNorHang) {
  std::mt19937 random(20260101);
  for (const char* file : {"crc.ckpt", "types.ckpt", "types.safetensors", "crc.safetensors", "gcm16.ckpt"}) {
    const std::string sound = read_bytes(corner(file));
    for (int round = 0; round < 800; ++round) {
      std::string bytes = sound;
      const unsigned changes = 1 + random() % 4;
      for (unsigned i = 0; i < changes && !bytes.empty(); ++i) {
        const size_t at = random() % bytes.size();
        switch (random() % 5) {
          case 0: bytes[at] = static_cast<char>(bytes[at] ^ (1 << random() % 8)); break;
          case 1: bytes[at] = static_cast<char>(random()); break;
          case 2: bytes.erase(at, 1 + random() % 9); break;
          case 3: bytes.insert(at, std::string(1 + random() % 9, static_cast<char>(random() % 2 == 0 ? 0xFF : random()))); break;
          default: bytes.resize(at); break;
        }
      }
      SCOPED_TRACE(std::string(file) + " round " + std::to_string(round));
      read_all(write(bytes));
      if (HasFatalFailure() || HasNonfatalFailure()) return;
    }
  }
}

}  // namespace
}  // namespace msdbg::test
