#include "transforms/ad/transpose.h"

#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "ir/builder.h"
#include "ir/ops.h"
#include "ir/prim_table.h"
#include "transforms/ad/split.h"
#include "transforms/opt/dce.h"
#include "transforms/region_memo.h"
#include "transforms/region_rules.h"

namespace weft {
namespace {

// `x` has the values of the operands that do not depend on the linear inputs.
void CheckLinear(const Eqn& e, const OptionalAtoms& x) {
  const Prim& prim = *e.prim;
  for (size_t i = 0; i < x.size(); ++i) {
    if (!x[i] && !prim.LinearIn(static_cast<int>(i))) {
      const std::string hint = prim.region_use == RegionUse::kUncounted ? ", which decides when it ends" : "";
      throw UserError(ErrorKind::kDerivative, e.loc, "transpose: ", prim.name, " is not linear in operand ", i, hint);
    }
  }
  if (prim.multilinear && std::count(x.begin(), x.end(), std::nullopt) > 1) {
    throw UserError(ErrorKind::kDerivative, e.loc, "transpose: ", prim.name,
                    " multiplies two values that both depend on the linear inputs");
  }
  WEFT_CHECK(prim.transpose != nullptr) << prim.name << " is declared linear but has no transpose rule";
}

// The cotangents of a function's values while its equations are visited last to first.
class Cotangents {
 public:
  Cotangents(Builder& b, const Fn& fn) : b_(b), fn_(fn), sums_(fn.num_vars()) {}

  void Add(uint32_t var, const Atom& ct) { sums_[var] = AddTangents(b_, sums_[var], ct); }

  // Of a slice that cuts one dimension into contiguous parts: remembered until the whole is asked for, since parts of
  // one value that lie apart make up its cotangent without any addition. False: not such a slice.
  bool AddPart(const Eqn& slice, const Atom& ct, Loc loc) {
    const Type &whole = fn_.TypeOf(slice.operands[0]), part = b_.TypeOf(ct);
    const Ints& strides = slice.attrs.Get<Ints>("strides");
    int cut = -1;
    for (int d = 0; d < whole.rank(); ++d) {
      if (part.dims[d] == whole.dims[d]) continue;
      if (cut >= 0 || !whole.dims[d].is_static() || strides[d] != 1 || part.dims[d] == Dim(0)) return false;
      cut = d;
    }
    if (cut < 0) return false;
    const int64_t start = slice.attrs.Get<Ints>("start")[cut];
    parts_[slice.operands[0].id()].push_back({cut, start, start + part.dims[cut].value(), ct, loc});
    return true;
  }

  // The sum of what has been added; nothing: a symbolic zero.
  const std::optional<Atom>& Of(uint32_t var) {
    if (const auto it = parts_.find(var); it != parts_.end()) {
      for (const std::vector<Part>& row : Rows(std::move(it->second))) Add(var, Joined(fn_.TypeOf(Var{var}), row));
      parts_.erase(it);
    }
    return sums_[var];
  }

 private:
  struct Part {
    int dim;
    int64_t start, limit;
    Atom ct;
    Loc loc;
  };

  // Parts in rows, each along one dimension and in order, of parts that do not overlap.
  static std::vector<std::vector<Part>> Rows(std::vector<Part> parts) {
    std::stable_sort(parts.begin(), parts.end(), [](const Part& a, const Part& b) { return a.start < b.start; });
    std::vector<std::vector<Part>> rows;
    for (Part& p : parts) {
      const auto fits = [&](const std::vector<Part>& r) { return r.back().dim == p.dim && r.back().limit <= p.start; };
      auto row = std::find_if(rows.begin(), rows.end(), fits);
      if (row == rows.end()) row = rows.emplace(rows.end());
      row->push_back(std::move(p));
    }
    return rows;
  }

  Atom Joined(const Type& type, const std::vector<Part>& row) {
    ScopedLoc loc(b_, row.front().loc);
    const int dim = row.front().dim;
    const int64_t size = type.dims[dim].value();
    if (row.size() == 1) {
      Ints lo(type.rank(), 0), hi = lo;
      lo[dim] = row[0].start, hi[dim] = size - row[0].limit;
      return Pad(b_, row[0].ct, Atom::Scalar(type.dtype, 0), lo, hi, Ints(type.rank(), 0));
    }
    Atoms pieces;
    int64_t end = 0;
    const auto fill = [&](int64_t start) {
      if (end == start) return;
      Dims gap = type.dims;
      gap[dim] = start - end;
      const Type zeros = type.With(gap);
      pieces.push_back(MatchVarying(b_, Zeros(b_, zeros), zeros, /*sum=*/false));
    };
    for (const Part& p : row) {
      fill(p.start);
      pieces.push_back(p.ct);
      end = p.limit;
    }
    fill(size);
    return Concatenate(b_, pieces, dim);
  }

