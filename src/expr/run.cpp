// One evaluation: passes over the blocks, and the scalars between them.
#include <cmath>
#include <limits>

#include "expr/machine.h"

namespace msdbg {
namespace expr {

class Evaluation {
 public:
  Evaluation(std::shared_ptr<const Program> program, const ExpressionInputs& inputs)
      : program_(std::move(program)),
        inputs_(inputs),
        has_previous_(inputs.prev_dtype != DType::kUnknown && program_->needs_previous),
        machine_(make_machine(*program_, inputs.dtype, has_previous_ ? inputs.prev_dtype : DType::kUnknown)),
        values_(program_->dag.size(), std::numeric_limits<double>::quiet_NaN()),
        gathered_(program_->accumulators.size()) {
    compute(0);
    start_pass();
  }

  bool wants_blocks() const { return pass_ <= program_->passes && !code().instructions.empty(); }

  void update(const std::byte* block, const std::byte* previous, size_t n) {
    if (n == 0 || !wants_blocks()) return;
    machine_->run(block, previous, n, gathered_);
  }

  bool end_pass(const Stats& stats, const StatsRequest& request) {
    if (pass_ > program_->passes) return false;
    if (pass_ == 1) {
      for (const Reduction& reduction : program_->reductions) {
        if (reduction.stats) set(reduction.node, reduction.stats->value(stats, request));
      }
    }
    for (const Reduction& reduction : program_->reductions) {
      if (!reduction.stats && program_->dag[reduction.node].passes == pass_) set(reduction.node, reduced(reduction));
    }
    compute(pass_);
    ++pass_;
    start_pass();
    return pass_ <= program_->passes;
  }

  std::optional<ExpressionValue> value(size_t i) const {
    MSDBG_CHECK(pass_ > program_->passes && !program_->root_is_element[i]);
    if (program_->root_uses_previous[i] && !has_previous_) return std::nullopt;
    const Root& root = program_->roots[i];
    ExpressionValue result;
    result.is_truth = program_->dag[root.node].type.truth;
    result.number = values_[static_cast<size_t>(root.node)];
    if (root.compares) {
      result.actual = values_[static_cast<size_t>(root.actual)];
      result.threshold = values_[static_cast<size_t>(root.threshold)];
    }
    result.is_decided = !result.is_truth || is_decided(root.node);
    return result;
  }

  bool elements(size_t i, const std::byte* block, const std::byte* previous, size_t n, double* out) {
    MSDBG_CHECK(pass_ > program_->passes && program_->root_is_element[i]);
    if (program_->root_uses_previous[i] && !has_previous_) return false;
    if (elements_of_ != i) {
      machine_->prepare(program_->element_code(i), values_);
      elements_of_ = i;
    }
    if (n > 0) machine_->run_elements(block, previous, n, out);
    return true;
  }

 private:
  /// False when the truth of `root` depends on a comparison with a value that the elements made NaN. `and` and `or` are decided when
  /// one side is enough.
  bool is_decided(NodeId root) const {
    std::vector<bool> open(static_cast<size_t>(root) + 1);  // by node: NaN that comes from the elements, or a truth that rests on one
    const auto is_open = [&](NodeId id) { return id != kNoNode && open[static_cast<size_t>(id)]; };
    for (NodeId id = 0; id <= root; ++id) {
      const DagNode& node = program_->dag[id];
      const bool any = is_open(node.a) || is_open(node.b) || is_open(node.mask);
      bool result = any;
      if (node.op == Op::kIsNan || node.op == Op::kIsInf || node.op == Op::kIsFinite) {
        result = false;
      } else if (node.type.element) {
        result = any;
      } else if (is_reduction(node.op)) {
        result = any || std::isnan(get(id));
      } else if (node.op == Op::kAnd || node.op == Op::kOr) {
        const bool decides = node.op == Op::kOr;
        const auto settled = [&](NodeId side) { return !is_open(side) && (get(side) != 0) == decides; };
        result = any && !settled(node.a) && !settled(node.b);
      } else if (!node.type.truth) {
        // NaN^0 is 1, and 0/0 is NaN. The names of a type's properties are NaN for types without them.
        const bool fresh = node.a != kNoNode && !std::isnan(get(node.a)) && !std::isnan(get(node.b));
        result = std::isnan(get(id)) && (any || fresh);
      }
      open[static_cast<size_t>(id)] = result;
    }
    return !is_open(root);
  }

