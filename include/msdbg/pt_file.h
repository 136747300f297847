// The files of torch.save that hold one tensor: where its elements are and how they are arranged. Nothing in such a file is executed.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "msdbg/tensor.h"

namespace msdbg {

class File;

/// A tensor that views part of a storage: element (i, j, ...) is i * strides[0] + j * strides[1] + ... elements after the first one.
struct PtTensor {
  DType dtype = DType::kUnknown;
  std::string type;             ///< as torch prints it: "torch.float8_e4m3fn"
  Shape shape;
  Shape strides;                ///< of the axes of `shape`, in elements; never negative
  uint64_t count = 0;
  uint64_t extent = 0;          ///< elements of the storage from the first to the last one used, both included; 0 without elements
  uint64_t first_byte = 0;      ///< of element 0 in the file
  uint64_t storage_bytes = 0;   ///< of the whole storage, which is inside the file
  bool contiguous = true;       ///< row-major without gaps
  bool big_endian = false;
  bool conjugate = false;       ///< complex: the values are the conjugates of the stored ones
  bool negative = false;        ///< the values are the negatives of the stored ones
};

/// Reads the description of the tensor in a file of torch.save. `head` may be the file's first bytes, if they were read already.
///
/// Shape:  all elements are inside the storage, and the storage inside the file. A tensor that repeats elements (expand) has at most
///         2^32 of them.
/// Error:  to follow "the file" (without its path): kCorrupt (cut off, damaged, elements outside of the storage), kUnsupported (not
///         one plain tensor, with what it is instead: a list, another function, sparse, quantized, compressed, the format before 1.6, an
///         element type without a fixed size here); as for File::read().
/// Source: torch/serialization.py, torch/_utils.py; docs/dump-format.md.
Result<PtTensor> read_pt_header(const File& file, std::span<const std::byte> head = {});

}  // namespace msdbg
