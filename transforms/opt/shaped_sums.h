// Sums and means as programs have them: through changes of shape, and times a number.
#ifndef WEFT_TRANSFORMS_OPT_SHAPED_SUMS_H_
#define WEFT_TRANSFORMS_OPT_SHAPED_SUMS_H_

#include <cmath>
#include <optional>
#include <vector>

#include "ir/builder.h"

namespace weft {

// A value through changes of shape, innermost last.
struct Shaped {
  Atom inner;
  std::vector<Eqn> steps;
};
Shaped ThroughShapes(const Builder& b, Atom a);
// The same changes of another value of the inner one's shape.
Atom Again(Builder& b, const Shaped& s, Atom a);
// For each dimension of `a`, which `s` is, the inner value's dimension that it runs along; -1 where all elements along
// it are one. Nothing where dimensions were joined or cut.
std::optional<Ints> DimsBehind(const Builder& b, const Shaped& s, const Atom& a);

// A sum of floating-point numbers over dimensions; of sums, over the dimensions of all.
struct Sum {
  Atom of;
  Ints dims;
};
std::optional<Sum> SumOf(const Builder& b, const Atom& a);

// `of` times `factor`.
struct Scaled {
  Atom of;
  double factor;
};
// 1 where there is none.
Scaled WithoutFactor(const Builder& b, const Atom& a);
// A number is divided by as it was written: its reciprocal would be rounded.
Atom Times(Builder& b, const Atom& a, double factor);

inline bool Near(double x, double y) { return std::abs(x - y) <= 1e-6 * std::abs(y); }

}  // namespace weft
#endif  // WEFT_TRANSFORMS_OPT_SHAPED_SUMS_H_
