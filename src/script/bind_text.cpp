// Texts from the report module for `print`, t:show() and the commands of the prompt.
#include <fmt/format.h>

#include "msdbg/atomic_directory.h"
#include "msdbg/atomic_file.h"
#include "msdbg/rank_report.h"
#include "msdbg/terminal.h"
#include "script/objects.h"

namespace msdbg::script {
namespace {

constexpr size_t kPlainTableWidth = 100;  // for a table of elements in a file or a pipe

// core.stats_line(tensor) -> text; or nil, reason
int tensor_line(lua_State* L) {
  const auto tensor = object_argument<TensorBox>(L, 1, "stats_line: tensor");
  if (!tensor->stats && !tensor->info.problem.ok()) return push_absence(L, tensor->info.problem);
  return give(L, without_last_newline(stats_line(stats_of(*tensor))));
}

// core.elements_text(tensor, rows) -> table of elements; or nil, reason
int elements_text(lua_State* L) {
  const auto tensor = object_argument<TensorBox>(L, 1, "show: tensor");
  const int64_t rows = integer_argument(L, 2, "show: option 'rows'", 20, 1, INT64_MAX);
  if (!tensor->memory && tensor->info.availability == Availability::kStatisticsOnly) {
    return push_absence(L, Status(Code::kNoData, "only statistics were dumped, no elements"));
  }
  if (!tensor->memory && !tensor->info.problem.ok()) return push_absence(L, tensor->info.problem);
  const size_t width = layout_width().value_or(kPlainTableWidth);
  return give(L, without_last_newline(elements_table(tensor->session->elements(*tensor)->view(), static_cast<size_t>(rows), width)));
}

// core.doctor_text(session): also the hits of the last check, if there are several ranks
int doctor_text(lua_State* L) {
  const auto session = object_argument<SessionBox>(L, 1, "info: session");
  const ReportStyle style = table_style(L);
  std::string text = doctor_report(session->open(), session->open().inspect(), style);
  if (session->last_result) text += rank_table_text(hits_grid(session->open(), session->last_result->result), style);
  return give(L, without_last_newline(std::move(text)));
}

// core.missing_steps(session) -> a line for each set of ranks that lacks steps
int list_missing_steps(lua_State* L) { return give(L, missing_steps(object_argument<SessionBox>(L, 1, "rank: session")->open())); }

// core.short_node_name(session, full name): a unique suffix of it, and a form that is always short
int short_node_name(lua_State* L) {
  const auto session = object_argument<SessionBox>(L, 1, "short_node_name: session");
  const std::string name = text_argument(L, 2, "short_node_name: name");
  push(L, short_name(session->open(), name));
  push(L, elided_name(session->open(), name));
  return 2;
}

int short_tensor_name(lua_State* L) {
  const auto tensor = object_argument<TensorBox>(L, 1, "short_name: tensor");
  return give(L, short_name(tensor->session->open(), tensor->info.id));
}

// core.session_of(tensor)
int session_of(lua_State* L) {
  push_object(L, object_argument<TensorBox>(L, 1, "session_of: tensor")->session);
  return 1;
}

// core.write_file(path, text): writes the whole file or nothing
int write_whole_file(lua_State* L) {
  if (const Status status = write_file(text_argument(L, 1, "path"), text_argument(L, 2, "text")); !status.ok())
    throw ScriptError("io_error", status.message(), true);
  return 0;
}

// core.in_new_directory(path, f): f(temporary) fills the directory, which then appears at `path`; after an error nothing is left
int in_new_directory(lua_State* L) {
  const std::string path = text_argument(L, 1, "directory");
  if (!lua_isfunction(L, 2)) misuse("in_new_directory: a function is expected");
  AtomicDirectory directory = value_or_throw(AtomicDirectory::create(path));
  lua_pushvalue(L, 2);
  push(L, directory.path());
  if (!protected_call(L, 1, 0)) throw PendingError();
  if (const Status status = directory.commit(); !status.ok()) throw ScriptError("io_error", status.message(), true);
  return 0;
}

}  // namespace

void bind_text(lua_State* L) {
  add_functions(L, {{"stats_line", guard<tensor_line>}, {"elements_text", guard<elements_text>},
                    {"doctor_text", guard<doctor_text>}, {"missing_steps", guard<list_missing_steps>},
                    {"short_name", guard<short_tensor_name>},
                    {"short_node_name", guard<short_node_name>},
                    {"session_of", guard<session_of>}, {"write_file", guard<write_whole_file>},
                    {"in_new_directory", guard<in_new_directory>}});
}

}  // namespace msdbg::script
