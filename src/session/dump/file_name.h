// Parses the file names of a dump, in every form that MindSpore has used. Pure functions; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "msdbg/graph.h"
#include "msdbg/tensor.h"

namespace msdbg::dump {

/// Real kernels have at most a few hundred slots; a larger number is not a slot.
inline constexpr int64_t kMaxSlot = 4095;

enum class FileKind : uint8_t {
  kNpy,         ///< one tensor with a NumPy header
  kRaw,         ///< one tensor without header; shape and type are in the name (1.0 to 1.2)
  kDevice,      ///< container of the Ascend runtime with all tensors of one kernel
  kContainer,   ///< one tensor of such a container
  kOverflow,    ///< record of the overflow detector
  kMapping,     ///< mapping.csv
  kStatistics,  ///< statistic.csv
  kOther,
};

/// Its texts are parts of the one that was parsed.
struct FileName {
  FileKind kind = FileKind::kOther;
  Io io = Io::kOutput;
  bool scalar = false;  ///< kRaw: `shape_0`; the file's size determines the element count
  uint32_t slot = 0;
  std::string_view op_type;  ///< "" in the headerless form
  std::string_view op;       ///< as spelled in this epoch; may be empty or contain dots
  int64_t task = 0, stream = 0;
  uint64_t timestamp = 0;  ///< microseconds; 0 if the name has none
  std::string_view format;  ///< "DefaultFormat", "NCHW", ...
  std::string_view dtype;   ///< "" if the name has none
  SharedList<int64_t> shape;  ///< kRaw only
};

/// `name` is the base name after applying mapping.csv. For a parameter with slashes in its name (1.3 to 1.5), it is the path below
/// the iteration directory. Source: docs/dump-format.md, "File names".
FileName parse_file_name(std::string_view name);

/// False for formats of the Ascend device whose elements are permuted or padded.
bool is_host_format(std::string_view format);

/// `Conv2D-op12` -> ("Conv2D", 12); no number if the name does not end in one.
struct NumberedName {
  std::string_view stem;
  std::optional<int64_t> number;
};
NumberedName split_number(std::string_view op);

/// Decimal digits only.
std::optional<int64_t> parse_digits(std::string_view text);

}  // namespace msdbg::dump
