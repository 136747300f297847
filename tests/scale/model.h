// A simulation of a check by many processes on a cluster. It deals out the work with the program's own Dealer, and replays times that
// `tools/scale record` measured with the program's own code; what no machine here has (nodes, a parallel file system) is an assumption.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "msdbg/base.h"

namespace msdbg::scale {

/// Reading one tensor and computing its statistics, on one thread.
struct Sample {
  uint64_t bytes = 0;
  double seconds = 0;
};

/// One run of `tools/scale record`.
struct Recording {
  std::string machine;
  std::vector<Sample> warm, cold;         ///< from the page cache, as processor time; from the disk, as time
  double open_per_tensor = 0;             ///< seconds: process 0 lists and joins files and nodes
  double check_per_tensor = 0;            ///< seconds: process 0 deals out, takes in and judges
  double sent_per_tensor = 0, received_per_tensor = 0;  ///< bytes of messages
  double memory_per_tensor = 0;           ///< bytes of process 0

  /// Error: kCorrupt with the line.
  static Result<Recording> parse(std::string_view text);
  std::string text() const;

  double warm_rate() const;     ///< bytes per second of one thread, large files
  double warm_latency() const;  ///< seconds of a small file
  double cold_rate() const;
  double cold_latency() const;
};

/// What is assumed about the cluster.
struct Cluster {
  unsigned processes_per_node = 8, threads_per_process = 8;
  double file_system_rate = 500e9;   ///< bytes per second, of the whole file system
  double node_rate = 20e9;           ///< bytes per second, of the link of one node
  double opens_per_second = 200e3;   ///< of the whole file system
  double open_latency = 1e-3;        ///< seconds until the first byte of a file; varies as in the recording
  double message_latency = 20e-6;    ///< seconds
};

/// The sizes of the tensors of one step: half are small, a fifth has 50 MiB.
std::vector<uint64_t> step_of(double bytes);

struct Outcome {
  unsigned processes = 0;
  double open = 0, total = 0;        ///< seconds: until the dump is open, until the last verdict
  double process0 = 0;               ///< seconds that process 0 spent on the work of others
  uint64_t messages = 0;
  double message_bytes = 0, memory = 0;  ///< of process 0
  double idle = 0;                   ///< share of the processes' time between opening and the end in which they read nothing
  std::string limit;                 ///< what a further process would wait for
};

Outcome simulate(const Recording& recording, const Cluster& cluster, const std::vector<uint64_t>& bytes, unsigned processes);

/// The tables of docs/scale.md.
std::string report(const Recording& recording);

}  // namespace msdbg::scale
