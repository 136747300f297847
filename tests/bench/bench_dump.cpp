// How close does `msdbg check` come to just reading the files?
//
// Creates dumps in a scratch directory, then alternates between the program and a plain read of the same files, all in the page
// cache, and prints one line per question:
//   RATIO <name> <msdbg time / plain time> target <= t   (memory if the question has a limit)
//
//   bench_dump MSDBG [FOLDER] [--small]
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>

#include "bench/made_dump.h"

namespace fs = std::filesystem;
using namespace msdbg::bench;
using Clock = std::chrono::steady_clock;

namespace {

std::vector<fs::path> files_below(const fs::path& root) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(root)) {
    if (entry.is_regular_file()) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

// Reads every file into one buffer of 1 MiB: no checker can be faster.
double plain_read(const std::vector<fs::path>& files) {
  static std::vector<char> buffer(1 << 20);
  const auto start = Clock::now();
  for (const fs::path& path : files) {
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    while (::read(fd, buffer.data(), buffer.size()) > 0) {
    }
    ::close(fd);
  }
  return seconds_since(start);
}

void compare(const char* name, const std::vector<std::string>& words, const std::vector<fs::path>& files, double target, int rounds) {
  plain_read(files);  // into the page cache
  std::vector<double> plain, ours;
  long peak = 0;
  for (int i = 0; i < rounds; ++i) {
    plain.push_back(plain_read(files));
    const Run run = run_program(words);
    if (run.status > 1) {
      std::printf("FAILED %s: status %d\n", name, run.status);
      return;
    }
    ours.push_back(run.seconds);
    peak = std::max(peak, run.peak_kb / 1024);
  }
  char limit[32] = "target none";
  if (target > 0) std::snprintf(limit, sizeof limit, "target <= %.2f", target);
  std::printf("RATIO %s %.2f %s   (plain read %.3f s, msdbg %.3f s, peak %ld MB)\n", name, median(ours) / median(plain), limit,
              median(plain), median(ours), peak);
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: bench_dump MSDBG [FOLDER] [--small]\n");
    return 2;
  }
  const std::string program = fs::absolute(argv[1]);
  const bool small = std::strcmp(argv[argc - 1], "--small") == 0;
  const fs::path scratch = fs::path(argc > 2 && std::strcmp(argv[2], "--small") != 0 ? argv[2] : fs::temp_directory_path().c_str()) /
                           ("msdbg-bench-" + std::to_string(::getpid()));

  const fs::path large = scratch / "large";
  make_dump(large, small ? 4 : 40, 2, (small ? 4 : 64) << 18);
  const std::vector<std::string> eight = {program,  "check",
                                          large,    "--mem-limit",
                                          "256",    "-q",
                                          "--no-index",
                                          "--on",   "@parameter",
                                          "--when", "TO",
                                          "--on",   "@parameter",
                                          "--when", "TL max_gt=100",
                                          "--on",   "@parameter",
                                          "--when", "TS abs_mean_lt=1e-9",
                                          "--on",   "@parameter",
                                          "--when", "TZ 100",
                                          "--on",   "@parameter",
                                          "--when", "TR range_start_inclusive=-10 range_end_inclusive=10 range_percentage_lt=1",
                                          "--on",   "@parameter",
                                          "--when", "sd_gt param=1000",
                                          "--on",   "@parameter",
                                          "--when", "WCL abs_mean_update_ratio_gt=10",
                                          "--on",   "@parameter",
                                          "--when", "WNC rtol=1e-12"};
  compare("check_8_watchpoints_40x64MiB_2_steps", eight, files_below(large), 2.5, small ? 3 : 5);
  fs::remove_all(large);

  const fs::path many = scratch / "many";
  make_dump(many, small ? 2000 : 20000, 1, 1024);
  compare("check_20000_tensors_of_4KiB", {program, "check", many, "-q", "--no-index"}, files_below(many), 0, 7);
  // Compares with cat, as a user would.
  {
    std::vector<double> cat, ours;
    for (int i = 0; i < 7; ++i) {
      cat.push_back(run_program({"sh", "-c", "find '" + many.string() + "' -name '*.npy' -print0 | xargs -0 cat"}).seconds);
      ours.push_back(run_program({program, "check", many, "-q", "--no-index"}).seconds);
    }
    std::printf("RATIO check_20000_tensors_against_cat %.2f target <= 3.00   (cat %.3f s, msdbg %.3f s)\n", median(ours) / median(cat),
                median(cat), median(ours));
  }
  // With the index: what writing it adds to a first check, and what later commands take.
  {
    ::sleep(3);  // files that changed a moment ago are not kept
    const fs::path index = many / ".msdbg-index.sqlite";
    const auto first_check = [&](const char* name, const std::function<void()>& prepare) {
      std::vector<double> without, first;
      for (int i = 0; i < 7; ++i) {
        prepare();
        without.push_back(run_program({program, "check", many, "-q", "--no-index"}).seconds);
        fs::remove(index);
        prepare();
        first.push_back(run_program({program, "check", many, "-q"}).seconds);
      }
      std::printf("RATIO %s %.2f target <= 1.05   (without %.3f s, with %.3f s, %.0f bytes a tensor)\n", name,
                  median(first) / median(without), median(without), median(first),
                  static_cast<double>(fs::file_size(index)) / (small ? 2000 : 20000));
    };
    first_check("first_check_that_writes_the_index", [] {});
    first_check("first_check_from_the_disk_that_writes_the_index", [&] { forget(many); });
    const auto time = [&](const char* name, const std::vector<std::string>& words, const char* target) {
      std::vector<double> seconds;
      for (int i = 0; i < 7; ++i) seconds.push_back(run_program(words).seconds);
      std::printf("TIME %s %.1f ms target %s\n", name, median(seconds) * 1e3, target);
    };
    time("recheck_20000_tensors_from_the_index", {program, "check", many, "-q", "--on", "@all", "--when", "TL max_gt=7"}, "<= 100 ms");
    time("show_among_20000_files", {program, "show", many, "w3.weight"}, "<= 50 ms");
    time("stats_as_json_of_20000_tensors", {program, "stats", many, "-q", "--format", "json"}, "<= 1000 ms");
  }
  fs::remove_all(many);

  const fs::path tiny = scratch / "tiny";
  make_dump(tiny, 20, 2, 256);
  std::vector<double> starts;
  for (int i = 0; i < 15; ++i) starts.push_back(run_program({program, "show", tiny, "w3.weight"}).seconds);
  std::printf("TIME show_on_a_small_dump %.1f ms target <= 50 ms\n", median(starts) * 1e3);
  fs::remove_all(scratch);
  return 0;
}
