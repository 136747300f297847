// What was checked, where it came from, and how the report was made.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <map>

#include "msdbg/rank_report.h"
#include "report/chapters.h"
#include "report/table.h"

namespace msdbg::page {
namespace {

constexpr size_t kMostEntries = 200, kMostProblems = 50;
constexpr int64_t kLastSecond = 253402300799;  // end of the year 9999

void add_not_checked(Context& context, const std::vector<NotChecked>& entries, std::string_view what, Section* section) {
  if (entries.empty()) return;
  std::map<std::string, uint64_t> reasons;
  for (const NotChecked& entry : entries) ++reasons[entry.reason];
  std::vector<std::pair<std::string, uint64_t>> order(reasons.begin(), reasons.end());
  std::stable_sort(order.begin(), order.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  Sheet why;
  why.caption = "Why tensors were not checked";
  why.columns = {{std::string(what)}, {"times", true}};
  for (const auto& [reason, count] : order) why.rows.push_back({{plain(reason)}, {plain(std::to_string(count))}});
  why.open = 12;
  if (why.rows.size() > kMostEntries) why.rows.resize(kMostEntries);
  section->blocks.push_back(std::move(why));
  Sheet list;
  list.caption = "Tensors that were not checked";
  list.columns = {{.title = "step", .number = true, .step = true}, {"tensor"}, {"rule"}, {"reason"}};
  list.sorts = true;
  for (const NotChecked& entry : entries) {
    if (list.rows.size() == kMostEntries) break;
    const Answer said = not_checked_answer(context.session, entry);
    list.rows.push_back({{plain(said["step"].dump())},
                         {context.tensor_run(entry.tensor)},
                         {plain(text_at(said, "abbr").empty() ? text_at(said, "rule") : text_at(said, "abbr"))},
                         {plain(text_at(said, "reason"))}});
  }
  list.open = kMostEntries;
  Fold fold{
      fmt::format("Each of them{}", entries.size() > kMostEntries ? fmt::format(", the first {} of {}", kMostEntries, entries.size()) : ""),
      {}};
  fold.blocks.push_back(std::move(list));
  section->blocks.push_back(std::move(fold));
}

void add_problems(Context& context, Section* section) {
  if (context.session.can_step()) return;
  const Answer report = doctor_answer(context.session, context.session.inspect(), {});
  const Answer& problems = report["problems"];
  if (problems.empty()) return;
  Sheet sheet;
  sheet.caption = "What is damaged or missing";
  sheet.columns = {{"what the dump itself shows"}, {"where"}};
  for (const Answer& problem : problems) {
    if (sheet.rows.size() == kMostProblems) break;
    sheet.rows.push_back({{plain(text_at(problem, "message"))}, {code(text_at(problem, "path"))}});
  }
  Fold fold{fmt::format("{} of the dump{}", counted(problems.size(), "remark"),
                        problems.size() > kMostProblems ? fmt::format(", the first {}", kMostProblems) : ""),
            {}};
  sheet.open = kMostProblems;
  fold.blocks.push_back(std::move(sheet));
  section->blocks.push_back(std::move(fold));
}

Result<int64_t> page_time(const PageOptions& options) {
  if (options.time) return *options.time;
  const char* const fixed = std::getenv("SOURCE_DATE_EPOCH");
  if (fixed == nullptr || *fixed == '\0') return static_cast<int64_t>(std::time(nullptr));
  const auto seconds = parse_int(fixed);
  if (seconds && *seconds >= 0 && *seconds <= kLastSecond) return *seconds;
  return Status(Code::kInvalidArgument,
                fmt::format("report: SOURCE_DATE_EPOCH is '{}'; give seconds since 1970-01-01, or unset it", printable(fixed)));
}

std::string time_text(int64_t seconds) {
  const auto time = static_cast<std::time_t>(seconds);
  std::tm utc{};
  gmtime_r(&time, &utc);
  return fmt::format("{:04}-{:02}-{:02} {:02}:{:02} UTC", utc.tm_year + 1900, utc.tm_mon + 1, utc.tm_mday, utc.tm_hour, utc.tm_min);
}

std::string source_label(SessionKind kind) {
  switch (kind) {
    case SessionKind::kDump: return "Dump";
    case SessionKind::kCheckpoint: return "Checkpoint";
    case SessionKind::kLive: return "Training";
    case SessionKind::kRecording: return "Recording";
  }
  return "Dump";
}

}  // namespace

std::optional<Section> coverage_chapter(Context& context) {
  Section section{"coverage", "Coverage", {}};
  const Coverage coverage = context.coverage();
  const Answer rule_problems =
      context.input.check != nullptr ? check_summary(context.session, *context.input.check)["rule_problems"] : Answer::array();
  Facts facts;
  if (context.input.check != nullptr) {
    const std::string rules = context.options.rules.empty() ? "" : fmt::format(" by {}", context.options.rules);
    const std::string kind = context.input.check->inputs_instead ? "input and parameter tensor" : "output and parameter tensor";
    facts.rows.push_back(
        {"Checked", {plain(fmt::format("{} of {}{}", coverage.checked, counted(coverage.tensors, kind), rules))}});
  }
  if (context.input.origin != nullptr) {
    const Coverage& looked = context.input.origin->coverage;
    facts.rows.push_back({"Searched for origins",
                          {plain(fmt::format("{} of {}", looked.checked, counted(looked.tensors, "output, parameter and input tensor")))}});
  }
  facts.rows.push_back({"Not checked", {coverage.not_checked > 0 ? strong(std::to_string(coverage.not_checked)) : plain("none")}});
  facts.rows.push_back({"Steps", {plain(numbers_text(context.steps_looked_at()))}});
  const auto ranks = context.session.ranks();
  facts.rows.push_back({"Ranks in the dump", {plain(numbers_text(std::vector<int64_t>(ranks.begin(), ranks.end())))}});
  if (context.input.check != nullptr) {
    Line idle;
    for (const Answer& problem : rule_problems) {
      if (problem["kind"] != "idle") continue;
      if (!idle.empty()) idle.push_back(plain(", "));
      idle.push_back(code(text_at(problem, "rule"), text_at(problem, "reason")));
    }
    if (!idle.empty()) facts.rows.push_back({"Rules with nothing to check", std::move(idle)});
  }
  section.blocks.push_back(std::move(facts));
  if (!rule_problems.empty()) {
    Sheet broke;
    broke.caption = "Rules without a verdict";
    broke.columns = {{"rule"}, {"why; its findings are unknown"}};
    for (const Answer& problem : rule_problems) {
      // A rule for operators that the network does not have is not a gap.
      if (problem["kind"] != "idle") broke.rows.push_back({{code(text_at(problem, "rule"))}, {plain(text_at(problem, "reason"))}});
    }
    if (broke.rows.size() > kMostEntries) broke.rows.resize(kMostEntries);
    if (!broke.rows.empty()) section.blocks.push_back(std::move(broke));
  }
  if (context.input.check != nullptr) add_not_checked(context, context.input.check->not_checked, "not checked because", &section);
  if (context.input.origin != nullptr) add_not_checked(context, context.input.origin->not_checked, "not searched because", &section);
  add_problems(context, &section);
  return section;
}

Status add_provenance(Context& context, Document* document) {
  const auto time = page_time(context.options);
  if (!time) return time.status();
  const SessionInfo& info = context.session.info();
  std::string source = context.options.dump.empty() ? info.source : context.options.dump;
  if (info.kind != SessionKind::kLive) {
    std::error_code unknown;  // a deleted directory has no absolute name
    const auto absolute = std::filesystem::absolute(source, unknown).lexically_normal();
    if (!unknown) source = absolute.string();
  }
  document->made.push_back({source_label(info.kind), {code(source)}});
  if (!context.options.command.empty()) document->made.push_back({"Command", {code(context.options.command)}});
  document->made.push_back({"Made", {plain(fmt::format("{} by msdbg {}", time_text(*time), kVersion))}});
  return {};
}

std::optional<Section> environment_chapter(Context& context) {
  constexpr size_t kMostGraphs = 8;
  const Answer session = session_answer(context.session);
  Facts facts;
  const std::string layout = text_at(session, "layout");
  const bool by_msprobe = layout == "P";
  const std::string epoch = text_at(session, "epoch");
  const std::string writer = epoch.empty() ? "" : fmt::format(", {} {}", by_msprobe ? "msprobe" : "file names of epoch", epoch);
  if (!layout.empty()) facts.rows.push_back({"Layout", {plain(layout + writer)}});
  const std::string version = text_at(session, "framework_version");
  // The tables of msprobe do not say which framework they are from.
  if (!by_msprobe) facts.rows.push_back({"MindSpore", {version.empty() ? muted("version not recorded") : plain(version)}});
  if (const std::string device = text_at(session, "device_target"); !device.empty()) facts.rows.push_back({"Device", {plain(device)}});
  if (const auto nets = session["nets"].get<std::vector<std::string>>(); !nets.empty())
    facts.rows.push_back({nets.size() == 1 ? "Net" : "Nets", {plain(fmt::format("{}", fmt::join(nets, ", ")))}});
  const Answer& graphs = session["graphs"];
  std::string names;
  for (size_t i = 0; i < std::min(kMostGraphs, graphs.size()); ++i)
    names += fmt::format("{}{} ({})", i > 0 ? "; " : "", text_at(graphs[i], "graph"), counted(graphs[i]["kernels"], "kernel"));
  if (graphs.size() > kMostGraphs) names += fmt::format("; and {} more", graphs.size() - kMostGraphs);
  if (!names.empty()) facts.rows.push_back({"Graphs", {plain(names)}});
  facts.rows.push_back({"Semantics", {plain(std::string(semantics_name(context.semantics())))}});
  Section section{"environment", "Environment", {}};
  section.blocks.push_back(std::move(facts));
  return section;
}

}  // namespace msdbg::page
