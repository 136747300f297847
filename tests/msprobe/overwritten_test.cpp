// Values that were overwritten, shown by what is usual: in other steps of a dump of modules, and in other calls of a line.
#include <algorithm>
#include <vector>

#include "msprobe/msprobe_support.h"

namespace msdbg::testing {
namespace {

std::string range(double max, double min) { return tensor_entry("[2]", std::to_string(max), std::to_string(min)); }

/// "NODE:input:0 NODE:output:0: why" of each.
std::vector<std::string> overwritten_in(const WrittenDump& dump) {
  const auto session = dump.open();
  std::vector<std::string> out;
  for (const int64_t step : session->steps()) {
    for (const Overwritten& each : session->overwritten(0, step))
      out.push_back(session->tensor_name(each.after) + " " + session->tensor_name(each.before) + ": " + each.reason);
  }
  return out;
}

using Lines = std::vector<std::string>;

/// What is found in two modules, one behind the other, in each of some steps; `inputs`: of the second one, null where it is the output of
/// the first.
Lines found_in_modules(const std::vector<const double*>& inputs) {
  WrittenDump dump;
  for (size_t step = 0; step < inputs.size(); ++step) {
    const double shift = static_cast<double>(step);
    const double made = 4 + shift;
    dump.table("step" + std::to_string(step) + "/rank0",
               call_entry("Module.a.Linear.forward.0", range(1 + shift, -1), range(made, -2)) + ", " +
                   call_entry("Module.b.Linear.forward.0", range(inputs[step] ? *inputs[step] : made, -2), range(3 + shift, -3)));
  }
  return overwritten_in(dump);
}

TEST(OverwrittenUsual, AModuleWhoseInputIsThatOutputInThreeOtherSteps) {
  const double stranger = 50;
  EXPECT_EQ(found_in_modules({nullptr, nullptr, &stranger, nullptr}),
            Lines{"Module.b.Linear.forward.0:input:0 Module.a.Linear.forward.0:output:0: it is that output in other steps"});
}

TEST(OverwrittenUsual, TwoOtherStepsAreNotEnoughForModules) {
  // Between modules, a call that nobody recorded may have left its input as it is by chance.
  const double stranger = 50;
  EXPECT_EQ(found_in_modules({nullptr, &stranger, nullptr}), Lines{});
}

TEST(OverwrittenUsual, AModuleThatDiffersInTwoStepsIsNotClaimed) {
  const double stranger = 50, other = 60;
  EXPECT_EQ(found_in_modules({nullptr, &stranger, nullptr, &other, nullptr, nullptr}), Lines{});
}

TEST(OverwrittenUsual, AModuleWithASmallerRangeIsNotClaimed) {
  const double limited = 1.5;
  EXPECT_EQ(found_in_modules({nullptr, &limited, nullptr, nullptr, nullptr}), Lines{});
}

/// What is found in a call that takes what `maker` made, in each of some steps, and in step 1 something else.
Lines found_behind(const std::string& maker, size_t steps) {
  WrittenDump dump;
  for (size_t step = 0; step < steps; ++step) {
    const std::string made = range(4 + static_cast<double>(step), -2);
    dump.table("step" + std::to_string(step) + "/rank0", call_entry(maker, range(1, -1), made) + ", " +
                                                             call_entry("Torch.bmm.0.forward", step == 1 ? range(50, -2) : made, range(3, -3)));
  }
  return overwritten_in(dump);
}

TEST(OverwrittenUsual, ACallWhoseInputIsThatOutputInAnotherStep) {
  EXPECT_EQ(found_behind("Torch.relu.0.forward", 3),
            Lines{"Torch.bmm.0.forward:input:0 Torch.relu.0.forward:output:0: it is that output in other steps"});
}

TEST(OverwrittenUsual, WhatACallReceivesMayArriveAfterItWasRecorded) {
  EXPECT_EQ(found_behind("Distributed.irecv.0.forward", 5), Lines{});
}

TEST(OverwrittenUsual, HooksWorkOnGradients) {
  // As one that compresses them, and adds what it lost before.
  const std::string gradient = "Functional.linear.0.backward";
  EXPECT_EQ(found_behind(gradient, 3), Lines{});
  EXPECT_EQ(found_behind(gradient, 5).size(), 1U);
}

/// One step of a loop of five layers: linear, then gelu on its output. `input`: of the gelu of layer `at`.
struct Layers {
  int count = 5, at = 2;
  std::string input = range(90, -1);
  std::string between;  ///< a call before that gelu
  bool stacks = true, first_is_special = false;

