// A selector, applied to every node of a small graph.
#include "fuzz/input.h"
#include "support/fake_session.h"

using namespace msdbg;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const std::vector<GraphPtr> graphs = {
      testing::fake_graph(
          {{"Default/fc1.weight", "Parameter"},
           {"Default/network-Net/fc1-Dense/MatMul-op0",
            "MatMul",
            {"Default/fc1.weight"},
            1,
            {{"/home/me/train.py", 12, "x = self.fc1(x)"}}},
           {"Default/network-Net/relu-ReLU/ReLU-op0", "ReLU", {"Default/network-Net/fc1-Dense/MatMul-op0"}},
           {"Gradients/Default/network-Net/relu-ReLU/gradReLU/ReluGrad-op0", "ReluGrad", {"Default/network-Net/relu-ReLU/ReLU-op0"}},
           {std::string(200, 'a'), "Odd"}}),
      testing::fake_graph({{"data-1", "Const"}, {"Log-op0", "Log", {"data-1"}}}, 1, 0)};
  const Result<Selector> selector = Selector::parse(fuzz::Input(data, size).rest());
  if (!fuzz::good(selector)) return 0;
  const std::vector<NodeRef> found = selector->resolve(graphs);
  const Result<Selector> again = Selector::parse(selector->text());
  fuzz::require(fuzz::good(again) && again->resolve(graphs) == found, "a selector whose text selects something else");
  (void)fuzz::good(resolve_or_explain(*selector, graphs));
  return 0;
}
