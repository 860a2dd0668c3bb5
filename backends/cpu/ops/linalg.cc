// Linear algebra through OpenBLAS' LAPACK, matrix by matrix. LAPACK wants columns contiguous, so each matrix is
// transposed into scratch memory and back; the work in between is cubic. Eigenvalues and singular values come by divide
// and conquer.
#include <cblas.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <cstring>
#include <limits>
#include <numeric>
#include <string>
#include <type_traits>
#include <vector>

#include "backends/cpu/core/runtime.h"
#include "backends/cpu/core/thread_pool.h"
#include "backends/cpu/ops/blas_workspace.h"
#include "base/dtype.h"

// LAPACK's Fortran symbols. Character arguments have hidden lengths at the end, which the reference ABI lets callers
// leave out for single characters; they are passed anyway.
#define WEFT_LAPACK(name, ...)             \
  extern "C" void s##name##_(__VA_ARGS__); \
  extern "C" void d##name##_(__VA_ARGS__); \
  extern "C" void c##name##_(__VA_ARGS__); \
  extern "C" void z##name##_(__VA_ARGS__);
WEFT_LAPACK(potrf, const char*, const int*, void*, const int*, int*, size_t)
WEFT_LAPACK(getrf, const int*, const int*, void*, const int*, int*, int*)
WEFT_LAPACK(geqrf, const int*, const int*, void*, const int*, void*, void*, const int*, int*)
extern "C" {
void sorgqr_(const int*, const int*, const int*, void*, const int*, const void*, void*, const int*, int*);
void dorgqr_(const int*, const int*, const int*, void*, const int*, const void*, void*, const int*, int*);
void cungqr_(const int*, const int*, const int*, void*, const int*, const void*, void*, const int*, int*);
void zungqr_(const int*, const int*, const int*, void*, const int*, const void*, void*, const int*, int*);
void ssyevd_(const char*, const char*, const int*, void*, const int*, void*, void*, const int*, void*, const int*, int*,
             size_t, size_t);
void dsyevd_(const char*, const char*, const int*, void*, const int*, void*, void*, const int*, void*, const int*, int*,
             size_t, size_t);
void cheevd_(const char*, const char*, const int*, void*, const int*, void*, void*, const int*, void*, const int*,
             void*, const int*, int*, size_t, size_t);
void zheevd_(const char*, const char*, const int*, void*, const int*, void*, void*, const int*, void*, const int*,
             void*, const int*, int*, size_t, size_t);
void cgeev_(const char*, const char*, const int*, void*, const int*, void*, void*, const int*, void*, const int*, void*,
            const int*, void*, int*, size_t, size_t);
void zgeev_(const char*, const char*, const int*, void*, const int*, void*, void*, const int*, void*, const int*, void*,
            const int*, void*, int*, size_t, size_t);
void sgeev_(const char*, const char*, const int*, void*, const int*, void*, void*, void*, const int*, void*, const int*,
            void*, const int*, int*, size_t, size_t);
void dgeev_(const char*, const char*, const int*, void*, const int*, void*, void*, void*, const int*, void*, const int*,
            void*, const int*, int*, size_t, size_t);
void sgesdd_(const char*, const int*, const int*, void*, const int*, void*, void*, const int*, void*, const int*, void*,
             const int*, void*, int*, size_t);
void dgesdd_(const char*, const int*, const int*, void*, const int*, void*, void*, const int*, void*, const int*, void*,
             const int*, void*, int*, size_t);
void cgesdd_(const char*, const int*, const int*, void*, const int*, void*, void*, const int*, void*, const int*, void*,
             const int*, void*, void*, int*, size_t);
void zgesdd_(const char*, const int*, const int*, void*, const int*, void*, void*, const int*, void*, const int*, void*,
             const int*, void*, void*, int*, size_t);
}

