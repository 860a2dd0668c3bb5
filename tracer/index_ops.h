// NumPy indexing, reading and functional updating: x[entries], x.at[entries].set(v).
//
//   Value row = GetItem(x, {Index::Int(3)});
//   Value y = UpdateItem(x, {Index::Array(rows)}, v, Update::kAdd);
//
// Entries consume dimensions from the left. Integers and arrays of integers index, negative ones from the end; a
// boolean mask must have a known value and stands for the positions where it is true; a single boolean is a new
// dimension of size 1 or 0. Array entries broadcast together and their joint dimensions stand where the first of them
// stood, or in front when a slice separates them (NumPy's rule). Out of bounds: a known integer raises kIndex; an array
// entry reads the nearest element and its update is dropped, as in JAX, unless `mode` says otherwise. The derivative of
// what is read belongs to the element that the index names: with "promise" to none beyond the end, with "clip" to the
// nearest.
#ifndef WEFT_TRACER_INDEX_OPS_H_
#define WEFT_TRACER_INDEX_OPS_H_

#include <string>
#include <vector>

#include "tracer/site.h"

namespace weft {

struct Index {
  enum class Kind : uint8_t { kInt, kSlice, kNewAxis, kEllipsis, kArray, kBool } kind = Kind::kInt;
  std::optional<int64_t> start, stop, step;  // kSlice; kInt: start
  Value array;                               // kArray: integers or booleans; kBool: [0] or []

  static Index Int(int64_t i) { return {Kind::kInt, i, {}, {}, {}}; }
  static Index Slice(std::optional<int64_t> start, std::optional<int64_t> stop, std::optional<int64_t> step) {
    return {Kind::kSlice, start, stop, step, {}};
  }
  static Index NewAxis() { return {Kind::kNewAxis, {}, {}, {}, {}}; }
  static Index Ellipsis() { return {Kind::kEllipsis, {}, {}, {}, {}}; }
  static Index Boolean(bool chosen) {
    return {
        Kind::kBool, {}, {}, {}, Value(Tensor::FromVector<int32_t>({chosen ? 1 : 0}, std::vector<int32_t>(chosen)))};
  }
  static Index Array(Value v) { return {Kind::kArray, {}, {}, {}, std::move(v)}; }
};
using Indices = std::vector<Index>;

// `mode` of array entries when reading: "clip", "fill" (NaN or the dtype's smallest number), "promise"; when updating:
// "clip", "drop", "promise".
Value GetItem(const Operand& x, const Indices& entries, const std::string& mode = "promise");
enum class Update : uint8_t { kSet, kAdd, kMul, kMin, kMax };
Value UpdateItem(const Operand& x, const Indices& entries, const Operand& value, Update update,
                 const std::string& mode = "drop");

// take(x, indices, axis), take_along_axis(x, indices, axis).
Value Take(const Operand& x, const Value& indices, int64_t axis, const std::string& mode);
Value TakeAlongAxis(const Operand& x, const Value& indices, int64_t axis);
// The positions where a known mask is true: one array per dimension.
Values NonZero(const Value& mask);

}  // namespace weft
#endif  // WEFT_TRACER_INDEX_OPS_H_
