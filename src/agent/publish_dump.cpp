// The values of one dumped iteration, published as if the operators had just run.
#include <fmt/format.h>

#include <map>

#include "agent/conversation.h"
#include "agent/dump_source.h"

namespace msdbg::agent {

Result<size_t> Conversation::publish_dump(const std::string& directory) {
  if (!in_step_) return Status(Code::kUnsupported, "publish_dump: no step has begun");
  const std::shared_ptr<DumpSource> source = store_->graph().dump;
  if (!source) {
    return Status(Code::kUnsupported, fmt::format("publish_dump: graph {} was not described by graph_from_dump", store_->graph().id));
  }
  const DumpSource::Part* const part = source->part_of(directory);
  if (part == nullptr) return size_t{0};  // of another network
  Result<std::vector<StepValue>> listed = part->reader->list(directory);
  if (!listed) return listed.status();
  step_computed();  // MindSpore writes a step's files while it runs it
  std::map<NodeIndex, std::vector<StepValue>> by_node;
  for (StepValue& value : *listed) {
    const auto node = store_->source(part->reader->graph().node(value.node).name);
    if (node && *node < store_->node_count()) by_node[*node].push_back(std::move(value));
  }
  size_t published = 0, unreadable = 0;
  std::string first_problem;
  for (NodeIndex node = part->first; node < part->last && active(); ++node) {
    // Files that nobody looks at stay closed.
    if (const auto values = by_node.find(node); values != by_node.end() && wants_node(node)) {
      for (const StepValue& value : values->second) {
        Result<DumpedValue> opened = open_dumped(value);
        if (opened && has_output(node, value.slot)) {
          publish_remote(node, value.slot, opened->dtype, opened->shape, 0, std::move(opened->fetch));
          ++published;
        } else if (!opened && unreadable++ == 0) {
          first_problem = opened.status().message();
        }
      }
    }
    node_done(node);
  }
  if (unreadable > 0) {
    set_problem(fmt::format("{} of {} dumped files cannot be read, the first is {}", unreadable, listed->size(), first_problem));
  }
  return published;
}

}  // namespace msdbg::agent
