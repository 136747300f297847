#include "session/live/peer_profile.h"

#include <fmt/format.h>

#include <utility>

namespace msdbg::live {
namespace {

/// A name for one line.
std::string shortened(std::string_view text) {
  constexpr size_t kMost = 60;
  return printable(text.substr(0, kMost));
}

PeerProfile profile_of(int major, int minor, const debugger::Metadata& metadata, const std::string& address) {
  PeerProfile p;
  static_cast<Release&>(p) = release_of(major, minor, metadata.backend() == "Ascend");
  LivePeer& peer = p.peer;
  peer.address = address;
  const std::string device = metadata.device_name().substr(0, metadata.device_name().find(':'));
  peer.backend = metadata.backend().empty() ? "GPU" : printable(metadata.backend());
  peer.device = device.empty() ? "?" : printable(device);
  peer.counts_after_hold = p.step_hold == StepHold::kBeforeCounting || p.step_hold == StepHold::kNever;
  peer.has_levels = p.levels;
  peer.has_recheck = p.recheck;
  peer.has_previous = p.keeps_previous;

  auto note = [&peer](std::string text) { peer.notes.push_back(std::move(text)); };
  if (!p.params) {
    note("knows the conditions nan to sd_lt only; msdbg judges all others itself, at the end of each step");
    note("has no recheck; msdbg judges again itself");
  }
  if (!p.levels) note("sends whole tensors only: statistics and shapes are computed from the values");
  peer.named = !metadata.program().empty();
  const std::string gpu = peer.named ? "" : "GPU: ", ascend = peer.named ? "" : "Ascend: ";
  if (!p.ascend) note(gpu + "a tensor can be read only when its operator is watched or was stepped onto in this step");
  if (p.ascend) note(ascend + "held at the end of steps only; node steps run a whole step");
  if (!p.keeps_previous) note("keeps no previous value: msdbg judges conditions on change itself, from the second step on");
  if (p.swaps_tolerances) note("reads rtol and atol in the wrong order; msdbg sends them swapped");
  if (p.wrong_means) {
    note(fmt::format("its mean of {} elements and more is wrong; msdbg computes means from the values",
                     PeerProfile::kWrongMeansFrom));
  }
  if (p.nonfinite_in_extremes) note("its max, min and mean include NaN and Inf; msdbg computes them from the values");
  if (!p.named_constants) note("constants cannot be fetched; their values are in the graph");
  if (p.step_hold == StepHold::kBeforeCounting) note("the suspension after step k still says k, as the first one says 0");
  if (p.step_hold == StepHold::kNextStart) note("is held at the start of the next step, and not after the last one");
  if (p.step_hold == StepHold::kNever) note("from 2.3 on, an Ascend training is held once, before the first step");
  return p;
}

}  // namespace

}  // namespace msdbg::live

namespace msdbg {

std::string LivePeer::program_text() const {
  const std::string text = printable(program) + (version.empty() ? "" : " " + printable(version));
  return fmt::format("{}, {}", text, named ? "device" : printable(backend));
}

}  // namespace msdbg

namespace msdbg::live {

Result<PeerProfile> make_profile(const debugger::Metadata& metadata, const std::string& address) {
  const std::string version = printable(metadata.ms_version());
  auto number = release_number(version);
  if (version.empty()) number = {1, 0};
  if (!number || number->first < 1 || number->first > 2) {
    return Status(Code::kUnsupported, fmt::format("version '{}' of {}: msdbg serves MindSpore 1.0 to 2.x", version, address));
  }
  PeerProfile p = profile_of(number->first, number->second, metadata, address);
  p.reports = metadata.reports();
  p.peer.version = version.empty() ? "1.0.x" : version;
  if (p.peer.named) {
    p.peer.program = shortened(metadata.program());
    p.peer.version = shortened(metadata.program_version());
  }
  std::string note;
  if (metadata.backend().empty()) note = "does not name its backend, treated as GPU";
  else if (metadata.backend() != "GPU" && metadata.backend() != "Ascend")
    note = fmt::format("unknown backend '{}', treated as GPU", printable(metadata.backend()));
  if (!note.empty()) p.peer.notes.insert(p.peer.notes.begin(), std::move(note));
  return p;
}

PeerProfile unknown_profile(const debugger::Metadata& metadata, const std::string& address) {
  // Assumes no feature that some client may lack: nothing is sent that an older one would misinterpret.
  PeerProfile p = profile_of(1, 6, metadata, address);
  p.peer.version = "unknown";
  p.peer.notes.insert(p.peer.notes.begin(),
                      "came without handshake and graph (it was held by another debugger before, or turned away by this one): it can be "
                      "run, continued and ended; the version is taken as 1.6 or later");
  return p;
}

}  // namespace msdbg::live
