#include "backends/cpu/distributed/collectives.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include <algorithm>
#include <complex>
#include <cstring>
#include <memory>
#include <numeric>

#include "backends/cpu/core/thread_pool.h"
#include "backends/cpu/core/wide.h"

namespace weft::cpu {

Collective::Collective(WeftFrame* frame, const abi::Collective<InWords>& op)
    : kind(op.kind),
      result(static_cast<char*>(frame->slots[op.result])),
      axes(op.axes),
      name(op.name),
      returned(op.returned),
      x(static_cast<const char*>(frame->slots[op.x.place])),
      dtype(op.x.dtype),
      shape(Ints(op.x.dims)),
      dim(op.dim),
      concat(op.concat),
      senders(op.senders),
      receivers(op.receivers) {}

int64_t Collective::elements() const {
  return std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<int64_t>());
}
int64_t Collective::Inner(int64_t dim) const {
  return std::accumulate(shape.begin() + dim, shape.end(), int64_t{ByteWidth(dtype)}, std::multiplies<int64_t>());
}
int64_t Collective::Outer(int64_t dim) const {
  return std::accumulate(shape.begin(), shape.begin() + dim, int64_t{1}, std::multiplies<int64_t>());
}
int64_t Collective::result_bytes(int64_t members) const {
  return kind == Kind::kAllGather ? bytes() * members : kind == Kind::kPsumScatter ? bytes() / members : bytes();
}

namespace {

template <class T, class A>
void Accumulate(Kind kind, A* __restrict total, const T* __restrict x, int64_t n) {
  if (kind == Kind::kPsum || kind == Kind::kPsumScatter) {
    for (int64_t i = 0; i < n; ++i) total[i] = static_cast<A>(total[i] + static_cast<A>(x[i]));
    return;
  }
  if constexpr (!kIsComplex<A>) {
    const bool most = kind == Kind::kPmax;
    for (int64_t i = 0; i < n; ++i) {
      const A v = static_cast<A>(x[i]);
      if (v != v || (total[i] == total[i] && (most ? v > total[i] : v < total[i]))) total[i] = v;
    }
  }
}

// n elements of what members [begin, end) have in all, from place `at` on. `room`: a run of elements for each level.
template <class T, class A>
void AddUp(const Group& g, int64_t begin, int64_t end, int64_t at, int64_t n, A* total, A* room) {
  const auto widen = [&](const char* member) {
    const T* x = reinterpret_cast<const T*>(member) + at;
    for (int64_t i = 0; i < n; ++i) total[i] = static_cast<A>(x[i]);
  };
  if (end - begin == 1 && g[static_cast<size_t>(begin)].x != nullptr) return widen(g[static_cast<size_t>(begin)].x);
  for (const Subtotal& s : g.subtotals) {
    if (s.begin != begin || s.end != end) continue;
    if (end - begin == 1) {
      widen(s.data);
    } else {
      std::memcpy(total, reinterpret_cast<const A*>(s.data) + at, static_cast<size_t>(n) * sizeof(A));
    }
    return;
  }
  const int64_t middle = TreeMiddle(begin, end);
  AddUp<T, A>(g, begin, middle, at, n, total, room);
  if (end - middle == 1 && g[static_cast<size_t>(middle)].x != nullptr) {
    Accumulate(g[0].kind, total, reinterpret_cast<const T*>(g[static_cast<size_t>(middle)].x) + at, n);
  } else {
    AddUp<T, A>(g, middle, end, at, n, room, room + n);
    Accumulate(g[0].kind, total, room, n);
  }
}

// How many runs of elements AddUp needs room for.
int64_t Levels(int64_t members) {
  int64_t levels = 1;
  for (; members > 1; members = (members + 1) / 2) ++levels;
  return levels;
}

constexpr int64_t kRun = 2048;  // with the levels of the tree, in the nearest cache

// Elements [begin, end) of what all have; `store` takes each finished run.
template <class F>
void Fold(const Group& g, int64_t begin, int64_t end, const F& store) {
  const auto members = static_cast<int64_t>(g.size());
  VisitDType(g[0].dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    using A = Wide<T>;
    const int64_t longest = std::min(kRun, end - begin);
    const std::unique_ptr<A[]> total(new A[static_cast<size_t>(longest * (1 + Levels(members)))]);
    std::vector<char> rounded;
    for (int64_t at = begin; at < end; at += kRun) {
      const int64_t n = std::min(kRun, end - at);
      AddUp<T, A>(g, 0, members, at, n, total.get(), total.get() + n);
      if constexpr (std::is_same_v<T, A>) {
        store(at, n, reinterpret_cast<const char*>(total.get()));
      } else {
        rounded.resize(static_cast<size_t>(n) * sizeof(T));
        for (int64_t i = 0; i < n; ++i) reinterpret_cast<T*>(rounded.data())[i] = T(total[i]);
        store(at, n, rounded.data());
      }
    }
  });
}

