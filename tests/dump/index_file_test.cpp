// The file of the index: damage, other versions, full disks and other processes.
#include <sqlite3.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <random>

#include "dump/index_support.h"
#include "msdbg/threads.h"
#include "session/dump/index_file.h"

namespace msdbg::testing {
namespace {

std::string bytes_of_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}
void write_bytes(const std::string& path, const std::string& bytes) { std::ofstream(path, std::ios::binary) << bytes; }

void run_sql(const std::string& path, const std::string& text) {
  sqlite3* database = nullptr;
  ASSERT_EQ(sqlite3_open(path.c_str(), &database), SQLITE_OK);
  char* problem = nullptr;
  EXPECT_EQ(sqlite3_exec(database, text.c_str(), nullptr, nullptr, &problem), SQLITE_OK) << problem;
  sqlite3_close(database);
}

/// The status of a child process that runs `work`.
template <typename Work>
int in_child(Work work) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(work() ? 0 : 1);
  int status = -1;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return status;
}

TEST(IndexFile, OfANewerVersionIsSetAsideWithANote) {
  const IndexedDump dump;
  const Answer want = answer(dump.path());
  run_sql(dump.index(), "PRAGMA user_version = 99");
  LogLines log;
  EXPECT_EQ(answer(dump.path()), want);
  EXPECT_TRUE(std::filesystem::exists(dump.index() + ".newer"));
  EXPECT_EQ(log.with("is the index of a newer msdbg: kept as", LogLevel::kWarning).size(), 1u);
  const OpenedFiles opened;
  EXPECT_EQ(answer(dump.path()), want);
  EXPECT_EQ(opened.count(), 0u);
  EXPECT_EQ(log.with("newer", LogLevel::kWarning).size(), 1u);
}

TEST(IndexFile, DamagedIsBuiltAgainWithANote) {
  const IndexedDump dump;
  const Answer want = answer(dump.path());
  const std::string good = bytes_of_file(dump.index());
  const std::vector<std::string> damaged = {"this is no database, but long enough to be taken for one: " + std::string(200, 'x'),
                                            good.substr(0, good.size() / 2), good.substr(0, 200)};
  for (const std::string& bytes : damaged) {
    write_bytes(dump.index(), bytes);
    LogLines log;
    EXPECT_EQ(answer(dump.path()), want);
    EXPECT_EQ(log.with("the index is damaged and built again", LogLevel::kWarning).size(), 1u) << bytes.size();
    const OpenedFiles opened;
    EXPECT_EQ(answer(dump.path()), want);
    EXPECT_EQ(opened.count(), 0u);
  }
}

TEST(IndexFile, NoDamagedByteChangesAnAnswer) {
  const IndexedDump dump;
  const Answer want = answer(dump.path());
  const std::string good = bytes_of_file(dump.index());
  std::mt19937 random(1);
  for (int round = 0; round < 150; ++round) {
    std::string bytes = good;
    for (int fault = 0; fault < 1 + round % 3; ++fault) bytes[random() % bytes.size()] = static_cast<char>(random());
    write_bytes(dump.index(), bytes);
    EXPECT_EQ(answer(dump.path()), want) << "round " << round;
  }
}

TEST(IndexFile, APartOfAnotherDivisionIsReadAsAnEmptyOne) {
  const IndexedDump dump;
  const Answer want = answer(dump.path());
  run_sql(dump.index(), "INSERT INTO entry SELECT directory, 2, bytes FROM entry WHERE number = 1");
  LogLines log;
  EXPECT_EQ(answer(dump.path()), want);
  EXPECT_TRUE(log.with("damaged", LogLevel::kWarning).empty());
  const OpenedFiles opened;
  EXPECT_EQ(answer(dump.path()), want);
  EXPECT_EQ(opened.count(), 0u) << "it is divided anew";
}

TEST(IndexFile, AMissingPartIsDamage) {
  const IndexedDump dump;
  const Answer want = answer(dump.path());
  run_sql(dump.index(), "INSERT INTO entry SELECT directory, number + 1, bytes FROM entry WHERE number > 0 UNION "
                        "SELECT directory, number + 2, bytes FROM entry WHERE number > 0");
  LogLines log;
  EXPECT_EQ(answer(dump.path()), want);
  EXPECT_EQ(log.with("the index is damaged and built again", LogLevel::kWarning).size(), 1u);
  const OpenedFiles opened;
  EXPECT_EQ(answer(dump.path()), want);
  EXPECT_EQ(opened.count(), 0u);
}

TEST(IndexFile, AnotherDatabaseIsNotTaken) {
  const IndexedDump dump;
  const Answer want = truth(dump.path());
  run_sql(dump.index(), "CREATE TABLE entry(directory TEXT, number INTEGER, bytes BLOB); PRAGMA user_version = 1");
  EXPECT_EQ(answer(dump.path()), want);
  const OpenedFiles opened;
  EXPECT_EQ(answer(dump.path()), want);
  EXPECT_EQ(opened.count(), 0u);
}

TEST(IndexFile, ALinkIsNotFollowed) {
  const IndexedDump dump;
  const TempDir elsewhere;
  elsewhere.text("precious", "");
  dump.link(kIndexFile, elsewhere.at("precious"));
  const Answer want = truth(dump.path());
  EXPECT_EQ(answer(dump.path()), want);
  EXPECT_EQ(std::filesystem::file_size(elsewhere.at("precious")), 0u);
}

