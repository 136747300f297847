// Converts values and types of the graph messages to our model.
#pragma once

#include <string>
#include <vector>

#include "debug_graph.pb.h"
#include "msdbg/graph.h"

namespace msdbg {

/// The two kinds of files use some data type numbers for different types.
enum class Flavour : uint8_t { kDebugger, kIrpb };

DType element_type(int data_type, Flavour flavour);

/// Output slots of a type: one for a tensor or a scalar, one per leaf of a sequence, none for a monad. `widths` receives the number
/// of leaves of each element of a sequence.
std::vector<OutputType> output_types(const debugger::TypeProto& type, Flavour flavour, std::vector<uint32_t>* widths);

/// Printed form: `5`, `true`, `valid`, `(2, 2)`, `[0.5, 0.5]`; long lists are shortened and show how much was omitted.
std::string value_text(const debugger::ValueProto& value, Flavour flavour);

/// Type and shape of an inline value; empty for a monad.
std::vector<OutputType> value_types(const debugger::ValueProto& value, Flavour flavour);

}  // namespace msdbg
