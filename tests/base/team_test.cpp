// Work that several processes share: the same results, whoever did it; what happens when one cannot or does not.
#include "msdbg/team.h"

#include <gtest/gtest.h>

#include <atomic>

#include "msdbg/bytes.h"
#include "msdbg/log.h"
#include "support/team_of_threads.h"

namespace msdbg {
namespace {

using test::TeamOfThreads;
using test::ThreadLink;

/// Squares the number in each item; cannot do every hundredth.
class Squares : public SharedJob {
 public:
  explicit Squares(std::atomic<int>* runs) : runs_(runs) {}
  Result<std::string> run(std::string_view item, unsigned) override {
    ByteReader in(item);
    const uint64_t number = in.number();
    if (number % 100 == 99) return Status(Code::kIoError, "no such file here");
    ++*runs_;
    ByteWriter out;
    out.number(number * number);
    return out.take();
  }

 private:
  std::atomic<int>* runs_;
};

struct SquareTeam {
  static constexpr uint64_t kItems = 2000;

  explicit SquareTeam(unsigned size, int unable = 0)
      : team(size, {{"square", [this, unable](std::string_view common, unsigned) -> Result<std::unique_ptr<SharedJob>> {
                       EXPECT_EQ(common, "all of them");
                       if (begun++ < unable) return Status(Code::kIoError, "another file system");
                       return std::unique_ptr<SharedJob>(std::make_unique<Squares>(&there));
                     }}}) {}

  SharedRun::Work work() {
    SharedRun::Work out;
    out.kind = "square";
    out.common = "all of them";
    out.threads = 2;
    out.bytes.assign(kItems, 1 << 20);
    out.describe = [](uint64_t item) {
      ByteWriter text;
      text.number(item);
      return text.take();
    };
    out.take = [this](uint64_t item, std::string_view result) {
      ByteReader in(result);
      results[item] += in.number();
      return in.at_end() ? Taken::kYes : Taken::kDamaged;
    };
    return out;
  }
  Status run() {
    return share_for(team.team, work(), [this](uint64_t item, unsigned) {
      ++here;
      results[item] += item * item;
      return Status();
    });
  }
  bool complete() const {
    for (uint64_t item = 0; item < kItems; ++item) {
      if (results[item] != item * item) return false;
    }
    return true;
  }

  std::atomic<int> begun{0}, here{0}, there{0};
  std::vector<uint64_t> results = std::vector<uint64_t>(kItems);
  TeamOfThreads team;
};

TEST(Team, EveryItemIsDoneOnceByWhoeverHasTime) {
  for (const unsigned size : {1u, 2u, 5u}) {
    SquareTeam squares(size);
    EXPECT_TRUE(squares.run().ok());
    EXPECT_TRUE(squares.complete());
    EXPECT_EQ(squares.here + squares.there, static_cast<int>(SquareTeam::kItems));
    if (size > 1) {
      EXPECT_GT(squares.there, 0);
    }
    EXPECT_TRUE(squares.team.team.lost().ok());
  }
}

TEST(Team, AProcessThatCannotTakePartLeavesItsShareToTheOthers) {
  std::string logged;
  set_log_sink([&](LogLevel, std::string_view text) { logged += std::string(text) + "\n"; });
  for (const int unable : {1, 2}) {  // of two
    SquareTeam squares(3, unable);
    EXPECT_TRUE(squares.run().ok());
    EXPECT_TRUE(squares.complete());
    EXPECT_TRUE(squares.team.team.lost().ok());
  }
  EXPECT_NE(logged.find("does not take part: another file system"), std::string::npos) << logged;
  set_log_sink({});
}

TEST(Team, AFailureHereEndsTheWork) {
  SquareTeam squares(3);
  const Status status = share_for(squares.team.team, squares.work(), [](uint64_t, unsigned) { return Status(Code::kCorrupt, "damaged"); });
  EXPECT_EQ(status.code(), Code::kCorrupt);
}

std::string forged(TeamMessage type, std::string_view text) {
  ByteWriter out;
  out.byte(static_cast<unsigned>(type));
  out.text(text);
  return out.take();
}

TEST(Team, ALostProcessInterruptsTheWorkAndIsNamed) {
  SquareTeam squares(3);
  squares.team.link.forged.push_back({2, forged(TeamMessage::kAlive, "node7")});
  squares.team.link.forged.push_back({2, forged(TeamMessage::kLost, "ended by signal 9")});
  const Status status = squares.run();
  EXPECT_EQ(status.code(), Code::kInterrupted);
  EXPECT_EQ(squares.team.team.lost().code(), Code::kPeerLost);
  EXPECT_EQ(squares.team.team.lost().message(), "process 2 on node7 was lost: ended by signal 9");
}

TEST(Team, MpirunThatEndsTheJobInterruptsTheWork) {
  SquareTeam squares(2);
  Team::signal_lost();
  EXPECT_EQ(squares.run().code(), Code::kInterrupted);
  EXPECT_NE(squares.team.team.lost().message().find("mpirun ends the job"), std::string::npos);
}

TEST(Team, MessagesThatMakeNoSenseLoseTheirSender) {
  const std::vector<std::string> bad = {"", "\x7f", forged(TeamMessage::kAlive, "x") + "y",
                                        std::string(1, static_cast<char>(TeamMessage::kAlive))};
  for (const std::string& bytes : bad) {
    SquareTeam squares(2);
    squares.team.link.forged.push_back({1, bytes});
    squares.team.team.poll();
    EXPECT_FALSE(squares.team.team.lost().ok());
  }
}

TEST(Team, AResultForAnItemOfSomebodyElseLosesItsSender) {
  SquareTeam squares(3);
  SharedRun run(squares.team.team, squares.work());
  ByteWriter out;
  out.byte(static_cast<unsigned>(TeamMessage::kResults));
  out.number(1);
  out.number(1);
  out.number(SquareTeam::kItems - 1);  // dealt to nobody yet
  out.flag(true);
  out.text("1");
  squares.team.link.forged.push_back({1, out.take()});
  run.poll();
  EXPECT_NE(squares.team.team.lost().message().find("process 1 sent a result that cannot be read"), std::string::npos);
}

TEST(Team, AnotherProcessEndsOnAMessageThatMakesNoSense) {
  for (const std::string& message :
       {std::string("\x03\0\0\0\0\0\0\0\x7f\x7f\x7f", 11), std::string("\xff\xff\xff\xff\xff\xff\xff\xff", 8)}) {
    int ends[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    ASSERT_EQ(::send(ends[0], message.data(), message.size(), 0), static_cast<ssize_t>(message.size()));
    (void)serve_team(ends[1], {});  // must return
    ::close(ends[0]);
    ::close(ends[1]);
  }
}

}  // namespace
}  // namespace msdbg
