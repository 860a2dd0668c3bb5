// Choices whose branches are harmless where they are not taken: 0 times an infinite derivative is NaN. What lies
// between the choice and the operation with that derivative may move elements, sum them up, or be an operation with
// regions.
#include <algorithm>

#include "ir/ops.h"
#include "ir/prim_table.h"
#include "ir/prims/indexing.h"
#include "transforms/opt/formula.h"
#include "transforms/opt/same_value.h"
#include "transforms/opt/singular.h"
#include "transforms/opt/stable_rules.h"

namespace weft {
namespace {

const Prim& SelectPrim() {
  static const Prim& select = FindPrim("select");
  return select;
}

// Where elements are needed: those of which the predicate is `taken`.
struct Need {
  Atom predicate;
  bool taken;
};

// The value of a branch with every operand of such an operation replaced where nobody needs its result.
class Guard {
 public:
  explicit Guard(Builder& b) : b_(b) {}

  Atom Of(const Atom& a, const Need& need, int depth = kDepth);

 private:
  static constexpr int kDepth = 16;

  // What of operand `i` of `e`, which gives `a`, is needed; nothing if that is not known.
  using OperandNeed = std::optional<Need> (Guard::*)(const Eqn& e, const Atom& a, size_t i, const Need& need);
  static const PrimTable<OperandNeed>& Through();

  // Whether there is an operation to be guarded behind `a`, as far as it is looked for.
  bool Reaches(const Atom& a, int depth, int* left) const;
  Atom OfRegions(const Atom& a, const Need& need);
  Atom OfCustomFunction(const Atom& a, const Need& need);

