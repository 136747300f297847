// Helpers of the tests of dumps of msprobe: small dumps written by the test, and the real ones with their expectations.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "msdbg/msprobe.h"
#include "msdbg/replicas.h"
#include "support/temp_dir.h"

namespace msdbg::testing {

/// A dump that a test writes.
class WrittenDump {
 public:
  void put(const std::string& file, const std::string& text) {
    const std::filesystem::path path = std::filesystem::path(temp_.file("dump")) / file;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << text;
  }
  /// A dump.json with these entries, each `"NAME": {...}`.
  void table(const std::string& folder, const std::string& entries, const std::string& task = "statistics") {
    put(folder + "/dump.json",
        R"({"task": ")" + task + R"(", "level": "mix", "framework": "pytorch", "dump_data_dir": null, "data": {)" + entries + "}}");
  }
  std::string path() const { return temp_.file("dump"); }
  std::unique_ptr<Session> open(const DumpOptions& options = {}) const {
    Result<std::unique_ptr<Session>> session = open_msprobe(path(), options);
    EXPECT_TRUE(session.ok()) << session.status().message();
    return session ? std::move(*session) : nullptr;
  }

 private:
  test::TempDir temp_;
};

/// A tensor as a table describes it; its mean is `max`.
inline std::string tensor_entry(const std::string& shape, const std::string& max, const std::string& min, const std::string& more = "") {
  return R"({"type": "torch.Tensor", "dtype": "torch.float32", "shape": )" + shape + R"(, "Max": )" + max + R"(, "Min": )" + min +
         R"(, "Mean": )" + max + R"(, "Norm": )" + max + more + "}";
}

inline std::string call_entry(const std::string& name, const std::string& inputs, const std::string& outputs) {
  return "\"" + name + R"(": {"input_args": [)" + inputs + R"(], "input_kwargs": {}, "output": [)" + outputs + "]}";
}

/// "CAUSE, step: sentence" of each difference between the ranks.
inline std::vector<std::string> rank_differences(const WrittenDump& dump) {
  const auto session = dump.open();
  const Result<ReplicasResult> result = replicas(*session, {});
  std::vector<std::string> out;
  EXPECT_TRUE(result.ok()) << result.status().message();
  if (!result) return out;
  for (const ReplicaDifference& each : result->differences) {
    const std::string cause(replica_cause_name(each.cause));
    out.push_back(cause + ", " + std::to_string(each.tensor.step) + ": " + difference_sentence(each));
  }
  return out;
}

#ifdef MSDBG_TEST_DATA
inline std::string real_dump(const std::string& name) { return std::string(MSDBG_TEST_DATA) + "/msprobe/" + name; }

inline std::unique_ptr<Session> open_real(const std::string& name) {
  Result<std::unique_ptr<Session>> session = open_msprobe(real_dump(name), {});
  EXPECT_TRUE(session.ok()) << session.status().message();
  return session ? std::move(*session) : nullptr;
}
#endif

}  // namespace msdbg::testing
