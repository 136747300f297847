// Small graphs as pictures: SVG that a page can style, and the dot language for tools.
//
// Any thread; layouts run one at a time. All text may come from data: it is escaped here, once.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "msdbg/base.h"

namespace msdbg {

/// What a box says. The words are the CSS classes: `origin`, `bad`, `absorbed`, `clean`, `unknown`.
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
  std::string link;               ///< where a click goes, `#...` or a relative address; "" = nowhere
};

struct PictureEdge {
  size_t from = 0, to = 0;          ///< indexes of PictureGraph::nodes
  std::string from_slot, to_slot;   ///< `output:0`, `input:1`; "" = not said
  bool bad = false;                 ///< it carries a bad value; CSS class `bad`
};

struct PictureGraph {
  std::string title;                ///< text for readers who cannot see the picture
  std::vector<PictureNode> nodes;
  std::vector<PictureEdge> edges;
  bool left_to_right = false;       ///< default: from top to bottom
};

/// Pictures with more boxes than this are refused: they are unreadable and the layout takes minutes.
inline constexpr size_t kMostPictureNodes = 600;

/// One `<svg class="msdbg-graph">` element without style, so the page around it decides about colours.
/// Unit:  px at 1:1; it has a viewBox and may be scaled.
/// Error: kInvalidArgument for too many boxes or an edge to a box that is not there, kUnsupported when Graphviz has no layout.
Result<std::string> graph_svg(const PictureGraph& graph);
/// The same as a file of its own, with the style of picture_style() inside.
Result<std::string> graph_svg_file(const PictureGraph& graph);
/// Rules for the classes above, for light and dark surroundings and for print.
std::string_view picture_style();
/// For `dot` and other tools of Graphviz; any size.
std::string graph_dot(const PictureGraph& graph);

/// Control characters and invalid UTF-8 replaced, `& < > " '` as entities: for text and attributes of HTML, SVG and XML.
std::string xml_text(std::string_view text);

}  // namespace msdbg
