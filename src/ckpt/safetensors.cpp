// safetensors: a length, a JSON header, the data. The header is compared with the file before it is used.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "ckpt/contents.h"
#include "ckpt/crc.h"

namespace msdbg::ckpt {
namespace {

using nlohmann::json;

constexpr uint64_t kLengthBytes = 8;
constexpr uint64_t kMostHeader = 100'000'000;  // the limit of the format's own library
constexpr size_t kBlock = 1 << 20;

Status corrupt(std::string text) { return Status(Code::kCorrupt, std::move(text)); }

/// Finds duplicate names in the header; a parsed JSON object keeps only one of each.
struct Header {
  json object;
  std::set<std::string> repeated;
};

Result<Header> parse_header(const std::string& text) {
  Header header;
  std::set<std::string> seen;
  const json::parser_callback_t watch = [&](int depth, json::parse_event_t event, json& parsed) {
    if (depth == 1 && event == json::parse_event_t::key && !seen.insert(parsed.get<std::string>()).second)
      header.repeated.insert(parsed.get<std::string>());
    return true;
  };
  try {
    header.object = json::parse(text, watch);
  } catch (const json::exception& error) {
    return corrupt(fmt::format("its header is not valid JSON: {}; take another copy", printable(error.what())));
  }
  if (!header.object.is_object()) return corrupt("its header is not a JSON object; take another copy");
  return header;
}

/// One tensor of the header. `data` is the origin of its offsets.
Entry read_entry(const std::string& name, const json& value, uint64_t data, uint64_t file_bytes) {
  Entry entry;
  entry.name = name;
  const auto fail = [&](std::string text) {
    entry.problem = corrupt(std::move(text));
    return entry;
  };
  if (!value.is_object() || !value.contains("dtype") || !value["dtype"].is_string() || !value.contains("shape") ||
      !value["shape"].is_array() || !value.contains("data_offsets") || !value["data_offsets"].is_array() ||
      value["data_offsets"].size() != 2) {
    return fail("its header entry lacks dtype, shape or data_offsets; save the checkpoint again");
  }
  entry.type_text = value["dtype"].get<std::string>();
  entry.dtype = dtype_from_safetensors(entry.type_text);
  for (const json& dim : value["shape"]) {
    if (!dim.is_number_unsigned() || dim.get<uint64_t>() > INT64_MAX)
      return fail(fmt::format("its shape contains {}, which is not a length", printable(dim.dump(-1, ' ', true))));
    entry.shape.push_back(static_cast<int64_t>(dim.get<uint64_t>()));
  }
  const json& offsets = value["data_offsets"];
  if (!offsets[0].is_number_unsigned() || !offsets[1].is_number_unsigned()) return fail("its data_offsets are not numbers");
  const auto begin = offsets[0].get<uint64_t>(), end = offsets[1].get<uint64_t>();
  if (begin > end) return fail(fmt::format("its data_offsets [{},{}] run backwards", begin, end));
  if (end > file_bytes - data) {
    return fail(fmt::format(
        "its data_offsets [{},{}] reach past the end of the file, which has {} bytes of data (from offset {}); the file is cut off or "
        "damaged, take another copy",
        begin, end, file_bytes - data, data));
  }
  entry.extents.push_back({data + begin, end - begin});
  entry.bytes = end - begin;
  return entry;
}

/// Tensors never share bytes: the later one of an overlapping pair is refused.
void refuse_overlaps(std::vector<Entry>& entries) {
  uint64_t taken = 0;
  const Entry* owner = nullptr;
  for (Entry& entry : entries) {
    if (!entry.problem.ok() || entry.bytes == 0) continue;
    const Extent& extent = entry.extents.front();
    if (extent.offset < taken) {
      entry.problem = corrupt(fmt::format("its bytes from offset {} on overlap those of '{}', which reach to {}", extent.offset,
                                          printable(owner->name), taken));
      continue;
    }
    taken = extent.offset + extent.bytes;
    owner = &entry;
  }
}

/// The writer's CRC covers names and bytes, sorted by name.
Status check_crc(Contents& contents, const std::string& stored) {
  std::map<std::string_view, const Entry*> sorted;
  for (const Entry& entry : contents.entries) sorted.emplace(entry.name, &entry);
  Crc32 crc;
  std::vector<std::byte> block(kBlock);
  for (const auto& [name, entry] : sorted) {
    crc.update(std::as_bytes(std::span(name)));
    for (const Extent& extent : entry->extents) {
      for (uint64_t at = 0; at < extent.bytes; at += kBlock) {
        if (interrupt_requested())
          return Status(Code::kInterrupted, fmt::format("{}: interrupted while its CRC was computed", contents.file->path()));
        const std::span part(block.data(), std::min<uint64_t>(kBlock, extent.bytes - at));
        if (const Status status = contents.file->read(extent.offset + at, part); !status.ok()) return status;
        crc.update(part);
      }
    }
  }
  contents.facts.crc = stored == std::to_string(crc.value()) ? CrcState::kMatches : CrcState::kDiffers;
  if (contents.facts.crc == CrcState::kDiffers) {
    contents.problem(Severity::kError,
                     fmt::format("CRC mismatch: the header says {}, names and values give {}; some value is damaged, take another copy",
                                 printable(stored), crc.value()));
  }
  return {};
}

}  // namespace

Status read_safetensors(Contents& contents) {
  const File& file = *contents.file;
  std::array<std::byte, kLengthBytes> head;
  if (file.size() < kLengthBytes + 2) return corrupt(fmt::format("its {} bytes are too few for a header", file.size()));
  if (const Status status = file.read(0, head); !status.ok()) return status;
  const uint64_t length = little_endian(head);
  if (length > kMostHeader)
    return corrupt(
        fmt::format("offset 0: a header of {} bytes is promised, at most {} are allowed; take another copy", length, kMostHeader));
  if (length > file.size() - kLengthBytes) {
    return corrupt(fmt::format("offset 0: a header of {} bytes is promised, {} are there; the file is cut off, take another copy", length,
                               file.size() - kLengthBytes));
  }
  std::string text(length, '\0');
  if (const Status status = file.read(kLengthBytes, std::as_writable_bytes(std::span(text.data(), text.size()))); !status.ok())
    return status;
  auto header = parse_header(text);
  if (!header) return header.status();

  std::vector<Entry> entries;
  std::string crc;
  std::set<std::string> int4;
  for (const auto& [name, value] : header->object.items()) {
    if (name != "__metadata__") {
      entries.push_back(read_entry(name, value, kLengthBytes + length, file.size()));
      continue;
    }
    for (const auto& [key, entry] : value.items()) {
      const std::string content = entry.is_string() ? entry.get<std::string>() : entry.dump(-1, ' ', true, json::error_handler_t::replace);
      if (key == "crc_num") crc = content;
      else if (content == "Int4") int4.insert(key);
      contents.facts.texts.emplace_back(key, content);
    }
  }
  std::stable_sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return (a.extents.empty() ? 0 : a.extents.front().offset) < (b.extents.empty() ? 0 : b.extents.front().offset);
  });
  refuse_overlaps(entries);
  size_t sound = 0;
  for (Entry& entry : entries) {
    if (int4.contains(entry.name)) entry.type_text = "Int4", entry.dtype = DType::kInt4;
    check_type_and_size(entry);
    if (header->repeated.contains(entry.name))
      contents.problem(Severity::kWarning, fmt::format("parameter '{}' is stored twice; the later one counts", printable(entry.name)));
    if (!entry.problem.ok() && entry.problem.code() != Code::kUnsupported) {
      contents.problem(Severity::kError, fmt::format("parameter '{}': {}", printable(entry.name), entry.problem.message()));
    } else {
      ++sound;
    }
    contents.add(std::move(entry));
  }
  if (sound == 0 && !contents.entries.empty()) return corrupt(contents.facts.problems.back().message);
  return crc.empty() ? Status() : check_crc(contents, crc);
}

}  // namespace msdbg::ckpt
