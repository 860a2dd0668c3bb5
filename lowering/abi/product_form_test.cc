// What of a product one thread may compute by itself.
#include "lowering/abi/product_form.h"

#include <gtest/gtest.h>

#include <tuple>
#include <vector>

#include "lowering/abi/steps.h"

namespace weft {
namespace {

using Owned = abi::Contract<abi::Owned>;
using Dimension = abi::Factor<abi::Owned>;

// x[m, k] y[k, n], stacked `batch` times.
Owned Product(int64_t batch, int64_t m, int64_t n, int64_t k, DType t = DType::kF32) {
  Owned p;
  p.x = 0, p.y = 1, p.result = 2;
  p.dtype = p.result_dtype = t;
  if (batch > 1) p.batch = {{batch, m * k, k * n, m * n}};
  p.m = {{m, k, 0, n}};
  p.n = {{n, 0, 1, 1}};
  p.k = {{k, 1, n, 0}};
  return p;
}

RowsOfProduct Rows(const Owned& p) {
  std::vector<int64_t> words;
  abi::EncodeWords(p, &words);
  return RowsOf(abi::Decode<ContractWords>(words.data()));
}

TEST(ProductForm, RowsOfAMatrix) {
  const RowsOfProduct r = Rows(Product(1, 128, 96, 64));
  EXPECT_EQ(std::tuple(r.count, r.step, r.x, r.y, r.result), std::tuple(128, 16, 64, 0, 96));
  // Wider matrices of which these are columns.
  Owned wide = Product(1, 128, 96, 64);
  wide.m[0].x = 70, wide.m[0].result = 99, wide.x_start = 5;
  const RowsOfProduct w = Rows(wide);
  EXPECT_EQ(std::tuple(w.count, w.x, w.result), std::tuple(128, 70, 99));
  wide.x_start = 7;  // rows begin in one row and end in the next
  EXPECT_EQ(Rows(wide).x, 0);
}

TEST(ProductForm, AResultThatLiesTransposedHasRowsOfTheSecondFactor) {
  Owned p = Product(1, 128, 96, 64);
  p.m[0].result = 1, p.n[0].result = 128;
  p.k[0].y = 1, p.n[0].y = 64;
  const RowsOfProduct r = Rows(p);
  EXPECT_EQ(std::tuple(r.count, r.x, r.y, r.result), std::tuple(96, 0, 64, 128));
}

TEST(ProductForm, AFactorThatLiesTransposedIsReadByAllRows) {
  Owned p = Product(1, 128, 96, 64);
  p.m[0].x = 1, p.k[0].x = 128;
  const RowsOfProduct r = Rows(p);
  EXPECT_EQ(std::tuple(r.count, r.x, r.result), std::tuple(128, 0, 96));
}

TEST(ProductForm, StacksAreCutAtProducts) {
  for (const DType t : {DType::kF32, DType::kF64, DType::kBF16, DType::kI32}) {
    const RowsOfProduct r = Rows(Product(12, 20, 30, 40, t));
    EXPECT_EQ(std::tuple(r.count, r.step, r.x, r.y, r.result), std::tuple(12, 1, 800, 1200, 600)) << Name(t);
  }
  Owned shared = Product(12, 20, 30, 40);
  shared.batch[0].y = 0;
  EXPECT_EQ(Rows(shared).y, 0);
  EXPECT_EQ(Rows(shared).result, 600);
}

TEST(ProductForm, WhatIsComputedAsAWhole) {
  EXPECT_EQ(Rows(Product(1, 32, 32, 32)).count, 1) << "too small for the library that has the same bits for any rows";
  EXPECT_EQ(Rows(Product(1, 64, 64, 64, DType::kF64)).count, 1) << "one thread computes it";
  EXPECT_EQ(Rows(Product(1, 512, 512, 512, DType::kF64)).count, 512);
  EXPECT_EQ(Rows(Product(1, 512, 512, 512, DType::kBF16)).count, 1) << "converted as a whole";
  EXPECT_EQ(Rows(Product(1, 512, 512, 512, DType::kI32)).count, 1);
  EXPECT_EQ(Rows(Product(1, 512, 512, 0)).count, 1);
  EXPECT_EQ(Rows(Product(1, 1, 4096, 4096)).count, 1);
  Owned symmetric = Product(1, 512, 512, 512);
  symmetric.y = symmetric.x;
  symmetric.k[0].y = 1, symmetric.n[0].y = 512;
  EXPECT_EQ(Rows(symmetric).count, 1) << "half of it is copied";
  Owned apart = Product(1, 512, 512, 512);
  apart.n.push_back({2, 0, 512 * 512 * 2, 512 * 512 * 2});
  EXPECT_EQ(Rows(apart).count, 1) << "packed as a whole";
}

}  // namespace
}  // namespace weft
