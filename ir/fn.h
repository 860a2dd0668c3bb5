// The IR: closed, immutable, typed functions in SSA form.
//
//   fn f(x: f32[3], y: f32[3]) -> (f32[]) {
//     a: f32[3] = mul x y
//     b: f32[] = reduce_sum[dims=[0]] a
//     return b
//   }
//
// A Fn has parameters, equations and results; no free variables and no data: arrays of more than kMaxLiteralElements
// that a traced function captures are parameters of kind kConstant, bound by reference by whoever runs the function.
// Variables are numbered densely in order of definition (parameters first, then results of equations), so two
// functions are equal up to renaming iff their members are equal. Build one with ir/builder.h.
#ifndef WEFT_IR_FN_H_
#define WEFT_IR_FN_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/large_pages.h"
#include "ir/atom.h"
#include "ir/attr.h"
#include "ir/loc.h"
#include "ir/type.h"

namespace weft {

struct Prim;
class Fn;
using FnRef = std::shared_ptr<const Fn>;

// Regions within regions, called functions included, that the readers of text and bytes accept: whatever walks a Fn
// recurses that deep.
inline constexpr int kMaxRegionDepth = 200;

using Mask = std::vector<bool>;  // one flag per parameter, operand or result

// The regions of an equation. Most have none, and then this is one word.
class RegionList {
 public:
  RegionList() = default;
  RegionList(std::vector<FnRef> regions) {  // NOLINT: a list of regions
    if (!regions.empty()) list_ = std::make_unique<std::vector<FnRef>>(std::move(regions));
  }
  RegionList(const RegionList& other) : RegionList(other.list()) {}
  RegionList(RegionList&&) noexcept = default;
  RegionList& operator=(const RegionList& other) { return *this = RegionList(other); }
  RegionList& operator=(RegionList&&) noexcept = default;

  const std::vector<FnRef>& list() const;
  operator const std::vector<FnRef>&() const { return list(); }  // NOLINT: a list of regions
  bool empty() const { return list_ == nullptr; }
  size_t size() const { return list_ ? list_->size() : 0; }
  const FnRef& operator[](size_t i) const { return (*list_)[i]; }
  FnRef& operator[](size_t i) { return (*list_)[i]; }
  const FnRef& front() const { return list_->front(); }
  const FnRef& back() const { return list_->back(); }
  const FnRef* begin() const { return list_ ? list_->data() : nullptr; }
  const FnRef* end() const { return begin() + size(); }
  friend bool operator==(const RegionList& a, const RegionList& b) { return a.list() == b.list(); }
  FnRef* begin() { return list_ ? list_->data() : nullptr; }
  FnRef* end() { return begin() + size(); }

 private:
  std::unique_ptr<std::vector<FnRef>> list_;  // null when there are none
};

struct Eqn {
  const Prim* prim = nullptr;
  Atoms operands;
  uint32_t first_result = 0;  // results are the variables first_result ... first_result + num_results - 1
  uint32_t num_results = 0;
  Attrs attrs;
  RegionList regions;
  Loc loc;

  Var result(int i = 0) const { return Var{first_result + static_cast<uint32_t>(i)}; }
  // Whether it calls an enclosing recursive function (ir/prims/control/recursion.cc). A transform that changes that
  // function changes all such equations, whatever their operands.
  bool CallsOutwards() const { return OutwardCalls() > 0; }
  // How many enclosing recursive functions it may refer to.
  int OutwardCalls() const;
  // The named axes (of a mesh or of vmap) that it refers to and that something around it binds, sorted: those of a
  // collective, and of regions less those that a mesh of its own binds. A transform that binds such an axis changes it
  // whatever its operands.
  std::vector<std::string> FreeAxes() const;
  bool UsesAxis(const std::string& axis) const;
};

using Eqns = LongList<Eqn>;

struct Param {
  enum class Kind : uint8_t { kArgument, kConstant };
  const Type& type;  // interned
  std::string name;  // a hint for printing, from the user's parameter name; not part of equality
  Kind kind = Kind::kArgument;
};

class Fn {
 public:
  const std::string& name() const { return name_; }
  const std::vector<Param>& params() const { return params_; }
  const Eqns& eqns() const { return eqns_; }
  const Atoms& results() const { return results_; }
  uint32_t num_vars() const { return static_cast<uint32_t>(types_.size()); }

  // Valid until the process ends; two variables have the same type iff the addresses are the same.
  const Type& TypeOf(Var v) const { return *types_[v.id]; }
  const Type& TypeOf(const Atom& a) const { return a.is_var() ? *types_[a.id()] : a.literal_type(); }
  Types ParamTypes() const;
  Types ResultTypes() const;

  // Equality and hash up to the names of variables and functions, ignoring locations.
  bool StructurallyEquals(const Fn& other) const;
  // Found when first asked for: most functions are steps on the way to another. Safe from several threads.
  size_t StructuralHash() const;

  // How often each variable is read, by equations of this function (not inside regions: they are closed) and results.
  std::vector<int> UseCounts() const;
  // Equations including those of regions, at any depth, as often as they occur (at most the largest int64).
  int64_t NumEqns() const { return num_eqns_; }
  bool HasEffects() const { return has_effects_; }
  // Whether anything in it, regions included, may run for ever (Prim::may_diverge).
  bool MayDiverge() const { return may_diverge_; }
  // How many enclosing recursive functions it may refer to; 0 for a program.
  int OutwardCalls() const { return outward_calls_; }
  // Named axes that something around it has to bind, sorted; none for a program.
  const std::vector<std::string>& FreeAxes() const { return free_axes_; }
  bool UsesAxis(const std::string& axis) const;
  // The dimension symbols that occur in parameter types, in order of first occurrence.
  std::vector<std::string> Symbols() const;

 private:
  friend class Builder;
  friend struct FnTestPeer;  // the verifier's test breaks functions on purpose
  Fn() = default;
  Fn(const Fn& other);
  // Effects, divergence, number of equations, outward calls, free axes. `plain`: no equation has any, nor regions.
  void Finish(bool plain);
  // Pairs of regions that were found equal: a region that occurs often is compared once.
  struct Compared;
  bool Equals(const Fn& other, Compared& compared) const;

  std::string name_;
  std::vector<Param> params_;
  LongList<const Type*> types_;
  Eqns eqns_;
  Atoms results_;
  mutable std::atomic<size_t> hash_ = 0;  // 0: not yet known
  int64_t num_eqns_ = 0;
  bool has_effects_ = false;
  bool may_diverge_ = false;
  int outward_calls_ = 0;
  std::vector<std::string> free_axes_;
};

// Whether it holds for `fn` or a function that is a region in it, at any depth. Each is asked once, however often it
// occurs.
bool AnyFunction(const Fn& fn, const std::function<bool(const Fn&)>& holds);

// For hash maps keyed by structure.
struct FnHash {
  size_t operator()(const FnRef& f) const { return f->StructuralHash(); }
};
struct FnEqual {
  bool operator()(const FnRef& a, const FnRef& b) const { return a == b || a->StructurallyEquals(*b); }
};

}  // namespace weft
#endif  // WEFT_IR_FN_H_
