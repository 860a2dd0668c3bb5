#include "transforms/opt/components.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ir/builder.h"
#include "ir/ops.h"
#include "ir/prim_table.h"
#include "transforms/opt/rewrite.h"
#include "transforms/opt/rule_watch.h"

namespace weft {
namespace {

constexpr int64_t kMostComponents = 4;
// Below this a kernel takes less time than its start.
constexpr int64_t kLeastElements = 1 << 13;
constexpr int kWhole = -1;

bool IsPlain(const Type& t) { return t.is_static() && t.varying.empty() && t.dtype != DType::kTape; }

// The element-wise operation that combines two components as a reduction does; null: there is none.
const char* Combining(const Prim& prim, DType dtype) {
  static const auto& combines = *new PrimTable<const char*>{
      {"reduce_sum", "add"}, {"reduce_prod", "mul"}, {"reduce_max", "max"}, {"reduce_min", "min"}};
  static const auto& rounds = *new PrimSet{"reduce_sum", "reduce_prod"};
  // Sums of halves are rounded once, at their end.
  if (rounds.Has(prim) && (IsBool(dtype) || (IsFloat(dtype) && ByteWidth(dtype) < 4))) return nullptr;
  return combines[prim];
}

bool Holds(const Ints& list, int64_t n) { return std::find(list.begin(), list.end(), n) != list.end(); }

// Moves elements. `in_operand`: where dimension d of the result, `to`, is in the operand, `from`; kWhole: it has none;
// nullopt: it is there with others. `component`: the result without dimension d, of a part of the operand that has lost
// its dimension `from`; `dims` is its shape.
struct View {
  std::optional<int> (*in_operand)(const Eqn& e, const Type& to, const Type& from, int d) = nullptr;
  Atom (*component)(Builder& b, const Eqn& e, Atom x, int d, int from, const Dims& dims) = nullptr;
};

std::optional<int> InBroadcast(const Eqn& e, const Type& to, const Type& from, int d) {
  const Ints& dims = e.attrs.Get<Ints>("dims");
  for (size_t i = 0; i < dims.size(); ++i) {
    // A dimension of one element is the same for every component.
    if (dims[i] == d && from.dims[i] == to.dims[static_cast<size_t>(d)]) return static_cast<int>(i);
  }
  return kWhole;
}
Atom ComponentOfBroadcast(Builder& b, const Eqn& e, Atom x, int d, int from, const Dims& dims) {
  Ints to = e.attrs.Get<Ints>("dims");
  if (const auto one = std::find(to.begin(), to.end(), d); one != to.end()) {
    if (from == kWhole) {
      Dims rest = b.TypeOf(x).dims;
      rest.erase(rest.begin() + (one - to.begin()));
      x = Reshape(b, x, rest);
    }
    to.erase(one);
  }
  for (int64_t& t : to) t -= t > d;
  return Broadcast(b, x, dims, to);
}

std::optional<int> InTranspose(const Eqn& e, const Type&, const Type&, int d) {
  return static_cast<int>(e.attrs.Get<Ints>("perm")[static_cast<size_t>(d)]);
}
Atom ComponentOfTranspose(Builder& b, const Eqn& e, Atom x, int d, int from, const Dims&) {
  Ints perm = e.attrs.Get<Ints>("perm");
  perm.erase(perm.begin() + d);
  for (int64_t& p : perm) p -= p > from;
  return Transpose(b, x, perm);
}

// A dimension before and behind which as many elements are, in both shapes.
std::optional<int> InReshape(const Eqn&, const Type& to, const Type& from, int d) {
  Dim before = 1;
  for (int i = 0; i < d; ++i) before = before * to.dims[static_cast<size_t>(i)];
  Dim seen = 1;
  for (int i = 0; i < from.rank(); ++i) {
    const Dim& size = from.dims[static_cast<size_t>(i)];
    if (seen == before && size == to.dims[static_cast<size_t>(d)]) return i;
    seen = seen * size;
  }
  return std::nullopt;
}
Atom ComponentOfReshape(Builder& b, const Eqn&, Atom x, int, int, const Dims& dims) { return Reshape(b, x, dims); }

const View& ViewOf(const Prim& prim) {
  static const auto& views = *new PrimTable<View>{{"broadcast", {InBroadcast, ComponentOfBroadcast}},
                                                  {"transpose", {InTranspose, ComponentOfTranspose}},
                                                  {"reshape", {InReshape, ComponentOfReshape}}};
  return views[prim];
}

class Components {
 public:
  Components(const Fn& fn, int64_t least)
      : fn_(fn), least_(least), dim_(fn.num_vars(), kWhole), whole_(fn.num_vars(), false), defined_(fn.num_vars(), -1) {
    for (size_t i = 0; i < fn.eqns().size(); ++i) {
      const Eqn& e = fn.eqns()[i];
      for (uint32_t r = 0; r < e.num_results; ++r) defined_[e.first_result + r] = static_cast<int64_t>(i);
    }
  }

