// Positions for boxes and lines. Only picture_layout.cpp uses Graphviz.
#pragma once

#include <utility>
#include <vector>

#include "msdbg/picture.h"

namespace msdbg {

struct Point {
  double x = 0, y = 0;
};

/// Width and height of a box.
struct BoxSize {
  double width = 0, height = 0;
};

/// Unit: px; y grows downwards; the origin is the upper left corner.
struct PictureLayout {
  double width = 0, height = 0;
  std::vector<Point> centres;              ///< one per node
  std::vector<std::vector<Point>> curves;  ///< one per edge: start and 3 n control points of Bezier pieces, then the tip of the arrow
};

/// Precondition: the edges name existing nodes; `sizes` has one entry per node.
Result<PictureLayout> layout_picture(const PictureGraph& graph, const std::vector<BoxSize>& sizes);

}  // namespace msdbg
