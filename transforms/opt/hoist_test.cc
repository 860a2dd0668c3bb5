// What leaves a loop and what stays. That the meaning stays: transforms/opt/pass_test.cc, for every primitive, and the
// random programs of tests/property.
#include <gtest/gtest.h>

#include "ir/eval/eval.h"
#include "ir/ops.h"
#include "ir/prim.h"
#include "ir/text/parser.h"
#include "ir/text/printer.h"
#include "ir/verify.h"
#include "transforms/opt/pass.h"

namespace weft {
namespace {

// The names of the equations of a function, in order.
std::string Names(const Fn& fn) {
  std::string names;
  for (const Eqn& e : fn.eqns()) names += (names.empty() ? "" : " ") + e.prim->name;
  return names;
}

FnRef Hoisted(const std::string& text, const Tensors& x) {
  const FnRef before = ParseFn(text), after = RunPasses(before, {"hoist", "dce"});
  Verify(*after);
  const Tensors a = Eval(*before, x), b = Eval(*after, x);
  for (size_t r = 0; r < a.size(); ++r) {
    for (int64_t i = 0; i < a[r].size(); ++i) EXPECT_EQ(a[r].Get(i), b[r].Get(i)) << Print(*after);
  }
  EXPECT_TRUE(RunPasses(after, {"hoist", "dce"})->StructurallyEquals(*after)) << Print(*after);
  return after;
}

Tensor Ramp(Shape shape) {
  Tensor t = Tensor::Full(DType::kF32, std::move(shape), 0);
  for (int64_t i = 0; i < t.size(); ++i) t.Set(i, 0.125 * static_cast<double>(i % 11) - 0.5);
  return t;
}

TEST(Hoist, WhatAScanComputesFromItsConstantsComesBeforeIt) {
  const FnRef f = Hoisted(R"(
fn f(w: f32[3,3], x: f32[3]) -> (f32[3], f32[4,3]) {
  y: f32[3], ys: f32[4,3] = scan[length=<4>, num_carry=1, num_consts=1, reverse=false] w x (a: f32[3,3], b: f32[3]) -> (f32[3], f32[3]) {
    c: f32[3,3] = mul a 2.0:f32
    d: f32[3,3] = contract[spec="ij,jk->ik"] c c
    e: f32[3,3] = exp d
    g: f32[3] = reduce_sum[dims=[0]] e
    h: f32[3] = add b g
    i: f32[3,3] = add a 1.0:f32
    j: f32[3] = reduce_max[dims=[1]] i
    return h, j
  }
  return y, ys
})",
                          {Ramp({3, 3}), Ramp({3})});
  // The sum of two constants, too: it is read by a reduction that is moved.
  EXPECT_EQ(Names(*f), "mul contract exp reduce_sum add reduce_max scan") << Print(*f);
  EXPECT_EQ(Names(*f->eqns().back().regions[0]), "add") << Print(*f);
}

TEST(Hoist, CheapEquationsEffectsAndWhatVariesStay) {
  const std::string text = R"(
fn f(w: f32[3], x: f32[3]) -> (f32[3]) {
  y: f32[3] = scan[length=<4>, num_carry=1, num_consts=1, reverse=false] w x (a: f32[3], b: f32[3]) -> (f32[3]) {
    c: f32[3] = mul a 2.0:f32
    d: f32[3,3] = broadcast[dims=[1], shape=<3,3>] c
    e: f32[3,3] = exp d
    g: f32[3] = exp b
    h: f32[3] = contract[spec="ij,j->i"] e g
    return h
  }
  return y
})";
  // exp of a broadcast writes more than it reads.
  const FnRef f = Hoisted(text, {Ramp({3}), Ramp({3})});
  EXPECT_TRUE(f->StructurallyEquals(*ParseFn(text))) << Print(*f);
}

TEST(Hoist, FromAWhileAndOutOfTwoLoops) {
  const FnRef f = Hoisted(R"(
fn f(w: f32[3], x: f32[3]) -> (f32[3]) {
  n: i32[], y: f32[3] = while[num_carry=2] 0:i32 x w (a: i32[], b: f32[3], c: f32[3]) -> (bool[]) {
    d: f32[] = reduce_sum[dims=[0]] c
    e: bool[] = lt a 3:i32
    g: bool[] = lt d 1000.0:f32
    h: bool[] = and e g
    return h
  } (a: i32[], b: f32[3], c: f32[3]) -> (i32[], f32[3]) {
    d: i32[] = add a 1:i32
    e: f32[3] = scan[length=<2>, num_carry=1, num_consts=1, reverse=false] c b (a: f32[3], b: f32[3]) -> (f32[3]) {
      c: f32[3] = sort[dim=0, num_keys=1] a
      d: f32[3] = add b c
      return d
    }
    return d, e
  }
  return y
})",
                          {Ramp({3}), Ramp({3})});
  EXPECT_EQ(Names(*f), "sort reduce_sum while") << Print(*f);
  const Eqn& loop = f->eqns().back();
  EXPECT_EQ(Names(*loop.regions[1]), "add scan") << Print(*f);
  EXPECT_EQ(Names(*loop.regions[0]), "lt lt and") << Print(*f);
  // What was computed from the constant before the loop, instead of it.
  EXPECT_EQ(loop.operands.size(), 4u) << Print(*f);
}

TEST(Hoist, AFactorWithItsSummedDimensionLastIsTransposedOnce) {
  const FnRef f = Hoisted(R"(
fn f(w: f32[3,5], x: f32[2,5]) -> (f32[2,5]) {
  y: f32[2,5] = scan[length=<4>, num_carry=1, num_consts=1, reverse=false] w x (a: f32[3,5], b: f32[2,5]) -> (f32[2,5]) {
    c: f32[2,3] = contract[spec="ik,jk->ij"] b a
    d: f32[2,3] = contract[spec="ik,jk->ij"] b a
    e: f32[2,3] = sub c 1.0:f32
    g: f32[2,3] = mul e d
    h: f32[2,5] = contract[spec="ij,jk->ik"] g a
    return h
  }
  return y
})",
                          {Ramp({3, 5}), Ramp({2, 5})});
  EXPECT_EQ(Names(*f), "transpose scan") << Print(*f);
  const Eqn& loop = f->eqns().back();
  EXPECT_EQ(loop.operands.size(), 3u) << "the matrix in both orders" << Print(*f);
  EXPECT_EQ(loop.regions[0]->eqns()[0].attrs.Get<std::string>("spec"), "ik,kj->ij");
  EXPECT_EQ(loop.regions[0]->eqns()[4].attrs.Get<std::string>("spec"), "ij,jk->ik");
}

}  // namespace
}  // namespace weft
