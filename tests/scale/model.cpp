#include "scale/model.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <queue>

#include "msdbg/division.h"

namespace msdbg::scale {
namespace {

constexpr uint64_t kSmall = 64 << 10, kLarge = 16 << 20;
constexpr double kStep = 17e12;

double latency(const std::vector<Sample>& samples) {
  std::vector<double> seconds;
  for (const Sample& sample : samples) {
    if (sample.bytes <= kSmall) seconds.push_back(sample.seconds);
  }
  if (seconds.empty()) return 0;
  std::sort(seconds.begin(), seconds.end());
  return seconds[seconds.size() / 2];
}

double rate(const std::vector<Sample>& samples) {
  double bytes = 0, seconds = 0;
  for (const Sample& sample : samples) {
    if (sample.bytes < kLarge) continue;
    bytes += static_cast<double>(sample.bytes);
    seconds += sample.seconds;
  }
  return seconds > 0 ? bytes / seconds : 0;
}

/// How much longer or shorter than usual each small file took, in the order of the recording.
std::vector<double> variation(const Recording& recording) {
  std::vector<double> out;
  const double usual = recording.cold_latency();
  for (const Sample& sample : recording.cold) {
    if (sample.bytes <= kSmall && usual > 0) out.push_back(sample.seconds / usual);
  }
  if (out.empty()) out.push_back(1);
  return out;
}

class Simulation {
 public:
  Simulation(const Recording& recording, const Cluster& cluster, const std::vector<uint64_t>& bytes, unsigned processes)
      : recording_(recording), cluster_(cluster), bytes_(bytes), dealer_(bytes, processes), variation_(variation(recording)),
        warm_rate_(recording.warm_rate()), processes_(processes), on_node_(processes / cluster.processes_per_node + 1) {
    out_.processes = processes;
  }

  Outcome run() {
    out_.open = recording_.open_per_tensor * static_cast<double>(bytes_.size());
    process0_ = out_.open;
    for (unsigned round = 0; round < kParcelsAhead; ++round) {
      for (unsigned process = 1; process < processes_.size(); ++process) deal(process);
    }
    for (unsigned thread = 0; thread < cluster_.threads_per_process; ++thread) start(0, out_.open);
    while (!events_.empty()) {
      const Event event = events_.top();
      events_.pop();
      if (event.parcel.count == 0) {
        finish_item(event.process, event.at);
      } else {
        processes_[event.process].ahead.push_back(event.parcel);
        begin_parcel(event.process, event.at);
      }
    }
    const double reading = out_.total - out_.open;
    out_.idle = 1 - busy_ / (reading * static_cast<double>(processes_.size()) * cluster_.threads_per_process);
    out_.message_bytes = (recording_.sent_per_tensor + recording_.received_per_tensor) * static_cast<double>(elsewhere_);
    out_.memory = recording_.memory_per_tensor * static_cast<double>(bytes_.size());
    // Process 0 takes in everything that others have read: when that takes about as long as reading, it is what the others wait for.
    const auto most = std::max_element(std::begin(limited_), std::end(limited_)) - std::begin(limited_);
    out_.limit = out_.process0 > 0.8 * reading ? "process 0" : kLimits[most];
    return out_;
  }

 private:
  /// The arrival of a parcel, or, with an empty one, the end of an item.
  struct Event {
    double at = 0;
    unsigned process = 0;
    Parcel parcel;
    bool operator<(const Event& other) const { return at != other.at ? at > other.at : process > other.process; }
  };
  struct Process {
    std::deque<Parcel> ahead;
    Parcel parcel;            ///< being read: what is left of it
    uint64_t parcel_items = 0;
    unsigned running = 0;
  };
  static constexpr const char* kLimits[] = {"processors", "link of a node", "file system"};

  void deal(unsigned process) {
    const std::optional<Parcel> parcel = dealer_.deal(process);
    if (!parcel) return;
    ++out_.messages;
    events_.push({process0_ + cluster_.message_latency, process, *parcel});
  }

  /// As in serve_team(): all threads read one parcel, and the next one when the last item is done.
  void begin_parcel(unsigned number, double now) {
    Process& process = processes_[number];
    if (process.running > 0 || process.ahead.empty()) return;
    process.parcel = process.ahead.front();
    process.parcel_items = process.parcel.count;
    process.ahead.pop_front();
    for (unsigned thread = 0; thread < cluster_.threads_per_process; ++thread) start(number, now);
  }

