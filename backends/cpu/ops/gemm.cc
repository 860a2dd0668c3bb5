#include "backends/cpu/ops/gemm.h"

#include <cblas.h>
#include <oneapi/dnnl/dnnl.h>

#include <algorithm>
#include <atomic>
#include <complex>
#include <mutex>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include "backends/cpu/core/signals.h"
#include "backends/cpu/core/thread_pool.h"
#include "backends/cpu/ops/blas_workspace.h"
#include "backends/cpu/ops/openmp.h"
#include "base/fork_safe_mutex.h"
#include "base/out_of_memory.h"
#include "lowering/abi/product_cost.h"

namespace weft::cpu {
namespace {

void InitBlas() {
  static const bool once = [] {
    openblas_set_num_threads(1);
    return true;
  }();
  (void)once;
}

// BLAS counts in 32 bits: longer products are put together from parts of at most so many.
constexpr int64_t kMostOfBlas = int64_t{1} << 30;
// What the libraries put on the stack, at the most.
constexpr int64_t kStackOfLibraries = 1 << 20;

// One product of a size that BLAS can count, added to c where `add`.
template <class T>
void Blas(bool ta, bool tb, int64_t m, int64_t n, int64_t k, const T* a, int64_t lda, const T* b, int64_t ldb, T* c,
          int64_t ldc, bool add) {
  const auto flag = [](bool t) { return t ? CblasTrans : CblasNoTrans; };
  const auto count = [](int64_t size) { return static_cast<int>(std::min(size, kMostOfBlas)); };
  const T one = 1, beta = add ? 1 : 0;
  const auto call = [&](auto f, auto scale, auto old) {
    f(CblasRowMajor, flag(ta), flag(tb), count(m), count(n), count(k), scale, a, count(lda), b, count(ldb), old, c,
      count(ldc));
  };
  if constexpr (std::is_same_v<T, float>)
    call(cblas_sgemm, one, beta);
  else if constexpr (std::is_same_v<T, double>)
    call(cblas_dgemm, one, beta);
  else if constexpr (std::is_same_v<T, std::complex<float>>)
    call(cblas_cgemm, &one, &beta);
  else
    call(cblas_zgemm, &one, &beta);
}

// Any product, in halves until BLAS can count them. A distance between rows matters where there are two.
template <class T>
void InHalves(bool ta, bool tb, int64_t m, int64_t n, int64_t k, const T* a, int64_t lda, const T* b, int64_t ldb, T* c,
              int64_t ldc, bool add) {
  const bool far_a = lda > kMostOfBlas, far_b = ldb > kMostOfBlas, far_c = ldc > kMostOfBlas;
  if (m > kMostOfBlas || (m > 1 && (far_c || (far_a && !ta)))) {
    const int64_t h = m / 2;
    InHalves(ta, tb, h, n, k, a, lda, b, ldb, c, ldc, add);
    InHalves(ta, tb, m - h, n, k, a + (ta ? h : h * lda), lda, b, ldb, c + h * ldc, ldc, add);
  } else if (n > kMostOfBlas || (n > 1 && far_b && tb)) {
    const int64_t h = n / 2;
    InHalves(ta, tb, m, h, k, a, lda, b, ldb, c, ldc, add);
    InHalves(ta, tb, m, n - h, k, a, lda, b + (tb ? h * ldb : h), ldb, c + h, ldc, add);
  } else if (k > kMostOfBlas || (k > 1 && ((far_a && ta) || (far_b && !tb)))) {
    const int64_t h = k / 2;
    InHalves(ta, tb, m, n, h, a, lda, b, ldb, c, ldc, add);
    InHalves(ta, tb, m, n, k - h, a + (ta ? h * lda : h), lda, b + (tb ? h : h * ldb), ldb, c, ldc, true);
  } else {
    Blas(ta, tb, m, n, k, a, lda, b, ldb, c, ldc, add);
  }
}

void OneDnn(bool ta, bool tb, int64_t m, int64_t n, int64_t k, const float* a, int64_t lda, const float* b, int64_t ldb,
            float* c, int64_t ldc) {
  const SingleOpenMpThread single;
  const SignalsBlocked blocked;
  const dnnl_status_t status = dnnl_sgemm(ta ? 'T' : 'N', tb ? 'T' : 'N', m, n, k, 1.0f, a, lda, b, ldb, 0.0f, c, ldc);
  if (status == dnnl_out_of_memory) throw OutOfMemory("out of memory: oneDNN has no room for a product");
  if (status != dnnl_success) throw std::runtime_error("oneDNN refuses a product, with code " + std::to_string(status));
}

std::atomic<bool> g_prepared{false};

// oneDNN makes its code at the first product of each kind, and does not look whether it got memory for that.
void PrepareOneDnn() {
  static auto& mutex = *new ForkSafeMutex;
  if (g_prepared.load(std::memory_order_acquire)) return;
  constexpr int64_t kMemory = int64_t{64} << 20;
  const std::lock_guard<ForkSafeMutex> lock(mutex);
  if (g_prepared.load(std::memory_order_relaxed)) return;
  if (!CanAllocate(kMemory))
    throw OutOfMemory("out of memory: oneDNN needs " + std::to_string(kMemory) + " bytes of address space to work in");
  constexpr int64_t kSize = 128;  // not one of those that are too small for its usual way
  const std::vector<float> ones(kSize * kSize, 1);
  std::vector<float> product(kSize * kSize);
  for (const bool ta : {false, true}) {
    for (const bool tb : {false, true})
      OneDnn(ta, tb, kSize, kSize, kSize, ones.data(), kSize, ones.data(), kSize, product.data(), kSize);
  }
  g_prepared.store(true, std::memory_order_release);
}

template <class T>
void ByBlas(bool ta, bool tb, int64_t m, int64_t n, int64_t k, const T* a, int64_t lda, const T* b, int64_t ldb, T* c,
            int64_t ldc) {
  InitBlas();
  const BlasWorkspace workspace;
  InHalves(ta, tb, m, n, k, a, lda, b, ldb, c, ldc, /*add=*/false);
}

template <class T>
void Single(bool ta, bool tb, int64_t m, int64_t n, int64_t k, const T* a, int64_t lda, const T* b, int64_t ldb, T* c,
            int64_t ldc) {
  if constexpr (std::is_same_v<T, float>) {
    EnsureStack(kStackOfLibraries, "a product");
    PrepareOneDnn();
    OneDnn(ta, tb, m, n, k, a, lda, b, ldb, c, ldc);
  } else {
    ByBlas(ta, tb, m, n, k, a, lda, b, ldb, c, ldc);
  }
}

// Preparing a product takes oneDNN and OpenBLAS microseconds, which is much for one element.
template <class T>
T Dot(int64_t k, const T* a, int64_t stride_a, const T* b, int64_t stride_b) {
  InitBlas();
  if (k > kMostOfBlas || (k > 1 && std::max(stride_a, stride_b) > kMostOfBlas)) {
    const int64_t h = k / 2;
    return Dot(h, a, stride_a, b, stride_b) + Dot(k - h, a + h * stride_a, stride_a, b + h * stride_b, stride_b);
  }
  const int n = static_cast<int>(k), sa = k > 1 ? static_cast<int>(stride_a) : 1,
            sb = k > 1 ? static_cast<int>(stride_b) : 1;
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

template <class T>
bool IsForBlas(int64_t m, int64_t n, int64_t k) {
  return !std::is_same_v<T, float> ||
         !IsForOneDnn(static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k));
}

template <class T>
int64_t Nanoseconds(int64_t m, int64_t n, int64_t k) {
  return static_cast<int64_t>(
      ProductNanoseconds(static_cast<double>(m), static_cast<double>(n), static_cast<double>(k), sizeof(T)));
}
constexpr auto kOfThreads = static_cast<int64_t>(kProductOfThreads);
static_assert(kOfThreads >= 2 * kMinParallelNanoseconds);

// A product of so many nanoseconds, by all threads together, is cut into two blocks per thread.
constexpr int64_t kLongProduct = 4'000'000;

// What is below the diagonal of rows [first, last) of a symmetric matrix, and left of them, from what is above it.
template <class T>
void Mirror(int64_t first, int64_t last, int64_t n, T* c, int64_t ldc) {
  constexpr int64_t kTile = 16;  // of each array, a few cache lines at a time
  for (int64_t i = first; i < last; ++i) {
    for (int64_t j = i + 1; j < last; ++j) c[j * ldc + i] = c[i * ldc + j];
  }
  for (int64_t from = last; from < n; from += kTile) {
    const int64_t to = std::min(n, from + kTile);
    for (int64_t i = first; i < last; i += kTile) {
      const int64_t end = std::min(last, i + kTile);
      for (int64_t q = from; q < to; ++q) {
        for (int64_t p = i; p < end; ++p) c[q * ldc + p] = c[p * ldc + q];
      }
    }
  }
}

}  // namespace

template <class T>
void SymmetricGemm(bool transpose, int64_t n, int64_t k, const T* a, int64_t lda, T* c, int64_t ldc) {
  const bool by_blas = IsForBlas<T>(n, n, k);
  const int64_t stripes = (n + kRowsOfHalf - 1) / kRowsOfHalf;
  const auto rows = [=](int64_t stripe) {
    const int64_t first = stripe * kRowsOfHalf, last = std::min(n, first + kRowsOfHalf);
    const T* own = a + (transpose ? first : first * lda);
    T* to = c + first * ldc + first;
    if (by_blas)
      ByBlas(transpose, !transpose, last - first, n - first, k, own, lda, own, lda, to, ldc);
    else
      Single(transpose, !transpose, last - first, n - first, k, own, lda, own, lda, to, ldc);
    Mirror(first, last, n, c, ldc);
  };
  // A long stripe and a short one each, which together are as long as any other two.
  const auto pairs = [=](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      rows(i);
      if (stripes - 1 - i != i) rows(stripes - 1 - i);
    }
  };
  const int64_t nanoseconds = Nanoseconds<T>(n, n, k) / 2, count = (stripes + 1) / 2;
  if (NumThreads() == 1 || nanoseconds < kOfThreads) return pairs(0, count);
  ParallelFor(count, nanoseconds, pairs);
}

