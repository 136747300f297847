// Finds a node by name, and suggests names if nothing matches.
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "graph/selector_term.h"
#include "msdbg/graph.h"
#include "msdbg/short_names.h"

namespace msdbg {
namespace {

using Graphs = std::span<const GraphPtr>;

bool is_suffix(std::string_view name, std::string_view suffix) {
  return name.ends_with(suffix) && (name.size() == suffix.size() || name[name.size() - suffix.size() - 1] == '/');
}

template <typename Visit>
void each_named(Graphs graphs, const Visit& visit) {
  for (const GraphPtr& graph : graphs) {
    for (const Node& node : graph->nodes()) {
      if (!is_structural(node.op)) visit(*graph, node);
    }
  }
}

// The node with that name, or those whose names end in it, each name once.
std::vector<NodeRef> nodes_named(Graphs graphs, std::string_view word) {
  for (const GraphPtr& graph : graphs) {
    if (const Node* node = graph->find(word)) return {NodeRef{graph.get(), node->id}};
  }
  std::vector<NodeRef> found;
  std::unordered_set<std::string_view> seen;
  for (const bool structural : {false, true}) {
    if (word.empty() || !found.empty()) break;  // Depend, Load and similar operators only if nothing else matches
    for (const GraphPtr& graph : graphs) {
      for (const Node& node : graph->nodes()) {
        if (is_structural(node.op) != structural || !(is_suffix(node.name, word) || is_elided_form(word, node.name))) continue;
        if (seen.insert(node.name).second) found.push_back({graph.get(), node.id});
      }
    }
  }
  return found;
}

// The digits after `-op` are removed: without numbers, even a large graph has few distinct words.
std::string_view without_number(std::string_view component) {
  const size_t mark = component.rfind("-op");
  if (mark == std::string_view::npos || mark + 3 == component.size()) return component;
  const std::string_view digits = component.substr(mark + 3);
  return digits.find_first_not_of("0123456789") == std::string_view::npos ? component.substr(0, mark + 3) : component;
}

// Names of nodes with a component that resembles the last one of `word`, nearest first.
std::vector<std::string> nearest_nodes(Graphs graphs, std::string_view word, size_t limit) {
  if (const size_t slash = word.rfind('/'); slash != std::string_view::npos) word = word.substr(slash + 1);
  std::unordered_map<std::string_view, size_t> index;  // component without number -> index in `words`
  std::vector<std::string> words;
  std::vector<std::vector<const Node*>> holders;
  each_named(graphs, [&](const Graph&, const Node& node) {
    std::string_view rest = node.name;
    while (!rest.empty()) {
      const size_t slash = rest.find('/');
      const std::string_view key = without_number(rest.substr(0, slash));
      const auto [entry, added] = index.try_emplace(key, words.size());
      if (added) {
        words.emplace_back(key);
        holders.emplace_back();
      }
      if (holders[entry->second].size() < 4 * limit) holders[entry->second].push_back(&node);
      rest = slash == std::string_view::npos ? std::string_view() : rest.substr(slash + 1);
    }
  });
  const std::vector<std::string> close = nearest(without_number(word), words, limit);
  std::vector<std::string> names;
  const auto take = [&](const Node* node) {
    const bool fresh = names.size() < limit && std::find(names.begin(), names.end(), node->name) == names.end();
    if (fresh) names.push_back(node->name);
    return fresh;
  };
  std::vector<std::vector<const Node*>> rows;
  for (const std::string& key : close) {
    std::vector<const Node*>& nodes = rows.emplace_back(holders[index.at(key)]);
    // Names with the number that was typed come first.
    std::stable_partition(nodes.begin(), nodes.end(), [&](const Node* node) { return node->last_component() == word; });
  }
  // The word itself, under other scopes or with other numbers, is better than a similar word; similar words take turns.
  if (!rows.empty() && to_lower(close[0]) == to_lower(without_number(word))) {
    for (const Node* node : rows[0]) take(node);
  }
  for (size_t turn = 0; turn < limit; ++turn) {
    for (const auto& nodes : rows) {
      for (const Node* node : nodes) {
        if (take(node)) break;
      }
    }
  }
  return names;
}

std::string join_nearest(Graphs graphs, std::string_view word) {
  std::string out;
  ShortNames names(graphs);
  for (const std::string& name : nearest_nodes(graphs, word, 3)) {
    out += (out.empty() ? "" : ", ") + printable(names.of(name));
  }
  return out;
}

std::string available(Graphs graphs) {
  std::vector<std::string> seen;
  for (const GraphPtr& graph : graphs) {
    std::string text = fmt::format("rank {} graph {}", graph->rank(), graph->id());
    if (std::find(seen.begin(), seen.end(), text) == seen.end()) seen.push_back(std::move(text));
  }
  if (seen.empty()) return "there is no graph";
  std::string out = "have ";
  for (size_t i = 0; i < std::min<size_t>(seen.size(), 5); ++i) out += (i > 0 ? ", " : "") + seen[i];
  return seen.size() > 5 ? fmt::format("{} and {} more", out, seen.size() - 5) : out;
}

// Examples of names, for a word that resembles no name.
std::string examples(Graphs graphs) {
  constexpr size_t kShown = 3;
  std::string out;
  size_t count = 0;
  ShortNames names(graphs);
  std::unordered_set<std::string_view> ops;
  each_named(graphs, [&](const Graph&, const Node& node) {
    ++count;
    // One of each type: three MatMul would be less informative.
    if (ops.size() < kShown && ops.insert(node.op).second) out += (out.empty() ? "" : ", ") + printable(names.of(node.name));
  });
  if (count == 0) return available(graphs);
  return fmt::format("{} {} node{}, {}{}", graphs.size() == 1 ? "the graph has" : "the graphs together have", count, count == 1 ? "" : "s",
                     count > kShown ? "e.g. " : "", out);
}

// The first term outside a `not` that matches nothing by itself: probably the one to correct.
const Selector::Term* first_empty_term(const Selector::Term& term, Graphs graphs) {
  using Kind = Selector::Term::Kind;
  if (term.kind == Kind::kNot) return nullptr;
  for (const auto& part : term.parts) {
    if (const auto* found = first_empty_term(*part, graphs)) return found;
  }
  if (!term.parts.empty()) return nullptr;
  for (const GraphPtr& graph : graphs) {
    for (const Node& node : graph->nodes()) {
      if (term.matches(*graph, node)) return nullptr;
    }
  }
  return &term;
}

// The longest piece of a pattern without glob characters and slashes is the best clue to the intended name.
std::string longest_piece(std::string_view pattern) {
  std::string best;
  while (!pattern.empty()) {
    const size_t end = std::min(pattern.find_first_of("*?/"), pattern.size());
    if (end >= best.size() && end > 0) best = pattern.substr(0, end);
    pattern.remove_prefix(std::min(end + 1, pattern.size()));
  }
  return best;
}

std::string nearest_of(const std::set<std::string>& known, std::string_view word, std::string_view prefix) {
  const std::vector<std::string> words(known.begin(), known.end());
  std::string out;
  for (const std::string& close : nearest(word, words, 3))
    out += (out.empty() ? "" : ", ") + std::string(prefix) + printable(close);
  return out;
}

// A replacement for a term that matches nothing; may be empty.
std::string suggestion(const Selector::Term& term, Graphs graphs) {
  using Kind = Selector::Term::Kind;
  std::string close;
  std::set<std::string> known;
  switch (term.kind) {
    case Kind::kRank:
    case Kind::kGraph:
      return available(graphs);
    case Kind::kOp:
      each_named(graphs, [&](const Graph&, const Node& node) { known.insert(node.op); });
      close = nearest_of(known, longest_piece(term.text), "op:");
      break;
    case Kind::kStack:
      each_named(graphs, [&](const Graph&, const Node& node) {
        for (const StackFrame& frame : node.stack) known.insert(frame.file->substr(frame.file->rfind('/') + 1));
      });
      if (known.empty()) return "the graphs hold no source lines";
      if (term.line != 0 && known.contains(term.text.substr(term.text.rfind('/') + 1))) {
        return fmt::format("no node comes from line {}; try stack:{}", term.line, printable(term.text));
      }
      close = nearest_of(known, longest_piece(term.text), "stack:");
      break;
    case Kind::kGlob: {
      // A glob matches the whole name; the usual mistake is to omit the scopes.
      const auto deeper = Selector::parse("\"**/" + term.text + "\"");
      if (deeper && !deeper->resolve(graphs).empty()) {
        return fmt::format("a glob means the full name, try '**/{}'", printable(term.text));
      }
      close = join_nearest(graphs, longest_piece(term.text));
      break;
    }
    case Kind::kScope:
      each_named(graphs, [&](const Graph&, const Node& node) { known.insert(node.scope); });
      close = nearest_of(known, longest_piece(term.text.substr(term.text.rfind('/') + 1)), "scope:");
      break;
    case Kind::kExact:
    case Kind::kSubstring:
      close = join_nearest(graphs, term.text);
      break;
    default:
      break;
  }
  return close.empty() ? close : "nearest: " + close;
}

}  // namespace

std::string_view without_mark(std::string_view name) {
  for (const std::string_view mark : {std::string_view(".../"), std::string_view("\u2026/")}) {
    if (name.starts_with(mark)) return name.substr(mark.size());
  }
  return name;
}

const std::string* named_node(Graphs graphs, std::string_view word) {
  const std::vector<NodeRef> found = nodes_named(graphs, word);
  return found.size() == 1 ? &found[0].graph->node(found[0].node).name : nullptr;
}

Result<std::vector<NodeRef>> resolve_or_explain(const Selector& selector, Graphs graphs) {
  std::vector<NodeRef> nodes = selector.resolve(graphs);
  if (!nodes.empty()) return nodes;
  const std::string message = fmt::format("selector '{}' matches no node", printable(selector.text()));
  if (graphs.empty()) return Status(Code::kNotFound, message + "; there is no graph to look in");
  const Result<std::shared_ptr<const Selector::Term>> root = parse_selector(selector.text());
  if (!root) return Status(Code::kNotFound, message + "; it is empty");
  const Selector::Term* empty = first_empty_term(**root, graphs);
  if (empty == nullptr) {
    return Status(Code::kNotFound, message + "; each of its terms matches some, but no node fits them together");
  }
  const std::string hint = suggestion(*empty, graphs);
  return Status(Code::kNotFound, message + "; " + (hint.empty() ? "@all lists every node" : hint));
}

Result<NodeRef> find_node(Graphs graphs, std::string_view name, std::optional<int> rank, std::optional<int> graph_id) {
  std::vector<GraphPtr> picked;
  for (const GraphPtr& graph : graphs) {
    if ((!rank || graph->rank() == *rank) && (!graph_id || graph->id() == *graph_id)) picked.push_back(graph);
  }
  if (picked.empty()) {
    std::string wanted;
    if (rank) wanted += fmt::format(" of rank {}", *rank);
    if (graph_id) wanted += fmt::format(" with id {}", *graph_id);
    return Status(Code::kNotFound,
                  fmt::format("no graph{} to look for node '{}'; {}", wanted, printable(name), available(graphs)));
  }
  const std::string_view word = without_mark(name);
  std::vector<NodeRef> candidates = nodes_named(picked, word);
  // Names may contain colons: try to split off the slot last.
  for (size_t colon = word.find(':'); candidates.empty() && colon != std::string_view::npos; colon = word.find(':', colon + 1)) {
    if (parse_slot(word.substr(colon + 1))) candidates = nodes_named(picked, word.substr(0, colon));
  }
  if (candidates.size() == 1) return candidates[0];
  if (candidates.size() > 1) {
    constexpr size_t kListed = 5;
    ShortNames names(picked);
    std::string list;
    for (size_t i = 0; i < std::min(candidates.size(), kListed); ++i) {
      list += (i > 0 ? ", " : "") + printable(names.of(candidates[i].graph->node(candidates[i].node).name));
    }
    if (candidates.size() > kListed) list += fmt::format(" and {} more", candidates.size() - kListed);
    return Status(Code::kInvalidArgument,
                  fmt::format("'{}' could be any of {} nodes: {}", printable(name), candidates.size(), list));
  }
  const std::string close = join_nearest(picked, name);
  return Status(Code::kNotFound, close.empty()
                                     ? fmt::format("no node '{}', and none with a name like it; {}", printable(name), examples(picked))
                                     : fmt::format("no node '{}'; nearest: {}", printable(name), close));
}

}  // namespace msdbg
