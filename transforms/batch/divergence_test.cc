// Branches and loops under vmap run for the batch elements that take them: how many elements are computed, and that
// values of inactive elements have no influence. Expected values are closed forms or the function on one batch element.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "ir/builder.h"
#include "ir/eval/eval.h"
#include "ir/eval/evaluated.h"
#include "ir/ops.h"
#include "ir/text/parser.h"
#include "ir/text/printer.h"
#include "transforms/ad/grad.h"
#include "transforms/ad/jvp.h"
#include "transforms/ad/transpose.h"
#include "transforms/batch/vmap.h"
#include "transforms/opt/pass.h"

namespace weft {
namespace {

FnRef Lanes(const FnRef& f, const Dim& n, const Mask& mapped = {true}) {
  VmapOptions o{{}, {}, n};
  for (bool m : mapped) o.in_axes.push_back(m ? std::optional<int64_t>(0) : std::nullopt);
  o.out_axes.assign(f->results().size(), 0);
  return Vmap(f, o);
}

FnRef SumOf(const FnRef& f) {
  Builder b("sum");
  Atoms x;
  for (const Param& p : f->params()) x.push_back(b.Parameter(p.type));
  const Atom y = b.Inline(*f, x)[0];
  return b.Build({ReduceSum(b, y, Range(0, b.TypeOf(y).rank()))});
}

Tensor Vector(const std::vector<double>& v) { return Tensor::FromVector<double>({static_cast<int64_t>(v.size())}, v); }

// f on each batch element alone, with further arguments that batch elements share.
std::vector<double> Each(const FnRef& f, const std::vector<double>& x, const Tensors& shared = {}) {
  std::vector<double> out;
  for (double v : x) {
    Tensors args = {Tensor::Scalar<double>(DType::kF64, v)};
    args.insert(args.end(), shared.begin(), shared.end());
    out.push_back(Eval(*f, args)[0].at<double>(0));
  }
  return out;
}

void ExpectNear(const Tensor& got, const std::vector<double>& want, const std::string& what) {
  ASSERT_EQ(got.size(), static_cast<int64_t>(want.size())) << what;
  for (size_t i = 0; i < want.size(); ++i) {
    const double g = got.at<double>(static_cast<int64_t>(i));
    if (std::isnan(want[i]))
      EXPECT_TRUE(std::isnan(g)) << what << ", lane " << i << ": " << g;
    else
      EXPECT_NEAR(g, want[i], 1e-9 * (1 + std::abs(want[i]))) << what << ", lane " << i;
  }
}

// Batch elements with a negative value take a branch of 100 sines of 8 numbers; the others do next to nothing.
FnRef DearBranch() {
  return ParseFn(R"(fn f(x: f64[]) {
    p = lt x 0.0:f64
    y = cond p x (x: f64[]) { d = add x x; return d } (x: f64[]) {
      v: f64[8] = broadcast[shape=<8>, dims=[]] x
      i: i32[], w: f64[8] = scan[num_consts=0, num_carry=2, length=<100>, reverse=false] 0:i32 v (i: i32[], v: f64[8]) {
        j = add i 1:i32
        s = sin v
        return j, s
      }
      t = reduce_sum[dims=[0]] w
      return t
    }
    return y
  })");
}

double DearAt(double x) {
  if (x >= 0) return 2 * x;
  for (int i = 0; i < 100; ++i) x = std::sin(x);
  return 8 * x;
}

TEST(Lanes, DearBranchRunsInBlocksOfTakenLanes) {
  const FnRef f = DearBranch();
  const int64_t n = 500;
  const FnRef g = Lanes(f, n);
  for (int64_t taken : {0, 1, 3, 37, 500}) {
    std::vector<double> x, want;
    for (int64_t i = 0; i < n; ++i) x.push_back((i * 7919) % n < taken ? -0.5 - 0.001 * static_cast<double>(i) : 0.25);
    for (double v : x) want.push_back(DearAt(v));
    EvaluatedElements count;
    ExpectNear(Eval(*g, {Vector(x)})[0], want, "taken " + std::to_string(taken));
    const int64_t lanes = count.Of("sin") / 800;
    EXPECT_GE(lanes, taken);
    EXPECT_LE(lanes, taken + 8) << "more than a block of lanes ran for nothing";
    if (taken == 0) {
      EXPECT_EQ(count.Of("sin"), 0);
    }
  }
}

TEST(Lanes, CheapBranchesSelect) {
  const FnRef f = ParseFn(R"(fn f(x: f64[]) {
    p = lt x 0.0:f64
    y = cond p x (x: f64[]) { d = log x; return d } (x: f64[]) { d = mul x x; return d }
    return y
  })");
  const FnRef g = Optimize(Lanes(f, 5));
  const std::string text = Print(*g);
  EXPECT_EQ(text.find("while"), std::string::npos) << text;
  EXPECT_EQ(text.find("gather"), std::string::npos) << text;
  EXPECT_LE(g->eqns().size(), 5u) << text;
}

