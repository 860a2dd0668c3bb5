// General contractions: dimensions are grouped into batch, M, N and K; what a library's leading dimensions and
// transpose flags can express is passed as it lies, everything else is packed first.
#include <algorithm>
#include <array>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <memory_resource>
#include <string>
#include <type_traits>
#include <vector>

#include "backends/cpu/core/buffer_cache.h"
#include "backends/cpu/core/runtime.h"
#include "backends/cpu/core/thread_pool.h"
#include "backends/cpu/ops/gemm.h"
#include "base/dtype.h"
#include "base/product.h"

namespace weft::cpu {
namespace {

using Dimension = abi::Factor<InWords>;
using Dimensions = std::pmr::vector<Dimension>;

// Drops sizes of 1 and joins neighbours that every array walks as one.
Dimensions Collapse(const abi::Sequence<Dimension>& in, std::pmr::memory_resource* memory) {
  Dimensions out(memory);
  for (const Dimension& d : in) {
    if (d.size == 1) continue;
    if (!out.empty()) {
      Dimension& p = out.back();
      if (p.x == d.x * d.size && p.y == d.y * d.size && p.result == d.result * d.size) {
        p = {p.size * d.size, d.x, d.y, d.result};
        continue;
      }
    }
    out.push_back(d);
  }
  return out;
}

int64_t Size(const Dimensions& dims) {
  int64_t n = 1;
  for (const Dimension& d : dims) n *= d.size;
  return n;
}

// One dimension of every element's offset: [0, size) -> offset for each of the group's points.
std::vector<int64_t> Offsets(const Dimensions& dims, int64_t Dimension::* stride) {
  std::vector<int64_t> out = {0};
  for (const Dimension& d : dims) {
    std::vector<int64_t> next;
    next.reserve(out.size() * static_cast<size_t>(d.size));
    for (int64_t o : out) {
      for (int64_t i = 0; i < d.size; ++i) next.push_back(o + i * d.*stride);
    }
    out = std::move(next);
  }
  return out;
}

// A matrix as a library wants it.
struct Matrix {
  bool direct = false;
  bool transposed = false;
  int64_t ld = 0;
};

// rows x cols with these strides (of groups that are at most one dimension each).
Matrix Fit(const Dimensions& rows, int64_t Dimension::* row_stride, const Dimensions& cols,
           int64_t Dimension::* col_stride) {
  Matrix m;
  if (rows.size() > 1 || cols.size() > 1) return m;
  const int64_t nr = rows.empty() ? 1 : rows[0].size, nc = cols.empty() ? 1 : cols[0].size;
  const int64_t rs = rows.empty() ? nc : rows[0].*row_stride, cs = cols.empty() ? 1 : cols[0].*col_stride;
  if (cs == 1 && rs >= nc) return {true, false, rs};
  if ((rows.empty() ? 1 : rs) == 1 && (cols.empty() ? nr : cs) >= nr) return {true, true, cols.empty() ? nr : cs};
  return m;
}

template <class C, class T>
C Widen(const T& v) {
  if constexpr (std::is_same_v<C, T>)
    return v;
  else if constexpr (std::is_same_v<T, std::complex<float>> || std::is_same_v<T, std::complex<double>>) {
    if constexpr (std::is_same_v<C, std::complex<float>> || std::is_same_v<C, std::complex<double>>)
      return C(v.real(), v.imag());
    else
      return C();
  } else if constexpr (std::is_same_v<C, std::complex<float>> || std::is_same_v<C, std::complex<double>>)
    return C();
  else
    return static_cast<C>(v);
}
template <class T, class C>
T Narrow(const C& v) {
  if constexpr (std::is_same_v<T, C>)
    return v;
  else if constexpr (std::is_same_v<C, std::complex<float>> || std::is_same_v<C, std::complex<double>>) {
    if constexpr (std::is_same_v<T, std::complex<float>> || std::is_same_v<T, std::complex<double>>)
      return T(v.real(), v.imag());
    else
      return T();
  } else if constexpr (std::is_same_v<T, std::complex<float>> || std::is_same_v<T, std::complex<double>>)
    return T();
  else if constexpr (std::is_convertible_v<C, T>)
    return static_cast<T>(v);
  else
    return T(static_cast<float>(v));
}

template <class T>
struct Scratch {
  explicit Scratch(int64_t n)
      : bytes(std::max<int64_t>(64, n * static_cast<int64_t>(sizeof(T)))), data(static_cast<T*>(AllocateRaw(bytes))) {}
  ~Scratch() { FreeRaw(data, bytes); }
  Scratch(const Scratch&) = delete;
  int64_t bytes;
  T* data;
};

template <class C>
constexpr bool kHasGemm = std::is_same_v<C, float> || std::is_same_v<C, double> ||
                          std::is_same_v<C, std::complex<float>> || std::is_same_v<C, std::complex<double>>;

template <class C>
void Multiply(bool ta, bool tb, int64_t m, int64_t n, int64_t k, const C* a, int64_t lda, const C* b, int64_t ldb, C* c,
              int64_t ldc) {
  // Tiny products: the call would cost more than the work.
  if (!kHasGemm<C> || m * n * k <= 64) {
    const int64_t cost = m * n * k;
    ParallelFor(m, cost, [=](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        for (int64_t j = 0; j < n; ++j) c[i * ldc + j] = C(0);
        for (int64_t p = 0; p < k; ++p) {
          const C v = ta ? a[p * lda + i] : a[i * lda + p];
          for (int64_t j = 0; j < n; ++j)
            c[i * ldc + j] = static_cast<C>(c[i * ldc + j] + Product(v, tb ? b[j * ldb + p] : b[p * ldb + j]));
        }
      }
    });
    return;
  }
  if constexpr (kHasGemm<C>) Gemm<C>(ta, tb, m, n, k, a, lda, b, ldb, c, ldc);
}

// What one thread computes of a product that is shared among threads: parts [begin, end) of `of`.
struct Share {
  int64_t begin = 0, end = 1, of = 1;
  // Where part `i` of so many begins, a multiple of `step`.
  int64_t Bound(int64_t i, int64_t size, int64_t step) const { return i == of ? size : size * i / of / step * step; }
};
constexpr int64_t kRowsOfPart = 16;  // oneDNN's kernels compute so many at once

struct Problem {
  const void* x;
  const void* y;
  void* out;
  Dimensions batch, m, n, k;
};

// What depends on the types of the operands and of the result besides that of the arithmetic, C. The rest of a product
// is compiled once per C.
template <class C>
struct Casts {
  // to[i * columns + j] = from[rows[i] + columns[j]], and back.
  void (*pack)(const void* from, const std::vector<int64_t>& rows, const std::vector<int64_t>& columns, C* to);
  void (*unpack)(const C* from, const std::vector<int64_t>& rows, const std::vector<int64_t>& columns, void* to);
  int64_t operand_bytes, result_bytes;
  bool same_operand, same_result;  // as C
};

template <class T, class C>
void Pack(const void* from, const std::vector<int64_t>& rows, const std::vector<int64_t>& columns, C* to) {
  const T* x = static_cast<const T*>(from);
  for (int64_t row : rows) {
    for (int64_t column : columns) *to++ = Widen<C>(x[row + column]);
  }
}

template <class C, class R>
void Unpack(const C* from, const std::vector<int64_t>& rows, const std::vector<int64_t>& columns, void* to) {
  R* out = static_cast<R*>(to);
  for (int64_t row : rows) {
    for (int64_t column : columns) out[row + column] = Narrow<R>(*from++);
  }
}

// Whether the second factor is the first one transposed, so that what is below the diagonal is what is above it.
bool IsSymmetric(const Problem& p) {
  const auto alike = [](const Dimension& d) { return d.x == d.y; };
  return p.x == p.y && std::all_of(p.batch.begin(), p.batch.end(), alike) &&
         std::all_of(p.k.begin(), p.k.end(), alike) &&
         std::equal(p.m.begin(), p.m.end(), p.n.begin(), p.n.end(),
                    [](const Dimension& m, const Dimension& n) { return m.size == n.size && m.x == n.y; });
}

template <class C>
void Run(const Problem& p, const Casts<C>& casts, const Share& share) {
  const int64_t m = Size(p.m), n = Size(p.n), k = Size(p.k), batches = Size(p.batch);
  if (m * n * batches == 0) return;
  Matrix a = Fit(p.m, &Dimension::x, p.k, &Dimension::x), b = Fit(p.k, &Dimension::y, p.n, &Dimension::y);
  Matrix c = Fit(p.m, &Dimension::result, p.n, &Dimension::result);
  if (!casts.same_operand || k == 0) a.direct = b.direct = false;
  if (!casts.same_result) c.direct = false;
  if (a.direct && b.direct && c.direct && c.transposed) {
    // out^T = y^T x^T.
    Problem q{p.y, p.x, p.out, p.batch, p.n, p.m, p.k};
    for (Dimensions* d : {&q.batch, &q.m, &q.n, &q.k}) {
      for (Dimension& e : *d) std::swap(e.x, e.y);
    }
    Matrix swapped = Fit(q.m, &Dimension::result, q.n, &Dimension::result);
    if (swapped.direct && !swapped.transposed) return Run(q, casts, share);
  }
  if (c.transposed) c.direct = false;
  const bool halved = kHasGemm<C> && IsWorthHalving(n, k) && IsSymmetric(p);
  std::vector<int64_t> bx, by, bo;
  if (batches > 1) {
    bx = Offsets(p.batch, &Dimension::x);
    by = Offsets(p.batch, &Dimension::y);
    bo = Offsets(p.batch, &Dimension::result);
  }
  std::vector<int64_t> xm, xk, yk, yn, om, on;
  if (!a.direct) xm = Offsets(p.m, &Dimension::x), xk = Offsets(p.k, &Dimension::x);
  if (!b.direct && !halved) yk = Offsets(p.k, &Dimension::y), yn = Offsets(p.n, &Dimension::y);
  if (!c.direct) om = Offsets(p.m, &Dimension::result), on = Offsets(p.n, &Dimension::result);
  // A part is rows of one product, products of a stack, or else all of it the first.
  const bool cut = share.of > 1 && batches == 1 && a.direct && b.direct && c.direct && !halved && kHasGemm<C> &&
                   m >= share.of * kRowsOfPart;
  auto one = [&](int64_t i) {
    const char* xb = static_cast<const char*>(p.x) + (batches > 1 ? bx[i] * casts.operand_bytes : 0);
    const char* yb = static_cast<const char*>(p.y) + (batches > 1 ? by[i] * casts.operand_bytes : 0);
    char* ob = static_cast<char*>(p.out) + (batches > 1 ? bo[i] * casts.result_bytes : 0);
    std::unique_ptr<Scratch<C>> packed_a, packed_b, packed_c;
    // What is not direct is replaced below.
    const C* pa = reinterpret_cast<const C*>(xb);
    const C* pb = reinterpret_cast<const C*>(yb);
    C* pc = reinterpret_cast<C*>(ob);
    Matrix ma = a, mb = b;
    int64_t ldc = c.ld;
    if (!a.direct) {
      packed_a = std::make_unique<Scratch<C>>(m * k);
      casts.pack(xb, xm, xk, packed_a->data);
      pa = packed_a->data;
      ma = {true, false, std::max<int64_t>(1, k)};
    }
    if (!b.direct && !halved) {
      packed_b = std::make_unique<Scratch<C>>(k * n);
      casts.pack(yb, yk, yn, packed_b->data);
      pb = packed_b->data;
      mb = {true, false, n};
    }
    if (!c.direct) {
      packed_c = std::make_unique<Scratch<C>>(m * n);
      pc = packed_c->data;
      ldc = n;
    }
    if constexpr (kHasGemm<C>) {
      if (halved) SymmetricGemm<C>(ma.transposed, n, k, pa, ma.ld, pc, ldc);
    }
    if (cut) {
      if constexpr (kHasGemm<C>) {
        GemmRows<C>(ma.transposed, mb.transposed, m, n, k, pa, ma.ld, pb, mb.ld, pc, ldc,
                    share.Bound(share.begin, m, kRowsOfPart), share.Bound(share.end, m, kRowsOfPart));
      }
    } else if (!halved) {
      Multiply<C>(ma.transposed, mb.transposed, m, n, k, pa, ma.ld, pb, mb.ld, pc, ldc);
    }
    if (!c.direct) casts.unpack(pc, om, on, ob);
  };
  if (batches == 1) {
    if (cut || share.begin == 0) one(0);
    return;
  }
  if (share.of > 1) {
    for (int64_t i = share.Bound(share.begin, batches, 1); i < share.Bound(share.end, batches, 1); ++i) one(i);
    return;
  }
  const double work = static_cast<double>(batches) * static_cast<double>(m) * static_cast<double>(n) *
                      static_cast<double>(std::max<int64_t>(k, 1)) / 25;
  // Whole products per thread when there are enough of them, else each product is shared.
  if (batches >= 2 * NumThreads()) {
    ParallelFor(batches, static_cast<int64_t>(work), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) one(i);
    });
  } else {
    for (int64_t i = 0; i < batches; ++i) one(i);
  }
}

