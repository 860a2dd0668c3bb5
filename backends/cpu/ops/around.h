// An array around one of its dimensions, line by line.
#ifndef WEFT_BACKENDS_CPU_OPS_AROUND_H_
#define WEFT_BACKENDS_CPU_OPS_AROUND_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "backends/cpu/core/thread_pool.h"

namespace weft::cpu {

// The array as [outer, n, inner] around dimension `dim`.
struct Around {
  int64_t outer = 1, n = 1, inner = 1;
  Around(const std::vector<int64_t>& shape, int64_t dim) {
    for (size_t d = 0; d < shape.size(); ++d) {
      if (static_cast<int64_t>(d) < dim)
        outer *= shape[d];
      else if (static_cast<int64_t>(d) == dim)
        n = shape[d];
      else
        inner *= shape[d];
    }
  }
  // Calls line(first offset) for each line, in parallel.
  template <class F>
  void ForEachLine(double nanoseconds_per_element, const F& line) const {
    const double work =
        static_cast<double>(outer) * static_cast<double>(n) * static_cast<double>(inner) * nanoseconds_per_element;
    ParallelFor(outer * inner, static_cast<int64_t>(work), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) line(i, i / inner * n * inner + i % inner);
    });
  }
};

}  // namespace weft::cpu
#endif  // WEFT_BACKENDS_CPU_OPS_AROUND_H_
