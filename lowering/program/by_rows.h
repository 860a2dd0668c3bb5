// Steps by rows. A product, and the kernels and products after it that take the rows of its result one by one (a bias,
// an activation, `0.3 * c`, the next layer), run on some rows after the other, and on any thread. What comes after a
// product finds the rows in the cache of its own thread, and no thread waits for the others between two steps.
#ifndef WEFT_LOWERING_PROGRAM_BY_ROWS_H_
#define WEFT_LOWERING_PROGRAM_BY_ROWS_H_

#include "lowering/kernel/target.h"
#include "lowering/program/program.h"

namespace weft {

// Puts such steps into steps kByRows. Steps between them that touch nothing of theirs move before or after them.
// Rows are those of a product's result as it lies in memory, or the products of a stack (lowering/abi/product_form.h).
// Results are the same to the last bit, but for products of f64 and complex numbers that threads share. What takes less
// than `least_nanoseconds` in all stays as it is. Comes before JoinLaunches.
void JoinByRows(Program* program, const Target& target, double least_nanoseconds = kWorthAThread);

}  // namespace weft
#endif  // WEFT_LOWERING_PROGRAM_BY_ROWS_H_
