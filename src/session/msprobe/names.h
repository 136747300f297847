// The names of entries in a table of msprobe: `Functional.conv2d.0.forward`, `Module.net.conv1.Conv2d.backward.0`.
//
// Pure functions; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace msdbg::msprobe {

enum class EntryKind : uint8_t { kForward, kBackward, kModule, kModuleBackward, kParameterGradients };

/// The parts of a name; the texts are those of the name.
struct EntryName {
  EntryKind kind = EntryKind::kForward;
  std::string_view prefix;  ///< "Functional", "Tensor", "Module", ...
  std::string_view op;      ///< `conv2d`; of a module its class
  std::string_view stem;    ///< without direction and, for modules, call number: what a backward entry shares with its forward
  std::string_view path;    ///< of a module: `net.conv1`
  std::optional<uint64_t> number;  ///< of the call; nullopt: the name has none

  bool is_module() const { return kind >= EntryKind::kModule; }
  bool is_backward() const { return kind == EntryKind::kBackward || kind == EntryKind::kModuleBackward; }
};

/// Never fails: a name of another form is a forward call without a number.
EntryName parse_entry_name(std::string_view name);

/// `net/conv1` for the module `net.conv1`.
std::string scope_of_module(std::string_view path);

}  // namespace msdbg::msprobe
