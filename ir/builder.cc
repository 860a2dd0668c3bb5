#include "ir/builder.h"

#include <algorithm>
#include <type_traits>
#include <utility>

namespace weft {

Var Builder::NewVar(Type type) {
  types_.push_back(std::move(type));
  definition_.push_back(-1);
  return Var{static_cast<uint32_t>(types_.size() - 1)};
}

Atom Builder::Parameter(Type type, std::string name, Param::Kind kind) {
  const Var v = NewVar(type);
  params_.push_back({std::move(type), std::move(name), kind});
  param_vars_.push_back(v.id);
  return v;
}

void Builder::MoveParametersToFront(size_t first) {
  std::rotate(params_.begin(), params_.begin() + static_cast<int64_t>(first), params_.end());
  std::rotate(param_vars_.begin(), param_vars_.begin() + static_cast<int64_t>(first), param_vars_.end());
}

Atoms Builder::Emit(const Prim& prim, Atoms operands, Attrs attrs, std::vector<FnRef> regions) {
  Types operand_types;
  operand_types.reserve(operands.size());
  Mask literal;
  literal.reserve(operands.size());
  for (const Atom& a : operands) {
    operand_types.push_back(TypeOf(a));
    literal.push_back(a.is_literal());
  }
  Types result_types;
  try {
    if (prim.num_operands >= 0 && static_cast<int>(operands.size()) != prim.num_operands) {
      throw TypeError(prim.name, ": takes ", prim.num_operands, " operands, got ", operands.size());
    }
    result_types = InferTypes(Sig{prim, operand_types, literal, attrs, regions});
    for (const Type& t : result_types) {
      int64_t bytes = ByteWidth(t.dtype);
      bool empty = false, overflow = false;
      for (const Dim& d : t.dims) {
        if (!d.is_static()) continue;
        if (d.value() < 0) throw ValueError(prim.name, ": a result of negative size, ", t);
        empty |= d.value() == 0;
        overflow |= __builtin_mul_overflow(bytes, d.value(), &bytes);
      }
      if (overflow && !empty) throw ValueError(prim.name, ": a result of more than 2^63 bytes, ", t);
    }
  } catch (Error& error) {
    error.set_loc(loc_);
    throw;
  }
  Eqn eqn{&prim,
          std::move(operands),
          static_cast<uint32_t>(types_.size()),
          static_cast<uint32_t>(result_types.size()),
          std::move(attrs),
          std::move(regions),
          loc_};
  Atoms results;
  results.reserve(result_types.size());
  for (Type& t : result_types) {
    results.push_back(NewVar(std::move(t)));
    definition_.back() = static_cast<int32_t>(eqns_.size());
  }
  eqns_.push_back(std::move(eqn));
  return results;
}

Atom Builder::Emit1(const Prim& prim, Atoms operands, Attrs attrs, std::vector<FnRef> regions) {
  Atoms results = Emit(prim, std::move(operands), std::move(attrs), std::move(regions));
  WEFT_CHECK(results.size() == 1) << prim.name << " has " << results.size() << " results";
  return results[0];
}

Atoms Builder::Clone(const Eqn& eqn, Atoms operands) {
  return Emit(*eqn.prim, std::move(operands), eqn.attrs, eqn.regions);
}

void Builder::ReserveLike(const Fn& fn) {
  eqns_.reserve(eqns_.size() + fn.eqns().size());
  types_.reserve(types_.size() + fn.num_vars());
  definition_.reserve(definition_.size() + fn.num_vars());
}

Atoms Builder::Inline(const Fn& fn, absl::Span<const Atom> args) {
  WEFT_CHECK(args.size() == fn.params().size())
      << "inlining " << fn.name() << ": " << args.size() << " arguments for " << fn.params().size();
  Atoms env(args.begin(), args.end());
  env.resize(fn.num_vars());
  auto map = [&](const Atom& a) { return a.is_var() ? env[a.id()] : a; };
  // On variables of the parameters' own types every result has the type it has in `fn`; nothing is inferred again. (In
  // place of a parameter that is not used there may be no variable at all.)
  const auto fits = [&](size_t i) {
    return args[i].is_var() && args[i].id() < types_.size() && types_[args[i].id()] == fn.params()[i].type;
  };
  bool same_types = true;
  for (size_t i = 0; same_types && i < args.size(); ++i) same_types = fits(i);
  if (fn.eqns().size() > eqns_.size()) ReserveLike(fn);
  for (const Eqn& e : fn.eqns()) {
    Atoms operands;
    operands.reserve(e.operands.size());
    for (const Atom& a : e.operands) operands.push_back(map(a));
    ScopedLoc scope(*this, e.loc ? e.loc : loc_);
    if (same_types) {
      for (uint32_t r = 0; r < e.num_results; ++r) {
        env[e.first_result + r] = NewVar(fn.TypeOf(e.result(static_cast<int>(r))));
        definition_.back() = static_cast<int32_t>(eqns_.size());
      }
      const uint32_t first = static_cast<uint32_t>(types_.size()) - e.num_results;
      eqns_.push_back({e.prim, std::move(operands), first, e.num_results, e.attrs, e.regions, loc_});
      continue;
    }
    const Atoms results = Clone(e, std::move(operands));
    std::copy(results.begin(), results.end(), env.begin() + e.first_result);
  }
  Atoms results;
  for (const Atom& a : fn.results()) results.push_back(map(a));
  return results;
}

std::vector<bool> Builder::Needed(const Atoms& results, bool keep_dead) const {
  std::vector<bool> live(types_.size(), false), needed(eqns_.size(), true);
  if (keep_dead) return needed;
  const auto mark = [&](const Atoms& atoms) {
    for (const Atom& a : atoms) {
      if (a.is_var()) live[a.id()] = true;
    }
  };
  mark(results);
  for (size_t i = eqns_.size(); i-- > 0;) {
    const Eqn& e = eqns_[i];
    bool need = e.prim->has_effect;
    for (uint32_t r = 0; r < e.num_results; ++r) need |= live[e.first_result + r];
    for (const FnRef& region : e.regions) need |= region->HasEffects();
    needed[i] = need;
    if (need) mark(e.operands);
  }
  return needed;
}

template <class B>
FnRef Builder::BuildFrom(B&& b, const Atoms& results, bool keep_dead) {
  // A member of the builder, given on as the builder itself was given.
  const auto from = [](auto& member) -> decltype(auto) {
    if constexpr (std::is_lvalue_reference_v<B>)
      return (member);
    else
      return std::move(member);
  };
  const std::vector<bool> needed = b.Needed(results, keep_dead);
  const size_t count = static_cast<size_t>(std::count(needed.begin(), needed.end(), true));

  std::shared_ptr<Fn> fn(new Fn());
  fn->name_ = from(b.name_);
  fn->params_ = from(b.params_);
  std::vector<uint32_t> number(b.types_.size(), 0);
  fn->types_.reserve(b.types_.size());
  for (uint32_t v : b.param_vars_) {
    number[v] = static_cast<uint32_t>(fn->types_.size());
    fn->types_.push_back(from(b.types_[v]));
  }
  const auto rename = [&](Atoms& atoms) {
    for (Atom& a : atoms) {
      if (a.is_var()) a = Var{number[a.id()]};
    }
  };
  fn->eqns_.reserve(count);
  for (size_t i = 0; i < b.eqns_.size(); ++i) {
    if (!needed[i]) continue;
    Eqn& e = fn->eqns_.emplace_back(from(b.eqns_[i]));
    rename(e.operands);
    const uint32_t first = static_cast<uint32_t>(fn->types_.size());
    for (uint32_t r = 0; r < e.num_results; ++r) {
      number[e.first_result + r] = first + r;
      fn->types_.push_back(from(b.types_[e.first_result + r]));
    }
    e.first_result = first;
  }
  fn->results_ = results;
  rename(fn->results_);
  fn->Finish();
  return fn;
}

FnRef Builder::Build(const Atoms& results, bool keep_dead) const& { return BuildFrom(*this, results, keep_dead); }

FnRef Builder::Build(const Atoms& results, bool keep_dead) && {
  return BuildFrom(std::move(*this), results, keep_dead);
}

}  // namespace weft
