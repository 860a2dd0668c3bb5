// weft.debug_nans: which operation of a program gave a NaN, and on which line of the user's.
#ifndef WEFT_PYTHON_NANS_H_
#define WEFT_PYTHON_NANS_H_

#include <optional>

#include "ir/fn.h"
#include "ir/tensor.h"

namespace weft::python {

extern bool g_debug_nans;

// Where a result holds a NaN, runs the program once more, watching every equation, and raises Python's
// FloatingPointError, which names the first whose result holds one. Without `args` (their memory was given away) it
// names the result only. The interpreter lock is held.
void CheckNans(const FnRef& fn, const std::optional<Tensors>& args, const Tensors& results);

}  // namespace weft::python
#endif  // WEFT_PYTHON_NANS_H_
