// Special functions that the C library lacks, in double precision.
#ifndef WEFT_BACKENDS_CPU_OPS_SPECIAL_FUNCTIONS_H_
#define WEFT_BACKENDS_CPU_OPS_SPECIAL_FUNCTIONS_H_

namespace weft::cpu {

double LogGamma(double x);  // log |Gamma(x)|; unlike std::lgamma without a global for the sign
double Digamma(double x);   // recurrence up to 10, asymptotic series, reflection
double Trigamma(double x);
// `single`: x is a float, whose digits one step gives.
double ErfInv(double x, bool single);  // a polynomial start (Giles 2010), then Newton steps

}  // namespace weft::cpu
#endif  // WEFT_BACKENDS_CPU_OPS_SPECIAL_FUNCTIONS_H_
