#include "analysis/collectives.h"

#include <algorithm>
#include <array>
#include <set>
#include <tuple>

namespace msdbg {
namespace {

struct Spelling {
  std::string_view op;  ///< lower case
  CollectiveKind kind;
};
constexpr std::array<Spelling, 32> kSpellings = {{
    {"allreduce", CollectiveKind::kAllReduce},
    {"distcommallreduce", CollectiveKind::kAllReduce},
    {"innercommallreduce", CollectiveKind::kAllReduce},
    {"allgather", CollectiveKind::kAllGather},
    {"allgatherv", CollectiveKind::kAllGather},
    {"distcommallgather", CollectiveKind::kAllGather},
    {"distcommallgatherintotensor", CollectiveKind::kAllGather},
    {"innercommallgather", CollectiveKind::kAllGather},
    {"allswap", CollectiveKind::kAllToAll},
    {"alltoall", CollectiveKind::kAllToAll},
    {"alltoallv", CollectiveKind::kAllToAll},
    {"alltoallvc", CollectiveKind::kAllToAll},
    {"distcommalltoallv", CollectiveKind::kAllToAll},
    {"distcommalltoallvsingle", CollectiveKind::kAllToAll},
    {"innercommalltoallv", CollectiveKind::kAllToAll},
    {"neighborexchange", CollectiveKind::kAllToAll},
    {"neighborexchangev2", CollectiveKind::kAllToAll},
    {"reducescatter", CollectiveKind::kReduceScatter},
    {"reducescatterv", CollectiveKind::kReduceScatter},
    {"distcommreducescatter", CollectiveKind::kReduceScatter},
    {"innercommreducescatter", CollectiveKind::kReduceScatter},
    {"broadcast", CollectiveKind::kBroadcast},
    {"distcommbroadcast", CollectiveKind::kBroadcast},
    {"reduce", CollectiveKind::kReduce},
    {"collectivegather", CollectiveKind::kGather},
    {"collectivescatter", CollectiveKind::kScatter},
    {"send", CollectiveKind::kSend},
    {"innercommisend", CollectiveKind::kSend},
    {"distcommisend", CollectiveKind::kSend},
    {"receive", CollectiveKind::kReceive},
    {"innercommirecv", CollectiveKind::kReceive},
    {"distcommirecv", CollectiveKind::kReceive},
}};

constexpr std::array<std::string_view, 4> kWorldGroups = {"hccl_world_group", "mccl_world_group", "nccl_world_group", "lccl_world_group"};

const std::string* attribute(const Node& node, std::string_view name) {
  for (const Attribute& each : node.attributes) {
    if (each.name == name) return &each.value;
  }
  return nullptr;
}

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
  const std::string* const text = attribute(node, name);
  if (text == nullptr) return std::nullopt;
  const std::vector<int64_t> numbers = numbers_in(*text);
  return numbers.size() == 1 ? std::optional(numbers.front()) : std::nullopt;
}

/// The ranks of the group, where the operator lists them.
std::vector<int64_t> listed_ranks(const Node& node) {
  for (const std::string_view name : {"rank_list", "group_rank_ids", "group_ranks"}) {
    if (const std::string* const text = attribute(node, name)) return numbers_in(*text);
  }
  return {};
}

/// One call of one rank.
struct Call {
  NodeRef ref;
  CollectiveKind kind;
  uint32_t place = 0;  ///< among the calls of its channel in this graph
};

/// Calls that may meet: those of one group in graphs of one number. Send and Receive meet by their tag.
using Channel = std::tuple<int, std::string, CollectiveKind, int64_t>;

Channel channel_of(const Graph& graph, const Node& node, CollectiveKind kind) {
  std::string group = collective_group(node);
  if (is_world_group(group)) group = kWorldGroups.front();
  const bool pair = kind == CollectiveKind::kSend || kind == CollectiveKind::kReceive;
  const int64_t tag = pair ? number_attribute(node, "sr_tag").value_or(0) : 0;
  return {graph.id(), std::move(group), pair ? CollectiveKind::kSend : kind, tag};
}

/// True if every rank has each name once.
bool names_agree(const std::vector<Call>& calls) {
  std::map<std::string_view, std::set<int>> ranks;
  std::set<int> all;
  for (const Call& call : calls) {
    if (!ranks[call.ref.graph->node(call.ref.node).name].insert(call.ref.graph->rank()).second) return false;
    all.insert(call.ref.graph->rank());
  }
  return std::ranges::all_of(ranks, [&](const auto& entry) { return entry.second.size() == all.size(); });
}

std::vector<NodeRef> sources_of(CollectiveKind kind, const std::vector<NodeRef>& members) {
  if (kind == CollectiveKind::kSend) {
    std::vector<NodeRef> out;
    for (const NodeRef& ref : members) {
      if (collective_kind(ref.graph->node(ref.node)) == CollectiveKind::kSend) out.push_back(ref);
    }
    return out;
  }
  if (kind != CollectiveKind::kBroadcast && kind != CollectiveKind::kScatter) return members;
  // The root is counted in the group.
  const auto root = number_attribute(members.front().graph->node(members.front().node), "root_rank");
  return root && *root >= 0 && static_cast<size_t>(*root) < members.size() ? std::vector{members[static_cast<size_t>(*root)]} : members;
}

}  // namespace

