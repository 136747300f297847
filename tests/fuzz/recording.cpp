// A recording that is opened and replayed: commands after two length bytes, then the file.
#include "fuzz/live_owner.h"

using namespace msdbg;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static fuzz::MemoryFile memory;
  fuzz::Input input(data, size);
  const std::string_view commands = input.chunk();
  const std::string& path = memory.write(input.rest());
  (void)is_recording(path);
  const Result<std::unique_ptr<LiveSession>> session = open_recording(path);
  if (!fuzz::good(session)) return 0;
  fuzz::Input script(reinterpret_cast<const uint8_t*>(commands.data()), commands.size());
  while (!script.empty()) fuzz::command(**session, script.byte(), script);
  fuzz::walk(**session);
  return 0;
}
