// Checkpoints (.ckpt, safetensors): opened as a session of one step, compared with each other and with a dump.
//
// An open checkpoint is a Session: one graph "checkpoint" of parameter nodes, rank 0, step 0. Selectors, watchpoints and reports
// work on it. The thread rules are those of Session. No OpenSSL or JSON type appears here.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "msdbg/compare.h"
#include "msdbg/session.h"

namespace msdbg {

/// How a checkpoint was encrypted. kAuto uses the first bytes of the file; writers up to 1.6 marked every mode as GCM, and
/// --dec-mode must name CBC for their files.
enum class CipherMode : uint8_t { kAuto, kGcm, kCbc, kSm4Cbc };
/// `auto`, `gcm`, `cbc`, `sm4-cbc`, or MindSpore's names (`AES-GCM`, ...). Error: kInvalidArgument.
Result<CipherMode> parse_cipher_mode(std::string_view text);
std::string_view cipher_mode_name(CipherMode mode);

struct CheckpointOptions {
  std::string key;        ///< bytes; "" for an unencrypted file
  std::string other_key;  ///< tried if `key` fails: the other interpretation of the user's text
  CipherMode mode = CipherMode::kAuto;
};

/// Reads the key from `TEXT`, `@FILE` or `env:NAME`: 32, 48 or 64 hexadecimal digits, or 16, 24 or 32 raw bytes. 32 characters may
/// be either; then both are tried. Error: kInvalidArgument and others; no message contains the key.
Status read_checkpoint_key(std::string_view text, CheckpointOptions* into);

enum class CrcState : uint8_t { kNone, kMatches, kDiffers };

/// The contents of the file besides its parameters.
struct CheckpointFacts {
  std::string format;         ///< "ckpt" or "safetensors"
  uint64_t file_bytes = 0;
  std::string cipher;         ///< "" or "AES-GCM", "AES-CBC", "SM4-CBC"
  CrcState crc = CrcState::kNone;
  bool breaks_off = false;    ///< part of it could not be read and may have held further parameters
  std::vector<std::pair<std::string, std::string>> texts;  ///< strings stored among the parameters, safetensors' metadata
  std::vector<Problem> problems;                           ///< what is damaged, unknown or ignored
};

class Checkpoint : public Session {
 public:
  virtual const CheckpointFacts& facts() const = 0;
};

/// True if the first bytes of a regular file, or its extension, identify a checkpoint.
bool is_checkpoint(const std::string& path);

/// Reads the names, types and positions of all parameters, and verifies the CRC if there is one (which reads the file once). Values
/// are read on request; for an encrypted file from an unlinked temporary file. Damaged parameters are listed with their problem.
/// Error: kCorrupt (no parameter can be read, wrong key), kUnsupported (another kind of file), kInvalidArgument (key missing or of
/// an impossible length), kIoError; all with the file, most with the offset.
Result<std::unique_ptr<Checkpoint>> open_checkpoint(const std::string& path, const CheckpointOptions& options = {});

// ---- comparing -------------------------------------------------------------------------------------------------------

/// norm(b - a) / norm(a), the relative size of an update; 0 without a difference, infinite if only `a` is all zero, NaN without a
/// pair that is finite on both sides.
double update_ratio(const Comparison& values);

enum class ChangeKind : uint8_t { kUnchanged, kChanged, kRetyped, kReshaped, kRenamed, kLost, kAdded, kNotCompared };
std::string_view change_kind_name(ChangeKind kind);  ///< "unchanged", ..., "not compared"

/// One parameter of A, of B, or of both.
struct ParameterChange {
  ChangeKind kind = ChangeKind::kUnchanged;
  std::string name;      ///< in A, or in B when it was added
  std::string new_name;  ///< kRenamed: its name in B
  DType dtype_a = DType::kUnknown, dtype_b = DType::kUnknown;
  Shape shape_a, shape_b;
  std::optional<Comparison> values;  ///< if both exist and have the same element count; tolerance 0
  std::string note;      ///< why it was not compared, and other remarks

  /// NaN or Inf in B that A does not have.
  bool breaks() const;
};

struct ParameterDiff {
  std::string a, b;                      ///< what was compared, for display
  std::vector<ParameterChange> changes;  ///< new NaN and Inf first, then by kind and descending update ratio, then by name
  bool interrupted = false;

  uint64_t count(ChangeKind kind) const;
  bool equal() const;     ///< everything was compared and is unchanged
  bool complete() const;  ///< no entry is kNotCompared
};

/// The parameters of one step of a session.
struct ParameterSource {
  Session* session = nullptr;
  int64_t step = 0;
  int rank = 0;
  std::string name;  ///< for display
};

struct ParameterDiffOptions {
  std::optional<Selector> on;  ///< only these parameters
  bool find_renamed = true;    ///< pairs the remaining ones by content; reads them once more
  unsigned threads = 0;        ///< 0: one per processor
};
/// Pairs parameters by name; those missing from a truncated checkpoint are kNotCompared. Error: the selector matches nothing.
Result<ParameterDiff> diff_parameters(const ParameterSource& a, const ParameterSource& b, const ParameterDiffOptions& options = {});

/// One step of a dump compared with a checkpoint, bit for bit.
struct StepMatch {
  int64_t step = 0;
  uint64_t equal = 0, different = 0, not_compared = 0, absent = 0;  ///< parameters of the checkpoint; absent: not in the dump
  /// Everything that could be compared is equal.
  bool matches() const { return equal > 0 && different == 0 && not_compared == 0; }
};
struct CheckpointMatch {
  std::vector<StepMatch> steps;
  size_t best = 0;       ///< index into `steps` of the most equal parameters; the first such step
  ParameterDiff detail;  ///< of that step: A is the dump, B the checkpoint; without what only the dump has
};
/// Finds the steps of a dump that hold the parameters of a checkpoint. `dump.step` is not used. Error: the dump has no such step,
/// or none of them has a parameter of the checkpoint.
Result<CheckpointMatch> match_checkpoint(const ParameterSource& dump, const IntSet& steps, const ParameterSource& checkpoint,
                                         unsigned threads = 0);

}  // namespace msdbg