std::optional<CollectiveKind> collective_kind(const Node& node) {
  if (node.kind != NodeKind::kOperator) return std::nullopt;
  const std::string op = to_lower(node.op);
  const auto found = std::ranges::find(kSpellings, op, &Spelling::op);
  if (found == kSpellings.end()) return std::nullopt;
  // Operators of other meaning share these names: a collective names its group.
  const bool shared = op == "reduce" || op == "send" || op == "receive" || op == "broadcast";
  if (shared && attribute(node, "group") == nullptr && attribute(node, "sr_tag") == nullptr) return std::nullopt;
  return found->kind;
}

bool gives_all_the_same(CollectiveKind kind) {
  return kind == CollectiveKind::kAllReduce || kind == CollectiveKind::kAllGather || kind == CollectiveKind::kBroadcast;
}

std::string collective_group(const Node& node) {
  const std::string* const text = attribute(node, "group");
  if (text == nullptr) return "";
  std::string_view group = trim(*text);
  if (group.size() >= 2 && group.front() == '"' && group.back() == '"') group = group.substr(1, group.size() - 2);
  return std::string(group);
}

bool is_world_group(std::string_view group) { return std::ranges::find(kWorldGroups, group) != kWorldGroups.end(); }

Collectives::Collectives(std::span<const GraphPtr> graphs) {
  std::map<Channel, std::vector<Call>> channels;
  for (const GraphPtr& graph : graphs) {
    std::map<std::pair<Channel, CollectiveKind>, uint32_t> places;
    for (const NodeId id : graph->execution_order()) {
      const Node& node = graph->node(id);
      const auto kind = collective_kind(node);
      if (!kind) continue;
      const Channel channel = channel_of(*graph, node, *kind);
      channels[channel].push_back({{graph.get(), id}, *kind, places[{channel, *kind}]++});
    }
  }
  for (const auto& [channel, calls] : channels) {
    const auto& [graph_id, group, kind, tag] = channel;
    const bool by_name = kind != CollectiveKind::kSend && names_agree(calls);
    std::map<std::pair<std::string_view, uint32_t>, std::vector<NodeRef>> met;
    for (const Call& call : calls) {
      const Node& node = call.ref.graph->node(call.ref.node);
      met[by_name ? std::pair(std::string_view(node.name), 0u) : std::pair(std::string_view(), call.place)].push_back(call.ref);
    }
    for (auto& [key, members] : met) {
      const std::vector<int64_t> listed = listed_ranks(members.front().graph->node(members.front().node));
      if (!listed.empty()) {
        std::erase_if(members, [&](const NodeRef& ref) { return std::ranges::find(listed, ref.graph->rank()) == listed.end(); });
      }
      if (members.size() < 2) continue;
      const bool pair = kind == CollectiveKind::kSend;
      if (pair && sources_of(kind, members).size() == members.size()) continue;
      std::ranges::stable_sort(members, {}, [](const NodeRef& ref) { return ref.graph->rank(); });
      for (const NodeRef& ref : members) place_[{ref.graph, ref.node}] = exchanges_.size();
      std::vector<NodeRef> from = sources_of(kind, members);
      exchanges_.push_back({kind, is_world_group(group) ? collective_group(members.front().graph->node(members.front().node)) : group,
                            group.empty() && !pair, std::move(members), std::move(from)});
    }
  }
}

const Exchange* Collectives::find(const Graph& graph, NodeId node) const {
  const auto at = place_.find({&graph, node});
  return at == place_.end() ? nullptr : &exchanges_[at->second];
}

std::vector<NodeRef> Collectives::sources(const Graph& graph, NodeId node) const {
  const Exchange* const exchange = find(graph, node);
  if (exchange == nullptr) return {};
  std::vector<NodeRef> out = exchange->sources;
  std::erase_if(out, [&](const NodeRef& ref) { return ref.graph == &graph; });
  // A Send gets nothing from the other side.
  if (collective_kind(graph.node(node)) == CollectiveKind::kSend) out.clear();
  return out;
}

std::vector<NodeRef> Collectives::receivers(const Graph& graph, NodeId node) const {
  const Exchange* const exchange = find(graph, node);
  if (exchange == nullptr || std::ranges::find(exchange->sources, NodeRef{&graph, node}) == exchange->sources.end()) return {};
  std::vector<NodeRef> out = exchange->members;
  std::erase_if(out, [&](const NodeRef& ref) { return ref.graph == &graph; });
  return out;
}

}  // namespace msdbg
