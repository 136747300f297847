// The C interface: what is wanted, values that do not stay in place, descriptions that change.
#include "agent/c_handles.h"
#include "agent/tensor_store.h"

using namespace msdbg::agent;
using namespace msdbg::agent::c;
using msdbg::Code;
using msdbg::DType;
using msdbg::Result;
using msdbg::Shape;
using msdbg::Status;

namespace {

struct Layout {
  std::optional<DType> dtype;  ///< nullopt: as described
  Shape shape;
};

/// Error: a type that is not known, or a shape that is none.
Result<Layout> layout_of(const char* dtype_name, const int64_t* shape, size_t rank) {
  const std::optional<DType> type = optional_dtype(dtype_name);
  std::optional<Shape> known = shape_of(shape, rank);
  if (!known) return wrong_shape(rank);
  if (!type || *type != DType::kUnknown) return Layout{type, std::move(*known)};
  return Status(Code::kInvalidArgument, "type '" + msdbg::printable(text(dtype_name)) + "' is not known: use a name such as float32");
}

Fetch fetch_of(msdbg_agent_fetch fetch, void* user, uint32_t node, uint32_t slot) {
  if (fetch == nullptr) return {};
  return [=](std::span<std::byte> into) { return fetch(user, node, slot, into.data(), into.size()) == 0; };
}

}  // namespace

