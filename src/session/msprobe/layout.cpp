#include "session/msprobe/layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <set>

namespace msdbg::msprobe {
namespace {

namespace fs = std::filesystem;

/// The number behind `word` in `name`; nullopt for another name.
std::optional<int64_t> numbered(std::string_view name, std::string_view word) {
  constexpr size_t kMostDigits = 9;
  if (!name.starts_with(word)) return std::nullopt;
  name.remove_prefix(word.size());
  if (name.empty() || name.size() > kMostDigits || name.find_first_not_of("0123456789") != std::string_view::npos) return std::nullopt;
  return parse_int(name);
}

/// What a rank's folder holds, whole or not.
bool has_table(const fs::path& folder) {
  std::error_code error;
  for (const char* name : {"dump.json", "debug.json", "dump_tensor_data"}) {
    if (fs::exists(folder / name, error)) return true;
  }
  return false;
}

struct RankFolder {
  std::string path;
  RankForm form = RankForm::kNumbered;
  int64_t number = 0;  ///< rank or process
};

std::optional<RankFolder> rank_folder(const fs::path& path) {
  const std::string name = path.filename();
  RankFolder folder{path, RankForm::kPlain, 0};
  if (name == "rank") return folder;
  if (const auto rank = numbered(name, "rank")) return RankFolder{path, RankForm::kNumbered, *rank};
  if (const auto process = numbered(name, "proc")) return RankFolder{path, RankForm::kProcess, *process};
  return std::nullopt;
}

/// The folders below that `accept` takes, in the order of their names.
template <typename T, typename Accept>
std::vector<T> folders_below(const fs::path& path, const Accept& accept) {
  std::vector<fs::path> found;
  std::error_code error;
  fs::directory_iterator at(path, error);
  for (; !error && at != fs::directory_iterator(); at.increment(error)) {
    std::error_code ignored;
    if (at->is_directory(ignored)) found.push_back(at->path());
  }
  std::sort(found.begin(), found.end());
  std::vector<T> out;
  for (const fs::path& each : found) {
    if (std::optional<T> taken = accept(each)) out.push_back(std::move(*taken));
  }
  return out;
}

std::vector<RankFolder> ranks_below(const fs::path& step) {
  return folders_below<RankFolder>(step, [](const fs::path& each) -> std::optional<RankFolder> {
    return has_table(each) ? rank_folder(each) : std::nullopt;
  });
}

struct StepFolder {
  int64_t number = 0;
  std::string path;
};

std::vector<StepFolder> steps_below(const fs::path& root) {
  std::vector<StepFolder> steps = folders_below<StepFolder>(root, [](const fs::path& each) -> std::optional<StepFolder> {
    const auto number = numbered(each.filename().string(), "step");
    return number ? std::optional(StepFolder{*number, each}) : std::nullopt;
  });
  std::stable_sort(steps.begin(), steps.end(), [](const StepFolder& a, const StepFolder& b) { return a.number < b.number; });
  return steps;
}

fs::path without_slash(const fs::path& path) {
  const fs::path out = path.lexically_normal();
  return !out.has_filename() && out.has_parent_path() ? out.parent_path() : out;
}

/// The folder that is meant; the table itself stands for its folder.
fs::path folder_of(const std::string& path) {
  const fs::path out = without_slash(path);
  const bool table = out.filename() == "dump.json" || out.filename() == "debug.json";
  std::error_code error;
  if (!table || fs::is_directory(out, error)) return out;
  return out.has_parent_path() ? out.parent_path() : fs::path(".");
}

/// With the names of the folders above, which tell step and rank.
fs::path whole_path(const fs::path& folder) {
  std::error_code error;
  const fs::path whole = fs::absolute(folder, error);
  return without_slash(error ? folder : whole);
}

class Finder {
 public:
  explicit Finder(const IntSet& ranks) : ranks_(ranks) {}

  Result<Layout> run(const std::string& path) {
    const fs::path typed = folder_of(path), named = whole_path(typed);
    const auto own_rank = rank_folder(named);
    if (has_table(named)) {
      // The folder itself: its name and that of its parent tell rank and step, if they have these forms.
      const auto step = numbered(named.parent_path().filename().string(), "step");
      add(own_rank.value_or(RankFolder{named, RankForm::kPlain, 0}), 0, step.value_or(0), typed);
    } else if (const auto step = numbered(named.filename().string(), "step"); step && !ranks_below(named).empty()) {
      add_step({*step, typed}, 0);
    } else {
      const bool both = has_steps(typed / "pynative") || has_steps(typed / "graph");
      for (const StepFolder& each : steps_below(both ? typed / "pynative" : typed)) add_step(each, 0);
      if (both) {
        for (const StepFolder& each : steps_below(typed / "graph")) add_step(each, 1);
      }
    }
    if (layout_.places.empty()) {
      const std::string of = ranks_.is_all() ? "" : " of rank " + ranks_.text();
      return Status(Code::kNotFound,
                    fmt::format("{}: no dump of msprobe here: no step<N>/rank<R> or step<N>/proc<N> folder with a dump.json{}", path, of));
    }
    std::sort(layout_.places.begin(), layout_.places.end());
    return std::move(layout_);
  }

