// Stable forms of what is moved: the logarithm of some elements of a softmax is those elements of its logarithm.
#include <algorithm>

#include "ir/ops.h"
#include "ir/prim_table.h"
#include "ir/prims/indexing.h"
#include "transforms/opt/formula.h"
#include "transforms/opt/singular.h"
#include "transforms/opt/stable_rules.h"

namespace weft {
namespace {

// The operands from which an operation takes its elements, unchanged: from `first` on.
struct Moved {
  int first = -1;  // -1: it computes
  int count = 1;   // 0: all
};
const PrimTable<Moved>& Moves() {
  static const auto& table = *new PrimTable<Moved>{
      {"reshape", {0}},        {"transpose", {0}}, {"broadcast", {0}}, {"slice", {0}},
      {"dynamic_slice", {0}},  {"gather", {0}},    {"reverse", {0}},   {"stop_gradient", {0}},
      {"concatenate", {0, 0}}, {"select", {1, 2}}, {"pad", {0, 2}},    {"dynamic_update_slice", {0, 2}},
      {"reduce_min", {0}},
  };
  return table;
}

struct MovePrims {
  const Prim &select = FindPrim("select"), &gather = FindPrim("gather"), &broadcast = FindPrim("broadcast"),
             &div = FindPrim("div"), &pad = FindPrim("pad");
};
const MovePrims& PrimsOfMoves() {
  static const MovePrims prims;
  return prims;
}

// Whether a move leaves elements out. What is computed of those has no derivative, but 0 times an infinite one is NaN.
bool LeavesOut(const Eqn& move) {
  static const PrimSet kLess{"slice", "dynamic_slice", "gather", "dynamic_update_slice"};
  if (kLess.Has(*move.prim)) return true;
  if (move.prim != &PrimsOfMoves().pad) return false;
  const Ints &lo = move.attrs.Get<Ints>("lo"), &hi = move.attrs.Get<Ints>("hi");
  const auto cuts = [](int64_t n) { return n < 0; };
  return std::any_of(lo.begin(), lo.end(), cuts) || std::any_of(hi.begin(), hi.end(), cuts);
}

// Whether an equation that gives each element of a result may have an infinite derivative at an ordinary number.
bool IsSingular(const Builder* b, const Eqn& e, const Dim& elements, const Type& result) {
  return NumElements(result.dims) == elements && SingularOf(e).at == Singular::At::kNumbers &&
         (e.prim != &PrimsOfMoves().div || b == nullptr || Splat(*b, e.operands[1]) == nullptr);
}
bool HasSingular(const Fn& region) {
  if (region.results().empty()) return false;
  const Dim elements = NumElements(region.TypeOf(region.results()[0]).dims);
  return std::any_of(region.eqns().begin(), region.eqns().end(), [&](const Eqn& e) {
    return (e.num_results == 1 && IsSingular(nullptr, e, elements, region.TypeOf(e.result()))) ||
           std::any_of(e.regions.begin(), e.regions.end(), [](const FnRef& f) { return HasSingular(*f); });
  });
}

// By any rule, those below included, through at most so many moves.
std::optional<Atom> StableFormOf(Builder& b, const Eqn& e, const Atoms& x, int depth);

// An operation on one operand, the others being numbers.
struct OnOne {
  Eqn e;  // with scalar literals for the numbers
  size_t at;

  static std::optional<OnOne> Of(const Builder& b, const Eqn& e, const Atoms& x) {
    std::optional<size_t> at;
    OnOne out{e, 0};
    out.e.operands = x;
    for (size_t i = 0; i < x.size(); ++i) {
      if (const Atom* number = Splat(b, x[i])) {
        out.e.operands[i] = *number;
      } else if (at) {
        return std::nullopt;
      } else {
        at = i;
      }
    }
    if (!at || !e.prim->is_elementwise() || !IsFloat(b.DTypeOf(x[*at]))) return std::nullopt;
    out.at = *at;
    return out;
  }
  Eqn With(const Atom& a) const {
    Eqn out = e;
    out.operands[at] = a;
    return out;
  }
};

// Such operations one after the other.
class OfMoved {
 public:
  OfMoved(Builder& b, const std::vector<OnOne>& steps) : b_(b), steps_(steps) {}

