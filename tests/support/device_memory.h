// What an Ascend device's memory holds, written from the tables of docs/ascend.md in the opposite direction to msdbg's code: every place of
// the device asks which element of the tensor it has.
#pragma once

#include <cstdint>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

namespace msdbg::test {

inline constexpr int64_t kPadding = -1;

struct DeviceMemory {
  std::vector<int64_t> shape;     ///< of the device
  std::vector<int64_t> elements;  ///< flat index in the tensor, or kPadding
};

inline int64_t rounded_up(int64_t length, int64_t block) { return (length + block - 1) / block; }

/// Walks over all places of `shape` in order; `element(place)` gives the element.
inline DeviceMemory filled(std::vector<int64_t> shape, const std::function<int64_t(const std::vector<int64_t>&)>& element) {
  DeviceMemory memory{shape, {}};
  std::vector<int64_t> place(shape.size(), 0);
  int64_t total = 1;
  for (const int64_t length : shape) total *= length;
  for (int64_t i = 0; i < total; ++i) {
    memory.elements.push_back(element(place));
    for (size_t axis = shape.size(); axis-- > 0;) {
      if (++place[axis] < shape[axis]) break;
      place[axis] = 0;
    }
  }
  return memory;
}

struct HostShape {
  int64_t n = 1, c = 1, d = 1, h = 1, w = 1;
  bool depth = false;

  std::vector<int64_t> list() const { return depth ? std::vector<int64_t>{n, c, d, h, w} : std::vector<int64_t>{n, c, h, w}; }
  int64_t element(int64_t in, int64_t ic, int64_t id, int64_t ih, int64_t iw) const {
    if (in >= n || ic >= c || id >= d || ih >= h || iw >= w) return kPadding;
    return (((in * c + ic) * d + id) * h + ih) * w + iw;
  }
};

using Place = std::vector<int64_t>;

/// The memory of `host` in a format with four or five axes.
inline DeviceMemory device_memory(const std::string& format, const HostShape& host, int64_t c0) {
  const auto [n, c, d, h, w, depth] = host;
  const int64_t c1 = rounded_up(c, c0), n1 = rounded_up(n, 16);
  if (format == "NHWC") return filled({n, h, w, c}, [&](const Place& at) { return host.element(at[0], at[3], 0, at[1], at[2]); });
  if (format == "HWCN") return filled({h, w, c, n}, [&](const Place& at) { return host.element(at[3], at[2], 0, at[0], at[1]); });
  if (format == "NC1HWC0" || format == "NC1HWC0_C04") {
    return filled({n, c1, h, w, c0}, [&](const Place& at) { return host.element(at[0], at[1] * c0 + at[4], 0, at[2], at[3]); });
  }
  if (format == "NDC1HWC0") {
    return filled({n, d, c1, h, w, c0}, [&](const Place& at) { return host.element(at[0], at[2] * c0 + at[5], at[1], at[3], at[4]); });
  }
  if (format == "FRACTAL_Z") {
    return filled({c1 * h * w, n1, 16, c0}, [&](const Place& at) {
      return host.element(at[1] * 16 + at[2], at[0] / (h * w) * c0 + at[3], 0, at[0] / w % h, at[0] % w);
    });
  }
  if (format == "FRACTAL_Z_3D") {
    return filled({d * c1 * h * w, n1, 16, c0}, [&](const Place& at) {
      const int64_t plane = at[0] / (h * w);
      return host.element(at[1] * 16 + at[2], plane % c1 * c0 + at[3], plane / c1, at[0] / w % h, at[0] % w);
    });
  }
  if (format == "C1HWNCoC0") {
    return filled({c1, h, w, n, c0, c0}, [&](const Place& at) {
      return at[4] == at[5] ? host.element(at[3], at[0] * c0 + at[5], 0, at[1], at[2]) : kPadding;
    });
  }
  // FRACTAL_Z_C04: x counts places times four channels.
  return filled({rounded_up(4 * h * w * rounded_up(c, 4), 16), n1, 16, 16}, [&](const Place& at) {
    const int64_t x = at[0] * 16 + at[3], group = x / (4 * h * w), rest = x % (4 * h * w);
    return host.element(at[1] * 16 + at[2], group * 4 + rest % 4, 0, rest / (4 * w), rest % (4 * w) / 4);
  });
}

/// Weights of a grouped convolution: `host.c` channels in each group.
inline DeviceMemory grouped_weights(const HostShape& host, int64_t groups, int64_t c0) {
  const int64_t cin = host.c, cout = host.n / groups;
  const int64_t e = std::min(std::lcm(std::lcm(cin, c0) / cin, std::lcm(cout, int64_t{16}) / cout), groups);
  const int64_t cin_opt = rounded_up(e * cin, c0) * c0, cout_opt = rounded_up(e * cout, 16) * 16;
  return filled({rounded_up(groups, e), cin_opt / c0, host.h, host.w, cout_opt, c0}, [&](const Place& at) {
    const int64_t in = at[1] * c0 + at[5], out = at[4];
    // The diagonal blocks have elements: input and output channel of the same group.
    if (in / cin != out / cout || in / cin >= e) return kPadding;
    const int64_t group = at[0] * e + in / cin;
    if (group >= groups) return kPadding;
    return host.element(group * cout + out % cout, in % cin, 0, at[2], at[3]);
  });
}

/// FRACTAL_NZ of any shape.
inline DeviceMemory fractal_nz(const std::vector<int64_t>& shape, int64_t c0) {
  const size_t axes = shape.size();
  const int64_t h = axes > 1 ? shape[axes - 2] : 1, w = axes > 0 ? shape[axes - 1] : 1;
  std::vector<int64_t> device(shape.begin(), shape.end() - static_cast<ptrdiff_t>(std::min<size_t>(2, axes)));
  const size_t leading = device.size();
  device.insert(device.end(), {rounded_up(w, c0), rounded_up(h, 16), 16, c0});
  return filled(device, [&](const Place& at) {
    int64_t batch = 0;
    for (size_t i = 0; i < leading; ++i) batch = batch * shape[i] + at[i];
    const int64_t row = at[leading + 1] * 16 + at[leading + 2], column = at[leading] * c0 + at[leading + 3];
    return row < h && column < w ? (batch * h + row) * w + column : kPadding;
  });
}

}  // namespace msdbg::test
