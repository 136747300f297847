// From the words of the command line to the exit status.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "app/options.h"

namespace msdbg::app {

/// The whole program but for main().
int run(const std::vector<std::string>& words);
/// Runs `command`. An exception that it lets escape becomes one line on standard error and status 7 (3 when memory ran out), and so
/// does output that was not written.
int run_guarded(const std::function<int()>& command);

// The commands; each returns the exit status.
int run_check(const Options& options);
int run_origin(const Options& options);
int run_stats(const Options& options);
int run_show(const Options& options);
int run_nodes(const Options& options);
int run_doctor(const Options& options);
int run_script(const Options& options);
int run_prompt(const Options& options);
int run_listen(const Options& options);
int run_demo(const Options& options);

/// Damage that hides more than single tensors: graph files that cannot be read, a checkpoint that breaks off. One sentence each.
std::vector<std::string> damage_of(Session& session);
/// A clean result on damaged input must not end with 0: the damaged part was not checked.
bool is_damaged(Session& session);
/// damage_of() on standard error, unless --quiet.
void tell_damage(const Options& options, Session& session);

/// Opens options.dump and reports its damage; a failure is printed and `*exit_status` set.
std::unique_ptr<Session> open_session(const Options& options, int* exit_status);

/// The watchpoints that --rules, --param, --on and --when ask for.
Result<std::vector<Watchpoint>> watchpoints_from(const Options& options);

}  // namespace msdbg::app
