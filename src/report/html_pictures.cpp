// One tensor as a heat map and as a histogram.
#include "report/html_pictures.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "report/html_svg.h"
#include "report/table.h"

namespace msdbg::page {
namespace {

constexpr int kFigureWidth = 416, kHeat = 400, kHeatHigh = 192, kLevels = 5;
constexpr size_t kMostTextRows = 24;

/// The value with the darkest colour: a few outliers lie beyond it and cannot fade the others.
double scale_of(const Grid& grid) {
  std::vector<double> sizes;
  for (const Grid::Cell& cell : grid.cells) {
    if (cell.kind == Grid::Kind::kNumber && cell.value != 0) sizes.push_back(std::abs(cell.value));
  }
  if (sizes.empty()) return 0;
  std::sort(sizes.begin(), sizes.end());
  return sizes[(sizes.size() - 1) * 98 / 100];
}

int level_of(double value, double scale) {
  if (scale == 0 || value == 0) return 0;
  const double share = std::min(1.0, std::abs(value) / scale);
  // Only zero has the colour of zero.
  const int level = std::max(1, static_cast<int>(std::ceil(share * kLevels)));
  return value < 0 ? -level : level;
}

std::string class_of(const Grid::Cell& cell, double scale) {
  switch (cell.kind) {
    case Grid::Kind::kEmpty:
      return "";
    case Grid::Kind::kNan:
      return "nan";
    case Grid::Kind::kPosInf:
      return "pinf";
    case Grid::Kind::kNegInf:
      return "ninf";
    case Grid::Kind::kNumber:
      break;
  }
  const int level = level_of(cell.value, scale);
  return level == 0 ? "z" : fmt::format("{}{}", level < 0 ? 'n' : 'p', std::abs(level));
}

std::string heat_text(const Grid& grid, double scale) {
  if (grid.down > kMostTextRows) return "";
  static constexpr std::array<std::string_view, kLevels + 1> kShades = {"·", "░", "░", "▒", "▓", "█"};
  std::string out;
  for (size_t row = 0; row < grid.down; ++row) {
    for (size_t column = 0; column < grid.across; ++column) {
      const Grid::Cell& cell = grid.cells[row * grid.across + column];
      switch (cell.kind) {
        case Grid::Kind::kEmpty:
          out += ' ';
          break;
        case Grid::Kind::kNan:
          out += 'N';
          break;
        case Grid::Kind::kPosInf:
          out += '+';
          break;
        case Grid::Kind::kNegInf:
          out += '-';
          break;
        case Grid::Kind::kNumber:
          out += kShades[static_cast<size_t>(std::abs(level_of(cell.value, scale)))];
      }
    }
    out += '\n';
  }
  return out;
}

Line heat_caption(const Grid& grid, double scale) {
  std::string text = grid.wrapped ? fmt::format("The elements in rows of {}", grid.columns)
                                  : fmt::format("{} by {}, last axis across", counted(grid.rows, "row"), counted(grid.columns, "column"));
  if (grid.rows_per_cell * grid.columns_per_cell > 1) {
    text += fmt::format("; a cell shows the largest of {} by {} elements", grid.rows_per_cell, grid.columns_per_cell);
  }
  if (scale > 0) text += fmt::format("; full colour from {} on", format_short(scale, 3));
  Line line{plain(text)};
  bool nan = false, pos = false, neg = false;
  for (const Grid::Cell& cell : grid.cells) {
    nan |= cell.kind == Grid::Kind::kNan;
    pos |= cell.kind == Grid::Kind::kPosInf;
    neg |= cell.kind == Grid::Kind::kNegInf;
  }
  std::string marks;
  for (const auto& [there, what] :
       {std::pair{nan, "NaN filled"}, std::pair{pos, "+Inf hatched upwards"}, std::pair{neg, "-Inf hatched downwards"}}) {
    if (there) marks += fmt::format("{}{}", marks.empty() ? "" : ", ", what);
  }
  if (!marks.empty()) {
    line.push_back(plain(". "));
    line.push_back(bad(marks));
  }
  return line;
}

/// The cells for the script's tooltips: values row by row, `v*n` for n equal neighbours.
std::string cells_text(const Grid& grid) {
  std::string out, before;
  size_t run = 0;
  const auto flush = [&] {
    if (run > 0) out += fmt::format("{}{}{}", out.empty() ? "" : " ", before, run > 1 ? fmt::format("*{}", run) : "");
  };
  for (const Grid::Cell& cell : grid.cells) {
    const std::string text = cell.kind == Grid::Kind::kNumber   ? format_short(cell.value, 3)
                             : cell.kind == Grid::Kind::kNan    ? "NaN"
                             : cell.kind == Grid::Kind::kPosInf ? "+Inf"
                             : cell.kind == Grid::Kind::kNegInf ? "-Inf"
                                                                : "none";
    if (text == before) {
      ++run;
      continue;
    }
    flush();
    before = text;
    run = 1;
  }
  flush();
  return out;
}

}  // namespace

Figure heat_map(const Grid& grid, std::string_view name) {
  constexpr int kLeft = 34, kBottom = 15;
  Figure figure;
  if (grid.cells.empty()) return figure;
  const double scale = scale_of(grid);
  const int cell = std::clamp(std::min(kHeat / static_cast<int>(grid.across), kHeatHigh / static_cast<int>(grid.down)), 3, 16);
  const int width = cell * static_cast<int>(grid.across), height = cell * static_cast<int>(grid.down);
  // One path per colour, with neighbours in a row joined: a picture of 4096 cells stays small.
  std::map<std::string, std::string> paths;
  for (size_t row = 0; row < grid.down; ++row) {
    for (size_t column = 0; column < grid.across;) {
      const std::string css = class_of(grid.cells[row * grid.across + column], scale);
      size_t end = column + 1;
      while (end < grid.across && class_of(grid.cells[row * grid.across + end], scale) == css) ++end;
      if (!css.empty()) {
        const int run = cell * static_cast<int>(end - column);
        paths[css] += fmt::format("M{} {}h{}v{}h-{}z", cell * static_cast<int>(column), cell * static_cast<int>(row), run, cell, run);
      }
      column = end;
    }
  }
  figure.svg = svg_begin(std::max(width, 40) + kLeft + 2, std::max(height, 12) + kBottom + 2, fmt::format("Heat map of {}", name)) +
               fmt::format("<g class=\"cells\" transform=\"translate({} 1)\" shape-rendering=\"crispEdges\" data-across=\"{}\" "
                           "data-rows=\"{} {}\" data-columns=\"{} {}\"{} data-cells=\"{}\">",
                           kLeft, grid.across, grid.rows, grid.rows_per_cell, grid.columns, grid.columns_per_cell,
                           grid.wrapped ? " data-wrapped=\"\"" : "", cells_text(grid));
  for (const auto& [css, path] : paths) figure.svg += fmt::format("<path class=\"{}\" d=\"{}\"/>", css, path);
  figure.svg += fmt::format("<rect class=\"frame\" x=\"-.5\" y=\"-.5\" width=\"{}\" height=\"{}\"/></g>", width + 1, height + 1);
  const auto tick = [&](int x, int y, std::string_view anchor, uint64_t number) {
    figure.svg += fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"{}\">{}</text>", x, y, anchor, number);
  };
  // Where one long axis was broken into rows, rows are labelled with the index of their first element.
  const uint64_t row_unit = grid.wrapped ? grid.columns : 1;
  tick(kLeft - 4, 11, "end", 0);
  if (height >= 28) tick(kLeft - 4, height, "end", (grid.rows - 1) * row_unit);
  tick(kLeft, height + 13, "start", 0);
  if (width >= 40) tick(kLeft + width, height + 13, "end", grid.columns - 1);
  figure.svg += "</svg>\n";
  figure.caption = heat_caption(grid, scale);
  figure.text = heat_text(grid, scale);
  return figure;
}