  // Null: nothing is taken apart.
  FnRef Rewritten() {
    std::vector<size_t> seeds;
    for (size_t i = 0; i < fn_.eqns().size(); ++i) {
      if (SeedDim(fn_.eqns()[i]) != kWhole) seeds.push_back(i);
    }
    if (seeds.empty()) return nullptr;
    RuleWatch* const watch = RuleWatch::Current();
    if (watch != nullptr && !watch->Allows(kComponents)) return nullptr;
    readers_.resize(fn_.num_vars());
    for (size_t i = 0; i < fn_.eqns().size(); ++i) {
      for (const Atom& a : fn_.eqns()[i].operands) {
        if (a.is_var() && (readers_[a.id()].empty() || readers_[a.id()].back() != i)) readers_[a.id()].push_back(i);
      }
    }
    for (const size_t i : seeds) {
      if (watch != nullptr && !watch->Allows(kComponents)) break;
      const Eqn& e = fn_.eqns()[i];
      Want(e.operands[0], SeedDim(e));
      if (watch != nullptr) watch->Applied(kComponents, fn_, e);
    }
    KeepWhole();
    return Emit();
  }

 private:
  int64_t Size(const Atom& a, int d) const { return fn_.TypeOf(a).dims[static_cast<size_t>(d)].value("a dimension"); }

  bool IsLarge(const Atom& a) const {
    if (!a.is_var()) return false;
    const Type& type = fn_.TypeOf(a);
    return IsPlain(type) && type.size().value("an array") >= least_;
  }

  // The few-element dimension that a reduction of a large array reduces; kWhole: there is none.
  int SeedDim(const Eqn& e) const {
    if (e.operands.size() != 1 || !IsLarge(e.operands[0])) return kWhole;
    if (Combining(*e.prim, fn_.TypeOf(e.operands[0]).dtype) == nullptr) return kWhole;
    // With others it is one long sum, over memory as it lies.
    const Ints& dims = e.attrs.Get<Ints>("dims");
    if (dims.size() != 1) return kWhole;
    const int d = static_cast<int>(dims[0]);
    if (const int64_t size = Size(e.operands[0], d); size < 2 || size > kMostComponents) return kWhole;
    // Others that are as short could be in lanes no better.
    for (int other = 0; other < fn_.TypeOf(e.operands[0]).rank(); ++other) {
      if (Size(e.operands[0], other) > 2 * kMostComponents) return d;
    }
    return kWhole;
  }

  // Where dimension d of the result of an equation that may be computed by components is in operand k: kWhole where the
  // operand has no such dimension. nullopt: it may not.
  std::optional<int> InOperand(const Eqn& e, size_t k, int d) const {
    if (e.num_results != 1 || !e.regions.empty() || e.prim->has_effect) return std::nullopt;
    const Type& to = fn_.TypeOf(e.result());
    const Type& from = fn_.TypeOf(e.operands[k]);
    if (!IsPlain(to) || !IsPlain(from)) return std::nullopt;
    if (e.prim->is_elementwise()) return from.rank() == to.rank() ? d : kWhole;
    if (const View& view = ViewOf(*e.prim); view.in_operand != nullptr) return view.in_operand(e, to, from, d);
    if (Combining(*e.prim, from.dtype) != nullptr) {
      const Ints& dims = e.attrs.Get<Ints>("dims");
      int left = d;
      for (int i = 0; i < from.rank(); ++i) {
        if (!Holds(dims, i) && left-- == 0) return i;
      }
    }
    return std::nullopt;
  }
  // The other way: where dimension d of operand k is in the result; nullopt also where it is reduced.
  std::optional<int> InResult(const Eqn& e, size_t k, int d) const {
    if (e.num_results != 1) return std::nullopt;
    for (int to = 0; to < fn_.TypeOf(e.result()).rank(); ++to) {
      if (InOperand(e, k, to) == std::optional(d)) return to;
    }
    return std::nullopt;
  }
  // --- What is taken apart -------------------------------------------------------------------------------------------

