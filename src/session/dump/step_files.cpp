#include "session/dump/step_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <unordered_map>

#include "msdbg/file.h"
#include "session/dump/directory.h"

namespace msdbg::dump {
namespace {

constexpr int kParameterDepth = 8;  // path components of a parameter's name with slashes

class StepLister {
 public:
  StepLister(const std::string& directory, bool plain, DirectoryLister& lister, TextArena& names)
      : directory_(directory), plain_(plain), lister_(lister), names_(names) {}

  StepFiles run() {
    Result<Listing> entries = lister_.list(directory_);
    if (!entries) {
      add_problem(out_.problems, Severity::kError, directory_, "cannot be listed: " + entries.status().message());
      return std::move(out_);
    }
    for (const DirectoryEntry& entry : *entries) {
      if (entry.name == "mapping.csv") read_mapping();
    }
    out_.files.reserve(entries->entries.size());
    for (const DirectoryEntry& entry : *entries) add(entry, "", 0);
    report_failed_conversions(*entries);
    names_.adopt(std::move(entries->names));
    for (auto& [stored, original] : mapping_) {
      if (!original.found) out_.unmapped.push_back(stored + " (" + original.name + ")");
    }
    return std::move(out_);
  }

 private:
  struct Original {
    std::string name;
    bool found = false;
  };

  void read_mapping() {
    const std::string path = join_path(directory_, "mapping.csv");
    const Result<std::vector<std::string>> lines = read_lines(path);
    if (!lines) {
      add_problem(out_.problems, Severity::kError, path, without_path(lines.status(), path).message());
      return;
    }
    size_t bad = 0;
    for (const std::string& line : *lines) {
      const size_t comma = line.find(',');
      if (comma == std::string::npos || comma == 0 || comma + 1 == line.size()) {
        bad += line.empty() ? 0 : 1;
      } else {
        mapping_[line.substr(0, comma)] = {line.substr(comma + 1)};  // for a repeated number the last line wins
      }
    }
    if (bad > 0) add_problem(out_.problems, Severity::kWarning, path, fmt::format("{} lines are no `file,name`", bad));
  }

  /// The list that the converter of containers leaves next to them.
  void report_failed_conversions(const Listing& entries) {
    constexpr std::string_view kList = "convert_failed_file_list.txt";
    const auto named = [&](std::string_view name) {
      return std::any_of(entries.begin(), entries.end(), [&](const DirectoryEntry& entry) { return entry.name == name; });
    };
    if (!named(kList)) return;
    const std::string path = join_path(directory_, std::string(kList));
    const Result<std::vector<std::string>> lines = read_lines(path, uint64_t{64} << 20);
    if (!lines) {
      add_problem(out_.problems, Severity::kWarning, path, without_path(lines.status(), path).message());
      return;
    }
    size_t failed = 0;
    std::set<std::string, std::less<>> missing;
    for (const std::string& line : *lines) {
      const std::string_view name = trim(line);
      if (name.empty()) continue;
      ++failed;
      missing.emplace(name.substr(name.rfind('/') + 1));
    }
    if (failed == 0) return;
    for (const DirectoryEntry& entry : entries) missing.erase(std::string(entry.name));
    add_problem(out_.problems, missing.empty() ? Severity::kInfo : Severity::kWarning, path,
                missing.empty() ? fmt::format("the converter could not convert {} files; their containers are here and are read", failed)
                                : fmt::format("the converter could not convert {} files, and {} of these containers are not here: {}{}",
                                              failed, missing.size(), printable(*missing.begin()), missing.size() > 1 ? ", ..." : ""));
  }

  void add(const DirectoryEntry& entry, const std::string& prefix, int depth) {
    const std::string_view path = prefix.empty() ? entry.name : names_.add(prefix + std::string(entry.name));
    std::string_view name = path;
    if (!mapping_.empty()) {
      if (auto found = mapping_.find(std::string(path)); found != mapping_.end()) {
        found->second.found = true;
        name = names_.add(found->second.name);
      }
    }
    FileName parsed = parse_file_name(name);
    // 1.3 to 1.5 keep the slashes of a parameter's name, which creates directories.
    if (entry.directory && parsed.kind != FileKind::kNpy) {
      if (!entry.link && path.starts_with("Parameter.") && depth < kParameterDepth) {
        descend(std::string(path), depth);
      } else if (!plain_) {
        out_.others.emplace_back(path);
      }
      return;
    }
    switch (parsed.kind) {
      case FileKind::kNpy:
      case FileKind::kRaw:
      case FileKind::kDevice:
      case FileKind::kContainer:
        out_.files.push_back({path, std::move(parsed)});
        break;
      case FileKind::kStatistics:
        read_statistics();
        break;
      case FileKind::kOverflow:
        out_.overflow.emplace_back(path);
        break;
      case FileKind::kMapping:
        break;
      case FileKind::kOther:
        add_other(path);
        break;
    }
  }

  void descend(const std::string& path, int depth) {
    Result<Listing> entries = lister_.list(join_path(directory_, path));
    if (!entries) {
      add_problem(out_.problems, Severity::kError, join_path(directory_, path),
                  "cannot be listed: " + entries.status().message());
      return;
    }
    for (const DirectoryEntry& entry : *entries) add(entry, path + "/", depth + 1);
  }

  void read_statistics() {
    const std::string path = join_path(directory_, "statistic.csv");
    const Result<std::vector<std::string>> lines = read_lines(path);
    if (!lines) {
      add_problem(out_.problems, Severity::kError, path, without_path(lines.status(), path).message());
      return;
    }
    StatisticTable table = parse_statistics(*lines);
    out_.rows = std::move(table.rows);
    for (std::string& problem : table.problems) {
      add_problem(out_.problems, Severity::kWarning, path, std::move(problem));
    }
  }

  void add_other(std::string_view path) {
    if (plain_ && path.ends_with(".npy")) {
      FileName name;
      name.kind = FileKind::kNpy;
      name.op_type = "File";
      name.op = path.substr(0, path.size() - 4);
      out_.files.push_back({path, std::move(name)});
    } else if (!plain_) {
      out_.others.emplace_back(path);
    }
  }

  const std::string& directory_;
  const bool plain_;
  DirectoryLister& lister_;
  TextArena& names_;
  std::unordered_map<std::string, Original> mapping_;
  StepFiles out_;
};

}  // namespace

StepFiles list_step(const std::string& directory, bool plain, DirectoryLister& lister, TextArena& names) {
  return StepLister(directory, plain, lister, names).run();
}

}  // namespace msdbg::dump
