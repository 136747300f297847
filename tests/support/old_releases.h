// Agents that behave like the release of MindSpore that their options name: partners for tests of the debugger.
#pragma once

#include "agent/release_traits.h"

namespace msdbg::test {

/// What MindSpore `options.version` does on `options.backend`.
agent::ReleaseTraits traits_of_release(const agent::Options& options);

/// Agents that are made while it exists behave like their version.
class OldReleases {
 public:
  OldReleases() : before_(agent::traits_for) { agent::traits_for = &traits_of_release; }
  ~OldReleases() { agent::traits_for = before_; }
  OldReleases(const OldReleases&) = delete;
  OldReleases& operator=(const OldReleases&) = delete;

 private:
  agent::ReleaseTraits (*before_)(const agent::Options& options);
};

}  // namespace msdbg::test
