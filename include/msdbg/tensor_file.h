// One tensor file: its header, whether the content agrees with it, and its elements block by block.
//
// Files are read, not mapped: if a file shrinks while it is read, the result is a Status instead of a signal.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "msdbg/session.h"

namespace msdbg {

enum class FileForm : uint8_t {
  kNpy,    ///< NumPy's format
  kRaw,    ///< the elements alone
  kTorch,  ///< torch.save's, with one tensor
};

/// What is known before the file is opened, from its name.
struct FileHints {
  FileForm form = FileForm::kNpy;
  DType dtype = DType::kUnknown;  ///< kRaw: the type of the elements
  std::optional<Shape> shape = {};  ///< kRaw; nullopt: the file's size decides
};

struct FileContent {
  DType dtype = DType::kUnknown;
  Shape shape;
  uint64_t count = 0, bytes = 0;
  uint64_t data_offset = 0;  ///< of the first element in the file
  bool big_endian = false, fortran_order = false;
  Shape strides;             ///< in elements, of a tensor that is part of a storage; empty if its elements follow each other
  uint64_t extent = 0;       ///< with strides: elements from the first to the last one used
  bool negative = false;     ///< the elements are the negatives of the stored ones
  std::string note;
  Status problem;  ///< why the elements cannot be evaluated
};

struct TensorFile {
  FileContent content;
  std::unique_ptr<ElementReader> reader;  ///< null if and only if the content has a problem
};

/// Opens the file, reads its header and checks its size. Never fails: see FileContent::problem. Any thread.
TensorFile open_tensor_file(const std::string& path, const FileHints& hints);

}  // namespace msdbg
