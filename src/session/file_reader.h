// The elements of a tensor file whose header is known.
#pragma once

#include <memory>
#include <vector>

#include "msdbg/file.h"
#include "msdbg/tensor_file.h"

namespace msdbg {

/// `head`: the first bytes of the file, header included. Precondition: the content has no problem.
std::unique_ptr<ElementReader> make_file_reader(File file, FileContent content, std::vector<std::byte> head);

}  // namespace msdbg
