// Programs compiled for a GPU and run under host emulation, for tests.
#ifndef WEFT_TESTS_GPU_EMULATED_H_
#define WEFT_TESTS_GPU_EMULATED_H_

#include <cmath>
#include <cstring>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "backends/cuda/emulated_device.h"
#include "backends/cuda/program.h"
#include "ir/eval/eval.h"
#include "ir/fn.h"
#include "lowering/gpu/lower.h"
#include "tests/gpu/card_cases.h"

namespace weft {

inline Tensors FromHost(const std::vector<cuda::HostArray>& arrays) {
  Tensors out;
  for (const cuda::HostArray& a : arrays) {
    Tensor t(static_cast<DType>(a.dtype), a.shape);
    if (t.bytes() > 0) std::memcpy(t.raw(), a.bytes.data(), static_cast<size_t>(t.bytes()));
    out.push_back(std::move(t));
  }
  return out;
}

// Raises what lowering raises; std::runtime_error when a check of the emulation fails.
inline Tensors RunEmulated(const FnRef& fn, const Tensors& args, const GpuTarget& target = {}) {
  GpuArtifact a = LowerGpu(fn, target, {.ptx = false, .emulation = true});
  auto device = std::make_shared<cuda::EmulatedDevice>(a.emulation, a.emulation_target);
  cuda::Program program(std::move(a), device);
  std::vector<cuda::HostArgument> arguments;
  for (const Tensor& t : args) arguments.push_back({t.raw(), t.shape()});
  const Tensors results = FromHost(program.Run(arguments));
  KeepForCard(fn, args, results);
  return results;
}

// Why `got` is not `want` up to rounding; empty when it is. `ulps`: units in the last place of each element's own type,
// on top of `slack` times the largest element (sums of many terms), or times `scale` if that is larger. Integers and
// bool must be equal.
inline std::string Difference(const Tensor& got, const Tensor& want, double ulps, double slack = 0, double scale = 0) {
  if (!(got.type() == want.type())) return "another type";
  const double unit = IsInexact(want.dtype()) ? 1.03 * std::ldexp(1.0, 1 - RowOf(want.dtype()).digits) : 0;
  double largest = scale;
  for (int64_t i = 0; i < want.size(); ++i) {
    const double size = std::abs(want.Get(i));
    if (std::isfinite(size)) largest = std::max(largest, size);
  }
  for (int64_t i = 0; i < want.size(); ++i) {
    const std::complex<double> g = got.Get(i), w = want.Get(i);
    auto same = [](double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); };
    if (same(g.real(), w.real()) && same(g.imag(), w.imag())) continue;
    const double tiny = want.dtype() == DType::kF16 ? 6e-8 : 1e-37;
    if (std::abs(g - w) <= unit * (ulps * (std::abs(w) + tiny) + slack * largest)) continue;
    std::ostringstream out;
    out.precision(17);
    out << "element " << i << " is " << g << ", not " << w;
    return out.str();
  }
  return "";
}

}  // namespace weft
#endif  // WEFT_TESTS_GPU_EMULATED_H_
