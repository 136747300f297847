// Helpers of the wire tests: real files of the test data, and graphs written with the generated classes.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>
#include <string>
#include <vector>

#include "debug_graph.pb.h"
#include "msdbg/wire.h"

namespace msdbg {

inline std::string data_path(const std::string& below) { return std::string(MSDBG_TEST_DATA) + "/" + below; }

inline std::string graph_path(const std::string& dump, int id) {
  return data_path("dumps/" + dump + "/rank_0/graphs/ms_output_trace_code_graph_" + std::to_string(id) + ".pb");
}

inline std::string read_bytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file.is_open()) << path;
  return {std::istreambuf_iterator<char>(file), {}};
}

inline std::span<const std::byte> as_bytes(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

inline Result<GraphBuilder> parse(const std::string& bytes, std::vector<std::string>* notes = nullptr) {
  return parse_graph(as_bytes(bytes), 0, 0, notes);
}

/// Fails the test if the graph cannot be read.
inline GraphPtr open_graph(const std::string& path, std::vector<std::string>* notes = nullptr) {
  Result<GraphBuilder> builder = read_graph_file(path, 0, 0, notes);
  if (builder) return builder->build();
  ADD_FAILURE() << builder.status().message();
  return GraphBuilder(0, 0).build();
}

inline GraphPtr graph_of(const debugger::GraphProto& proto, std::vector<std::string>* notes = nullptr) {
  debugger::ModelProto model;
  model.set_ir_version(1);
  *model.mutable_graph() = proto;
  Result<GraphBuilder> builder = parse(model.SerializeAsString(), notes);
  if (builder) return builder->build();
  ADD_FAILURE() << builder.status().message();
  return GraphBuilder(0, 0).build();
}

/// A node with the number that edges use.
inline debugger::NodeProto* add_node(debugger::GraphProto& graph, const std::string& number, const std::string& op,
                                     const std::vector<std::string>& inputs) {
  debugger::NodeProto* node = graph.add_node();
  for (const std::string& input : inputs) node->add_input()->set_name(input);
  node->set_name(number);
  node->set_op_type(op);
  node->set_full_name("Default/" + op + "-op" + number);
  return node;
}

inline void set_tensor(debugger::TypeProto& type, int element, const std::vector<int64_t>& shape) {
  type.set_data_type(14);
  type.mutable_tensor_type()->set_elem_type(element);
  for (const int64_t size : shape) type.mutable_tensor_type()->mutable_shape()->add_dim()->set_size(size);
}

}  // namespace msdbg
