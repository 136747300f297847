// Checkpoints: the contents of one, the changes between two, and the step of a dump that one belongs to.
#include "msdbg/answers.h"
#include "report/cell_text.h"
#include "report/parameter_text.h"

namespace msdbg {
namespace {

std::string_view crc_word(CrcState crc) { return crc == CrcState::kMatches ? "matches" : crc == CrcState::kDiffers ? "differs" : "none"; }

Answer parameter_object(Checkpoint& checkpoint, const StatsRow& row) {
  Answer out;
  out["name"] = checkpoint.node(row.info.id).name;
  out["dtype"] = dtype_name(row.info.dtype);
  out["shape"] = row.info.shape;
  out["bytes"] = row.info.bytes;
  out["stats"] = stats_answer(checkpoint, row.stats, row.info.id);
  out["note"] = text_answer(row.info.note);
  out["problem"] = row.info.problem.ok() ? Answer() : Answer(row.info.problem.message());
  return out;
}

Answer side_object(bool there, DType dtype, const Shape& shape) {
  if (!there) return nullptr;
  return {{"dtype", dtype_name(dtype)}, {"shape", shape}};
}

Answer change_object(const ParameterChange& change) {
  // A side that does not have it has no type either.
  const bool only_one = change.kind == ChangeKind::kNotCompared;
  Answer out;
  out["name"] = change.name;
  out["change"] = change_kind_name(change.kind);
  out["new_name"] = text_answer(change.new_name);
  out["a"] =
      side_object(change.kind != ChangeKind::kAdded && !(only_one && change.dtype_a == DType::kUnknown), change.dtype_a, change.shape_a);
  out["b"] =
      side_object(change.kind != ChangeKind::kLost && !(only_one && change.dtype_b == DType::kUnknown), change.dtype_b, change.shape_b);
  out["type"] = types_text(change);
  out["values"] = nullptr;
  if (change.values) {
    const Comparison& v = *change.values;
    out["values"] = {{"count", v.count},
                     {"differing", v.count - v.within},
                     {"bit_equal", v.bit_equal},
                     {"update_ratio", number_answer(update_ratio(v))},
                     {"norm_a", number_answer(v.norm_a)},
                     {"norm_b", number_answer(v.norm_b)},
                     {"norm_difference", number_answer(v.norm_error)},
                     {"max_abs_difference", number_answer(v.max_abs_error)},
                     {"nan_a", v.nan_a},
                     {"nan_b", v.nan_b},
                     {"inf_a", v.inf_a},
                     {"inf_b", v.inf_b}};
  }
  out["breaks"] = change.breaks();
  out["note"] = text_answer(change.note);
  return out;
}

}  // namespace

std::string types_text(const ParameterChange& change) {
  if (change.kind == ChangeKind::kAdded) return type_text(change.dtype_b, change.shape_b);
  const std::string a = type_text(change.dtype_a, change.shape_a);
  if (change.kind == ChangeKind::kLost) return a;
  const std::string b = type_text(change.dtype_b, change.shape_b);
  if (change.kind == ChangeKind::kNotCompared && change.dtype_a == DType::kUnknown) return b;
  if (change.kind == ChangeKind::kNotCompared && change.dtype_b == DType::kUnknown) return a;
  return a == b ? a : a + " -> " + b;
}

Answer checkpoint_answer(Checkpoint& checkpoint, std::span<const StatsRow> rows) {
  const CheckpointFacts& facts = checkpoint.facts();
  uint64_t elements = 0, bytes = 0, nonfinite = 0;
  Answer parameters = Answer::array(), texts = Answer::array(), problems = Answer::array();
  for (const StatsRow& row : rows) {
    elements += row.info.count;
    bytes += row.info.bytes;
    if (row.stats) nonfinite += row.stats->nan_count + row.stats->inf_count();
    parameters.push_back(parameter_object(checkpoint, row));
  }
  for (const auto& [name, text] : facts.texts) texts.push_back({{"name", name}, {"text", text}});
  for (const Problem& problem : facts.problems)
    problems.push_back({{"severity", severity_name(problem.severity)}, {"message", problem.message}});
  Answer out;
  out["msdbg"] = kVersion;
  out["checkpoint"] = checkpoint.info().source;
  out["format"] = facts.format;
  out["file_bytes"] = facts.file_bytes;
  out["cipher"] = text_answer(facts.cipher);
  out["crc"] = crc_word(facts.crc);
  out["totals"] = {{"parameters", rows.size()}, {"elements", elements}, {"bytes", bytes}, {"nonfinite", nonfinite}};
  out["parameters"] = std::move(parameters);
  out["texts"] = std::move(texts);
  out["problems"] = std::move(problems);
  return out;
}

Answer parameter_diff_answer(const ParameterDiff& diff) {
  Answer counts = Answer::object(), parameters = Answer::array();
  for (const ChangeKind kind : kChangeOrder)
    counts[kind == ChangeKind::kNotCompared ? "not_compared" : std::string(change_kind_name(kind))] = diff.count(kind);
  for (const ParameterChange& change : diff.changes) parameters.push_back(change_object(change));
  return {{"msdbg", kVersion},          {"a", diff.a},      {"b", diff.b}, {"equal", diff.equal()}, {"complete", diff.complete()},
          {"counts", std::move(counts)}, {"parameters", std::move(parameters)}};
}

Answer checkpoint_match_answer(const CheckpointMatch& match) {
  Answer steps = Answer::array();
  for (const StepMatch& step : match.steps) {
    steps.push_back({{"step", step.step},
                     {"matches", step.matches()},
                     {"equal", step.equal},
                     {"different", step.different},
                     {"not_compared", step.not_compared},
                     {"not_in_dump", step.absent}});
  }
  return {{"msdbg", kVersion},         {"dump", match.detail.a},
          {"checkpoint", match.detail.b}, {"steps", std::move(steps)},
          {"best", match.steps[match.best].step}, {"detail", parameter_diff_answer(match.detail)}};
}

}  // namespace msdbg
