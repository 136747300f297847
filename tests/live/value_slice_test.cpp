// Slices of a tensor with wrong lengths, from the network and from a recording.
#include "session/live/value_slice.h"

#include <gtest/gtest.h>

#include "live/faults.h"
#include "session/live/recorder.h"
#include "session/live/replay.h"
#include "support/temp_dir.h"

namespace msdbg::test {
namespace {

using namespace std::string_literals;

/// Messages whose fields claim more bytes than follow.
const std::vector<std::string>& lying_lengths() {
  static const std::vector<std::string> messages = {
      "\x1a\xff\xff\xff\xff\x0f"s,          // content of 4 GiB - 1
      "\x1a\x80\x80\x80\x80\x08"s,          // of 2 GiB
      "\x1a\xff\xff\xff\xff\x07"s,          // of 2 GiB - 1
      "\x1a\x05" "abcd"s,                   // of one byte more than there is
      "\x0a\xff\xff\xff\xff\x0f"s,          // the same in the name
      "\x12\x05" "abcd"s,                   // the slot
      "\x22\xff\xff\xff\xff\x0f\x01"s,      // the shape
      "\x22\x05\x01\x02"s,
      "\x3a\xff\xff\xff\xff\x07"s,          // the iteration
      "\x5a\xff\xff\xff\xff\x0f"s,          // an unknown field
  };
  return messages;
}

/// For outputs 0 of the named nodes.
live::ValueUpload upload_for(const std::vector<std::string>& nodes, uint64_t most_bytes = UINT64_MAX) {
  live::ValueUpload upload;
  for (const std::string& node : nodes) {
    live::UploadedValue& value = upload.values.emplace_back();
    value.node = node;
    value.slot = "0";
    value.most_bytes = most_bytes;
  }
  return upload;
}

std::span<const std::byte> bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

TEST(ValueSlice, LengthsBeyondTheMessageAreRefusedBeforeAnythingIsReserved) {
  for (const std::string& message : lying_lengths()) {
    live::ValueUpload upload = upload_for({"n"});
    std::atomic<uint64_t> received{0};
    EXPECT_EQ(live::take_slice({bytes_of(message)}, &upload, received), live::SliceResult::kUndecodable) << testing::PrintToString(message);
    EXPECT_TRUE(upload.buffer.bytes().empty());
    EXPECT_EQ(upload.buffer.bytes().data(), nullptr) << "memory was reserved for " << testing::PrintToString(message);
    EXPECT_EQ(received, 0u);
  }
}

TEST(ValueSlice, MessageInPiecesIsJoined) {
  debugger::TensorProto slice;
  slice.set_node_name("n");
  slice.set_slot("0");
  slice.set_data_type(11);
  slice.add_dims(3);
  slice.set_tensor_content(std::string(12, 'x'));
  slice.set_finished(true);
  const std::string whole = slice.SerializeAsString();
  live::MessagePieces pieces;
  for (size_t at = 0; at < whole.size(); ++at) pieces.push_back(bytes_of(whole).subspan(at, 1));
  live::ValueUpload upload = upload_for({"n"});
  std::atomic<uint64_t> received{0};
  ASSERT_EQ(live::take_slice(pieces, &upload, received), live::SliceResult::kTaken);
  const live::UploadedValue& value = upload.values[0];
  EXPECT_EQ(upload.buffer.bytes().size(), 12u);
  EXPECT_EQ(value.dims, std::vector<int64_t>{3});
  EXPECT_EQ(value.data_type, 11);
  EXPECT_TRUE(value.finished);
  EXPECT_EQ(value.problem, "");
  EXPECT_EQ(received, 12u);
}

/// Passes slices of one letter each to an upload, and returns the outcome for each value: its bytes, or `!` and the problem.
class Slices {
 public:
  explicit Slices(live::ValueUpload upload) : upload_(std::move(upload)) {}

  live::SliceResult take(const std::string& node, const std::string& content, bool finished = true) {
    debugger::TensorProto slice;
    slice.set_node_name(node);
    slice.set_slot("0");
    slice.set_iter("");
    slice.set_data_type(3);
    slice.set_tensor_content(content);
    slice.set_finished(finished);
    const std::string bytes = slice.SerializeAsString();
    return live::take_slice({bytes_of(bytes)}, &upload_, received_);
  }
  std::vector<std::string> values() const {
    std::vector<std::string> texts;
    for (const live::UploadedValue& value : upload_.values) {
      const auto bytes = upload_.elements(value);
      texts.push_back(value.problem.empty() ? std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()) : "!" + value.problem);
    }
    return texts;
  }

