// Pictures of one tensor and of one series, drawn as SVG; the classes of assets/page.css define the colours.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "msdbg/session.h"
#include "report/document.h"

namespace msdbg::page {

/// A tensor as at most 64 by 64 cells. A cell for several elements shows the one of largest magnitude; values that are not finite
/// win over numbers, and NaN over Inf.
struct Grid {
  enum class Kind : uint8_t { kEmpty, kNumber, kNan, kPosInf, kNegInf };
  struct Cell {
    Kind kind = Kind::kEmpty;
    double value = 0;
  };
  uint64_t rows = 0, columns = 0;  ///< of the tensor as a table, with the last axis across
  uint64_t rows_per_cell = 1, columns_per_cell = 1;
  size_t down = 0, across = 0;  ///< in cells
  bool wrapped = false;         ///< one long axis, broken into rows
  std::vector<Cell> cells;      ///< row by row
};

struct Bins {
  double low = 0, high = 0;  ///< of the finite elements
  std::vector<uint64_t> counts;
  uint64_t nan = 0, pos_inf = 0, neg_inf = 0;
};

struct Elements {
  Grid grid;
  Bins bins;
};

/// One pass over the elements in blocks of any size. Error: that of Session::read, kInterrupted.
Result<Elements> look_at_elements(Session& session, const TensorId& id, const Stats& stats);

/// `name` is read by screen readers.
Figure heat_map(const Grid& grid, std::string_view name);
Figure histogram_figure(const Bins& bins, std::string_view name);

struct SeriesPoint {
  int64_t step = 0;
  std::optional<double> value;  ///< nullopt: unknown
  bool broken = false;          ///< the tensor holds NaN or Inf there
};
/// A line over the steps, on a logarithmic scale if the values require it. `axis`: what the values are.
Figure series_figure(std::span<const SeriesPoint> points, std::string_view name, std::string_view axis);

}  // namespace msdbg::page
