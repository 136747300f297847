#include "expr/interpreter.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace msdbg::test {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

bool one_of(const std::string& name, std::initializer_list<const char*> names) {
  return std::any_of(names.begin(), names.end(), [&](const char* one) { return name == one; });
}

bool is_comparison(const std::string& name) { return one_of(name, {"<", "<=", ">", ">=", "==", "!="}); }
bool is_infix(const std::string& name) {
  return is_comparison(name) || one_of(name, {"+", "-", "*", "/", "^", "and", "or"});
}

double plain(const std::string& name, double a, double b) {
  if (name == "+") return a + b;
  if (name == "-") return a - b;
  if (name == "*") return a * b;
  if (name == "/") return a / b;
  if (name == "^") return std::pow(a, b);
  if (name == "neg") return -a;
  if (name == "abs") return std::fabs(a);
  if (name == "sqrt") return std::sqrt(a);
  if (name == "exp") return std::exp(a);
  if (name == "log") return std::log(a);
  if (name == "log2") return std::log2(a);
  if (name == "floor") return std::floor(a);
  if (name == "sign") return a > 0 ? 1 : a < 0 ? -1 : a;
  if (name == "min") return std::isnan(b) || b < a ? b : a;
  return std::isnan(b) || b > a ? b : a;
}

double distance(double a, double b) {
  if (a == b || (std::isnan(a) && std::isnan(b))) return 0;
  const double d = std::fabs(a - b);
  return std::isnan(d) ? kInf : d;
}

Number unknown() { return {0, kInf}; }
Number truth(bool value) { return {value ? 1.0 : 0.0, 0}; }

Number compare(const std::string& name, Number a, Number b) {
  if (std::isinf(a.error) || std::isinf(b.error)) return unknown();
  const double slack = a.error + b.error;
  if (slack > 0 && !std::isnan(a.value) && !std::isnan(b.value) && distance(a.value, b.value) <= 2 * slack) return unknown();
  if (name == "<") return truth(a.value < b.value);
  if (name == "<=") return truth(a.value <= b.value);
  if (name == ">") return truth(a.value > b.value);
  if (name == ">=") return truth(a.value >= b.value);
  if (name == "==") return truth(a.value == b.value);
  return truth(a.value != b.value);
}

Number both(Number a, Number b) {
  if ((a.error == 0 && a.value == 0) || (b.error == 0 && b.value == 0)) return truth(false);
  return a.error == 0 && b.error == 0 ? truth(true) : unknown();
}
Number opposite(Number a) { return a.error == 0 ? truth(a.value == 0) : unknown(); }

}  // namespace

bool is_reduction_name(const Formula& formula) {
  if (one_of(formula.name, {"min", "max"})) return formula.args.size() == 1;
  return one_of(formula.name, {"any", "all", "count", "percent", "sum", "mean", "std", "norm1", "norm2", "norminf"});
}

bool has_elements(const Formula& formula) {
  if (formula.name == "x" || formula.name == "prev") return true;
  if (is_reduction_name(formula)) return false;
  return std::any_of(formula.args.begin(), formula.args.end(), [](const FormulaPtr& arg) { return has_elements(*arg); });
}

std::string Formula::text() const {
  if (args.empty()) {
    if (name != "number") return name;
    if (std::isnan(constant)) return "nan";
    if (std::isinf(constant)) return constant > 0 ? "inf" : "(-inf)";
    return constant < 0 || std::signbit(constant) ? "(" + format_double(constant) + ")" : format_double(constant);
  }
  if (name == "neg") return "(-" + args[0]->text() + ")";
  if (name == "not") return "(not " + args[0]->text() + ")";
  if (is_infix(name)) return "(" + args[0]->text() + " " + name + " " + args[1]->text() + ")";
  return name + "(" + args[0]->text() + (args.size() > 1 ? ", " + args[1]->text() : "") + ")";
}

Number Interpreter::scalar(const Formula& formula) { return eval(formula, 0); }
Number Interpreter::element(const Formula& formula, uint64_t i) { return eval(formula, i); }

