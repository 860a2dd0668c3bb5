// weft.debug_nans and weft.debug_infs: which operation of a program gave a NaN or an infinity, and on which line of the
// user's.
#ifndef WEFT_PYTHON_NATIVE_NANS_H_
#define WEFT_PYTHON_NATIVE_NANS_H_

#include <functional>
#include <optional>
#include <vector>

#include "ir/fn.h"
#include "ir/tensor.h"

namespace weft::python {

// Whether this thread looks for NaNs or for infinities.
bool LooksForNans();

// Where a result holds one, runs the program once more, watching every equation, and raises Python's
// FloatingPointError, which names the first whose result does. Without `args` (their memory was given away) it
// names the result only. The interpreter lock is held.
void CheckNans(const FnRef& fn, const std::optional<Tensors>& args, const Tensors& results);

// The parts of it, for programs of which a process has a piece: which tensors hold one ...
std::vector<bool> HoldNans(const Tensors& tensors);
// ... and the error, unless no result does. `run` runs another function of the same arguments; `whole_arrays`: its
// results are whole arrays, by which the interpreter finds an operation inside a loop or a branch, not parts of them.
void RaiseForNans(const FnRef& fn, const std::optional<std::vector<bool>>& args, const std::vector<bool>& results,
                  const std::function<Tensors(const FnRef&)>& run, bool whole_arrays);

}  // namespace weft::python
#endif  // WEFT_PYTHON_NATIVE_NANS_H_
