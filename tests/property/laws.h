// What a transform of a function has to satisfy, checked against the reference interpreter on the function before it.
#ifndef WEFT_TESTS_PROPERTY_LAWS_H_
#define WEFT_TESTS_PROPERTY_LAWS_H_

#include <random>
#include <string>
#include <vector>

#include "ir/fn.h"

namespace weft {

// What chains are made of: jvp, grad, jet, vmap, remat, optimize, text, bytes, compile.
const std::vector<std::string>& ChainLinks();

struct LawResult {
  FnRef transformed;
  std::string violation;  // empty: the law holds
};
// Applies `link` to f and checks its law on random arguments.
LawResult ApplyAndCheck(const std::string& link, const FnRef& f, std::mt19937& rng);

// A program and the transforms applied to it; the first violation found on the way, or "".
std::string CheckChain(const FnRef& f, const std::vector<std::string>& chain, unsigned seed);

// A smaller program for which the chain still fails: equations replaced by zeros, one after the other, as long as it
// does.
FnRef Shrink(const FnRef& f, const std::vector<std::string>& chain, unsigned seed);

}  // namespace weft
#endif  // WEFT_TESTS_PROPERTY_LAWS_H_
