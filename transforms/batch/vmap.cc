#include "transforms/batch/vmap.h"

#include <algorithm>
#include <iterator>
#include <optional>

#include "ir/builder.h"
#include "ir/ops.h"
#include "transforms/batch/index_from_outside.h"
#include "transforms/region_memo.h"
#include "transforms/region_rules.h"

namespace weft {
namespace {

Type WithLeading(const Type& type, const Dim& size) {
  Type t = type;
  t.dims.insert(t.dims.begin(), size);
  return t;
}

Atom Repeated(Builder& b, const Atom& x, const Dim& size) {
  const Type type = b.TypeOf(x);
  return Broadcast(b, x, WithLeading(type, size).dims, Range(1, type.rank() + 1));
}

// Moves dimension `from` of x to position `to`.
Atom MoveDim(Builder& b, const Atom& x, int64_t from, int64_t to) {
  Ints perm = OtherDims(b.TypeOf(x).rank(), {from});
  perm.insert(perm.begin() + to, from);
  return Transpose(b, x, perm);
}

int64_t Normalised(int64_t axis, int rank, const char* what, size_t index) {
  const int64_t positive = axis < 0 ? axis + rank : axis;
  if (positive < 0 || positive >= rank) {
    throw UserError(ErrorKind::kIndex, {}, "vmap: ", what, " ", index, " has mapped axis ", axis,
                    ", outside an array of rank ", rank);
  }
  return positive;
}

std::optional<size_t> HandedOn(const Eqn& e, size_t result);

// Which parameter of `fn` an atom is, whatever happens.
std::optional<size_t> ParameterOf(const Fn& fn, Atom atom) {
  while (atom.is_var()) {
    if (atom.id() < fn.params().size()) return atom.id();
    const auto after = std::upper_bound(fn.eqns().begin(), fn.eqns().end(), atom.id(),
                                        [](auto id, const Eqn& e) { return id < e.first_result; });
    const Eqn& e = *std::prev(after);
    const std::optional<size_t> operand = HandedOn(e, atom.id() - e.first_result);
    if (!operand) return std::nullopt;
    atom = e.operands[*operand];
  }
  return std::nullopt;
}

// The operand that a result of an equation is, whatever happens: all branches return it, or a loop leaves it as it is.
std::optional<size_t> HandedOn(const Eqn& e, size_t result) {
  switch (e.prim->region_use) {
    case RegionUse::kCall: return ParameterOf(*e.regions[0], e.regions[0]->results()[result]);
    case RegionUse::kBranches: {
      std::optional<size_t> found;
      for (const FnRef& branch : e.regions) {
        const std::optional<size_t> parameter = ParameterOf(*branch, branch->results()[result]);
        if (!parameter || (found && *found != *parameter)) return std::nullopt;
        found = parameter;
      }
      return found ? std::optional(*found + 1) : std::nullopt;
    }
    case RegionUse::kCounted:
    case RegionUse::kUncounted: {
      const Fn& body = *e.regions.back();
      if (result >= static_cast<size_t>(e.attrs.GetInt("num_carry"))) return std::nullopt;
      const size_t carry = static_cast<size_t>(e.attrs.GetOr<int64_t>("num_consts", 0)) + result;
      const size_t lead = e.operands.size() - body.params().size();
      return ParameterOf(body, body.results()[result]) == carry ? std::optional(lead + carry) : std::nullopt;
    }
    default: return std::nullopt;
  }
}

}  // namespace

BatchedFn Batch(const FnRef& written, const Mask& batched, const Mask& force_batched, const Dim& size,
                const std::string& axis) {
  const RegionMemo::Scope scope;
  const FnRef fn = WithIndexFromOutside(written, axis);
  WEFT_CHECK(batched.size() == fn->params().size())
      << "vmap: " << batched.size() << " flags for " << fn->params().size() << " parameters";
  Builder b(fn->name());
  b.ReserveLike(*fn);
  LongList<Atom> env(fn->num_vars());
  Mask is_batched(fn->num_vars(), false);
  const RegionRules rules = RegionsOver(axis);
  for (size_t i = 0; i < batched.size(); ++i) {
    const Param& p = fn->params()[i];
    env[i] = b.Parameter(batched[i] ? WithLeading(p.type, size) : p.type, p.name, p.kind);
    is_batched[i] = batched[i];
  }
  for (const Eqn& e : fn->eqns()) {
    Atoms x;
    Mask mask;
    for (const Atom& a : e.operands) {
      x.push_back(a.is_var() ? env[a.id()] : a);
      mask.push_back(a.is_var() && is_batched[a.id()]);
    }
    const bool any = std::find(mask.begin(), mask.end(), true) != mask.end() || (!axis.empty() && e.UsesAxis(axis));
    ScopedLoc loc(b, any ? e.loc.Through("vmap") : e.loc);
    Atoms y;
    Mask out(e.num_results, false);
    if (!any) {
      y = b.Clone(*fn, e, x);
    } else {
      if (!e.prim->batch)
        throw UserError(ErrorKind::kUnsupported, e.loc, "vmap: ", e.prim->name, " has no batching rule");
      BatchContext c{b, e, x, mask, size, axis, rules, {}, {}};
      e.prim->batch(c);
      y = c.y;
      out = c.batched_out;
      // What is handed on depends on the batch no more than it did before.
      for (uint32_t r = 0; r < e.num_results && !e.regions.empty(); ++r) {
        if (!out[r]) continue;
        const std::optional<size_t> operand = HandedOn(e, r);
        if (!operand || mask[*operand]) continue;
        const Atom& given = e.operands[*operand];
        if (fn->TypeOf(given) != fn->TypeOf(e.result(static_cast<int>(r)))) continue;
        y[r] = x[*operand];
        out[r] = false;
      }
    }
    WEFT_CHECK(y.size() == e.num_results && out.size() == e.num_results) << "batching of " << e.prim->name;
    for (uint32_t r = 0; r < e.num_results; ++r) {
      env[e.first_result + r] = y[r];
      is_batched[e.first_result + r] = out[r];
    }
  }
  Atoms results;
  Mask batched_out;
  for (size_t i = 0; i < fn->results().size(); ++i) {
    const Atom& a = fn->results()[i];
    Atom value = a.is_var() ? env[a.id()] : a;
    bool out = a.is_var() && is_batched[a.id()];
    if (!out && !force_batched.empty() && force_batched[i]) {
      value = Repeated(b, value, size);
      out = true;
    }
    results.push_back(value);
    batched_out.push_back(out);
  }
  BatchedFn out{std::move(b).Build(results), batched_out};
  WEFT_CHECK(axis.empty() || !out.fn->UsesAxis(axis)) << "vmap left a collective over its axis '" << axis << "'";
  return out;
}

FnRef Vmap(const FnRef& fn, const VmapOptions& options) {
  Mask batched, force;
  for (const auto& axis : options.in_axes) batched.push_back(axis.has_value());
  for (const auto& axis : options.out_axes) force.push_back(axis.has_value());
  const BatchedFn f = Batch(fn, batched, force, options.size, options.axis);
  Builder b(fn->name());
  Atoms args;
  for (size_t i = 0; i < fn->params().size(); ++i) {
    const Param& p = fn->params()[i];
    if (!batched[i]) {
      args.push_back(b.Parameter(p.type, p.name, p.kind));
      continue;
    }
    const int64_t axis = Normalised(*options.in_axes[i], p.type.rank() + 1, "argument", i);
    Type type = p.type;
    type.dims.insert(type.dims.begin() + axis, options.size);
    args.push_back(MoveDim(b, b.Parameter(type, p.name, p.kind), axis, 0));
  }
  Atoms results = b.Inline(*f.fn, args);
  for (size_t i = 0; i < results.size(); ++i) {
    if (!options.out_axes[i]) {
      if (f.batched_out[i])
        throw ValueError("vmap: result ", i, " depends on a mapped argument, but its out_axes entry is None");
      continue;
    }
    const int64_t axis = Normalised(*options.out_axes[i], b.TypeOf(results[i]).rank(), "result", i);
    results[i] = MoveDim(b, results[i], 0, axis);
  }
  return std::move(b).Build(results);
}

}  // namespace weft