// About a quarter of a nanosecond per byte that is touched.
int64_t Cost(int64_t bytes) { return bytes / 4; }

// Copies past the caches what is too large for them: writing it through them would read it first.
void StreamOut(char* to, const char* from, int64_t bytes) {
#if defined(__SSE2__)
  if (reinterpret_cast<uintptr_t>(to) % 16 == 0 && bytes % 16 == 0) {
    for (int64_t i = 0; i < bytes; i += 16)
      _mm_stream_si128(reinterpret_cast<__m128i*>(to + i), _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i)));
    return;
  }
#endif
  std::memcpy(to, from, static_cast<size_t>(bytes));
}

constexpr int64_t kBeyondCaches = 24 << 20;  // as compiled code has it

void Reduce(const Group& g) {
  const int64_t n = g[0].elements(), width = ByteWidth(g[0].dtype), total = n * width * static_cast<int64_t>(g.size());
  const bool stream = total >= kBeyondCaches;
  constexpr int64_t kPart = 1 << 14;
  ParallelFor((n + kPart - 1) / kPart, Cost(2 * total), [&](int64_t begin, int64_t end) {
    Fold(g, begin * kPart, std::min(n, end * kPart), [&](int64_t at, int64_t count, const char* values) {
      for (const Collective& c : g.members) {
        if (c.result == nullptr) continue;
        if (stream)
          StreamOut(c.result + at * width, values, count * width);
        else
          std::memcpy(c.result + at * width, values, static_cast<size_t>(count * width));
      }
    });
#if defined(__SSE2__)
    if (stream) _mm_sfence();
#endif
  });
}

void Scatter(const Group& g) {
  const int64_t dim = g[0].dim, width = ByteWidth(g[0].dtype), n = static_cast<int64_t>(g.size());
  const int64_t block = g[0].Inner(dim) / n, rows = g[0].Outer(dim) * n;  // one row after the other, of each device
  ParallelFor(rows, Cost(2 * block * rows * n), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      if (g[static_cast<size_t>(row % n)].result == nullptr) continue;
      const int64_t first = row * block / width;
      char* to = g[static_cast<size_t>(row % n)].result + row / n * block;
      Fold(g, first, first + block / width, [&](int64_t at, int64_t count, const char* values) {
        std::memcpy(to + (at - first) * width, values, static_cast<size_t>(count * width));
      });
    }
  });
}

void Gather(const Group& g) {
  const int64_t dim = g[0].dim, n = static_cast<int64_t>(g.size()), block = g[0].Inner(dim), rows = g[0].Outer(dim);
  ParallelFor(n, Cost(2 * block * rows * n * n), [&](int64_t begin, int64_t end) {
    for (int64_t to = begin; to < end; ++to) {
      if (g[to].result == nullptr) continue;
      for (int64_t row = 0; row < rows; ++row) {
        for (int64_t from = 0; from < n; ++from)
          std::memcpy(g[to].result + (row * n + from) * block, g[from].x + row * block, static_cast<size_t>(block));
      }
    }
  });
}

