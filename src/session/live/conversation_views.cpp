// Queries to a held training: shapes, statistics, values.
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

/// How many items fit into one message; at least one.
size_t items_in_one_view(std::span<const ViewItem> items) {
  size_t count = 0, bytes = 0;
  while (count < std::min(items.size(), kItemsPerView)) {
    bytes += items[count].name.size() + kBytesAroundName;
    if (bytes > kBytesPerView && count > 0) break;
    ++count;
  }
  return count;
}

void add_item(const ViewItem& item, debugger::ViewCMD* view) {
  debugger::TensorProto* tensor = view->add_tensors();
  tensor->set_node_name(item.name);
  tensor->set_slot(std::to_string(item.slot));
  tensor->set_iter(item.previous ? "prev" : "");
  tensor->set_truncate(false);
}

std::string name_of(const UploadedValue& value) {
  return fmt::format("{}:{}{}", printable(value.node), value.slot, value.iter.empty() ? "" : " (previous)");
}

/// The problem of a value once all its data has arrived, or "". A value without data is empty.
std::string problem_of(const ValueUpload& upload, size_t place) {
  const UploadedValue& value = upload.values[place];
  if (!value.problem.empty() || value.finished) return value.problem;
  if (upload.problem.empty() || place < upload.at) return value.slices > 0 ? "it ended before its last slice" : "";
  return place == upload.at ? upload.problem : fmt::format("the answer ended at {}: {}", name_of(upload.values[upload.at]), upload.problem);
}

}  // namespace

debugger::EventReply Conversation::view_of(debugger::ViewCMD::Level level) const {
  debugger::EventReply reply;
  debugger::ViewCMD* view = reply.mutable_view_cmd();
  if (profile_.levels) view->set_level(level);
  return reply;
}

/// Splits the question into as many views as the message limit requires. The answer arrives in `*answer`.
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
    debugger::EventReply question = view_of(level);
    for (const ViewItem& item : part) add_item(item, question.mutable_view_cmd());
    if (Status status = transport_->answer(question); !status.ok()) return status;
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

Result<std::shared_ptr<ValueUpload>> Conversation::values(std::span<const ValueItem> items, uint64_t reserve, uint64_t memory) {
  MSDBG_CHECK(!items.empty());
  std::lock_guard lock(mutex_);
  auto upload = std::make_shared<ValueUpload>();
  debugger::EventReply question = view_of(debugger::ViewCMD::value);
  for (const ValueItem& item : items) {
    add_item(item, question.mutable_view_cmd());
    UploadedValue& value = upload->values.emplace_back();
    value.node = item.name;
    value.slot = std::to_string(item.slot);
    value.iter = item.previous ? "prev" : "";
    value.most_bytes = item.most_bytes;
  }
  const std::string first = name_of(upload->values.front());
  const std::string what = items.size() == 1 ? "the value of " + first : fmt::format("{} values from {} on", items.size(), first);
  if (Status status = ensure_held(what); !status.ok()) return status;
  upload->buffer.set_memory_limit(memory);
  if (Status status = upload->buffer.reserve(std::min(reserve, memory)); !status.ok()) return status;
  values_ = upload;
  values_done_ = false;
  transport_->expect(upload);
  if (Status status = transport_->answer(question); !status.ok()) return status;
  busy_ = true;
  Status status = await_answer(what, true);
  values_.reset();
  if (!status.ok()) return status;
  if (!values_done_) return Status(Code::kCorrupt, fmt::format("{}: the training asked again without an answer", what));
  for (size_t i = 0; i < items.size(); ++i) {
    if (std::string problem = problem_of(*upload, i); !problem.empty())
      upload->values[i].problem = fmt::format("the value of {}: {}", name_of(upload->values[i]), problem);
  }
  return upload;
}

}  // namespace msdbg::live