TEST(IndexFile, AFullDiskCostsOnlyTheIndex) {
  const IndexedDump dump(30);
  const Answer want = truth(dump.path());
  const auto with_room = [&](rlim_t bytes) {
    return in_child([&] {
      std::signal(SIGXFSZ, SIG_IGN);
      const struct rlimit limit {bytes, bytes};
      return ::setrlimit(RLIMIT_FSIZE, &limit) == 0 && answer(dump.path()) == want;
    });
  };
  for (const rlim_t bytes : {0, 5000, 20000}) {
    EXPECT_EQ(with_room(bytes), 0) << bytes;
    EXPECT_EQ(answer(dump.path(), DumpOptions{}), want);
  }
  EXPECT_EQ(answer(dump.path()), want);
  // And one that exists stays as it was.
  const std::string good = bytes_of_file(dump.index());
  dump.add_step(30);
  in_child([&] {
    std::signal(SIGXFSZ, SIG_IGN);
    const struct rlimit limit {20000, 20000};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    answer(dump.path());
    return true;
  });
  const Answer grown = truth(dump.path());
  const OpenedFiles opened;
  EXPECT_EQ(answer(dump.path()), grown);
  EXPECT_EQ(opened.steps().count("5"), 0u);
}

TEST(IndexFile, SeveralProcessesShareIt) {
  const IndexedDump dump(20);
  const Answer want = truth(dump.path());
  for (int round = 0; round < 5; ++round) {
    std::vector<pid_t> children;
    for (int process = 0; process < 4; ++process) {
      const pid_t child = ::fork();
      if (child == 0) {
        bool good = true;
        for (int turn = 0; turn < 3; ++turn) good = good && answer(dump.path()) == want;
        ::_exit(good ? 0 : 1);
      }
      children.push_back(child);
    }
    for (const pid_t child : children) {
      int status = -1;
      ASSERT_EQ(::waitpid(child, &status, 0), child);
      EXPECT_EQ(status, 0);
    }
    const OpenedFiles opened;
    EXPECT_EQ(answer(dump.path()), want);
    EXPECT_EQ(opened.count(), 0u);
    std::filesystem::remove(dump.index());
  }
}

TEST(IndexFile, SeveralThreadsReadItTogether) {
  TempDir dir;
  const std::string path = dir.at("index.sqlite");
  const auto row = [](int directory, int number) {
    return std::string(20000, static_cast<char>('a' + directory)) + std::to_string(number);
  };
  {
    auto writer = dump::IndexWriter::begin(path, false);
    ASSERT_TRUE(writer) << writer.status().message();
    for (int directory = 0; directory < 8; ++directory) {
      for (int number = 0; number < 4; ++number) {
        ASSERT_TRUE(writer->put(std::to_string(directory), number, row(directory, number)).ok());
      }
    }
    ASSERT_TRUE(writer->commit().ok());
  }
  dump::IndexFile file(path);
  const Status status = parallel_for(200, 4, [&](uint64_t task, unsigned) {
    const int directory = static_cast<int>(task % 8);
    bool same = file.parts(std::to_string(directory)) == 3;
    for (int number = 0; number < 4; ++number) same = same && file.row(std::to_string(directory), number) == row(directory, number);
    return same ? Status() : Status(Code::kCorrupt, "another row");
  });
  EXPECT_TRUE(status.ok()) << status.message();
  file.give_up();
  EXPECT_FALSE(file.row("0", 0).has_value());
  EXPECT_TRUE(file.damaged());
}

TEST(IndexFile, ALockedOneIsDoneWithout) {
  const IndexedDump dump;
  const Answer want = answer(dump.path());
  dump.npy(dump.activation(1), {5, 5, 5});
  const Answer changed = truth(dump.path());
  sqlite3* other = nullptr;
  ASSERT_EQ(sqlite3_open(dump.index().c_str(), &other), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(other, "BEGIN EXCLUSIVE", nullptr, nullptr, nullptr), SQLITE_OK);
  EXPECT_EQ(answer(dump.path()), changed);
  sqlite3_close(other);
  EXPECT_EQ(answer(dump.path()), changed);
  const OpenedFiles opened;
  EXPECT_EQ(answer(dump.path()), changed);
  EXPECT_EQ(opened.count(), 0u);
}

TEST(IndexWriter, WithoutCommitNothingChanges) {
  const TempDir place;
  const std::string path = std::filesystem::canonical(place.path()).string() + "/index";
  const auto rows = [&] { return dump::IndexFile(path).parts("a"); };
  {
    Result<dump::IndexWriter> writer = dump::IndexWriter::begin(path, false);
    ASSERT_TRUE(writer) << writer.status().message();
    EXPECT_TRUE(writer->put("a", 1, "x").ok());
  }
  EXPECT_FALSE(std::filesystem::exists(path));
  {
    Result<dump::IndexWriter> writer = dump::IndexWriter::begin(path, false);
    for (int64_t number = 1; number <= 4; ++number) EXPECT_TRUE(writer->put("a", number, "x").ok());
    EXPECT_TRUE(writer->put("b", 0, "listing").ok());
    EXPECT_TRUE(writer->commit().ok());
  }
  EXPECT_EQ(rows(), 4u);
  {
    Result<dump::IndexWriter> writer = dump::IndexWriter::begin(path, false);
    EXPECT_TRUE(writer->remove_after("a", 2).ok());
    EXPECT_TRUE(writer->keep_only({"a"}).ok());
    EXPECT_EQ(rows(), 4u);
    EXPECT_TRUE(writer->commit().ok());
  }
  EXPECT_EQ(rows(), 2u);
  EXPECT_FALSE(dump::IndexFile(path).row("b", 0));
}

}  // namespace
}  // namespace msdbg::testing
