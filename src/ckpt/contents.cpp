#include "ckpt/contents.h"

#include <fmt/format.h>

namespace msdbg::ckpt {

void Contents::add(Entry entry) {
  const auto [at, is_new] = by_name_.try_emplace(entry.name, entries.size());
  if (is_new) {
    entries.push_back(std::move(entry));
    return;
  }
  problem(Severity::kWarning, fmt::format("parameter '{}' is stored twice; the later one, at offset {}, counts", printable(entry.name),
                                          entry.extents.empty() ? 0 : entry.extents.front().offset));
  entries[at->second] = std::move(entry);
}

void Contents::problem(Severity severity, std::string message) { facts.problems.push_back({severity, file->path(), std::move(message)}); }

void check_type_and_size(Entry& entry) {
  if (!entry.problem.ok()) return;
  const uint64_t offset = entry.extents.empty() ? 0 : entry.extents.front().offset;
  const std::optional<uint64_t> count = element_count(entry.shape);
  const size_t item = item_size(entry.dtype);
  if (!count || (item > 0 && *count > (uint64_t{1} << 60) / item)) {
    entry.problem = Status(Code::kCorrupt, fmt::format("no file can hold the shape {}", shape_text(entry.shape)));
    return;
  }
  entry.count = *count;
  if (item > 0 && *count * item != entry.bytes) {
    entry.problem =
        Status(Code::kCorrupt, fmt::format("{}{} takes {} bytes, but {} are stored (offset {}); save the checkpoint again",
                                           dtype_name(entry.dtype), shape_text(entry.shape), *count * item, entry.bytes, offset));
    return;
  }
  if (!is_evaluable(entry.dtype)) {
    entry.problem = Status(Code::kUnsupported, fmt::format("{} elements are not evaluated",
                                                           entry.dtype == DType::kUnknown ? fmt::format("'{}'", printable(entry.type_text))
                                                                                          : std::string(dtype_name(entry.dtype))));
  }
}

}  // namespace msdbg::ckpt
