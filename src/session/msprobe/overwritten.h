// Values that were overwritten between two calls: one value that was recorded twice, and the records differ.
//
// Only where nothing else explains it: what a container hands from one module to the next, what a module of the framework hands to its
// only call, and what equals the output of one call in other steps.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "msdbg/graph.h"
#include "session/msprobe/step_table.h"

namespace msdbg::msprobe {

/// Two records of one value that differ. Calls are those of the table.
struct Clash {
  uint32_t before_call = 0, after_call = 0;
  Slot before, after;
  std::string reason;
};

/// What the modules of one step show.
std::vector<Clash> find_clashes(const StepTable& step);

/// True if the records are those of two values, although type and shape are equal. False if the statistics do not tell.
bool must_differ(const Record& a, const Record& b);

/// True if the second value is finite and beyond the range of the first: no call that only selects, limits or masks made it from that.
bool is_foreign(const Record& made, const Record& taken);

/// Finite and no constant: if it equaled an output, the edges would show it.
bool tells_its_maker(const Record& record);

/// True if a call between the two, working in place, took this output.
bool changed_in_place(const StepTable& step, const Maker& made, uint32_t taken_by);

}  // namespace msdbg::msprobe
