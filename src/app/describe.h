// What a command accepts, read from its declaration.
#pragma once

#include "app/command.h"
#include "msdbg/script.h"

namespace msdbg::app {

/// For a command that was declared to `app` for this place.
CommandInfo describe(const CommandEntry& entry, const CLI::App& app, Place place);
CommandInfo describe(const CommandEntry& entry, Place place);

}  // namespace msdbg::app
