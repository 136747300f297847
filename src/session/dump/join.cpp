#include "session/dump/join.h"

#include <algorithm>
#include <span>

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
  graphs_.emplace_back(graph, &builder);
  old_names_.reset();
  by_stem_.reserve(by_stem_.size() + builder.size());
  for (NodeId id = 0; id < builder.size(); ++id) {
    const Node& node = builder.node(id);
    const JoinedNode joined{graph, id, Note::kNone};
    if (node.kind == NodeKind::kOperator) {
      if (is_structural(node.op)) continue;
      ++nodes_known_;
      const std::string full = underscored(node.name);
      const NumberedName numbered = split_number(full);
      auto stem = by_stem_.find(numbered.stem);
      if (stem == by_stem_.end()) stem = by_stem_.try_emplace(std::string(numbered.stem)).first;
      stem->second.nodes.push_back({joined, numbered.number, node.op, node.outputs});
    } else if (node.kind == NodeKind::kParameter) {
      parameters_[node.name].push_back(joined);
      if (std::string dashed = with_dashes(node.name); dashed != node.name) parameters_[std::move(dashed)].push_back(joined);
      folded_parameters_[underscored(node.name)].push_back(joined);
    } else {
      constants_[node.file_key].push_back(joined);
    }
  }
}

const Joiner::OldNames& Joiner::old_names() const {
  if (old_names_) return *old_names_;
  OldNames& names = old_names_.emplace();
  for (const auto& [graph, builder] : graphs_) {
    for (NodeId id = 0; id < builder->size(); ++id) {
      const Node& node = builder->node(id);
      const JoinedNode joined{graph, id, Note::kNone};
      if (node.kind == NodeKind::kOperator && is_structural(node.op)) continue;
      if (node.kind == NodeKind::kOperator) {
        const std::string last = last_dashed_component(node.name);
        names.by_last[last].emplace_back(joined, node.op);
        if (const size_t at = last.rfind('_'); at != std::string::npos) names.by_tail[last.substr(at + 1)].emplace_back(joined, node.op);
      }
      names.by_dashed.try_emplace(with_dashes(node.kind == NodeKind::kConstant ? node.file_key.get() : node.name), joined);
    }
  }
  return names;
}

/// Whether an operator's name ends so. The first questions are answered without the tables, which newer releases do not need.
bool Joiner::is_last_component(std::string_view op) {
  constexpr int kFewQuestions = 4;
  if (!old_names_ && ++questions_ <= kFewQuestions) {
    return std::ranges::any_of(graphs_, [op](const auto& graph) {
      for (NodeId id = 0; id < graph.second->size(); ++id) {
        const Node& node = graph.second->node(id);
        if (node.kind != NodeKind::kOperator || !node.name.ends_with(op) || is_structural(node.op)) continue;
        if (last_dashed_component(node.name) == op) return true;
      }
      return false;
    });
  }
  return old_names().by_last.count(op) > 0;
}

void Joiner::announce(const FileName& name) {
  if (name.kind == FileKind::kRaw) {
    raw_ = true;
    return;
  }
  typed_ = typed_ || (name.kind == FileKind::kNpy && !name.dtype.empty());
  untyped_ = untyped_ || (name.kind == FileKind::kNpy && name.dtype.empty());
  if (name.op_type == "Parameter") {
    constant_in_step_ = constant_in_step_ || name.op.starts_with("cst");
    return;
  }
  const NumberedName numbered = split_number(name.op);
  const auto stem = by_stem_.find(numbered.stem);
  if (stem != by_stem_.end() && numbered.number) {
    std::vector<Announced>& all = stem->second.announced;
    auto announced = std::ranges::find(all, name.op_type, &Announced::op_type);
    if (announced == all.end()) announced = all.insert(all.end(), Announced{name.op_type, {}, {}});
    const bool output = name.io == Io::kOutput && !name.dtype.empty();
    announced->files.push_back({*numbered.number, name.slot, output ? dtype_from_name(name.dtype) : DType::kUnknown});
  }
  if (typed_) return;  // that decides the epoch
  // A scope in underscored form proves the newer epochs; without a scope, the underscored name is the last component.
  if (stem != by_stem_.end() && underscored_ && !name.op.empty()) return;
  const bool is_last = is_last_component(name.op);
  if (stem != by_stem_.end() && !is_last) underscored_ = true;
  if (name.op.empty() || (is_last && stem == by_stem_.end())) last_component_ = true;
}

