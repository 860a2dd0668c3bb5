#include "ir/builder.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <numeric>
#include <utility>

namespace weft {
namespace {

// See Builder::plain_.
bool IsPlain(const Eqn& e) {
  return !e.prim->has_effect && e.prim->family != Family::kControl && e.prim->family != Family::kCollective &&
         e.regions.empty();
}

}  // namespace

Var Builder::NewVar(const Type* type) {
  types_.push_back(type);
  definition_.push_back(-1);
  return Var{static_cast<uint32_t>(types_.size() - 1)};
}

Atom Builder::Parameter(const Type& type, std::string name, Param::Kind kind) {
  const Var v = NewVar(Intern(type));
  params_.push_back({TypeOf(v), std::move(name), kind});
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
    plain_ &= IsPlain(eqns_[i]);
  }
}

void Builder::KeepParameters(absl::Span<const size_t> places) {
  std::vector<Param> params;
  std::vector<uint32_t> vars;
  params.reserve(places.size());
  vars.reserve(places.size());
  for (size_t i : places) {
    params.push_back(std::move(params_[i]));
    vars.push_back(param_vars_[i]);
  }
  params_ = std::move(params);
  param_vars_ = std::move(vars);
}

void Builder::MoveParametersToFront(size_t first) {
  std::vector<size_t> places(params_.size());
  std::iota(places.begin(), places.end(), 0);
  std::rotate(places.begin(), places.begin() + static_cast<int64_t>(first), places.end());
  KeepParameters(places);
}

namespace {

// What the type rules of primitives said before. A rule reads the types of its operands and which of them are literals,
// the attributes and the regions, and nothing else; most equations of a program repeat a few combinations without
// attributes and regions. Types live as long as the process, so their addresses stand for them.
struct Inferred {
  static constexpr size_t kMaxOperands = 3;
  const Prim* prim = nullptr;
  const Type* operands[kMaxOperands] = {};
  size_t count = 0;
  unsigned literal = 0;  // one bit per operand
  const Type* result = nullptr;

