#include "wire/node_parts.h"

namespace msdbg {
namespace {

std::string_view text_of(std::span<const std::byte> bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

/// Calls `take(number, contents, field)` for each field with bytes. False if they are no message.
template <typename Take>
bool each_text(std::span<const std::byte> bytes, Take take) {
  WireReader reader(bytes);
  WireField field;
  while (reader.next(field)) {
    if (field.type == WireType::kBytes) take(field.number, text_of(reader.bytes(field)), field);
  }
  return reader.status().ok();
}

std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text.data(), text.size())); }

}  // namespace

bool NodeParts::read(std::span<const std::byte> bytes) {
  name = op_type = scope = full_name = source_address = output_type = all_attributes = {};
  has_output_type = false;
  inputs.clear();
  attributes.clear();
  bool inputs_are_messages = true;
  uint64_t first = 0, last = 0;  // of the attributes
  bool together = true;
  const bool whole = each_text(bytes, [&](uint32_t number, std::string_view contents, const WireField& field) {
    switch (number) {
      case 1: {
        std::string_view& input = inputs.emplace_back();
        inputs_are_messages = each_text(bytes_of(contents), [&](uint32_t part, std::string_view text, const WireField&) {
          if (part == 1) input = text;
        }) && inputs_are_messages;
        break;
      }
      case 2:
        name = contents;
        break;
      case 3:
        op_type = contents;
        break;
      case 4:
        scope = contents;
        break;
      case 5:
        if (attributes.empty()) first = last = field.offset;
        together = together && field.offset == last;
        last = field.start + field.size;
        attributes.push_back(contents);
        break;
      case 6:
        output_type = contents;
        has_output_type = true;
        break;
      case 8:
        full_name = contents;
        break;
      case 9:
        source_address = contents;
        break;
      default:
        break;
    }
  });
  if (together) all_attributes = text_of(bytes.subspan(first, last - first));
  return whole && inputs_are_messages;
}

bool ParameterParts::read(std::span<const std::byte> bytes) {
  *this = {};
  return each_text(bytes, [&](uint32_t number, std::string_view contents, const WireField&) {
    if (number == 1) name = contents;
    if (number != 2) return;
    type = contents;
    has_type = true;
  });
}

bool AttributeParts::read(std::string_view bytes) {
  *this = {};
  return each_text(bytes_of(bytes), [&](uint32_t number, std::string_view contents, const WireField&) {
    if (number == 1) name = contents;
    if (number == 2) value = contents;
  });
}

}  // namespace msdbg
