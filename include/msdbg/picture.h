// Small graphs as pictures: SVG that a page can style, and the dot language for tools.
//
// Any thread; layouts run one at a time. Text may come from the data: it is escaped here, once.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "msdbg/base.h"

namespace msdbg {

/// The state of a box. The CSS classes have the same names: `origin`, `bad`, `absorbed`, `clean`, `unknown`.
enum class PictureState : uint8_t { kOrigin, kBad, kAbsorbed, kClean, kUnknown };
std::string_view picture_state_name(PictureState state);

struct PictureNode {
  std::string id;                 ///< for `data-node` and the dot file; need not be unique
  std::string label;              ///< first line, e.g. the short name of the node
  std::string detail;             ///< second line, e.g. `Log   104 of 192 -Inf`; may be empty
  PictureState state = PictureState::kClean;
  bool parameter = false;         ///< drawn rounded; CSS class `parameter` in addition to the state
  std::vector<std::string> hits;  ///< abbreviations of conditions that hit (`TO`, `WC`), drawn as marks
  std::string title;              ///< tooltip, e.g. the full name and the statistics; may be empty
  std::string link;               ///< target of a click, `#...` or a relative address; "" = none
};

struct PictureEdge {
  size_t from = 0, to = 0;          ///< indexes of PictureGraph::nodes
  std::string from_slot, to_slot;   ///< `output:0`, `input:1`; "" = unspecified
  bool bad = false;                 ///< it carries a bad value; CSS class `bad`
  std::string label = {};           ///< of an edge between ranks: the collective and its group; dashed, CSS class `ranks`
};

struct PictureGraph {
  std::string title;                ///< text for readers who cannot see the picture
  std::vector<PictureNode> nodes;
  std::vector<PictureEdge> edges;
  size_t total = 0;                 ///< boxes if none were left out; 0: as many as drawn
  bool left_to_right = false;       ///< default: from top to bottom
};

/// Larger pictures are refused: they are unreadable, and the layout takes minutes.
inline constexpr size_t kMostPictureNodes = 600;

/// One `<svg class="msdbg-graph">` element without style: the surrounding page defines the colours.
/// Unit: px at 1:1; it has a viewBox and may be scaled.
/// Error: kInvalidArgument for too many boxes or an edge to a box that does not exist, kUnsupported if Graphviz has no layout.
Result<std::string> graph_svg(const PictureGraph& graph);
/// The same as a separate file, including picture_style().
Result<std::string> graph_svg_file(const PictureGraph& graph);
/// CSS rules for the classes above, for light and dark backgrounds and for print.
std::string_view picture_style();
/// For `dot` and other tools of Graphviz; any size.
std::string graph_dot(const PictureGraph& graph);

/// For text and attributes of HTML, SVG and XML: replaces control characters and invalid UTF-8, and writes `& < > " '` as entities.
std::string xml_text(std::string_view text);

}  // namespace msdbg
