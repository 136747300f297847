// The table of one step and rank: dump.json, with every tensor that a call took and gave.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "msdbg/graph.h"
#include "msdbg/simd.h"

namespace msdbg::msprobe {

/// What a table says about one tensor.
struct Record {
  std::string path;  ///< "input_args.1.0"; of a parameter its name in the module
  std::string file;  ///< below dump_tensor_data, "" without one
  Shape shape;
  uint64_t count = 0;
  DType dtype = DType::kUnknown;
  SharedText dtype_text;   ///< if the type is unknown or its elements are not evaluated
  /// NaN also where a statistic is not known: see `given`.
  double max = 0, min = 0, mean = 0, norm = 0, finite_max = 0, finite_min = 0;
  uint8_t given = 0;       ///< bits of Given
  uint8_t checksum_bits = 0;  ///< 32 or 64; 0 without one
  uint64_t checksum = 0;   ///< `md5`: a CRC-32, or an exclusive or
  bool requires_grad = false;
  SharedText problem;      ///< why nothing can be said about it
};

enum Given : uint8_t {
  kGivenMax = 1, kGivenMin = 2, kGivenMean = 4, kGivenNorm = 8, kGivenFiniteMax = 16, kGivenFiniteMin = 32,
};

struct CallRecord {
  std::string name;
  std::string op;                     ///< if the name does not tell it
  std::vector<Record> inputs, outputs;
  std::vector<Record> parameters;     ///< of a module
  std::vector<Attribute> attributes;  ///< scalars and other values that are no tensors
  std::optional<bool> flagged;        ///< the overflow register
  bool has_inputs = false;            ///< the table has the side at all
  bool unusual = false;               ///< the table marks it as recomputed
};

struct Table {
  std::string task, level, framework;
  bool has_table = false;  ///< `data` is there and an object
  bool marks_recomputed = false;
  std::vector<CallRecord> calls;
  std::string problem;     ///< why not all of it was read, "" otherwise
  std::vector<std::string> notes;
};

class JsonValue;
/// A tensor of the table.
Record read_record(const JsonValue& tensor, std::string path);

/// Reads the text of a dump.json or debug.json. Never fails: what was read before a problem is in the table.
Table read_table(std::string text);

/// The statistics that follow from what the table says, as Stats::known tells. `rounded`: integers and 64-bit floats were converted to
/// float32 before (releases up to 26.0).
Stats statistics_of(const Record& record, bool rounded);
/// Why statistics_of() says nothing but the count; "" if it says more.
std::string no_statistics(const Record& record);

}  // namespace msdbg::msprobe
