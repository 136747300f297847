// Reads everything in an open session.
#pragma once

#include "fuzz/input.h"
#include "msdbg/session.h"

namespace msdbg::fuzz {

/// For the first tensors: description, elements, statistics, and the previous value.
inline void walk(Session& session) {
  constexpr size_t kMost = 40;
  constexpr uint64_t kMemory = 64 << 20;
  TensorQuery query;
  query.inputs = true;
  const std::vector<TensorId> ids = session.tensors(query);
  for (size_t i = 0; i < ids.size() && i < kMost; ++i) {
    const TensorId& id = ids[i];
    (void)session.tensor_name(id);
    const Result<OpenTensor> opened = session.open(id);
    if (good(opened)) {
      require((opened->reader == nullptr) != opened->info.elements().ok(), "elements that are neither there nor missing");
      expect_no_defect(opened->info.problem);
    }
    if (opened && opened->reader && opened->info.count * item_size(opened->info.dtype) <= kMemory) {
      require(opened->reader->dtype() == opened->info.dtype && opened->reader->count() == opened->info.count,
              "elements that are not as they are described");
      std::vector<std::byte> elements(opened->info.count * item_size(opened->info.dtype));
      expect_no_defect(opened->reader->read(0, elements));
    }
    (void)good(session.describe(id));
    (void)good(session.load(id, kMemory));
    (void)good(session.stats(id));
    (void)session.given_statistics(id);
    (void)good(session.previous(id, nullptr));
    (void)good(session.operator_overflow(id));
  }
  (void)session.inspect();
}

}  // namespace msdbg::fuzz
