// Operations on a bit for each node of a graph.
#pragma once

#include <bit>

#include "msdbg/graph.h"

namespace msdbg {

/// None of the nodes.
inline NodeBits node_bits(const Graph& graph) { return NodeBits((graph.nodes().size() + 63) / 64); }

inline void add(NodeBits& bits, NodeId id) { bits[id / 64] |= uint64_t{1} << (id % 64); }
inline bool contains(const NodeBits& bits, NodeId id) { return (bits[id / 64] >> (id % 64) & 1) != 0; }

inline NodeBits& operator&=(NodeBits& bits, const NodeBits& other) {
  for (size_t i = 0; i < bits.size(); ++i) bits[i] &= other[i];
  return bits;
}
inline NodeBits& operator|=(NodeBits& bits, const NodeBits& other) {
  for (size_t i = 0; i < bits.size(); ++i) bits[i] |= other[i];
  return bits;
}
inline NodeBits& operator-=(NodeBits& bits, const NodeBits& other) {
  for (size_t i = 0; i < bits.size(); ++i) bits[i] &= ~other[i];
  return bits;
}

/// Keeps those for which `holds`.
template <typename Holds>
void keep_if(NodeBits& bits, Holds holds) {
  for (size_t i = 0; i < bits.size(); ++i) {
    for (uint64_t left = bits[i]; left != 0; left &= left - 1) {
      const auto bit = static_cast<unsigned>(std::countr_zero(left));
      if (!holds(static_cast<NodeId>(64 * i + bit))) bits[i] &= ~(uint64_t{1} << bit);
    }
  }
}

template <typename Take>
void for_each_node(const NodeBits& bits, Take take) {
  for (size_t i = 0; i < bits.size(); ++i) {
    for (uint64_t left = bits[i]; left != 0; left &= left - 1) take(static_cast<NodeId>(64 * i + static_cast<unsigned>(std::countr_zero(left))));
  }
}

}  // namespace msdbg
