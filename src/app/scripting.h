// The Script that the commands share: options turned into defaults, the dump reader registered.
#pragma once

#include <memory>

#include "app/options.h"
#include "msdbg/script.h"

namespace msdbg::app {

Result<std::unique_ptr<Script>> make_script(const Options& options);

}  // namespace msdbg::app
