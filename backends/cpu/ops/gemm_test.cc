// Products of more than 2^31 elements, which BLAS cannot count. Pages of a mapping that nobody writes to are all the
// same one of zeros, so that they need no memory. Symmetric products, of which half is computed.
#include "backends/cpu/ops/gemm.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <complex>
#include <cstring>
#include <random>
#include <tuple>
#include <vector>

#include "backends/cpu/core/thread_pool.h"

namespace weft::cpu {
namespace {

constexpr int64_t kFar = (int64_t{1} << 31) + 10;

template <class T>
class Zeros {
 public:
  explicit Zeros(int64_t n) : bytes_(static_cast<size_t>(n) * sizeof(T)) {
    void* p = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p != MAP_FAILED) data_ = static_cast<T*>(p);
  }
  ~Zeros() {
    if (data_ != nullptr) munmap(data_, bytes_);
  }
  Zeros(const Zeros&) = delete;
  bool there() const { return data_ != nullptr; }
  T* data() { return data_; }
  T& operator[](int64_t i) { return data_[i]; }

 private:
  size_t bytes_;
  T* data_ = nullptr;
};

// One row by one column. The marks are in each half of the sum.
template <class T>
void CheckLongInner() {
  Zeros<T> a(kFar);
  ASSERT_TRUE(a.there());
  a[3] = 2, a[kFar - 1] = 5;
  T c = -1;
  Gemm<T>(false, false, 1, 1, kFar, a.data(), kFar, a.data(), 1, &c, 1);
  EXPECT_EQ(c, T(29));
}
TEST(Products, LongInner) {
  CheckLongInner<float>();
  CheckLongInner<double>();
}

template <class T>
class Far : public testing::Test {};
using Types = testing::Types<float, double, std::complex<float>, std::complex<double>>;
TYPED_TEST_SUITE(Far, Types);

// Rows and columns that lie far apart: a row of `a` has kFar numbers, of which few are used.
TYPED_TEST(Far, Rows) {
  using T = TypeParam;
  Zeros<T> far(2 * kFar);
  ASSERT_TRUE(far.there());
  const T near[] = {1, 10, 100, 1000};
  for (int64_t i = 0; i < 2; ++i) {
    for (int64_t j = 0; j < 2; ++j) far[i * kFar + j] = static_cast<T>(1 + 2 * i + j);
  }
  T c[4];
  const auto expect = [&](T p, T q, T r, T s) {
    EXPECT_EQ(c[0], p);
    EXPECT_EQ(c[1], q);
    EXPECT_EQ(c[2], r);
    EXPECT_EQ(c[3], s);
  };
  Gemm<T>(false, false, 2, 2, 2, far.data(), kFar, near, 2, c, 2);
  expect(201, 2010, 403, 4030);
  Gemm<T>(true, false, 2, 2, 2, far.data(), kFar, near, 2, c, 2);
  expect(301, 3010, 402, 4020);
  Gemm<T>(false, false, 2, 2, 2, near, 2, far.data(), kFar, c, 2);
  expect(31, 42, 3100, 4200);
  Gemm<T>(false, true, 2, 2, 2, near, 2, far.data(), kFar, c, 2);
  expect(21, 43, 2100, 4300);
  Gemm<T>(false, false, 2, 2, 2, near, 2, near, 2, far.data(), kFar);
  EXPECT_EQ(far[0], T(1001));
  EXPECT_EQ(far[1], T(10010));
  EXPECT_EQ(far[kFar], T(100100));
  EXPECT_EQ(far[kFar + 1], T(1001000));
}

// Whole numbers, whose sums are exact in any order. Rows lie further apart than they are long, and what is between them
// stays.
TYPED_TEST(Far, SymmetricProducts) {
  using T = TypeParam;
  std::mt19937 random(7);
  for (const bool transpose : {false, true}) {
    for (const int64_t n : {1, 47, 48, 49, 96, 100, 145, 200}) {
      for (const int64_t k : {1, 5, 64}) {
        const int64_t rows = transpose ? k : n, columns = transpose ? n : k, lda = columns + 3, ldc = n + 2;
        std::vector<T> a(static_cast<size_t>(rows * lda)), c(static_cast<size_t>(n * ldc), T(-7));
        for (T& v : a) v = static_cast<T>(static_cast<int>(random() % 17) - 8);
        SymmetricGemm<T>(transpose, n, k, a.data(), lda, c.data(), ldc);
        const auto at = [&](int64_t i, int64_t p) {
          return a[static_cast<size_t>(transpose ? p * lda + i : i * lda + p)];
        };
        for (int64_t i = 0; i < n; ++i) {
          for (int64_t j = 0; j < n; ++j) {
            T sum = 0;
            for (int64_t p = 0; p < k; ++p) sum += at(i, p) * at(j, p);
            ASSERT_EQ(c[static_cast<size_t>(i * ldc + j)], sum) << n << "," << k << " at " << i << "," << j;
          }
          for (int64_t j = n; j < ldc; ++j) ASSERT_EQ(c[static_cast<size_t>(i * ldc + j)], T(-7));
        }
      }
    }
  }
}

// Threads that share a product compute rows of it. However they are cut, their bits are those of the whole.
TYPED_TEST(Far, RowsThatAreCutHaveTheBitsOfTheWhole) {
  using T = TypeParam;
  std::mt19937 rng(7);
  std::uniform_real_distribution<float> number(-1, 1);
  const int before = NumThreads();
  SetNumThreads(1);
  for (const auto& [m, n, k] : {std::tuple{64, 128, 128}, {96, 96, 96}, {130, 70, 99}, {33, 200, 190}, {16, 8, 8}}) {
    std::vector<T> a(static_cast<size_t>(m * k)), b(static_cast<size_t>(k * n));
    for (auto* list : {&a, &b}) {
      for (T& x : *list) x = static_cast<T>(number(rng));
    }
    for (const bool ta : {false, true}) {
      for (const bool tb : {false, true}) {
        std::vector<T> whole(static_cast<size_t>(m * n)), cut(whole.size());
        Gemm<T>(ta, tb, m, n, k, a.data(), ta ? m : k, b.data(), tb ? k : n, whole.data(), n);
        std::vector<int64_t> bounds = {0};
        for (int64_t at = 16; at + 16 <= m; at += 16 * (1 + at / 32)) bounds.push_back(at);
        bounds.push_back(m);
        for (size_t i = 0; i + 1 < bounds.size(); ++i) {
          GemmRows<T>(ta, tb, n, k, a.data(), ta ? m : k, b.data(), tb ? k : n, cut.data(), n, bounds[i],
                      bounds[i + 1]);
        }
        EXPECT_EQ(std::memcmp(whole.data(), cut.data(), whole.size() * sizeof(T)), 0) << m << " " << n << " " << k;
      }
    }
  }
  SetNumThreads(before);
}

}  // namespace
}  // namespace weft::cpu
