// The tensor object: fields, statistics, elements. Searching and counting are in bind_tensor_numbers.cpp; views, and predicates
// that are Lua functions, are in scripts/msdbg/tensor.lua.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "msdbg/atomic_file.h"
#include "script/objects.h"

namespace msdbg::script {
namespace {

// ---- fields --------------------------------------------------------------------------------------------------------

int get_dtype(lua_State* L) { return give(L, dtype_name(self<TensorBox>(L).info.dtype)); }
int get_shape(lua_State* L) { return push_shape(L, self<TensorBox>(L).info.shape), 1; }
int get_size(lua_State* L) { return give(L, self<TensorBox>(L).info.count); }
int get_bytes(lua_State* L) { return give(L, self<TensorBox>(L).info.bytes); }
int get_tensor_step(lua_State* L) { return give(L, self<TensorBox>(L).info.id.step); }
int get_tensor_rank(lua_State* L) { return give(L, self<TensorBox>(L).info.id.rank); }
int get_slot(lua_State* L) { return give(L, slot_name(self<TensorBox>(L).info.id.slot)); }
int get_execution(lua_State* L) { return give(L, self<TensorBox>(L).info.id.execution); }
int get_tensor_name(lua_State* L) { return give(L, self<TensorBox>(L).name); }
int get_source(lua_State* L) { return give(L, self<TensorBox>(L).info.source); }

int get_note(lua_State* L) { return give(L, text_or_nil(self<TensorBox>(L).info.note)); }
int get_problem(lua_State* L) {
  const Status& problem = self<TensorBox>(L).info.problem;
  return give(L, problem.ok() ? std::nullopt : std::optional(problem.message()));
}

int get_tensor_node(lua_State* L) {
  const TensorBox& tensor = current_tensor(L);
  const Session& session = tensor.session->open();
  const Graph* graph = session.graph(tensor.info.id.rank, tensor.info.id.graph);
  push_node(L, tensor.session, graph_pointer(*tensor.session, graph), tensor.info.id.node);
  return 1;
}

int get_stats(lua_State* L) {
  TensorBox& tensor = current_tensor(L);
  push_stats(L, stats_of(tensor), tensor.info.shape);
  return 1;
}

// ---- elements ------------------------------------------------------------------------------------------------------

constexpr uint64_t kSmallBytes = 1 << 20;  ///< read completely for a single element: the next one will probably be read, too
constexpr int kFewElements = 64;           ///< read one by one from a larger tensor

TensorPtr elements_of(TensorBox& tensor) { return tensor.session->elements(tensor); }

// The flat index of the coordinates from argument 2 on.
uint64_t coordinates_argument(lua_State* L, const Shape& shape) {
  const int given = lua_gettop(L) - 1;
  if (static_cast<size_t>(given) != shape.size()) {
    misuse(fmt::format("at: {} coordinate{} expected for shape {}, {} given", shape.size(),
                       shape.size() == 1 ? "" : "s", shape_text(shape), given));
  }
  uint64_t flat = 0;
  for (int axis = 0; axis < given; ++axis) {
    const int64_t i = integer_argument(L, axis + 2, fmt::format("at: coordinate {}", axis + 1));
    const int64_t length = shape[static_cast<size_t>(axis)];
    if (i < 0 || i >= length)
      misuse(fmt::format("at: coordinate {}: {} is outside 0 to {}", axis + 1, i, length - 1));
    flat = flat * static_cast<uint64_t>(length) + static_cast<uint64_t>(i);
  }
  return flat;
}

int at(lua_State* L) {
  TensorBox& tensor = current_tensor(L);
  TensorPtr whole = tensor.session->cached_elements(tensor);
  if (!whole && (tensor.info.bytes <= kSmallBytes || ++tensor.single_reads > kFewElements)) whole = elements_of(tensor);
  // Use the shape of the elements, even if the tensor was described differently before.
  if (whole) return give(L, whole->view().at(coordinates_argument(L, whole->shape())));
  const OpenTensor opened = value_or_throw(tensor.session->open().open_elements(tensor.info.id));
  std::array<std::byte, 16> element;
  const auto bytes = std::span(element).first(item_size(opened.info.dtype));
  const Status status = opened.reader->read(coordinates_argument(L, opened.info.shape), bytes);
  if (!status.ok()) throw ScriptError(status);
  return give(L, element_as_double(opened.info.dtype, element.data()));
}

int slice_tensor(lua_State* L) {
  TensorBox& tensor = current_tensor(L);
  const std::string text = text_argument(L, 2, "slice: text");
  auto part = std::make_shared<TensorBox>();
  if (const TensorPtr whole = tensor.session->cached_elements(tensor)) {
    part->memory = value_or_throw(slice(whole->view(), text));
  } else {
    const OpenTensor opened = value_or_throw(tensor.session->open().open_elements(tensor.info.id));
    part->memory = value_or_throw(slice(opened.info.dtype, opened.info.shape, text, [&](uint64_t first, std::span<std::byte> out) {
      if (interrupt_requested()) return Status(Code::kInterrupted, "slice: interrupted");
      return opened.reader->read(first, out);
    }));
  }
  part->session = tensor.session;
  part->info = tensor.info;
  part->info.dtype = part->memory->dtype();
  part->info.shape = part->memory->shape();
  part->info.count = part->memory->count();
  part->info.bytes = part->memory->bytes().size();
  part->name = fmt::format("{}[{}]", tensor.name, text);
  push_object(L, std::move(part));
  return 1;
}

// core.view_memory(tensor) -> handle, address of its msdbg_view, actual type and shape. The handle owns the elements.
int view_memory(lua_State* L) {
  const auto tensor = object_argument<TensorBox>(L, 1, "view: tensor");
  renumber(*tensor);
  const TensorPtr elements = elements_of(*tensor);
  Vm& vm = vm_of(L);
  const uint64_t bytes = elements->bytes().size(), limit = tensor->session->defaults.mem_limit_bytes;
  // The collector sees only a few bytes of a large view: collect before giving up.
  if (vm.view_bytes + bytes > limit) lua_gc(L, LUA_GCCOLLECT, 0), lua_gc(L, LUA_GCCOLLECT, 0);
  if (vm.view_bytes + bytes > limit) {
    throw ScriptError(
        "out_of_memory",
        fmt::format("view: live views hold {} already, {} more exceed the limit of {}; drop a view or raise mem_limit",
                    format_bytes(vm.view_bytes), format_bytes(bytes), format_bytes(limit)),
        true);
  }
  auto box = std::make_shared<ViewBox>();
  box->vm = &vm;
  box->buffer = elements;
  vm.view_bytes += bytes;
  box->view = {elements->bytes().data(), static_cast<double>(elements->count()),
               static_cast<int32_t>(elements->dtype()), static_cast<int32_t>(elements->shape().size()),
               elements->shape().data()};
  msdbg_view* address = &box->view;
  push_object(L, std::move(box));
  lua_pushlightuserdata(L, address);
  push(L, dtype_name(elements->dtype()));
  push_shape(L, elements->shape());
  return 4;
}

int release(lua_State* L) {
  TensorBox& tensor = current_tensor(L);
  if (!tensor.memory) tensor.session->forget(tensor.info.id);
  return 0;
}

// Writes the whole file or nothing, block by block.
Status save_npy(const std::string& path, const OpenTensor& tensor) {
  Result<AtomicFile> file = AtomicFile::create(path);
  if (!file) return file.status();
  const auto& [info, reader] = tensor;
  if (Status status = file->append(npy_head(info.dtype, info.shape)); !status.ok()) return status;
  std::vector<std::byte> block;
  for (uint64_t first = 0; first < info.count; first += kPollEvery) {
    if (interrupt_requested()) return {Code::kInterrupted, "interrupted; nothing was written"};
    const uint64_t n = std::min(kPollEvery, info.count - first);
    block.resize(n * item_size(info.dtype));
    if (Status status = reader->read(first, block); !status.ok()) return status;
    if (Status status = file->append(npy_elements({info.dtype, {}, block.data(), n})); !status.ok()) return status;
  }
  return file->commit();
}

int save(lua_State* L) {
  TensorBox& tensor = current_tensor(L);
  const std::string path = text_argument(L, 2, "save: path");
  const TensorPtr whole = tensor.session->cached_elements(tensor);
  const OpenTensor opened = whole ? OpenTensor::in_memory({}, whole) : value_or_throw(tensor.session->open().open_elements(tensor.info.id));
  if (!opened.reader) throw ScriptError(opened.info.elements());
  if (const Status status = save_npy(path, opened); !status.ok()) throw ScriptError(Status(status.code(), "save: " + status.message()));
  return 0;
}

// ---- the same tensor, another step ---------------------------------------------------------------------------------

int previous(lua_State* L) {
  TensorBox& tensor = current_tensor(L);
  Session& session = tensor.session->open();
  if (tensor.memory) misuse(fmt::format("previous: {} exists only in memory", printable(tensor.name)));
  bool history_missing = false;
  const auto id = session.previous(tensor.info.id, &history_missing);
  if (!id) return push_absence(L, id.status());
  return push_tensor(L, tensor.session, *id);
}

int operand(lua_State* L) {
  const TensorBox& tensor = current_tensor(L);
  const auto index = static_cast<uint32_t>(integer_argument(L, 2, "operand: input", 0, 0, UINT32_MAX));
  const auto id = operand_of(tensor.session->open(), tensor.info.id, index);
  if (!id) return lua_pushnil(L), 1;
  return push_tensor(L, tensor.session, *id);
}

// mean |x - p| / (epsilon + mean |p|), as the change conditions define it.
int change_ratio(lua_State* L) {
  constexpr double kEpsilon = 1e-9;
  TensorBox& tensor = current_tensor(L);
  const auto other = object_argument<TensorBox>(L, 2, "change_ratio: other tensor");
  renumber(*other);
  if (tensor.info.count != other->info.count) {
    misuse(fmt::format("change_ratio: {} has {} elements, {} has {}", printable(tensor.name), tensor.info.count, printable(other->name),
                       other->info.count));
  }
  StatsRequest request;
  request.change = true;
  Stats stats;
  if (!tensor.memory && !other->memory && tensor.session == other->session) {
    stats = value_or_throw(tensor.session->open().stats(tensor.info.id, other->info.id, request));
  } else {
    const TensorPtr now = elements_of(tensor), before = elements_of(*other);
    for (const TensorPtr& each : {now, before}) {
      if (!is_evaluable(each->dtype()))
        throw ScriptError("unsupported",
                          fmt::format("change_ratio: elements of type {} have no number", dtype_name(each->dtype())),
                          true);
    }
    stats = compute_stats(now->view(), before->view(), request);
  }
  if (std::isnan(stats.diff_abs_mean)) return lua_pushnil(L), 1;
  return give(L, stats.diff_abs_mean / (kEpsilon + stats.prev_abs_mean));
}

int tensor_text(lua_State* L) {
  const TensorBox& tensor = self<TensorBox>(L);
  const TensorId& id = tensor.info.id;
  std::string name = tensor.name, rank;
  if (tensor.session->session) {
    if (tensor.session->session->ranks().size() > 1) rank = fmt::format(" rank {}", id.rank);
    // Short, but still a name that can be typed; a slice keeps its suffix.
    const std::string full = tensor.session->session->tensor_name(id);
    name = short_name(*tensor.session->session, id);
    const std::string slot = ":" + slot_name(id.slot);
    if (!name.ends_with(slot)) name += slot;
    if (tensor.name.starts_with(full)) name += tensor.name.substr(full.size());
  }
  push(L, fmt::format("<tensor {} {}{}{} step {}{}>", printable(name), dtype_name(tensor.info.dtype),
                           shape_text(tensor.info.shape), rank, id.step,
                           id.execution > 0 ? fmt::format(" execution {}", id.execution) : ""));
  return 1;
}

constexpr Member kTensorMethods[] = {
    {"at", guard<at>},     {"slice", guard<slice_tensor>}, {"release", guard<release>},
    {"save", guard<save>}, {"previous", guard<previous>},  {"operand", guard<operand>},
    {"change_ratio", guard<change_ratio>}};
constexpr Member kTensorFields[] = {
    {"dtype", guard<get_dtype>}, {"shape", guard<get_shape>},         {"size", guard<get_size>},
    {"bytes", guard<get_bytes>}, {"step", guard<get_tensor_step>},           {"rank", guard<get_tensor_rank>},
    {"slot", guard<get_slot>},   {"execution", guard<get_execution>}, {"name", guard<get_tensor_name>},
    {"node", guard<get_tensor_node>},   {"stats", guard<get_stats>},         {"source", guard<get_source>},
    {"note", guard<get_note>},   {"problem", guard<get_problem>}};
constexpr Member kTensorMeta[] = {{"__tostring", guard<tensor_text>}};

}  // namespace

void renumber(TensorBox& tensor) { (void)tensor.session->renumber(tensor.graph, tensor.info.id.node); }

TensorBox& current_tensor(lua_State* L) {
  TensorBox& tensor = self<TensorBox>(L);
  renumber(tensor);
  return tensor;
}

std::optional<TensorId> operand_of(Session& session, const TensorId& tensor, uint32_t index) {
  const Graph* graph = session.graph(tensor.rank, tensor.graph);
  TensorId id = tensor;
  id.slot = {Io::kInput, index};
  if (index >= graph->node(id.node).inputs.size() && graph->from_file()) return std::nullopt;
  // Of a loop, only the first execution is sure to have taken what the producer gave first.
  if (id.execution == 0 && graph->from_file() && !session.exists(id)) {
    const Edge from = graph->effective_producer(id.node, index);
    if (from.node != kNoNode) {
      id.node = from.node;
      id.slot = {Io::kOutput, from.slot};
    }
  }
  return id;
}

const Stats& stats_of(TensorBox& tensor) {
  // A value of a live session's current step may change at the next suspension; older ones are final.
  const SessionBox& session = *tensor.session;
  if (session.live != nullptr && !tensor.memory && tensor.suspension != session.suspension &&
      tensor.info.id.step == session.live->current_step()) {
    tensor.stats.reset();
    tensor.suspension = session.suspension;
  }
  if (!tensor.stats) {
    if (tensor.memory) {
      if (!is_evaluable(tensor.memory->dtype())) {
        throw ScriptError(
            "unsupported",
            fmt::format("{}: elements of type {} have no statistics", printable(tensor.name), dtype_name(tensor.memory->dtype())),
            true);
      }
      tensor.stats = compute_stats(tensor.memory->view());
    } else {
      tensor.stats = value_or_throw(tensor.session->open().stats(tensor.info.id));
    }
  }
  return *tensor.stats;
}

int push_tensor(lua_State* L, const std::shared_ptr<SessionBox>& session, const TensorId& id) {
  Session& open = session->open();
  auto info = open.describe(id);
  if (!info) return push_absence(L, info.status());
  auto tensor = std::make_shared<TensorBox>();
  tensor->session = session;
  tensor->info = std::move(*info);
  tensor->name = open.tensor_name(id);
  tensor->suspension = session->suspension;
  if (session->live != nullptr) tensor->graph = graph_pointer(*session, open.graph(id.rank, id.graph));
  push_object(L, std::move(tensor));
  return 1;
}

void push_shape(lua_State* L, std::span<const int64_t> shape) {
  push(L, shape);
  set_result_class(L, "list");
}

void push_coordinates(lua_State* L, uint64_t flat, std::span<const int64_t> shape) {
  push_shape(L, coordinates(flat, shape));
}

void push_stats(lua_State* L, const Stats& stats, std::span<const int64_t> shape) {
  lua_createtable(L, 0, 16);  // a seventeenth field would double it
  const auto put = [&](uint32_t field, const char* key, double value) {
    if (stats.knows(field) && !std::isnan(value)) set_field(L, key, value);
  };
  const auto count = [&](uint32_t field, const char* key, uint64_t value) {
    put(field, key, static_cast<double>(value));
  };
  count(kStatCount, "count", stats.count);
  put(kStatMin, "min", stats.min);
  put(kStatMax, "max", stats.max);
  put(kStatMean, "mean", stats.mean);
  put(kStatAbsMean, "abs_mean", stats.abs_mean);
  put(kStatStd, "std", stats.std);
  if (stats.count == 0 || stats.finite_count() > 0) put(kStatL2Norm, "l2_norm", stats.l2_norm);  // an empty tensor has no norm
  count(kStatNan, "nan_count", stats.nan_count);
  count(kStatPosInf, "pos_inf_count", stats.pos_inf_count);
  count(kStatNegInf, "neg_inf_count", stats.neg_inf_count);
  count(kStatZero, "zero_count", stats.zero_count);
  count(kStatPos, "pos_count", stats.pos_count);
  count(kStatNeg, "neg_count", stats.neg_count);
  put(kStatZero | kStatCount, "zero_percentage", stats.zero_percentage());
  count(kStatDtypeMax, "dtype_max_count", stats.dtype_max_count);
  if (stats.knows(kStatFirstBad) && stats.first_bad) {
    push_coordinates(L, *stats.first_bad, shape);
    lua_setfield(L, -2, "first_bad");
  }
  set_result_class(L, "stats");
}

void bind_tensor(lua_State* L) {
  define_class<TensorBox>(L, {.methods = kTensorMethods, .fields = kTensorFields, .meta = kTensorMeta});
  define_class<ViewBox>(L, {});
  add_functions(L, {{"view_memory", guard<view_memory>}});
}

}  // namespace msdbg::script
