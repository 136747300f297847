// Queries about the elements of a tensor: histogram, quantiles, the worst elements.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <tuple>

#include "msdbg/histogram_report.h"
#include "script/bins.h"
#include "script/objects.h"

namespace msdbg::script {

TensorPtr numbers_of(lua_State* L, std::string_view call) {
  TensorBox& tensor = current_tensor(L);
  TensorPtr elements = tensor.session->elements(tensor);
  if (!is_evaluable(elements->dtype())) {
    throw ScriptError("unsupported",
                      fmt::format("{}: elements of type {} have no number", call, dtype_name(elements->dtype())), true);
  }
  return elements;
}

// {i, j, ..., value =, index =}
void push_place(lua_State* L, uint64_t flat, double value, std::span<const int64_t> shape) {
  push_coordinates(L, flat, shape);
  set_field(L, "value", value);
  set_field(L, "index", flat);
  set_result_class(L, "place");
}

BinOptions bin_options(OptionTable& options) {
  BinOptions bins;
  bins.bins = static_cast<size_t>(options.integer("bins", 1, 10000).value_or(20));
  bins.min = options.number("min");
  bins.max = options.number("max");
  const bool log = options.boolean("log").value_or(false);
  if (log) bins.scale = BinScale::kLog;
  if (options.boolean("exponents").value_or(false)) {
    if (log) misuse("histogram: options 'log' and 'exponents' exclude each other");
    bins.scale = BinScale::kExponent;
  }
  return bins;
}

namespace {

// Calls `visit` with every element; raises an error on an interrupt.
template <typename Visit>
void for_each_number(const TensorView& view, Visit visit) {
  for (uint64_t begin = 0; begin < view.count; begin += kPollEvery) {
    if (interrupt_requested()) throw ScriptError(Status(Code::kInterrupted, "interrupted"));
    const uint64_t end = std::min(view.count, begin + kPollEvery);
    for (uint64_t i = begin; i < end; ++i) visit(i, view.at(i));
  }
}

int histogram_of(lua_State* L) {
  OptionTable options(L, 2, "histogram");
  const BinOptions bins = bin_options(options);
  const auto width = static_cast<size_t>(options.integer("width", 20, 10000).value_or(60));
  const bool log_counts = options.boolean("log_counts").value_or(false), ascii = options.boolean("ascii").value_or(false);
  options.finish();
  const Histogram made = value_or_throw(histogram(numbers_of(L, "histogram")->view(), bins));
  lua_newtable(L);
  set_field(L, "scale", std::string(bin_scale_name(made.scale)));
  set_field(L, "edges", made.edges);
  set_field(L, "counts", made.counts);
  set_field(L, "zeros", made.zeros);
  set_field(L, "below", made.below);
  set_field(L, "above", made.above);
  set_field(L, "nonfinite", made.nan + made.inf);
  set_field(L, "text", without_last_newline(histogram_text(made, width, log_counts, ascii)));
  set_result_class(L, "histogram");
  return 1;
}

// Linear interpolation between the two nearest finite elements, as in NumPy's default.
int quantile(lua_State* L) {
  const double q = number_argument(L, 2, "quantile: q");
  if (!(q >= 0 && q <= 1)) misuse(fmt::format("quantile: q: 0 to 1 is expected, not {}", format_double(q)));
  const TensorPtr elements = numbers_of(L, "quantile");
  std::vector<double> finite;
  finite.reserve(elements->count());
  for_each_number(elements->view(), [&](uint64_t, double value) {
    if (std::isfinite(value)) finite.push_back(value);
  });
  if (finite.empty()) {
    lua_pushnil(L);
    return 1;
  }
  const double place = q * static_cast<double>(finite.size() - 1);
  const auto low = static_cast<size_t>(std::floor(place));
  const auto middle = finite.begin() + static_cast<ptrdiff_t>(low);
  std::nth_element(finite.begin(), middle, finite.end());
  double value = *middle;
  if (low + 1 < finite.size()) {
    const double above = *std::min_element(middle + 1, finite.end());
    const double part = place - static_cast<double>(low);
    if (part > 0) value += (above - value) * part;
  }
  lua_pushnumber(L, value);
  return 1;
}

// NaN first, then infinities, then the largest magnitudes; equal elements by position.
int worst(lua_State* L) {
  const int64_t k = integer_argument(L, 2, "worst: count", 10, 1, kMostPlaces);
  struct Entry {
    int kind;  ///< 2: NaN, 1: infinite, 0: finite
    double magnitude;
    uint64_t flat;
    double value;
  };
  const auto before = [](const Entry& a, const Entry& b) {
    return std::tuple(-a.kind, -a.magnitude, a.flat) < std::tuple(-b.kind, -b.magnitude, b.flat);
  };
  const TensorPtr elements = numbers_of(L, "worst");
  std::vector<Entry> best;  // a heap with the least bad kept element at the front
  for_each_number(elements->view(), [&](uint64_t flat, double value) {
    const int kind = std::isnan(value) ? 2 : std::isinf(value) ? 1 : 0;
    const Entry entry{kind, kind == 0 ? std::abs(value) : 0, flat, value};
    if (best.size() < static_cast<size_t>(k)) {
      best.push_back(entry);
      std::push_heap(best.begin(), best.end(), before);
    } else if (before(entry, best.front())) {
      std::pop_heap(best.begin(), best.end(), before);
      best.back() = entry;
      std::push_heap(best.begin(), best.end(), before);
    }
  });
  std::sort(best.begin(), best.end(), before);
  push_list(L, best, [&](const Entry& entry) { push_place(L, entry.flat, entry.value, elements->shape()); });
  set_result_class(L, "places");
  return 1;
}

}  // namespace

void bind_tensor_numbers(lua_State* L) {
  add_methods<TensorBox>(L, {{"histogram", guard<histogram_of>}, {"quantile", guard<quantile>}, {"worst", guard<worst>}});
}

}  // namespace msdbg::script