  Builder& b_;
  const Fn& fn_;
  LongList<std::optional<Atom>> sums_;
  absl::flat_hash_map<uint32_t, std::vector<Part>> parts_;
};

// Which of the results have a cotangent.
Mask WithCotangent(const OptionalAtoms& cts) {
  Mask mask;
  for (const auto& ct : cts) mask.push_back(ct.has_value());
  return mask;
}

template <class List>
List Where(const List& list, const Mask& mask) {
  List out;
  for (size_t i = 0; i < mask.size(); ++i) {
    if (mask[i]) out.push_back(list[i]);
  }
  return out;
}

// The cotangents of the operands. Of an operation with regions, a result without one is dropped first, and with it what
// it alone depends on: with zeros in its place, an infinite derivative would give a NaN.
OptionalAtoms TransposeEqn(Builder& b, const Fn& fn, const Eqn& e, const OptionalAtoms& x, const OptionalAtoms& cts) {
  const Mask needed = WithCotangent(cts);
  if (!e.prim->dce || std::find(needed.begin(), needed.end(), false) == needed.end()) {
    TransposeContext c{b, e, x, {fn, e}, cts, Regions()};
    return e.prim->transpose(c);
  }
  Kept kept = KeepNeeded(e, needed);
  Eqn rest;
  rest.prim = e.prim;
  rest.operands = Where(e.operands, kept.operands);
  rest.attrs = std::move(kept.attrs);
  rest.regions = std::move(kept.regions);
  rest.loc = e.loc;
  const OptionalAtoms rest_x = Where(x, kept.operands), rest_cts = Where(cts, kept.results);
  rest.num_results = static_cast<uint32_t>(rest_cts.size());
  TransposeContext c{b, rest, rest_x, {fn, rest}, rest_cts, Regions()};
  const OptionalAtoms back = rest.prim->transpose(c);
  OptionalAtoms all(x.size());
  for (size_t i = 0, next = 0; i < all.size(); ++i) {
    if (kept.operands[i]) all[i] = back[next++];
  }
  return all;
}

// Which variables depend on the parameters in `linear`. `mixed`, when given: whether an equation with regions computes
// values that do beside others that do not and that later equations may multiply by. Those have to come first.
Mask Dependent(const Fn& fn, const Mask& linear, bool* mixed = nullptr);

// Which results of a region depend on the parameters in `linear`.
Mask DependentResults(const FnRef& region, const Mask& linear) {
  return RegionMemo::Of("depends", region, {linear}, [&] {
    const Mask depends = Dependent(*region, linear);
    Mask results;
    for (const Atom& a : region->results()) results.push_back(a.is_var() && depends[a.id()]);
    return results;
  });
}

// Which results of an equation depend on the operands in `linear`.
Mask DependentResults(const Eqn& e, const Mask& linear) {
  Mask results(e.num_results, false);
  if (e.prim->transposes_mixed_regions) {
    for (const FnRef& region : e.regions) {
      const auto first = linear.end() - static_cast<int64_t>(region->params().size());
      const Mask inside = DependentResults(region, Mask(first, linear.end()));
      for (size_t r = 0; r < results.size(); ++r) results[r] = results[r] || inside[r];
    }
    return results;
  }
  for (size_t r = 0; r < results.size(); ++r) {
    Mask one(results.size(), false);
    one[r] = true;
    const Mask read = OperandsNeeded(e, one);
    for (size_t i = 0; i < read.size(); ++i) results[r] = results[r] || (read[i] && linear[i]);
  }
  return results;
}

Mask Dependent(const Fn& fn, const Mask& linear, bool* mixed) {
  Mask depends = linear;
  depends.resize(fn.num_vars(), false);
  for (const Eqn& e : fn.eqns()) {
    Mask operands;
    for (const Atom& a : e.operands) operands.push_back(a.is_var() && depends[a.id()]);
    const bool any = e.CallsOutwards() || std::find(operands.begin(), operands.end(), true) != operands.end();
    Mask results(e.num_results, any);
    if (any && e.prim->split != nullptr) {
      const bool known = e.prim->transposes_mixed_regions && !e.CallsOutwards();
      if (mixed != nullptr && !known) {
        *mixed = true;
        return depends;
      }
      if (!e.CallsOutwards()) results = DependentResults(e, operands);
      if (mixed != nullptr && std::find(results.begin(), results.end(), false) != results.end()) {
        *mixed = true;
        return depends;
      }
    }
    std::copy(results.begin(), results.end(), depends.begin() + e.first_result);
  }
  return depends;
}

bool IsMixed(const Fn& fn, const Mask& linear) {
  bool mixed = false;
  Dependent(fn, linear, &mixed);
  return mixed;
}

}  // namespace

FnRef Transpose(const FnRef& fn, const Mask& linear) {
  WEFT_CHECK(linear.size() == fn->params().size())
      << "transpose: " << linear.size() << " flags for " << fn->params().size() << " parameters";
  const RegionMemo::Scope scope;
  if (!IsMixed(*fn, linear)) return TransposeLinearHalf(fn, linear);
  const SplitFn split = Split(fn, linear, Mask(fn->results().size(), true));
  Builder b(fn->name());
  Atoms known, args;
  for (size_t i = 0; i < linear.size(); ++i) {
    const Param& p = fn->params()[i];
    if (!linear[i]) known.push_back(b.Parameter(p.type, p.name, p.kind));
  }
  args = b.Inline(*split.known, known);
  for (const Type& t : fn->ResultTypes()) args.push_back(b.Parameter(t));
  Mask half(split.unknown->params().size(), true);
  std::fill(half.begin(), half.begin() + static_cast<int64_t>(split.residuals.size()), false);
  const Atoms results = EmitTransposed(b, *split.unknown, half, args);
  return std::move(b).Build(results);
}

FnRef TransposeLinearHalf(const FnRef& fn, const Mask& linear) {
  Builder b(fn->name());
  Atoms args;
  for (size_t i = 0; i < linear.size(); ++i) {
    const Param& p = fn->params()[i];
    if (!linear[i]) args.push_back(b.Parameter(p.type, p.name, p.kind));
  }
  for (const Type& t : fn->ResultTypes()) args.push_back(b.Parameter(t));
  const Atoms results = EmitTransposed(b, *fn, linear, args);
  return std::move(b).Build(results);
}

Atoms EmitTransposed(Builder& b, const Fn& fn, const Mask& linear, absl::Span<const Atom> args) {
  const RegionMemo::Scope scope;
  b.ReserveLike(fn);
  std::vector<bool> depends(fn.num_vars(), false);
  LongList<Atom> value(fn.num_vars());
  size_t next = 0;
  for (size_t i = 0; i < linear.size(); ++i) {
    depends[i] = linear[i];
    if (!linear[i]) value[i] = args[next++];
  }
  // Forwards: what does not depend on the linear parameters.
  for (const Eqn& e : fn.eqns()) {
    Atoms operands;
    bool any = e.CallsOutwards();
    for (const Atom& a : e.operands) {
      any |= a.is_var() && depends[a.id()];
      operands.push_back(a.is_var() ? value[a.id()] : a);
    }
    for (uint32_t r = 0; r < e.num_results; ++r) depends[e.first_result + r] = any;
    if (any) continue;
    ScopedLoc loc(b, e.loc);
    const Atoms y = b.Clone(fn, e, operands);
    std::copy(y.begin(), y.end(), value.begin() + e.first_result);
  }
  Cotangents cotangents(b, fn);
  for (const Atom& a : fn.results()) {
    const Atom& c = args[next++];
    if (a.is_var() && depends[a.id()]) cotangents.Add(a.id(), c);
  }
  // Backwards.
  for (size_t k = fn.eqns().size(); k-- > 0;) {
    const Eqn& e = fn.eqns()[k];
    if (e.num_results == 0 || !depends[e.first_result]) continue;
    OptionalAtoms cts;
    for (uint32_t r = 0; r < e.num_results; ++r) cts.push_back(cotangents.Of(e.first_result + r));
    if (std::none_of(cts.begin(), cts.end(), [](const auto& c) { return c.has_value(); })) continue;
    if (Is<"stop_gradient">(*e.prim)) continue;  // no cotangent passes, as in a vjp
    OptionalAtoms x;
    for (const Atom& a : e.operands) {
      if (a.is_literal())
        x.emplace_back(a);
      else if (depends[a.id()])
        x.emplace_back(std::nullopt);
      else
        x.emplace_back(value[a.id()]);
    }
    CheckLinear(e, x);
    Loc through = e.loc.Through("transpose", e.prim->name);
    // Slices that lie apart are joined rather than padded and added.
    if (Is<"slice">(*e.prim) && cotangents.AddPart(e, *cts[0], through)) continue;
    ScopedLoc loc(b, through);
    const OptionalAtoms back = TransposeEqn(b, fn, e, x, cts);
    for (size_t i = 0; i < back.size(); ++i) {
      if (x[i] || !back[i]) continue;
      // Beside a value that varies over a mesh axis, one that does not was used on every device along it.
      const Type& type = fn.TypeOf(e.operands[i]);
      const Atom back_i = MatchVarying(b, *back[i], type, /*sum=*/true);
      WEFT_CHECK(&b.TypeOf(back_i) == &type) << "transpose of " << e.prim->name << ": cotangent of operand " << i
                                             << " is " << b.TypeOf(back_i) << ", expected " << type;
      cotangents.Add(e.operands[i].id(), back_i);
    }
  }
  Atoms results;
  for (size_t i = 0; i < linear.size(); ++i) {
    if (!linear[i]) continue;
    const std::optional<Atom>& ct = cotangents.Of(static_cast<uint32_t>(i));
    results.push_back(ct ? *ct : Zeros(b, fn.params()[i].type));
  }
  return results;
}

}  // namespace weft
