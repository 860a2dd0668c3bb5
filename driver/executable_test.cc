// Compiled code against the reference interpreter on every sample of every primitive; fusion and copies by counters.
#include "driver/executable.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <random>
#include <set>
#include <thread>

#include "base/digest.h"
#include "ir/eval/effects.h"
#include "ir/eval/eval.h"
#include "ir/ops.h"
#include "ir/prim.h"
#include "ir/prims/elementwise.h"
#include "ir/samples/sample_fns.h"

namespace weft {
namespace {

// Without passes.
CompileRequest AsItIs(FnRef fn) {
  CompileRequest request{std::move(fn)};
  request.passes = {};
  return request;
}

Tensor RandomTensor(const Type& type, double low, double high, std::mt19937& rng) {
  Tensor t(type.dtype, StaticSizes(type.dims, "a sample"));
  std::uniform_real_distribution<double> uniform(low, high);
  for (int64_t i = 0; i < t.size(); ++i) {
    if (t.dtype() == DType::kKey) {
      t.data<uint64_t>()[i] = rng();
      continue;
    }
    double re = uniform(rng);
    if (IsInteger(t.dtype())) re = std::round(re);
    if (IsBool(t.dtype())) re = rng() & 1;
    t.Set(i, {re, IsComplex(t.dtype()) ? uniform(rng) : 0});
  }
  return t;
}

Tensor RandomF32(Shape shape) {
  std::mt19937 rng(5);
  return RandomTensor(Type{DType::kF32, Dims(shape.begin(), shape.end()), {}}, -2, 2, rng);
}

// The distance from 1 to the next number.
double Epsilon(DType dtype) { return std::ldexp(1, 1 - RowOf(dtype).digits); }

// That of the primitive, which is for f32, twice: compiled code may be off by it, and the interpreter's library in f64
// too. What is computed in more precision is only rounded, at worst to the neighbour.
double Tolerance(const Prim& prim, DType dtype) {
  if (!IsInexact(dtype)) return 0;
  const double epsilon = Epsilon(dtype), single = Epsilon(DType::kF32);
  const double tolerance = 2 * std::max(prim.tolerance, IsComplex(dtype) ? kComplexUlps * single : 0);
  return epsilon > single ? std::max(tolerance, epsilon) : tolerance * epsilon / single;
}

// Relative to the element, or to `whole` where that is larger: the largest of all elements and operands where an
// element is made of many operands, whose terms cancel.
void ExpectClose(const Tensor& got, const Tensor& want, double tolerance, double whole = 0) {
  ASSERT_EQ(got.type(), want.type());
  for (int64_t i = 0; i < want.size(); ++i) {
    if (want.dtype() == DType::kKey) {
      ASSERT_EQ(got.at<uint64_t>(i), want.at<uint64_t>(i));
      continue;
    }
    std::complex<double> a = got.Get(i), b = want.Get(i);
    if (a == b || (std::isnan(a.real()) && std::isnan(b.real()))) continue;
    if (!std::isfinite(std::abs(b))) {  // complex numbers with an infinite part are infinite
      EXPECT_TRUE(IsComplex(want.dtype()) && std::isinf(std::abs(a)) && std::isinf(std::abs(b)))
          << "element " << i << ": " << a << " instead of " << b;
      continue;
    }
    EXPECT_LE(std::abs(a - b), tolerance * std::max(whole, std::abs(b)))
        << "element " << i << ": " << a << " instead of " << b;
  }
}

double Largest(const Tensor& t) {
  double largest = 0;
  for (int64_t i = 0; i < t.size(); ++i) {
    if (const double size = std::abs(t.Get(i)); std::isfinite(size)) largest = std::max(largest, size);
  }
  return largest;
}

// Eigenvectors and singular vectors are unique up to a factor of magnitude 1 each. Turns each column so that the first
// of its elements that is nearly its largest is real and positive; the rows of `partner` turn the other way, so that
// the product of the two stays what it was.
void FixPhases(Tensor& columns, Tensor* partner) {
  const int rank = columns.rank();
  const int64_t m = columns.shape()[rank - 2], k = columns.shape()[rank - 1];
  if (columns.size() == 0) return;
  const int64_t n = partner == nullptr ? 0 : partner->shape()[rank - 1];
  for (int64_t matrix = 0; matrix < columns.size() / (m * k); ++matrix) {
    for (int64_t j = 0; j < k; ++j) {
      auto at = [&](int64_t i) { return matrix * m * k + i * k + j; };
      double largest = 0;
      for (int64_t i = 0; i < m; ++i) largest = std::max(largest, std::abs(columns.Get(at(i))));
      int64_t first = 0;
      while (!(std::abs(columns.Get(at(first))) >= 0.9 * largest)) ++first;
      const std::complex<double> factor = std::conj(columns.Get(at(first))) / std::abs(columns.Get(at(first)));
      for (int64_t i = 0; i < m; ++i) columns.Set(at(i), columns.Get(at(i)) * factor);
      for (int64_t i = 0; i < n; ++i) {
        const int64_t to = matrix * k * n + j * n + i;
        partner->Set(to, partner->Get(to) * std::conj(factor));
      }
    }
  }
}

// Literals stay literals where a primitive is about positions, so both forms of operands are met.
FnRef FnOf(const Prim& prim, const Sample& sample, std::vector<int>* operand_of_param) {
  Builder b(prim.name);
  Atoms operands(sample.operands.size());
  for (const auto& [i, value] : sample.values) {
    if (value.size() <= kMaxLiteralElements && value.type() == sample.operands[i] && !prim.is_elementwise())
      operands[i] = Atom(value);
  }
  for (size_t i = 0; i < operands.size(); ++i) {
    if (operands[i].is_literal()) continue;
    operands[i] = b.Parameter(sample.operands[i]);
    operand_of_param->push_back(static_cast<int>(i));
  }
  return b.Build(b.Emit(prim, operands, sample.attrs, sample.regions), /*keep_dead=*/true);
}

TEST(Registry, CompiledCodeEqualsTheInterpreter) {
  EffectHandlers handlers = GetEffectHandlers();
  handlers.print = [](const std::string&) {};
  handlers.callback = [](int64_t, const Tensors&, const Types& types) {
    Tensors out;
    for (const Type& t : types) out.push_back(Tensor::Full(t.dtype, StaticSizes(t.dims, "callback"), 3));
    return out;
  };
  SetEffectHandlers(handlers);
  std::mt19937 rng(7);
  CompileRequest options;
  options.passes = {};
  options.use_cache = options.use_disk_cache = false;
  std::set<std::string> tried;
  for (const Prim* prim : AllPrims()) {
    if (!prim->samples) continue;
    int number = 0;
    for (const Sample& sample : prim->samples()) {
      SCOPED_TRACE(prim->name + " sample " + std::to_string(number++));
      std::vector<int> operand_of_param;
      const bool on_devices = prim->family == Family::kCollective;
      const FnRef fn = on_devices ? OnDevices(*prim, sample) : FnOf(*prim, sample, &operand_of_param);
      Tensors in;
      if (on_devices) in.push_back(RandomTensor(fn->params()[0].type, sample.low, sample.high, rng));
      for (int i : operand_of_param) {
        Tensor value;
        for (const auto& [j, v] : sample.values) {
          if (i == j) value = v;
        }
        in.push_back(value.defined() ? value : RandomTensor(sample.operands[i], sample.low, sample.high, rng));
      }
      std::string expected_error, error;
      Tensors want, got;
      try {
        want = Eval(*fn, in);
      } catch (const Error& e) {
        expected_error = e.message();
      }
      // Neither compiling nor running comes back to the interpreter.
      const int64_t interpreted = EvalCount();
      try {
        got = Compile(options.For(fn))->Run(in);
      } catch (const Error& e) {
        error = e.message();
      }
      ASSERT_EQ(EvalCount(), interpreted);
      ASSERT_EQ(error, expected_error);
      tried.merge(PrimsOf(*fn));
      if (prim->name == "eigh") FixPhases(got[1], nullptr), FixPhases(want[1], nullptr);
      if (prim->name == "svd" && want.size() == 3) FixPhases(got[0], &got[2]), FixPhases(want[0], &want[2]);
      for (size_t r = 0; r < want.size(); ++r) {
        const DType from = in.empty() ? want[r].dtype() : in[0].dtype();
        double tolerance = Tolerance(*prim, want[r].dtype());
        if (IsInexact(want[r].dtype())) tolerance = std::max(tolerance, Tolerance(*prim, from));
        double whole = 0;
        if (!prim->is_elementwise() && IsInexact(want[r].dtype())) {
          whole = Largest(want[r]);
          for (const Tensor& t : in) whole = std::max(whole, IsInexact(t.dtype()) ? Largest(t) : 0);
        }
        ExpectClose(got[r], want[r], tolerance, whole);
      }
    }
  }
  // A box has no sample: it equals itself only.
  const Type type{DType::kF64, {3}, {}};
  Builder b("boxed");
  const FnRef boxed = b.Build(
      b.Emit(FindPrim("unbox"), b.Emit(FindPrim("box"), {Sin(b, b.Parameter(type))}), {{"results", Types{type}}}));
  const Tensors x = {RandomTensor(type, -1, 1, rng)};
  ExpectClose(Compile(options.For(boxed))->Run(x)[0], Eval(*boxed, x)[0], 1e-15);
  tried.merge(PrimsOf(*boxed));
  for (const Prim* prim : AllPrims()) EXPECT_TRUE(tried.count(prim->name)) << prim->name << " was not compiled";
}

FnRef Softmax(Dims shape) {
  Builder b("softmax");
  const Type t{DType::kF32, shape, {}};
  const Expr x{&b, b.Parameter(t, "x")};
  const Expr top{&b, Broadcast(b, Reduce(b, "reduce_max", x, {1}), shape, {0})};
  const Expr e = Exp(x - top);
  return b.Build({e / Expr{&b, Broadcast(b, ReduceSum(b, e, {1}), shape, {0})}});
}

// x * scale + shift, each number once.
FnRef Scaled(double scale, double shift) {
  Builder b("scaled");
  const Expr x{&b, b.Parameter({DType::kF32, {3}, {}})};
  return b.Build({Sin(x) * scale + shift});
}

TEST(Code, ProgramsThatDifferInNumbersShareIt) {
  const Tensor x = RandomF32({3});
  std::vector<std::shared_ptr<Executable>> programs;
  for (const auto& [scale, shift] :
       {std::pair(0.3, 0.1), std::pair(0.7, 0.1), std::pair(0.7, -1e-5), std::pair(1e30, 3.3)}) {
    const FnRef fn = Scaled(scale, shift);
    programs.push_back(Compile(AsItIs(fn)));
    ExpectClose(programs.back()->Run({x})[0], Eval(*fn, {x})[0], 2e-6);
    EXPECT_EQ(&programs.back()->artifact(), &programs[0]->artifact());
  }
  // Two that are one number are other code, and so is a number that code may know.
  EXPECT_NE(&Compile(AsItIs(Scaled(0.3, 0.3)))->artifact(), &programs[0]->artifact());
  EXPECT_NE(&Compile(AsItIs(Scaled(0.3, 0.5)))->artifact(), &programs[0]->artifact());
  // One that keeps out of the caches has code of its own.
  CompileRequest own = AsItIs(Scaled(0.4, 0.2));
  own.use_cache = false;
  const auto alone = Compile(own);
  EXPECT_NE(&alone->artifact(), &programs[0]->artifact());
  ExpectClose(alone->Run({x})[0], Eval(*own.program, {x})[0], 2e-6);
  // Memory that is given away is that of the program's own parameters.
  for (double scale : {0.3, 0.9}) {
    CompileRequest donating = AsItIs(Scaled(scale, 0.1));
    donating.donated = {true};
    const auto e = Compile(donating);
    EXPECT_EQ(e->UsesDonated(), std::vector<bool>{true});
    const Tensor want = Eval(*donating.program, {x})[0];
    ExpectClose(e->RunOwned({x.Copy()})[0], want, 2e-6);
  }
}

// Kernels whose code is generated in several parts, by threads where there are some.
TEST(Code, IsShortWhereItIsAFewElementwiseOperationsOnFewElements) {
  const auto is_short = [](Dims dims, const std::function<Atom(Builder&, Atom)>& make) {
    Builder b("f");
    const Atom x = b.Parameter({DType::kF32, std::move(dims), {}});
    return Compile(AsItIs(b.Build({make(b, x)})))->is_short();
  };
  const auto tanh = [](Builder& b, Atom x) -> Atom { return b.Emit1(FindPrim("tanh"), {x}); };
  const auto thrice = [&](Builder& b, Atom x) -> Atom { return tanh(b, tanh(b, tanh(b, x))); };
  EXPECT_TRUE(is_short({8}, tanh));
  EXPECT_TRUE(is_short({}, thrice));
  EXPECT_TRUE(is_short({0}, thrice));
  EXPECT_TRUE(is_short({4096}, tanh));
  EXPECT_FALSE(is_short({4097}, tanh));
  EXPECT_FALSE(is_short({2000}, thrice));
  EXPECT_FALSE(is_short({Dim::Symbol("n")}, tanh));
  EXPECT_FALSE(is_short({8}, [](Builder& b, Atom x) -> Atom { return ReduceSum(b, x, {0}); }));
}

TEST(Code, OfManyKernels) {
  for (int count : {3, 10, 40}) {
    Builder b("many");
    Expr x{&b, b.Parameter({DType::kF32, {33, 33}, {}})};
    Atoms results;
    for (int i = 0; i < count; ++i) {
      // Products keep what is before from what is after; kernels have several lengths.
      x = Expr{&b, Contract(b, "ij,jk->ik", x, x)} * 0.01;
      for (int k = 0; k <= i % 5; ++k) x = Sin(x) + static_cast<double>(i) * 0.25;
      results.push_back(x);
    }
    const FnRef fn = b.Build(results);
    const auto e = Compile(AsItIs(fn));
    EXPECT_GE(e->counters().kernel_calls, count);
    const Tensor in = RandomF32({33, 33});
    const Tensors got = e->Run({in}), want = Eval(*fn, {in});
    for (int i = 0; i < count; ++i) ExpectClose(got[i], want[i], 1e-3, 1);
  }
}

TEST(Fusion, SoftmaxIsOneKernelThatReadsAndWritesOnce) {
  const FnRef fn = Softmax({64, 100});
  const auto e = Compile(AsItIs(fn));
  EXPECT_EQ(e->counters().kernels, 1);
  EXPECT_EQ(e->counters().kernel_calls, 1);
  EXPECT_EQ(e->counters().bytes_moved, 2 * 64 * 100 * 4);
  EXPECT_EQ(e->artifact().arena_bytes, 0);
  const Tensor x = RandomF32({64, 100});
  ExpectClose(e->Run({x})[0], Eval(*fn, {x})[0], 2e-6);
}

// The sum does not depend on the rows it is written to, yet what follows it belongs inside the loop over rows.
TEST(Fusion, ReductionsOfRepeatedRowsAndOfEverything) {
  Builder b("f");
  const Expr x{&b, b.Parameter({DType::kF32, {40}, {}})};
  const Expr rows{&b, Broadcast(b, Tanh(x), {6, 40}, {1})};
  const Expr all{&b, ReduceSum(b, x, {0})};
  const FnRef fn = b.Build({Expr{&b, ReduceSum(b, rows, {1})} * 0.1, all * 0.5 + 1.0});
  const Tensor in = RandomF32({40});
  const Tensors got = Compile(AsItIs(fn))->Run({in}), want = Eval(*fn, {in});
  for (int r = 0; r < 2; ++r) ExpectClose(got[r], want[r], 1e-5);
}

// The element is read inside of the loop over units, after the reduction that says where it is.
TEST(Fusion, PositionFromAReductionOfTheSameArray) {
  Builder b("f");
  const Atom x = b.Parameter({DType::kI32, {1000}, {}});
  const Atom at = ReduceSum(b, x, {0});
  const FnRef fn = b.Build({DynamicSlice(b, x, {at}, {1}), at});
  Tensor in(DType::kI32, {1000});
  for (int64_t i = 0; i < 1000; ++i) in.Set(i, i == 507 ? 400.0 : i == 900 ? 107.0 : 0.0);
  const Tensors got = Compile(AsItIs(fn))->Run({in});
  EXPECT_EQ(got[0].Get(0).real(), in.Get(507).real());
  EXPECT_EQ(got[1].Get(0).real(), 507);
}

TEST(Fusion, OffMeansOneKernelPerEquation) {
  CompileRequest options;
  options.passes = {};
  options.fusion.fuse = false;
  EXPECT_GT(Compile(options.For(Softmax({8, 16})))->counters().kernels, 3);
}

TEST(Fusion, RepeatedBlocksShareTheirKernel) {
  Builder b("blocks");
  const Type t{DType::kF32, {16, 16}, {}};
  Atom x = b.Parameter(t);
  const Atom w = b.Parameter(t);
  for (int i = 0; i < 20; ++i) x = Tanh(b, Contract(b, "ij,jk->ik", x, w));
  const auto e = Compile(AsItIs(b.Build({x})));
  EXPECT_LE(e->counters().kernels, 2);
  EXPECT_EQ(e->counters().kernel_calls, 20);
}

TEST(Memory, ScanWritesItsStacksInPlace) {
  Builder body("body");
  const Type t{DType::kF32, {8}, {}};
  const Expr c{&body, body.Parameter(t)}, x{&body, body.Parameter(t)};
  const Expr next = Tanh(c * 0.5 + x);
  const FnRef step = body.Build({next, next * next});
  Builder b("scan");
  const Atoms in = {b.Parameter(t), b.Parameter(Type{DType::kF32, {100, 8}, {}})};
  const FnRef fn = b.Build(b.Emit(
      FindPrim("scan"), in,
      {{"num_consts", int64_t{0}}, {"num_carry", int64_t{1}}, {"length", Dims{100}}, {"reverse", false}}, {step}));
  const auto e = Compile(AsItIs(fn));
  EXPECT_LE(e->counters().bytes_copied, 8 * 4);  // the initial carry
  const Tensors args = {RandomF32({8}), RandomF32({100, 8})};
  const Tensors got = e->Run(args), want = Eval(*fn, args);
  for (int r = 0; r < 2; ++r) ExpectClose(got[r], want[r], 1e-6, /*whole=*/1);  // c / 2 + x cancels
}

TEST(Symbols, OneExecutableServesEverySize) {
  const FnRef fn = Softmax({Dim::Symbol("n"), 33});
  const auto e = Compile(AsItIs(fn));
  for (int64_t n : {1, 7, 300}) {
    const Tensor x = RandomF32({n, 33});
    ExpectClose(e->Run({x})[0], Eval(*fn, {x})[0], 2e-6);
  }
}

TEST(Errors, NameTheArgument) {
  const auto e = Compile(AsItIs(Softmax({8, 16})));
  try {
    e->Run({RandomF32({8, 17})});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kType);
    EXPECT_NE(error.message().find("argument 0"), std::string::npos) << error.message();
  }
}

TEST(DiskCache, SecondCompilationLoadsAndDamageIsNoticed) {
  const FnRef fn = Softmax({5, 19});
  CompileRequest options;
  options.passes = {};
  options.use_cache = false;
  Compile(options.For(fn));
  const auto second = Compile(options.For(fn));
  EXPECT_TRUE(second->from_disk());
  const Tensor x = RandomF32({5, 19});
  ExpectClose(second->Run({x})[0], Eval(*fn, {x})[0], 1e-6);
  // One byte changed in every file: nothing is loaded, everything is replaced.
  for (const auto& file : std::filesystem::directory_iterator(std::getenv("WEFT_CACHE_DIR"))) {
    std::fstream f(file.path(), std::ios::in | std::ios::out | std::ios::binary);
    f.seekp(-20, std::ios::end);
    f.put('#');
  }
  EXPECT_FALSE(Compile(options.For(fn))->from_disk());
  EXPECT_TRUE(Compile(options.For(fn))->from_disk());
}

TEST(DiskCache, DigestIsSha256) {
  EXPECT_EQ(Sha256("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(Sha256(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

TEST(Threads, ManyCallersOfOneExecutable) {
  const FnRef fn = Softmax({256, 512});
  const auto e = Compile(AsItIs(fn));
  const Tensor x = RandomF32({256, 512});
  const Tensor want = e->Run({x})[0];
  std::vector<std::thread> threads;
  std::vector<int> good(4, 0);
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 50; ++i) good[t] += e->Run({x})[0].BitEquals(want);
    });
  }
  for (std::thread& t : threads) t.join();
  for (int g : good) EXPECT_EQ(g, 50);
}

