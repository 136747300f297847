// The container that the Ascend runtime writes for each kernel: a description, then the bytes of its inputs and outputs one after another.
// Any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "msdbg/file.h"
#include "msdbg/graph.h"
#include "msdbg/tensor.h"

namespace msdbg::dump {

/// A tensor of a container, as its description says; nothing is checked against the bytes.
struct ContainerTensor {
  Slot slot;
  uint64_t type = 0;                ///< the runtime's number
  uint64_t format = 0;              ///< the runtime's number: device_format_name()
  Shape device_shape;
  std::optional<Shape> host_shape;  ///< nullopt: unknown
  int64_t sub_format = 0;           ///< groups of a convolution's weights
  uint64_t offset = 0;              ///< of its bytes in the file
  uint64_t bytes = 0;               ///< that it should have
  uint64_t present = 0;             ///< of these, inside the file
};

struct Container {
  std::string op_name;
  std::vector<ContainerTensor> tensors;  ///< inputs, then outputs, each by slot
};

/// Error, to follow "the container": kCorrupt; as for File::read(), without the path.
Result<Container> read_container(const File& file);

/// The element type of a number; kUnknown for types that msdbg does not have.
DType container_dtype(uint64_t type);
/// "FLOAT16"; "type 99" for a number that is not known.
std::string container_type_name(uint64_t type);
/// "NC1HWC0"; "format 99" for a number that is not known. The view is valid forever.
std::string_view container_format_name(uint64_t format);

}  // namespace msdbg::dump
