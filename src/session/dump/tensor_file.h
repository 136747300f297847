// One tensor file: its header, whether the content agrees with it, and its elements block by block.
//
// Files are read, not mapped: if a file shrinks while it is read, the result is a Status instead of a signal.
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

/// What the file's name says about its content.
struct FileHints {
  FileKind kind = FileKind::kNpy;
  DType dtype = DType::kUnknown;  ///< kRaw: the type of the elements
  std::optional<Shape> shape;     ///< kRaw; nullopt: `shape_0`, where the file's size decides
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
  std::unique_ptr<ElementReader> reader;  ///< null if and only if the content has a problem
};

/// Opens the file, reads its header and checks its size. Never fails: see FileContent::problem.
TensorFile open_tensor_file(const std::string& path, const FileHints& hints);

}  // namespace msdbg::dump
