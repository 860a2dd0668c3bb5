// Reductions along columns, whose rows are read in strips, reductions of pairs, and strided reads: the numbers of the
// reference interpreter, whatever the sizes, dtypes and threads, and nothing outside of the arrays is read.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "backends/cpu/core/thread_pool.h"
#include "driver/executable.h"
#include "ir/builder.h"
#include "ir/eval/eval.h"
#include "ir/ops.h"

namespace weft {
namespace {

std::shared_ptr<Executable> Compiled(const FnRef& fn) {
  CompileRequest request{fn};
  request.passes = {};
  request.use_disk_cache = false;
  return Compile(request);
}

// Small whole numbers, whose sums are exact in every order.
Tensor Numbers(DType dtype, Shape shape) {
  Tensor t(dtype, std::move(shape));
  for (int64_t i = 0; i < t.size(); ++i)
    t.Set(i, static_cast<double>((i * 31 + i / 97) % 7) - (IsUnsigned(dtype) ? 0 : 3));
  return t;
}

void ExpectAsInterpreted(const FnRef& fn, const Tensors& in, const std::string& what) {
  const Tensors want = Eval(*fn, in), got = Compiled(fn)->Run(in);
  ASSERT_EQ(got.size(), want.size());
  for (size_t r = 0; r < got.size(); ++r) EXPECT_TRUE(got[r].BitEquals(want[r])) << what << ", result " << r;
}

struct Sizes {
  int64_t rows, columns;
};
// Whole strips and parts of one, whole blocks and parts of one, whole vectors and parts of one.
constexpr Sizes kSizes[] = {{256, 256}, {100, 1100}, {1003, 300}, {17, 5000}, {33, 2049}};

TEST(Strips, EveryReductionOfEveryDType) {
  for (const Sizes s : kSizes) {
    for (const char* op : {"reduce_sum", "reduce_max", "reduce_min", "reduce_and", "reduce_or"}) {
      for (DType dtype :
           {DType::kF32, DType::kF64, DType::kBF16, DType::kF16, DType::kI32, DType::kU8, DType::kC64, DType::kBool}) {
        if (!FindPrim(op).dtypes.Has(dtype)) continue;
        if (std::string(op) == "reduce_sum" && ByteWidth(dtype) < 4) continue;  // rounded once, or wrapping at the end
        Builder b("f");
        const Atom x = b.Parameter({dtype, {s.rows, s.columns}, {}});
        ExpectAsInterpreted(b.Build({Reduce(b, op, x, {0})}), {Numbers(dtype, {s.rows, s.columns})},
                            std::string(op) + " " + Name(dtype) + " " + std::to_string(s.columns));
      }
    }
  }
}

// Two and three phases, each over what the one before made, and what is stored of every element.
TEST(Strips, WhatIsMadeFromTotals) {
  for (const Sizes s : kSizes) {
    const Dims shape = {s.rows, s.columns};
    Builder b("f");
    const Expr x{&b, b.Parameter({DType::kF32, shape, {}})};
    const auto of_columns = [&](const Expr& v) { return Expr{&b, Broadcast(b, v, shape, {1})}; };
    const Expr most{&b, Reduce(b, "reduce_max", x, {0})};
    const Expr apart = x - of_columns(most);
    const Expr sum{&b, ReduceSum(b, apart, {0})};
    const Expr beyond = apart * 2.0 - of_columns(sum);
    const Expr least{&b, Reduce(b, "reduce_min", beyond, {0})};
    ExpectAsInterpreted(b.Build({most, sum, least, apart, beyond - of_columns(least)}),
                        {Numbers(DType::kF32, {s.rows, s.columns})}, std::to_string(s.columns));
  }
}

// Sums over the first and the last but one of three dimensions.
TEST(Strips, SeveralDimensions) {
  for (const Ints& dims : {Ints{1}, Ints{0}, Ints{0, 1}}) {
    Builder b("f");
    const Expr x{&b, b.Parameter({DType::kF32, {5, 77, 700}, {}})};
    ExpectAsInterpreted(b.Build({ReduceSum(b, x * x, dims)}), {Numbers(DType::kF32, {5, 77, 700})}, "");
  }
}

TEST(Strips, TheSameBitsForEveryNumberOfThreads) {
  Tensor x(DType::kF32, {1003, 2100});
  for (int64_t i = 0; i < x.size(); ++i) x.data<float>()[i] = 1.0f / static_cast<float>(1 + i % 1001);
  Builder b("f");
  const Expr in{&b, b.Parameter({DType::kF32, {1003, 2100}, {}})};
  const Expr sum{&b, ReduceSum(b, in, {0})};
  const Expr apart = in - Expr{&b, Broadcast(b, sum, {1003, 2100}, {1})};
  const auto f = Compiled(b.Build({sum, ReduceSum(b, apart * apart, {0})}));
  const int before = cpu::NumThreads();
  cpu::SetNumThreads(1);
  const Tensors want = f->Run({x});
  for (int threads : {2, 3, 8, 100}) {
    cpu::SetNumThreads(threads);
    for (int call = 0; call < 3; ++call) {
      const Tensors got = f->Run({x});
      for (size_t r = 0; r < want.size(); ++r) EXPECT_TRUE(got[r].BitEquals(want[r])) << threads << " threads";
    }
  }
  cpu::SetNumThreads(before);
}

// The numbers, with pages before and behind them that cannot be read; either end of the array lies at one.
Tensor Guarded(const Tensor& numbers, bool at_end) {
  const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE)), bytes = static_cast<size_t>(numbers.bytes());
  const size_t inside = (bytes + page - 1) / page * page, all = inside + 2 * page;
  auto* const memory =
      static_cast<char*>(mmap(nullptr, all, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, /*fd=*/-1, /*offset=*/0));
  EXPECT_NE(static_cast<void*>(memory), MAP_FAILED);
  EXPECT_EQ(mprotect(memory + page, inside, PROT_READ | PROT_WRITE), 0);
  char* const data = memory + page + (at_end ? inside - bytes : 0);
  std::memcpy(data, numbers.raw(), bytes);
  return Tensor(numbers.dtype(), numbers.shape(), std::shared_ptr<void>(memory, [all](void* m) { munmap(m, all); }),
                data);
}

