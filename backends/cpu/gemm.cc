#include "backends/cpu/gemm.h"

#include <cblas.h>
#include <oneapi/dnnl/dnnl.h>

#include <algorithm>
#include <complex>
#include <type_traits>
#include <vector>

#include "backends/cpu/openmp.h"
#include "backends/cpu/thread_pool.h"

namespace weft::cpu {
namespace {

void Single(bool ta, bool tb, int64_t m, int64_t n, int64_t k, const float* a, int64_t lda, const float* b, int64_t ldb,
            float* c, int64_t ldc) {
  SingleOpenMpThread single;
  dnnl_sgemm(ta ? 'T' : 'N', tb ? 'T' : 'N', m, n, k, 1.0f, a, lda, b, ldb, 0.0f, c, ldc);
}

CBLAS_TRANSPOSE Flag(bool t) { return t ? CblasTrans : CblasNoTrans; }
void InitBlas() {
  static const bool once = [] {
    openblas_set_num_threads(1);
    return true;
  }();
  (void)once;
}
void Single(bool ta, bool tb, int64_t m, int64_t n, int64_t k, const double* a, int64_t lda, const double* b,
            int64_t ldb, double* c, int64_t ldc) {
  InitBlas();
  cblas_dgemm(CblasRowMajor, Flag(ta), Flag(tb), static_cast<int>(m), static_cast<int>(n), static_cast<int>(k), 1.0, a,
              static_cast<int>(lda), b, static_cast<int>(ldb), 0.0, c, static_cast<int>(ldc));
}
void Single(bool ta, bool tb, int64_t m, int64_t n, int64_t k, const std::complex<float>* a, int64_t lda,
            const std::complex<float>* b, int64_t ldb, std::complex<float>* c, int64_t ldc) {
  InitBlas();
  const std::complex<float> one = 1, zero = 0;
  cblas_cgemm(CblasRowMajor, Flag(ta), Flag(tb), static_cast<int>(m), static_cast<int>(n), static_cast<int>(k), &one, a,
              static_cast<int>(lda), b, static_cast<int>(ldb), &zero, c, static_cast<int>(ldc));
}
void Single(bool ta, bool tb, int64_t m, int64_t n, int64_t k, const std::complex<double>* a, int64_t lda,
            const std::complex<double>* b, int64_t ldb, std::complex<double>* c, int64_t ldc) {
  InitBlas();
  const std::complex<double> one = 1, zero = 0;
  cblas_zgemm(CblasRowMajor, Flag(ta), Flag(tb), static_cast<int>(m), static_cast<int>(n), static_cast<int>(k), &one, a,
              static_cast<int>(lda), b, static_cast<int>(ldb), &zero, c, static_cast<int>(ldc));
}

// Preparing a product takes oneDNN and OpenBLAS microseconds, which is much for one element.
template <class T>
T Dot(int64_t k, const T* a, int64_t stride_a, const T* b, int64_t stride_b) {
  InitBlas();
  const int n = static_cast<int>(k), sa = static_cast<int>(stride_a), sb = static_cast<int>(stride_b);
  if constexpr (std::is_same_v<T, float>) {
    return cblas_sdot(n, a, sa, b, sb);
  } else if constexpr (std::is_same_v<T, double>) {
    return cblas_ddot(n, a, sa, b, sb);
  } else {
    T result;
    if constexpr (std::is_same_v<T, std::complex<float>>)
      cblas_cdotu_sub(n, a, sa, b, sb, &result);
    else
      cblas_zdotu_sub(n, a, sa, b, sb, &result);
    return result;
  }
}

}  // namespace

template <class T>
void Gemm(bool ta, bool tb, int64_t m, int64_t n, int64_t k, const T* a, int64_t lda, const T* b, int64_t ldb, T* c,
          int64_t ldc) {
  if (m == 1 && n == 1) {
    *c = Dot(k, a, ta ? lda : 1, b, tb ? 1 : ldb);
    return;
  }
  // About 50 operations per nanosecond for f32, a quarter to half of it elsewhere.
  const int64_t nanoseconds = static_cast<int64_t>(2.0 * static_cast<double>(m) * static_cast<double>(n) *
                                                   static_cast<double>(k) * (sizeof(T) / 4) / 50);
  const int threads = NumThreads();
  if (threads == 1 || nanoseconds < 2 * kMinParallelNanoseconds) return Single(ta, tb, m, n, k, a, lda, b, ldb, c, ldc);
  // Two blocks per thread along the longer side, multiples of the micro-kernels' heights.
  if (m >= n) {
    const int64_t block = std::max<int64_t>(48, (m + 2 * threads - 1) / (2 * threads) + 47) / 48 * 48;
    ParallelFor((m + block - 1) / block, nanoseconds, [=](int64_t begin, int64_t end) {
      const int64_t first = begin * block, last = std::min(m, end * block);
      Single(ta, tb, last - first, n, k, a + (ta ? first : first * lda), lda, b, ldb, c + first * ldc, ldc);
    });
  } else {
    const int64_t block = std::max<int64_t>(64, (n + 2 * threads - 1) / (2 * threads) + 63) / 64 * 64;
    ParallelFor((n + block - 1) / block, nanoseconds, [=](int64_t begin, int64_t end) {
      const int64_t first = begin * block, last = std::min(n, end * block);
      Single(ta, tb, m, last - first, k, a, lda, b + (tb ? first * ldb : first), ldb, c + first, ldc);
    });
  }
}

void PrepareProducts() {
  constexpr int64_t kSize = 128;  // not one of those that are too small for its usual way
  const std::vector<float> ones(kSize * kSize, 1);
  std::vector<float> product(kSize * kSize);
  Single(false, false, kSize, kSize, kSize, ones.data(), kSize, ones.data(), kSize, product.data(), kSize);
}

template void Gemm(bool, bool, int64_t, int64_t, int64_t, const float*, int64_t, const float*, int64_t, float*,
                   int64_t);
template void Gemm(bool, bool, int64_t, int64_t, int64_t, const double*, int64_t, const double*, int64_t, double*,
                   int64_t);
template void Gemm(bool, bool, int64_t, int64_t, int64_t, const std::complex<float>*, int64_t,
                   const std::complex<float>*, int64_t, std::complex<float>*, int64_t);
template void Gemm(bool, bool, int64_t, int64_t, int64_t, const std::complex<double>*, int64_t,
                   const std::complex<double>*, int64_t, std::complex<double>*, int64_t);

}  // namespace weft::cpu
