// A container of the Ascend runtime: each of its tensors is opened and read, whole and in parts.
#include "fuzz/input.h"
#include "session/dump/container_value.h"

using namespace msdbg;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static fuzz::MemoryFile memory;
  const std::string& path = memory.write({reinterpret_cast<const char*>(data), size});
  Result<File> file = File::open(path);
  fuzz::require(file.ok(), "the file in memory cannot be opened");
  const Result<dump::Container> container = dump::read_container(*file);
  if (!fuzz::good(container)) return 0;
  for (const dump::ContainerTensor& tensor : container->tensors) {
    fuzz::require(tensor.offset <= size && tensor.present <= size - tensor.offset, "bytes outside of the file");
    dump::ContainerValue value = dump::open_container_value(path, tensor.slot);
    const FileContent& content = value.content;
    fuzz::expect_no_defect(content.problem);
    fuzz::require(value.elements != nullptr || !content.problem.ok(), "neither elements nor a problem");
    if (!value.elements) continue;
    dump::DeviceElements& elements = *value.elements;
    fuzz::require(elements.count() == content.count && element_count(content.shape) == content.count,
                  "a count that is not that of the shape");
    const uint64_t item = elements.item(), count = content.count;
    fuzz::require(count <= 2 * size, "more elements than the file holds");
    std::vector<std::byte> whole(count * item), parts(count * item);
    fuzz::require(elements.read(0, whole).ok(), "elements that cannot be read");
    constexpr uint64_t kPart = 7;
    for (uint64_t first = 0; first < count; first += kPart) {
      const uint64_t n = std::min(kPart, count - first);
      fuzz::require(elements.read(first, std::span(parts).subspan(first * item, n * item)).ok(), "elements that cannot be read in parts");
    }
    fuzz::require(whole == parts, "elements that depend on how they are read");
  }
  return 0;
}