  /// A thread takes the next item, if there is one. Process 0 takes a new parcel while the threads still read the last one.
  void start(unsigned number, double now) {
    Process& process = processes_[number];
    if (process.parcel.count == 0 && number == 0) {
      if (const std::optional<Parcel> parcel = dealer_.deal(0)) process.parcel = *parcel;
    }
    if (process.parcel.count == 0) return;
    const uint64_t item = process.parcel.first++;
    --process.parcel.count;
    ++process.running;
    const unsigned all = ++active_, here = ++on_node_[number / cluster_.processes_per_node];
    const double rates[] = {warm_rate_, cluster_.node_rate / here, cluster_.file_system_rate / all};
    const auto least = std::min_element(std::begin(rates), std::end(rates)) - std::begin(rates);
    const double latency = std::max(cluster_.open_latency, all / cluster_.opens_per_second);
    const double reading = static_cast<double>(bytes_[item]) / rates[least];
    const double takes = latency * variation_[next_++ % variation_.size()] + reading;
    limited_[least] += reading;
    busy_ += takes;
    events_.push({now + takes, number, {}});
  }

  void finish_item(unsigned number, double now) {
    Process& process = processes_[number];
    --process.running;
    --active_;
    --on_node_[number / cluster_.processes_per_node];
    if (number == 0) take_in(1, now);
    start(number, now);
    if (number == 0 || process.running > 0) return;
    take_in(process.parcel_items, now + cluster_.message_latency);
    // Results travel every 64 KiB.
    out_.messages += 1 + static_cast<uint64_t>(recording_.received_per_tensor * static_cast<double>(process.parcel_items)) / kSmall;
    elsewhere_ += process.parcel_items;
    for (uint64_t done = process.parcel.first - process.parcel_items; done < process.parcel.first; ++done)
      (void)dealer_.finish(number, done);
    deal(number);
    begin_parcel(number, now);
  }

  void take_in(uint64_t items, double at) {
    const double cost = recording_.check_per_tensor * static_cast<double>(items);
    process0_ = std::max(process0_, at) + cost;
    out_.process0 += cost;
    out_.total = std::max(out_.total, process0_);
  }

