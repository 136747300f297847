// A held training with small values, and a check of all of them.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <mutex>
#include <numeric>
#include <thread>

#include "live/faults.h"
#include "support/temp_dir.h"

namespace msdbg::test {

using SliceList = std::vector<debugger::TensorProto>;

/// The training's value under a name: a number that other names rarely share.
inline float value_of(const std::string& name) { return static_cast<float>(std::hash<std::string>()(name) % 100000); }

/// A held training. Each of its tensors has four numbers, all value_of() its name.
class SmallTraining {
 public:
  explicit SmallTraining(const std::string& version = "1.10.0", ListenOptions options = {}) : driver_(std::move(options)) {
    driver_.connect(version);
    EXPECT_TRUE(driver_.session->wait_until_held(10s).ok());
    peer_ = std::thread([this] { serve(); });
  }
  ~SmallTraining() {
    driver_.session.reset();  // tells it to exit
    peer_.join();
  }

  LiveSession& session() { return *driver_.session; }
  Driver& driver() { return driver_; }
  std::vector<int> asked_together() {
    std::lock_guard lock(mutex_);
    return asked_together_;
  }

  std::vector<int> summarized_together() {
    std::lock_guard lock(mutex_);
    return summarized_together_;
  }

  /// Modifies the answer to the next view of values.
  void once(std::function<void(SliceList&)> change) {
    std::lock_guard lock(mutex_);
    change_ = std::move(change);
  }
  /// Replaces the answer to that view, up to the next WaitCMD.
  void instead(std::function<void(const SliceList&)> answer) {
    std::lock_guard lock(mutex_);
    instead_ = std::move(answer);
  }
  /// Gives that tensor 100000 numbers.
  void make_large(const std::string& name) {
    std::lock_guard lock(mutex_);
    large_ = name;
  }
  /// The nodes in the last view of values.
  std::vector<std::string> asked_last() {
    std::lock_guard lock(mutex_);
    return asked_last_;
  }

 private:
  int64_t count_of(const std::string& name) {
    std::lock_guard lock(mutex_);
    return name == large_ ? 100000 : 4;
  }

  void serve() {
    for (;;) {
      const debugger::EventReply reply = driver_.reply();
      if (!reply.has_view_cmd() && !reply.has_run_cmd() && !reply.has_set_cmd()) return;
      if (reply.has_view_cmd() && !answer(reply.view_cmd())) continue;
      if (reply.has_run_cmd()) ++steps_;
      driver_.hold(std::max(0, steps_ - 1), "");
    }
  }
  bool answer(const debugger::ViewCMD& view) {
    if (view.level() == debugger::ViewCMD::base) return send_bases(view);
    return view.level() == debugger::ViewCMD::statistics ? send_statistics(view) : send_values(view);
  }
  bool send_statistics(const debugger::ViewCMD& view) {
    std::vector<std::string> messages;
    for (const debugger::TensorProto& asked : view.tensors()) {
      debugger::TensorSummary summary;
      summary.mutable_tensor_base()->set_data_type(11);
      summary.mutable_statistics()->set_count(4);
      summary.mutable_statistics()->set_max_value(value_of(asked.node_name()));
      summary.mutable_statistics()->set_min_value(value_of(asked.node_name()));
      messages.push_back(summary.SerializeAsString());
    }
    {
      std::lock_guard lock(mutex_);
      summarized_together_.push_back(view.tensors_size());
    }
    EXPECT_TRUE(driver_.client->stream(live::Rpc::kSendTensorStats, messages).ok());
    return true;
  }
  bool send_bases(const debugger::ViewCMD& view) {
    std::vector<std::string> messages;
    for (const debugger::TensorProto& asked : view.tensors()) {
      debugger::TensorBase base;
      base.set_data_type(11);
      base.add_shape(count_of(asked.node_name()));
      base.set_data_size(4 * count_of(asked.node_name()));
      messages.push_back(base.SerializeAsString());
    }
    EXPECT_TRUE(driver_.client->stream(live::Rpc::kSendTensorBase, messages).ok());
    return true;
  }
  bool send_values(const debugger::ViewCMD& view) {
    SliceList slices;
    for (const debugger::TensorProto& asked : view.tensors()) {
      debugger::TensorProto slice = asked;
      slice.set_data_type(11);
      slice.add_dims(count_of(asked.node_name()));
      const std::vector<float> numbers(static_cast<size_t>(count_of(asked.node_name())), value_of(asked.node_name()));
      slice.set_tensor_content(std::string(reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(float)));
      slice.set_finished(true);
      slices.push_back(std::move(slice));
    }
    std::function<void(SliceList&)> change;
    std::function<void(const SliceList&)> instead;
    {
      std::lock_guard lock(mutex_);
      asked_together_.push_back(static_cast<int>(slices.size()));
      asked_last_.clear();
      for (const debugger::TensorProto& slice : slices) asked_last_.push_back(slice.node_name());
      std::swap(change, change_);
      std::swap(instead, instead_);
    }
    if (instead) return instead(slices), false;
    if (change) change(slices);
    std::vector<std::string> messages;
    for (const debugger::TensorProto& slice : slices) messages.push_back(slice.SerializeAsString());
    (void)driver_.client->stream(live::Rpc::kSendTensors, messages);  // refused if it is too much
    return true;
  }

  Driver driver_;
  int steps_ = 0;  ///< number of steps run
  std::mutex mutex_;
  std::function<void(SliceList&)> change_;
  std::function<void(const SliceList&)> instead_;
  std::vector<int> asked_together_, summarized_together_;
  std::vector<std::string> asked_last_;
  std::string large_;
  std::thread peer_;
};

class FetchedTogether : public LiveFaults {
 protected:
  /// The outcome of a check of every tensor: how many had the training's values, and why others were not judged.
  struct Verdict {
    size_t right = 0, wrong = 0;
    std::map<std::string, std::string> not_checked;  ///< by name
    /// How many of the reasons contain `words`.
    size_t say(std::string_view words) const {
      return static_cast<size_t>(std::count_if(not_checked.begin(), not_checked.end(),
                                               [&](const auto& each) { return each.second.find(words) != std::string::npos; }));
    }
  };

  /// With one thread, the order of reads and therefore of requests is always the same.
  static Verdict check_all(LiveSession& session, std::function<void()> during = nullptr, unsigned threads = 1) {
    Verdict verdict;
    Watchpoint w;
    w.id = 1;
    w.rule = "function";
    w.on = Selector::parse("**").value();
    w.script = [&](const CheckedTensor& tensor) {
      if (during) during();
      const float wanted = value_of(session.node(tensor.id).name);
      ++(tensor.stats->max == wanted && tensor.stats->min == wanted ? verdict.right : verdict.wrong);
      return ScriptVerdict{};
    };
    CheckOptions options;
    options.steps = IntSet::of(session.current_step());
    options.threads = threads;
    const auto result = check(session, {&w, 1}, options);
    EXPECT_TRUE(result.ok()) << result.status().message();
    if (!result) return verdict;
    for (const NotChecked& each : result->not_checked) verdict.not_checked[session.tensor_name(each.tensor)] = each.reason;
    EXPECT_EQ(verdict.right + verdict.wrong + result->not_checked.size(), result->coverage.tensors);
    return verdict;
  }
  static constexpr size_t kMost = 256;
};

}  // namespace msdbg::test
