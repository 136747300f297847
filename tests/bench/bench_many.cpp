// What do very many tensors cost?
//
// Creates dumps in a scratch directory and runs commands on them in turn with `find | xargs cat` of the same files, all in the page
// cache. Compares CPU seconds, which other programs disturb least, and prints one line per question:
//   RATIO <name> <msdbg / cat> target <= t
//   TIME <name> <value> bytes target <= t bytes
//   TIME <name> <value> ms target <= t ms      (from the start of the process, with the index of the dump)
//
//   bench_many MSDBG [FOLDER] [--small | --large]
// --large adds a dump of a million tensors, 4 GB in the folder.
#include <cstdio>
#include <cstring>

#include "bench/made_dump.h"

namespace fs = std::filesystem;
using namespace msdbg::bench;

namespace {

constexpr int kRounds = 5;
using Words = std::vector<std::string>;

Words cat(const fs::path& dump) { return {"sh", "-c", "find '" + dump.string() + "' -name '*.npy' -print0 | xargs -0 cat"}; }

double cpu_seconds(const Words& words) {
  const Run run = run_program(words);
  if (run.status > 1) std::printf("FAILED %s %s: status %d\n", words[0].c_str(), words[1].c_str(), run.status);
  return run.cpu_seconds;
}

void compare(const char* name, const Words& ours, const Words& baseline, const char* what, const char* target) {
  std::vector<double> left, right;
  for (int i = 0; i < kRounds; ++i) {
    left.push_back(cpu_seconds(ours));
    right.push_back(cpu_seconds(baseline));
  }
  std::printf("RATIO %s %.2f target <= %s   (%s %.3f CPU s, msdbg %.3f CPU s)\n", name, median(left) / median(right), target, what,
              median(right), median(left));
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: bench_many MSDBG [FOLDER] [--small]\n");
    return 2;
  }
  const std::string program = fs::absolute(argv[1]);
  const bool small = std::strcmp(argv[argc - 1], "--small") == 0, large = std::strcmp(argv[argc - 1], "--large") == 0;
  const fs::path scratch = fs::path(argc > 2 && std::strncmp(argv[2], "--", 2) != 0 ? argv[2] : fs::temp_directory_path().c_str()) /
                           ("msdbg-bench-" + std::to_string(::getpid()));
  const auto command = [&](const char* verb, const fs::path& dump, const Words& more) {
    Words words = {program, verb, dump, "-q", "--no-index"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  };

  const size_t count = small ? 2000 : 20000;
  const fs::path few = scratch / "few", many = scratch / "many", steps = scratch / "steps";
  make_dump(few, count / 10, 1, 64);
  make_dump(many, count, 1, 64);
  for (const char* format : {"json", "jsonl", "csv"}) {
    const std::string name = "stats_as_" + std::string(format) + "_of_20000_tensors";
    compare(name.c_str(), command("stats", many, {"--format", format}), cat(many), "cat", "2");
  }
  compare("nodes_of_20000_tensors", command("nodes", many, {}), cat(many), "cat", "2");
  compare("report_of_20000_tensors", command("report", many, {"-o", (scratch / "page.html").string()}), cat(many), "cat", "2");
  compare("stats_of_ten_times_as_many_tensors", command("stats", many, {"--format", "json"}), command("stats", few, {"--format", "json"}),
          "of 2000", "12");

  // The peak of one run differs by the memory of a few hundred tensors.
  const auto peak = [&](const fs::path& dump) {
    std::vector<long> peaks;
    for (int i = 0; i < kRounds; ++i) peaks.push_back(run_program(command("show", dump, {"w3.weight"})).peak_kb);
    return median(peaks);
  };
  std::printf("TIME memory_of_a_listed_tensor %.0f bytes target <= 400 bytes\n",
              static_cast<double>(peak(many) - peak(few)) * 1024 / static_cast<double>(count - count / 10));

  ::setenv("XDG_CACHE_HOME", (scratch / "cache").c_str(), 1);
  const auto indexed = [&](const char* name, const fs::path& dump, const char* verb, const Words& more, const char* target) {
    Words words = {program, verb, dump, "-q"};
    words.insert(words.end(), more.begin(), more.end());
    std::vector<double> times;
    for (int i = 0; i <= kRounds; ++i) {
      const Run run = run_program(words);
      if (i > 0) times.push_back(run.seconds * 1e3);  // the first one may write the index
    }
    std::printf("TIME %s %.1f ms target <= %s ms\n", name, median(times), target);
    std::fflush(stdout);
  };
  indexed("recheck_of_20000_tensors", many, "check", {"--when", "TO"}, "100");
  indexed("recheck_of_20000_tensors_with_the_default_rules", many, "check", {}, "100");
  indexed("show_in_20000_files", many, "show", {"w3.weight"}, "50");
  {
    // A check that compares ranks reads as much as one that does not.
    const fs::path ranks = scratch / "ranks", big = scratch / "big";
    make_dump(ranks, count / 4, 1, 64);
    add_ranks(ranks, 4);
    make_dump(big, small ? 2 : 16, 1, 4 << 20);
    add_ranks(big, 4);
    compare("check_that_compares_256_MiB_on_4_ranks", command("check", big, {}), command("check", big, {"--when", "TO"}), "one condition", "2");
    compare("replicas_of_5000_parameters_on_4_ranks", command("replicas", ranks, {}), cat(ranks), "cat", "2");
    indexed("replicas_of_5000_parameters_on_4_ranks_from_the_index", ranks, "replicas", {}, "300");
    for (const fs::path& done : {ranks, big}) fs::remove_all(done);
  }
  if (large) {
    const fs::path million = scratch / "million";
    make_dump(million, 20000, 50, 64);
    indexed("recheck_of_1000000_tensors", million, "check", {"--when", "TO"}, "2000");
    Words words = {program, "check", million, "-q", "--when", "TO"};
    std::printf("TIME memory_of_that %.0f MB target <= 600 MB\n", static_cast<double>(run_program(words).peak_kb) / 1024);
    words = {program, "stats", million, "-q"};
    std::printf("TIME memory_of_a_table_of_1000000_tensors %.0f MB target <= 600 MB\n",
                static_cast<double>(run_program(words).peak_kb) / 1024);
    fs::remove_all(million);
  }

  make_dump(steps, small ? 20 : 200, small ? 100 : 1000, 64);
  compare("trend_of_1000_steps_of_200_tensors", command("trend", steps, {"mean"}), cat(steps), "cat", "2");
  fs::remove_all(scratch);
  return 0;
}
