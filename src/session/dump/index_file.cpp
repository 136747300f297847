#include "session/dump/index_file.h"

#include <fmt/format.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>

namespace msdbg::dump {
namespace sql {

struct CloseDatabase {
  void operator()(sqlite3* database) const { sqlite3_close_v2(database); }
};
using Database = std::unique_ptr<sqlite3, CloseDatabase>;

struct Finalize {
  void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
};
using Statement = std::unique_ptr<sqlite3_stmt, Finalize>;

}  // namespace sql

namespace {

using sql::Database, sql::Statement;

/// A file of more bytes gets larger pages, which takes half the time.
constexpr size_t kLargeFile = 1 << 20;
constexpr int kWaitToRead = 200, kWaitToWrite = 1000;  // milliseconds
constexpr const char* kTable =
    "CREATE TABLE entry(directory TEXT NOT NULL, number INTEGER NOT NULL, bytes BLOB NOT NULL, PRIMARY KEY(directory, number))";

/// Null if the file cannot be opened.
Database open_database(const std::string& path, int flags, int wait) {
  sqlite3* opened = nullptr;
  const int code = sqlite3_open_v2(path.c_str(), &opened, flags | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_NOFOLLOW, nullptr);
  Database database(opened);
  if (code != SQLITE_OK) return nullptr;
  sqlite3_busy_timeout(opened, wait);
  // The file may come from anywhere.
  sqlite3_db_config(opened, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_db_config(opened, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  sqlite3_db_config(opened, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, nullptr);
  sqlite3_db_config(opened, SQLITE_DBCONFIG_ENABLE_VIEW, 0, nullptr);
  return database;
}

int prepare(sqlite3* database, const char* text, Statement& statement) {
  sqlite3_stmt* prepared = nullptr;
  const int code = sqlite3_prepare_v2(database, text, -1, &prepared, nullptr);
  statement.reset(prepared);
  return code;
}

int run(sqlite3* database, const char* text) { return sqlite3_exec(database, text, nullptr, nullptr, nullptr); }

enum class Contents { kOurs, kEmpty, kOlder, kNewer, kDamaged, kBusy };

Contents contents_of(sqlite3* database) {
  const auto failed = [](int code) { return code == SQLITE_CORRUPT || code == SQLITE_NOTADB ? Contents::kDamaged : Contents::kBusy; };
  Statement version, schema;
  if (const int code = prepare(database, "PRAGMA user_version", version); code != SQLITE_OK) return failed(code);
  if (const int code = sqlite3_step(version.get()); code != SQLITE_ROW) return failed(code);
  const int number = sqlite3_column_int(version.get(), 0);
  version.reset();
  if (number > IndexFile::kVersion) return Contents::kNewer;
  int code = prepare(database, "SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL", schema);
  if (code != SQLITE_OK) return failed(code);
  code = sqlite3_step(schema.get());
  if (code == SQLITE_DONE) return number == 0 ? Contents::kEmpty : Contents::kDamaged;
  if (code != SQLITE_ROW) return failed(code);
  if (number < IndexFile::kVersion) return number == 0 ? Contents::kDamaged : Contents::kOlder;
  const unsigned char* text = sqlite3_column_text(schema.get(), 0);
  const bool ours = text != nullptr && std::string_view(reinterpret_cast<const char*>(text)) == kTable;
  return ours && sqlite3_step(schema.get()) == SQLITE_DONE ? Contents::kOurs : Contents::kDamaged;
}

bool is_damage(int code) { return code == SQLITE_CORRUPT || code == SQLITE_NOTADB; }

std::string blob(sqlite3_stmt* row, int column) {
  const void* bytes = sqlite3_column_blob(row, column);
  const auto size = static_cast<size_t>(sqlite3_column_bytes(row, column));
  return bytes == nullptr ? std::string() : std::string(static_cast<const char*>(bytes), size);
}

void bind_text(sqlite3_stmt* statement, int place, const std::string& text) {
  sqlite3_bind_text64(statement, place, text.data(), text.size(), SQLITE_STATIC, SQLITE_UTF8);
}

/// Reads rows. `code` is set to how that ended.
struct RowReader {
  int prepare_for(sqlite3* database) {
    const int code = prepare(database, "SELECT bytes FROM entry WHERE directory = ?1 AND number = ?2", row);
    if (code != SQLITE_OK) return code;
    return prepare(database, "SELECT count(*) FROM entry WHERE directory = ?1 AND number > 0", parts);
  }

  std::optional<std::string> read(const std::string& directory, int64_t number, int& code) {
    bind_text(row.get(), 1, directory);
    sqlite3_bind_int64(row.get(), 2, number);
    code = sqlite3_step(row.get());
    std::optional<std::string> bytes;
    if (code == SQLITE_ROW) bytes = blob(row.get(), 0);
    sqlite3_reset(row.get());
    return bytes;
  }

  size_t count_parts(const std::string& directory, int& code) {
    bind_text(parts.get(), 1, directory);
    code = sqlite3_step(parts.get());
    const int64_t count = code == SQLITE_ROW ? sqlite3_column_int64(parts.get(), 0) : 0;
    sqlite3_reset(parts.get());
    return static_cast<size_t>(std::max<int64_t>(count, 0));
  }

  void finish() {
    row.reset();
    parts.reset();
  }

  Statement row, parts;
};

}  // namespace

struct IndexFile::Connection {
  Database database;
  RowReader rows;
};

IndexFile::IndexFile(std::string path) : path_(std::move(path)) {}

IndexFile::~IndexFile() = default;

std::unique_ptr<IndexFile::Connection> IndexFile::open() {
  struct stat info {};
  if (::lstat(path_.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) return nullptr;
  // To write, because a writer that was killed left its changes to be rolled back.
  auto opened = std::make_unique<Connection>();
  opened->database = open_database(path_, SQLITE_OPEN_READWRITE, kWaitToRead);
  sqlite3* const database = opened->database.get();
  if (database == nullptr) return nullptr;
  switch (contents_of(database)) {
    case Contents::kOurs: break;
    case Contents::kNewer: log(LogLevel::kInfo, fmt::format("{}: is the index of a newer msdbg and not used", path_)); return nullptr;
    case Contents::kDamaged: damaged_ = true; [[fallthrough]];
    default: return nullptr;
  }
  return opened->rows.prepare_for(database) == SQLITE_OK ? std::move(opened) : nullptr;
}

std::unique_ptr<IndexFile::Connection> IndexFile::take() {
  {
    std::lock_guard lock(mutex_);
    if (!readable_) return nullptr;
    if (!idle_.empty()) {
      auto connection = std::move(idle_.back());
      idle_.pop_back();
      return connection;
    }
  }
  std::unique_ptr<Connection> opened = open();
  std::lock_guard lock(mutex_);
  if (opened) opened_ = true;
  else if (!opened_) readable_ = false;
  return opened;
}

void IndexFile::put_back(std::unique_ptr<Connection> connection, int code) {
  if (is_damage(code)) return give_up();
  std::lock_guard lock(mutex_);
  if (code == SQLITE_BUSY) {  // a process that writes for long: one wait is enough
    readable_ = false;
    idle_.clear();
  }
  if (readable_) idle_.push_back(std::move(connection));
}

void IndexFile::give_up() {
  std::lock_guard lock(mutex_);
  damaged_ = true;
  readable_ = false;
  idle_.clear();
}

std::optional<std::string> IndexFile::row(const std::string& directory, int64_t number) {
  std::unique_ptr<Connection> connection = take();
  if (!connection) return std::nullopt;
  int code = SQLITE_OK;
  std::optional<std::string> bytes = connection->rows.read(directory, number, code);
  put_back(std::move(connection), code);
  return bytes;
}

size_t IndexFile::parts(const std::string& directory) {
  std::unique_ptr<Connection> connection = take();
  if (!connection) return 0;
  int code = SQLITE_OK;
  const size_t count = connection->rows.count_parts(directory, code);
  put_back(std::move(connection), code);
  return count;
}

namespace {

/// The file and what an unfinished transaction left beside it.
void remove_database(const std::string& path) {
  std::remove(path.c_str());
  std::remove((path + "-journal").c_str());
}

void set_aside(const std::string& path, Contents why) {
  if (why == Contents::kNewer) {
    const std::string kept = path + ".newer";
    log(LogLevel::kWarning, fmt::format("{}: is the index of a newer msdbg: kept as {}, and built again", path, kept));
    std::rename(path.c_str(), kept.c_str());
  } else if (why == Contents::kDamaged) {
    log(LogLevel::kWarning, fmt::format("{}: the index is damaged and built again", path));
  }
  remove_database(path);
}

}  // namespace

struct IndexWriter::State {
  State(const std::string& where, size_t bytes) : path(where), large_pages(bytes > kLargeFile) {}
  ~State() {
    if (!database) return;
    finish();
    run(database.get(), "ROLLBACK");
    database.reset();
    if (created) remove_database(path);
  }

  Status failure(const char* what, int code) const {
    const char* why = database ? sqlite3_errmsg(database.get()) : sqlite3_errstr(code);
    return Status(is_damage(code) ? Code::kCorrupt : Code::kIoError, fmt::format("{}: the index cannot be {}: {}", path, what, why));
  }

  /// kOurs if the transaction has begun; else what is wrong, with a status.
  Contents begin(Status& status) {
    database = open_database(path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, kWaitToWrite);
    if (!database) return status = failure("opened", SQLITE_CANTOPEN), Contents::kBusy;
    // A killed process leaves a journal that is rolled back; only a crash of the machine can damage the file, which is noticed.
    run(database.get(), "PRAGMA synchronous = OFF");
    if (created && large_pages) run(database.get(), "PRAGMA page_size = 16384");
    // Rows are written once and one after the other: more memory would only have to be cleared first.
    run(database.get(), "PRAGMA cache_size = -512");
    int code = run(database.get(), "BEGIN IMMEDIATE");
    if (code != SQLITE_OK) {
      status = failure("locked", code);
      database.reset();
      return is_damage(code) ? Contents::kDamaged : Contents::kBusy;
    }
    Contents contents = contents_of(database.get());
    if (contents == Contents::kEmpty) {
      code = run(database.get(), kTable);
      if (code == SQLITE_OK) code = run(database.get(), fmt::format("PRAGMA user_version = {}", IndexFile::kVersion).c_str());
      contents = code == SQLITE_OK ? Contents::kOurs : Contents::kBusy;
    }
    if (contents == Contents::kOurs) code = prepare(database.get(), "INSERT OR REPLACE INTO entry VALUES(?1, ?2, ?3)", insert);
    if (contents == Contents::kOurs && code == SQLITE_OK)
      code = prepare(database.get(), "DELETE FROM entry WHERE directory = ?1 AND number > ?2", remove);
    if (contents == Contents::kOurs && code == SQLITE_OK) code = rows.prepare_for(database.get());
    if (contents != Contents::kOurs || code != SQLITE_OK) {
      status = failure("read", code);
      finish();
      run(database.get(), "ROLLBACK");
      database.reset();
      return contents == Contents::kOurs ? Contents::kBusy : contents;
    }
    return contents;
  }

  void finish() {
    insert.reset();
    remove.reset();
    rows.finish();
  }

  Status step(sqlite3_stmt* statement) {
    const int code = sqlite3_step(statement);
    const Status status = code == SQLITE_DONE ? Status() : failure("written", code);
    sqlite3_reset(statement);
    return status;
  }

  const std::string path;
  const bool large_pages;
  bool created = false;
  Database database;
  Statement insert, remove;
  RowReader rows;
};

IndexWriter::IndexWriter(std::unique_ptr<State> state) : state_(std::move(state)) {}
IndexWriter::~IndexWriter() = default;
IndexWriter::IndexWriter(IndexWriter&&) noexcept = default;

Result<IndexWriter> IndexWriter::begin(const std::string& path, bool replace, size_t bytes) {
  auto state = std::make_unique<State>(path, bytes);
  struct stat info {};
  state->created = ::lstat(path.c_str(), &info) != 0;
  if (!state->created && !S_ISREG(info.st_mode)) return Status(Code::kIoError, path + ": is not a regular file, there is no index");
  if (replace && !state->created) set_aside(path, Contents::kDamaged);
  Status status;
  Contents contents = state->begin(status);
  if (contents == Contents::kNewer || contents == Contents::kOlder || contents == Contents::kDamaged) {
    set_aside(path, contents);
    contents = state->begin(status);
  }
  if (contents == Contents::kOurs) return IndexWriter(std::move(state));
  if (state->created) remove_database(path);
  return status;
}

std::optional<std::string> IndexWriter::row(const std::string& directory, int64_t number) {
  int code = SQLITE_OK;
  return state_->rows.read(directory, number, code);
}

size_t IndexWriter::parts(const std::string& directory) {
  int code = SQLITE_OK;
  return state_->rows.count_parts(directory, code);
}

Status IndexWriter::put(const std::string& directory, int64_t number, std::string_view bytes) {
  sqlite3_stmt* insert = state_->insert.get();
  bind_text(insert, 1, directory);
  sqlite3_bind_int64(insert, 2, number);
  sqlite3_bind_blob64(insert, 3, bytes.data(), bytes.size(), SQLITE_STATIC);
  return state_->step(insert);
}

Status IndexWriter::remove_after(const std::string& directory, int64_t number) {
  bind_text(state_->remove.get(), 1, directory);
  sqlite3_bind_int64(state_->remove.get(), 2, number);
  return state_->step(state_->remove.get());
}

Status IndexWriter::keep_only(const std::set<std::string>& directories) {
  Statement all;
  std::vector<std::string> gone;
  int code = prepare(state_->database.get(), "SELECT DISTINCT directory FROM entry", all);
  if (code != SQLITE_OK) return state_->failure("read", code);
  while ((code = sqlite3_step(all.get())) == SQLITE_ROW) {
    std::string name = blob(all.get(), 0);
    if (directories.count(name) == 0) gone.push_back(std::move(name));
  }
  if (code != SQLITE_DONE) return state_->failure("read", code);
  all.reset();
  for (const std::string& name : gone) {
    if (Status status = remove_after(name, -1); !status.ok()) return status;
  }
  return {};
}

Status IndexWriter::commit() {
  const int code = run(state_->database.get(), "COMMIT");
  if (code != SQLITE_OK) return state_->failure("written", code);
  state_->finish();
  state_->database.reset();
  return {};
}

}  // namespace msdbg::dump
