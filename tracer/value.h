// A value as a user's program sees it: a concrete array, or a variable of a function that is being traced.
//
//   Value x(Tensor::Scalar(DType::kF32, 2.0f));   // concrete
//   Value y = trace->Parameter(type, "y");        // traced
//   x.traced(); y.type();
//
// A concrete array lies in host memory, on no device in particular or on one that somebody put it on, or is Shards: on
// several devices. `tensor()` is all of either; of shards it has to be put together. `placement()` says where it is.
//
// `weak` marks values that came from Python numbers alone: beside a strongly typed value they take its dtype
// (tracer/promote.h). Copies are cheap and share everything.
#ifndef WEFT_TRACER_VALUE_H_
#define WEFT_TRACER_VALUE_H_

#include <memory>
#include <utility>
#include <vector>

#include "ir/fn.h"
#include "ir/shards.h"
#include "ir/tensor.h"

namespace weft {

class Trace;

class Value {
 public:
  Value() = default;
  explicit Value(Tensor tensor, bool weak = false) : tensor_(std::move(tensor)), weak_(weak) {}
  // On the one device of `place`.
  Value(Tensor tensor, const Placement& place, bool weak = false)
      : tensor_(std::move(tensor)), device_(&place), weak_(weak) {}
  explicit Value(std::shared_ptr<Shards> shards, bool weak = false) : shards_(std::move(shards)), weak_(weak) {}
  Value(std::shared_ptr<Trace> home, Var var, bool weak = false) : home_(std::move(home)), var_(var), weak_(weak) {}

  bool defined() const { return home_ != nullptr || shards_ != nullptr || tensor_.defined(); }
  bool traced() const { return home_ != nullptr; }
  // Of a concrete value. Raises kRuntime where other processes hold parts of it.
  const Tensor& tensor() const { return shards_ == nullptr ? tensor_ : shards_->Whole(); }
  const Shape& shape() const { return shards_ == nullptr ? tensor_.shape() : shards_->layout().shape; }
  const std::shared_ptr<Shards>& shards() const { return shards_; }  // null: on one device, or on none in particular
  // Where somebody put it. Null: on no device in particular.
  const Placement* placement() const { return shards_ == nullptr ? device_ : &shards_->placement(); }
  // Whether this process has all of a concrete value.
  bool complete() const { return shards_ == nullptr || shards_->layout().complete; }
  // What is the same for values that are one concrete array.
  const void* identity() const { return shards_ == nullptr ? tensor_.raw() : shards_.get(); }
  const std::shared_ptr<Trace>& home() const { return home_; }
  Var var() const { return var_; }
  bool weak() const { return weak_; }
  Value WithWeak(bool weak) const {
    Value v = *this;
    v.weak_ = weak;
    return v;
  }

  // Of both kinds; also of a value whose trace has ended.
  Type type() const;
  DType dtype() const;
  int rank() const;
  Dims dims() const;

 private:
  Tensor tensor_;
  const Placement* device_ = nullptr;  // of `tensor_`
  std::shared_ptr<Shards> shards_;
  std::shared_ptr<Trace> home_;
  Var var_;
  bool weak_ = false;
};

using Values = std::vector<Value>;

}  // namespace weft
#endif  // WEFT_TRACER_VALUE_H_
