// Reverse mode through loops of unknown length. Expected numbers are closed forms.
#include <gtest/gtest.h>

#include <cmath>

#include "ir/builder.h"
#include "ir/eval/eval.h"
#include "ir/exchange/serialize.h"
#include "ir/ops.h"
#include "ir/samples/recursive_samples.h"
#include "ir/text/parser.h"
#include "ir/text/printer.h"
#include "transforms/ad/grad.h"
#include "transforms/ad/jvp.h"
#include "transforms/batch/vmap.h"
#include "transforms/opt/pass.h"

namespace weft {
namespace {

// x squared until it is 100 or more.
std::string Squaring(const std::string& attrs = "num_carry=1") {
  return "fn f(x: f64[]) {\n"
         "  y = while[" +
         attrs +
         "] x (c: f64[]) { p = lt c 100:f64; return p } (c: f64[]) { d = mul c c; return d }\n"
         "  return y\n"
         "}\n";
}

// For i = 0, 1, 2: c = x * c + 1 until c >= 50 (that many trips are unknown), then c = log(c) + 1.
constexpr const char* kNested = R"(fn f(x: f64[]) {
  i: i32[], y: f64[] = while[num_carry=2] 0:i32 x x (i: i32[], c: f64[], x: f64[]) {
    p = lt i 3:i32
    return p
  } (i: i32[], c: f64[], x: f64[]) {
    j = add i 1:i32
    z = while[num_carry=1] c x (c: f64[], x: f64[]) { p = lt c 50:f64; return p } (c: f64[], x: f64[]) {
      e = mul c x
      d = add e 1:f64
      return d
    }
    s = log z
    t = add s 1:f64
    return j, t
  }
  return y
}
)";

double NestedAt(double x) {
  double c = x;
  for (int i = 0; i < 3; ++i) {
    while (c < 50) c = c * x + 1;
    c = std::log(c) + 1;
  }
  return c;
}

double At(const FnRef& f, double x) { return Eval(*f, {Tensor::Scalar<double>(DType::kF64, x)})[0].at<double>(0); }
FnRef GradOf(const FnRef& f) { return Grad(f, {.wrt = {true}}); }
FnRef Lanes(const FnRef& f, int64_t n) { return Vmap(f, {{0}, {0}, Dim(n)}); }

TEST(While, EveryOrderOfDerivative) {
  // From 2: 2, 4, 16, 256 = x^8. From 11: 121 = x^2. From 200: no trip.
  for (const char* attrs : {"num_carry=1", "num_carry=1, strategy=\"recount\""}) {
    const FnRef f = ParseFn(Squaring(attrs)), g = GradOf(f), h = GradOf(g), third = GradOf(h);
    EXPECT_EQ(At(f, 2), 256) << attrs;
    EXPECT_EQ(At(g, 2), 8 * 128) << attrs;
    EXPECT_EQ(At(h, 2), 56 * 64) << attrs;
    EXPECT_EQ(At(third, 2), 336 * 32) << attrs;
    EXPECT_EQ(At(g, 11), 22) << attrs;
    EXPECT_EQ(At(h, 11), 2) << attrs;
    EXPECT_EQ(At(g, 200), 1) << attrs;
    EXPECT_EQ(At(h, 200), 0) << attrs;
  }
}

TEST(While, LanesOfDifferentTripCounts) {
  const FnRef f = ParseFn(Squaring());
  const Tensor x = Tensor::FromVector<double>({4}, {2, 11, 200, 3});  // x^8, x^2, x, x^8
  const auto expect = [&](const FnRef& fn, const std::vector<double>& want, const char* what) {
    const Tensor got = Eval(*fn, {x})[0];
    for (int64_t i = 0; i < 4; ++i) EXPECT_NEAR(got.at<double>(i), want[static_cast<size_t>(i)], 1e-9) << what << i;
  };
  const std::vector<double> first = {1024, 22, 1, 8 * 2187}, second = {3584, 2, 0, 56 * 729};
  expect(Lanes(GradOf(f), 4), first, "vmap grad, lane ");
  expect(Lanes(GradOf(GradOf(f)), 4), second, "vmap grad grad, lane ");
  // grad of vmap: the sum over batch elements of independent functions.
  Builder b("sum");
  const Atom p = b.Parameter(Type{DType::kF64, {4}, {}});
  const Atom y = b.Inline(*Lanes(f, 4), {p})[0];
  const FnRef sum = b.Build({ReduceSum(b, y, {0})});
  expect(GradOf(sum), first, "grad vmap, lane ");
  Builder b2("sum");
  const Atom p2 = b2.Parameter(Type{DType::kF64, {4}, {}});
  const FnRef sum2 = b2.Build({ReduceSum(b2, b2.Inline(*Lanes(GradOf(f), 4), {p2})[0], {0})});
  expect(GradOf(sum2), second, "grad vmap grad, lane ");
}