  // From an array that is, to all large ones that are computed from the same components.
  void Want(const Atom& first, int d) {
    std::vector<std::pair<uint32_t, int>> wanted = {{first.id(), d}};
    while (!wanted.empty()) {
      const auto [id, dim] = wanted.back();
      wanted.pop_back();
      if (dim_[id] != kWhole) continue;  // of two dimensions, the one that was first
      dim_[id] = dim;
      if (const int64_t at = defined_[id]; at >= 0) {
        const Eqn& e = fn_.eqns()[static_cast<size_t>(at)];
        for (size_t k = 0; k < e.operands.size(); ++k) {
          const std::optional<int> there = InOperand(e, k, dim);
          if (there && *there != kWhole && IsLarge(e.operands[k])) wanted.emplace_back(e.operands[k].id(), *there);
        }
      }
      for (const size_t i : readers_[id]) {
        const Eqn& e = fn_.eqns()[i];
        for (size_t k = 0; k < e.operands.size(); ++k) {
          if (!e.operands[k].is_var() || e.operands[k].id() != id) continue;
          const std::optional<int> there = InResult(e, k, dim);
          if (there && IsLarge(Atom(e.result()))) wanted.emplace_back(e.result().id, *there);
        }
      }
    }
  }

  // Whether an equation is computed component by component: its result is taken apart.
  bool IsApart(const Eqn& e) const {
    if (e.num_results != 1 || dim_[e.first_result] == kWhole || whole_[e.first_result]) return false;
    for (size_t k = 0; k < e.operands.size(); ++k) {
      if (!InOperand(e, k, dim_[e.first_result])) return false;
    }
    return true;
  }
  // Whether it combines the components of its operand, or puts those of its result side by side again: of what is not
  // taken apart itself.
  bool Reduces(const Eqn& e) const {
    if (e.operands.size() != 1 || !e.operands[0].is_var() || e.num_results != 1) return false;
    const int d = dim_[e.operands[0].id()];
    return d != kWhole && Combining(*e.prim, fn_.TypeOf(e.operands[0]).dtype) != nullptr;
  }

  // What somebody reads as a whole is computed as a whole; its components are parts of that.
  void KeepWhole() {
    for (const Atom& a : fn_.results()) {
      if (a.is_var()) whole_[a.id()] = true;
    }
    for (size_t i = fn_.eqns().size(); i-- > 0;) {
      const Eqn& e = fn_.eqns()[i];
      const bool apart = IsApart(e);
      if (!apart && Reduces(e)) continue;
      for (size_t k = 0; k < e.operands.size(); ++k) {
        const Atom& a = e.operands[k];
        if (!a.is_var()) continue;
        const int read = apart ? *InOperand(e, k, dim_[e.first_result]) : kWhole;
        if (read == kWhole || read != dim_[a.id()]) whole_[a.id()] = true;
      }
    }
  }

  // --- The program ---------------------------------------------------------------------------------------------------

  FnRef Emit() {
    Builder b(fn_.name());
    value_.resize(fn_.num_vars());
    parts_.resize(fn_.num_vars());
    for (size_t i = 0; i < fn_.params().size(); ++i) {
      const Param& p = fn_.params()[i];
      value_[i] = b.Parameter(p.type, p.name, p.kind);
    }
    for (const Eqn& e : fn_.eqns()) {
      const ScopedLoc loc(b, e.loc);
      if (IsApart(e)) {
        parts_[e.first_result] = Apart(b, e);
      } else if (Reduces(e)) {
        value_[e.first_result] = Reduced(b, e);
      } else {
        Atoms x;
        for (const Atom& a : e.operands) x.push_back(Whole(a));
        const Atoms y = b.Clone(fn_, e, x);
        for (uint32_t r = 0; r < e.num_results; ++r) value_[e.first_result + r] = y[r];
      }
    }
    Atoms results;
    for (const Atom& a : fn_.results()) results.push_back(Whole(a));
    return std::move(b).Build(results);
  }

  Atom Whole(const Atom& a) const { return a.is_var() ? value_[a.id()] : a; }

