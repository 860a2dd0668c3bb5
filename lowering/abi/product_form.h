// How the arrays of a product lie in memory, as whoever plans programs and whoever runs them see it.
#ifndef WEFT_LOWERING_ABI_PRODUCT_FORM_H_
#define WEFT_LOWERING_ABI_PRODUCT_FORM_H_

#include <cstdint>
#include <memory_resource>
#include <vector>

#include "lowering/abi/fields.h"
#include "lowering/abi/steps.h"

namespace weft {

using ContractWords = abi::Contract<abi::InWords>;
using ProductDimension = abi::Factor<abi::InWords>;
using ProductDimensions = std::pmr::vector<ProductDimension>;

int64_t SizeOf(const ProductDimensions& dims);

// A matrix as a library wants it: rows that are a leading dimension apart, or the transpose of such a matrix.
struct ProductMatrix {
  bool direct = false;  // it lies so
  bool transposed = false;
  int64_t ld = 0;
};

// A product of matrices, or a stack of them: dimensions without sizes of 1, of which neighbours that every array walks
// as one are one.
struct ProductForm {
  // `operands_are_computed`, `result_is_computed`: their type is that of the arithmetic. Otherwise they are not direct.
  ProductForm(const ContractWords& op, bool operands_are_computed, bool result_is_computed,
              std::pmr::memory_resource* memory);

  ProductDimensions batch, m, n, k;
  ProductMatrix x, y, result;
  // The result lies transposed and is computed as y^T x^T: x and y have changed places here, and m and n.
  bool swapped = false;

  // Whether the second factor is the transpose of the first one if both begin at the same place, so that what is below
  // the diagonal is what is above it.
  bool IsSymmetric() const;
};

// What of a product one thread may compute by itself: rows of its result as it lies in memory, or products of a stack.
struct RowsOfProduct {
  int64_t count = 1;  // 1: it is computed as a whole
  int64_t step = 1;   // they are cut at multiples of it
  // How far apart rows are in each array, in elements. 0: a row touches what another one does.
  int64_t x = 0, y = 0, result = 0;
};
// The results have the same bits wherever they are cut, except where threads share a product of f64 or complex numbers
// anyway.
RowsOfProduct RowsOf(const ContractWords& op);

// Estimated, on one thread.
double NanosecondsOf(const ContractWords& op);

}  // namespace weft
#endif  // WEFT_LOWERING_ABI_PRODUCT_FORM_H_
