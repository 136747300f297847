// Converts a dump: tensors in containers become .npy files, everything else is copied.
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <filesystem>
#include <map>
#include <mutex>
#include <set>

#include "msdbg/atomic_file.h"
#include "msdbg/dump.h"
#include "msdbg/hash.h"
#include "msdbg/threads.h"
#include "session/dump/container_value.h"
#include "session/dump/dump_session.h"

namespace msdbg::dump {
namespace {

namespace fs = std::filesystem;

constexpr size_t kCopyBytes = 1 << 20;
constexpr size_t kLongestName = 255;  // of a file
/// Directories of a rank, or of the whole dump, that describe it.
constexpr std::string_view kDescriptions[] = {"graphs", "execution_order", ".dump_metadata", ".metadata", "debug_files"};

/// One file to write.
struct ConvertJob {
  std::string from, to;
  std::optional<Slot> slot;  ///< a tensor of the container `from`; without it the file is copied
};

/// The size and time of a file; nullopt unless it is a regular file.
std::optional<FileStamp> stamp_at(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) return std::nullopt;
  return FileStamp::of(info);
}

/// True if an earlier run has written all of it.
bool is_written(const ConvertJob& job, uint64_t bytes) {
  const std::optional<FileStamp> from = stamp_at(job.from), to = stamp_at(job.to);
  return from && to && to->size == bytes && to->modified >= from->modified;
}

using Done = ConvertResult::Done;

class DumpConverter {
 public:
  DumpConverter(const DumpPlaces& places, const ConvertOptions& options) : places_(places), options_(options) {}

  Result<ConvertResult> run() {
    if (Status status = check_output(); !status.ok()) return status;
    plan();
    if (Status status = make_directories(); !status.ok()) return status;
    if (Status status = work(jobs_); !status.ok()) return status;
    // What stays in its container needs it.
    std::vector<ConvertJob> copies;
    for (const std::string& path : left_) copies.push_back({path, target(path), std::nullopt});
    if (Status status = work(copies); !status.ok()) return status;
    std::sort(result_.left.begin(), result_.left.end());
    std::sort(result_.files.begin(), result_.files.end(), [](const auto& a, const auto& b) { return a.path < b.path; });
    return std::move(result_);
  }

 private:
  Status check_output() {
    std::error_code ignored;
    const std::string root = fs::weakly_canonical(places_.root, ignored).string();
    const std::string output = fs::weakly_canonical(options_.output, ignored).string();
    if (output == root || output.starts_with(root + "/")) {
      return Status(Code::kInvalidArgument, fmt::format("{} is inside of the dump {}: choose another directory",
                                                        printable(options_.output), printable(places_.root)));
    }
    if (fs::exists(options_.output, ignored) && !fs::is_directory(options_.output, ignored)) {
      return Status(Code::kInvalidArgument, fmt::format("{} is no directory", printable(options_.output)));
    }
    return {};
  }

  /// Where a file of the dump goes.
  std::string target(const std::string& path) const {
    std::string_view below = path;
    if (below.starts_with(places_.root)) below.remove_prefix(places_.root.size());
    while (below.starts_with('/')) below.remove_prefix(1);
    return join_path(options_.output, std::string(below));
  }

  void plan() {
    for (const auto& [directory, chosen] : places_.chosen) plan_directory(directory, chosen);
    for (const std::string& home : places_.homes) {
      for (const std::string_view name : kDescriptions) copy_tree(join_path(home, std::string(name)));
    }
    std::sort(jobs_.begin(), jobs_.end(), [](const ConvertJob& a, const ConvertJob& b) { return a.to < b.to; });
    jobs_.erase(std::unique(jobs_.begin(), jobs_.end(), [](const ConvertJob& a, const ConvertJob& b) { return a.to == b.to; }),
                jobs_.end());
  }

