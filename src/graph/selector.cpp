// The meaning of selector terms, and resolving a selector to nodes.
#include <algorithm>
#include <array>

#include "graph/node_bits.h"
#include "graph/selector_term.h"
#include "msdbg/graph.h"

namespace msdbg {
namespace {

bool equals_nocase(std::string_view a, std::string_view b) { return a.size() == b.size() && starts_with_nocase(a, b); }

bool in_scope(const Selector::Term& term, std::string_view scope) {
  if (!term.has_glob) {
    return starts_with_nocase(scope, term.text) && (scope.size() == term.text.size() || scope[term.text.size()] == '/');
  }
  for (size_t end = scope.find('/'); end != std::string_view::npos; end = scope.find('/', end + 1)) {
    if (term.glob.matches(scope.substr(0, end))) return true;
  }
  return term.glob.matches(scope);
}

bool in_stack(const Selector::Term& term, const Node& node) {
  return std::any_of(node.stack.begin(), node.stack.end(), [&](const StackFrame& frame) {
    if (term.line != 0 && frame.line != term.line) return false;
    if (frame.file == term.text) return true;
    if (term.has_glob) {
      // `train*.py` matches the file name; with '/' in the pattern it matches the path.
      const size_t slash = term.text.find('/') == std::string::npos ? frame.file->rfind('/') : std::string::npos;
      return term.glob.matches(slash == std::string::npos ? std::string_view(frame.file)
                                                          : std::string_view(frame.file).substr(slash + 1));
    }
    return frame.file.size() > term.text.size() && frame.file->ends_with(term.text) &&
           frame.file[frame.file.size() - term.text.size() - 1] == '/';
  });
}

// Appends `=NAME`, quoted if the parser would otherwise end the name too early.
void add_exact(std::string& text, std::string_view name) {
  static constexpr auto kPlain = [] {
    std::array<bool, 256> plain{};
    for (const char c : std::string_view("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-./:@+$#%~"))
      plain[static_cast<unsigned char>(c)] = true;
    return plain;
  }();
  text += '=';
  if (std::ranges::all_of(name, [](char c) { return kPlain[static_cast<unsigned char>(c)]; })) {
    text += name;
    return;
  }
  text += '"';
  for (const char c : name) {
    if (c == '"' || c == '\\') text += '\\';
    text += c;
  }
  text += '"';
}

bool is_op(const Selector::Term& term, std::string_view op) { return term.has_glob ? term.glob.matches(op) : equals_nocase(op, term.text); }

bool has_dtype(const Selector::Term& term, const Node& node) {
  return std::any_of(node.outputs.begin(), node.outputs.end(), [&](const OutputType& output) {
    const std::string_view name = dtype_name(output.dtype);
    return term.has_glob ? term.glob.matches(name) : equals_nocase(name, term.text);
  });
}

using TermPtr = std::shared_ptr<const Selector::Term>;

// The same terms, but a word that names one node means exactly that node, not every name that contains it.
TermPtr with_names(const TermPtr& term, std::span<const GraphPtr> graphs) {
  if (term->kind == Selector::Term::Kind::kSubstring) {
    const std::string* name = named_node(graphs, term->text);
    if (name == nullptr) return term;
    auto exact = std::make_shared<Selector::Term>(*term);
    exact->kind = Selector::Term::Kind::kExact;
    exact->text = *name;
    return exact;
  }
  std::vector<TermPtr> parts;
  for (const TermPtr& part : term->parts) parts.push_back(with_names(part, graphs));
  if (parts == term->parts) return term;
  auto changed = std::make_shared<Selector::Term>(*term);
  changed->parts = std::move(parts);
  return changed;
}

}  // namespace

bool Selector::Term::matches(const Graph& graph, const Node& node) const {
  const auto holds = [&](const std::shared_ptr<const Term>& part) { return part->matches(graph, node); };
  switch (kind) {
    case Kind::kAnd:
      return std::all_of(parts.begin(), parts.end(), holds);
    case Kind::kOr:
      return std::any_of(parts.begin(), parts.end(), holds);
    case Kind::kNot:
      return !holds(parts[0]);
    case Kind::kGlob:
      return glob.matches(node.name);
    case Kind::kSubstring:
      return contains_nocase(node.name, text);
    case Kind::kExact:
      return node.name == text;
    case Kind::kRegex:
      return regex->occurs_in(node.name);
    case Kind::kCategory:
      return graph.in(node.id, category);
    case Kind::kOp:
      return is_op(*this, node.op);
    case Kind::kDtype:
      return has_dtype(*this, node);
    case Kind::kScope:
      return in_scope(*this, node.scope);
    case Kind::kStack:
      return in_stack(*this, node);
    case Kind::kRank:
      return ranks.contains(graph.rank());
    case Kind::kGraph:
      if (const auto number = parse_int(text)) return *number == graph.id();
      return has_glob ? glob.matches(graph.name()) : equals_nocase(graph.name(), text);
    case Kind::kNodes:
      return nodes->contains(graph, node);
  }
  return false;
}

bool Selector::Term::asks_for_constant(const Graph& graph, const Node& node) const {
  switch (kind) {
    case Kind::kCategory:
      return category == Category::kConstant;
    case Kind::kOp:
      return starts_with_nocase(text, "Const");
    case Kind::kExact:
      return node.name == text;
    case Kind::kNodes:
      return nodes->contains(graph, node);
    default:
      return std::ranges::any_of(parts, [&](const auto& part) { return part->asks_for_constant(graph, node); });
  }
}

// A graph may have a million nodes, and a check dozens of selectors: sets of nodes are combined, and names are compared only where
// nothing else has decided.
void Selector::Term::narrow(const Graph& graph, NodeBits& kept) const {
  switch (kind) {
    case Kind::kAnd:
      for (const bool by_name : {false, true}) {
        for (const auto& part : parts) {
          if (part->compares_names() == by_name) part->narrow(graph, kept);
        }
      }
      return;
    case Kind::kOr: {
      NodeBits found = node_bits(graph), left = kept;
      for (const auto& part : parts) {
        NodeBits more = left;
        part->narrow(graph, more);
        found |= more;
        left -= more;
      }
      kept = std::move(found);
      return;
    }
    case Kind::kNot: {
      NodeBits others = kept;
      parts[0]->narrow(graph, others);
      kept -= others;
      return;
    }
    case Kind::kCategory:
      kept &= graph.members(category);
      return;
    case Kind::kNodes:
      kept &= nodes->nodes_of(graph);
      return;
    case Kind::kOp: {
      const Graph::OpNumbers& ops = graph.op_numbers();
      std::vector<bool> chosen;
      for (const SharedText& op : ops.texts) chosen.push_back(is_op(*this, op));
      keep_if(kept, [&](NodeId id) { return chosen[ops.of[id]]; });
      return;
    }
    case Kind::kRank:
    case Kind::kGraph:  // all or none
      if (!graph.nodes().empty() && !matches(graph, graph.node(0))) kept = node_bits(graph);
      return;
    default:
      keep_if(kept, [&](NodeId id) { return matches(graph, graph.node(id)); });
  }
}

bool Selector::Term::compares_names() const {
  constexpr std::array kOthers = {Kind::kCategory, Kind::kOp, Kind::kNodes, Kind::kRank, Kind::kGraph};
  if (parts.empty()) return std::ranges::find(kOthers, kind) == kOthers.end();
  return std::ranges::any_of(parts, [](const auto& part) { return part->compares_names(); });
}

Result<Selector> Selector::parse(std::string_view text) {
  Result<std::shared_ptr<const Term>> root = parse_selector(text);
  if (!root) return root.status();
  Selector selector;
  // Only the characters that the parser skips; a vertical tab, for instance, can be part of a name.
  constexpr std::string_view kBlanks = " \t\n\r";
  const size_t first = text.find_first_not_of(kBlanks);
  selector.text_ = text.substr(first, text.find_last_not_of(kBlanks) + 1 - first);
  selector.root_ = std::move(*root);
  return selector;
}

Selector Selector::any_of(std::span<const Selector> parts) {
  if (parts.size() == 1) return parts[0];
  Selector selector;
  auto root = std::make_shared<Term>();
  root->kind = Term::Kind::kOr;
  for (const Selector& part : parts) {
    if (part.root_ == nullptr) continue;
    root->parts.push_back(part.root_);
    selector.text_ += (selector.text_.empty() ? "(" : " or (") + part.text_ + ")";
  }
  selector.root_ = std::move(root);
  return selector;
}

Selector Selector::of_nodes(std::span<const NodeRef> nodes, std::span<const GraphPtr> graphs) {
  auto table = std::make_shared<NodeTable>();
  for (const NodeRef& ref : nodes) table->add(ref);
  TextArena arena;
  TextTable<bool> texts;  // each once, in the order of the nodes
  std::string text;
  for (const NodeRef& ref : nodes) {
    const std::string& name = ref.graph->node(ref.node).name;
    text.clear();
    add_exact(text, name);
    bool other_rank = false, other_graph = false;
    for (const GraphPtr& other : graphs) {
      if (other.get() == ref.graph || other->find(name) == nullptr || table->contains(other->rank(), other->id(), name)) continue;
      (other->rank() == ref.graph->rank() ? other_graph : other_rank) = true;
    }
    if (other_rank) text += " and rank:" + std::to_string(ref.graph->rank());
    if (other_graph) text += " and graph:" + std::to_string(ref.graph->id());
    if (texts.find(text) == nullptr) texts.add(arena.add(text));
  }
  Selector selector;
  for (const auto& [each, unused] : texts) {
    if (texts.size() == 1) selector.text_ = each;
    else selector.text_.append(selector.text_.empty() ? "(" : " or (").append(each).append(")");
  }
  auto root = std::make_shared<Term>();
  root->kind = Term::Kind::kNodes;
  root->nodes = std::move(table);
  selector.root_ = std::move(root);
  return selector;
}

Selector Selector::in(std::span<const GraphPtr> graphs) const {
  Selector bound = *this;
  if (root_ != nullptr) bound.root_ = with_names(root_, graphs);
  return bound;
}

bool Selector::matches(const Graph& graph, const Node& node) const {
  return root_ != nullptr && root_->matches(graph, node);
}

bool Selector::asks_for_constant(const Graph& graph, const Node& node) const {
  return root_ != nullptr && root_->asks_for_constant(graph, node);
}

std::vector<NodeRef> Selector::resolve(std::span<const GraphPtr> graphs) const {
  std::vector<NodeRef> out;
  const std::shared_ptr<const Term> root = root_ == nullptr ? nullptr : with_names(root_, graphs);
  if (root == nullptr) return out;
  for (const GraphPtr& graph : graphs) {
    NodeBits nodes = graph->members(Category::kAll);
    root->narrow(*graph, nodes);
    for_each_node(nodes, [&](NodeId id) {
      if (graph->node(id).kind != NodeKind::kOperator) out.push_back({graph.get(), id});
    });
    for (const NodeId id : graph->execution_order()) {
      if (contains(nodes, id)) out.push_back({graph.get(), id});
    }
  }
  return out;
}

}  // namespace msdbg
