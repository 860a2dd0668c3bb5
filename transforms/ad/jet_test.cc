// Taylor mode against nested forward mode, for every sample of every primitive, and against closed forms.
#include "transforms/ad/jet.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <random>
#include <set>

#include "ir/builder.h"
#include "ir/eval/eval.h"
#include "ir/ops.h"
#include "ir/samples/drawn_tensors.h"
#include "ir/text/parser.h"
#include "ir/text/printer.h"
#include "transforms/ad/jvp.h"
#include "transforms/batch/vmap.h"

namespace weft {
namespace {

constexpr int kOrder = 3;

bool InDoublePrecision(const Fn& fn) {
  bool in = false, out = false;
  auto is_double = [](DType t) { return t == DType::kF64 || t == DType::kC128; };
  for (const Param& p : fn.params()) {
    in |= is_double(p.type.dtype);
    if (HasTangents(p.type.dtype) && !is_double(p.type.dtype)) return false;
  }
  for (const Type& t : fn.ResultTypes()) {
    out |= is_double(t.dtype);
    if (HasTangents(t.dtype) && !is_double(t.dtype)) return false;
  }
  return in && out;
}

// The derivatives 0 ... order of f along x + x1 s + x2 s^2 + ..., as a function of (x, x1, x2, ...), by nested jvp:
// with D x_k = (k + 1) x_(k+1), coefficient k of f is D applied k times, divided by k!.
Tensors ByNestedJvp(const FnRef& f, const Mask& active, const Tensors& x, const std::vector<Tensors>& coefficients) {
  FnRef g = f;
  size_t n = f->results().size();
  Tensors values = x, results = Eval(*f, x);
  results.resize(n);
  Mask mask = active;
  // After step k the parameters are x, then groups of tangents; each group is D of all inexact parameters before it.
  std::vector<std::pair<size_t, int>> origin;  // of each parameter: which operand, and which coefficient
  for (size_t i = 0; i < x.size(); ++i) origin.emplace_back(i, 0);
  std::vector<double> scale(x.size(), 1);
  Mask wanted;
  for (const Type& t : f->ResultTypes()) wanted.push_back(HasTangents(t.dtype));
  double factorial = 1;
  std::vector<size_t> last(n);
  for (size_t r = 0; r < n; ++r) last[r] = r;
  for (int k = 1; k <= kOrder; ++k) {
    factorial *= k;
    Mask all(g->params().size(), false);
    const size_t before = origin.size();
    for (size_t i = 0; i < before; ++i) {
      all[i] = active[origin[i].first];
      if (!all[i]) continue;
      origin.emplace_back(origin[i].first, origin[i].second + 1);
      // D of (scale * x_j) is scale * (j + 1) x_(j+1).
      scale.push_back(scale[i] * (origin[i].second + 1));
      const int order = origin[i].second + 1;
      Tensor t = order <= kOrder ? coefficients[origin[i].first][static_cast<size_t>(order - 1)].Copy()
                                 : Tensor::Zeros(x[origin[i].first].dtype(), x[origin[i].first].shape());
      for (int64_t e = 0; e < t.size(); ++e) t.Set(e, t.Get(e) * scale.back());
      values.push_back(t);
    }
    Mask force;
    for (const Type& t : g->ResultTypes()) force.push_back(HasTangents(t.dtype));
    const JvpFn d = Jvp(g, all, force);
    // The tangent of result last[r] of g.
    std::vector<size_t> next(n);
    size_t at = g->results().size();
    for (size_t i = 0; i < g->results().size(); ++i) {
      if (!force[i]) continue;
      for (size_t r = 0; r < n; ++r) {
        if (last[r] == i && wanted[r]) next[r] = at;
      }
      ++at;
    }
    last = next;
    g = d.fn;
    const Tensors out = Eval(*g, values);
    for (size_t r = 0; r < n; ++r) {
      if (!wanted[r]) continue;
      Tensor t = out[last[r]].Copy();
      for (int64_t e = 0; e < t.size(); ++e) t.Set(e, t.Get(e) / factorial);
      results.push_back(t);
    }
  }
  return results;  // f, then for each k the coefficients k of inexact results
}

std::set<std::string>& Ran() {
  static auto& ran = *new std::set<std::string>();
  return ran;
}

class EveryPrim : public testing::TestWithParam<std::string> {};

TEST_P(EveryPrim, JetIsNestedJvp) {
  const Prim& prim = FindPrim(GetParam());
  std::mt19937 rng(7);
  for (Sample s : prim.samples()) {
    if (!prim.not_differentiable.empty()) break;
    if (s.regions.empty()) {  // regions hold their own dtypes: those samples come in f64 already
      auto wide = [](DType t) { return t == DType::kF32 ? DType::kF64 : t == DType::kC64 ? DType::kC128 : t; };
      for (Type& t : s.operands) t.dtype = wide(t.dtype);
      for (auto& [i, v] : s.values) {
        Tensor d(wide(v.dtype()), v.shape());
        for (int64_t k = 0; k < v.size() && !(d.dtype() == v.dtype()); ++k) d.Set(k, v.Get(k));
        if (!(d.dtype() == v.dtype())) v = d;
      }
      if (const Attr* a = s.attrs.Find("dtype")) {
        if (const DType* t = std::get_if<DType>(a)) s.attrs.Set("dtype", wide(*t));
      }
    }
    Builder b("f");
    Atoms operands;
    for (const Type& t : s.operands) operands.push_back(b.Parameter(t));
    FnRef fn = b.Build(b.Emit(prim, operands, s.attrs, s.regions));
    // A collective means something over batch elements only.
    for (size_t i = s.axes.size(); i-- > 0;)
      fn =
          Batch(fn, Mask(s.operands.size(), true), Mask(fn->results().size(), true), s.axes[i].size, s.axes[i].name).fn;
    if (!InDoublePrecision(*fn)) continue;
    Mask active, force;
    Tensors x;
    std::vector<Tensors> coefficients;
    for (size_t i = 0; i < s.operands.size(); ++i) {
      x.push_back(Draw(fn->params()[i].type, s.low, s.high, rng));
      active.push_back(HasTangents(s.operands[i].dtype));
      coefficients.emplace_back();
    }
    for (const auto& [i, value] : s.values) x[i] = value;
    Tensors args = x;
    for (size_t i = 0; i < x.size(); ++i) {
      for (int k = 1; active[i] && k <= kOrder; ++k) {
        coefficients[i].push_back(Draw(x[i].type(), -1, 1, rng));
        args.push_back(coefficients[i].back());
      }
    }
    for (const Type& t : fn->ResultTypes()) force.push_back(HasTangents(t.dtype));
    JvpFn jet;
    Tensors expected;
    try {
      expected = ByNestedJvp(fn, active, x, coefficients);
    } catch (const Error& e) {  // lgamma's third derivative and the like
      ASSERT_EQ(e.kind(), ErrorKind::kDerivative) << e.what();
      EXPECT_THROW(Jet(fn, active, kOrder, force), Error) << GetParam();
      continue;
    }
    ASSERT_NO_THROW(jet = Jet(fn, active, kOrder, force)) << GetParam();
    const Tensors out = Eval(*jet.fn, args);
    const size_t n = fn->results().size();
    size_t inexact = 0, at = n;
    for (bool f : force) inexact += f ? 1 : 0;
    for (size_t r = 0, which = 0; r < n; ++r) {
      EXPECT_TRUE(out[r].BitEquals(Eval(*fn, x)[r])) << GetParam() << " result " << r;
      if (!force[r]) continue;
      for (int k = 1; k <= kOrder; ++k, ++at) {
        const Tensor& want = expected[n + static_cast<size_t>(k - 1) * inexact + which];
        for (int64_t e = 0; e < want.size(); ++e) {
          const double scale = 1 + std::abs(want.Get(e));
          const bool both_nan = std::isnan(std::abs(want.Get(e))) && std::isnan(std::abs(out[at].Get(e)));
          ASSERT_TRUE(both_nan || std::abs(out[at].Get(e) - want.Get(e)) <= 1e-9 * scale)
              << GetParam() << " result " << r << " coefficient " << k << " element " << e << ": " << out[at].Get(e)
              << ", expected " << want.Get(e) << "\n"
              << Print(*fn) << Print(*jet.fn);
        }
      }
      ++which;
    }
  }
  Ran().insert(GetParam());
}

std::vector<std::string> Names() {
  std::vector<std::string> names;
  for (const Prim* p : AllPrims()) names.push_back(p->name);
  return names;
}
INSTANTIATE_TEST_SUITE_P(Registry, EveryPrim, testing::ValuesIn(Names()), [](const auto& info) { return info.param; });

class EveryPrimRan : public testing::Environment {
 public:
  void TearDown() override {
    if (testing::GTEST_FLAG(filter) != "*") return;
    for (const std::string& name : Names()) EXPECT_TRUE(Ran().count(name)) << "jet was not tested for " << name;
  }
};
[[maybe_unused]] testing::Environment* const kEveryPrimRan = testing::AddGlobalTestEnvironment(new EveryPrimRan);

// Coefficients of f(t) at t = `at`, by the program f.
std::vector<double> Coefficients(const FnRef& f, double at, int order) {
  const JvpFn jet = Jet(f, {true}, order, {true});
  Tensors args = {Tensor::Scalar<double>(DType::kF64, at)};
  for (int k = 1; k <= order; ++k) args.push_back(Tensor::Scalar<double>(DType::kF64, k == 1));
  std::vector<double> c;
  for (const Tensor& t : Eval(*jet.fn, args)) c.push_back(t.at<double>(0));
  return c;
}

TEST(Jet, ClosedForms) {
  const Type scalar{DType::kF64, {}, {}};
  auto program = [&](const std::function<Expr(Expr)>& f) {
    Builder b("f");
    const Atom x = b.Parameter(scalar);
    return b.Build({f(Expr{&b, x})});
  };
  const int order = 8;
  const std::vector<double> exp = Coefficients(program([](Expr x) { return Exp(x); }), 0.5, order);
  const std::vector<double> log = Coefficients(program([](Expr x) { return Log(x); }), 0.5, order);
  const std::vector<double> sin = Coefficients(program([](Expr x) { return Sin(x); }), 0.5, order);
  const std::vector<double> inverse = Coefficients(program([](Expr x) { return 1.0 / x; }), 0.5, order);
  const std::vector<double> cube = Coefficients(program([](Expr x) { return Pow(x, 3.0); }), 0, order);
  double factorial = 1;
  for (int k = 0; k <= order; ++k) {
    if (k > 0) factorial *= k;
    EXPECT_NEAR(exp[k], std::exp(0.5) / factorial, 1e-14);
    EXPECT_NEAR(sin[k], std::sin(0.5 + k * std::acos(-1) / 2) / factorial, 1e-14);
    EXPECT_NEAR(inverse[k], std::pow(-1, k) / std::pow(0.5, k + 1), 1e-11);
    if (k > 0) {
      EXPECT_NEAR(log[k], -std::pow(-1, k) / (k * std::pow(0.5, k)), 1e-11);
    }
    EXPECT_EQ(cube[k], k == 3 ? 1 : 0) << k;
  }
}

// Work grows with the square of the order, not exponentially: shared intermediate series are found once.
TEST(Jet, GrowsWithTheSquareOfTheOrder) {
  const FnRef f = ParseFn(
      "fn f(x: f64[]) -> (f64[]) { a: f64[] = exp x\n b: f64[] = sin x\n c: f64[] = mul b a\n d: f64[] = tanh c\n "
      "return d }");
  const int64_t four = Jet(f, {true}, 4).fn->NumEqns(), eight = Jet(f, {true}, 8).fn->NumEqns();
  EXPECT_LT(eight, 5 * four) << four << " and " << eight << " equations";
}

// One factorisation, whatever the order: the recurrence solves with the factor it has.
TEST(Jet, FactorsOnce) {
  const FnRef f = ParseFn("fn f(x: f64[3,3]) -> (f64[3,3]) { a: f64[3,3] = cholesky x\n return a }");
  const FnRef jet = Jet(f, {true}, 5).fn;
  int count = 0;
  for (const Eqn& e : jet->eqns()) count += e.prim->name == "cholesky";
  EXPECT_EQ(count, 1);
}

TEST(Jet, RefusesWhatHasNoDerivative) {
  const FnRef f = ParseFn("fn f(x: f64[]) -> (f64[]) { a: f64[] = nextafter x x\n return a }");
  try {
    Jet(f, {true}, 2);
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kDerivative);
    EXPECT_NE(std::string(e.what()).find("nextafter"), std::string::npos) << e.what();
  }
}

// A rule of many equations does not exhaust the stack.
TEST(Jet, LongRules) {
  const Type scalar{DType::kF64, {}, {}};
  Builder f("f"), rule("rule"), b("program");
  const Atom x = f.Parameter(scalar), rx = rule.Parameter(scalar);
  Atom dy = rule.Parameter(scalar);
  for (int i = 0; i < 30000; ++i) dy = Mul(rule, dy, i % 2 ? Cos(rule, rx) : Sin(rule, rx));
  const FnRef primal = f.Build({Sin(f, x)});
  const FnRef custom = rule.Build({Sin(rule, rx), dy});
  const Atom y = b.Emit(FindPrim("custom_jvp"), {b.Parameter(scalar)}, {}, {primal, custom})[0];
  EXPECT_GT(Jet(b.Build({y}), {true}, 2).fn->NumEqns(), 30000);
}

// A scan carries the coefficients: its length does not matter to the size of the program, and it stays one loop.
TEST(Jet, ScanStaysOneLoop) {
  const FnRef f = ParseFn(
      "fn f(x: f64[]) -> (f64[]) { a: f64[] = scan[length=<50>, num_carry=1, num_consts=0, reverse=false] x "
      "(c: f64[]) -> (f64[]) { y: f64[] = sin c\n return y }\n return a }");
  const FnRef jet = Jet(f, {true}, 3).fn;
  ASSERT_EQ(jet->eqns().size(), 1u) << Print(*jet);
  EXPECT_EQ(jet->eqns()[0].num_results, 4u);
}

}  // namespace
}  // namespace weft
