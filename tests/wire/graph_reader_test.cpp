// Graphs written with the generated classes: forms that the real files of the test data do not contain.
#include "msdbg/wire_fields.h"
#include "wire/wire_support.h"

namespace msdbg {
namespace {

TEST(GraphReader, ABareGraphIsRecognised) {
  debugger::GraphProto proto;
  proto.set_name("kernel_graph_3");
  add_node(proto, "1", "Add", {});
  Result<GraphBuilder> builder = parse_graph(as_bytes(proto.SerializeAsString()), 2, -1, nullptr);
  ASSERT_TRUE(builder) << builder.status().message();
  const GraphPtr graph = builder->build();
  EXPECT_EQ(graph->rank(), 2);
  EXPECT_EQ(graph->id(), 3) << "taken from the name when the caller has none";
  EXPECT_NE(graph->find("Default/Add-op1"), nullptr);
}

TEST(GraphReader, ANameThatContradictsTheFileIsNoted) {
  debugger::GraphProto proto;
  proto.set_name("kernel_graph_3");
  proto.set_root_name("12");
  std::vector<std::string> notes;
  const GraphPtr graph = graph_of(proto, &notes);
  EXPECT_EQ(graph->id(), 0);
  EXPECT_EQ(graph->root_id(), 12);
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_EQ(notes[0], "graph 0 calls itself 'kernel_graph_3'");
}

TEST(GraphReader, NodesWithoutContentAreSkipped) {
  debugger::GraphProto proto;
  proto.set_name("g0");
  proto.add_node();
  add_node(proto, "2", "Add", {"2"});
  proto.add_node()->set_op_type("Call");
  EXPECT_EQ(graph_of(proto)->nodes().size(), 1u);
}

TEST(GraphReader, ANodeWithoutFullNameGetsOneFromItsScopeTypeAndNumber) {
  debugger::GraphProto proto;
  proto.set_name("g0");
  debugger::NodeProto* node = add_node(proto, "7", "Add", {});
  node->clear_full_name();
  node->set_scope("Default/net");
  EXPECT_NE(graph_of(proto)->find("Default/net/Add-7"), nullptr);
}

TEST(GraphReader, TheScopeFallsBackToTheName) {
  debugger::GraphProto proto;
  proto.set_name("g0");
  add_node(proto, "1", "Add", {})->set_full_name("a/b/Add-op1");
  EXPECT_EQ(graph_of(proto)->node(0).scope, "a/b");
}

TEST(GraphReader, NamesThatAreNotUtf8AreKeptAndNoted) {
  debugger::GraphProto proto;
  proto.set_name("g0");
  proto.add_parameters()->set_name("w\xFF");
  std::vector<std::string> notes;
  const GraphPtr graph = graph_of(proto, &notes);
  EXPECT_NE(graph->find("w\xFF"), nullptr);
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_EQ(notes[0], "1 names are not printable UTF-8, the first is 'w?'");
}

TEST(GraphReader, InputsThatNameNothingAreNotedOnce) {
  debugger::GraphProto proto;
  proto.set_name("g0");
  add_node(proto, "1", "Add", {"actor_7", "99"});
  std::vector<std::string> notes;
  const GraphPtr graph = graph_of(proto, &notes);
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_EQ(notes[0], "2 inputs name no node of the graph, the first is 'actor_7' of Default/Add-op1");
  EXPECT_EQ(graph->node(0).inputs[1].name, "99");
  EXPECT_EQ(graph->node(0).inputs[1].node, kNoNode);
}

debugger::NamedValueProto* add_index(debugger::GraphProto& proto, const std::string& key, int64_t value) {
  debugger::NamedValueProto* constant = proto.add_const_vals();
  constant->set_key(key);
  constant->mutable_value()->set_dtype(5);
  constant->mutable_value()->set_int_val(value);
  return constant;
}

TEST(GraphReader, ATupleWithinATupleTakesAsManySlotsAsItHasLeaves) {
  debugger::GraphProto proto;
  proto.set_name("g0");
  add_index(proto, "cst1", 1);
  debugger::TypeProto pair;
  pair.set_data_type(31);
  set_tensor(*pair.mutable_sequence_type()->add_elem_types(), 11, {});
  set_tensor(*pair.mutable_sequence_type()->add_elem_types(), 11, {});
  debugger::TypeProto outer;
  outer.set_data_type(31);
  *outer.mutable_sequence_type()->add_elem_types() = pair;
  *outer.mutable_sequence_type()->add_elem_types() = pair;
  *add_node(proto, "1", "Lstm", {})->mutable_output_type() = outer;
  *add_node(proto, "2", "TupleGetItem", {"1", "cst1"})->mutable_output_type() = pair;
  set_tensor(*add_node(proto, "3", "TupleGetItem", {"2", "cst1"})->mutable_output_type(), 11, {5});
  add_node(proto, "4", "ReLU", {"3"});
  const GraphPtr graph = graph_of(proto);
  const Node& lstm = *graph->find("Default/Lstm-op1");
  ASSERT_EQ(lstm.outputs.size(), 4u);
  const Edge edge = graph->find("Default/ReLU-op4")->inputs[0];
  EXPECT_EQ(edge.node, lstm.id);
  EXPECT_EQ(edge.slot, 3u);
  EXPECT_EQ(lstm.outputs[3].shape, Shape{5});
  EXPECT_EQ(lstm.outputs[0].shape, std::nullopt);
  EXPECT_EQ(graph->find("Default/TupleGetItem-op3")->inputs[0].slot, 3u);
}

TEST(GraphReader, AProducerWithoutTypeHasAtLeastTheSlotsThatAreTaken) {
  debugger::GraphProto proto;
  proto.set_name("g0");
  add_index(proto, "cst1", 2);
  add_node(proto, "1", "Custom", {});
  set_tensor(*add_node(proto, "2", "TupleGetItem", {"1", "cst1"})->mutable_output_type(), 10, {4});
  const GraphPtr graph = graph_of(proto);
  const Node& custom = *graph->find("Default/Custom-op1");
  ASSERT_EQ(custom.outputs.size(), 3u);
  EXPECT_EQ(custom.outputs[2].dtype, DType::kFloat16);
  EXPECT_EQ(custom.outputs[0].dtype, DType::kUnknown);
}

/// A graph whose nodes are these encoded messages.
GraphPtr graph_of_nodes(const std::vector<std::string>& nodes) {
  debugger::GraphProto proto;
  proto.set_name("g0");
  std::string bytes = proto.SerializeAsString();
  for (const std::string& node : nodes) WireWriter(bytes).field(1, node);
  Result<GraphBuilder> builder = parse(bytes);
  EXPECT_TRUE(builder) << builder.status().message();
  return builder ? builder->build() : GraphBuilder(0, 0).build();
}

debugger::NodeProto with_attributes(const std::vector<std::string>& names) {
  debugger::NodeProto node;
  node.set_name("1");
  node.set_op_type("Add");
  for (const std::string& name : names) {
    debugger::AttributeProto* const attribute = node.add_attribute();
    attribute->set_name(name);
    attribute->mutable_value()->set_str_val(name + "!");
  }
  return node;
}

std::string attributes_text(const Node& node) {
  std::string text;
  for (const Attribute& attribute : node.attributes) text += attribute.name + "=" + attribute.value + " ";
  return text;
}

TEST(GraphReader, EqualAttributesAreStoredOnceAndOthersAreKeptApart) {
  const std::string first = with_attributes({"a", "b"}).SerializeAsString();
  const std::string other = with_attributes({"b", "a"}).SerializeAsString();
  const GraphPtr graph = graph_of_nodes({first, other, first});
  EXPECT_EQ(attributes_text(graph->node(0)), "a=a! b=b! ");
  EXPECT_EQ(attributes_text(graph->node(1)), "b=b! a=a! ");
  EXPECT_EQ(&graph->node(0).attributes.get(), &graph->node(2).attributes.get());
}

TEST(GraphReader, AttributesBetweenOtherFieldsAreAllRead) {
  debugger::NodeProto scope;
  scope.set_scope("Default");
  const std::string apart = with_attributes({"a"}).SerializeAsString() + scope.SerializeAsString() +
      with_attributes({"b"}).SerializeAsString();
  const GraphPtr graph = graph_of_nodes({apart, apart});
  EXPECT_EQ(attributes_text(graph->node(0)), "a=a! b=b! ");
  EXPECT_EQ(attributes_text(graph->node(1)), "a=a! b=b! ");
  EXPECT_EQ(graph->node(1).scope, "Default");
}

TEST(GraphReader, OfAFieldThatOccursTwiceTheLastOneCounts) {
  debugger::NodeProto before, after;
  before.set_name("1");
  before.set_full_name("Default/old-op1");
  set_tensor(*before.mutable_output_type(), 10, {1});
  after.set_full_name("Default/new-op1");
  set_tensor(*after.mutable_output_type(), 11, {2});
  const GraphPtr graph = graph_of_nodes({before.SerializeAsString() + after.SerializeAsString()});
  const Node& node = graph->node(0);
  EXPECT_EQ(node.name, "Default/new-op1");
  EXPECT_EQ(node.outputs.at(0).dtype, DType::kFloat32);
  EXPECT_EQ(node.outputs.at(0).shape, Shape{2});
}

TEST(GraphReader, AnOperatorComesBeforeAParameterOfTheSameNumber) {
  debugger::GraphProto proto;
  proto.set_name("g0");
  proto.add_parameters()->set_name("7");
  add_node(proto, "1", "Add", {"7"});
  add_node(proto, "7", "Mul", {});
  const GraphPtr graph = graph_of(proto);
  EXPECT_EQ(graph->node(graph->find("Default/Add-op1")->inputs[0].node).op, "Mul");
}

TEST(GraphReader, AnAbsurdTupleIndexIsLeftAlone) {
  debugger::GraphProto proto;
  proto.set_name("g0");
  add_index(proto, "cst1", 4'000'000'000);
  add_index(proto, "cst2", -1);
  add_node(proto, "1", "Custom", {});
  add_node(proto, "2", "TupleGetItem", {"1", "cst1"});
  add_node(proto, "3", "TupleGetItem", {"1", "cst2"});
  add_node(proto, "4", "TupleGetItem", {"4", "cst1"});
  add_node(proto, "5", "Add", {"2", "3"});
  const GraphPtr graph = graph_of(proto);
  EXPECT_EQ(graph->find("Default/Custom-op1")->outputs.size(), 1u);
  EXPECT_EQ(graph->node(graph->find("Default/Add-op5")->inputs[0].node).op, "TupleGetItem");
}

TEST(GraphReader, NumbersOf43And44AreMonadsOrComplexByFlavour) {
  debugger::GraphProto proto;
  proto.set_name("g0");
  debugger::ParameterProto* parameter = proto.add_parameters();
  parameter->set_name("z");
  parameter->mutable_type()->set_data_type(43);
  debugger::NodeProto* node = add_node(proto, "1", "Abs", {"z"});
  node->set_source_address("");
  EXPECT_TRUE(graph_of(proto)->find("z")->outputs.empty());
  node->clear_source_address();
  node->set_instance_name("abs");
  const GraphPtr irpb = graph_of(proto);
  ASSERT_EQ(irpb->find("z")->outputs.size(), 1u);
  EXPECT_EQ(irpb->find("z")->outputs[0].dtype, DType::kComplex64);
}

TEST(GraphReader, UnknownDataTypesStayUnknown) {
  debugger::GraphProto proto;
  proto.set_name("g0");
  debugger::ParameterProto* parameter = proto.add_parameters();
  parameter->set_name("p");
  set_tensor(*parameter->mutable_type(), 99, {-2});
  const GraphPtr graph = graph_of(proto);
  const Node& node = graph->node(0);
  EXPECT_EQ(node.outputs.at(0).dtype, DType::kUnknown);
  EXPECT_EQ(node.outputs.at(0).shape, std::nullopt) << "-2 stands for an unknown rank";
}

class PrintedValue : public testing::Test {
 protected:
  std::string print(const debugger::ValueProto& value) {
    debugger::GraphProto proto;
    proto.set_name("g0");
    debugger::AttributeProto* attribute = add_node(proto, "1", "Op", {})->add_attribute();
    attribute->set_name("a");
    *attribute->mutable_value() = value;
    return graph_of(proto)->node(0).attributes.at(0).value;
  }

  debugger::ValueProto value_;
};

TEST_F(PrintedValue, Floats) {
  value_.set_float_val(0.1f);
  EXPECT_EQ(print(value_), "0.1");
  value_.set_float_val(std::numeric_limits<float>::infinity());
  EXPECT_EQ(print(value_), "Infinity");
}

TEST_F(PrintedValue, ListsTuplesAndStrings) {
  value_.set_dtype(31);
  value_.add_values()->set_int_val(-2);
  value_.add_values()->set_str_val("x, y");
  EXPECT_EQ(print(value_), "(-2, \"x, y\")");
  value_.set_dtype(32);
  EXPECT_EQ(print(value_), "[-2, \"x, y\"]");
  value_.clear_values();
  EXPECT_EQ(print(value_), "[]");
}

TEST_F(PrintedValue, LongListsSayHowMuchIsLeftOut) {
  for (int i = 0; i < 1000; ++i) value_.add_int_vals(7);
  const std::string text = print(value_);
  EXPECT_TRUE(text.ends_with("7, ... 744 more]")) << text;
}

TEST_F(PrintedValue, DictionariesTypesAndNone) {
  value_.set_dtype(33);
  debugger::NamedValueProto* item = value_.add_dict_val();
  item->set_key("k");
  item->mutable_value()->set_bool_val(true);
  EXPECT_EQ(print(value_), "{k: true}");
  debugger::ValueProto type;
  set_tensor(*type.mutable_type_val(), 46, {});
  EXPECT_EQ(print(type), "<bfloat16>");
  debugger::ValueProto none;
  none.set_dtype(34);
  EXPECT_EQ(print(none), "none");
}

TEST_F(PrintedValue, TensorsWithTheirElementsOrTheirShape) {
  debugger::TensorProto* tensor = value_.mutable_tensor_val();
  tensor->set_data_type(5);
  tensor->add_dims(1);
  const int64_t big = 9'007'199'254'740'993;  // not representable as a double
  tensor->set_tensor_content(&big, sizeof big);
  EXPECT_EQ(print(value_), "[9007199254740993]");
  tensor->set_tensor_content(std::string(7, 'x'));
  EXPECT_EQ(print(value_), "int64[1]") << "seven bytes are no int64";
  tensor->set_data_type(4);
  tensor->set_tensor_content(std::string("\x01\x00\x00\x01", 4));
  EXPECT_EQ(print(value_), "[16777217]") << "every digit of an int32";
}

TEST(GraphReader, AHundredThousandNodesAreConnected) {
  constexpr int kCount = 100'000;
  debugger::GraphProto proto;
  proto.set_name("kernel_graph_0");
  for (int i = 1; i <= kCount; ++i)
    add_node(proto, std::to_string(i), "Add", {i == 1 ? "x" : std::to_string(i - 1), "x"});
  proto.add_parameters()->set_name("x");
  const GraphPtr graph = graph_of(proto);
  ASSERT_EQ(graph->nodes().size(), kCount + 1u);
  const NodeId x = graph->find("x")->id;
  EXPECT_EQ(graph->users(x).size(), kCount + 1u);
  for (const int number : {2, 777, kCount}) {
    const Node& node = *graph->find("Default/Add-op" + std::to_string(number));
    EXPECT_EQ(graph->node(node.inputs[0].node).name, "Default/Add-op" + std::to_string(number - 1));
    EXPECT_EQ(node.inputs[1].node, x);
  }
}

}  // namespace
}  // namespace msdbg