// The gradient of every order of transforms, where the branch that is not taken has an infinite derivative.
TEST(Lanes, InactiveElementsDoNotReachGradients) {
  const FnRef f = ParseFn(R"(fn f(x: f64[], w: f64[]) {
    p = gt x 0.0:f64
    y = cond p x w (x: f64[], w: f64[]) { d = mul x w; return d } (x: f64[], w: f64[]) {
      s = sqrt x
      l = log x
      a = mul s w
      d = add a l
      return d
    }
    return y
  })");
  const std::vector<double> x = {4, 0, -1, 9, 0};
  const Tensor w = Tensor::Scalar<double>(DType::kF64, 3);
  const std::vector<double> dx = {3 / 4.0 + 0.25, 3, 3, 3 / 6.0 + 1 / 9.0, 3};
  const double dw = 2 + 0 - 1 + 3 + 0;
  const FnRef dfdx = Grad(f, {.wrt = {true, false}}), dfdw = Grad(f, {.wrt = {false, true}});
  ExpectNear(Eval(*Lanes(dfdx, 5, {true, false}), {Vector(x), w})[0], dx, "vmap grad");
  ExpectNear(Eval(*Lanes(dfdw, 5, {true, false}), {Vector(x), w})[0], {2, 0, -1, 3, 0}, "vmap grad w");
  const FnRef sum = SumOf(Lanes(f, 5, {true, false}));
  ExpectNear(Eval(*Grad(sum, {.wrt = {true, false}}), {Vector(x), w})[0], dx, "grad vmap");
  ExpectNear(Eval(*Grad(sum, {.wrt = {false, true}}), {Vector(x), w})[0], {dw}, "grad vmap w");
  ExpectNear(Eval(*Optimize(Grad(sum, {.wrt = {false, true}})), {Vector(x), w})[0], {dw}, "grad vmap w, optimised");
  const JvpFn jvp = Jvp(Lanes(f, 5, {true, false}), {true, true}, {true});
  const Tensor ones = Vector({1, 1, 1, 1, 1}), one = Tensor::Scalar<double>(DType::kF64, 1);
  ExpectNear(Eval(*jvp.fn, {Vector(x), w, ones, one})[1], {dx[0] + 2, dx[1] + 0, dx[2] - 1, dx[3] + 3, dx[4] + 0},
             "jvp vmap");
  const FnRef second = Grad(SumOf(Grad(sum, {.wrt = {true, false}})), {.wrt = {true, false}});
  ExpectNear(Eval(*second, {Vector(x), w})[0], {-3 / 32.0 - 1 / 16.0, 0, 0, -3 / 108.0 - 1 / 81.0, 0}, "second order");
}

