// The report of doctor: the problems found while opening, and a test of every file.
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <ctime>
#include <map>
#include <set>

#include "msdbg/device_format.h"
#include "msdbg/unfinished.h"
#include "session/dump/directory.h"
#include "session/dump/dump_session.h"
#include "session/dump/layout.h"

namespace msdbg::dump {
namespace {

/// A file modified this recently may still be written.
constexpr time_t kFreshSeconds = 60;

bool is_fresh(const std::string& path) {
  struct stat status;
  return stat(path.c_str(), &status) == 0 && std::time(nullptr) - status.st_mtime < kFreshSeconds;
}

std::string first_of(const std::vector<std::string>& names) {
  std::string text;
  for (size_t i = 0; i < std::min<size_t>(3, names.size()); ++i) text += (i ? ", " : "") + printable(names[i]);
  return names.size() > 3 ? text + ", ..." : text;
}

/// Kernel arguments and converter reports are not tensors, but are harmless.
bool is_known_companion(const std::string& name) {
  return name.ends_with(".json") || name.starts_with("convert_failed_file");
}

}  // namespace

SessionReport DumpSession::inspect() {
  SessionReport report;
  report.problems = data_.problems;
  const auto problem = [&](Severity severity, std::string path, std::string message) {
    add_problem(report.problems, severity, std::move(path), std::move(message));
  };

  for (const KnownDirectory& directory : data_.directories) {
    report.statistic_rows += directory.rows.size();
    report.other_files += directory.others.size();
    std::vector<std::string> strange;
    for (const std::string& name : directory.others) {
      if (!is_known_companion(name)) strange.push_back(name);
    }
    if (!strange.empty()) {
      problem(Severity::kWarning, directory.path,
              fmt::format("{} names are not those of tensor files: {}", strange.size(), first_of(strange)));
    }
    if (!directory.unmapped.empty()) {
      problem(Severity::kWarning, join_path(directory.path, "mapping.csv"),
              fmt::format("{} lines name files that do not exist (1.10 and 2.0 fail to write over-long names): {}",
                          directory.unmapped.size(), first_of(directory.unmapped)));
    }
  }

  uint64_t in_device_order = 0;
  std::string first_in_device_order;
  for (const auto& [key, data] : data_.data) {
    std::vector<int64_t>& steps = report.steps_by_graph[key.second];
    const std::string path = data.graph->source_path().empty() ? data_.info.source : data.graph->source_path();
    uint64_t uncertain = 0;
    std::string first_uncertain;
    const auto look = [&](int64_t step, const StepIndex& index) {
      for (const Value& value : index.listed()) {
        if (interrupt_requested()) return;
        const TensorId id{key.first, key.second, step, value.execution, value.node, value.slot};
        const NodeKind kind = data.graph->node(value.node).kind;
        if (value.note != Note::kNone && uncertain++ == 0) first_uncertain = tensor_name(id);
        if (value.kind == FileKind::kStatistics) continue;
        (value.kind == FileKind::kDevice  ? report.device_files
         : kind == NodeKind::kOperator    ? report.tensor_files
         : kind == NodeKind::kParameter   ? report.parameter_files
                                          : report.constant_files)++;
        if (value.kind == FileKind::kContainer && is_blocked_device_format(data_.formats[value.format]) && in_device_order++ == 0) {
          first_in_device_order = tensor_name(id);
        }
        TensorInfo info = identify(id);
        open_value(info, value.kind, hints_of(value), type_of(id));
        if (info.problem.ok()) continue;
        std::string message = info.problem.message();
        const bool unsupported = info.problem.code() == Code::kUnsupported;
        if (!unsupported && is_fresh(path_of(value)))
          message += " (changed moments ago: the dump may still be written)";
        problem(unsupported ? Severity::kInfo : Severity::kError, path_of(value), std::move(message));
      }
    };
    for (const auto& [step, index] : data.steps) {
      steps.push_back(step);
      look(step, index);
    }
    look(data.steps.empty() ? 0 : data.steps.begin()->first, data.constants);
    if (uncertain > 0) {
      problem(Severity::kWarning, path,
              fmt::format("{} files of graph {} may belong to another node than shown, the first is {}", uncertain,
                          key.second, first_uncertain));
    }
    const History& history = data_.history.at(key.first);
    if (history.knows(key.second)) {
      std::vector<int64_t> missing;
      for (int64_t step : history.runs().at(key.second)) {
        if (data.steps.count(step) == 0) missing.push_back(step);
      }
      if (!missing.empty()) {
        problem(Severity::kInfo, path,
                fmt::format("graph {} also ran in steps {}, which were not dumped", key.second, numbers_text(missing)));
      }
    }
  }
  add_rank_problems(*this, report.problems);
  for (auto& [graph, steps] : report.steps_by_graph) {
    std::sort(steps.begin(), steps.end());
    steps.erase(std::unique(steps.begin(), steps.end()), steps.end());
  }
  if (in_device_order > 0) {
    problem(Severity::kInfo, data_.info.source,
            fmt::format("in the order of the device, with its padding, and judged for NaN, Inf and overflow only: {} of the tensors, "
                        "the first is {}",
                        in_device_order, first_in_device_order));
  }
  return report;
}

}  // namespace msdbg::dump