  // Their value of `a`, if that of what `a` is taken from has a stable form.
  std::optional<Atom> Of(const Atom& a, int depth) {
    if (depth > 0 && IsOfRegions(a)) return OfRegions(a, depth);
    const std::optional<std::pair<size_t, size_t>> moved = MovedBy(a);
    if (!moved || depth == 0) {
      Atom value = a;
      for (size_t k = 0; k + 1 < steps_.size(); ++k) {
        const Eqn e = steps_[k].With(value);
        const std::optional<Atom> made = StableForm(b_, e, e.operands);
        value = made ? *made : b_.Emit1(*e.prim, e.operands, e.attrs);
      }
      const Eqn last = steps_.back().With(value);
      return StableFormOf(b_, last, last.operands, depth);
    }
    const Eqn move = *b_.Definition(a);  // a copy: emitting may move it
    std::vector<std::optional<Atom>> made(move.operands.size());
    bool any = false;
    for (size_t i = moved->first; i < moved->second; ++i) {
      if (Splat(b_, move.operands[i]) != nullptr) continue;
      const size_t before = b_.num_eqns();
      made[i] = Of(move.operands[i], depth - 1);
      if (made[i] && LeavesOut(move) && MadeSingular(before, move.operands[i])) made[i] = std::nullopt;
      any |= made[i].has_value();
    }
    if (!any) return OfFewer(move, depth);
    Atoms in = move.operands;
    for (size_t i = moved->first; i < moved->second; ++i) in[i] = made[i] ? *made[i] : Plain(move.operands[i]);
    const MovePrims& prims = PrimsOfMoves();
    if (move.prim == &prims.select) return GuardedSelect(b_, in[0], in[1], in[2]);
    Atom out = b_.Emit1(*move.prim, in, move.attrs);
    if (move.prim != &prims.gather || GatherDims::Of(move.attrs).mode != "zero") return out;
    // What lies outside is 0 before the operation.
    const Type type = b_.TypeOf(in[0]);
    in[0] = Full(b_, type, 1);
    const Atom inside = Gt(b_, b_.Emit1(*move.prim, in, move.attrs), Atom::Scalar(type.dtype, 0));
    return Select(b_, inside, out, Plain(Atom::Scalar(type.dtype, 0)));
  }
  // Whether an equation from `first` on gives an element for each of `a` and may have an infinite derivative there.
  bool MadeSingular(size_t first, const Atom& a) const {
    const Dim elements = NumElements(b_.TypeOf(a).dims);
    for (size_t k = first; k < b_.num_eqns(); ++k) {
      const Eqn& e = b_.eqns()[k];
      if (e.num_results == 1 && IsSingular(&b_, e, elements, b_.TypeOf(Atom(e.result())))) return true;
      if (std::any_of(e.regions.begin(), e.regions.end(), [](const FnRef& f) { return HasSingular(*f); })) return true;
    }
    return false;
  }
  // The value of the elements that a move takes, where what it takes them of is an operation on each: the move is of
  // the operands then.
  std::optional<Atom> OfFewer(const Eqn& move, int depth) {
    const Eqn* found = b_.Definition(move.operands[0]);
    if (!LeavesOut(move) || Moves()[*move.prim].count != 1 || found == nullptr || !found->prim->is_elementwise() ||
        (move.prim == &PrimsOfMoves().gather && GatherDims::Of(move.attrs).mode == "zero"))
      return std::nullopt;
    const Eqn inner = *found;  // emitting may move it
    const Type type = b_.TypeOf(move.operands[0]);
    Atoms in;
    for (const Atom& x : inner.operands) {
      if (b_.TypeOf(x).rank() == 0) {
        in.push_back(x);
      } else if (b_.TypeOf(x).dims == type.dims) {
        Atoms of = move.operands;
        of[0] = x;
        in.push_back(b_.Emit1(*move.prim, of, move.attrs));
      } else {
        return std::nullopt;
      }
    }
    return Of(b_.Emit1(*inner.prim, in, inner.attrs), depth - 1);
  }
  bool IsOfRegions(const Atom& a) const {
    const Eqn* e = b_.Definition(a);
    return e != nullptr && !e->regions.empty();
  }
  bool IsNumberOrExponential(const Atom& a) const {
    static const PrimSet kExponentials{"exp", "exp2", "logistic", "cosh"};
    const Eqn* e = b_.Definition(a);
    return Splat(b_, a) != nullptr || (e != nullptr && kExponentials.Has(*e->prim));
  }
  // The operands of the move that defines `a` whose elements it takes; nothing if none does.
  std::optional<std::pair<size_t, size_t>> MovedBy(const Atom& a) const {
    constexpr size_t kMost = 16;  // operands: each is looked at
    const Eqn* e = b_.Definition(a);
    if (e == nullptr || e->num_results != 1) return std::nullopt;
    const Moved moved = Moves()[*e->prim];
    if (moved.first < 0 || e->operands.size() > kMost) return std::nullopt;
    // The least element's is the least where less has less, or none.
    static const PrimSet kIncreasing{"log", "log2", "log10", "log1p"};
    if (e->prim->family == Family::kReduction && (steps_.size() != 1 || !kIncreasing.Has(*steps_[0].e.prim)))
      return std::nullopt;
    // A choice keeps what is not chosen away from the function, where that may be infinite or NaN, and from its
    // derivative. A number in its place is as well chosen afterwards: log(where(m, p, 1)). So is an exponential, which
    // a branch under vmap gives: its logarithm is what it was made of.
    if (e->prim == &PrimsOfMoves().select && !IsNumberOrExponential(e->operands[1]) &&
        !IsNumberOrExponential(e->operands[2]))
      return std::nullopt;
    const auto first = static_cast<size_t>(moved.first);
    return std::pair(first, moved.count == 0 ? e->operands.size() : first + static_cast<size_t>(moved.count));
  }

