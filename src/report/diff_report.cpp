// The table of `msdbg diff`: the verdict, the first divergence and its reason, the different tensors, and what was not compared.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "msdbg/answers.h"
#include "report/diff_formats.h"
#include "report/follow_text.h"
#include "report/table.h"

namespace msdbg {
namespace {

constexpr size_t kRows = 20, kCulprits = 6, kNames = 6;

bool is_different(const TensorDiff& entry) { return entry.state == DiffState::kDifferent || entry.state == DiffState::kReshaped; }

std::string field(std::string_view title, std::string_view text) { return fmt::format("{:<10} {}\n", title, text); }

class DiffText {
 public:
  DiffText(Session& a, Session& b, const DiffResult& result, const ReportStyle& style) : a_(a), b_(b), result_(result), style_(style) {
    for (const TensorDiff& entry : result.tensors) {
      ranks_.emplace(entry.a.rank, entry.b.rank);
      graphs_.emplace(entry.a.graph, entry.b.graph);
    }
  }

  std::string text() {
    const std::string verdict = diff_verdict(a_, b_, result_);
    const size_t colon = std::min(verdict.find_first_of(":;"), verdict.size());
    const Paint paint = result_.is_equal() ? Paint::kStrong : Paint::kError;
    std::string out = painted(verdict.substr(0, colon), paint, style_.colour) + printable(verdict.substr(colon)) + "\n";
    out += sides();
    if (result_.first) out += first();
    out += table();
    out += left_out();
    if (result_.interrupted) out += "interrupted: only the above was compared\n";
    if (result_.first) out += next();
    if (compared_nothing() && needs_elements())
      out += "next: a dump with saved_data \"tensor\" or \"full\" holds the elements: msdbg plan writes its configuration\n";
    return out;
  }

 private:
  using Pairs = std::set<std::pair<int, int>>;

  std::string name(const TensorDiff& entry) const {
    return (style_.wide ? printable(b_.node(entry.b).name) : brief_name(b_, b_.node(entry.b).name)) + behind(entry);
  }
  Table::Cell cell(const TensorDiff& entry, Paint paint) const { return name_cell(b_, entry.b, behind(entry), paint); }

  /// What follows the name: the slot, plus execution, rank and graph if there are several.
  std::string behind(const TensorDiff& entry) const {
    std::string out = slot_suffix(entry.b.slot);
    if (entry.b.execution > 0) out += fmt::format(" execution {}", entry.b.execution);
    if (ranks_.size() > 1) out += fmt::format(" rank {}", entry.b.rank);
    return out + (graphs_.size() > 1 ? fmt::format(" graph {}", entry.b.graph) : "");
  }

  /// Pairs of ranks or graphs, in the style of the steps; "" for the single pair 0 and 0.
  static std::string pairs_line(std::string_view title, const Pairs& pairs) {
    if (pairs.empty() || (pairs.size() == 1 && *pairs.begin() == std::pair(0, 0))) return "";
    return field(title, pairs_text(pairs));
  }

  bool compared_nothing() const { return result_.equal + result_.close + result_.different + result_.reshaped == 0; }
  bool needs_elements() const {
    return std::any_of(result_.tensors.begin(), result_.tensors.end(),
                       [](const TensorDiff& entry) { return entry.reason.find("only statistics") != std::string::npos; });
  }

  std::string sides() const {
    std::string out = field("A", printable(a_.info().source));
    out += field("B", printable(b_.info().source) + "   (the reference)");
    std::string matched = fmt::format("{} matched: {} by name", result_.matched_nodes, result_.by_name);
    if (result_.by_map) matched += fmt::format(", {} by the mapping file", result_.by_map);
    if (result_.by_structure) matched += fmt::format(", {} by structure", result_.by_structure);
    if (result_.by_value) matched += fmt::format(", {} by who takes their value", result_.by_value);
    out += field("nodes", matched);
    const size_t compared = result_.equal + result_.close + result_.different;
    std::string tensors = fmt::format("{} compared: {} bit for bit equal, {} within tolerance, {} different", compared, result_.equal,
                                      result_.close, result_.different);
    if (result_.reshaped) tensors += fmt::format("; {} reshaped", result_.reshaped);
    if (result_.by_checksum) tensors += fmt::format("; {} by checksum", result_.by_checksum);
    if (result_.by_statistics) tensors += fmt::format("; {} by statistics only", result_.by_statistics);
    if (result_.dtype_changes) tensors += fmt::format("; {} of another type", result_.dtype_changes);
    out += field("tensors", tensors);
    out += pairs_line("ranks", ranks_) + pairs_line("graphs", graphs_);
    out += field("steps", pairs_text(result_.steps));
    for (const std::string& text : result_.unknown_edges) {
      out += field(&text == &result_.unknown_edges.front() ? "edges" : "",
                   "unknown: " + text + (&text == &result_.unknown_edges.back() ? ", so no culprit is named" : ""));
    }
    return out;
  }

