// Dumps made for benchmarks, and programs run on them.
#pragma once

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <vector>

namespace msdbg::bench {

inline double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

inline std::string npy_header(size_t elements) {
  std::string dict = "{'descr': '<f4', 'fortran_order': False, 'shape': (" + std::to_string(elements) + ",), }";
  while ((10 + dict.size() + 1) % 64 != 0) dict += ' ';
  dict += '\n';
  const char magic[] = {'\x93', 'N', 'U', 'M', 'P', 'Y', 1, 0, static_cast<char>(dict.size() & 255), static_cast<char>(dict.size() >> 8)};
  return std::string(magic, sizeof magic) + dict;
}

// A dump of `tensors` parameters in each of `steps` steps, `elements` float32 each, in the layout of MindSpore 2.0.
inline void make_dump(const std::filesystem::path& root, size_t tensors, size_t steps, size_t elements) {
  std::mt19937_64 random(7);
  std::vector<float> values(elements);
  for (float& v : values) v = static_cast<float>(random() % 2000001) / 1e6f - 1.0f;
  const std::string header = npy_header(elements);
  for (size_t step = 0; step < steps; ++step) {
    const std::filesystem::path folder = root / "rank_0/Net/0" / std::to_string(step);
    std::filesystem::create_directories(folder);
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

// Takes the files out of the page cache.
inline void forget(const std::filesystem::path& root) {
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root)) {
    const int file = ::open(entry.path().c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0) continue;
    if (entry.is_regular_file()) ::fdatasync(file);
    ::posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
    ::close(file);
  }
}

// Gives a dump of one rank `ranks` ranks with the same values.
inline void add_ranks(const std::filesystem::path& root, int ranks) {
  for (int rank = 1; rank < ranks; ++rank)
    std::filesystem::copy(root / "rank_0", root / ("rank_" + std::to_string(rank)), std::filesystem::copy_options::recursive);
}

struct Run {
  double seconds = 0;
  double cpu_seconds = 0;
  long peak_kb = 0;
  int status = 0;
};

// Runs a program and discards its output.
inline Run run_program(const std::vector<std::string>& words) {
  const auto start = std::chrono::steady_clock::now();
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
  const auto seconds = [](const struct timeval& time) { return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6; };
  return {seconds_since(start), seconds(usage.ru_utime) + seconds(usage.ru_stime), usage.ru_maxrss, WIFEXITED(status) ? WEXITSTATUS(status) : 255};
}

template <typename T>
T median(std::vector<T> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

}  // namespace msdbg::bench
