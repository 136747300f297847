// Containers as the Ascend runtime writes them, byte by byte.
#pragma once

#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "support/device_memory.h"

namespace msdbg::test {

// The runtime's numbers.
inline constexpr uint64_t kTypeFloat = 1, kTypeFloat16 = 2, kTypeInt8 = 3, kTypeInt32 = 7, kTypeComplex64 = 16, kTypeBf16 = 27,
                          kTypeInt4 = 28;
inline constexpr uint64_t kFormatNchw = 0, kFormatNhwc = 1, kFormatNd = 2, kFormatNc1hwc0 = 3, kFormatFractalZ = 4, kFormatFractalNz = 29,
                          kFormatZnLstm = 38;

struct StoredTensor {
  uint64_t type = kTypeFloat, format = kFormatNd;
  std::vector<int64_t> shape;
  std::optional<std::vector<int64_t>> host_shape;
  std::string bytes;
  uint64_t sub_format = 0;
  std::optional<uint64_t> claimed{};  ///< the size in the description, if it lies
  bool inside = false;                ///< the bytes are in the description
};

struct StoredContainer {
  std::vector<StoredTensor> inputs, outputs;
  std::string op_name = "Default_op";

  std::string bytes() const {
    std::string message = text(1, "1.0") + number(2, 1700000000000000), data;
    for (const StoredTensor& tensor : inputs) {
      message += text(4, tensor_message(tensor, 4, 5, 6, 7));
      if (!tensor.inside) data += tensor.bytes;
    }
    for (const StoredTensor& tensor : outputs) {
      message += text(3, tensor_message(tensor, 5, 6, 7, 8));
      if (!tensor.inside) data += tensor.bytes;
    }
    message += text(6, op_name);
    std::string length(8, '\0');
    const uint64_t size = message.size();
    std::memcpy(length.data(), &size, sizeof size);
    return length + message + data;
  }

 private:
  static std::string varint(uint64_t value) {
    std::string out;
    for (; value >= 128; value >>= 7) out += static_cast<char>(value | 128);
    return out + static_cast<char>(value);
  }
  static std::string number(uint32_t field, uint64_t value) { return varint(field << 3) + varint(value); }
  static std::string text(uint32_t field, const std::string& content) { return varint(field << 3 | 2) + varint(content.size()) + content; }
  static std::string shape_message(const std::vector<int64_t>& shape) {
    std::string packed;
    for (const int64_t length : shape) packed += varint(static_cast<uint64_t>(length));
    return shape.empty() ? "" : text(1, packed);
  }
  static std::string tensor_message(const StoredTensor& tensor, uint32_t data, uint32_t size, uint32_t original, uint32_t sub) {
    std::string out = number(1, tensor.type) + number(2, tensor.format) + text(3, shape_message(tensor.shape));
    if (tensor.inside) out += text(data, tensor.bytes);
    out += number(size, tensor.claimed.value_or(tensor.bytes.size()));
    if (tensor.host_shape) out += text(original, shape_message(*tensor.host_shape));
    if (tensor.sub_format != 0) out += number(sub, tensor.sub_format);
    return out;
  }
};

/// Elements `values[i]` of the tensor in the order of the device, with padding that no correct reader shows.
template <typename T>
std::string device_bytes(const DeviceMemory& memory, const std::vector<T>& values, T padding) {
  std::string out;
  for (const int64_t element : memory.elements) {
    const T value = element == kPadding ? padding : values[static_cast<size_t>(element)];
    out.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  return out;
}

template <typename T>
std::string plain_bytes(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

}  // namespace msdbg::test
