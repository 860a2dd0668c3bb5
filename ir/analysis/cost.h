// What a program costs: floating-point operations and bytes read and written, counted on its equations. The measure by
// which transforms choose (a select or blocks of taken batch elements) and benchmarks compare a gradient with its
// function.
//
//   Cost c = CostOf(*fn);
//   double per_element = c.flops / 1e6;
//
// An equation by itself reads its array operands and writes its results. In a function element-wise work is taken as
// fused: what is made and read by element-wise equations only never reaches memory, and what several of them read is
// read once. Views (reshape, stop_gradient) and numbers cost nothing; indexing counts what it touches, not the array it
// indexes.
#ifndef WEFT_IR_ANALYSIS_COST_H_
#define WEFT_IR_ANALYSIS_COST_H_

#include "ir/fn.h"

namespace weft {

struct Cost {
  double flops = 0;
  double bytes = 0;
  double equations = 0;  // that are run, those of a loop as often as it runs; of branches the most
  Cost& operator+=(const Cost& other) {
    flops += other.flops;
    bytes += other.bytes;
    equations += other.equations;
    return *this;
  }
  Cost operator*(double times) const { return {flops * times, bytes * times, equations * times}; }
  double total() const { return flops + bytes; }
};

struct CostOptions {
  double symbol = 64;  // the size taken for a symbolic dimension
  double trips = 1;    // the trips taken for a loop that is not counted
};

// How often the regions of an equation run.
double TripsOf(const Eqn& eqn, const CostOptions& options = {});
// Of an array of this type.
double BytesPerArray(const Type& type, const CostOptions& options = {});
// Of one equation of `fn`. A scan counts its body times its length, a while its condition and body times the assumed
// trips, a cond its most expensive branch, an operation of custom derivative its primal region, an enclosing recursive
// function once.
Cost CostOf(const Fn& fn, const Eqn& eqn, const CostOptions& options = {});
// The same of an equation that has regions, which say it all.
Cost CostOfRegions(const Eqn& eqn, const CostOptions& options = {});
// Its operations alone.
double FlopsOf(const Fn& fn, const Eqn& eqn, const CostOptions& options = {});
Cost CostOf(const Fn& fn, const CostOptions& options = {});

}  // namespace weft
#endif  // WEFT_IR_ANALYSIS_COST_H_
