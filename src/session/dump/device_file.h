// A file with one tensor in the order of an Ascend device: `.npy` or `.bin` with a device format in the name.
#pragma once

#include <string>
#include <string_view>

#include "msdbg/tensor_file.h"

namespace msdbg::dump {

/// Opens the file and converts its elements, if its shape is known on both sides: either the header has the tensor's shape and the file
/// the device's bytes, or the header has the device's shape and `shape`, from the graph, is the tensor's. `shape` may be null.
/// Otherwise the content's problem names the format. Never fails: see FileContent::problem.
TensorFile open_device_file(const std::string& path, std::string_view format, const FileHints& hints, const Shape* shape);

}  // namespace msdbg::dump
