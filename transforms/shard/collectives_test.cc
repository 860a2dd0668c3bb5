// Collectives over named axes that vmap maps: differentiation before and after mapping, the order in which several axes
// are mapped, control flow around them, and what is refused. Their meaning itself is compared with JAX's in
// python/tests/collectives_test.py.
#include <gtest/gtest.h>

#include <random>

#include "ir/builder.h"
#include "ir/eval/eval.h"
#include "ir/ops.h"
#include "ir/samples/drawn_tensors.h"
#include "ir/text/parser.h"
#include "ir/text/printer.h"
#include "ir/verify.h"
#include "transforms/ad/grad.h"
#include "transforms/ad/jvp.h"
#include "transforms/ad/transpose.h"
#include "transforms/batch/vmap.h"
#include "transforms/opt/pass.h"

namespace weft {
namespace {

void ExpectNear(const Tensor& a, const Tensor& b, const std::string& what) {
  ASSERT_EQ(a.type(), b.type()) << what;
  for (int64_t i = 0; i < a.size(); ++i)
    ASSERT_NEAR(a.Get(i).real(), b.Get(i).real(), 1e-9) << what << " element " << i;
}

FnRef MapAll(const FnRef& fn, const std::vector<Mesh::Axis>& axes) {
  FnRef f = fn;
  for (size_t i = axes.size(); i-- > 0;)
    f = Batch(f, Mask(f->params().size(), true), Mask(f->results().size(), true), axes[i].size, axes[i].name).fn;
  Verify(*f);
  return f;
}

// The real f64 samples of differentiable collectives.
struct Case {
  std::string name;
  FnRef fn;
  std::vector<Mesh::Axis> axes;
};
std::vector<Case> Cases() {
  std::vector<Case> cases;
  for (const Prim* prim : AllPrims()) {
    if (prim->family != Family::kCollective || prim->num_operands != 1) continue;
    for (Sample s : prim->samples()) {
      if (s.operands[0].dtype != DType::kF32) continue;
      s.operands[0].dtype = DType::kF64;
      Builder b(prim->name);
      const Atom x = b.Parameter(s.operands[0]);
      cases.push_back({prim->name, b.Build(b.Emit(*prim, {x}, s.attrs)), s.axes});
    }
  }
  return cases;
}

TEST(Collectives, MappingCommutesWithForwardMode) {
  std::mt19937 rng(1);
  int ran = 0;
  for (const Case& c : Cases()) {
    const FnRef before = MapAll(Jvp(c.fn, {true}, {true}).fn, c.axes);
    const FnRef after = Jvp(MapAll(c.fn, c.axes), {true}, {true}).fn;
    const Tensors x = DrawArguments(*before, rng);
    const Tensors a = Eval(*before, x), b = Eval(*after, x);
    for (size_t i = 0; i < a.size(); ++i) ExpectNear(a[i], b[i], Print(*c.fn));
    ++ran;
  }
  EXPECT_GE(ran, 15);
}

// The transpose of a collective, mapped, is the adjoint of the collective, mapped. (pvary is the identity under vmap,
// where types do not say what varies; its transpose belongs to meshes.)
TEST(Collectives, TransposesAreAdjoint) {
  std::mt19937 rng(2);
  int ran = 0;
  for (const Case& c : Cases()) {
    if (!FindPrim(c.name).is_linear() || c.name == "pvary") continue;
    const FnRef there = MapAll(c.fn, c.axes), back = MapAll(Transpose(c.fn, {true}), c.axes);
    const Tensors x = DrawArguments(*there, rng), ct = DrawArguments(*back, rng);
    const Tensor y = Eval(*there, x)[0], ct_x = Eval(*back, ct)[0];
    double left = 0, right = 0;
    for (int64_t i = 0; i < y.size(); ++i) left += y.Get(i).real() * ct[0].Get(i).real();
    for (int64_t i = 0; i < ct_x.size(); ++i) right += x[0].Get(i).real() * ct_x.Get(i).real();
    EXPECT_NEAR(left, right, 1e-9) << Print(*c.fn);
    ++ran;
  }
  EXPECT_GE(ran, 12);
}

// Two axes may be mapped in either order: each rule goes past the other axis.
TEST(Collectives, OrderOfMappingDoesNotMatter) {
  std::mt19937 rng(3);
  int ran = 0;
  for (const Case& c : Cases()) {
    if (c.axes.size() < 2) continue;
    const FnRef one = MapAll(c.fn, c.axes);
    const FnRef other = MapAll(c.fn, {c.axes[1], c.axes[0]});
    const Tensor x = DrawArguments(*one, rng)[0];
    // x and the result have the two mapped dimensions in front, exchanged.
    auto exchanged = [](const Tensor& t) {
      Builder b("exchange");
      const Atom a = b.Parameter(t.type());
      Ints perm = Range(0, t.rank());
      std::swap(perm[0], perm[1]);
      return Eval(*b.Build({Transpose(b, a, perm)}), {t})[0];
    };
    ExpectNear(Eval(*one, {x})[0], exchanged(Eval(*other, {exchanged(x)})[0]), Print(*c.fn));
    ++ran;
  }
  EXPECT_GE(ran, 8);
}

FnRef Parsed(const std::string& text) {
  FnRef f = ParseFn(text);
  Verify(*f);
  return f;
}

Tensor Vector(std::vector<double> values) {
  Tensor t(DType::kF64, {static_cast<int64_t>(values.size())});
  for (size_t i = 0; i < values.size(); ++i) t.Set(static_cast<int64_t>(i), values[i]);
  return t;
}

TEST(Collectives, InsideControlFlow) {
  // The predicate is the same for all batch elements, because it is a sum over them.
  const FnRef f = Parsed(R"(
fn f(x: f64[]) -> (f64[], f64[]) {
  total: f64[] = psum[axes=["i"]] x
  big: bool[] = gt total 5.0:f64
  y: f64[] = cond big x (x: f64[]) -> (f64[]) { return x } (x: f64[]) -> (f64[]) {
    m: f64[] = pmax[axes=["i"]] x
    d: f64[] = sub x m
    return d
  }
  z: f64[] = while[num_carry=1] x (x: f64[]) -> (bool[]) {
    s: f64[] = psum[axes=["i"]] x
    more: bool[] = lt s 100.0:f64
    return more
  } (x: f64[]) -> (f64[]) {
    n: i32[] = axis_index[axes=["i"]]
    k: f64[] = convert[dtype=f64] n
    a: f64[] = mul x 2.0:f64
    b: f64[] = add a k
    return b
  }
  return y, z
})");
  const FnRef mapped = MapAll(f, {{"i", 3}});
  const Tensors y = Eval(*mapped, {Vector({1, 2, 4})});
  ExpectNear(y[0], Vector({-3, -2, 0}), "cond");
  // 1 2 4 -> 2 5 10 -> 4 11 22 -> 8 23 46 -> 16 47 94: the sum passes 100
  ExpectNear(y[1], Vector({16, 47, 94}), "while");
}

TEST(Collectives, DifferingLanesAreRefused) {
  const FnRef f = Parsed(R"(
fn f(x: f64[]) -> (f64[]) {
  big: bool[] = gt x 5.0:f64
  y: f64[] = cond big x (x: f64[]) -> (f64[]) { return x } (x: f64[]) -> (f64[]) {
    m: f64[] = pmax[axes=["i"]] x
    return m
  }
  return y
})");
  try {
    MapAll(f, {{"i", 3}});
    FAIL() << "a collective in a branch that some lanes may not take";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kUnsupported);
    EXPECT_NE(error.message().find("'i'"), std::string::npos) << error.message();
  }
  // Over another axis it is only passed by.
  EXPECT_NO_THROW(MapAll(f, {{"k", 3}}));
}

TEST(Collectives, NothingBindsTheAxis) {
  const FnRef f = Parsed("fn f(x: f64[]) -> (f64[]) {\n  y: f64[] = psum[axes=[\"i\"]] x\n  return y\n}");
  try {
    Eval(*f, {Tensor::Scalar<double>(DType::kF64, 1)});
    FAIL() << "psum over an axis that nothing binds";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kName);
    EXPECT_NE(error.message().find("'i'"), std::string::npos) << error.message();
  }
  EXPECT_EQ(f->FreeAxes(), std::vector<std::string>{"i"});
  EXPECT_TRUE(MapAll(f, {{"i", 2}})->FreeAxes().empty());
  // Passes leave it as it is, on numbers too.
  const FnRef number = Parsed("fn f() -> (f64[]) {\n  y: f64[] = psum[axes=[\"i\"]] 2.0:f64\n  return y\n}");
  EXPECT_EQ(Optimize(number)->eqns().size(), 1u);
}

