// A NodeProto or a ParameterProto as parts of the message: what nodes have in common need not be decoded for each of them. Private to
// the wire module.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "msdbg/wire_fields.h"

namespace msdbg {

/// Texts and encoded messages point into the bytes that were read. Of a field that occurs twice the last one counts.
struct NodeParts {
  std::string_view name, op_type, scope, full_name, source_address;
  std::string_view output_type;  ///< a TypeProto
  bool has_output_type = false;
  std::vector<std::string_view> inputs;  ///< names of the producers
  std::vector<std::string_view> attributes;  ///< AttributeProtos
  std::string_view all_attributes;  ///< the fields of all of them, if they follow one another

  /// False if the bytes are no message.
  bool read(std::span<const std::byte> bytes);
};

struct ParameterParts {
  std::string_view name;
  std::string_view type;  ///< a TypeProto
  bool has_type = false;

  bool read(std::span<const std::byte> bytes);
};

struct AttributeParts {
  std::string_view name;
  std::string_view value;  ///< a ValueProto

  bool read(std::string_view bytes);
};

}  // namespace msdbg
