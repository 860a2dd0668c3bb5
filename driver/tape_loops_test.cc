// Compiled loops that record tapes: closed forms, lanes, memory.
#include <gtest/gtest.h>

#include <cmath>

#include "base/tape.h"
#include "driver/executable.h"
#include "ir/builder.h"
#include "ir/eval/eval.h"
#include "ir/ops.h"
#include "ir/prim.h"
#include "ir/samples/recursive_samples.h"
#include "ir/text/parser.h"
#include "transforms/ad/grad.h"
#include "transforms/batch/vmap.h"
#include "transforms/opt/pass.h"

namespace weft {
namespace {

Tensors Compiled(const FnRef& fn, const Tensors& args) {
  CompileRequest options;
  options.passes = {};
  options.use_cache = options.use_disk_cache = false;
  return Compile(options.For(fn))->Run(args);
}
FnRef GradOf(const FnRef& f) {
  Mask wrt(f->params().size(), false);
  wrt[0] = true;
  return Grad(f, {.wrt = wrt});
}
FnRef Lanes(const FnRef& f, int64_t n) { return Vmap(f, {{0}, {0}, Dim(n)}); }
double Scalar(const FnRef& f, double x) {
  return Compiled(f, {Tensor::Scalar<double>(DType::kF64, x)})[0].at<double>(0);
}

// x squared until it is 100 or more.
std::string Squaring(const std::string& attrs) {
  return "fn f(x: f64[]) {\n  y = while[" + attrs +
         "] x (c: f64[]) { p = lt c 100:f64; return p } (c: f64[]) { d = mul c c; return d }\n  return y\n}\n";
}

TEST(TapeLoops, EveryOrderOfDerivative) {
  for (const char* attrs : {"num_carry=1", "num_carry=1, strategy=\"recount\""}) {
    const FnRef f = ParseFn(Squaring(attrs)), g = GradOf(f), h = GradOf(g);
    EXPECT_EQ(Scalar(g, 2), 1024) << attrs;  // x^8
    EXPECT_EQ(Scalar(h, 2), 3584) << attrs;
    EXPECT_EQ(Scalar(GradOf(h), 2), 336 * 32) << attrs;
    EXPECT_EQ(Scalar(g, 200), 1) << attrs;  // no trip
    EXPECT_EQ(Scalar(h, 200), 0) << attrs;
  }
}

TEST(TapeLoops, LanesOfDifferentTripCounts) {
  const FnRef f = ParseFn(Squaring("num_carry=1"));
  const Tensor x = Tensor::FromVector<double>({3, 2}, {2, 11, 200, 3, 150, 160});
  const std::vector<double> want = {1024, 22, 1, 8 * 2187, 1, 1};
  Builder b("sum");
  const Atom p = b.Parameter(Type{DType::kF64, {2}, {}});
  const FnRef sum = b.Build({ReduceSum(b, b.Inline(*Lanes(f, 2), {p})[0], {0})});
  for (const FnRef& g : {Lanes(Lanes(GradOf(f), 2), 3), Vmap(GradOf(sum), {{0}, {0}, Dim(3)})}) {
    const Tensor got = Compiled(g, {x})[0];
    for (int64_t i = 0; i < 6; ++i) EXPECT_NEAR(got.at<double>(i), want[static_cast<size_t>(i)], 1e-9) << i;
  }
}

// 20 steps of w -= 0.01 * gradient of a loop that multiplies by 0.99 until the sum of squares is under 1: each step's
// tape is freed before the next.
constexpr const char* kLoss = R"(fn f(w: f64[64]) {
  y = while[num_carry=1] w (c: f64[64]) {
    d = mul c c
    s = reduce_sum[dims=[0]] d
    p = gt s 1:f64
    return p
  } (c: f64[64]) {
    d = mul c c
    e = mul d 0.01:f64
    g = sub c e
    return g
  }
  s = reduce_sum[dims=[0]] y
  return s
}
)";

FnRef Descent(const FnRef& gradient, int64_t steps) {
  const Type type{DType::kF64, {64}, {}};
  Builder body("step");
  const Atom w = body.Parameter(type);
  const Atom g = body.Inline(*gradient, {w})[0];
  const FnRef region = body.Build({Sub(body, w, Mul(body, g, Atom::Scalar(DType::kF64, 1e-4)))});
  Builder b("descent");
  return b.Build(b.Emit(
      FindPrim("scan"), {b.Parameter(type)},
      {{"num_consts", int64_t{0}}, {"num_carry", int64_t{1}}, {"length", Dims{steps}}, {"reverse", false}}, {region}));
}

