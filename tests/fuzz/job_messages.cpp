// What process 0 sends under mpirun: what a piece of work has in common, then its items. The tensors are in memory; their locations are
// read like those of files, and nearly always lead nowhere.
#include <cmath>

#include "fuzz/input.h"
#include "msdbg/located.h"
#include "msdbg/shared.h"
#include "msdbg/shared_analysis.h"

using namespace msdbg;

namespace {

Result<OpenTensor> open(const TensorId& id, std::string_view location) {
  if (!location.empty()) return open_located(id, location);
  static const float elements[] = {1, -2, 0, INFINITY, NAN, 3};
  TensorInfo info;
  info.id = id;
  info.dtype = DType::kFloat32;
  info.shape = {2, 3};
  info.count = std::size(elements);
  return OpenTensor::in_memory(info, *TensorBuffer::create(info.dtype, info.shape, std::as_bytes(std::span(elements)), nullptr));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const SharedHandler handlers[] = {measure_handler(open), compare_handler(open)};
  fuzz::Input input(data, size);
  const SharedHandler& handler = handlers[input.below(std::size(handlers))];
  // Every message of work begins with the SIMD target, which differs from machine to machine.
  ByteWriter common;
  write_target(common);
  const auto job = handler(common.take() + std::string(input.chunk()), 1);
  if (!fuzz::good(job)) return 0;
  for (int items = 0; items < 16 && !input.empty(); ++items) {
    (void)fuzz::good((*job)->run(input.chunk(), 0));
  }
  return 0;
}