Figure histogram_figure(const Bins& bins, std::string_view name) {
  constexpr int kHigh = 84, kTop = 16, kBottom = 16, kOutside = 44, kLeft = 34;
  struct Outside {
    uint64_t count;
    std::string_view css, label;
  };
  std::vector<Outside> outside;
  for (const Outside& kind :
       {Outside{bins.nan, "nan", "NaN"}, Outside{bins.pos_inf, "pinf", "+Inf"}, Outside{bins.neg_inf, "ninf", "-Inf"}}) {
    if (kind.count > 0) outside.push_back(kind);
  }
  uint64_t finite = 0, most = 1, all = bins.nan + bins.pos_inf + bins.neg_inf;
  for (uint64_t count : bins.counts) finite += count, most = std::max(most, count);
  all = std::max<uint64_t>(1, all + finite);
  const int room = kFigureWidth - kLeft - kOutside * static_cast<int>(outside.size());
  const double step = static_cast<double>(room) / static_cast<double>(bins.counts.size());
  // The numbers have their own scale, or a tensor full of NaN would flatten them; the columns next to it are shares of all.
  const auto height_of = [&](uint64_t count, uint64_t full) {
    return count == 0 ? 0.0 : std::max(1.0, kHigh * static_cast<double>(count) / static_cast<double>(full));
  };
  const int base = kTop + kHigh;
  Figure figure;
  figure.grows = true;
  std::string path, zones;
  const double span = bins.high / 2 - bins.low / 2, share = 2 / static_cast<double>(bins.counts.size());
  for (size_t i = 0; i < bins.counts.size(); ++i) {
    const double height = height_of(bins.counts[i], most), x = kLeft + static_cast<double>(i) * step;
    if (height > 0) path += fmt::format("M{:.1f} {}v-{:.1f}h{:.1f}v{:.1f}z", x, base, height, step - 1, height);
    const double from = bins.low + span * share * static_cast<double>(i);
    zones += svg_zone(x, kTop, step, kHigh,
                  fmt::format("{} to {}: {}", format_short(from), format_short(from + span * share), counted(bins.counts[i], "element")));
  }
  figure.svg = svg_begin(kFigureWidth, base + kBottom, fmt::format("Histogram of {}", name));
  if (finite > 0) {
    figure.svg += fmt::format("<path class=\"bar\" d=\"{}\"/><path class=\"axis\" d=\"M{} {}.5h{}M{} {}.5h-4\"/>", path, kLeft, base,
                              room - 4, kLeft, kTop);
    figure.svg += fmt::format("<text x=\"0\" y=\"11\">elements</text><text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>",
                              kLeft - 5, kTop + 12, most);
    figure.svg += fmt::format("<text x=\"{}\" y=\"{}\">{}</text>", kLeft, base + 13, format_short(bins.low));
    if (bins.high > bins.low)
      figure.svg += fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>", kLeft + room - 4, base + 13,
                                format_short(bins.high));
    figure.svg += zones;
  } else {
    figure.svg += fmt::format("<text x=\"{}\" y=\"{}\">no finite element</text>", kLeft, base - 4);
  }
  for (size_t i = 0; i < outside.size(); ++i) {
    const double x = kLeft + room + kOutside * static_cast<double>(i) + 8, height = height_of(outside[i].count, all);
    figure.svg += fmt::format("<path class=\"{}\" d=\"M{:.1f} {}v-{:.1f}h28v{:.1f}z\"/>", outside[i].css, x, base, height, height);
    figure.svg +=
        fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">{}</text>", x + 14, base - height - 3, outside[i].count);
    figure.svg += fmt::format("<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{}</text>", x + 14, base + 13, outside[i].label);
  }
  figure.svg += "</svg>\n";
  std::string rest;
  for (const Outside& kind : outside) rest += fmt::format("   {} {}", kind.count, kind.label);
  if (finite > 0) {
    std::string curve;
    uint64_t highest = 1;
    for (uint64_t count : bins.counts) highest = std::max(highest, count);
    for (uint64_t count : bins.counts) {
      curve += count == 0 ? std::string(" ")
                          : std::string(kSparks[static_cast<size_t>(static_cast<double>(count) / static_cast<double>(highest) * 7)]);
    }
    figure.text = fmt::format("{} {} {}{}\n", format_short(bins.low), curve, format_short(bins.high), rest);
  } else {
    figure.text = fmt::format("no finite element{}\n", rest);
  }
  return figure;
}

}  // namespace msdbg::page
