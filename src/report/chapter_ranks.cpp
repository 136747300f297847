// Several ranks: what each has in each step, which replicas differ, and how a fault went from rank to rank.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "msdbg/rank_report.h"
#include "msdbg/replicas_report.h"
#include "msdbg/settings_report.h"
#include "report/chapters.h"
#include "report/table.h"

namespace msdbg::page {
namespace {

constexpr size_t kPhoneWidth = 72;  // characters of a table that a phone still shows
constexpr size_t kMostDifferences = 8;

/// The ranks and steps that the page is about.
FollowOptions limits_of(const Context& context) {
  FollowOptions options;
  options.semantics = context.semantics();
  options.progress = context.options.progress;
  if (const auto steps = IntSet::parse(fmt::format("{}", fmt::join(context.steps_looked_at(), ",")))) options.steps = *steps;
  const CheckResult* const check = context.input.check;
  if (check == nullptr || check->ranks.empty()) return options;
  if (const auto ranks = IntSet::parse(fmt::format("{}", fmt::join(check->ranks, ",")))) options.ranks = *ranks;
  return options;
}

void add_table(const RankGrid& grid, Section* section) {
  const RankTable made = rank_table(grid, kPhoneWidth, false);
  if (!made.rows.empty()) {
    Sheet sheet;
    sheet.caption = "Findings by step and rank";
    sheet.columns.push_back({.title = std::string(grid.words.title), .number = true});
    for (const std::string& title : made.columns) sheet.columns.push_back({.title = title, .number = true});
    for (const RankTable::Row& row : made.rows) {
      std::vector<Line> line{{plain(row.steps)}};
      for (const std::string& cell : row.cells) line.push_back({cell == "-" ? bad(cell) : plain(cell)});
      sheet.rows.push_back(std::move(line));
    }
    section->blocks.push_back(std::move(sheet));
  }
  for (const std::string& note : made.notes) section->blocks.push_back(Paragraph{{muted(note + ".")}});
}

/// The check has compared the ranks already, if its rules do.
Result<std::shared_ptr<const ReplicasResult>> compared_ranks(const Context& context) {
  const FollowOptions limits = limits_of(context);
  const CheckResult* const check = context.input.check;
  if (check != nullptr && check->replicas != nullptr && !check->replicas->interrupted) {
    std::vector<int> ranks;
    std::ranges::copy_if(context.session.ranks(), std::back_inserter(ranks), [&](int rank) { return limits.ranks.contains(rank); });
    std::vector<int64_t> steps;
    std::ranges::copy_if(context.session.steps(), std::back_inserter(steps), [&](int64_t step) { return limits.steps.contains(step); });
    if (check->replicas->ranks == ranks && check->replicas->steps == steps) return check->replicas;
  }
  Result<ReplicasResult> found = replicas(context.session, limits);
  if (!found) return found.status();
  return std::make_shared<const ReplicasResult>(std::move(*found));
}

/// What replicas says, in a sentence each.
void add_replicas(Context& context, Section* section) {
  const Result<std::shared_ptr<const ReplicasResult>> compared = compared_ranks(context);
  const ReplicasResult* const found = compared ? compared->get() : nullptr;
  if ((found && found->interrupted) || (!found && compared.status().code() == Code::kInterrupted)) {
    context.failure = Status(Code::kInterrupted, "report: interrupted");
    return;
  }
  section->blocks.push_back(Heading{{plain("Replicas")}});
  if (!found || !found->nothing.empty()) {
    section->blocks.push_back(Paragraph{{muted(fmt::format("Not compared: {}.", found ? found->nothing : compared.status().message()))}});
    return;
  }
  Facts facts;
  for (const ReplicaDifference& difference : found->differences) {
    if (facts.rows.size() == kMostDifferences) break;
    // The headline says already what the calls were.
    const std::string rest = difference.of_calls() ? fmt::format(", unlike {}.", ranks_text(difference.others))
                                                   : fmt::format(": {}.", difference_sentence(difference));
    Line line{bad(replica_headline(context.session, difference, {})), plain(". In "), context.tensor_run(difference.seen),
              plain(fmt::format(", step {}{}", difference.seen.step, rest))};
    facts.rows.push_back({facts.rows.empty() ? "Different" : "", std::move(line)});
  }
  if (found->differences.size() > kMostDifferences)
    facts.rows.push_back({"", {muted(fmt::format("and {} more", found->differences.size() - kMostDifferences))}});
  uint64_t values = 0;
  for (const ReplicaSet& set : found->sets) values += set.tensors - set.different;
  const bool weights = std::ranges::any_of(found->sets, [](const ReplicaSet& set) { return set.what == ReplicaKind::kParameter; });
  const std::string_view evidence = found->by_statistics > 0 ? "as far as statistics tell"
                                    : found->by_checksum > 0 ? "as far as checksums tell" : "bit for bit";
  facts.rows.push_back({"Equal", {plain(fmt::format("{}{} on {}, steps {}, {}", counted(values, "value"),
                                                    weights ? "" : ", no weight among them,", ranks_text(found->ranks),
                                                    numbers_text(found->steps), evidence))}});
  if (found->coverage.not_checked > 0)
    facts.rows.push_back({"Not checked", {plain(counted(found->coverage.not_checked, "tensor"))}});
  section->blocks.push_back(std::move(facts));
}

/// How faults reached other ranks.
void add_reach(Context& context, Section* section) {
  Facts facts;
  for (const StepOrigins* step : context.origins) {
    for (const Origin& origin : step->origins) {
      for (const std::string& line : reached_lines(origin.ranks_reached, [&](const TensorId& id) { return context.tensor_text(id); })) {
        facts.rows.push_back({fmt::format("Step {}", step->step), {plain("From "), context.node_run(origin.tensor),
                                                                   plain(fmt::format(", rank {}: {}.", origin.tensor.rank, line))}});
      }
    }
  }
  if (facts.rows.empty()) return;
  section->blocks.push_back(Heading{{plain("From rank to rank")}});
  section->blocks.push_back(std::move(facts));
}

/// Settings that are not the same everywhere.
void add_settings(Context& context, Section* section) {
  Result<SettingsResult> found = settings(context.session, limits_of(context));
  if (!found) return;
  std::erase_if(found->settings, [](const Setting& setting) { return !setting.differs(); });
  if (found->settings.empty()) return;
  section->blocks.push_back(Heading{{plain("Settings that differ")}});
  Sheet sheet;
  sheet.caption = "Settings that differ between ranks";
  sheet.columns = {{.title = "setting"}, {.title = "rank", .number = true}, {.title = "value", .named = true}};
  for (const SettingRow& row : setting_rows(*found)) {
    sheet.rows.push_back({{code(row.name)}, {plain(ranks_numbers(row.ranks))},
                          {row.difference.empty() ? plain(row.value) : bad(row.value)}});
  }
  section->blocks.push_back(std::move(sheet));
}

}  // namespace

std::optional<Section> ranks_chapter(Context& context) {
  if (!context.several_ranks()) return std::nullopt;
  Section section{"ranks", "Ranks", {}};
  if (context.input.check != nullptr) add_table(hits_grid(context.session, *context.input.check), &section);
  if (!context.session.can_step()) {
    add_replicas(context, &section);
    add_settings(context, &section);
  }
  add_reach(context, &section);
  if (section.blocks.empty()) return std::nullopt;
  return section;
}

}  // namespace msdbg::page