  const Recording& recording_;
  const Cluster& cluster_;
  const std::vector<uint64_t>& bytes_;
  Dealer dealer_;
  const std::vector<double> variation_;
  const double warm_rate_;
  std::vector<Process> processes_;
  std::vector<unsigned> on_node_;  ///< threads that read, by node
  std::priority_queue<Event> events_;
  double process0_ = 0, busy_ = 0;
  double limited_[std::size(kLimits)] = {};  ///< seconds of reading at each limit
  unsigned active_ = 0;
  size_t next_ = 0;
  uint64_t elsewhere_ = 0;
  Outcome out_;
};

std::string time(double seconds) { return seconds < 99.5 ? fmt::format("{:.1f} s", seconds) : fmt::format("{:.0f} s", seconds); }

std::string table(const Recording& recording, const Cluster& cluster, const std::vector<uint64_t>& bytes) {
  std::string out =
      "| processes | nodes | time | of it opening | speed-up | busy reading | process 0 | messages | their size | limit |\n"
      "|---|---|---|---|---|---|---|---|---|---|\n";
  const Outcome one = simulate(recording, cluster, bytes, 1);
  for (unsigned processes = 1; processes <= 512; processes *= 2) {
    const Outcome outcome = processes == 1 ? one : simulate(recording, cluster, bytes, processes);
    out += fmt::format("| {} | {} | {} | {} | {:.1f} | {:.0f} % | {} | {} | {} | {} |\n", processes,
                       (processes + cluster.processes_per_node - 1) / cluster.processes_per_node, time(outcome.total), time(outcome.open),
                       one.total / outcome.total, 100 * (1 - outcome.idle), time(outcome.process0), outcome.messages,
                       format_bytes(static_cast<uint64_t>(outcome.message_bytes)), outcome.limit);
  }
  return out;
}

}  // namespace

double Recording::warm_rate() const { return rate(warm); }
double Recording::warm_latency() const { return latency(warm); }
double Recording::cold_rate() const { return rate(cold); }
double Recording::cold_latency() const { return latency(cold); }

Result<Recording> Recording::parse(std::string_view text) {
  Recording out;
  int number = 0;
  for (const std::string_view line : split(text, '\n')) {
    ++number;
    if (trim(line).empty() || line.starts_with('#')) continue;
    const std::vector<std::string_view> words = split(line, ' ');
    const auto value = [&](size_t at) { return at < words.size() ? parse_double(words[at]) : std::nullopt; };
    const auto bad = [&] { return Status(Code::kCorrupt, fmt::format("line {}: '{}'", number, printable(line))); };
    if (words[0] == "machine") {
      out.machine = line.substr(std::min(line.size(), words[0].size() + 1));
      continue;
    }
    const std::optional<double> first = value(1);
    if (!first || !(*first >= 0)) return bad();
    if (words[0] == "warm" || words[0] == "cold") {
      const std::optional<double> micros = value(2);
      if (!micros || !(*micros >= 0) || *first > 1e15) return bad();
      (words[0] == "warm" ? out.warm : out.cold).push_back({static_cast<uint64_t>(*first), *micros * 1e-6});
    } else if (words[0] == "open_us_per_tensor") {
      out.open_per_tensor = *first * 1e-6;
    } else if (words[0] == "check_us_per_tensor") {
      out.check_per_tensor = *first * 1e-6;
    } else if (words[0] == "sent_bytes_per_tensor") {
      out.sent_per_tensor = *first;
    } else if (words[0] == "received_bytes_per_tensor") {
      out.received_per_tensor = *first;
    } else if (words[0] == "memory_bytes_per_tensor") {
      out.memory_per_tensor = *first;
    } else {
      return bad();
    }
  }
  if (out.warm_rate() <= 0 || out.cold_rate() <= 0) return Status(Code::kCorrupt, "no samples of large files");
  return out;
}

std::string Recording::text() const {
  std::string out = "# Written by tools/scale record: bytes and microseconds of each file.\n";
  out += fmt::format("machine {}\n", machine);
  out += fmt::format("open_us_per_tensor {:.3f}\ncheck_us_per_tensor {:.3f}\n", open_per_tensor * 1e6, check_per_tensor * 1e6);
  out += fmt::format("sent_bytes_per_tensor {:.1f}\nreceived_bytes_per_tensor {:.1f}\nmemory_bytes_per_tensor {:.1f}\n", sent_per_tensor,
                     received_per_tensor, memory_per_tensor);
  for (const auto& [name, samples] : {std::pair("warm", &warm), std::pair("cold", &cold)}) {
    for (const Sample& sample : *samples) out += fmt::format("{} {} {:.1f}\n", name, sample.bytes, sample.seconds * 1e6);
  }
  return out;
}

std::vector<uint64_t> step_of(double bytes) {
  constexpr uint64_t kMiB = 1 << 20;
  constexpr uint64_t kSizes[] = {8 << 10, 4 * kMiB, 8 << 10, 50 * kMiB, 8 << 10, 4 * kMiB, 8 << 10, 50 * kMiB, 8 << 10, 4 * kMiB};
  std::vector<uint64_t> out;
  for (double sum = 0; sum < bytes; sum += static_cast<double>(out.back())) out.push_back(kSizes[out.size() % std::size(kSizes)]);
  return out;
}

Outcome simulate(const Recording& recording, const Cluster& cluster, const std::vector<uint64_t>& bytes, unsigned processes) {
  return Simulation(recording, cluster, bytes, processes).run();
}

std::string report(const Recording& recording) {
  const std::vector<uint64_t> bytes = step_of(kStep);
  const Cluster cluster;
  std::string out = fmt::format(
      "Measured ({}): {}/s a thread from the page cache and {:.0f} us a file; {}/s from the disk and {:.0f} us a file; process 0 needs\n"
      "{:.1f} us a tensor to open the dump and {:.1f} us to deal it out, take it in and judge it, {:.0f} bytes of memory, and {:.0f} + {:.0f} bytes\n"
      "of messages to another process and back.\n\n",
      recording.machine, format_bytes(static_cast<uint64_t>(recording.warm_rate())), recording.warm_latency() * 1e6,
      format_bytes(static_cast<uint64_t>(recording.cold_rate())), recording.cold_latency() * 1e6, recording.open_per_tensor * 1e6,
      recording.check_per_tensor * 1e6, recording.memory_per_tensor, recording.sent_per_tensor, recording.received_per_tensor);
  const double memory = recording.memory_per_tensor * static_cast<double>(bytes.size());
  out += fmt::format("17 TB in {} tensors; process 0 holds {} for them:\n\n", bytes.size(), format_bytes(static_cast<uint64_t>(memory)));
  out += table(recording, cluster, bytes);
  Cluster faster = cluster;
  faster.file_system_rate *= 8;
  faster.opens_per_second *= 8;
  out += "\nThe same with a file system eight times as fast:\n\n" + table(recording, faster, bytes);
  return out;
}

}  // namespace msdbg::scale