TEST(TapeLoops, AnIterationFreesTheTapesItDoesNotPassOn) {
  const FnRef gradient = GradOf(ParseFn(kLoss));
  const Tensor w = Tensor::Full(DType::kF64, {64}, 3);
  int64_t peak[2];
  for (int i = 0; i < 2; ++i) {
    ResetPeakTapeBytes();
    const FnRef f = Descent(gradient, i == 0 ? 1 : 20);
    const Tensor got = Compiled(f, {w})[0];
    peak[i] = PeakTapeBytes();
    const Tensor want = Eval(*f, {w})[0];
    for (int64_t k = 0; k < 64; ++k) ASSERT_NEAR(got.at<double>(k), want.at<double>(k), 1e-9);
  }
  EXPECT_GT(peak[0], 64 * 8 * 100);  // more than a hundred trips
  EXPECT_LT(peak[1], 2 * peak[0]);
  EXPECT_EQ(LiveTapeBytes(), 0);
}

TEST(TapeLoops, PullbacksMayBeAppliedAgainAndKeepTheirTapes) {
  const Pullback v = Vjp(ParseFn(Squaring("num_carry=1")), {true});
  Tensors residuals = Compiled(v.forward, {Tensor::Scalar<double>(DType::kF64, 2)});
  residuals.erase(residuals.begin());
  EXPECT_GT(LiveTapeBytes(), 0);
  for (double ct : {1.0, 3.0}) {
    Tensors args = residuals;
    args.push_back(Tensor::Scalar<double>(DType::kF64, ct));
    EXPECT_EQ(Compiled(v.backward, args)[0].at<double>(0), 1024 * ct);
    EXPECT_EQ(Eval(*v.backward, args)[0].at<double>(0), 1024 * ct);  // the interpreter reads the same tapes
  }
  residuals.clear();
  EXPECT_EQ(LiveTapeBytes(), 0);
}

TEST(TapeLoops, TheScheduleSaysWhatATripCosts) {
  CompileRequest options;
  options.passes = {};
  options.use_cache = options.use_disk_cache = false;
  const std::string schedule = Compile(options.For(GradOf(ParseFn(kLoss))))->Stage("schedule");
  EXPECT_NE(schedule.find("512 bytes per trip"), std::string::npos) << schedule;
}

double CompiledAt(const FnRef& f, double x, int n) {
  return Compiled(f, {Tensor::Scalar<double>(DType::kF64, x), Tensor::Scalar<int32_t>(DType::kI32, n)})[0].at<double>(
      0);
}

TEST(Recursion, CompiledCalls) {
  const FnRef f = ParseFn(kPower), g = GradOf(f), h = GradOf(g);
  for (int n : {0, 1, 2, 5, 13}) {
    EXPECT_NEAR(CompiledAt(f, 1.5, n), std::pow(1.5, n), 1e-12);
    EXPECT_NEAR(CompiledAt(g, 1.5, n), n * std::pow(1.5, n - 1), 1e-9) << n;
    EXPECT_NEAR(CompiledAt(h, 1.5, n), n * (n - 1) * std::pow(1.5, n - 2), 1e-8) << n;
  }
  const FnRef tree = ParseFn(kTree);
  EXPECT_EQ(CompiledAt(tree, 1, 20), 10946);  // Fibonacci
  const double step = 1e-5, x = 0.7;
  EXPECT_NEAR(CompiledAt(GradOf(tree), x, 12),
              (CompiledAt(tree, x + step, 12) - CompiledAt(tree, x - step, 12)) / (2 * step), 1e-6);
  const Tensor xs = Tensor::FromVector<double>({3}, {1.5, 2, 3}), ns = Tensor::FromVector<int32_t>({3}, {0, 5, 3});
  const Tensor lanes = Compiled(Vmap(g, {{0, 0}, {0}, Dim(3)}), {xs, ns})[0];
  for (int i = 0; i < 3; ++i) EXPECT_NEAR(lanes.at<double>(i), (std::vector<double>{0, 80, 27})[i], 1e-9);
  EXPECT_EQ(LiveTapeBytes(), 0);
}

TEST(Recursion, TooDeepIsAnErrorThatNamesTheFunction) {
  const FnRef f = ParseFn(
      "fn f(x: f64[]) {\n  y = recursive x (x: f64[]) { y = recur[depth=0, results=types(f64[])] x; z = recur[depth=0, "
      "results=types(f64[])] y; return z }\n  return y\n}\n");
  for (const FnRef& g : {f, GradOf(f)}) {
    try {
      Scalar(g, 1);
      FAIL();
    } catch (const Error& e) {
      EXPECT_NE(e.message().find("calls itself"), std::string::npos) << e.message();
    }
  }
}

}  // namespace
}  // namespace weft
