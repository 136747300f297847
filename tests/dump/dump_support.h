// Helpers of the dump tests: handmade dumps in a temporary directory, and shortcuts to inspect an open one.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "msdbg/dump.h"
#include "msdbg/session.h"
#include "support/fake_session.h"

namespace msdbg::testing {

inline std::string data_path(const std::string& below) { return std::string(MSDBG_TEST_DATA) + "/" + below; }

/// A separate directory for each test, removed with it.
class TempDir {
 public:
  TempDir() {
    std::string pattern = (std::filesystem::temp_directory_path() / "msdbg-dump-XXXXXX").string();
    path_ = ::mkdtemp(pattern.data());
  }
  ~TempDir() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;

  const std::string& path() const { return path_; }
  std::string at(const std::string& below) const { return path_ + "/" + below; }

  void directory(const std::string& below) const { std::filesystem::create_directories(at(below)); }
  void text(const std::string& below, const std::string& content) const {
    std::filesystem::create_directories(std::filesystem::path(at(below)).parent_path());
    std::ofstream(at(below), std::ios::binary) << content;
  }
  void npy(const std::string& below, const TensorPtr& tensor) const {
    const std::vector<std::byte> bytes = npy_bytes(tensor->view());
    text(below, std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  }
  void npy(const std::string& below, std::initializer_list<double> values) const { npy(below, f32(values)); }
  void link(const std::string& below, const std::string& target) const {
    std::filesystem::create_directories(std::filesystem::path(at(below)).parent_path());
    std::filesystem::create_symlink(target, at(below));
  }

 private:
  std::string path_;
};

/// Opens a dump; if that fails, fails the test and returns an empty session.
inline std::unique_ptr<Session> open(const std::string& path, const DumpOptions& options = {}) {
  Result<std::unique_ptr<Session>> session = open_dump(path, options);
  if (session) return std::move(*session);
  ADD_FAILURE() << session.status().message();
  return std::make_unique<FakeSession>(fake_graph({}));
}
inline std::unique_ptr<Session> open_data(const std::string& name) { return open(data_path("dumps/" + name)); }

/// All tensors in the session's order; by default inputs and outputs.
inline std::vector<TensorId> all_tensors(Session& session, int64_t step, bool inputs = true) {
  TensorQuery query;
  query.inputs = inputs;
  query.steps = IntSet::of(step);
  return session.tensors(query);
}

inline TensorId id_of(const Session& session, const std::string& text, int64_t step, uint32_t execution = 0,
                      std::optional<int> graph = {}, std::optional<int> rank = {}) {
  Result<TensorId> id = resolve_tensor(session, text, step, rank, graph, execution);
  if (id) return *id;
  ADD_FAILURE() << id.status().message();
  return {};
}

inline std::vector<double> elements(Session& session, const TensorId& id) {
  Result<TensorPtr> tensor = session.load(id);
  if (!tensor) {
    ADD_FAILURE() << session.tensor_name(id) << ": " << tensor.status().message();
    return {};
  }
  std::vector<double> values;
  const TensorView view = (*tensor)->view();
  for (uint64_t i = 0; i < view.count; ++i) values.push_back(view.at(i));
  return values;
}
inline std::vector<double> elements(Session& session, const std::string& text, int64_t step, uint32_t execution = 0) {
  return elements(session, id_of(session, text, step, execution));
}

inline Status problem_of(Session& session, const TensorId& id) {
  Result<TensorInfo> info = session.describe(id);
  return info ? info->problem : info.status();
}

/// True if doctor reports a message that contains `message` about a path that ends in `path`.
inline bool reports(Session& session, const std::string& path, const std::string& message) {
  for (const Problem& problem : session.inspect().problems) {
    if (problem.path.ends_with(path) && problem.message.find(message) != std::string::npos) return true;
  }
  return false;
}

inline std::vector<std::string> names(Session& session, int64_t step, bool inputs = true) {
  std::vector<std::string> out;
  for (const TensorId& id : all_tensors(session, step, inputs)) out.push_back(session.tensor_name(id));
  return out;
}

// ---- graph files -----------------------------------------------------------------------------------------------------

inline std::string pb_varint(uint64_t value) {
  std::string out;
  for (; value >= 128; value >>= 7) out += static_cast<char>(value | 128);
  return out + static_cast<char>(value);
}
inline std::string pb_text(int number, const std::string& content) {
  return pb_varint(static_cast<uint64_t>(number) << 3 | 2) + pb_varint(content.size()) + content;
}
inline std::string pb_number(int number, uint64_t value) {
  return pb_varint(static_cast<uint64_t>(number) << 3) + pb_varint(value);
}

struct PbNode {
  std::string full_name, op;
  std::vector<std::string> inputs{};  ///< full names of earlier nodes, or names of parameters
  int data_type = 11;                 ///< MindSpore's number; float32
  std::vector<int> shape{};
  std::vector<std::pair<std::string, std::variant<std::string, int>>> attributes{};
};

/// The bytes of a `.pb`, with the field numbers of proto/debug_graph.proto.
inline std::string graph_pb(const std::string& name, const std::string& root,
                            const std::vector<std::string>& parameters, const std::vector<PbNode>& nodes) {
  std::string graph;
  std::map<std::string, std::string> numbers;
  for (const PbNode& node : nodes) {
    const std::string number = std::to_string(numbers.size() + 1);
    std::string body, shape;
    for (const std::string& input : node.inputs) {
      body += pb_text(1, pb_text(1, numbers.count(input) ? numbers[input] : input));
    }
    for (int length : node.shape) shape += pb_text(1, pb_number(1, static_cast<uint64_t>(length)));
    const std::string tensor = pb_number(1, static_cast<uint64_t>(node.data_type)) + pb_text(2, shape);
    body += pb_text(2, number) + pb_text(3, node.op);
    for (const auto& [key, value] : node.attributes) {
      const int* const integer = std::get_if<int>(&value);
      const std::string held = integer ? pb_number(1, 4) + pb_number(3, static_cast<uint64_t>(*integer))
                                       : pb_number(1, 13) + pb_text(7, std::get<std::string>(value));
      body += pb_text(5, pb_text(1, key) + pb_text(2, held));
    }
    body += pb_text(6, pb_number(1, 14) + pb_text(2, tensor));
    body += pb_text(8, node.full_name);
    numbers[node.full_name] = number;
    graph += pb_text(1, body);
  }
  graph += pb_text(2, name);
  for (const std::string& parameter : parameters) graph += pb_text(3, pb_text(1, parameter));
  graph += pb_text(6, root);
  return pb_number(1, 1) + pb_text(4, graph);
}

}  // namespace msdbg::testing