Number Interpreter::eval(const Formula& formula, uint64_t i) {
  const std::string& name = formula.name;
  if (name == "number") return {formula.constant, 0};
  if (name == "true" || name == "false") return truth(name == "true");
  if (name == "x") return {x_.at(i), 0};
  if (name == "prev") return {prev_->at(i), 0};
  if (name == "size") return {static_cast<double>(x_.count), 0};
  if (name == "step") return {step_, 0};
  if (name == "rank") return {rank_, 0};
  if (name == "dtype_max") return {dtype_max(x_.dtype), 0};
  if (name == "dtype_min_normal") return {dtype_min_normal(x_.dtype), 0};
  if (name == "dtype_eps") return {dtype_eps(x_.dtype), 0};
  if (is_reduction_name(formula)) return reduction(formula);

  std::vector<Number> args;
  bool of_elements = false;
  for (const FormulaPtr& arg : formula.args) {
    args.push_back(eval(*arg, i));
    of_elements = of_elements || has_elements(*arg);
  }
  if (name == "finite") {
    if (std::isinf(args[0].error)) exclusion_unknown_ = true;
    if (!std::isfinite(args[0].value)) excluded_ = true;
    return args[0];
  }
  return operation(formula, of_elements, args);
}

Number Interpreter::operation(const Formula& formula, bool of_elements, const std::vector<Number>& args) {
  const std::string& name = formula.name;
  if (is_comparison(name)) return compare(name, args[0], args[1]);
  if (name == "and") return both(args[0], args[1]);
  if (name == "or") return opposite(both(opposite(args[0]), opposite(args[1])));
  if (name == "not") return opposite(args[0]);
  if (one_of(name, {"isnan", "isinf", "isfinite"})) {
    if (std::isinf(args[0].error)) return unknown();
    return truth(name == "isnan" ? std::isnan(args[0].value)
                                 : name == "isinf" ? std::isinf(args[0].value) : std::isfinite(args[0].value));
  }
  const bool in_float = of_elements && narrow_;
  const auto lane = [&](double value) { return in_float ? static_cast<double>(static_cast<float>(value)) : value; };
  const double power = name == "^" && formula.args[1]->name == "number" ? formula.args[1]->constant : 0;
  const auto compute = [&](double a, double b) {
    a = lane(a);
    b = lane(b);
    if (power == 2 || power == 3 || power == 4) {
      const double square = lane(a * a);
      return power == 2 ? square : lane(square * (power == 3 ? a : square));
    }
    return lane(plain(name, a, b));
  };
  const Number a = args[0], b = args.size() > 1 ? args[1] : Number{};
  if (std::isinf(a.error) || std::isinf(b.error)) return unknown();
  Number result{compute(a.value, b.value), 0};
  const bool rough = one_of(name, {"exp", "log", "log2"}) || (name == "^" && power != 2 && power != 3 && power != 4);
  if (!rough && a.error == 0 && b.error == 0) return result;
  // Around a pole, the ends of the interval say nothing about its middle.
  if ((name == "/" && std::fabs(b.value) <= b.error) || (name == "^" && a.error > 0 && std::fabs(a.value) <= a.error)) {
    return unknown();
  }
  for (double da : {-a.error, 0.0, a.error}) {
    for (double db : {-b.error, 0.0, b.error}) {
      result.error = std::max(result.error, distance(result.value, compute(a.value + da, b.value + db)));
    }
  }
  if (std::isfinite(result.value)) {
    const double unit = in_float ? 0x1p-23 : 0x1p-52, least = in_float ? 0x1p-126 : 0x1p-1022;
    result.error += 8 * unit * std::fabs(result.value) + least;
    const double limit = in_float ? 0x1.fffffep127 : std::numeric_limits<double>::max();
    if (rough && std::fabs(result.value) > limit * 0.99) return unknown();
  } else if (rough && std::isinf(result.value) && std::isfinite(a.value) && name != "log" && name != "log2") {
    // At the very end of the range, one may give infinity where the other does not yet.
    const double nearer = compute(a.value * (1 - 1e-6), b.value);
    if (!std::isinf(nearer)) return unknown();
  }
  return result;
}

