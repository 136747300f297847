// Boxes and lines as SVG and dot.
#include "msdbg/picture.h"

#include <fmt/format.h>

#include <algorithm>

#include "report/picture_layout.h"
#include "report/table.h"

namespace msdbg {
namespace {

constexpr double kMargin = 8, kPadding = 10, kLine = 15, kLetter = 6.65, kMark = 18, kMarkGap = 4;
constexpr size_t kLongestLine = 44;

// One line of a box, shortened: leading scopes go first, then the middle. The tooltip of the box has the full text.
std::string line_of(const std::string& text) {
  std::string line = printable(text);
  for (size_t slash = line.find('/'); slash != std::string::npos && display_width(line) > kLongestLine; slash = line.find('/', slash + 1)) {
    if (display_width(line.substr(slash)) + 3 <= kLongestLine) return "..." + line.substr(slash);
  }
  const size_t width = display_width(line), room = (kLongestLine - 3) / 2;
  if (width <= kLongestLine) return line;
  const std::string_view begin = head(line, room), all_but_end = head(line, width - room);
  return fmt::format("{}...{}", begin, line.substr(all_but_end.size()));
}

double text_width(const std::string& text) { return kLetter * static_cast<double>(display_width(text)); }

double mark_width(const std::string& hit) { return std::max(kMark, text_width(hit) + 6); }

double marks_width(const PictureNode& node) {
  double width = 0;
  for (const std::string& hit : node.hits) width += mark_width(hit) + kMarkGap;
  return width;
}

BoxSize size_of(const PictureNode& node) {
  const double words = std::max(text_width(line_of(node.label)), text_width(line_of(node.detail)));
  const int lines = 1 + (node.detail.empty() ? 0 : 1) + (node.hits.empty() ? 0 : 1);
  return {2 * kPadding + std::max({words, marks_width(node), 40.0}) + (node.parameter ? 18 : 0), 12 + kLine * lines};
}

/// What an edge carries: the slots, or the collective.
std::string edge_text(const PictureEdge& edge) {
  if (!edge.label.empty()) return edge.label;
  if (edge.from_slot.empty() && edge.to_slot.empty()) return "";
  if (edge.from_slot.empty() || edge.to_slot.empty()) return edge.from_slot + edge.to_slot;
  return edge.from_slot + " \u2192 " + edge.to_slot;
}

std::string node_svg(const PictureNode& node, Point centre, BoxSize size) {
  const double x = centre.x - size.width / 2, y = centre.y - size.height / 2;
  std::string out = fmt::format("<g class=\"node {}{}\" data-node=\"{}\">", picture_state_name(node.state),
                                node.parameter ? " parameter" : "", xml_text(node.id));
  if (!node.title.empty()) out += fmt::format("<title>{}</title>", xml_text(node.title));
  if (!node.link.empty()) out += fmt::format("<a href=\"{}\">", xml_text(node.link));
  out += fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" rx=\"{}\"/>", x, y, size.width, size.height,
                     node.parameter ? size.height / 2 : 3);
  double base = y + 6 + 11;
  auto line = [&](std::string_view css, const std::string& text) {
    out +=
        fmt::format("<text class=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">{}</text>", css, centre.x, base, xml_text(text));
    base += kLine;
  };
  line("label", line_of(node.label));
  if (!node.detail.empty()) line("detail", line_of(node.detail));
  double at = centre.x - (marks_width(node) - kMarkGap) / 2;
  for (const std::string& hit : node.hits) {
    const double width = mark_width(hit);
    out += fmt::format(
        "<g class=\"hit\"><rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"14\" rx=\"7\"/>"
        "<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">{}</text></g>",
        at, base - 11, width, at + width / 2, base, xml_text(hit));
    at += width + kMarkGap;
  }
  if (!node.link.empty()) out += "</a>";
  return out + "</g>\n";
}

std::string edge_svg(const PictureGraph& graph, const PictureEdge& edge, const std::vector<Point>& curve) {
  if (curve.size() < 2) return "";
  std::string path = fmt::format("M{:.1f},{:.1f}", curve[0].x, curve[0].y);
  for (size_t i = 1; i + 3 < curve.size(); i += 3) {
    path += fmt::format(" C{:.1f},{:.1f} {:.1f},{:.1f} {:.1f},{:.1f}", curve[i].x, curve[i].y, curve[i + 1].x, curve[i + 1].y,
                        curve[i + 2].x, curve[i + 2].y);
  }
  path += fmt::format(" L{:.1f},{:.1f}", curve.back().x, curve.back().y);
  // The arrowhead is drawn by hand: a marker would need an id, and a page may contain several pictures.
  const Point tip = curve.back(), foot = curve[curve.size() - 2];
  const double nx = (tip.y - foot.y) * 0.45, ny = (foot.x - tip.x) * 0.45;
  const std::string title = fmt::format("{} to {}{}{}", graph.nodes[edge.from].label, graph.nodes[edge.to].label,
                                        edge_text(edge).empty() ? "" : ": ", edge_text(edge));
  std::string out = fmt::format("<g class=\"edge{}{}\"><title>{}</title><path d=\"{}\"/>", edge.bad ? " bad" : "",
                                edge.label.empty() ? "" : " ranks", xml_text(title), path);
  out += fmt::format("<polygon points=\"{:.1f},{:.1f} {:.1f},{:.1f} {:.1f},{:.1f}\"/>", tip.x, tip.y, foot.x + nx, foot.y + ny, foot.x - nx,
                     foot.y - ny);
  if (!edge.label.empty()) {
    const Point middle = curve[curve.size() / 2];
    out +=
        fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">{}</text>", middle.x, middle.y, xml_text(line_of(edge.label)));
  }
  return out + "</g>\n";
}

std::string dot_word(std::string_view text) {
  std::string out = "\"";
  for (char c : printable(text)) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + "\"";
}

std::string_view dot_colour(PictureState state) {
  switch (state) {
    case PictureState::kOrigin:
      return "#e07070";
    case PictureState::kBad:
      return "#f6c8c8";
    case PictureState::kAbsorbed:
      return "#cfe3f7";
    case PictureState::kClean:
      return "#ffffff";
    case PictureState::kUnknown:
      return "#eeeeee";
  }
  return "#ffffff";
}

}  // namespace

