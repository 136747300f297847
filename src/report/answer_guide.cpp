#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "msdbg/answers.h"
#include "msdbg/terminal.h"
#include "report/table.h"

namespace msdbg {
namespace {

uint64_t count_of(const GuideResult& result, std::string_view kind) {
  return static_cast<uint64_t>(std::ranges::count(result.entries, kind, &GuideEntry::kind));
}

/// The beginning of a text up to a place where it may end.
std::string shortened(const std::string& text, size_t limit) {
  if (text.size() <= limit) return text;
  const std::string_view cut = head(text, limit);
  size_t end = cut.find_last_of(",;(");
  if (end == std::string::npos || end < limit / 3) end = cut.rfind(' ');
  return std::string(trim(cut.substr(0, end))) + " ...";
}

}  // namespace

std::string guide_verdict(const GuideResult& result) {
  constexpr size_t kTextLimit = 100;
  const uint64_t unknowns = count_of(result, "unknown");
  // What began first explains what came later.
  const GuideEntry* first = nullptr;
  const auto began = [](const GuideEntry& entry) { return entry.step.value_or(std::numeric_limits<int64_t>::max()); };
  for (const GuideEntry& entry : result.entries) {
    if (entry.kind == "finding" && (first == nullptr || began(entry) < began(*first))) first = &entry;
  }
  if (first == nullptr)
    return fmt::format("nothing wrong in what could be checked; {} {} open", counted(unknowns, "question"), unknowns == 1 ? "is" : "are");
  return fmt::format("{}, {} open. Begin with: {}", counted(count_of(result, "finding"), "finding"), unknowns,
                     shortened(first->text, kTextLimit));
}

Answer guide_answer(const Session& session, const GuideResult& result) {
  Answer entries = Answer::array();
  for (const GuideEntry& entry : result.entries) {
    entries.push_back({{"chapter", entry.chapter},
                       {"kind", entry.kind},
                       {"text", entry.text},
                       {"next", text_answer(entry.next)},
                       {"command", text_answer(entry.command)},
                       {"step", entry.step ? Answer(*entry.step) : Answer()}});
  }
  return {{"dump", session.info().source},
          {"steps", result.steps},
          {"findings", count_of(result, "finding")},
          {"unknowns", count_of(result, "unknown")},
          {"verdict", guide_verdict(result)},
          {"entries", std::move(entries)}};
}

}  // namespace msdbg
