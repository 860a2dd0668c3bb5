// Special functions that the C++ library lacks, in double precision, for the reference interpreter.
#ifndef WEFT_IR_PRIMS_SPECIAL_H_
#define WEFT_IR_PRIMS_SPECIAL_H_

namespace weft {

// psi(x) = d/dx log Gamma(x). Recurrence up to x >= 10, then the asymptotic series (Abramowitz & Stegun 6.3.18);
// reflection 6.3.7 for x < 0. NaN at the poles 0, -1, -2, ...
double DigammaValue(double x);
// psi'(x), the second derivative of log Gamma: the same method (A&S 6.4.12, 6.4.7).
double TrigammaValue(double x);
// The inverse of erf on (-1, 1); +-inf at +-1, NaN outside. Giles, "Approximating the erfinv function" (2010), then two
// Newton steps.
double ErfInvValue(double x);

}  // namespace weft
#endif  // WEFT_IR_PRIMS_SPECIAL_H_
