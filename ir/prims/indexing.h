// The dimension lists of gather and scatter, as values.
#ifndef WEFT_IR_PRIMS_INDEXING_H_
#define WEFT_IR_PRIMS_INDEXING_H_

#include <functional>
#include <string>

#include "ir/attr.h"
#include "ir/tensor.h"

namespace weft {

struct ScatterDims;

struct GatherDims {
  Ints offset_dims, collapsed_dims, operand_batch_dims, indices_batch_dims, start_index_map;
  Ints slice_sizes;  // -1: all of the dimension
  std::string mode;
  static GatherDims Of(const Attrs& attrs);
  Attrs ToAttrs() const;
  // The scatter that writes where this reads.
  ScatterDims AsScatter() const;
  // slice_sizes with -1 resolved.
  Ints SizesFor(const Shape& operand) const;
};

struct ScatterDims {
  Ints update_window_dims, inserted_dims, operand_batch_dims, indices_batch_dims, scatter_dims;
  std::string mode;
  bool unique = false;  // the caller's promise that no position is written twice
  static ScatterDims Of(const Attrs& attrs);
  Attrs ToAttrs() const;
  // The gather that reads where this writes; dropped windows read as 0.
  GatherDims AsGather(const Dims& operand, const Dims& updates) const;
};

// Where an element of a gather's result (or a scatter's updates) lies in the operand.
struct WindowMap {
  Ints window_positions;  // element dimensions that walk inside the window
  Ints collapsed, operand_batch, indices_batch, index_map;
  Ints window_sizes;  // per operand dimension
};

// Calls visit(element, offset in the operand) for every element; offset -1 where the window is out of bounds.
void ForEachWindow(const WindowMap& map, const Tensor& indices, const Shape& elements, const Shape& operand, bool clip,
                   const std::function<void(const Shape& element, int64_t operand_offset)>& visit);

bool Contains(const Ints& list, int64_t value);

}  // namespace weft
#endif  // WEFT_IR_PRIMS_INDEXING_H_
