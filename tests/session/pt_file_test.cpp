// Files of torch.save: real ones, those of an NPU, views, and hostile ones.
#include <gtest/gtest.h>
#include <openssl/sha.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "msdbg/file.h"
#include "msdbg/pt_file.h"
#include "msdbg/tensor_file.h"
#include "support/temp_dir.h"
#include "support/torch_file.h"

namespace msdbg {
namespace {

using nlohmann::json;
using test::PickledTensor;
using test::StoredEntry;

std::string torch_data(const std::string& below) { return std::string(MSDBG_TEST_DATA) + "/torch-files/" + below; }

json read_json(const std::string& path) {
  std::ifstream file(path);
  return json::parse(file);
}

TensorFile open_torch(const std::string& path) { return open_tensor_file(path, {.form = FileForm::kTorch}); }

std::string sha256(std::span<const std::byte> bytes) {
  unsigned char hash[SHA256_DIGEST_LENGTH];
  SHA256(reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(), hash);
  std::string text;
  for (const unsigned char byte : hash) {
    constexpr char kDigits[] = "0123456789abcdef";
    text += {kDigits[byte >> 4], kDigits[byte & 15]};
  }
  return text;
}

/// The elements, read in two parts.
std::vector<std::byte> torch_elements(ElementReader& reader) {
  const size_t item = item_size(reader.dtype());
  std::vector<std::byte> out(reader.count() * item);
  const uint64_t half = reader.count() / 2;
  EXPECT_TRUE(reader.read(0, std::span(out).first(half * item)).ok());
  EXPECT_TRUE(reader.read(half, std::span(out).subspan(half * item)).ok());
  return out;
}

/// Type, shape and, where they are evaluated, the hash of the elements.
void expect_as_torch_says(const std::string& name, const TensorFile& file, const json& expected, const std::string& hash) {
  const FileContent& content = file.content;
  EXPECT_EQ(shape_text(content.shape), shape_text(expected["shape"].get<Shape>())) << name;
  const std::string type = expected["dtype"].get<std::string>().substr(6);
  EXPECT_EQ(dtype_name(content.dtype), type.starts_with("float8") ? "float8" : type) << name;
  if (!is_evaluable(content.dtype)) {
    EXPECT_EQ(content.problem.code(), Code::kUnsupported) << name;
    EXPECT_NE(content.problem.message().find(expected["dtype"].get<std::string>()), std::string::npos) << content.problem.message();
    return;
  }
  ASSERT_NE(file.reader, nullptr) << name << ": " << content.problem.message();
  EXPECT_EQ(sha256(torch_elements(*file.reader)).substr(0, hash.size()), hash) << name;
}

TEST(PtFile, EveryFileOfARealDumpHasTheElementsThatTorchReads) {
  const json expected = read_json(torch_data("real.json"));
  ASSERT_EQ(expected.size(), 335u);
  for (const auto& [name, entry] : expected.items()) {
    expect_as_torch_says(name, open_torch(torch_data("real/" + name)), entry, entry["sha256"]);
  }
}

TEST(PtFile, FormsThatNoTrainingOnACpuWrites) {
  const json expected = read_json(torch_data("synthetic.json"));
  int good = 0;
  for (const auto& [name, entry] : expected.items()) {
    // torch reads both; they are refused with the reason.
    if (entry.contains("refused") || name == "legacy.pt" || name == "deflated.pt") continue;
    expect_as_torch_says(name, open_torch(torch_data("synthetic/" + name)), entry, entry.value("sha256_of_row_major_bytes", ""));
    ++good;
  }
  EXPECT_EQ(good, 19);
}

TEST(PtFile, WhatIsNotAPlainTensorIsRefusedByItsName) {
  const std::map<std::string, std::string> expected = {
      {"list.pt", "the file holds a list, not one tensor"},
      {"dict.pt", "the file holds a dict, not one tensor"},
      {"quantized.pt", "the file holds a tensor that is quantized; only plain ones are read"},
      {"truncated.pt", "the file is cut off: the directory at the end of a ZIP file is missing"},
      {"zero.pt", "the file is empty (0 bytes)"},
      {"legacy.pt", "the file is in torch's format before 1.6, which is not read: load it and save it again with torch.save"},
      {"deflated.pt",
       "the file is compressed (entry archive/data.pkl, ZIP method 8); torch.save never compresses: unpack it and store it again, or save "
       "the tensor again"},
      {"missing_storage.pt", "the file is damaged: its entry data/0 with the elements is missing"},
      {"short_storage.pt",
       "the file is damaged: its storage has 88 bytes, too few for the shape [4,6] with strides [6,1] from element 0 on (4 bytes each)"},
      {"evil_shape.pt",
       "the file is damaged: its storage has 96 bytes, too few for the shape [1073741824,1073741824] with strides [1073741824,1] from "
       "element 0 on (4 bytes each)"},
      {"evil_wrap.pt", "the file is damaged: no file can hold the shape [4294967296,4294967296]"},
      {"evil_offset.pt",
       "the file is damaged: its storage has 96 bytes, too few for the shape [4,6] with strides [6,1] from element 1000 on (4 bytes each)"},
      {"evil_negative.pt", "the file is damaged: its tensor begins at element -4 of the storage"},
      {"evil_negative_stride.pt", "the file is damaged: it has negative strides [-6,1]"},
      {"evil_dims.pt", "the file is damaged: the shape [4,6] has 1 strides"},
      {"evil_storage.pt", "the file has a storage of the unknown type os.system"},
      {"evil_function.pt", "the file does not hold a plain tensor: the function os.system"},
      {"evil_eval.pt", "the file does not hold a plain tensor: the function builtins.eval"},
      {"evil_build.pt", "the file does not hold a plain tensor: its pickle has the opcode BUILD"},
      {"evil_deep.pt", "the file has a damaged description of its tensor: it ends before its tensor is complete"},
      {"evil_memo.pt", "the file has a damaged description of its tensor: it uses value 99, which it did not store"},
      {"evil_string.pt", "the file has a damaged description of its tensor: it is cut off"}};
  for (const auto& [name, message] : expected) {
    const TensorFile file = open_torch(torch_data("synthetic/" + name));
    EXPECT_EQ(file.reader, nullptr) << name;
    EXPECT_EQ(file.content.problem.message(), message) << name;
  }
}

class HandmadePtFile : public ::testing::Test {
 protected:
  TensorFile open_bytes(const std::string& bytes) {
    const std::string path = dir_.file("tensor.pt");
    std::ofstream(path, std::ios::binary) << bytes;
    return open_torch(path);
  }
  static std::vector<StoredEntry> entries(const PickledTensor& tensor = {}, std::vector<float> elements = counted(24)) {
    std::string bytes(elements.size() * 4, '\0');
    std::memcpy(bytes.data(), elements.data(), bytes.size());
    return {{"x/data.pkl", tensor.bytes()}, {"x/byteorder", "little"}, {"x/data/0", bytes}};
  }
  static std::vector<float> counted(size_t count) {
    std::vector<float> out(count);
    for (size_t i = 0; i < count; ++i) out[i] = static_cast<float>(i);
    return out;
  }
  static std::vector<float> floats(const TensorFile& file) {
    if (!file.reader) return {};
    const std::vector<std::byte> bytes = torch_elements(*file.reader);
    std::vector<float> out(bytes.size() / 4);
    std::memcpy(out.data(), bytes.data(), bytes.size());
    return out;
  }
  std::string problem(const std::string& bytes) { return open_bytes(bytes).content.problem.message(); }

