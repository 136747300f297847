// Memory of the process.
#pragma once

namespace msdbg {

/// Gives free memory back to the system. For after work that made millions of small allocations: what lives longest is often above
/// them, and the holes would stay. Any thread.
void return_free_memory() noexcept;

}  // namespace msdbg
