// The environment variables of the training side.
#include <gtest/gtest.h>

#include <cstdlib>

#include "msdbg/agent.h"
#include "support/old_releases.h"

namespace msdbg::agent {
namespace {

struct Environment : testing::Test {
  void SetUp() override { clear(); }
  void TearDown() override { clear(); }
  static void clear() {
    for (const char* name : {"ENABLE_MS_DEBUGGER", "MS_DEBUGGER_HOST", "MS_DEBUGGER_PORT", "RANK_ID"}) unsetenv(name);
  }
  static void set(const char* name, const std::string& value) { setenv(name, value.c_str(), 1); }
};

TEST_F(Environment, NothingSetMeansOff) {
  const auto options = options_from_environment();
  ASSERT_TRUE(options.ok());
  EXPECT_FALSE(options->enabled);
}

TEST_F(Environment, OneAndTrueSwitchOn) {
  for (const char* value : {"1", "true", "TRUE", "True"}) {
    set("ENABLE_MS_DEBUGGER", value);
    EXPECT_TRUE(options_from_environment()->enabled) << value;
  }
  for (const char* value : {"0", "false", "yes", "", "2"}) {
    set("ENABLE_MS_DEBUGGER", value);
    EXPECT_FALSE(options_from_environment()->enabled) << value;
  }
}

TEST_F(Environment, TheRankIsRankId) {
  set("ENABLE_MS_DEBUGGER", "1");
  EXPECT_FALSE(options_from_environment()->rank);
  set("RANK_ID", "12");
  EXPECT_EQ(options_from_environment()->rank, 12);
  for (const char* value : {"-1", "01", "one", "123456"}) {
    set("RANK_ID", value);
    const auto options = options_from_environment();
    ASSERT_FALSE(options.ok()) << value;
    EXPECT_NE(options.status().message().find("RANK_ID is '"), std::string::npos);
  }
  // Without a debugger it is only a variable.
  unsetenv("ENABLE_MS_DEBUGGER");
  EXPECT_TRUE(options_from_environment().ok());
  set("RANK_ID", "3");
  EXPECT_EQ(options_from_environment()->rank, 3);
}

TEST_F(Environment, DefaultsAreLoopbackAndTheKnownPort) {
  set("ENABLE_MS_DEBUGGER", "1");
  set("MS_DEBUGGER_HOST", "");
  const auto options = options_from_environment();
  ASSERT_TRUE(options.ok());
  EXPECT_EQ(options->host, "127.0.0.1");
  EXPECT_EQ(options->port, 50051);
}

TEST_F(Environment, AddressAndPortAreTaken) {
  set("ENABLE_MS_DEBUGGER", "1");
  set("MS_DEBUGGER_HOST", "10.0.255.254");
  set("MS_DEBUGGER_PORT", "65535");
  const auto options = options_from_environment();
  ASSERT_TRUE(options.ok());
  EXPECT_EQ(options->host, "10.0.255.254");
  EXPECT_EQ(options->port, 65535);
}

TEST_F(Environment, OtherAddressesAreRefusedByName) {
  set("ENABLE_MS_DEBUGGER", "1");
  for (const char* value : {"localhost", "0.0.0.0", "127.0.0.255", "127.0.0", "127.0.0.01", "::1", "1.2.3.4.5",
                            "1..2.3", "255.0.0.1", "127.0.0.1 "}) {
    set("MS_DEBUGGER_HOST", value);
    const auto options = options_from_environment();
    ASSERT_FALSE(options.ok()) << value;
    EXPECT_EQ(options.status().code(), Code::kInvalidArgument);
    EXPECT_NE(options.status().message().find(std::string("MS_DEBUGGER_HOST is '") + value), std::string::npos);
  }
}

TEST_F(Environment, OtherPortsAreRefusedByName) {
  set("ENABLE_MS_DEBUGGER", "1");
  for (const char* value : {"0", "65536", "050", "-1", "abc", "1e3", " 80", "100000"}) {
    set("MS_DEBUGGER_PORT", value);
    const auto options = options_from_environment();
    ASSERT_FALSE(options.ok()) << value;
    EXPECT_NE(options.status().message().find("MS_DEBUGGER_PORT"), std::string::npos);
  }
}

TEST_F(Environment, WrongAddressDoesNotMatterToATrainingThatIsNotDebugged) {
  set("MS_DEBUGGER_HOST", "localhost");
  EXPECT_TRUE(options_from_environment().ok());
}

TEST(AgentHabits, AreThoseOfTheReleaseThatItNames) {
  for (const char* backend : {"GPU", "Ascend"}) {
    Options options;
    options.backend = backend;
    ReleaseTraits expected = test::traits_of_release(options);
    expected.parameters_alone = true;
    EXPECT_EQ(own_traits(options), expected) << backend;
    options.version = "1.5.0";
    EXPECT_NE(own_traits(options), test::traits_of_release(options)) << backend;
  }
}

}  // namespace
}  // namespace msdbg::agent
