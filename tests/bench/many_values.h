// A function on every one of many small tensors, in each step of a held training.
#pragma once

#include <string>

namespace msdbg::bench {

void many_values(const std::string& trainer, bool small);

}  // namespace msdbg::bench
