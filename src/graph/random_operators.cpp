#include <algorithm>
#include <array>

#include "msdbg/graph.h"

namespace msdbg {
namespace {

// Lower case without underscores, ascending. Dropout's backward pass takes the mask of the forward pass, so it is not random itself.
constexpr std::array<std::string_view, 74> kRandom = {
    "alphadropout", "bernoulli", "bernoulliext", "binomial", "cauchy", "cudnnuniformreal", "dropout", "dropout1d", "dropout2d",
    "dropout3d", "dropoutext", "dropoutgenmask", "dropoutgenmaskext", "dropoutgenmaskv3", "exponential", "featurealphadropout",
    "featuredropout", "funcdropoutext", "fuseddropout", "gamma", "geometric", "inplacebernoulliscalar", "inplacebernoullitensor",
    "inplaceexponential", "inplacenormal", "inplacerandom", "inplaceuniform", "lognormal", "loguniformcandidatesampler", "multinomial",
    "multinomialext", "multinomialwithreplacement", "nativedropout", "nogradnormal", "nograduniform", "normal", "normalfloatfloat",
    "normalfloattensor", "normalfunctional", "normaltensorfloat", "normaltensortensor", "parameterizedtruncatednormal", "poisson",
    "rand", "randext", "randint", "randintlike", "randlike", "randlikeext", "randn", "randnlike", "random", "randomcategorical",
    "randomchoicewithmask", "randomgamma", "randompoisson", "randomshuffle", "randperm", "randpermext", "randpermv2", "rrelu",
    "rreluwithnoise", "rreluwithnoisefunctional", "sampledirichlet", "standardgamma", "standardlaplace", "standardnormal",
    "statelessdropoutgenmask", "truncatednormal", "uniform", "uniformcandidatesampler", "uniformext", "uniformint", "uniformreal"};
static_assert(std::ranges::is_sorted(kRandom));

}  // namespace

bool draws_random_numbers(std::string_view op) {
  std::string name = to_lower(op);
  std::erase(name, '_');
  return std::ranges::binary_search(kRandom, name);
}

}  // namespace msdbg
