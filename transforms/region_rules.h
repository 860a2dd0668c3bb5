// The transforms as rules of primitives see them: applied to regions.
#ifndef WEFT_TRANSFORMS_REGION_RULES_H_
#define WEFT_TRANSFORMS_REGION_RULES_H_

#include "ir/prim.h"

namespace weft {

const RegionRules& Regions();
// The same under a vmap whose axis has that name.
RegionRules RegionsOver(const std::string& axis);

}  // namespace weft
#endif  // WEFT_TRANSFORMS_REGION_RULES_H_
