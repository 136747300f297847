#include "analysis/collectives.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <deque>
#include <ranges>
#include <set>
#include <tuple>

namespace msdbg {
namespace {

/// The integers of a printed value, such as `(0, 2)`.
std::vector<int64_t> numbers_in(std::string_view text) {
  std::vector<int64_t> out;
  constexpr std::string_view kDigits = "0123456789";
  for (size_t at = text.find_first_of(kDigits); at != std::string_view::npos; at = text.find_first_of(kDigits, at)) {
    const size_t end = std::min(text.find_first_not_of(kDigits, at), text.size());
    if (const auto number = parse_int(text.substr(at, end - at))) out.push_back(*number);
    at = end;
  }
  return out;
}

std::optional<int64_t> number_attribute(const Node& node, std::string_view name) {
  const std::string* const text = collective_attribute(node, name);
  if (text == nullptr) return std::nullopt;
  const std::vector<int64_t> numbers = numbers_in(*text);
  return numbers.size() == 1 ? std::optional(numbers.front()) : std::nullopt;
}

/// The ranks of the group, where the operator lists them.
std::vector<int64_t> listed_ranks(const Node& node) {
  for (const std::string_view name : {"rank_list", "group_rank_ids", "group_ranks"}) {
    if (const std::string* const text = collective_attribute(node, name)) return numbers_in(*text);
  }
  return {};
}

/// How many ranks the group has; 0 if unknown. Groups that MindSpore made itself are called `SIZE-HASH`.
size_t group_size(const Node& node, const std::string& group) {
  for (const std::string_view name : {"rank_size", "group_size"}) {
    if (const auto size = number_attribute(node, name); size && *size > 0) return static_cast<size_t>(*size);
  }
  constexpr size_t kShortestHash = 6;
  const size_t dash = group.find('-');
  if (dash == std::string::npos || group.find_first_not_of("0123456789-") != std::string::npos) return 0;
  if (group.find('-', dash + 1) != std::string::npos || group.size() - dash - 1 < kShortestHash) return 0;
  const auto size = parse_int(group.substr(0, dash));
  return size && *size > 0 ? static_cast<size_t>(*size) : 0;
}

bool is_pair(CollectiveKind kind) { return kind == CollectiveKind::kSend || kind == CollectiveKind::kReceive; }

bool from_one_rank(CollectiveKind kind) { return kind == CollectiveKind::kBroadcast || kind == CollectiveKind::kScatter; }

/// One call of one rank.
struct Call {
  NodeRef ref;
  CollectiveKind kind;
  uint32_t place = 0;  ///< among the calls of its kind and group in this graph
  bool met = false;    ///< Send and Receive: the other side was found

  const Node& node() const { return ref.graph->node(ref.node); }
  int rank() const { return ref.graph->rank(); }
};
using Calls = std::vector<Call*>;

/// What is known about the ranks of a group.
struct Group {
  std::string name;              ///< "" if the graph does not name it
  std::vector<int64_t> listed;   ///< by the operators
  size_t size = 0;               ///< 0 if unknown
  std::vector<int> seen;         ///< ranks whose graphs name it, ascending
  std::deque<Call> calls;

