// What is computed in blocks of rows and what is not; that the meaning stays, of derivatives, too.
#include "transforms/opt/row_blocks.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <stdexcept>

#include "ir/eval/eval.h"
#include "ir/licences.h"
#include "ir/ops.h"
#include "ir/text/parser.h"
#include "ir/text/printer.h"
#include "ir/verify.h"
#include "transforms/ad/grad.h"
#include "transforms/opt/pass.h"
#include "transforms/opt/rule_watch.h"

namespace weft {
namespace {

Tensors Samples(const Fn& fn) {
  Tensors x;
  for (const Param& p : fn.params()) {
    Shape shape;
    for (const Dim& d : p.type.dims) shape.push_back(d.value("a test"));
    Tensor t = Tensor::Full(p.type.dtype, shape, 0);
    for (int64_t i = 0; i < t.size(); ++i)
      t.Set(i, std::sin(static_cast<double>(i * (7 + static_cast<int64_t>(x.size())) % 101)));
    x.push_back(t);
  }
  return x;
}

int64_t LargestBytes(const Fn& fn) {
  int64_t most = 0;
  for (const Eqn& e : fn.eqns()) {
    for (uint32_t r = 0; r < e.num_results; ++r) {
      const Type& t = fn.TypeOf(e.result(static_cast<int>(r)));
      most = std::max(most, t.size().value("a test") * ByteWidth(t.dtype));
    }
    for (const FnRef& region : e.regions) most = std::max(most, LargestBytes(*region));
  }
  return most;
}

int64_t Scans(const Fn& fn) {
  int64_t n = 0;
  for (const Eqn& e : fn.eqns()) n += e.prim->name == "scan" ? 1 : 0;
  return n;
}

void ExpectSame(const Fn& f, const Fn& g) {
  Verify(g);
  const Tensors x = Samples(f), a = Eval(f, x), b = Eval(g, x);
  ASSERT_EQ(a.size(), b.size());
  for (size_t r = 0; r < a.size(); ++r) {
    ASSERT_EQ(a[r].size(), b[r].size());
    for (int64_t i = 0; i < a[r].size(); ++i)
      ASSERT_NEAR(a[r].Get(i).real(), b[r].Get(i).real(), 2e-5 * (1 + std::fabs(a[r].Get(i).real()))) << Print(g);
  }
}

// The gradient of the sum of all results by the first `wrt` parameters.
FnRef GradOfSum(const FnRef& f, int wrt) {
  Builder b;
  Atoms x;
  for (const Param& p : f->params()) x.push_back(b.Parameter(p.type));
  Atom sum = Atom::Scalar(DType::kF32, 0);
  for (const Atom& y : b.Inline(*f, x)) {
    Ints dims;
    for (int64_t d = 0; d < b.TypeOf(y).rank(); ++d) dims.push_back(d);
    sum = Add(b, sum, ReduceSum(b, Mul(b, y, y), dims));
  }
  Mask active(f->params().size(), false);
  for (int i = 0; i < wrt; ++i) active[static_cast<size_t>(i)] = true;
  return Grad(b.Build({sum}), {.wrt = active});
}

// What runs before lowering, but for loops: these are small enough to be computed at once.
FnRef Simplified(const FnRef& f) { return RunPasses(f, {"drop-rules", "inline", "fold", "simplify", "cse", "dce"}); }

// Small enough for programs of 24 rows: blocks of `rows` of 128 floats for each of `stack` matrices.
RowBlockPolicy Of(int64_t rows, int64_t stack) { return {1024, 256, rows * stack * 128 * 4}; }

constexpr char kAttention[] = R"(
fn attention(q: f32[2,24,3], k: f32[2,128,3], v: f32[2,128,5]) -> (f32[2,24,5]) {
  a: f32[2,24,128] = contract[spec="abc,adc->abd"] q k
  c: f32[2,24,128] = mul a 0.5:f32
  d: f32[2,24] = reduce_max[dims=[2]] c
  e: f32[2,24,1] = reshape[shape=<2,24,1>] d
  g: f32[2,24,128] = broadcast[dims=[0,1,2], shape=<2,24,128>] e
  h: f32[2,24,128] = sub c g
  i: f32[2,24,128] = exp h
  j: f32[2,24] = reduce_sum[dims=[2]] i
  m: f32[2,24,128] = broadcast[dims=[0,1], shape=<2,24,128>] j
  n: f32[2,24,128] = div i m
  p: f32[2,24,5] = contract[spec="abc,acd->abd"] n v
  return p
})";

// With a mask made of numbers, an array added to the scores, and a second small result.
constexpr char kMasked[] = R"(
fn masked(q: f32[2,24,3], k: f32[2,128,3], v: f32[2,128,5], bias: f32[24,128]) -> (f32[2,24,5], f32[2,24]) {
  a: f32[2,24,128] = contract[spec="abc,adc->abd"] q k
  r: i32[24,128] = iota[dim=0, dtype=i32, shape=<24,128>]
  s: i32[24,128] = iota[dim=1, dtype=i32, shape=<24,128>]
  t: bool[24,128] = ge r s
  u: bool[2,24,128] = broadcast[dims=[1,2], shape=<2,24,128>] t
  w: f32[2,24,128] = broadcast[dims=[1,2], shape=<2,24,128>] bias
  x: f32[2,24,128] = add a w
  c: f32[2,24,128] = select u x -1e30:f32
  d: f32[2,24] = reduce_max[dims=[2]] c
  g: f32[2,24,128] = broadcast[dims=[0,1], shape=<2,24,128>] d
  h: f32[2,24,128] = sub c g
  i: f32[2,24,128] = exp h
  j: f32[2,24] = reduce_sum[dims=[2]] i
  m: f32[2,24,128] = broadcast[dims=[0,1], shape=<2,24,128>] j
  n: f32[2,24,128] = div i m
  p: f32[2,24,5] = contract[spec="abc,acd->abd"] n v
  l: f32[2,24] = log j
  o: f32[2,24] = add d l
  return p, o
})";

