#include "msdbg/pt_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>

#include "tensor/pickle.h"
#include "tensor/zip_file.h"

namespace msdbg {
namespace {

/// Descriptions of tensors have 200 bytes; attributes of a subclass may add to that.
constexpr uint64_t kLargestPickle = 1 << 20;
constexpr size_t kMostAxes = 64;  // of torch
constexpr uint64_t kMostRepeated = uint64_t{1} << 32;
/// A parameter of a subclass of a tensor is the deepest that torch nests.
constexpr int kDeepest = 4;

Status pt_corrupt(std::string text) { return Status(Code::kCorrupt, std::move(text)); }
Status pt_unsupported(std::string text) { return Status(Code::kUnsupported, std::move(text)); }
Status not_plain(std::string_view what) { return pt_unsupported(fmt::format("does not hold a plain tensor: {}", what)); }

struct StorageType {
  std::string_view storage, type;
};
constexpr StorageType kStorages[] = {
    {"FloatStorage", "float32"},   {"DoubleStorage", "float64"},         {"HalfStorage", "float16"},
    {"BFloat16Storage", "bfloat16"}, {"LongStorage", "int64"},           {"IntStorage", "int32"},
    {"ShortStorage", "int16"},     {"CharStorage", "int8"},              {"ByteStorage", "uint8"},
    {"BoolStorage", "bool"},       {"ComplexFloatStorage", "complex64"}, {"ComplexDoubleStorage", "complex128"},
};

/// What other functions of torch rebuild.
constexpr std::pair<std::string_view, std::string_view> kOtherTensors[] = {
    {"torch._utils._rebuild_qtensor", "quantized"},
    {"torch._utils._rebuild_sparse_tensor", "sparse"},
    {"torch._utils._rebuild_sparse_csr_tensor", "sparse"},
    {"torch._utils._rebuild_nested_tensor", "nested"},
    {"torch._utils._rebuild_meta_tensor_no_storage", "without elements (device meta)"},
    {"torch._utils._rebuild_wrapper_subclass", "a subclass with its own storage"},
    {"torch._utils._rebuild_device_tensor_from_numpy", "in NumPy's form"},
    {"torch._utils._rebuild_device_tensor_from_cpu_tensor", "in the form of another device"},
};

/// Names that a plain tensor's description may contain besides the storage and the element type.
bool is_known_global(std::string_view name) {
  static constexpr std::string_view kNames[] = {"torch._utils._rebuild_tensor",
                                                "torch._utils._rebuild_tensor_v2",
                                                "torch._utils._rebuild_tensor_v3",
                                                "torch._utils._rebuild_parameter",
                                                "torch._utils._rebuild_parameter_with_state",
                                                "torch._tensor._rebuild_from_type_v2",
                                                "torch_npu.utils.storage._rebuild_npu_tensor",
                                                "collections.OrderedDict",
                                                "torch.Tensor",
                                                "torch.nn.parameter.Parameter",
                                                "torch.nn.parameter.Buffer",
                                                "torch.storage.UntypedStorage"};
  return std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames);
}

/// The arguments of the call that rebuilds the tensor itself, without the wrappers of parameters and subclasses.
struct Rebuild {
  std::string function;
  const PickleValue* arguments = nullptr;
};

class PtDescription {
 public:
  explicit PtDescription(const Pickle& pickle) : pickle_(pickle) {}

  Result<Rebuild> find_rebuild() const {
    const PickleValue* value = &pickle_.root();
    for (int depth = 0; depth < kDeepest; ++depth) {
      if (value->is(PickleKind::kList)) return pt_unsupported("holds a list, not one tensor");
      if (value->is(PickleKind::kDict)) return pt_unsupported("holds a dict, not one tensor");
      if (value->is(PickleKind::kTuple)) return pt_unsupported("holds a tuple, not one tensor");
      if (value->is(PickleKind::kStored)) return pt_unsupported("holds a storage without a shape, not a tensor");
      if (!value->is(PickleKind::kCall)) return not_plain("it is a simple value");
      Rebuild rebuild{pickle_.item(*value, 0).global_name(), &pickle_.item(*value, 1)};
      if (rebuild.function == "collections.OrderedDict") return pt_unsupported("holds a dict, not one tensor");
      for (const auto& [function, what] : kOtherTensors) {
        if (rebuild.function == function) return pt_unsupported(fmt::format("holds a tensor that is {}; only plain ones are read", what));
      }
      const uint32_t count = rebuild.arguments->count;
      if (rebuild.function == "torch._tensor._rebuild_from_type_v2") {
        const bool known = count == 4 && argument(rebuild, 0).is(PickleKind::kGlobal) && argument(rebuild, 2).is(PickleKind::kTuple);
        if (!known) return wrong_arguments(rebuild);
        return Rebuild{argument(rebuild, 0).global_name(), &argument(rebuild, 2)};
      }
      if (!rebuild.function.starts_with("torch._utils._rebuild_parameter")) return rebuild;
      if (count == 0) return wrong_arguments(rebuild);
      value = &argument(rebuild, 0);
    }
    return not_plain("it is nested too deeply");
  }