TEST(Lanes, DearBranchInEveryOrderOfTransforms) {
  const FnRef f = DearBranch();
  std::vector<double> x;
  for (int i = 0; i < 40; ++i) x.push_back(i % 7 == 0 ? -0.1 * (i + 1) : 0.3 * i);
  const FnRef g = Grad(f, {.wrt = {true}}), h = Grad(g, {.wrt = {true}}), sum = SumOf(Lanes(f, 40));
  const std::vector<double> first = Each(g, x), second = Each(h, x);
  ExpectNear(Eval(*Lanes(g, 40), {Vector(x)})[0], first, "vmap grad");
  ExpectNear(Eval(*Grad(sum, {.wrt = {true}}), {Vector(x)})[0], first, "grad vmap");
  ExpectNear(Eval(*Optimize(Grad(sum, {.wrt = {true}})), {Vector(x)})[0], first, "grad vmap, optimised");
  ExpectNear(Eval(*Lanes(h, 40), {Vector(x)})[0], second, "vmap grad grad");
  ExpectNear(Eval(*Grad(SumOf(Lanes(g, 40)), {.wrt = {true}}), {Vector(x)})[0], second, "grad vmap grad");
  ExpectNear(Eval(*Grad(SumOf(Grad(sum, {.wrt = {true}})), {.wrt = {true}}), {Vector(x)})[0], second, "grad grad vmap");
  // Backwards, too, only taken batch elements count: 6 of 40, in one block of 8.
  EvaluatedElements count;
  Eval(*Grad(sum, {.wrt = {true}}), {Vector(x)});
  EXPECT_EQ(count.Of("cos"), 8 * 800);
  // Two levels of batch elements.
  const FnRef two = Lanes(Lanes(f, 5), 8);
  Tensor square = Tensor::FromVector<double>({8, 5}, x);
  std::vector<double> want;
  for (double v : x) want.push_back(DearAt(v));
  EvaluatedElements again;
  ExpectNear(Eval(*two, {square})[0], want, "vmap vmap");
  EXPECT_LE(again.Of("sin"), 6 * 5 * 800);  // the six are in rows of their own
}

// A loop that ends for the batch elements that take the branch, and for no other.
TEST(Lanes, BranchThatWouldNotEndIsNotEntered) {
  const FnRef f = ParseFn(R"(fn f(x: f64[]) {
    p = ge x 0.0:f64
    y = cond p x (x: f64[]) {
      z = while[num_carry=1] x (c: f64[]) { p = lt c -1e-06:f64; return p } (c: f64[]) { d = mul c 0.1:f64; return d }
      return z
    } (x: f64[]) {
      z = while[num_carry=1] x (c: f64[]) {
        a = le c 0.0:f64
        b = gt c 1e-06:f64
        p = or a b
        return p
      } (c: f64[]) { d = mul c 0.1:f64; return d }
      return z
    }
    return y
  })");
  std::vector<double> x, want;
  for (int i = 0; i < 10; ++i) x.push_back((i % 3 == 0 ? -1.0 : 1.0) * (0.5 + i));
  want = Each(f, x);
  ExpectNear(Eval(*Lanes(f, 10), {Vector(x)})[0], want, "vmap");
  const FnRef g = Grad(f, {.wrt = {true}});
  ExpectNear(Eval(*Lanes(g, 10), {Vector(x)})[0], Each(g, x), "vmap grad");
  ExpectNear(Eval(*Grad(SumOf(Lanes(f, 10)), {.wrt = {true}}), {Vector(x)})[0], Each(g, x), "grad vmap");
  const FnRef two = Lanes(Lanes(f, 5), 2);
  ExpectNear(Eval(*two, {Tensor::FromVector<double>({2, 5}, x)})[0], want, "vmap vmap");
  for (int i = 0; i < 2; ++i) {  // all batch elements on one side
    std::vector<double> same;
    for (double v : x) same.push_back(i == 0 ? std::abs(v) : -std::abs(v));
    ExpectNear(Eval(*Lanes(f, 10), {Vector(same)})[0], Each(f, same), "one side");
  }
}

