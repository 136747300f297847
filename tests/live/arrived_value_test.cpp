// A value that differs from its announcement: it is judged by what arrived, or refused; never read as something else.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "live/faults.h"

namespace msdbg::test {
namespace {

constexpr int kHalf = 10, kFloat = 11, kDouble = 12, kString = 13, kList = 14;

/// One value of a training: its announcement, and what is sent.
struct Sent {
  int announced = kFloat;
  std::vector<int64_t> announced_shape = {4};
  int64_t announced_bytes = 16;
  int type = kFloat;
  std::vector<int64_t> shape = {4};
  std::string content;
};

std::string halves(std::initializer_list<double> values) {
  std::string bytes;
  for (const double value : values) {
    const uint16_t half = float_to_half(value);
    bytes.append(reinterpret_cast<const char*>(&half), sizeof half);
  }
  return bytes;
}

/// A held training that has `value` for every request.
class Training {
 public:
  Training(const std::string& version, Sent value) : value_(std::move(value)) {
    driver_.connect(version);
    EXPECT_TRUE(driver_.session->wait_until_held(10s).ok());
    peer_ = std::thread([this] { serve(); });
  }
  ~Training() {
    driver_.session.reset();  // tells it to exit
    peer_.join();
  }

  int values_sent() const { return values_sent_; }
  LiveSession& session() { return *driver_.session; }
  TensorId id() { return resolve_tensor(session(), "fc1.weight:0", 0).value(); }

  /// The reason why `when` was not judged, or "hit" or "clean".
  std::string judged(const char* when) {
    Watchpoint w;
    w.id = 1;
    w.rule = "asked";
    w.on = Selector::parse("=fc1.weight").value();
    const When parsed = parse_when(when).value();
    if (const auto* condition = std::get_if<Condition>(&parsed)) w.condition = *condition;
    else w.expression = std::get<Expression>(parsed);
    const auto result = check(session(), std::span(&w, 1), {});
    if (!result) return result.status().message();
    if (!result->not_checked.empty()) return result->not_checked.front().reason;
    return result->hits.empty() ? "clean" : "hit";
  }

 private:
  void serve() {
    for (;;) {
      const debugger::EventReply reply = driver_.reply();
      if (!reply.has_view_cmd()) return;
      if (reply.view_cmd().level() == debugger::ViewCMD::base) {
        debugger::TensorBase base;
        base.set_data_type(value_.announced);
        for (const int64_t length : value_.announced_shape) base.add_shape(length);
        base.set_data_size(value_.announced_bytes);
        EXPECT_TRUE(driver_.client->stream(live::Rpc::kSendTensorBase, std::vector<std::string>{base.SerializeAsString()}).ok());
      } else {
        ++values_sent_;
        debugger::TensorProto slice = reply.view_cmd().tensors(0);
        slice.set_data_type(value_.type);
        for (const int64_t length : value_.shape) slice.add_dims(length);
        slice.set_finished(true);
        slice.set_tensor_content(value_.content);
        EXPECT_TRUE(driver_.client->stream(live::Rpc::kSendTensors, std::vector<std::string>{slice.SerializeAsString()}).ok());
      }
      driver_.hold(0, "");
    }
  }

  Driver driver_;
  Sent value_;
  std::atomic<int> values_sent_ = 0;
  std::thread peer_;
};

class ArrivedValue : public LiveFaults {};

TEST_F(ArrivedValue, OfAnotherTypeThanAnnouncedIsRefused) {
  Training training("1.10.0", {kDouble, {4}, 32, kHalf, {4}, halves({1, 2, 3, 4})});
  const std::string refused = "the training announced float64[4] and sent float16[4]";
  for (const char* when : {"mean(abs(x)) > 0", "any(x > 1)", "TL max_gt=3"})
    EXPECT_NE(training.judged(when).find(refused), std::string::npos) << when << ": " << training.judged(when);
  EXPECT_EQ(training.session().load(training.id()).status().code(), Code::kCorrupt);
  EXPECT_EQ(training.session().stats(training.id()).status().code(), Code::kCorrupt);
}

TEST_F(ArrivedValue, OfAnotherCountThanAnnouncedIsRefused) {
  Training training("1.10.0", {kHalf, {1000}, 2000, kHalf, {4}, halves({1, 2, 3, 4})});
  EXPECT_NE(training.judged("sum(x) > 0").find("announced float16[1000] and sent float16[4]"), std::string::npos);
}

TEST_F(ArrivedValue, BeyondTheMemoryLimitIsNotAskedFor) {
  Training training("1.10.0", {kHalf, {4}, 8, kHalf, {4}, halves({1, 2, 3, 4})});
  EXPECT_EQ(training.session().load(training.id(), 7).status().code(), Code::kOutOfMemory);
  EXPECT_EQ(training.values_sent(), 0);
  EXPECT_TRUE(training.session().load(training.id(), 8).ok());
  EXPECT_EQ(training.values_sent(), 1);
}

TEST_F(ArrivedValue, WithoutNumbersIsRefused) {
  Training list("1.10.0", {kFloat, {4}, 16, kList, {2}, std::string(16, 'x')});
  EXPECT_NE(list.judged("TO").find("announced float32[4] and sent unknown[2]"), std::string::npos);
  Training text("1.10.0", {kFloat, {4}, 16, kString, {4}, "text"});
  EXPECT_NE(text.judged("TO").find("announced float32[4] and sent string[4]"), std::string::npos);
  Training announced("1.10.0", {kString, {4}, 4, kString, {4}, "text"});
  EXPECT_NE(announced.judged("any(x > 0)").find("cannot be evaluated"), std::string::npos) << announced.judged("any(x > 0)");
}

TEST_F(ArrivedValue, OfATypeThatOnlyTheGraphDeclaresIsTakenAsItCame) {
  Training training("1.3.0", {0, {}, 0, kHalf, {4}, halves({1, 2, 3, -4})});
  const TensorInfo declared = training.session().describe(training.id()).value();
  EXPECT_NE(declared.dtype, DType::kFloat16);
  EXPECT_GT(declared.count, 4u);
  EXPECT_EQ(training.judged("mean(abs(x)) == 2.5"), "hit");
  EXPECT_EQ(training.judged("min(x) == -4"), "hit");
  EXPECT_EQ(training.judged("TL max_gt=3.5"), "clean");
  const auto opened = training.session().open(training.id());
  ASSERT_TRUE(opened.ok()) << opened.status().message();
  EXPECT_EQ(opened->info.dtype, DType::kFloat16);
  EXPECT_EQ(opened->info.shape, (Shape{4}));
  EXPECT_EQ(opened->info.note, "");
  EXPECT_EQ(training.session().load(training.id()).value()->view().at(3), -4);
}

TEST_F(ArrivedValue, OfATypeWithoutNumbersThatTheGraphDeclaresOtherwiseIsNotJudged) {
  for (const auto& [type, name] : {std::pair(kString, "string elements"), std::pair(kList, "elements of an unknown type")}) {
    Training training("1.3.0", {0, {}, 0, type, {2}, std::string(16, 'x')});
    EXPECT_EQ(training.judged("TO"), std::string(name) + " are not evaluated");
    EXPECT_EQ(training.judged("mean(x) > 0"), std::string(name) + " are not evaluated");
    EXPECT_EQ(training.session().load(training.id()).status().code(), Code::kUnsupported);
  }
}

}  // namespace
}  // namespace msdbg::test
