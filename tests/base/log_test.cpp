// Messages of -v and --log.
#include "msdbg/log.h"

#include <gtest/gtest.h>

namespace msdbg {
namespace {

TEST(Log, OnlyWarningsAreWantedByDefault) {
  EXPECT_FALSE(log_wanted(LogLevel::kInfo));
  EXPECT_TRUE(log_wanted(LogLevel::kWarning));
  want_log(LogLevel::kInfo);
  EXPECT_TRUE(log_wanted(LogLevel::kInfo));
  EXPECT_FALSE(log_wanted(LogLevel::kDebug));
  want_log(LogLevel::kWarning);
}

TEST(Log, DurationsReadAsTheLuaLibraryWritesThem) {
  EXPECT_EQ(format_duration(0.00085), "850 us");
  EXPECT_EQ(format_duration(0.0123), "12.3 ms");
  EXPECT_EQ(format_duration(4.2), "4.2 s");
  EXPECT_EQ(format_duration(187), "3:07 min");
  EXPECT_EQ(format_duration(7510), "2:05:10 h");
  EXPECT_EQ(format_duration(1e300), "forever");
}

TEST(Log, ARateNeedsBytesAndTime) {
  EXPECT_EQ(format_reading(4 << 20, 2), "4.0 MiB in 2.0 s (2.0 MiB/s)");
  EXPECT_EQ(format_reading(0, 2), "0 B in 2.0 s");
  EXPECT_EQ(format_reading(1024, 1e-5), "1.0 KiB in 10 us");
}

}  // namespace
}  // namespace msdbg
