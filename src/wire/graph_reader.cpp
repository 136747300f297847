#include "wire/graph_reader.h"

#include <fmt/format.h>
#include <google/protobuf/descriptor.h>

#include <algorithm>
#include <numeric>

#include "msdbg/node_names.h"
#include "msdbg/wire.h"
#include "msdbg/wire_fields.h"

namespace msdbg {
namespace {

constexpr size_t kMaxNodes = 4'000'000;    // the largest real graphs have a few hundred thousand
constexpr int64_t kMaxTupleIndex = 65536;  // the largest number of outputs that a type may have
constexpr int kMaxHops = 64;               // for nested tuples
// Limits on the contents of a message relative to its size. No writer comes near them: a node takes more than a hundred bytes, an
// input, an attribute or an output more than five.
constexpr uint64_t kBytesPerNode = 16, kFreeNodes = 1000;
constexpr uint64_t kBytesPerPart = 4, kFreeParts = 4096;
// Fields within one node or constant; each takes about fifty bytes while it is decoded.
constexpr uint64_t kMaxFields = 1'000'000, kManyBytes = 64 << 10;
constexpr int kMaxDepth = 100;  // the limit of protobuf's own decoder

/// Counts the fields of a message and its submessages; may stop slightly above kMaxFields.
uint64_t count_fields(WireReader reader, const google::protobuf::Descriptor& type, int depth = 0) {
  uint64_t count = 0;
  WireField field;
  while (count <= kMaxFields && reader.next(field)) {
    ++count;
    if (field.type != WireType::kBytes || depth > kMaxDepth) continue;
    const google::protobuf::FieldDescriptor* known = type.FindFieldByNumber(static_cast<int>(field.number));
    if (known == nullptr || known->message_type() == nullptr) continue;
    count += count_fields(reader.inside(field), *known->message_type(), depth + 1);
  }
  return count;
}

template <typename Message>
Status decode(Message& message, std::span<const std::byte> bytes, uint64_t offset, std::string_view what) {
  message.Clear();
  if (bytes.size() > kManyBytes && count_fields(WireReader(bytes), *message.GetDescriptor()) > kMaxFields) {
    return {Code::kCorrupt, fmt::format("the {} at byte {} has more than {} fields", what, offset, kMaxFields)};
  }
  if (message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return {};
  return {Code::kCorrupt, fmt::format("the {} at byte {} cannot be decoded", what, offset)};
}

// `Default--data-3` and `Default_data-3` are the writer's forms of `Default/data-3` for file names.
std::string slashed_constant_name(std::string_view stored) {
  std::string name;
  for (size_t at = 0; at < stored.size(); ++at) {
    const bool dashes = stored.substr(at, 2) == "--";
    name += dashes ? '/' : stored[at];
    if (dashes) ++at;
  }
  const size_t data = name.rfind("_data-");
  if (data != std::string::npos && name.find('/') == std::string::npos) name[data] = '/';
  return name;
}

int trailing_number(std::string_view text, int otherwise) {
  size_t begin = text.size();
  while (begin > 0 && text[begin - 1] >= '0' && text[begin - 1] <= '9') --begin;
  const auto value = parse_int(text.substr(begin));
  return value && *value <= INT32_MAX ? static_cast<int>(*value) : otherwise;
}

}  // namespace

void GraphReader::note(std::string text) {
  if (notes_ != nullptr) notes_->push_back(std::move(text));
}

/// False if the graph has more parts than a message of its size can describe; also counts the node.
bool GraphReader::spend(uint64_t parts, const std::string& name) {
  if (parts <= budget_) {
    budget_ -= parts;
    return true;
  }
  if (over_budget_++ == 0) first_over_budget_ = printable(name);
  return false;
}

void GraphReader::note_name(const std::string& name) {
  if (std::ranges::all_of(name, [](unsigned char c) { return c >= ' ' && c < 0x7F; }) || printable(name) == name) return;
  if (odd_names_++ == 0) first_odd_name_ = printable(name);
}

Status GraphReader::add(std::span<const std::byte> bytes, uint64_t offset) {
  bytes_ += bytes.size();
  WireReader reader(bytes, offset);
  WireField field;
  while (reader.next(field)) {
    if (field.type != WireType::kBytes) continue;
    const Piece content{reader.bytes(field), field.start};
    const auto text = [&content] {
      return std::string(reinterpret_cast<const char*>(content.bytes.data()), content.bytes.size());
    };
    switch (field.number) {
      case 1:
        // Calls of subgraphs are written as empty messages.
        if (field.size > 0) nodes_.push_back(content);
        break;
      case 2:
        name_ = text();
        break;
      case 3:
        parameters_.push_back(content);
        break;
      case 5:
        constants_.push_back(content);
        break;
      case 6:
        root_name_ = text();
        break;
      default:
        break;
    }
  }
  return reader.status();
}

// Only the debugger flavour has source addresses, root names and full names of constants.
Flavour GraphReader::find_flavour() const {
  if (!root_name_.empty()) return Flavour::kDebugger;
  bool instance_name = false;
  const auto has = [&](const Piece& piece, uint32_t number) {
    WireReader reader(piece.bytes);
    WireField field;
    while (reader.next(field)) {
      if (field.number == number) return true;
      instance_name = instance_name || field.number == 10;
    }
    return false;
  };
  if (std::any_of(nodes_.begin(), nodes_.end(), [&](const Piece& piece) { return has(piece, 9); })) {
    return Flavour::kDebugger;
  }
  return instance_name ? Flavour::kIrpb : Flavour::kDebugger;
}

Status GraphReader::read_parameters(GraphBuilder& builder) {
  debugger::ParameterProto proto;
  for (const Piece& piece : parameters_) {
    if (Status status = decode(proto, piece.bytes, piece.offset, "parameter"); !status.ok()) return status;
    Node node;
    node.kind = NodeKind::kParameter;
    node.name = proto.name();
    node.op = "Parameter";
    if (proto.has_type()) {
      std::vector<uint32_t> widths;
      node.outputs = output_types(proto.type(), flavour_, &widths);
    } else {
      node.outputs = std::vector<OutputType>(1);
    }
    note_name(node.name);
    by_key_.try_emplace(proto.name(), builder.add(std::move(node)));
  }
  return {};
}

Status GraphReader::read_constants(GraphBuilder& builder) {
  debugger::NamedValueProto proto;
  for (const Piece& piece : constants_) {
    if (Status status = decode(proto, piece.bytes, piece.offset, "constant"); !status.ok()) return status;
    Node node;
    node.kind = NodeKind::kConstant;
    node.op = "Const";
    node.name = proto.full_name().empty() ? proto.key() : slashed_constant_name(proto.full_name());
    node.scope = scope_of(node.name);
    node.file_key = node.last_component();
    // Without a value it is a tensor whose elements are only in the dump.
    node.outputs = proto.has_value() ? value_types(proto.value(), flavour_) : std::vector<OutputType>(1);
    if (proto.has_value()) node.constant_value = value_text(proto.value(), flavour_);
    note_name(node.name);
    const bool integer = proto.value().has_int_val() || proto.value().has_uint_val();
    const int64_t value =
        proto.value().has_int_val() ? proto.value().int_val() : static_cast<int64_t>(proto.value().uint_val());
    const NodeId id = builder.add(std::move(node));
    if (integer) integers_[id] = value;
    by_key_.try_emplace(proto.key(), id);
  }
  return {};
}

/// Many nodes have the same type and the same scope.
SharedText GraphReader::shared(std::string_view text) {
  const auto known = texts_.find(text);
  return known != texts_.end() ? known->second : texts_.emplace(std::string(text), SharedText(text)).first->second;
}

void GraphReader::read_operator(const debugger::NodeProto& proto, GraphBuilder& builder) {
  Node node;
  node.op = shared(proto.op_type());
  node.name = proto.full_name();
  node.scope = shared(proto.scope().empty() ? scope_of(node.name) : std::string_view(proto.scope()));
  if (node.name.empty()) {
    node.name = fmt::format("{}{}{}-{}", node.scope, node.scope.empty() ? "" : "/", node.op, proto.name());
  }
  note_name(node.name);
  std::vector<uint32_t> widths;
  if (proto.has_output_type()) {
    node.outputs = output_types(proto.output_type(), flavour_, &widths);
  } else {
    node.outputs = std::vector<OutputType>(1);
  }
  const auto parts = static_cast<uint64_t>(proto.input_size()) + static_cast<uint64_t>(proto.attribute_size());
  if (spend(parts + node.outputs.size(), node.name)) {
    node.inputs.reserve(static_cast<size_t>(proto.input_size()));
    for (const auto& input : proto.input()) {
      // Most producers come before their users.
      const auto known = by_number_.find(input.name());
      if (known != by_number_.end()) node.inputs.push_back({known->second, 0, {}});
      else node.inputs.push_back({kNoNode, 0, input.name()});
    }
    std::vector<Attribute> attributes;
    attributes.reserve(static_cast<size_t>(proto.attribute_size()));
    for (const auto& attribute : proto.attribute()) attributes.push_back({attribute.name(), value_text(attribute.value(), flavour_)});
    node.attributes = std::move(attributes);
  } else if (node.outputs.size() > 1) {
    node.outputs = {node.outputs.front()};
  }
  // Operators of one line of code have the same address.
  const auto [stack, first] = stacks_.try_emplace(proto.source_address());
  if (first) stack->second = parse_source_address(proto.source_address());
  node.stack = stack->second;
  const bool pick = node.op == "TupleGetItem";
  const NodeId id = builder.add(std::move(node));
  if (pick) pick_nodes_.push_back(id);
  if (std::any_of(widths.begin(), widths.end(), [](uint32_t width) { return width != 1; })) {
    widths.push_back(0);
    std::exclusive_scan(widths.begin(), widths.end(), widths.begin(), uint32_t{0});
    offsets_[id] = std::move(widths);
  }
  by_number_.try_emplace(proto.name(), id);
}

Status GraphReader::read_operators(GraphBuilder& builder) {
  debugger::NodeProto proto;
  by_number_.reserve(nodes_.size());
  for (const Piece& piece : nodes_) {
    if (Status status = decode(proto, piece.bytes, piece.offset, "node"); !status.ok()) return status;
    if (!proto.name().empty()) read_operator(proto, builder);
  }
  return {};
}

// Resolves the edges' names to nodes.
void GraphReader::connect(GraphBuilder& builder) {
  size_t unknown = 0;
  std::string first_unknown;
  for (NodeId id = 0; id < builder.size(); ++id) {
    for (Edge& edge : builder.node(id).inputs) {
      if (edge.node != kNoNode) continue;
      if (const auto number = by_number_.find(edge.name); number != by_number_.end()) {
        edge.node = number->second;
      } else if (const auto key = by_key_.find(edge.name); key != by_key_.end()) {
        edge.node = key->second;
      } else if (unknown++ == 0) {
        first_unknown = fmt::format("'{}' of {}", printable(edge.name), printable(builder.node(id).name));
      }
    }
  }
  if (unknown > 0) note(fmt::format("{} inputs name no node of the graph, the first is {}", unknown, first_unknown));
}

// Determines the producer and slot that each TupleGetItem selects.
void GraphReader::resolve_picks(GraphBuilder& builder) {
  std::unordered_map<NodeId, Pick> direct;
  for (const NodeId id : pick_nodes_) {
    const Node& node = builder.node(id);
    if (node.inputs.size() < 2) continue;
    const auto index = integers_.find(node.inputs[1].node);
    const NodeId tuple = node.inputs[0].node;
    if (tuple == kNoNode || index == integers_.end() || index->second < 0 || index->second >= kMaxTupleIndex) continue;
    auto slot = static_cast<uint32_t>(index->second);
    if (const auto offsets = offsets_.find(tuple); offsets != offsets_.end()) {
      // A nested sequence takes as many slots as it has leaves.
      slot = offsets->second[std::min<size_t>(slot, offsets->second.size() - 1)];
    }
    direct[id] = {tuple, slot};
  }
  for (const auto& [id, pick] : direct) {
    Pick at = pick;
    auto further = direct.find(at.tuple);
    for (int hop = 0; hop < kMaxHops && further != direct.end(); ++hop) {
      at = {further->second.tuple, at.slot + further->second.slot};
      further = direct.find(at.tuple);
    }
    picks_[id] = further == direct.end() ? at : Pick{id, 0};  // cyclic selections stay as they are
  }
}

// Redirects edges from a TupleGetItem to the output slot that it selects, and takes missing shapes of sequences from it.
void GraphReader::look_through_tuples(GraphBuilder& builder) {
  resolve_picks(builder);
  for (NodeId id = 0; id < builder.size(); ++id) {
    for (Edge& edge : builder.node(id).inputs) {
      const auto pick = picks_.find(edge.node);
      if (pick == picks_.end()) continue;
      edge.node = pick->second.tuple;
      edge.slot = pick->second.slot;
    }
  }
  std::unordered_map<NodeId, std::vector<OutputType>> completed;
  for (const NodeId id : pick_nodes_) {
    const auto pick = picks_.find(id);
    if (pick == picks_.end()) continue;
    const Pick& from = pick->second;
    Node& node = builder.node(id);
    node.inputs[0].node = from.tuple;
    node.inputs[0].slot = from.slot;
    std::vector<OutputType>& outputs = completed.try_emplace(from.tuple, builder.node(from.tuple).outputs.get()).first->second;
    if (node.outputs.size() != 1 || from.slot >= kMaxTupleIndex) continue;
    // A producer without a type in the file has at least the slots that are used.
    if (from.slot >= outputs.size()) {
      if (outputs.size() > 1 || !spend(from.slot + 1 - outputs.size(), node.name)) continue;
      outputs.resize(from.slot + 1);
    }
    OutputType& slot = outputs[from.slot];
    if (slot.dtype == DType::kUnknown) slot.dtype = node.outputs[0].dtype;
    if (!slot.shape) slot.shape = node.outputs[0].shape;
  }
  for (auto& [id, outputs] : completed) builder.set_outputs(id, std::move(outputs));
}

Result<GraphBuilder> GraphReader::finish() {
  if (name_.empty() && nodes_.empty() && parameters_.empty()) return Status(Code::kCorrupt, "holds no graph");
  // The writer puts the name after the nodes: a graph without one was cut off between two nodes.
  if (name_.empty()) return Status(Code::kCorrupt, "ends early: the graph has nodes but no name");
  const size_t count = nodes_.size() + parameters_.size() + constants_.size();
  if (count > kMaxNodes) {
    return Status(Code::kUnsupported, fmt::format("has {} nodes; this program reads up to {}", count, kMaxNodes));
  }
  if (count > kFreeNodes + bytes_ / kBytesPerNode) {
    return Status(Code::kCorrupt, fmt::format("has {} nodes in {} bytes, less than any writer needs for them", count, bytes_));
  }
  budget_ = kFreeParts + bytes_ / kBytesPerPart;
  flavour_ = find_flavour();
  const int named_id = trailing_number(name_, -1);
  GraphBuilder builder(rank_, id_ >= 0 ? id_ : std::max(named_id, 0));
  if (id_ >= 0 && named_id >= 0 && named_id != id_) {
    note(fmt::format("graph {} calls itself '{}'", id_, printable(name_)));
  }
  builder.reserve(count);
  builder.set_name(name_);
  if (const auto root = parse_int(root_name_); root && *root >= 0 && *root <= INT32_MAX) {
    builder.set_root_id(static_cast<int>(*root));
  }
  for (const auto read : {&GraphReader::read_parameters, &GraphReader::read_constants, &GraphReader::read_operators}) {
    if (Status status = (this->*read)(builder); !status.ok()) return status;
  }
  connect(builder);
  look_through_tuples(builder);
  if (over_budget_ > 0) {
    note(fmt::format("graph damaged: {} nodes claim more inputs, attributes or outputs than {} bytes can describe, the first is {}; "
                     "the rest is still served",
                     over_budget_, bytes_, first_over_budget_));
  }
  if (odd_names_ > 0) {
    note(fmt::format("{} names are not printable UTF-8, the first is '{}'", odd_names_, first_odd_name_));
  }
  return builder;
}

}  // namespace msdbg
