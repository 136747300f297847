#include <algorithm>

#include "script/objects.h"

namespace msdbg::script {
namespace {

// Enough to look at one tensor from several sides; more would only cost memory.
constexpr uint64_t kKeptBytes = uint64_t{256} << 20;

}  // namespace

std::shared_ptr<SessionBox> make_session_box(Vm& vm, std::unique_ptr<Session> session) {
  auto box = std::make_shared<SessionBox>();
  box->vm = &vm;
  box->session = std::move(session);
  box->kind = box->session->info().kind;
  box->source = box->session->info().source;
  box->defaults = vm.options.check_defaults;
  const auto steps = box->session->steps();
  if (!steps.empty()) box->current_step = steps.front();
  return box;
}

InUse::InUse(SessionBox& session, std::string_view call) : session_(session) {
  if (session.in_use)
    misuse(std::string(call) + ": a check runs on this session already; its functions cannot start another");
  session.in_use = true;
}

Session& SessionBox::open() {
  if (!session) throw ScriptError("closed", "session is closed");
  return *session;
}

void SessionBox::close() {
  if (in_use) misuse("close: a check runs on this session; close it afterwards");
  watches.clear();
  kept_.clear();
  kept_bytes_ = 0;
  last_result.reset();
  session.reset();
}

TensorPtr SessionBox::elements(const TensorBox& tensor) {
  if (tensor.memory) return tensor.memory;
  for (auto it = kept_.begin(); it != kept_.end(); ++it) {
    if (it->id == tensor.info.id) {
      kept_.splice(kept_.begin(), kept_, it);
      return kept_.front().buffer;
    }
  }
  TensorPtr buffer = value_or_throw(open().load(tensor.info.id, defaults.mem_limit_bytes));
  kept_.push_front({tensor.info.id, buffer});
  kept_bytes_ += buffer->bytes().size();
  while (kept_bytes_ > std::min(kKeptBytes, defaults.mem_limit_bytes) && kept_.size() > 1) {
    kept_bytes_ -= kept_.back().buffer->bytes().size();
    kept_.pop_back();
  }
  return buffer;
}

void SessionBox::forget(const TensorId& id) {
  for (auto it = kept_.begin(); it != kept_.end(); ++it) {
    if (it->id != id) continue;
    kept_bytes_ -= it->buffer->bytes().size();
    kept_.erase(it);
    return;
  }
}

std::string step_text(const SessionBox& session) {
  return session.current_step ? std::to_string(*session.current_step) : "-";
}

}  // namespace msdbg::script
