// A row of the index of a dump: the input is the row, with its checksum or without.
#include "fuzz/input.h"
#include "session/dump/index_bytes.h"

using namespace msdbg;

namespace {

void read(std::string_view bytes) {
  if (const auto entries = dump::decode_listing(bytes)) {
    for (const dump::DirectoryEntry& entry : *entries) {
      fuzz::require(entry.name.find('/') == std::string::npos && entry.name != "..", "a name that leads out of its directory");
    }
  }
  if (const auto part = dump::decode_part(bytes)) {
    for (const uint32_t offset : part->offsets) {
      const dump::IndexEntry entry = dump::entry_at(bytes, offset);
      fuzz::require(entry.bytes.data() + entry.bytes.size() <= bytes.data() + bytes.size(), "an entry beyond the end");
    }
  }
  (void)dump::stamp_of_listing(bytes);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  read(bytes);
  // Nearly all inputs fail at the checksum; with the right one they get further.
  const uint64_t sum = hash_of(bytes);
  std::string sealed;
  for (int shift = 0; shift < 64; shift += 8) sealed += static_cast<char>(sum >> shift & 0xff);
  read(sealed.append(bytes));
  return 0;
}
