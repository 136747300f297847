// One record of a .ckpt file. records.cpp assembles parameters from records.
#pragma once

#include <string>
#include <vector>

#include "ckpt/contents.h"

namespace msdbg::ckpt {

inline constexpr size_t kMostDims = 64;

/// One TensorProto.
struct Piece {
  std::string type;
  std::vector<uint64_t> dims;
  Extent content;
};

/// One Value. Keeps what could be read before any damage.
struct Record {
  uint64_t offset = 0;
  std::string tag;
  std::vector<Piece> tensors;
  bool is_map = false;
  std::string damage;  ///< the damage, or ""
  Status io;           ///< the file could not be read
};

/// Reads the Value at the start of `reader`; skips its contents.
Record read_record(WireReader reader);

}  // namespace msdbg::ckpt
