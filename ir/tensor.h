// A dense row-major array in host memory: literals, the reference interpreter, arguments and results of compiled code.
//
//   Tensor t = Tensor::FromVector<float>({2, 2}, {1, 2, 3, 4});
//   t.at<float>(3)                         // 4
//
// Copies share the buffer and the shape. A tensor is written only by whoever just made it; afterwards it is a value.
#ifndef WEFT_IR_TENSOR_H_
#define WEFT_IR_TENSOR_H_

#include <complex>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "ir/error.h"
#include "ir/type.h"

namespace weft {

using Shape = std::vector<int64_t>;

// A shape that any number of tensors have.
struct SharedShape {
  explicit SharedShape(std::shared_ptr<const Shape> s) : shape(std::move(s)) {}
  std::shared_ptr<const Shape> shape;  // null: a scalar's
};

int64_t NumElements(absl::Span<const int64_t> shape);
// Row-major strides in elements.
std::vector<int64_t> RowMajorStrides(absl::Span<const int64_t> shape);

class Tensor {
 public:
  Tensor() = default;
  // Uninitialised, 64-byte aligned.
  Tensor(DType dtype, Shape shape);
  // Views memory that somebody else owns; `owner` keeps it alive. Rows must be contiguous.
  Tensor(DType dtype, Shape shape, std::shared_ptr<void> owner, void* data)
      : Tensor(dtype, Shared(std::move(shape)), std::move(owner), data) {}
  // The same of a shape that others have too: no allocation.
  Tensor(DType dtype, SharedShape shape, std::shared_ptr<void> owner, void* data)
      : dtype_(dtype), shape_(std::move(shape.shape)), owner_(std::move(owner)), data_(data) {}
  static Tensor Zeros(DType dtype, Shape shape);
  // Every element is `value`, converted to `dtype` (bool: value != 0).
  static Tensor Full(DType dtype, Shape shape, double value);
  // What a gather with mode "fill" gives where an index is out of bounds: NaN, the least signed or the largest unsigned
  // number, true, or a null tape.
  static Tensor OutOfBounds(DType dtype);
  template <class T>
  static Tensor Scalar(DType dtype, T value) {
    Tensor t(dtype, {});
    std::memcpy(t.data_, &value, sizeof(T));
    return t;
  }
  template <class T>
  static Tensor FromVector(Shape shape, const std::vector<T>& values);

  bool defined() const { return owner_ != nullptr; }
  DType dtype() const { return dtype_; }
  const Shape& shape() const { return shape_ == nullptr ? kOfScalars : *shape_; }
  int rank() const { return static_cast<int>(shape().size()); }
  int64_t size() const { return NumElements(shape()); }
  int64_t bytes() const { return size() * ByteWidth(dtype_); }
  Type type() const { return Type{dtype_, Dims(shape().begin(), shape().end()), {}}; }

  void* raw() { return data_; }
  const void* raw() const { return data_; }
  template <class T>
  T* data() {
    return static_cast<T*>(data_);
  }
  template <class T>
  const T* data() const {
    return static_cast<const T*>(data_);
  }
  template <class T>
  const T& at(int64_t i) const {
    return data<T>()[i];
  }
  const std::shared_ptr<void>& owner() const { return owner_; }
  // Whether the memory was allocated by Tensor(dtype, shape): nobody outside has given it.
  bool made_here() const;

  // Element `i` as a complex double (real types: imaginary part 0). Exact for all types but the largest 64-bit
  // integers.
  std::complex<double> Get(int64_t i) const;
  void Set(int64_t i, std::complex<double> value);

  // Whether every byte is one that its dtype stores: a bool is 0 or 1, and an i4 its number in 8 bits. Memory from
  // elsewhere may hold others.
  bool HasNumbersAlone() const;
  // Itself, or a copy in which such bytes are made numbers: a bool is whether the byte is not 0, an i4 its low bits.
  Tensor WithNumbersAlone() const;

  // Same data, another shape of as many elements.
  Tensor Reshaped(Shape shape) const;
  Tensor Copy() const;
  // Same type and the same bits (so NaN equals NaN and 0 differs from -0).
  bool BitEquals(const Tensor& other) const;
  size_t Hash() const;  // of type and bytes

 private:
  static const Shape kOfScalars;
  static SharedShape Shared(Shape shape) {
    return SharedShape(shape.empty() ? nullptr : std::make_shared<const Shape>(std::move(shape)));
  }

  DType dtype_ = DType::kF32;
  std::shared_ptr<const Shape> shape_;  // null: a scalar's
  std::shared_ptr<void> owner_;
  void* data_ = nullptr;
};

using Tensors = std::vector<Tensor>;

template <class T>
Tensor Tensor::FromVector(Shape shape, const std::vector<T>& values) {
  Tensor t(DTypeOf<T>(), std::move(shape));
  WEFT_CHECK(t.size() == static_cast<int64_t>(values.size())) << "FromVector: wrong number of values";
  for (size_t i = 0; i < values.size(); ++i) t.data<T>()[i] = values[i];
  return t;
}

}  // namespace weft
#endif  // WEFT_IR_TENSOR_H_
