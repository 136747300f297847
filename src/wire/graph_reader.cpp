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

constexpr size_t kMaxNodes = 4'000'000;  // the largest real graphs have a few hundred thousand
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

Status cannot_be_decoded(uint64_t offset, std::string_view what) {
  return {Code::kCorrupt, fmt::format("the {} at byte {} cannot be decoded", what, offset)};
}

Status limit_fields(std::span<const std::byte> bytes, const google::protobuf::Descriptor& type, uint64_t offset, std::string_view what) {
  if (bytes.size() <= kManyBytes || count_fields(WireReader(bytes), type) <= kMaxFields) return {};
  return {Code::kCorrupt, fmt::format("the {} at byte {} has more than {} fields", what, offset, kMaxFields)};
}

template <typename Message>
Status decode(Message& message, std::span<const std::byte> bytes, uint64_t offset, std::string_view what) {
  message.Clear();
  if (Status status = limit_fields(bytes, *message.GetDescriptor(), offset, what); !status.ok()) return status;
  if (message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return {};
  return cannot_be_decoded(offset, what);
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
bool GraphReader::spend(uint64_t parts, std::string_view name) {
  if (parts <= budget_) {
    budget_ -= parts;
    return true;
  }
  if (over_budget_++ == 0) first_over_budget_ = printable(name);
  return false;
}

void GraphReader::note_name(std::string_view name) {
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
  const SharedText op("Parameter");
  const SharedList<OutputType> unknown{OutputType()};
  ParameterParts parts;
  by_key_.reserve(parameters_.size() + constants_.size());
  for (const Piece& piece : parameters_) {
    const KnownType* type = nullptr;
    if (!parts.read(piece.bytes) || (parts.has_type && (type = type_of(parts.type)) == nullptr)) {
      return cannot_be_decoded(piece.offset, "parameter");
    }
    Node node;
    node.kind = NodeKind::kParameter;
    node.name = parts.name;
    node.op = op;
    node.outputs = type ? type->outputs : unknown;
    note_name(node.name);
    by_key_.add(parts.name, builder.add(std::move(node)));
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
    by_key_.add(keys_.add(proto.key()), id);
  }
  return {};
}

SharedText GraphReader::shared(std::string_view text) {
  if (const SharedText* known = texts_.find(text)) return *known;
  const SharedText fresh(text);
  return texts_.add(fresh, fresh).first;  // the table keeps the text that it knows it by
}

/// nullptr if the bytes are no TypeProto. Valid until the next call.
const GraphReader::KnownType* GraphReader::type_of(std::string_view encoded) {
  if (const KnownType* known = types_.find(encoded)) return known;
  debugger::TypeProto type;
  if (!type.ParseFromArray(encoded.data(), static_cast<int>(encoded.size()))) return nullptr;
  KnownType known;
  known.outputs = output_types(type, flavour_, &known.widths);
  return &types_.add(encoded, std::move(known)).first;
}

/// nullptr if the bytes are no AttributeProto. Valid until the next call.
const Attribute* GraphReader::attribute_of(std::string_view encoded) {
  if (const Attribute* known = attributes_.find(encoded)) return known;
  AttributeParts parts;
  debugger::ValueProto value;
  if (!parts.read(encoded) || !value.ParseFromArray(parts.value.data(), static_cast<int>(parts.value.size()))) return nullptr;
  return &attributes_.add(encoded, {shared(parts.name), shared(value_text(value, flavour_))}).first;
}

bool GraphReader::read_attributes(const NodeParts& parts, SharedList<Attribute>& attributes) {
  if (parts.attributes.empty()) return true;
  if (!parts.all_attributes.empty()) {
    if (const SharedList<Attribute>* known = attribute_lists_.find(parts.all_attributes)) {
      attributes = *known;
      return true;
    }
  }
  std::vector<Attribute> list;
  list.reserve(parts.attributes.size());
  for (const std::string_view encoded : parts.attributes) {
    const Attribute* attribute = attribute_of(encoded);
    if (attribute == nullptr) return false;
    list.push_back(*attribute);
  }
  attributes = std::move(list);
  if (!parts.all_attributes.empty()) attribute_lists_.add(parts.all_attributes, attributes);
  return true;
}

/// False if a part of the node is damaged.
bool GraphReader::read_operator(const NodeParts& parts, GraphBuilder& builder) {
  const auto id = static_cast<NodeId>(builder.size());
  Node node;
  node.op = shared(parts.op_type);
  node.name = parts.full_name;
  node.scope = shared(parts.scope.empty() ? scope_of(node.name) : parts.scope);
  if (node.name.empty()) {
    node.name = fmt::format("{}{}{}-{}", node.scope, node.scope.empty() ? "" : "/", node.op, parts.name);
  }
  note_name(node.name);
  if (parts.has_output_type) {
    const KnownType* type = type_of(parts.output_type);
    if (type == nullptr) return false;
    node.outputs = type->outputs;
    if (std::any_of(type->widths.begin(), type->widths.end(), [](uint32_t width) { return width != 1; })) {
      std::vector<uint32_t> widths = type->widths;
      widths.push_back(0);
      std::exclusive_scan(widths.begin(), widths.end(), widths.begin(), uint32_t{0});
      offsets_[id] = std::move(widths);
    }
  } else {
    node.outputs = unknown_outputs_;
  }
  if (spend(parts.inputs.size() + parts.attributes.size() + node.outputs.size(), node.name)) {
    node.inputs.resize(parts.inputs.size());
    for (uint32_t slot = 0; slot < node.inputs.size(); ++slot) {
      // Most producers come before their users.
      if (const NodeId* known = by_number_.find(parts.inputs[slot])) node.inputs[slot].node = *known;
      else pending_.push_back({id, slot, parts.inputs[slot]});
    }
    if (!read_attributes(parts, node.attributes)) return false;
  } else if (node.outputs.size() > 1) {
    node.outputs = {node.outputs.front()};
  }
  // Operators of one line of code have the same address, and follow one another.
  if (parts.source_address != last_address_ || id == 0) {
    const auto [stack, first] = stacks_.add(parts.source_address);
    if (first) stack = parse_source_address(parts.source_address);
    last_address_ = parts.source_address;
    last_stack_ = stack;
  }
  node.stack = last_stack_;
  if (node.op == "TupleGetItem") pick_nodes_.push_back(id);
  builder.add(std::move(node));
  by_number_.add(parts.name, id);
  return true;
}

Status GraphReader::read_operators(GraphBuilder& builder) {
  NodeParts parts;
  by_number_.reserve(nodes_.size());
  for (const Piece& piece : nodes_) {
    const Status status = limit_fields(piece.bytes, *debugger::NodeProto::descriptor(), piece.offset, "node");
    if (!status.ok()) return status;
    if (!parts.read(piece.bytes)) return cannot_be_decoded(piece.offset, "node");
    if (!parts.name.empty() && !read_operator(parts, builder)) return cannot_be_decoded(piece.offset, "node");
  }
  return {};
}

// Resolves the names of producers that were not known yet.
void GraphReader::connect(GraphBuilder& builder) {
  size_t unknown = 0;
  std::string first_unknown;
  for (const auto& [id, slot, name] : pending_) {
    Edge& edge = builder.node(id).inputs[slot];
    if (const NodeId* number = by_number_.find(name)) {
      edge.node = *number;
    } else if (const NodeId* key = by_key_.find(name)) {
      edge.node = *key;
    } else {
      edge.name = shared(name);
      if (unknown++ == 0) first_unknown = fmt::format("'{}' of {}", printable(name), printable(builder.node(id).name));
    }
  }
  if (unknown > 0) note(fmt::format("{} inputs name no node of the graph, the first is {}", unknown, first_unknown));
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
