#include "msdbg/gate.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace msdbg {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kBaselineForm =
    R"({"graph": "...", "node": "...", "rule": "...", "slot": "output:0", "rank": 0}, with "step" if it is for one step only)";
constexpr std::string_view kSuppressionForm = "RULE NODE-GLOB[:slot] [step=0:3] # reason";

Status bad_line(std::string_view name, size_t line, std::string_view what, std::string_view form) {
  return Status(Code::kCorrupt, fmt::format("{}:{}: {}; a line is {}", name, line, what, form));
}

// `*` stays within a scope, `**` does not, `?` is one character. Remembers the last star instead of recursing: a pattern of many
// stars stays quadratic. A `**` takes over where a later `*` would have to cross a slash.
bool glob(std::string_view pattern, std::string_view text) {
  constexpr size_t kNone = std::string_view::npos;
  size_t p = 0, t = 0;
  size_t star = kNone, star_text = 0, deep = kNone, deep_text = 0;
  while (true) {
    if (p < pattern.size() && pattern[p] == '*') {
      if (pattern.substr(p).starts_with("**")) {
        while (p < pattern.size() && pattern[p] == '*') ++p;
        deep = p, deep_text = t, star = kNone;
      } else {
        star = ++p, star_text = t;
      }
      continue;
    }
    if (t < text.size() && p < pattern.size() && (pattern[p] == '?' ? text[t] != '/' : pattern[p] == text[t])) {
      ++p, ++t;
      continue;
    }
    if (t == text.size() && p == pattern.size()) return true;
    if (star != kNone && star_text < text.size() && text[star_text] != '/') {
      p = star, t = ++star_text;
    } else if (deep != kNone && deep_text < text.size()) {
      p = deep, t = ++deep_text, star = kNone;
    } else {
      return false;
    }
  }
}

std::string graph_name(const Session& session, const TensorId& id) {
  const Graph* graph = session.graph(id.rank, id.graph);
  return graph ? graph->name() : "";
}

// The next word; in quotes it may contain blanks, for expressions that are their own rule.
std::string next_word(std::string_view* rest) {
  *rest = trim(*rest);
  if (rest->starts_with('"')) {
    const size_t end = rest->find('"', 1);
    if (end != std::string_view::npos) {
      std::string word(rest->substr(1, end - 1));
      rest->remove_prefix(end + 1);
      return word;
    }
  }
  const size_t end = std::min(rest->find_first_of(" \t"), rest->size());
  std::string word(rest->substr(0, end));
  rest->remove_prefix(end);
  return word;
}

// A `#` begins the reason only after a blank and outside of quotes; node names may contain one.
size_t reason_start(std::string_view line) {
  bool quoted = false;
  for (size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '"') quoted = !quoted;
    if (line[i] == '#' && !quoted && i > 0 && (line[i - 1] == ' ' || line[i - 1] == '\t')) return i;
  }
  return std::string_view::npos;
}

// `NODE:output:0` and `NODE:0`. Names may contain colons: only a valid slot is split off, the longer form first.
void split_slot(std::string* node, std::optional<Slot>* slot) {
  const size_t last = node->rfind(':');
  if (last == std::string::npos || last == 0) return;
  for (size_t colon : {node->rfind(':', last - 1), last}) {
    if (colon == std::string::npos || colon == 0) continue;
    *slot = parse_slot(std::string_view(*node).substr(colon + 1));
    if (!*slot) continue;
    node->resize(colon);
    return;
  }
}

}  // namespace

