// The functions that rows of op_table.cc point to; each is defined where its like is.
#ifndef WEFT_LOWERING_OPS_OP_ROWS_H_
#define WEFT_LOWERING_OPS_OP_ROWS_H_

#include <vector>

#include "lowering/ops/op_table.h"

namespace weft {

// views.cc: the index of operand 0 for an index of the result.
namespace views {
std::vector<Affine> Broadcast(const Fn& fn, const Eqn& e, const std::vector<Affine>& index);
std::vector<Affine> Transpose(const Fn& fn, const Eqn& e, const std::vector<Affine>& index);
std::vector<Affine> Slice(const Fn& fn, const Eqn& e, const std::vector<Affine>& index);
std::vector<Affine> Reverse(const Fn& fn, const Eqn& e, const std::vector<Affine>& index);
std::vector<Affine> Reshape(const Fn& fn, const Eqn& e, const std::vector<Affine>& index);
}  // namespace views

// without_calls.cc: the results, as other equations; regions have been expanded.
namespace replace {
Atoms Operands(Builder& b, const Fn& fn, const Eqn& e, const Atoms& operands);
const FnRef& LinearRegion(const Eqn& e);
Atoms SnapshotScan(Builder& b, const Fn& fn, const Eqn& e, const Atoms& operands);
Atoms Allocation(Builder& b, const Fn& fn, const Eqn& e, const Atoms& operands);
Atoms Nothing(Builder& b, const Fn& fn, const Eqn& e, const Atoms& operands);
Atoms Threefry2x32(Builder& b, const Fn& fn, const Eqn& e, const Atoms& operands);
}  // namespace replace

// library_ops.cc: calls of the runtime. `kind` tells apart what shares an opcode, as lowering/abi/steps.h numbers them.
namespace library {
void ArgReduction(BlockLowering::LibraryCall& call, int kind);
void Cumulative(BlockLowering::LibraryCall& call, int kind);
void Scatter(BlockLowering::LibraryCall& call, int kind);
void Sort(BlockLowering::LibraryCall& call, int);
void TopK(BlockLowering::LibraryCall& call, int);
void ReduceWindow(BlockLowering::LibraryCall& call, int kind);
void Convolution(BlockLowering::LibraryCall& call, int);
void DebugPrint(BlockLowering::LibraryCall& call, int);
void Assert(BlockLowering::LibraryCall& call, int);
void Callback(BlockLowering::LibraryCall& call, int);
void Cholesky(BlockLowering::LibraryCall& call, int);
void Lu(BlockLowering::LibraryCall& call, int);
void Qr(BlockLowering::LibraryCall& call, int);
void Eigh(BlockLowering::LibraryCall& call, int);
void Eig(BlockLowering::LibraryCall& call, int);
void Svd(BlockLowering::LibraryCall& call, int);
void TriangularSolve(BlockLowering::LibraryCall& call, int);
void Fft(BlockLowering::LibraryCall& call, int);
}  // namespace library

}  // namespace weft
#endif  // WEFT_LOWERING_OPS_OP_ROWS_H_
