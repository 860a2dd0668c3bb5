// Large literals inside every operation with regions become its constants, and the program means what it meant.
#include "ir/large_literals.h"

#include <gtest/gtest.h>

#include <random>
#include <set>
#include <string>

#include "ir/builder.h"
#include "ir/eval/eval.h"
#include "ir/ops.h"
#include "ir/prims/control/constant_operands.h"
#include "ir/samples/drawn_tensors.h"
#include "ir/samples/sample_fns.h"
#include "ir/text/parser.h"
#include "ir/text/printer.h"
#include "ir/verify.h"

namespace weft {
namespace {

Tensor Large(DType dtype, int64_t size) { return Tensor::Full(dtype, {size}, 0.01); }

bool HasLargeLiteral(const Fn& fn) {
  const auto large = [](const Atom& a) { return a.is_literal() && a.literal().size() > kMaxLiteralElements; };
  return AnyFunction(fn, [&](const Fn& f) {
    return std::any_of(f.results().begin(), f.results().end(), large) ||
           std::any_of(f.eqns().begin(), f.eqns().end(),
                       [&](const Eqn& e) { return std::any_of(e.operands.begin(), e.operands.end(), large); });
  });
}

// `fn` with the sum of a large array added to every result that is a number with a fraction, in regions too.
FnRef WithLargeLiterals(const FnRef& fn, const Tensors& arrays) {
  Builder b(fn->name());
  Atoms env;
  for (const Param& p : fn->params()) env.push_back(b.Parameter(p.type, p.name));
  const auto of = [&](const Atom& a) { return a.is_var() ? env[a.id()] : a; };
  for (const Eqn& e : fn->eqns()) {
    Eqn copy = e;
    for (FnRef& region : copy.regions) region = WithLargeLiterals(region, arrays);
    Atoms x;
    for (const Atom& a : e.operands) x.push_back(of(a));
    for (const Atom& y : b.Clone(copy, x)) env.push_back(y);
  }
  Atoms results;
  for (const Atom& a : fn->results()) {
    Atom y = of(a);
    const Type type = b.TypeOf(y);
    for (const Tensor& t : arrays) {
      if (!IsInexact(type.dtype)) continue;
      const Atom sum = Convert(b, ReduceSum(b, Atom(t), {0}), type.dtype);
      y = Add(b, y, MatchVarying(b, Broadcast(b, sum, type.dims, {}), type));
    }
    results.push_back(y);
  }
  return b.Build(results, /*keep_dead=*/true);
}

TEST(LargeLiterals, BecomeConstantsOfEveryOperationWithRegions) {
  std::mt19937 rng(3);
  const Tensors arrays = {Large(DType::kF64, 100), Large(DType::kF32, 65)};
  std::set<std::string> seen;
  for (const Prim* prim : AllPrims()) {
    if (prim->family == Family::kEffect) continue;
    for (const Sample& s : prim->samples()) {
      if (s.regions.empty()) continue;
      const FnRef plain = SampleFn(*prim, s);
      seen.insert(prim->name);
      const FnRef fn = WithLargeLiterals(plain, arrays);
      ASSERT_TRUE(HasLargeLiteral(*fn));
      const WithConstants lifted = WithoutLargeLiterals(fn);
      Verify(*lifted.fn);
      const std::string text = Print(*lifted.fn);
      EXPECT_FALSE(HasLargeLiteral(*lifted.fn)) << text;
      EXPECT_EQ(lifted.constants.size(), arrays.size()) << text;
      EXPECT_TRUE(ParseFn(text)->StructurallyEquals(*lifted.fn)) << text;
      Tensors x = DrawArguments(*plain, rng, s.low, s.high);
      const Tensors want = Eval(*fn, x), without = Eval(*plain, x);
      x.insert(x.end(), lifted.constants.begin(), lifted.constants.end());
      const Tensors got = Eval(*lifted.fn, x);
      ASSERT_EQ(got.size(), want.size());
      for (size_t r = 0; r < want.size(); ++r) EXPECT_TRUE(got[r].BitEquals(want[r])) << text << " result " << r;
    }
  }
  for (const char* name : {"custom_jvp", "custom_vjp", "custom_vmap"}) EXPECT_TRUE(seen.count(name) > 0) << name;
}

TEST(LargeLiterals, OneArrayIsOneConstant) {
  Builder b("f");
  const Atom x = b.Parameter({DType::kF32, {100}, {}}, "x");
  const Tensor t = Large(DType::kF32, 100);
  const WithConstants lifted = WithoutLargeLiterals(b.Build({Mul(b, Add(b, x, Atom(t)), Atom(t))}));
  EXPECT_EQ(lifted.constants.size(), 1U);
  EXPECT_EQ(lifted.fn->params().back().kind, Param::Kind::kConstant);
  const WithConstants again = WithoutLargeLiterals(lifted.fn);
  EXPECT_EQ(again.fn, lifted.fn);
}

// 2^40 calls of a function that is written once.
TEST(LargeLiterals, SharedRegionsAreVisitedOnce) {
  const Type type{DType::kF32, {100}, {}};
  Builder leaf("leaf");
  const Atom p = leaf.Parameter(type);
  FnRef f = leaf.Build({Add(leaf, p, Atom(Large(DType::kF32, 100)))});
  for (int i = 0; i < 40; ++i) {
    Builder b("level");
    Atom x = b.Parameter(type);
    for (int k = 0; k < 2; ++k) x = b.Emit1(FindPrim("call"), {x}, {}, {f});
    f = b.Build({x});
  }
  const WithConstants lifted = WithoutLargeLiterals(f);
  EXPECT_EQ(lifted.constants.size(), 1U);
  EXPECT_FALSE(HasLargeLiteral(*lifted.fn));
}

}  // namespace
}  // namespace weft
