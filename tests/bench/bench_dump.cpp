// How close does `msdbg check` come to just reading the files?
//
// Creates dumps in a scratch directory, then alternates between the program and a plain read of the same files, all in the page
// cache, and prints one line per question:
//   RATIO <name> <msdbg time / plain time> target <= t   (memory if the question has a limit)
//
//   bench_dump MSDBG [FOLDER] [--small]
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <vector>

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

namespace {

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

std::string npy_header(size_t elements) {
  std::string dict = "{'descr': '<f4', 'fortran_order': False, 'shape': (" + std::to_string(elements) + ",), }";
  while ((10 + dict.size() + 1) % 64 != 0) dict += ' ';
  dict += '\n';
  const char magic[] = {'\x93', 'N', 'U', 'M', 'P', 'Y', 1, 0, static_cast<char>(dict.size() & 255), static_cast<char>(dict.size() >> 8)};
  return std::string(magic, sizeof magic) + dict;
}

// A dump of `tensors` parameters in each of `steps` steps, `elements` float32 each, in the layout of MindSpore 2.0.
void make_dump(const fs::path& root, size_t tensors, size_t steps, size_t elements) {
  std::mt19937_64 random(7);
  std::vector<float> values(elements);
  for (float& v : values) v = static_cast<float>(random() % 2000001) / 1e6f - 1.0f;
  const std::string header = npy_header(elements);
  for (size_t step = 0; step < steps; ++step) {
    const fs::path folder = root / "rank_0/Net/0" / std::to_string(step);
    fs::create_directories(folder);
    for (size_t i = 0; i < tensors; ++i) {
      values[i % elements] += 0.001f;
      std::ofstream file(folder / ("Parameter.w" + std::to_string(i) + ".weight.0.0.16500000000" + std::to_string(10000 + i) +
                                   ".output.0.DefaultFormat.npy"),
                         std::ios::binary);
      file.write(header.data(), static_cast<std::streamsize>(header.size()));
      file.write(reinterpret_cast<const char*>(values.data()), static_cast<std::streamsize>(elements * sizeof(float)));
    }
  }
}

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

struct Run {
  double seconds = 0;
  long peak_mb = 0;
  int status = 0;
};

// Runs a program and discards its output.
Run run_program(const std::vector<std::string>& words) {
  const auto start = Clock::now();
  const pid_t pid = ::fork();
  if (pid == 0) {
    const int null = ::open("/dev/null", O_RDWR);
    ::dup2(null, 1);
    ::dup2(null, 2);
    std::vector<char*> argv;
    for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
    argv.push_back(nullptr);
    ::execvp(argv[0], argv.data());
    ::_exit(127);
  }
  int status = 0;
  struct rusage usage = {};
  ::wait4(pid, &status, 0, &usage);
  return {seconds_since(start), usage.ru_maxrss / 1024, WIFEXITED(status) ? WEXITSTATUS(status) : 255};
}

template <typename T>
T median(std::vector<T> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
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
    peak = std::max(peak, run.peak_mb);
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
  compare("check_20000_tensors_of_4KiB", {program, "check", many, "-q"}, files_below(many), 0, 7);
  // Compares with cat, as a user would.
  {
    std::vector<double> cat, ours;
    for (int i = 0; i < 7; ++i) {
      cat.push_back(run_program({"sh", "-c", "find '" + many.string() + "' -name '*.npy' -print0 | xargs -0 cat"}).seconds);
      ours.push_back(run_program({program, "check", many, "-q"}).seconds);
    }
    std::printf("RATIO check_20000_tensors_against_cat %.2f target <= 3.00   (cat %.3f s, msdbg %.3f s)\n", median(ours) / median(cat),
                median(cat), median(ours));
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
