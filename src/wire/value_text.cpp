#include "wire/value_text.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>

namespace msdbg {
namespace {

constexpr int kMaxListed = 256;  // elements of a list that are printed
constexpr uint64_t kMaxTensorListed = 64;
constexpr size_t kMaxSlots = 65536;  // far beyond any operator; a damaged file may claim them
constexpr int kTypeString = 13, kTypeTuple = 31, kTypeList = 32, kTypeNone = 34, kTypeUMonad = 43, kTypeIoMonad = 44;

bool is_monad(int data_type, Flavour flavour) {
  return flavour == Flavour::kDebugger && (data_type == kTypeUMonad || data_type == kTypeIoMonad);
}

OutputType tensor_slot(const debugger::TypeProto::Tensor& tensor, bool in_sequence, Flavour flavour) {
  OutputType out{element_type(tensor.elem_type(), flavour), std::nullopt};
  Shape shape;
  for (const auto& dim : tensor.shape().dim()) shape.push_back(dim.size());
  // The writer omits the shape of scalars and of everything inside a sequence; -2 means an unknown rank.
  const bool unknown_rank = shape.size() == 1 && shape[0] == -2;
  if (!unknown_rank && (!shape.empty() || !in_sequence)) out.shape = std::move(shape);
  return out;
}

void append_slots(const debugger::TypeProto& type, bool in_sequence, Flavour flavour, std::vector<OutputType>& out) {
  if (out.size() >= kMaxSlots) return;
  if (type.has_tensor_type()) {
    out.push_back(tensor_slot(type.tensor_type(), in_sequence, flavour));
  } else if (type.has_sequence_type() && type.sequence_type().elem_types_size() > 0) {
    for (const auto& element : type.sequence_type().elem_types()) append_slots(element, true, flavour, out);
  } else {
    const DType dtype = element_type(type.data_type(), flavour);
    out.push_back({dtype, dtype == DType::kUnknown ? std::nullopt : std::optional<Shape>(Shape{})});
  }
}

template <typename List, typename Print>
void append_list(std::string& out, const List& list, char open, char close, Print print) {
  out += open;
  int listed = 0;
  for (const auto& item : list) {
    if (listed > 0) out += ", ";
    if (listed == kMaxListed) {
      out += fmt::format("... {} more", list.size() - kMaxListed);
      break;
    }
    out += print(item);
    ++listed;
  }
  out += close;
}

std::string float_text(float value) { return std::isfinite(value) ? fmt::format("{}", value) : format_double(value); }

std::string element_text(DType dtype, const std::byte* at) {
  const auto exact = [at]<typename T>(T value) {
    std::memcpy(&value, at, sizeof value);
    return fmt::format("{}", value);
  };
  if (dtype == DType::kInt64) return exact(int64_t{});
  if (dtype == DType::kUInt64) return exact(uint64_t{});
  const double value = element_as_double(dtype, at);
  if (dtype == DType::kBool) return value != 0 ? "true" : "false";
  // Use float only for that type: 0.1f should print as 0.1, and an int32 must keep all its digits.
  return is_float(dtype) && dtype != DType::kFloat64 ? float_text(static_cast<float>(value)) : format_double(value);
}

Shape tensor_dims(const debugger::TensorProto& tensor) { return {tensor.dims().begin(), tensor.dims().end()}; }

std::string tensor_text(const debugger::TensorProto& tensor, Flavour flavour) {
  const DType dtype = element_type(tensor.data_type(), flavour);
  const size_t size = tensor.tensor_content().size();
  const size_t item = item_size(dtype);
  if (!is_evaluable(dtype) || size == 0 || size % item != 0 || size / item > kMaxTensorListed) {
    return fmt::format("{}{}", dtype_name(dtype), shape_text(tensor_dims(tensor)));
  }
  const auto* bytes = reinterpret_cast<const std::byte*>(tensor.tensor_content().data());
  if (size == item && tensor.dims_size() == 0) return element_text(dtype, bytes);
  std::string out = "[";
  for (size_t i = 0; i < size / item; ++i) out += (i > 0 ? ", " : "") + element_text(dtype, bytes + i * item);
  return out + "]";
}

std::string quoted(const std::string& text) { return '"' + text + '"'; }

}  // namespace

DType element_type(int data_type, Flavour flavour) {
  if (flavour == Flavour::kIrpb) {
    if (data_type == kTypeUMonad) return DType::kComplex64;
    if (data_type == kTypeIoMonad) return DType::kComplex128;
  }
  return dtype_from_mindspore(data_type);
}

std::vector<OutputType> output_types(const debugger::TypeProto& type, Flavour flavour, std::vector<uint32_t>* widths) {
  std::vector<OutputType> out;
  if (is_monad(type.data_type(), flavour)) return out;
  if (type.has_sequence_type()) {
    for (const auto& element : type.sequence_type().elem_types()) {
      const size_t before = out.size();
      append_slots(element, true, flavour, out);
      widths->push_back(static_cast<uint32_t>(out.size() - before));
    }
    if (!out.empty()) return out;
  }
  append_slots(type, false, flavour, out);
  return out;
}

std::string value_text(const debugger::ValueProto& value, Flavour flavour) {
  const auto nested = [flavour](const debugger::ValueProto& item) {
    return item.has_str_val() ? quoted(item.str_val()) : value_text(item, flavour);
  };
  std::string out;
  if (value.has_bool_val()) return value.bool_val() ? "true" : "false";
  if (value.has_int_val()) return fmt::format("{}", value.int_val());
  if (value.has_uint_val()) return fmt::format("{}", value.uint_val());
  if (value.has_float_val()) return float_text(value.float_val());
  if (value.has_double_val()) return format_double(value.double_val());
  if (value.has_str_val()) return value.str_val();
  if (value.has_tensor_val()) return tensor_text(value.tensor_val(), flavour);
  if (value.has_graph()) return "graph " + value.graph().name();
  if (value.has_type_val()) {
    std::vector<uint32_t> widths;
    append_list(out, output_types(value.type_val(), flavour, &widths), '<', '>',
                [](const OutputType& type) { return std::string(dtype_name(type.dtype)); });
    return out;
  }
  const bool list = value.dtype() == kTypeList;
  if (value.values_size() > 0 || list || value.dtype() == kTypeTuple) {
    append_list(out, value.values(), list ? '[' : '(', list ? ']' : ')', nested);
  } else if (value.dict_val_size() > 0) {
    append_list(out, value.dict_val(), '{', '}',
                [&](const debugger::NamedValueProto& item) { return item.key() + ": " + nested(item.value()); });
  } else if (value.bool_vals_size() > 0) {
    append_list(out, value.bool_vals(), '[', ']', [](bool item) { return std::string(item ? "true" : "false"); });
  } else if (value.int_vals_size() > 0) {
    append_list(out, value.int_vals(), '[', ']', [](int64_t item) { return fmt::format("{}", item); });
  } else if (value.uint_vals_size() > 0) {
    append_list(out, value.uint_vals(), '[', ']', [](uint64_t item) { return fmt::format("{}", item); });
  } else if (value.float_vals_size() > 0) {
    append_list(out, value.float_vals(), '[', ']', float_text);
  } else if (value.double_vals_size() > 0) {
    append_list(out, value.double_vals(), '[', ']', format_double);
  } else if (value.str_vals_size() > 0) {
    append_list(out, value.str_vals(), '[', ']', quoted);
  } else if (value.tensor_vals_size() > 0) {
    append_list(out, value.tensor_vals(), '[', ']',
                [flavour](const debugger::TensorProto& item) { return tensor_text(item, flavour); });
  } else if (value.dtype() == kTypeNone) {
    out = "none";
  }
  return out;
}

std::vector<OutputType> value_types(const debugger::ValueProto& value, Flavour flavour) {
  if (value.ByteSizeLong() == 0) return {};  // the stored form of a monad
  if (value.has_tensor_val()) {
    const debugger::TensorProto& tensor = value.tensor_val();
    OutputType out{element_type(tensor.data_type(), flavour), tensor_dims(tensor)};
    // 1.3 and 1.5 omit the dimensions; only a single element then has a known shape.
    if (tensor.dims_size() == 0 && tensor.tensor_content().size() != item_size(out.dtype)) out.shape.reset();
    return {out};
  }
  const int type = value.dtype();
  const bool scalar = (type > 0 && type <= kTypeString) || type == 46;
  return {
      {scalar ? element_type(type, flavour) : DType::kUnknown, scalar ? std::optional<Shape>(Shape{}) : std::nullopt}};
}

}  // namespace msdbg