TEST(While, TwoLevelsOfLanes) {
  const FnRef f = Lanes(Lanes(GradOf(ParseFn(Squaring())), 2), 3);
  const Tensor x = Tensor::FromVector<double>({3, 2}, {2, 11, 200, 3, 150, 160});
  const std::vector<double> want = {1024, 22, 1, 8 * 2187, 1, 1};
  const Tensor got = Eval(*f, {x})[0];
  for (int64_t i = 0; i < 6; ++i) EXPECT_NEAR(got.at<double>(i), want[static_cast<size_t>(i)], 1e-9) << i;
  // Tapes made for batch elements, then batched once more; and differentiated after that.
  const FnRef inner = Lanes(ParseFn(Squaring()), 2);
  Builder b("sum");
  const Atom p = b.Parameter(Type{DType::kF64, {2}, {}});
  const FnRef sum = b.Build({ReduceSum(b, b.Inline(*inner, {p})[0], {0})});
  const Tensor again = Eval(*Vmap(GradOf(sum), {{0}, {0}, Dim(3)}), {x})[0];
  for (int64_t i = 0; i < 6; ++i) EXPECT_NEAR(again.at<double>(i), want[static_cast<size_t>(i)], 1e-9) << i;
}

TEST(While, NestedLoops) {
  const FnRef f = ParseFn(kNested), g = GradOf(f), h = GradOf(g);
  for (double x : {1.1, 1.7, 2.3, 3.9}) {
    EXPECT_NEAR(At(f, x), NestedAt(x), 1e-12);
    const double step = 1e-6;
    const double slope = (NestedAt(x + step) - NestedAt(x - step)) / (2 * step);
    EXPECT_NEAR(At(g, x), slope, 1e-4 * std::max(1.0, std::abs(slope))) << x;
    const double curvature = (At(g, x + step) - At(g, x - step)) / (2 * step);
    EXPECT_NEAR(At(h, x), curvature, 1e-4 * std::max(1.0, std::abs(curvature))) << x;
  }
  const Tensor x = Tensor::FromVector<double>({3}, {1.1, 2.3, 3.9});
  const Tensor lanes = Eval(*Lanes(g, 3), {x})[0];
  for (int64_t i = 0; i < 3; ++i) EXPECT_NEAR(lanes.at<double>(i), At(g, x.at<double>(i)), 1e-9);
}

TEST(While, PassesAndFormsKeepTapes) {
  const FnRef g = GradOf(GradOf(ParseFn(kNested)));
  const FnRef optimized = Optimize(g);
  EXPECT_LT(optimized->NumEqns(), g->NumEqns());
  for (const FnRef& f : {optimized, ParseFn(Print(*g)), Deserialize(Serialize(*g))}) EXPECT_EQ(At(f, 1.7), At(g, 1.7));
}

// A tape is a value: a pullback may be applied any number of times, by other evaluations too.
TEST(While, TapesOutliveTheirEvaluation) {
  const FnRef f = ParseFn(Squaring());
  const Pullback v = Vjp(f, {true});
  Tensors residuals = Eval(*v.forward, {Tensor::Scalar<double>(DType::kF64, 2)});
  EXPECT_EQ(residuals[0].at<double>(0), 256);
  residuals.erase(residuals.begin());
  for (double ct : {1.0, 3.0}) {
    Tensors args = residuals;
    args.push_back(Tensor::Scalar<double>(DType::kF64, ct));
    EXPECT_EQ(Eval(*v.backward, args)[0].at<double>(0), 1024 * ct);
  }
}

double Tree(double x, int n) { return n < 2 ? x : Tree(x, n - 1) + x * Tree(x, n - 2); }

FnRef GradOfFirst(const FnRef& f) { return Grad(f, {.wrt = {true, false}}); }
double At(const FnRef& f, double x, int n) {
  return Eval(*f, {Tensor::Scalar<double>(DType::kF64, x), Tensor::Scalar<int32_t>(DType::kI32, n)})[0].at<double>(0);
}

TEST(Recursion, EveryOrderOfDerivative) {
  const FnRef f = ParseFn(kPower), g = GradOfFirst(f), h = GradOfFirst(g), third = GradOfFirst(h);
  for (int n : {0, 1, 2, 5, 13}) {
    const double x = 1.5;
    EXPECT_NEAR(At(f, x, n), std::pow(x, n), 1e-12);
    EXPECT_NEAR(At(g, x, n), n * std::pow(x, n - 1), 1e-9) << n;
    EXPECT_NEAR(At(h, x, n), n * (n - 1) * std::pow(x, n - 2), 1e-8) << n;
    EXPECT_NEAR(At(third, x, n), n * (n - 1) * (n - 2) * std::pow(x, n - 3), 1e-7) << n;
  }
}

