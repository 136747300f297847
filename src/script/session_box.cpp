#include <algorithm>

#include "script/objects.h"

namespace msdbg::script {
namespace {

// Enough to examine one tensor; more would only waste memory.
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
  box->live = dynamic_cast<LiveSession*>(box->session.get());
  if (box->live != nullptr) {
    box->current_step = box->live->current_step();
    box->seen_state = box->live->state();
    std::erase_if(vm.live_sessions, [](const auto& other) { return other.expired(); });
    vm.live_sessions.push_back(box);
  }
  return box;
}

InUse::InUse(SessionBox& session, std::string_view call) : session_(session) {
  if (!session.in_use.empty()) {
    misuse(std::string(call) + ": " + (session.in_use == "check" ? "a check" : session.in_use) +
           " runs on this session already; its functions cannot start another");
  }
  session.in_use = call;
}

Session& SessionBox::open() {
  if (!session) throw ScriptError("closed", "session is closed");
  return *session;
}

void SessionBox::close() {
  if (!in_use.empty())
    misuse("close: " + (in_use == "check" ? "a check" : in_use) + " runs on this session; close it afterwards");
  if (session && drives_training() && !live->detached())
    misuse("close: the training still waits for this session; s:terminate() ends it, s:detach() lets it run on");
  watches.clear();
  callbacks.clear();
  live = nullptr;
  cached_.clear();
  cached_bytes_ = 0;
  last_result.reset();
  session.reset();
}

TensorPtr SessionBox::cached_elements(const TensorBox& tensor) {
  if (tensor.memory) return tensor.memory;
  for (auto it = cached_.begin(); it != cached_.end(); ++it) {
    if (it->id == tensor.info.id) {
      cached_.splice(cached_.begin(), cached_, it);
      return cached_.front().buffer;
    }
  }
  return nullptr;
}

TensorPtr SessionBox::elements(const TensorBox& tensor) {
  if (TensorPtr buffer = cached_elements(tensor)) return buffer;
  TensorPtr buffer = value_or_throw(open().load(tensor.info.id, defaults.mem_limit_bytes));
  cached_.push_front({tensor.info.id, buffer});
  cached_bytes_ += buffer->bytes().size();
  while (cached_bytes_ > std::min(kKeptBytes, defaults.mem_limit_bytes) && cached_.size() > 1) {
    cached_bytes_ -= cached_.back().buffer->bytes().size();
    cached_.pop_back();
  }
  return buffer;
}

bool SessionBox::renumber(GraphPtr& graph, NodeId& node) const {
  if (live == nullptr || graph == nullptr) return true;
  const auto graphs = session->graphs();
  if (std::ranges::find(graphs, graph) != graphs.end()) return true;
  const auto now = std::ranges::find_if(graphs, [&](const GraphPtr& each) { return each->rank() == graph->rank() && each->name() == graph->name(); });
  const Node* found = now == graphs.end() ? nullptr : (*now)->find(graph->node(node).name);
  if (found == nullptr) return false;
  graph = *now;
  node = found->id;
  return true;
}

void SessionBox::begin_suspension() {
  ++suspension;
  cached_.clear();
  cached_bytes_ = 0;
  current_step = live->current_step();
  seen_state = live->state();
}

void SessionBox::refresh_state() {
  const bool is_detached = live->detached();
  const LiveState state = live->state();
  if (state == LiveState::kHeld && seen_state != LiveState::kHeld) {
    // A new process needs everything again.
    if (seen_state != LiveState::kRunning || is_detached) end_reported = false, watches_changed = true;
    begin_suspension();
  }
  seen_state = state;
}

bool SessionBox::drives_training() {
  if (live == nullptr || kind != SessionKind::kLive) return false;
  const LiveState state = live->state();
  return state == LiveState::kConnected || state == LiveState::kHeld || state == LiveState::kRunning;
}

void SessionBox::forget(const TensorId& id) {
  if (live != nullptr) live->drop_elements(id);
  for (auto it = cached_.begin(); it != cached_.end(); ++it) {
    if (it->id != id) continue;
    cached_bytes_ -= it->buffer->bytes().size();
    cached_.erase(it);
    return;
  }
}

std::string step_text(const SessionBox& session) {
  return session.current_step ? std::to_string(*session.current_step) : "-";
}

}  // namespace msdbg::script
