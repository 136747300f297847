// Shared by the commands that follow one tensor or question.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>

#include "app/context.h"
#include "app/output.h"
#include "app/progress.h"
#include "app/raw_options.h"
#include "app/run.h"
#include "msdbg/follow_report.h"

namespace msdbg::app {

inline FollowOptions follow_options(const Options& options) {
  FollowOptions made;
  made.steps = options.steps;
  made.ranks = options.ranks;
  made.semantics = options.semantics;
  made.mem_limit_bytes = options.mem_limit_mb << 20;
  made.threads = options.threads;
  return made;
}

}  // namespace msdbg::app
