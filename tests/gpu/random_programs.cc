// Random programs of what GPUs can do, run thread by thread with all checks, against the reference interpreter.
//
//   bazel run //tests/gpu:random_programs -- --count=200
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <random>
#include <string>

#include "ir/builder.h"
#include "ir/ops.h"
#include "ir/prims/indexing.h"
#include "ir/samples/drawn_tensors.h"
#include "ir/text/printer.h"
#include "tests/gpu/emulated.h"
#include "transforms/opt/pass.h"

namespace weft {
namespace {

class Generator {
 public:
  explicit Generator(unsigned seed) : rng_(seed) {}

  FnRef Make() {
    Builder b("f");
    dtype_ = std::vector<DType>{DType::kF32, DType::kF32, DType::kF32, DType::kF64, DType::kBF16, DType::kF16}[Pick(6)];
    const Dims shape = Shape();
    Atoms pool;
    for (int i = 1 + Pick(3); i > 0; --i) pool.push_back(b.Parameter({dtype_, shape, {}}));
    for (int i = 2 + Pick(9); i > 0; --i) Step(b, &pool);
    Atoms results = {pool.back()};
    for (int i = Pick(3); i > 0; --i) results.push_back(pool[Pick(static_cast<int>(pool.size()))]);
    return b.Build(results);
  }

  std::mt19937& rng() { return rng_; }
  DType dtype() const { return dtype_; }

 private:
  int Pick(int n) { return static_cast<int>(rng_() % static_cast<unsigned>(n)); }

  // Rows that a thread, a warp or a block takes; sizes that vectors divide and sizes that they do not.
  Dims Shape() {
    static const int64_t kRows[] = {1, 3, 8, 17, 40, 130}, kColumns[] = {1, 7, 16, 33, 64, 100, 257, 512, 1500};
    switch (Pick(6)) {
      case 0: return {kColumns[Pick(9)] * 3 + Pick(4)};
      case 1: return {Dim(1 + Pick(3)), kRows[Pick(5)], kColumns[Pick(6)]};
      default: return {kRows[Pick(6)], kColumns[Pick(9)]};
    }
  }

  Atom Choose(const Atoms& pool) { return pool[static_cast<size_t>(Pick(static_cast<int>(pool.size())))]; }
  Atom Like(Builder& b, const Atoms& pool, const Type& t) {
    Atoms fitting;
    for (const Atom& a : pool) {
      if (b.TypeOf(a) == t) fitting.push_back(a);
    }
    return fitting.empty() ? Broadcast(b, Atom::Scalar(t.dtype, 0.75), t.dims, {}) : Choose(fitting);
  }

  void Step(Builder& b, Atoms* pool) {
    const Atom x = Choose(*pool);
    const Type t = b.TypeOf(x);
    const int rank = t.rank();
    auto number = [&](double v) { return Atom::Scalar(dtype_, v); };
    switch (Pick(17)) {
      case 0: return pool->push_back(Tanh(b, x));
      case 1: return pool->push_back(Exp(b, Neg(b, Mul(b, x, x))));
      case 2: return pool->push_back(Add(b, x, Like(b, *pool, t)));
      case 3: return pool->push_back(Mul(b, Logistic(b, x), Like(b, *pool, t)));
      case 4: return pool->push_back(Sub(b, number(0.5), x));
      case 5: return pool->push_back(Div(b, x, Add(b, Mul(b, x, x), number(1))));
      // Continuous, since kernels do not round in between.
      case 6: return pool->push_back(Select(b, Gt(b, x, number(0)), x, Mul(b, x, number(0.25))));
      case 7:
      case 8:
      case 9: return Normalise(b, pool, x);
      case 10:
        if (rank > 0)
          pool->push_back(Reduce(b, Pick(2) ? "reduce_max" : "reduce_sum", Mul(b, x, number(0.1)), Some(rank)));
        return;
      case 11:
        if (rank == 2) pool->push_back(Transpose(b, x, {1, 0}));
        return;
      case 12: return pool->push_back(Reshape(b, x, {t.size()}));
      case 13:
        if (rank > 0 && t.size().value() < 20000)
          pool->push_back(Concatenate(b, {x, Sub(b, x, number(1))}, Pick(rank)));
        return;
      case 14:
        if (rank > 0) pool->push_back(Reverse(b, x, {Pick(rank)}));
        return;
      case 15:
        if (rank == 2 && t.dims[0].value() > 2) {
          pool->push_back(Slice(b, x, {1, 0}, {t.dims[0].value() - 1, t.dims[1].value()}, {1, 1}));
          pool->push_back(Pad(b, pool->back(), number(0.5), {1, 0}, {0, 3}, {0, 0}));
        }
        return;
      case 16:
        if (rank == 2) Rows(b, pool, x);
        return;
    }
  }