std::string Fingerprint::text() const {
  Json out;
  out["graph"] = graph;
  out["node"] = node;
  out["rule"] = rule;
  out["slot"] = slot;
  out["rank"] = rank;
  if (step) out["step"] = *step;
  return out.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string Fingerprint::hash() const {
  uint64_t hash = 0xcbf29ce484222325u;  // FNV-1a: unlike std::hash, the same on every platform
  for (unsigned char c : text()) hash = (hash ^ c) * 0x100000001b3u;
  return fmt::format("{:016x}", hash);
}

Fingerprint fingerprint(const Session& session, const Hit& hit, bool with_step) {
  Fingerprint out{
      graph_name(session, hit.tensor), session.node(hit.tensor).name, hit.rule, slot_name(hit.tensor.slot), hit.tensor.rank, {}};
  if (with_step) out.step = hit.tensor.step;
  return out;
}

Result<Baseline> Baseline::parse(std::string_view text, std::string_view name) {
  Baseline out;
  size_t number = 0;
  for (std::string_view line : split(text, '\n')) {
    ++number;
    if (line = trim(line); line.empty()) continue;
    const Json json = Json::parse(line, nullptr, false);
    if (!json.is_object()) return bad_line(name, number, "not a JSON object", kBaselineForm);
    Fingerprint entry;
    for (const auto& [key, field] : {std::pair{"graph", &entry.graph}, std::pair{"node", &entry.node}, std::pair{"rule", &entry.rule},
                                     std::pair{"slot", &entry.slot}}) {
      if (!json.contains(key) || !json[key].is_string())
        return bad_line(name, number, fmt::format("\"{}\" is missing or no text", key), kBaselineForm);
      *field = json[key].get<std::string>();
    }
    if (!json.contains("rank") || !json["rank"].is_number_integer())
      return bad_line(name, number, "\"rank\" is missing or no number", kBaselineForm);
    entry.rank = json["rank"].get<int>();
    if (json.contains("step")) {
      if (!json["step"].is_number_integer()) return bad_line(name, number, "\"step\" is not a number", kBaselineForm);
      entry.step = json["step"].get<int64_t>();
    }
    out.entries_.insert(std::move(entry));
  }
  return out;
}

Baseline Baseline::of(const Session& session, const std::vector<Hit>& hits, bool with_steps) {
  Baseline out;
  for (const Hit& hit : hits) out.entries_.insert(fingerprint(session, hit, with_steps));
  return out;
}

bool Baseline::contains(const Session& session, const Hit& hit) const {
  Fingerprint print = fingerprint(session, hit, false);
  if (entries_.count(print) > 0) return true;
  print.step = hit.tensor.step;
  return entries_.count(print) > 0;
}

std::string Baseline::text() const {
  std::string out;
  for (const Fingerprint& entry : entries_) out += entry.text() + "\n";
  return out;
}

bool Suppression::matches(const Session& session, const Hit& hit) const {
  const std::string wanted = to_lower(rule);
  if (rule != "*" && wanted != to_lower(hit.rule) && wanted != to_lower(hit.abbr)) return false;
  if (slot && *slot != hit.tensor.slot) return false;
  if (!steps.contains(hit.tensor.step)) return false;
  return node == "*" || glob(node, session.node(hit.tensor).name);
}

Result<std::vector<Suppression>> parse_suppressions(std::string_view text, std::string_view name) {
  std::vector<Suppression> out;
  size_t number = 0;
  for (std::string_view line : split(text, '\n')) {
    ++number;
    line = trim(line);
    if (line.empty() || line[0] == '#') continue;
    const auto bad = [&](std::string_view what) { return bad_line(name, number, what, kSuppressionForm); };
    const size_t mark = reason_start(line);
    Suppression entry;
    entry.line = number;
    if (mark != std::string_view::npos) entry.reason = trim(line.substr(mark + 1));
    if (entry.reason.empty()) return bad("the reason is missing");
    std::string_view rest = trim(line.substr(0, mark));
    entry.text = rest;
    entry.rule = next_word(&rest);
    entry.node = next_word(&rest);
    if (entry.node.empty() || entry.node.starts_with("step=")) return bad("the node is missing");
    split_slot(&entry.node, &entry.slot);
    while (!trim(rest).empty()) {
      const std::string word = next_word(&rest);
      if (!word.starts_with("step=")) return bad(fmt::format("'{}' is one word too many", printable(word)));
      const auto steps = IntSet::parse(std::string_view(word).substr(5));
      if (!steps) return bad(fmt::format("step: {}", steps.status().message()));
      entry.steps = *steps;
    }
    out.push_back(std::move(entry));
  }
  return out;
}

std::string_view gate_status_name(GateStatus status) {
  switch (status) {
    case GateStatus::kNew: return "new";
    case GateStatus::kKnown: return "known";
    case GateStatus::kSuppressed: return "suppressed";
  }
  return "new";
}

bool nothing_checked(const CheckResult& result) {
  return result.coverage.verdicts == 0 && result.coverage.checked == 0 && result.total_hits == 0;
}

bool is_incomplete(const CheckResult& result) {
  return nothing_checked(result) || result.coverage.not_checked > 0 ||
         std::any_of(result.rule_problems.begin(), result.rule_problems.end(),
                     [](const RuleProblem& problem) { return problem.kind != RuleProblemKind::kIdle; });
}

bool none_judged(const CheckResult& result, const std::vector<std::string>& chosen) {
  std::set<std::string, std::less<>> broken, silent;
  for (const RuleProblem& problem : result.rule_problems) {
    (problem.kind == RuleProblemKind::kBroken ? broken : silent).insert(problem.rule);
  }
  const auto all_silent = [&] {
    return !broken.empty() && std::all_of(chosen.begin(), chosen.end(),
                                          [&](const std::string& rule) { return broken.contains(rule) || silent.contains(rule); });
  };
  if (all_silent()) return true;
  // A verdict of any rule means that something ran, even if it is unknown which rule it was.
  if (result.coverage.checked > 0 || !result.hits.empty()) return false;
  for (const NotChecked& entry : result.not_checked) {
    if (entry.reason.starts_with("rule error")) broken.insert(entry.rule);
  }
  return all_silent();
}

Gate judge(const Session& session, CheckResult* result, const Baseline* baseline, const std::vector<Suppression>* suppressions,
           size_t max_hits, bool partial) {
  Gate gate;
  gate.has_baseline = baseline != nullptr;
  gate.has_suppressions = suppressions != nullptr;
  const size_t count = suppressions ? suppressions->size() : 0;
  std::vector<bool> used(count);
  std::vector<Hit> listed;
  for (Hit& hit : result->hits) {
    GateStatus status = GateStatus::kNew;
    std::string reason;
    for (size_t i = 0; i < count; ++i) {
      if (!(*suppressions)[i].matches(session, hit)) continue;
      used[i] = true;  // every suppression that applies counts as used; the first gives the reason
      if (status != GateStatus::kSuppressed) reason = (*suppressions)[i].reason;
      status = GateStatus::kSuppressed;
    }
    if (status == GateStatus::kNew && baseline && baseline->contains(session, hit)) status = GateStatus::kKnown;
    (status == GateStatus::kNew ? gate.fresh : status == GateStatus::kKnown ? gate.known : gate.suppressed)++;
    const uint64_t of_its_kind = status == GateStatus::kNew ? gate.fresh : gate.known + gate.suppressed;
    if (of_its_kind > max_hits) continue;
    gate.statuses.push_back(status);
    gate.reasons.push_back(std::move(reason));
    listed.push_back(std::move(hit));
  }
  result->hits = std::move(listed);
  for (size_t i = 0; i < count && !result->interrupted && !partial; ++i) {
    if (!used[i]) gate.unused.push_back((*suppressions)[i]);
  }
  return gate;
}

}  // namespace msdbg
