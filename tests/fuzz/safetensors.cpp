// A safetensors file. If the first byte is 0, the following bytes are the file. Otherwise the length of the header is prepended:
// the header ends at the first newline, the elements follow.
#include "fuzz/checkpoint_walk.h"

using namespace msdbg;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::Input input(data, size);
  if (input.byte() == 0) {
    fuzz::walk_checkpoint(input.rest());
    return 0;
  }
  const std::string_view header = input.line();
  std::string file;
  for (size_t i = 0; i < sizeof(uint64_t); ++i) file += static_cast<char>(uint64_t{header.size()} >> 8 * i);
  file += header;
  file += input.rest();
  fuzz::walk_checkpoint(file);
  return 0;
}
