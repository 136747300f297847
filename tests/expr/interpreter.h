// A plain interpreter in double, element by element, with a bound for its own error and that of the tested program.
//
// If a bound leaves the result of a comparison open, the result and everything derived from it are unknown.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "msdbg/expr.h"

namespace msdbg::test {

/// A formula: a leaf ("x", "prev", "size", "3"), or an operator or function by name.
struct Formula {
  std::string name;
  double constant = 0;
  std::vector<std::unique_ptr<Formula>> args;

  std::string text() const;
};
using FormulaPtr = std::unique_ptr<Formula>;

struct Number {
  double value = 0;
  double error = 0;  ///< infinite: unknown
};

class Interpreter {
 public:
  /// `narrow`: elements are computed in float.
  Interpreter(const TensorView& x, const TensorView* prev, double step, double rank, bool narrow)
      : x_(x), prev_(prev), step_(step), rank_(rank), narrow_(narrow) {}

  /// Truth values are 0 and 1; unknown ones have an infinite error.
  Number scalar(const Formula& formula);
  Number element(const Formula& formula, uint64_t i);

 private:
  Number operation(const Formula& formula, bool of_elements, const std::vector<Number>& args);
  Number reduction(const Formula& formula);
  Number eval(const Formula& formula, uint64_t i);

  const TensorView& x_;
  const TensorView* prev_;
  double step_, rank_;
  bool narrow_;
  std::vector<std::pair<const Formula*, Number>> known_;
  bool excluded_ = false, exclusion_unknown_ = false;  // the state of finite() for the current element
};

bool has_elements(const Formula& formula);
bool is_reduction_name(const Formula& formula);

}  // namespace msdbg::test
