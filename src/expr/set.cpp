// A set of expressions, and its cost.
#include <fmt/format.h>

#include <algorithm>

#include "expr/program.h"

namespace msdbg {
namespace expr {
namespace {

std::string_view plural(int n) { return n == 1 ? "" : "s"; }

int operations(const Code& code) {
  int count = 0;
  for (const Instruction& instruction : code.instructions) {
    count += 1 + instruction.magnitude + (instruction.prelude == kPlain ? 0 : 1);
  }
  return count;
}

}  // namespace

std::string Program::explain() const {
  std::string text;
  for (const std::string& root : texts) text += root + "\n";
  if (passes == 0 && element_code_.size() == 0) return text;
  for (int pass = 1; pass <= passes; ++pass) {
    const Code& own = code(pass, true);
    const int count = operations(own);
    text += fmt::format("  pass {}: {}\n", pass,
                        pass == 1 && count == 0 ? "the statistics pass, nothing added"
                        : pass == 1             ? fmt::format("besides the statistics, {} operation{} per element", count, plural(count))
                                                : fmt::format("{} operation{} per element", count, plural(count)));
    for (const Reduction& reduction : reductions) {
      if (dag[reduction.node].passes != pass) continue;
      std::string_view from;
      if (reduction.stats) from = reduction.stats->counts_range() ? "from the statistics, as a range" : "from the statistics";
      text += fmt::format("    {}{}{}\n", dag.words(reduction.node), from.empty() ? "" : "  ", from);
    }
  }
  for (size_t i = 0; i < roots.size(); ++i) {
    if (!root_is_element[i]) continue;
    const int count = operations(element_code_[i]);
    text += fmt::format("  then {} operation{} per element for the values\n", count, plural(count));
  }
  if (passes == 0 && std::none_of(root_is_element.begin(), root_is_element.end(), [](bool is) { return is; })) {
    text += "  no pass: no element is read\n";
  } else if (passes > 1) {
    text += fmt::format("  the tensor is read {} times\n", passes);
  }
  if (needs_previous) text += "  needs the previous step\n";
  return text;
}

}  // namespace expr

ExpressionSet::ExpressionSet(std::span<const Expression> expressions)
    : program_(std::make_shared<const expr::Program>(expressions)) {}

size_t ExpressionSet::size() const { return program_->roots.size(); }
bool ExpressionSet::needs_previous() const { return program_->needs_previous; }
const StatsRequest& ExpressionSet::stats_request() const { return program_->request; }
uint32_t ExpressionSet::stats_fields() const { return program_->fields; }
int ExpressionSet::passes() const { return program_->passes; }
std::string ExpressionSet::explain() const { return program_->explain(); }

bool ExpressionSet::has_first_pass_work() const {
  return program_->passes > 0 && !program_->code(1, true).instructions.empty();
}

bool ExpressionSet::decided_by_stats(size_t i) const {
  if (program_->root_is_element[i]) return false;
  for (expr::NodeId node : program_->reductions_under(program_->roots[i].node)) {
    if (!program_->reduction(node)->stats) return false;
  }
  return true;
}

uint32_t ExpressionSet::stats_fields(size_t i) const {
  uint32_t fields = 0;
  for (expr::NodeId node : program_->reductions_under(program_->roots[i].node)) {
    if (const auto& stats = program_->reduction(node)->stats) fields |= stats->fields;
  }
  return fields;
}

std::string Expression::explain() const { return ExpressionSet(std::span(this, 1)).explain(); }

}  // namespace msdbg
