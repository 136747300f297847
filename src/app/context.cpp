#include "app/context.h"

#include <fmt/format.h>
#include <unistd.h>

#include <utility>

#include "app/live.h"
#include "app/output.h"
#include "app/run.h"
#include "app/scripting.h"
#include "msdbg/atomic_file.h"
#include "msdbg/sanitizers.h"

namespace msdbg::app {

ReportStyle Context::style() const {
  ReportStyle style = style_for(options_);
  style.place = options_.place;
  style.numbered = at_prompt() && options_.output_file.empty();
  // Output redirected at the prompt has no colours, even with --color always.
  if (at_prompt() && ::isatty(STDOUT_FILENO) == 0) style.colour = false;
  return style;
}

std::string Context::typed(std::string_view command) const {
  return at_prompt() ? std::string(command) : fmt::format("msdbg {} {}", command, options_.dump);
}

Result<Session*> ShellContext::session() {
  if (session_ != nullptr) return session_;
  auto opened = open_other(*this, options().dump);
  if (!opened) return opened.status();
  session_ = opened->get();
  if (script_) script_->set_session(std::move(*opened));  // rules see the same session as scripts
  else own_ = std::move(*opened);
  return session_;
}

Result<Script*> ShellContext::script() {
  if (script_) return script_.get();
  auto made = make_script(options());
  if (!made) return made.status();
  script_ = std::move(*made);
  if (own_) script_->set_session(std::move(own_));
  return script_.get();
}

Status Context::write_pieces(const std::function<Status(const TextSink&)>& make) {
  std::string all;
  const Status made = make([&](std::string_view text) { return all += text, Status(); });
  return made.ok() ? write(all) : made;
}

Status ShellContext::write(std::string_view text) { return write_result(options(), text); }

Status ShellContext::write_pieces(const std::function<Status(const TextSink&)>& make) {
  if (!options().output_file.empty()) {
    Result<AtomicFile> file = AtomicFile::create(options().output_file);
    if (!file) return file.status();
    const Status made = make([&](std::string_view text) { return file->append(text); });
    return made.ok() ? file->commit() : made;
  }
  if (::isatty(STDOUT_FILENO) != 0) return Context::write_pieces(make);
  constexpr size_t kPiece = 1 << 16;
  std::string waiting;
  const Status made = make([&](std::string_view text) {
    waiting += text;
    return waiting.size() < kPiece ? Status() : write(std::exchange(waiting, {}));
  });
  return made.ok() ? write(waiting) : made;
}

void ShellContext::note(std::string_view text) { app::note(options(), text); }

Result<std::unique_ptr<Session>> open_other(Context& context, const std::string& path) {
  // A recording holds only its first suspension until it is played on.
  if (live_factories().is_recording(path)) {
    return Status(Code::kUnsupported, path + " is a recording of a live session, which is played step by step: msdbg open " + path);
  }
  DumpOptions dump_options;
  dump_options.net = context.options().net;
  dump_options.index = context.options().index;
  dump_options.asks_at_once = context.options().asks_at_once && !context.at_prompt();
  if (!context.options().opens_all_ranks) dump_options.ranks = context.options().ranks;
  auto session = open_any(path, dump_options, context.options().checkpoint);
  if (session && context.options().prints_damage) print_damage(context, **session);
  return session;
}

void ShellContext::leave() {
  if (!kFindsLeaks && session_ != nullptr && !session_->can_step()) {
    session_->before_exit();
    if (script_) script_->before_exit();
    return;
  }
  session_ = nullptr;
  script_.reset();
  own_.reset();
}

int run_in_shell(const Parsed& parsed) {
  // The memory of a large dump goes with the process: to free it piece by piece takes longer than some commands.
  static auto* const kept = new std::vector<std::unique_ptr<ShellContext>>;
  ShellContext& context = *kept->emplace_back(std::make_unique<ShellContext>(parsed.options));
  const struct Leaving {
    ShellContext& context;
    ~Leaving() { context.leave(); }
  } leaving{context};
  const auto status = parsed.action(context);
  return status ? *status : report_failure(status.status());
}

}  // namespace msdbg::app