 private:
  // Element by element inside of what computes `a`.
  std::optional<Atom> OfRegions(const Atom& a, int depth) {
    return InRegions(b_, a, std::nullopt, [&](Builder& inside, const Atom& result, const std::optional<Atom>&) {
      OfMoved of(inside, steps_);
      const std::optional<Atom> made = of.Of(result, depth - 1);
      return ChangedResult{made ? *made : of.Plain(result), made.has_value()};
    });
  }
  Atom Plain(Atom a) {
    for (const OnOne& step : steps_) {
      const Eqn e = step.With(a);
      a = Splat(b_, a) != nullptr ? FoldNumbers(b_, e, e.operands)[0] : b_.Emit1(*e.prim, e.operands, e.attrs);
    }
    return a;
  }

  Builder& b_;
  const std::vector<OnOne>& steps_;
};

constexpr int kMostMoves = 8;

// Functions that patterns have, of what has been moved: they are as well moved afterwards.
bool MayMoveFirst(const Prim& prim) {
  static const PrimSet kFunctions{"exp",  "exp2",  "expm1", "log",    "log1p",      "logistic", "softplus",
                                  "sqrt", "rsqrt", "tanh",  "sinh",   "cosh",       "sin",      "cos",
                                  "erf",  "erfc",  "neg",   "square", "integer_pow"};
  return kFunctions.Has(prim);
}

// The function of which `a` is moved elements, through at most so many moves that do not repeat; null if it is not.
const Eqn* FunctionThatIsMoved(const Builder& b, const Atom& a) {
  const Eqn* e = b.Definition(a);
  for (int moves = 0; e != nullptr && moves < 6; ++moves) {
    if (moves > 0 && MayMoveFirst(*e->prim)) return e;
    const Moved moved = Moves()[*e->prim];
    if (moved.first != 0 || moved.count != 1 || e->prim->family == Family::kReduction) return nullptr;
    if (e->prim == &PrimsOfMoves().broadcast &&
        !(NumElements(b.TypeOf(Atom(e->result())).dims) == NumElements(b.TypeOf(e->operands[0]).dims)))
      return nullptr;
    if (e->prim == &PrimsOfMoves().gather && GatherDims::Of(e->attrs).mode == "zero") return nullptr;
    e = b.Definition(e->operands[0]);
  }
  return nullptr;
}
Atom MovedFirst(Builder& b, const Atom& a, const Eqn& function) {
  if (a == Atom(function.result())) return function.operands[0];
  const Eqn move = *b.Definition(a);
  Atoms in = move.operands;
  in[0] = MovedFirst(b, in[0], function);
  return b.Emit1(*move.prim, in, move.attrs);
}
// `a` with moved functions as functions of what is moved, where there are some; `depth` operations deep.
std::optional<Atom> WithMovesFirst(Builder& b, const Atom& a, int depth) {
  if (const Eqn* found = FunctionThatIsMoved(b, a)) {
    const Eqn function = *found;  // emitting may move it
    return b.Emit1(*function.prim, {MovedFirst(b, a, function)}, function.attrs);
  }
  const Eqn* found = b.Definition(a);
  if (found == nullptr || depth == 0 || found->num_results != 1 || !found->prim->is_elementwise()) return std::nullopt;
  const Eqn e = *found;
  Atoms in = e.operands;
  bool changed = false;
  for (Atom& x : in) {
    if (const std::optional<Atom> made = WithMovesFirst(b, x, depth - 1)) {
      x = *made;
      changed = true;
    }
  }
  return changed ? std::optional<Atom>(b.Emit1(*e.prim, in, e.attrs)) : std::nullopt;
}

// A formula of moved functions, as one of functions of what is moved: log(exp(x)[i] / y).
std::optional<Atom> FormulaOfMoved(Builder& b, const Eqn& e, const Atoms& x) {
  static const PrimSet kArithmetic{"add", "sub", "mul", "div"};
  Eqn of = e;
  bool changed = false;
  of.operands.clear();
  for (const Atom& a : x) {
    const std::optional<Atom> made = WithMovesFirst(b, a, 2);
    of.operands.push_back(made ? *made : a);
    changed |= made.has_value();
  }
  // What is moved first may be computed twice. Of arithmetic a formula that needs it not will do.
  if (!changed || (kArithmetic.Has(*e.prim) && StableForm(b, e, x))) return std::nullopt;
  return StableForm(b, of, of.operands);
}

// The logarithm of a quotient of which one part is moved and has a stable logarithm.
std::optional<Atom> LogOfMovedQuotient(Builder& b, const Eqn& e, const Atoms& x, int depth) {
  const Eqn* quotient = b.Definition(x[0]);
  if (quotient == nullptr || quotient->prim != &PrimsOfMoves().div || !IsFloat(b.DTypeOf(x[0])) ||
      !e.attrs.entries().empty())
    return std::nullopt;
  Atoms parts = quotient->operands;
  const std::vector<OnOne> log = {{e, 0}};
  bool any = false;
  for (Atom& part : parts) {
    if (!(b.TypeOf(part).dims == b.TypeOf(x[0]).dims)) return std::nullopt;
    OfMoved of(b, log);
    std::optional<Atom> made = of.MovedBy(part) || of.IsOfRegions(part) ? of.Of(part, depth - 1) : std::nullopt;
    any |= made.has_value();
    part = made ? *made : b.Emit1(*e.prim, {part}, e.attrs);
  }
  return any ? std::optional<Atom>(Sub(b, parts[0], parts[1])) : std::nullopt;
}

std::optional<Atom> StableFormOf(Builder& b, const Eqn& e, const Atoms& x, int depth) {
  // A formula of moved functions first: one of the plain function would do with less of it.
  if (depth > 0) {
    if (std::optional<Atom> made = FormulaOfMoved(b, e, x)) return made;
  }
  if (std::optional<Atom> made = StableForm(b, e, x)) return made;
  if (depth == 0) return std::nullopt;
  static const PrimSet kLogarithms{"log", "log2", "log10"};
  return kLogarithms.Has(*e.prim) ? LogOfMovedQuotient(b, e, x, depth) : std::nullopt;
}

// Of what is moved or is a result of regions, or of an operation on that.
std::optional<Atom> StableOfMoved(Builder& b, const Eqn& e, const Atoms& x) {
  std::optional<OnOne> last = OnOne::Of(b, e, x);
  if (!last) return std::nullopt;
  Atom of = x[last->at];
  std::vector<OnOne> steps = {std::move(*last)};
  const OfMoved one(b, steps);
  if (!one.MovedBy(of) && !one.IsOfRegions(of)) {
    const Eqn* inner = b.Definition(of);
    if (inner == nullptr) return std::nullopt;
    std::optional<OnOne> first = OnOne::Of(b, *inner, inner->operands);
    if (!first) return std::nullopt;
    of = inner->operands[first->at];
    if (!one.MovedBy(of) && !one.IsOfRegions(of)) return std::nullopt;
    steps.insert(steps.begin(), std::move(*first));
  }
  return OfMoved(b, steps).Of(of, kMostMoves);
}

// With the logarithm, the operations that patterns begin with.
std::vector<const char*> OfFormulas() {
  return {"log2", "log10", "log1p", "exp", "exp2", "expm1", "sqrt", "add", "sub", "mul", "div"};
}

SimplifyRule MovedRule() {
  SimplifyRule rule{"stable-of-moved",
                    "log",
                    Licence::kAccurate,
                    StableOfMoved,
                    "fn f(x: f32[2,3]) { a = exp x; t = transpose[perm=[1,0]] a; r = log t; return r }",
                    false,
                    RuleTime::kStabilizing};
  rule.other_prims = OfFormulas();
  return rule;
}

SimplifyRule FormulaRuleOfMoved() {
  SimplifyRule rule{"formula-of-moved",
                    "log",
                    Licence::kAccurate,
                    FormulaOfMoved,
                    R"(fn f(x: f32[2,3], y: f32[3,2]) { a = exp x; t = transpose[perm=[1,0]] a; q = div t y; r = log q
                       return r })",
                    false,
                    RuleTime::kStabilizing};
  rule.other_prims = OfFormulas();
  return rule;
}

SimplifyRule QuotientRuleOfMoved() {
  SimplifyRule rule{"log-of-moved-quotient",
                    "log",
                    Licence::kAccurate,
                    [](Builder& b, const Eqn& e, const Atoms& x) { return LogOfMovedQuotient(b, e, x, kMostMoves); },
                    R"(fn f(x: f32[3], y: f32[2]) { i = iota[dim=0, dtype=i32, shape=<2,1>]; a = exp x
          g = gather[collapsed_dims=[0], indices_batch_dims=[], mode="zero", offset_dims=[], operand_batch_dims=[],
                     slice_sizes=[1], start_index_map=[0]] a i; q = div g y; r = log q; return r })",
                    false,
                    RuleTime::kStabilizing};
  rule.other_prims = {"log2", "log10"};
  return rule;
}

}  // namespace

absl::Span<const SimplifyRule> StableMoves() {
  static const auto& rules = *new std::vector<SimplifyRule>{MovedRule(), FormulaRuleOfMoved(), QuotientRuleOfMoved()};
  return rules;
}

}  // namespace weft
