// The explicit list of primitive families; ir/prims/all.cc calls each once.
#ifndef WEFT_IR_PRIMS_FAMILIES_H_
#define WEFT_IR_PRIMS_FAMILIES_H_

#include "ir/prim.h"

namespace weft {

void RegisterElementwiseUnary(PrimRegistry& r);
void RegisterElementwiseBinary(PrimRegistry& r);
void RegisterConversions(PrimRegistry& r);
void RegisterShape(PrimRegistry& r);
void RegisterReductions(PrimRegistry& r);
void RegisterContraction(PrimRegistry& r);
void RegisterIndexing(PrimRegistry& r);
void RegisterDynamicSlices(PrimRegistry& r);  // of RegisterIndexing
void RegisterControl(PrimRegistry& r);
void RegisterCustom(PrimRegistry& r);
void RegisterCustomBatching(PrimRegistry& r);
void RegisterCustomPrimitive(PrimRegistry& r);
void RegisterLinearSolve(PrimRegistry& r);
void RegisterScan(PrimRegistry& r);
void RegisterSnapshotScan(PrimRegistry& r);
void RegisterWhile(PrimRegistry& r);
void RegisterTapes(PrimRegistry& r);
void RegisterRecursion(PrimRegistry& r);
void RegisterFft(PrimRegistry& r);
void RegisterLinalg(PrimRegistry& r);
void RegisterConvolution(PrimRegistry& r);
void RegisterWindow(PrimRegistry& r);
void RegisterSorting(PrimRegistry& r);
void RegisterRandom(PrimRegistry& r);
void RegisterEffects(PrimRegistry& r);
void RegisterMemory(PrimRegistry& r);
void RegisterCumulative(PrimRegistry& r);
void RegisterCollectives(PrimRegistry& r);
void RegisterSpmd(PrimRegistry& r);
void RegisterShardingConstraint(PrimRegistry& r);

// One more, after the registry was built. Raises kValue where there is one of that name.
const Prim& AddPrim(Prim prim);

}  // namespace weft
#endif  // WEFT_IR_PRIMS_FAMILIES_H_
