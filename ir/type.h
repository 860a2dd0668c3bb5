// The type of a value: element type, dimensions, and the mesh axes over which it varies (empty outside meshes).
//
//   Type{DType::kF32, {8, 128}}.ToString() == "f32[8,128]"
#ifndef WEFT_IR_TYPE_H_
#define WEFT_IR_TYPE_H_

#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "base/dtype.h"
#include "base/large_pages.h"
#include "ir/dim.h"

namespace weft {

struct Type {
  DType dtype = DType::kF32;
  Dims dims;
  // Names of the mesh axes over which the per-device value differs, sorted. Collectives and `pvary` change it;
  // every other operation joins its operands' sets.
  std::vector<std::string> varying = {};

  int rank() const { return static_cast<int>(dims.size()); }
  Dim size() const { return NumElements(dims); }
  bool is_static() const { return IsStatic(dims); }
  // Bytes of a static type.
  int64_t Bytes() const { return size().value("a byte count") * ByteWidth(dtype); }

  Type With(Dims new_dims) const { return Type{dtype, std::move(new_dims), varying}; }
  Type With(DType new_dtype) const { return Type{new_dtype, dims, varying}; }

  std::string ToString() const;  // f32[8,128]   f32[8]{x,y} when varying over x and y
  static std::optional<Type> Parse(const std::string& text);

  friend bool operator==(const Type& a, const Type& b) {
    return a.dtype == b.dtype && a.dims == b.dims && a.varying == b.varying;
  }
  template <class H>
  friend H AbslHashValue(H h, const Type& t) {
    return H::combine(std::move(h), static_cast<int>(t.dtype), t.dims, t.varying);
  }
  friend std::ostream& operator<<(std::ostream& out, const Type& t) { return out << t.ToString(); }
};

using Types = LongList<Type>;

// The one copy of a type that variables of that type share. It lives until the process ends, as locations do: there are
// as many as different types. So equal types of variables are equal pointers, and a transform that copies an equation
// copies no type. Safe from several threads.
const Type* Intern(const Type& type);

std::string ToString(const Types& types);  // "f32[], i32[3]"

}  // namespace weft
#endif  // WEFT_IR_TYPE_H_
