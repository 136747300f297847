// Dumps of several ranks made from a real one: ranks are copied under other numbers, left out, and edited element by element.
//
//   RankDump dump("ranks-2.7.1-ok");
//   dump.copy_rank(0, 0).copy_rank(1, 1).copy_rank(1, 2);
//   dump.flip(2, 1, "Parameter.fc1_weight", 197, 24);
//   open_dump(dump.path());
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <vector>

#include "support/temp_dir.h"

namespace msdbg::test {

class RankDump {
 public:
  explicit RankDump(const std::string& from) : from_(std::string(MSDBG_TEST_DATA) + "/dumps/" + from) {}

  std::string path() const { return temp_.file("dump"); }

  /// `with_files` false: only rank 0 of the original has `.dump_metadata` and the global order; a copy of it can go without them.
  RankDump& copy_rank(int from, int to, bool with_files = true) {
    namespace fs = std::filesystem;
    const fs::path target = rank(to);
    fs::create_directories(target.parent_path());
    fs::copy(fs::path(from_) / ("rank_" + std::to_string(from)), target, fs::copy_options::recursive);
    if (with_files) return *this;
    fs::remove_all(target / ".dump_metadata");
    fs::remove(target / "execution_order/ms_global_execution_order_graph_0.csv");
    return *this;
  }
  /// A rank of another dump, with its own graph.
  RankDump& copy_foreign(const std::string& dump, int from, int to) {
    const std::filesystem::path source = std::filesystem::path(MSDBG_TEST_DATA) / "dumps" / dump / ("rank_" + std::to_string(from));
    std::filesystem::create_directories(rank(to).parent_path());
    std::filesystem::copy(source, rank(to), std::filesystem::copy_options::recursive);
    return *this;
  }
  RankDump& copy_ranks(int count) {
    for (int i = 0; i < count; ++i) copy_rank(i % 4, i, i == 0);
    return *this;
  }
  RankDump& remove_step(int of_rank, int step) {
    std::filesystem::remove_all(step_path(of_rank, step));
    return *this;
  }
  /// As if the rank had stopped before the first operator whose files begin so: without those and what was written later.
  RankDump& remove_from(int of_rank, int step, const std::string& begin) {
    // TYPE.NAME.TASK.STREAM.MICROSECONDS.input.0...
    const auto time_of = [](const std::filesystem::path& path) {
      const std::string name = path.filename();
      const size_t io = std::min(name.rfind(".input."), name.rfind(".output."));
      return name.substr(name.rfind('.', io - 1) + 1, io - name.rfind('.', io - 1) - 1);
    };
    std::vector<std::filesystem::path> files;
    for (const auto& entry : std::filesystem::directory_iterator(step_path(of_rank, step))) files.push_back(entry.path());
    std::string first;
    for (const auto& path : files) {
      if (path.filename().string().starts_with(begin) && (first.empty() || time_of(path) < first)) first = time_of(path);
    }
    EXPECT_NE(first, "") << begin;
    for (const auto& path : files) {
      if (time_of(path) >= first) std::filesystem::remove(path);
    }
    return *this;
  }
  /// The only file of the step whose name begins so and, if given, contains `part` and `and_part`.
  std::filesystem::path file(int of_rank, int step, const std::string& begin, const std::string& part = "",
                             const std::string& and_part = "") const {
    std::vector<std::filesystem::path> found;
    for (const auto& entry : std::filesystem::directory_iterator(step_path(of_rank, step))) {
      const std::string name = entry.path().filename().string();
      const bool fits = name.starts_with(begin) && name.find(part) != std::string::npos && name.find(and_part) != std::string::npos;
      if (fits) found.push_back(entry.path());
    }
    EXPECT_EQ(found.size(), 1u) << begin << " " << part;
    return found.empty() ? "" : found.front();
  }
  /// Changes the four bytes of one element.
  RankDump& edit(const std::filesystem::path& npy, uint64_t element, const std::function<uint32_t(uint32_t)>& change) {
    std::ifstream in(npy, std::ios::binary);
    std::vector<char> bytes{std::istreambuf_iterator<char>(in), {}};
    in.close();
    uint16_t header = 0;
    std::memcpy(&header, bytes.data() + 8, sizeof header);
    char* const at = bytes.data() + 10 + header + element * sizeof(uint32_t);
    uint32_t bits = 0;
    std::memcpy(&bits, at, sizeof bits);
    bits = change(bits);
    std::memcpy(at, &bits, sizeof bits);
    std::ofstream out(npy, std::ios::binary | std::ios::trunc);
    out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    return *this;
  }
  RankDump& set(const std::filesystem::path& npy, uint64_t element, float value) {
    return edit(npy, element, [value](uint32_t) {
      uint32_t bits = 0;
      std::memcpy(&bits, &value, sizeof bits);
      return bits;
    });
  }
  RankDump& flip(const std::filesystem::path& npy, uint64_t element, int bit) {
    return edit(npy, element, [bit](uint32_t bits) { return bits ^ (uint32_t{1} << bit); });
  }

 private:
  std::filesystem::path rank(int number) const { return std::filesystem::path(path()) / ("rank_" + std::to_string(number)); }
  std::filesystem::path step_path(int of_rank, int step) const { return rank(of_rank) / "LeNet" / "0" / std::to_string(step); }

  std::string from_;
  TempDir temp_;
};

}  // namespace msdbg::test