 private:
  live::ValueUpload upload_;
  std::atomic<uint64_t> received_{0};
};
using Texts = std::vector<std::string>;

TEST(ValueSlice, ValuesOfOneViewLieOneBehindTheOther) {
  Slices slices(upload_for({"a", "b", "c"}));
  (void)slices.take("a", "1");
  (void)slices.take("b", "2", false);
  (void)slices.take("b", "3");
  (void)slices.take("c", "4");
  EXPECT_EQ(slices.values(), (Texts{"1", "23", "4"}));
}

TEST(ValueSlice, ValueThatIsPassedOverHasNoElementsAndGetsNoneLater) {
  Slices slices(upload_for({"a", "b", "c"}));
  (void)slices.take("b", "2");
  (void)slices.take("c", "3");
  EXPECT_EQ(slices.values(), (Texts{"", "2", "3"}));
  (void)slices.take("a", "1");
  EXPECT_EQ(slices.values(), (Texts{"!its slices came after those of a tensor that was requested later", "2", "3"}));
}

TEST(ValueSlice, SliceBehindTheLastOneOfItsValueSpoilsThatValueAlone) {
  Slices slices(upload_for({"a", "b"}));
  (void)slices.take("a", "1");
  (void)slices.take("a", "1");
  (void)slices.take("b", "2");
  EXPECT_EQ(slices.values(), (Texts{"!it sent slices after the last one", "2"}));
}

TEST(ValueSlice, SliceOfAnotherTensorSpoilsTheValueThatWasAwaited) {
  Slices slices(upload_for({"a", "b", "c"}));
  (void)slices.take("a", "1");
  (void)slices.take("xyz", "9");
  (void)slices.take("b", "2");
  (void)slices.take("c", "3");
  EXPECT_EQ(slices.values(), (Texts{"1", "!it answered with xyz:0", "3"}));
  (void)slices.take("", "9");  // without a name it matches none of several
  EXPECT_EQ(slices.values(), (Texts{"1", "!it answered with xyz:0", "!it answered with :0"}));
}

TEST(ValueSlice, EachValueHasItsOwnLimit) {
  Slices slices(upload_for({"a", "b"}, 2));
  EXPECT_EQ(slices.take("a", "1"), live::SliceResult::kTaken);
  EXPECT_EQ(slices.take("b", "22", false), live::SliceResult::kTaken);
  EXPECT_EQ(slices.take("b", "3"), live::SliceResult::kTooMuch);
}

TEST(ValueSlice, NameBehindTheElementsIsReadBeforeThem) {
  live::ValueUpload upload = upload_for({"a", "b"});
  debugger::TensorProto elements, names;
  elements.set_tensor_content("2");
  elements.set_data_type(3);
  elements.set_finished(true);
  names.set_node_name("b");
  names.set_slot("0");
  const std::string message = elements.SerializeAsString() + names.SerializeAsString();
  std::atomic<uint64_t> received{0};
  ASSERT_EQ(live::take_slice({bytes_of(message)}, &upload, received), live::SliceResult::kTaken);
  EXPECT_EQ(upload.values[0].bytes, 0u);
  EXPECT_EQ(upload.values[1].bytes, 1u);
}

TEST_F(LiveFaults, SliceWithALyingLengthIsRefusedAndTheSessionGoesOn) {
  Driver d;
  // Before any handshake, from the first client.
  d.client = RawClient::connect(d.port());
  for (const std::string& message : lying_lengths())
    EXPECT_NE(d.client->stream(live::Rpc::kSendTensors, std::vector<std::string>{message}).code, 0);
  ASSERT_TRUE(d.client->unary(live::Rpc::kSendMetadata, d.metadata("1.10.0").SerializeAsString()).ok());
  d.hold(0, "");
  EXPECT_TRUE(d.session->wait_until_held(10s).ok());
}

TEST(ValueSlice, RecordedSliceWithALyingLengthIsAProblemOfThatTensor) {
  const TempDir directory;
  const std::string path = directory.file("lying.msdbg");
  debugger::ViewCMD view;
  view.add_tensors();
  {
    Result<std::unique_ptr<live::Recorder>> recorder = live::Recorder::create(path);
    ASSERT_TRUE(recorder.ok()) << recorder.status().message();
    const auto client = [&](live::Rpc rpc, uint64_t call, const std::string& message) {
      const std::string_view part = message;
      (*recorder)->client(0, rpc, call, 0, {&part, 1});
    };
    debugger::Metadata metadata;
    metadata.set_backend("GPU");
    client(live::Rpc::kWaitCmd, 1, metadata.SerializeAsString());
    debugger::EventReply reply;
    *reply.mutable_view_cmd() = view;
    (*recorder)->server(0, live::Rpc::kWaitCmd, 1, reply.SerializeAsString());
    client(live::Rpc::kSendTensors, 2, lying_lengths().front());
    (*recorder)->server(0, live::Rpc::kSendTensors, 2, "");
    client(live::Rpc::kWaitCmd, 3, metadata.SerializeAsString());
  }
  auto replays = live::ReplayTransport::open(path);
  ASSERT_TRUE(replays.ok()) << replays.status().message();
  live::ReplayTransport& replay = *replays->front();
  auto upload = std::make_shared<live::ValueUpload>(upload_for({""}));
  replay.expect(upload);
  debugger::EventReply question;
  *question.mutable_view_cmd() = view;
  ASSERT_TRUE(replay.answer(question).ok());
  EXPECT_NE(upload->values[0].problem, "");
  EXPECT_TRUE(upload->buffer.bytes().empty());
}

}  // namespace
}  // namespace msdbg::test
