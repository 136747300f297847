// One tensor file: what its header promises, whether it keeps the promise, and its elements block by block.
//
// Files are read, not mapped: a file that shrinks while it is read then gives a Status instead of a signal.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "msdbg/session.h"
#include "session/dump/file_name.h"

namespace msdbg::dump {

/// What the name of the file says about its content.
struct FileHints {
  FileKind kind = FileKind::kNpy;
  DType dtype = DType::kUnknown;  ///< kRaw: the type of the elements
  std::optional<Shape> shape;     ///< kRaw; nullopt: `shape_0`, the file's size decides
};

struct FileContent {
  DType dtype = DType::kUnknown;
  Shape shape;
  uint64_t count = 0, bytes = 0;
  uint64_t data_offset = 0;
  bool big_endian = false, fortran_order = false;
  std::string note;
  Status problem;  ///< why the elements cannot be evaluated
};

struct TensorFile {
  FileContent content;
  std::unique_ptr<ElementReader> reader;  ///< null exactly when the content has a problem
};

/// Opens the file, reads its header and compares its size with it. Never fails: see FileContent::problem.
TensorFile open_tensor_file(const std::string& path, const FileHints& hints);

}  // namespace msdbg::dump
