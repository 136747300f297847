#include "report/html_pictures.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "report/table.h"

namespace msdbg::page {
namespace {

constexpr int kWidth = 416, kHeat = 400, kHeatHigh = 192, kLevels = 5;
constexpr size_t kMostTextRows = 24;
constexpr std::array<std::string_view, 8> kSparks = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};

std::string svg_begin(int width, int height, std::string_view label) {
  return fmt::format("<svg viewBox=\"0 0 {} {}\" width=\"{}\" height=\"{}\" role=\"img\" aria-label=\"{}\">", width, height, width, height,
                     escaped(label));
}

/// Where the colours are darkest: all but the outermost elements stay inside, so that one giant does not whiten the rest.
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
  // Only zero looks like zero.
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

}  // namespace

Figure heat_map(const Grid& grid, std::string_view name) {
  Figure figure;
  if (grid.cells.empty()) return figure;
  const double scale = scale_of(grid);
  const int cell = std::clamp(std::min(kHeat / static_cast<int>(grid.across), kHeatHigh / static_cast<int>(grid.down)), 3, 16);
  const int width = cell * static_cast<int>(grid.across), height = cell * static_cast<int>(grid.down);
  // One path a colour, neighbours of a row joined: a picture of 4096 cells stays small.
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
  figure.svg = svg_begin(width + 2, height + 2, fmt::format("Heat map of {}", name)) +
               "<g transform=\"translate(1 1)\" shape-rendering=\"crispEdges\">";
  for (const auto& [css, path] : paths) figure.svg += fmt::format("<path class=\"{}\" d=\"{}\"/>", css, path);
  figure.svg += fmt::format("<rect class=\"frame\" x=\"-.5\" y=\"-.5\" width=\"{}\" height=\"{}\"/></g></svg>\n", width + 1, height + 1);
  figure.caption = heat_caption(grid, scale);
  figure.text = heat_text(grid, scale);
  return figure;
}

Figure histogram_figure(const Bins& bins, std::string_view name) {
  constexpr int kHigh = 84, kTop = 14, kBottom = 16, kOutside = 44;
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
  const int room = kWidth - kOutside * static_cast<int>(outside.size());
  const double step = static_cast<double>(room) / static_cast<double>(bins.counts.size());
  // The numbers have a scale of their own, or a tensor full of NaN would flatten them; the columns beside it are shares of all.
  const auto height_of = [&](uint64_t count, uint64_t full) {
    return count == 0 ? 0.0 : std::max(1.0, kHigh * static_cast<double>(count) / static_cast<double>(full));
  };
  const int base = kTop + kHigh;
  Figure figure;
  figure.grows = true;
  std::string path;
  for (size_t i = 0; i < bins.counts.size(); ++i) {
    const double height = height_of(bins.counts[i], most);
    if (height > 0) path += fmt::format("M{:.1f} {}v-{:.1f}h{:.1f}v{:.1f}z", static_cast<double>(i) * step, base, height, step - 1, height);
  }
  figure.svg = svg_begin(kWidth, base + kBottom, fmt::format("Histogram of {}", name));
  if (finite > 0) {
    figure.svg += fmt::format("<path class=\"bar\" d=\"{}\"/><path class=\"axis\" d=\"M0 {}.5h{}\"/>", path, base, room - 4);
    figure.svg += fmt::format("<text x=\"0\" y=\"{}\">{}</text>", base + 13, format_short(bins.low));
    if (bins.high > bins.low)
      figure.svg += fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>", room - 4, base + 13, format_short(bins.high));
  } else {
    figure.svg += fmt::format("<text x=\"0\" y=\"{}\">no finite element</text>", base - 4);
  }
  for (size_t i = 0; i < outside.size(); ++i) {
    const double x = room + kOutside * static_cast<double>(i) + 8, height = height_of(outside[i].count, all);
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

Figure series_figure(std::span<const SeriesPoint> points, std::string_view name) {
  constexpr int kWide = 240, kHigh = 56, kPad = 8;
  Figure figure;
  double low = INFINITY, high = -INFINITY;
  for (const SeriesPoint& point : points) {
    if (!point.value || !std::isfinite(*point.value)) continue;
    low = std::min(low, *point.value);
    high = std::max(high, *point.value);
  }
  const bool any = low <= high;
  // Growth by orders of magnitude is a straight line then, and its beginning is seen.
  const bool logarithmic = any && low > 0 && high / low > 50;
  const auto scaled = [&](double value) { return logarithmic ? std::log10(value) : value; };
  const double bottom = any ? scaled(low) : 0, span = any ? scaled(high) - bottom : 0;
  const auto place = [&](double value) { return span > 0 ? std::clamp((scaled(value) - bottom) / span, 0.0, 1.0) : 0.5; };
  const double between = points.size() > 1 ? static_cast<double>(kWide - 2 * kPad) / static_cast<double>(points.size() - 1) : 0;
  std::string path, dots, marks;
  bool pen = false;
  for (size_t i = 0; i < points.size(); ++i) {
    const double x = kPad + between * static_cast<double>(i);
    const bool known = points[i].value && std::isfinite(*points[i].value);
    if (known) {
      const double y = kPad + (1 - place(*points[i].value)) * (kHigh - 2 * kPad);
      path += fmt::format("{}{:.1f} {:.1f}", pen ? "L" : "M", x, y);
      if (points.size() <= 40)
        dots += fmt::format("<circle class=\"dot\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"2.2\"><title>step {}: {}</title></circle>", x, y,
                            points[i].step, format_short(*points[i].value));
    }
    pen = known;
    if (points[i].broken) marks += fmt::format("M{:.1f} {}l6 6m0 -6l-6 6", x - 3, 1);
    const size_t level = known ? static_cast<size_t>(place(*points[i].value) * 7) : 0;
    figure.text += points[i].broken ? "×" : known ? std::string(kSparks[level]) : " ";
  }
  figure.svg = svg_begin(kWide, kHigh, fmt::format("{} over the steps", name));
  figure.svg += fmt::format("<path class=\"axis\" d=\"M0 {}.5h{}\"/><path class=\"line\" d=\"{}\"/>{}", kHigh - 1, kWide, path, dots);
  if (!marks.empty()) figure.svg += fmt::format("<path class=\"mark\" d=\"{}\"><title>not finite</title></path>", marks);
  figure.svg += "</svg>\n";
  if (any) {
    const auto known = [](const SeriesPoint& p) { return p.value && std::isfinite(*p.value); };
    const auto first = std::find_if(points.begin(), points.end(), known);
    const auto last = std::find_if(points.rbegin(), points.rend(), known);
    std::string text = format_short(*first->value);
    if (low == high && first->step != last->step)
      text += ", unchanged";
    else if (first->step != last->step)
      text += fmt::format(" to {}{}", format_short(*last->value), logarithmic ? ", log scale" : "");
    figure.caption = {plain(std::move(text))};
  }
  std::vector<int64_t> broken;
  for (const SeriesPoint& point : points) {
    if (point.broken) broken.push_back(point.step);
  }
  if (!broken.empty()) {
    if (any) figure.caption.push_back(plain("; "));
    figure.caption.push_back(bad(fmt::format("× not finite in step{} {}", broken.size() == 1 ? "" : "s", numbers_text(broken))));
  }
  return figure;
}

}  // namespace msdbg::page
