#include "agent/recorded_network.h"

#include <fstream>
#include <iterator>
#include <set>

#include "debug_graph.pb.h"
#include "debug_grpc.pb.h"

namespace msdbg::test {
namespace {

constexpr const char* kConstant = "Default--data-2";  // the only constant with elements, four of them

OutputType type_of(const debugger::TypeProto& type) {
  Shape shape;
  for (const auto& dim : type.tensor_type().shape().dim()) shape.push_back(dim.size());
  return {dtype_from_mindspore(type.tensor_type().elem_type()), shape};
}

std::vector<OutputType> types_of(const debugger::NodeProto& node) {
  std::vector<OutputType> types;
  for (const auto& element : node.output_type().sequence_type().elem_types()) types.push_back(type_of(element));
  if (types.empty()) types.push_back(type_of(node.output_type()));
  return types;
}

}  // namespace

RecordedNetwork::RecordedNetwork(const std::string& folder, const std::string& version, bool wide) {
  read_kernel_order(folder, version);
  if (problem_.empty()) read_graph(folder, version, wide);
}

void RecordedNetwork::read_kernel_order(const std::string& folder, const std::string& version) {
  const auto stepping = load_conversation(folder, "scripted-real-" + version + "-node-stepping");
  if (!stepping.ok()) {
    problem_ = stepping.status().message();
    return;
  }
  for (const RecordedMessage& message : stepping->messages) {
    debugger::Metadata metadata;
    if (!message.is_client() || message.rpc != live::Rpc::kWaitCmd) continue;
    metadata.ParseFromString(message.bytes);
    if (metadata.cur_step() == 0 && !metadata.cur_node().empty()) kernels_.push_back(metadata.cur_node());
  }
}

const std::vector<float>& RecordedNetwork::buffer(const std::string& name, const Shape& shape) {
  std::vector<float>& values = buffers_[name];
  values.assign(element_count(shape).value_or(0), 0.0F);
  const bool weight = name.starts_with("fc"), plain = name == "x" || name == "sens" || name == kConstant;
  for (size_t i = 0; i < values.size(); ++i) {
    if (weight) values[i] = i % 2 == 0 ? 0.2F : -0.25F;
    if (plain || name == "learning_rate" || name == "momentum") values[i] = 0.5F;
  }
  return values;
}

void RecordedNetwork::read_graph(const std::string& folder, const std::string& version, bool wide) {
  std::ifstream file(folder + "/graph-real-" + version + ".pb", std::ios::binary);
  debugger::GraphProto proto;
  if (!proto.ParseFromString({std::istreambuf_iterator<char>(file), {}})) {
    problem_ = "the graph of " + version + " cannot be read";
    return;
  }
  graph_.id = 0;
  for (const auto& parameter : proto.parameters()) {
    OutputType type = type_of(parameter.type());
    if (wide && parameter.name() == "fc1.weight") type.shape = Shape{8, 218750};
    const bool weight = parameter.name() != "x" && parameter.name() != "sens";
    graph_.parameters.push_back(
        {parameter.name(), DType::kFloat32, *type.shape, buffer(parameter.name(), *type.shape).data(), weight});
  }
  graph_.constants.push_back({kConstant, DType::kFloat32, {4}, buffer(kConstant, {4}).data()});

  std::map<std::string, const debugger::NodeProto*> by_number, by_name;
  for (const auto& node : proto.node()) {
    by_number[node.name()] = &node;
    by_name[node.full_name()] = &node;
  }
  const bool own_loads = version == "1.10.0";  // before that, a Load node has the parameter's name
  std::set<std::string> added;
  const auto input_of = [&](const std::string& name) -> agent::InputDescription {
    const auto node = by_number.find(name);
    if (node == by_number.end()) return {name.starts_with("cst") ? (name == "cst3" ? kConstant : "") : name, 0};
    const debugger::NodeProto& source = *node->second;
    if (source.op_type() == "TupleGetItem") {  // cst2 is the index 0, cst4 the index 1
      return {by_number.at(source.input(0).name())->full_name(), source.input(1).name() == "cst2" ? 0U : 1U};
    }
    if (source.op_type() == "Load" && !own_loads) return {source.input(0).name(), 0};
    if (source.op_type() == "Load" && added.insert(source.full_name()).second) {
      agent::NodeDescription load;
      load.full_name = source.full_name();
      load.op = source.op_type();
      load.inputs = {{source.input(0).name(), 0}};
      load.outputs = types_of(source);
      buffers_[load.full_name] = buffers_[source.input(0).name()];
      graph_.nodes.push_back(load);
    }
    return {source.op_type() == "UpdateState" ? "" : source.full_name(), 0};
  };
  for (const std::string& kernel : kernels_) {
    const debugger::NodeProto& source = *by_name.at(kernel);
    agent::NodeDescription node;
    node.full_name = kernel;
    node.op = source.op_type();
    for (const auto& input : source.input()) {
      const agent::InputDescription described = input_of(input.name());
      if (!described.name.empty()) node.inputs.push_back(described);
    }
    node.outputs = types_of(source);
    for (size_t slot = 0; slot < node.outputs.size(); ++slot) {
      if (!node.outputs[slot].shape) node.outputs[slot].shape = Shape{};
      node.outputs[slot].dtype = DType::kFloat32;
      buffer(kernel + ":" + std::to_string(slot), *node.outputs[slot].shape);
    }
    graph_.nodes.push_back(node);
  }
}

int RecordedNetwork::train(agent::Agent& agent, int steps) const {
  for (int step = 0; step < steps; ++step) {
    if (agent.begin_step() == agent::Control::kStop) return step;
    for (agent::NodeIndex i = 0; i < graph_.nodes.size(); ++i) {
      const agent::NodeDescription& node = graph_.nodes[i];
      if (node.op == "Load") {  // does not run on the device: it never stops
        const std::vector<float>& values = buffers_.at(node.full_name);
        agent.publish(i, 0, values.data(), values.size() * sizeof(float));
        continue;
      }
      for (uint32_t slot = 0; slot < node.outputs.size(); ++slot) {
        const std::vector<float>& values = buffers_.at(node.full_name + ":" + std::to_string(slot));
        agent.publish(i, slot, values.data(), values.size() * sizeof(float));
      }
      agent.node_done(i);
    }
    if (agent.end_step() == agent::Control::kStop) return step + 1;
  }
  return steps;
}

}  // namespace msdbg::test
