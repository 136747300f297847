// Questions to a held training: shapes, statistics, values.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "session/live/conversation.h"
#include "session/live/limits.h"

namespace msdbg::live {
namespace {

constexpr size_t kItemsPerView = 2000;
constexpr size_t kBytesPerView = size_t{3} << 20;  ///< of names; a client accepts 4 MiB
constexpr size_t kBytesAroundName = 32;

/// How many of the items one message takes, one at least.
size_t items_in_one_view(std::span<const ViewItem> items) {
  size_t count = 0, bytes = 0;
  while (count < std::min(items.size(), kItemsPerView)) {
    bytes += items[count].name.size() + kBytesAroundName;
    if (bytes > kBytesPerView && count > 0) break;
    ++count;
  }
  return count;
}

}  // namespace

debugger::EventReply Conversation::view_of(std::span<const ViewItem> items, debugger::ViewCMD::Level level) const {
  debugger::EventReply reply;
  debugger::ViewCMD* view = reply.mutable_view_cmd();
  if (profile_.levels) view->set_level(level);
  for (const ViewItem& item : items) {
    debugger::TensorProto* tensor = view->add_tensors();
    tensor->set_node_name(item.name);
    tensor->set_slot(std::to_string(item.slot));
    tensor->set_iter(item.previous ? "prev" : "");
    tensor->set_truncate(false);
  }
  return reply;
}

/// In as many views as the limit of a message asks for. `answer` is where the message that comes back is left.
template <typename Message>
Result<std::vector<Message>> Conversation::ask(std::span<const ViewItem> items, debugger::ViewCMD::Level level, std::string_view of,
                                               std::optional<std::vector<Message>>* answer) {
  std::vector<Message> all;
  while (!items.empty()) {
    const auto part = items.first(items_in_one_view(items));
    items = items.subspan(part.size());
    std::lock_guard lock(mutex_);
    const std::string what = fmt::format("{} of {} tensors", of, part.size());
    if (Status status = ensure_held(what); !status.ok()) return status;
    answer->reset();
    if (Status status = transport_->answer(view_of(part, level)); !status.ok()) return status;
    busy_ = true;
    if (Status status = await_answer(what, true); !status.ok()) return status;
    if (!*answer || (*answer)->size() != part.size()) {
      return Status(Code::kCorrupt, fmt::format("{}: the training answered with {}", what, *answer ? (*answer)->size() : 0));
    }
    std::move((*answer)->begin(), (*answer)->end(), std::back_inserter(all));
  }
  return all;
}

Result<std::vector<debugger::TensorBase>> Conversation::bases(std::span<const ViewItem> items) {
  return ask(items, debugger::ViewCMD::base, "shapes", &bases_);
}

Result<std::vector<debugger::TensorSummary>> Conversation::summaries(std::span<const ViewItem> items) {
  return ask(items, debugger::ViewCMD::statistics, "statistics", &summaries_);
}

Result<std::shared_ptr<ValueUpload>> Conversation::value(const ViewItem& item, std::optional<uint64_t> promised, uint64_t memory) {
  std::lock_guard lock(mutex_);
  const std::string what = fmt::format("the value of {}:{}{}", printable(item.name), item.slot, item.previous ? " (previous)" : "");
  if (Status status = ensure_held(what); !status.ok()) return status;
  auto upload = std::make_shared<ValueUpload>();
  upload->node = item.name;
  upload->slot = std::to_string(item.slot);
  upload->iter = item.previous ? "prev" : "";
  upload->landing.set_memory_limit(memory);
  upload->most_bytes = promised.value_or(limits::kValueBytes);
  if (promised) {
    if (Status status = upload->landing.reserve(std::min(*promised, memory)); !status.ok()) return status;
  }
  values_ = upload;
  values_done_ = false;
  transport_->expect(upload);
  if (Status status = transport_->answer(view_of({&item, 1}, debugger::ViewCMD::value)); !status.ok()) return status;
  busy_ = true;
  Status status = await_answer(what, true);
  values_.reset();
  if (!status.ok()) return status;
  if (!values_done_) return Status(Code::kCorrupt, fmt::format("{}: the training asked again without an answer", what));
  if (!upload->problem.empty()) return Status(Code::kCorrupt, fmt::format("{}: {}", what, upload->problem));
  if (upload->data_type == 0 && upload->slices > 0) return std::shared_ptr<ValueUpload>();
  if (upload->slices > 0 && !upload->finished) return Status(Code::kCorrupt, fmt::format("{}: it ended before its last slice", what));
  return upload;
}

}  // namespace msdbg::live