  bool world() const { return is_world_group(name); }
  /// The rank at a place in the group; nullopt if the graphs do not tell.
  std::optional<int> at(int64_t index) const {
    if (index < 0) return std::nullopt;
    const auto place = static_cast<size_t>(index);
    if (!listed.empty()) return place < listed.size() ? std::optional(static_cast<int>(listed[place])) : std::nullopt;
    if (world()) return static_cast<int>(index);
    return place < seen.size() && (size == 0 || size == seen.size()) ? std::optional(seen[place]) : std::nullopt;
  }
};

bool each_name_once(const Calls& calls) {
  std::set<std::pair<int, std::string_view>> names;
  return std::ranges::all_of(calls, [&](const Call* call) { return names.insert({call->rank(), call->node().name}).second; });
}

/// How the calls of a group match.
enum class Match : uint8_t { kByName, kByOrder };
struct Matching {
  Match how = Match::kByOrder;
  bool assumed = false;  ///< not all ranks have the same number of calls
};

Matching matching_of(const Calls& calls) {
  std::map<int, size_t> counts;
  std::map<std::string_view, size_t> names;
  for (const Call* call : calls) {
    ++counts[call->rank()];
    ++names[call->node().name];
  }
  const bool once = each_name_once(calls);
  const auto on_all = static_cast<size_t>(std::ranges::count_if(names, [&](const auto& entry) { return entry.second == counts.size(); }));
  if (once && on_all == names.size()) return {Match::kByName, false};
  const auto [least, most] = std::ranges::minmax(counts | std::views::values);
  if (least == most) return {Match::kByOrder, false};
  return {once && 2 * on_all >= least ? Match::kByName : Match::kByOrder, true};
}

}  // namespace

class Collectives::Matcher {
 public:
  Matcher(std::span<const GraphPtr> graphs, Collectives& into) : into_(into) {
    for (const GraphPtr& graph : graphs) {
      add_calls(*graph);
      highest_ = std::max(highest_, graph->rank());
    }
    for (auto& [key, group] : groups_) {
      std::ranges::sort(group.seen);
      group.seen.erase(std::unique(group.seen.begin(), group.seen.end()), group.seen.end());
      match(group);
    }
  }

 private:
  void add_calls(const Graph& graph) {
    std::map<std::pair<std::string, CollectiveKind>, uint32_t> places;
    for (const NodeId id : graph.execution_order()) {
      const Node& node = graph.node(id);
      const auto kind = collective_kind(node);
      if (!kind) continue;
      std::string name = collective_group(node);
      const bool world = is_world_group(name);
      const std::vector<int64_t> listed = world ? std::vector<int64_t>() : listed_ranks(node);
      // Groups of the same name may have other ranks on other ranks.
      Group& group = groups_[{world ? "the world" : name, listed}];
      if (group.name.empty()) group.name = name;
      group.listed = listed;
      if (group.size == 0) group.size = group_size(node, name);
      group.seen.push_back(graph.rank());
      const uint32_t place = places[{group.name, *kind}]++;
      group.calls.push_back({{&graph, id}, *kind, place});
    }
  }

  void match(Group& group) {
    std::map<std::pair<int, CollectiveKind>, Calls> channels;  // by graph
    Calls pairs;
    for (Call& call : group.calls) {
      if (is_pair(call.kind)) pairs.push_back(&call);
      else channels[{call.ref.graph->id(), call.kind}].push_back(&call);
    }
    std::map<CollectiveKind, Calls> elsewhere;  // of graphs whose number no other rank has
    for (const auto& [key, calls] : channels) {
      const bool alone = std::ranges::all_of(calls, [&](const Call* call) { return call->rank() == calls.front()->rank(); });
      if (!alone) join(group, key.second, calls);
      else elsewhere[key.second].insert(elsewhere[key.second].end(), calls.begin(), calls.end());
    }
    for (const auto& [kind, calls] : elsewhere) join(group, kind, calls);
    join_pairs(group, pairs);
  }

  void join(const Group& group, CollectiveKind kind, const Calls& calls) {
    const Matching matching = matching_of(calls);
    std::map<std::pair<std::string_view, uint32_t>, std::map<int, NodeRef>> met;
    for (const Call* call : calls) {
      const bool by_name = matching.how == Match::kByName;
      met[by_name ? std::pair(std::string_view(call->node().name), 0U) : std::pair(std::string_view(), call->place)].try_emplace(
          call->rank(), call->ref);
    }
    for (auto& [key, members] : met) {
      if (!group.listed.empty()) std::erase_if(members, [&](const auto& entry) { return !std::ranges::count(group.listed, entry.first); });
      if (members.size() < 2) continue;
      Exchange exchange;
      exchange.kind = kind;
      exchange.assumed = group.name.empty() || matching.assumed || (group.size > 0 && members.size() > group.size);
      for (const auto& [rank, ref] : members) exchange.members.push_back(ref);
      add_sources(group, exchange);
      add(group, std::move(exchange));
    }
  }

