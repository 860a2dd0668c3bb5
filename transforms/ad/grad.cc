#include "transforms/ad/grad.h"

#include <algorithm>
#include <unordered_set>

#include "ir/builder.h"
#include "ir/ops.h"
#include "ir/prim_table.h"
#include "transforms/ad/jvp.h"
#include "transforms/ad/split.h"
#include "transforms/ad/traced_rules.h"
#include "transforms/ad/transpose.h"
#include "transforms/opt/condense.h"
#include "transforms/opt/simplify.h"

namespace weft {
namespace {

// The results that are differentiated: the inexact ones of the first `count`.
Mask DifferentiatedResults(const Fn& fn, size_t count) {
  Mask mask;
  for (const Type& t : fn.ResultTypes()) mask.push_back(mask.size() < count && IsInexact(t.dtype));
  return mask;
}

// The jvp of fn whose tangents are those of the differentiated results, zero or not, and no others: a result that
// nothing is derived from would have a cotangent of 0 later, of which an infinite derivative makes a NaN.
FnRef JvpOf(const FnRef& fn, const Mask& active, const Mask& differentiated) {
  JvpFn jvp = Jvp(fn, active, differentiated);
  const Atoms& all = jvp.fn->results();
  auto tangent = all.begin() + static_cast<int64_t>(differentiated.size());
  Atoms kept(all.begin(), tangent);
  for (size_t i = 0; i < differentiated.size(); ++i) {
    if (!jvp.active_out[i]) continue;
    if (differentiated[i]) kept.push_back(*tangent);
    ++tangent;
  }
  if (kept.size() == all.size()) return std::move(jvp.fn);
  Builder b(std::move(jvp.fn));
  return std::move(b).Build(kept);
}

Atoms ParametersLike(Builder& b, const Fn& fn) {
  Atoms params;
  for (const Param& p : fn.params()) params.push_back(b.Parameter(p.type, p.name, p.kind));
  return params;
}

// Backward rules that only reverse mode can use. Those that a rule at the host brings are seen when it has been run.
bool HasReverseRule(const Eqn& e) {
  static const auto& have = *new PrimSet{"custom_vjp", "custom_linear"};
  return have.Has(*e.prim);
}

bool IsDerivative(const Eqn& e) {
  if (!e.loc) return false;
  const std::vector<std::string> through = e.loc.transforms();
  return std::any_of(through.begin(), through.end(),
                     [](const std::string& kind) { return kind == "jvp" || kind == "jet" || kind == "transpose"; });
}

// Whether forward mode gives these derivatives at less cost than reverse mode: of a function that is a derivative
// already, with respect to one number. (A first derivative stays in reverse mode: its tape, policy and custom backward
// rule are what the user asked for.)
bool PlanForward(const Fn& fn, const Mask& wrt) {
  // Forward mode would add up what all batch elements and devices contribute to this one's result, not the other way
  // round.
  if (!fn.FreeAxes().empty()) return false;
  int which = -1;
  for (size_t i = 0; i < wrt.size(); ++i) {
    if (!wrt[i]) continue;
    if (which >= 0) return false;
    which = static_cast<int>(i);
  }
  if (which < 0 || fn.params()[which].type.rank() != 0 || !IsFloat(fn.params()[which].type.dtype)) return false;
  const auto any_equation = [](const Fn& f, bool (*holds)(const Eqn&)) {
    return std::any_of(f.eqns().begin(), f.eqns().end(), holds);
  };
  if (AnyFunction(fn, [&](const Fn& f) { return any_equation(f, HasReverseRule); })) return false;
  // A function that the program calls is part of it.
  std::unordered_set<const Fn*> called;
  const std::function<bool(const Fn&)> derivative = [&](const Fn& f) {
    return called.insert(&f).second && std::any_of(f.eqns().begin(), f.eqns().end(), [&](const Eqn& e) {
             return IsDerivative(e) || (e.prim->region_use == RegionUse::kCall && derivative(*e.regions[0]));
           });
  };
  return derivative(fn);
}

// The same through the tangent of result 0 for a tangent of 1; `jvp` is that of `fn`.
FnRef GradForward(const FnRef& fn, const FnRef& jvp, const GradOptions& options) {
  const size_t num_results = fn->results().size();
  Builder b(fn->name());
  Atoms args = ParametersLike(b, *fn);
  for (size_t i = 0; i < options.wrt.size(); ++i) {
    if (options.wrt[i]) args.push_back(Full(b, fn->params()[i].type, 1));
  }
  const Atoms y = b.Inline(*jvp, args);
  Atoms out;
  if (options.value) out.push_back(y[0]);
  out.push_back(y[num_results]);
  out.insert(out.end(), y.begin() + 1, y.begin() + static_cast<int64_t>(num_results));
  return Condense(std::move(b).Build(out));
}

// Whether the results that are differentiated are real scalars.
bool RealScalars(const Fn& fn, const Mask& differentiated) {
  const Types results = fn.ResultTypes();
  for (size_t i = 0; i < results.size(); ++i) {
    if (differentiated[i] && !(IsFloat(results[i].dtype) && results[i].rank() == 0)) return false;
  }
  return true;
}

// Vjp of a function of one number by forward mode: the residuals are the derivatives of its results themselves.
Pullback VjpForward(const FnRef& fn, const FnRef& jvp, const Mask& active) {
  Builder forward(fn->name());
  Atoms args = ParametersLike(forward, *fn);
  const Type* x = nullptr;
  for (size_t i = 0; i < active.size(); ++i) {
    if (active[i]) x = &fn->params()[i].type;
  }
  args.push_back(Full(forward, *x, 1));
  Pullback pullback;
  const Atoms values = forward.Inline(*jvp, args);
  pullback.forward = Condense(std::move(forward).Build(values));

  const Types results = pullback.forward->ResultTypes();
  pullback.residuals.assign(results.begin() + static_cast<int64_t>(fn->results().size()), results.end());
  Builder backward(fn->name());
  Atoms slopes, terms;
  for (const Type& t : pullback.residuals) slopes.push_back(backward.Parameter(t));
  for (const Atom& slope : slopes) {
    const Atom cotangent = backward.Parameter(backward.TypeOf(slope));
    terms.push_back(Convert(backward, Mul(backward, cotangent, slope), x->dtype));
  }
  Atom sum = terms.empty() ? Full(backward, *x, 0) : terms[0];
  for (size_t i = 1; i < terms.size(); ++i) sum = Add(backward, sum, terms[i]);
  pullback.backward = Condense(std::move(backward).Build({sum}));
  return pullback;
}

// `jvp` is that of `fn`; all tangents of its results are linear.
Linearized LinearizeJvp(const Fn& fn, FnRef jvp) {
  jvp = Condense(std::move(jvp));
  const size_t num_params = fn.params().size(), num_results = fn.results().size();
  Mask unknown(jvp->params().size(), false), force(jvp->results().size(), false);
  std::fill(unknown.begin() + static_cast<int64_t>(num_params), unknown.end(), true);
  std::fill(force.begin() + static_cast<int64_t>(num_results), force.end(), true);
  SplitFn split = Split(std::move(jvp), unknown, force);
  if (std::any_of(split.unknown_out.begin(), split.unknown_out.begin() + static_cast<int64_t>(num_results),
                  [](bool unknown) { return unknown; })) {
    RaiseForMixedRule(fn);
  }
  for (size_t i = 0; i < num_results; ++i)
    WEFT_CHECK(!split.unknown_out[i]) << "linearize: result " << i << " depends on a tangent";
  return {split.known, split.unknown, split.residuals};
}

// Which parameters of the linear half are tangents.
Mask TangentsOf(const Linearized& l) {
  Mask linear(l.tangent->params().size(), true);
  std::fill(linear.begin(), linear.begin() + static_cast<int64_t>(l.residuals.size()), false);
  return linear;
}

}  // namespace

Linearized Linearize(const FnRef& given, const Mask& active, size_t num_differentiated) {
  const FnRef fn = Stabilize(given);
  return LinearizeJvp(*fn, JvpOf(fn, active, DifferentiatedResults(*fn, num_differentiated)));
}

Pullback Vjp(const FnRef& given, const Mask& active, VjpPlan plan, size_t num_differentiated) {
  const FnRef fn = Stabilize(given);
  const Mask differentiated = DifferentiatedResults(*fn, num_differentiated);
  const bool forward = plan == VjpPlan::kCheapest && PlanForward(*fn, active) && RealScalars(*fn, differentiated);
  FnRef jvp = JvpOf(fn, active, differentiated);
  if (forward && !NamesBackwardRules(*jvp)) return VjpForward(fn, jvp, active);
  const Linearized l = LinearizeJvp(*fn, std::move(jvp));
  return {l.primal, Condense(TransposeLinearHalf(l.tangent, TangentsOf(l))), l.residuals};
}

FnRef Grad(const FnRef& given, const GradOptions& options) {
  const FnRef fn = Stabilize(given);
  const Types results = fn->ResultTypes();
  if (results.empty() || (results.size() > 1 && !options.aux)) {
    throw TypeError("grad: ", fn->name(), " gives ", results.size(), " results; expected one real scalar",
                    options.aux ? " and auxiliary ones" : " (has_aux=True passes on further ones)");
  }
  const Type& y = results[0];
  if (y.rank() != 0)
    throw TypeError("grad: ", fn->name(), " gives ", y, "; the gradient is defined for a scalar result");
  if (options.holomorphic ? !IsComplex(y.dtype) : !IsFloat(y.dtype)) {
    throw TypeError("grad: ", fn->name(), " gives ", y, "; expected a ",
                    options.holomorphic ? "complex" : "real floating-point", " scalar",
                    IsComplex(y.dtype) ? " (holomorphic=True differentiates complex functions)" : "");
  }
  const bool forward_mode = !options.holomorphic && PlanForward(*fn, options.wrt);
  FnRef jvp = JvpOf(fn, options.wrt, DifferentiatedResults(*fn, 1));
  if (forward_mode && !NamesBackwardRules(*jvp)) return GradForward(fn, jvp, options);
  Linearized l = LinearizeJvp(*fn, std::move(jvp));
  const Atoms forward = l.primal->results();
  Builder b(std::move(l.primal));
  Atoms args(forward.begin() + static_cast<int64_t>(results.size()), forward.end());
  args.push_back(Full(b, y, 1));
  const Atoms grads = EmitTransposed(b, *l.tangent, TangentsOf(l), args);
  Atoms out;
  if (options.value) out.push_back(forward[0]);
  out.insert(out.end(), grads.begin(), grads.end());
  out.insert(out.end(), forward.begin() + 1, forward.begin() + static_cast<int64_t>(results.size()));
  return Condense(std::move(b).Build(out));
}

}  // namespace weft
