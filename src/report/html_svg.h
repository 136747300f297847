// Pieces of hand-drawn SVG.
#pragma once

#include <fmt/format.h>

#include <array>
#include <string>
#include <string_view>

#include "report/document.h"

namespace msdbg::page {

/// Heights of a curve drawn in characters.
inline constexpr std::array<std::string_view, 8> kSparks = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};

inline std::string svg_begin(int width, int height, std::string_view label) {
  return fmt::format("<svg viewBox=\"0 0 {} {}\" width=\"{}\" height=\"{}\" role=\"img\" aria-label=\"{}\">", width, height, width, height,
                     escaped(label));
}

/// An area that responds to the pointer.
inline std::string svg_zone(double x, double y, double width, double height, const std::string& text) {
  return fmt::format("<rect class=\"zone\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\"><title>{}</title></rect>", x, y,
                     width, height, escaped(text));
}

}  // namespace msdbg::page
