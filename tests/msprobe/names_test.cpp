#include "session/msprobe/names.h"

#include <gtest/gtest.h>

namespace msdbg::msprobe {
namespace {

TEST(EntryName, OfAnApi) {
  const EntryName name = parse_entry_name("Functional.conv2d.12.backward");
  EXPECT_EQ(name.kind, EntryKind::kBackward);
  EXPECT_EQ(name.prefix, "Functional");
  EXPECT_EQ(name.op, "conv2d");
  EXPECT_EQ(name.stem, "Functional.conv2d.12");
  EXPECT_EQ(name.number, 12u);
}

TEST(EntryName, OfAPrimitiveIsItsClass) {
  EXPECT_EQ(parse_entry_name("Primitive.conv2d.Conv2D.0.forward").op, "Conv2D");
  EXPECT_EQ(parse_entry_name("Torch._fused_adamw_.0.forward").op, "_fused_adamw_");
}

TEST(EntryName, OfAModule) {
  const EntryName name = parse_entry_name("Module.net.conv1.Conv2d.forward.3");
  EXPECT_EQ(name.kind, EntryKind::kModule);
  EXPECT_EQ(name.op, "Conv2d");
  EXPECT_EQ(name.path, "net.conv1");
  EXPECT_EQ(name.stem, "Module.net.conv1.Conv2d");
  EXPECT_EQ(name.number, 3u);
  EXPECT_EQ(scope_of_module(name.path), "net/conv1");
  EXPECT_EQ(parse_entry_name("Cell.net.LeNet.backward.0").kind, EntryKind::kModuleBackward);
  EXPECT_EQ(parse_entry_name("Module.0.fc.Linear.forward.0").path, "0.fc");
}

TEST(EntryName, OfGradientsOfParametersHasANumberFrom26On) {
  const EntryName numbered = parse_entry_name("Module.net.fc.Linear.parameters_grad.1");
  EXPECT_EQ(numbered.kind, EntryKind::kParameterGradients);
  EXPECT_EQ(numbered.number, 1u);
  const EntryName plain = parse_entry_name("Module.net.fc.Linear.parameters_grad");
  EXPECT_EQ(plain.kind, EntryKind::kParameterGradients);
  EXPECT_EQ(plain.stem, numbered.stem);
  EXPECT_FALSE(plain.number);
}

TEST(EntryName, OfAnotherFormIsAForwardCall) {
  EXPECT_EQ(parse_entry_name("Triton.kernel.0").op, "kernel");
  EXPECT_EQ(parse_entry_name("Aten.x.forward").op, "x");
  EXPECT_EQ(parse_entry_name("features.0.debug").kind, EntryKind::kForward);
  for (const char* name :
       {"", ".", "Module.", "Module.forward.0", "forward", "Cell.x", "0", "a..b", "Module.a.B.forward.99999999999999999999"})
    EXPECT_LE(parse_entry_name(name).op.size(), std::string_view(name).size());
}

}  // namespace
}  // namespace msdbg::msprobe
