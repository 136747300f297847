// What was found in the real dumps with Python, numpy and torch alone.
#pragma once

#include <fstream>
#include <nlohmann/json.hpp>

#include "msprobe/msprobe_support.h"

namespace msdbg::testing {

inline nlohmann::json expected_of(const std::string& name) {
  std::ifstream file(real_dump("EXPECTED/probe-" + name + ".json"));
  EXPECT_TRUE(file.is_open()) << name;
  return nlohmann::json::parse(file);
}

/// The step of "step12".
inline int64_t step_number(const std::string& folder) { return std::stoll(folder.substr(4)); }
/// The rank of "rank1"; 0 for a single process.
inline int rank_number(const std::string& folder) {
  return folder.starts_with("rank") && folder.size() > 4 ? std::stoi(folder.substr(4)) : 0;
}

/// The dumps with expectations, but for the one that was killed in its second step.
inline const char* const kExpectedDumps[] = {
    "1.3-torch-lenet-lognan", "1.3-torch-lenet-lognan-tensor", "8.1-torch-lenet-lognan", "8.3-torch-lenet-lognan",
    "26.0-torch-lenet-lognan", "26.2-ms-lenet-good-md5", "26.2-ms-lenet-lognan", "26.2-ms-lenet-lognan-L0",
    "26.2-ms-lenet-lognan-L1", "26.2-ms-types", "26.2-torch-ddp-badbatch", "26.2-torch-ddp-badbatch-tensor",
    "26.2-torch-ddp-good", "26.2-torch-everytype", "26.2-torch-everytype-md5", "26.2-torch-gpt-good",
    "26.2-torch-gpt-padnan", "26.2-torch-gpt-padnan-tensor", "26.2-torch-gpt-plain-L1", "26.2-torch-gpt-scale",
    "26.2-torch-lenet-async", "26.2-torch-lenet-extrarelu", "26.2-torch-lenet-good", "26.2-torch-lenet-good-md5",
    "26.2-torch-lenet-lognan", "26.2-torch-lenet-lognan-L0", "26.2-torch-lenet-lognan-L1", "26.2-torch-lenet-lognan-md5",
    "26.2-torch-lenet-noextra", "26.2-torch-lenet-outputs", "26.2-torch-lenet-tensorlist", "26.2-torch-lenet-xor",
    "26.2-torch-recompute", "26.2-torch-regress-explode", "26.2-torch-regress-good", "26.2-torch-twomodels",
};

inline std::string test_name(const ::testing::TestParamInfo<const char*>& info) {
  std::string name = info.param;
  for (char& c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  }
  return name;
}

}  // namespace msdbg::testing