template <class T>
void Gemm(bool ta, bool tb, int64_t m, int64_t n, int64_t k, const T* a, int64_t lda, const T* b, int64_t ldb, T* c,
          int64_t ldc) {
  if (m == 1 && n == 1) {
    *c = Dot(k, a, ta ? lda : 1, b, tb ? 1 : ldb);
    return;
  }
  // By the whole product, whatever becomes of it: its bits do not depend on the number of threads.
  if (std::is_same_v<T, float> && IsForBlas<T>(m, n, k)) return ByBlas(ta, tb, m, n, k, a, lda, b, ldb, c, ldc);
  const int64_t nanoseconds = Nanoseconds<T>(m, n, k);
  const int threads = NumThreads();
  if (threads == 1 || nanoseconds < kOfThreads) return Single(ta, tb, m, n, k, a, lda, b, ldb, c, ldc);
  // Blocks along the longer side, of the same height, multiples of the micro-kernels'. Each packs the other factor
  // anew: short products are cut into one per thread, long ones into two, which evens out what else the machine does.
  const int64_t blocks = nanoseconds < kLongProduct ? threads : 2 * threads;
  if (m >= n) {
    const int64_t block = std::max<int64_t>(2, ((m + blocks - 1) / blocks + 15) / 16) * 16;
    ParallelFor((m + block - 1) / block, nanoseconds, [=](int64_t begin, int64_t end) {
      const int64_t first = begin * block, last = std::min(m, end * block);
      Single(ta, tb, last - first, n, k, a + (ta ? first : first * lda), lda, b, ldb, c + first * ldc, ldc);
    });
  } else {
    const int64_t block = std::max<int64_t>(1, ((n + blocks - 1) / blocks + 63) / 64) * 64;
    ParallelFor((n + block - 1) / block, nanoseconds, [=](int64_t begin, int64_t end) {
      const int64_t first = begin * block, last = std::min(n, end * block);
      Single(ta, tb, m, last - first, k, a, lda, b + (tb ? first * ldb : first), ldb, c + first, ldc);
    });
  }
}

