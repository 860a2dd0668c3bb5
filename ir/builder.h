// The only way to make a Fn. Infers types, checks operands, and numbers variables when it is built.
//
//   Builder b("f");
//   Atom x = b.Parameter({DType::kF32, {3}}, "x");
//   Atom y = b.Emit1(FindPrim("mul"), {x, x});
//   FnRef f = std::move(b).Build({y});
//
// Atoms of a builder are meaningful only inside it. ir/ops.h has one short function per primitive (`Mul(b, x, y)`).
#ifndef WEFT_IR_BUILDER_H_
#define WEFT_IR_BUILDER_H_

#include <string>
#include <vector>

#include "absl/types/span.h"
#include "ir/fn.h"
#include "ir/prim.h"

namespace weft {

class Builder {
 public:
  explicit Builder(std::string name = "f") : name_(std::move(name)) {}
  // Goes on where `fn` ended: its parameters, variables and equations are the builder's, and its results may be asked
  // of `fn` before. Takes them where nobody else holds `fn`, and copies them otherwise.
  explicit Builder(FnRef&& fn);
  Builder& operator=(const Builder&) = delete;

  // Parameters may be added at any time; they come first in the finished function, in the order of these calls.
  Atom Parameter(const Type& type, std::string name = "", Param::Kind kind = Param::Kind::kArgument);
  // Puts the parameters from `first` on before the others. Residuals are found after the parameters they precede.
  void MoveParametersToFront(size_t first);
  // Leaves the parameters at these places, in this order. Nothing may read one that is left out.
  void KeepParameters(absl::Span<const size_t> places);
  // Appends an equation. Raises the primitive's type error, with the current location, when the operands do not fit.
  Atoms Emit(const Prim& prim, Atoms operands, Attrs attrs = {}, std::vector<FnRef> regions = {});
  Atom Emit1(const Prim& prim, Atoms operands, Attrs attrs = {}, std::vector<FnRef> regions = {});
  // Appends `eqn` of another function with operands replaced; types are inferred again.
  Atoms Clone(const Eqn& eqn, Atoms operands);
  // Appends `eqn` of `fn`: where its operands have the types they have there, nothing is inferred.
  Atoms Clone(const Fn& fn, const Eqn& eqn, Atoms operands);
  // The same in two steps, without a copy of the equation:
  //
  //   Eqn copy;
  //   Eqn& e = Builder::TakeEqn(fn, i, copy);
  //   const bool same_types = b.Translate(*fn, e, [&](Var v) { return value_of[v.id]; });
  //   Atoms results = b.Adopt(*fn, std::move(e), same_types);
  //
  // TakeEqn gives equation `i` of a function that the caller is about to drop, to do with as it likes: the equation
  // itself where nobody else holds the function (which must not be asked for it again), and otherwise `copy`.
  static Eqn& TakeEqn(const FnRef& fn, size_t i, Eqn& copy);
  // Replaces the variables among the operands by atoms of this builder. Whether the results have the types they have in
  // `fn` then.
  template <class ValueOf>
  bool Translate(const Fn& fn, Eqn& eqn, const ValueOf& value_of) const {
    bool same_types = eqn.regions.empty();
    for (Atom& a : eqn.operands) {
      if (a.is_literal()) continue;
      const Type* type = &fn.TypeOf(a);
      a = value_of(a.var());
      same_types &= a.is_var() && types_[a.id()] == type;
    }
    return same_types;
  }
  // Appends it.
  Atoms Adopt(const Fn& fn, Eqn&& eqn, bool same_types);
  // Room for as many further equations and results as `fn` has, or `times` as many: a transform that makes about as
  // many does not move what it has made. What it does not use of a large room costs nothing.
  void ReserveLike(const Fn& fn, size_t times = 1);
  // Appends the body of `fn` with its parameters replaced by `args`; returns its results.
  Atoms Inline(const Fn& fn, absl::Span<const Atom> args);
  Atoms Inline(FnRef&& fn, absl::Span<const Atom> args);  // takes `fn` apart where nobody else holds it

  // Valid until the process ends; two atoms have the same type iff the addresses are the same.
  const Type& TypeOf(const Atom& atom) const { return atom.is_var() ? *types_[atom.id()] : atom.literal_type(); }
  DType DTypeOf(const Atom& atom) const { return TypeOf(atom).dtype; }

  // The equation that defines a variable; null for literals and parameters. Valid until the next Emit.
  const Eqn* Definition(const Atom& atom) const {
    return atom.is_var() && definition_[atom.id()] >= 0 ? &eqns_[definition_[atom.id()]] : nullptr;
  }

  // Finishes the function: renumbers variables, and drops pure equations whose results are never used unless
  // `keep_dead`. The builder can go on and build again (a trace shows its program while it grows), unless it is given
  // away: `std::move(b).Build(...)` copies no equation, and moves none as long as all before it are needed.
  FnRef Build(const Atoms& results, bool keep_dead = false) const&;
  FnRef Build(const Atoms& results, bool keep_dead = false) &&;

  // The equations from `first` on are seen through this transform.
  void SeeThrough(size_t first, const std::string& transform);
  // The location given to the equations that follow.
  Loc loc() const { return loc_; }
  void set_loc(Loc loc) { loc_ = loc; }
  const std::string& name() const { return name_; }
  size_t num_eqns() const { return eqns_.size(); }
  // Those that come have greater numbers.
  uint32_t num_vars() const { return static_cast<uint32_t>(types_.size()); }
  const Eqns& eqns() const { return eqns_; }
  const std::vector<uint32_t>& param_vars() const { return param_vars_; }
  const std::vector<Param>& params() const { return params_; }

 private:
  Builder(const Builder&) = default;
  Var NewVar(const Type* type);  // interned
  // Appends an equation and numbers its results, which have these types.
  Atoms Append(Eqn&& eqn, const Type* const* types);
  template <class EqnAt>
  Atoms InlineEqns(const Fn& fn, absl::Span<const Atom> args, const EqnAt& eqn_at);
  // One flag per equation: whether it is needed for the results or has effects.
  std::vector<bool> Needed(const Atoms& results, bool keep_dead) const;
  FnRef BuildInPlace(const Atoms& results, bool keep_dead);
  // Drops equations that are not needed, and numbers variables anew; those before equation `first` stay as they are
  // if parameters have the first numbers.
  void Renumber(const std::vector<bool>& needed, bool params_in_place, size_t first, Atoms& results);

  std::string name_;
  std::vector<Param> params_;
  std::vector<uint32_t> param_vars_;
  LongList<const Type*> types_;
  LongList<int32_t> definition_;  // per variable: index into eqns_, or -1
  Eqns eqns_;
  bool plain_ = true;  // no equation has effects or regions, or refers to something around the function
  Loc loc_;
};

// Sets the location of a builder for a scope.
class ScopedLoc {
 public:
  ScopedLoc(Builder& b, Loc loc) : b_(b), saved_(b.loc()) { b.set_loc(loc); }
  ~ScopedLoc() { b_.set_loc(saved_); }
  ScopedLoc(const ScopedLoc&) = delete;

 private:
  Builder& b_;
  Loc saved_;
};

}  // namespace weft
#endif  // WEFT_IR_BUILDER_H_