std::string_view picture_state_name(PictureState state) {
  switch (state) {
    case PictureState::kOrigin:
      return "origin";
    case PictureState::kBad:
      return "bad";
    case PictureState::kAbsorbed:
      return "absorbed";
    case PictureState::kClean:
      return "clean";
    case PictureState::kUnknown:
      return "unknown";
  }
  return "unknown";
}

std::string xml_text(std::string_view text) {
  std::string out;
  for (char c : printable(text)) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string_view picture_style() {
  return R"(.msdbg-graph{--g-line:#7a828c;--g-text:#1d2329;--g-faint:#59636e;--g-clean:#fff;--g-bad:#fde3e1;--g-bad-line:#c4342b;
--g-origin:#c4342b;--g-origin-text:#fff;--g-absorbed:#dcebfb;--g-absorbed-line:#2a6db0;--g-unknown:#f0f1f3;max-width:100%;height:auto}
.msdbg-graph text{font:11px ui-monospace,Menlo,Consolas,"DejaVu Sans Mono",monospace;fill:var(--g-text)}
.msdbg-graph .detail{fill:var(--g-faint)}
.msdbg-graph .node>rect,.msdbg-graph .node>a>rect{fill:var(--g-clean);stroke:var(--g-line)}
.msdbg-graph .bad>rect,.msdbg-graph .bad>a>rect{fill:var(--g-bad);stroke:var(--g-bad-line)}
.msdbg-graph .absorbed>rect,.msdbg-graph .absorbed>a>rect{fill:var(--g-absorbed);stroke:var(--g-absorbed-line)}
.msdbg-graph .unknown>rect,.msdbg-graph .unknown>a>rect{fill:var(--g-unknown);stroke-dasharray:4 3}
.msdbg-graph .origin>rect,.msdbg-graph .origin>a>rect{fill:var(--g-origin);stroke:var(--g-origin);stroke-width:2}
.msdbg-graph .origin text{fill:var(--g-origin-text)}
.msdbg-graph .edge path{fill:none;stroke:var(--g-line)}
.msdbg-graph .edge polygon{fill:var(--g-line)}
.msdbg-graph .edge.bad path{stroke:var(--g-bad-line);stroke-width:1.6}
.msdbg-graph .edge.bad polygon{fill:var(--g-bad-line)}
.msdbg-graph .edge.ranks path{stroke-dasharray:5 3}
.msdbg-graph .edge text{fill:var(--g-faint);font-size:10px}
.msdbg-graph .hit rect{fill:var(--g-bad-line)}
.msdbg-graph .origin .hit rect{fill:#fff}
.msdbg-graph .hit text,.msdbg-graph .origin .hit text{font-size:10px;font-weight:600;fill:#fff}
.msdbg-graph .origin .hit text{fill:#c4342b}
@media (prefers-color-scheme:dark){.msdbg-graph{--g-line:#8b949e;--g-text:#e6edf3;--g-faint:#a3adb8;--g-clean:#1b2027;--g-bad:#4a1d1b;
--g-bad-line:#f07a72;--g-origin:#d8453c;--g-absorbed:#16324f;--g-absorbed-line:#6cb0f2;--g-unknown:#262c33}
.msdbg-graph .hit text{fill:#1b2027}}
@media print{.msdbg-graph{--g-line:#555;--g-text:#000;--g-faint:#333;--g-clean:#fff;--g-bad:#fde3e1;--g-bad-line:#a02018;
--g-absorbed:#dcebfb;--g-absorbed-line:#2a6db0;--g-unknown:#eee}}
)";
}

Result<std::string> graph_svg(const PictureGraph& graph) {
  if (graph.nodes.size() > kMostPictureNodes) {
    return Status(Code::kInvalidArgument,
                  fmt::format("picture: {} boxes are too many (limit {}); choose fewer nodes, or write dot",
                              graph.nodes.size(), kMostPictureNodes));
  }
  for (const PictureEdge& edge : graph.edges) {
    if (edge.from >= graph.nodes.size() || edge.to >= graph.nodes.size()) {
      return Status(Code::kInvalidArgument,
                    fmt::format("picture: an edge from box {} to box {} in a picture of {}", edge.from, edge.to, graph.nodes.size()));
    }
  }
  std::vector<BoxSize> sizes;
  for (const PictureNode& node : graph.nodes) sizes.push_back(size_of(node));
  const Result<PictureLayout> layout = layout_picture(graph, sizes);
  if (!layout) return layout.status();
  const double width = layout->width + 2 * kMargin, height = layout->height + 2 * kMargin;
  std::string out = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"msdbg-graph\" role=\"img\" width=\"{0:.0f}\" height=\"{1:.0f}\" "
      "viewBox=\"0 0 {0:.0f} {1:.0f}\">\n<title>{2}</title>\n<g transform=\"translate({3},{3})\">\n",
      width, height, xml_text(graph.title), kMargin);
  for (size_t i = 0; i < graph.edges.size(); ++i) out += edge_svg(graph, graph.edges[i], layout->curves[i]);
  for (size_t i = 0; i < graph.nodes.size(); ++i) out += node_svg(graph.nodes[i], layout->centres[i], sizes[i]);
  return out + "</g>\n</svg>\n";
}

Result<std::string> graph_svg_file(const PictureGraph& graph) {
  Result<std::string> svg = graph_svg(graph);
  if (!svg) return svg;
  const size_t behind = svg->find('\n') + 1;
  svg->insert(behind, fmt::format("<style>\n{}@media (prefers-color-scheme:dark){{.msdbg-graph{{background:#0d1117}}}}\n</style>\n",
                                  picture_style()));
  return "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n" + *svg;
}

std::string graph_dot(const PictureGraph& graph) {
  std::string out = fmt::format("digraph {} {{\n  rankdir={};\n  node [shape=box, style=filled, fontname=monospace];\n",
                                dot_word(graph.title.empty() ? "msdbg" : graph.title), graph.left_to_right ? "LR" : "TB");
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const PictureNode& node = graph.nodes[i];
    std::string label = dot_word(node.label);
    label.pop_back();
    for (std::string more : {node.detail, fmt::format("{}", fmt::join(node.hits, " "))}) {
      if (more.empty()) continue;
      more = dot_word(more);
      label += "\\n" + more.substr(1, more.size() - 2);
    }
    out += fmt::format("  n{} [label={}\", tooltip={}, fillcolor=\"{}\", class=\"{}{}\"{}];\n", i, label,
                       dot_word(node.title.empty() ? node.id : node.title), dot_colour(node.state), picture_state_name(node.state),
                       node.parameter ? " parameter" : "", node.parameter ? ", style=\"filled,rounded\"" : "");
  }
  for (const PictureEdge& edge : graph.edges) {
    out += fmt::format("  n{} -> n{} [tooltip={}{}{}];\n", edge.from, edge.to, dot_word(edge_text(edge)),
                       edge.label.empty() ? "" : fmt::format(", label={}, style=dashed", dot_word(edge.label)),
                       edge.bad ? ", color=\"#c4342b\", penwidth=1.6" : "");
  }
  return out + "}\n";
}

}  // namespace msdbg