  void plan_directory(const std::string& directory, const std::vector<DumpPlaces::Chosen>& chosen) {
    DirectoryLister lister;
    TextArena names;
    const StepFiles step = list_step(directory, places_.plain, lister, names);
    std::map<std::string_view, const FileName*> parsed;
    for (const ListedFile& file : step.files) parsed.emplace(file.path, &file.name);
    std::string mapping;
    for (const DumpPlaces::Chosen& value : chosen) {
      const std::string from = join_path(directory, value.file);
      const auto name = parsed.find(value.file);
      if (!value.in_container || name == parsed.end()) {
        jobs_.push_back({from, target(from), std::nullopt});
        continue;
      }
      std::string file = npy_name(*name->second, value);
      if (file.size() > kLongestName) {
        const std::string number = fmt::format("{}.npy", hash_of(file));
        mapping += fmt::format("{},{}\n", number, file);
        file = number;
      }
      jobs_.push_back({from, target(join_path(directory, file)), value.slot});
    }
    // Rows of statistics, overflow records, arguments of kernels.
    if (auto entries = list_directory(directory); entries) {
      for (const DirectoryEntry& entry : *entries) {
        const bool tensor = parsed.contains(entry.name) || entry.name.ends_with(".npy") || entry.name.starts_with("convert_failed_file");
        if (entry.directory || tensor || entry.name == "mapping.csv") continue;
        jobs_.push_back({join_path(directory, entry.name), target(join_path(directory, entry.name)), std::nullopt});
      }
    }
    if (auto old = read_text(join_path(directory, "mapping.csv")); old) {
      if (!old->empty() && !old->ends_with('\n')) *old += '\n';
      mapping = *old + mapping;
    }
    if (!mapping.empty()) texts_.emplace_back(target(join_path(directory, "mapping.csv")), mapping);
  }

  static std::string npy_name(const FileName& name, const DumpPlaces::Chosen& value) {
    return fmt::format("{}{}{}.{}.{}.{}.{}.{}.{}.npy", name.op_type, name.op.empty() ? "" : ".", name.op, name.task, name.stream,
                       name.timestamp, value.slot.io == Io::kInput ? "input" : "output", value.slot.index, value.format);
  }

  void copy_tree(const std::string& directory) {
    std::error_code failed;
    for (auto at = fs::recursive_directory_iterator(directory, failed); !failed && at != fs::recursive_directory_iterator();
         at.increment(failed)) {
      std::error_code ignored;
      if (at->is_regular_file(ignored)) jobs_.push_back({at->path().string(), target(at->path().string()), std::nullopt});
    }
  }

  Status make_directories() {
    std::set<std::string> directories = {options_.output};
    for (const ConvertJob& job : jobs_) directories.insert(parent_path(job.to));
    for (const std::string& directory : directories) {
      std::error_code failed;
      fs::create_directories(directory, failed);
      if (failed) return Status(Code::kIoError, fmt::format("{}: cannot be made: {}", printable(directory), failed.message()));
    }
    for (const auto& [path, text] : texts_) {
      if (Status status = write_file(path, text); !status.ok()) return status;
    }
    return {};
  }

  Status work(const std::vector<ConvertJob>& jobs) {
    std::atomic<uint64_t> done{0};
    const auto show = [&] {
      if (options_.progress) options_.progress(done, jobs.size(), bytes_);
    };
    return parallel_for(
        jobs.size(), options_.threads,
        [&](uint64_t task, unsigned) {
          const Status status = jobs[task].slot ? convert(jobs[task]) : copy(jobs[task]);
          ++done;
          return status;
        },
        show);
  }

  /// A tensor that cannot be converted does not stop the others; a file that cannot be written does.
  Status leave(const ConvertJob& job, const Status& why) {
    if (why.code() == Code::kInterrupted) return why;
    std::lock_guard lock(mutex_);
    const std::string_view io = job.slot->io == Io::kInput ? "input" : "output";
    result_.left.push_back({fmt::format("{}:{}:{}", job.from, io, job.slot->index), why.message(), why.code() != Code::kUnsupported});
    left_.insert(job.from);
    return {};
  }

