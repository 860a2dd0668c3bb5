// Taylor mode: the coefficients of a function along a curve, to any order at once.
//
//   jet : (a -> b)  =>  (a, a^order) -> (b, b^order)
//
//   JvpFn t = Jet(f, {true}, 3);   // f: x -> y      t.fn: (x, x1, x2, x3) -> (y, y1, y2, y3)
//
// with f(x + x1 s + x2 s^2 + x3 s^3) = y + y1 s + y2 s^2 + y3 s^3 + O(s^4). A coefficient is the derivative of that
// order divided by its factorial. Order 1 is jvp.
//
// Every operation has a Taylor rule, because every one has a derivative:
//   linear operations       coefficient by coefficient
//   multilinear operations  Cauchy products: y_k = sum over i of u_i v_(k-i)
//   all others              y' = J(x, y) x' is a differential equation for the coefficients, where J is the operation's
//                           own derivative rule: y_k is coefficient k-1 of the right side divided by k, and that one
//                           needs coefficients of y below k only. So exp gives y_k = 1/k sum of j x_j y_(k-j), sin and
//                           cos each other's, and a factorisation one solve per order. (Griewank & Walther, "Evaluating
//                           Derivatives", 2nd ed., chapter 13; Prim::taylor holds recurrences that are shorter.)
//   operations with regions their regions', with the coefficients as further carries and operands
// Raises kDerivative, with the user's line, for an operation whose derivative is not defined.
#ifndef WEFT_TRANSFORMS_AD_JET_H_
#define WEFT_TRANSFORMS_AD_JET_H_

#include "ir/fn.h"
#include "ir/prim.h"

namespace weft {

// Parameters: those of `fn`, then coefficients 1 ... order of each active one; results likewise, for the results in
// `active_out`: those that depend on an active parameter, and inexact ones in `force_active`.
JvpFn Jet(const FnRef& fn, const Mask& active, int order, const Mask& force_active = {});

}  // namespace weft
#endif  // WEFT_TRANSFORMS_AD_JET_H_
