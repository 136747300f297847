// Wording shared by the text and the page of an origin.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "msdbg/answers.h"

namespace msdbg {

/// `104 of 192 elements are -Inf, none NaN; first at [0,0] [0,4]; all 4 rows are affected (24 to 29 each)`
std::string broken_text(const Origin& origin);
/// `finite, min 0, max 2, 104 zeros at the same places`
std::string input_text(const OriginInput& input);
/// `has no NaN, it is all zero`: for the output of an operator that absorbed bad values.
std::string absorbed_text(const Stats& stats);
/// Flags and axes are inputs too, but their values are irrelevant.
bool worth_showing(const OriginInput& input);

/// Whether the `update` of an origin went into the optimizer: the calls of the optimizer were not recorded, or return nothing.
bool went_in(const Session& session, const TensorId& update);
/// ` in step 1`: when the `update` of an origin ran; ` on rank 2 in step 1` where only that rank tells, which numbers its calls by itself.
std::string update_place(const Origin& origin);

/// The first operator that takes the parameter or constant, of those whose place in the program is known; nullptr without one.
const Node* first_reader(const Graph& graph, NodeId parameter);

/// group_text() behind a blank, in parentheses.
std::string in_group(std::string_view group, bool assumed);
/// `ranks 0-1, 3 got it through AllReduce-op2:output:0 and 7 more (mccl_world_group): 72 tensors each; their losses are finite`, a line
/// for all ranks that it says the same of.
std::vector<std::string> reached_lines(std::span<const RankReached> ranks, const std::function<std::string(const TensorId&)>& name);
Answer reached_answer(const Session& session, std::span<const RankReached> ranks);

}  // namespace msdbg
