// Histograms: bars for one tensor, a line of blocks each for several.
#include "msdbg/histogram_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "msdbg/follow_report.h"
#include "report/markup.h"
#include "report/table.h"

namespace msdbg {
namespace {

constexpr std::string_view kEighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
constexpr size_t kBarsWidth = 80;

constexpr CsvColumn kHistogramColumns[] = {{"rank", "rank"}, {"graph", "graph"}, {"graph_id", "graph_id"}, {"node", "node"}, {"op", "op"},
                                  {"slot", "slot"}, {"step", "step"}, {"execution", "execution"}, {"scale", "scale"}, {"from", "from"},
                                  {"to", "to"}, {"count", "count"}, {"reason", "reason"}};
constexpr CsvColumn kHistogramMarkdownColumns[] = {{"tensor", "node"}, {"step", "step"}, {"from", "from"}, {"to", "to"}, {"count", "count"}};

std::string edge_text(double edge, BinScale scale) {
  return scale == BinScale::kExponent ? fmt::format("2^{}", std::ilogb(edge)) : format_short(edge);
}

double height(uint64_t count, uint64_t most, bool log_counts) {
  if (count == 0) return 0;
  const auto share = [&](double part, double all) { return log_counts ? std::log1p(part) / std::log1p(all) : part / all; };
  return share(static_cast<double>(count), static_cast<double>(most));
}

std::string bar(double share, size_t width, bool ascii) {
  if (ascii) return std::string(static_cast<size_t>(std::ceil(share * static_cast<double>(width))), '#');
  const auto eighths = static_cast<size_t>(std::ceil(share * static_cast<double>(width) * 8));
  std::string out;
  for (size_t i = 0; i < eighths / 8; ++i) out += "█";
  return out + std::string(kEighths[eighths % 8]);
}

std::string blocks(const Histogram& histogram, uint64_t most, bool log_counts, bool ascii) {
  std::string out;
  for (const uint64_t count : histogram.counts) {
    out += count == 0 ? (ascii ? " " : "·") : bar_character(height(count, most, log_counts), ascii);
  }
  return out;
}

/// What has no bin: `12 zeros, 3 below, 104 not finite`; "" if everything has one.
std::string outside(const Histogram& histogram) {
  std::string out;
  const auto add = [&](uint64_t count, std::string_view what) {
    if (count > 0) out += fmt::format("{}{} {}", out.empty() ? "" : ", ", count, what);
  };
  add(histogram.zeros, histogram.zeros == 1 ? "zero" : "zeros");
  add(histogram.below, "below");
  add(histogram.above, "above");
  add(histogram.nan, "NaN");
  add(histogram.inf, "Inf");
  return out;
}

std::string percent_text(double share) { return share > 0 && share < 0.01 ? "less than 0.01 %" : format_short(share, 3) + " %"; }

std::string advice_text(const HistogramResult& result) {
  if (!result.advice) return "";
  const LossScaleAdvice& advice = *result.advice;
  const bool half =
      std::all_of(result.lines.begin(), result.lines.end(), [](const HistogramLine& line) { return line.dtype == DType::kFloat16; });
  const std::string_view scale = half ? "a further loss scale" : "a loss scale";
  if (!advice.fits()) {
    return fmt::format("float16: no loss scale suits all of these values; at 2^{}, {} of those other than 0 are subnormal, {} become 0\n",
                       advice.most, percent_text(advice.subnormal - advice.lost), percent_text(advice.lost));
  }
  if (advice.most < 0) return fmt::format("float16: too large without {} of 2^{} to 2^{}\n", scale, advice.least, advice.most);
  if (advice.least > 0)
    return fmt::format("float16: {} of 2^{} to 2^{} keeps these values normal, with room for a factor of 2\n", scale, advice.least,
                       advice.most);
  return fmt::format("float16: these values fit; {} may be up to 2^{}, with room for a factor of 2\n", scale, advice.most);
}

std::string head_of(const HistogramResult& result) {
  if (result.edges.empty()) return "";
  const BinScale scale = result.scale;
  const std::string_view what = scale == BinScale::kLinear ? "elements" : "magnitudes";
  return fmt::format("{} from {} to {} in {} bins{}\n", what, edge_text(result.edges.front(), scale), edge_text(result.edges.back(), scale),
                     result.edges.size() - 1, scale == BinScale::kLog ? " of equal ratio" : "");
}

std::string missing_text(const HistogramResult& result) {
  std::string reason;
  size_t missing = 0;
  for (const HistogramLine& line : result.lines) {
    if (line.reason.empty()) continue;
    if (missing++ == 0) reason = line.reason;
  }
  if (missing == 0) return "";
  return fmt::format("without a histogram: {} of {}{}\n", missing, result.lines.size(), ", the first because: " + printable(reason));
}

/// A row for each bin, and one for each tensor without.
Answer rows_of(const Answer& answer) {
  Answer rows = Answer::array();
  const Answer& edges = answer["edges"];
  for (const Answer& tensor : answer["tensors"]) {
    Answer row = tensor;
    row["scale"] = answer["scale"];
    for (const char* key : {"counts", "zeros", "below", "above", "nan", "inf"}) row.erase(key);
    if (!tensor["counts"].is_array()) {
      rows.push_back(row);
      continue;
    }
    const auto add = [&](Answer from, Answer to, const Answer& count) {
      row["from"] = std::move(from);
      row["to"] = std::move(to);
      row["count"] = count;
      rows.push_back(row);
    };
    if (tensor["below"] > 0) add(Answer(), edges.front(), tensor["below"]);
    if (tensor["zeros"] > 0) add(0, 0, tensor["zeros"]);
    for (size_t i = 0; i < tensor["counts"].size(); ++i) add(edges[i], edges[i + 1], tensor["counts"][i]);
    if (tensor["above"] > 0) add(edges.back(), Answer(), tensor["above"]);
  }
  return rows;
}

}  // namespace

Answer histogram_answer(const Session& session, const HistogramResult& result) {
  Answer tensors = Answer::array();
  for (const HistogramLine& line : result.lines) {
    Answer out = place_answer(session, line.tensor);
    out["gradient_of"] = text_answer(gradient_of_name(session, line.tensor));
    out["dtype"] = dtype_name(line.dtype);
    const auto number = [&](uint64_t Histogram::*field) { return line.histogram ? Answer((*line.histogram).*field) : Answer(); };
    out["counts"] = line.histogram ? Answer(line.histogram->counts) : Answer();
    out["zeros"] = number(&Histogram::zeros);
    out["below"] = number(&Histogram::below);
    out["above"] = number(&Histogram::above);
    out["nan"] = number(&Histogram::nan);
    out["inf"] = number(&Histogram::inf);
    out["reason"] = text_answer(line.reason);
    tensors.push_back(std::move(out));
  }
  Answer advice;
  if (result.advice) {
    const LossScaleAdvice& found = *result.advice;
    advice = {{"least_exponent", found.least}, {"most_exponent", found.most},         {"largest_exponent", found.largest},
              {"fits", found.fits()},          {"subnormal_percentage", found.subnormal}, {"lost_percentage", found.lost}};
  }
  return {{"dump", session.info().source}, {"target", result.target}, {"scale", bin_scale_name(result.scale)},
          {"edges", result.edges},         {"steps", result.steps},   {"loss_scale", std::move(advice)},
          {"interrupted", result.interrupted}, {"tensors", std::move(tensors)}};
}

std::string histogram_text(const Histogram& histogram, size_t width, bool log_counts, bool ascii) {
  uint64_t most = 1;
  size_t label = 1, number = 1;
  for (const uint64_t count : histogram.counts) {
    most = std::max(most, count);
    number = std::max(number, std::to_string(count).size());
  }
  for (const double edge : histogram.edges) label = std::max(label, edge_text(edge, histogram.scale).size());
  const size_t used = label + number + 8;
  const size_t room = width > used + 8 ? width - used : 8;
  std::string out;
  for (size_t i = 0; i < histogram.counts.size(); ++i) {
    const std::string drawn = bar(height(histogram.counts[i], most, log_counts), room, ascii);
    out += fmt::format("  {:>{}} | {}{} {:>{}}\n", edge_text(histogram.edges[i], histogram.scale), label, drawn,
                       std::string(room - std::min(room, display_width(drawn)), ' '), histogram.counts[i], number);
  }
  const std::string more = outside(histogram);
  out += fmt::format("  {:>{}} |{}{}\n", histogram.edges.empty() ? "" : edge_text(histogram.edges.back(), histogram.scale), label,
                     log_counts ? " lengths are logarithms of the counts" : "", more.empty() ? "" : (log_counts ? "; " : " and ") + more);
  return out;
}

std::string histogram_report(Session& session, const HistogramResult& result, const ReportStyle& style, bool log_counts, bool ascii) {
  if (style.format != Format::kTable) {
    const Answer answer = histogram_answer(session, result);
    if (style.format == Format::kJson) return json_text(answer);
    if (style.format == Format::kJsonl) return json_lines(answer, "tensors");
    if (style.format == Format::kCsv) return csv_text(kHistogramColumns, rows_of(answer));
    return fmt::format("## Histogram of {}\n\n{}\n{}{}", printable(result.target), markdown_table(kHistogramMarkdownColumns, rows_of(answer)),
                       missing_text(result), advice_text(result));
  }
  const std::string tail =
      missing_text(result) + advice_text(result) + (result.interrupted ? "interrupted: not every tensor was read\n" : "");
  if (result.lines.size() == 1 && result.lines.front().histogram) {
    const HistogramLine& line = result.lines.front();
    const size_t width = std::min(style.width, kBarsWidth);
    return fitted(fmt::format("{}  {}  step {}\n{}{}", name_within(session, line.tensor, ":" + slot_name(line.tensor.slot), 0, style),
                              dtype_name(line.dtype), line.tensor.step, histogram_text(*line.histogram, width, log_counts, ascii), tail),
                  style);
  }
  // Steps of a tensor are compared by height, tensors of different sizes by form.
  const auto tensor_of = [](const TensorId& id) { return std::tuple(id.graph, id.node, id.slot.io, id.slot.index); };
  std::map<decltype(tensor_of(TensorId{})), uint64_t> most;
  for (const HistogramLine& line : result.lines) {
    if (!line.histogram || line.histogram->counts.empty()) continue;
    uint64_t& of_tensor = most.try_emplace(tensor_of(line.tensor), 1).first->second;
    of_tensor = std::max(of_tensor, *std::max_element(line.histogram->counts.begin(), line.histogram->counts.end()));
  }
  const bool ranks = session.ranks().size() > 1;
  std::vector<Table::Column> columns;
  if (ranks) columns.push_back({"rank", Align::kRight});
  std::vector<Table::Cell> gradients;
  for (const HistogramLine& line : result.lines) gradients.push_back(gradient_of_cell(session, line.tensor));
  const bool any_gradient = std::any_of(gradients.begin(), gradients.end(), [](const Table::Cell& cell) { return !cell.text.empty(); });
  columns.insert(columns.end(), {{"step", Align::kRight}, {.title = "tensor", .fit = Fit::kName}});
  if (any_gradient) columns.push_back({.title = "gradient of", .fit = Fit::kName});
  columns.insert(columns.end(), {{.title = "elements"}, {.title = "outside", .drop = Table::kIfEmpty}});
  Table table(std::move(columns));
  for (const HistogramLine& line : result.lines) {
    std::vector<Table::Cell> row;
    if (ranks) row.emplace_back(std::to_string(line.tensor.rank));
    row.emplace_back(std::to_string(line.tensor.step));
    row.push_back(name_cell(session, line.tensor, slot_suffix(line.tensor.slot)));
    if (any_gradient) row.emplace_back(std::move(gradients[static_cast<size_t>(&line - result.lines.data())]));
    const bool broken = line.histogram && line.histogram->nan + line.histogram->inf > 0;
    row.emplace_back(line.histogram ? blocks(*line.histogram, most.at(tensor_of(line.tensor)), log_counts, ascii) : "-");
    row.emplace_back(line.histogram ? outside(*line.histogram) : "", broken ? Paint::kError : Paint::kNone);
    table.add(std::move(row));
  }
  return fitted(head_of(result) + table.text(style) + tail, style);
}

}  // namespace msdbg
