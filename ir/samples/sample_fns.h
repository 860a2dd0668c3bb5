// Small functions for tests: one per sample of a primitive, and one that holds every kind of thing that text and bytes
// have to carry.
//
//   for (const Prim* prim : AllPrims()) for (const FnRef& f : SampleFns(*prim)) ...
#ifndef WEFT_IR_SAMPLES_SAMPLE_FNS_H_
#define WEFT_IR_SAMPLES_SAMPLE_FNS_H_

#include <set>
#include <string>
#include <vector>

#include "ir/fn.h"
#include "ir/prim.h"

namespace weft {

// fn(operands) { results = prim operands; return results }. Operands that the sample fixes, and that are small enough,
// are literals.
FnRef SampleFn(const Prim& prim, const Sample& sample);
std::vector<FnRef> SampleFns(const Prim& prim);

// A sample of a collective on the devices of a mesh: its operand and result have a leading dimension for each of the
// sample's axes, with one block per device. (One without operands takes a number and ignores it.)
FnRef OnDevices(const Prim& prim, const Sample& sample);

// The names of the primitives in a function and its regions.
std::set<std::string> PrimsOf(const Fn& fn);

// Symbolic sizes, constants, literals of every dtype with their odd values, mesh axes, locations, dead equations.
FnRef KitchenSinkFn();

}  // namespace weft
#endif  // WEFT_IR_SAMPLES_SAMPLE_FNS_H_
