// Selects the compiled target to run.
#include <fmt/format.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <iterator>

#include "msdbg/simd.h"
#include "simd/kernels.h"

#ifdef MSDBG_SIMD_X86
#include <cpuid.h>
#endif

namespace msdbg {
namespace simd {

#ifdef MSDBG_SIMD_X86
extern const Target kSse2Target;
extern const Target kAvx2Target;
extern const Target kAvx512Target;
#endif
#ifdef MSDBG_SIMD_NEON
extern const Target kNeonTarget;
#endif

namespace {

#ifdef MSDBG_SIMD_X86
// Clang's test has no name for it. It uses the AVX registers, which are checked as well.
bool has_f16c() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0;
}
bool has_avx2() { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && has_f16c(); }
#endif

struct Row {
  const Target* target;
  bool (*available)();
};

// Best last. Uses GCC's test instead of xsimd's, which checks only the processor: the operating system (or a virtual machine) must
// also save the wide registers.
constexpr Row kRows[] = {
    {&kScalarTarget, [] { return true; }},
#ifdef MSDBG_SIMD_X86
    {&kSse2Target, [] { return __builtin_cpu_supports("sse2") != 0; }},
    {&kAvx2Target, has_avx2},
    {&kAvx512Target,
     [] {
       return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512cd") &&
              __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
     }},
#endif
#ifdef MSDBG_SIMD_NEON
    // Part of every AArch64 processor. No SVE: xsimd's batches need a register length that is known when they are compiled, and the
    // Kunpeng 920 of most Ascend servers has none.
    {&kNeonTarget, [] { return true; }},
#endif
};

struct Choices {
  std::array<const Target*, std::size(kRows)> targets = {};
  std::array<std::string_view, std::size(kRows)> names = {};
  size_t count = 0;

  const Target* find(std::string_view name) const {
    for (size_t i = 0; i < count; ++i) {
      if (names[i] == name) return targets[i];
    }
    return nullptr;
  }
};

const Choices& choices() {
  static const Choices available = [] {
#ifdef MSDBG_SIMD_X86
    __builtin_cpu_init();
#endif
    Choices found;
    for (const Row& row : kRows) {
      if (!row.available()) continue;
      found.targets[found.count] = row.target;
      found.names[found.count++] = row.target->name;
    }
    return found;
  }();
  return available;
}

// An unknown name in the environment is ignored: a program that only examines a dump should not fail because of it.
const Target* initial_target() {
  const Choices& available = choices();
  const char* wanted = std::getenv("MSDBG_SIMD");
  if (wanted != nullptr && *wanted != '\0') {
    if (const Target* target = available.find(wanted)) return target;
    log(LogLevel::kWarning,
        fmt::format("simd: MSDBG_SIMD names '{}', which is not one of {}; using {}", printable(wanted),
                    fmt::join(simd_targets(), ", "), available.names[available.count - 1]));
  }
  return available.targets[available.count - 1];
}

std::atomic<const Target*>& chosen() {
  static std::atomic<const Target*> target = initial_target();
  return target;
}

}  // namespace

const Target& current_target() { return *chosen().load(std::memory_order_acquire); }

const Kernel& stats_kernel(const Target& target, DType dtype) {
  MSDBG_CHECK(is_evaluable(dtype));
  return target.stats->at[static_cast<size_t>(dtype)];
}

const PairKernel& pair_kernel(const Target& target, DType dtype) {
  MSDBG_CHECK(is_evaluable(dtype));
  return target.pairs->at[static_cast<size_t>(dtype)];
}

}  // namespace simd

std::span<const std::string_view> simd_targets() {
  const simd::Choices& available = simd::choices();
  return {available.names.data(), available.count};
}

std::string_view simd_target() { return simd::current_target().name; }

Status set_simd_target(std::string_view name) {
  const simd::Target* target = simd::choices().find(name);
  if (target == nullptr) {
    return Status(Code::kInvalidArgument, fmt::format("simd: this processor has no target '{}'; choose one of {}",
                                                      printable(name), fmt::join(simd_targets(), ", ")));
  }
  simd::chosen().store(target, std::memory_order_release);
  return Status();
}

}  // namespace msdbg
