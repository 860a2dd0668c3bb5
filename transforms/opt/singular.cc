#include "transforms/opt/singular.h"

#include "ir/prim_table.h"

namespace weft {

const Singular& SingularOf(const Eqn& e) {
  using enum Singular::At;
  static const auto& table = *new PrimTable<Singular>{
      {"log", {kNumbers, 0, 1}},
      {"log1p", {kNumbers, 0, 0}},
      {"log2", {kNumbers, 0, 1}},
      {"log10", {kNumbers, 0, 1}},
      {"log_product", {kNumbers, 0, 1, 2}},
      {"log_quotient", {kNumbers, 0, 1, 2}},
      {"sqrt", {kNumbers, 0, 1}},
      {"rsqrt", {kNumbers, 0, 1}},
      {"cbrt", {kNumbers, 0, 1}},
      {"div", {kNumbers, 1, 1}},
      {"rem", {kNumbers, 1, 1}},
      {"pow", {kNumbers, 0, 1, 2}},
      {"atan2", {kNumbers, 0, 1, 2}},
      {"integer_pow", {kNumbers, 0, 1}},
      {"asin", {kNumbers, 0, 0}},
      {"acos", {kNumbers, 0, 0}},
      {"atanh", {kNumbers, 0, 0}},
      {"acosh", {kNumbers, 0, 2}},
      {"erf_inv", {kNumbers, 0, 0}},
      {"lgamma", {kNumbers, 0, 1}},
      {"digamma", {kNumbers, 0, 1}},
      {"trigamma", {kNumbers, 0, 1}},
      {"exp", {kOverflow, 0, 0}},
      {"exp2", {kOverflow, 0, 0}},
      {"expm1", {kOverflow, 0, 0}},
      {"sinh", {kOverflow, 0, 0}},
      {"cosh", {kOverflow, 0, 0}},
      {"tan", {kOverflow, 0, 0}},
  };
  static const Singular nowhere, overflow{kOverflow, 0, 1};
  static const Prim& integer_pow = FindPrim("integer_pow");
  if (e.prim != &integer_pow || e.attrs.GetInt("y") < 0) return table[*e.prim];
  return e.attrs.GetInt("y") > 2 ? overflow : nowhere;  // x * x overflows together with what it is multiplied by
}

}  // namespace weft
