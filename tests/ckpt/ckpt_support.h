// Helpers of the checkpoint tests: files written record by record, and shortcuts to inspect an open one.
#pragma once

#include <gtest/gtest.h>

#include <checkpoint.pb.h>
#include <cstring>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "msdbg/checkpoint.h"
#include "support/temp_dir.h"

namespace msdbg::test {

inline std::string corner(const std::string& name) { return std::string(MSDBG_TEST_DATA) + "/ckpt-corners/" + name; }
inline std::string lenet(const std::string& run, int k, const std::string& ending) {
  return std::string(MSDBG_TEST_DATA) + "/checkpoints/lenet-2.7.1-" + run + "/lenet-1_" + std::to_string(k) + ending;
}

/// A piece of a parameter, as MindSpore writes it: a separate Checkpoint message.
inline std::string record(const std::string& name, const std::string& type, const std::vector<int64_t>& dims, const std::string& content) {
  checkpoint::Checkpoint message;
  auto* value = message.add_value();
  value->set_tag(name);
  for (const int64_t dim : dims) value->mutable_tensor()->add_dims(dim);
  value->mutable_tensor()->set_tensor_type(type);
  value->mutable_tensor()->set_tensor_content(content);
  return message.SerializeAsString();
}

template <typename T>
std::string bytes_of(const std::vector<T>& values) {
  return std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
}
inline std::string floats(const std::string& name, const std::vector<float>& values, std::vector<int64_t> dims = {}) {
  if (dims.empty()) dims = {static_cast<int64_t>(values.size())};
  return record(name, "Float32", dims, bytes_of(values));
}

inline std::string read_bytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  EXPECT_FALSE(text.str().empty()) << path;
  return text.str();
}

class CheckpointTest : public ::testing::Test {
 protected:
  std::string write(const std::string& bytes, const std::string& name = "a.ckpt") {
    const std::string path = dir_.file(name);
    std::ofstream(path, std::ios::binary) << bytes;
    return path;
  }

  static std::unique_ptr<Checkpoint> open(const std::string& path, const std::string& key = "", CipherMode mode = CipherMode::kAuto) {
    CheckpointOptions options;
    const Status read = key.empty() ? Status() : read_checkpoint_key(key, &options);
    EXPECT_TRUE(read.ok()) << read.message();
    options.mode = mode;
    auto opened = open_checkpoint(path, options);
    EXPECT_TRUE(opened.ok()) << opened.status().message();
    return opened ? std::move(*opened) : nullptr;
  }
  /// The message of an expected failure.
  std::string failure(const std::string& bytes, const std::string& name = "a.ckpt") {
    const auto opened = open_checkpoint(write(bytes, name));
    return opened ? "opened" : opened.status().message();
  }

  static std::vector<std::string> names(const Checkpoint& checkpoint) {
    std::vector<std::string> out;
    for (const Node& node : checkpoint.graphs()[0]->nodes()) out.push_back(node.name);
    return out;
  }
  static TensorId id_of(const Checkpoint& checkpoint, const std::string& name) {
    TensorId id;
    const Node* node = checkpoint.graphs()[0]->find(name);
    EXPECT_NE(node, nullptr) << name;
    if (node != nullptr) id.node = node->id;
    return id;
  }
  static std::vector<double> values(Checkpoint& checkpoint, const std::string& name) {
    const auto tensor = checkpoint.load(id_of(checkpoint, name));
    EXPECT_TRUE(tensor.ok()) << tensor.status().message();
    std::vector<double> out;
    if (!tensor) return out;
    for (uint64_t i = 0; i < (*tensor)->count(); ++i) out.push_back((*tensor)->view().at(i));
    return out;
  }
  static TensorInfo info(Checkpoint& checkpoint, const std::string& name) { return *checkpoint.describe(id_of(checkpoint, name)); }
  static std::string problems(const Checkpoint& checkpoint) {
    std::string out;
    for (const Problem& problem : checkpoint.facts().problems) out += problem.message + "\n";
    return out;
  }

  TempDir dir_;
};

#define EXPECT_CONTAINS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

}  // namespace msdbg::test
