// Destinations of an entry's output: a file, another program, the pager; and its progress line.
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include "msdbg/atomic_file.h"
#include "msdbg/child.h"
#include "script/objects.h"

namespace msdbg::script {
namespace {

/// Captures everything written to standard output during its lifetime: by print(), by events of a training, by child processes.
class Capture {
 public:
  explicit Capture(Vm& vm) : vm_(vm), file_(std::tmpfile()) {
    if (!file_) refuse();
    std::fflush(stdout);
    before_ = ::dup(STDOUT_FILENO);
    if (before_ < 0 || ::dup2(::fileno(file_.get()), STDOUT_FILENO) < 0) {
      const int problem = errno;
      if (before_ >= 0) ::close(before_);
      errno = problem;
      refuse();
    }
    ++vm_.captured;
  }
  ~Capture() { release(); }
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;

  std::string text() {
    release();
    std::string out;
    std::rewind(file_.get());
    char block[1 << 16];
    size_t count;
    while ((count = std::fread(block, 1, sizeof block, file_.get())) > 0) out.append(block, count);
    return out;
  }

 private:
  void release() {
    if (before_ < 0) return;
    std::fflush(stdout);
    ::dup2(before_, STDOUT_FILENO);
    ::close(before_);
    before_ = -1;
    --vm_.captured;
  }
  [[noreturn]] static void refuse() {
    throw ScriptError("io_error", "redirect: the output cannot be kept: " + std::string(std::strerror(errno)), true);
  }

  struct Close {
    void operator()(FILE* file) const { std::fclose(file); }
  };
  Vm& vm_;
  std::unique_ptr<FILE, Close> file_;
  int before_ = -1;
};

// core.capture(function) -> captured output, results of the function
int capture(lua_State* L) {
  lua_settop(L, 1);
  Capture kept(vm_of(L));
  if (!protected_call(L, 0, LUA_MULTRET)) throw PendingError();
  push(L, kept.text());
  lua_insert(L, 1);
  return lua_gettop(L);
}

// core.append_to_file(path, text)
int append_text(lua_State* L) {
  const Status status = append_to_file(text_argument(L, 1, "path"), text_argument(L, 2, "text"));
  if (!status.ok()) throw ScriptError("io_error", status.message(), true);
  return 0;
}

// core.feed_shell(command, text) -> exit status
int feed(lua_State* L) {
  std::fflush(stdout);
  return give(L, value_or_throw(feed_shell(text_argument(L, 1, "command"), text_argument(L, 2, "text"))));
}

// core.pager(on) -> whether long outputs of the prompt go through a pager; a boolean argument changes that
int pager(lua_State* L) {
  Vm& vm = vm_of(L);
  if (!lua_isnoneornil(L, 1)) vm.options.pager = truth_at(L, 1);
  return give(L, vm.options.pager);
}

}  // namespace

ProgressCallback progress_of(const Vm& vm, std::string_view what, std::string_view unit) {
  if (!vm.at_prompt || !vm.options.progress) return {};
  return vm.options.progress(what, unit);
}

void bind_output(lua_State* L) {
  add_functions(L, {{"capture", guard<capture>}, {"append_to_file", guard<append_text>}, {"feed_shell", guard<feed>},
                    {"pager", guard<pager>}});
}

}  // namespace msdbg::script
