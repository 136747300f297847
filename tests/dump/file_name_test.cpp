#include "session/dump/file_name.h"

#include <gtest/gtest.h>

namespace msdbg::dump {
namespace {

TEST(FileName, NewestFormHasATypeComponent) {
  const FileName name = parse_file_name(
      "Conv2D.Default_network-WithLossCell__backbone-LeNet5_conv1-Conv2d_Conv2D-op0.0.0.1751000000000203.output.0."
      "DefaultFormat.Float32.npy");
  EXPECT_EQ(name.kind, FileKind::kNpy);
  EXPECT_EQ(name.op_type, "Conv2D");
  EXPECT_EQ(name.op, "Default_network-WithLossCell__backbone-LeNet5_conv1-Conv2d_Conv2D-op0");
  EXPECT_EQ(name.timestamp, 1751000000000203u);
  EXPECT_EQ(name.io, Io::kOutput);
  EXPECT_EQ(name.slot, 0u);
  EXPECT_EQ(name.format, "DefaultFormat");
  EXPECT_EQ(name.dtype, "Float32");
}

TEST(FileName, OlderFormEndsWithTheFormat) {
  const FileName name = parse_file_name("Conv2D.Conv2D-op369.7.3.1.input.12.NC1HWC0_C04.npy");
  EXPECT_EQ(name.kind, FileKind::kNpy);
  EXPECT_EQ(name.op, "Conv2D-op369");
  EXPECT_EQ(name.task, 7);
  EXPECT_EQ(name.stream, 3);
  EXPECT_EQ(name.timestamp, 1u);
  EXPECT_EQ(name.slot, 12u);
  EXPECT_EQ(name.format, "NC1HWC0_C04");
  EXPECT_EQ(name.dtype, "");
}

TEST(FileName, DotsBelongToTheNameOfAParameter) {
  const FileName name = parse_file_name("Parameter.fc2.bias.0.0.2.output.0.DefaultFormat.npy");
  EXPECT_EQ(name.op_type, "Parameter");
  EXPECT_EQ(name.op, "fc2.bias");
  EXPECT_EQ(name.timestamp, 2u);
}

TEST(FileName, AParameterMayBeCalledLikeASlot) {
  const FileName name = parse_file_name("Parameter.x.input.0.0.0.2.output.0.DefaultFormat.Float32.npy");
  EXPECT_EQ(name.op, "x.input.0");
  EXPECT_EQ(name.io, Io::kOutput);
}

TEST(FileName, OperatorWithoutScopeHasAnEmptyName) {
  const FileName name = parse_file_name("Cast..0.0.1700.output.0.DefaultFormat.npy");
  EXPECT_EQ(name.kind, FileKind::kNpy);
  EXPECT_EQ(name.op_type, "Cast");
  EXPECT_EQ(name.op, "");
}

TEST(FileName, TimeStampMayBeEmpty) {
  const FileName name = parse_file_name("Parameter.data-1.0.0..output.0.DefaultFormat.npy");
  EXPECT_EQ(name.kind, FileKind::kNpy);
  EXPECT_EQ(name.op, "data-1");
  EXPECT_EQ(name.timestamp, 0u);
}

TEST(FileName, NamesKeepBracketsBarsAndSlashes) {
  EXPECT_EQ(parse_file_name("Add.a|b[0](x){y}+_Add-op1.0.0.5.output.0.ND.float32.npy").op, "a|b[0](x){y}+_Add-op1");
  EXPECT_EQ(parse_file_name("Parameter.a.b/c d.0.0.5.output.0.DefaultFormat.npy").op, "a.b/c d");
}

TEST(FileName, HeaderlessFormCarriesShapeAndType) {
  const FileName name =
      parse_file_name("Default--network--conv1-Conv2d--Conv2D-op3_output_0_shape_32_6_28_28_Float32_DefaultFormat.bin");
  EXPECT_EQ(name.kind, FileKind::kRaw);
  EXPECT_EQ(name.op, "Default--network--conv1-Conv2d--Conv2D-op3");
  EXPECT_EQ(name.shape, (Shape{32, 6, 28, 28}));
  EXPECT_EQ(name.dtype, "Float32");
  EXPECT_EQ(name.format, "DefaultFormat");
  EXPECT_FALSE(name.scalar);
}

TEST(FileName, HeaderlessFormatsMayHoldUnderscores) {
  const FileName name = parse_file_name("conv1.weight_input_1_shape_2_3_kNumberTypeFloat16_FRACTAL_NZ.bin");
  EXPECT_EQ(name.op, "conv1.weight");
  EXPECT_EQ(name.io, Io::kInput);
  EXPECT_EQ(name.slot, 1u);
  EXPECT_EQ(name.dtype, "kNumberTypeFloat16");
  EXPECT_EQ(name.format, "FRACTAL_NZ");
}

TEST(FileName, HeaderlessScalarHasALoneZero) {
  const FileName name = parse_file_name("cst1_output_0_shape_0_Int32_DefaultFormat.bin");
  EXPECT_TRUE(name.scalar);
  EXPECT_EQ(name.shape, Shape{});
}

TEST(FileName, DeviceContainersHaveNoEnding) {
  const FileName five = parse_file_name("MatMul.Default_MatMul-op1.12.7.1700000000000000");
  EXPECT_EQ(five.kind, FileKind::kDevice);
  EXPECT_EQ(five.task, 12);
  EXPECT_EQ(five.stream, 7);
  const FileName four = parse_file_name("MatMul.Default_MatMul-op1.12.1700000000000000");
  EXPECT_EQ(four.kind, FileKind::kDevice);
  EXPECT_EQ(four.task, 12);
  EXPECT_EQ(four.op, "Default_MatMul-op1");
}

TEST(FileName, TheConverterWritesAShapeForTheFormat) {
  const FileName name = parse_file_name("MatMul.Default_MatMul-op1.12.7.1700000000000000.output.1.4x20x3.npy");
  EXPECT_EQ(name.kind, FileKind::kNpy);
  EXPECT_EQ(name.op, "Default_MatMul-op1");
  EXPECT_EQ(name.slot, 1u);
  EXPECT_EQ(name.format, "ND");
  const FileName old = parse_file_name("MatMul.Default_MatMul-op1.12.1700000000000000.input.0.5.npy");
  EXPECT_EQ(old.kind, FileKind::kNpy);
  EXPECT_EQ(old.task, 12);
  EXPECT_EQ(old.timestamp, 1700000000000000u);
  EXPECT_EQ(parse_file_name("MatMul.Default_MatMul-op1.12.7.5.output.0..npy").format, "ND");
}

TEST(FileName, CompanionsAreTold) {
  EXPECT_EQ(parse_file_name("mapping.csv").kind, FileKind::kMapping);
  EXPECT_EQ(parse_file_name("statistic.csv").kind, FileKind::kStatistics);
  EXPECT_EQ(parse_file_name("Opdebug.Node_OpDebug.1.2.3.output.0.json").kind, FileKind::kOverflow);
}

TEST(FileName, WhatDoesNotFitIsNoTensor) {
  for (const char* text :
       {"", ".npy", "x_float32_0.npy", "a.b.c.npy", "Add.Add-op1.0.0.5.output.x.DefaultFormat.npy",
        "Add.Add-op1.0.0.5x.output.0.DefaultFormat.npy", "Add.Add-op1.0.a.5.output.0.DefaultFormat.npy",
        "Add.Add-op1.0.0.5.middle.0.DefaultFormat.npy", "Add.Add-op1.0.0.5.output.99999999999.DefaultFormat.npy",
        "output.0.DefaultFormat.npy", "0.0.5.output.0.DefaultFormat.npy", "x_output_0_shape_Float32.bin",
        "_output_0_shape_2_Float32_ND.bin", "x_output_0_shape_2_3.bin", "README.md", "notes.1.2", "a.b.c.d"}) {
    EXPECT_EQ(parse_file_name(text).kind, FileKind::kOther) << text;
  }
}

TEST(Formats, BlockedFormatsAreTheDevices) {
  for (const char* format : {"DefaultFormat", "NCHW", "NHWC", "ND", "HWCN", "NCDHW", "DHWCN", "2x3x4", ""}) {
    EXPECT_TRUE(is_host_format(format)) << format;
  }
  for (const char* format : {"NC1HWC0", "NC1HWC0_C04", "FRACTAL_Z", "FRACTAL_NZ", "FRACTAL_ZN_LSTM", "C1HWNCoC0",
                             "NDC1HWC0", "FRACTAL_Z_3D"}) {
    EXPECT_FALSE(is_host_format(format)) << format;
  }
}

TEST(NumberedNames, OnlyTheLastNumberCounts) {
  EXPECT_EQ(split_number("Conv2D-op12").stem, "Conv2D");
  EXPECT_EQ(split_number("Conv2D-op12").number, 12);
  EXPECT_EQ(split_number("a-op1_b-op2").stem, "a-op1_b");
  EXPECT_FALSE(split_number("conv1.weight").number);
  EXPECT_FALSE(split_number("x-opening").number);
}

}  // namespace
}  // namespace msdbg::dump
