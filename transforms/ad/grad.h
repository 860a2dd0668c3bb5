// Reverse mode, by composition: linearize = split . jvp, vjp = transpose . linearize.
//
//   Linearized l = Linearize(f, {true, false});
//   // l.primal: (x, y) -> (z, residuals)    l.tangent: (residuals, dx) -> dz
//   Pullback v = Vjp(f, {true, false});
//   // v.forward: (x, y) -> (z, residuals)   v.backward: (residuals, ct z) -> ct x
//   FnRef g = Grad(f, {.wrt = {true, false}});
//   // (x, y) -> ct x, with ct z = 1
#ifndef WEFT_TRANSFORMS_AD_GRAD_H_
#define WEFT_TRANSFORMS_AD_GRAD_H_

#include <cstddef>
#include <limits>

#include "ir/fn.h"

namespace weft {

// Differentiated are the inexact ones of the first `num_differentiated` results. Further ones are auxiliary: the first
// half gives them, and the second does not know of them.
inline constexpr size_t kAllResults = std::numeric_limits<size_t>::max();

struct Linearized {
  FnRef primal;   // parameters of f -> results of f, residuals
  FnRef tangent;  // residuals, tangents of the active parameters -> tangents of the differentiated results
  Types residuals;
};
Linearized Linearize(const FnRef& fn, const Mask& active, size_t num_differentiated = kAllResults);

struct Pullback {
  FnRef forward;   // parameters of f -> results of f, residuals
  FnRef backward;  // residuals, cotangents of the differentiated results -> cotangents of the active parameters
  Types residuals;
};
// kCheapest: derivatives of functions of one number that are derivatives themselves are taken forward, and are what
// the forward half keeps. kReverse: the residuals are those of Linearize.
enum class VjpPlan { kCheapest, kReverse };
Pullback Vjp(const FnRef& fn, const Mask& active, VjpPlan plan = VjpPlan::kCheapest,
             size_t num_differentiated = kAllResults);

struct GradOptions {
  Mask wrt;                  // parameters to differentiate with respect to
  bool value = false;        // give the results of f first
  bool aux = false;          // f has further results, which are passed on: (value,) grads, aux
  bool holomorphic = false;  // f is complex and holomorphic
};
// The gradient of result 0, a real scalar. Raises kType when it is not one, naming what it is.
FnRef Grad(const FnRef& fn, const GradOptions& options);

}  // namespace weft
#endif  // WEFT_TRANSFORMS_AD_GRAD_H_
