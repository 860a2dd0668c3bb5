#include "transforms/opt/numbers.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstring>
#include <optional>

#include "ir/ops.h"
#include "ir/prim.h"
#include "transforms/opt/rewrite.h"

namespace weft {
namespace {

constexpr size_t kMostNumbers = 32;

bool IsCommon(double v) { return !std::isfinite(v) || (std::abs(v) <= 1024 && v * 4 == std::rint(v * 4)); }

bool IsTaken(const Atom& a, WhichNumbers which) {
  if (!a.is_literal() || a.literal().rank() != 0) return false;
  const DType dtype = a.literal().dtype();
  if (which == WhichNumbers::kAll) return IsInexact(dtype) || IsInteger(dtype);
  if (!IsInexact(dtype)) return false;
  const std::complex<double> v = a.literal().Get(0);
  return !IsCommon(v.real()) || !IsCommon(v.imag());
}

bool HasAny(const Fn& fn, WhichNumbers which) {
  const auto taken = [which](const Atom& a) { return IsTaken(a, which); };
  return std::any_of(fn.eqns().begin(), fn.eqns().end(), [&](const Eqn& e) {
    return e.prim->is_elementwise() && std::any_of(e.operands.begin(), e.operands.end(), taken);
  });
}

bool SameBits(const Tensor& a, const Tensor& b) {
  return a.dtype() == b.dtype() && std::memcmp(a.raw(), b.raw(), static_cast<size_t>(a.bytes())) == 0;
}

}  // namespace

FnRef NumbersAsParameters(const FnRef& fn, Tensors* numbers, WhichNumbers which) {
  if (!HasAny(*fn, which)) return fn;
  Atoms parameters;
  int depth = 0;
  // The parameter that stands for the number; none beyond the last.
  const auto parameter = [&](Builder& b, const Tensor& number) -> std::optional<Atom> {
    for (size_t i = 0; i < numbers->size(); ++i) {
      if (SameBits((*numbers)[i], number)) return parameters[i];
    }
    if (numbers->size() == kMostNumbers) return std::nullopt;
    numbers->push_back(number);
    parameters.push_back(b.Parameter(number.type(), "", Param::Kind::kConstant));
    return parameters.back();
  };
  const auto replaced = [&](Builder& b, const Eqn& e, const Atoms& operands) -> std::optional<Atoms> {
    if (depth != 1 || !e.prim->is_elementwise()) return std::nullopt;
    Dims shape;  // of the operands that are no literals
    for (const Atom& a : operands) {
      if (b.TypeOf(a).rank() != 0) shape = b.TypeOf(a).dims;
    }
    Atoms changed = operands;
    bool any = false;
    for (Atom& a : changed) {
      if (!IsTaken(a, which)) continue;
      if (const std::optional<Atom> p = parameter(b, a.literal())) a = Broadcast(b, *p, shape, {}), any = true;
    }
    if (!any) return std::nullopt;
    return b.Emit(*e.prim, changed, e.attrs);
  };
  return Rewrite(fn, replaced, [&](const Fn&, Builder&) { ++depth; }, [&] { --depth; });
}

}  // namespace weft
