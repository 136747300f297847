// From the command line to the exit status.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "app/options.h"

namespace msdbg::app {

/// The whole program except main().
int run_program(const std::vector<std::string>& words);
/// Runs `command`. An escaping exception becomes one line on standard error and status 7 (3 when memory ran out); so does output
/// that could not be written.
int run_guarded(const std::function<int()>& command);

/// Damage that hides more than single tensors: unreadable graph files, a truncated checkpoint. One sentence each.
std::vector<std::string> damage_of(Session& session);
/// Damaged input never exits with 0: the damaged data may hide findings.
bool is_damaged(Session& session);
/// damage_of() as notes.
void print_damage(Context& context, Session& session);

}  // namespace msdbg::app
