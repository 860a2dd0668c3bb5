// Where the work of one user-level operation goes: the innermost open trace, or, where none records it, a small
// function that is run at the end. An operation is written once, over a Builder, and is one compiled function when
// eager.
//
//   Value Mean(const Value& x) {
//     Site site({x});
//     Builder& b = site.b();
//     Atom a = site.Use(x);
//     return site.Finish(Div(b, ReduceSum(b, a, ...), n), x.weak());
//   }
#ifndef WEFT_TRACER_SITE_H_
#define WEFT_TRACER_SITE_H_

#include <optional>

#include "absl/types/span.h"
#include "ir/ops.h"
#include "tracer/promote.h"
#include "tracer/trace.h"

namespace weft {

// A Python number: no array yet, because its dtype depends on what it stands beside.
struct Scalar {
  // kUint: integers from 2^63 on; kLarge: those beyond 64 bits, which only floats take, rounded.
  enum class Kind : uint8_t { kBool, kInt, kUint, kLarge, kFloat, kComplex } kind = Kind::kInt;
  int64_t i = 0;  // kBool, kInt; bits of kUint
  double re = 0, im = 0;

  static Scalar Bool(bool v) { return {Kind::kBool, v, 0, 0}; }
  static Scalar Int(int64_t v) { return {Kind::kInt, v, 0, 0}; }
  static Scalar Float(double v) { return {Kind::kFloat, 0, v, 0}; }
  WeakDType dtype() const;
  std::string ToString() const;
};

// A Python integer that an integer dtype has no place for; OverflowError in Python.
class IntegerOverflow : public Error {
 public:
  template <class... Args>
  explicit IntegerOverflow(const Args&... args) : Error(ErrorKind::kValue, internal::Concat(args...)) {}
};

// The number as a literal of rank 0, shared between equal requests: valid until the next one. Raises IntegerOverflow
// when an integer does not fit `dtype`.
const Atom& NumberLiteral(DType dtype, const Scalar& scalar);
inline const Tensor& NumberTensor(DType dtype, const Scalar& scalar) { return NumberLiteral(dtype, scalar).literal(); }

// An operand of a user-level operation: a value or a number. Points to the value: use within one call.
class Operand {
 public:
  Operand(const Value& value) : value_(&value) {}  // NOLINT: both kinds are operands
  Operand(Scalar scalar) : scalar_(scalar) {}      // NOLINT
  bool is_scalar() const { return value_ == nullptr; }
  const Value& value() const { return *value_; }
  const Scalar& scalar() const { return scalar_; }
  WeakDType dtype() const { return value_ ? WeakDType{value_->dtype(), value_->weak()} : scalar_.dtype(); }
  int rank() const { return value_ ? value_->rank() : 0; }
  Dims dims() const { return value_ ? value_->dims() : Dims(); }
  // As a value of its own (default) dtype.
  Value ToValue() const;

 private:
  const Value* value_ = nullptr;
  Scalar scalar_;
};
using Operands = absl::Span<const Operand>;

// The trace that records an operation on these (tracer/trace.h); null where it is to be run.
Trace* Recorder(Operands xs);

class Site {
 public:
  // Of an operation on these operands.
  explicit Site(Operands xs) : Site(Recorder(xs)) {}
  Site(std::initializer_list<Operand> xs) : Site(Operands(xs.begin(), xs.size())) {}
  // Of one that the innermost trace records whatever its operands are: it speaks of named axes.
  static Site OfAxes() { return Site(Trace::Current()); }
  Site(const Site&) = delete;
  Builder& b() { return *b_; }
  Atom Use(const Value& value);
  // With the dtype it has, or converted. Numbers become literals when tracing, parameters when eager (so that one
  // compiled function serves all numbers).
  Atom Use(const Operand& x) { return Use(x, x.dtype().dtype); }
  Atom Use(const Operand& x, DType dtype);

  Value Finish(const Atom& atom, bool weak = false);
  Values Finish(const Atoms& atoms, bool weak = false);

 private:
  explicit Site(Trace* trace);
  Trace* trace_;
  Builder* b_;
  std::optional<Builder> own_;
  Tensors args_;
  std::vector<std::pair<size_t, Value>> placed_;  // arguments that are on devices, with their places among `args_`
};

// NumPy's rule, on dimensions aligned at the end. Raises kType naming `what` and both shapes.
Dims BroadcastShapes(const Dims& a, const Dims& b, const char* what);
Dims BroadcastShapes(Operands xs, const char* what);
// `x` with new or stretched dimensions; literals of rank 0 stay as they are with `keep_numbers`.
Atom BroadcastAtom(Builder& b, const Atom& x, const Dims& shape, bool keep_numbers = false,
                   const char* what = "broadcast_to");
WeakDType PromoteAll(Operands xs);
// Told of operands of different ranks, numbers apart, where Setting::kWatchRanks is on; may raise.
using RankWatcher = void (*)(const char* what, Operands xs);
void SetRankWatcher(RankWatcher watcher);
std::string ShapeText(const Dims& dims);  // "(2, 3)", as Python prints it

}  // namespace weft
#endif  // WEFT_TRACER_SITE_H_
