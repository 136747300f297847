// Names, sizes and limits of element types.
#include <array>
#include <limits>

#include "msdbg/tensor.h"

namespace msdbg {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

struct Entry {
  DType dtype;
  std::string_view name;
  size_t size;
  double max;
};

// In the order of the enumeration, so that a DType is an index.
constexpr std::array<Entry, 19> kTypes = {{
    {DType::kUnknown, "unknown", 0, kNaN},
    {DType::kBool, "bool", 1, kNaN},
    {DType::kInt8, "int8", 1, 127.0},
    {DType::kInt16, "int16", 2, 32767.0},
    {DType::kInt32, "int32", 4, 2147483647.0},
    {DType::kInt64, "int64", 8, 9223372036854775807.0},
    {DType::kUInt8, "uint8", 1, 255.0},
    {DType::kUInt16, "uint16", 2, 65535.0},
    {DType::kUInt32, "uint32", 4, 4294967295.0},
    {DType::kUInt64, "uint64", 8, 18446744073709551615.0},
    {DType::kFloat16, "float16", 2, 65504.0},
    {DType::kBFloat16, "bfloat16", 2, 0x1.fep127},
    {DType::kFloat32, "float32", 4, std::numeric_limits<float>::max()},
    {DType::kFloat64, "float64", 8, std::numeric_limits<double>::max()},
    {DType::kComplex64, "complex64", 8, kNaN},
    {DType::kComplex128, "complex128", 16, kNaN},
    {DType::kString, "string", 0, kNaN},
    {DType::kInt4, "int4", 0, kNaN},
    {DType::kFloat8, "float8", 1, kNaN},
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
  switch (number) {
    case 1:
      return DType::kBool;
    case 2:
      return DType::kInt8;
    case 3:
      return DType::kInt16;
    case 4:
      return DType::kInt32;
    case 5:
      return DType::kInt64;
    case 6:
      return DType::kUInt8;
    case 7:
      return DType::kUInt16;
    case 8:
      return DType::kUInt32;
    case 9:
      return DType::kUInt64;
    case 10:
      return DType::kFloat16;
    case 11:
      return DType::kFloat32;
    case 12:
      return DType::kFloat64;
    case 13:
      return DType::kString;
    case 36:
      return DType::kInt32;
    case 37:
      return DType::kUInt32;
    case 38:
      return DType::kFloat32;
    case 46:
      return DType::kBFloat16;
    case 48:
      return DType::kInt4;
    default:
      return DType::kUnknown;
  }
}

size_t item_size(DType dtype) { return entry(dtype).size; }

bool is_evaluable(DType dtype) { return dtype >= DType::kBool && dtype <= DType::kFloat64; }

bool is_float(DType dtype) { return dtype >= DType::kFloat16 && dtype <= DType::kFloat64; }

double dtype_max(DType dtype) { return entry(dtype).max; }

double dtype_min_normal(DType dtype) {
  switch (dtype) {
    case DType::kFloat16:
      return 0x1p-14;
    case DType::kBFloat16:
    case DType::kFloat32:
      return 0x1p-126;
    case DType::kFloat64:
      return 0x1p-1022;
    default:
      return kNaN;
  }
}

double dtype_eps(DType dtype) {
  switch (dtype) {
    case DType::kFloat16:
      return 0x1p-10;
    case DType::kBFloat16:
      return 0x1p-7;
    case DType::kFloat32:
      return 0x1p-23;
    case DType::kFloat64:
      return 0x1p-52;
    default:
      return kNaN;
  }
}

}  // namespace msdbg
