// What a trace makes of values that are not its own: which it records, and which arrays are literals in its program.
#include <algorithm>

#include "tracer/context.h"
#include "tracer/trace.h"

namespace weft {
namespace {

// The tapes that a program may hold: they refer to nothing, and are the zeros of their dtype.
bool AreNullTapes(const Value& v) {
  if (v.dtype() != DType::kTape) return false;
  const Tensor& t = v.tensor();
  return t.size() <= kMaxLiteralElements && (t.size() == 0 || Atom(t).IsSplat(0));
}

}  // namespace

std::shared_ptr<OwnNumbers> OwnNumbers::IfKept() {
  return On(Setting::kKeepsCalls) ? std::make_shared<OwnNumbers>() : nullptr;
}

Tensor Trace::OwnNumber(Tensor number) {
  Trace* const here = Current();
  if (here == nullptr || here->own_numbers_ == nullptr || number.rank() != 0) return number;
  Tensor own = number.Copy();  // equal numbers share memory, those from outside too
  here->own_numbers_->by_identity.emplace(own.raw(), own);
  return own;
}

bool Trace::IsLiteral(const Value& array) const {
  if (AreNullTapes(array)) return true;
  return IsLiteralWhenCaptured(array) &&
         (own_numbers_ == nullptr || own_numbers_->by_identity.count(array.identity()) != 0);
}

Type Trace::TypeOf(const Value& value) const {
  Type type = value.type();
  const bool outside = value.traced() ? value.home().get() != this : !IsLiteral(value);
  if (outside) type.varying = UnionOfAxes(type.varying, varying_);
  return type;
}

void Trace::StandFor(const Value& value, Var parameter) {
  if (value.traced())
    stand_ins_.emplace_back(value, parameter);
  else
    constants_[value.identity()].emplace_back(value, parameter);
}

Trace* Recorder(absl::Span<const Value> values) {
  Trace* trace = Trace::Current();
  if (trace == nullptr || !trace->computes_known()) return trace;
  return std::any_of(values.begin(), values.end(), [](const Value& v) { return v.traced(); }) ? trace : nullptr;
}

bool RunsAlone(const Fn& fn) { return !fn.HasEffects() && fn.FreeAxes().empty() && fn.OutwardCalls() == 0; }

}  // namespace weft
