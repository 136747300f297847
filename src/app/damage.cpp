// Damage to a whole input, which tensor coverage does not show.
#include <fmt/format.h>

#include "app/context.h"
#include "app/run.h"

namespace msdbg::app {

std::vector<std::string> damage_of(Session& session) {
  std::vector<std::string> found;
  if (session.info().kind == SessionKind::kCheckpoint) {
    for (const Problem& problem : session.inspect().problems) {
      if (problem.severity == Severity::kError) found.push_back(problem.message);
    }
  }
  for (const GraphPtr& graph : session.graphs()) {
    if (session.info().kind == SessionKind::kDump && !graph->from_file() && !graph->source_path().empty()) {
      found.push_back(
          fmt::format("graph {} cannot be read, its nodes are known from file names only: {}", graph->id(), graph->source_path()));
    }
  }
  return found;
}

bool is_damaged(Session& session) { return !damage_of(session).empty(); }

void print_damage(Context& context, Session& session) {
  if (session.info().kind == SessionKind::kCheckpoint) return;  // open_any() has already reported a checkpoint's damage
  for (const std::string& text : damage_of(session)) context.note(fmt::format("damaged: {}", printable(text)));
}

}  // namespace msdbg::app