  // The components of a value along its dimension d, without that dimension.
  Atoms PartsOf(Builder& b, const Atom& a, int d) {
    if (a.is_var() && !parts_[a.id()].empty() && dim_[a.id()] == d) return parts_[a.id()];
    Atoms& known = a.is_var() ? cut_[{a.id(), d}] : cut_[{fn_.num_vars(), d}];
    if (a.is_var() && !known.empty()) return known;
    known.clear();
    const Atom whole = Whole(a);
    const Dims dims = fn_.TypeOf(a).dims;
    Ints start(dims.size(), 0), limit;
    for (const Dim& n : dims) limit.push_back(n.value("a dimension"));
    Dims rest = dims;
    rest.erase(rest.begin() + d);
    for (int64_t i = 0; i < Size(a, d); ++i) {
      start[static_cast<size_t>(d)] = i, limit[static_cast<size_t>(d)] = i + 1;
      known.push_back(Reshape(b, Slice(b, whole, start, limit, Ints(dims.size(), 1)), rest));
    }
    return known;
  }

  // Component by component.
  Atoms Apart(Builder& b, const Eqn& e) {
    const int d = dim_[e.first_result];
    const int64_t count = Size(Atom(e.result()), d);
    std::vector<Atoms> operands;
    std::vector<int> at;
    for (size_t k = 0; k < e.operands.size(); ++k) {
      at.push_back(*InOperand(e, k, d));
      operands.push_back(at[k] == kWhole ? Atoms(static_cast<size_t>(count), Whole(e.operands[k]))
                                         : PartsOf(b, e.operands[k], at[k]));
    }
    Dims dims = fn_.TypeOf(e.result()).dims;
    dims.erase(dims.begin() + d);
    Atoms parts;
    for (size_t i = 0; i < static_cast<size_t>(count); ++i) {
      Atoms x;
      for (const Atoms& of : operands) x.push_back(of[i]);
      parts.push_back(i > 0 && at.size() == 1 && at[0] == kWhole ? parts[0] : Component(b, e, x, d, at[0], dims));
    }
    return parts;
  }

  // One component of the equation's result, of the shape `dims`; `from`: where its operand had the dimension d.
  Atom Component(Builder& b, const Eqn& e, const Atoms& x, int d, int from, const Dims& dims) {
    if (const View& view = ViewOf(*e.prim); view.component != nullptr) return view.component(b, e, x[0], d, from, dims);
    if (e.prim->is_elementwise()) return b.Emit1(*e.prim, x, e.attrs);
    return Reduce(b, e.prim->name, x[0], Without(e.attrs.Get<Ints>("dims"), from));
  }
  // The reduced dimensions, without dimension d of the operand.
  static Ints Without(const Ints& dims, int d) {
    Ints left;
    for (const int64_t n : dims) {
      if (n != d) left.push_back(n - (n > d));
    }
    return left;
  }

  Atom Reduced(Builder& b, const Eqn& e) {
    const Atom& x = e.operands[0];
    const int d = dim_[x.id()];
    const Ints& dims = e.attrs.Get<Ints>("dims");
    const Ints left = Without(dims, d);
    Atoms parts = PartsOf(b, x, d);
    if (Holds(dims, d)) {
      Atom y = parts[0];
      const Prim& combine = FindPrim(Combining(*e.prim, fn_.TypeOf(x).dtype));
      for (size_t i = 1; i < parts.size(); ++i) y = b.Emit1(combine, {y, parts[i]});
      return left.empty() ? y : Reduce(b, e.prim->name, y, left);
    }
    // Side by side again.
    const int to = *InResult(e, 0, d);
    Dims one = fn_.TypeOf(e.result()).dims;
    one[static_cast<size_t>(to)] = Dim(1);
    for (Atom& part : parts) part = Reshape(b, Reduce(b, e.prim->name, part, left), one);
    return Concatenate(b, parts, to);
  }

  const Fn& fn_;
  const int64_t least_;
  // By variable.
  std::vector<int> dim_;     // along which it is taken apart
  std::vector<bool> whole_;  // whether it is there as a whole
  std::vector<int64_t> defined_;
  std::vector<std::vector<size_t>> readers_;
  std::vector<Atom> value_;
  std::vector<Atoms> parts_;
  std::map<std::pair<uint32_t, int>, Atoms> cut_;  // components of what is there as a whole, by variable and dimension
};

FnRef OfBody(FnRef fn, int64_t least) {
  FnRef made = Components(*fn, least).Rewritten();
  return made == nullptr ? fn : made;
}

}  // namespace

FnRef TakeComponentsApart(FnRef fn, int64_t least_elements) {
  return RewriteBodies(std::move(fn), [&](FnRef body) { return OfBody(std::move(body), least_elements); });
}

FnRef TakeComponentsApart(FnRef fn) { return TakeComponentsApart(std::move(fn), kLeastElements); }

}  // namespace weft
