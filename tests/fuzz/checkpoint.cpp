// A .ckpt file: the input is the file.
#include "fuzz/checkpoint_walk.h"

using namespace msdbg;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::walk_checkpoint(fuzz::Input(data, size).rest());
  return 0;
}
