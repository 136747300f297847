#include "session/dump/join.h"

#include <algorithm>

#include "msdbg/node_names.h"

namespace msdbg::dump {
namespace {

bool same_type(DType a, DType b) {
  // Writers that widen bfloat16 put float32 in the content and bfloat16 in the name or the graph.
  const auto plain = [](DType dtype) { return dtype == DType::kBFloat16 ? DType::kFloat32 : dtype; };
  return a == DType::kUnknown || b == DType::kUnknown || plain(a) == plain(b);
}

}  // namespace

std::string underscored(std::string_view name) {
  std::string text(name);
  for (char& c : text) {
    if (c == '/' || c == '\\' || c == '.' || c == ' ') c = '_';
  }
  return text;
}

std::string last_dashed_component(std::string_view name) {
  const std::string text = with_dashes(name);
  const size_t at = text.rfind("--");
  return at == std::string::npos ? "" : text.substr(at + 2);
}

bool is_constant_name(std::string_view op) {
  for (std::string_view prefix : {"cst", "data-"}) {
    if (op.starts_with(prefix) && parse_digits(op.substr(prefix.size()))) return true;
  }
  return false;
}

void Joiner::add_graph(int graph, GraphBuilder& builder) {
  for (NodeId id = 0; id < builder.size(); ++id) {
    const Node& node = builder.node(id);
    const JoinedNode joined{graph, id, Note::kNone};
    if (node.kind == NodeKind::kOperator) {
      if (is_structural(node.op)) continue;
      ++nodes_known_;
      const std::string full = underscored(node.name);
      const NumberedName numbered = split_number(full);
      by_stem_[std::string(numbered.stem)].push_back({joined, numbered.number, node.op, node.outputs});
      const std::string last = last_dashed_component(node.name);
      by_last_[last].emplace_back(joined, node.op);
      if (const size_t at = last.rfind('_'); at != std::string::npos) by_tail_[last.substr(at + 1)].emplace_back(joined, node.op);
      by_dashed_[with_dashes(node.name)].emplace_back(joined, node.op);
      continue;
    }
    if (node.kind == NodeKind::kParameter) {
      parameters_[node.name].push_back(joined);
      if (with_dashes(node.name) != node.name) parameters_[with_dashes(node.name)].push_back(joined);
      folded_parameters_[underscored(node.name)].push_back(joined);
    } else {
      constants_[node.file_key].push_back(joined);
    }
    by_dashed_[with_dashes(node.kind == NodeKind::kConstant ? node.file_key.get() : node.name)].emplace_back(joined, node.op);
  }
}

void Joiner::announce(const FileName& name) {
  if (name.kind == FileKind::kRaw) return;
  typed_ = typed_ || (name.kind == FileKind::kNpy && !name.dtype.empty());
  untyped_ = untyped_ || (name.kind == FileKind::kNpy && name.dtype.empty());
  if (name.op_type == "Parameter") {
    constant_in_step_ = constant_in_step_ || name.op.starts_with("cst");
    return;
  }
  const NumberedName numbered = split_number(name.op);
  const auto stem = by_stem_.find(numbered.stem);
  if (stem != by_stem_.end()) {
    Announced& announced = announced_[{stem->first, std::string(name.op_type)}];
    announced.op_type = name.op_type;
    if (numbered.number) {
      std::map<uint32_t, DType>& outputs = announced.numbers[*numbered.number];
      if (name.io == Io::kOutput && !name.dtype.empty()) outputs[name.slot] = dtype_from_name(name.dtype);
    }
  }
  // A scope in underscored form proves the newer epochs; without a scope, the underscored name is the last component.
  if (stem != by_stem_.end() && by_last_.count(name.op) == 0) underscored_ = true;
  if (name.op.empty() || (by_last_.count(name.op) > 0 && stem == by_stem_.end())) last_component_ = true;
}

std::string Joiner::finish() {
  for (const auto& [key, announced] : announced_) pair(key.first, announced);
  if (typed_) return "E";
  if (underscored_) return "D";
  // Without a graph to compare with, a name made of a whole scope cannot be told from a bare one.
  if (last_component_ || (nodes_known_ == 0 && untyped_)) return constant_in_step_ ? "B" : "B/C";
  return "";
}

/// The nodes of the stem with this type, or all of them if no node has it.
const std::vector<Joiner::Numbered>* Joiner::nodes_of(std::string_view key, std::string_view op_type,
                                                      std::vector<Numbered>& of_type) const {
  const auto stem = by_stem_.find(key);
  if (stem == by_stem_.end()) return nullptr;
  for (const Numbered& node : stem->second) {
    if (node.op == op_type) of_type.push_back(node);
  }
  return of_type.empty() || of_type.size() == stem->second.size() ? &stem->second : &of_type;
}

/// Maps the k-th smallest number of the files to the k-th node of the graph; see the header.
void Joiner::pair(const std::string& key, const Announced& announced) {
  std::vector<Numbered> of_type;
  const std::vector<Numbered>* nodes = nodes_of(key, announced.op_type, of_type);
  if (!nodes || announced.numbers.empty()) return;
  const auto agrees = [](const Numbered& node, const std::map<uint32_t, DType>& types) {
    return std::all_of(types.begin(), types.end(), [&](const auto& slot) {
      return slot.first >= node.outputs.size() || same_type(node.outputs[slot.first].dtype, slot.second);
    });
  };
  std::map<int64_t, JoinedNode>& pairs = paired_[{key, announced.op_type}];
  if (announced.numbers.size() == nodes->size()) {
    size_t k = 0;
    for (const auto& [number, types] : announced.numbers) {
      const Numbered& node = (*nodes)[k++];
      JoinedNode joined = node.node;
      if (!agrees(node, types)) joined.note = Note::kOtherType;
      pairs[number] = joined;
    }
    return;
  }
  // A filtered dump, or kernels that did not run. Then equal numbers are a guess, made only if all of them exist.
  std::map<int64_t, const Numbered*> by_number;
  for (const Numbered& node : *nodes) {
    if (node.number) by_number.emplace(*node.number, &node);
  }
  for (const auto& [number, types] : announced.numbers) {
    if (by_number.count(number) == 0) return;
  }
  for (const auto& [number, types] : announced.numbers) {
    const Numbered& node = *by_number[number];
    if (!agrees(node, types)) continue;
    JoinedNode joined = node.node;
    joined.note = Note::kUncertainNumber;
    pairs[number] = joined;
  }
}

std::vector<JoinedNode> Joiner::find(const FileName& name) const {
  if (by_dashed_.empty()) return {};  // no node at all
  if (name.kind == FileKind::kRaw) {
    const auto found = by_dashed_.find(name.op);
    return found == by_dashed_.end() ? Nodes() : Nodes{found->second.front().first};
  }
  if (name.op_type == "Parameter") return find_parameter(name);
  // The epoch's own rule comes first; converted Ascend files may follow the other one.
  const bool newer = typed_ || underscored_;
  Nodes nodes = newer ? find_by_number(name) : find_by_last_component(name);
  if (nodes.empty() && !typed_) nodes = newer ? find_by_last_component(name) : find_by_number(name);
  if (nodes.empty() && !typed_) nodes = find_by_tail(name);
  return nodes;
}

/// MindInsight renames what the converter wrote, and cuts names at their last `_`: `conv_bn-op3` becomes `bn-op3`.
Joiner::Nodes Joiner::find_by_tail(const FileName& name) const {
  const auto same_tail = by_tail_.find(name.op);
  Nodes found;
  if (same_tail == by_tail_.end()) return found;
  for (const auto& [node, op] : same_tail->second) {
    if (op == name.op_type) found.push_back(node);
  }
  return found;
}

Joiner::Nodes Joiner::find_by_number(const FileName& name) const {
  const NumberedName numbered = split_number(name.op);
  if (numbered.number) {
    const auto pairs = paired_.find({std::string(numbered.stem), std::string(name.op_type)});
    if (pairs == paired_.end()) return {};
    const auto found = pairs->second.find(*numbered.number);
    return found == pairs->second.end() ? Nodes() : Nodes{found->second};
  }
  std::vector<Numbered> of_type;
  const std::vector<Numbered>* nodes = nodes_of(numbered.stem, name.op_type, of_type);
  Nodes found;
  if (!nodes) return found;
  for (const Numbered& node : *nodes) {
    if (!node.number) found.push_back(node.node);
  }
  return found;
}

Joiner::Nodes Joiner::find_by_last_component(const FileName& name) const {
  const auto same_name = by_last_.find(name.op);
  Nodes found, others;
  if (same_name == by_last_.end()) return found;
  for (const auto& [node, op] : same_name->second) (op == name.op_type ? found : others).push_back(node);
  // Without a name, only the type remains, and must match.
  if (found.empty() && !name.op.empty()) found = std::move(others);
  return found;
}

Joiner::Nodes Joiner::find_parameter(const FileName& name) const {
  for (const auto* names : {&parameters_, &constants_, &folded_parameters_}) {
    if (const auto found = names->find(name.op); found != names->end()) {
      // An exact name identifies its parameter, unless the file's name is a folded one that others share.
      if (names == &parameters_ && (typed_ || underscored_)) {
        if (const auto folded = folded_parameters_.find(name.op); folded != folded_parameters_.end())
          return folded->second;
      }
      return found->second;
    }
  }
  return {};
}

}  // namespace msdbg::dump