TEST(StridedReads, StayWithinTheArray) {
  for (DType dtype : {DType::kF32, DType::kF64, DType::kU8, DType::kBF16}) {
    for (int64_t columns : {64, 127, 1000}) {
      for (int64_t stride = 2; stride <= 5; ++stride) {
        const Dims shape = {6, columns};
        const auto every = [&](Builder& b, const Atom& x, int64_t first) {
          return Slice(b, x, {0, first}, {6, columns - (stride - 1 - first)}, {1, stride});
        };
        for (bool at_end : {false, true}) {
          const Tensor x = Guarded(Numbers(dtype, {6, columns}), at_end);
          const std::string what = std::string(Name(dtype)) + " stride " + std::to_string(stride) + " of " +
                                   std::to_string(columns) + (at_end ? " at the end" : "");
          Tensors want;
          Builder all("all");
          const Atom whole = all.Parameter({dtype, shape, {}});
          Atoms parts;
          for (int64_t first = 0; first < stride; ++first) {
            Builder b("one");
            const Atom one = b.Parameter({dtype, shape, {}});
            ExpectAsInterpreted(b.Build({Add(b, every(b, one, first), every(b, one, first))}), {x},
                                what + " from " + std::to_string(first));
            parts.push_back(every(all, whole, first));
          }
          // All of them beside each other, as windows read them.
          Atom most = parts[0];
          for (size_t i = 1; i < parts.size(); ++i) most = all.Emit1(FindPrim("max"), {most, parts[i]});
          ExpectAsInterpreted(all.Build({most}), {x}, what);
        }
      }
    }
  }
}

