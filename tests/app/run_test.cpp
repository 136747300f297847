// An exception that escapes a command ends it with a line and a status, never with an abort.
#include <gtest/gtest.h>

#include <new>
#include <stdexcept>

#include "app/run.h"

namespace msdbg::app {
namespace {

std::pair<int, std::string> guarded(const std::function<int()>& command) {
  ::testing::internal::CaptureStderr();
  const int status = run_guarded(command);
  return {status, ::testing::internal::GetCapturedStderr()};
}

TEST(RunGuarded, ADefectIsToldWithItsPlaceAndHasItsOwnStatus) {
  const auto [status, text] = guarded([]() -> int {
    MSDBG_CHECK(1 + 1 == 3);
    return 0;
  });
  EXPECT_EQ(status, kExitInternal);
  EXPECT_TRUE(text.starts_with("msdbg: internal error: ")) << text;
  EXPECT_NE(text.find("run_test.cpp:"), std::string::npos) << text;
  EXPECT_EQ(text.find('\n'), text.size() - 1) << text;
  EXPECT_EQ(exit_status_for(Status(Code::kInternal, "internal error")), kExitInternal);
}

TEST(RunGuarded, AnyOtherExceptionIsADefectToo) {
  const auto [status, text] = guarded([]() -> int { throw std::out_of_range("map::at\nforged"); });
  EXPECT_EQ(status, kExitInternal);
  EXPECT_EQ(text, "msdbg: internal error: map::at?forged: please report it\n");
  EXPECT_EQ(guarded([]() -> int { throw 3; }).first, kExitInternal);
}

TEST(RunGuarded, NoMemoryIsNoDefect) {
  const auto [status, text] = guarded([]() -> int { throw std::bad_alloc(); });
  EXPECT_EQ(status, kExitInput);
  EXPECT_NE(text.find("--mem-limit"), std::string::npos) << text;
}

TEST(RunGuarded, TheStatusOfACommandPasses) { EXPECT_EQ(guarded([] { return 4; }), (std::pair<int, std::string>{4, ""})); }

}  // namespace
}  // namespace msdbg::app