std::string Joiner::finish() {
  for (auto& [key, stem] : by_stem_) {
    for (Announced& announced : stem.announced) pair(stem, announced);
  }
  if (raw_ || !typed_) old_names();  // threads will ask
  if (typed_) return "E";
  if (underscored_) return "D";
  // Without a graph to compare with, a name made of a whole scope cannot be told from a bare one.
  if (last_component_ || (nodes_known_ == 0 && untyped_)) return constant_in_step_ ? "B" : "B/C";
  return "";
}

std::vector<const Joiner::Numbered*> Joiner::nodes_of(const Stem& stem, std::string_view op_type) {
  std::vector<const Numbered*> all, of_type;
  for (const Numbered& node : stem.nodes) {
    all.push_back(&node);
    if (node.op == op_type) of_type.push_back(&node);
  }
  return of_type.empty() ? all : of_type;
}

/// Maps the k-th smallest number of the files to the k-th node of the graph; see the header.
void Joiner::pair(const Stem& stem, Announced& announced) {
  std::vector<FileNumber>& files = announced.files;
  const auto agrees = [](const Numbered& node, std::span<const FileNumber> of_number) {
    return std::all_of(of_number.begin(), of_number.end(), [&](const FileNumber& file) {
      return file.slot >= node.outputs.size() || same_type(node.outputs[file.slot].dtype, file.dtype);
    });
  };
  const auto paired = [&](const Numbered& node, std::span<const FileNumber> of_number) {
    JoinedNode joined = node.node;
    if (!agrees(node, of_number)) joined.note = Note::kOtherType;
    announced.paired.emplace_back(of_number.front().number, joined);
  };
  if (files.size() == 1 && stem.nodes.size() == 1) return paired(stem.nodes.front(), files);
  std::stable_sort(files.begin(), files.end(), [](const FileNumber& a, const FileNumber& b) { return a.number < b.number; });
  std::vector<std::span<const FileNumber>> numbers;
  for (auto first = files.begin(); first != files.end();) {
    const auto last = std::find_if(first, files.end(), [&](const FileNumber& file) { return file.number != first->number; });
    numbers.emplace_back(first, last);
    first = last;
  }
  const std::vector<const Numbered*> nodes = nodes_of(stem, announced.op_type);
  if (numbers.size() == nodes.size()) {
    for (size_t k = 0; k < numbers.size(); ++k) paired(*nodes[k], numbers[k]);
    return;
  }
  // A filtered dump, or kernels that did not run. Then equal numbers are a guess, made only if all of them exist.
  std::unordered_map<int64_t, const Numbered*> by_number;
  for (const Numbered* node : nodes) {
    if (node->number) by_number.emplace(*node->number, node);
  }
  std::vector<const Numbered*> same(numbers.size());
  for (size_t k = 0; k < numbers.size(); ++k) {
    const auto found = by_number.find(numbers[k].front().number);
    if (found == by_number.end()) return;
    same[k] = found->second;
  }
  for (size_t k = 0; k < numbers.size(); ++k) {
    if (!agrees(*same[k], numbers[k])) continue;
    announced.paired.emplace_back(numbers[k].front().number, same[k]->node).second.note = Note::kUncertainNumber;
  }
}

std::vector<JoinedNode> Joiner::find(const FileName& name) const {
  if (graphs_.empty()) return {};
  if (name.kind == FileKind::kRaw) {
    const auto found = old_names().by_dashed.find(name.op);
    return found == old_names().by_dashed.end() ? Nodes() : Nodes{found->second};
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
  const auto same_tail = old_names().by_tail.find(name.op);
  Nodes found;
  if (same_tail == old_names().by_tail.end()) return found;
  for (const auto& [node, op] : same_tail->second) {
    if (op == name.op_type) found.push_back(node);
  }
  return found;
}

Joiner::Nodes Joiner::find_by_number(const FileName& name) const {
  const NumberedName numbered = split_number(name.op);
  Nodes found;
  const auto stem = by_stem_.find(numbered.stem);
  if (stem == by_stem_.end()) return found;
  if (numbered.number) {
    const std::vector<Announced>& all = stem->second.announced;
    const auto announced = std::ranges::find(all, name.op_type, &Announced::op_type);
    if (announced == all.end()) return found;
    const auto& paired = announced->paired;
    const auto at = std::ranges::lower_bound(paired, *numbered.number, {}, [](const auto& each) { return each.first; });
    if (at != paired.end() && at->first == *numbered.number) found.push_back(at->second);
    return found;
  }
  for (const Numbered* node : nodes_of(stem->second, name.op_type)) {
    if (!node->number) found.push_back(node->node);
  }
  return found;
}

Joiner::Nodes Joiner::find_by_last_component(const FileName& name) const {
  const auto same_name = old_names().by_last.find(name.op);
  Nodes found, others;
  if (same_name == old_names().by_last.end()) return found;
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