// Heads between rows and features, as many libraries lay them out, and grouped keys.
constexpr char kHeadsInside[] = R"(
fn grouped(q: f32[24,2,2,3], k: f32[128,2,3], v: f32[128,2,5]) -> (f32[24,2,2,5]) {
  a: f32[2,2,24,128] = contract[spec="ihgc,jhc->hgij"] q k
  c: f32[2,2,24,128] = tanh a
  d: f32[2,2,128,24] = transpose[perm=[0,1,3,2]] c
  p: f32[24,2,2,5] = contract[spec="hgji,jhd->ihgd"] d v
  return p
})";

TEST(RowBlocks, AttentionNeverHoldsAllScores) {
  struct Case {
    const char* text;
    int64_t stack;
    int wrt;
  };
  for (const Case& c : {Case{kAttention, 2, 3}, Case{kMasked, 2, 4}, Case{kHeadsInside, 4, 3}}) {
    const FnRef f = ParseFn(c.text);
    const int64_t scores = 24 * 128 * 4 * c.stack;
    for (const int64_t rows : {1, 4, 5, 7, 12}) {  // 24 is no multiple of 5 and 7
      SCOPED_TRACE(rows);
      for (const bool again : {false, true}) {
        const FnRef g = ComputeInBlocks(f, Of(rows, c.stack), again);
        EXPECT_EQ(Scans(*g), 1) << Print(*g);
        EXPECT_LE(LargestBytes(*g), scores * 2 / 3) << Print(*g);
        ExpectSame(*f, *g);
        ExpectSame(*GradOfSum(f, c.wrt), *Simplified(GradOfSum(g, c.wrt)));
      }
      // In reverse mode, too.
      const FnRef gradient = Simplified(GradOfSum(ComputeInBlocks(f, Of(rows, c.stack), true), c.wrt));
      EXPECT_LE(LargestBytes(*gradient), scores * 2 / 3) << Print(*gradient);
    }
  }
}

