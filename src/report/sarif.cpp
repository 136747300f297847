#include "report/sarif.h"

#include <fmt/format.h>

#include "report/check_formats.h"

namespace msdbg::sarif {
namespace {

constexpr std::string_view kSchema = "https://json.schemastore.org/sarif-2.1.0.json";

// A URI reference: absolute paths get a scheme, and characters that RFC 3986 does not allow in a path are escaped.
std::string uri_of(std::string_view path) {
  constexpr std::string_view kPlain = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~/";
  std::string out = path.starts_with('/') ? "file://" : "";
  for (unsigned char c : path) {
    if (kPlain.find(static_cast<char>(c)) != std::string_view::npos) out += static_cast<char>(c);
    else out += fmt::format("%{:02X}", c);
  }
  return out;
}

}  // namespace

std::string_view level_of(Severity severity) {
  switch (severity) {
    case Severity::kError: return "error";
    case Severity::kWarning: return "warning";
    case Severity::kInfo: return "note";
  }
  return "warning";
}

Json location_of(const Node& node, const Slot& slot) {
  Json location;
  if (const StackFrame* frame = user_frame(node); frame && !frame->file.empty()) {
    Json physical;
    physical["artifactLocation"] = {{"uri", uri_of(frame->file)}};
    if (frame->line > 0) {
      physical["region"] = {{"startLine", frame->line}};
      if (!frame->code.empty()) physical["region"]["snippet"] = {{"text", frame->code}};
    }
    location["physicalLocation"] = std::move(physical);
  }
  location["logicalLocations"] = Json::array({{{"fullyQualifiedName", node.name + ":" + slot_name(slot)}, {"kind", "tensor"}}});
  return location;
}

Json notification(std::string_view level, std::string text) { return {{"level", level}, {"message", {{"text", std::move(text)}}}}; }

std::string log_text(Run run) {
  Json driver;
  driver["name"] = "msdbg";
  driver["version"] = kVersion;
  driver["semanticVersion"] = kVersion;
  driver["rules"] = std::move(run.rules);
  Json invocation;
  invocation["executionSuccessful"] = run.successful;
  invocation["exitCode"] = run.exit_status;
  invocation["toolExecutionNotifications"] = std::move(run.notes);
  Json made;
  made["tool"] = {{"driver", std::move(driver)}};
  made["invocations"] = Json::array({std::move(invocation)});
  made["results"] = std::move(run.results);
  made["properties"] = std::move(run.properties);
  Json out;
  out["$schema"] = kSchema;
  out["version"] = "2.1.0";
  out["runs"] = Json::array({std::move(made)});
  return out.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace msdbg::sarif