  const Code& code() const { return program_->code(pass_, has_previous_); }
  void set(NodeId id, double value) { values_[static_cast<size_t>(id)] = value; }
  double get(NodeId id) const { return id == kNoNode ? 0 : values_[static_cast<size_t>(id)]; }

  void start_pass() {
    if (wants_blocks()) machine_->prepare(code(), values_);
  }

  double named(Op op) const {
    switch (op) {
      case Op::kSize: return static_cast<double>(inputs_.count);
      case Op::kStep: return inputs_.step;
      case Op::kRank: return inputs_.rank;
      case Op::kDtypeMax: return dtype_max(inputs_.dtype);
      case Op::kDtypeMinNormal: return dtype_min_normal(inputs_.dtype);
      default: return dtype_eps(inputs_.dtype);
    }
  }

  /// Computes the scalars that are known after `pass`; reductions are already set.
  void compute(int pass) {
    for (size_t i = 0; i < program_->dag.size(); ++i) {
      const auto id = static_cast<NodeId>(i);
      const DagNode& node = program_->dag[id];
      if (node.passes != pass || node.type.element || is_reduction(node.op)) continue;
      if (is_constant(node.op)) set(id, node.value);
      else if (is_scalar_name(node.op)) set(id, named(node.op));
      else set(id, apply(node.op, get(node.a), get(node.b)));
    }
  }

  double reduced(const Reduction& reduction) const {
    const Gathered& from = gathered_[static_cast<size_t>(reduction.accumulator)];
    const Op op = program_->dag[reduction.node].op;
    const uint64_t considered = reduction.considered < 0
                                    ? inputs_.count
                                    : gathered_[static_cast<size_t>(reduction.considered)].count;
    constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
    switch (op) {
      case Op::kSum:
      case Op::kNorm1: return from.sum.value();
      case Op::kMean: return considered == 0 ? kNan : from.sum.mean(considered);
      case Op::kMinOf:
      case Op::kMaxOf: return from.any ? from.extreme : kNan;
      case Op::kStd: return from.moments.std();
      case Op::kNorm2: return from.sum.root();
      case Op::kNormInf: return from.any ? from.extreme : 0;
      default: return from_count(op, from.count, considered);
    }
  }

  std::shared_ptr<const Program> program_;
  ExpressionInputs inputs_;
  bool has_previous_;
  std::unique_ptr<Machine> machine_;
  std::vector<double> values_;  // by node
  std::vector<Gathered> gathered_;
  int pass_ = 1;
  std::optional<size_t> elements_of_;
};

}  // namespace expr

ExpressionRun::ExpressionRun(const ExpressionSet& set, const ExpressionInputs& inputs)
    : state_(std::make_unique<expr::Evaluation>(set.program_, inputs)) {}
ExpressionRun::~ExpressionRun() = default;
ExpressionRun::ExpressionRun(ExpressionRun&&) noexcept = default;
ExpressionRun& ExpressionRun::operator=(ExpressionRun&&) noexcept = default;

bool ExpressionRun::wants_blocks() const { return state_->wants_blocks(); }
void ExpressionRun::update(const std::byte* block, const std::byte* previous, size_t n) {
  state_->update(block, previous, n);
}
bool ExpressionRun::end_pass(const Stats& stats, const StatsRequest& request) {
  return state_->end_pass(stats, request);
}
std::optional<ExpressionValue> ExpressionRun::value(size_t i) const { return state_->value(i); }
bool ExpressionRun::elements(size_t i, const std::byte* block, const std::byte* previous, size_t n, double* out) {
  return state_->elements(i, block, previous, n, out);
}

}  // namespace msdbg
