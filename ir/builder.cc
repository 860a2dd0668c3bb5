#include "ir/builder.h"

#include <algorithm>
#include <numeric>
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

Builder::Builder(FnRef&& fn) {
  // A function is const to all who share it; the last one may take it apart.
  std::shared_ptr<Fn> own =
      fn.use_count() == 1 ? std::const_pointer_cast<Fn>(std::move(fn)) : std::shared_ptr<Fn>(new Fn(*fn));
  fn = nullptr;
  name_ = std::move(own->name_);
  params_ = std::move(own->params_);
  types_ = std::move(own->types_);
  eqns_ = std::move(own->eqns_);
  param_vars_.resize(params_.size());
  std::iota(param_vars_.begin(), param_vars_.end(), 0);
  definition_.assign(types_.size(), -1);
  for (size_t i = 0; i < eqns_.size(); ++i) {
    for (uint32_t r = 0; r < eqns_[i].num_results; ++r)
      definition_[eqns_[i].first_result + r] = static_cast<int32_t>(i);
  }
}

void Builder::KeepParameters(absl::Span<const size_t> places) {
  std::vector<Param> params;
  std::vector<uint32_t> vars;
  for (size_t i : places) {
    params.push_back(std::move(params_[i]));
    vars.push_back(param_vars_[i]);
  }
  params_ = std::move(params);
  param_vars_ = std::move(vars);
}

void Builder::MoveParametersToFront(size_t first) {
  std::rotate(params_.begin(), params_.begin() + static_cast<int64_t>(first), params_.end());
  std::rotate(param_vars_.begin(), param_vars_.begin() + static_cast<int64_t>(first), param_vars_.end());
}

Atoms Builder::Emit(const Prim& prim, Atoms operands, Attrs attrs, std::vector<FnRef> regions) {
  // Taken out, not only used: a type rule may build functions, though never with this builder.
  Types operand_types = std::move(operand_types_);
  Mask literal = std::move(literal_);
  operand_types.clear(), literal.clear();
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
  operand_types_ = std::move(operand_types);
  literal_ = std::move(literal);
  const uint32_t first = static_cast<uint32_t>(types_.size());
  const int32_t eqn = static_cast<int32_t>(eqns_.size());
  Atoms results;
  results.reserve(result_types.size());
  for (Type& t : result_types) {
    results.push_back(NewVar(std::move(t)));
    definition_.back() = eqn;
  }
  eqns_.push_back({&prim, std::move(operands), first, static_cast<uint32_t>(result_types.size()), std::move(attrs),
                   std::move(regions), loc_});
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

Atoms Builder::Clone(const Fn& fn, const Eqn& eqn, Atoms operands) {
  if (!eqn.regions.empty()) return Clone(eqn, std::move(operands));
  for (size_t i = 0; i < operands.size(); ++i) {
    const Atom &was = eqn.operands[i], &is = operands[i];
    // A literal beside an array means its number everywhere: what stands for it may have another shape.
    const bool same = was.is_var() ? is.is_var() && types_[is.id()] == fn.TypeOf(was.var())
                                   : is.is_literal() && is.literal_ref() == was.literal_ref();
    if (!same) return Clone(eqn, std::move(operands));
  }
  const uint32_t first = static_cast<uint32_t>(types_.size());
  Atoms results;
  results.reserve(eqn.num_results);
  for (uint32_t r = 0; r < eqn.num_results; ++r) {
    results.push_back(NewVar(fn.TypeOf(eqn.result(static_cast<int>(r)))));
    definition_.back() = static_cast<int32_t>(eqns_.size());
  }
  eqns_.push_back({eqn.prim, std::move(operands), first, eqn.num_results, eqn.attrs, eqn.regions, loc_});
  return results;
}

void Builder::ReserveLike(const Fn& fn, size_t times) {
  eqns_.reserve(eqns_.size() + times * fn.eqns().size());
  types_.reserve(types_.size() + times * fn.num_vars());
  definition_.reserve(definition_.size() + times * fn.num_vars());
}

Atoms Builder::Inline(const Fn& fn, absl::Span<const Atom> args) {
  WEFT_CHECK(args.size() == fn.params().size())
      << "inlining " << fn.name() << ": " << args.size() << " arguments for " << fn.params().size();
  LongList<Atom> env(args.begin(), args.end());
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

FnRef Builder::Build(const Atoms& results, bool keep_dead) const& {
  return Builder(*this).BuildInPlace(results, keep_dead);
}

FnRef Builder::Build(const Atoms& results, bool keep_dead) && { return BuildInPlace(results, keep_dead); }

FnRef Builder::BuildInPlace(const Atoms& results, bool keep_dead) {
  const std::vector<bool> needed = Needed(results, keep_dead);
  std::shared_ptr<Fn> fn(new Fn());
  fn->name_ = std::move(name_);
  fn->params_ = std::move(params_);
  fn->results_ = results;
  // Variables keep their numbers up to the first that is not where it belongs: a parameter that came late, a result of
  // an equation that is dropped. Those after it get new ones; equations and types move to the front.
  const size_t num_params = param_vars_.size();
  bool in_place = true;
  for (size_t i = 0; in_place && i < num_params; ++i) in_place = param_vars_[i] == i;
  size_t first_moved = 0;
  if (in_place) first_moved = static_cast<size_t>(std::find(needed.begin(), needed.end(), false) - needed.begin());
  if (!in_place || first_moved < eqns_.size()) Renumber(needed, in_place, first_moved, fn->results_);
  const auto trimmed = [](auto& list) {  // a function lives longer than its builder
    if (list.size() < list.capacity() / 4) list.shrink_to_fit();
    return std::move(list);
  };
  fn->types_ = trimmed(types_);
  fn->eqns_ = trimmed(eqns_);
  fn->Finish();
  return fn;
}

void Builder::Renumber(const std::vector<bool>& needed, bool params_in_place, size_t first, Atoms& results) {
  std::vector<uint32_t> number(types_.size(), 0);
  const auto rename = [&](Atoms& atoms) {
    for (Atom& a : atoms) {
      if (a.is_var()) a = Var{number[a.id()]};
    }
  };
  decltype(types_) moved;
  const size_t kept_vars = first < eqns_.size() ? eqns_[first].first_result : types_.size();
  size_t end = params_in_place ? kept_vars : param_vars_.size();
  if (params_in_place) {
    std::iota(number.begin(), number.begin() + static_cast<int64_t>(kept_vars), 0);
  } else {
    moved.reserve(types_.size());
    for (uint32_t v : param_vars_) {
      number[v] = static_cast<uint32_t>(moved.size());
      moved.push_back(std::move(types_[v]));
    }
  }
  size_t to = first;
  for (size_t i = first; i < eqns_.size(); ++i) {
    if (!needed[i]) continue;
    if (to != i) eqns_[to] = std::move(eqns_[i]);
    Eqn& e = eqns_[to++];
    rename(e.operands);
    for (uint32_t r = 0; r < e.num_results; ++r) {
      number[e.first_result + r] = static_cast<uint32_t>(end + r);
      Type& type = types_[e.first_result + r];
      if (!params_in_place) {
        moved.push_back(std::move(type));
      } else if (end + r != e.first_result + r) {
        types_[end + r] = std::move(type);
      }
    }
    e.first_result = static_cast<uint32_t>(end);
    end += e.num_results;
  }
  rename(results);
  eqns_.resize(to);
  if (params_in_place)
    types_.resize(end);
  else
    types_ = std::move(moved);
}

}  // namespace weft