// The tests' own cache folder, before anything compiles.
const bool kFolderSet = [] {
  std::string folder = ::testing::TempDir() + "weft-cache-XXXXXX";
  return mkdtemp(folder.data()) != nullptr && setenv("WEFT_CACHE_DIR", folder.c_str(), 1) == 0;
}();

// Whatever two requests differ in, their programs are not taken for each other.
TEST(CompileRequest, EverySettingIsPartOfTheKey) {
  const FnRef fn = Softmax({8, 16});
  const std::vector<std::function<void(CompileRequest&)>> changes = {
      [](CompileRequest& r) { r.backend = "interpreter"; },
      [](CompileRequest& r) { r.passes = {}; },
      [](CompileRequest& r) { r.passes.pop_back(); },
      [](CompileRequest& r) { r.donated = {true}; },
      [](CompileRequest& r) { r.donated = {false}; },
      [](CompileRequest& r) { r.target.cpu = "another"; },
      [](CompileRequest& r) { r.target.fused_products = false; },
      [](CompileRequest& r) { r.target.vector_bytes = 128; },
      [](CompileRequest& r) { r.fusion.max_members = 1; },
      [](CompileRequest& r) { r.fusion.max_passes = 1; },
      [](CompileRequest& r) { r.fusion.max_inline_cost = 1; },
      [](CompileRequest& r) { r.fusion.max_viewed_cost = 1; },
      [](CompileRequest& r) { r.fusion.min_parallel_rows = 1; },
      [](CompileRequest& r) { r.fusion.large_row = 1; },
      [](CompileRequest& r) { r.fusion.fuse = false; },
      [](CompileRequest& r) { r.fusion.arg_reductions = true; },
      [](CompileRequest& r) { r.fusion.distinct_buffers = true; },
  };
  std::set<std::string> keys = {CompileRequest{fn}.Key()};
  for (const auto& change : changes) {
    CompileRequest request{fn};
    change(request);
    EXPECT_TRUE(keys.insert(request.Key()).second) << request.Key();
  }
}

TEST(Compile, BackendsAndPassesAreFoundByName) {
  CompileRequest request{Softmax({8, 16})};
  request.backend = "tpu";
  EXPECT_THROW(Compile(request), Error);
  request.backend = "cpu";
  request.passes = {"cse", "no-such-pass"};
  EXPECT_THROW(Compile(request), Error);
  request.passes = {"cse"};
  request.backend = "interpreter";
  const Tensor x = Tensor::Full(DType::kF32, {8, 16}, 1);
  const auto interpreted = Compile(request);
  EXPECT_EQ(interpreted, Compile(request));
  request.backend = "cpu";
  EXPECT_NE(interpreted, Compile(request));
  EXPECT_NEAR(interpreted->Run({x})[0].Get(0).real(), 1.0 / 16, 1e-7);
  EXPECT_THROW(interpreted->Run({x, x}), Error);
}

}  // namespace
}  // namespace weft