TEST(Collectives, SizesHaveToFit) {
  const FnRef f = Parsed(
      "fn f(x: f64[2]) -> (f64[8]) {\n  y: f64[8] = all_gather[axes=[\"i\"], dim=0, sizes=<4>] x\n  return y\n}");
  EXPECT_NO_THROW(MapAll(f, {{"i", 4}}));
  EXPECT_THROW(MapAll(f, {{"i", 5}}), Error);
}

// A batch element count that is a symbol.
TEST(Collectives, SymbolicSize) {
  const FnRef f = Parsed(
      "fn f(x: f64[]) -> (f64[], f64[]) {\n  y: f64[] = psum[axes=[\"i\"]] x\n  n: f64[] = psum[axes=[\"i\"]] 1.0:f64\n"
      "  z: f64[] = div y n\n  return z, n\n}");
  const FnRef mapped = Batch(f, {true}, {true, false}, Dim::Symbol("n"), "i").fn;
  const Tensors y = Eval(*mapped, {Vector({1, 2, 6})});
  ExpectNear(y[0], Vector({3, 3, 3}), "mean");
  EXPECT_EQ(y[1].Get(0).real(), 3);
}

// What varies over a mesh axis is part of types: operations join, psum takes away, and derivatives keep the types.
TEST(Collectives, VaryingTypes) {
  const FnRef f = Parsed(R"(
fn f(x: f64[3]{d}, w: f64[3]) -> (f64[]) {
  a: f64[3]{d} = mul x w
  b: f64[]{d} = reduce_sum[dims=[0]] a
  c: f64[] = psum[axes=["d"]] b
  return c
})");
  const FnRef grad = Grad(f, {.wrt = {true, true}});
  Verify(*grad);
  ASSERT_EQ(ToString(grad->ResultTypes()), "f64[3]{d}, f64[3]");
  // The weights' gradient is a sum over devices, x's is not.
  int sums = 0;
  for (const Eqn& e : grad->eqns()) sums += e.prim->name == "psum";
  EXPECT_EQ(sums, 1) << Print(*grad);
  const FnRef again = Optimize(grad);
  Verify(*again);
  EXPECT_EQ(again->ResultTypes(), grad->ResultTypes());
}

