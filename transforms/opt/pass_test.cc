// Every pass keeps the meaning of every primitive's samples, of their gradients and of their batched forms, and is
// idempotent; and each does what its name says on a small program.
#include "transforms/opt/pass.h"

#include <gtest/gtest.h>

#include <random>

#include "ir/builder.h"
#include "ir/eval/eval.h"
#include "ir/licences.h"
#include "ir/ops.h"
#include "ir/samples/drawn_tensors.h"
#include "ir/samples/sample_fns.h"
#include "ir/text/parser.h"
#include "ir/text/printer.h"
#include "ir/verify.h"
#include "transforms/ad/grad.h"
#include "transforms/ad/jvp.h"
#include "transforms/ad/split.h"
#include "transforms/batch/vmap.h"
#include "transforms/opt/condense.h"

namespace weft {
namespace {

void ExpectSame(const Tensors& a, const Tensors& b, const std::string& what) {
  ASSERT_EQ(a.size(), b.size()) << what;
  for (size_t r = 0; r < a.size(); ++r) {
    ASSERT_EQ(a[r].type(), b[r].type()) << what;
    for (int64_t i = 0; i < a[r].size(); ++i) {
      const auto u = a[r].Get(i), v = b[r].Get(i);
      EXPECT_TRUE(u == v || (std::isnan(u.real()) && std::isnan(v.real())))
          << what << " result " << r << " element " << i << ": " << u << " became " << v;
    }
  }
}

void CheckPasses(const FnRef& fn, const Tensors& x, const std::string& what) {
  const FnRef usual = Optimize(fn);
  EXPECT_TRUE(Optimize(usual)->StructurallyEquals(*usual)) << what << ": not idempotent\n"
                                                           << Print(*usual) << Print(*Optimize(usual));
  // Without the rules that round otherwise.
  const ScopedLicences bits(Licences::Named({"signed-zero"}));
  const Tensors expected = Eval(*fn, x);
  for (const Pass& pass : AllPasses()) {
    const FnRef g = pass.run(fn);
    Verify(*g);
    EXPECT_EQ(g->ParamTypes(), fn->ParamTypes());
    ExpectSame(expected, Eval(*g, x), what + " after " + pass.name + "\n" + Print(*fn) + "\nbecame\n" + Print(*g));
  }
  const FnRef optimized = Optimize(fn);
  ExpectSame(expected, Eval(*optimized, x), what + " optimised\n" + Print(*optimized));
  EXPECT_TRUE(Optimize(optimized)->StructurallyEquals(*optimized)) << what << ": not idempotent\n"
                                                                   << Print(*optimized) << Print(*Optimize(optimized));
}

TEST(Passes, KeepTheMeaningOfEveryPrimitive) {
  std::mt19937 rng(7);
  for (const Prim* prim : AllPrims()) {
    if (prim->family == Family::kEffect) continue;
    for (const Sample& s : prim->samples()) {
      if (!s.axes.empty()) {  // a collective means something on devices only
        const FnRef fn = OnDevices(*prim, s);
        CheckPasses(fn, {Draw(fn->params()[0].type, s.low, s.high, rng)}, prim->name + " on devices");
        continue;
      }
      Builder b("f");
      Atoms params;
      Tensors x;
      for (const Type& t : s.operands) {
        params.push_back(b.Parameter(t));
        x.push_back(Draw(t, s.low, s.high, rng));
      }
      for (const auto& [i, v] : s.values) x[i] = v;
      const FnRef fn = b.Build(b.Emit(*prim, params, s.attrs, s.regions));
      CheckPasses(fn, x, prim->name);
      // All operands known: folding may evaluate everything.
      Builder known("f");
      Atoms literals;
      bool small = true;
      for (const Tensor& t : x) {
        small &= t.size() <= kMaxLiteralElements;
        literals.push_back(Atom(t));
      }
      if (small)
        CheckPasses(known.Build(known.Emit(*prim, literals, s.attrs, s.regions)), {}, prim->name + " of literals");
      // Batched.
      if (params.empty()) continue;
      Tensors stacked;
      for (const Tensor& t : x) {
        Shape shape = t.shape();
        shape.insert(shape.begin(), 1);
        stacked.push_back(t.Reshaped(shape));
      }
      CheckPasses(Batch(fn, Mask(x.size(), true), {}, 1).fn, stacked, prim->name + " batched");
      if (HasFailure()) return;
    }
  }
}

TEST(Passes, TakeApartOnlyWhatNobodyElseHolds) {
  for (const char* name : {"scan", "while", "cond", "custom_jvp"}) {
    const FnRef sample = SampleFns(FindPrim(name))[0];
    Mask active;
    for (const Type& t : sample->ParamTypes()) active.push_back(HasTangents(t.dtype));
    const std::string text = Print(*Jvp(sample, active).fn);
    for (const Pass& pass : AllPasses()) {
      const FnRef held = ParseFn(text);
      const std::string kept = Print(*pass.run(held));
      EXPECT_EQ(Print(*held), text) << pass.name << " of " << name;
      EXPECT_EQ(Print(*pass.run(ParseFn(text))), kept) << pass.name << " of " << name;
      FnRef outer = ParseFn(text);
      std::vector<FnRef> regions;
      for (const Eqn& e : outer->eqns()) regions.insert(regions.end(), e.regions.begin(), e.regions.end());
      std::vector<std::string> before;
      for (const FnRef& r : regions) before.push_back(Print(*r));
      pass.run(std::move(outer));
      for (size_t i = 0; i < regions.size(); ++i) EXPECT_EQ(Print(*regions[i]), before[i]) << pass.name << ": a region";
    }
    const FnRef held = ParseFn(text);
    Mask tangents(held->params().size(), true);
    std::fill(tangents.begin(), tangents.begin() + static_cast<int64_t>(active.size()), false);
    const SplitFn copied = Split(held, tangents), moved = Split(ParseFn(text), tangents);
    EXPECT_EQ(Print(*held), text) << "split of " << name;
    EXPECT_EQ(Print(*copied.known), Print(*moved.known));
    EXPECT_EQ(Print(*copied.unknown), Print(*moved.unknown));
  }
}

std::string After(const std::string& pass, const std::string& text) { return Print(*RunPasses(ParseFn(text), {pass})); }

TEST(Passes, CseSharesEqualEquations) {
  const FnRef f = RunPasses(ParseFn(R"(
    fn f(x: f32[3], y: f32[3]) -> (f32[3], f32[3]) {
      a: f32[3] = add x y
      b: f32[3] = mul a 2.0:f32
      c: f32[3] = add x y
      d: f32[3] = mul c 3.0:f32
      return b, d
    })"),
                            {"cse"});
  EXPECT_EQ(f->NumEqns(), 3) << Print(*f);
}

TEST(Passes, DceDropsStackedOutputsAndCarriesThatNobodyNeeds) {
  Builder body("body");
  const Type f32{DType::kF32, {}, {}};
  const Atom c = body.Parameter(f32), d = body.Parameter(f32), x = body.Parameter(f32);
  const FnRef region = body.Build({Add(body, c, x), Mul(body, d, x), Sin(body, c)});
  Builder b("f");
  const Atom c0 = b.Parameter(f32), d0 = b.Parameter(f32), xs = b.Parameter(Type{DType::kF32, {7}, {}});
  const Atoms out = b.Emit(
      FindPrim("scan"), {c0, d0, xs},
      {{"num_consts", int64_t{0}}, {"num_carry", int64_t{2}}, {"length", Dims{7}}, {"reverse", false}}, {region});
  const FnRef f = EliminateDeadCode(b.Build({out[0]}));
  ASSERT_EQ(f->eqns().size(), 1u);
  EXPECT_EQ(f->eqns()[0].num_results, 1u) << Print(*f);
  EXPECT_EQ(f->eqns()[0].operands.size(), 2u) << Print(*f);
  EXPECT_EQ(f->eqns()[0].regions[0]->NumEqns(), 1) << Print(*f);
}

TEST(Passes, SimplifyAppliesItsRules) {
  const FnRef f = RunPasses(ParseFn(R"(
    fn f(x: f32[3,4], y: f32[4,3]) -> (f32[3,3], f32[3,4]) {
      a: f32[4,3] = transpose[perm=[1,0]] x
      b: f32[3,3] = contract[spec="ki,kj->ij"] a y
      c: f32[3,4] = broadcast[dims=[], shape=<3,4>] 1.0:f32
      d: f32[3,4] = mul x c
      e: f32[3,4] = neg d
      g: f32[3,4] = neg e
      return b, g
    })"),
                            {"simplify", "dce"});
  EXPECT_EQ(f->NumEqns(), 1) << Print(*f);
  EXPECT_EQ(f->eqns()[0].attrs.Get<std::string>("spec"), "ik,kj->ij");
  EXPECT_EQ(f->results()[1].id(), 0u);
}

TEST(Passes, AddingPositiveZeroIsKept) {  // -0 + 0 is 0
  EXPECT_NE(After("simplify", "fn f(x: f32[3]) -> (f32[3]) {\n a: f32[3] = add x 0.0:f32\n return a\n}").find("add"),
            std::string::npos);
  EXPECT_EQ(After("simplify", "fn f(x: i32[3]) -> (i32[3]) {\n a: i32[3] = add x 0:i32\n return a\n}").find("add"),
            std::string::npos);
}

TEST(Passes, UnknownNamesAreRefused) { EXPECT_THROW(FindPass("nonsense"), Error); }

TEST(PassTest, OperandsOfACommutativeOperationMayBeInEitherOrder) {
  const FnRef f = ParseFn(R"(
fn f(x: f32[3], y: f32[3]) -> (f32[3], f32[3], f32[3], f32[3]) {
  a: f32[3] = add x y
  b: f32[3] = add y x
  c: f32[3] = sub x y
  d: f32[3] = sub y x
  return a, b, c, d
})");
  const FnRef g = EliminateCommonSubexpressions(f);
  EXPECT_EQ(g->eqns().size(), 3u) << Print(*g);
  EXPECT_EQ(g->results()[0], g->results()[1]);
}

TEST(CondenseTest, NumbersAreWorkedOutAndEqualEquationsSharedInOneWalk) {
  const FnRef f = ParseFn(R"(
fn f(x: f32[], t: f32[]) -> (f32[]) {
  a: f32[] = mul 2.0:f32 3.0:f32
  b: f32[] = mul x t
  c: f32[] = mul b -1.0:f32
  d: f32[] = neg b
  e: f32[] = sub c d
  g: f32[] = mul e a
  return g
})");
  const FnRef g = Condense(f);
  EXPECT_EQ(g->eqns().size(), 4u) << Print(*g);  // b, its negative once, the difference, times 6
  // With t = 1, b is x.
  const FnRef h = Condense(f, {Atom(Var{0}), Atom::Scalar(DType::kF32, 1)});
  EXPECT_EQ(h->params().size(), 1u);
  EXPECT_EQ(h->eqns().size(), 3u) << Print(*h);
}

TEST(CondenseTest, WhatDerivativesDependOnStays) {
  const FnRef f = ParseFn(R"(
fn f(x: f32[]) -> (f32[]) {
  a: f32[] = stop_gradient x
  b: f32[] = mul a 1.0:f32
  c: f32[] = mul b x
  return c
})");
  const FnRef g = Condense(f);
  ASSERT_EQ(g->eqns().size(), 2u) << Print(*g);
  EXPECT_EQ(g->eqns()[0].prim->name, "stop_gradient");
}

}  // namespace
}  // namespace weft
