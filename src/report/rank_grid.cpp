// What each rank has in each step.
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "msdbg/analysis.h"
#include "msdbg/rank_report.h"
#include "report/rank_grid.h"
#include "report/table.h"

namespace msdbg {
namespace {

constexpr size_t kMostSets = 8;  // of ranks that lack the same steps

using Wanted = std::function<bool(int64_t)>;

/// The grid of the chosen steps and ranks, all counts 0.
RankGrid grid_of(const Session& session, RankGrid::Words words, const Wanted& wants_rank, const Wanted& wants_step) {
  RankGrid grid;
  grid.words = words;
  if (session.ranks().size() < 2) return grid;
  for (const int rank : session.ranks()) {
    if (wants_rank(rank)) grid.ranks.push_back(rank);
  }
  for (const int64_t step : session.steps()) {
    if (wants_step(step)) grid.steps.push_back(step);
  }
  grid.cells.resize(grid.ranks.size() * grid.steps.size());
  for (const GraphPtr& graph : session.graphs()) {
    for (const int64_t step : session.steps(graph->rank(), graph->id())) {
      if (RankGrid::Cell* const cell = grid.find(graph->rank(), step)) cell->present = true;
    }
  }
  return grid;
}

}  // namespace

RankGrid::Cell* RankGrid::find(int rank, int64_t step) {
  const auto column = std::lower_bound(ranks.begin(), ranks.end(), rank);
  const auto row = std::lower_bound(steps.begin(), steps.end(), step);
  if (column == ranks.end() || *column != rank || row == steps.end() || *row != step) return nullptr;
  return &cells[static_cast<size_t>(row - steps.begin()) * ranks.size() + static_cast<size_t>(column - ranks.begin())];
}

std::vector<std::string> lacking_lines(const RankGrid& grid) {
  std::map<std::vector<int64_t>, std::vector<int>> lacking;
  for (size_t rank = 0; rank < grid.ranks.size(); ++rank) {
    std::vector<int64_t> steps;
    for (size_t step = 0; step < grid.steps.size(); ++step) {
      if (!grid.at(step, rank).present) steps.push_back(grid.steps[step]);
    }
    if (!steps.empty()) lacking[std::move(steps)].push_back(grid.ranks[rank]);
  }
  std::vector<std::pair<std::vector<int>, std::vector<int64_t>>> sets;
  for (const auto& [steps, ranks] : lacking) sets.emplace_back(ranks, steps);
  std::sort(sets.begin(), sets.end());
  std::vector<std::string> lines;
  for (const auto& [ranks, steps] : sets) {
    if (lines.size() == kMostSets) {
      lines.push_back(fmt::format("... {} more sets of ranks that lack other steps", sets.size() - kMostSets));
      break;
    }
    lines.push_back(fmt::format("{} {} no step{} {}", ranks_text(ranks), ranks.size() == 1 ? "has" : "have", steps.size() == 1 ? "" : "s",
                                numbers_text(steps)));
  }
  return lines;
}

RankGrid hits_grid(const Session& session, const CheckResult& result) {
  const std::set<int64_t> ranks(result.ranks.begin(), result.ranks.end()), steps(result.steps.begin(), result.steps.end());
  const auto of_ranks = [&](int64_t rank) { return ranks.empty() || ranks.contains(rank); };
  const auto of_steps = [&](int64_t step) { return steps.contains(step); };
  RankGrid grid = grid_of(session, {"hits in step", "hits", "not_checked", "not checked"}, of_ranks, of_steps);
  const auto cell_of = [&](const TensorId& id) { return grid.find(id.rank, id.step); };
  for (const Hit& hit : result.hits) {
    if (RankGrid::Cell* const cell = cell_of(hit.tensor)) ++cell->first;
  }
  // Several rules may have failed on one tensor.
  const TensorId* before = nullptr;
  for (const NotChecked& entry : result.not_checked) {
    RankGrid::Cell* const cell = cell_of(entry.tensor);
    if (cell != nullptr && (before == nullptr || *before != entry.tensor)) ++cell->second;
    before = &entry.tensor;
  }
  return grid;
}

RankGrid stats_grid(const Session& session, const IntSet& ranks, const IntSet& steps) {
  const auto of_ranks = [&](int64_t rank) { return ranks.contains(rank); };
  const auto of_steps = [&](int64_t step) { return steps.contains(step); };
  return grid_of(session, {"not finite in step", "not_finite", "not_computed", "not computed"}, of_ranks, of_steps);
}

void count_row(RankGrid& grid, const StatsRow& row) {
  RankGrid::Cell* const cell = grid.find(row.info.id.rank, row.info.id.step);
  if (cell == nullptr) return;
  if (!row.stats) ++cell->second;
  else if (row.stats->nan_count + row.stats->inf_count() > 0) ++cell->first;
}

RankGrid tensors_grid(Session& session) {
  const auto all = [](int64_t) { return true; };
  RankGrid grid = grid_of(session, {"tensors in step", "tensors", "", ""}, all, all);
  if (session.ranks().size() < 2) return grid;
  for (const int rank : session.ranks()) {
    TensorQuery query;
    query.ranks = IntSet::of(rank);
    query.inputs = true;
    for (const TensorId& id : session.tensors(query)) {
      if (RankGrid::Cell* const cell = grid.find(id.rank, id.step)) ++cell->first;
    }
  }
  return grid;
}

Answer by_rank_answer(const RankGrid& grid) {
  Answer list = Answer::array();
  for (size_t rank = 0; rank < grid.ranks.size(); ++rank) {
    Answer steps = Answer::array(), missing = Answer::array(), first = Answer::array(), second = Answer::array();
    for (size_t step = 0; step < grid.steps.size(); ++step) {
      const RankGrid::Cell& cell = grid.at(step, rank);
      (cell.present ? steps : missing).push_back(grid.steps[step]);
      if (!cell.present) continue;
      first.push_back(cell.first);
      second.push_back(cell.second);
    }
    Answer out = {{"rank", grid.ranks[rank]}, {"steps", std::move(steps)}, {"missing_steps", std::move(missing)}};
    out[std::string(grid.words.first_key)] = std::move(first);
    if (!grid.words.second_key.empty()) out[std::string(grid.words.second_key)] = std::move(second);
    list.push_back(std::move(out));
  }
  return list;
}

std::vector<std::string> missing_steps(const Session& session) {
  const auto all = [](int64_t) { return true; };
  return lacking_lines(grid_of(session, {}, all, all));
}

}  // namespace msdbg