  Status convert(const ConvertJob& job) {
    ContainerValue value = open_container_value(job.from, *job.slot);
    if (!value.elements) return leave(job, value.content.problem);
    if (value.device_order) return leave(job, Status(Code::kUnsupported, value.content.note));
    const FileContent& content = value.content;
    const std::vector<std::byte> head = npy_head(content.dtype, content.shape);
    const size_t item = value.elements->item(), written_item = content.dtype == DType::kBFloat16 ? sizeof(float) : item;
    const uint64_t whole = head.size() + content.count * written_item;
    if (is_written(job, whole)) return count(job, Done::kPresent, 0);
    auto file = AtomicFile::create(job.to);
    if (!file) return file.status();
    if (Status status = file->append(head); !status.ok()) return status;
    std::vector<std::byte> block(kCopyBytes);
    for (uint64_t first = 0; first < content.count;) {
      const uint64_t elements = std::min<uint64_t>(kCopyBytes / item, content.count - first);
      const auto part = std::span(block).first(elements * item);
      if (Status status = value.elements->read(first, part); !status.ok()) return leave(job, status);
      const bool widened = written_item != item;
      const Status status = widened ? file->append(npy_elements({content.dtype, {}, part.data(), elements})) : file->append(part);
      if (!status.ok()) return status;
      bytes_ += part.size();
      first += elements;
    }
    if (Status status = file->commit(); !status.ok()) return status;
    return count(job, Done::kConverted, whole);
  }

  Status copy(const ConvertJob& job) {
    const auto from = File::open(job.from);
    if (!from) return from.status();
    if (is_written(job, from->size())) return count(job, Done::kPresent, 0);
    auto file = AtomicFile::create(job.to);
    if (!file) return file.status();
    std::vector<std::byte> block(std::min<uint64_t>(kCopyBytes, from->size()));
    for (uint64_t at = 0; at < from->size(); at += block.size()) {
      const auto part = std::span(block).first(std::min<uint64_t>(block.size(), from->size() - at));
      if (Status status = from->read(at, part); !status.ok()) return status;
      if (Status status = file->append(part); !status.ok()) return status;
      bytes_ += part.size();
    }
    if (Status status = file->commit(); !status.ok()) return status;
    return count(job, Done::kCopied, from->size());
  }

  Status count(const ConvertJob& job, Done done, uint64_t bytes) {
    std::lock_guard lock(mutex_);
    ++(done == Done::kConverted ? result_.converted : done == Done::kCopied ? result_.copied : result_.present);
    result_.bytes += bytes;
    if (options_.list) result_.files.push_back({job.to, job.from, job.slot, done});
    return {};
  }

  const DumpPlaces& places_;
  const ConvertOptions& options_;
  std::vector<ConvertJob> jobs_;
  std::vector<std::pair<std::string, std::string>> texts_;  // path, content
  std::atomic<uint64_t> bytes_{0};
  std::mutex mutex_;
  ConvertResult result_;         // under mutex_
  std::set<std::string> left_;   // containers that are still needed; under mutex_
};

}  // namespace

DumpPlaces DumpSession::places(const TensorQuery& query) {
  DumpPlaces out;
  out.root = data_.root;
  out.homes = data_.homes;
  out.plain = data_.info.layout == "files";
  std::set<std::pair<uint32_t, std::string_view>> copied;
  for (const TensorId& id : tensors(query)) {
    const Value* value = find(id);
    if (value == nullptr || value->kind == FileKind::kStatistics) {
      if (value != nullptr) out.chosen[data_.directories[value->directory].path];
      continue;
    }
    const bool container = value->kind == FileKind::kContainer || value->kind == FileKind::kDevice;
    if (!container && !copied.emplace(value->directory, value->file()).second) continue;
    out.chosen[data_.directories[value->directory].path].push_back({std::string(value->file()), container, id.slot,
                                                                    data_.formats[value->format]});
  }
  return out;
}

}  // namespace msdbg::dump

namespace msdbg {

Result<ConvertResult> convert_dump(Session& session, const TensorQuery& query, const ConvertOptions& options) {
  auto* const dump = dynamic_cast<dump::DumpSession*>(&session);
  if (dump == nullptr) {
    return Status(Code::kInvalidArgument, fmt::format("{} is no dump: only dumps have containers to convert", printable(session.info().source)));
  }
  const dump::DumpPlaces places = dump->places(query);
  return dump::DumpConverter(places, options).run();
}

}  // namespace msdbg