  test::TempDir dir_;
};

TEST_F(HandmadePtFile, SizesMayBeInTheRecordsOfZip64) {
  EXPECT_EQ(floats(open_bytes(zip_of(entries()))), counted(24));
  EXPECT_EQ(floats(open_bytes(zip_of(entries(), true))), counted(24));
}

TEST_F(HandmadePtFile, ACommentMayFollowTheDirectory) {
  EXPECT_EQ(floats(open_bytes(zip_of(entries(), false, std::string(20000, 'c')))), counted(24));
}

TEST_F(HandmadePtFile, LargeFilesAreReadAtTheirEnds) {
  PickledTensor tensor;
  tensor.shape = {100000};
  tensor.strides = {1};
  EXPECT_EQ(floats(open_bytes(zip_of(entries(tensor, counted(100000)), true))), counted(100000));
}

TEST_F(HandmadePtFile, LongRunsOfAViewAreReadFromTheFile) {
  PickledTensor tensor;
  tensor.shape = {3, 2000};
  tensor.strides = {5000, 1};
  tensor.offset = 100;
  const std::vector<float> out = floats(open_bytes(zip_of(entries(tensor, counted(20000)))));
  ASSERT_EQ(out.size(), 6000u);
  for (size_t i = 0; i < out.size(); ++i) ASSERT_EQ(out[i], static_cast<float>(100 + i / 2000 * 5000 + i % 2000)) << i;
}

TEST_F(HandmadePtFile, ANegatedViewHasTheOppositeSigns) {
  PickledTensor tensor;
  tensor.more = "}" + PickledTensor::text("neg") + "\x88s";
  std::vector<float> expected = counted(24);
  for (float& value : expected) value = -value;
  EXPECT_EQ(floats(open_bytes(zip_of(entries(tensor)))), expected);
}

TEST_F(HandmadePtFile, NegatedIntegersAreNamed) {
  PickledTensor tensor;
  tensor.storage = "torch\nIntStorage";
  tensor.more = "}" + PickledTensor::text("neg") + "\x88s";
  EXPECT_EQ(problem(zip_of(entries(tensor))), "negated torch.int32 elements are not evaluated");
}

TEST_F(HandmadePtFile, AViewThatRepeatsItsElementsWithoutEndIsRefused) {
  PickledTensor tensor;
  tensor.shape = {1 << 30, 1 << 30};
  tensor.strides = {0, 0};
  EXPECT_EQ(problem(zip_of(entries(tensor))),
            "the file repeats the elements of its storage 1152921504606846976 times: the shape [1073741824,1073741824] in 96 bytes");
}

TEST_F(HandmadePtFile, OtherFunctionsOfTorchAreNamed) {
  PickledTensor sparse;
  sparse.function = "torch._utils\n_rebuild_sparse_tensor";
  EXPECT_EQ(problem(zip_of(entries(sparse))), "the file holds a tensor that is sparse; only plain ones are read");
  PickledTensor unknown;
  unknown.function = "torch._utils\n_rebuild_tensor_v9";
  EXPECT_EQ(problem(zip_of(entries(unknown))), "the file does not hold a plain tensor: the function torch._utils._rebuild_tensor_v9");
  PickledTensor hook;
  hook.more = "cos\nsystem\n)R";
  EXPECT_EQ(problem(zip_of(entries(hook))), "the file does not hold a plain tensor: it refers to os.system");
}

TEST_F(HandmadePtFile, NamesAreShownWithoutControlCharacters) {
  PickledTensor tensor;
  tensor.function = "e\x1b[31m\nvil";
  EXPECT_EQ(problem(zip_of(entries(tensor))), "the file does not hold a plain tensor: the function e?[31m.vil");
}

TEST_F(HandmadePtFile, OffsetsAndSizesOfTheDirectoryAreChecked) {
  std::vector<StoredEntry> wrong = entries();
  wrong[2].offset_error = 7;
  EXPECT_EQ(problem(zip_of(wrong)), "the file is damaged: the contents of x/data/0 are not where its directory says");
  wrong[2].offset_error = 1 << 20;
  EXPECT_EQ(problem(zip_of(wrong)), "the file is damaged: the contents of x/data/0 are not where its directory says");
  wrong = entries();
  wrong[0].flags = 1;
  EXPECT_EQ(problem(zip_of(wrong)), "the file is encrypted (entry x/data.pkl)");
  wrong = entries();
  wrong[1].content = "middle";
  EXPECT_EQ(problem(zip_of(wrong)), "the file has the unknown byte order 'middle'");
  wrong = entries();
  wrong[0].name = "x/model.pkl";
  EXPECT_EQ(problem(zip_of(wrong)), "the file is a ZIP file without the entry data.pkl: torch.save did not write it");
}

TEST_F(HandmadePtFile, EveryCutOfAFileIsAnError) {
  const std::string whole = zip_of(entries(), true);
  for (size_t bytes = 0; bytes < whole.size(); ++bytes) {
    const TensorFile file = open_bytes(whole.substr(0, bytes));
    ASSERT_EQ(file.content.problem.code(), Code::kCorrupt) << bytes;
    ASSERT_EQ(file.reader, nullptr);
  }
}

TEST_F(HandmadePtFile, OtherFilesAreNamedByTheirFirstBytes) {
  EXPECT_EQ(problem("\x93NUMPY and more of it"), "the file is no file of torch.save (it starts with 93 4e 55 4d)");
}

}  // namespace
}  // namespace msdbg