  template <class Numbers>
  static std::string pairs_text(const Numbers& pairs) {
    std::vector<int64_t> same;
    std::string out;
    for (const auto& [a, b] : pairs) {
      if (a == b) same.push_back(b);
      else if (out.size() < 60) out += fmt::format("{}{} of A against {} of B", out.empty() ? "" : ", ", a, b);
      else if (!out.ends_with("...")) out += ", ...";
    }
    if (same.empty()) return out;
    std::sort(same.begin(), same.end());
    same.erase(std::unique(same.begin(), same.end()), same.end());
    return numbers_text(same) + (out.empty() ? "" : "; " + out);
  }

  std::string first() const {
    const TensorDiff& entry = result_.tensors[*result_.first];
    const Node& node = b_.node(entry.b);
    std::string head = name_within(b_, entry.b, node.kind == NodeKind::kOperator ? ":" + slot_name(entry.b.slot) : "", 11, style_);
    if (entry.b.execution > 0) head += fmt::format("  execution {}", entry.b.execution);
    head = painted(head, Paint::kError, style_.colour) + fmt::format("   {}{}", dtype_name(entry.dtype_b), shape_text(entry.shape_b));
    std::string out = "\n" + field("first", head);
    const std::string& other = a_.node(entry.a).name;
    if (other != node.name) out += field("", "in A: " + printable(other));
    out += field("", diff_what(entry));
    if (const std::string why = diff_why(entry, node.kind); !why.empty()) out += field("", printable(why));
    if (const std::string source = source_place(node, true); !source.empty()) {
      const std::string& code = user_frame(node)->code;
      out += field("source", code.empty() ? source : fmt::format("{}   {}", source, printable(code)));
    }
    size_t shown = 0;
    for (size_t i : result_.culprits) {
      if (i == *result_.first) continue;
      if (shown++ == kCulprits) {
        out += field("", fmt::format("... {} more", result_.culprits.size() - shown + 1));
        break;
      }
      const bool made = b_.node(result_.tensors[i].b).kind == NodeKind::kOperator;
      out += field(shown == 1 ? "also" : "",
                   fmt::format("{} {}", name(result_.tensors[i]), made ? "differs although its inputs agree" : "came in different"));
    }
    return out;
  }

  std::string table() const {
    const std::vector<size_t> rows = diff_rows(result_, style_);
    if (rows.empty()) return "";
    using enum Align;
    // Statistics have no element with the largest error.
    const bool elements = std::any_of(rows.begin(), rows.end(), [&](size_t i) {
      return !result_.tensors[i].compared() || result_.tensors[i].evidence == DiffEvidence::kElements;
    });
    std::vector<Table::Column> columns{{"step", kRight}, {.title = "tensor", .fit = Fit::kName}};
    if (elements) columns.push_back({"max error", kRight});
    columns.push_back({"rel. error", kRight});
    if (elements) columns.push_back({.title = "cosine", .align = kRight, .drop = 3});
    if (elements) columns.push_back({.title = "within", .align = kRight, .drop = 2});
    columns.push_back({.title = "amplified", .align = kRight, .drop = 1});
    columns.push_back({.title = "remark", .fit = Fit::kText, .drop = Table::kIfEmpty, .least = 16});
    Table table(std::move(columns), style_.numbered);
    for (size_t i : rows) {
      const TensorDiff& entry = result_.tensors[i];
      const Comparison& m = entry.measures;
      const Paint paint = entry.role == DiffRole::kCulprit ? Paint::kError : Paint::kNone;
      const std::string step =
          entry.a.step == entry.b.step ? std::to_string(entry.b.step) : fmt::format("{}/{}", entry.a.step, entry.b.step);
      if (!entry.compared()) {
        table.add({step, cell(entry, paint), "", "", "", "", "", remark(entry)});
        continue;
      }
      // The factor of an integer tensor is meaningless; so is one that no input contributes to.
      const std::string factor = !entry.amplification               ? ""
                                 : std::isinf(*entry.amplification) ? "from 0"
                                                                    : fmt::format("{}x", format_short(*entry.amplification, 3));
      if (!elements) {
        table.add({step, cell(entry, paint), shown(entry.relative_error()), factor, remark(entry)});
        continue;
      }
      table.add({step,
                 cell(entry, paint),
                 shown(m.max_abs_error),
                 shown(entry.relative_error()),
                 cosine_text(m.cosine),
                 entry.evidence == DiffEvidence::kElements ? diff_percent(m.within_share()) : "",
                 factor,
                 remark(entry)});
    }
    std::string out = "\n";
    if (result_.is_equal()) out += "the largest differences, all of them within tolerance:\n";
    out += table.text(style_);
    const uint64_t different = result_.different + result_.reshaped;
    if (!result_.is_equal() && rows.size() < different) out += fmt::format("... {} more differ (all: --wide)\n", different - rows.size());
    return out;
  }

  static std::string shown(double value) { return std::isnan(value) ? "-" : format_short(value, 3); }
  static std::string cosine_text(double value) {
    if (std::isnan(value)) return "-";
    // 0.9999999 must not read as 1.
    return value > 0.99995 && value < 1 ? "~1" : format_short(value, 4);
  }

