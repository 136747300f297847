// How long does a page take, from the command line to the file?
//
// Runs `msdbg report DUMP -o FILE` several times, all files in the page cache, and prints the median:
//   TIME report_<dump> <value> ms target <= 1000 ms
//
//   bench_report MSDBG DUMP...
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

namespace {

constexpr int kRounds = 9;

/// Seconds, or a negative number without a page.
double run(const std::string& program, const std::string& dump, const std::string& page) {
  const auto start = std::chrono::steady_clock::now();
  const pid_t child = ::fork();
  if (child == 0) {
    ::execl(program.c_str(), program.c_str(), "report", dump.c_str(), "-q", "-o", page.c_str(), nullptr);
    ::_exit(127);
  }
  int status = 0;
  if (child < 0 || ::waitpid(child, &status, 0) != child || !WIFEXITED(status) || WEXITSTATUS(status) > 1) return -1;
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: bench_report MSDBG DUMP...\n");
    return 2;
  }
  std::string folder = (std::filesystem::temp_directory_path() / "bench-report-XXXXXX").string();
  if (::mkdtemp(folder.data()) == nullptr) return 3;
  const std::string page = folder + "/report.html";
  int status = 0;
  for (int i = 2; i < argc && status == 0; ++i) {
    std::vector<double> times;
    for (int round = 0; round <= kRounds; ++round) {
      const double seconds = run(argv[1], argv[i], page);
      if (seconds < 0) {
        std::fprintf(stderr, "bench_report: %s: no page\n", argv[i]);
        status = 3;
        break;
      }
      if (round > 0) times.push_back(seconds);  // the first one fills the page cache
    }
    if (times.empty()) continue;
    std::sort(times.begin(), times.end());
    std::string name = std::filesystem::path(argv[i]).lexically_normal().filename().string();
    std::printf("TIME report_%s %.0f ms target <= 1000 ms\n", name.c_str(), times[times.size() / 2] * 1e3);
  }
  std::filesystem::remove_all(folder);
  return status;
}
