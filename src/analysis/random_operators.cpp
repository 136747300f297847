#include <algorithm>
#include <array>

#include "analysis/diff_parts.h"

namespace msdbg {
namespace {

// Lower case, ascending. Dropout's backward pass takes the mask of the forward pass, so it is not random itself.
constexpr std::array<std::string_view, 51> kRandom = {
    "bernoulli", "bernoulliext", "cudnnuniformreal", "dropout", "dropout2d", "dropout3d", "dropoutext", "dropoutgenmask",
    "dropoutgenmaskext", "dropoutgenmaskv3", "funcdropoutext", "gamma", "inplacebernoulliscalar", "inplacebernoullitensor",
    "inplaceexponential", "inplacenormal", "inplacerandom", "inplaceuniform", "loguniformcandidatesampler", "multinomial",
    "multinomialext", "multinomialwithreplacement", "normal", "normalfloatfloat", "normalfloattensor",
    "normaltensorfloat", "normaltensortensor", "parameterizedtruncatednormal", "poisson", "randext", "randint", "randintlike",
    "randlikeext", "randn", "randnlike", "randomcategorical", "randomchoicewithmask", "randomgamma", "randompoisson", "randomshuffle",
    "randperm", "randpermext", "randpermv2", "standardlaplace", "standardnormal", "statelessdropoutgenmask", "truncatednormal",
    "uniformcandidatesampler", "uniformext", "uniformint", "uniformreal"};

}  // namespace

bool draws_random_numbers(std::string_view op) {
  const std::string name = to_lower(op);
  return std::binary_search(kRandom.begin(), kRandom.end(), name);
}

}  // namespace msdbg