// The outer loop stops when its inner one would not end any more.
constexpr const char* kNestedLoops = R"(fn f(x: f64[]) {
  k: f64[], y: f64[] = while[num_carry=2] x 0.0:f64 (k: f64[], y: f64[]) { p = gt k 0.0:f64; return p } (k: f64[], y: f64[]) {
    j: f64[], z: f64[] = while[num_carry=2] k y (j: f64[], y: f64[]) { p = ne j 0.0:f64; return p } (j: f64[], y: f64[]) {
      i = sub j 1.0:f64
      s = sin y
      t = add s j
      return i, t
    }
    m = sub k 1.0:f64
    return m, z
  }
  return y
})";

TEST(Lanes, FinishedLanesDoNotEnterInnerLoops) {
  const FnRef f = ParseFn(kNestedLoops);
  std::vector<double> x;
  for (int i = 0; i < 150; ++i) x.push_back((i * 37) % 11);
  x[3] = -2.5;  // no trip; its inner loop would never end
  const FnRef g = Lanes(f, 150);
  ExpectNear(Eval(*g, {Vector(x)})[0], Each(f, x), "vmap");
  // In reverse mode, too.
  const FnRef h = ParseFn(R"(fn f(x: f64[], w: f64[]) {
    k: f64[], y: f64[] = while[num_carry=2] x w w (k: f64[], y: f64[], w: f64[]) { p = gt k 0.0:f64; return p } (k: f64[], y: f64[], w: f64[]) {
      j: f64[], z: f64[] = while[num_carry=2] k y w (j: f64[], y: f64[], w: f64[]) { p = ne j 0.0:f64; return p } (j: f64[], y: f64[], w: f64[]) {
        i = sub j 1.0:f64
        s = sin y
        t = mul s w
        return i, t
      }
      m = sub k 1.0:f64
      return m, z
    }
    return y
  })");
  const Tensor w = Tensor::Scalar<double>(DType::kF64, 1.1);
  const FnRef grad = Grad(h, {.wrt = {false, true}});
  std::vector<double> few(x.begin(), x.begin() + 30);
  const std::vector<double> want = Each(grad, few, {w});
  double sum = 0;
  for (double v : want) sum += v;
  ExpectNear(Eval(*Lanes(grad, 30, {true, false}), {Vector(few), w})[0], want, "vmap grad");
  ExpectNear(Eval(*Grad(SumOf(Lanes(h, 30, {true, false})), {.wrt = {false, true}}), {Vector(few), w})[0], {sum},
             "grad vmap");
  ExpectNear(Eval(*Grad(SumOf(Lanes(h, Dim(150), {true, false})), {.wrt = {false, true}}), {Vector(x), w})[0], {[&] {
               double all = 0;
               for (double v : Each(grad, x, {w})) all += v;
               return all;
             }()},
             "grad vmap, more lanes than slots");
}

// c = sqrt(c) - 1 while c > 0: the last value is negative, and the square root of that NaN, with a NaN derivative.
constexpr const char* kTrap = R"(fn f(x: f64[], w: f64[]) {
  y = while[num_carry=1] x w (c: f64[], w: f64[]) { p = gt c 0.0:f64; return p } (c: f64[], w: f64[]) {
    s = sqrt c
    t = mul s w
    d = sub t 1.0:f64
    return d
  }
  return y
})";

