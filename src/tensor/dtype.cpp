// Names, sizes and limits of element types.
#include <array>
#include <limits>

#include "msdbg/tensor.h"
#include "tensor/npy_dictionary.h"

namespace msdbg {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

struct Entry {
  DType dtype;
  std::string_view name;
  size_t size;
  std::string_view npy;          // kind and size of NumPy's descr
  std::string_view safetensors;
  int mindspore;                 // DataType of proto/debug_graph.proto; 0: not sent
  double lowest = kNaN, max = kNaN;
  double min_normal = kNaN, eps = kNaN;  // for floats
};

template <typename T>
constexpr double kLowest = static_cast<double>(std::numeric_limits<T>::lowest());
template <typename T>
constexpr double kMax = static_cast<double>(std::numeric_limits<T>::max());

// In the order of the enumeration, so a DType is an index.
constexpr std::array<Entry, kDTypeCount> kTypes = {{
    {DType::kUnknown, "unknown", 0, "", "", 0},
    {DType::kBool, "bool", 1, "b1", "BOOL", 1, 0},
    {DType::kInt8, "int8", 1, "i1", "I8", 2, kLowest<int8_t>, kMax<int8_t>},
    {DType::kInt16, "int16", 2, "i2", "I16", 3, kLowest<int16_t>, kMax<int16_t>},
    {DType::kInt32, "int32", 4, "i4", "I32", 4, kLowest<int32_t>, kMax<int32_t>},
    {DType::kInt64, "int64", 8, "i8", "I64", 5, kLowest<int64_t>, kMax<int64_t>},
    {DType::kUInt8, "uint8", 1, "u1", "U8", 6, 0, kMax<uint8_t>},
    {DType::kUInt16, "uint16", 2, "u2", "U16", 7, 0, kMax<uint16_t>},
    {DType::kUInt32, "uint32", 4, "u4", "U32", 8, 0, kMax<uint32_t>},
    {DType::kUInt64, "uint64", 8, "u8", "U64", 9, 0, kMax<uint64_t>},
    {DType::kFloat16, "float16", 2, "f2", "F16", 10, -65504, 65504, 0x1p-14, 0x1p-10},
    {DType::kBFloat16, "bfloat16", 2, "V2", "BF16", 46, -0x1.fep127, 0x1.fep127, 0x1p-126, 0x1p-7},
    {DType::kFloat32, "float32", 4, "f4", "F32", 11, kLowest<float>, kMax<float>, 0x1p-126, 0x1p-23},
    {DType::kFloat64, "float64", 8, "f8", "F64", 12, kLowest<double>, kMax<double>, 0x1p-1022, 0x1p-52},
    {DType::kComplex64, "complex64", 8, "c8", "C64", 0},
    {DType::kComplex128, "complex128", 16, "c16", "", 0},
    {DType::kString, "string", 0, "", "", 0},
    {DType::kInt4, "int4", 0, "", "", 0},
    {DType::kFloat8, "float8", 1, "f1", "F8_E4M3", 0},
}};

constexpr bool in_enum_order() {
  for (size_t i = 0; i < kTypes.size(); ++i) {
    if (static_cast<size_t>(kTypes[i].dtype) != i) return false;
  }
  return true;
}
static_assert(in_enum_order());

const Entry& entry(DType dtype) {
  const auto index = static_cast<size_t>(dtype);
  return kTypes[index < kTypes.size() ? index : 0];
}

struct Alias {
  std::string_view name;
  DType dtype;
};

// MindSpore's `Int`, `UInt` and `Float` are the host types of its protocol: four bytes each.
constexpr std::array kAliases = {
    Alias{"bool_", DType::kBool},         Alias{"boolean", DType::kBool},       Alias{"int", DType::kInt32},
    Alias{"uint", DType::kUInt32},        Alias{"float", DType::kFloat32},      Alias{"single", DType::kFloat32},
    Alias{"double", DType::kFloat64},     Alias{"half", DType::kFloat16},       Alias{"fp16", DType::kFloat16},
    Alias{"fp32", DType::kFloat32},       Alias{"fp64", DType::kFloat64},       Alias{"bf16", DType::kBFloat16},
    Alias{"str", DType::kString},         Alias{"complex", DType::kComplex128}, Alias{"float8_e4m3fn", DType::kFloat8},
    Alias{"float8_e5m2", DType::kFloat8}, Alias{"hifloat8", DType::kFloat8},
};

}  // namespace

std::string_view dtype_name(DType dtype) { return entry(dtype).name; }

DType dtype_from_name(std::string_view name) {
  if (name.empty()) return DType::kUnknown;
  for (const Entry& type : kTypes) {
    if (type.name.size() == name.size() && starts_with_nocase(name, type.name)) return type.dtype;
  }
  std::string lower = to_lower(trim(name));
  for (std::string_view prefix : {"mindspore.", "mstype.", "numpy.", "np.", "knumbertype", "kobjecttype", "dt_"}) {
    if (lower.starts_with(prefix)) {
      lower.erase(0, prefix.size());
      break;
    }
  }
  for (const Entry& type : kTypes) {
    if (type.name == lower) return type.dtype;
  }
  for (const Alias& alias : kAliases) {
    if (alias.name == lower) return alias.dtype;
  }
  return DType::kUnknown;
}

DType dtype_from_mindspore(int number) {
  for (const Entry& type : kTypes) {
    if (type.mindspore == number && number != 0) return type.dtype;
  }
  switch (number) {
    case 13: return DType::kString;
    case 36: return DType::kInt32;  // the host types
    case 37: return DType::kUInt32;
    case 38: return DType::kFloat32;
    case 48: return DType::kInt4;
    default: return DType::kUnknown;
  }
}

int mindspore_number(DType dtype) { return entry(dtype).mindspore; }

DType dtype_from_safetensors(std::string_view name) {
  for (const Entry& type : kTypes) {
    if (!name.empty() && type.safetensors == name) return type.dtype;
  }
  return name == "F8_E5M2" ? DType::kFloat8 : DType::kUnknown;
}

DType dtype_from_npy(std::string_view kind_and_size) {
  for (const Entry& type : kTypes) {
    if (!kind_and_size.empty() && type.npy == kind_and_size) return type.dtype;
  }
  return DType::kUnknown;
}

std::string_view npy_of_dtype(DType dtype) { return entry(dtype).npy; }

size_t item_size(DType dtype) { return entry(dtype).size; }

bool is_evaluable(DType dtype) { return dtype >= DType::kBool && dtype <= DType::kFloat64; }

bool is_float(DType dtype) { return dtype >= DType::kFloat16 && dtype <= DType::kFloat64; }

double dtype_max(DType dtype) { return entry(dtype).max; }

double dtype_lowest(DType dtype) { return entry(dtype).lowest; }

double dtype_min_normal(DType dtype) { return entry(dtype).min_normal; }

double dtype_eps(DType dtype) { return entry(dtype).eps; }

}  // namespace msdbg
