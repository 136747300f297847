// What does the order of an Ascend device cost?
//
// Writes the same elements as .npy files and as containers in the order of the device, all in the page cache, and computes the statistics
// of both in turn, in one process with one thread; compares CPU seconds. Prints the speed of the containers relative to that of the .npy
// files:
//   RATIO <name> <speed> target >= t
//
//   bench_device [FOLDER] [--small]
#include <time.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>

#include "bench/ratio.h"
#include "msdbg/dump.h"
#include "support/container_file.h"

namespace fs = std::filesystem;

namespace msdbg::bench {
namespace {

constexpr int kDeviceRounds = 9;

/// A shape whose elements fill whole blocks, and one that is padded everywhere.
struct DeviceCase {
  const char* name;
  uint64_t format;
  DType dtype;
  test::HostShape host;  ///< of NZ: h and w
  int64_t c0;
};

void put(const fs::path& path, const std::string& head, const std::string& bytes) {
  fs::create_directories(path.parent_path());
  std::ofstream file(path, std::ios::binary);
  file << head << bytes;
}

std::string npy_head(DType dtype, const std::vector<int64_t>& shape) {
  std::string lengths;
  for (const int64_t length : shape) lengths += std::to_string(length) + ",";
  std::string dict = std::string("{'descr': '") + (dtype == DType::kFloat32 ? "<f4" : "<f2") + "', 'fortran_order': False, 'shape': (" +
                     lengths + "), }";
  while ((10 + dict.size() + 1) % 64 != 0) dict += ' ';
  dict += '\n';
  const char magic[] = {'\x93', 'N', 'U', 'M', 'P', 'Y', 1, 0, static_cast<char>(dict.size() & 255), static_cast<char>(dict.size() >> 8)};
  return std::string(magic, sizeof magic) + dict;
}

void write_case(const fs::path& root, const DeviceCase& one) {
  const bool nz = one.format == test::kFormatFractalNz;
  const std::vector<int64_t> shape = nz ? std::vector<int64_t>{one.host.h, one.host.w} : one.host.list();
  const test::DeviceMemory memory = nz ? test::fractal_nz(shape, one.c0) : test::device_memory("NC1HWC0", one.host, one.c0);
  int64_t count = 1;
  for (const int64_t length : shape) count *= length;
  const size_t item = item_size(one.dtype);
  std::string own(static_cast<size_t>(count) * item, '\0'), device(memory.elements.size() * item, '\0');
  std::mt19937 random(3);
  std::normal_distribution<float> normal(0, 1);
  for (int64_t i = 0; i < count; ++i) {
    const float value = normal(random);
    const uint16_t half = float_to_half(static_cast<double>(value));
    std::memcpy(own.data() + static_cast<size_t>(i) * item, item == 4 ? static_cast<const void*>(&value) : &half, item);
  }
  for (size_t i = 0; i < memory.elements.size(); ++i) {
    if (memory.elements[i] != test::kPadding)
      std::memcpy(device.data() + i * item, own.data() + static_cast<size_t>(memory.elements[i]) * item, item);
  }
  test::StoredContainer container;
  const uint64_t type = one.dtype == DType::kFloat32 ? test::kTypeFloat : test::kTypeFloat16;
  container.outputs.push_back({.type = type, .format = one.format, .shape = memory.shape, .host_shape = shape, .bytes = std::move(device)});
  const std::string name = "MatMul.Default_MatMul-op1.12.7.100";
  put(root / "device/rank_0/Net/0/0" / name, "", container.bytes());
  put(root / "own/rank_0/Net/0/0" / (name + ".output.0.DefaultFormat.npy"), npy_head(one.dtype, shape), own);
}

/// Of this process, which other programs disturb least.
double cpu_now() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

/// CPU seconds for the statistics of everything in a dump. Nothing of an earlier round is kept.
double stats_seconds(const fs::path& dump) {
  const Result<std::unique_ptr<Session>> session = open_dump(dump.string());
  if (!session) {
    std::printf("FAILED %s: %s\n", dump.c_str(), session.status().message().c_str());
    return 1;
  }
  const std::vector<TensorId> tensors = (*session)->tensors({});
  const double start = cpu_now();
  for (const TensorId& id : tensors) {
    const Result<Stats> stats = (*session)->stats(id);
    if (!stats || stats->mean == 0) std::printf("FAILED %s: no statistics\n", dump.c_str());
  }
  return cpu_now() - start;
}

void measure(const fs::path& root, const DeviceCase& one) {
  write_case(root, one);
  std::vector<double> ratios, own, device;
  stats_seconds(root / "own");
  stats_seconds(root / "device");
  for (int i = 0; i < kDeviceRounds; ++i) {
    own.push_back(stats_seconds(root / "own"));
    device.push_back(stats_seconds(root / "device"));
    ratios.push_back(own.back() / device.back());
  }
  std::printf("RATIO %s %.2f target >= 0.6   (npy %.1f CPU ms, device %.1f CPU ms)\n", one.name, median(ratios), median(own) * 1e3,
              median(device) * 1e3);
  std::fflush(stdout);
  fs::remove_all(root);
}

}  // namespace
}  // namespace msdbg::bench

int main(int argc, char** argv) {
  using namespace msdbg;
  using namespace msdbg::bench;
  const bool small = std::strcmp(argv[argc - 1], "--small") == 0;
  const bool folder = argc > 1 && std::strcmp(argv[1], "--small") != 0;
  const fs::path scratch = folder ? fs::path(argv[1]) : fs::temp_directory_path();
  const fs::path root = scratch / ("msdbg-bench-device-" + std::to_string(::getpid()));
  const int64_t side = small ? 512 : 4096, batch = small ? 4 : 64;
  const DeviceCase cases[] = {
      {"NZ_float16", test::kFormatFractalNz, DType::kFloat16, {.h = side, .w = side}, 16},
      {"NZ_float32", test::kFormatFractalNz, DType::kFloat32, {.h = side, .w = side / 2}, 16},
      {"NZ_float16_padded", test::kFormatFractalNz, DType::kFloat16, {.h = side - 5, .w = side - 7}, 16},
      {"NC1HWC0_float16", test::kFormatNc1hwc0, DType::kFloat16, {.n = batch, .c = 64, .h = 56, .w = 56}, 16},
      {"NC1HWC0_float32", test::kFormatNc1hwc0, DType::kFloat32, {.n = batch, .c = 64, .h = 56, .w = 56}, 16},
      {"NC1HWC0_float16_padded", test::kFormatNc1hwc0, DType::kFloat16, {.n = batch, .c = 70, .h = 55, .w = 53}, 16},
  };
  for (const DeviceCase& one : cases) measure(root, one);
  return 0;
}
