// NumPy's file format. Definition: numpy/lib/format.py; MindSpore's variants: docs/dump-format.md.
#include <fmt/format.h>

#include <cstring>
#include <limits>

#include "msdbg/tensor.h"
#include "tensor/npy_dictionary.h"

namespace msdbg {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr size_t kAlignment = 64;

uint32_t little_endian(std::span<const std::byte> bytes) {
  uint32_t value = 0;
  for (size_t i = bytes.size(); i-- > 0;) value = (value << 8) | std::to_integer<uint32_t>(bytes[i]);
  return value;
}

struct Descr {
  DType dtype = DType::kUnknown;
  bool big_endian = false;
  uint64_t item_bytes = 0;
};

DType type_of(std::string_view kind_and_size) {
  if (const DType known = dtype_from_npy(kind_and_size); known != DType::kUnknown) return known;
  if (std::string_view("SaU").find(kind_and_size.front()) != std::string_view::npos) return DType::kString;
  // Two-byte types without a NumPy name, as MindSpore's writers spell them; NumPy itself writes V2 for an extension type.
  if (kind_and_size == "E2" || kind_and_size == "T2" || kind_and_size == "h2") return DType::kBFloat16;
  return kind_and_size == "V1" ? DType::kFloat8 : DType::kUnknown;
}

Result<Descr> parse_descr(std::string_view text) {
  const auto unsupported = [&] {
    return Status(Code::kUnsupported,
                  fmt::format("npy: elements of type '{}' cannot be read; numbers, bool, complex, strings "
                              "and bfloat16 can",
                              printable(text.substr(0, 60))));
  };
  std::string_view rest = text;
  char order = '|';
  if (!rest.empty() && std::string_view("<>=|").find(rest.front()) != std::string_view::npos) {
    order = rest.front();
    rest.remove_prefix(1);
  }
  if (rest == "?") rest = "b1";
  if (rest.size() < 2) return unsupported();
  const std::optional<int64_t> size = parse_int(rest.substr(1));
  if (!size || *size < 0 || *size > std::numeric_limits<int32_t>::max()) return unsupported();
  Descr descr;
  descr.dtype = type_of(fmt::format("{}{}", rest.front(), *size));
  if (descr.dtype == DType::kUnknown) return unsupported();
  descr.item_bytes = static_cast<uint64_t>(*size) * (rest.front() == 'U' ? 4 : 1);
  descr.big_endian = order == '>' && descr.item_bytes > 1;
  return descr;
}

std::string descr_of(DType dtype) {
  if (dtype == DType::kBFloat16) dtype = DType::kFloat32;  // widened when it is written
  const std::string_view text = npy_of_dtype(dtype);
  if (text.empty() || dtype == DType::kFloat8) return "|V1";
  return fmt::format("{}{}", item_size(dtype) == 1 ? '|' : '<', text);
}

std::string dictionary_of(DType dtype, std::span<const int64_t> lengths) {
  std::string shape;
  for (const int64_t length : lengths) shape += fmt::format("{}{}", shape.empty() ? "" : ", ", length);
  if (lengths.size() == 1) shape += ",";
  return fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", descr_of(dtype), shape);
}

}  // namespace

Result<NpyHeader> parse_npy_header(std::span<const std::byte> head) {
  const auto corrupt = [](std::string text) { return Status(Code::kCorrupt, "npy: " + std::move(text)); };
  if (head.size() < kMagic.size() || std::memcmp(head.data(), kMagic.data(), kMagic.size()) != 0) {
    if (head.empty()) return corrupt("the file is empty; its writer was stopped or does not know the element type");
    return corrupt("the file does not begin with the NPY signature; it is no .npy file or was overwritten");
  }
  if (head.size() < kMagic.size() + 2)
    return corrupt("the file ends inside its signature; it was not written completely");
  const auto version = std::to_integer<unsigned>(head[6]);
  if (version < 1 || version > 3)
    return corrupt(fmt::format("format version {} is unknown; versions 1 to 3 can be read", version));

  const size_t length_bytes = version == 1 ? 2 : 4;
  const size_t start = kMagic.size() + 2 + length_bytes;
  if (head.size() < start) return corrupt("the file ends inside its header; it was not written completely");
  const size_t length = little_endian(head.subspan(start - length_bytes, length_bytes));
  if (length > head.size() - start) {
    return corrupt(fmt::format("the header should have {} bytes, {} are there; the file was not written completely",
                               length, head.size() - start));
  }
  // Reads characters through their bytes.
  const std::string_view text(reinterpret_cast<const char*>(head.data()) + start, length);
  Result<NpyDictionary> dictionary = parse_npy_dictionary(text);
  if (!dictionary) return dictionary.status();
  const Result<Descr> descr = parse_descr(dictionary->descr);
  if (!descr) return descr.status();

  NpyHeader header;
  header.dtype = descr->dtype;
  header.descr = std::move(dictionary->descr);
  header.big_endian = descr->big_endian;
  header.fortran_order = dictionary->fortran_order;
  header.shape = std::move(dictionary->shape);
  header.data_offset = start + length;
  const std::optional<uint64_t> count = element_count(header.shape);
  constexpr auto kLimit = static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
  if (!count || (descr->item_bytes != 0 && *count > (kLimit - header.data_offset) / descr->item_bytes)) {
    return corrupt(fmt::format("no file can hold the shape {} of {}", shape_text(header.shape), header.descr));
  }
  header.count = *count;
  return header;
}

std::vector<std::byte> npy_head(DType dtype, std::span<const int64_t> shape) {
  std::string text = dictionary_of(dtype, shape);
  const size_t start = kMagic.size() + 2 + 2;
  text.append((kAlignment - (start + text.size() + 1) % kAlignment) % kAlignment, ' ');
  text.push_back('\n');
  std::vector<std::byte> head(start + text.size());
  std::memcpy(head.data(), kMagic.data(), kMagic.size());
  head[6] = std::byte{1};
  head[7] = std::byte{0};
  head[8] = static_cast<std::byte>(text.size() & 0xff);
  head[9] = static_cast<std::byte>(text.size() >> 8);
  std::memcpy(head.data() + start, text.data(), text.size());
  return head;
}

std::vector<std::byte> npy_elements(const TensorView& view) {
  if (view.dtype != DType::kBFloat16) return {view.data, view.data + view.count * item_size(view.dtype)};
  std::vector<std::byte> out(view.count * sizeof(float));
  for (uint64_t i = 0; i < view.count; ++i) {
    uint16_t bits;
    std::memcpy(&bits, view.data + i * sizeof bits, sizeof bits);
    const float value = bfloat16_to_float(bits);
    std::memcpy(out.data() + i * sizeof value, &value, sizeof value);
  }
  return out;
}

std::vector<std::byte> npy_bytes(const TensorView& view) {
  if (item_size(view.dtype) == 0) return {};
  std::vector<std::byte> file = npy_head(view.dtype, view.shape);
  const std::vector<std::byte> elements = npy_elements(view);
  file.insert(file.end(), elements.begin(), elements.end());
  return file;
}

}  // namespace msdbg