  /// Everything but the places in the file.
  Result<PtTensor> tensor(const Rebuild& rebuild) {
    const bool third = rebuild.function == "torch._utils._rebuild_tensor_v3";
    const bool npu = rebuild.function == "torch_npu.utils.storage._rebuild_npu_tensor";
    const bool first = rebuild.function == "torch._utils._rebuild_tensor";
    if (!third && !npu && !first && rebuild.function != "torch._utils._rebuild_tensor_v2") {
      return not_plain(fmt::format("the function {}", rebuild.function));
    }
    const uint32_t least = first ? 4 : third || npu ? 7 : 6, most = first ? 4 : npu ? 7 : least + 1;
    if (rebuild.arguments->count < least || rebuild.arguments->count > most) return wrong_arguments(rebuild);
    PtTensor tensor;
    if (Status status = read_storage(argument(rebuild, 0), tensor); !status.ok()) return status;
    if (third) {
      if (!argument(rebuild, 6).is(PickleKind::kGlobal)) return wrong_arguments(rebuild);
      tensor.type = argument(rebuild, 6).global_name();
      if (!tensor.type.starts_with("torch.")) return pt_unsupported(fmt::format("has elements of type {}", tensor.type));
    }
    if (tensor.type.empty()) return pt_corrupt("does not say what type its elements have");
    if (Status status = check_globals(tensor.type); !status.ok()) return status;
    const std::string_view name = std::string_view(tensor.type).substr(6);
    // NumPy and torch agree on these names; torch has several kinds of float8.
    tensor.dtype = name.starts_with("float8_") ? DType::kFloat8 : dtype_from_name(name);
    if (item_size(tensor.dtype) == 0) return pt_unsupported(fmt::format("has elements of type {}, which is not known here", tensor.type));
    if (Status status = read_places(rebuild, tensor); !status.ok()) return status;
    if (!npu && rebuild.arguments->count == most && !first) {
      const PickleValue& metadata = argument(rebuild, most - 1);
      if (!metadata.is(PickleKind::kDict)) return wrong_arguments(rebuild);
      tensor.conjugate = is_set(metadata, "conj");
      tensor.negative = is_set(metadata, "neg");
    }
    return tensor;
  }

  uint64_t offset() const { return offset_; }
  std::string_view key() const { return key_; }

 private:
  const PickleValue& argument(const Rebuild& rebuild, uint32_t at) const { return pickle_.item(*rebuild.arguments, at); }
  static Status wrong_arguments(const Rebuild& rebuild) {
    return not_plain(fmt::format("the function {} with arguments that are not known here", rebuild.function));
  }
  bool is_set(const PickleValue& dict, std::string_view key) const {
    const PickleValue* const value = pickle_.entry(dict, key);
    return value && value->is(PickleKind::kBool) && value->number != 0;
  }

  /// A function or class that nobody expects is a reason to look at the file, even where its result would not be used.
  Status check_globals(std::string_view type) const {
    for (const PickleValue& value : pickle_.values()) {
      if (!value.is(PickleKind::kGlobal)) continue;
      const std::string name = value.global_name();
      if (is_known_global(name) || name == type || value.text == storage_) continue;
      return not_plain(fmt::format("it refers to {}", name));
    }
    return {};
  }

