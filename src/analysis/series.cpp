// Reads losses from the output of programs.
#include "msdbg/series.h"

#include <fmt/format.h>

#include <algorithm>
#include <regex>

namespace msdbg {
namespace {

// std::regex recurses along a line; longer lines contain no useful loss.
constexpr size_t kLongestLine = 4096;

void count_steps(Series& series) {
  series.counted = true;
  for (size_t i = 0; i < series.points.size(); ++i) series.points[i].step = static_cast<int64_t>(i) + 1;
}

/// Progress bars end their lines with only a carriage return.
std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  for (std::string_view line : split(text, '\n')) {
    if (line.ends_with('\r')) line.remove_suffix(1);
    for (std::string_view part : split(line, '\r')) lines.push_back(part);
  }
  return lines;
}

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

/// The number at the start of `text`, after blanks and punctuation; nullopt if missing.
std::optional<double> leading_number(std::string_view text) {
  size_t at = 0;
  while (at < text.size() && std::string_view(" \t:=[({'\"").find(text[at]) != std::string_view::npos) ++at;
  if (text.substr(at).starts_with("is ")) return leading_number(text.substr(at + 3));
  if (text.substr(at).starts_with("Tensor(")) at = std::min(text.find("value=", at) + 6, text.size());
  while (at < text.size() && text[at] == ' ') ++at;
  size_t end = at;
  while (end < text.size() && (is_word(text[end]) || std::string_view("+-.").find(text[end]) != std::string_view::npos)) ++end;
  std::string_view word = text.substr(at, end - at);
  while (!word.empty() && word.back() == '.') word.remove_suffix(1);
  return parse_double(word);
}

/// The number after the last standalone `word` in the line.
std::optional<double> number_after(const std::string& lower, std::string_view line, std::string_view word, size_t limit) {
  std::optional<double> found;
  for (size_t at = lower.find(word); at < limit && at != std::string::npos; at = lower.find(word, at + 1)) {
    const size_t end = at + word.size();
    if ((at > 0 && std::isalpha(static_cast<unsigned char>(lower[at - 1]))) ||
        (end < lower.size() && is_word(lower[end]) && !std::isdigit(static_cast<unsigned char>(lower[end]))))
      continue;
    if (const auto value = leading_number(line.substr(end))) found = value;
  }
  return found;
}

void scan_line(std::string_view line, Series& series) {
  const std::string lower = to_lower(line);
  const auto value = number_after(lower, line, "loss", std::string::npos);
  if (!value) return;
  const auto step = number_after(lower, line, "step", lower.rfind("loss"));
  const bool known = step && *step >= 0 && *step < 9e15;
  series.counted = series.counted || !known;
  series.points.push_back({known ? static_cast<int64_t>(*step) : 0, *value});
}

Status scan_pattern(std::string_view text, const std::string& pattern, Series& series) {
  std::regex regex;
  try {
    regex.assign(pattern, std::regex::ECMAScript | std::regex::optimize);
  } catch (const std::regex_error& error) {
    return Status(Code::kInvalidArgument, fmt::format("series: pattern '{}': {}", printable(pattern), error.what()));
  }
  if (regex.mark_count() < 1 || regex.mark_count() > 2) {
    return Status(Code::kInvalidArgument,
                  fmt::format("series: pattern '{}' has {} groups; one (value) or two (step, value) are expected, e.g. 'loss is (\\S+)'",
                              printable(pattern), regex.mark_count()));
  }
  for (std::string_view line : lines_of(text)) {
    std::match_results<std::string_view::const_iterator> match;
    if (line.size() > kLongestLine || !std::regex_search(line.begin(), line.end(), match, regex)) continue;
    const auto group = [&](size_t i) { return parse_double(std::string(match[i].first, match[i].second)); };
    const auto value = group(regex.mark_count());
    const auto step = regex.mark_count() == 2 ? group(1) : std::nullopt;
    if (!value) continue;
    series.counted = series.counted || !step;
    series.points.push_back({step ? static_cast<int64_t>(*step) : 0, *value});
  }
  return Status();
}

std::vector<std::string> csv_fields(std::string_view line, char separator) {
  std::vector<std::string> fields(1);
  bool quoted = false;
  for (char c : line) {
    if (c == '"') quoted = !quoted;
    else if (c == separator && !quoted) fields.emplace_back();
    else fields.back() += c;
  }
  for (std::string& field : fields) field = std::string(trim(field));
  return fields;
}

/// The separator of the titles; '\0' if there is only one title.
char separator_of(std::string_view titles) {
  for (char c : {',', ';', '\t'}) {
    if (titles.find(c) != std::string_view::npos) return c;
  }
  return '\0';
}

/// If the comma is not the separator, it may be the decimal point.
std::optional<double> csv_number(std::string field, char separator) {
  if (separator == ';' || separator == '\t') std::replace(field.begin(), field.end(), ',', '.');
  return parse_double(field);
}

Status scan_csv(std::string_view text, const SeriesOptions& options, Series& series) {
  const auto lines = lines_of(text);
  const char separator = separator_of(lines.empty() ? "" : lines[0]);
  const std::vector<std::string> titles = csv_fields(lines.empty() ? "" : lines[0], separator);
  std::optional<size_t> value_at, step_at;
  for (size_t i = 0; i < titles.size(); ++i) {
    const std::string lower = to_lower(titles[i]);
    if (!options.column.empty() ? titles[i] == options.column : lower == "loss") value_at = i;
    if (lower == "step" || lower == "iteration" || lower == "iter") step_at = i;
  }
  if (!value_at && options.column.empty()) {
    // `train_loss`, if it is the only such title.
    const auto speaks_of_loss = [](const std::string& title) { return to_lower(title).find("loss") != std::string::npos; };
    const auto found = std::find_if(titles.begin(), titles.end(), speaks_of_loss);
    if (std::count_if(titles.begin(), titles.end(), speaks_of_loss) == 1) value_at = static_cast<size_t>(found - titles.begin());
  }
  if (!value_at && options.column.empty() && titles.size() == (step_at ? 2u : 1u)) value_at = step_at ? 1 - *step_at : 0;
  if (!value_at) {
    if (options.column.empty()) return Status();
    const auto near = nearest(options.column, titles, 1);
    return Status(Code::kInvalidArgument, fmt::format("series: {} has no column '{}'{}", series.source, options.column,
                                                      near.empty() ? "" : fmt::format("; did you mean '{}'?", near[0])));
  }
  series.what = "column " + titles[*value_at];
  for (size_t i = 1; i < lines.size(); ++i) {
    const auto fields = csv_fields(lines[i], separator);
    if (*value_at >= fields.size()) continue;
    const auto value = csv_number(fields[*value_at], separator);
    const auto step = step_at && *step_at < fields.size() ? parse_int(fields[*step_at]) : std::nullopt;
    if (!value) continue;
    series.counted = series.counted || !step;
    series.points.push_back({step.value_or(0), *value});
  }
  return Status();
}

}  // namespace

