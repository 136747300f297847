// From the words of the command line to the exit status.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "app/options.h"

namespace msdbg::app {

/// The whole program but for main().
int run_program(const std::vector<std::string>& words);
/// Runs `command`. An exception that it lets escape becomes one line on standard error and status 7 (3 when memory ran out), and so
/// does output that was not written.
int run_guarded(const std::function<int()>& command);

/// Damage that hides more than single tensors: graph files that cannot be read, a checkpoint that breaks off. One sentence each.
std::vector<std::string> damage_of(Session& session);
/// Who finds nothing in damaged input must not end with 0: what the damaged part held cannot be found wanting.
bool is_damaged(Session& session);
/// damage_of() as notes.
void print_damage(Context& context, Session& session);

}  // namespace msdbg::app
