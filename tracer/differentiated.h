// Which values carry a derivative: those computed from what grad, jvp and the like differentiate.
//
// While a function is differentiated outside jit its numbers are known, and Python may ask for them. What Python
// computes from them is a constant of the program. That is right for a choice (`if x > 0`); a library that takes a
// whole array, such as NumPy, would drop the derivative without a word.
//
// Like the stack of traces this belongs to the thread.
#ifndef WEFT_TRACER_DIFFERENTIATED_H_
#define WEFT_TRACER_DIFFERENTIATED_H_

#include <string>

#include "tracer/value.h"

namespace weft {

// A parameter of an open trace is differentiated by who traces; or it stands for `value`, given by the caller or
// captured.
void SetDifferentiated(const Trace& trace, Var parameter);
void SetSource(const Trace& trace, Var parameter, const Value& value);
// What was said of a trace, which ends.
void ForgetSources(const Trace& trace);

// Whether a derivative goes through a value of an open trace. stop_gradient, integers and booleans end it.
bool CarriesDerivative(const Value& value);

// The array behind a value, as tracer/trace.h's Demand, for somebody who computes with it. Raises kTracer where that
// would lose a derivative.
Tensor DemandArray(const Value& value, const std::string& why);

}  // namespace weft
#endif  // WEFT_TRACER_DIFFERENTIATED_H_
