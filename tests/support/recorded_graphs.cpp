#include "support/recorded_graphs.h"

#include <fstream>
#include <iterator>

#include "debug_graph.pb.h"

namespace msdbg::test {
namespace {

constexpr size_t kSlice = 3145728;
constexpr int kFloat32 = 11, kString = 13, kTensor = 14;  // DataType

std::string bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// One more operator with a large output.
std::string with_big_node(debugger::GraphProto graph) {
  debugger::NodeProto* node = graph.add_node();
  node->add_input()->set_name("fc3.bias");
  node->set_name("69");
  node->set_op_type("Big");
  node->set_scope("Default/big");
  node->set_full_name("Default/big/Big-op9000");
  debugger::TypeProto* type = node->mutable_output_type();
  type->set_data_type(kTensor);
  type->mutable_tensor_type()->set_elem_type(kFloat32);
  type->mutable_tensor_type()->mutable_shape()->add_dim()->set_size(1835008);
  return graph.SerializeAsString();
}

/// Larger than one chunk, because of an attribute of the first node.
std::string padded(debugger::GraphProto graph) {
  debugger::AttributeProto* attribute = graph.mutable_node(0)->add_attribute();
  attribute->set_name("pad");
  attribute->mutable_value()->set_dtype(kString);
  attribute->mutable_value()->set_str_val(std::string(4000000, 'p'));
  return graph.SerializeAsString();
}

debugger::GraphProto second_graph(debugger::GraphProto graph) {
  for (debugger::NodeProto& node : *graph.mutable_node()) node.set_full_name(node.full_name() + "0");
  graph.set_name("kernel_graph_1");
  graph.set_root_name("1");
  return graph;
}

std::string evaluation_graph(size_t size) {
  debugger::GraphProto graph;
  debugger::NodeProto* node = graph.add_node();
  node->add_input()->set_name("x");
  node->add_input()->set_name("fc1.weight");
  node->set_name("1");
  node->set_op_type("MatMul");
  node->set_scope("Default/eval/fc1-Dense");
  node->set_full_name("Default/eval/fc1-Dense/MatMul-op201");
  node->mutable_output_type()->set_data_type(kTensor);
  node->mutable_output_type()->mutable_tensor_type()->set_elem_type(kFloat32);
  graph.set_name("kernel_graph_1");
  graph.set_root_name("1");
  for (const char* name : {"x", "fc1.weight"}) {
    debugger::ParameterProto* parameter = graph.add_parameters();
    parameter->set_name(name);
    parameter->mutable_type()->set_data_type(kTensor);
    parameter->mutable_type()->mutable_tensor_type()->set_elem_type(kFloat32);
  }
  while (graph.ByteSizeLong() < size) node->set_source_address(node->source_address() + "#");
  return graph.SerializeAsString();
}

}  // namespace

const std::map<std::string, std::string>& recorded_chunks(const std::string& folder) {
  static const std::map<std::string, std::string> chunks = [&folder] {
    std::map<std::string, std::string> made;
    made["8f714d1d"] = bytes_of(folder + "/graph-lenet.pb");
    made["1329e58e"] = bytes_of(folder + "/graph-real-1.10.0.pb");
    made["50c3ffed"] = bytes_of(folder + "/graph-real-1.3.0.pb");
    made["9d8593e8"] = bytes_of(folder + "/graph-real-1.5.0.pb");
    debugger::GraphProto lenet;
    if (!lenet.ParseFromString(made["8f714d1d"])) return made;
    made["7b5cdb4b"] = with_big_node(lenet);
    const std::string first = padded(lenet);
    const std::string second = padded(second_graph(lenet));
    made["ec78b844"] = first.substr(0, kSlice);
    made["a34b81e1"] = first.substr(kSlice);
    made["5570a776"] = second.substr(0, kSlice);
    made["944036a1"] = second.substr(kSlice);
    made["57bf660e"] = evaluation_graph(1092);
    return made;
  }();
  return chunks;
}

}  // namespace msdbg::test
