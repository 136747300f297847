#include "session/dump/join.h"

#include <algorithm>
#include <array>
#include <span>
#include <unordered_map>

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
  constexpr auto kForms = [] {
    std::array<char, 256> forms{};
    for (size_t c = 0; c < forms.size(); ++c) forms[c] = static_cast<char>(c);
    for (const char c : {'/', '\\', '.', ' '}) forms[static_cast<unsigned char>(c)] = '_';
    return forms;
  }();
  std::string text(name);
  for (char& c : text) c = kForms[static_cast<unsigned char>(c)];
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

void Joiner::add_to(TextTable<NodeLists::List>& table, std::string_view text, const JoinedNode& node) {
  nodes_.add(table.add(text).first, node);
}

void Joiner::add_graph(int graph, GraphBuilder& builder) {
  graphs_.emplace_back(graph, &builder);
  old_names_.reset();
  by_stem_.reserve(builder.size());
  numbered_.reserve(builder.size());
  for (NodeId id = 0; id < builder.size(); ++id) {
    const Node& node = builder.node(id);
    const JoinedNode joined{graph, id, Note::kNone};
    if (node.kind == NodeKind::kOperator) {
      if (is_structural(node.op)) continue;
      ++nodes_known_;
      const std::string full = underscored(node.name);
      const NumberedName numbered = split_number(full);
      Stem* stem = by_stem_.find(numbered.stem);
      if (stem == nullptr) stem = &by_stem_.add(texts_.add(numbered.stem)).first;
      numbered_.add(stem->nodes, {joined, numbered.number, &node});
    } else if (node.kind == NodeKind::kParameter) {
      add_to(parameters_, node.name, joined);
      if (node.name.find('/') != std::string::npos) add_to(parameters_, texts_.add(with_dashes(node.name)), joined);
      add_to(folded_parameters_, texts_.add(underscored(node.name)), joined);
    } else {
      add_to(constants_, node.file_key, joined);
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
        const std::string_view last = names.texts.add(last_dashed_component(node.name));
        names.nodes.add(names.by_last.add(last).first, {joined, node.op});
        if (const size_t at = last.rfind('_'); at != std::string_view::npos) {
          names.nodes.add(names.by_tail.add(last.substr(at + 1)).first, {joined, node.op});
        }
      }
      names.by_dashed.add(names.texts.add(with_dashes(node.kind == NodeKind::kConstant ? node.file_key.get() : node.name)), joined);
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
  return old_names().by_last.find(op) != nullptr;
}

uint32_t Joiner::announce(const FileName& name) {
  if (name.kind == FileKind::kRaw) {
    raw_ = true;
    return kUnknown;
  }
  typed_ = typed_ || (name.kind == FileKind::kNpy && !name.dtype.empty());
  untyped_ = untyped_ || (name.kind == FileKind::kNpy && name.dtype.empty());
  if (name.op_type == "Parameter") {
    constant_in_step_ = constant_in_step_ || name.op.starts_with("cst");
    return kUnknown;
  }
  const NumberedName numbered = split_number(name.op);
  Stem* const stem = by_stem_.find(numbered.stem);
  uint32_t known = kUnknown;
  if (stem != nullptr && numbered.number) {
    known = find_announced(*stem, name.op_type).value_or(kUnknown);
    if (known == kUnknown) known = announced_.add(stem->announced, {name.op_type, {}, 0, 0, 0});
    Announced& announced = announced_[known];
    const bool output = name.io == Io::kOutput && !name.dtype.empty();
    const FileNumber file{*numbered.number, name.slot, output ? dtype_from_name(name.dtype) : DType::kUnknown};
    // Further steps repeat the files of the first one.
    if (announced.files.empty() || files_[announced.newest] != file) announced.newest = files_.add(announced.files, file);
  }
  if (typed_) return known;  // that decides the epoch
  // A scope in underscored form proves the newer epochs; without a scope, the underscored name is the last component.
  if (stem != nullptr && underscored_ && !name.op.empty()) return known;
  const bool is_last = is_last_component(name.op);
  if (stem != nullptr && !is_last) underscored_ = true;
  if (name.op.empty() || (is_last && stem == nullptr)) last_component_ = true;
  return known;
}

std::string Joiner::finish() {
  paired_.reserve(announced_.size());
  for (const auto& [text, stem] : by_stem_) {
    for (uint32_t at = stem.announced.first(); at != Chains<Announced>::kEnd; at = announced_.after(at)) pair(stem, announced_[at]);
  }
  if (raw_ || !typed_) old_names();  // threads will ask
  if (typed_) return "E";
  if (underscored_) return "D";
  // Without a graph to compare with, a name made of a whole scope cannot be told from a bare one.
  if (last_component_ || (nodes_known_ == 0 && untyped_)) return constant_in_step_ ? "B" : "B/C";
  return "";
}

std::vector<const Joiner::Numbered*> Joiner::nodes_of(const Stem& stem, std::string_view op_type) const {
  std::vector<const Numbered*> all, of_type;
  for (const Numbered& node : numbered_.of(stem.nodes)) {
    all.push_back(&node);
    if (node.source->op == op_type) of_type.push_back(&node);
  }
  return of_type.empty() ? all : of_type;
}

/// Maps the k-th smallest number of the files to the k-th node of the graph; see the header.
void Joiner::pair(const Stem& stem, Announced& announced) {
  announced.paired = announced.paired_end = static_cast<uint32_t>(paired_.size());
  const auto agrees = [](const Numbered& node, std::span<const FileNumber> of_number) {
    return std::all_of(of_number.begin(), of_number.end(), [&](const FileNumber& file) {
      const SharedList<OutputType>& outputs = node.source->outputs;
      return file.slot >= outputs.size() || same_type(outputs[file.slot].dtype, file.dtype);
    });
  };
  const auto paired = [&](const Numbered& node, std::span<const FileNumber> of_number, Note note) {
    JoinedNode joined = node.node;
    joined.note = note;
    paired_.emplace_back(of_number.front().number, joined);
    announced.paired_end = static_cast<uint32_t>(paired_.size());
  };
  const auto paired_in_order = [&](const Numbered& node, std::span<const FileNumber> of_number) {
    paired(node, of_number, agrees(node, of_number) ? Note::kNone : Note::kOtherType);
  };
  if (announced.files.has_one() && stem.nodes.has_one()) {
    return paired_in_order(*numbered_.of(stem.nodes).begin(), {&*files_.of(announced.files).begin(), 1});
  }
  std::vector<FileNumber> files;
  for (const FileNumber& file : files_.of(announced.files)) files.push_back(file);
  std::stable_sort(files.begin(), files.end(), [](const FileNumber& a, const FileNumber& b) { return a.number < b.number; });
  std::vector<std::span<const FileNumber>> numbers;
  for (auto first = files.begin(); first != files.end();) {
    const auto last = std::find_if(first, files.end(), [&](const FileNumber& file) { return file.number != first->number; });
    numbers.emplace_back(first, last);
    first = last;
  }
  const std::vector<const Numbered*> nodes = nodes_of(stem, announced.op_type);
  if (numbers.size() == nodes.size()) {
    for (size_t k = 0; k < numbers.size(); ++k) paired_in_order(*nodes[k], numbers[k]);
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
    if (agrees(*same[k], numbers[k])) paired(*same[k], numbers[k], Note::kUncertainNumber);
  }
}

std::vector<JoinedNode> Joiner::find(const FileName& name, uint32_t announced) const {
  if (graphs_.empty()) return {};
  if (name.kind == FileKind::kRaw) {
    const JoinedNode* const found = old_names().by_dashed.find(name.op);
    return found == nullptr ? Nodes() : Nodes{*found};
  }
  if (name.op_type == "Parameter") return find_parameter(name);
  // The epoch's own rule comes first; converted Ascend files may follow the other one.
  const bool newer = typed_ || underscored_;
  Nodes nodes = newer ? find_by_number(name, announced) : find_by_last_component(name);
  if (nodes.empty() && !typed_) nodes = newer ? find_by_last_component(name) : find_by_number(name, announced);
  if (nodes.empty() && !typed_) nodes = find_by_tail(name);
  return nodes;
}

/// MindInsight renames what the converter wrote, and cuts names at their last `_`: `conv_bn-op3` becomes `bn-op3`.
Joiner::Nodes Joiner::find_by_tail(const FileName& name) const {
  const auto* const same_tail = old_names().by_tail.find(name.op);
  Nodes found;
  if (same_tail == nullptr) return found;
  for (const auto& [node, op] : old_names().nodes.of(*same_tail)) {
    if (op == name.op_type) found.push_back(node);
  }
  return found;
}

std::optional<uint32_t> Joiner::find_announced(const Stem& stem, std::string_view op_type) const {
  for (uint32_t at = stem.announced.first(); at != Chains<Announced>::kEnd; at = announced_.after(at)) {
    if (announced_[at].op_type == op_type) return at;
  }
  return std::nullopt;
}

std::optional<JoinedNode> Joiner::find_paired(const Announced& announced, int64_t number) const {
  const std::span paired = std::span(paired_).subspan(announced.paired, announced.paired_end - announced.paired);
  const auto at = std::ranges::lower_bound(paired, number, {}, [](const auto& each) { return each.first; });
  return at != paired.end() && at->first == number ? std::optional(at->second) : std::nullopt;
}

Joiner::Nodes Joiner::find_by_number(const FileName& name, uint32_t announced) const {
  const NumberedName numbered = split_number(name.op);
  Nodes found;
  const Stem* const stem = announced == kUnknown ? by_stem_.find(numbered.stem) : nullptr;
  if (numbered.number) {
    if (stem != nullptr) announced = find_announced(*stem, name.op_type).value_or(kUnknown);
    if (announced == kUnknown) return found;
    if (const auto node = find_paired(announced_[announced], *numbered.number)) found.push_back(*node);
    return found;
  }
  if (stem == nullptr) return found;
  for (const Numbered* node : nodes_of(*stem, name.op_type)) {
    if (!node->number) found.push_back(node->node);
  }
  return found;
}

Joiner::Nodes Joiner::find_by_last_component(const FileName& name) const {
  const auto* const same_name = old_names().by_last.find(name.op);
  Nodes found, others;
  if (same_name == nullptr) return found;
  for (const auto& [node, op] : old_names().nodes.of(*same_name)) (op == name.op_type ? found : others).push_back(node);
  // Without a name, only the type remains, and must match.
  if (found.empty() && !name.op.empty()) found = std::move(others);
  return found;
}

Joiner::Nodes Joiner::find_parameter(const FileName& name) const {
  for (const auto* names : {&parameters_, &constants_, &folded_parameters_}) {
    const NodeLists::List* found = names->find(name.op);
    if (found == nullptr) continue;
    // An exact name identifies its parameter, unless the file's name is a folded one that others share.
    if (names == &parameters_ && (typed_ || underscored_)) {
      if (const NodeLists::List* const folded = folded_parameters_.find(name.op)) found = folded;
    }
    Nodes nodes;
    for (const JoinedNode& node : nodes_.of(*found)) nodes.push_back(node);
    return nodes;
  }
  return {};
}

}  // namespace msdbg::dump
