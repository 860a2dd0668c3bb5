#include "transforms/grad.h"

#include <algorithm>

#include "ir/builder.h"
#include "ir/ops.h"
#include "transforms/jvp.h"
#include "transforms/split.h"
#include "transforms/transpose.h"

namespace weft {
namespace {

Mask InexactResults(const Fn& fn) {
  Mask mask;
  for (const Type& t : fn.ResultTypes()) mask.push_back(IsInexact(t.dtype));
  return mask;
}

Atoms ParametersLike(Builder& b, const Fn& fn) {
  Atoms params;
  for (const Param& p : fn.params()) params.push_back(b.Parameter(p.type, p.name, p.kind));
  return params;
}

}  // namespace

Linearized Linearize(const FnRef& fn, const Mask& active) {
  const JvpFn jvp = Jvp(fn, active, InexactResults(*fn));
  const size_t num_params = fn->params().size(), num_results = fn->results().size();
  Mask unknown(jvp.fn->params().size(), false), force(jvp.fn->results().size(), false);
  std::fill(unknown.begin() + static_cast<int64_t>(num_params), unknown.end(), true);
  std::fill(force.begin() + static_cast<int64_t>(num_results), force.end(), true);
  SplitFn split = Split(jvp.fn, unknown, force);
  for (size_t i = 0; i < num_results; ++i)
    WEFT_CHECK(!split.unknown_out[i]) << "linearize: result " << i << " depends on a tangent";
  return {split.known, split.unknown, split.residuals};
}

Pullback Vjp(const FnRef& fn, const Mask& active) {
  const Linearized l = Linearize(fn, active);
  Mask linear(l.tangent->params().size(), true);
  std::fill(linear.begin(), linear.begin() + static_cast<int64_t>(l.residuals.size()), false);
  return {l.primal, TransposeLinearHalf(l.tangent, linear), l.residuals};
}

FnRef Grad(const FnRef& fn, const GradOptions& options) {
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
  const Pullback pullback = Vjp(fn, options.wrt);
  Builder b(fn->name());
  const Atoms forward = b.Inline(*pullback.forward, ParametersLike(b, *fn));
  Atoms args(forward.begin() + static_cast<int64_t>(results.size()), forward.end());
  for (size_t i = 0; i < results.size(); ++i) {
    if (IsInexact(results[i].dtype)) args.push_back(Full(b, results[i], i == 0 ? 1 : 0));
  }
  const Atoms grads = b.Inline(*pullback.backward, args);
  Atoms out;
  if (options.value) out.push_back(forward[0]);
  out.insert(out.end(), grads.begin(), grads.end());
  out.insert(out.end(), forward.begin() + 1, forward.begin() + static_cast<int64_t>(results.size()));
  return b.Build(out);
}

}  // namespace weft
