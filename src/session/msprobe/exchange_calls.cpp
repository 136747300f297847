#include "session/msprobe/exchange_calls.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

namespace msdbg::msprobe {
namespace {

/// "input_args.0" of "input_args.0.3".
bool is_in(std::string_view path, std::string_view argument) {
  return path.starts_with(argument) && (path.size() == argument.size() || path[argument.size()] == '.');
}

/// One operation of a batch, as its call recorded it.
struct Operation {
  std::string path;
  JsonValue value;
};

/// In a list, or in a list that is an argument with a name.
void find_operations(const JsonValue& value, const std::string& path, std::vector<Operation>& found) {
  if (value.is(JsonKind::kObject) && value.find("op") && value.find("peer") && value.find("tensor")) {
    found.push_back({path, value});
    return;
  }
  size_t place = 0;
  for (const JsonValue child : value.children()) {
    const std::string part = value.is(JsonKind::kObject) ? std::string(child.key()) : std::to_string(place++);
    find_operations(child, path + "." + part, found);
  }
}

void add_attribute(CallRecord& call, std::string_view name, const std::optional<JsonValue>& value) {
  const std::string text = value ? value->printed() : "";
  constexpr size_t kMostText = 200;
  if (!text.empty() && text.size() <= kMostText) call.attributes.push_back({SharedText(name), SharedText(text)});
}

bool same_statistics(const Record& a, const Record& b) {
  // NaN is what it was before, too.
  const auto same = [](double x, double y) { return x == y || (x != x && y != y); };
  return a.given == b.given && a.checksum == b.checksum && a.shape == b.shape && same(a.max, b.max) && same(a.min, b.min) &&
         same(a.mean, b.mean) && same(a.norm, b.norm);
}

/// Calls whose first argument takes what arrives; if there is a second one with values, it is what is sent.
bool writes_first(std::string_view op) {
  constexpr std::array<std::string_view, 11> kOps = {
      "recv",           "irecv",      "scatter",           "all_gather",           "_all_gather_base",      "all_gather_into_tensor",
      "reduce_scatter", "all_to_all", "all_to_all_single", "_reduce_scatter_base", "reduce_scatter_tensor"};
  return std::ranges::find(kOps, op) != kOps.end();
}

}  // namespace

bool is_exchange(const EntryName& call) {
  return call.kind == EntryKind::kForward && (call.prefix == "Distributed" || call.prefix == "MintDistributed");
}

bool is_receive(const EntryName& call) {
  return is_exchange(call) && (call.op == "recv" || call.op == "irecv" || call.op == "batch_isend_irecv");
}

bool is_only_written(const EntryName& call, std::string_view path) {
  if (!is_exchange(call)) return false;
  constexpr std::array<std::string_view, 5> kNames = {"input_kwargs.output", "input_kwargs.output_tensor", "input_kwargs.tensor_list",
                                                      "input_kwargs.output_tensor_list", "input_kwargs.gather_list"};
  if (call.op == "gather" && is_in(path, "input_args.1")) return true;
  if (writes_first(call.op) && is_in(path, "input_args.0")) return true;
  if ((call.op == "recv" || call.op == "irecv" || call.op == "scatter") && is_in(path, "input_kwargs.tensor")) return true;
  return std::ranges::any_of(kNames, [&](std::string_view name) { return is_in(path, name); });
}

bool is_only_read(const EntryName& call, std::string_view path, std::span<const Record> before) {
  if (!is_exchange(call)) return false;
  if (call.op == "gather") return is_in(path, "output.0");
  if (!writes_first(call.op) || !is_in(path, "output.1")) return false;
  // The list of all outputs, which would be the first argument, or the outputs themselves.
  const bool takes_list = call.op == "all_gather" || call.op == "all_to_all";
  return !takes_list || (!before.empty() && before.front().path.starts_with("output.0."));
}

std::vector<CallRecord> read_batch(const EntryName& name, const JsonValue& entry) {
  std::vector<CallRecord> calls;
  if (!is_exchange(name) || name.op != "batch_isend_irecv") return calls;
  std::vector<Operation> given, left;
  for (const JsonValue side : entry.children()) {
    if (side.key().starts_with("input")) find_operations(side, std::string(side.key()), given);
    else if (side.key() == "output") find_operations(side, "output", left);
  }
  for (size_t i = 0; i < given.size(); ++i) {
    const JsonValue& operation = given[i].value;
    CallRecord& call = calls.emplace_back();
    call.op = operation.find("op")->text();
    call.has_inputs = true;
    add_attribute(call, call.op == "irecv" ? "src" : "dst", operation.find("peer"));
    add_attribute(call, "tag", operation.find("tag"));
    add_attribute(call, "group", operation.find("group_id"));
    const Record before = read_record(*operation.find("tensor"), given[i].path + ".tensor");
    const bool receives = call.op == "irecv";
    if (!receives) call.inputs.push_back(before);
    if (i >= left.size()) continue;
    Record after = read_record(*left[i].value.find("tensor"), left[i].path + ".tensor");
    // Without a change, it was recorded before the value arrived.
    if (!receives || !same_statistics(before, after)) call.outputs.push_back(std::move(after));
  }
  return calls;
}

}  // namespace msdbg::msprobe