template <class T>
void GemmRows(bool ta, bool tb, int64_t n, int64_t k, const T* a, int64_t lda, const T* b, int64_t ldb, T* c,
              int64_t ldc, int64_t first, int64_t last) {
  if (first < last)
    Single(ta, tb, last - first, n, k, a + (ta ? first : first * lda), lda, b, ldb, c + first * ldc, ldc);
}

void PrepareProducts() { PrepareOneDnn(); }
bool ProductsArePrepared() { return g_prepared.load(std::memory_order_acquire); }

template void Gemm(bool, bool, int64_t, int64_t, int64_t, const float*, int64_t, const float*, int64_t, float*,
                   int64_t);
template void Gemm(bool, bool, int64_t, int64_t, int64_t, const double*, int64_t, const double*, int64_t, double*,
                   int64_t);
template void Gemm(bool, bool, int64_t, int64_t, int64_t, const std::complex<float>*, int64_t,
                   const std::complex<float>*, int64_t, std::complex<float>*, int64_t);
template void Gemm(bool, bool, int64_t, int64_t, int64_t, const std::complex<double>*, int64_t,
                   const std::complex<double>*, int64_t, std::complex<double>*, int64_t);

template void GemmRows(bool, bool, int64_t, int64_t, const float*, int64_t, const float*, int64_t, float*, int64_t,
                       int64_t, int64_t);
template void GemmRows(bool, bool, int64_t, int64_t, const double*, int64_t, const double*, int64_t, double*, int64_t,
                       int64_t, int64_t);
template void GemmRows(bool, bool, int64_t, int64_t, const std::complex<float>*, int64_t, const std::complex<float>*,
                       int64_t, std::complex<float>*, int64_t, int64_t, int64_t);
template void GemmRows(bool, bool, int64_t, int64_t, const std::complex<double>*, int64_t, const std::complex<double>*,
                       int64_t, std::complex<double>*, int64_t, int64_t, int64_t);

template void SymmetricGemm(bool, int64_t, int64_t, const float*, int64_t, float*, int64_t);
template void SymmetricGemm(bool, int64_t, int64_t, const double*, int64_t, double*, int64_t);
template void SymmetricGemm(bool, int64_t, int64_t, const std::complex<float>*, int64_t, std::complex<float>*, int64_t);
template void SymmetricGemm(bool, int64_t, int64_t, const std::complex<double>*, int64_t, std::complex<double>*,
                            int64_t);

}  // namespace weft::cpu
