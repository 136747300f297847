// A report without its layout: sections of blocks, which HTML and Markdown each write in their own way.
//
// Text is stored as it came from the data; the writers escape it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace msdbg::page {

enum class Look : uint8_t {
  kPlain,
  kCode,  ///< names, source lines
  kStrong,
  kBad,  ///< what broke
  kMuted,
};

/// A span of text within a line.
struct Run {
  std::string text;
  Look look = Look::kPlain;
  std::string hint = {};    ///< the long form, shown on demand
  std::string target = {};  ///< id of an element in this page
};
using Line = std::vector<Run>;

inline Run plain(std::string text) { return {std::move(text)}; }
inline Run code(std::string text, std::string hint = {}) { return {std::move(text), Look::kCode, std::move(hint)}; }
inline Run strong(std::string text) { return {std::move(text), Look::kStrong}; }
inline Run bad(std::string text) { return {std::move(text), Look::kBad}; }
inline Run muted(std::string text) { return {std::move(text), Look::kMuted}; }

struct Heading {
  Line line;
  std::string id = {};
};

struct Paragraph {
  Line line;
};

/// Names and values, one per line.
struct Facts {
  std::vector<std::pair<std::string, Line>> rows;
};

struct Column {
  std::string title;
  bool number = false;  ///< right-aligned
  bool groups = false;  ///< adjacent rows with the same text may be merged
  bool step = false;    ///< the step that the row belongs to
  bool named = false;   ///< on a phone the title is printed before the value, as for numbers
};

/// A table; rows after `open` are folded away.
struct Sheet {
  std::string caption;  ///< a caption for screen readers
  std::vector<Column> columns;
  std::vector<std::vector<Line>> rows;
  size_t open = 40;
  bool sorts = false;   ///< by a click on a title; `rows` has the order for readers without script
};

/// Commands to type, with descriptions.
struct Commands {
  std::vector<std::pair<std::string, std::string>> rows;
};

/// One path of a value through the graph.
struct Way {
  struct Stop {
    Line line;
    bool broken = true;  ///< false: the fault ended here
  };
  std::vector<Stop> stops;
};

/// A program text with remarks next to its lines.
struct Listing {
  struct Row {
    int line = 0;
    std::string code;
    Line remark;
    bool marked = false;
  };
  std::string file;
  std::vector<Row> rows;
};

/// A picture: `svg` is markup for the page, `text` shows the same as lines of characters.
struct Figure {
  std::string svg;
  Line caption;
  std::string text;
  bool wide = false;   ///< scrolls in its box instead of shrinking
  bool grows = false;  ///< takes the space left by its neighbour
};

/// Related pictures, side by side where they fit.
struct Card {
  std::string id, role;
  Line title;
  std::vector<Line> lines;
  std::vector<Figure> figures;
  std::optional<int64_t> step = {};  ///< the step that it belongs to
};
struct Cards {
  std::vector<Card> cards;
  bool small = false;
};

struct Fold;
struct OfStep;
using Block = std::variant<Heading, Paragraph, Facts, Sheet, Commands, Way, Listing, Figure, Cards, Fold, OfStep>;

/// Content of one step; the reader can choose the step.
struct OfStep {
  int64_t step = 0;
  std::vector<Block> blocks;
};

/// Opens at a click; printed as it is.
struct Fold {
  std::string title;
  std::vector<Block> blocks;
};

struct Section {
  std::string id, title;
  std::vector<Block> blocks;
};

struct Document {
  std::string title;    ///< of the window
  std::string subject;  ///< the dump
  bool broken = false;
  Line verdict;               ///< one sentence
  std::vector<Line> remarks;  ///< other important facts
  std::vector<std::pair<std::string, Line>> glance;
  std::vector<std::pair<std::string, Line>> made;  ///< input, date and command of this report
  std::vector<Section> sections;
};

std::string html(const Document& document);
std::string markdown(const Document& document);

/// printable(), with `&`, `<`, `>` and quotes as entities.
std::string escaped(std::string_view text);

}  // namespace msdbg::page
