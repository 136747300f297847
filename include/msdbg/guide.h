// The answer of `msdbg guide`; the checklist itself is scripts/msdbg/guide.lua.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "msdbg/base.h"

namespace msdbg {

/// What one check or one question of the guide led to.
struct GuideEntry {
  std::string chapter;        ///< "Data"
  std::string kind;           ///< "finding", "unknown", "fine" or "note"
  std::string text;
  std::string next, command;  ///< what to do, and what to type at the prompt; may be empty
  std::optional<int64_t> step;  ///< where it began
};

struct GuideResult {
  std::vector<int64_t> steps;  ///< that were checked
  std::vector<GuideEntry> entries;
};

/// One sentence: how many findings, and where to begin.
std::string guide_verdict(const GuideResult& result);

}  // namespace msdbg