  std::string remark(const TensorDiff& entry) const {
    std::string out;
    const auto add = [&](const std::string& text) { out += (out.empty() ? "" : ", ") + text; };
    if (entry.role == DiffRole::kCulprit || entry.role == DiffRole::kRandom) add(std::string(diff_role_name(entry.role)));
    if (entry.shape_a != entry.shape_b && !entry.shape_a.empty())
      add(fmt::format("{} against {}", shape_text(entry.shape_a), shape_text(entry.shape_b)));
    if (entry.dtype_a != entry.dtype_b && entry.compared())
      add(fmt::format("{} against {}", dtype_name(entry.dtype_a), dtype_name(entry.dtype_b)));
    if (!entry.argument.empty()) add(entry.argument);
    else if (entry.compared() && entry.evidence != DiffEvidence::kElements && entry.state == DiffState::kDifferent) add(diff_facts(entry));
    const uint64_t bad = entry.measures.nan_mismatch + entry.measures.inf_mismatch;
    if (bad > 0)
      add(fmt::format("{} {} on one side", bad,
                      entry.measures.inf_mismatch == 0   ? "NaN"
                      : entry.measures.nan_mismatch == 0 ? "Inf"
                                                         : "NaN or Inf"));
    if (entry.how == MatchMethod::kValue) add("in A: " + a_.node(entry.a).op);
    return out;
  }

  std::string left_out() const {
    std::string out;
    for (const DiffNote& note : result_.notes) out += "  " + note.text + "\n";
    out += names(a_, result_.only_a, "A");
    out += names(b_, result_.only_b, "B");
    for (const auto& [reason, entries] : diff_uncompared(result_)) {
      out += fmt::format("  {}: {}", counted(entries.size(), "tensor"), printable(reason));
      out += fmt::format(", e.g. {} step {}\n", name(*entries.front()), entries.front()->b.step);
    }
    return out.empty() ? "" : "\nnot compared:\n" + out;
  }

  std::string names(Session& session, const std::vector<UnmatchedNode>& nodes, const char* side) const {
    if (nodes.empty()) return "";
    std::string out = fmt::format("  {} only in {}:", counted(nodes.size(), "node"), side);
    const size_t shown_names = style_.wide ? nodes.size() : std::min(nodes.size(), kNames);
    for (size_t i = 0; i < shown_names; ++i) {
      TensorId id;
      id.rank = nodes[i].rank;
      id.graph = nodes[i].graph;
      id.node = nodes[i].node;
      const std::string& name = session.node(id).name;
      out += fmt::format("{} {}", i > 0 ? "," : "", style_.wide ? printable(name) : brief_name(session, name));
    }
    if (shown_names < nodes.size()) out += fmt::format(", ... {} more (all: --wide)", nodes.size() - shown_names);
    return out + "\n";
  }

  std::string next() const {
    const TensorDiff& entry = result_.tensors[*result_.first];
    Hint hint{"show", {fmt::format("{}:{}", brief_name(b_, b_.node(entry.b).name), slot_name(entry.b.slot))}};
    follow::add_place(b_, entry.b, &hint.words);
    // The prompt has A open, but not the other dump.
    return fmt::format("next: {}\n", hint_text(b_, hint, &a_ == &b_ ? style_.place : Place::kShell));
  }

  Session &a_, &b_;
  const DiffResult& result_;
  const ReportStyle& style_;
  Pairs ranks_, graphs_;  // the pairs of A and B that were compared
};

}  // namespace

std::vector<size_t> diff_rows(const DiffResult& result, const ReportStyle& style) {
  std::vector<size_t> out;
  const size_t limit = style.wide ? result.tensors.size() : kRows;
  if (!result.is_equal()) {
    for (size_t i : result.culprits) {
      if (out.size() < limit / 2) out.push_back(i);
    }
    for (size_t i = 0; i < result.tensors.size() && out.size() < limit; ++i) {
      if (is_different(result.tensors[i]) && std::find(out.begin(), out.end(), i) == out.end()) out.push_back(i);
    }
  } else {
    for (size_t i = 0; i < result.tensors.size(); ++i) {
      const TensorDiff& entry = result.tensors[i];
      if (entry.state == DiffState::kClose && (entry.evidence == DiffEvidence::kElements || entry.relative_error() > 0)) out.push_back(i);
    }
    std::stable_sort(out.begin(), out.end(), [&](size_t x, size_t y) {
      return result.tensors[x].relative_error() > result.tensors[y].relative_error();
    });
    if (out.size() > (style.wide ? limit : limit / 2)) out.resize(limit / 2);
  }
  std::sort(out.begin(), out.end());
  return out;
}

std::string diff_report(Session& a, Session& b, const DiffResult& result, const ReportStyle& style) {
  switch (style.format) {
    case Format::kJson: return json_text(diff_answer(a, b, result));
    case Format::kJsonl: return json_lines(diff_answer(a, b, result), "tensors");
    case Format::kCsv: return diff_csv(a, b, result);
    case Format::kMarkdown: return diff_markdown(a, b, result);
    case Format::kJunit: return diff_junit(a, b, result);
    case Format::kSarif: return diff_sarif(a, b, result);
    default: return fitted(DiffText(a, b, result, style).text(), style);
  }
}

}  // namespace msdbg