extern "C" {

int msdbg_agent_set_option(msdbg_agent* agent, const char* name, const char* value) {
  if (agent == nullptr) return MSDBG_AGENT_ERROR;
  return guarded([&] { return outcome(agent, agent->agent.set_option(text(name), text(value))); }, MSDBG_AGENT_ERROR);
}

int msdbg_agent_replace_graph(msdbg_agent* agent, int graph, msdbg_agent_graph* description) {
  if (agent == nullptr || description == nullptr) {
    delete description;
    return MSDBG_AGENT_ERROR;
  }
  return guarded(
      [&] {
        const std::unique_ptr<msdbg_agent_graph> owned(description);
        if (!owned->problem.empty()) return outcome(agent, {Code::kInvalidArgument, owned->problem});
        return outcome(agent, agent->agent.replace_graph(graph, std::move(owned->graph)));
      },
      MSDBG_AGENT_ERROR);
}

int msdbg_agent_set_parameter(msdbg_agent* agent, int graph, const char* name, const char* dtype, const int64_t* shape, size_t rank,
                              const void* data) {
  if (agent == nullptr) return MSDBG_AGENT_ERROR;
  return guarded(
      [&] {
        const Result<Layout> layout = layout_of(dtype, shape, rank);
        if (!layout) return outcome(agent, layout.status());
        return outcome(agent, agent->agent.set_parameter(graph, text(name), layout->dtype, layout->shape, data));
      },
      MSDBG_AGENT_ERROR);
}

int msdbg_agent_set_parameter_remote(msdbg_agent* agent, int graph, const char* name, const char* dtype, const int64_t* shape,
                                     size_t rank, msdbg_agent_state state, msdbg_agent_fetch fetch, void* user) {
  if (agent == nullptr) return MSDBG_AGENT_ERROR;
  return guarded(
      [&] {
        const Result<Layout> layout = layout_of(dtype, shape, rank);
        if (!layout) return outcome(agent, layout.status());
        StateQuery query;
        if (state != nullptr) {
          query = [=] {
            const int known = state(user);
            return is_state(known) ? static_cast<ValueState>(known) : ValueState{0};
          };
        }
        Fetch fetches = fetch_of(fetch, user, 0, 0);
        return outcome(agent, agent->agent.set_parameter_remote(graph, text(name), layout->dtype, layout->shape, std::move(query), std::move(fetches)));
      },
      MSDBG_AGENT_ERROR);
}

msdbg_agent_graph* msdbg_agent_graph_from_dump(int id, const char* rank_directory, int graph, char* problem, size_t size) {
  return guarded(
      [&]() -> msdbg_agent_graph* {
        auto description = graph_from_dump(text(rank_directory), graph, id);
        copy(description.status().message(), problem, size);
        return description ? new msdbg_agent_graph{std::move(*description), {}} : nullptr;
      },
      nullptr);
}

int msdbg_agent_graph_add_dump(msdbg_agent_graph* description, const char* rank_directory, int graph, char* problem, size_t size) {
  if (description == nullptr) return -1;
  return guarded(
      [&] {
        const size_t first = description->graph.nodes.size();
        const Status status = add_dumped_graph(description->graph, text(rank_directory), graph);
        copy(status.message(), problem, size);
        return status.ok() ? static_cast<int>(first) : -1;
      },
      -1);
}

int msdbg_agent_publish_dump(msdbg_agent* agent, const char* iteration_directory) {
  if (agent == nullptr) return -1;
  return guarded(
      [&] {
        const auto published = agent->agent.publish_dump(text(iteration_directory));
        outcome(agent, published.status());
        return published ? static_cast<int>(*published) : -1;
      },
      -1);
}

int msdbg_agent_wants(const msdbg_agent* agent) {
  if (agent == nullptr) return MSDBG_AGENT_WANTS_NOTHING;
  return guarded([&] { return static_cast<int>(agent->agent.wants()); }, MSDBG_AGENT_WANTS_ALL);
}

int msdbg_agent_wants_node(msdbg_agent* agent, uint32_t node) {
  if (agent == nullptr) return 0;
  return guarded([&] { return agent->agent.wants_node(node) ? 1 : 0; }, 1);
}

int msdbg_agent_wants_any(msdbg_agent* agent, const uint32_t* nodes, size_t count) {
  if (agent == nullptr || nodes == nullptr) return 0;
  return guarded([&] { return agent->agent.wants_any(std::span(nodes, count)) ? 1 : 0; }, 1);
}

int msdbg_agent_publish_copy(msdbg_agent* agent, uint32_t node, uint32_t slot, const char* dtype, const void* data,
                             const int64_t* shape, const int64_t* strides, size_t rank) {
  if (agent == nullptr || !agent->agent.attached()) return 0;
  return guarded(
      [&] {
        const Result<Layout> layout = layout_of(dtype, shape, rank);
        if (!layout) return outcome(agent, layout.status()), 0;
        const std::span<const int64_t> steps = strides == nullptr ? std::span<const int64_t>() : std::span(strides, rank);
        return agent->agent.publish_copy(node, slot, layout->dtype, data, layout->shape, steps) ? 1 : 0;
      },
      0);
}

void msdbg_agent_publish_strided(msdbg_agent* agent, uint32_t node, uint32_t slot, const char* dtype, const void* data,
                                 const int64_t* shape, const int64_t* strides, size_t rank) {
  if (agent == nullptr || !agent->agent.attached()) return;
  guarded([&] {
    const Result<Layout> layout = layout_of(dtype, shape, rank);
    if (!layout) return void(outcome(agent, layout.status()));
    const std::span<const int64_t> steps = strides == nullptr ? std::span<const int64_t>() : std::span(strides, rank);
    agent->agent.publish_strided(node, slot, layout->dtype, data, layout->shape, steps);
  });
}

void msdbg_agent_publish_view(msdbg_agent* agent, uint32_t node, uint32_t slot, uint32_t of, uint32_t of_slot, const char* dtype,
                              const void* data, const int64_t* shape, const int64_t* strides, size_t rank) {
  if (agent == nullptr || !agent->agent.attached()) return;
  guarded([&] {
    const Result<Layout> layout = layout_of(dtype, shape, rank);
    if (!layout) return void(outcome(agent, layout.status()));
    const std::span<const int64_t> steps = strides == nullptr ? std::span<const int64_t>() : std::span(strides, rank);
    agent->agent.publish_view(node, slot, of, of_slot, layout->dtype, data, layout->shape, steps);
  });
}

void msdbg_agent_publish_remote(msdbg_agent* agent, uint32_t node, uint32_t slot, const char* dtype, const int64_t* shape,
                                size_t rank, int state, msdbg_agent_fetch fetch, void* user) {
  if (agent == nullptr || !agent->agent.attached()) return;
  guarded([&] {
    const Result<Layout> layout = layout_of(dtype, shape, rank);
    if (!layout) return void(outcome(agent, layout.status()));
    if (state < 0 || state > UINT8_MAX) {
      return void(outcome(agent, {Code::kInvalidArgument, "state " + std::to_string(state) + " is not one of 0, 1, 2, 4, 6"}));
    }
    agent->agent.publish_remote(node, slot, layout->dtype, layout->shape, static_cast<ValueState>(state), fetch_of(fetch, user, node, slot));
  });
}

}  // extern "C"
