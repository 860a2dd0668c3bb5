// The cumulative operations along one dimension.
#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <limits>
#include <memory>
#include <type_traits>
#include <vector>

#include "backends/cpu/core/runtime.h"
#include "backends/cpu/core/thread_pool.h"
#include "backends/cpu/core/wide.h"
#include "backends/cpu/ops/around.h"
#include "base/dtype.h"
#include "base/product.h"

namespace weft::cpu {
namespace {

void Cumulative(WeftFrame* frame, const abi::Cumulative<InWords>& op) {
  using Kind = abi::CumulativeKind;
  const DenseTensor x(frame, op.x);
  void* out = frame->slots[op.result];
  const Kind kind = op.kind;
  const Around a(x.shape, op.dim);
  const bool reverse = op.reverse;
  VisitDType(x.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    using W = Wide<T>;
    const T* data = x.as<T>();
    T* y = static_cast<T*>(out);
    auto run = [&](double cost, auto f) {
      a.ForEachLine(cost, [&](int64_t, int64_t base) {
        if (a.n == 0) return;
        const int64_t step = reverse ? -a.inner : a.inner;
        int64_t at = reverse ? base + (a.n - 1) * a.inner : base;
        W sum = static_cast<W>(data[at]);
        y[at] = data[at];
        for (int64_t i = 1; i < a.n; ++i) {
          at += step;
          sum = static_cast<W>(f(sum, static_cast<W>(data[at])));
          y[at] = static_cast<T>(sum);
        }
      });
    };
    if (kind == Kind::kSum) return run(1, [](W p, W q) { return p + q; });
    if (kind == Kind::kProduct) return run(1, [](W p, W q) { return Product(p, q); });
    if constexpr (!kIsComplex<T>) {
      if (kind == Kind::kMax) return run(1, [](W p, W q) { return p != p ? p : q != q ? q : std::max(p, q); });
      if (kind == Kind::kMin) return run(1, [](W p, W q) { return p != p ? p : q != q ? q : std::min(p, q); });
      if constexpr (std::is_floating_point_v<W>) {
        return run(20, [](W p, W q) {
          return p == q ? p + static_cast<W>(0.693147180559945309)
                        : std::max(p, q) + std::log1p(std::exp(-std::abs(p - q)));
        });
      }
    }
  });
}

}  // namespace

void FillScans(WeftOp* ops) { Put<Cumulative>(ops); }

}  // namespace weft::cpu
