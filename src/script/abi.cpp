// The plain C functions of include/msdbg/abi.h, and their registration with Lua.
#include "msdbg/abi.h"

#include <cmath>
#include <exception>
#include <limits>

#include "msdbg/simd.h"
#include "msdbg/tensor.h"
#include "script/embedded.h"
#include "script/objects.h"

namespace {

constexpr int kOk = 0, kOutside = 1, kNoStatistics = 2, kFailed = 3;

// LuaJIT treats numbers loaded through FFI as its own values, and its type tags are NaNs with a payload: return a single NaN.
double canonical(double value) { return std::isnan(value) ? std::numeric_limits<double>::quiet_NaN() : value; }

// Counts are passed as double; nothing beyond 2^53 elements is addressable anyway.
bool inside(const msdbg_view* view, double first, double n) {
  return view != nullptr && first >= 0 && n >= 0 && std::trunc(first) == first && std::trunc(n) == n &&
         first + n <= view->count;
}

msdbg::TensorView to_view(const msdbg_view* view) {
  return {static_cast<msdbg::DType>(view->dtype),
          {view->shape, static_cast<size_t>(view->rank)},
          static_cast<const std::byte*>(view->data),
          static_cast<uint64_t>(view->count)};
}

int elements(const msdbg_view* view, double first, double n, double* out) noexcept {
  if (out == nullptr || !inside(view, first, n)) return kOutside;
  const msdbg::TensorView tensor = to_view(view);
  if (!msdbg::is_evaluable(tensor.dtype)) return kNoStatistics;
  const auto begin = static_cast<uint64_t>(first), count = static_cast<uint64_t>(n);
  for (uint64_t i = 0; i < count; ++i) out[i] = canonical(tensor.at(begin + i));
  return kOk;
}

int element(const msdbg_view* view, double index, double* out) noexcept { return elements(view, index, 1, out); }

int statistics(const msdbg_view* view, msdbg_stats* out) noexcept try {
  if (view == nullptr || out == nullptr) return kOutside;
  const msdbg::TensorView tensor = to_view(view);
  if (!msdbg::is_evaluable(tensor.dtype)) return kNoStatistics;
  const msdbg::Stats stats = msdbg::compute_stats(tensor);
  const auto number = [](uint64_t count) { return static_cast<double>(count); };
  *out = {number(stats.count),
          number(stats.nan_count),
          number(stats.pos_inf_count),
          number(stats.neg_inf_count),
          number(stats.zero_count),
          number(stats.pos_count),
          number(stats.neg_count),
          canonical(stats.min),
          canonical(stats.max),
          canonical(stats.mean),
          canonical(stats.abs_mean),
          canonical(stats.std),
          canonical(stats.l2_norm),
          canonical(stats.zero_percentage()),
          stats.first_bad ? number(*stats.first_bad) : -1,
          number(stats.dtype_max_count)};
  return kOk;
} catch (const std::exception&) {  // called by compiled Lua: no exception may escape
  return kFailed;
}

constexpr msdbg_abi kTable = {MSDBG_ABI_VERSION, sizeof(msdbg_abi), element, elements, statistics};

}  // namespace

const msdbg_abi* msdbg_abi_table(void) { return &kTable; }

namespace msdbg::script {

void bind_abi(lua_State* L) {
  push(L, abi_text());
  lua_setfield(L, -2, "abi_text");
  // The address as light userdata; LuaJIT casts it to a pointer without a symbol lookup.
  lua_pushlightuserdata(L, const_cast<msdbg_abi*>(&kTable));
  lua_setfield(L, -2, "abi_table");
}

}  // namespace msdbg::script
