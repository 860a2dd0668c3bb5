// What transforms make grows no faster than the program: branches within branches, functions that are called often,
// loops within loops. Sizes are counted; a transform whose time doubles with every level would not end.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <unordered_set>

#include "ir/analysis/cost.h"
#include "ir/analysis/residuals.h"
#include "ir/builder.h"
#include "ir/eval/eval.h"
#include "ir/ops.h"
#include "ir/text/parser.h"
#include "ir/text/printer.h"
#include "ir/verify.h"
#include "transforms/ad/grad.h"
#include "transforms/ad/jet.h"
#include "transforms/ad/jvp.h"
#include "transforms/batch/vmap.h"
#include "transforms/opt/calls.h"
#include "transforms/opt/pass.h"

namespace weft {
namespace {

const Type kNumber{DType::kF64, {}, {}};

// Equations with their operands and results, and parameters, of a function and its regions, each function once.
size_t SizeOf(const Fn& fn, std::unordered_set<const Fn*>& seen) {
  size_t size = fn.params().size();
  for (const Eqn& e : fn.eqns()) {
    size += 1 + e.operands.size() + e.num_results;
    for (const FnRef& r : e.regions) {
      if (seen.insert(r.get()).second) size += SizeOf(*r, seen);
    }
  }
  return size;
}
size_t SizeOf(const FnRef& fn) {
  std::unordered_set<const Fn*> seen;
  return SizeOf(*fn, seen);
}

FnRef Lanes(const FnRef& f, int64_t n) {
  VmapOptions o{{}, {}, n};
  o.in_axes.assign(f->params().size(), 0);
  o.out_axes.assign(f->results().size(), 0);
  return Vmap(f, o);
}
FnRef GradOf(const FnRef& f) { return Grad(f, {.wrt = {true}}); }

double At(const FnRef& f, double x) { return Eval(*f, {Tensor::Scalar<double>(DType::kF64, x)})[0].at<double>(0); }

// --- Branches within branches ----------------------------------------------------------------------------------------

// if x < 0: sin(x) elif x < 1: 2 sin(x) ... else: n sin(x)
FnRef ElifChain(int levels, int first = 0) {
  Builder b("chain");
  const Atom x = b.Parameter(kNumber);
  const auto leaf = [](int k) {
    Builder c("leaf");
    const Atom y = c.Parameter(kNumber);
    return c.Build({Mul(c, Sin(c, y), Atom::Scalar(DType::kF64, k + 1))});
  };
  if (first == levels) return b.Build({b.Inline(*leaf(first), {x})});
  const Atom p = Lt(b, x, Atom::Scalar(DType::kF64, first));
  return b.Build(b.Emit(FindPrim("cond"), {p, x}, {}, {ElifChain(levels, first + 1), leaf(first)}));
}

// f_k(x) = x > -k ? x * sin(f_{k+1}(cos(x))) : 2 x, where every level has residuals of its own.
FnRef Nested(int levels) {
  Builder b("nested");
  const Atom x = b.Parameter(kNumber);
  if (levels == 0) return b.Build({Sin(b, x)});
  Builder yes("yes"), no("no");
  const Atom y = yes.Parameter(kNumber), z = no.Parameter(kNumber);
  const Atom inner = yes.Inline(*Nested(levels - 1), {Cos(yes, y)})[0];
  const FnRef taken = yes.Build({Mul(yes, y, Sin(yes, inner))});
  const FnRef other = no.Build({Mul(no, z, Atom::Scalar(DType::kF64, 2))});
  const Atom p = Gt(b, x, Atom::Scalar(DType::kF64, -levels));
  return b.Build(b.Emit(FindPrim("cond"), {p, x}, {}, {other, taken}));
}
double NestedAt(int levels, double x, double* slope) {
  if (levels == 0) {
    *slope = std::cos(x);
    return std::sin(x);
  }
  double inner_slope = 0;
  const double inner = NestedAt(levels - 1, std::cos(x), &inner_slope);
  *slope = std::sin(inner) - x * std::cos(inner) * inner_slope * std::sin(x);
  return x * std::sin(inner);
}

// The same with a value of a branch that is no function of its operands, so that branches disagree about tangents.
FnRef HalfConstant(int levels) {
  Builder b("half");
  const Atom x = b.Parameter(kNumber);
  if (levels == 0) return b.Build({Sin(b, x)});
  Builder yes("yes"), no("no");
  const Atom y = yes.Parameter(kNumber);
  no.Parameter(kNumber);
  const FnRef taken = yes.Build({yes.Inline(*HalfConstant(levels - 1), {y})[0]});
  const FnRef other = no.Build({Atom::Scalar(DType::kF64, 1)});
  const Atom p = Gt(b, x, Atom::Scalar(DType::kF64, 0));
  return b.Build(b.Emit(FindPrim("cond"), {p, x}, {}, {other, taken}));
}

struct Growing {
  const char* name;
  FnRef (*make)(int levels);
};
FnRef Chain(int levels) { return ElifChain(levels); }
const Growing kBranches[] = {{"elif chain", Chain}, {"nested", Nested}, {"half constant", HalfConstant}};

FnRef GradOfCheckpointed(const FnRef& f) {
  Builder b("f");
  const Atom x = b.Parameter(kNumber);
  return GradOf(b.Build(b.Emit(FindPrim("remat"), {x}, {{"policy", std::string("everything_saveable")}}, {f})));
}

struct Applied {
  const char* name;
  FnRef (*apply)(const FnRef&);
  int levels;  // and two and three times as many
};
const Applied kTransforms[] = {
    {"jvp", [](const FnRef& f) { return Jvp(f, {true}).fn; }, 40},
    {"jet", [](const FnRef& f) { return Jet(f, {true}, 3).fn; }, 40},
    {"grad", GradOf, 40},
    {"grad of grad", [](const FnRef& f) { return GradOf(GradOf(f)); }, 30},
    {"grad with everything saved", GradOfCheckpointed, 40},
    {"vmap", [](const FnRef& f) { return Lanes(f, 8); }, 60},
    {"vmap of grad", [](const FnRef& f) { return Lanes(GradOf(f), 8); }, 60},
    {"grad, optimised", [](const FnRef& f) { return Optimize(GradOf(f)); }, 40},
    {"vmap of grad, optimised", [](const FnRef& f) { return Optimize(Lanes(GradOf(f), 8)); }, 60},
};

TEST(Growth, BranchesWithinBranches) {
  for (const Growing& program : kBranches) {
    for (const Applied& t : kTransforms) {
      const auto size = [&](int times) { return static_cast<double>(SizeOf(t.apply(program.make(times * t.levels)))); };
      const double one = size(1), two = size(2), three = size(3);
      // In proportion, or by as much as before. (How batch elements run a branch depends on what it costs, so the first
      // levels of a deep program may be cheaper or dearer than the others.) Squares would be 1 : 4 : 9.
      EXPECT_LT(three, std::max(1.6 * two, two + 1.4 * (two - one)))
          << program.name << ", " << t.name << ": " << one << ", " << two << ", " << three;
    }
  }
}

TEST(Growth, DerivativesOfBranchesWithinBranchesAreRight) {
  const FnRef chain = ElifChain(60), slope = GradOf(chain), lanes = Lanes(slope, 3);
  for (double x : {-0.5, 0.5, 17.5, 42.25, 100.0}) {
    const double k = x < 0 ? 1 : x < 59 ? std::floor(x) + 2 : 61;
    EXPECT_NEAR(At(slope, x), k * std::cos(x), 1e-12 * k) << x;
    const double y = Eval(*lanes, {Tensor::FromVector<double>({3}, {1, x, 2})})[0].at<double>(1);
    EXPECT_NEAR(y, k * std::cos(x), 1e-12 * k) << x;
    EXPECT_NEAR(At(GradOf(slope), x), -k * std::sin(x), 1e-12 * k) << x;
  }
  const FnRef nested = Nested(60);
  for (const FnRef& g : {GradOf(nested), GradOfCheckpointed(nested), Optimize(GradOf(nested))}) {
    Verify(*g);
    double want = 0;
    NestedAt(60, 0.3, &want);
    EXPECT_NEAR(At(g, 0.3), want, 1e-12);
    EXPECT_EQ(At(g, -70), 2);
  }
}

// Arrays of two shapes and dtypes.
TEST(Growth, ResidualsOfManyTypesComeBack) {
  const Type row{DType::kF64, {3}, {}}, narrow{DType::kF32, {2, 2}, {}};
  FnRef f;
  for (int level = 0; level < 30; ++level) {
    Builder b("f"), yes("yes"), no("no");
    const Atom x = b.Parameter(row), w = b.Parameter(narrow);
    const Atom y = yes.Parameter(row), v = yes.Parameter(narrow);
    const Atom z = no.Parameter(row);
    const Atom u = no.Parameter(narrow);
    Atoms inner = {Sin(yes, y), Cos(yes, v)};
    if (f) inner = yes.Inline(*f, inner);
    const FnRef taken = yes.Build({Mul(yes, Sin(yes, inner[0]), y), Mul(yes, Sin(yes, inner[1]), v)});
    const FnRef other = no.Build({Mul(no, z, z), u});
    const Atom p = Gt(b, ReduceSum(b, x, {0}), Atom::Scalar(DType::kF64, -100));
    f = b.Build(b.Emit(FindPrim("cond"), {p, x, w}, {}, {other, taken}));
  }
  Builder b("sum");
  const Atom x = b.Parameter(row), w = b.Parameter(narrow);
  const Atoms out = b.Inline(*f, {x, w});
  const FnRef sum = b.Build({Add(b, ReduceSum(b, out[0], {0}), Convert(b, ReduceSum(b, out[1], {0, 1}), DType::kF64))});
  const FnRef grad = Grad(sum, {.wrt = {true, true}});
  Verify(*grad);
  const std::vector<double> at = {0.3, 1.1, -0.7};
  const Tensor narrow_at = Tensor::FromVector<float>({2, 2}, {0.1F, 0.2F, -0.3F, 0.9F});
  const Tensors got = Eval(*grad, {Tensor::FromVector<double>({3}, at), narrow_at});
  const auto value = [&](double shift, int i) {
    std::vector<double> moved = at;
    moved[i] += shift;
    return Eval(*sum, {Tensor::FromVector<double>({3}, moved), narrow_at})[0].at<double>(0);
  };
  for (int i = 0; i < 3; ++i) EXPECT_NEAR(got[0].at<double>(i), (value(1e-5, i) - value(-1e-5, i)) / 2e-5, 1e-6) << i;
}

// --- Functions that are called often ---------------------------------------------------------------------------------

// f_0(x) = x sin(x), f_{k+1}(x) = f_k(f_k(x) / 2)
FnRef Doubling(int levels) {
  Builder leaf("leaf");
  const Atom x = leaf.Parameter(kNumber);
  FnRef f = leaf.Build({Mul(leaf, x, Sin(leaf, x))});
  const Prim& call = FindPrim("call");
  for (int k = 0; k < levels; ++k) {
    Builder b("f" + std::to_string(k));
    const Atom y = Mul(b, b.Emit(call, {b.Parameter(kNumber)}, {}, {f})[0], Atom::Scalar(DType::kF64, 0.5));
    f = b.Build(b.Emit(call, {y}, {}, {f}));
  }
  return f;
}

TEST(Growth, FunctionsAreTransformedOnceHoweverOftenTheyAreCalled) {
  const Applied transforms[] = {
      {"jvp", [](const FnRef& f) { return Jvp(f, {true}).fn; }, 0},
      {"jet", [](const FnRef& f) { return Jet(f, {true}, 2).fn; }, 0},
      {"grad", GradOf, 0},
      {"grad of grad", [](const FnRef& f) { return GradOf(GradOf(f)); }, 0},
      {"remat", GradOfCheckpointed, 0},
      {"vmap", [](const FnRef& f) { return Lanes(f, 4); }, 0},
      {"vmap of grad", [](const FnRef& f) { return Lanes(GradOf(f), 4); }, 0},
      {"optimised", [](const FnRef& f) { return Optimize(f); }, 0},
      {"grad, optimised", [](const FnRef& f) { return Optimize(GradOf(f)); }, 0},
  };
  for (const Applied& t : transforms) {
    const FnRef one = t.apply(Doubling(30)), two = t.apply(Doubling(60));
    EXPECT_LT(static_cast<double>(SizeOf(two)), 2.6 * static_cast<double>(SizeOf(one))) << t.name;
    EXPECT_LT(static_cast<double>(Print(*two).size()), 2.6 * static_cast<double>(Print(*one).size())) << t.name;
    Verify(*two);
    EXPECT_GT(CostOf(*two).flops, 1e17) << t.name;  // which is counted, not run
    LoopMemory(*two);
  }
  const FnRef text = ParseFn(Print(*GradOf(Doubling(60))));
  EXPECT_TRUE(text->StructurallyEquals(*GradOf(Doubling(60))));
}

TEST(Growth, DerivativesOfFunctionsThatAreCalledOftenAreRight) {
  const FnRef f = Doubling(9), flat = InlineEveryCall(f);
  for (double x : {0.4, 2.5, -1.0}) {
    EXPECT_NEAR(At(Optimize(f), x), At(flat, x), 1e-12) << x;
    EXPECT_NEAR(At(GradOf(f), x), At(GradOf(flat), x), 1e-12) << x;
    EXPECT_NEAR(At(GradOf(GradOf(f)), x), At(GradOf(GradOf(flat)), x), 1e-10) << x;
    EXPECT_NEAR(At(Optimize(GradOf(f)), x), At(GradOf(flat), x), 1e-12) << x;
  }
}

TEST(CalledFunctions, LargeOnesThatAreCalledTwice) {
  const FnRef large = InlineEveryCall(Doubling(8)), small = Doubling(1);
  const auto calls = [](const FnRef& f, int times) {
    Builder b("program");
    Atom x = b.Parameter(kNumber);
    for (int i = 0; i < times; ++i) x = b.Emit(FindPrim("call"), {x}, {}, {f})[0];
    return b.Build({x});
  };
  const auto left = [](const FnRef& f) {
    const Eqns& eqns = f->eqns();
    return std::count_if(eqns.begin(), eqns.end(), [](const Eqn& e) { return e.prim->name == "call"; });
  };
  ASSERT_GE(large->NumEqns(), CalledFunctions::kLarge);
  EXPECT_EQ(left(InlineCalls(calls(large, 1))), 0);
  EXPECT_EQ(left(InlineCalls(calls(large, 3))), 3);
  EXPECT_EQ(left(InlineCalls(calls(small, 3))), 0);
  EXPECT_EQ(left(InlineEveryCall(calls(large, 3))), 0);
}

// --- Loops within loops ----------------------------------------------------------------------------------------------

FnRef LoopsWithinLoops(int levels) {
  Builder b("loop");
  const Atom x = b.Parameter(kNumber), y = b.Parameter(kNumber);
  if (levels == 0) return b.Build({Sin(b, y), Cos(b, x)});
  Builder cond("cond");
  const Atom z = cond.Parameter(kNumber);
  cond.Parameter(kNumber);
  const FnRef more = cond.Build({Lt(cond, z, Atom::Scalar(DType::kF64, 0))});
  return b.Build(b.Emit(FindPrim("while"), {x, y}, {{"num_carry", int64_t{2}}}, {more, LoopsWithinLoops(levels - 1)}));
}

TEST(Growth, LoopsWithinLoops) {
  const FnRef f = LoopsWithinLoops(60);
  EXPECT_LE(SizeOf(EliminateDeadCode(f)), SizeOf(f));
  EXPECT_LT(SizeOf(Jvp(f, {true, true}).fn), 6 * SizeOf(f));
  EXPECT_LT(SizeOf(Optimize(f)), 3 * SizeOf(f));
}

}  // namespace
}  // namespace weft
