#include "agent/graph_message.h"

#include <fmt/format.h>

#include <map>
#include <unordered_map>

#include "agent/messages.h"
#include "agent/tuple_picks.h"
#include "debug_graph.pb.h"
#include "msdbg/node_names.h"

namespace msdbg::agent {
namespace {

constexpr int kTypeInt64 = 5, kTypeString = 13, kTypeTensor = 14, kTypeTuple = 31;

void set_type(const OutputType& type, debugger::TypeProto& out) {
  out.set_data_type(kTypeTensor);
  out.mutable_tensor_type()->set_elem_type(mindspore_number(type.dtype));
  if (!type.shape) return;
  auto* shape = out.mutable_tensor_type()->mutable_shape();
  for (const int64_t size : *type.shape) shape->add_dim()->set_size(size);
}

void set_types(const std::vector<OutputType>& types, debugger::TypeProto& out) {
  if (types.size() == 1) return set_type(types.front(), out);
  out.set_data_type(kTypeTuple);
  out.mutable_sequence_type();
  for (const OutputType& type : types) set_type(type, *out.mutable_sequence_type()->add_elem_types());
}

std::string stack_text(const std::vector<StackFrame>& stack, bool brackets) {
  std::string text;
  for (const StackFrame& frame : stack) {
    text += brackets ? fmt::format("      # In file {}({})/        {}/\n", frame.file, frame.line, frame.code)
                     : fmt::format("      # In file {}:{}/        {}/\n", frame.file, frame.line, frame.code);
  }
  return text;
}

class Writer {
 public:
  Writer(const GraphDescription& graph, const ReleaseTraits& traits) : graph_(graph), traits_(traits) {
    for (TuplePick& pick : tuple_picks(graph)) pick_names_[{pick.producer, pick.slot}] = std::move(pick.name);
  }

  Result<std::string> run() {
    for (const ParameterDescription& parameter : graph_.parameters) add_parameter(parameter);
    for (size_t i = 0; i < graph_.constants.size(); ++i) constants_[graph_.constants[i].name] = i;
    for (size_t i = 0; i < graph_.nodes.size(); ++i) nodes_[graph_.nodes[i].full_name] = i;
    for (const NodeDescription& node : graph_.nodes) add_node(node);
    for (const ConstantDescription& constant : graph_.constants) key_of(constant.name);
    if (!graph_.nodes.empty()) {
      debugger::OutputProto& output = *proto_.add_outputs();
      output.set_name(numbers_[graph_.nodes.back().full_name]);
      set_types(graph_.nodes.back().outputs, *output.mutable_type());
    }
    proto_.set_name(fmt::format("kernel_graph_{}", graph_.id));
    if (traits_.graph_details) proto_.set_root_name(std::to_string(graph_.id));
    std::string bytes;
    if (!proto_.SerializeToString(&bytes)) {
      return Status(Code::kUnsupported, fmt::format("graph {} of {} operators is larger than 2 GiB in the debugger's "
                                                    "format; describe fewer attributes",
                                                    graph_.id, graph_.nodes.size()));
    }
    return bytes;
  }

 private:
  void add_parameter(const ParameterDescription& parameter) {
    debugger::ParameterProto& out = *proto_.add_parameters();
    out.set_name(parameter.name);
    set_type({parameter.dtype, parameter.shape}, *out.mutable_type());
  }

  void add_node(const NodeDescription& node) {
    std::vector<std::string> inputs;
    for (const InputDescription& input : node.inputs) inputs.push_back(edge_to(input));
    debugger::NodeProto& out = begin_node(node.op, node.full_name, inputs);
    numbers_[node.full_name] = out.name();
    for (const Attribute& attribute : node.attributes) {
      debugger::AttributeProto& added = *out.add_attribute();
      added.set_name(attribute.name);
      added.mutable_value()->set_dtype(kTypeString);
      added.mutable_value()->set_str_val(attribute.value);
    }
    set_types(node.outputs, *out.mutable_output_type());
    if (traits_.graph_details && !node.stack.empty()) {
      out.set_source_address(stack_text(node.stack, traits_.line_in_brackets));
    }
  }

  debugger::NodeProto& begin_node(const std::string& op, const std::string& name,
                                  const std::vector<std::string>& inputs) {
    debugger::NodeProto& out = *proto_.add_node();
    for (const std::string& input : inputs) {
      debugger::InputProto& added = *out.add_input();
      added.set_name(input);
      added.set_type(0);
    }
    out.set_name(std::to_string(proto_.node_size()));
    out.set_op_type(op);
    out.set_scope(std::string(scope_of(name)));
    out.set_full_name(name);
    return out;
  }

  /// The name of an input's source; adds the node that selects one of several outputs.
  std::string edge_to(const InputDescription& input) {
    if (constants_.contains(input.name)) return key_of(input.name);
    const auto number = numbers_.find(input.name);
    if (number == numbers_.end()) return input.name;  // a parameter
    const auto producer = static_cast<NodeIndex>(nodes_[input.name]);
    const std::vector<OutputType>& outputs = graph_.nodes[producer].outputs;
    if (outputs.size() < 2) return number->second;
    std::string& pick = picks_[{producer, input.slot}];
    if (pick.empty()) {
      const std::string& name = pick_names_[{producer, input.slot}];
      debugger::NodeProto& node = begin_node("TupleGetItem", name, {number->second, index_key(input.slot)});
      if (input.slot < outputs.size()) set_type(outputs[input.slot], *node.mutable_output_type());
      pick = node.name();
    }
    return pick;
  }

  debugger::NamedValueProto& add_value(std::string& key) {
    debugger::NamedValueProto& value = *proto_.add_const_vals();
    key = fmt::format("cst{}", proto_.const_vals_size());
    value.set_key(key);
    return value;
  }

  std::string key_of(const std::string& constant) {
    std::string& key = keys_[constant];
    if (!key.empty()) return key;
    const ConstantDescription& described = graph_.constants[constants_[constant]];
    debugger::NamedValueProto& value = add_value(key);
    if (traits_.named_constants) {
      value.set_full_name(described.name);
      return key;
    }
    value.mutable_value()->set_dtype(kTypeTensor);
    debugger::TensorProto& tensor = *value.mutable_value()->mutable_tensor_val();
    tensor.set_data_type(mindspore_number(described.dtype));
    for (const int64_t dim : described.shape) tensor.add_dims(dim);
    const size_t bytes = element_count(described.shape).value_or(0) * item_size(described.dtype);
    if (described.data != nullptr) tensor.set_tensor_content(described.data, bytes);
    return key;
  }

  std::string index_key(uint32_t slot) {
    std::string& key = index_keys_[slot];
    if (!key.empty()) return key;
    debugger::NamedValueProto& value = add_value(key);
    value.mutable_value()->set_dtype(kTypeInt64);
    value.mutable_value()->set_int_val(slot);
    return key;
  }

  const GraphDescription& graph_;
  const ReleaseTraits& traits_;
  debugger::GraphProto proto_;
  std::unordered_map<std::string, size_t> nodes_, constants_;
  std::unordered_map<std::string, std::string> numbers_;  // of the nodes written so far
  std::unordered_map<std::string, std::string> keys_;     // of the constants
  std::map<uint32_t, std::string> index_keys_;
  std::map<std::pair<NodeIndex, uint32_t>, std::string> pick_names_, picks_;  // full names; numbers when written
};

}  // namespace

Result<std::string> graph_bytes(const GraphDescription& graph, const ReleaseTraits& traits) {
  return Writer(graph, traits).run();
}

}  // namespace msdbg::agent
