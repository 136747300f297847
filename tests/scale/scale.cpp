// scale record FOLDER: measures what the simulation replays, with files in FOLDER (1.5 GB); the recording goes to standard output.
// scale simulate RECORDING: prints the tables of docs/scale.md.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "msdbg/check.h"
#include "msdbg/dump.h"
#include "msdbg/located.h"
#include "msdbg/shared.h"
#include "scale/model.h"
#include "support/team_of_threads.h"

namespace msdbg::scale {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kMiB = 1 << 20;
constexpr size_t kSmallFiles = 400, kMiddleFiles = 60, kLargeFiles = 20;
constexpr size_t kManyFiles = 20'000;

double seconds_on(clockid_t clock) {
  timespec now = {};
  ::clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

void write_npy(const fs::path& path, uint64_t bytes) {
  std::string header = fmt::format("{{'descr': '<f4', 'fortran_order': False, 'shape': ({},), }}", bytes / 4);
  header.resize(117, ' ');
  std::ofstream file(path, std::ios::binary);
  file << std::string("\x93NUMPY\x01\x00\x76\x00", 10) << header << '\n';
  std::vector<float> values(std::min<uint64_t>(bytes / 4, kMiB));
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 1000) * 0.001f - 0.3f;
  for (uint64_t left = bytes; left > 0;) {
    const uint64_t n = std::min<uint64_t>(left, values.size() * 4);
    file.write(reinterpret_cast<const char*>(values.data()), static_cast<std::streamsize>(n));
    left -= n;
  }
}

std::unique_ptr<Session> opened(const fs::path& folder) {
  auto session = open_dump(folder.string());
  if (session) return std::move(*session);
  fmt::print(stderr, "{}\n", session.status().message());
  std::exit(1);
}

void forget_pages(const fs::path& folder) {
  for (const auto& entry : fs::directory_iterator(folder)) {
    const int file = ::open(entry.path().c_str(), O_RDONLY | O_CLOEXEC);
    ::fsync(file);
    ::posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
    ::close(file);
  }
}

std::vector<Sample> samples(const fs::path& folder, clockid_t clock) {
  const auto session = opened(folder);
  std::vector<Sample> out;
  for (const TensorId& id : session->tensors({})) {
    const double before = seconds_on(clock);
    const auto stats = session->stats(id);
    const double after = seconds_on(clock);
    if (stats) out.push_back({stats->count * 4, after - before});
  }
  return out;
}

double resident() {
  std::ifstream statm("/proc/self/statm");
  double total = 0, pages = 0;
  statm >> total >> pages;
  return pages * static_cast<double>(::sysconf(_SC_PAGESIZE));
}

Watchpoint any_nan() {
  Watchpoint watch;
  watch.id = 1;
  watch.on = *Selector::parse("@all");
  watch.condition = *parse_condition("TO");
  watch.rule = watch.condition->spec->id;
  return watch;
}

void record_process0(const fs::path& folder, Recording* recording) {
  const double many = static_cast<double>(kManyFiles), memory = resident();
  const double begin = seconds_on(CLOCK_THREAD_CPUTIME_ID);
  const auto session = opened(folder);
  recording->open_per_tensor = (seconds_on(CLOCK_THREAD_CPUTIME_ID) - begin) / many;
  std::atomic<uint64_t> elsewhere{0};
  test::TeamOfThreads team(2, {{std::string(kMeasureWork), measure_handler([&](const TensorId& id, std::string_view location) {
                                  ++elsewhere;
                                  return open_located(id, location);
                                })}});
  const std::vector<Watchpoint> watches = {any_nan()};
  const double before = seconds_on(CLOCK_THREAD_CPUTIME_ID);
  const auto result = check(*session, watches, {});
  recording->check_per_tensor = (seconds_on(CLOCK_THREAD_CPUTIME_ID) - before) / many;
  recording->memory_per_tensor = (resident() - memory) / many;
  const double items = std::max(1.0, static_cast<double>(elsewhere));
  recording->sent_per_tensor = static_cast<double>(team.link.sent) / items;
  recording->received_per_tensor = static_cast<double>(team.link.received) / items;
  if (!result || result->coverage.checked != kManyFiles) fmt::print(stderr, "the check did not check everything\n");
}

int record(const fs::path& folder, std::string_view machine) {
  const fs::path sizes = folder / "sizes", many = folder / "many";
  fs::create_directories(sizes);
  fs::create_directories(many);
  int number = 0;
  const auto write = [&](const fs::path& where, size_t count, uint64_t bytes) {
    for (size_t i = 0; i < count; ++i) write_npy(where / fmt::format("t{:06}.npy", number++), bytes);
  };
  write(many, kManyFiles, 4096);
  write(sizes, kSmallFiles, 8 << 10);
  write(sizes, kMiddleFiles, 4 * kMiB);
  write(sizes, kLargeFiles, 50 * kMiB);
  Recording recording;
  recording.machine = machine;
  record_process0(many, &recording);
  (void)samples(sizes, CLOCK_MONOTONIC);  // into the page cache
  recording.warm = samples(sizes, CLOCK_THREAD_CPUTIME_ID);
  forget_pages(sizes);
  recording.cold = samples(sizes, CLOCK_MONOTONIC);
  fs::remove_all(sizes);
  fs::remove_all(many);
  fmt::print("{}", recording.text());
  return 0;
}

int simulate_file(const char* path) {
  std::ifstream file(path);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const auto recording = Recording::parse(text);
  if (!recording) {
    fmt::print(stderr, "{}: {}\n", path, recording.status().message());
    return 1;
  }
  fmt::print("{}", report(*recording));
  return 0;
}

}  // namespace
}  // namespace msdbg::scale

int main(int argc, char** argv) {
  const std::string_view verb = argc > 2 ? argv[1] : "";
  if (verb == "record") return msdbg::scale::record(argv[2], argc > 3 ? argv[3] : "a machine");
  if (verb == "simulate") return msdbg::scale::simulate_file(argv[2]);
  fmt::print(stderr, "scale record FOLDER [MACHINE] | scale simulate RECORDING\n");
  return 2;
}