void Exchange(const Group& g) {
  const int64_t split = g[0].dim, concat = g[0].concat, n = static_cast<int64_t>(g.size());
  // What each sends to each: the operand with `split` cut; it arrives as one block along `concat`.
  std::vector<int64_t> piece = g[0].shape;
  piece[static_cast<size_t>(split)] /= n;
  const int64_t rank = static_cast<int64_t>(piece.size()), width = ByteWidth(g[0].dtype);
  std::vector<int64_t> whole = piece;
  whole[static_cast<size_t>(concat)] *= n;
  std::vector<int64_t> from_strides(piece.size()), to_strides(piece.size());
  int64_t f = width, t = width;
  for (int64_t d = rank; d-- > 0; f *= g[0].shape[d], t *= whole[d]) from_strides[d] = f, to_strides[d] = t;
  // Dimensions that lie together on both sides move together.
  int64_t outer = rank, run = width;
  while (outer > 0 && from_strides[outer - 1] == run && to_strides[outer - 1] == run) run *= piece[--outer];
  const int64_t count = std::accumulate(piece.begin(), piece.begin() + outer, int64_t{1}, std::multiplies<int64_t>());
  if (run == 0 || count == 0) return;
  ParallelFor(n * n, Cost(2 * run * count * n * n), [&](int64_t begin, int64_t end) {
    std::vector<int64_t> index(static_cast<size_t>(outer));
    for (int64_t pair = begin; pair < end; ++pair) {
      const int64_t from = pair / n, to = pair % n;
      if (g[to].result == nullptr) continue;
      const char* x = g[from].x + to * piece[split] * from_strides[split];
      char* y = g[to].result + from * piece[concat] * to_strides[concat];
      std::fill(index.begin(), index.end(), 0);
      for (int64_t k = 0; k < count; ++k) {
        std::memcpy(y, x, static_cast<size_t>(run));
        for (int64_t d = outer; d-- > 0;) {
          x += from_strides[d], y += to_strides[d];
          if (++index[d] < piece[d]) break;
          x -= index[d] * from_strides[d], y -= index[d] * to_strides[d];
          index[d] = 0;
        }
      }
    }
  });
}

std::string Permute(const Group& g) {
  const int64_t bytes = g[0].Inner(0), n = static_cast<int64_t>(g.size());
  std::vector<int64_t> source(g.size(), -1);
  for (size_t i = 0; i < g[0].senders.size(); ++i) {
    const int64_t from = g[0].senders[i], to = g[0].receivers[i];
    if (from >= n || to >= n)
      return "ppermute: sends " + std::to_string(from) + " to " + std::to_string(to) + ", but there are " +
             std::to_string(n) + " devices";
    source[to] = from;
  }
  for (int64_t to = 0; to < n; ++to) {
    if (g[to].result == nullptr) continue;
    if (source[to] < 0)
      std::memset(g[to].result, 0, static_cast<size_t>(bytes));
    else
      std::memcpy(g[to].result, g[source[to]].x, static_cast<size_t>(bytes));
  }
  return "";
}

}  // namespace

std::string RunGroup(const Group& g) {
  if (std::all_of(g.members.begin(), g.members.end(), [](const Collective& c) { return c.result == nullptr; }))
    return "";
  switch (g[0].kind) {
    case Kind::kPsum:
    case Kind::kPmax:
    case Kind::kPmin: Reduce(g); return "";
    case Kind::kAllGather: Gather(g); return "";
    case Kind::kPsumScatter: Scatter(g); return "";
    case Kind::kAllToAll: Exchange(g); return "";
    case Kind::kPpermute: return Permute(g);
  }
  return "a collective of unknown kind";
}

int64_t TreeMiddle(int64_t begin, int64_t end) {
  int64_t half = 1;
  while (2 * half < end - begin) half *= 2;
  return begin + half;
}

int64_t SubtotalBytes(DType dtype, int64_t elements, int64_t begin, int64_t end) {
  int64_t width = 0;
  VisitDType(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    width = end - begin == 1 ? sizeof(T) : sizeof(Wide<T>);
  });
  return elements * width;
}

void ComputeSubtotal(const Group& g, int64_t begin, int64_t end, char* to) {
  const int64_t n = g[0].elements();
  if (end - begin == 1) {
    std::memcpy(to, g[static_cast<size_t>(begin)].x, static_cast<size_t>(g[0].bytes()));
    return;
  }
  VisitDType(g[0].dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    using A = Wide<T>;
    ParallelFor((n + kRun - 1) / kRun, Cost(g[0].bytes() * (end - begin)), [&](int64_t first, int64_t last) {
      const std::unique_ptr<A[]> room(new A[static_cast<size_t>(kRun * Levels(end - begin))]);
      for (int64_t run = first; run < last; ++run) {
        const int64_t at = run * kRun;
        AddUp<T, A>(g, begin, end, at, std::min(kRun, n - at), reinterpret_cast<A*>(to) + at, room.get());
      }
    });
  });
}

}  // namespace weft::cpu