  std::optional<Need> Same(const Eqn&, const Atom&, size_t, const Need& need) { return need; }
  std::optional<Need> OfChoice(const Eqn&, const Atom&, size_t i, const Need& need) {
    return i > 0 ? std::optional(need) : std::nullopt;
  }
  std::optional<Need> OfReshape(const Eqn& e, const Atom&, size_t, const Need& need) {
    return Need{Reshape(b_, need.predicate, b_.TypeOf(e.operands[0]).dims), need.taken};
  }
  std::optional<Need> OfTranspose(const Eqn& e, const Atom&, size_t, const Need& need) {
    const Ints& perm = e.attrs.Get<Ints>("perm");
    Ints inverse(perm.size());
    for (size_t d = 0; d < perm.size(); ++d) inverse[static_cast<size_t>(perm[d])] = static_cast<int64_t>(d);
    return Need{Transpose(b_, need.predicate, inverse), need.taken};
  }
  std::optional<Need> OfReverse(const Eqn& e, const Atom&, size_t, const Need& need) {
    return Need{Reverse(b_, need.predicate, e.attrs.Get<Ints>("dims")), need.taken};
  }
  // An element that is repeated is needed where one of the copies is.
  std::optional<Need> OfBroadcast(const Eqn& e, const Atom& a, size_t, const Need& need) {
    const Dims from = b_.TypeOf(e.operands[0]).dims, to = b_.TypeOf(a).dims;
    const Ints into = e.attrs.Get<Ints>("dims");
    if (!std::is_sorted(into.begin(), into.end())) return std::nullopt;
    Ints repeated;
    for (int64_t d = 0; d < static_cast<int64_t>(to.size()); ++d) {
      const auto at = std::find(into.begin(), into.end(), d);
      if (at == into.end() || !(from[static_cast<size_t>(at - into.begin())] == to[static_cast<size_t>(d)]))
        repeated.push_back(d);
    }
    Atom any = need.predicate;
    if (!repeated.empty()) any = Reduce(b_, need.taken ? "reduce_or" : "reduce_and", any, repeated);
    return Need{Reshape(b_, any, from), need.taken};
  }
  std::optional<Need> OfReduction(const Eqn& e, const Atom&, size_t, const Need& need) {
    const Dims from = b_.TypeOf(e.operands[0]).dims;
    const Ints kept = OtherDims(static_cast<int>(from.size()), e.attrs.Get<Ints>("dims"));
    return Need{Broadcast(b_, need.predicate, from, kept), need.taken};
  }
  Atom NotNeeded(const Need& need) const { return Atom::Scalar(DType::kBool, need.taken ? 0 : 1); }
  std::optional<Need> OfSlice(const Eqn& e, const Atom& a, size_t, const Need& need) {
    const Type &from = b_.TypeOf(e.operands[0]), &to = b_.TypeOf(a);
    if (!from.is_static() || !to.is_static()) return std::nullopt;
    const Ints lo = e.attrs.Get<Ints>("start");
    Ints hi, interior = e.attrs.Get<Ints>("strides");
    for (size_t d = 0; d < interior.size(); ++d) {
      const int64_t n = to.dims[d].value();
      hi.push_back(from.dims[d].value() - lo[d] - (n == 0 ? 0 : (n - 1) * interior[d] + 1));
      --interior[d];
    }
    return Need{Pad(b_, need.predicate, NotNeeded(need), lo, hi, interior), need.taken};
  }
  std::optional<Need> OfPad(const Eqn& e, const Atom& a, size_t i, const Need& need) {
    const Type &from = b_.TypeOf(e.operands[0]), &to = b_.TypeOf(a);
    if (i != 0 || !from.is_static() || !to.is_static()) return std::nullopt;
    const Ints start = e.attrs.Get<Ints>("lo");
    Ints strides = e.attrs.Get<Ints>("interior"), limit;
    for (size_t d = 0; d < start.size(); ++d) {
      ++strides[d];
      const int64_t n = from.dims[d].value();
      limit.push_back(start[d] + (n - 1) * strides[d] + 1);
      if (start[d] < 0 || n == 0 || limit[d] > to.dims[d].value()) return std::nullopt;
    }
    return Need{Slice(b_, need.predicate, start, limit, strides), need.taken};
  }
  std::optional<Need> OfConcatenate(const Eqn& e, const Atom& a, size_t i, const Need& need) {
    const auto d = static_cast<size_t>(e.attrs.GetInt("dim"));
    const Type& type = b_.TypeOf(a);
    if (!type.is_static()) return std::nullopt;
    Ints start(type.dims.size(), 0), limit, strides(type.dims.size(), 1);
    for (const Dim& n : type.dims) limit.push_back(n.value());
    for (size_t k = 0; k < i; ++k) start[d] += b_.TypeOf(e.operands[k]).dims[d].value();
    limit[d] = start[d] + b_.TypeOf(e.operands[i]).dims[d].value();
    return Need{Slice(b_, need.predicate, start, limit, strides), need.taken};
  }
  std::optional<Need> OfDynamicSlice(const Eqn& e, const Atom&, size_t i, const Need& need) {
    if (i != 0) return std::nullopt;
    const Type type = b_.TypeOf(e.operands[0]).With(DType::kBool);
    const Atoms start(e.operands.begin() + 1, e.operands.end());
    return Need{DynamicUpdateSlice(b_, Full(b_, type, need.taken ? 0 : 1), need.predicate, start), need.taken};
  }
  std::optional<Need> OfDynamicUpdate(const Eqn& e, const Atom&, size_t i, const Need& need) {
    if (i == 0) return need;
    const Type type = b_.TypeOf(e.operands[1]);
    if (i != 1 || !type.is_static()) return std::nullopt;
    Ints sizes;
    for (const Dim& d : type.dims) sizes.push_back(d.value());
    const Atoms start(e.operands.begin() + 2, e.operands.end());
    return Need{DynamicSlice(b_, need.predicate, start, sizes), need.taken};
  }
  Atom Needed(const Need& need) { return need.taken ? need.predicate : Not(b_, need.predicate); }
  // An element is needed as often as it is read by one that is.
  std::optional<Need> OfGather(const Eqn& e, const Atom&, size_t i, const Need& need) {
    if (i != 0) return std::nullopt;
    const Type type = b_.TypeOf(e.operands[0]).With(DType::kI32);
    static const Prim& add = FindPrim("scatter_add");
    const Atom count = b_.Emit1(add, {Zeros(b_, type), e.operands[1], Convert(b_, Needed(need), DType::kI32)},
                                GatherDims::Of(e.attrs).AsScatter().ToAttrs());
    return Need{Gt(b_, count, Atom::Scalar(DType::kI32, 0)), true};
  }
  std::optional<Need> OfScatter(const Eqn& e, const Atom& a, size_t i, const Need& need) {
    if (i == 0) return need;
    if (i != 2) return std::nullopt;
    const GatherDims g = ScatterDims::Of(e.attrs).AsGather(b_.TypeOf(a).dims, b_.TypeOf(e.operands[2]).dims);
    static const Prim& gather = FindPrim("gather");
    const Atom read = b_.Emit1(gather, {Convert(b_, Needed(need), DType::kI32), e.operands[1]}, g.ToAttrs());
    return Need{Gt(b_, read, Atom::Scalar(DType::kI32, 0)), true};
  }

