// Which attributes a primitive has. Type rules read those that they need and would overlook a misspelt optional one.
#ifndef WEFT_IR_TEXT_ATTRIBUTE_NAMES_H_
#define WEFT_IR_TEXT_ATTRIBUTE_NAMES_H_

#include <set>
#include <string>

#include "ir/prim.h"

namespace weft {

// The names that occur in the primitive's samples, which use every attribute there is.
const std::set<std::string>& AttributeNames(const Prim& prim);

// Raises kValue naming an attribute of `attrs` that `prim` does not have, and those that it has.
void CheckAttributeNames(const Prim& prim, const Attrs& attrs);

}  // namespace weft
#endif  // WEFT_IR_TEXT_ATTRIBUTE_NAMES_H_
