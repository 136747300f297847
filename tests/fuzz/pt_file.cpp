// A file of torch.save. The first byte selects whether the rest is the whole file (0 to 127) or the description of the tensor, in a sound
// file with 96 bytes of elements.
#include <cstring>

#include "fuzz/input.h"
#include "msdbg/tensor_file.h"
#include "support/torch_file.h"

using namespace msdbg;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static fuzz::MemoryFile file;
  fuzz::Input input(data, size);
  const bool described = input.byte() >= 128;
  std::string bytes(input.rest());
  if (described) bytes = test::zip_of({{"x/data.pkl", bytes}, {"x/data/0", std::string(96, 'A')}});
  const TensorFile opened = open_tensor_file(file.write(bytes), {.form = FileForm::kTorch});
  const FileContent& content = opened.content;
  fuzz::expect_no_defect(content.problem);
  fuzz::require((opened.reader != nullptr) == content.problem.ok(), "a file that has elements and a problem, or neither");
  if (!opened.reader) return 0;
  ElementReader& reader = *opened.reader;
  fuzz::require(reader.dtype() == content.dtype && reader.count() == content.count, "elements that are not as they are described");
  const uint64_t item = item_size(content.dtype), count = content.count;
  fuzz::require(element_count(content.shape) == count, "a count that is not that of the shape");
  // Only a view may have more elements than the file.
  fuzz::require(!content.strides.empty() || count * item <= bytes.size(), "more elements than the file holds");
  if (count > 100000) return 0;
  std::vector<std::byte> whole(count * item), parts(count * item);
  fuzz::require(reader.read(0, whole).ok(), "elements that cannot be read");
  constexpr uint64_t kPart = 7;
  for (uint64_t first = 0; first < count; first += kPart) {
    const uint64_t n = std::min(kPart, count - first);
    fuzz::require(reader.read(first, std::span(parts).subspan(first * item, n * item)).ok(), "elements that cannot be read in parts");
  }
  fuzz::require(whole == parts, "elements that depend on how they are read");
  return 0;
}
