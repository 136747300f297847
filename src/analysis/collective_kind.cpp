// Collective operators by their type and attributes.
#include <algorithm>
#include <array>

#include "analysis/collectives.h"
#include "msdbg/analysis.h"

namespace msdbg {
namespace {

struct Spelling {
  std::string_view op;  ///< lower case
  CollectiveKind kind;
};
constexpr std::array<Spelling, 49> kSpellings = {{
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
    // PyTorch's, without their underscores.
    {"allreducecoalesced", CollectiveKind::kAllReduce},
    {"allgatherbase", CollectiveKind::kAllGather},
    {"allgatherintotensor", CollectiveKind::kAllGather},
    {"allgatherintotensorcoalesced", CollectiveKind::kAllGather},
    {"allgathercoalesced", CollectiveKind::kAllGather},
    {"alltoallbase", CollectiveKind::kAllToAll},
    {"alltoallsingle", CollectiveKind::kAllToAll},
    {"gatherintotensor", CollectiveKind::kGather},
    {"recvanysource", CollectiveKind::kReceive},
    {"reducescatterbase", CollectiveKind::kReduceScatter},
    {"reducescattertensor", CollectiveKind::kReduceScatter},
    {"reducescattertensorcoalesced", CollectiveKind::kReduceScatter},
    {"gather", CollectiveKind::kGather},
    {"scatter", CollectiveKind::kScatter},
    {"isend", CollectiveKind::kSend},
    {"recv", CollectiveKind::kReceive},
    {"irecv", CollectiveKind::kReceive},
}};

/// PyTorch's group of all ranks has no name: a call that names none means it.
constexpr std::string_view kDefaultGroup = "WORLD";
constexpr std::array<std::string_view, 5> kWorldGroups = {"hccl_world_group", "mccl_world_group", "nccl_world_group", "lccl_world_group",
                                                          kDefaultGroup};

bool is_distributed_call(const Node& node) { return node.name.starts_with("Distributed.") || node.name.starts_with("MintDistributed."); }

}  // namespace

const std::string* collective_attribute(const Node& node, std::string_view name) {
  for (const Attribute& each : node.attributes) {
    if (each.name == name) return &each.value.get();
  }
  return nullptr;
}

std::optional<CollectiveKind> collective_kind(const Node& node) {
  if (node.kind != NodeKind::kOperator) return std::nullopt;
  std::string op = to_lower(node.op);
  const bool recorded = node.role != CallRole::kNone;
  // An optimizer that shards its state gathers what it has updated.
  const bool may_be = node.role == CallRole::kForward || node.role == CallRole::kOptimizer;
  if (recorded && !(may_be && is_distributed_call(node))) return std::nullopt;
  std::erase(op, '_');
  const auto found = std::ranges::find(kSpellings, op, &Spelling::op);
  if (found == kSpellings.end()) return std::nullopt;
  if (recorded) return found->kind;
  // Operators of other meaning share these names: a collective names its group.
  const bool shared = op == "reduce" || op == "send" || op == "receive" || op == "broadcast" || op == "gather" || op == "scatter" ||
                      op == "isend" || op == "irecv" || op == "recv" || op == "recvanysource";
  if (shared && collective_attribute(node, "group") == nullptr && collective_attribute(node, "sr_tag") == nullptr) return std::nullopt;
  return found->kind;
}

bool gives_all_the_same(CollectiveKind kind) {
  return kind == CollectiveKind::kAllReduce || kind == CollectiveKind::kAllGather || kind == CollectiveKind::kBroadcast;
}

bool is_asynchronous(const Node& node) {
  const auto asks = [](const Attribute& each) { return each.name == "async_op" && to_lower(each.value) == "true"; };
  return node.role != CallRole::kNone && std::ranges::any_of(node.attributes, asks);
}

std::string collective_group(const Node& node) {
  const std::string* const text = collective_attribute(node, "group");
  if (text == nullptr) return node.role == CallRole::kNone ? "" : std::string(kDefaultGroup);
  std::string_view group = trim(*text);
  if (group.size() >= 2 && group.front() == '"' && group.back() == '"') group = group.substr(1, group.size() - 2);
  if (node.role != CallRole::kNone && (group == "None" || group == "null")) group = kDefaultGroup;
  return std::string(group);
}

bool is_world_group(std::string_view group) { return std::ranges::find(kWorldGroups, group) != kWorldGroups.end(); }

std::string_view collective_kind_name(CollectiveKind kind) {
  constexpr std::string_view kNames[] = {"AllReduce", "AllGather", "ReduceScatter", "AllToAll", "Broadcast",
                                         "Reduce",    "Gather",    "Scatter",       "Send",     "Receive"};
  return kNames[static_cast<size_t>(kind)];
}

bool gives_to_others(const Node& node) {
  const std::optional<CollectiveKind> kind = collective_kind(node);
  constexpr std::array kGiving = {CollectiveKind::kReduceScatter, CollectiveKind::kAllToAll, CollectiveKind::kReduce,
                                  CollectiveKind::kGather,        CollectiveKind::kScatter,  CollectiveKind::kSend};
  return kind && std::ranges::find(kGiving, *kind) != kGiving.end();
}

std::string group_text(std::string_view group, bool assumed) {
  if (group.empty()) return assumed ? "all ranks, assumed" : "";
  return std::string(group) + (assumed ? ", ranks assumed" : "");
}

std::string unseen_ranks(const Session& session, const Origin& origin) {
  if (origin.kind != OriginKind::kOperator || origin.certain || !collective_kind(session.node(origin.tensor))) return "";
  std::string reason;
  for (const OriginInput& input : origin.inputs) {
    if (input.state == InputState::kGood) continue;
    // An unknown input of this rank may have brought it as well.
    const bool of_this_rank = !input.rank && (input.producer.node != kNoNode || !input.producer.name.empty());
    if (of_this_rank || input.state == InputState::kBad) return "";
    if (reason.empty()) reason = input.reason;
  }
  return reason;
}

}  // namespace msdbg
