#include "session/live/peer_profile.h"

#include <fmt/format.h>

#include <utility>

namespace msdbg::live {
namespace {

std::optional<std::pair<int, int>> parse_version(std::string_view text) {
  const std::vector<std::string_view> parts = split(text, '.');
  if (parts.size() < 2) return std::nullopt;
  const auto major = parse_int(parts[0]);
  // Suffixes such as rc1 stand behind the third number; a build without one may have them here.
  const auto minor = parse_int(parts[1].substr(0, parts[1].find_first_not_of("0123456789")));
  if (!major || !minor || *major < 0 || *minor < 0 || *major > 1000 || *minor > 1000) return std::nullopt;
  return std::pair(static_cast<int>(*major), static_cast<int>(*minor));
}

void fill(PeerProfile& p, const debugger::Metadata& metadata, const std::string& address) {
  const auto at_least = [&p](int major, int minor) { return std::pair(p.major, p.minor) >= std::pair(major, minor); };
  p.ascend = metadata.backend() == "Ascend";
  p.params = p.recheck = at_least(1, 1);
  p.levels = at_least(1, 5);
  p.constants = at_least(1, 6);
  p.swaps_tolerances = at_least(1, 1) && !at_least(1, 6);
  p.rewatches = !at_least(1, 6);
  p.previous = p.ascend || !at_least(1, 7);
  p.bad_mean = at_least(1, 6);
  p.nonfinite_in_extremes = at_least(2, 3);
  if (at_least(1, 6)) p.counting = Counting::kAfterHold;
  else if (p.ascend) p.counting = Counting::kCompleted;
  else if (at_least(1, 3)) p.counting = Counting::kBoundaryNext;
  else p.counting = Counting::kAtStepStart;

  LivePeer& peer = p.peer;
  peer.address = address;
  const std::string device = metadata.device_name().substr(0, metadata.device_name().find(':'));
  peer.backend = metadata.backend().empty() ? "GPU" : printable(metadata.backend());
  peer.device = device.empty() ? "?" : printable(device);
  peer.counts_after_hold = p.counting == Counting::kAfterHold;
  peer.has_levels = p.levels;
  peer.has_recheck = p.recheck;
  peer.has_previous = p.previous;

  auto note = [&peer](std::string text) { peer.notes.push_back(std::move(text)); };
  if (!p.params) {
    note("knows the conditions nan to sd_lt only; msdbg judges all others itself, at the end of each step");
    note("has no recheck; msdbg judges again itself");
  }
  if (!p.levels) note("sends whole tensors only: statistics and shapes are computed from the values");
  if (!p.ascend) note("GPU: a tensor can be read only when its operator is watched or was stepped onto in this step");
  if (p.ascend) note("Ascend: held at the end of steps only; node steps run a whole step");
  if (!p.previous) note("keeps no previous value: msdbg judges conditions on change itself, from the second step on");
  if (p.swaps_tolerances) note("reads rtol and atol in the wrong order; msdbg sends them swapped");
  if (p.bad_mean) {
    note(fmt::format("its mean of {} elements and more is wrong; msdbg computes means from the values",
                     PeerProfile::kBadMeanFrom));
  }
  if (p.nonfinite_in_extremes) note("its max, min and mean include NaN and Inf; msdbg computes them from the values");
  if (!p.constants) note("constants cannot be fetched; their values are in the graph");
  if (p.counting == Counting::kAfterHold) note("the suspension behind step k still says k, as the first one says 0");
  if (p.counting == Counting::kBoundaryNext) note("is held at the start of the next step, and not behind the last one");
  if (p.ascend && at_least(2, 3)) note("2.3 on Ascend is held once, before the first step");
}

}  // namespace

Result<PeerProfile> make_profile(const debugger::Metadata& metadata, const std::string& address) {
  PeerProfile p;
  const std::string version = printable(metadata.ms_version());
  p.peer.version = version.empty() ? "1.0.x" : version;
  if (!version.empty()) {
    const auto parsed = parse_version(version);
    if (!parsed || parsed->first < 1 || parsed->first > 2) {
      return Status(Code::kUnsupported, fmt::format("version '{}' of {}: msdbg serves MindSpore 1.0 to 2.x", version, address));
    }
    std::tie(p.major, p.minor) = *parsed;
  }
  if (metadata.backend().empty()) p.peer.notes.push_back("does not name its backend, treated as GPU");
  else if (metadata.backend() != "GPU" && metadata.backend() != "Ascend")
    p.peer.notes.push_back(fmt::format("unknown backend '{}', treated as GPU", printable(metadata.backend())));
  fill(p, metadata, address);
  return p;
}

PeerProfile unknown_profile(const debugger::Metadata& metadata, const std::string& address) {
  // Everything a newer client may lack is left out: it is asked for nothing that an older one would misread.
  PeerProfile p;
  p.major = 1;
  p.minor = 6;
  fill(p, metadata, address);
  p.peer.version = "unknown";
  p.peer.notes.insert(p.peer.notes.begin(),
                      "came without handshake and graph (it was held by another debugger before, or turned away by this one): it can be "
                      "run, continued and ended; the version is taken as 1.6 or later");
  return p;
}

}  // namespace msdbg::live
