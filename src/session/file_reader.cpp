#include "session/file_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "msdbg/log.h"
#include "session/element_order.h"

namespace msdbg {
namespace {

/// Runs of a view that are shorter than this are not read one by one: the storage is loaded once.
constexpr uint64_t kShortRun = 4096;

class FileReader : public ElementReader {
 public:
  FileReader(File file, FileContent content, std::vector<std::byte> head)
      : ElementReader(content.dtype, content.count), file_(std::move(file)), content_(std::move(content)), head_(std::move(head)) {
    if (!content_.strides.empty() && content_.count > 0) order_.emplace(content_.shape, content_.strides);
    if (content_.data_offset + content_.bytes > head_.size()) file_.expect_sequential();
  }
  ~FileReader() override {
    if (!log_wanted(LogLevel::kDebug)) return;
    log(LogLevel::kDebug, fmt::format("read {}: {}", file_.path(), format_reading(content_.bytes, watch_.seconds())));
  }
  FileReader(const FileReader&) = delete;
  FileReader& operator=(const FileReader&) = delete;
  const FileStamp* file() const override { return &file_.stamp(); }

 private:
  Status fill(uint64_t first, std::span<std::byte> out) override {
    const size_t item = item_size(content_.dtype);
    if (Status status = fill_stored(first, out, item); !status.ok()) return status;
    if (content_.big_endian) swap_bytes(out, item);
    if (content_.negative) negate(out, item);
    return {};
  }

  /// The elements in the byte order of the file.
  Status fill_stored(uint64_t first, std::span<std::byte> out, size_t item) {
    if (out.empty()) return {};
    if (order_) return fill_view(first, out, item);
    if (content_.fortran_order && content_.shape.size() > 1) {
      if (Status status = load_rows(item); !status.ok()) return status;
      std::memcpy(out.data(), kept_.data() + first * item, out.size());
      return {};
    }
    return read_bytes(content_.data_offset + first * item, out);
  }

  Status fill_view(uint64_t first, std::span<std::byte> out, size_t item) {
    if (order_->longest_run() * item < kShortRun) {
      if (Status status = load(content_.extent * item, kept_); !status.ok()) return status;
      gather(kept_, *order_, item, first, out);
      return {};
    }
    while (!out.empty()) {
      const StridedOrder::Run run = order_->run_at(first, out.size() / item);
      const uint64_t bytes = run.count * item;
      if (Status status = read_bytes(content_.data_offset + run.from * item, out.first(bytes)); !status.ok()) return status;
      first += run.count;
      out = out.subspan(bytes);
    }
    return {};
  }

  Status read_bytes(uint64_t offset, std::span<std::byte> out) {
    if (offset < head_.size() && !out.empty()) {
      const size_t n = std::min<uint64_t>(out.size(), head_.size() - offset);
      std::memcpy(out.data(), head_.data() + offset, n);
      out = out.subspan(n);
      offset += n;
    }
    return file_.read(offset, out);
  }

  /// The file's elements, once.
  Status load(uint64_t bytes, std::vector<std::byte>& out) {
    if (!out.empty() || bytes == 0) return {};
    std::vector<std::byte> loaded(bytes);
    if (Status status = read_bytes(content_.data_offset, loaded); !status.ok()) return status;
    out = std::move(loaded);
    return {};
  }

  /// Transposes a column-major file in memory; only tools other than MindSpore write them.
  Status load_rows(size_t item) {
    if (!kept_.empty()) return {};
    std::vector<std::byte> columns;
    if (Status status = load(content_.bytes, columns); !status.ok()) return status;
    kept_ = to_row_major(columns, content_.shape, item);
    return {};
  }

  File file_;
  FileContent content_;
  std::vector<std::byte> head_;  // the first bytes of the file, header included
  std::optional<StridedOrder> order_;
  std::vector<std::byte> kept_;  // of a column-major file the rows, of a view the storage
  Stopwatch watch_;
};

}  // namespace

std::unique_ptr<ElementReader> make_file_reader(File file, FileContent content, std::vector<std::byte> head) {
  return std::make_unique<FileReader>(std::move(file), std::move(content), std::move(head));
}

}  // namespace msdbg
