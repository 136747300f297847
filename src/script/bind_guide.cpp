// The answer of the guide, from the entries that scripts/msdbg/guide.lua collects.
#include <fmt/format.h>

#include "msdbg/answers.h"
#include "script/objects.h"
#include "script/push_answer.h"

namespace msdbg::script {
namespace {

GuideResult result_argument(lua_State* L, int index) {
  OptionTable options(L, index, "guide");
  return {options.list<int64_t>("steps"), guide_entries(L, options, "entries")};
}

Answer answer_argument(lua_State* L) {
  return guide_answer(object_argument<SessionBox>(L, 1, "guide: session")->open(), result_argument(L, 2));
}

// core.guide_answer(session, { steps =, entries = }) -> table
int make_answer(lua_State* L) {
  push_plain_answer(L, answer_argument(L));
  return 1;
}

// core.guide_json(session, { steps =, entries = }, "json" | "jsonl") -> text
int answer_json(lua_State* L) {
  const Answer answer = answer_argument(L);
  return give(L, text_argument(L, 3, "guide: format") == "jsonl" ? json_lines(answer, "entries") : json_text(answer));
}

}  // namespace

std::vector<GuideEntry> guide_entries(lua_State* L, OptionTable& options, const char* key) {
  std::vector<GuideEntry> entries;
  options.with(key, [&](int at) {
    for_each_element(L, at, options.what(key), [&](int i) {
      OptionTable from(L, -1, fmt::format("{}: element {}", options.what(key), i));
      GuideEntry& entry = entries.emplace_back();
      for (const auto& [name, into] : {std::pair("chapter", &entry.chapter), std::pair("kind", &entry.kind), std::pair("text", &entry.text),
                                       std::pair("next", &entry.next), std::pair("command", &entry.command)}) {
        *into = from.text(name).value_or("");
      }
      entry.step = from.integer("step");
    });
  });
  return entries;
}

void bind_guide(lua_State* L) { add_functions(L, {{"guide_answer", guard<make_answer>}, {"guide_json", guard<answer_json>}}); }

}  // namespace msdbg::script
