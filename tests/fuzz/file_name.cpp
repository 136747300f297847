// File names of dumps, one per line.
#include "fuzz/input.h"
#include "session/dump/file_name.h"

using namespace msdbg;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::Input input(data, size);
  while (!input.empty()) {
    const dump::FileName name = dump::parse_file_name(input.line());
    fuzz::require(name.task >= 0 && name.stream >= 0, "a negative task or stream");
    (void)dump::is_host_format(name.format);
    const dump::NumberedName numbered = dump::split_number(name.op);
    fuzz::require(numbered.stem.size() <= name.op.size(), "a stem longer than its name");
  }
  return 0;
}
