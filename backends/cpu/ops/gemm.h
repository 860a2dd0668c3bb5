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

// Rows [first, last) of a product that RowsOf (lowering/abi/product_form.h) cuts, on this thread.
template <class T>
void GemmRows(bool transpose_a, bool transpose_b, int64_t n, int64_t k, const T* a, int64_t lda, const T* b,
              int64_t ldb, T* c, int64_t ldc, int64_t first, int64_t last);

// C[n, n] = A[n, k] A^T, with A stored [k, n] where `transpose`: the products above the diagonal, each written twice.
template <class T>
void SymmetricGemm(bool transpose, int64_t n, int64_t k, const T* a, int64_t lda, T* c, int64_t ldc);

// Makes what oneDNN makes at its first product and destroys when the process ends: what is registered with exit() after
// this comes before that. Throws OutOfMemory.
void PrepareProducts();
// Whether nothing of that is left to do.
bool ProductsArePrepared();

}  // namespace weft::cpu
#endif  // WEFT_BACKENDS_CPU_OPS_GEMM_H_