  static bool has_steps(const fs::path& root) {
    const std::vector<StepFolder> steps = steps_below(root);
    return std::any_of(steps.begin(), steps.end(), [](const StepFolder& step) { return !ranks_below(step.path).empty(); });
  }

 private:
  void problem(Severity severity, std::string path, std::string message) {
    layout_.problems.push_back({severity, std::move(path), std::move(message)});
  }

  void add(const RankFolder& folder, int graph, int64_t step, std::string path) {
    const int rank = folder.form == RankForm::kNumbered ? static_cast<int>(folder.number) : 0;
    if (!ranks_.contains(rank)) return;
    layout_.form = folder.form;
    layout_.places.push_back({rank, graph, step, std::move(path)});
  }

  /// Folders of processes beside ranks belong to helpers, such as data loaders; several alone are several runs.
  void add_step(const StepFolder& step, int graph) {
    std::vector<RankFolder> folders = ranks_below(step.path);
    const auto process = [](const RankFolder& folder) { return folder.form == RankForm::kProcess; };
    const auto processes = static_cast<size_t>(std::count_if(folders.begin(), folders.end(), process));
    if (processes > 0 && processes < folders.size()) {
      problem(Severity::kInfo, step.path,
              fmt::format("{} beside the ranks {} to a helper process, such as a data loader, and {} not read", names(folders, process),
                          processes == 1 ? "belongs" : "belong", processes == 1 ? "is" : "are"));
      std::erase_if(folders, process);
    } else if (processes > 1) {
      const auto newest = std::max_element(folders.begin(), folders.end(), [](const RankFolder& a, const RankFolder& b) {
        return std::pair(written(a.path), a.number) < std::pair(written(b.path), b.number);
      });
      const RankFolder kept = *newest;
      problem(Severity::kWarning, step.path,
              fmt::format("several runs wrote into this folder: {}; the newest, {}, is read: name another folder to read that one",
                          names(folders, process), fs::path(kept.path).filename().string()));
      folders = {kept};
    }
    std::set<int64_t> seen;
    for (const RankFolder& folder : folders) {
      if (seen.insert(folder.form == RankForm::kNumbered ? folder.number : 0).second) {
        add(folder, graph, step.number, (fs::path(step.path) / fs::path(folder.path).filename()).string());
        continue;
      }
      problem(Severity::kWarning, folder.path, "another folder of this rank is read instead");
    }
  }

  static fs::file_time_type written(const std::string& folder) {
    std::error_code error;
    const fs::file_time_type time = fs::last_write_time(fs::path(folder) / "dump.json", error);
    return error ? fs::file_time_type::min() : time;
  }

  template <typename Wanted>
  static std::string names(const std::vector<RankFolder>& folders, const Wanted& wanted) {
    std::string out;
    for (const RankFolder& folder : folders) {
      if (wanted(folder)) out += (out.empty() ? "" : ", ") + printable(fs::path(folder.path).filename().string());
    }
    return out;
  }

  const IntSet& ranks_;
  Layout layout_;
};

/// A folder may be called dump.json's without being one; the file begins with what msprobe writes.
bool is_rank_folder(const fs::path& path) {
  std::error_code error;
  if (rank_folder(path)) return has_table(path);
  const bool table = fs::is_regular_file(path / "dump.json", error) || fs::is_regular_file(path / "debug.json", error);
  return table && (fs::exists(path / "stack.json", error) || fs::exists(path / "dump_tensor_data", error) ||
                   fs::exists(path / "construct.json", error));
}

}  // namespace

bool is_dump(const std::string& path) {
  std::error_code error;
  const fs::path named = whole_path(folder_of(path));
  if (!fs::is_directory(named, error)) return false;
  if (is_rank_folder(named)) return true;
  if (numbered(named.filename().string(), "step") && !ranks_below(named).empty()) return true;
  return Finder::has_steps(named) || Finder::has_steps(named / "pynative") || Finder::has_steps(named / "graph");
}

Result<Layout> find_layout(const std::string& path, const IntSet& ranks) { return Finder(ranks).run(path); }

}  // namespace msdbg::msprobe
