// The file of one value: opened by the session, or by another process that was told where it is.
#include <fmt/format.h>

#include "msdbg/bytes.h"
#include "msdbg/located.h"
#include "msdbg/shared.h"
#include "session/dump/container_value.h"
#include "session/dump/device_file.h"
#include "session/dump/dump_session.h"

namespace msdbg {
namespace dump {
namespace {

void append(std::string& text, std::string_view more) {
  if (more.empty()) return;
  if (!text.empty()) text += "; ";
  text += more;
}

void write(ByteWriter& out, const std::optional<Shape>& shape) {
  out.flag(shape.has_value());
  if (shape) msdbg::write(out, *shape);
}

std::optional<Shape> read_optional_shape(ByteReader& in) { return in.flag() ? std::optional(read_shape(in)) : std::nullopt; }

TensorFile open_container(const std::string& path, Slot slot) {
  ContainerValue value = open_container_value(path, slot);
  TensorFile opened;
  opened.content = value.content;
  if (opened.content.problem.ok()) opened.reader = make_container_reader(std::move(value));
  return opened;
}

}  // namespace

std::string_view note_text(Note note) {
  switch (note) {
    case Note::kNone:
      return "";
    case Note::kUncertainNumber:
      return "uncertain pairing: not every kernel of this scope and type was dumped, so the file was given to the node "
             "of equal number, which newer releases do not promise";
    case Note::kSharedName:
      return "uncertain pairing: several nodes of the graph write files of this name";
    case Note::kOtherType:
      return "uncertain pairing: the file's element type is not the node's";
  }
  return "";
}

Status content_problem(FileKind kind, std::string_view format) {
  // What is in a container says itself whether it can be read.
  if (kind == FileKind::kDevice || kind == FileKind::kContainer || is_host_format(format)) return {};
  return Status(Code::kUnsupported, fmt::format("device format {}: its elements are not in the tensor's order", format));
}

std::unique_ptr<ElementReader> open_value(TensorInfo& info, FileKind kind, const FileHints& hints, const OutputType* type) {
  const bool container = kind == FileKind::kDevice || kind == FileKind::kContainer;
  const bool blocked = !container && !is_host_format(info.format);
  TensorFile opened = container ? open_container(info.source, info.id.slot)
                      : blocked ? open_device_file(info.source, info.format, hints, type && type->shape ? &*type->shape : nullptr)
                                : open_tensor_file(info.source, hints);
  auto [content, reader] = std::move(opened);
  info.dtype = content.dtype;
  info.shape = std::move(content.shape);
  info.count = content.count;
  info.bytes = content.bytes;
  append(info.note, content.note);
  info.problem = std::move(content.problem);
  if (!info.problem.ok()) info.availability = Availability::kUnreadable;
  else if (blocked) info.format = info.shape.size() == 4 ? "NCHW" : "ND";
  if (type && info.dtype == DType::kUnknown) info.dtype = type->dtype;
  if (!type || !type->shape) return std::move(reader);
  if (kind == FileKind::kContainer && !is_plain_device_format(info.format)) return std::move(reader);
  // Kernels that only reinterpret memory may record the shape of their input.
  if (*type->shape != info.shape && info.count > 1 && element_count(*type->shape) == info.count) {
    append(info.note,
           fmt::format("the file's header says {}, the graph {}", shape_text(info.shape), shape_text(*type->shape)));
    info.shape = *type->shape;
  }
  return std::move(reader);
}

const OutputType* DumpSession::type_of(const TensorId& id) const {
  const Node& node = graph_data(id.rank, id.graph)->graph->node(id.node);
  const bool output = id.slot.io == Io::kOutput && id.slot.index < node.outputs.size();
  return output ? &node.outputs[id.slot.index] : nullptr;
}

std::string DumpSession::location(const TensorId& id) {
  const Value* value = find(id);
  if (!value || (value->kind != FileKind::kNpy && value->kind != FileKind::kRaw && value->kind != FileKind::kContainer)) return "";
  const OutputType* type = type_of(id);
  ByteWriter out;
  out.text(path_of(*value));
  out.text(data_.formats[value->format]);
  out.byte(static_cast<unsigned>(value->note));
  out.byte(static_cast<unsigned>(value->kind));
  msdbg::write(out, value->dtype);
  write(out, hints_of(*value).shape);
  out.flag(type != nullptr);
  if (type) {
    msdbg::write(out, type->dtype);
    write(out, type->shape);
  }
  return out.take();
}

}  // namespace dump

Result<OpenTensor> open_located(const TensorId& id, std::string_view location) {
  ByteReader in(location);
  TensorInfo info;
  info.id = id;
  info.source = std::string(in.text());
  info.format = std::string(in.text());
  info.note = dump::note_text(static_cast<dump::Note>(in.number(static_cast<uint64_t>(dump::Note::kOtherType))));
  const auto kind = static_cast<dump::FileKind>(in.number(static_cast<uint64_t>(dump::FileKind::kContainer)));
  FileHints hints;
  hints.form = kind == dump::FileKind::kRaw ? FileForm::kRaw : FileForm::kNpy;
  hints.dtype = read_dtype(in);
  hints.shape = dump::read_optional_shape(in);
  std::optional<OutputType> type;
  if (in.flag()) {
    type.emplace().dtype = read_dtype(in);
    type->shape = dump::read_optional_shape(in);
  }
  if (!in.at_end()) return Status(Code::kCorrupt, "the place of a tensor that cannot be read");
  auto reader = dump::open_value(info, kind, hints, type ? &*type : nullptr);
  return OpenTensor(std::move(info), std::move(reader));
}

}  // namespace msdbg
