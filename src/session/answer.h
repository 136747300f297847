// Confines a defect of msdbg to one question: the session survives it.
#pragma once

#include "msdbg/base.h"

namespace msdbg {

/// Returns what `question` returns, a Result; kInternal when an MSDBG_CHECK failed in it.
template <typename Question>
auto answer(Question question) -> decltype(question()) {
  try {
    return question();
  } catch (const InternalError& error) {
    return Status(Code::kInternal, error.what());
  }
}

}  // namespace msdbg