  /// `('storage', class, key, device, elements)`
  Status read_storage(const PickleValue& stored, PtTensor& tensor) {
    if (!stored.is(PickleKind::kStored)) return not_plain("its first argument is no storage");
    const PickleValue& id = pickle_.item(stored, 0);
    if (!id.is(PickleKind::kTuple) || id.count < 5) return pt_corrupt("has a damaged description of its tensor: the storage's");
    const PickleValue &word = pickle_.item(id, 0), &type = pickle_.item(id, 1), &key = pickle_.item(id, 2);
    if (!word.is(PickleKind::kText) || word.text != "storage" || !type.is(PickleKind::kGlobal) || !key.is(PickleKind::kText)) {
      return pt_corrupt("has a damaged description of its tensor: the storage's");
    }
    key_ = key.text;
    storage_ = type.text;
    const std::string name = type.global_name();
    if (name == "torch.storage.UntypedStorage") return {};
    for (const StorageType& known : kStorages) {
      if (name == fmt::format("torch.{}", known.storage)) tensor.type = fmt::format("torch.{}", known.type);
    }
    if (tensor.type.empty()) return pt_unsupported(fmt::format("has a storage of the unknown type {}", name));
    return {};
  }

  static bool read_numbers(const Pickle& pickle, const PickleValue& tuple, Shape& out) {
    if (!tuple.is(PickleKind::kTuple) || tuple.count > kMostAxes) return false;
    for (uint32_t i = 0; i < tuple.count; ++i) {
      const PickleValue& number = pickle.item(tuple, i);
      if (!number.is(PickleKind::kInteger)) return false;
      out.push_back(number.number);
    }
    return true;
  }

  Status read_places(const Rebuild& rebuild, PtTensor& tensor) {
    const PickleValue& offset = argument(rebuild, 1);
    if (!offset.is(PickleKind::kInteger) || !read_numbers(pickle_, argument(rebuild, 2), tensor.shape) ||
        !read_numbers(pickle_, argument(rebuild, 3), tensor.strides)) {
      return wrong_arguments(rebuild);
    }
    if (tensor.shape.size() != tensor.strides.size()) {
      return pt_corrupt(fmt::format("is damaged: the shape {} has {} strides", shape_text(tensor.shape), tensor.strides.size()));
    }
    if (offset.number < 0) return pt_corrupt(fmt::format("is damaged: its tensor begins at element {} of the storage", offset.number));
    offset_ = static_cast<uint64_t>(offset.number);
    if (std::any_of(tensor.strides.begin(), tensor.strides.end(), [](int64_t stride) { return stride < 0; })) {
      return pt_corrupt(fmt::format("is damaged: it has negative strides {}", shape_text(tensor.strides)));
    }
    const std::optional<uint64_t> count = element_count(tensor.shape);
    if (!count) return pt_corrupt(fmt::format("is damaged: no file can hold the shape {}", shape_text(tensor.shape)));
    tensor.count = *count;
    return {};
  }

