// Operations that programs and plugins add to the registry, and what tells caches of compiled programs that something
// was added.
//
//   Prim p;
//   p.name = "softsign";                                       // x / (1 + |x|)
//   p.family = Family::kElementwise;
//   p.num_operands = 1;
//   RegisterPrimitive(std::move(p), [](Builder& b, const Atoms& x, const Attrs&) -> Atoms {
//     const Expr v{&b, x[0]};
//     return {v / (Abs(v) + 1.0)};
//   });
#ifndef WEFT_IR_EXTENSIONS_H_
#define WEFT_IR_EXTENSIONS_H_

#include <functional>
#include <string>

#include "ir/prim.h"

namespace weft {

// What an operation computes, in other operations, which it emits into `b`. Operands that are literals are literals
// here, too.
using ExpansionFn = std::function<Atoms(Builder& b, const Atoms& operands, const Attrs& attrs)>;

// Adds an operation without regions. Whether it is element-wise is seen from its expansion. It stays one operation
// until it is compiled; then its expansion takes its place. Rules that `prim` has not follow from the expansion: its
// type rule, its meaning, its derivative (which is none of the operation's own: the expansion is differentiated) and
// its batching. Raises kValue for a name that is taken or no word, and for an operation that cannot be one.
const Prim& RegisterPrimitive(Prim prim, ExpansionFn expansion);

bool PrimitivesWereAdded();

// Of an operation that was added; null for those of the tree.
const ExpansionFn* ExpansionOf(const Prim& prim);

// The expansion of an equation as a function of those operands that are variables, which are `args`. No operation that
// was added is left outside of regions. Raises kType where it has not the types that the type rule says, and kValue
// where it expands into itself.
struct ExpandedEqn {
  FnRef fn;
  Atoms args;
  std::vector<size_t> operand;  // of each of them, which it is
};
ExpandedEqn ExpandedOf(const Builder& b, const Eqn& e, const Atoms& operands);

// Notes that something was added which changes what programs compile to. Whoever adds a rule or a primitive does.
void NoteExtension(const std::string& what);
// All that was noted, for keys of caches: empty where nothing was.
std::string ExtensionsKey();

}  // namespace weft
#endif  // WEFT_IR_EXTENSIONS_H_
