// Agents that behave like the MindSpore release in their options: partners for tests of the debugger.
#pragma once

#include "agent/release_traits.h"

namespace msdbg::test {

/// The behaviour of MindSpore `options.version` on `options.backend`.
agent::ReleaseTraits traits_of_release(const agent::Options& options);

/// Agents created during its lifetime behave like their version.
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