  /// The rank whose values a call gives to all.
  static std::optional<int> root_of(const Group& group, const Node& call) {
    if (call.role == CallRole::kNone) {
      const auto place = number_attribute(call, "root_rank");
      return place ? group.at(*place) : std::nullopt;
    }
    const auto root = other_end(call, false);
    if (!root) return std::nullopt;
    return root->in_group.value_or(false) ? group.at(root->number) : std::optional(static_cast<int>(root->number));
  }

  void add_sources(const Group& group, Exchange& exchange) const {
    const NodeRef& first = exchange.members.front();
    const auto has = [&](int rank) {
      return std::ranges::any_of(exchange.members, [&](const NodeRef& ref) { return ref.graph->rank() == rank; });
    };
    if (from_one_rank(exchange.kind)) {
      if (const auto root = root_of(group, first.graph->node(first.node))) {
        std::ranges::copy_if(exchange.members, std::back_inserter(exchange.sources),
                             [&](const NodeRef& ref) { return ref.graph->rank() == *root; });
        if (!has(*root)) exchange.missing = {*root};
        return;
      }
      exchange.assumed = true;
    }
    exchange.sources = exchange.members;
    if (!group.listed.empty()) {
      for (const int64_t rank : group.listed) {
        if (!has(static_cast<int>(rank))) exchange.missing.push_back(static_cast<int>(rank));
      }
    } else if (group.world()) {
      for (int rank = 0; rank <= highest_; ++rank) {
        if (!has(rank)) exchange.missing.push_back(rank);
      }
    }
    if (group.size > exchange.members.size() + exchange.missing.size())
      exchange.missing_unnamed = group.size - exchange.members.size() - exchange.missing.size();
  }

  // ---- Send and Receive ----

  /// A rank that a call names: its place in the group, or its number among all ranks.
  struct NamedRank {
    int64_t number = 0;
    std::optional<bool> in_group;  ///< none: the call does not tell
  };
  /// The rank that it sends to or receives from. PyTorch's calls name it second, or by a word.
  static std::optional<NamedRank> other_end(const Node& node, bool sends) {
    const auto named = [&](std::string_view name, std::optional<bool> in_group) -> std::optional<NamedRank> {
      const auto number = number_attribute(node, name);
      return number ? std::optional(NamedRank{*number, in_group}) : std::nullopt;
    };
    if (node.role == CallRole::kNone) return named(sends ? "dest_rank" : "src_rank", std::nullopt);
    for (const auto& [name, in_group] : {std::pair(sends ? "group_dst" : "group_src", true), {sends ? "dst" : "src", false}, {"input_args.1", false}}) {
      if (const auto found = named(name, in_group)) return found;
    }
    return std::nullopt;
  }
  /// The ranks that this call names with its own: from, to.
  static std::optional<std::pair<int, int>> ends_of(const Group& group, const Call& call, bool in_group) {
    const bool sends = call.kind == CollectiveKind::kSend;
    const auto end = other_end(call.node(), sends);
    if (!end) return std::nullopt;
    const std::optional<int> other = end->in_group.value_or(in_group) ? group.at(end->number) : std::optional(static_cast<int>(end->number));
    if (!other) return std::nullopt;
    return sends ? std::pair(call.rank(), *other) : std::pair(*other, call.rank());
  }
  static int64_t tag_of(const Call& call) {
    const auto tag = number_attribute(call.node(), "sr_tag");
    return (tag ? tag : number_attribute(call.node(), "tag")).value_or(0);
  }

  /// First by the ranks that both sides name, as places in the group or as numbers of ranks; then by tag, steps and order.
  void join_pairs(const Group& group, const Calls& calls) {
    for (const bool in_group : {true, false}) {
      for (const bool same_steps : {true, false}) join_channels(group, calls, in_group, same_steps);
    }
    for (Call* send : calls) {
      if (send->met || send->kind != CollectiveKind::kSend) continue;
      Calls possible;
      for (Call* call : calls) {
        const bool fits =
            call->kind == CollectiveKind::kReceive && !call->met && call->rank() != send->rank() && tag_of(*call) == tag_of(*send);
        // What both sides name was compared above.
        const bool named = other_end(send->node(), true) && other_end(call->node(), false);
        if (fits && !named) possible.push_back(call);
      }
      if (!possible.empty()) add_pair(group, *send, *possible.front(), possible.size() > 1);
    }
  }

