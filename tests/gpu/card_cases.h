// What tests run under host emulation, kept for a machine with a card.
#ifndef WEFT_TESTS_GPU_CARD_CASES_H_
#define WEFT_TESTS_GPU_CARD_CASES_H_

#include "ir/fn.h"
#include "ir/tensor.h"

namespace weft {

// Where the environment variable WEFT_GPU_CASES names a folder that exists: writes the program for sm_90a, its
// arguments and the results of emulation there, as `weft-run selftest --gpu` reads them, with a line in cases.txt.
// Leaves out programs of more than 256 KiB of arrays.
void KeepForCard(const FnRef& fn, const Tensors& args, const Tensors& results);

}  // namespace weft
#endif  // WEFT_TESTS_GPU_CARD_CASES_H_
