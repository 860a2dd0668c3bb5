// Tapes as the loop primitives and the reference interpreter see them.
#ifndef WEFT_IR_PRIMS_CONTROL_TAPES_H_
#define WEFT_IR_PRIMS_CONTROL_TAPES_H_

#include <memory>
#include <string>

#include "base/tape.h"
#include "ir/attr.h"
#include "ir/tensor.h"

namespace weft {

// The type of tapes of rows of type `row`, whose first `tape_dims` dimensions have a tape each.
Type TapeOf(const Type& row, int64_t tape_dims);
// Raises kType unless `tape_dims` has an entry per row type that fits it.
void CheckTapeDims(const std::string& prim, const Ints& tape_dims, const Types& rows);

// Writes the rows of one result of a loop. Rows come in any order; between `EvalTapes` scopes only.
class TapeWriter {
 public:
  TapeWriter(const Type& row, int64_t tape_dims, int64_t reserve);
  void Write(int64_t i, const Tensor& row);
  const Tensor& tape() const { return tape_; }

 private:
  Tensor tape_;
  TapeRecords* records_;
};
// Row `i` of tapes of rows of static type `row`.
Tensor ReadTape(const Tensor& tape, const Type& row, int64_t i);

// Where the interpreter's tapes live. The outermost scope of a thread makes the region; its results keep it alive.
class EvalTapes {
 public:
  EvalTapes();
  ~EvalTapes();
  EvalTapes(const EvalTapes&) = delete;
  static TapeRegion& Region();
  // Makes tapes among `results` owners of what they refer to: this region and that of tapes among `args`.
  void Keep(Tensors& results, const Tensors& args) const;

 private:
  std::shared_ptr<TapeRegion> region_;  // nullptr in an inner scope
};

}  // namespace weft
#endif  // WEFT_IR_PRIMS_CONTROL_TAPES_H_