  Ints Some(int rank) {
    Ints dims;
    while (dims.empty()) {
      for (int d = 0; d < rank; ++d) {
        if (Pick(2)) dims.push_back(d);
      }
    }
    return dims;
  }

  // (x - max) / (1 + sum of squares), over some of the dimensions: reductions whose results are used again.
  void Normalise(Builder& b, Atoms* pool, const Atom& x) {
    const Type t = b.TypeOf(x);
    if (t.rank() == 0) return;
    const Ints dims = Some(t.rank());
    Ints kept;
    for (int d = 0; d < t.rank(); ++d) {
      if (std::find(dims.begin(), dims.end(), d) == dims.end()) kept.push_back(d);
    }
    const Atom centred = Sub(b, x, Broadcast(b, Reduce(b, "reduce_max", x, dims), t.dims, kept));
    const Atom small = Mul(b, centred, Atom::Scalar(dtype_, 0.05));
    const Atom sum = Add(b, ReduceSum(b, Mul(b, small, small), dims), Atom::Scalar(dtype_, 1));
    pool->push_back(Div(b, centred, Broadcast(b, sum, t.dims, kept)));
  }

  // Rows at positions that data decide.
  void Rows(Builder& b, Atoms* pool, const Atom& x) {
    const Type t = b.TypeOf(x);
    const int32_t n = static_cast<int32_t>(t.dims[0].value());
    const Atom indices(Tensor::FromVector<int32_t>({4, 1}, {0, n - 1, Pick(n), n + 5}));
    const GatherDims g{{1}, {0}, {}, {}, {0}, {1, t.dims[1].value()}, "clip"};
    pool->push_back(b.Emit1(FindPrim("gather"), {x, indices}, g.ToAttrs()));
  }

  std::mt19937 rng_;
  DType dtype_ = DType::kF32;
};

int Run(int count, unsigned first) {
  int failures = 0;
  int64_t kernels = 0;
  for (unsigned seed = first; seed < first + static_cast<unsigned>(count); ++seed) {
    Generator generator(seed);
    const FnRef fn = Optimize(generator.Make());
    const Tensors args = DrawArguments(*fn, generator.rng());
    std::string why;
    try {
      const GpuTarget target = GpuTarget::Named(seed % 2 ? "cuda:sm_80" : "cuda:sm_90a");
      const Tensors got = RunEmulated(fn, args, target), want = Eval(*fn, args);
      // Of halves the interpreter rounds every operation, also before it subtracts numbers near one; a kernel rounds
      // its results.
      const bool half = ByteWidth(generator.dtype()) == 2;
      for (size_t i = 0; i < want.size() && why.empty(); ++i) {
        why = Difference(got[i], want[i], half ? 40 : 100, half ? 8 : 100, half ? 1 : 0);
        if (!why.empty()) why = "result " + std::to_string(i) + ": " + why;
      }
      kernels += static_cast<int64_t>(LowerGpu(fn, target, {.ptx = false}).kernels.size());
    } catch (const std::exception& error) {
      why = error.what();
    }
    if (why.empty()) continue;
    ++failures;
    std::cerr << "seed " << seed << ": " << why << "\n" << Print(*fn);
  }
  std::cout << count << " programs, " << kernels << " kernels, " << failures << " failures\n";
  return failures == 0 ? 0 : 1;
}

}  // namespace
}  // namespace weft

int main(int argc, char** argv) {
  int count = 200;
  unsigned seed = 1;
  for (int i = 1; i < argc; ++i) {
    if (std::strncmp(argv[i], "--count=", 8) == 0) count = std::atoi(argv[i] + 8);
    if (std::strncmp(argv[i], "--seed=", 7) == 0) seed = static_cast<unsigned>(std::atoi(argv[i] + 7));
  }
  return weft::Run(count, seed);
}
