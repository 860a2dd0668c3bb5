// Matrix products on one thread and, above a certain size, shared among the pool's threads.
#ifndef WEFT_BACKENDS_CPU_OPS_GEMM_H_
#define WEFT_BACKENDS_CPU_OPS_GEMM_H_

#include <cstdint>

namespace weft::cpu {

// C[m, n] = A[m, k] B[k, n], row-major with leading dimensions; a transposed operand is stored [k, m] or [n, k].
// T: float (oneDNN; OpenBLAS if it is small), double, std::complex<float>, std::complex<double> (OpenBLAS).
template <class T>
void Gemm(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, const T* a, int64_t lda, const T* b,
          int64_t ldb, T* c, int64_t ldc);

// Rows [first, last) of it on this thread, as whoever shares them among threads cuts them: multiples of 16, or the end.
// The same bits. Products that are not oneDNN's are not cut: their first rows are all of them.
template <class T>
void GemmRows(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, const T* a, int64_t lda, const T* b,
              int64_t ldb, T* c, int64_t ldc, int64_t first, int64_t last);

// Whether to compute half of a symmetric product of n rows in calls of kRowsOfHalf rows is quicker than all of it in
// one: what is saved grows with k, what it costs to write the other half with n, and more where that leaves the caches.
constexpr int64_t kRowsOfHalf = 48;
inline bool IsWorthHalving(int64_t n, int64_t k) { return n >= 2 * kRowsOfHalf && k >= (n > 1280 ? n / 20 : 64); }
// C[n, n] = A[n, k] A^T, with A stored [k, n] where `transpose`: the products above the diagonal, each written twice.
template <class T>
void SymmetricGemm(bool transpose, int64_t n, int64_t k, const T* a, int64_t lda, T* c, int64_t ldc);

// Whether oneDNN is the one for a product of f32 with so many multiplications. It is a tenth faster than OpenBLAS for
// large ones, 2 us slower for small ones, and takes 40 ms before its first.
inline bool IsForOneDnn(double multiplications) { return multiplications > (1 << 19); }

// Makes what oneDNN makes at its first product and destroys when the process ends: what is registered with exit() after
// this comes before that. Throws OutOfMemory.
void PrepareProducts();
// Whether nothing of that is left to do.
bool ProductsArePrepared();

}  // namespace weft::cpu
#endif  // WEFT_BACKENDS_CPU_OPS_GEMM_H_
