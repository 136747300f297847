// Everything compiled for one instruction set. Included by the files of the targets, which specialise Ops and end with
// MSDBG_SIMD_TARGET; a row in dispatch.cpp and the flags in CMakeLists.txt complete a target.
#pragma once

#include "simd/block_lanes.h"
#include "simd/pair_kernel.h"
#include "simd/stats_kernel.h"

#define MSDBG_SIMD_TARGET(VARIABLE, NAME, A)                                                                        \
  static constexpr KernelTable kStats = stats_kernels<A>();                                                         \
  static constexpr PairTable kPairs = pair_kernels<A>();                                                            \
  static constexpr expr::Kernels<float> kFloats = expr::block_kernels<expr::SimdLanes<float, A>>();                 \
  static constexpr expr::Kernels<double> kDoubles = expr::block_kernels<expr::SimdLanes<double, A>>();              \
  extern const Target VARIABLE = {NAME, &kStats, &kPairs, &kFloats, &kDoubles}