// T: of x and y, C: of the arithmetic, R: of the result.
template <class T, class C, class R>
void Run(const Problem& p, const Share& share) {
  Run<C>(p, {Pack<T, C>, Unpack<C, R>, sizeof(T), sizeof(R), std::is_same_v<T, C>, std::is_same_v<R, C>}, share);
}

template <class T>
void ByResult(const Problem& p, DType result, const Share& share) {
  if constexpr (std::is_same_v<T, std::complex<float>> || std::is_same_v<T, std::complex<double>>) {
    if (result == DType::kC64)
      Run<T, T, std::complex<float>>(p, share);
    else
      Run<T, std::complex<double>, std::complex<double>>(p, share);
  } else if constexpr (kIsInteger<T> && !std::is_same_v<T, bool>) {
    VisitDType(result, [&](auto tag) {
      using R = typename decltype(tag)::type;
      if constexpr (kIsInteger<R> && !std::is_same_v<R, bool>) {
        // Integers wrap: without a sign they have the same bits. It counts only where an operand becomes wider.
        using C = std::make_unsigned_t<WordOf<R>>;
        using X = std::conditional_t<(kBitsOf<T> < kBitsOf<C>), T, std::make_unsigned_t<WordOf<T>>>;
        Run<X, C, std::conditional_t<kIsSmallInt<R>, R, C>>(p, share);
      }
    });
  } else if constexpr (std::is_same_v<T, bool>) {
    VisitDType(result, [&](auto tag) {
      using R = typename decltype(tag)::type;
      if constexpr (kIsInteger<R>) Run<T, uint32_t, R>(p, share);
    });
  } else {
    VisitDType(result, [&](auto tag) {
      using R = typename decltype(tag)::type;
      constexpr bool kDouble = std::is_same_v<T, double> || std::is_same_v<R, double>;
      if constexpr (kIsSmallFloat<R> || std::is_floating_point_v<R>)
        Run<T, std::conditional_t<kDouble, double, float>, R>(p, share);
    });
  }
}

