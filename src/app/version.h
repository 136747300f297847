// msdbg --version: what this program can read, talk to and compute with.
#pragma once

#include <string>

namespace msdbg::app {

/// The first line is "msdbg VERSION".
std::string version_text();
/// One object; docs/json.md lists its keys.
std::string version_json();

}  // namespace msdbg::app
