#include "expr/random_case.h"

#include <cmath>
#include <cstring>
#include <limits>

namespace msdbg::test {
namespace {

using Limits = std::numeric_limits<double>;

class Maker {
 public:
  Maker(Random& random, const Grammar& grammar) : random_(random), grammar_(grammar) {}

  FormulaPtr make(bool truth, bool element, int depth, bool reduced) {
    if (truth) return element ? truths(depth, reduced) : condition(depth);
    return element ? elements(depth, reduced) : scalar(depth);
  }

 private:
  template <size_t n>
  const char* pick(const char* const (&names)[n]) {
    return names[random_() % n];
  }
  bool chance(unsigned percent) { return random_() % 100 < percent; }

  static FormulaPtr leaf(const char* name) {
    auto formula = std::make_unique<Formula>();
    formula->name = name;
    return formula;
  }
  FormulaPtr node(const char* name, FormulaPtr a, FormulaPtr b = nullptr) {
    FormulaPtr formula = leaf(name);
    formula->args.push_back(std::move(a));
    if (b) formula->args.push_back(std::move(b));
    return formula;
  }

  FormulaPtr number() {
    static constexpr double kValues[] = {0, 1, 2, 3, 0.5, 0.1, 1e-3, 10, 100, 65504, 1e6, 1e-6, 1e-40, 1e30, 1e300, -1, -0.1, -3};
    FormulaPtr formula = leaf("number");
    formula->constant = kValues[random_() % std::size(kValues)];
    if (chance(3)) formula->constant = chance(50) ? Limits::infinity() : Limits::quiet_NaN();
    return formula;
  }

  FormulaPtr condition(int depth) {
    if (depth <= 0) return chance(50) ? leaf(chance(50) ? "true" : "false") : node(">", leaf("size"), number());
    switch (random_() % 10) {
      case 0: return node(chance(50) ? "and" : "or", condition(depth - 1), condition(depth - 1));
      case 1: return node("not", condition(depth - 1));
      case 2:
      case 3:
      case 4:
      case 5: return node(pick({"any", "all"}), truths(depth - 1, true));
      case 6: return node(pick({"isnan", "isinf", "isfinite"}), scalar(depth - 1));
      case 7: return node(pick({"==", "!="}), condition(depth - 1), condition(depth - 1));
      default: return node(pick({"<", "<=", ">", ">=", "==", "!="}), scalar(depth - 1), scalar(depth - 1));
    }
  }

  FormulaPtr scalar(int depth) {
    if (depth <= 0) {
      return chance(50) ? number() : leaf(pick({"size", "step", "rank", "dtype_max", "dtype_min_normal", "dtype_eps"}));
    }
    switch (random_() % 8) {
      case 0: return number();
      case 1: return node(pick({"+", "-", "*", "/", "^", "min", "max"}), scalar(depth - 1), scalar(depth - 1));
      case 2: return node(pick({"neg", "abs", "sqrt", "exp", "log", "log2", "sign", "floor"}), scalar(depth - 1));
      case 3:
      case 4: return node(pick({"count", "percent"}), truths(depth - 1, true));
      default:
        return node(pick({"sum", "mean", "min", "max", "std", "norm1", "norm2", "norminf"}), elements(depth - 1, true));
    }
  }

  FormulaPtr input() { return leaf(grammar_.previous && chance(40) ? "prev" : "x"); }

  FormulaPtr elements(int depth, bool reduced) {
    if (depth <= 0 || chance(15)) return input();
    if (reduced && chance(12)) return node("finite", elements(depth - 1, reduced));
    switch (random_() % 6) {
      case 0:
      case 1: return node("abs", elements(depth - 1, reduced));
      case 2: return node(pick({"neg", "sqrt", "exp", "log", "log2", "sign", "floor"}), elements(depth - 1, reduced));
      case 3: {
        FormulaPtr formula = node("^", elements(depth - 1, reduced), number());
        formula->args[1]->constant = static_cast<double>(random_() % 6);
        return formula;
      }
      default: break;
    }
    const char* name = pick({"+", "-", "*", "/", "min", "max"});
    const unsigned form = random_() % 4;
    if (form == 0) return node(name, scalar(depth - 2), elements(depth - 1, reduced));
    if (form == 1) return node(name, elements(depth - 1, reduced), scalar(depth - 2));
    return node(name, elements(depth - 1, reduced), elements(depth - 1, reduced));
  }