TEST(Lanes, FinishedLanesDoNotReachGradients) {
  const FnRef f = ParseFn(kTrap);
  const std::vector<double> x = {0.5, 300, 2, -1, 0.1, 80};
  const Tensor w = Tensor::Scalar<double>(DType::kF64, 0.9);
  const FnRef dx = Grad(f, {.wrt = {true, false}}), dw = Grad(f, {.wrt = {false, true}});
  const FnRef sum = SumOf(Lanes(f, 6, {true, false}));
  double total = 0;
  for (double v : Each(dw, x, {w})) total += v;
  ExpectNear(Eval(*Lanes(f, 6, {true, false}), {Vector(x), w})[0], Each(f, x, {w}), "vmap");
  ExpectNear(Eval(*Lanes(dx, 6, {true, false}), {Vector(x), w})[0], Each(dx, x, {w}), "vmap grad");
  ExpectNear(Eval(*Grad(sum, {.wrt = {true, false}}), {Vector(x), w})[0], Each(dx, x, {w}), "grad vmap");
  ExpectNear(Eval(*Grad(sum, {.wrt = {false, true}}), {Vector(x), w})[0], {total}, "grad vmap w");
  ExpectNear(Eval(*Optimize(Grad(sum, {.wrt = {false, true}})), {Vector(x), w})[0], {total}, "optimised");
}

// Through slots: 3000 batch elements of 1 to 300 trips.
constexpr const char* kCountdown = R"(fn f(x: f64[]) {
  k: f64[], y: f64[] = while[num_carry=2] x 1.0:f64 (k: f64[], y: f64[]) { p = gt k 0.0:f64; return p } (k: f64[], y: f64[]) {
    m = sub k 1.0:f64
    s = sin y
    t = mul k 0.001:f64
    z = add s t
    return m, z
  }
  return y
})";

TEST(Lanes, WaitingLanesTakeThePlacesOfFinishedOnes) {
  const FnRef f = ParseFn(kCountdown), g = Grad(f, {.wrt = {true}});
  const int64_t n = 3000;
  std::vector<double> x;
  double trips = 0;
  for (int64_t i = 0; i < n; ++i) {
    x.push_back(i % 100 == 17 ? 300 : i % 5);
    trips += x.back();
  }
  EvaluatedElements count;
  ExpectNear(Eval(*Lanes(f, n), {Vector(x)})[0], Each(f, x), "vmap");
  // All batch elements until the last ends: 300 n. Slots: the trips, what waits for others in its block, and the last
  // block.
  EXPECT_LT(static_cast<double>(count.Of("sin")), 300.0 * static_cast<double>(n) * 0.5);
  // A size that is not known.
  const FnRef any = Lanes(f, Dim::Symbol("n"));
  for (int64_t size : {0, 1, 7, 1500}) {
    const std::vector<double> some(x.begin(), x.begin() + size);
    ExpectNear(Eval(*any, {Vector(some)})[0], Each(f, some), "n = " + std::to_string(size));
  }
  const std::vector<double> some(x.begin(), x.begin() + 1100);
  ExpectNear(Eval(*Grad(SumOf(any), {.wrt = {true}}), {Vector(some)})[0], Each(g, some), "grad vmap");
  ExpectNear(Eval(*Lanes(g, 1100), {Vector(some)})[0], Each(g, some), "vmap grad");
}

TEST(Lanes, SymbolicNumberOfLanes) {
  const FnRef f = DearBranch(), g = Lanes(f, Dim::Symbol("n")), d = Grad(SumOf(g), {.wrt = {true}});
  for (int64_t n : {0, 1, 5, 100}) {
    std::vector<double> x, want;
    for (int64_t i = 0; i < n; ++i) x.push_back(i % 4 == 1 ? -0.01 * static_cast<double>(i) : 1);
    for (double v : x) want.push_back(DearAt(v));
    ExpectNear(Eval(*g, {Vector(x)})[0], want, "n = " + std::to_string(n));
    ExpectNear(Eval(*d, {Vector(x)})[0], Each(Grad(f, {.wrt = {true}}), x), "gradient, n = " + std::to_string(n));
  }
}

