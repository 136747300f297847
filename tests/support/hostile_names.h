// Names as in a hostile graph, and a check of the text printed because of them.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace msdbg::testing {

/// Colour, a line that resembles the prompt, carriage return, C1, right-to-left override, line separator, invalid UTF-8. No slash.
inline const std::string kHostile =
    "x\x1b[31mRED\x1b[2J\ntraining step 9 held > forged\rback\xc2\x9b" "5m\xe2\x80\xae" "rtl\xe2\x80\xa8" "sep\x07\xff";

/// Fails if any part of kHostile in `printed` would act on a terminal.
inline void expect_harmless(std::string_view printed, const std::string& what) {
  for (const std::string_view act : {"\x1b[31mRED", "\x1b[2J", "\r", "\xc2\x9b", "\xe2\x80\xae", "\xe2\x80\xa8", "\x07", "\xff"}) {
    EXPECT_EQ(printed.find(act), std::string_view::npos)
        << what << " prints " << ::testing::PrintToString(std::string(act)) << ":\n" << printed;
  }
  size_t begin = 0;
  while (begin < printed.size()) {
    const size_t end = std::min(printed.find('\n', begin), printed.size());
    const std::string_view line = printed.substr(begin, end - begin);
    const size_t first = line.find_first_not_of(" \t");
    EXPECT_FALSE(first != std::string_view::npos && line.substr(first).starts_with("training step 9 held")) << what << ":\n" << printed;
    begin = end + 1;
  }
}

}  // namespace msdbg::testing
