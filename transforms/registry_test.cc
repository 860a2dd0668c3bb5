// Every primitive under every law, from the registry: no test file to touch when a primitive is added.
//
//   infer = the types that eval gives       parse(print(f)) = f
//   jvp = finite differences (f64, c128)    transpose is the adjoint:  <J dx, ct> = <dx, Jt ct>
//   vmap = stacked loop                     the laws hold again for the gradient (second order)
//   a result without the others = that of the whole
//
// At the end it is counted that every law was tried on every primitive: on a sample of it, or on a program that has it,
// in regions too. Programs are one equation each, and the gradients of those with regions, in which primitives stand
// that only derivatives make.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <random>
#include <set>

#include "ir/builder.h"
#include "ir/eval/eval.h"
#include "ir/ops.h"
#include "ir/samples/drawn_tensors.h"
#include "ir/samples/sample_fns.h"
#include "ir/text/parser.h"
#include "ir/text/printer.h"
#include "transforms/ad/grad.h"
#include "transforms/ad/jvp.h"
#include "transforms/ad/transpose.h"
#include "transforms/batch/vmap.h"
#include "transforms/opt/pass.h"

namespace weft {
namespace {

std::map<std::string, std::set<std::string>>& Ran() {
  static auto& ran = *new std::map<std::string, std::set<std::string>>();
  return ran;
}

void Record(const std::string& law, const Fn& fn) { Ran()[law].merge(PrimsOf(fn)); }

Tensors DrawOperands(const Sample& s, std::mt19937& rng) {
  Tensors x;
  for (Type t : s.operands) {
    for (size_t i = s.axes.size(); i-- > 0;)
      t.dims.insert(t.dims.begin(), Dim(s.axes[i].size));  // a value per batch element
    x.push_back(Draw(t, s.low, s.high, rng));
  }
  for (const auto& [i, value] : s.values) x[i] = value;
  return x;
}

// Host functions of the samples of callbacks: every element of a result is a number made of all operands.
class Effects : public testing::Environment {
 public:
  void SetUp() override {
    EffectHandlers handlers;
    handlers.print = [](const std::string&) {};
    handlers.callback = [](int64_t, const Tensors& x, const Types& results) {
      double sum = 1;
      for (const Tensor& t : x) {
        for (int64_t i = 0; i < t.size(); ++i) sum = std::cos(sum) + t.Get(i).real();
      }
      Tensors y;
      for (const Type& t : results) y.push_back(Tensor::Full(t.dtype, StaticSizes(t.dims, "test"), sum));
      return y;
    };
    SetEffectHandlers(handlers);
  }
};
[[maybe_unused]] testing::Environment* const kEffects = testing::AddGlobalTestEnvironment(new Effects);

FnRef Alone(const Prim& prim, const Sample& s) {
  Builder b("f");
  Atoms x;
  for (const Type& t : s.operands) x.push_back(b.Parameter(t));
  return b.Build(b.Emit(prim, x, s.attrs, s.regions));
}

// A collective means something over batch elements only: its axes are mapped, from the last one on.
FnRef AsFn(const Prim& prim, const Sample& s) {
  FnRef fn = Alone(prim, s);
  for (size_t i = s.axes.size(); i-- > 0;)
    fn = Batch(fn, Mask(s.operands.size(), true), Mask(fn->results().size(), true), s.axes[i].size, s.axes[i].name).fn;
  return fn;
}

// Differences need double precision. Region bodies hold their own dtypes: those samples come in f64 already.
void ToDouble(Sample& s) {
  if (!s.regions.empty()) return;
  auto wide = [](DType t) { return t == DType::kF32 ? DType::kF64 : t == DType::kC64 ? DType::kC128 : t; };
  for (Type& t : s.operands) t.dtype = wide(t.dtype);
  for (auto& [i, v] : s.values) {
    Tensor d(wide(v.dtype()), v.shape());
    if (d.dtype() == v.dtype()) continue;
    for (int64_t k = 0; k < v.size(); ++k) d.Set(k, v.Get(k));
    v = d;
  }
  if (const Attr* a = s.attrs.Find("dtype")) {
    if (const DType* t = std::get_if<DType>(a)) s.attrs.Set("dtype", wide(*t));
  }
}

bool IsDouble(DType t) { return t == DType::kF64 || t == DType::kC128; }

Mask InexactParams(const Fn& fn) {
  Mask m;
  for (const Param& p : fn.params()) m.push_back(IsDouble(p.type.dtype));
  return m;
}

// The real part of the sum of products: the pairing under which cotangents of complex numbers are defined (as in JAX,
// the gradient of a real function of x is the conjugate of its direction of steepest ascent).
double Dot(const Tensor& a, const Tensor& b) {
  double sum = 0;
  for (int64_t i = 0; i < a.size(); ++i) sum += (a.Get(i) * b.Get(i)).real();
  return sum;
}

Tensor Step(const Tensor& x, const Tensor& d, double h) {
  Tensor y(x.dtype(), x.shape());
  for (int64_t i = 0; i < x.size(); ++i) y.Set(i, x.Get(i) + h * d.Get(i));
  return y;
}

// Samples whose derivative laws can be tested by differences: double precision in and out. stop_gradient is wrong by
// declaration.
bool HasDerivative(const Prim& prim, const Fn& fn) {
  if (prim.name == "stop_gradient") return false;
  // Complex eigenvectors and singular vectors have a phase that is free, so differences of them mean nothing:
  // prims_test.cc has functions that do not depend on it.
  const bool free_phase = prim.name == "eigh" || prim.name == "svd";
  if (free_phase && IsComplex(fn.params()[0].type.dtype)) return false;
  bool in = false, out = false;
  for (const Param& p : fn.params()) {
    in |= IsDouble(p.type.dtype);
    if (IsInexact(p.type.dtype) && !IsDouble(p.type.dtype)) return false;
  }
  for (const Type& t : fn.ResultTypes()) {
    out |= IsDouble(t.dtype);
    if (IsInexact(t.dtype) && !IsDouble(t.dtype)) return false;
  }
  return in && out;
}

// Of sum(sin(result)).
FnRef GradientOfSines(const FnRef& fn) {
  Builder b("loss");
  Atoms x;
  for (const Param& p : fn->params()) x.push_back(b.Parameter(p.type));
  std::optional<Atom> total;
  for (const Atom& y : b.Inline(*fn, x)) {
    if (!IsDouble(b.DTypeOf(y))) continue;
    const Atoms parts = IsComplex(b.DTypeOf(y)) ? Atoms{Real(b, y), Imag(b, y)} : Atoms{y};
    for (const Atom& part : parts)
      total = AddTangents(b, total, ReduceSum(b, Sin(b, part), Range(0, b.TypeOf(part).rank())));
  }
  const FnRef loss = b.Build({*total});
  return Grad(loss, {.wrt = InexactParams(*loss)});
}

void CheckJvpAndTranspose(const FnRef& fn, const Tensors& x, std::mt19937& rng, const std::string& what) {
  Record("jvp", *fn);
  const double tolerance = 1e-4;
  const Mask active = InexactParams(*fn);
  Tensors dx;
  for (size_t i = 0; i < x.size(); ++i) {
    if (active[i]) dx.push_back(Draw(x[i].type(), -1, 1, rng));
  }
  Mask force;
  for (const Type& t : fn->ResultTypes()) force.push_back(IsInexact(t.dtype));
  const JvpFn jvp = Jvp(fn, active, force);
  Tensors args = x;
  args.insert(args.end(), dx.begin(), dx.end());
  const Tensors out = Eval(*jvp.fn, args);
  const size_t n = fn->results().size();

  // Central differences along one random direction.
  const double h = 1e-6;
  Tensors plus = x, minus = x;
  for (size_t i = 0, k = 0; i < x.size(); ++i) {
    if (!active[i]) continue;
    plus[i] = Step(x[i], dx[k], h);
    minus[i] = Step(x[i], dx[k], -h);
    ++k;
  }
  const Tensors up = Eval(*fn, plus), down = Eval(*fn, minus);
  Tensors dy;
  for (size_t r = 0, k = n; r < n; ++r) {
    if (!force[r]) continue;
    const Tensor& d = out[k++];
    dy.push_back(d);
    for (int64_t i = 0; i < d.size(); ++i) {
      const std::complex<double> expected = (up[r].Get(i) - down[r].Get(i)) / (2 * h);
      if (!std::isfinite(up[r].Get(i).real())) continue;  // the extreme of nothing
      EXPECT_LE(std::abs(d.Get(i) - expected), tolerance * (1 + std::abs(expected)))
          << d.Get(i) << ", expected " << expected << ": " << what << " jvp, result " << r << " element " << i << "\n"
          << Print(*jvp.fn);
    }
  }
  // The adjoint, by linearise and transpose.
  const Pullback v = Vjp(fn, active);
  Tensors back = Eval(*v.forward, x);
  for (size_t r = 0; r < n; ++r)
    EXPECT_TRUE(back[r].BitEquals(Eval(*fn, x)[r])) << what << ": the forward half changed result " << r;
  back.erase(back.begin(), back.begin() + static_cast<int64_t>(n));
  double left = 0, right = 0, scale = 1;
  for (const Tensor& d : dy) {
    const Tensor ct = Draw(d.type(), -1, 1, rng);
    left += Dot(d, ct);
    scale += std::abs(Dot(d, ct));
    back.push_back(ct);
  }
  const Tensors ct_x = Eval(*v.backward, back);
  ASSERT_EQ(ct_x.size(), dx.size()) << what;
  for (size_t i = 0; i < dx.size(); ++i) right += Dot(ct_x[i], dx[i]);
  EXPECT_NEAR(left, right, tolerance * scale) << what << " transpose\n" << Print(*v.backward);
}

class EveryPrim : public testing::TestWithParam<std::string> {
 protected:
  const Prim& prim() const { return FindPrim(GetParam()); }
  std::vector<Sample> samples() const { return prim().samples(); }
  // After a law was tried on a sample, of which `fn` was made. (A collective is none any more when its axis is mapped.)
  void Tried(const std::string& law, const Fn& fn) {
    Ran()[law].insert(GetParam());
    Record(law, fn);
  }
  // What the laws that say nothing of derivatives are tried on. A gradient has the parameters of its program.
  struct Program {
    FnRef fn;
    Sample sample;
  };
  std::vector<Program> programs() const {
    std::vector<Program> all;
    for (const Sample& s : samples()) {
      all.push_back({AsFn(prim(), s), s});
      if (s.regions.empty() || !prim().not_differentiable.empty()) continue;
      if (HasDerivative(prim(), *all.back().fn)) all.push_back({GradientOfSines(all.back().fn), s});
    }
    return all;
  }
};

TEST_P(EveryPrim, InferIsWhatEvalGives) {
  std::mt19937 rng(1);
  ASSERT_TRUE(prim().samples != nullptr) << "no samples";
  for (const auto& [fn, s] : programs()) {
    const Tensors out = Eval(*fn, DrawOperands(s, rng));  // Eval itself compares types
    ASSERT_EQ(out.size(), fn->results().size());
    Tried("infer", *fn);
  }
}

TEST_P(EveryPrim, TextRoundTrips) {
  auto check = [&](const FnRef& fn) {
    const FnRef again = ParseFn(Print(*fn));
    EXPECT_TRUE(fn->StructurallyEquals(*again)) << Print(*fn) << "\nbecame\n" << Print(*again);
    Tried("text", *fn);
  };
  for (const Sample& s : samples()) check(Alone(prim(), s));
  for (const Program& p : programs()) check(p.fn);
}

TEST_P(EveryPrim, JvpAndTransposeAgreeWithDifferences) {
  std::mt19937 rng(2);
  for (Sample s : samples()) {
    if (!prim().not_differentiable.empty()) break;
    ToDouble(s);
    const FnRef fn = AsFn(prim(), s);
    if (!HasDerivative(prim(), *fn)) continue;
    CheckJvpAndTranspose(fn, DrawOperands(s, rng), rng, GetParam());
    Tried("jvp", *fn);
    if (testing::Test::HasFailure()) return;
  }
}

// The gradient is a function whose own derivatives obey the same laws; and that of a gradient, where primitives have
// regions: what stands in the program of their gradient has no sample of its own.
TEST_P(EveryPrim, SecondOrder) {
  std::mt19937 rng(3);
  for (Sample s : samples()) {
    if (!prim().not_differentiable.empty()) break;
    ToDouble(s);
    const FnRef fn = AsFn(prim(), s);
    if (!HasDerivative(prim(), *fn)) continue;
    const FnRef grad = GradientOfSines(fn);
    const Tensors x = DrawOperands(s, rng);
    CheckJvpAndTranspose(grad, x, rng, GetParam() + " gradient");
    Tried("second", *fn);
    if (!s.regions.empty()) {
      CheckJvpAndTranspose(GradientOfSines(grad), x, rng, GetParam() + " gradient of the gradient");
      Tried("second", *grad);
    }
    if (testing::Test::HasFailure()) return;
  }
}

TEST_P(EveryPrim, VmapIsAStackedLoop) {
  std::mt19937 rng(4);
  constexpr int64_t kLanes = 3;
  for (const auto& [fn, s] : programs()) {
    const size_t n = s.operands.size();
    Tried("vmap", *fn);
    // Every operand alone, and all together.
    for (size_t which = 0; which <= n && n > 0; ++which) {
      Mask batched(n, which == n);
      if (which < n) batched[which] = true;
      const BatchedFn vmapped = Batch(fn, batched, Mask(fn->results().size(), true), kLanes);
      std::vector<Tensors> lanes;
      for (int64_t l = 0; l < kLanes; ++l) {
        Tensors x = DrawOperands(s, rng);
        // Values that a sample prescribes vary too: integers (indices, loop bounds, predicates) by place, others by a
        // positive factor, which keeps a matrix symmetric, definite, triangular or well-conditioned.
        for (const auto& [i, value] : s.values) {
          if (!batched[i] || l == 0) continue;
          if (IsInteger(value.dtype()) || IsBool(value.dtype())) {
            Tensor moved = value.Copy();
            for (int64_t k = 0; k < moved.size(); ++k)
              moved.Set(
                  k, value.Get((k + l) % value.size()) + (IsBool(value.dtype()) ? 0.0 : (value.size() == 1 ? l : 0.0)));
            if (IsBool(value.dtype())) moved.Set(0, value.Get(0).real() == 0);
            x[i] = moved;
          } else if (IsInexact(value.dtype())) {
            x[i] = Step(value, value, 0.25 * static_cast<double>(l));
          }
        }
        if (l > 0) {
          for (size_t i = 0; i < n; ++i) {
            if (!batched[i]) x[i] = lanes[0][i];
          }
        }
        lanes.push_back(x);
      }
      Tensors stacked;
      for (size_t i = 0; i < n; ++i) {
        if (!batched[i]) {
          stacked.push_back(lanes[0][i]);
          continue;
        }
        Shape shape = lanes[0][i].shape();
        shape.insert(shape.begin(), kLanes);
        Tensor t(lanes[0][i].dtype(), shape);
        for (int64_t l = 0; l < kLanes; ++l)
          std::memcpy(t.data<char>() + l * lanes[l][i].bytes(), lanes[l][i].raw(), lanes[l][i].bytes());
        stacked.push_back(t);
      }
      std::vector<Tensors> each;
      try {
        for (int64_t l = 0; l < kLanes; ++l) each.push_back(Eval(*fn, lanes[l]));
      } catch (const Error& error) {
        // assert: when a batch element fails, so does the whole.
        ASSERT_EQ(error.kind(), ErrorKind::kRuntime) << error.what();
        EXPECT_THROW(Eval(*vmapped.fn, stacked), Error) << Print(*vmapped.fn);
        continue;
      }
      const Tensors out = Eval(*vmapped.fn, stacked);
      for (int64_t l = 0; l < kLanes; ++l) {
        const Tensors& expected = each[l];
        for (size_t r = 0; r < expected.size(); ++r) {
          for (int64_t i = 0; i < expected[r].size(); ++i) {
            const std::complex<double> got = out[r].Get(l * expected[r].size() + i), want = expected[r].Get(i);
            const bool same = got == want || (std::isnan(got.real()) && std::isnan(want.real())) ||
                              std::abs(got - want) <= 1e-5 * (1 + std::abs(want));
            ASSERT_TRUE(same) << GetParam() << ": lane " << l << " result " << r << " element " << i << ": " << got
                              << ", expected " << want << "\n"
                              << Print(*fn) << "\nvmapped\n"
                              << Print(*vmapped.fn);
          }
        }
      }
    }
  }
}

// Values and tangents, each for two batch elements.
FnRef PushedOverLanes(const FnRef& fn) {
  Mask active, force;
  for (const Param& p : fn->params()) active.push_back(IsInexact(p.type.dtype));
  for (const Type& t : fn->ResultTypes()) force.push_back(IsInexact(t.dtype));
  const FnRef jvp = Jvp(fn, active, force).fn;
  return Batch(jvp, Mask(jvp->params().size(), true), Mask(jvp->results().size(), true), Dim(2)).fn;
}

// Each result alone, and all but each one; what transforms make of such an equation as well.
TEST_P(EveryPrim, ResultsDoNotNeedTheOthers) {
  std::mt19937 rng(5);
  bool fewer = false;
  auto expect_same = [&](const FnRef& whole, const FnRef& part, const Tensors& x) {
    const Tensors expected = Eval(*whole, x), got = Eval(*part, x);
    ASSERT_EQ(got.size(), expected.size());
    for (size_t i = 0; i < got.size(); ++i) {
      // A tape is a handle: two runs never have the same.
      EXPECT_TRUE(got[i].dtype() == DType::kTape || got[i].BitEquals(expected[i]))
          << "result " << i << " of\n"
          << Print(*whole) << "is not that of\n"
          << Print(*part);
    }
  };
  for (const auto& [fn, s] : programs()) {
    const Tensors x = DrawOperands(s, rng);
    const size_t n = fn->results().size();
    Tried("dce", *fn);
    for (size_t which = 0; which < 2 * n; ++which) {
      Builder b("part");
      Atoms params, results;
      for (const Param& p : fn->params()) params.push_back(b.Parameter(p.type));
      const Atoms all = b.Inline(*fn, params);
      for (size_t i = 0; i < n; ++i) {
        if ((i == which % n) == (which < n)) results.push_back(all[i]);
      }
      const FnRef whole = b.Build(results), part = EliminateDeadCode(whole);
      for (const Eqn& e : part->eqns()) fewer |= e.prim == &prim() && e.num_results < n;
      expect_same(whole, part, x);
      if (!prim().dce || HasFailure()) continue;
      const FnRef pushed = PushedOverLanes(part);
      Tensors lanes;
      for (size_t i = 0; i < pushed->params().size(); ++i) {
        Tensor t = Draw(pushed->params()[i].type, s.low, s.high, rng);
        for (const auto& [operand, value] : s.values) {
          if (static_cast<size_t>(operand) != i) continue;
          for (int64_t k = 0; k < t.size(); ++k) t.Set(k, value.Get(k % value.size()));
        }
        lanes.push_back(t);
      }
      expect_same(PushedOverLanes(whole), pushed, lanes);
    }
  }
  EXPECT_TRUE(fewer || !prim().dce || samples().empty()) << "no sample shows that its dce rule drops a result";
}

int NumDerivativeRules(const Prim& p) {
  return (p.jvp != nullptr) + (p.push != nullptr) + (p.partials != nullptr) + p.is_linear();
}

// Derivatives make it where a tape is read twice, which no gradient of the samples does.
TEST(Registry, SumsOfTapesHaveDerivatives) {
  const Type type{DType::kF64, {3}, {}};
  Builder b("sum");
  const Atom x = b.Parameter(type);
  const Prim& box = FindPrim("box");
  const Atoms boxes = {b.Emit(box, {Sin(b, x)})[0], b.Emit(box, {Mul(b, x, x)})[0]};
  const FnRef fn = b.Build(b.Emit(FindPrim("unbox"), b.Emit(FindPrim("tape_add"), boxes), {{"results", Types{type}}}));
  std::mt19937 rng(6);
  const Tensors in = {Draw(type, -1, 1, rng)};
  const Tensor out = Eval(*fn, in)[0];
  for (int i = 0; i < 3; ++i) {
    const double v = in[0].Get(i).real();
    EXPECT_EQ(out.Get(i).real(), std::sin(v) + v * v);
  }
  CheckJvpAndTranspose(fn, in, rng, "tape_add");
  CheckJvpAndTranspose(GradientOfSines(fn), in, rng, "tape_add gradient");
  Record("second", *fn);
}

std::vector<std::string> Names() {
  std::vector<std::string> names;
  for (const Prim* p : AllPrims()) names.push_back(p->name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(Registry, EveryPrim, testing::ValuesIn(Names()), [](const auto& info) { return info.param; });

// After everything: the laws above ran for every primitive.
class EveryLawRan : public testing::Environment {
 public:
  void TearDown() override {
    if (testing::GTEST_FLAG(filter) != "*") return;  // only meaningful when everything runs
    for (const char* law : {"infer", "text", "vmap", "dce"}) {
      for (const std::string& name : Names()) EXPECT_TRUE(Ran()[law].count(name)) << law << " did not run for " << name;
    }
    // Those without a rule have no derivative, and say so (EveryPrimitiveIsComplete). That of stop_gradient differs
    // from the quotient of differences by declaration; prims_test.cc has it.
    for (const char* law : {"jvp", "second"}) {
      for (const Prim* p : AllPrims()) {
        if (NumDerivativeRules(*p) == 0 || p->name == "stop_gradient") continue;
        EXPECT_TRUE(Ran()[law].count(p->name)) << law << " did not run for " << p->name;
      }
    }
  }
};
[[maybe_unused]] testing::Environment* const kEveryLawRan = testing::AddGlobalTestEnvironment(new EveryLawRan);

TEST(Registry, EveryPrimitiveIsComplete) {
  for (const Prim* p : AllPrims()) {
    EXPECT_TRUE(p->infer && p->eval && p->samples) << p->name << " lacks infer, eval or samples";
    EXPECT_FALSE(p->doc.empty()) << p->name;
    EXPECT_TRUE(p->batch || p->num_operands == 0) << p->name << " has no batching rule";
    EXPECT_TRUE(!p->is_linear() || p->transpose) << p->name << " is linear but has no transpose";
    bool inexact_result = false, has_regions = false;
    for (const Sample& s : p->samples()) {
      has_regions |= !s.regions.empty();
      for (const Type& t : AsFn(*p, s)->ResultTypes()) inexact_result |= IsInexact(t.dtype);
    }
    const int rules = NumDerivativeRules(*p);
    EXPECT_TRUE(!inexact_result || rules > 0 || !p->not_differentiable.empty()) << p->name << ": unknown derivative";
    EXPECT_TRUE(rules == 0 || p->not_differentiable.empty())
        << p->name << " has a rule and is declared not differentiable";
    EXPECT_FALSE(p->dce && !p->keeps_results.empty()) << p->name << " drops results, and says why it does not";
    EXPECT_TRUE(!has_regions || p->dce || !p->keeps_results.empty())
        << p->name << " has regions, but neither a dce rule nor a reason why all its results stay";
  }
}

}  // namespace
}  // namespace weft
