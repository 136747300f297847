// The base of every module: status values, the interrupt flag, logging, and small text helpers.
//
// Nothing here prints or exits. Functions are thread-safe unless documented otherwise.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <source_location>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace msdbg {

inline constexpr std::string_view kVersion = "0.1.0";

// ---- assertions ------------------------------------------------------------------------------------------------

/// A defect of msdbg, found by MSDBG_CHECK. It ends the current question (Code::kInternal), not the session.
class InternalError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};
/// Throws InternalError: "internal error: CONDITION does not hold (session/pass.cpp:48): please report it".
[[noreturn]] void check_failed(const char* condition, const std::source_location& where);

/// Guards memory and invariants, also in release builds. Not for input: bad input gets a Status.
#define MSDBG_CHECK(condition) \
  (static_cast<bool>(condition) ? void() : ::msdbg::check_failed(#condition, std::source_location::current()))

// ---- status ----------------------------------------------------------------------------------------------------

/// Why a call returned no value. The text of the Status says what failed, the value, and what to do next.
enum class Code : uint8_t {
  kOk,
  kInvalidArgument,  ///< wrong arguments (exit status 2 on the command line)
  kNotFound,         ///< the thing does not exist, e.g. a tensor that was not dumped
  kUnsupported,      ///< it exists, but this program cannot evaluate it (complex, device format, ...)
  kIoError,          ///< the operating system refused or the file changed while it was read
  kCorrupt,          ///< the bytes contradict their format
  kNoData,           ///< only statistics exist, the elements do not
  kOutOfMemory,      ///< larger than --mem-limit allows
  kInterrupted,      ///< the user pressed Ctrl-C
  kPeerLost,         ///< the training process disconnected
  kInternal,         ///< a defect of msdbg
};

/// "not_found", "corrupt", ...: the word used for `code` in Lua.
std::string_view code_name(Code code);

class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(Code code, std::string message) : code_(code), message_(std::move(message)) {}

  bool ok() const { return code_ == Code::kOk; }
  Code code() const { return code_; }
  const std::string& message() const { return message_; }

 private:
  Code code_ = Code::kOk;
  std::string message_;
};

/// A value, or the Status that explains why it is missing. Reading the wrong one is a defect and throws.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}                 // NOLINT(google-explicit-constructor)
  Result(Status status) : state_(std::in_place_index<1>, std::move(status)) {           // NOLINT(google-explicit-constructor)
    MSDBG_CHECK(!std::get<1>(state_).ok());
  }

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }
  Status status() const { return ok() ? Status() : std::get<1>(state_); }

  T& value() { return std::get<0>(state_); }
  const T& value() const { return std::get<0>(state_); }
  T& operator*() { return value(); }
  const T& operator*() const { return value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

 private:
  std::variant<T, Status> state_;
};

// ---- interrupt -------------------------------------------------------------------------------------------------

/// One flag per process, set by the SIGINT handler (async-signal-safe) and polled by everything that can take longer than a tenth
/// of a second. The prompt or command that handled the interrupt clears it.
void request_interrupt() noexcept;
bool interrupt_requested() noexcept;
void clear_interrupt() noexcept;

// ---- logging ---------------------------------------------------------------------------------------------------

enum class LogLevel : uint8_t { kDebug, kInfo, kWarning, kError };
using LogSink = std::function<void(LogLevel, std::string_view)>;

/// Replaces the sink; the default discards everything. Call it before worker threads start.
void set_log_sink(LogSink sink);
void log(LogLevel level, std::string_view text);

// ---- text ------------------------------------------------------------------------------------------------------

/// The `limit` candidates closest to `word`, nearest first: case-insensitive edit distance, where a candidate that contains the
/// word or shares its last path component counts as close. Empty if no candidate resembles it.
std::vector<std::string> nearest(std::string_view word, std::span<const std::string> candidates, size_t limit = 3);

std::vector<std::string_view> split(std::string_view text, char separator);
std::string_view trim(std::string_view text);
std::string to_lower(std::string_view text);
bool starts_with_nocase(std::string_view text, std::string_view prefix);
bool contains_nocase(std::string_view text, std::string_view part);

/// Whole-string conversions: trailing characters, an empty string or overflow give nullopt.
std::optional<int64_t> parse_int(std::string_view text);
/// Accepts the formats of strtod, including `inf` and `nan` in any case.
std::optional<double> parse_double(std::string_view text);

/// Shortest decimal that reads back as the same double; "NaN", "Infinity", "-Infinity" for the special values.
std::string format_double(double value);
/// `digits` significant digits without trailing zeros, for people: 0.0843, 3.4e+36, -Inf, NaN.
std::string format_short(double value, int digits = 4);
/// 5242880 -> "5.0 MiB".
std::string format_bytes(uint64_t bytes);

/// Ascending numbers with runs joined, for messages: "0-3, 7"; "none" for an empty list.
std::string numbers_text(std::span<const int64_t> numbers);
/// "rank 2", "ranks 0, 2-3".
std::string ranks_text(std::span<const int> ranks);

/// Replaces control characters, ESC and invalid UTF-8 by `?`: text from a file cannot control the terminal.
std::string printable(std::string_view text);

// ---- a set of numbers, for --steps and --ranks -------------------------------------------------------------------

/// `all`, `3`, `0:10` (both ends included), `2:` (from 2 on), `:5`, and lists `0,4,7:9`.
class IntSet {
 public:
  static IntSet all() { return IntSet(); }
  static IntSet of(int64_t value);
  static Result<IntSet> parse(std::string_view text);

  bool contains(int64_t value) const;
  bool is_all() const { return ranges_.empty(); }
  /// The text that parse() reads back.
  std::string text() const;

 private:
  std::vector<std::pair<int64_t, int64_t>> ranges_;  // inclusive; empty means everything
};

}  // namespace msdbg
