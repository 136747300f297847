// Hand-made files of torch.save: the pickle of one tensor, and a ZIP file of stored entries that may lie.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace msdbg::test {

inline std::string little_endian(uint64_t value, size_t width) {
  std::string out;
  for (size_t i = 0; i < width; ++i) out += static_cast<char>(value >> (8 * i));
  return out;
}

/// A pickle of one tensor, in the opcodes of Python's protocol 2.
struct PickledTensor {
  std::string function = "torch._utils\n_rebuild_tensor_v2", storage = "torch\nFloatStorage", more;
  int32_t offset = 0, elements = 24;
  std::vector<int32_t> shape = {4, 6}, strides = {6, 1};

  static std::string text(const std::string& text) { return "X" + little_endian(text.size(), 4) + text; }
  static std::string number(int32_t value) { return "J" + little_endian(static_cast<uint32_t>(value), 4); }
  static std::string tuple(const std::vector<int32_t>& values) {
    std::string out = "(";
    for (const int32_t value : values) out += number(value);
    return out + "t";
  }
  std::string bytes() const {
    return "\x80\x02" "c" + function + "\n((" + text("storage") + "c" + storage + "\n" + text("0") + text("cpu") + number(elements) + "tQ" +
           number(offset) + tuple(shape) + tuple(strides) + "\x89" "ccollections\nOrderedDict\n)R" + more + "tR.";
  }
};

struct StoredEntry {
  std::string name, content;
  unsigned method = 0, flags = 0;
  int64_t offset_error = 0;  ///< added to the offset in the directory
};

/// `wide`: sizes, offsets and counts are in the records of ZIP64 only, as in files above 4 GiB.
inline std::string zip_of(const std::vector<StoredEntry>& entries, bool wide = false, const std::string& comment = "") {
  std::string out, directory;
  for (const StoredEntry& entry : entries) {
    const uint64_t offset = out.size() + static_cast<uint64_t>(entry.offset_error), bytes = entry.content.size();
    out += "PK\3\4" + little_endian(0, 22) + little_endian(entry.name.size(), 2) + little_endian(0, 2) + entry.name + entry.content;
    const std::string extra = little_endian(0x4242, 2) + little_endian(1, 2) + "x" + little_endian(1, 2) + little_endian(24, 2) +
                              little_endian(bytes, 8) + little_endian(bytes, 8) + little_endian(offset, 8);
    const auto narrow = [&](uint64_t value) { return little_endian(wide ? 0xFFFFFFFF : value, 4); };
    directory += "PK\1\2" + little_endian(0, 4) + little_endian(entry.flags, 2) + little_endian(entry.method, 2) + little_endian(0, 8) +
                 narrow(bytes) + narrow(bytes) + little_endian(entry.name.size(), 2) + little_endian(wide ? extra.size() : 0, 2) +
                 little_endian(0, 10) + narrow(offset) + entry.name + (wide ? extra : "");
  }
  const uint64_t begin = out.size(), end = begin + directory.size();
  out += directory;
  if (wide) {
    out += "PK\6\6" + little_endian(44, 8) + little_endian(0, 12) + little_endian(entries.size(), 8) + little_endian(entries.size(), 8) +
           little_endian(directory.size(), 8) + little_endian(begin, 8);
    out += "PK\6\7" + little_endian(0, 4) + little_endian(end, 8) + little_endian(1, 4);
  }
  const uint64_t count = wide ? 0xFFFF : entries.size();
  return out + "PK\5\6" + little_endian(0, 4) + little_endian(count, 2) + little_endian(count, 2) +
         little_endian(wide ? 0xFFFFFFFF : directory.size(), 4) + little_endian(wide ? 0xFFFFFFFF : begin, 4) +
         little_endian(comment.size(), 2) + comment;
}

}  // namespace msdbg::test
