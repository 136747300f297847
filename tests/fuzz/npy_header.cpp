// The header of an npy file: the input is the head of the file.
#include "fuzz/input.h"
#include "msdbg/tensor.h"

using namespace msdbg;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const Result<NpyHeader> header = parse_npy_header(std::as_bytes(std::span(data, size)));
  if (!fuzz::good(header)) return 0;
  fuzz::require(header->data_offset <= size, "elements that begin behind the header's end");
  fuzz::require(element_count(header->shape) == header->count, "a count that is not that of the shape");
  const uint64_t item = item_size(header->dtype);
  if (item == 0 || header->count * item > size) return 0;
  // Our own writer's output for the same tensor must parse to the same header.
  const std::vector<std::byte> elements(header->count * item);
  const std::vector<std::byte> file = npy_bytes({header->dtype, header->shape, elements.data(), header->count});
  const Result<NpyHeader> again = parse_npy_header(file);
  fuzz::require(fuzz::good(again) && again->shape == header->shape, "a header that changes when it is written and read again");
  return 0;
}
