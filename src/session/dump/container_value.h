// One tensor of a container: its elements in the tensor's own order.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "msdbg/device_format.h"
#include "msdbg/file.h"
#include "msdbg/tensor_file.h"
#include "session/dump/container.h"

namespace msdbg::dump {

/// The elements in row-major order, 4-bit integers in a byte each. One thread.
class DeviceElements {
 public:
  DeviceElements(File file, const ContainerTensor& tensor, DeviceLayout layout, size_t item, bool packed);

  uint64_t count() const { return layout_.host_count(); }
  size_t item() const { return item_; }
  const File& file() const { return file_; }
  /// Error: as for File::read(). Precondition: whole elements, not beyond count().
  Status read(uint64_t first, std::span<std::byte> out);

 private:
  /// Memory that begins with a line of the cache: blocks of the device do not share lines then.
  class Buffer {
   public:
    std::span<std::byte> room(size_t bytes);

   private:
    std::unique_ptr<std::byte[]> bytes_;
    size_t size_ = 0;
  };

  Status load(uint64_t host);
  Status load_columns(const DeviceLayout::Columns& columns);
  Status read_device(uint64_t first, std::span<std::byte> out);

  File file_;
  uint64_t offset_;
  DeviceLayout layout_;
  size_t item_;
  bool packed_;
  DeviceLayout::Band band_;
  Buffer stored_, whole_;
  std::span<std::byte> loaded_, converted_;  // of the band: as on the device, and in the tensor's order where bands are converted at once
  std::vector<std::byte> nibbles_;
};

struct ContainerValue {
  FileContent content;
  std::string format;                        ///< "NCHW" or "ND"; that of the device if the elements are in its order
  bool device_order = false;                 ///< shown as the device has them, with its padding
  std::unique_ptr<DeviceElements> elements;  ///< null if there are none; also for types that are not evaluated
};

/// Opens the tensor `slot` of a container. Never fails: see FileContent::problem.
ContainerValue open_container_value(const std::string& path, Slot slot);
/// The same for a tensor of a container that was read before.
ContainerValue open_container_value(File file, const ContainerTensor& tensor);

/// The format that the value will have, known from the description alone. The view is valid forever.
std::string_view container_host_format(const ContainerTensor& tensor);

/// The elements for a session. Precondition: the content has no problem.
std::unique_ptr<ElementReader> make_container_reader(ContainerValue value);

}  // namespace msdbg::dump