  FormulaPtr truths(int depth, bool reduced) {
    if (depth > 1) {
      switch (random_() % 8) {
        case 0: return node(chance(50) ? "and" : "or", truths(depth - 1, reduced), truths(depth - 1, reduced));
        case 1: return node("not", truths(depth - 1, reduced));
        case 2: return node(pick({"==", "!="}), truths(depth - 1, reduced), truths(depth - 1, reduced));
        case 3: return node(chance(50) ? "and" : "or", condition(depth - 2), truths(depth - 1, reduced));
        default: break;
      }
    }
    if (chance(20)) return node(pick({"isnan", "isinf", "isfinite"}), elements(depth - 1, reduced));
    const char* name = pick({"<", "<=", ">", ">=", "==", "!="});
    if (chance(40)) return node(name, elements(depth - 1, reduced), number());
    if (chance(30)) return node(name, scalar(depth - 1), elements(depth - 1, reduced));
    if (chance(50)) return node(name, elements(depth - 1, reduced), scalar(depth - 1));
    return node(name, elements(depth - 1, reduced), elements(depth - 1, reduced));
  }

  Random& random_;
  const Grammar& grammar_;
};

}  // namespace

FormulaPtr random_condition(Random& random, const Grammar& grammar) {
  return Maker(random, grammar).make(true, false, grammar.depth, false);
}
FormulaPtr random_scalar(Random& random, const Grammar& grammar) {
  return Maker(random, grammar).make(false, false, grammar.depth, false);
}
FormulaPtr random_elements(Random& random, const Grammar& grammar, bool truth) {
  return Maker(random, grammar).make(truth, true, grammar.depth, false);
}

DType random_dtype(Random& random) {
  constexpr DType kTypes[] = {DType::kFloat32, DType::kFloat32, DType::kFloat32, DType::kFloat16, DType::kBFloat16, DType::kFloat64,
                              DType::kFloat64, DType::kBool,    DType::kInt8,    DType::kInt16,   DType::kInt32,    DType::kInt64,
                              DType::kUInt8,   DType::kUInt16,  DType::kUInt32,  DType::kUInt64};
  return kTypes[random() % std::size(kTypes)];
}

uint64_t random_count(Random& random) {
  constexpr uint64_t kEdges[] = {1023, 1024, 1025, 2047, 2048, 2049, 4095, 4096, 4097, 4113};
  const unsigned kind = random() % 40;
  if (kind == 0) return 0;
  if (kind < 4) return 1;
  if (kind < 6) return kEdges[random() % std::size(kEdges)];
  return random() % 70;
}

void put(DType dtype, double value, std::byte* out) {
  const auto store = [&](auto v) { std::memcpy(out, &v, sizeof v); };
  const double whole = std::isfinite(value) ? std::fmod(std::trunc(value), 0x1p31) : 0;
  switch (dtype) {
    case DType::kBool: return store(static_cast<uint8_t>(value != 0));
    case DType::kInt8: return store(static_cast<int8_t>(std::fmod(whole, 128)));
    case DType::kInt16: return store(static_cast<int16_t>(std::fmod(whole, 32768)));
    case DType::kInt32: return store(static_cast<int32_t>(whole));
    case DType::kInt64: return store(static_cast<int64_t>(whole) * 1234567);
    case DType::kUInt8: return store(static_cast<uint8_t>(std::fmod(std::fabs(whole), 256)));
    case DType::kUInt16: return store(static_cast<uint16_t>(std::fmod(std::fabs(whole), 65536)));
    case DType::kUInt32: return store(static_cast<uint32_t>(std::fabs(whole)) * 2);
    case DType::kUInt64: return store(static_cast<uint64_t>(std::fabs(whole)) * 0x100000001u);
    case DType::kFloat16: return store(float_to_half(value));
    case DType::kBFloat16: return store(float_to_bfloat16(value));
    case DType::kFloat32: return store(static_cast<float>(value));
    default: return store(value);
  }
}

RandomTensor random_tensor(Random& random, DType dtype, uint64_t count) {
  RandomTensor tensor;
  tensor.dtype = dtype;
  tensor.count = count;
  if (count != 1 || random() % 2 == 0) tensor.shape = {static_cast<int64_t>(count)};
  tensor.offset = random() % 3 == 0 ? random() % 8 : 0;
  tensor.bytes.resize(tensor.offset + static_cast<size_t>(count) * item_size(dtype));
  constexpr double inf = Limits::infinity();
  constexpr double kSpecials[] = {
      Limits::quiet_NaN(), inf, -inf, 0.0, -0.0, 1e-40, -1e-40, 5e-324, 1e-310, 3e38, -3e38, 65504, 1e300, 0.1, 1};
  const unsigned kind = random() % 6;
  // Few of them, which keeps sums and extremes from being NaN in most cases.
  const unsigned special_share = kind == 0 ? 20 : kind == 1 ? 1 : 0;
  std::normal_distribution<double> normal(0.2, kind == 2 ? 1000 : 1.5);
  const double equal = normal(random);
  for (uint64_t i = 0; i < count; ++i) {
    double value = normal(random);
    if (kind == 3) value = std::round(value);
    if (kind == 4) value = equal;
    if (random() % 100 < special_share) value = kSpecials[random() % std::size(kSpecials)];
    put(dtype, value, tensor.bytes.data() + tensor.offset + i * item_size(dtype));
  }
  return tensor;
}

}  // namespace msdbg::test