TEST(Lanes, SwitchOfManyBranches) {
  Builder b("f");
  const Type scalar{DType::kF64, {}, {}};
  const Atom i = b.Parameter(Type{DType::kI32, {}, {}}), x = b.Parameter(scalar);
  std::vector<FnRef> branches;
  for (int k = 0; k < 5; ++k) {
    Builder r("branch");
    Atom y = r.Parameter(scalar);
    for (int times = 0; times < (k % 2 == 0 ? 60 : 1); ++times) y = Sin(r, y);
    branches.push_back(r.Build({Mul(r, y, Atom::Scalar(DType::kF64, k + 1))}));
  }
  const FnRef f = b.Build(b.Emit(FindPrim("cond"), {i, x}, {}, branches));
  const int64_t n = 64;
  Tensor index(DType::kI32, {n}), value(DType::kF64, {n});
  std::vector<double> want;
  int64_t dear = 0;
  for (int64_t l = 0; l < n; ++l) {
    index.data<int32_t>()[l] = static_cast<int32_t>(l % 9 - 2);  // clamped at both ends
    value.data<double>()[l] = 0.1 * static_cast<double>(l);
    const int k = std::clamp<int>(static_cast<int>(l % 9 - 2), 0, 4);
    dear += k % 2 == 0;
    double y = value.at<double>(l);
    for (int times = 0; times < (k % 2 == 0 ? 60 : 1); ++times) y = std::sin(y);
    want.push_back(y * (k + 1));
  }
  EvaluatedElements count;
  ExpectNear(Eval(*Lanes(f, n, {true, true}), {index, value})[0], want, "switch");
  EXPECT_LE(count.Of("sin"), 2 * n + 60 * (dear + 3 * 64));
}

// A linear cond whose predicate has batch elements, transposed after vmap.
TEST(Lanes, TransposeOfLanes) {
  const FnRef f = ParseFn(R"(fn f(p: bool[], x: f64[]) {
    y = cond p x (x: f64[]) { d = mul x 3.0:f64; return d } (x: f64[]) { d = mul x 5.0:f64; return d }
    return y
  })");
  const FnRef t = Transpose(Lanes(f, 3, {true, true}), {false, true});
  Tensor p(DType::kBool, {3});
  p.Set(0, 1), p.Set(1, 0), p.Set(2, 1);
  ExpectNear(Eval(*t, {p, Vector({1, 10, 100})})[0], {5, 30, 500}, "transpose");
}

// One row is read in each step; backwards a step adds one row to the sum of cotangents, not the whole array.
TEST(Lanes, GatheredRowsAreAddedInPlace) {
  const FnRef f = ParseFn(R"(fn f(w: f64[1000], i: i32[20]) {
    s: f64[] = scan[num_consts=1, num_carry=1, length=<20>, reverse=false] w 0.0:f64 i (w: f64[1000], s: f64[], i: i32[]) {
      j: i32[1] = reshape[shape=<1>] i
      r: f64[] = gather[offset_dims=[], collapsed_dims=[0], operand_batch_dims=[], indices_batch_dims=[],
                        start_index_map=[0], slice_sizes=[1], mode="clip"] w j
      q = mul r r
      t = add s q
      return t
    }
    return s
  })");
  const FnRef g = Optimize(Grad(f, {.wrt = {true, false}}));
  for (const Eqn& e : g->eqns()) {
    if (e.prim->name != "scan") continue;
    for (const Eqn& inner : e.regions[0]->eqns()) {
      const Type t = e.regions[0]->TypeOf(inner.result());
      if (t.rank() == 1 && t.dims[0] == Dim(1000)) {
        EXPECT_EQ(inner.prim->name, "scatter_add") << Print(*g);
      }
    }
  }
  Tensor w(DType::kF64, {1000}), i(DType::kI32, {20});
  std::vector<double> want(1000, 0);
  for (int64_t k = 0; k < 1000; ++k) w.data<double>()[k] = static_cast<double>(k);
  for (int64_t k = 0; k < 20; ++k) {
    i.data<int32_t>()[k] = static_cast<int32_t>(k * k % 13);
    want[static_cast<size_t>(k * k % 13)] += 2.0 * static_cast<double>(k * k % 13);
  }
  ExpectNear(Eval(*g, {w, i})[0], want, "gradient");
}

}  // namespace
}  // namespace weft
