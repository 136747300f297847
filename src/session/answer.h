// The border where a defect of msdbg ends the question that was asked, and not the session.
#pragma once

#include "msdbg/base.h"

namespace msdbg {

/// What `question` returns, a Result; kInternal when an MSDBG_CHECK failed in it.
template <typename Question>
auto answer(Question question) -> decltype(question()) {
  try {
    return question();
  } catch (const InternalError& error) {
    return Status(Code::kInternal, error.what());
  }
}

}  // namespace msdbg
