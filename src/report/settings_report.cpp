#include "msdbg/settings_report.h"

#include <fmt/format.h>

#include <algorithm>

#include "msdbg/table.h"
#include "report/table.h"

namespace msdbg {
namespace {

constexpr CsvColumn kSettingsColumns[] = {{"setting", "name"}, {"role", "role"},   {"from", "from"},     {"node", "node"},
                                  {"ranks", "ranks"},  {"steps", "steps"}, {"values", "values"}, {"differs", "differs"}};

bool equal_values(const std::optional<double>& a, const std::optional<double>& b) {
  return a.has_value() == b.has_value() && (!a || *a == *b || (*a != *a && *b != *b));
}

/// `0.05`, `1, 2, 3 in steps 0-2`, `0.1 in step 0 to 0.001 in step 99`.
std::string values_text(const Setting& setting, const SettingSeries& series, const std::vector<int64_t>& steps) {
  constexpr size_t kListed = 6;
  if (setting.elements != 1) return fmt::format("a schedule of {}", counted(setting.elements, "value"));
  std::vector<int64_t> dumped;
  std::vector<double> values;
  for (size_t i = 0; i < steps.size(); ++i) {
    if (!series.values[i]) continue;
    dumped.push_back(steps[i]);
    values.push_back(*series.values[i]);
  }
  if (values.empty()) return "not dumped";
  const bool constant = std::all_of(values.begin(), values.end(), [&](double value) { return equal_values(value, values.front()); });
  std::string out;
  if (constant) {
    out = format_short(values.front());
    if (dumped.size() == steps.size()) return out;
  } else if (values.size() > kListed) {
    return fmt::format("{} in step {} to {} in step {}", format_short(values.front()), dumped.front(), format_short(values.back()),
                       dumped.back());
  } else {
    for (const double value : values) out += (out.empty() ? "" : ", ") + format_short(value);
  }
  return fmt::format("{} in step{} {}", out, dumped.size() == 1 ? "" : "s", numbers_text(dumped));
}

/// `differs from ranks 0, 2-3`: where most ranks agree, the others are marked.
std::string difference_text(const Setting& setting, size_t series) {
  if (!setting.differs()) return "";
  if (!setting.has_majority()) return "the ranks differ";
  return series == 0 ? "" : fmt::format("differs from {}", ranks_text(setting.series.front().ranks));
}

}  // namespace

std::vector<SettingRow> setting_rows(const SettingsResult& result) {
  std::vector<SettingRow> rows;
  for (const Setting& setting : result.settings) {
    for (size_t i = 0; i < setting.series.size(); ++i) {
      rows.push_back({setting.name, setting.series[i].ranks, values_text(setting, setting.series[i], result.steps), setting.from,
                      difference_text(setting, i)});
    }
  }
  return rows;
}

Answer settings_answer(const Session& session, const SettingsResult& result) {
  Answer list = Answer::array();
  for (const Setting& setting : result.settings) {
    Answer all = Answer::array();
    for (const SettingSeries& series : setting.series) {
      Answer values = Answer::array();
      for (const auto& value : series.values) values.push_back(number_answer(value));
      all.push_back({{"ranks", series.ranks}, {"values", std::move(values)}});
    }
    Answer out = {{"name", setting.name}, {"role", setting_role_name(setting.role)}, {"from", setting_from_name(setting.from)}};
    out["node"] = session.node(setting.place).name;
    out["elements"] = setting.elements;
    out["differs"] = setting.differs();
    out["series"] = std::move(all);
    list.push_back(std::move(out));
  }
  return {{"dump", session.info().source}, {"ranks", result.ranks}, {"steps", result.steps}, {"settings", std::move(list)}};
}

std::string settings_report(const Session& session, const SettingsResult& result, const ReportStyle& style) {
  if (style.format == Format::kJson) return json_text(settings_answer(session, result));
  if (style.format == Format::kJsonl) return json_lines(settings_answer(session, result), "settings");
  if (style.format == Format::kCsv || style.format == Format::kMarkdown) {
    Answer rows = Answer::array();
    for (const Setting& setting : result.settings) {
      for (const SettingSeries& series : setting.series) {
        Answer values = Answer::array();
        for (const auto& value : series.values) values.push_back(number_answer(value));
        rows.push_back({{"name", setting.name}, {"role", setting_role_name(setting.role)}, {"from", setting_from_name(setting.from)},
                        {"node", session.node(setting.place).name}, {"ranks", series.ranks}, {"steps", result.steps},
                        {"values", std::move(values)}, {"differs", setting.differs()}});
      }
    }
    return style.format == Format::kCsv ? csv_text(kSettingsColumns, rows) : markdown_table(kSettingsColumns, rows);
  }
  if (result.settings.empty()) return "no learning rate and no other setting of an optimizer was found\n";
  const bool ranks = session.ranks().size() > 1;
  std::vector<Table::Column> columns = {{.title = "setting", .fit = Fit::kText}};
  if (ranks) columns.push_back({"rank", Align::kRight});
  columns.push_back({.title = "value", .fit = Fit::kText, .least = 40});
  columns.push_back({.title = "from", .drop = 1});
  if (ranks) columns.push_back({.title = "", .fit = Fit::kText, .drop = Table::kIfEmpty});
  Table table(std::move(columns));
  for (const SettingRow& each : setting_rows(result)) {
    const Paint paint = each.difference.empty() ? Paint::kNone : Paint::kError;
    std::vector<Table::Cell> row{Table::Cell(each.name)};
    if (ranks) row.emplace_back(ranks_cell(each.ranks));
    row.emplace_back(each.value, paint);
    row.emplace_back(std::string(setting_from_name(each.from)));
    if (ranks) row.emplace_back(each.difference, paint);
    table.add(std::move(row));
  }
  return fitted(table.text(style), style);
}

}  // namespace msdbg
