// custom_jvp, custom_vjp and custom_linear whose rules are functions of the host (ir/custom_rules.h).
//
// The rule is run for the types that its function was called with. A vmap that the equation has been through is noted
// on it, and done to what the rule gives: `through` has "vmap MASK AXIS" for each, MASK being the operands that were
// mapped and AXIS the name of the axis (or nothing), and `sizes` the sizes of the axes.
#ifndef WEFT_IR_PRIMS_CONTROL_CUSTOM_HOST_H_
#define WEFT_IR_PRIMS_CONTROL_CUSTOM_HOST_H_

#include <vector>

#include "ir/error.h"
#include "ir/prim.h"

namespace weft {

// A derivative with respect to a value that a function with rules captured (kDerivative). JAX takes such a value for
// one that escaped from the derivative's trace: in Python this is a DerivativeError and an UnexpectedTracerError.
class CapturedValueError : public Error {
 public:
  using Error::Error;
};

// Which types have tangents.
Mask Moving(const Types& types);
// Which operands have tangents: those of types that have, unless they are captured.
Mask Movable(const Types& operands, const Attrs& attrs);

inline bool HasHostRule(const Attrs& attrs) { return attrs.Find("rule") != nullptr; }
// The number, for Prim::host_functions.
Ints HostRuleOf(const Attrs& attrs);
// Raises kValue unless the attributes fit together; `results`: batched as often as `through` says.
void CheckHostRule(const Sig& s);
void CheckThrough(const Sig& s);  // the vmaps alone

// One vmap more, over `operands` of them.
Attrs WithVmap(const BatchContext& c, const Mask& batched);

// The attributes with so many operands more, at the end, that no vmap has mapped.
Attrs WithUnmappedOperands(const Eqn& eqn, size_t count);

void HostJvp(JvpContext& c);  // of custom_jvp
void HostVjp(JvpContext& c);  // of custom_vjp: its forward rule, and a custom_linear that names the backward rule

// The backward rule of a custom_linear with these operands: residuals, cotangents of the results in the mask ->
// cotangents of the operands behind the residuals.
FnRef HostBackward(const Eqn& eqn, const Types& operands, const Mask& cotangents, const RegionRules& regions);

// The transpose rule (attribute `transpose`) of an equation with these operands: those that are not linear, cotangents
// of the results -> cotangents of those in `linear`.
FnRef HostTranspose(const Eqn& eqn, const Types& operands, const Mask& linear, const RegionRules& regions);

// What the host rules of a custom_jvp or custom_vjp give for tangents and cotangents of everything: the regions that
// such an equation has beside that of the function in a program that leaves the process.
std::vector<FnRef> HostRuleRegions(const Eqn& eqn, const Types& operands, const RegionRules& regions);

// The last operands are what the function captured. Raises CapturedValueError if one that has a tangent is
// used by `fn`.
void CheckCaptured(const Eqn& eqn, const OptionalAtoms& dx, const Fn& fn);

}  // namespace weft
#endif  // WEFT_IR_PRIMS_CONTROL_CUSTOM_HOST_H_
