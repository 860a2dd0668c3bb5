// Reductions and transposes of sizes where they are split, tiled or streamed: the right numbers, whatever the threads.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "backends/cpu/core/thread_pool.h"
#include "driver/executable.h"
#include "ir/builder.h"
#include "ir/eval/eval.h"
#include "ir/ops.h"

namespace weft {
namespace {

CompileRequest NoDisk() {
  CompileRequest options;
  options.passes = {};
  options.use_disk_cache = false;
  return options;
}

// Small whole numbers, whose sums are exact in every order.
Tensor Numbers(DType dtype, Shape shape, int64_t modulus = 7) {
  Tensor t(dtype, shape);
  for (int64_t i = 0; i < t.size(); ++i) t.Set(i, static_cast<double>((i * 31 + i / 97) % modulus) - 3);
  return t;
}

Tensors Results(const FnRef& fn, const Tensors& in) { return Compile(NoDisk().For(fn))->Run(in); }

TEST(Reductions, LongOnesEqualAPlainSum) {
  for (int64_t n : {65536, 1000003, 1 << 20}) {
    for (const char* op : {"reduce_sum", "reduce_max", "reduce_min"}) {
      for (DType dtype : {DType::kF32, DType::kF64, DType::kI32, DType::kBF16}) {
        const Tensor x = Numbers(dtype, {n}, 5);
        double want = std::string(op) == "reduce_sum" ? 0 : x.Get(0).real();
        for (int64_t i = 0; i < n; ++i) {
          const double v = x.Get(i).real();
          want = std::string(op) == "reduce_sum"   ? want + v
                 : std::string(op) == "reduce_max" ? std::max(want, v)
                                                   : std::min(want, v);
        }
        Builder b("f");
        const FnRef f = b.Build({Reduce(b, op, b.Parameter({dtype, {n}, {}}), {0})});
        const double got = Results(f, {x})[0].Get(0).real();
        // The sum itself is rounded to eight bits.
        EXPECT_NEAR(got, want, dtype == DType::kBF16 ? std::abs(want) / 256 : 0)
            << op << " of " << n << " " << Name(dtype);
      }
    }
  }
}

TEST(Reductions, ColumnsRowsAndWhatIsMadeFromThem) {
  struct Sizes {
    int64_t rows, columns;
  };
  for (const Sizes s : {Sizes{100003, 9}, Sizes{5, 200001}, Sizes{3, 70000}}) {
    Builder b("f");
    const Expr x{&b, b.Parameter({DType::kF32, {s.rows, s.columns}, {}})};
    const Expr square = x * x;
    const Expr columns{&b, ReduceSum(b, square, {0})}, rows{&b, ReduceSum(b, square, {1})},
        all{&b, ReduceSum(b, square, {0, 1})};
    const FnRef f = b.Build({columns * 2.0 + 1.0, rows * 0.5, Sqrt(all), square});
    const Tensor in = Numbers(DType::kF32, {s.rows, s.columns});
    const Tensors got = Results(f, {in});
    std::vector<double> per_column(s.columns, 0), per_row(s.rows, 0);
    double total = 0;
    for (int64_t i = 0; i < s.rows; ++i) {
      for (int64_t j = 0; j < s.columns; ++j) {
        const double v = in.Get(i * s.columns + j).real() * in.Get(i * s.columns + j).real();
        per_column[j] += v, per_row[i] += v, total += v;
        ASSERT_EQ(got[3].Get(i * s.columns + j).real(), v);
      }
    }
    for (int64_t j = 0; j < s.columns; ++j) ASSERT_EQ(got[0].Get(j).real(), 2 * per_column[j] + 1) << j;
    for (int64_t i = 0; i < s.rows; ++i) ASSERT_EQ(got[1].Get(i).real(), per_row[i] / 2) << i;
    EXPECT_NEAR(got[2].Get(0).real(), std::sqrt(total), 1e-3);
  }
}

// Numbers of rows that parts do not share evenly, one row left over among them.
TEST(Reductions, FewRowsOfManyColumns) {
  constexpr int64_t kColumns = 2999;
  for (int64_t rows : {22, 23, 45, 79, 80, 86, 100, 121, 127, 128}) {
    for (DType dtype : {DType::kF32, DType::kF64, DType::kI32, DType::kBF16}) {
      const Tensor x = Numbers(dtype, {rows, kColumns}, 5);
      Builder b("f");
      const Atom in = b.Parameter({dtype, {rows, kColumns}, {}});
      const Atom arg = b.Emit1(FindPrim("argmin"), {in}, {{"dim", int64_t{0}}, {"dtype", DType::kI32}});
      const Tensors got = Results(b.Build({ReduceSum(b, in, {0}), Reduce(b, "reduce_max", in, {0}), arg}), {x});
      for (int64_t j = 0; j < kColumns; ++j) {
        double sum = 0, most = -1e9, least = 1e9;
        int64_t at = -1;
        for (int64_t i = 0; i < rows; ++i) {
          const double v = x.Get(i * kColumns + j).real();
          sum += v, most = std::max(most, v);
          if (v < least) least = v, at = i;
        }
        ASSERT_NEAR(got[0].Get(j).real(), sum, dtype == DType::kBF16 ? std::abs(sum) / 256 : 0) << rows << Name(dtype);
        ASSERT_EQ(got[1].Get(j).real(), most) << rows << Name(dtype);
        ASSERT_EQ(got[2].Get(j).real(), static_cast<double>(at)) << rows << Name(dtype);
      }
    }
  }
}

TEST(Reductions, DoNotDependOnTheNumberOfThreads) {
  constexpr int64_t kSize = 3000017;
  Tensor x(DType::kF32, {kSize});
  for (int64_t i = 0; i < kSize; ++i) x.data<float>()[i] = std::sin(static_cast<float>(i)) * 1e3f;
  Builder b("f");
  const Atom in = b.Parameter({DType::kF32, {kSize}, {}});
  const auto f = Compile(NoDisk().For(b.Build({ReduceSum(b, in, {0})})));
  EXPECT_GE(f->counters().kernel_calls, 2);
  const int before = cpu::NumThreads();
  const Tensor want = f->Run({x})[0];
  for (int threads : {1, 2, 3, 8}) {
    cpu::SetNumThreads(threads);
    for (int i = 0; i < 5; ++i) EXPECT_TRUE(f->Run({x})[0].BitEquals(want)) << threads << " threads";
  }
  cpu::SetNumThreads(before);
}

// What is made from an element and its row's total, for numbers of rows where rows are shared between threads.
TEST(Reductions, RowsThatAreReadAgainWithTheirTotals) {
  constexpr int64_t kColumns = 100003;
  for (int64_t rows : {1, 2, 7, 8, 12, 15, 16}) {
    const Tensor x = Numbers(DType::kF32, {rows, kColumns}, 5);
    Builder b("f");
    const Expr in{&b, b.Parameter({DType::kF32, {rows, kColumns}, {}})};
    const Expr sum{&b, ReduceSum(b, in, {1})};
    const Atom scaled = Broadcast(b, sum * Expr{&b, Atom::Scalar(DType::kF32, 0.5)}, {rows, kColumns}, {0});
    const Tensors got = Results(b.Build({Sub(b, in, scaled), sum}), {x});
    for (int64_t r = 0; r < rows; ++r) {
      double want = 0;
      for (int64_t i = 0; i < kColumns; ++i) want += x.Get(r * kColumns + i).real();
      ASSERT_EQ(got[1].Get(r).real(), want);
      for (int64_t i = 0; i < kColumns; ++i)
        ASSERT_EQ(got[0].Get(r * kColumns + i).real(), x.Get(r * kColumns + i).real() - want / 2)
            << rows << " rows, row " << r << ", element " << i;
    }
  }
}

TEST(Reductions, NanIsFoundInEveryPart) {
  constexpr int64_t kSize = 500009;
  for (int64_t at : {int64_t{0}, int64_t{123456}, kSize - 1}) {
    Tensor x = Numbers(DType::kF32, {kSize});
    x.data<float>()[at] = NAN;
    Builder b("f");
    const Atom in = b.Parameter({DType::kF32, {kSize}, {}});
    const Atom arg = b.Emit1(FindPrim("argmax"), {in}, {{"dim", int64_t{0}}, {"dtype", DType::kI32}});
    const Tensors got = Results(b.Build({Reduce(b, "reduce_max", in, {0}), ReduceSum(b, in, {0}), arg}), {x});
    EXPECT_TRUE(std::isnan(got[0].Get(0).real()));
    EXPECT_TRUE(std::isnan(got[1].Get(0).real()));
    EXPECT_EQ(got[2].at<int32_t>(0), at);
  }
}

TEST(Reductions, ArgmaxOfLongLinesIsTheFirstOfEquals) {
  constexpr int64_t kSize = 100000;
  Tensor x = Numbers(DType::kF32, {3, kSize}, 5);
  x.data<float>()[77777] = 100, x.data<float>()[77778] = 100;
  x.data<float>()[kSize + 99999] = 100;
  Builder b("f");
  const Atom in = b.Parameter({DType::kF32, {3, kSize}, {}});
  const Tensor got =
      Results(b.Build({b.Emit1(FindPrim("argmax"), {in}, {{"dim", int64_t{1}}, {"dtype", DType::kI32}})}), {x})[0];
  EXPECT_EQ(got.at<int32_t>(0), 77777);
  EXPECT_EQ(got.at<int32_t>(1), 99999);
  int64_t first = 2 * kSize;
  while (x.data<float>()[first] != 1) ++first;  // the largest of the third line is 1
  EXPECT_EQ(got.at<int32_t>(2), first - 2 * kSize);
}

// Squares in registers: every remainder of rows and columns, every width, beside an operand that lies the other way.
TEST(Transposes, EverySizeAndType) {
  for (DType dtype : {DType::kF32, DType::kF64, DType::kI32, DType::kI8, DType::kF16, DType::kBool}) {
    for (int64_t m : {8, 17, 33, 64}) {
      for (int64_t n : {9, 16, 31, 65}) {
        Builder b("f");
        const Atom x = b.Parameter({dtype, {m, n}, {}}), y = b.Parameter({dtype, {n, m}, {}});
        const Atom t = Transpose(b, x, {1, 0});
        const FnRef f = b.Build({b.Emit1(FindPrim(dtype == DType::kBool ? "xor" : "add"), {t, y}), t});
        const Tensors in = {Numbers(dtype, {m, n}), Numbers(dtype, {n, m}, 5)};
        const Tensors got = Results(f, in), want = Eval(*f, in);
        ASSERT_TRUE(got[0].BitEquals(want[0])) << Name(dtype) << " " << m << " x " << n;
        ASSERT_TRUE(got[1].BitEquals(want[1])) << Name(dtype) << " " << m << " x " << n;
      }
    }
  }
}

TEST(Transposes, OfStacksAndSymbolicSizes) {
  Builder b("f");
  const Dim n = Dim::Symbol("n");
  const Atom x = b.Parameter({DType::kF32, {3, n, 40}, {}});
  const auto f = Compile(NoDisk().For(b.Build({Exp(b, Transpose(b, x, {0, 2, 1})), Transpose(b, x, {2, 0, 1})})));
  for (int64_t size : {1, 2, 15, 16, 50, 0}) {
    const Tensor in = Numbers(DType::kF32, {3, size, 40});
    const Tensors got = f->Run({in}), want = Eval(*f->request().program, {in});
    for (int r = 0; r < 2; ++r) {
      ASSERT_EQ(got[r].type(), want[r].type());
      for (int64_t i = 0; i < want[r].size(); ++i)
        ASSERT_NEAR(got[r].Get(i).real(), want[r].Get(i).real(), 1e-4 * (1 + std::abs(want[r].Get(i).real())));
    }
  }
}

TEST(Streams, LargeResultsAreComplete) {
  constexpr int64_t kSize = (int64_t{24} << 20) / 4 + 12345;
  Builder b("f");
  const Expr x{&b, b.Parameter({DType::kF32, {kSize}, {}})};
  const auto f = Compile(NoDisk().For(b.Build({x * 2.0 + 1.0})));
  EXPECT_NE(f->Stage("buffers").find("stream %"), std::string::npos);
  const Tensor in = Numbers(DType::kF32, {kSize});
  const Tensor got = f->Run({in})[0];
  for (int64_t i = 0; i < kSize; ++i) ASSERT_EQ(got.at<float>(i), in.at<float>(i) * 2 + 1) << i;
}

// An update computed from other places of the array that it changes.
TEST(Updates, ThatReadTheArrayTheyChange) {
  Builder b("f");
  const Expr x{&b, b.Parameter({DType::kI32, {1000}, {}})};
  const Atom start = Reshape(b, Slice(b, x, {3}, {4}, {1}), {});
  const Atom moved =
      DynamicUpdateSlice(b, x, Reverse(b, Slice(b, x, {0}, {600}, {1}), {0}), {Atom::Scalar(DType::kI32, 5)});
  const Atom there = DynamicUpdateSlice(b, moved, Slice(b, moved, {10}, {700}, {1}), {start});
  const FnRef f = b.Build({there});
  CompileRequest options = NoDisk();
  options.donated = {true};
  for (int32_t at : {0, 2, 9, 300}) {
    Tensor in(DType::kI32, {1000});
    for (int64_t i = 0; i < 1000; ++i) in.data<int32_t>()[i] = static_cast<int32_t>(i);
    in.data<int32_t>()[3] = at;
    const Tensor want = Eval(*f, {in})[0];
    EXPECT_TRUE(Results(f, {in})[0].BitEquals(want));
    EXPECT_TRUE(Compile(options.For(f))->Run({in})[0].BitEquals(want));
  }
}

TEST(Scatters, OrderOfEqualIndicesAndThreads) {
  constexpr int64_t kSize = 1000, kUpdates = 200000;
  for (const char* op : {"scatter", "scatter_add", "scatter_max"}) {
    Builder b("f");
    const Atom x = b.Parameter({DType::kF32, {kSize, 3}, {}}), i = b.Parameter({DType::kI32, {kUpdates, 1}, {}}),
               u = b.Parameter({DType::kF32, {kUpdates, 3}, {}});
    const auto f = Compile(NoDisk().For(b.Build({b.Emit1(FindPrim(op), {x, i, u},
                                                         {{"update_window_dims", Ints{1}},
                                                          {"inserted_dims", Ints{0}},
                                                          {"operand_batch_dims", Ints{}},
                                                          {"indices_batch_dims", Ints{}},
                                                          {"scatter_dims", Ints{0}},
                                                          {"mode", std::string("drop")}})})));
    Tensor indices(DType::kI32, {kUpdates, 1});
    for (int64_t k = 0; k < kUpdates; ++k)
      indices.data<int32_t>()[k] = static_cast<int32_t>(k * 7919 % (kSize + 50)) - 20;
    const Tensor start = Numbers(DType::kF32, {kSize, 3}), updates = Numbers(DType::kF32, {kUpdates, 3}, 11);
    Tensor want = start.Copy();
    for (int64_t k = 0; k < kUpdates; ++k) {
      const int64_t at = indices.at<int32_t>(k);
      if (at < 0 || at >= kSize) continue;
      for (int64_t c = 0; c < 3; ++c) {
        float& to = want.data<float>()[at * 3 + c];
        const float v = updates.at<float>(k * 3 + c);
        to = std::string(op) == "scatter" ? v : std::string(op) == "scatter_add" ? to + v : std::max(to, v);
      }
    }
    const int before = cpu::NumThreads();
    for (int threads : {1, 2, 5}) {
      cpu::SetNumThreads(threads);
      EXPECT_TRUE(f->Run({start, indices, updates})[0].BitEquals(want)) << op << ", " << threads << " threads";
    }
    cpu::SetNumThreads(before);
  }
}

}  // namespace
}  // namespace weft
