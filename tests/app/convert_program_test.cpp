// msdbg convert through the program: what it prints, and killed in the middle.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "support/container_file.h"
#include "support/process.h"
#include "support/temp_dir.h"

namespace msdbg::app {
namespace {

namespace fs = std::filesystem;
using test::Process;

class ConvertProgram : public ::testing::Test {
 protected:
  /// `kernels` containers, each with a matrix in blocks.
  void make_dump(int kernels, const std::vector<int64_t>& shape) {
    const test::DeviceMemory memory = test::fractal_nz(shape, 16);
    std::vector<float> values(static_cast<size_t>(shape[0] * shape[1]));
    for (int kernel = 0; kernel < kernels; ++kernel) {
      for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(kernel + static_cast<int>(i));
      test::StoredContainer container;
      container.outputs = {{test::kTypeFloat, test::kFormatFractalNz, memory.shape, shape, test::device_bytes(memory, values, -1.0f)}};
      put("MatMul.Default_MatMul-op" + std::to_string(kernel) + "." + std::to_string(kernel) + ".0.100", container.bytes());
    }
  }
  void put(const std::string& name, const std::string& bytes) {
    const std::string folder = dir_.file("dump/rank_0/Net/0/0/");
    fs::create_directories(folder);
    std::ofstream(folder + name, std::ios::binary) << bytes;
  }
  /// The end of the command and what it printed, without the directory's name.
  std::string printed(const std::string& words) {
    Process process({"sh", "-c", "cd " + dir_.file("") + " && \"$0\" convert dump " + words + " 2>&1; echo status $?", MSDBG_PROGRAM});
    process.wait();
    return process.output();
  }
  std::map<std::string, std::string> files(const std::string& folder) {
    std::map<std::string, std::string> out;
    if (!fs::exists(dir_.file(folder))) return out;
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(dir_.file(folder))) {
      if (!entry.is_regular_file()) continue;
      std::ifstream file(entry.path(), std::ios::binary);
      out[entry.path().filename()] = {std::istreambuf_iterator<char>(file), {}};
    }
    return out;
  }

  /// Tensors in a folder.
  size_t converted(const std::string& folder) {
    std::error_code ignored;
    size_t count = 0;
    for (const fs::directory_entry& entry : fs::directory_iterator(dir_.file(folder + "/rank_0/Net/0/0"), ignored)) {
      count += entry.path().filename().string().starts_with("MatMul.") ? 1 : 0;
    }
    return count;
  }

  test::TempDir dir_;
};

TEST_F(ConvertProgram, SaysWhatItDid) {
  make_dump(2, {3, 20});
  EXPECT_EQ(printed("-o out"), "2 tensors converted, 0 files copied: 736 B written to out\nstatus 0\n");
  EXPECT_EQ(printed("-o out"), "0 tensors converted, 0 files copied, 2 there already: 0 B written to out\nstatus 0\n");
  put("Add.Default_Add-op9.1.0.200", "no container");
  EXPECT_EQ(printed("-o out"),
            "0 tensors converted, 1 file copied, 2 there already: 12 B written to out\n"
            "1 tensor not converted; it was copied with its container:\n"
            "  dump/rank_0/Net/0/0/Add.Default_Add-op9.1.0.200:output:0: the container is cut off or no container: its description should have "
            "7022359143660941166 bytes, 4 follow\nstatus 3\n");
  EXPECT_EQ(printed("Default_MatMul-op1 -o one"), "1 tensor converted, 0 files copied: 368 B written to one\nstatus 0\n");
  EXPECT_NE(printed("-o dump/out").find("is inside of the dump"), std::string::npos);
}

TEST_F(ConvertProgram, ListsEachFileAsJson) {
  using Json = nlohmann::ordered_json;
  make_dump(1, {3, 20});
  const auto list = [&](const std::string& format) {
    const std::string text = printed("-o out --format " + format);
    return text.substr(0, text.find("status "));
  };
  const auto keys = [](const Json& object) {
    std::string out;
    for (const auto& [key, value] : object.items()) out += (out.empty() ? "" : " ") + key;
    return out;
  };
  const std::string folder = "dump/rank_0/Net/0/0/", matrix = folder + "MatMul.Default_MatMul-op0.0.0.100";
  Json all = Json::parse(list("json"));
  EXPECT_EQ(keys(all), "dump output converted copied present bytes not_converted files");
  EXPECT_EQ(all["dump"], "dump");
  EXPECT_EQ(all["output"], "out");
  EXPECT_EQ(all["converted"], 1);
  EXPECT_EQ(all["bytes"], 368);
  ASSERT_EQ(all["files"].size(), 1u);
  EXPECT_EQ(keys(all["files"][0]), "file done from slot");
  EXPECT_EQ(all["files"][0]["done"], "converted");
  EXPECT_EQ(all["files"][0]["from"], matrix);
  EXPECT_EQ(all["files"][0]["slot"], "output:0");
  EXPECT_TRUE(fs::exists(dir_.file(all["files"][0]["file"])));

  put("Add.Default_Add-op9.1.0.200", "no container");
  all = Json::parse(list("json"));
  ASSERT_EQ(all["not_converted"].size(), 1u);
  EXPECT_EQ(keys(all["not_converted"][0]), "tensor reason damaged");
  EXPECT_EQ(all["not_converted"][0]["tensor"], folder + "Add.Default_Add-op9.1.0.200:output:0");
  EXPECT_EQ(all["not_converted"][0]["damaged"], true);
  ASSERT_EQ(all["files"].size(), 2u);  // by name
  EXPECT_EQ(all["files"][0]["done"], "copied");
  EXPECT_TRUE(all["files"][0]["slot"].is_null());
  EXPECT_EQ(all["files"][1]["done"], "present");

  const std::string lines = list("jsonl");
  EXPECT_EQ(std::count(lines.begin(), lines.end(), '\n'), 3);
  const Json last = Json::parse(lines.substr(lines.rfind('{', lines.find("\"summary\""))));
  EXPECT_EQ(last["summary"]["present"], 2);
  EXPECT_FALSE(last["summary"].contains("files"));
  EXPECT_NE(printed("-o out --format csv").find("--format csv is not for this command"), std::string::npos);
}

TEST_F(ConvertProgram, KilledAnywhereItLeavesWholeFilesAndGoesOn) {
  make_dump(200, {64, 64});
  ASSERT_NE(printed("-o whole").find("200 tensors converted"), std::string::npos);
  const std::map<std::string, std::string> expected = files("whole");
  ASSERT_EQ(expected.size(), 200u);
  size_t most = 0;
  for (int round = 0; round < 5 && most < expected.size(); ++round) {
    Process process({MSDBG_PROGRAM, "convert", dir_.file("dump"), "-o", dir_.file("out")});
    // Each run is killed when it has written something.
    const auto begin = std::chrono::steady_clock::now();
    while (converted("out") <= most && std::chrono::steady_clock::now() - begin < Process::kPatience) {
    }
    process.send_signal(SIGKILL);
    process.wait();
    for (const auto& [name, content] : files("out")) {
      if (!name.starts_with("MatMul.")) continue;  // a file that was being written has another name
      ASSERT_TRUE(expected.contains(name)) << name;
      ASSERT_EQ(content, expected.at(name)) << name;
    }
    most = converted("out");
  }
  EXPECT_NE(printed("-o out").find("there already"), std::string::npos);
  const std::map<std::string, std::string> all = files("out");
  for (const auto& [name, content] : expected) EXPECT_EQ(all.at(name), content);
}

}  // namespace
}  // namespace msdbg::app
