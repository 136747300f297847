// The graphs of the recorded conversations, found by the size and hash in the recordings.
#pragma once

#include <map>
#include <string>

namespace msdbg::test {

/// First eight digits of the SHA-256 -> bytes of one Chunk.buffer.
///
/// Four chunks belong to variations of the LeNet graph without a file; they are made here as they were made then, which the hashes
/// prove. One graph is a stand-in of the same size: "57bf660e", kernel_graph_1.
const std::map<std::string, std::string>& recorded_chunks(const std::string& folder);

}  // namespace msdbg::test