  Lines found() const {
    std::string calls = call_entry("Torch.embedding.0.forward", range(2, 0), range(7, -7)), linear, gelu;
    for (int layer = 0; layer < count; ++layer) {
      const std::string number = std::to_string(layer) + ".forward", made = range(10 + layer, -5);
      calls += ", " + call_entry("Functional.linear." + number, range(20 + layer, 1), made) + ", ";
      if (layer == at && !between.empty()) calls += call_entry(between, made, range(80, -1)) + ", ";
      calls += call_entry("Functional.gelu." + number, layer == at ? input : first_is_special && layer == 0 ? range(7, -7) : made, range(30 + layer, 0));
      linear += (layer ? ", " : "") + ("\"Functional.linear." + number) + "\"";
      gelu += (layer ? ", " : "") + ("\"Functional.gelu." + number) + "\"";
    }
    WrittenDump dump;
    dump.table("step0/rank0", calls);
    const auto stack = [](const std::string& names, int line) {
      return "[[" + names + R"(], ["File /home/dev/net.py, line )" + std::to_string(line) + R"(, in forward, \n code"]])";
    };
    if (stacks) dump.put("step0/rank0/stack.json", R"({"0": )" + stack(linear, 10) + R"(, "1": )" + stack(gelu, 11) + "}");
    return overwritten_in(dump);
  }
};

TEST(OverwrittenUsual, OneLayerOfALoopInOneStep) {
  EXPECT_EQ(Layers{}.found(), Lines{"Functional.gelu.2.forward:input:0 Functional.linear.2.forward:output:0: in 4 other calls from its line, "
                                    "it is the output of that line"});
}

TEST(OverwrittenUsual, NothingIsClaimedOfALayerOfALoop) {
  Layers healthy, first, last, few, limited, in_place, nowhere;
  healthy.at = -1;
  EXPECT_EQ(healthy.found(), Lines{});
  first.at = 0;  // the first and the last layer are often special
  EXPECT_EQ(first.found(), Lines{});
  last.at = 4;
  EXPECT_EQ(last.found(), Lines{});
  few.count = 3;
  few.at = 1;
  EXPECT_EQ(few.found(), Lines{});
  limited.input = range(6, -4);  // what a limit or a mask leaves
  EXPECT_EQ(limited.found(), Lines{});
  in_place.between = "Tensor.add_.0.forward";
  EXPECT_EQ(in_place.found(), Lines{});
  nowhere.stacks = false;  // lines tell which calls are alike
  EXPECT_EQ(nowhere.found(), Lines{});
}

TEST(OverwrittenUsual, TheFirstLayerMayTakeWhatAnotherLineMade) {
  Layers layers;
  layers.first_is_special = true;
  EXPECT_EQ(layers.found().size(), 1u);
  layers.count = 4;  // now two others agree
  EXPECT_EQ(layers.found(), Lines{});
}

TEST(OverwrittenUsual, ALoopWithTwoLayersOfAnotherKindIsNotClaimed) {
  // As with a position that some layers add and others do not.
  Layers layers;
  layers.count = 8;
  WrittenDump dump;
  std::string calls, linear, gelu;
  for (int layer = 0; layer < layers.count; ++layer) {
    const std::string number = std::to_string(layer) + ".forward", made = range(10 + layer, -5);
    calls += (layer ? ", " : "") + call_entry("Functional.linear." + number, range(20 + layer, 1), made) + ", " +
             call_entry("Functional.gelu." + number, layer == 2 || layer == 5 ? range(90 + layer, -1) : made, range(30 + layer, 0));
    linear += (layer ? ", " : "") + ("\"Functional.linear." + number) + "\"";
    gelu += (layer ? ", " : "") + ("\"Functional.gelu." + number) + "\"";
  }
  dump.table("step0/rank0", calls);
  dump.put("step0/rank0/stack.json", R"({"0": [[)" + linear + R"(], ["File /n.py, line 1, in f, \n code"]], "1": [[)" + gelu +
                                         R"(], ["File /n.py, line 2, in f, \n code"]]})");
  EXPECT_EQ(overwritten_in(dump), Lines{});
}

}  // namespace
}  // namespace msdbg::testing
