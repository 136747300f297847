// completion: the script that lets a shell complete msdbg's words.
#include <CLI/CLI.hpp>
#include <memory>

#include "app/command.h"
#include "app/context.h"
#include "app/shell_completion.h"

namespace msdbg::app {
namespace {

Action declare_completion(const Declaration& to) {
  auto shell = std::make_shared<std::string>();
  to.app.add_option("SHELL", *shell, "bash, zsh or fish")->required();
  return [shell](Context& context) -> Result<int> {
    const Result<std::string> script = completion_script(*shell);
    if (!script) return script.status();
    if (const Status written = context.write(*script); !written.ok()) return written;
    return kExitClean;
  };
}

}  // namespace

CommandEntry completion_command() {
  return {.name = "completion",
          .group = kStartGroup,
          .summary = "complete commands and options in bash, zsh or fish",
          .details = "For this shell session: source <(msdbg completion bash). For all of them, see docs/install.md.",
          .examples = {{"bash"}, {"fish > ~/.config/fish/completions/msdbg.fish"}},
          .declare = declare_completion,
          .readers = Readers::kProgram,
          .first = FirstWord::kNone,
          .formats = ""};
}

}  // namespace msdbg::app
