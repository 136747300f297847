#include "report/follow_text.h"

#include <fmt/format.h>

#include "msdbg/report.h"
#include "msdbg/table.h"
#include "report/markup.h"
#include "report/table.h"

namespace msdbg::follow {

std::string markdown_line(const std::vector<std::string>& cells) {
  std::string out = "|";
  for (const std::string& cell : cells) out += ' ' + markdown_cell(cell) + " |";
  return out + "\n";
}

std::string markdown_head(const std::vector<std::string>& titles) {
  std::string out = markdown_line(titles) + "|";
  for (size_t i = 0; i < titles.size(); ++i) out += "---|";
  return out + "\n";
}

std::string tensor_text(const Session& session, const TensorId& id, bool full) {
  const std::string& name = session.node(id).name;
  return (full ? printable(name) : brief_name(session, name)) + name_suffix(session, id, ":" + slot_name(id.slot));
}

std::string name_suffix(const Session& session, const TensorId& id, std::string out) {
  return name_suffix(session, id, std::move(out), std::span(&id.rank, 1));
}

std::string name_suffix(const Session& session, const TensorId& id, std::string out, std::span<const int> ranks) {
  if (id.execution > 0) out += fmt::format(" execution {}", id.execution);
  if (session.graphs().size() > session.ranks().size()) out += fmt::format(" graph {}", id.graph);
  if (session.ranks().size() > 1 && !ranks.empty()) out += " " + ranks_text(ranks);
  return out;
}

std::string values_text(const Stats& stats) {
  const std::string bad = nonfinite_text(stats);
  return bad.empty() ? fmt::format("{} to {}", format_short(stats.min), format_short(stats.max)) : bad;
}

void add_place(const Session& session, const TensorId& id, std::vector<std::string>* words) {
  const auto add = [&](const char* option, int64_t value) { words->insert(words->end(), {option, fmt::format("{}", value)}); };
  add("--step", id.step);
  if (session.ranks().size() > 1) add("--rank", id.rank);
  if (session.graphs().size() > session.ranks().size()) add("--graph", id.graph);
  if (id.execution > 0) add("--execution", id.execution);
}

}  // namespace msdbg::follow