// The cotangent that a backward rule gives for a value that is the same on all devices differs between them, unless
// the rule sums it up itself: then nothing more is summed.
TEST(Collectives, CotangentsOfRulesAreSummedOnce) {
  for (const bool own : {false, true}) {
    const FnRef f = Parsed(std::string(R"(
fn f(x: f64[3]{d}, w: f64[3]) -> (f64[]) {
  y: f64[3]{d} = custom_vjp x w (x: f64[3]{d}, w: f64[3]) -> (f64[3]{d}) {
    y: f64[3]{d} = mul x w
    return y
  } (x: f64[3]{d}, w: f64[3]) -> (f64[3]{d}, f64[3]{d}, f64[3]) {
    y: f64[3]{d} = mul x w
    return y, x, w
  } (x: f64[3]{d}, w: f64[3], ct: f64[3]{d}) -> (f64[3]{d}, )") +
                           (own ? "f64[3]) {" : "f64[3]{d}) {") + R"(
    cx: f64[3]{d} = mul ct w
    cw: f64[3]{d} = mul ct x
)" + (own ? "    sum: f64[3] = psum[axes=[\"d\"]] cw\n    return cx, sum\n" : "    return cx, cw\n") +
                           R"(  }
  s: f64[]{d} = reduce_sum[dims=[0]] y
  t: f64[] = psum[axes=["d"]] s
  return t
})");
    const FnRef grad = Grad(f, {.wrt = {true, true}});
    Verify(*grad);
    EXPECT_EQ(ToString(grad->ResultTypes()), "f64[3]{d}, f64[3]");
    int sums = 0;
    for (const Eqn& e : grad->eqns()) sums += e.prim->name == "psum";
    EXPECT_EQ(sums, 1) << Print(*grad);
    Verify(*Jvp(f, {true, true}, {true}).fn);
  }
}

}  // namespace
}  // namespace weft
