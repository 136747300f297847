// Feeds one tensor, and its previous value in lockstep, through a StatsPass in blocks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "msdbg/bits.h"
#include "msdbg/expr.h"
#include "msdbg/session.h"

namespace msdbg {

/// Elements per block: 256 KiB of float32, so a block and its previous value stay in L2. A multiple of StatsPass::kStatsBlock:
/// results do not depend on it.
inline constexpr uint64_t kElementsPerBlock = 16 * StatsPass::kStatsBlock;
static_assert(kElementsPerBlock % BitsPrinter::kStride == 0);

/// One thread's block buffers; reused from tensor to tensor.
class PassBuffers {
 public:
  std::span<std::byte> current(size_t bytes);
  std::span<std::byte> previous(size_t bytes);

 private:
  std::vector<std::byte> current_, previous_;
};

/// Precondition: with `previous`, equal counts.
/// Error: the reader's error; kInterrupted if the interrupt flag was set between two blocks.
/// Feeds `expressions` and `bits` in the same walk; expressions that need more passes get them.
Result<Stats> run_pass(ElementReader& reader, ElementReader* previous, const StatsRequest& request, PassBuffers& buffers,
                       uint64_t* bytes_read, ExpressionRun* expressions = nullptr, BitsPrinter* bits = nullptr);

}  // namespace msdbg
