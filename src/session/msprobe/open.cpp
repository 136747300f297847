#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "msdbg/log.h"
#include "msdbg/msprobe.h"
#include "msdbg/threads.h"
#include "session/msprobe/layout.h"
#include "session/msprobe/msprobe_session.h"

namespace msdbg {
namespace msprobe {
namespace {

/// "lenet-good" of a path: its last part that is no step or rank.
std::string prompt_name(const std::string& path) {
  std::filesystem::path at = std::filesystem::path(path).lexically_normal();
  if (!at.has_filename()) at = at.parent_path();
  const std::string last = at.filename().string();
  const bool inner = last.starts_with("step") || last.starts_with("rank") || last.starts_with("proc");
  const std::string outer = at.parent_path().filename().string();
  return inner && !outer.empty() ? outer + "/" + last : last.empty() ? "dump" : last;
}

bool converts_to_float32(const std::string& release) { return release != "26.2"; }

}  // namespace
}  // namespace msprobe

bool is_msprobe_dump(const std::string& path) { return msprobe::is_dump(path); }

Result<std::unique_ptr<Session>> open_msprobe(const std::string& path, const DumpOptions& options) {
  using namespace msprobe;
  const Stopwatch watch;
  Result<Layout> layout = find_layout(path, options.ranks);
  if (!layout) return layout.status();
  std::vector<StepTable> tables(layout->places.size());
  const Status read = parallel_for(tables.size(), 0, [&](uint64_t task, unsigned) {
    tables[task] = read_step(layout->places[task]);
    return Status();
  });
  if (!read.ok()) return read;

  DumpData data;
  data.info.kind = SessionKind::kDump;
  data.info.source = path;
  data.info.short_name = prompt_name(path);
  data.info.layout = "P";
  data.info.epoch = release_of(tables, layout->form);
  data.rounded = converts_to_float32(data.info.epoch);
  data.problems = std::move(layout->problems);
  for (const StepTable& table : tables) {
    if (data.info.framework.empty()) data.info.framework = table.framework;
  }
  uint64_t calls = 0;
  bool structure = false;
  const StepTable* broken = nullptr;
  for (StepTable& table : tables) {
    calls += table.calls.size();
    structure = structure || table.task == "structure";
    data.late_checksums = data.late_checksums || table.late_checksums;
    if (!table.cut.empty() && broken == nullptr) broken = &table;
    std::move(table.problems.begin(), table.problems.end(), std::back_inserter(data.problems));
  }
  if (calls == 0 && !structure) {
    return Status(Code::kCorrupt, broken == nullptr ? fmt::format("{}: no call was recorded", path)
                                                    : fmt::format("{}: nothing can be read: {}", broken->place.path, broken->cut));
  }
  std::map<std::pair<int, int>, std::vector<StepTable>> groups;
  for (StepTable& table : tables) groups[{table.place.rank, table.place.graph}].push_back(std::move(table));
  for (auto& [key, steps] : groups) {
    if (data.ranks.empty() || data.ranks.back() != key.first) data.ranks.push_back(key.first);
    RankGraph joined = join_steps(key.first, key.second, std::move(steps));
    data.graphs.push_back(joined.graph);
    data.data.emplace(key, std::move(joined));
  }
  if (log_wanted(LogLevel::kInfo)) {
    log(LogLevel::kInfo, fmt::format("opened {} in {}: {} calls in {} tables of msprobe", path, format_duration(watch.seconds()), calls,
                                     layout->places.size()));
  }
  return std::unique_ptr<Session>(std::make_unique<MsprobeSession>(std::move(data)));
}

}  // namespace msdbg
