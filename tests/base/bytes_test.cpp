// Values as bytes: what was written is read again, and nothing else is believed.
#include "msdbg/bytes.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace msdbg {
namespace {

TEST(Bytes, EveryValueIsReadAgain) {
  ByteWriter out;
  for (const uint64_t number : {uint64_t{0}, uint64_t{127}, uint64_t{128}, std::numeric_limits<uint64_t>::max()}) out.number(number);
  for (const int64_t whole : {int64_t{0}, int64_t{-1}, std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max()})
    out.whole(whole);
  out.real(-0.0);
  out.real(std::nan(""));
  out.text("relu");
  out.flag(true);
  out.status(Status(Code::kIoError, "gone"));
  out.status(Status());
  const std::string bytes = out.take();

  ByteReader in(bytes);
  for (const uint64_t number : {uint64_t{0}, uint64_t{127}, uint64_t{128}, std::numeric_limits<uint64_t>::max()})
    EXPECT_EQ(in.number(), number);
  for (const int64_t whole : {int64_t{0}, int64_t{-1}, std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max()})
    EXPECT_EQ(in.whole(), whole);
  EXPECT_TRUE(std::signbit(in.real()));
  EXPECT_TRUE(std::isnan(in.real()));
  EXPECT_EQ(in.text(), "relu");
  EXPECT_TRUE(in.flag());
  const Status status = in.status();
  EXPECT_EQ(status.code(), Code::kIoError);
  EXPECT_EQ(status.message(), "gone");
  EXPECT_TRUE(in.status().ok());
  EXPECT_TRUE(in.at_end());
}

TEST(Bytes, CutShortAnywhereIsAFault) {
  ByteWriter out;
  out.number(300);
  out.real(1);
  out.text("abc");
  const std::string bytes = out.take();
  for (size_t length = 0; length < bytes.size(); ++length) {
    ByteReader in(std::string_view(bytes).substr(0, length));
    in.number();
    in.real();
    in.text();
    EXPECT_FALSE(in.good()) << length;
    EXPECT_FALSE(in.at_end()) << length;
  }
}

TEST(Bytes, AfterAFaultEverythingIsZeroOrEmpty) {
  ByteReader in("\x05" "ab");
  EXPECT_EQ(in.text(), "");
  EXPECT_EQ(in.number(), 0u);
  EXPECT_EQ(in.text(), "");
  EXPECT_FALSE(in.good());
}

TEST(Bytes, NumbersBeyondTheirLimitsAreFaults) {
  ByteWriter out;
  out.number(11);
  out.whole(int64_t{1} << 40);
  out.number(1000);
  out.byte(2);
  const std::string bytes = out.take();
  ByteReader limit(bytes);
  EXPECT_EQ(limit.number(10), 0u);
  EXPECT_FALSE(limit.good());
  ByteReader small(bytes);
  small.number();
  EXPECT_EQ(small.small(), 0);
  EXPECT_FALSE(small.good());
  ByteReader items(bytes);
  items.number();
  items.whole();
  EXPECT_EQ(items.items(1 << 20), 0u) << "more items than bytes are left";
  EXPECT_FALSE(items.good());
  ByteReader flag(std::string_view(bytes).substr(bytes.size() - 1));
  flag.flag();
  EXPECT_FALSE(flag.good());
  const std::string ones(11, '\xff');
  ByteReader endless(ones);
  EXPECT_EQ(endless.number(), 0u);
  EXPECT_FALSE(endless.good());
}

}  // namespace
}  // namespace msdbg
