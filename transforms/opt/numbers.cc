#include "transforms/opt/numbers.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstring>
#include <optional>
#include <unordered_set>

#include "ir/ops.h"
#include "ir/prim.h"
#include "transforms/opt/from_outside.h"
#include "transforms/opt/rewrite.h"

namespace weft {
namespace {

bool IsCommon(double v) { return !std::isfinite(v) || (std::abs(v) <= 1024 && v * 4 == std::rint(v * 4)); }

bool IsTaken(const Atom& a, WhichNumbers which) {
  if (!a.is_literal() || a.literal().rank() != 0) return false;
  const DType dtype = a.literal().dtype();
  if (which == WhichNumbers::kAll) return IsInexact(dtype) || IsInteger(dtype);
  if (!IsInexact(dtype)) return false;
  const std::complex<double> v = a.literal().Get(0);
  return !IsCommon(v.real()) || !IsCommon(v.imag());
}

bool SameBits(const Tensor& a, const Tensor& b) {
  return a.dtype() == b.dtype() && std::memcmp(a.raw(), b.raw(), static_cast<size_t>(a.bytes())) == 0;
}

// The numbers of a program, each once, and what becomes of its equations without them.
class Numbers : public FromOutside {
 public:
  Numbers(const Fn& fn, WhichNumbers which) : which_(which) {
    std::unordered_set<const Fn*> seen;
    Collect(fn, seen);
  }

  const Tensors& all() const { return all_; }

 protected:
  uint32_t OwnUses(const Eqn& e) const override {
    uint32_t uses = 0;
    if (!e.prim->is_elementwise()) return uses;
    for (const Atom& a : e.operands) {
      if (const size_t i = IndexOf(a); i < all_.size()) uses |= uint32_t{1} << i;
    }
    return uses;
  }
  Atoms WithOwn(Builder& b, const Eqn& e, const Atoms& operands, const Atoms& given) const override {
    Dims shape;  // of the operands that are no literals
    for (const Atom& a : operands) {
      if (b.TypeOf(a).rank() != 0) shape = b.TypeOf(a).dims;
    }
    Atoms changed = operands;
    for (Atom& a : changed) {
      if (const size_t i = IndexOf(a); i < all_.size()) a = Broadcast(b, given[i], shape, {});
    }
    return b.Emit(*e.prim, changed, e.attrs);
  }
  Type TypeOf(size_t value) const override { return all_[value].type(); }

 private:
  // Which of all an operand is; their number for others.
  size_t IndexOf(const Atom& a) const {
    if (!IsTaken(a, which_)) return all_.size();
    const auto same = [&](const Tensor& n) { return SameBits(n, a.literal()); };
    return static_cast<size_t>(std::find_if(all_.begin(), all_.end(), same) - all_.begin());
  }
  void Collect(const Fn& fn, std::unordered_set<const Fn*>& seen) {
    if (!seen.insert(&fn).second) return;
    for (const Eqn& e : fn.eqns()) {
      if (e.prim->is_elementwise()) {
        for (const Atom& a : e.operands) {
          if (all_.size() < kMost && IsTaken(a, which_) && IndexOf(a) == all_.size()) all_.push_back(a.literal());
        }
      } else if (which_ == WhichNumbers::kAll && CanHandOn(e)) {
        for (const FnRef& region : e.regions) Collect(*region, seen);
      }
    }
  }

  const WhichNumbers which_;
  Tensors all_;
};

}  // namespace

FnRef NumbersAsParameters(const FnRef& fn, Tensors* numbers, WhichNumbers which) {
  Numbers of(*fn, which);
  if (of.all().empty()) return fn;
  *numbers = of.all();
  Atoms parameters;
  int depth = 0;
  const auto replaced = [&](Builder& b, const Eqn& e, const Atoms& operands) {
    const bool inside = which == WhichNumbers::kAll || e.regions.empty();
    return depth == 1 && inside ? of.With(b, e, operands, parameters) : std::nullopt;
  };
  const auto enter = [&](const Fn&, Builder& b) {
    if (++depth > 1) return;
    for (const Tensor& number : *numbers) parameters.push_back(b.Parameter(number.type(), "", Param::Kind::kConstant));
  };
  return Rewrite(fn, replaced, enter, [&] { --depth; });
}

}  // namespace weft
