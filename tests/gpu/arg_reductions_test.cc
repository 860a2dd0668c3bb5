// argmax and argmin as GPU kernels, run thread by thread with all checks, against the reference interpreter: the index
// must be that of the first extreme element, or of the first NaN, however many threads look for it.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "ir/builder.h"
#include "ir/ops.h"
#include "tests/gpu/emulated.h"

namespace weft {
namespace {

Atom Arg(Builder& b, const char* op, const Atom& x, int64_t dim, DType to = DType::kI32) {
  return b.Emit1(FindPrim(op), {x}, {{"dim", dim}, {"dtype", to}});
}

// Few different values, so that there are ties; every dtype holds them. Of floats now and then NaN, zeros of both
// signs and infinities.
Tensor Drawn(DType dtype, const Shape& shape, std::mt19937& rng, bool special) {
  Tensor x(dtype, shape);
  for (int64_t i = 0; i < x.size(); ++i) {
    double v = static_cast<double>(rng() % 100);
    if (IsBool(dtype)) v = rng() % 2;
    if (IsSigned(dtype) || IsFloat(dtype)) v -= 50;
    if (special && IsFloat(dtype)) {
      const double rare[] = {std::nan(""), 0.0, -0.0, std::numeric_limits<double>::infinity(),
                             -std::numeric_limits<double>::infinity()};
      if (rng() % 64 == 0) v = rare[rng() % 5];
    }
    x.Set(i, v);
  }
  return x;
}

std::vector<DType> Ordered() {
  std::vector<DType> list;
  for (int i = 0; i < kNumDTypes; ++i) {
    const DType t = static_cast<DType>(i);
    if (FindPrim("argmax").dtypes.Has(t) && !IsFloat8(t)) list.push_back(t);  // for which there is no GPU code
  }
  return list;
}

void ExpectEqual(const Tensors& got, const Tensors& want, const std::string& what) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t r = 0; r < want.size(); ++r) {
    ASSERT_TRUE(got[r].type() == want[r].type()) << what;
    for (int64_t i = 0; i < want[r].size(); ++i)
      ASSERT_EQ(got[r].Get(i), want[r].Get(i)) << what << ", result " << r << ", element " << i;
  }
}

int64_t Kernels(const FnRef& fn) { return static_cast<int64_t>(LowerGpu(fn, {}, {.ptx = false}).kernels.size()); }

TEST(GpuArgReductions, EveryDTypeAlongAndAcrossMemory) {
  std::mt19937 rng(3);
  // A thread, a warp and a block a row, rows that end in part of a group, few and many columns, dimensions between.
  const struct {
    Shape shape;
    int64_t dim;
  } kCases[] = {{{5, 3}, 1}, {{9, 333}, 1},  {{40, 128}, 1}, {{3, 4096}, 1},   {{1, 30000}, 1},
                {{700}, 0},  {{300, 48}, 0}, {{17, 7}, 0},   {{4, 65, 24}, 1}, {{2, 3, 1001}, 2},
                {{6, 1}, 1}, {{0, 5}, 1},    {{1, 64}, 0},   {{64, 700}, 0}};
  int checked = 0;
  for (DType dtype : Ordered()) {
    for (const auto& [shape, dim] : kCases) {
      Builder b("f");
      const Atom x = b.Parameter({dtype, Dims(shape.begin(), shape.end()), {}});
      const FnRef fn = b.Build({Arg(b, "argmax", x, dim), Arg(b, "argmin", x, dim, DType::kI64)});
      const Tensors args = {Drawn(dtype, shape, rng, rng() % 2)};
      ExpectEqual(RunEmulated(fn, args), Eval(*fn, args), ToString(fn->ParamTypes()));
      ++checked;
    }
  }
  EXPECT_EQ(checked, 17 * 14);
}

TEST(GpuArgReductions, TheFirstOfTiesAndTheFirstNaN) {
  const double nan = std::nan(""), inf = std::numeric_limits<double>::infinity();
  const struct {
    std::vector<std::pair<int64_t, double>> values;
    double rest;
    int64_t largest, smallest;
  } kCases[] = {
      {{}, 1, 0, 0},
      {{{70, 2}, {300, 2}, {9, 0}, {500, 0}}, 1, 70, 9},
      {{{511, nan}, {80, nan}, {3, inf}}, 1, 80, 80},
      {{{0, -0.0}, {1, 0.0}}, 0, 0, 0},
      {{}, -inf, 0, 0},
      {{}, inf, 0, 0},
      {{}, nan, 0, 0},
      {{{511, 1}, {200, -inf}, {511, inf}}, -inf, 511, 0},
  };
  for (DType dtype : {DType::kF32, DType::kF64, DType::kF16, DType::kBF16}) {
    for (bool across : {false, true}) {
      for (const auto& c : kCases) {
        const Shape shape = across ? Shape{512, 2} : Shape{2, 512};
        Tensor x(dtype, shape);
        for (int64_t i = 0; i < x.size(); ++i) x.Set(i, c.rest);
        // The second row is all alike.
        for (const auto& [at, v] : c.values) x.Set(across ? 2 * at : at, v);
        Builder b("f");
        const Atom p = b.Parameter({dtype, Dims(shape.begin(), shape.end()), {}});
        const int64_t dim = across ? 0 : 1;
        const Tensors got = RunEmulated(b.Build({Arg(b, "argmax", p, dim), Arg(b, "argmin", p, dim)}), {x});
        EXPECT_EQ(got[0].Get(0).real(), static_cast<double>(c.largest));
        EXPECT_EQ(got[1].Get(0).real(), static_cast<double>(c.smallest));
        EXPECT_EQ(got[0].Get(1).real(), 0);
        EXPECT_EQ(got[1].Get(1).real(), 0);
      }
    }
  }
}

