// Elements at indices of any form: functions and views after the gather rather than before it.
#ifndef WEFT_TRANSFORMS_OPT_GATHERED_ELEMENTS_H_
#define WEFT_TRANSFORMS_OPT_GATHERED_ELEMENTS_H_

#include <optional>

#include "ir/builder.h"
#include "ir/fn.h"

namespace weft {

// f(x)[i, j] = f(x[i, j]) of what is computed element by element, and x.T[i, j] = x[j, i], broadcast(x)[i, j] = x[j]
// where elements are taken one by one. `e` is a gather of x[0] at x[1]; nothing where most elements are read.
std::optional<Atom> ElementsOfValue(Builder& b, const Eqn& e, const Atoms& x);

}  // namespace weft
#endif  // WEFT_TRANSFORMS_OPT_GATHERED_ELEMENTS_H_