void ContractShare(WeftFrame* frame, const abi::Contract<InWords>& op, const Share& share) {
  const int64_t width = ByteWidth(op.dtype);
  // On the stack: a small product takes less than four allocations.
  std::array<std::byte, 2048> memory;
  std::pmr::monotonic_buffer_resource dims(memory.data(), memory.size());
  const Problem p{static_cast<const char*>(frame->slots[op.x]) + op.x_start * width,
                  static_cast<const char*>(frame->slots[op.y]) + op.y_start * width,
                  frame->slots[op.result],
                  Collapse(op.batch, &dims),
                  Collapse(op.m, &dims),
                  Collapse(op.n, &dims),
                  Collapse(op.k, &dims)};
  VisitDType(op.dtype, [&](auto tag) { ByResult<typename decltype(tag)::type>(p, op.result_dtype, share); });
}

void Contract(WeftFrame* frame, const abi::Contract<InWords>& op) { ContractShare(frame, op, {}); }

}  // namespace

void FillContract(WeftOp* ops) { Put<Contract>(ops); }

void ProductParts(WeftFrame* frame, const int64_t* desc, int64_t begin, int64_t end, int64_t of) {
  ContractShare(frame, abi::Decode<abi::Contract<InWords>>(desc), {begin, end, of});
}

}  // namespace weft::cpu