TEST(GpuArgReductions, EveryIndexType) {
  std::mt19937 rng(5);
  for (DType to :
       {DType::kI8, DType::kI16, DType::kI32, DType::kI64, DType::kU8, DType::kU16, DType::kU32, DType::kU64}) {
    Builder b("f");
    const Atom x = b.Parameter({DType::kF32, {12, 100}, {}});
    const FnRef fn = b.Build({Arg(b, "argmin", x, 1, to), Arg(b, "argmax", x, 0, to)});
    const Tensors args = {Drawn(DType::kF32, {12, 100}, rng, true)};
    ExpectEqual(RunEmulated(fn, args), Eval(*fn, args), Name(to));
  }
}

// Producers and users in one kernel: softmax's largest entry, and one-hot rows of it.
TEST(GpuArgReductions, FuseWithWhatTheyReadAndWhatReadsThem) {
  std::mt19937 rng(11);
  for (DType dtype : {DType::kF32, DType::kI16, DType::kBF16}) {
    for (int64_t dim : {1, 0}) {
      Builder b("f");
      const Type type{dtype, {24, 160}, {}};
      const Atom x = b.Parameter(type), y = b.Parameter(type);
      const Atom z = Sub(b, Add(b, x, x), y);
      const Atom at = Arg(b, "argmax", z, dim);
      const Atom hot = Eq(b, Iota(b, type.dims, dim, DType::kI32), Broadcast(b, at, type.dims, {1 - dim}));
      const Atom top = Reduce(b, "reduce_max", z, {dim});
      const FnRef fn = b.Build({at, Select(b, hot, x, y), top});
      EXPECT_EQ(Kernels(fn), 1);
      const Tensors args = {Drawn(dtype, {24, 160}, rng, false), Drawn(dtype, {24, 160}, rng, false)};
      ExpectEqual(RunEmulated(fn, args), Eval(*fn, args), std::string(Name(dtype)) + " along " + std::to_string(dim));
    }
  }
}

// 1 + x for small x rounds to 1 in half precision, so that all are equal: the first of them is found.
TEST(GpuArgReductions, HalvesAreComparedAsTheyAreStored) {
  for (DType dtype : {DType::kF16, DType::kBF16}) {
    Builder b("f");
    const Atom x = b.Parameter({dtype, {1, 256}, {}});
    const FnRef fn = b.Build({Arg(b, "argmax", Add(b, x, Atom::Scalar(dtype, 1)), 1)});
    Tensor values(dtype, {1, 256});
    for (int64_t i = 0; i < 256; ++i) values.Set(i, static_cast<double>(i % 200) * 1e-6);
    EXPECT_EQ(RunEmulated(fn, {values})[0].Get(0).real(), 0);
  }
}

// Parts of few long rows are looked through by many blocks, and their pairs by one more kernel.
TEST(GpuArgReductions, LongRowsInParts) {
  std::mt19937 rng(13);
  for (DType dtype : {DType::kF32, DType::kU8, DType::kF16}) {
    for (int64_t rows : {1, 2}) {
      const int64_t n = 140000 + 77;
      Builder b("f");
      const Atom x = b.Parameter({dtype, {rows, n}, {}});
      const FnRef fn = b.Build({Arg(b, "argmax", x, 1), Arg(b, "argmin", x, 1, DType::kI64)});
      EXPECT_EQ(Kernels(fn), 6);  // for each of the two: the parts, what is left over, the combination
      Tensor values = Drawn(dtype, {rows, n}, rng, false);
      const Tensors ties = {values};
      ExpectEqual(RunEmulated(fn, ties), Eval(*fn, ties), Name(dtype));
      values.Set(n - 3, 100), values.Set(n - 40, IsFloat(dtype) ? -100 : 0);
      const Tensors last = {values};
      ExpectEqual(RunEmulated(fn, last), Eval(*fn, last), std::string(Name(dtype)) + ", the last part");
      if (!IsFloat(dtype)) continue;
      values.Set(n / 2, std::nan("")), values.Set(n / 3, std::nan(""));
      const Tensors nans = {values};
      ExpectEqual(RunEmulated(fn, nans), Eval(*fn, nans), std::string(Name(dtype)) + ", NaNs");
    }
  }
}

// Partial sums of halves are kept in 32 bits, and read back as what they are.
TEST(GpuReductions, LongRowsOfHalvesInParts) {
  for (DType dtype : {DType::kF16, DType::kBF16}) {
    Builder b("f");
    const Atom x = b.Parameter({dtype, {400000}, {}});
    const FnRef fn = b.Build({ReduceSum(b, x, {0})});
    EXPECT_GT(Kernels(fn), 1);
    EXPECT_EQ(RunEmulated(fn, {Tensor::Full(dtype, {400000}, 0.0625)})[0].Get(0).real(),
              Tensor::Full(dtype, {}, 25000).Get(0).real());
  }
}

}  // namespace
}  // namespace weft