TEST(Recursion, CallsThatBranch) {
  const FnRef f = ParseFn(kTree), g = GradOfFirst(f), h = GradOfFirst(g);
  const double step = 1e-5, x = 0.7;
  for (int n : {1, 2, 7}) {
    EXPECT_NEAR(At(f, x, n), Tree(x, n), 1e-12);
    EXPECT_NEAR(At(g, x, n), (Tree(x + step, n) - Tree(x - step, n)) / (2 * step), 1e-7) << n;
    EXPECT_NEAR(At(h, x, n), (At(g, x + step, n) - At(g, x - step, n)) / (2 * step), 1e-6) << n;
  }
}

TEST(Recursion, LanesStopWhereTheyStop) {
  const FnRef f = ParseFn(kPower);
  const Tensor x = Tensor::FromVector<double>({3}, {1.5, 2, 3}), n = Tensor::FromVector<int32_t>({3}, {0, 5, 3});
  const std::vector<double> want = {0, 80, 27};
  Builder b("sum");
  const Atom p = b.Parameter(x.type()), q = b.Parameter(n.type());
  const FnRef sum = b.Build({ReduceSum(b, b.Inline(*Vmap(f, {{0, 0}, {0}, Dim(3)}), {p, q})[0], {0})});
  for (const FnRef& g : {Vmap(GradOfFirst(f), {{0, 0}, {0}, Dim(3)}), GradOfFirst(sum)}) {
    const Tensor got = Eval(*Optimize(g), {x, n})[0];
    for (int64_t i = 0; i < 3; ++i) EXPECT_NEAR(got.at<double>(i), want[static_cast<size_t>(i)], 1e-9) << i;
  }
}

TEST(Recursion, FormsAndPasses) {
  const FnRef g = GradOfFirst(ParseFn(kTree));
  for (const FnRef& f : {Optimize(g), ParseFn(Print(*g)), Deserialize(Serialize(*g))})
    EXPECT_EQ(At(f, 0.7, 6), At(g, 0.7, 6));
  EXPECT_EQ(g->OutwardCalls(), 0);
}

TEST(Recursion, WithoutEndIsAnError) {
  const FnRef f = ParseFn(
      "fn f(x: f64[]) {\n  y = recursive x (x: f64[]) { y = recur[depth=0, results=types(f64[])] x; return y }\n"
      "  return y\n}\n");
  try {
    At(f, 1.0);
    FAIL();
  } catch (const Error& e) {
    EXPECT_NE(e.message().find("calls itself more than"), std::string::npos) << e.message();
  }
  EXPECT_THROW(ParseFn("fn f(x: f64[]) {\n  y = recursive x (x: f64[]) { i = convert[dtype=i32] x; y = recur[depth=0, "
                       "results=types(f64[])] i; return y }\n  return y\n}\n"),
               Error);
}

// Twenty Newton steps for x^3 = a. The linear half reads four values of each step; all follow from x.
TEST(ResidualsTest, ALoopKeepsWhatTheOthersFollowFrom) {
  const FnRef f = ParseFn(R"(
fn solve(a: f64[5], b: f64[5]) -> (f64[]) {
  c: f64[5] = scan[length=<20>, num_carry=1, num_consts=1, reverse=false] a b (a: f64[5], x: f64[5]) {
    p: f64[5] = integer_pow[y=3] x
    q: f64[5] = sub p a
    r: f64[5] = mul x x
    s: f64[5] = mul 3.0:f64 r
    t: f64[5] = div q s
    u: f64[5] = sub x t
    return u
  }
  d: f64[] = reduce_sum[dims=[0]] c
  return d
})");
  const FnRef g = Grad(f, {.wrt = {true, false}});
  int stacked = 0, loops = 0;
  for (const Eqn& e : g->eqns()) {
    if (e.prim->name != "scan") continue;
    ++loops;
    for (uint32_t r = static_cast<uint32_t>(e.attrs.GetInt("num_carry")); r < e.num_results; ++r) ++stacked;
  }
  EXPECT_EQ(loops, 2) << Print(*g);
  EXPECT_EQ(stacked, 1) << Print(*g);
  Tensor a(DType::kF64, {5}), x(DType::kF64, {5});
  for (int64_t i = 0; i < 5; ++i) {
    a.Set(i, 1.0 + static_cast<double>(i));
    x.Set(i, 1.5);
  }
  // d/da of the cube root: a^(-2/3) / 3.
  const Tensor slope = Eval(*g, {a, x})[0];
  for (int64_t i = 0; i < 5; ++i)
    EXPECT_NEAR(slope.Get(i).real(), std::pow(1.0 + static_cast<double>(i), -2.0 / 3) / 3, 1e-12);
}

