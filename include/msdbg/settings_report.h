// The hyper-parameters of the ranks as a table and as an answer.
#pragma once

#include <string>
#include <vector>

#include "msdbg/answers.h"
#include "msdbg/settings.h"

namespace msdbg {

/// A row of the table.
struct SettingRow {
  std::string name;
  std::vector<int> ranks;
  std::string value;       ///< `0.05`, `1, 2, 3 in steps 0-2`
  SettingFrom from;
  std::string difference;  ///< `differs from ranks 0, 2-3`; ""
};
std::vector<SettingRow> setting_rows(const SettingsResult& result);
Answer settings_answer(const Session& session, const SettingsResult& result);
/// table, json, jsonl, csv and markdown.
std::string settings_report(const Session& session, const SettingsResult& result, const ReportStyle& style);

}  // namespace msdbg
