// One step of one rank: its three files, and what follows from them without other steps.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "msdbg/session.h"
#include "session/msprobe/edges.h"
#include "session/msprobe/layout.h"
#include "session/msprobe/names.h"
#include "session/msprobe/table.h"

namespace msdbg::msprobe {

/// What is known of a call besides its values. Indices are those of StepTable::calls.
struct CallFacts {
  EntryName name;                  ///< its texts are those of the call's name
  CallRole role = CallRole::kForward;
  SharedList<StackFrame> stack;
  std::string caller;              ///< entry, "optimizer" or "clip_grad"; "" if unknown
  uint32_t caller_call = kNoCall;  ///< the same in this table
  uint32_t forward = kNoCall;      ///< of a backward call
  std::string scope;
  bool recomputed = false;         ///< a forward call within the backward pass
};

struct StepTable {
  Place place;
  std::string task, level, framework;
  std::vector<CallRecord> calls;  ///< as they ran, except that a module comes where it ended
  std::vector<CallFacts> facts;   ///< by call
  std::vector<std::vector<Maker>> makers;  ///< by call and input
  bool modules_only = false;      ///< level L0
  bool stacks_by_entry = false, marks_recomputed = false;
  /// Some checksums belong to later values: for tensors on a CPU, msprobe computes them in a thread while the program goes on.
  bool late_checksums = false;
  std::vector<Problem> problems;
  /// Why calls of this step are missing; "" if its table was read to the end.
  std::string cut;
};

/// Reads a folder. Never fails: see `cut` and `problems`. Any thread.
StepTable read_step(const Place& place);

/// `net.conv1.weight` for a record among the parameters of this module.
std::string parameter_name(const CallFacts& facts, const Record& record);
/// Of the gradients of a module's parameters: which parameter each output is the gradient of.
std::vector<Attribute> gradient_names(const CallFacts& facts, const CallRecord& call);

/// What the form of the dump tells about msprobe's version: "1.x", "8.1", "8.3", "26.0", "26.2", or several where it does not tell.
std::string release_of(const std::vector<StepTable>& steps, RankForm form);

}  // namespace msdbg::msprobe
