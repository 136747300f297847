// How to reproduce each finding.
#include <fmt/format.h>

#include <set>

#include "report/chapters.h"
#include "report/check_formats.h"
#include "report/table.h"

namespace msdbg::page {
namespace {

constexpr size_t kOpenCommands = 12, kMostCommands = 60;

/// The command that shows a finding again.
class CommandText {
 public:
  explicit CommandText(Context& context) : context_(context) {
    const std::string& dump = context.options.dump.empty() ? context.session.info().source : context.options.dump;
    dump_ = shell_word(printable(dump));
  }

  std::string check_all() const {
    return fmt::format("msdbg check {}{}{}", dump_, context_.options.rule_words.empty() ? "" : " " + context_.options.rule_words,
                       semantics());
  }
  std::string origin(const StepOrigins& step) const {
    return fmt::format("msdbg origin {} --steps {}{}{}", dump_, step.step, rank(step.rank), semantics());
  }
  std::string show(const TensorId& id) const {
    std::string out =
        fmt::format("msdbg show {} {} --step {}{}", dump_,
                    shell_word(printable(fmt::format("{}:{}", context_.short_name(id), slot_name(id.slot)))), id.step, rank(id.rank));
    if (context_.several_graphs()) out += fmt::format(" --graph {}", id.graph);
    if (id.execution > 0) out += fmt::format(" --execution {}", id.execution);
    return out;
  }
  /// "" for the checks of a script, which have no command line.
  std::string hit(const Hit& hit) const {
    std::string when;
    if (const auto spec = find_condition(hit.abbr.empty() ? hit.rule : hit.abbr)) {
      when = (*spec)->abbr.empty() ? std::string((*spec)->id) : std::string((*spec)->abbr);
      for (const ParamResult& param : hit.params) when += fmt::format(" {}={}", param.name, format_double(param.threshold));
    } else if (const RuleInfo* info = rule_info(*context_.input.check, hit.rule)) {
      const std::string& files = context_.options.file_words;
      return fmt::format("msdbg check {} {}{}--rules {} --steps {}{}{}{}", dump_, files, files.empty() ? "" : " ", shell_word(hit.rule),
                         info->remembers && hit.tensor.step > 0 ? "0:" : "", hit.tensor.step, rank(hit.tensor.rank), semantics());
    } else if (Expression::parse(hit.rule)) {
      when = hit.rule;
    } else {
      return "";
    }
    std::string out =
        fmt::format("msdbg check {} --on {} --when {} --step {}{}", dump_, shell_word("=" + printable(context_.node(hit.tensor).name)),
                    shell_word(when), hit.tensor.step, rank(hit.tensor.rank));
    if (hit.tensor.slot.io == Io::kInput) out += " --slots input";
    return out + semantics();
  }

 private:
  std::string rank(int rank) const { return context_.several_ranks() ? fmt::format(" --rank {}", rank) : ""; }
  std::string semantics() const { return context_.semantics() == Semantics::kFinite ? " --semantics finite" : ""; }

  Context& context_;
  std::string dump_;
};

}  // namespace

std::optional<Section> command_chapter(Context& context) {
  // The values of a training exist only while it is held: no other process can repeat the command.
  if (context.session.can_step()) return std::nullopt;
  const CommandText text(context);
  Commands open;
  for (const StepOrigins* step : context.stories) {
    const Origin& origin = step->origins.front();
    open.rows.emplace_back(fmt::format("Where {} broke", context.when_text(origin.tensor, *step)), text.origin(*step));
    open.rows.emplace_back("What broke first", text.show(origin.tensor));
    for (const OriginInput& input : origin.inputs) {
      if (!input.value || !worth_showing(input)) continue;
      open.rows.emplace_back(fmt::format("Its input:{}", input.slot), text.show(*input.value));
      if (open.rows.size() >= kOpenCommands) break;
    }
  }
  if (context.input.check != nullptr) open.rows.emplace_back("Every finding", text.check_all());
  Commands each;
  std::set<std::string> seen;
  uint64_t left_out = 0;
  if (context.input.check != nullptr) {
    for (const Hit& hit : context.input.check->hits) {
      std::string command = text.hit(hit);
      if (command.empty() || !seen.insert(command).second) continue;
      if (each.rows.size() == kMostCommands) {
        ++left_out;
        continue;
      }
      each.rows.emplace_back(fmt::format("{} on {}, {}", hit.abbr.empty() ? hit.rule : hit.abbr, context.tensor_text(hit.tensor),
                                         context.when_text(hit.tensor)),
                             std::move(command));
    }
  }
  Section section{"commands", "To see it again", {}};
  if (!open.rows.empty()) section.blocks.push_back(std::move(open));
  if (!each.rows.empty()) {
    Fold fold{fmt::format("One command a finding{}",
                          left_out > 0 ? fmt::format(", the first {} of {}", kMostCommands, kMostCommands + left_out) : ""),
              {}};
    fold.blocks.push_back(std::move(each));
    section.blocks.push_back(std::move(fold));
  }
  if (section.blocks.empty()) return std::nullopt;
  return section;
}

}  // namespace msdbg::page
