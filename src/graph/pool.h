// What the nodes of a graph have in common, stored once while it is built. What has other owners is taken to be stored once already.
#pragma once

#include <functional>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "msdbg/graph.h"

namespace msdbg {

class GraphBuilder::Pool {
 public:
  void share(Node& node) {
    share(node.op);
    share(node.scope);
    share(node.constant_value);
    share(node.file_key);
    for (Edge& edge : node.inputs) share(edge.name);
    node.outputs = of(outputs_, std::move(node.outputs));
    if (!node.attributes.empty()) node.attributes = attributes_of(node.attributes);
    if (!node.stack.empty()) node.stack = stack_of(node.stack);
  }
  SharedList<OutputType> share(std::vector<OutputType> outputs) { return of(outputs_, SharedList<OutputType>(std::move(outputs))); }

 private:
  struct Hash {
    static size_t mix(size_t seed, size_t value) { return (seed ^ value) * 0x9e3779b97f4a7c15u; }
    static size_t of(std::string_view text) { return std::hash<std::string_view>()(text); }
    size_t operator()(const SharedText& text) const noexcept { return of(text); }
    size_t operator()(const SharedList<OutputType>& outputs) const noexcept {
      size_t out = outputs.size();
      for (const OutputType& output : outputs) {
        out = mix(out, static_cast<size_t>(output.dtype));
        if (!output.shape) continue;
        for (const int64_t size : *output.shape) out = mix(out, static_cast<size_t>(size));
      }
      return out;
    }
    size_t operator()(const SharedList<Attribute>& attributes) const noexcept {
      size_t out = attributes.size();
      for (const Attribute& attribute : attributes) out = mix(mix(out, of(attribute.name)), of(attribute.value));
      return out;
    }
    size_t operator()(const SharedList<StackFrame>& stack) const noexcept {
      size_t out = stack.size();
      for (const StackFrame& frame : stack) out = mix(mix(mix(out, of(frame.file)), of(frame.code)), static_cast<size_t>(frame.line));
      return out;
    }
  };
  template <typename T>
  using Set = std::unordered_set<T, Hash>;

  template <typename T>
  static T of(Set<T>& known, T item) {
    return item.empty() || item.has_other_owners() ? item : *known.insert(std::move(item)).first;
  }
  void share(SharedText& text) { text = of(texts_, std::move(text)); }
  SharedList<Attribute> attributes_of(const SharedList<Attribute>& given) {
    if (given.has_other_owners()) return given;
    if (const auto known = attributes_.find(given); known != attributes_.end()) return *known;
    std::vector<Attribute> attributes = given.get();
    for (Attribute& attribute : attributes) {
      share(attribute.name);
      share(attribute.value);
    }
    return of(attributes_, SharedList<Attribute>(std::move(attributes)));
  }
  SharedList<StackFrame> stack_of(const SharedList<StackFrame>& given) {
    if (given.has_other_owners()) return given;
    if (const auto known = stacks_.find(given); known != stacks_.end()) return *known;
    std::vector<StackFrame> stack = given.get();
    for (StackFrame& frame : stack) {
      share(frame.file);
      share(frame.code);
    }
    return of(stacks_, SharedList<StackFrame>(std::move(stack)));
  }

  Set<SharedText> texts_;
  Set<SharedList<OutputType>> outputs_;
  Set<SharedList<Attribute>> attributes_;
  Set<SharedList<StackFrame>> stacks_;
};

}  // namespace msdbg