namespace weft::cpu {
namespace {

using C64 = std::complex<float>;
using C128 = std::complex<double>;
template <class T>
constexpr bool kComplex = std::is_same_v<T, C64> || std::is_same_v<T, C128>;
template <class T>
struct RealOf {
  using type = T;
};
template <class T>
struct RealOf<std::complex<T>> {
  using type = T;
};
template <class T>
using Real = typename RealOf<T>::type;

template <class T, class F, class... A>
void Pick(F s, F d, F c, F z, A... a) {
  if constexpr (std::is_same_v<T, float>)
    s(a...);
  else if constexpr (std::is_same_v<T, double>)
    d(a...);
  else if constexpr (std::is_same_v<T, C64>)
    c(a...);
  else
    z(a...);
}

template <class T>
using Matrix = std::vector<T>;

// y[j, i] = x[i, j], in blocks of which the rows of both are in the cache.
template <class T>
void Transpose(const T* x, int64_t rows, int64_t cols, int64_t x_ld, T* y, int64_t y_ld) {
  constexpr int64_t kBlock = 32;
  for (int64_t i0 = 0; i0 < rows; i0 += kBlock) {
    const int64_t i1 = std::min(rows, i0 + kBlock);
    for (int64_t j0 = 0; j0 < cols; j0 += kBlock) {
      const int64_t j1 = std::min(cols, j0 + kBlock);
      for (int64_t j = j0; j < j1; ++j) {
        for (int64_t i = i0; i < i1; ++i) y[j * y_ld + i] = x[i * x_ld + j];
      }
    }
  }
}

// [rows, cols] row-major to column-major, and back.
template <class T>
Matrix<T> Columns(const T* x, int64_t rows, int64_t cols) {
  Matrix<T> y(static_cast<size_t>(std::max<int64_t>(1, rows * cols)));
  Transpose(x, rows, cols, cols, y.data(), rows);
  return y;
}
template <class T>
void Rows(const T* x, int64_t rows, int64_t cols, int64_t ld, T* y) {
  Transpose(x, cols, rows, ld, y, cols);
}

struct Stack {
  int64_t count = 1, rows, cols;
  explicit Stack(const std::vector<int64_t>& shape) : rows(shape[shape.size() - 2]), cols(shape.back()) {
    for (size_t d = 0; d + 2 < shape.size(); ++d) count *= shape[d];
  }
};

template <class T>
T Nan() {
  return T(std::numeric_limits<Real<T>>::quiet_NaN());
}

// Whether LAPACK may be given these: it complains on stderr about a NaN, and its iterations need not end.
template <class T>
bool AllFinite(const T* x, int64_t n) {
  return std::all_of(x, x + n, [](const T& v) {
    if constexpr (kComplex<T>)
      return std::isfinite(v.real()) && std::isfinite(v.imag());
    else
      return std::isfinite(v);
  });
}

template <class F>
void OnMatrices(const DenseTensor& x, double cost, const F& f) {
  const Stack s(x.shape);
  VisitDType(x.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (std::is_floating_point_v<T> || kComplex<T>) {
      const double work = cost * static_cast<double>(s.count) * static_cast<double>(s.rows) *
                          static_cast<double>(s.cols) * static_cast<double>(std::max(s.rows, s.cols));
      ParallelFor(s.count, static_cast<int64_t>(work), [&](int64_t begin, int64_t end) {
        const BlasWorkspace workspace;
        for (int64_t k = begin; k < end; ++k) f(tag, k, s.rows, s.cols);
      });
    }
  });
}

// LAPACK counts in 32 bits: `numbers` of a matrix of m x n, or of the memory that it works in.
bool Countable(WeftFrame* frame, const char* what, int64_t numbers, int64_t m, int64_t n) {
  if (numbers <= std::numeric_limits<int>::max()) return true;
  Fail(frame, std::string(what) + ": a matrix of " + std::to_string(m) + " x " + std::to_string(n) +
                  " needs more than LAPACK can count");
  return false;
}
bool Countable(WeftFrame* frame, const char* what, const DenseTensor& x) {
  const Stack s(x.shape);
  return Countable(frame, what, std::max(s.rows, s.cols), s.rows, s.cols);
}

void Cholesky(WeftFrame* frame, const abi::Cholesky<InWords>& op) {
  const DenseTensor x(frame, op.x), l(frame, op.l);
  OnMatrices(x, 0.2, [&](auto tag, int64_t k, int64_t n64, int64_t) {
    using T = typename decltype(tag)::type;
    const int n = static_cast<int>(n64);
    Matrix<T> a = Columns(x.as<T>() + k * n * n, n, n);
    int info = 0;
    if (n > 0) Pick<T>(spotrf_, dpotrf_, cpotrf_, zpotrf_, "L", &n, static_cast<void*>(a.data()), &n, &info, size_t{1});
    T* out = l.as<T>() + k * n * n;
    Rows(a.data(), n, n, n, out);
    for (int64_t i = 0; i < n64; ++i) {
      T *row = out + i * n64, *above = row + i + 1;
      std::fill(above, row + n64, T(0));
      if (info != 0) std::fill(row, above, Nan<T>());
    }
  });
}

void Lu(WeftFrame* frame, const abi::Lu<InWords>& op) {
  const DenseTensor x(frame, op.x), lu(frame, op.lu), pivots(frame, op.pivots), permutation(frame, op.permutation);
  if (!Countable(frame, "lu", x)) return;
  OnMatrices(x, 0.3, [&](auto tag, int64_t k, int64_t m64, int64_t n64) {
    using T = typename decltype(tag)::type;
    const int m = static_cast<int>(m64), n = static_cast<int>(n64), q = std::min(m, n);
    Matrix<T> a = Columns(x.as<T>() + k * m64 * n64, m, n);
    std::vector<int> ipiv(static_cast<size_t>(std::max(1, q)), 1);
    int info = 0;
    if (q > 0)
      Pick<T>(sgetrf_, dgetrf_, cgetrf_, zgetrf_, &m, &n, static_cast<void*>(a.data()), &m, ipiv.data(), &info);
    Rows(a.data(), m, n, m, lu.as<T>() + k * m64 * n64);
    int32_t* p = permutation.as<int32_t>() + k * m;
    std::iota(p, p + m, 0);
    for (int i = 0; i < q; ++i) {
      pivots.as<int32_t>()[k * q + i] = ipiv[i] - 1;
      std::swap(p[i], p[ipiv[i] - 1]);
    }
  });
}

void Qr(WeftFrame* frame, const abi::Qr<InWords>& op) {
  const DenseTensor x(frame, op.x), q(frame, op.q), r(frame, op.r);
  if (!Countable(frame, "qr", x)) return;
  OnMatrices(x, 0.6, [&](auto tag, int64_t k, int64_t m64, int64_t n64) {
    using T = typename decltype(tag)::type;
    const int m = static_cast<int>(m64), n = static_cast<int>(n64), s = std::min(m, n);
    if (s == 0) return;
    // Blocks of 64 columns, or of fewer where they are very long.
    const int lwork = static_cast<int>(std::min<int64_t>(64 * n64, std::numeric_limits<int>::max()));
    Matrix<T> a = Columns(x.as<T>() + k * m64 * n64, m, n), tau(static_cast<size_t>(s)),
              work(static_cast<size_t>(lwork));
    int info = 0;
    Pick<T>(sgeqrf_, dgeqrf_, cgeqrf_, zgeqrf_, &m, &n, static_cast<void*>(a.data()), &m,
            static_cast<void*>(tau.data()), static_cast<void*>(work.data()), &lwork, &info);
    T* out = r.as<T>() + k * s * n64;
    for (int i = 0; i < s; ++i) {
      for (int j = 0; j < n; ++j) out[i * n64 + j] = j < i ? T(0) : a[static_cast<size_t>(j) * m + i];
    }
    Pick<T>(sorgqr_, dorgqr_, cungqr_, zungqr_, &m, &s, &s, static_cast<void*>(a.data()), &m,
            static_cast<const void*>(tau.data()), static_cast<void*>(work.data()), &lwork, &info);
    Rows(a.data(), m, s, m, q.as<T>() + k * m64 * s);
  });
}

void Eigh(WeftFrame* frame, const abi::Eigh<InWords>& op) {
  const DenseTensor x(frame, op.x), w(frame, op.w), v(frame, op.v);
  const int64_t order = Stack(x.shape).rows, numbers = 2 * order * order + 6 * order + 1;
  if (!Countable(frame, "eigh", numbers, order, order)) return;
  OnMatrices(x, 3, [&](auto tag, int64_t k, int64_t n64, int64_t) {
    using T = typename decltype(tag)::type;
    using R = Real<T>;
    const int n = static_cast<int>(n64);
    if (n == 0) return;
    const T* matrix = x.as<T>() + k * n64 * n64;
    auto fail = [&] {
      std::fill_n(w.as<R>() + k * n, n, Nan<R>());
      std::fill_n(v.as<T>() + k * n64 * n64, n64 * n64, Nan<T>());
    };
    if (!AllFinite(matrix, n64 * n64)) return fail();
    const int lwork = static_cast<int>(numbers), liwork = 5 * n + 3;
    Matrix<T> a = Columns(matrix, n, n), work(static_cast<size_t>(lwork));
    std::vector<int> int_work(static_cast<size_t>(liwork));
    int info = 0;
    void *pa = a.data(), *pw = w.as<R>() + k * n, *pk = work.data(), *pi = int_work.data();
    if constexpr (kComplex<T>) {
      std::vector<R> real_work(static_cast<size_t>(lwork));
      (std::is_same_v<T, C64> ? cheevd_ : zheevd_)("V", "L", &n, pa, &n, pw, pk, &lwork, real_work.data(), &lwork, pi,
                                                   &liwork, &info, 1, 1);
    } else {
      (std::is_same_v<T, float> ? ssyevd_ : dsyevd_)("V", "L", &n, pa, &n, pw, pk, &lwork, pi, &liwork, &info, 1, 1);
    }
    if (info != 0) return fail();
    Rows(a.data(), n, n, n, v.as<T>() + k * n64 * n64);
  });
}

template <class R>
int EigOfComplex(Matrix<std::complex<R>>* a, int n, bool vectors, std::complex<R>* values, std::complex<R>* columns) {
  Matrix<std::complex<R>> work(static_cast<size_t>(66 * n));
  std::vector<R> real_work(static_cast<size_t>(2 * n));
  const int lwork = static_cast<int>(work.size()), one = 1, ldv = vectors ? n : 1;
  int info = 0;
  (std::is_same_v<R, float> ? cgeev_ : zgeev_)("N", vectors ? "V" : "N", &n, a->data(), &n, values, nullptr, &one,
                                               columns, &ldv, work.data(), &lwork, real_work.data(), &info, 1, 1);
  return info;
}

// Of a matrix without imaginary parts: complex eigenvalues come in pairs of exact conjugates.
template <class R>
int EigOfReal(const Matrix<std::complex<R>>& matrix, int n, bool vectors, std::complex<R>* values,
              std::complex<R>* columns) {
  Matrix<R> a(matrix.size()), found(vectors ? matrix.size() : 1), work(static_cast<size_t>(66 * n));
  std::transform(matrix.begin(), matrix.end(), a.begin(), [](const std::complex<R>& x) { return x.real(); });
  std::vector<R> re(static_cast<size_t>(n)), im(static_cast<size_t>(n));
  const int lwork = static_cast<int>(work.size()), one = 1, ldv = vectors ? n : 1;
  int info = 0;
  (std::is_same_v<R, float> ? sgeev_ : dgeev_)("N", vectors ? "V" : "N", &n, a.data(), &n, re.data(), im.data(),
                                               nullptr, &one, found.data(), &ldv, work.data(), &lwork, &info, 1, 1);
  for (int c = 0; c < n; ++c) {
    values[c] = {re[c], im[c]};
    if (!vectors) continue;
    // The first of a pair has a positive imaginary part; their columns hold its vector's real and imaginary parts.
    const R* parts = found.data() + static_cast<size_t>(im[c] < 0 ? c - 1 : c) * n;
    std::complex<R>* column = columns + static_cast<size_t>(c) * n;
    for (int i = 0; i < n; ++i) {
      const R other = im[c] == 0 ? R(0) : parts[n + i];
      column[i] = {parts[i], im[c] < 0 ? -other : other};
    }
    // Of complex matrices LAPACK makes the largest entry positive.
    const auto* largest =
        std::max_element(column, column + n, [](auto x, auto y) { return std::norm(x) < std::norm(y); });
    if (largest->real() >= 0) continue;
    for (int i = 0; i < n; ++i) column[i] = {-column[i].real(), im[c] == 0 ? R(0) : -column[i].imag()};
  }
  return info;
}

void Eig(WeftFrame* frame, const abi::Eig<InWords>& op) {
  const bool vectors = op.vectors;
  const DenseTensor x(frame, op.x), w(frame, op.w);
  const DenseTensor v = vectors ? DenseTensor(frame, op.v) : w;
  OnMatrices(x, 25, [&](auto tag, int64_t k, int64_t n64, int64_t) {
    using T = typename decltype(tag)::type;
    if constexpr (kComplex<T>) {
      const int n = static_cast<int>(n64);
      if (n == 0) return;
      const T* matrix = x.as<T>() + k * n64 * n64;
      T *values = w.as<T>() + k * n64, *columns = v.as<T>() + k * n64 * n64;
      auto fail = [&] {
        std::fill_n(values, n, Nan<T>());
        if (vectors) std::fill_n(columns, n64 * n64, Nan<T>());
      };
      if (!AllFinite(matrix, n64 * n64)) return fail();
      Matrix<T> a = Columns(matrix, n, n), found(vectors ? static_cast<size_t>(n) * n : 1), own(static_cast<size_t>(n));
      const bool real = std::all_of(a.begin(), a.end(), [](const T& value) { return value.imag() == 0; });
      const int info = real ? EigOfReal(a, n, vectors, own.data(), found.data())
                            : EigOfComplex(&a, n, vectors, own.data(), found.data());
      if (info != 0) return fail();
      // LAPACK has them in the order in which they came off.
      std::vector<int> order(static_cast<size_t>(n));
      std::iota(order.begin(), order.end(), 0);
      std::stable_sort(order.begin(), order.end(), [&](int i, int j) {
        return std::make_pair(own[i].real(), own[i].imag()) < std::make_pair(own[j].real(), own[j].imag());
      });
      for (int c = 0; c < n; ++c) {
        values[c] = own[order[c]];
        for (int i = 0; vectors && i < n; ++i) columns[i * n64 + c] = found[static_cast<size_t>(order[c]) * n + i];
      }
    }
  });
}

void Svd(WeftFrame* frame, const abi::Svd<InWords>& op) {
  const bool vectors = op.vectors;
  const DenseTensor x(frame, op.x), s(frame, op.singular);
  const DenseTensor left = vectors ? DenseTensor(frame, op.u) : s, vt = vectors ? DenseTensor(frame, op.vt) : s;
  const Stack size(x.shape);
  const int64_t shorter = std::min(size.rows, size.cols), longer = std::max(size.rows, size.cols);
  // What LAPACK's manual asks for, and room for blocks of 64 columns.
  const int64_t numbers = (vectors ? 4 * shorter * shorter : 0) + 10 * shorter + 64 * (shorter + longer);
  if (!Countable(frame, "svd", numbers, size.rows, size.cols)) return;
  OnMatrices(x, 6, [&](auto tag, int64_t k, int64_t m64, int64_t n64) {
    using T = typename decltype(tag)::type;
    using R = Real<T>;
    const int m = static_cast<int>(m64), n = static_cast<int>(n64), q = std::min(m, n);
    if (q == 0) return;
    const T* matrix = x.as<T>() + k * m64 * n64;
    auto fail = [&] {
      std::fill_n(s.as<R>() + k * q, q, Nan<R>());
      if (!vectors) return;
      std::fill_n(left.as<T>() + k * m64 * q, m64 * q, Nan<T>());
      std::fill_n(vt.as<T>() + k * q * n64, q * n64, Nan<T>());
    };
    if (!AllFinite(matrix, m64 * n64)) return fail();
    Matrix<T> a = Columns(matrix, m, n), u(vectors ? static_cast<size_t>(m) * q : 1),
              v(vectors ? static_cast<size_t>(n) * q : 1);
    Matrix<T> work(static_cast<size_t>(numbers));
    std::vector<int> int_work(static_cast<size_t>(8 * q));
    const int lwork = static_cast<int>(numbers), ldu = vectors ? m : 1, ldv = vectors ? q : 1;
    const char* job = vectors ? "S" : "N";
    int info = 0;
    void *pa = a.data(), *ps = s.as<R>() + k * q, *pu = u.data(), *pv = v.data(), *pk = work.data(),
         *pi = int_work.data();
    if constexpr (kComplex<T>) {
      const int64_t squares = std::max(5 * shorter * shorter, 2 * shorter * (shorter + longer));
      std::vector<R> real_work(static_cast<size_t>(vectors ? squares + 5 * shorter : 7 * shorter));
      (std::is_same_v<T, C64> ? cgesdd_ : zgesdd_)(job, &m, &n, pa, &m, ps, pu, &ldu, pv, &ldv, pk, &lwork,
                                                   real_work.data(), pi, &info, 1);
    } else {
      (std::is_same_v<T, float> ? sgesdd_ : dgesdd_)(job, &m, &n, pa, &m, ps, pu, &ldu, pv, &ldv, pk, &lwork, pi, &info,
                                                     1);
    }
    if (info != 0) return fail();
    if (!vectors) return;
    Rows(u.data(), m, q, m, left.as<T>() + k * m64 * q);
    Rows(v.data(), q, n, q, vt.as<T>() + k * q * n64);
  });
}

void TriangularSolve(WeftFrame* frame, const abi::TriangularSolve<InWords>& op) {
  const bool transpose = op.transpose, conjugate = op.conjugate;
  const DenseTensor a(frame, op.a), b(frame, op.b), x(frame, op.x);
  if (!Countable(frame, "triangular_solve", b)) return;
  const Stack size(a.shape);
  OnMatrices(b, 0.1, [&](auto tag, int64_t k, int64_t m64, int64_t n64) {
    using T = typename decltype(tag)::type;
    const int m = static_cast<int>(m64), n = static_cast<int>(n64), q = static_cast<int>(size.cols);
    T* out = x.as<T>() + k * m64 * n64;
    std::copy_n(b.as<T>() + k * m64 * n64, m64 * n64, out);
    if (m == 0 || n == 0) return;
    const T* matrix = a.as<T>() + k * size.rows * size.cols;
    Matrix<T> turned;
    if (kComplex<T> && conjugate && !transpose) {
      // CBLAS conjugates only together with transposing.
      turned.assign(matrix, matrix + static_cast<int64_t>(q) * q);
      if constexpr (kComplex<T>) {
        for (T& v : turned) v = std::conj(v);
      }
      matrix = turned.data();
    }
    const CBLAS_SIDE side = op.left ? CblasLeft : CblasRight;
    const CBLAS_UPLO half = op.lower ? CblasLower : CblasUpper;
    const CBLAS_TRANSPOSE turn = !transpose ? CblasNoTrans : conjugate ? CblasConjTrans : CblasTrans;
    const CBLAS_DIAG diagonal = op.unit_diagonal ? CblasUnit : CblasNonUnit;
    const T one(1);
    if constexpr (std::is_same_v<T, float>)
      cblas_strsm(CblasRowMajor, side, half, turn, diagonal, m, n, 1.0f, matrix, q, out, n);
    else if constexpr (std::is_same_v<T, double>)
      cblas_dtrsm(CblasRowMajor, side, half, turn, diagonal, m, n, 1.0, matrix, q, out, n);
    else if constexpr (std::is_same_v<T, C64>)
      cblas_ctrsm(CblasRowMajor, side, half, turn, diagonal, m, n, &one, matrix, q, out, n);
    else
      cblas_ztrsm(CblasRowMajor, side, half, turn, diagonal, m, n, &one, matrix, q, out, n);
    (void)one;
  });
}

}  // namespace

void FillLinalg(WeftOp* ops) {
  Put<Cholesky>(ops);
  Put<Lu>(ops);
  Put<Qr>(ops);
  Put<Eigh>(ops);
  Put<Svd>(ops);
  Put<Eig>(ops);
  Put<TriangularSolve>(ops);
}

}  // namespace weft::cpu