// What takes more to compute again than to keep is kept: an exponential is, and not what follows from it.
TEST(ResidualsTest, ExpensiveValuesAreKept) {
  const FnRef f = ParseFn(R"(
fn f(x: f64[4]) -> (f64[]) {
  c: f64[4] = scan[length=<3>, num_carry=1, num_consts=0, reverse=false] x (x: f64[4]) {
    e: f64[4] = exp x
    p: f64[4] = mul e e
    q: f64[4] = mul p e
    s: f64[4] = sin q
    return s
  }
  d: f64[] = reduce_sum[dims=[0]] c
  return d
})");
  const FnRef g = Grad(f, {.wrt = {true}});
  for (const Eqn& e : g->eqns()) {
    if (e.prim->name != "scan" || e.attrs.GetBool("reverse")) continue;
    EXPECT_EQ(e.num_results, 3u) << Print(*g);  // the carry, exp x, cos q
  }
}

// Bodies of about 100,000 equations: what is kept for the linear half is found without a stack as deep as the body.
constexpr int kLong = 25000;

// y = y + 1e-5 sin(y) x again and again; every other y is read by the linear half.
Atom Winding(Builder& b, const Atom& from) {
  const Expr x{&b, from};
  Expr y = x;
  for (int i = 0; i < kLong; ++i) y = y + Sin(y) * x * 1e-5;
  return y;
}

// sin(x) of an x that went through 100,000 products with numbers, which the linear half can make again from the first.
Atom Stretched(Builder& b, const Atom& from) {
  Expr y{&b, from};
  for (int i = 0; i < 4 * kLong; ++i) y = y * (i % 2 == 0 ? 1.25 : 0.8);
  return y + 0.5 * Sin(y);
}

// x times an x that went through 100,000 equations that cost nothing to make again: no way to it is shorter.
Atom Held(Builder& b, const Atom& from) {
  const Expr x{&b, from};
  Expr y = x;
  for (int i = 0; i < 4 * kLong; ++i) y = StopGradient(y);
  return y * x + 0.6;
}

// One trip, and its derivative.
std::pair<double, double> WindingAt(double x) {
  double y = x, dy = 1;
  for (int i = 0; i < kLong; ++i) {
    const double s = std::sin(y), ds = std::cos(y) * dy;
    dy += 1e-5 * (ds * x + s);
    y += 1e-5 * s * x;
  }
  return {y, dy};
}
std::pair<double, double> StretchedAt(double x) { return {x + 0.5 * std::sin(x), 1 + 0.5 * std::cos(x)}; }

std::pair<double, double> HeldAt(double x) { return {x * x + 0.6, x}; }

TEST(LongBodies, OfScansAndWhileLoops) {
  const Type f64{DType::kF64, {}, {}};
  struct Body {
    Atom (*make)(Builder&, const Atom&);
    std::pair<double, double> (*at)(double);
  };
  for (const Body& body : {Body{Winding, WindingAt}, Body{Stretched, StretchedAt}, Body{Held, HeldAt}}) {
    Builder sb("step"), cb("below"), b("f"), wb("f");
    const FnRef step = sb.Build({body.make(sb, sb.Parameter(f64))});
    ASSERT_GT(step->eqns().size(), 4u * kLong - 1);
    const FnRef below = cb.Build({Lt(cb, cb.Parameter(f64), Atom::Scalar(DType::kF64, 1.5))});
    const FnRef scan = b.Build(b.Emit(
        FindPrim("scan"), {b.Parameter(f64)},
        {{"num_consts", int64_t{0}}, {"num_carry", int64_t{1}}, {"length", Dims{3}}, {"reverse", false}}, {step}));
    const FnRef loop =
        wb.Build(wb.Emit(FindPrim("while"), {wb.Parameter(f64)}, {{"num_carry", int64_t{1}}}, {below, step}));
    const double x = 0.7;
    double y = x, dy = 1;
    const auto trip = [&] {
      const auto [next, slope] = body.at(y);
      y = next, dy *= slope;
    };
    while (y < 1.5) trip();
    EXPECT_NEAR(At(GradOf(loop), x), dy, 1e-9 * dy);
    y = x, dy = 1;
    for (int i = 0; i < 3; ++i) trip();
    EXPECT_NEAR(At(GradOf(scan), x), dy, 1e-9 * dy);
  }
}

}  // namespace
}  // namespace weft