void align_series(Series& a, Series& b) {
  if (a.counted != b.counted) count_steps(a.counted ? b : a);
}

Result<Series> parse_series(std::string_view text, std::string_view source, const SeriesOptions& options) {
  Series series;
  series.source = source;
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);  // a byte order mark does not belong to the first title
  if (!options.pattern.empty()) {
    series.what = options.pattern;
    if (const Status status = scan_pattern(text, options.pattern, series); !status.ok()) return status;
  } else {
    series.what = "loss";
    const auto scan_log = [&] {
      for (std::string_view line : lines_of(text)) {
        if (line.size() <= kLongestLine) scan_line(line, series);
      }
    };
    if (options.column.empty()) scan_log();
    if (series.points.empty()) {
      const Status status = scan_csv(text, options, series);
      // A column applies to csv files; the other file may still be a log.
      if (!status.ok()) scan_log();
      if (!status.ok() && series.points.empty()) return status;
    }
  }
  if (series.points.empty()) {
    return Status(Code::kNotFound,
                  fmt::format("series: {}: no line contains a {}; use a pattern whose group is the value, e.g. 'loss is (\\S+)'", source,
                              options.pattern.empty() ? "loss" : "value that matches '" + printable(options.pattern) + "'"));
  }
  // A repeated step means epochs, or a count within them: then only the order identifies the step.
  const bool rises = std::adjacent_find(series.points.begin(), series.points.end(),
                                        [](const SeriesPoint& x, const SeriesPoint& y) { return x.step >= y.step; }) == series.points.end();
  series.late = series.points.front().step > 1;
  if (series.counted || !rises) count_steps(series);
  return series;
}

}  // namespace msdbg
