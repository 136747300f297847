// A real dump, rewritten as an asynchronous one of Ascend: the elements of each kernel in a container, in the device's formats and
// with NaN as padding. Everything must be as in the dump itself.
#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "dump/dump_support.h"
#include "support/container_file.h"
#include "support/copy_dump.h"

namespace msdbg::testing {
namespace {

namespace fs = std::filesystem;

/// The runtime's number of a type.
uint64_t runtime_type(DType dtype) {
  const std::map<DType, uint64_t> types = {{DType::kFloat32, 1}, {DType::kFloat16, 2}, {DType::kInt32, 7}, {DType::kInt64, 8},
                                           {DType::kBool, 11}};
  return types.at(dtype);
}

/// The elements in a format that their shape allows; `turn` chooses among them.
test::StoredTensor stored(const TensorBuffer& tensor, size_t turn) {
  const Shape& shape = tensor.shape();
  const size_t item = item_size(tensor.dtype());
  const std::string plain(reinterpret_cast<const char*>(tensor.bytes().data()), tensor.bytes().size());
  test::StoredTensor out{runtime_type(tensor.dtype()), test::kFormatNd, shape, shape, plain};
  test::DeviceMemory memory;
  if (shape.size() == 4) {
    const test::HostShape host{shape[0], shape[1], 1, shape[2], shape[3], false};
    const std::pair<uint64_t, const char*> formats[] = {{3, "NC1HWC0"}, {4, "FRACTAL_Z"}, {1, "NHWC"}, {16, "HWCN"}};
    const auto& [number, name] = formats[turn % std::size(formats)];
    out.format = number;
    memory = test::device_memory(name, host, 16);
  } else if (shape.size() == 2 || shape.size() == 3) {
    out.format = test::kFormatFractalNz;
    memory = test::fractal_nz(shape, 16);
  } else {
    return out;
  }
  out.shape = memory.shape;
  out.bytes.clear();
  for (const int64_t element : memory.elements) {
    out.bytes += element == test::kPadding ? std::string(item, '\xff') : plain.substr(static_cast<size_t>(element) * item, item);
  }
  return out;
}

TEST(ContainerData, ARealDumpInTheFormatsOfADeviceIsTheSame) {
  const std::string source = data_path("dumps/lenet-2.7.1-lognan");
  auto plain = open(source);
  TempDir dir;
  test::copy_dump(source, dir.at("dump"));
  // The kernels' files go into containers; those of parameters stay.
  std::map<std::pair<int64_t, NodeId>, std::pair<std::string, test::StoredContainer>> containers;
  TensorQuery query;
  query.inputs = true;
  size_t turn = 0;
  for (const TensorId& id : plain->tensors(query)) {
    if (plain->node(id).kind != NodeKind::kOperator) continue;
    const TensorInfo info = *plain->describe(id);
    const std::string file = fs::path(info.source).lexically_relative(source).string();
    auto& [name, container] = containers[{id.step, id.node}];
    if (name.empty()) name = file.substr(0, file.rfind(id.slot.io == Io::kInput ? ".input." : ".output."));
    auto& tensors = id.slot.io == Io::kInput ? container.inputs : container.outputs;
    ASSERT_EQ(tensors.size(), id.slot.index);
    tensors.push_back(stored(**plain->load(id), turn++));
    fs::remove(dir.at("dump/" + file));
  }
  ASSERT_EQ(containers.size(), 94u);
  for (const auto& [key, container] : containers) dir.text("dump/" + container.first, container.second.bytes());

  auto device = open(dir.at("dump"));
  ASSERT_EQ(plain->tensors(query), device->tensors(query));
  for (const TensorId& id : plain->tensors(query)) {
    const Result<Stats> expected = plain->stats(id), found = device->stats(id);
    ASSERT_TRUE(expected.ok() && found.ok()) << plain->tensor_name(id) << found.status().message();
    EXPECT_EQ(expected->nan_count, found->nan_count) << plain->tensor_name(id);
    EXPECT_EQ(expected->neg_inf_count, found->neg_inf_count);
    EXPECT_EQ(expected->first_bad, found->first_bad) << plain->tensor_name(id);
    EXPECT_TRUE(std::ranges::equal((*plain->load(id))->bytes(), (*device->load(id))->bytes())) << plain->tensor_name(id);
    EXPECT_EQ((*plain->load(id))->shape(), (*device->load(id))->shape());
  }
}

}  // namespace
}  // namespace msdbg::testing