// A block of rows of one matrix reads the other factor of that one alone.
TEST(RowBlocks, AStackIsCutIntoItsMatrices) {
  const FnRef g = ComputeInBlocks(ParseFn(kMasked), Of(4, 1), false);
  ASSERT_EQ(Scans(*g), 1) << Print(*g);
  const auto body_of = [](const Fn& fn) -> const Fn& {
    for (const Eqn& e : fn.eqns()) {
      if (e.prim->name == "scan") return *e.regions[0];
    }
    throw std::runtime_error("no loop");
  };
  const Fn& matrix = body_of(*g);
  EXPECT_EQ(matrix.TypeOf(matrix.results().back()).dims, (Dims{1, 24, 5})) << Print(*g);
  ASSERT_EQ(Scans(matrix), 1) << Print(*g);
  const Fn& rows = body_of(matrix);
  EXPECT_EQ(rows.TypeOf(rows.results().back()).dims, (Dims{1, 4, 5})) << Print(*g);
  // The mask is made there, too, of the numbers of its rows.
  for (const Param& p : rows.params()) EXPECT_NE(p.type.dtype, DType::kBool) << Print(*g);
}

TEST(RowBlocks, SeveralAndInRegions) {
  const FnRef f = ParseFn(R"(
fn f(q: f32[2,24,3], k: f32[2,128,3], v: f32[2,128,3]) -> (f32[2,24,3]) {
  a: f32[2,24,128] = contract[spec="abc,adc->abd"] q k
  b: f32[2,24,128] = sin a
  c: f32[2,24,3] = contract[spec="abc,acd->abd"] b v
  d: f32[2,24,128] = contract[spec="abc,adc->abd"] c k
  e: f32[2,24,128] = cos d
  g: f32[2,24,3] = contract[spec="abc,acd->abd"] e v
  h: f32[2,24,3] = call g k v (x: f32[2,24,3], y: f32[2,128,3], z: f32[2,128,3]) -> (f32[2,24,3]) {
    a: f32[2,24,128] = contract[spec="abc,adc->abd"] x y
    b: f32[2,24,128] = exp a
    c: f32[2,24,3] = contract[spec="abc,acd->abd"] b z
    return c
  }
  return h
})");
  const FnRef g = ComputeInBlocks(f, Of(4, 2), false);
  EXPECT_EQ(Scans(*g), 1) << Print(*g);  // one loop goes through both
  EXPECT_EQ(Scans(*g->eqns().back().regions[0]), 1) << Print(*g);
  ExpectSame(*f, *g);
}

TEST(RowBlocks, WhatStaysAsItIs) {
  const RowBlockPolicy policy = Of(4, 1);
  const auto unchanged = [&](const char* text) {
    const FnRef f = ParseFn(text);
    EXPECT_EQ(Scans(*ComputeInBlocks(f, policy, false)), 0) << text;
  };
  // The scores are a result, or go through a sum over rows and columns at once on their way.
  unchanged(R"(
fn f(q: f32[24,3], k: f32[128,3], v: f32[128,5]) -> (f32[24,5], f32[24,128]) {
  a: f32[24,128] = contract[spec="bc,dc->bd"] q k
  b: f32[24,128] = exp a
  c: f32[24,5] = contract[spec="bc,cd->bd"] b v
  return c, b
})");
  unchanged(R"(
fn f(q: f32[24,3], k: f32[128,3], v: f32[128,5]) -> (f32[24,5]) {
  a: f32[24,128] = contract[spec="bc,dc->bd"] q k
  s: f32[] = reduce_max[dims=[0,1]] a
  t: f32[24,128] = broadcast[dims=[], shape=<24,128>] s
  b: f32[24,128] = sub a t
  c: f32[24,5] = contract[spec="bc,cd->bd"] b v
  return c
})");
  // It sums over much: to compute it again would cost more than to keep it.
  unchanged(R"(
fn f(q: f32[24,300], k: f32[128,300], v: f32[128,5]) -> (f32[24,5]) {
  a: f32[24,128] = contract[spec="bc,dc->bd"] q k
  b: f32[24,128] = exp a
  c: f32[24,5] = contract[spec="bc,cd->bd"] b v
  return c
})");
  const FnRef f = ParseFn(kAttention);
  EXPECT_EQ(ComputeInBlocks(f), f);  // small
  {
    const ScopedLicences exact(Licences::Named({"exact"}));
    EXPECT_EQ(ComputeInBlocks(f, Of(4, 2), false), f);
  }
  const RuleWatch watch({kRowBlocks});
  EXPECT_EQ(Scans(*ComputeInBlocks(f, Of(4, 2), false)), 0);
}

}  // namespace
}  // namespace weft