  const Pickle& pickle_;
  std::string_view key_, storage_;
  uint64_t offset_ = 0;
};

/// Elements from the first to the last one used; nullopt if that is beyond 2^63.
std::optional<uint64_t> extent_of(const PtTensor& tensor) {
  if (tensor.count == 0) return 0;
  constexpr auto kLimit = static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
  uint64_t last = 0;
  for (size_t axis = 0; axis < tensor.shape.size(); ++axis) {
    const auto steps = static_cast<uint64_t>(tensor.shape[axis] - 1), stride = static_cast<uint64_t>(tensor.strides[axis]);
    if (steps == 0 || stride == 0) continue;
    if (stride > (kLimit - last - 1) / steps) return std::nullopt;
    last += steps * stride;
  }
  return last + 1;
}

bool is_row_major(const PtTensor& tensor) {
  int64_t expected = 1;
  for (size_t axis = tensor.shape.size(); tensor.count > 1 && axis-- > 0;) {
    if (tensor.shape[axis] == 1) continue;
    if (tensor.strides[axis] != expected) return false;
    expected *= tensor.shape[axis];
  }
  return true;
}

Status check_extent(uint64_t offset, PtTensor& tensor) {
  const std::optional<uint64_t> extent = extent_of(tensor);
  const uint64_t there = tensor.storage_bytes / item_size(tensor.dtype);
  if (!extent || (*extent > 0 && (offset > there || *extent > there - offset))) {
    return pt_corrupt(fmt::format("is damaged: its storage has {} bytes, too few for the shape {} with strides {} from element {} on "
                                  "({} bytes each)",
                                  tensor.storage_bytes, shape_text(tensor.shape), shape_text(tensor.strides), offset,
                                  item_size(tensor.dtype)));
  }
  tensor.extent = *extent;
  tensor.contiguous = is_row_major(tensor);
  if (tensor.count > tensor.extent && tensor.count > kMostRepeated) {
    return pt_unsupported(fmt::format("repeats the elements of its storage {} times: the shape {} in {} bytes",
                                      tensor.count / tensor.extent, shape_text(tensor.shape), tensor.storage_bytes));
  }
  return {};
}

Result<std::string> text_of(const FileEnds& ends, const ZipDirectory& directory, const ZipEntry& entry, uint64_t limit) {
  const Result<uint64_t> offset = directory.contents(ends, entry);
  if (!offset) return offset.status();
  if (entry.bytes > limit) {
    return not_plain(fmt::format("its entry {} has {} bytes", printable(entry.name.substr(0, 80)), entry.bytes));
  }
  std::string text(entry.bytes, '\0');
  if (Status status = ends.read(*offset, std::as_writable_bytes(std::span(text))); !status.ok()) return status;
  return text;
}

/// What a file without a ZIP directory is.
Status no_zip(const FileEnds& ends, const Status& status) {
  if (ends.size() == 0) return pt_corrupt("is empty (0 bytes)");
  char head[4] = {};
  if (ends.size() < sizeof head || !ends.read(0, std::as_writable_bytes(std::span(head))).ok()) return status;
  if (std::memcmp(head, "\x80\x02\x8a\x0a", 4) == 0) {
    return pt_unsupported("is in torch's format before 1.6, which is not read: load it and save it again with torch.save");
  }
  if (std::memcmp(head, "PK", 2) == 0) return status;
  const auto byte = [&](size_t i) { return static_cast<unsigned>(static_cast<unsigned char>(head[i])); };
  return pt_corrupt(fmt::format("is no file of torch.save (it starts with {:02x} {:02x} {:02x} {:02x})", byte(0), byte(1), byte(2),
                                byte(3)));
}

}  // namespace

Result<PtTensor> read_pt_header(const File& file, std::span<const std::byte> head) {
  FileEnds ends(file, head);
  const Result<ZipDirectory> directory = ZipDirectory::read(ends);
  if (!directory) return directory.status().code() == Code::kCorrupt ? no_zip(ends, directory.status()) : directory.status();
  if (directory->entries().empty()) return pt_corrupt("is an empty ZIP file");
  const std::string& first = directory->entries().front().name;
  const std::string stem = first.substr(0, first.find('/')) + "/";
  const ZipEntry* const entry = directory->find(stem + "data.pkl");
  if (!entry) return pt_unsupported("is a ZIP file without the entry data.pkl: torch.save did not write it");
  const Result<std::string> bytes = text_of(ends, *directory, *entry, kLargestPickle);
  if (!bytes) return bytes.status();

  const Result<Pickle> pickle = Pickle::parse(*bytes);
  if (!pickle) return pickle.status();
  PtDescription description(*pickle);
  const Result<Rebuild> rebuild = description.find_rebuild();
  if (!rebuild) return rebuild.status();
  Result<PtTensor> tensor = description.tensor(*rebuild);
  if (!tensor) return tensor.status();

  if (const ZipEntry* const order = directory->find(stem + "byteorder")) {
    const Result<std::string> text = text_of(ends, *directory, *order, 64);
    if (!text) return text.status();
    if (*text != "little" && *text != "big") return pt_corrupt(fmt::format("has the unknown byte order '{}'", printable(*text)));
    tensor->big_endian = *text == "big";
  }
  const std::string key = fmt::format("data/{}", description.key().substr(0, 200));
  const ZipEntry* const storage = directory->find(stem + key);
  if (!storage) return pt_corrupt(fmt::format("is damaged: its entry {} with the elements is missing", printable(key)));
  const Result<uint64_t> contents = directory->contents(ends, *storage);
  if (!contents) return contents.status();
  tensor->storage_bytes = storage->bytes;
  if (Status status = check_extent(description.offset(), *tensor); !status.ok()) return status;
  // Without elements, the offset may be anything.
  tensor->first_byte = tensor->extent == 0 ? *contents : *contents + description.offset() * item_size(tensor->dtype);
  return tensor;
}

}  // namespace msdbg