  // By this rule, or by a careful author.
  bool IsGuarded(Atom x, const Need& need) const {
    for (int guards = 0; guards < 8; ++guards) {
      const Eqn* e = b_.Definition(x);
      if (e == nullptr || e->prim != &SelectPrim()) return false;
      if (SameValue(b_, e->operands[0], need.predicate)) return true;
      x = Splat(b_, e->operands[1]) != nullptr ? e->operands[2] : e->operands[1];
    }
    return false;
  }

  // `x`, but nothing is derived from the elements of which nobody needs what is made of them.
  Atom Held(const Atom& x, const Need& need) {
    const Atom still = StopGradient(b_, x);
    return need.taken ? Select(b_, need.predicate, x, still) : Select(b_, need.predicate, still, x);
  }

  struct Made {
    Atom before;
    Need need;
    Atom after;
  };

  Builder& b_;
  std::vector<Made> made_;
  int left_ = 48;  // equations; larger branches are cut there
};

const PrimTable<Guard::OperandNeed>& Guard::Through() {
  static const auto& table = *new PrimTable<OperandNeed>{
      {"select", &Guard::OfChoice},
      {"reshape", &Guard::OfReshape},
      {"transpose", &Guard::OfTranspose},
      {"reverse", &Guard::OfReverse},
      {"broadcast", &Guard::OfBroadcast},
      {"slice", &Guard::OfSlice},
      {"pad", &Guard::OfPad},
      {"concatenate", &Guard::OfConcatenate},
      {"dynamic_slice", &Guard::OfDynamicSlice},
      {"dynamic_update_slice", &Guard::OfDynamicUpdate},
      {"gather", &Guard::OfGather},
      {"scatter", &Guard::OfScatter},
      {"scatter_add", &Guard::OfScatter},
      {"reduce_sum", &Guard::OfReduction},
      {"reduce_prod", &Guard::OfReduction},
      {"reduce_max", &Guard::OfReduction},
      {"reduce_min", &Guard::OfReduction},
      {"checkpoint_name", &Guard::Same},
  };
  return table;
}

bool Guard::Reaches(const Atom& a, int depth, int* left) const {
  const Eqn* e = b_.Definition(a);
  if (e == nullptr || depth == 0 || --*left < 0 || !IsFloat(b_.DTypeOf(a))) return false;
  if (!e->regions.empty()) return true;
  if (SingularOf(*e).at != Singular::At::kNowhere) return true;
  if (!e->prim->is_elementwise() && Through()[*e->prim] == nullptr) return false;
  return std::any_of(e->operands.begin(), e->operands.end(),
                     [&](const Atom& x) { return x.is_var() && Reaches(x, depth - 1, left); });
}

Atom Guard::Of(const Atom& a, const Need& need, int depth) {
  for (const Made& m : made_) {
    if (m.before == a && m.need.predicate == need.predicate && m.need.taken == need.taken) return m.after;
  }
  const Eqn* found = b_.Definition(a);
  if (found == nullptr || depth == 0 || !IsFloat(b_.DTypeOf(a))) return a;
  if (!found->regions.empty()) return OfRegions(a, need);
  if (found->num_results != 1 || --left_ < 0) return a;
  const OperandNeed through = Through()[*found->prim];
  const bool elementwise = found->prim->is_elementwise() && through == nullptr;
  if (!elementwise && through == nullptr) return a;
  const Eqn e = *found;  // emitting may move it
  const Dims dims = b_.TypeOf(a).dims;
  Atoms in = e.operands;
  bool changed = false;
  for (size_t i = 0; i < in.size(); ++i) {
    if (!in[i].is_var() || !IsFloat(b_.DTypeOf(in[i]))) continue;
    int looked = 48;
    if (!Reaches(in[i], depth - 1, &looked)) continue;
    if (elementwise && b_.TypeOf(in[i]).dims != dims) continue;
    const std::optional<Need> of = elementwise ? std::optional(need) : (this->*through)(e, a, i, need);
    if (!of) continue;
    const Atom guarded = Of(in[i], *of, depth - 1);
    changed |= !(guarded == in[i]);
    in[i] = guarded;
  }
  const Singular& singular = SingularOf(e);
  for (int i = singular.operand; i >= 0 && i < singular.operand + singular.count; ++i) {
    Atom& x = in[static_cast<size_t>(i)];
    if (x.is_var() && b_.TypeOf(x).dims == dims && IsFloat(b_.DTypeOf(x)) && !IsGuarded(x, need)) {
      const Atom number = Atom::Scalar(b_.DTypeOf(x), singular.harmless);
      x = need.taken ? Select(b_, need.predicate, x, number) : Select(b_, need.predicate, number, x);
      changed = true;
    }
  }
  const Atom made = changed ? b_.Emit1(*e.prim, in, e.attrs) : a;
  made_.push_back({a, need, made});
  return made;
}

// What is needed of a result of regions is an operand more.
Atom Guard::OfRegions(const Atom& a, const Need& need) {
  if (b_.Definition(a)->attrs.GetOr<bool>("elementwise", false)) return OfCustomFunction(a, need);
  const auto guard = [&need](Builder& inside, const Atom& result, const std::optional<Atom>& predicate) {
    const Atom guarded = Guard(inside).Of(result, {*predicate, need.taken});
    return ChangedResult{guarded, !(guarded == result)};
  };
  const std::optional<Atom> made = InRegions(b_, a, need.predicate, guard);
  return made ? *made : a;
}

// A function with a rule of its own: at which numbers its derivatives are infinite is not known.
Atom Guard::OfCustomFunction(const Atom& a, const Need& need) {
  const Eqn e = *b_.Definition(a);  // emitting may move it
  const Dims dims = b_.TypeOf(a).dims;
  const size_t captured = static_cast<size_t>(e.attrs.GetOr<int64_t>("num_consts", 0));
  Atoms in = e.operands;
  bool changed = false;
  for (size_t i = 0; i + captured < in.size(); ++i) {
    Atom& x = in[i];
    if (!x.is_var() || !IsFloat(b_.DTypeOf(x)) || !(b_.TypeOf(x).dims == dims) || IsGuarded(x, need)) continue;
    x = Held(x, need);
    changed = true;
  }
  const Atom made = changed ? b_.Emit(*e.prim, in, e.attrs, e.regions)[a.id() - e.first_result] : a;
  made_.push_back({a, need, made});
  return made;
}

std::optional<Atom> GuardedBranches(Builder& b, const Eqn&, const Atoms& x) {
  const Type type = b.TypeOf(x[1].is_literal() ? x[2] : x[1]);
  if (!IsFloat(type.dtype) || Splat(b, x[0]) != nullptr || b.TypeOf(x[0]).dims != type.dims) return std::nullopt;
  const Atom first = Guard(b).Of(x[1], {x[0], true}), second = Guard(b).Of(x[2], {x[0], false});
  if (first == x[1] && second == x[2]) return std::nullopt;
  return Select(b, x[0], first, second);
}

const SimplifyRule kRules[] = {
    {"guarded-branches", "select", Licence::kExact, GuardedBranches,
     "fn f(x: f32[3]) { p = gt x 0.0:f32; a = log x; r = select p a 0.0:f32; return r }", false,
     RuleTime::kBeforeDerivatives},
    {"guarded-branches", "select", Licence::kExact, GuardedBranches,
     "fn f(x: f32[2,3], p: bool[3,2]) { a = sqrt x; t = transpose[perm=[1,0]] a; r = select p t 0.0:f32; return r }",
     false, RuleTime::kBeforeDerivatives},
};

}  // namespace

Atom GuardedSelect(Builder& b, const Atom& predicate, const Atom& yes, const Atom& no) {
  if (const std::optional<Atom> guarded = GuardedBranches(b, {}, Atoms{predicate, yes, no})) return *guarded;
  return Select(b, predicate, yes, no);
}

absl::Span<const SimplifyRule> GuardRules() { return kRules; }

}  // namespace weft
