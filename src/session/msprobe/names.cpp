#include "session/msprobe/names.h"

#include <algorithm>

#include "msdbg/base.h"

namespace msdbg::msprobe {
namespace {

/// Cuts the last part off.
std::string_view take_last(std::string_view& text) {
  const size_t dot = text.rfind('.');
  const std::string_view last = dot == std::string_view::npos ? text : text.substr(dot + 1);
  text = dot == std::string_view::npos ? std::string_view() : text.substr(0, dot);
  return last;
}

std::optional<uint64_t> call_number(std::string_view text) {
  constexpr size_t kMostDigits = 18;
  if (text.empty() || text.size() > kMostDigits || text.find_first_not_of("0123456789") != std::string_view::npos) return std::nullopt;
  return static_cast<uint64_t>(parse_int(text).value_or(0));
}

std::optional<EntryKind> module_kind(std::string_view direction) {
  if (direction == "forward") return EntryKind::kModule;
  if (direction == "backward") return EntryKind::kModuleBackward;
  if (direction == "parameters_grad") return EntryKind::kParameterGradients;
  return std::nullopt;
}

std::optional<EntryName> parse_module(std::string_view name) {
  EntryName out;
  std::string_view rest = name;
  std::string_view last = take_last(rest);
  out.number = call_number(last);
  if (out.number) last = take_last(rest);
  const std::optional<EntryKind> kind = module_kind(last);
  // Up to 8.3, only the gradients of parameters have no number.
  if (!kind || (!out.number && *kind != EntryKind::kParameterGradients)) return std::nullopt;
  out.kind = *kind;
  out.stem = rest;
  out.op = take_last(rest);
  const size_t dot = rest.find('.');
  out.prefix = rest.substr(0, dot);
  out.path = dot == std::string_view::npos ? std::string_view() : rest.substr(dot + 1);
  return out;
}

}  // namespace

EntryName parse_entry_name(std::string_view name) {
  if (name.starts_with("Module.") || name.starts_with("Cell.")) {
    if (const std::optional<EntryName> module = parse_module(name)) return *module;
  }
  EntryName out;
  std::string_view rest = name;
  const std::string_view last = take_last(rest);
  if (last == "forward" || last == "backward") {
    out.kind = last == "forward" ? EntryKind::kForward : EntryKind::kBackward;
  } else {
    rest = name;
  }
  out.stem = rest;
  std::string_view op = take_last(rest);
  out.number = call_number(op);
  if (out.number && !rest.empty()) op = take_last(rest);
  out.op = op;
  out.prefix = rest.substr(0, rest.find('.'));
  return out;
}

std::string scope_of_module(std::string_view path) {
  std::string scope(path);
  std::replace(scope.begin(), scope.end(), '.', '/');
  return scope;
}

}  // namespace msdbg::msprobe
