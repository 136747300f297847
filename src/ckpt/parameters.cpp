#include "ckpt/parameters.h"

#include <algorithm>
#include <cstring>
#include <unordered_set>

namespace msdbg::ckpt {
namespace {

/// Both blocks fit the L2 cache; a multiple of ComparePass::kBlock.
constexpr uint64_t kBlockElements = 8 * ComparePass::kBlock;

}  // namespace

std::vector<Parameter> parameters_of(const ParameterSource& source, const std::vector<NodeRef>* nodes) {
  TensorQuery query;
  query.ranks = IntSet::of(source.rank);
  query.steps = IntSet::of(source.step);
  query.nodes = nodes;
  query.slot = 0;
  std::vector<Parameter> out;
  std::unordered_set<std::string> seen;
  for (const TensorId& id : source.session->tensors(query)) {
    const Node& node = source.session->node(id);
    if (node.kind != NodeKind::kParameter || !seen.insert(node.name).second) continue;
    Parameter parameter{node.name, id, {}};
    auto info = source.session->describe(id);
    if (info) {
      parameter.info = std::move(*info);
    } else {
      parameter.info.id = id;
      parameter.info.problem = info.status();
    }
    out.push_back(std::move(parameter));
  }
  return out;
}

Status walk_pair(ElementReader& a, ElementReader& b, const std::function<bool(const std::byte*, const std::byte*, size_t)>& take) {
  const size_t item_a = item_size(a.dtype()), item_b = item_size(b.dtype());
  std::vector<std::byte> block_a(kBlockElements * item_a), block_b(kBlockElements * item_b);
  for (uint64_t first = 0; first < a.count(); first += kBlockElements) {
    if (interrupt_requested()) return Status(Code::kInterrupted, "interrupted");
    const size_t n = std::min(kBlockElements, a.count() - first);
    if (Status status = a.read(first, std::span(block_a.data(), n * item_a)); !status.ok()) return status;
    if (Status status = b.read(first, std::span(block_b.data(), n * item_b)); !status.ok()) return status;
    if (!take(block_a.data(), block_b.data(), n)) break;
  }
  return {};
}

Result<Comparison> compare_values(Session& a, const TensorId& id_a, Session& b, const TensorId& id_b) {
  auto opened_a = a.open_elements(id_a), opened_b = b.open_elements(id_b);
  if (!opened_a) return opened_a.status();
  if (!opened_b) return opened_b.status();
  if (opened_a->info.count != opened_b->info.count) return Status(Code::kIoError, "a file changed while it was read");
  ComparePass pass(opened_a->info.dtype, opened_b->info.dtype, {0, 0});
  const Status status = walk_pair(*opened_a->reader, *opened_b->reader, [&](const std::byte* x, const std::byte* y, size_t n) {
    pass.update(x, y, n);
    return true;
  });
  if (!status.ok()) return status;
  return pass.finish();
}

Result<bool> same_bytes(Session& a, const TensorId& id_a, Session& b, const TensorId& id_b) {
  auto opened_a = a.open_elements(id_a), opened_b = b.open_elements(id_b);
  if (!opened_a) return opened_a.status();
  if (!opened_b) return opened_b.status();
  const DType dtype = opened_a->info.dtype;
  if (dtype != opened_b->info.dtype || opened_a->info.count != opened_b->info.count) return false;
  bool same = true;
  const Status status = walk_pair(*opened_a->reader, *opened_b->reader, [&](const std::byte* x, const std::byte* y, size_t n) {
    same = std::memcmp(x, y, n * item_size(dtype)) == 0;
    return same;
  });
  if (!status.ok()) return status;
  return same;
}

Result<Fingerprint> fingerprint(Session& session, const TensorId& id) {
  auto opened = session.open_elements(id);
  if (!opened) return opened.status();
  const auto& [info, reader] = *opened;
  const size_t item = item_size(info.dtype);
  std::vector<std::byte> block(kBlockElements * item);
  std::vector<std::byte> first_item;
  Fingerprint print;
  print.hash = 0xcbf29ce484222325;  // FNV-1a, eight bytes at a time
  for (uint64_t first = 0; first < info.count; first += kBlockElements) {
    if (interrupt_requested()) return Status(Code::kInterrupted, "interrupted");
    const size_t bytes = std::min(kBlockElements, info.count - first) * item;
    if (Status status = reader->read(first, std::span(block.data(), bytes)); !status.ok()) return status;
    if (first_item.empty()) first_item.assign(block.begin(), block.begin() + static_cast<ptrdiff_t>(item));
    for (size_t at = 0; print.constant && at < bytes; at += item)
      print.constant = std::memcmp(block.data() + at, first_item.data(), item) == 0;
    for (size_t at = 0; at < bytes; at += 8) {
      uint64_t word = 0;
      std::memcpy(&word, block.data() + at, std::min<size_t>(8, bytes - at));
      print.hash = (print.hash ^ word) * 0x100000001b3;
      print.hash ^= print.hash >> 32;
    }
  }
  return print;
}

}  // namespace msdbg::ckpt
