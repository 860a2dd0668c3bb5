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
#include <utility>
#include <vector>

#include "backends/cpu/core/buffer_cache.h"
#include "backends/cpu/core/runtime.h"
#include "backends/cpu/core/thread_pool.h"
#include "backends/cpu/ops/gemm.h"
#include "base/dtype.h"
#include "base/product.h"
#include "lowering/abi/product_cost.h"
#include "lowering/abi/product_form.h"

namespace weft::cpu {
namespace {

// One dimension of every element's offset: [0, size) -> offset for each of the group's points.
std::vector<int64_t> Offsets(const ProductDimensions& dims, int64_t ProductDimension::* stride) {
  std::vector<int64_t> out = {0};
  for (const ProductDimension& d : dims) {
    std::vector<int64_t> next;
    next.reserve(out.size() * static_cast<size_t>(d.size));
    for (int64_t o : out) {
      for (int64_t i = 0; i < d.size; ++i) next.push_back(o + i * d.*stride);
    }
    out = std::move(next);
  }
  return out;
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

// What one thread computes of a product, in terms of RowsOf.
struct Rows {
  bool are_cut = false;  // otherwise the first ones are all of it
  int64_t first = 0, last = 0;
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

// `rows`: on this thread; nothing: all of it.
template <class C>
void Run(WeftFrame* frame, const ContractWords& op, const Casts<C>& casts, const Rows* rows) {
  // On the stack: a small product takes less than four allocations.
  std::array<std::byte, 2048> memory;
  std::pmr::monotonic_buffer_resource dims(memory.data(), memory.size());
  const ProductForm form(op, casts.same_operand, casts.same_result, &dims);
  const auto begin = [&](int64_t slot, int64_t start) {
    return static_cast<const char*>(frame->slots[slot]) + start * casts.operand_bytes;
  };
  const char *x = begin(op.x, op.x_start), *y = begin(op.y, op.y_start);
  if (form.swapped) std::swap(x, y);
  char* out = static_cast<char*>(frame->slots[op.result]);
  const ProductMatrix &a = form.x, &b = form.y, &c = form.result;
  const int64_t m = SizeOf(form.m), n = SizeOf(form.n), k = SizeOf(form.k), batches = SizeOf(form.batch);
  if (m * n * batches == 0) return;
  const bool cut = rows != nullptr && rows->are_cut && batches == 1;
  const bool halved = kHasGemm<C> && !cut && IsWorthHalving(n, k) && x == y && form.IsSymmetric();
  std::vector<int64_t> bx, by, bo;
  if (batches > 1) {
    bx = Offsets(form.batch, &ProductDimension::x);
    by = Offsets(form.batch, &ProductDimension::y);
    bo = Offsets(form.batch, &ProductDimension::result);
  }
  std::vector<int64_t> xm, xk, yk, yn, om, on;
  if (!a.direct) xm = Offsets(form.m, &ProductDimension::x), xk = Offsets(form.k, &ProductDimension::x);
  if (!b.direct && !halved) yk = Offsets(form.k, &ProductDimension::y), yn = Offsets(form.n, &ProductDimension::y);
  if (!c.direct) om = Offsets(form.m, &ProductDimension::result), on = Offsets(form.n, &ProductDimension::result);
  auto one = [&](int64_t i) {
    const char* xb = x + (batches > 1 ? bx[i] * casts.operand_bytes : 0);
    const char* yb = y + (batches > 1 ? by[i] * casts.operand_bytes : 0);
    char* ob = out + (batches > 1 ? bo[i] * casts.result_bytes : 0);
    std::unique_ptr<Scratch<C>> packed_a, packed_b, packed_c;
    // What is not direct is replaced below.
    const C* pa = reinterpret_cast<const C*>(xb);
    const C* pb = reinterpret_cast<const C*>(yb);
    C* pc = reinterpret_cast<C*>(ob);
    ProductMatrix ma = a, mb = b;
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
      if (cut) GemmRows<C>(ma.transposed, mb.transposed, n, k, pa, ma.ld, pb, mb.ld, pc, ldc, rows->first, rows->last);
    }
    if (!halved && !cut) Multiply<C>(ma.transposed, mb.transposed, m, n, k, pa, ma.ld, pb, mb.ld, pc, ldc);
    if (!c.direct) casts.unpack(pc, om, on, ob);
  };
  if (rows != nullptr && !cut) {
    const int64_t first = rows->are_cut ? rows->first : rows->first == 0 ? 0 : batches;
    for (int64_t i = first; i < (rows->are_cut ? rows->last : batches); ++i) one(i);
    return;
  }
  if (batches == 1) return one(0);
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
void Run(WeftFrame* frame, const ContractWords& op, const Rows* rows) {
  Run<C>(frame, op, {Pack<T, C>, Unpack<C, R>, sizeof(T), sizeof(R), std::is_same_v<T, C>, std::is_same_v<R, C>}, rows);
}

template <class T>
void ByResult(WeftFrame* frame, const ContractWords& op, const Rows* rows) {
  const DType result = op.result_dtype;
  if constexpr (std::is_same_v<T, std::complex<float>> || std::is_same_v<T, std::complex<double>>) {
    if (result == DType::kC64)
      Run<T, T, std::complex<float>>(frame, op, rows);
    else
      Run<T, std::complex<double>, std::complex<double>>(frame, op, rows);
  } else if constexpr (kIsInteger<T> && !std::is_same_v<T, bool>) {
    VisitDType(result, [&](auto tag) {
      using R = typename decltype(tag)::type;
      if constexpr (kIsInteger<R> && !std::is_same_v<R, bool>) {
        // Integers wrap: without a sign they have the same bits. It counts only where an operand becomes wider.
        using C = std::make_unsigned_t<WordOf<R>>;
        using X = std::conditional_t<(kBitsOf<T> < kBitsOf<C>), T, std::make_unsigned_t<WordOf<T>>>;
        Run<X, C, std::conditional_t<kIsSmallInt<R>, R, C>>(frame, op, rows);
      }
    });
  } else if constexpr (std::is_same_v<T, bool>) {
    VisitDType(result, [&](auto tag) {
      using R = typename decltype(tag)::type;
      if constexpr (kIsInteger<R>) Run<T, uint32_t, R>(frame, op, rows);
    });
  } else {
    VisitDType(result, [&](auto tag) {
      using R = typename decltype(tag)::type;
      constexpr bool kDouble = std::is_same_v<T, double> || std::is_same_v<R, double>;
      if constexpr (kIsSmallFloat<R> || std::is_floating_point_v<R>)
        Run<T, std::conditional_t<kDouble, double, float>, R>(frame, op, rows);
    });
  }
}

void ContractRows(WeftFrame* frame, const ContractWords& op, const Rows* rows) {
  VisitDType(op.dtype, [&](auto tag) { ByResult<typename decltype(tag)::type>(frame, op, rows); });
}

void Contract(WeftFrame* frame, const ContractWords& op) { ContractRows(frame, op, nullptr); }

}  // namespace

void FillContract(WeftOp* ops) { Put<Contract>(ops); }

void ProductRows(WeftFrame* frame, const int64_t* desc, int64_t first, int64_t last) {
  const auto op = abi::Decode<ContractWords>(desc);
  const Rows rows{RowsOf(op).count > 1, first, last};
  ContractRows(frame, op, &rows);
}

}  // namespace weft::cpu
