#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <thread>
#include <vector>

#include "session/live/recorder.h"
#include "session/live/recording_format.h"
#include "session/live/recording_reader.h"
#include "support/temp_dir.h"

namespace msdbg::live {
namespace {

using test::TempDir;

std::string bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void write_bytes(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc)
      .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

void client(Recorder& recorder, Rpc rpc, uint64_t call, uint32_t index, std::string_view payload) {
  recorder.client(0, rpc, call, index, {&payload, 1});
}

/// A note, a call with its reply, a stream of three messages and a refused call.
void write_sample(const std::string& path) {
  auto recorder = Recorder::create(path);
  ASSERT_TRUE(recorder.ok()) << recorder.status().message();
  (*recorder)->note(0, "connected from 127.0.0.1:1234");
  client(**recorder, Rpc::kSendMetadata, 1, 0, "meta");
  (*recorder)->server(0, Rpc::kSendMetadata, 1, "\x30\x01");
  for (uint32_t i = 0; i < 3; ++i)
    client(**recorder, Rpc::kSendTensors, 2, i, std::string(100, static_cast<char>('a' + i)));
  (*recorder)->server(0, Rpc::kSendTensors, 2, "");
  client(**recorder, Rpc::kWaitCmd, 3, 0, "");
  (*recorder)->status(0, Rpc::kWaitCmd, 3, 14, "gone \xff");
  EXPECT_TRUE((*recorder)->flush().ok());
}

std::vector<Frame> read_all(RecordingReader& reader) {
  std::vector<Frame> frames;
  for (Frame frame; reader.next(&frame);) frames.push_back(frame);
  return frames;
}

std::vector<Frame> read_all(const std::string& path) {
  auto reader = RecordingReader::open(path);
  EXPECT_TRUE(reader.ok()) << reader.status().message();
  if (!reader.ok()) return {};
  std::vector<Frame> frames = read_all(**reader);
  EXPECT_FALSE((*reader)->truncated());
  EXPECT_TRUE((*reader)->problem().ok()) << (*reader)->problem().message();
  return frames;
}

TEST(Recording, FramesComeBackAsTheyWereWritten) {
  const TempDir dir;
  write_sample(dir.file("a"));
  const std::vector<Frame> frames = read_all(dir.file("a"));
  ASSERT_EQ(frames.size(), 9u);
  EXPECT_EQ(frames[0].direction, Frame::Direction::kNote);
  EXPECT_EQ(frames[0].text, "connected from 127.0.0.1:1234");
  EXPECT_EQ(frames[1].direction, Frame::Direction::kClient);
  EXPECT_EQ(frames[1].rpc, Rpc::kSendMetadata);
  EXPECT_EQ(frames[1].call, 1u);
  EXPECT_EQ(frames[1].payload, "meta");
  EXPECT_EQ(frames[2].direction, Frame::Direction::kServer);
  EXPECT_EQ(frames[2].payload, "\x30\x01");
  EXPECT_EQ(frames[5].index, 2u);
  EXPECT_EQ(frames[5].payload, std::string(100, 'c'));
  EXPECT_EQ(frames[6].payload, "");
  EXPECT_EQ(frames[6].grpc_status, 0);
  EXPECT_EQ(frames[8].grpc_status, 14);
  EXPECT_EQ(frames[8].text, "gone \xff");
  for (size_t i = 1; i < frames.size(); ++i) EXPECT_GE(frames[i].at_us, frames[i - 1].at_us);
}

TEST(Recording, PartsOfOneMessageAreJoined) {
  const TempDir dir;
  {
    auto recorder = Recorder::create(dir.file("a"));
    ASSERT_TRUE(recorder.ok());
    const std::vector<std::string_view> parts = {"one ", "", "two ", "three"};
    (*recorder)->client(0, Rpc::kSendGraph, 7, 4, parts);
  }
  const std::vector<Frame> frames = read_all(dir.file("a"));
  ASSERT_EQ(frames.size(), 1u);
  EXPECT_EQ(frames[0].payload, "one two three");
  EXPECT_EQ(frames[0].index, 4u);
}

TEST(Recording, FramesLargerThanTheBufferSurvive) {
  const TempDir dir;
  std::string big(5 << 20, '\0');
  for (size_t i = 0; i < big.size(); ++i) big[i] = static_cast<char>(i * 31 >> 3);
  {
    auto recorder = Recorder::create(dir.file("a"));
    ASSERT_TRUE(recorder.ok());
    for (uint32_t i = 0; i < 3; ++i) client(**recorder, Rpc::kSendTensors, 1, i, big);
    (*recorder)->note(0, "end");
  }
  const std::vector<Frame> frames = read_all(dir.file("a"));
  ASSERT_EQ(frames.size(), 4u);
  EXPECT_TRUE(frames[2].payload == big);
  EXPECT_EQ(frames[3].text, "end");
}

TEST(Recording, AWaitCmdReachesTheFileAtOnce) {
  const TempDir dir;
  auto recorder = Recorder::create(dir.file("a"));
  ASSERT_TRUE(recorder.ok());
  client(**recorder, Rpc::kSendMetadata, 1, 0, "meta");
  client(**recorder, Rpc::kWaitCmd, 2, 0, "held");
  EXPECT_EQ(read_all(dir.file("a")).size(), 2u) << "the recorder is still open";
}

TEST(Recording, ThreadsDoNotMixTheirFrames) {
  const TempDir dir;
  {
    auto recorder = Recorder::create(dir.file("a"));
    ASSERT_TRUE(recorder.ok());
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&recorder, t] {
        const std::string text(997, static_cast<char>('a' + t));
        for (uint32_t i = 0; i < 500; ++i) client(**recorder, Rpc::kSendHeartbeat, static_cast<uint64_t>(t), i, text);
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  const std::vector<Frame> frames = read_all(dir.file("a"));
  ASSERT_EQ(frames.size(), 2000u);
  std::vector<uint32_t> next(4, 0);
  for (const Frame& frame : frames) {
    EXPECT_EQ(frame.payload, std::string(997, static_cast<char>('a' + frame.call)));
    EXPECT_EQ(frame.index, next[frame.call]++);
  }
}

TEST(Recording, SeekReturnsToAFrame) {
  const TempDir dir;
  write_sample(dir.file("a"));
  auto reader = RecordingReader::open(dir.file("a"));
  ASSERT_TRUE(reader.ok());
  const std::vector<Frame> frames = read_all(**reader);
  for (const size_t i : {size_t{4}, size_t{0}, frames.size() - 1}) {
    (*reader)->seek(frames[i].offset);
    Frame again;
    ASSERT_TRUE((*reader)->next(&again));
    EXPECT_EQ(again.payload, frames[i].payload);
    EXPECT_EQ(again.offset, frames[i].offset);
  }
}

TEST(Recording, ACutFileIsReadUpToItsLastWholeFrame) {
  const TempDir dir;
  write_sample(dir.file("a"));
  const std::string whole = bytes_of(dir.file("a"));
  const std::vector<Frame> frames = read_all(dir.file("a"));
  for (size_t size = kRecordingMagic.size() + 1; size < whole.size(); ++size) {
    write_bytes(dir.file("cut"), whole.substr(0, size));
    auto reader = RecordingReader::open(dir.file("cut"));
    ASSERT_TRUE(reader.ok());
    const size_t count = read_all(**reader).size();
    const bool at_border = size == frames[count].offset;
    EXPECT_TRUE((*reader)->problem().ok());
    EXPECT_EQ((*reader)->truncated(), !at_border) << size;
    EXPECT_LE(frames[count].offset, size);
  }
}

TEST(Recording, DamagedBytesEndTheReadingWithAMessage) {
  const TempDir dir;
  write_sample(dir.file("a"));
  const std::string whole = bytes_of(dir.file("a"));
  std::mt19937 random(20);
  size_t ended_early = 0;
  for (int round = 0; round < 1000; ++round) {
    std::string damaged = whole;
    for (unsigned k = 0; k < 1 + random() % 8; ++k) {
      damaged[kRecordingMagic.size() + 1 + random() % (whole.size() - kRecordingMagic.size() - 1)] =
          static_cast<char>(random());
    }
    write_bytes(dir.file("b"), damaged);
    auto reader = RecordingReader::open(dir.file("b"));
    ASSERT_TRUE(reader.ok());
    for (const Frame& frame : read_all(**reader)) {
      EXPECT_LT(static_cast<int>(frame.rpc), kRpcCount);
      EXPECT_LE(frame.payload.size(), whole.size());
    }
    if (!(*reader)->problem().ok()) {
      ++ended_early;
      EXPECT_EQ((*reader)->problem().code(), Code::kCorrupt);
      EXPECT_NE((*reader)->problem().message().find("at byte"), std::string::npos);
    }
  }
  EXPECT_GT(ended_early, 0u);
}

TEST(Recording, AHugeLengthIsRefusedWithoutReservingIt) {
  const TempDir dir;
  std::string bytes(kRecordingMagic);
  bytes += "\x01\xff\xff\xff\xff\xff\xff\xff\xff\x7f";
  write_bytes(dir.file("a"), bytes);
  auto reader = RecordingReader::open(dir.file("a"));
  ASSERT_TRUE(reader.ok());
  EXPECT_TRUE(read_all(**reader).empty());
  EXPECT_EQ((*reader)->problem().code(), Code::kCorrupt);
}

TEST(Recording, EachFrameHasItsRank) {
  const TempDir dir;
  {
    const auto recorder = Recorder::create(dir.file("a"), 3);
    ASSERT_TRUE(recorder.ok());
    (*recorder)->note(2, "two");
    (*recorder)->note(0, "zero");
    (*recorder)->note(3, "damage");
  }
  const auto reader = RecordingReader::open(dir.file("a"));
  ASSERT_TRUE(reader.ok());
  EXPECT_EQ((*reader)->ranks(), 3);
  Frame frame;
  ASSERT_TRUE((*reader)->next(&frame));
  EXPECT_EQ(frame.rank, 2);
  ASSERT_TRUE((*reader)->next(&frame));
  EXPECT_EQ(frame.rank, 0);
  EXPECT_FALSE((*reader)->next(&frame));
  EXPECT_EQ((*reader)->problem().code(), Code::kCorrupt);
}

TEST(Recording, OtherFilesAreRefused) {
  const TempDir dir;
  EXPECT_EQ(RecordingReader::open(dir.file("none")).status().code(), Code::kNotFound);
  write_bytes(dir.file("text"), "step,loss\n0,2.3\n");
  EXPECT_EQ(RecordingReader::open(dir.file("text")).status().code(), Code::kCorrupt);
  EXPECT_FALSE(RecordingReader::begins_as_recording(dir.file("text")));
  write_bytes(dir.file("next"), std::string(kRecordingMagic) + "\x03");
  EXPECT_EQ(RecordingReader::open(dir.file("next")).status().code(), Code::kUnsupported);
  for (const char* ranks : {"", "\x81\x02"}) {
    write_bytes(dir.file("ranks"), std::string(kRecordingMagic) + "\x02" + ranks);
    EXPECT_EQ(RecordingReader::open(dir.file("ranks")).status().code(), Code::kCorrupt) << "257 ranks, or no number";
  }
  write_bytes(dir.file("short"), std::string(kRecordingMagic));
  EXPECT_EQ(RecordingReader::open(dir.file("short")).status().code(), Code::kCorrupt);
  EXPECT_EQ(RecordingReader::open(dir.file(".")).status().code(), Code::kIoError) << "a directory";
}

TEST(Recording, OverwritesARecordingButNothingElse) {
  const TempDir dir;
  write_sample(dir.file("a"));
  { ASSERT_TRUE(Recorder::create(dir.file("a")).ok()); }
  EXPECT_TRUE(read_all(dir.file("a")).empty());
  write_bytes(dir.file("work"), "my thesis");
  const auto refused = Recorder::create(dir.file("work"));
  EXPECT_EQ(refused.status().code(), Code::kInvalidArgument);
  EXPECT_EQ(bytes_of(dir.file("work")), "my thesis");
  EXPECT_EQ(Recorder::create(dir.file("no/such/folder")).status().code(), Code::kIoError);
}

// A file size limit simulates a full disk: writes fail in the same way. The limit belongs to the process, therefore this part runs
// in a separate one.
TEST(RecordingDeathTest, AFullDiskIsReportedOnceAndTheSessionGoesOn) {
  const TempDir dir;
  const std::string path = dir.file("a");
  const auto child = [&path] {
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{200000, 200000};
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0) std::_Exit(2);
    auto recorder = Recorder::create(path);
    if (!recorder.ok()) std::_Exit(3);
    int reports = 0;
    for (uint32_t i = 0; i < 100; ++i) {
      client(**recorder, Rpc::kSendTensors, 1, i, std::string(10000, 'x'));
      if (i % 5 == 4 && !(*recorder)->flush().ok()) ++reports;
    }
    std::_Exit(reports == 1 ? 0 : 4);
  };
  EXPECT_EXIT(child(), testing::ExitedWithCode(0), "");
  const std::vector<Frame> frames = read_all(path);
  EXPECT_EQ(frames.size(), 15u) << "whole groups of five frames that fit into 200000 bytes";
}

}  // namespace
}  // namespace msdbg::live
