// Contractions whose sum is taken in a fixed order: compiled code has the bits of the interpreter, for every vector
// width, layout and number of threads, and calls no library.
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "backends/cpu/core/thread_pool.h"
#include "driver/executable.h"
#include "ir/builder.h"
#include "ir/eval/eval.h"
#include "ir/ops.h"

namespace weft {
namespace {

// Sizes that differ by orders of magnitude, so that every order of summation, and every product rounded once less, has
// other bits.
Tensor Numbers(DType dtype, const Shape& shape, int64_t seed) {
  Tensor t(dtype, shape);
  uint64_t state = 88172645463325252u + static_cast<uint64_t>(seed);
  const auto next = [&] {
    for (int shift : {13, -7, 17}) state ^= shift > 0 ? state << shift : state >> -shift;
    return static_cast<double>(static_cast<int64_t>(state) >> 11) / 4503599627370496.0;
  };
  const double range = ByteWidth(RealPart(dtype)) < 4 ? 1 : 6;
  for (int64_t i = 0; i < t.size(); ++i) {
    const double re = next(), im = next(), scale = std::pow(10, range * next());
    t.Set(i, {re * scale, IsComplex(dtype) ? im * scale : 0});
  }
  return t;
}

// The levels of vector instructions that this machine has.
std::vector<Target> Targets() {
  std::vector<Target> targets;
  for (const char* level : {"baseline", "avx2", "avx512"}) {
    Target t = Target::Level(level);
    t.fused_products = false;  // as for every program that holds such sums
    if (t.vector_bytes <= Target::Host().vector_bytes) targets.push_back(t);
  }
  return targets;
}

std::shared_ptr<const Executable> CompileFor(const FnRef& f, const Target& target) {
  CompileRequest options;
  options.passes = {};
  options.use_disk_cache = false;
  options.target = target;
  return Compile(options.For(f));
}

void ExpectTheBits(const FnRef& f, const Tensors& in, const std::string& what) {
  const Tensors want = Eval(*f, in);
  for (const Target& target : Targets()) {
    const auto program = CompileFor(f, target);
    EXPECT_EQ(program->counters().library_calls, 0) << what;
    const Tensors got = program->Run(in);
    for (size_t i = 0; i < want.size(); ++i) {
      if (got[i].BitEquals(want[i])) continue;
      int64_t first = 0, wrong = 0;
      for (int64_t k = got[i].size(); k-- > 0;) {
        if (got[i].Get(k) != want[i].Get(k)) first = k, ++wrong;
      }
      ADD_FAILURE() << what << " for " << target.ToString() << ": " << wrong << " of " << got[i].size()
                    << " differ, the first at " << first << ": " << got[i].Get(first) << " in place of "
                    << want[i].Get(first);
    }
  }
}

struct Case {
  const char* spec;
  Shape x, y;
  const char* along;
  int64_t leaf;
};

std::string Name(const Case& c) {
  std::string name = std::string(c.spec) + " along " + c.along + " by " + std::to_string(c.leaf);
  for (const Shape* s : {&c.x, &c.y}) {
    for (int64_t n : *s) name += (s->data() == &n ? "" : " ") + std::to_string(n);
    name += ";";
  }
  return name;
}

Dims DimsOf(const Shape& shape) { return Dims(shape.begin(), shape.end()); }

Atom Contract(Builder& b, const Atom& x, const Atom& y, const Case& c, DType result) {
  return b.Emit1(FindPrim("contract"), {x, y},
                 {{"spec", std::string(c.spec)}, {"along", std::string(c.along)}, {"leaf", c.leaf}, {"dtype", result}});
}

void Check(const Case& c, DType dtype, DType result) {
  Builder b("f");
  const Atom x = b.Parameter({dtype, DimsOf(c.x), {}}), y = b.Parameter({dtype, DimsOf(c.y), {}});
  const FnRef f = b.Build({Contract(b, x, y, c, result)});
  ExpectTheBits(f, {Numbers(dtype, c.x, 1), Numbers(dtype, c.y, 2)},
                Name(c) + " " + weft::Name(dtype) + " to " + weft::Name(result));
}

// Rows, columns and terms: none, one, odd ones, and those of whole tiles; leaves: one, powers of two and what is not,
// more than 16.
const std::vector<Case>& Cases() {
  static const auto& cases = *new std::vector<Case>{
      {"mk,kn->mn", {5, 64}, {64, 37}, "k", 4},
      {"mk,kn->mn", {16, 64}, {64, 64}, "k", 4},
      {"mk,kn->mn", {1, 48}, {48, 100}, "k", 3},
      {"mk,kn->mn", {65, 21}, {21, 1}, "k", 7},
      {"mk,kn->mn", {33, 48}, {48, 2}, "k", 3},
      {"mk,kn->mn", {2, 100}, {100, 10}, "k", 1},
      {"mk,kn->mn", {0, 8}, {8, 5}, "k", 2},
      {"mk,kn->mn", {3, 0}, {0, 5}, "k", 1},
      {"mk,kn->mn", {3, 1}, {1, 5}, "k", 1},
      {"mk,kn->mn", {1, 1}, {1, 1}, "k", 1},
      {"mk,kn->mn", {4, 6}, {6, 20}, "k", 6},
      {"mk,kn->mn", {9, 35}, {35, 130}, "k", 5},
      {"km,kn->mn", {96, 13}, {96, 40}, "k", 6},
      {"km,kn->mn", {128, 64}, {128, 10}, "k", 8},
      {"mk,nk->mn", {16, 10}, {64, 10}, "k", 5},
      {"mk,nk->mn", {5, 20}, {64, 20}, "k", 5},
      {"mk,nk->nm", {64, 20}, {9, 20}, "k", 10},
      {"bmk,bkn->bmn", {3, 7, 16}, {3, 16, 19}, "k", 2},
      {"bm,b->bm", {5, 9}, {5}, "", 1},
      {"m,n->mn", {7}, {33}, "", 1},
      {"mk,k->m", {300, 64}, {64}, "k", 4},
      {"k,k->", {1600}, {1600}, "k", 100},
      {"k,k->", {7}, {7}, "k", 1},
      {"kb,kb->b", {1024, 20}, {1024, 20}, "k", 64},
      {"abi,abj->ij", {16, 6, 5}, {16, 6, 33}, "a", 2},
      {"abi,abj->ij", {6, 16, 5}, {6, 16, 33}, "b", 1},
      {"bai,abj->ij", {6, 16, 5}, {16, 6, 3}, "a", 4},
  };
  return cases;
}

TEST(OrderedSums, HaveTheBitsOfTheInterpreter) {
  for (const Case& c : Cases()) Check(c, DType::kF32, DType::kF32);
}

TEST(OrderedSums, EveryType) {
  const std::vector<std::pair<DType, DType>> types = {
      {DType::kF64, DType::kF64},  {DType::kF32, DType::kF64},   {DType::kF64, DType::kF32},
      {DType::kF16, DType::kF32},  {DType::kBF16, DType::kF32},  {DType::kC64, DType::kC64},
      {DType::kC64, DType::kC128}, {DType::kC128, DType::kC128}, {DType::kC128, DType::kC64},
  };
  for (const auto& [dtype, result] : types) {
    for (size_t i : {0, 4, 11, 13, 14, 17, 19, 21, 23, 24}) Check(Cases()[i], dtype, result);
  }
}

// Operands that are read where they lie behind other operations, and plain sums of what is computed on the way.
TEST(OrderedSums, ReadViewsAndSumWhatIsComputed) {
  const DType t = DType::kF32;
  Builder b("f");
  const Expr x{&b, b.Parameter({t, {40, 24}, {}})}, y{&b, b.Parameter({t, {24, 40}, {}})};
  const Expr v{&b, b.Parameter({t, {40}, {}})};
  const Case mm{"mk,kn->mn", {}, {}, "k", 4}, rows{"ab,b->a", {}, {}, "b", 3}, columns{"a,ab->b", {}, {}, "a", 5};
  const Atom ones = Broadcast(b, Atom::Scalar(t, 1), {40}, {}), few = Broadcast(b, Atom::Scalar(t, 1), {24}, {});
  const Atom square = (x * x).atom;
  Atoms results = {
      Contract(b, Transpose(b, y.atom, {1, 0}), Transpose(b, x.atom, {1, 0}), mm, t),
      Contract(b, Reverse(b, x.atom, {0, 1}), y.atom, mm, t),
      Contract(b, Slice(b, x.atom, {1, 0}, {40, 24}, {3, 1}), Slice(b, y.atom, {0, 2}, {24, 40}, {1, 2}), mm, t),
      Contract(b, Broadcast(b, v.atom, {40, 24}, {0}), y.atom, mm, t),
      Contract(b, square, (y * 2.0).atom, mm, t),
      Contract(b, square, few, rows, t),
      Contract(b, ones, square, columns, t),
      Contract(b, ones, (x + Expr{&b, Broadcast(b, v.atom, {40, 24}, {0})}).atom, columns, t),
      Contract(b, v.atom, ones, {"k,k->", {}, {}, "k", 5}, t),
      Transpose(b, y.atom, {1, 0}),
  };
  ExpectTheBits(b.Build(results), {Numbers(t, {40, 24}, 1), Numbers(t, {24, 40}, 2), Numbers(t, {40}, 3)}, "views");
}

TEST(OrderedSums, DoNotDependOnTheNumberOfThreads) {
  const int before = cpu::NumThreads();
  for (const Case& c :
       {Case{"mk,kn->mn", {301, 256}, {256, 300}, "k", 16}, Case{"k,k->", {1 << 20}, {1 << 20}, "k", 65536}}) {
    Builder b("f");
    const Atom x = b.Parameter({DType::kF32, DimsOf(c.x), {}}), y = b.Parameter({DType::kF32, DimsOf(c.y), {}});
    const FnRef f = b.Build({Contract(b, x, y, c, DType::kF32)});
    const Tensors in = {Numbers(DType::kF32, c.x, 1), Numbers(DType::kF32, c.y, 2)};
    const Tensor want = Eval(*f, in)[0];
    const auto program = CompileFor(f, Targets().back());
    for (int threads : {1, 2, 3, 8}) {
      cpu::SetNumThreads(threads);
      EXPECT_TRUE(program->Run(in)[0].BitEquals(want)) << Name(c) << ", " << threads << " threads";
    }
  }
  cpu::SetNumThreads(before);
}

TEST(OrderedSums, SizesThatAreKnownLate) {
  const Dim n = Dim::Symbol("n");
  for (const char* spec : {"mk,kn->mn", "mk,nk->mn"}) {
    Builder b("f");
    const bool transposed = std::string(spec) == "mk,nk->mn";
    const Atom x = b.Parameter({DType::kF32, {n, 24}, {}});
    const Atom y = b.Parameter({DType::kF32, transposed ? Dims{n, 24} : Dims{24, n}, {}});
    const FnRef f = b.Build({Contract(b, x, y, {spec, {}, {}, "k", 3}, DType::kF32)});
    for (int64_t size : {0, 1, 5, 70}) {
      ExpectTheBits(f,
                    {Numbers(DType::kF32, {size, 24}, 1),
                     Numbers(DType::kF32, transposed ? Shape{size, 24} : Shape{24, size}, 2)},
                    std::string(spec) + " for n = " + std::to_string(size));
    }
  }
}

// The sum itself, without a reference: leaves of two, rounded, then pairs.
TEST(OrderedSums, TheOrderIsTheOneThatIsWritten) {
  const float big = 16777216;  // 2^24: adding 1 is rounded away
  Tensor x(DType::kF32, {6});
  const float values[] = {big, 1, 1, -big, 1, 1};
  for (int i = 0; i < 6; ++i) x.data<float>()[i] = values[i];
  const auto sum = [&](int64_t leaf) {
    Builder b("f");
    const Atom in = b.Parameter({DType::kF32, {6}, {}});
    const Atom ones = Broadcast(b, Atom::Scalar(DType::kF32, 1), {6}, {});
    const FnRef f = b.Build({Contract(b, in, ones, {"k,k->", {}, {}, "k", leaf}, DType::kF32)});
    return CompileFor(f, Targets().back())->Run({x})[0].data<float>()[0];
  };
  EXPECT_EQ(sum(6), 4);  // in double precision
  EXPECT_EQ(sum(2), 3);  // big + (1 - big) + 2, where big + 1 is big and 1 - big is exact
  EXPECT_EQ(sum(1), 3);  // ((big + 1) + (1 - big)) + 2
}

TEST(OrderedSums, WhatIsNoOrderIsRefused) {
  const auto error = [](const char* along, int64_t leaf, DType result) -> std::string {
    Builder b("f");
    const Atom x = b.Parameter({DType::kF32, {4, 6}, {}}), y = b.Parameter({DType::kF32, {6, 5}, {}});
    try {
      Contract(b, x, y, {"mk,kn->mn", {}, {}, along, leaf}, result);
    } catch (const Error& e) {
      return e.what();
    }
    return "";
  };
  EXPECT_EQ(error("k", 3, DType::kF32), "");
  EXPECT_NE(error("m", 2, DType::kF32).find("along=\"m\"; expected a letter that"), std::string::npos);
  EXPECT_NE(error("", 1, DType::kF32).find("along=\"\"; expected a letter that"), std::string::npos);
  EXPECT_NE(error("k", 4, DType::kF32).find("leaf=4; expected a divisor of the 6 terms along 'k'"), std::string::npos);
  EXPECT_NE(error("k", 3, DType::kBF16).find("into bf16; expected f32, f64, c64 or c128"), std::string::npos);
}

}  // namespace
}  // namespace weft
