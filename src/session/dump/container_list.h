// The tensors of the containers of a directory, as if each had a file of its own.
#pragma once

#include <string>
#include <vector>

#include "session/dump/step_files.h"

namespace msdbg::dump {

/// Replaces each container among `files` by its tensors: slot, format and type come from its description, everything else from its
/// name. One that cannot be read remains, as FileKind::kDevice. A tensor that a
/// converter wrote next to its container is not listed twice. Reads the descriptions on several threads.
void list_containers(const std::string& directory, std::vector<ListedFile>& files);

}  // namespace msdbg::dump