  /// `same_steps`: only channels with as many calls on both sides that ran in the same steps.
  void join_channels(const Group& group, const Calls& calls, bool in_group, bool same_steps) {
    std::map<std::tuple<std::pair<int, int>, int64_t, uint64_t>, std::array<Calls, 2>> channels;
    for (Call* call : calls) {
      const auto ends = call->met ? std::nullopt : ends_of(group, *call, in_group);
      const uint64_t steps = same_steps ? call->ref.graph->call_links(call->ref.node).in_steps : 0;
      if (ends) channels[{*ends, tag_of(*call), steps}][call->kind == CollectiveKind::kSend ? 0 : 1].push_back(call);
    }
    for (auto& [key, sides] : channels) {
      const auto& [sends, receives] = sides;
      if (same_steps && sends.size() != receives.size()) continue;
      for (size_t i = 0; i < std::min(sends.size(), receives.size()); ++i) add_pair(group, *sends[i], *receives[i], false);
    }
  }

  void add_pair(const Group& group, Call& send, Call& receive, bool assumed) {
    send.met = receive.met = true;
    Exchange exchange;
    exchange.kind = CollectiveKind::kSend;
    exchange.assumed = assumed;
    exchange.members = {send.ref, receive.ref};
    std::ranges::sort(exchange.members, {}, [](const NodeRef& ref) { return ref.graph->rank(); });
    exchange.sources = {send.ref};
    add(group, std::move(exchange));
  }

  void add(const Group& group, Exchange exchange) {
    exchange.group = group.name;
    for (const NodeRef& ref : exchange.members) into_.place_[{ref.graph, ref.node}] = into_.exchanges_.size();
    into_.exchanges_.push_back(std::move(exchange));
  }

  Collectives& into_;
  std::map<std::pair<std::string, std::vector<int64_t>>, Group> groups_;
  int highest_ = 0;
};

Collectives::Collectives(std::span<const GraphPtr> graphs) { Matcher(graphs, *this); }

const Exchange* Collectives::find(const Graph& graph, NodeId node) const {
  const auto at = place_.find({&graph, node});
  return at == place_.end() ? nullptr : &exchanges_[at->second];
}

std::vector<NodeRef> Collectives::sources(const Graph& graph, NodeId node) const {
  const Exchange* const exchange = find(graph, node);
  if (exchange == nullptr) return {};
  // A Send gets nothing from the other side.
  if (collective_kind(graph.node(node)) == CollectiveKind::kSend) return {};
  std::vector<NodeRef> out = exchange->sources;
  std::erase_if(out, [&](const NodeRef& ref) { return ref.graph == &graph; });
  return out;
}

std::vector<NodeRef> Collectives::receivers(const Graph& graph, NodeId node) const {
  const Exchange* const exchange = find(graph, node);
  if (exchange == nullptr || std::ranges::find(exchange->sources, NodeRef{&graph, node}) == exchange->sources.end()) return {};
  std::vector<NodeRef> out = exchange->members;
  std::erase_if(out, [&](const NodeRef& ref) { return ref.graph == &graph; });
  return out;
}

std::string Collectives::unknown_sources(const Graph& graph, NodeId node) const {
  const auto kind = collective_kind(graph.node(node));
  if (!kind || kind == CollectiveKind::kSend) return "";
  const Exchange* const exchange = find(graph, node);
  if (exchange == nullptr) return "the other ranks that take part in it are not in this session";
  if (exchange->missing.empty() && exchange->missing_unnamed == 0) return "";
  const std::vector<int64_t> missing(exchange->missing.begin(), exchange->missing.end());
  const size_t more = exchange->missing_unnamed;
  std::string who = missing.empty() ? "" : fmt::format("{} {}", missing.size() == 1 ? "rank" : "ranks", numbers_text(missing));
  if (more > 0) who += fmt::format("{}{} more {}", who.empty() ? "" : " and ", more, more == 1 ? "rank" : "ranks");
  const bool one = missing.size() + more == 1;
  return fmt::format("{} {} part in it and {} no such call in this session", who, one ? "takes" : "take", one ? "has" : "have");
}

}  // namespace msdbg
