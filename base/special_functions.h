// Special functions that the C library lacks, in double precision: for the reference interpreter and for compiled code.
#ifndef WEFT_BASE_SPECIAL_FUNCTIONS_H_
#define WEFT_BASE_SPECIAL_FUNCTIONS_H_

namespace weft {

double LogGamma(double x);  // log |Gamma(x)|; unlike std::lgamma without a global for the sign
// psi(x) = d/dx log Gamma(x). Recurrence up to x >= 10, then the asymptotic series (Abramowitz & Stegun 6.3.18);
// reflection 6.3.7 for x < 0. NaN at the poles 0, -1, -2, ...
double Digamma(double x);
// psi'(x), the second derivative of log Gamma: the same method (A&S 6.4.12, 6.4.7).
double Trigamma(double x);
// The inverse of erf on (-1, 1); +-inf at +-1, NaN outside. Giles, "Approximating the erfinv function" (2010), then
// Newton steps. `single`: x is a float, whose digits one step gives.
double ErfInv(double x, bool single = false);

}  // namespace weft
#endif  // WEFT_BASE_SPECIAL_FUNCTIONS_H_
