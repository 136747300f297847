// What the calls of one line of the program have in common within a step: the layers that a loop runs, one after the other.
#pragma once

#include <cstdint>
#include <vector>

#include "session/msprobe/overwritten.h"

namespace msdbg::msprobe {

/// Finds the one call of a line whose input equals no output, where the same input of all the others equals that of the call before.
class LineMakers {
 public:
  explicit LineMakers(const StepTable& step);

  /// Those of the step, in the order of the calls that took them.
  std::vector<Clash> clashes() const;

 private:
  /// Calls of one function, from one stack, in the order of the table.
  using Line = std::vector<uint32_t>;

  void look_at(const Line& line, uint32_t slot, std::vector<Clash>* out) const;
  /// The latest call of a line that ended before this one began; kNoCall if there is none.
  uint32_t latest(uint32_t line, uint32_t before) const;

  const StepTable& step_;
  std::vector<Line> lines_;
  std::vector<uint32_t> line_of_;  // by call; kNoCall if its stack is not known
  std::vector<uint32_t> begins_;   // by call: the first call that ran within it
};

}  // namespace msdbg::msprobe
