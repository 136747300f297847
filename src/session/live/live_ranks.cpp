#include "session/live/live_ranks.h"

#include <fmt/format.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <thread>

namespace msdbg::live {
namespace {

// A signal handler cannot end a wait: poll the interrupt flag this often.
constexpr std::chrono::milliseconds kMostWait{20};

Status no_rank(int rank, size_t count) {
  return {Code::kNotFound, fmt::format("no rank {}: the training has ranks 0 to {}", rank, count - 1)};
}

}  // namespace

LiveRanks::LiveRanks(std::vector<std::unique_ptr<LiveSessionImpl>> ranks, RanksOptions options)
    : options_(std::move(options)), ranks_(std::move(ranks)), places_(ranks_.size()), news_(::epoll_create1(EPOLL_CLOEXEC)),
      arrivals_(::epoll_create1(EPOLL_CLOEXEC)) {
  info_ = ranks_.front()->info();
  info_.kind = options_.kind;
  if (!options_.source.empty()) info_.source = options_.source;
  for (size_t rank = 0; rank < count(); ++rank) {
    numbers_.push_back(static_cast<int>(rank));
    ranks_[rank]->keep_stats_in(*this);
    // A rank's descriptor stays readable until its news is taken; wait() is for what arrives.
    epoll_event news = {}, arrival = {};
    news.events = EPOLLIN;
    arrival.events = EPOLLIN | EPOLLET;
    const int descriptor = ranks_[rank]->event_descriptor();
    if (descriptor < 0) continue;
    if (news_ >= 0) (void)::epoll_ctl(news_, EPOLL_CTL_ADD, descriptor, &news);
    if (arrivals_ >= 0) (void)::epoll_ctl(arrivals_, EPOLL_CTL_ADD, descriptor, &arrival);
  }
}

LiveRanks::~LiveRanks() {
  ranks_.clear();
  for (const int descriptor : {news_, arrivals_}) {
    if (descriptor >= 0) ::close(descriptor);
  }
}

void LiveRanks::wait(Clock::time_point deadline) {
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
  const auto most = std::clamp(left, std::chrono::milliseconds(1), kMostWait);
  epoll_event event = {};
  if (arrivals_ < 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  else (void)::epoll_wait(arrivals_, &event, 1, static_cast<int>(most.count()));
}

void LiveRanks::refresh() {
  if (checks_ > 0) return;
  std::vector<size_t> lost;
  for (size_t rank = 0; rank < count(); ++rank) {
    LiveSessionImpl& session = *ranks_[rank];
    Place& place = places_[rank];
    place.state = session.state();
    place.processes = session.processes();
    if (place.state != LiveState::kLost) place.loss_told = false;
    else if (!std::exchange(place.loss_told, true)) lost.push_back(rank);
    if (options_.answer_only && is_active(rank) && !session.detached()) (void)session.detach();
    if (detached_ && !options_.answer_only && is_active(rank) && !session.detached()) detached_ = false;  // another training
  }
  for (const size_t rank : lost) tell_loss(rank);
  std::vector<GraphPtr> graphs;
  for (const auto& session : ranks_) graphs.insert(graphs.end(), session->graphs().begin(), session->graphs().end());
  if (graphs != graphs_) graphs_ = std::move(graphs);
  info_.framework_version = mindspore_version(peer());
  info_.device_target = peer().backend;
}

/// What the loss of a rank means for the others; the session of the rank has said why it is lost.
void LiveRanks::tell_loss(size_t rank) {
  const std::vector<int> left = active();
  if (left.empty()) return;
  report(Severity::kError,
         fmt::format("rank {} is lost after {} completed steps; {} {} left: step and continue run the rest, terminate ends it. A process "
                     "that waits for rank {} in a collective comes back only when that gives up",
                     rank, ranks_[rank]->completed_steps(), ranks_text(left), left.size() == 1 ? "is" : "are", rank));
}

// ---- which ranks are there -------------------------------------------------------------------------------------------

bool LiveRanks::is_active(size_t rank) const {
  const LiveState state = places_[rank].state;
  return state == LiveState::kConnected || state == LiveState::kHeld || state == LiveState::kRunning;
}

bool LiveRanks::is_missing(size_t rank) const {
  if (is_active(rank) || options_.kind == SessionKind::kRecording) return false;
  return std::ranges::any_of(places_, [&](const Place& other) { return other.processes > places_[rank].processes; });
}

std::vector<int> LiveRanks::those(const std::function<bool(size_t)>& is) const {
  std::vector<int> out;
  for (size_t rank = 0; rank < count(); ++rank) {
    if (is(rank)) out.push_back(static_cast<int>(rank));
  }
  return out;
}
std::vector<int> LiveRanks::active() const { return those([this](size_t rank) { return is_active(rank); }); }
std::vector<int> LiveRanks::missing() const { return those([this](size_t rank) { return is_missing(rank); }); }
std::vector<int> LiveRanks::held() const { return those([this](size_t rank) { return is_held(rank); }); }
std::vector<int> LiveRanks::running() const { return those([this](size_t rank) { return is_active(rank) && !is_held(rank); }); }

LiveState LiveRanks::state() {
  refresh();
  if (active().empty()) {
    const auto is = [this](LiveState state) { return std::ranges::any_of(places_, [&](const Place& p) { return p.state == state; }); };
    return is(LiveState::kLost) ? LiveState::kLost : is(LiveState::kEnded) ? LiveState::kEnded : LiveState::kWaiting;
  }
  if (!missing().empty()) return LiveState::kConnected;
  if (!held().empty()) return LiveState::kHeld;
  const bool runs = std::ranges::any_of(places_, [](const Place& p) { return p.state == LiveState::kRunning; });
  return runs ? LiveState::kRunning : LiveState::kConnected;
}

const LivePeer& LiveRanks::peer() const {
  const auto here = active();
  if (!here.empty()) return ranks_[static_cast<size_t>(here.front())]->peer();
  const auto known = std::ranges::find_if(ranks_, [](const auto& session) { return !session->peer().version.empty(); });
  return known == ranks_.end() ? ranks_.front()->peer() : (*known)->peer();
}

std::vector<LiveRank> LiveRanks::live_ranks() {
  refresh();
  std::vector<LiveRank> out;
  for (const auto& session : ranks_) out.push_back(session->live_ranks().front());
  return out;
}

int64_t LiveRanks::current_step() const {
  int64_t step = 0;
  const bool any = !active().empty();
  for (size_t rank = 0; rank < count(); ++rank) {
    if (!any || is_active(rank)) step = std::max(step, ranks_[rank]->current_step());
  }
  return step;
}

int64_t LiveRanks::most_completed() const {
  int64_t most = 0;
  const bool any = !active().empty();
  for (size_t rank = 0; rank < count(); ++rank) {
    if (!any || is_active(rank)) most = std::max(most, ranks_[rank]->completed_steps());
  }
  return most;
}

int64_t LiveRanks::completed_steps() const { return most_completed(); }

std::string LiveRanks::current_node() const {
  const auto stopped = std::ranges::find_if(ranks_, [](const auto& session) { return session->held_within_step(); });
  return stopped == ranks_.end() ? ranks_.front()->current_node() : (*stopped)->current_node();
}

// ---- tensors ---------------------------------------------------------------------------------------------------------

LiveSessionImpl* LiveRanks::of(int rank) const {
  return rank < 0 || static_cast<size_t>(rank) >= count() ? nullptr : ranks_[static_cast<size_t>(rank)].get();
}

std::vector<int64_t> LiveRanks::steps() const {
  std::set<int64_t> steps;
  for (const auto& session : ranks_) {
    for (const int64_t step : session->steps()) steps.insert(step);
  }
  return {steps.begin(), steps.end()};
}

std::vector<int64_t> LiveRanks::steps(int rank, int graph) const {
  const LiveSessionImpl* session = of(rank);
  return session == nullptr ? std::vector<int64_t>() : session->steps(rank, graph);
}

std::vector<TensorId> LiveRanks::tensors(const TensorQuery& query) {
  refresh();
  std::vector<TensorId> out;
  for (size_t rank = 0; rank < count(); ++rank) {
    if (!query.ranks.contains(static_cast<int64_t>(rank))) continue;
    const std::vector<TensorId> own = ranks_[rank]->tensors(query);
    out.insert(out.end(), own.begin(), own.end());
  }
  return out;
}

uint32_t LiveRanks::executions(int rank, int graph, int64_t step, NodeId node) {
  LiveSessionImpl* session = of(rank);
  return session == nullptr ? 0 : session->executions(rank, graph, step, node);
}

Result<OpenTensor> LiveRanks::open(const TensorId& id) {
  if (LiveSessionImpl* session = of(id.rank)) return session->open(id);
  return no_rank(id.rank, count());
}

Result<TensorInfo> LiveRanks::describe(const TensorId& id) {
  if (LiveSessionImpl* session = of(id.rank)) return session->describe(id);
  return no_rank(id.rank, count());
}

std::optional<Stats> LiveRanks::given_statistics(const TensorId& id) {
  LiveSessionImpl* session = of(id.rank);
  return session == nullptr ? std::nullopt : session->given_statistics(id);
}

bool LiveRanks::may_have_changed(const TensorId& parameter) const {
  const LiveSessionImpl* session = of(parameter.rank);
  return session != nullptr && session->may_have_changed(parameter);
}

bool LiveRanks::yet_to_run(const TensorId& id) const {
  const LiveSessionImpl* session = of(id.rank);
  return session != nullptr && session->yet_to_run(id);
}

bool LiveRanks::at_step_begin(int rank, int64_t step) const {
  const LiveSessionImpl* session = of(rank);
  return session != nullptr && session->at_step_begin(rank, step);
}

Result<TensorId> LiveRanks::previous(const TensorId& id, bool* history_missing) {
  if (LiveSessionImpl* session = of(id.rank)) return session->previous(id, history_missing);
  return no_rank(id.rank, count());
}

Result<bool> LiveRanks::operator_overflow(const TensorId& id) {
  if (LiveSessionImpl* session = of(id.rank)) return session->operator_overflow(id);
  return no_rank(id.rank, count());
}

SessionReport LiveRanks::inspect() {
  SessionReport out;
  std::set<std::string> told;  // what all ranks share
  for (const auto& session : ranks_) {
    SessionReport own = session->inspect();
    for (auto& [graph, steps] : own.steps_by_graph) {
      std::vector<int64_t>& all = out.steps_by_graph[graph];
      all.insert(all.end(), steps.begin(), steps.end());
      std::ranges::sort(all);
      all.erase(std::unique(all.begin(), all.end()), all.end());
    }
    for (Problem& problem : own.problems) {
      if (told.insert(problem.message).second) out.problems.push_back(std::move(problem));
    }
  }
  return out;
}

void LiveRanks::check_begins(std::vector<TensorId> reads) {
  ++checks_;
  std::vector<std::vector<TensorId>> own(count());
  for (const TensorId& id : reads) {
    if (of(id.rank) != nullptr) own[static_cast<size_t>(id.rank)].push_back(id);
  }
  for (size_t rank = 0; rank < count(); ++rank) ranks_[rank]->check_begins(std::move(own[rank]));
}

void LiveRanks::check_ends() {
  for (const auto& session : ranks_) session->check_ends();
  --checks_;
}

LiveHistory LiveRanks::history() {
  refresh();
  const auto here = active();
  return ranks_[here.empty() ? 0 : static_cast<size_t>(here.front())]->history();
}

Result<bool> LiveRanks::keep_readable(const TensorId& id) {
  if (LiveSessionImpl* session = of(id.rank)) return session->keep_readable(id);
  return no_rank(id.rank, count());
}

void LiveRanks::drop_elements(const TensorId& id) {
  if (LiveSessionImpl* session = of(id.rank)) session->drop_elements(id);
}

std::vector<LiveEvent> LiveRanks::take_events() {
  refresh();
  std::vector<LiveEvent> out;
  for (const auto& session : ranks_) std::ranges::move(session->take_events(), std::back_inserter(out));
  std::ranges::move(std::exchange(events_, {}), std::back_inserter(out));
  return out;
}

Status LiveRanks::set_watchpoints(std::span<const Watchpoint> watchpoints) {
  refresh();
  std::vector<Watchpoint> each(watchpoints.begin(), watchpoints.end());
  for (Watchpoint& watch : each) {
    if (watch.enabled && !watch.optional) {
      if (auto found = resolve_or_explain(watch.on, graphs_); !found) return found.status();
    }
    watch.optional = true;  // a rank may have none of the nodes
  }
  for (size_t rank = 0; rank < count(); ++rank) {
    if (Status status = ranks_[rank]->set_watchpoints(each); !status.ok())
      return {status.code(), fmt::format("rank {}: {}", rank, status.message())};
  }
  return {};
}

}  // namespace msdbg::live
