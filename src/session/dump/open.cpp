#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "msdbg/dump.h"
#include "msdbg/log.h"
#include "session/dump/directory.h"
#include "session/dump/dump_session.h"
#include "session/dump/metadata.h"
#include "session/dump/rank_opener.h"

namespace msdbg {
namespace dump {
namespace {

/// "lenet" of "lenet-2.7.1-lognan": short enough for a prompt.
std::string short_name(const std::string& root) {
  const std::string name = base_name(root);
  const std::string first = name.substr(0, name.find('-'));
  return first.empty() ? name : first;
}

/// 2.7 of "2.7.1rc1" as 207; numbers above 99 count as 99.
int64_t release(std::string_view version) {
  const std::vector<std::string_view> parts = split(version, '.');
  if (parts.size() < 2) return 0;
  const auto number = [&](size_t part) { return std::min<int64_t>(parse_digits(parts[part]).value_or(0), 99); };
  return number(0) * 100 + number(1);
}

/// Names without a type component fit two epochs; other facts decide between them.
std::string narrow_epoch(const std::string& epoch, const DumpData& data) {
  const int64_t version = release(data.info.framework_version);
  if (epoch == "B/C" && version >= 203) return version >= 204 ? "E" : "D";
  if (epoch == "B" || epoch == "B/C") {
    const bool newer = version >= 106 || std::any_of(data.history.begin(), data.history.end(),
                                                     [](const auto& rank) { return !rank.second.empty(); });
    if (newer) return "C";
    return epoch == "B" || version > 0 ? "B" : "B/C";
  }
  return epoch == "D" && version >= 204 ? "E" : epoch;
}

std::string find_epoch(const std::vector<std::string>& epochs, const DumpData& data) {
  for (const auto& [key, graph] : data.data) {
    for (const auto& [step, index] : graph.steps) {
      for (const Value& value : index.values()) {
        if (value.kind == FileKind::kRaw) return "A";
      }
    }
  }
  std::set<std::string> found;
  for (const std::string& epoch : epochs) {
    if (!epoch.empty()) found.insert(narrow_epoch(epoch, data));
  }
  std::string text;
  for (const std::string& epoch : found) text += (text.empty() ? "" : ", ") + epoch;
  return text;
}

}  // namespace
}  // namespace dump

Result<std::unique_ptr<Session>> open_dump(const std::string& path, const DumpOptions& options) {
  using namespace dump;
  const Stopwatch watch;
  const auto index = options.index ? std::make_shared<StatsIndex>(likely_root(path), options.settled, options.asks_at_once) : nullptr;
  DirectoryLister plain_lister;
  DirectoryLister& lister = index ? *index : plain_lister;
  Result<Layout> layout = find_layout(path, options, lister);
  if (!layout) return layout.status();

  DumpData data;
  data.info.kind = SessionKind::kDump;
  data.info.source = path;
  data.info.short_name = short_name(layout->root);
  data.info.layout = layout->kind;
  data.info.nets = layout->nets;
  data.problems = std::move(layout->problems);
  data.formats = {""};
  // One rank writes it for all.
  std::vector<std::string> described = {layout->root};
  for (const RankDirectory& rank : layout->ranks) described.push_back(rank.path);
  data.root = layout->root;
  data.homes = described;
  for (const std::string& directory : described) {
    const Metadata metadata = read_metadata(directory, data.problems);
    if (data.info.framework_version.empty()) data.info.framework_version = metadata.framework_version;
    if (data.info.device_target.empty()) data.info.device_target = metadata.device_target;
    data.info.all_operators = data.info.all_operators || metadata.all_operators;
    if (!data.info.framework_version.empty() || layout->root == layout->ranks.front().path) break;
  }

  std::vector<std::string> epochs;
  for (const RankDirectory& rank : layout->ranks) {
    if (interrupt_requested()) return Status(Code::kInterrupted, "interrupted while opening " + path);
    data.ranks.push_back(rank.rank);
    RankOpener opener(*layout, rank, lister, data);
    if (const Status status = opener.run(); !status.ok()) return Status(status.code(), "interrupted while opening " + path);
    epochs.insert(epochs.end(), opener.epochs().begin(), opener.epochs().end());
    if (rank.data.empty()) {
      add_problem(data.problems, Severity::kError, rank.path,
                  "no steps were dumped: no <net>/<graph>/<step> directory");
    }
  }
  data.info.epoch = find_epoch(epochs, data);
  if (log_wanted(LogLevel::kInfo)) {
    log(LogLevel::kInfo, fmt::format("opened {} in {}: {} rank{}, {} step director{} listed", path, format_duration(watch.seconds()),
                                     data.ranks.size(), data.ranks.size() == 1 ? "" : "s", data.directories.size(),
                                     data.directories.size() == 1 ? "y" : "ies"));
  }
  auto session = std::make_unique<DumpSession>(std::move(data));
  if (index && index->root() == layout->root) session->use_index(index, layout->kind == "files", !options.net && options.ranks.is_all());
  return std::unique_ptr<Session>(std::move(session));
}

}  // namespace msdbg
