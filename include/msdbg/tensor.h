// Element types, shapes, and tensors in memory: a view that owns nothing and a buffer that owns its bytes.
//
// Views and buffers are immutable after construction and may be read from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "msdbg/base.h"
#include "msdbg/dtype.h"

namespace msdbg {

/// "float32", "bool", ... as spelled by NumPy and MindSpore's Python side.
std::string_view dtype_name(DType dtype);
/// Case-insensitive; accepts NumPy's and MindSpore's spellings (`Float32`, `kNumberTypeFloat32`, `BFLOAT16`, `double`).
DType dtype_from_name(std::string_view name);
/// MindSpore's DataType number (proto/debug_graph.proto); unknown numbers give kUnknown.
DType dtype_from_mindspore(int number);
/// The inverse; 0 for types that MindSpore does not send.
int mindspore_number(DType dtype);
/// "F32", "BF16", ... of a safetensors header; others give kUnknown.
DType dtype_from_safetensors(std::string_view name);
/// Bytes of one element; 0 if the size is not fixed (string, unknown, int4).
size_t item_size(DType dtype);
/// True if statistics and conditions are defined for it (bool, integers, 16- to 64-bit floats).
bool is_evaluable(DType dtype);
bool is_float(DType dtype);
/// Largest finite magnitude of a float type, largest value of an integer type; NaN where undefined.
double dtype_max(DType dtype);
/// The negative counterpart: 0 for unsigned types and bool.
double dtype_lowest(DType dtype);
/// Smallest positive normal of a float type; NaN for others.
double dtype_min_normal(DType dtype);
/// Distance from 1 to the next value of a float type; NaN for others.
double dtype_eps(DType dtype);

using Shape = std::vector<int64_t>;

/// Number of elements; nullopt if a dimension is negative or the product exceeds 2^63 - 1. A scalar has one.
std::optional<uint64_t> element_count(std::span<const int64_t> shape);
/// "[32,64,7,7]"; "[]" for a scalar.
std::string shape_text(std::span<const int64_t> shape);
/// Flat row-major index -> coordinates, e.g. 7 in [2,4] -> {1,3}. A scalar gives {}.
std::vector<int64_t> coordinates(uint64_t flat, std::span<const int64_t> shape);

float half_to_float(uint16_t bits) noexcept;
float bfloat16_to_float(uint16_t bits) noexcept;
/// Rounds to nearest even, overflows to infinity, with gradual underflow.
uint16_t float_to_half(double value) noexcept;
uint16_t float_to_bfloat16(double value) noexcept;

/// The element at `bytes` (no alignment needed) widened to double; 64-bit integers round to nearest even.
/// Precondition: is_evaluable(dtype).
double element_as_double(DType dtype, const std::byte* bytes) noexcept;

/// Row-major elements anywhere in memory. `data` needs no alignment.
struct TensorView {
  DType dtype = DType::kUnknown;
  std::span<const int64_t> shape;
  const std::byte* data = nullptr;
  uint64_t count = 0;

  double at(uint64_t flat) const { return element_as_double(dtype, data + flat * item_size(dtype)); }
};

/// Owns the elements of one tensor, or shares them with their owner.
class TensorBuffer {
 public:
  /// Error: kInvalidArgument if `bytes` is not count * item size.
  static Result<std::shared_ptr<const TensorBuffer>> create(DType dtype, Shape shape, std::vector<std::byte> bytes);
  /// The same for memory that `owner` keeps alive and unchanged.
  static Result<std::shared_ptr<const TensorBuffer>> create(DType dtype, Shape shape, std::span<const std::byte> bytes,
                                                            std::shared_ptr<const void> owner);

  TensorView view() const { return {dtype_, shape_, bytes_.data(), count_}; }
  DType dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }
  uint64_t count() const { return count_; }
  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  TensorBuffer(DType dtype, Shape shape, std::span<const std::byte> bytes, std::shared_ptr<const void> owner,
               uint64_t count)
      : dtype_(dtype), shape_(std::move(shape)), bytes_(bytes), owner_(std::move(owner)), count_(count) {}

  DType dtype_;
  Shape shape_;
  std::span<const std::byte> bytes_;
  std::shared_ptr<const void> owner_;
  uint64_t count_;
};
using TensorPtr = std::shared_ptr<const TensorBuffer>;

/// Part of a tensor, as in NumPy: per axis an index (`3`, `-1`; drops the axis), a half-open range (`0:2`, `1:`, `:-1`), every second
/// position (`::2`) or `:`; `...` stands for the axes between; missing axes are included completely. `"0:2,:,3"`.
/// Shape:  that of the slice.
/// Error:  kInvalidArgument with the axis, its length and the invalid part.
Result<TensorPtr> slice(const TensorView& view, std::string_view text);
/// Fills `out` with elements from `first` on.
using ReadElements = std::function<Status(uint64_t first, std::span<std::byte> out)>;
/// The same for a tensor that is not in memory: calls `read` in ascending order for little more than the slice.
Result<TensorPtr> slice(DType dtype, std::span<const int64_t> shape, std::string_view text, const ReadElements& read);

// ---- npy ---------------------------------------------------------------------------------------------------------

struct NpyHeader {
  DType dtype = DType::kUnknown;
  std::string descr;          ///< as in the file, e.g. "<f4"
  bool big_endian = false;    ///< elements must be byte-swapped
  bool fortran_order = false; ///< elements are in column-major order
  Shape shape;
  uint64_t count = 0;
  uint64_t data_offset = 0;   ///< bytes before the first element
};

/// Reads a version 1 to 3 header from the first bytes of a file.
///
/// `dtype_hint` is the type in the file's name: a two-byte void (`<V2`, `<E2`, `<T2`, `<h2`) is always bfloat16, and a `<f4` under
/// the name bfloat16 stays float32 (the writer widened it).
/// Error:  kCorrupt (magic, truncated header, dictionary), kUnsupported (objects, records, dates).
/// Source: numpy/lib/format.py and the writer's own descr table; see docs/dump-format.md.
Result<NpyHeader> parse_npy_header(std::span<const std::byte> head);

/// Version-1 file image of a tensor in C order. bfloat16 is written as float32, because NumPy has no such type.
std::vector<std::byte> npy_bytes(const TensorView& view);
/// The same in two parts: the header, and the elements after it.
std::vector<std::byte> npy_head(DType dtype, std::span<const int64_t> shape);
std::vector<std::byte> npy_elements(const TensorView& view);

}  // namespace msdbg
