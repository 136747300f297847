// Questions about the elements of a tensor: histogram, quantiles, the worst elements, elements that satisfy a
// predicate.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <tuple>

#include "script/objects.h"

namespace msdbg::script {
namespace {

constexpr uint64_t kMostPlaces = 1'000'000;  // more coordinates than a script can want by accident
constexpr uint64_t kPollEvery = 1 << 16;     // elements between two looks at the interrupt flag

TensorPtr numbers_of(lua_State* L, std::string_view call) {
  TensorBox& tensor = self<TensorBox>(L);
  TensorPtr elements = tensor.session->elements(tensor);
  if (!is_evaluable(elements->dtype())) {
    throw ScriptError("unsupported",
                      fmt::format("{}: elements of type {} have no number", call, dtype_name(elements->dtype())), true);
  }
  return elements;
}

// Calls `visit` with every element; stops with an error when the user does.
template <typename Visit>
void for_each_element(const TensorView& view, Visit visit) {
  for (uint64_t begin = 0; begin < view.count; begin += kPollEvery) {
    if (interrupt_requested()) throw ScriptError(Status(Code::kInterrupted, "interrupted"));
    const uint64_t end = std::min(view.count, begin + kPollEvery);
    for (uint64_t i = begin; i < end; ++i) visit(i, view.at(i));
  }
}

// {i, j, ..., value =, index =}
void push_place(lua_State* L, uint64_t flat, double value, std::span<const int64_t> shape) {
  push_coordinates(L, flat, shape);
  set_field(L, "value", value);
  set_field(L, "index", flat);
  set_record_class(L, "place");
}

int histogram_of(lua_State* L) {
  OptionTable options(L, 2, "histogram");
  const int64_t bins = options.integer("bins").value_or(20);
  options.finish();
  if (bins < 1 || bins > 10000) misuse(fmt::format("histogram: option 'bins': 1 to 10000 is expected, not {}", bins));
  const Histogram made = value_or_throw(histogram(numbers_of(L, "histogram")->view(), static_cast<size_t>(bins)));
  lua_newtable(L);
  lua_newtable(L);
  for (size_t i = 0; i < made.edges.size(); ++i) {
    lua_pushnumber(L, made.edges[i]);
    lua_rawseti(L, -2, static_cast<int>(i) + 1);
  }
  lua_setfield(L, -2, "edges");
  lua_newtable(L);
  for (size_t i = 0; i < made.counts.size(); ++i) {
    lua_pushnumber(L, static_cast<double>(made.counts[i]));
    lua_rawseti(L, -2, static_cast<int>(i) + 1);
  }
  lua_setfield(L, -2, "counts");
  set_field(L, "nonfinite", made.nonfinite);
  std::string picture = histogram_text(made);
  while (picture.ends_with('\n')) picture.pop_back();
  set_field(L, "text", picture);
  set_record_class(L, "histogram");
  return 1;
}

// Linear interpolation between the two nearest finite elements, as NumPy's default.
int quantile(lua_State* L) {
  const double q = number_argument(L, 2, "quantile: q");
  if (!(q >= 0 && q <= 1)) misuse(fmt::format("quantile: q: 0 to 1 is expected, not {}", format_double(q)));
  const TensorPtr elements = numbers_of(L, "quantile");
  std::vector<double> finite;
  finite.reserve(elements->count());
  for_each_element(elements->view(), [&](uint64_t, double value) {
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

// NaN before infinities before the largest magnitudes; equal ones in order of place.
int worst(lua_State* L) {
  const int64_t k = lua_isnoneornil(L, 2) ? 10 : integer_argument(L, 2, "worst: count");
  if (k < 1 || static_cast<uint64_t>(k) > kMostPlaces)
    misuse(fmt::format("worst: count: 1 to {} is expected, not {}", kMostPlaces, k));
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
  std::vector<Entry> best;  // a heap whose front is the least bad one kept
  for_each_element(elements->view(), [&](uint64_t flat, double value) {
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
  lua_createtable(L, static_cast<int>(best.size()), 0);
  for (size_t i = 0; i < best.size(); ++i) {
    push_place(L, best[i].flat, best[i].value, elements->shape());
    lua_rawseti(L, -2, static_cast<int>(i) + 1);
  }
  set_record_class(L, "places");
  return 1;
}

// ---- where
// -----------------------------------------------------------------------------------------------------------

enum class Test { kNan, kInf, kBad, kFinite, kZero, kGreater, kGreaterEqual, kLess, kLessEqual, kEqual, kNotEqual };
struct ElementTest {
  Test test = Test::kBad;
  bool absolute = false;
  double bound = 0;

  bool operator()(double x) const {
    if (absolute) x = std::abs(x);
    switch (test) {
      case Test::kNan:
        return std::isnan(x);
      case Test::kInf:
        return std::isinf(x);
      case Test::kBad:
        return !std::isfinite(x);
      case Test::kFinite:
        return std::isfinite(x);
      case Test::kZero:
        return x == 0;
      case Test::kGreater:
        return x > bound;
      case Test::kGreaterEqual:
        return x >= bound;
      case Test::kLess:
        return x < bound;
      case Test::kLessEqual:
        return x <= bound;
      case Test::kEqual:
        return x == bound;
      case Test::kNotEqual:
        return x != bound;
    }
    return false;
  }
};

std::string without_blanks(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c != ' ' && c != '\t') out += c;
  }
  return to_lower(out);
}

// `nan`, `isinf(x)`, `x > 1e4`, `abs(x) <= 3`, `x == 0`.
ElementTest parse_test(std::string_view text) {
  static constexpr std::pair<std::string_view, Test> kWords[] = {
      {"nan", Test::kNan},  {"isnan(x)", Test::kNan},       {"inf", Test::kInf},       {"isinf(x)", Test::kInf},
      {"bad", Test::kBad},  {"notisfinite(x)", Test::kBad}, {"finite", Test::kFinite}, {"isfinite(x)", Test::kFinite},
      {"zero", Test::kZero}};
  static constexpr std::pair<std::string_view, Test> kOperators[] = {
      {">=", Test::kGreaterEqual}, {"<=", Test::kLessEqual}, {"==", Test::kEqual}, {"~=", Test::kNotEqual},
      {"!=", Test::kNotEqual},     {">", Test::kGreater},    {"<", Test::kLess}};
  const std::string word = without_blanks(text);
  for (const auto& [name, test] : kWords) {
    if (word == name) return {test};
  }
  std::string_view rest = word;
  ElementTest made;
  if (rest.starts_with("abs(x)"))
    made.absolute = true, rest.remove_prefix(6);
  else if (rest.starts_with("x"))
    rest.remove_prefix(1);
  else
    rest = {};
  for (const auto& [sign, test] : kOperators) {
    if (!rest.starts_with(sign)) continue;
    const auto bound = parse_double(rest.substr(sign.size()));
    if (!bound) break;
    made.test = test;
    made.bound = *bound;
    return made;
  }
  misuse(
      fmt::format("where: '{}' is not understood: write 'x > 1e4', 'abs(x) >= 3', 'isnan(x)', one of nan, inf, bad, "
                  "finite, zero, or give a "
                  "function of the value",
                  printable(text)));
}

// t:where(text, { limit = n }) -> places, how many there are
int where(lua_State* L) {
  const ElementTest test = parse_test(text_argument(L, 2, "where: predicate"));
  OptionTable options(L, 3, "where");
  const auto limit = options.integer("limit");
  options.finish();
  if (limit && *limit < 0) misuse(fmt::format("where: option 'limit': 0 or more is expected, not {}", *limit));
  const TensorPtr elements = numbers_of(L, "where");
  std::vector<std::pair<uint64_t, double>> found;
  uint64_t total = 0;
  const uint64_t keep = limit ? static_cast<uint64_t>(*limit) : kMostPlaces;
  for_each_element(elements->view(), [&](uint64_t flat, double value) {
    if (!test(value)) return;
    if (total++ < keep) found.emplace_back(flat, value);
  });
  if (!limit && total > kMostPlaces) {
    throw ScriptError("out_of_memory",
                      fmt::format("where: {} elements satisfy it; give {{ limit = n }} to get the first n (the second "
                                  "result is their number)",
                                  total),
                      true);
  }
  lua_createtable(L, static_cast<int>(found.size()), 0);
  for (size_t i = 0; i < found.size(); ++i) {
    push_place(L, found[i].first, found[i].second, elements->shape());
    lua_rawseti(L, -2, static_cast<int>(i) + 1);
  }
  set_record_class(L, "places");
  lua_pushnumber(L, static_cast<double>(total));
  return 2;
}

}  // namespace

void bind_tensor_numbers(lua_State* L) {
  luaL_getmetatable(L, ClassName<TensorBox>::registry);
  lua_getfield(L, -1, "methods");
  for (const Member& member : {Member{"histogram", guard<histogram_of>}, Member{"quantile", guard<quantile>},
                               Member{"worst", guard<worst>}, Member{"where", guard<where>}}) {
    lua_pushcfunction(L, member.function);
    lua_setfield(L, -2, member.name);
  }
  lua_pop(L, 2);
}

}  // namespace msdbg::script