// Whole vectors of every `stride`-th element, the last of which is the array's last, and the first its first.
TEST(StridedReads, EndWithTheArray) {
  for (DType dtype : {DType::kF32, DType::kF64, DType::kU8, DType::kBF16}) {
    for (int64_t stride = 2; stride <= 5; ++stride) {
      for (int64_t rows : {1, 3}) {
        const int64_t columns = 128 * stride - (stride - 1);
        for (bool at_end : {false, true}) {
          Builder b("f");
          const Atom x = b.Parameter({dtype, {rows, columns}, {}});
          const Atom part = Slice(b, x, {0, 0}, {rows, columns}, {1, stride});
          const Atom shifted = Slice(b, x, {0, stride - 1}, {rows, columns}, {1, stride});
          ExpectAsInterpreted(b.Build({Add(b, part, part), Add(b, shifted, shifted)}),
                              {Guarded(Numbers(dtype, {rows, columns}), at_end)},
                              std::string(Name(dtype)) + " stride " + std::to_string(stride));
        }
      }
    }
  }
}

// Reductions over few features of all pairs, whose second operand is transposed first.
TEST(TransposedOperands, PairsOfRows) {
  struct Pairs {
    int64_t batch, rows, columns, features;
  };
  for (const Pairs p : {Pairs{1, 70, 300, 5}, Pairs{1, 257, 129, 16}, Pairs{3, 40, 100, 33}, Pairs{2, 64, 64, 128}}) {
    for (DType dtype : {DType::kF32, DType::kF64, DType::kI32, DType::kU8}) {
      for (const char* op : {"reduce_sum", "reduce_max"}) {
        if (std::string(op) == "reduce_sum" && ByteWidth(dtype) < 4) continue;
        Builder b("f");
        const Dims shape = {p.batch, p.rows, p.columns, p.features};
        const Atom x = b.Parameter({dtype, {p.batch, p.rows, p.features}, {}});
        const Atom y = b.Parameter({dtype, {p.batch, p.columns, p.features}, {}});
        const Atom z = b.Parameter({dtype, {p.columns, p.features}, {}});
        const Expr of_x{&b, Broadcast(b, x, shape, {0, 1, 3})}, of_y{&b, Broadcast(b, y, shape, {0, 2, 3})},
            of_z{&b, Broadcast(b, z, shape, {2, 3})};
        const Expr reduced{&b, Reduce(b, op, (of_x + of_y) * of_z + of_y, {3})};
        ExpectAsInterpreted(b.Build({reduced, reduced * reduced}),
                            {Numbers(dtype, {p.batch, p.rows, p.features}),
                             Numbers(dtype, {p.batch, p.columns, p.features}), Numbers(dtype, {p.columns, p.features})},
                            std::string(op) + " " + Name(dtype) + " " + std::to_string(p.features));
      }
    }
  }
}

// Every unit runs once, whatever the number of units, of threads and of callers.
TEST(ParallelFor, RunsEveryUnitOnce) {
  const int before = cpu::NumThreads();
  for (int threads : {1, 2, 3, 7, 100}) {
    cpu::SetNumThreads(threads);
    for (int64_t units : {1, 2, 3, 63, 64, 65, 1000, 12345}) {
      for (int64_t nanoseconds : {int64_t{1000}, int64_t{100000}, units * 20000}) {
        std::vector<std::atomic<int>> runs(static_cast<size_t>(units));
        cpu::ParallelFor(units, nanoseconds, [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i) ++runs[static_cast<size_t>(i)];
        });
        EXPECT_TRUE(std::all_of(runs.begin(), runs.end(), [](const auto& n) { return n == 1; }))
            << units << " units, " << threads << " threads";
      }
    }
  }
  cpu::SetNumThreads(before);
}

}  // namespace
}  // namespace weft