Number Interpreter::reduction(const Formula& formula) {
  for (const auto& [known, value] : known_) {
    if (known == &formula) return value;
  }
  const std::string& name = formula.name;
  const Formula& arg = *formula.args[0];
  const bool outer_excluded = excluded_, outer_unknown = exclusion_unknown_;
  std::vector<Number> values;
  bool blind = false;
  for (uint64_t i = 0; i < x_.count; ++i) {
    excluded_ = exclusion_unknown_ = false;
    const Number value = eval(arg, i);
    blind = blind || exclusion_unknown_;
    if (!excluded_) values.push_back(value);
  }
  excluded_ = outer_excluded;
  exclusion_unknown_ = outer_unknown;

  const auto n = static_cast<double>(values.size());
  Number result;
  if (one_of(name, {"any", "all", "count", "percent"})) {
    double hits = 0, open = 0;
    for (const Number& value : values) (value.error == 0 ? hits : open) += value.error == 0 ? value.value : 1;
    if (name == "any") result = hits > 0 ? truth(true) : open > 0 ? unknown() : truth(false);
    if (name == "all") result = hits + open < n ? truth(false) : open > 0 ? unknown() : truth(true);
    if (name == "count") result = {hits + open / 2, open};
    if (name == "percent") result = {(hits + open / 2) * 100.0 / n, open == 0 ? 0 : open * 100.0 / n};
  } else {
    long double sum = 0, magnitudes = 0, squares = 0;
    double error = 0, least = kNan, greatest = kNan, largest = 0;
    bool whole = true, nan = false;
    for (const Number& value : values) {
      const auto wide = static_cast<long double>(value.value);
      sum += wide;
      magnitudes += std::fabs(wide);
      squares += wide * wide;
      error += value.error;
      nan = nan || std::isnan(value.value);
      whole = whole && std::isfinite(value.value) && value.value == std::floor(value.value);
      if (!std::isnan(value.value)) {
        least = std::isnan(least) || value.value < least ? value.value : least;
        greatest = std::isnan(greatest) || value.value > greatest ? value.value : greatest;
        largest = std::max(largest, std::fabs(value.value));
      }
    }
    const auto total = static_cast<double>(sum), absolute = static_cast<double>(magnitudes);
    const bool exact = error == 0 && whole && absolute < 0x1p50;
    const double slack = exact ? 0 : error + 1e-12 * absolute;
    if (name == "sum") result = {total, slack};
    if (name == "norm1") result = {absolute, slack};
    if (name == "mean") result = {static_cast<double>(sum / static_cast<long double>(n)), (error + 1e-12 * absolute) / n};
    if (name == "norm2") result = {static_cast<double>(std::sqrt(squares)), error + 1e-12 * static_cast<double>(std::sqrt(squares))};
    // Signs of zero are unspecified.
    if (name == "min") result = {least, error > 0 || least == 0 ? error + 5e-324 : 0};
    if (name == "max") result = {greatest, error > 0 || greatest == 0 ? error + 5e-324 : 0};
    if (name == "norminf") result = {nan ? kNan : largest, error};
    if (name == "std") {
      long double around = 0;
      const long double mean = sum / static_cast<long double>(n);
      for (const Number& value : values) {
        const long double d = static_cast<long double>(value.value) - mean;
        around += d * d;
      }
      const bool finite = std::isfinite(static_cast<double>(mean)) && std::isfinite(largest);
      double value = n == 1 ? 0.0 : static_cast<double>(std::sqrt(around / static_cast<long double>(n - 1)));
      if (n == 0 || nan || !finite) value = kNan;
      // Equal values have no deviation.
      const bool equal = error == 0 && least == greatest && !nan;
      if (equal && finite && n > 0) value = 0;
      result = {value, equal ? 0 : error + 1e-11 * value + 1e-14 * largest};
    }
    if (std::isnan(error) || std::isinf(error)) result = unknown();
    if (std::isnan(result.error)) result.error = 0;  // the value is certainly NaN or infinite
    if (!std::isfinite(result.value) && result.error > 0 && std::isfinite(absolute)) result = unknown();
    if (std::isinf(result.value)) {
      // Sums that overflow double: which of them do depends on the order.
      const bool from_elements = std::any_of(values.begin(), values.end(), [](const Number& v) { return std::isinf(v.value); });
      result = from_elements && error == 0 ? Number{result.value, 0} : unknown();
    } else if (std::fabs(result.value) > 1e307 || absolute > 1e307) {
      if (name != "min" && name != "max" && name != "norminf" && std::isfinite(result.value)) result = unknown();
    }
  }
  if (blind) result = unknown();
  known_.emplace_back(&formula, result);
  return result;
}

}  // namespace msdbg::test
