// Agents that behave like the release of MindSpore that their options name: partners for tests of the debugger.
#pragma once

#include "agent/habits.h"

namespace msdbg::test {

/// What MindSpore `options.version` does on `options.backend`.
agent::Habits habits_of_release(const agent::Options& options);

/// Agents that are made while it exists have the habits of their version.
class OldReleases {
 public:
  OldReleases() : before_(agent::habits_for) { agent::habits_for = &habits_of_release; }
  ~OldReleases() { agent::habits_for = before_; }
  OldReleases(const OldReleases&) = delete;
  OldReleases& operator=(const OldReleases&) = delete;

 private:
  agent::Habits (*before_)(const agent::Options& options);
};

}  // namespace msdbg::test
