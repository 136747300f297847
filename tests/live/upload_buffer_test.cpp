// Memory for elements that arrive in pieces.
#include "session/live/upload_buffer.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>

#include "support/temp_dir.h"

namespace msdbg::test {
namespace {

using live::UploadBuffer;

constexpr uint64_t kMebibyte = uint64_t{1} << 20;

class TemporaryPlace {
 public:
  explicit TemporaryPlace(const std::string& path) {
    if (const char* before = std::getenv("TMPDIR")) before_ = before;
    ::setenv("TMPDIR", path.c_str(), 1);
  }
  ~TemporaryPlace() {
    if (before_) ::setenv("TMPDIR", before_->c_str(), 1);
    else ::unsetenv("TMPDIR");
  }

 private:
  std::optional<std::string> before_;
};

void fill(UploadBuffer& buffer, uint64_t bytes, int value) {
  Result<std::span<std::byte>> place = buffer.grow(bytes);
  ASSERT_TRUE(place.ok()) << place.status().message();
  ASSERT_EQ(place->size(), bytes);
  std::memset(place->data(), value, bytes);
  buffer.commit(bytes);
}

TEST(UploadBuffer, NothingNeedsNoRoom) {
  UploadBuffer buffer;
  EXPECT_TRUE(buffer.grow(0).ok());
  buffer.set_memory_limit(0);
  EXPECT_TRUE(buffer.grow(0).ok());
  EXPECT_FALSE(buffer.on_disk());
}

TEST(UploadBuffer, GrowsFromMemoryIntoAFile) {
  const TempDir directory;
  const TemporaryPlace place(directory.file("."));
  UploadBuffer buffer;
  buffer.set_memory_limit(2 * kMebibyte);
  for (int i = 0; i < 8; ++i) fill(buffer, kMebibyte, 'a' + i);
  EXPECT_TRUE(buffer.on_disk());
  ASSERT_EQ(buffer.bytes().size(), 8 * kMebibyte);
  for (size_t i = 0; i < 8; ++i) EXPECT_EQ(static_cast<int>(buffer.bytes()[i * kMebibyte + 17]), 'a' + static_cast<int>(i));
}

TEST(UploadBuffer, TakesWhatIsNeededWhereMoreDoesNotFit) {
  UploadBuffer buffer;
  buffer.set_memory_limit(10 * kMebibyte);
  fill(buffer, 8 * kMebibyte, 'x');
  // Half as much again would need a file, and there is no place for one.
  const TemporaryPlace place("/no/such/place");
  fill(buffer, 2 * kMebibyte, 'y');
  EXPECT_FALSE(buffer.on_disk());
}

TEST(UploadBuffer, NamesThePlaceWithoutRoom) {
  const TemporaryPlace nowhere("/no/such/place");
  UploadBuffer buffer;
  buffer.set_memory_limit(kMebibyte);
  fill(buffer, kMebibyte / 2, 'x');
  const Result<std::span<std::byte>> place = buffer.grow(4 * kMebibyte);
  ASSERT_FALSE(place.ok());
  EXPECT_NE(place.status().message().find("set TMPDIR to another directory"), std::string::npos) << place.status().message();
  // The existing data is still there, and no partial file is left.
  EXPECT_FALSE(buffer.on_disk());
  EXPECT_EQ(static_cast<int>(buffer.bytes()[kMebibyte / 2 - 1]), 'x');
}

TEST(UploadBuffer, RefusesWhatNoMachineHolds) {
  UploadBuffer buffer;
  fill(buffer, 100, 'x');
  for (const uint64_t bytes : {UINT64_MAX, UINT64_MAX - 100, UINT64_MAX - 4095, uint64_t{1} << 62}) {
    EXPECT_FALSE(buffer.grow(bytes).ok()) << bytes;
    EXPECT_FALSE(buffer.reserve(bytes).ok()) << bytes;
  }
}

}  // namespace
}  // namespace msdbg::test
