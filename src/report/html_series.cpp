// A value over the steps, as a line chart.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/html_pictures.h"
#include "report/html_svg.h"
#include "report/table.h"

namespace msdbg::page {
namespace {

constexpr size_t kMostZones = 60;

bool is_known(const SeriesPoint& point) { return point.value && std::isfinite(*point.value); }

std::string point_text(const SeriesPoint& point) {
  return fmt::format("step {}: {}{}", point.step, is_known(point) ? format_short(*point.value) : "no value",
                     point.broken ? ", holds NaN or Inf" : "");
}

/// One zone per point; with many points, one for several neighbours.
std::string series_zones(std::span<const SeriesPoint> points, double left, double between, double height) {
  const size_t each = (points.size() + kMostZones - 1) / kMostZones;
  std::string out;
  for (size_t first = 0; first < points.size(); first += each) {
    const size_t last = std::min(points.size(), first + each) - 1;
    std::string text = point_text(points[first]);
    if (last > first) text += "; " + point_text(points[last]);
    out += svg_zone(left + between * (static_cast<double>(first) - 0.5), 0, between * static_cast<double>(last - first + 1), height, text);
  }
  return out;
}

/// The steps labelled on the axis: the ends and some in between, as far as their numbers fit.
std::vector<size_t> ticks_of(std::span<const SeriesPoint> points) {
  if (points.empty()) return {};
  const size_t digits = std::to_string(points.back().step).size();
  const size_t most = std::clamp<size_t>(20 / (digits + 2), 2, 5), last = points.size() - 1;
  const size_t parts = std::min(last, most - 1);
  std::vector<size_t> ticks = {0};
  for (size_t i = 1; i <= parts; ++i) {
    if (parts == last || i == parts || last % parts == 0) ticks.push_back(last * i / parts);
  }
  return ticks;
}

}  // namespace

Figure series_figure(std::span<const SeriesPoint> points, std::string_view name, std::string_view axis) {
  constexpr int kWide = 240, kLeft = 68, kRight = 10, kTop = 20, kHigh = 52, kBase = kTop + kHigh + 6, kAll = kBase + 18;
  constexpr double kLeastSpan = 0.05;  // of the largest magnitude: a change of one in ten thousand must not look like a cliff
  Figure figure;
  double low = INFINITY, high = -INFINITY;
  for (const SeriesPoint& point : points) {
    if (!is_known(point)) continue;
    low = std::min(low, *point.value);
    high = std::max(high, *point.value);
  }
  const bool any = low <= high;
  // Growth by orders of magnitude becomes a straight line, and its beginning visible.
  const bool logarithmic = any && low > 0 && high / low > 50;
  const auto scaled = [&](double value) { return logarithmic ? std::log10(value) : value; };
  double bottom = any ? low : 0, top = any ? high : 0;
  const double least = kLeastSpan * std::max(std::abs(bottom), std::abs(top)), middle = bottom / 2 + top / 2;
  if (top / 2 - bottom / 2 < least / 2) {
    bottom = middle - least / 2;
    top = middle + least / 2;
  }
  const double from = scaled(bottom), span = scaled(top) - from;
  const auto place = [&](double value) { return span > 0 ? std::clamp((scaled(value) - from) / span, 0.0, 1.0) : 0.5; };
  const double room = kWide - kLeft - kRight, between = points.size() > 1 ? room / static_cast<double>(points.size() - 1) : 0;
  const auto x_of = [&](size_t i) { return kLeft + between * static_cast<double>(i); };
  std::string path, dots, marks;
  bool pen = false;
  for (size_t i = 0; i < points.size(); ++i) {
    const double x = x_of(i);
    const bool known = is_known(points[i]);
    if (known) {
      const double y = kTop + (1 - place(*points[i].value)) * kHigh;
      path += fmt::format("{}{:.1f} {:.1f}", pen ? "L" : "M", x, y);
      if (points.size() <= kMostZones)
        dots += fmt::format("<circle class=\"dot\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"2.2\" data-step=\"{}\"/>", x, y, points[i].step);
    }
    pen = known;
    if (points[i].broken) marks += fmt::format("M{:.1f} {}l6 6m0 -6l-6 6", x - 3, 8);
    const size_t level = known ? static_cast<size_t>(place(*points[i].value) * 7) : 0;
    figure.text += points[i].broken ? "×" : known ? std::string(kSparks[level]) : " ";
  }
  figure.svg = svg_begin(kWide, kAll, fmt::format("{} over the steps", name));
  figure.svg += fmt::format("<path class=\"axis\" d=\"M{} {}v{}h{}\"/>", kLeft - 6, kTop - 2, kBase - kTop + 2, room + 12);
  figure.svg += fmt::format("<text x=\"0\" y=\"9\">{}</text><text x=\"{}\" y=\"{}\" text-anchor=\"end\">step</text>", escaped(axis),
                            kLeft - 10, kBase + 13);
  if (any && span <= 0) {
    figure.svg +=
        fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>", kLeft - 10, (kTop + kBase) / 2, format_short(low, 3));
  } else if (any) {
    for (const auto& [value, y] : {std::pair(top, kTop + 3), std::pair(bottom, kBase - 1)})
      figure.svg += fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>", kLeft - 10, y, format_short(value, 3));
  }
  for (size_t i : ticks_of(points)) {
    const std::string_view anchor = i == 0 ? "start" : i + 1 == points.size() ? "end" : "middle";
    const double x = i == 0 ? x_of(i) - 4 : i + 1 == points.size() ? x_of(i) + 4 : x_of(i);
    figure.svg += fmt::format("<path class=\"axis\" d=\"M{:.1f} {}v3\"/><text x=\"{:.1f}\" y=\"{}\" text-anchor=\"{}\">{}</text>",
                              x_of(i), kBase, x, kBase + 13, anchor, points[i].step);
  }
  figure.svg += fmt::format("<path class=\"line\" d=\"{}\"/>{}", path, dots);
  if (!marks.empty()) figure.svg += fmt::format("<path class=\"mark\" d=\"{}\"/>", marks);
  figure.svg += series_zones(points, kLeft, points.size() > 1 ? between : room, kAll) + "</svg>\n";
  if (any) {
    const auto first = std::find_if(points.begin(), points.end(), is_known);
    const auto last = std::find_if(points.rbegin(), points.rend(), is_known);
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