  bool SameQuestion(const Inferred& other) const {
    return prim == other.prim && count == other.count && literal == other.literal &&
           std::equal(operands, operands + kMaxOperands, other.operands);
  }
  size_t Hash() const {
    size_t h = reinterpret_cast<size_t>(prim) + literal;
    for (const Type* t : operands) h = h * 31 + reinterpret_cast<size_t>(t);
    return h ^ h >> 7 ^ h >> 13;
  }
};

Inferred& Remembered(const Inferred& question) {
  constexpr size_t kSlots = 256;
  thread_local std::array<Inferred, kSlots> slots;
  return slots[question.Hash() % kSlots];
}

void CheckBytes(const Prim& prim, const Type& t) {
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

}  // namespace

Atoms Builder::Emit(const Prim& prim, Atoms operands, Attrs attrs, std::vector<FnRef> regions) {
  Inferred question;
  const bool memorable = attrs.empty() && regions.empty() && operands.size() <= Inferred::kMaxOperands;
  if (memorable) {
    question.prim = &prim;
    for (const Atom& a : operands) {
      question.literal |= static_cast<unsigned>(a.is_literal()) << question.count;
      question.operands[question.count++] = &TypeOf(a);
    }
    const Inferred& known = Remembered(question);
    if (known.SameQuestion(question)) return Append({&prim, std::move(operands), 0, 1, {}, {}, loc_}, &known.result);
  }
  Types operand_types;
  Mask literal;
  for (const Atom& a : operands) {
    operand_types.push_back(TypeOf(a));
    literal.push_back(a.is_literal());
  }
  absl::InlinedVector<const Type*, 4> result_types;
  try {
    if (prim.num_operands >= 0 && static_cast<int>(operands.size()) != prim.num_operands) {
      throw TypeError(prim.name, ": takes ", prim.num_operands, " operands, got ", operands.size());
    }
    for (const Type& t : InferTypes(Sig{prim, operand_types, literal, attrs, regions})) {
      CheckBytes(prim, t);
      result_types.push_back(Intern(t));
    }
  } catch (Error& error) {
    error.set_loc(loc_);
    throw;
  }
  if (memorable && result_types.size() == 1) {
    question.result = result_types[0];
    Remembered(question) = question;
  }
  const uint32_t count = static_cast<uint32_t>(result_types.size());
  return Append({&prim, std::move(operands), 0, count, std::move(attrs), std::move(regions), loc_},
                result_types.data());
}

Atoms Builder::Append(Eqn&& eqn, const Type* const* types) {
  eqn.first_result = static_cast<uint32_t>(types_.size());
  Atoms results;
  results.reserve(eqn.num_results);
  for (uint32_t r = 0; r < eqn.num_results; ++r) {
    results.push_back(NewVar(types[r]));
    definition_.back() = static_cast<int32_t>(eqns_.size());
  }
  plain_ &= IsPlain(eqn);
  eqns_.push_back(std::move(eqn));
  return results;
}

Atom Builder::Emit1(const Prim& prim, Atoms operands, Attrs attrs, std::vector<FnRef> regions) {
  Atoms results = Emit(prim, std::move(operands), std::move(attrs), std::move(regions));
  WEFT_CHECK(results.size() == 1) << prim.name << " has " << results.size() << " results";
  return results[0];
}

void Builder::SeeThrough(size_t first, const std::string& transform) {
  for (size_t i = first; i < eqns_.size(); ++i) eqns_[i].loc = eqns_[i].loc.Through(transform);
}

Atoms Builder::Clone(const Eqn& eqn, Atoms operands) {
  return Emit(*eqn.prim, std::move(operands), eqn.attrs, eqn.regions);
}

Atoms Builder::Clone(const Fn& fn, const Eqn& eqn, Atoms operands) {
  if (!eqn.regions.empty()) return Clone(eqn, std::move(operands));
  for (size_t i = 0; i < operands.size(); ++i) {
    const Atom &was = eqn.operands[i], &is = operands[i];
    // A literal beside an array means its number everywhere: what stands for it may have another shape.
    const bool same = was.is_var() ? is.is_var() && types_[is.id()] == fn.types_[was.id()] : is.Is(was);
    if (!same) return Clone(eqn, std::move(operands));
  }
  return Append({eqn.prim, std::move(operands), 0, eqn.num_results, eqn.attrs, {}, loc_},
                fn.types_.data() + eqn.first_result);
}

Atoms Builder::Adopt(const Fn& fn, Eqn&& eqn, bool same_types) {
  if (!same_types) return Emit(*eqn.prim, std::move(eqn.operands), std::move(eqn.attrs), eqn.regions);
  const Type* const* types = fn.types_.data() + eqn.first_result;
  eqn.loc = loc_;
  return Append(std::move(eqn), types);
}

Eqn& Builder::TakeEqn(const FnRef& fn, size_t i, Eqn& copy) {
  const Eqn& eqn = fn->eqns_[i];
  if (fn.use_count() != 1) return copy = eqn;
  // Another thread may have held the function until now: what it read there, it read before what is written here.
  std::atomic_thread_fence(std::memory_order_acquire);
  // A function is const to all who share it; the last one may take it apart.
  return const_cast<Eqn&>(eqn);
}

void Builder::ReserveLike(const Fn& fn, size_t times) {
  eqns_.reserve(eqns_.size() + times * fn.eqns().size());
  types_.reserve(types_.size() + times * fn.num_vars());
  definition_.reserve(definition_.size() + times * fn.num_vars());
}

template <class EqnAt>
Atoms Builder::InlineEqns(const Fn& fn, absl::Span<const Atom> args, const EqnAt& eqn_at) {
  WEFT_CHECK(args.size() == fn.params().size())
      << "inlining " << fn.name() << ": " << args.size() << " arguments for " << fn.params().size();
  LongList<Atom> env(args.begin(), args.end());
  env.resize(fn.num_vars());
  // On variables of the parameters' own types every result has the type it has in `fn`; nothing is inferred again. (In
  // place of a parameter that is not used there may be no variable at all.)
  const auto fits = [&](size_t i) {
    return args[i].is_var() && args[i].id() < types_.size() && types_[args[i].id()] == fn.types_[i];
  };
  bool same_types = true;
  for (size_t i = 0; same_types && i < args.size(); ++i) same_types = fits(i);
  if (fn.eqns().size() > eqns_.size()) ReserveLike(fn);
  for (size_t i = 0; i < fn.eqns().size(); ++i) {
    Eqn copy;
    Eqn& e = eqn_at(i, copy);
    const uint32_t first = e.first_result;
    for (Atom& a : e.operands) {
      if (a.is_var()) a = env[a.id()];
    }
    ScopedLoc scope(*this, e.loc ? e.loc : loc_);
    const Atoms results = Adopt(fn, std::move(e), same_types);
    std::copy(results.begin(), results.end(), env.begin() + first);
  }
  Atoms results;
  results.reserve(fn.results().size());
  for (const Atom& a : fn.results()) results.push_back(a.is_var() ? env[a.id()] : a);
  return results;
}

Atoms Builder::Inline(const Fn& fn, absl::Span<const Atom> args) {
  return InlineEqns(fn, args, [&](size_t i, Eqn& copy) -> Eqn& { return copy = fn.eqns_[i]; });
}

Atoms Builder::Inline(FnRef&& fn, absl::Span<const Atom> args) {
  const FnRef own = std::move(fn);
  return InlineEqns(*own, args, [&](size_t i, Eqn& copy) -> Eqn& { return TakeEqn(own, i, copy); });
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
  fn->Finish(plain_);
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
  // A parameter that came after an equation without results is where it belongs, too.
  const size_t before = first < eqns_.size() ? eqns_[first].first_result : types_.size();
  const size_t kept_vars = params_in_place ? std::max(before, param_vars_.size()) : before;
  size_t end = params_in_place ? kept_vars : param_vars_.size();
  if (params_in_place) {
    std::iota(number.begin(), number.begin() + static_cast<int64_t>(kept_vars), 0);
  } else {
    moved.reserve(types_.size());
    for (uint32_t v : param_vars_) {
      number[v] = static_cast<uint32_t>(moved.size());
      moved.push_back(types_[v]);
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
      const Type* type = types_[e.first_result + r];
      if (params_in_place)
        types_[end + r] = type;
      else
        moved.push_back(type);
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
