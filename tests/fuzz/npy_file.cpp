// A file with the elements of a tensor. The first byte selects what its name says: 0 to 127 an npy file; otherwise a file without
// header, with the type of the second byte and, unless the third is 0, the shape of two more bytes.
#include "fuzz/input.h"
#include "msdbg/tensor_file.h"

using namespace msdbg;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static fuzz::MemoryFile file;
  fuzz::Input input(data, size);
  FileHints hints;
  if (input.byte() >= 128) {
    hints.form = FileForm::kRaw;
    hints.dtype = static_cast<DType>(input.below(static_cast<size_t>(DType::kFloat8) + 1));
    if (input.byte() != 0) hints.shape = Shape{input.byte(), static_cast<int8_t>(input.byte())};
  }
  const std::string& path = file.write(input.rest());
  const TensorFile opened = open_tensor_file(path, hints);
  const FileContent& content = opened.content;
  fuzz::expect_no_defect(content.problem);
  fuzz::require((opened.reader != nullptr) == content.problem.ok(), "a file that has elements and a problem, or neither");
  if (!opened.reader) return 0;
  ElementReader& reader = *opened.reader;
  fuzz::require(reader.dtype() == content.dtype && reader.count() == content.count, "elements that are not as they are described");
  const uint64_t item = item_size(content.dtype), count = content.count;
  fuzz::require(count * item <= size, "more elements than the file holds");
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
