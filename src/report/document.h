// What a report says, apart from how it looks: sections of blocks, which HTML and Markdown write each in its own way.
//
// Text is as it came from the data; the writers escape it.
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

/// A piece of a line.
struct Run {
  std::string text;
  Look look = Look::kPlain;
  std::string hint = {};    ///< the long form, shown on demand
  std::string target = {};  ///< id of a place in this page
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

/// A name and its value, a line each.
struct Facts {
  std::vector<std::pair<std::string, Line>> rows;
};

struct Column {
  std::string title;
  bool number = false;  ///< right-aligned
  bool groups = false;  ///< rows with the same text may be put together
  bool step = false;    ///< the step that the row belongs to
  bool named = false;   ///< on a phone the title stands before the value, as before a number
};

/// A table; rows after `open` are folded away.
struct Sheet {
  std::string caption;  ///< what it lists, for people who hear the page
  std::vector<Column> columns;
  std::vector<std::vector<Line>> rows;
  size_t open = 40;
  bool sorts = false;   ///< by a click on a title; the order of `rows` is that of a reader without script
};

/// What to type, with what it answers.
struct Commands {
  std::vector<std::pair<std::string, std::string>> rows;
};

/// One way of a value through the graph.
struct Way {
  struct Stop {
    Line line;
    bool broken = true;  ///< false: it ended here
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

/// A picture; `svg` is markup for the page, `text` is the same as lines of characters.
struct Figure {
  std::string svg;
  Line caption;
  std::string text;
  bool wide = false;   ///< scrolls in its box instead of shrinking
  bool grows = false;  ///< takes the room that is left next to its neighbour
};

/// Pictures that belong together, side by side where there is room.
struct Card {
  std::string id, role;
  Line title;
  std::vector<Line> lines;
  std::vector<Figure> figures;
  std::optional<int64_t> step = {};  ///< that it belongs to
};
struct Cards {
  std::vector<Card> cards;
  bool small = false;
};

struct Fold;
struct OfStep;
using Block = std::variant<Heading, Paragraph, Facts, Sheet, Commands, Way, Listing, Figure, Cards, Fold, OfStep>;

/// What belongs to one step; a reader may choose which step to see.
struct OfStep {
  int64_t step = 0;
  std::vector<Block> blocks;
};

/// Opens at a click; on paper it stays as it is.
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
  std::vector<Line> remarks;  ///< what else the reader must know at once
  std::vector<std::pair<std::string, Line>> glance;
  std::vector<std::pair<std::string, Line>> made;  ///< of what, when and how this report was made
  std::vector<Section> sections;
};

std::string html(const Document& document);
std::string markdown(const Document& document);

/// printable(), with `&`, `<`, `>` and quotes as entities.
std::string escaped(std::string_view text);

}  // namespace msdbg::page
