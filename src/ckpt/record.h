// One record of a .ckpt file. See records.cpp for what becomes of it.
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

/// One Value. What could be read before the damage stays.
struct Record {
  uint64_t offset = 0;
  std::string tag;
  std::vector<Piece> tensors;
  bool is_map = false;
  std::string damage;  ///< "" or what is wrong
  Status io;           ///< the file could not be read
};

/// The Value that `reader` is at the beginning of; its contents are skipped.
Record read_record(WireReader reader);

}  // namespace msdbg::ckpt
