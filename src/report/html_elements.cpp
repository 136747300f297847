// One pass over a tensor for its heat map and its histogram.
#include <algorithm>
#include <cmath>

#include "report/html_pictures.h"

namespace msdbg::page {
namespace {

constexpr uint64_t kMostCells = 64, kBlock = 1 << 16;
constexpr size_t kBins = 32;

Grid empty_grid(const TensorInfo& info) {
  Grid grid;
  grid.columns = info.shape.empty() ? 1 : static_cast<uint64_t>(std::max<int64_t>(1, info.shape.back()));
  grid.rows = (info.count + grid.columns - 1) / grid.columns;
  if ((grid.rows == 1 || grid.columns == 1) && info.count > kMostCells) {
    grid.columns = kMostCells;
    // Full rows with a round number of elements make coordinates easy to read.
    while (info.count / grid.columns > kMostCells * grid.columns) grid.columns *= 2;
    grid.rows = (info.count + grid.columns - 1) / grid.columns;
    grid.wrapped = true;
  }
  grid.rows_per_cell = (grid.rows + kMostCells - 1) / kMostCells;
  grid.columns_per_cell = (grid.columns + kMostCells - 1) / kMostCells;
  if (grid.rows == 0) return grid;
  grid.down = static_cast<size_t>((grid.rows + grid.rows_per_cell - 1) / grid.rows_per_cell);
  grid.across = static_cast<size_t>((grid.columns + grid.columns_per_cell - 1) / grid.columns_per_cell);
  grid.cells.resize(grid.down * grid.across);
  return grid;
}

Grid::Kind kind_of(double value) {
  if (std::isnan(value)) return Grid::Kind::kNan;
  if (std::isinf(value)) return value > 0 ? Grid::Kind::kPosInf : Grid::Kind::kNegInf;
  return Grid::Kind::kNumber;
}

int rank_of(Grid::Kind kind) {
  switch (kind) {
    case Grid::Kind::kEmpty:
      return 0;
    case Grid::Kind::kNumber:
      return 1;
    case Grid::Kind::kNegInf:
      return 2;
    case Grid::Kind::kPosInf:
      return 3;
    case Grid::Kind::kNan:
      return 4;
  }
  return 0;
}

}  // namespace

Result<Elements> look_at_elements(Session& session, const TensorId& id, const Stats& stats) {
  Result<OpenTensor> opened = session.open_elements(id);
  if (!opened) return opened.status();
  const auto& [info, reader] = *opened;
  Elements out;
  out.grid = empty_grid(info);
  Bins& bins = out.bins;
  const bool any = stats.finite_count() > 0 && stats.min == stats.min;
  bins.low = any ? stats.min : 0;
  bins.high = any ? stats.max : 0;
  bins.counts.assign(kBins, 0);
  // Halves first: the span of two large values of opposite sign overflows.
  const double half_span = bins.high / 2 - bins.low / 2;
  const size_t size = item_size(info.dtype);
  const uint64_t count = info.count;
  std::vector<std::byte> block(std::min(kBlock, count) * size);
  for (uint64_t first = 0; first < count; first += kBlock) {
    if (interrupt_requested()) return Status(Code::kInterrupted, "interrupted");
    const uint64_t n = std::min(kBlock, count - first);
    if (const Status status = reader->read(first, std::span(block).first(n * size)); !status.ok()) return status;
    for (uint64_t i = 0; i < n; ++i) {
      const double value = element_as_double(info.dtype, block.data() + i * size);
      const Grid::Kind kind = kind_of(value);
      const uint64_t at = first + i;
      Grid::Cell& cell = out.grid.cells[(at / out.grid.columns / out.grid.rows_per_cell) * out.grid.across +
                                        at % out.grid.columns / out.grid.columns_per_cell];
      if (rank_of(kind) > rank_of(cell.kind) ||
          (kind == Grid::Kind::kNumber && cell.kind == kind && std::abs(value) > std::abs(cell.value))) {
        cell = {kind, kind == Grid::Kind::kNumber ? value : 0};
      }
      switch (kind) {
        case Grid::Kind::kNan:
          ++bins.nan;
          break;
        case Grid::Kind::kPosInf:
          ++bins.pos_inf;
          break;
        case Grid::Kind::kNegInf:
          ++bins.neg_inf;
          break;
        default: {
          // A value that changed after its statistics were computed is counted in the first or last bin.
          const double place = half_span > 0 ? (value / 2 - bins.low / 2) / half_span * kBins : 0;
          ++bins.counts[place <= 0 ? 0 : std::min(kBins - 1, static_cast<size_t>(place))];
        }
      }
    }
  }
  return out;
}

}  // namespace msdbg::page
