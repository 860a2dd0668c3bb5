// The rules of algebraic simplification: rows of a table, grouped by family (docs/add_a_simplification.md).
#include "transforms/opt/simplify.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <mutex>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_split.h"
#include "base/fork_safe_mutex.h"
#include "ir/error.h"
#include "ir/eval/eval.h"
#include "ir/extensions.h"
#include "ir/ops.h"
#include "ir/prims/contraction.h"
#include "transforms/opt/algebra_rules.h"
#include "transforms/opt/defined_by.h"
#include "transforms/opt/formula.h"
#include "transforms/opt/pass.h"
#include "transforms/opt/product_rules.h"
#include "transforms/opt/rewrite.h"
#include "transforms/opt/row_blocks.h"
#include "transforms/opt/rule_watch.h"
#include "transforms/opt/stable_rules.h"

namespace weft {

namespace {

// The primitives that rules look for among the equations that define operands.
struct SoughtPrims {
  const Prim &neg = FindPrim("neg"), &broadcast = FindPrim("broadcast"), &reshape = FindPrim("reshape"),
             &transpose = FindPrim("transpose");
};
const SoughtPrims& Prims() {
  static const SoughtPrims prims;
  return prims;
}

bool IsSplat(const Builder& b, const Atom& a, double value) {
  const Atom* s = Splat(b, a);
  return s != nullptr && s->IsSplat(value);
}

bool IsNegativeZero(const Builder& b, const Atom& a) {
  const Atom* s = Splat(b, a);
  return s != nullptr && s->IsSplat(0) && std::signbit(s->literal().Get(0).real());
}

// `a` has the type of the result of an element-wise operation on a and `other`.
bool HasResultType(const Builder& b, const Atom& a, const Atom& other) {
  return b.TypeOf(a).dims == b.TypeOf(other).dims || b.TypeOf(other).rank() == 0;
}

template <double kValue, int kOperand>
std::optional<Atom> OtherIf(Builder& b, const Eqn&, const Atoms& x) {
  const Atom &value = x[kOperand], &other = x[1 - kOperand];
  if (!IsSplat(b, value, kValue) || !HasResultType(b, other, value)) return std::nullopt;
  return other;
}

std::optional<Atom> AddZero(Builder& b, const Eqn&, const Atoms& x) {
  for (int i : {0, 1}) {
    const bool exact = !IsInexact(b.DTypeOf(x[0])) || IsNegativeZero(b, x[i]);
    if (exact && IsSplat(b, x[i], 0) && HasResultType(b, x[1 - i], x[i])) return x[1 - i];
  }
  return std::nullopt;
}

// -0.0 - -0.0 is 0.0.
std::optional<Atom> SubZero(Builder& b, const Eqn&, const Atoms& x) {
  const bool exact = IsSplat(b, x[1], 0) && !(IsInexact(b.DTypeOf(x[0])) && IsNegativeZero(b, x[1]));
  return exact && HasResultType(b, x[0], x[1]) ? std::optional<Atom>(x[0]) : std::nullopt;
}

std::optional<Atom> TimesMinusOne(Builder& b, const Eqn&, const Atoms& x) {
  for (int i : {0, 1}) {
    if (IsSplat(b, x[i], -1) && HasResultType(b, x[1 - i], x[i])) return Neg(b, x[1 - i]);
  }
  return std::nullopt;
}

std::optional<Atom> NegNeg(Builder& b, const Eqn&, const Atoms& x) {
  const Eqn* inner = DefinedBy(b, x[0], Prims().neg);
  return inner ? std::optional<Atom>(inner->operands[0]) : std::nullopt;
}

std::optional<Atom> AddNeg(Builder& b, const Eqn& e, const Atoms& x) {
  static const Prim& sub = FindPrim("sub");  // rounded as the sum is ("fused")
  if (const Eqn* n = DefinedBy(b, x[1], Prims().neg)) {
    const Atom other = n->operands[0];
    if (HasResultType(b, other, x[0])) return b.Emit1(sub, {x[0], other}, e.attrs);
  }
  if (const Eqn* n = DefinedBy(b, x[0], Prims().neg)) {
    const Atom other = n->operands[0];
    if (HasResultType(b, other, x[1])) return b.Emit1(sub, {x[1], other}, e.attrs);
  }
  return std::nullopt;
}

std::optional<Atom> SubNeg(Builder& b, const Eqn& e, const Atoms& x) {
  static const Prim& add = FindPrim("add");
  const Eqn* n = DefinedBy(b, x[1], Prims().neg);
  if (n == nullptr || !HasResultType(b, n->operands[0], x[0])) return std::nullopt;
  const Atom other = n->operands[0];
  return b.Emit1(add, {x[0], other}, e.attrs);
}

std::optional<Atom> PowOne(Builder&, const Eqn& e, const Atoms& x) {
  return e.attrs.GetInt("y") == 1 ? std::optional<Atom>(x[0]) : std::nullopt;
}
std::optional<Atom> PowTwo(Builder& b, const Eqn& e, const Atoms& x) {
  return e.attrs.GetInt("y") == 2 ? std::optional<Atom>(Mul(b, x[0], x[0])) : std::nullopt;
}
// Of a complex number the power is rounded otherwise than the product.
std::optional<Atom> PowerTwo(Builder& b, const Eqn&, const Atoms& x) {
  if (IsComplex(b.DTypeOf(x[0])) || x[0].is_literal() || !IsSplat(b, x[1], 2)) return std::nullopt;
  return Mul(b, x[0], x[0]);
}

std::optional<Atom> SelectSame(Builder& b, const Eqn&, const Atoms& x) {
  if (x[1] == x[2] && HasResultType(b, x[1], x[0])) return x[1];
  if (const Atom* p = Splat(b, x[0])) {
    const Atom& taken = p->literal().at<bool>(0) ? x[1] : x[2];
    if (HasResultType(b, taken, x[1]) && HasResultType(b, taken, x[2])) return taken;
  }
  return std::nullopt;
}

std::optional<Atom> ConvertSame(Builder& b, const Eqn& e, const Atoms& x) {
  const DType to = e.attrs.Get<DType>("dtype");
  if (b.DTypeOf(x[0]) == to) return x[0];
  // Of a splat: convert the number, then repeat it.
  const Eqn* broadcast = DefinedBy(b, x[0], Prims().broadcast);
  if (broadcast == nullptr || b.TypeOf(broadcast->operands[0]).rank() != 0) return std::nullopt;
  const Atom scalar = broadcast->operands[0];
  return Broadcast(b, Convert(b, scalar, to), b.TypeOf(x[0]).dims, {});
}

std::optional<Atom> BroadcastOfBroadcast(Builder& b, const Eqn& e, const Atoms& x) {
  const Dims& shape = e.attrs.Get<Dims>("shape");
  if (b.TypeOf(x[0]).dims == shape) return x[0];
  const Eqn* inner = DefinedBy(b, x[0], Prims().broadcast);
  if (inner == nullptr) return std::nullopt;
  const Ints &outer_dims = e.attrs.Get<Ints>("dims"), &inner_dims = inner->attrs.Get<Ints>("dims");
  Ints dims;
  for (int64_t d : inner_dims) dims.push_back(outer_dims[d]);
  const Atom source = inner->operands[0];
  return Broadcast(b, source, shape, dims);
}

std::optional<Atom> ReshapeOfReshape(Builder& b, const Eqn& e, const Atoms& x) {
  const Dims shape = e.attrs.Get<Dims>("shape");
  if (b.TypeOf(x[0]).dims == shape) return x[0];
  if (const Eqn* inner = DefinedBy(b, x[0], Prims().reshape)) {
    const Atom source = inner->operands[0];
    return Reshape(b, source, shape);
  }
  const Eqn* inner = DefinedBy(b, x[0], Prims().broadcast);
  if (inner == nullptr || b.TypeOf(inner->operands[0]).rank() != 0) return std::nullopt;
  const Atom source = inner->operands[0];
  return Broadcast(b, source, shape, {});
}

std::optional<Atom> TransposeOf(Builder& b, const Eqn& e, const Atoms& x) {
  const Ints perm = e.attrs.Get<Ints>("perm");
  if (perm == Range(0, static_cast<int64_t>(perm.size()))) return x[0];
  const Eqn* inner = b.Definition(x[0]);
  if (inner == nullptr) return std::nullopt;
  const Atom source = inner->operands.empty() ? Atom() : inner->operands[0];
  if (inner->prim == &Prims().transpose) {
    const Ints first = inner->attrs.Get<Ints>("perm");
    Ints both;
    for (int64_t d : perm) both.push_back(first[d]);
    return Transpose(b, source, both);
  }
  if (inner->prim == &Prims().broadcast && b.TypeOf(source).rank() == 0) {
    Dims shape;
    for (int64_t d : perm) shape.push_back(b.TypeOf(x[0]).dims[d]);
    return Broadcast(b, source, shape, {});
  }
  return std::nullopt;
}

// A contraction reads its operands in any order of dimensions, so transposing them first is never needed.
std::optional<Atom> ContractOfTranspose(Builder& b, const Eqn& e, const Atoms& x) {
  ContractSpec spec = ContractSpec::Parse(e.attrs.Get<std::string>("spec"));
  Atoms operands = x;
  bool changed = false;
  for (int i : {0, 1}) {
    const Eqn* t = DefinedBy(b, operands[i], Prims().transpose);
    if (t == nullptr) continue;
    const Ints& perm = t->attrs.Get<Ints>("perm");
    std::string& letters = i == 0 ? spec.lhs : spec.rhs;
    std::string before = letters;
    for (size_t d = 0; d < perm.size(); ++d) before[perm[d]] = letters[d];
    letters = before;
    operands[i] = t->operands[0];
    changed = true;
  }
  if (!changed) return std::nullopt;
  return b.Emit1(*e.prim, operands, e.attrs.With("spec", spec.ToString()));
}

// A sum begins with 0, and 0 + -0 is 0.
std::optional<Atom> ReduceNothing(Builder&, const Eqn& e, const Atoms& x) {
  return e.attrs.Get<Ints>("dims").empty() ? std::optional<Atom>(x[0]) : std::nullopt;
}

std::optional<Atom> PadNothing(Builder& b, const Eqn& e, const Atoms& x) {
  for (const char* name : {"lo", "hi", "interior"}) {
    for (int64_t n : e.attrs.Get<Ints>(name)) {
      if (n != 0) return std::nullopt;
    }
  }
  (void)b;
  return x[0];
}

std::optional<Atom> SliceAll(Builder& b, const Eqn& e, const Atoms& x) {
  const Ints& start = e.attrs.Get<Ints>("start");
  if (std::any_of(start.begin(), start.end(), [](int64_t s) { return s != 0; })) return std::nullopt;
  for (int64_t s : e.attrs.Get<Ints>("strides")) {
    if (s != 1) return std::nullopt;
  }
  const Type& type = b.TypeOf(x[0]);
  const Ints& limit = e.attrs.Get<Ints>("limit");
  for (size_t d = 0; d < limit.size(); ++d) {
    if (limit[d] != -1 && !(type.dims[d] == Dim(limit[d]))) return std::nullopt;
  }
  return x[0];
}

std::optional<Atom> OneOperand(Builder&, const Eqn&, const Atoms& x) {
  return x.size() == 1 ? std::optional<Atom>(x[0]) : std::nullopt;
}

const SimplifyRule kArithmetic[] = {
    {"mul-one", "mul", Licence::kExact, OtherIf<1.0, 0>, "fn f(x: f32[3]) { a = mul 1.0:f32 x; return a }", true},
    {"mul-one", "mul", Licence::kExact, OtherIf<1.0, 1>, "fn f(x: f32[3]) { a = mul x 1.0:f32; return a }", true},
    {"mul-minus-one", "mul", Licence::kExact, TimesMinusOne, "fn f(x: f32[3]) { a = mul x -1.0:f32; return a }", true},
    {"div-one", "div", Licence::kExact, OtherIf<1.0, 1>, "fn f(x: f32[3]) { a = div x 1.0:f32; return a }", true},
    {"add-zero", "add", Licence::kExact, AddZero, "fn f(x: f32[3]) { a = add x -0.0:f32; return a }", true},
    {"sub-zero", "sub", Licence::kExact, SubZero, "fn f(x: f32[3]) { a = sub x 0.0:f32; return a }", true},
    {"neg-neg", "neg", Licence::kExact, NegNeg, "fn f(x: f32[3]) { a = neg x; b = neg a; return b }"},
    {"add-neg", "add", Licence::kExact, AddNeg, "fn f(x: f32[3], y: f32[3]) { a = neg y; b = add x a; return b }"},
    {"sub-neg", "sub", Licence::kExact, SubNeg, "fn f(x: f32[3], y: f32[3]) { a = neg y; b = sub x a; return b }"},
    {"integer-pow-one", "integer_pow", Licence::kExact, PowOne, "fn f(x: f32[3]) { a = integer_pow[y=1] x; return a }"},
    {"integer-pow-two", "integer_pow", Licence::kExact, PowTwo, "fn f(x: f32[3]) { a = integer_pow[y=2] x; return a }"},
    {"pow-two", "pow", Licence::kExact, PowerTwo, "fn f(x: f32[3]) { a = pow x 2.0:f32; return a }", true},
    {"select-same", "select", Licence::kExact, SelectSame,
     "fn f(p: bool[3], x: f32[3]) { a = select p x x; return a }"},
    {"convert-same", "convert", Licence::kExact, ConvertSame, "fn f(x: f32[3]) { a = convert[dtype=f32] x; return a }"},
};

const SimplifyRule kStructure[] = {
    {"broadcast-broadcast", "broadcast", Licence::kExact, BroadcastOfBroadcast,
     "fn f(x: f32[3]) { a = broadcast[dims=[1], shape=<2,3>] x; b = broadcast[dims=[1,2], shape=<4,2,3>] a; return b "
     "}"},
    {"reshape-reshape", "reshape", Licence::kExact, ReshapeOfReshape,
     "fn f(x: f32[2,3]) { a = reshape[shape=<6>] x; b = reshape[shape=<3,2>] a; return b }"},
    {"transpose-transpose", "transpose", Licence::kExact, TransposeOf,
     "fn f(x: f32[2,3,4]) { a = transpose[perm=[1,2,0]] x; b = transpose[perm=[2,1,0]] a; return b }"},
    {"contract-transpose", "contract", Licence::kExact, ContractOfTranspose,
     R"(fn f(x: f32[3,4], y: f32[4,3]) { a = transpose[perm=[1,0]] x; b = contract[spec="ki,kj->ij"] a y; return b })"},
    {"reduce-nothing", "reduce_sum", Licence::kSignedZero, ReduceNothing,
     "fn f(x: f32[3]) { a = reduce_sum[dims=[]] x; return a }"},
    {"reduce-nothing", "reduce_max", Licence::kExact, ReduceNothing,
     "fn f(x: f32[3]) { a = reduce_max[dims=[]] x; return a }"},
    {"reduce-nothing", "reduce_min", Licence::kExact, ReduceNothing,
     "fn f(x: f32[3]) { a = reduce_min[dims=[]] x; return a }"},
    {"reduce-nothing", "reduce_prod", Licence::kExact, ReduceNothing,
     "fn f(x: f32[3]) { a = reduce_prod[dims=[]] x; return a }"},
    {"pad-nothing", "pad", Licence::kExact, PadNothing,
     "fn f(x: f32[3]) { a = pad[hi=[0], interior=[0], lo=[0]] x 0.0:f32; return a }"},
    {"slice-all", "slice", Licence::kExact, SliceAll,
     "fn f(x: f32[3]) { a = slice[limit=[3], start=[0], strides=[1]] x; return a }"},
    {"concatenate-one", "concatenate", Licence::kExact, OneOperand,
     "fn f(x: f32[3]) { a = concatenate[dim=0] x; return a }"},
};

// Whether the replacement calls, element by element, a function of the C library that the pattern does not.
bool CallsLibrary(const FormulaRule& row) {
  const auto calls = [](const std::string& text) {
    for (const char* name : {"erfc(", "asinh(", "acosh(", "atanh("}) {
      if (text.find(name) != std::string::npos) return true;
    }
    return false;
  };
  return calls(row.replacement) && !calls(row.pattern);
}
// Such calls are worth their time for so many elements; for more with the licence `rounding`.
constexpr int64_t kMostLibraryCalls = 256;

// Of the tree's rules that are formulas, a primitive that must have made an operand. Not in SimplifyRule, which plugins
// share. Written before there are any rules, once.
absl::flat_hash_map<const SimplifyRule*, const Prim*>& KeysOfFormulas() {
  static auto& keys = *new absl::flat_hash_map<const SimplifyRule*, const Prim*>();
  return keys;
}

// A row of formulas as a rule.
std::unique_ptr<SimplifyRule> RuleOf(const FormulaRule& row, const Prim** key = nullptr) {
  struct Parsed {
    Formula pattern, replacement;
    std::unique_ptr<Formula> where, in_f64;  // the latter: what replaces it there, if that is another
    bool changes_wide;                       // says something else than the pattern where there is no wider dtype
    bool calls_library;
  };
  auto parsed = std::make_shared<Parsed>(
      Parsed{Formula(row.pattern), Formula(row.replacement), nullptr, nullptr, true, CallsLibrary(row)});
  if (*row.where != '\0') parsed->where = std::make_unique<Formula>(row.where);
  for (const FormulaOfF64& other : FormulasOfF64()) {
    if (std::strcmp(other.name, row.name) == 0) parsed->in_f64 = std::make_unique<Formula>(other.replacement);
  }
  for (int i = 0; i < kFormulaLetters; ++i) {
    if ((parsed->replacement.HasOperand(i) && !parsed->pattern.HasOperand(i)) ||
        (parsed->replacement.HasNumber(i) && !parsed->pattern.HasNumber(i)))
      throw ValueError("the rule '", row.name, "': its replacement has a letter that its pattern has not");
  }
  const std::string replaced = parsed->replacement.TextOfOneDtype();
  parsed->changes_wide = !replaced.empty() && parsed->pattern.TextOfOneDtype() != replaced;
  auto apply = [parsed](Builder& b, const Eqn& e, const Atoms& x) -> std::optional<Atom> {
    FormulaMatch match;
    if (!parsed->pattern.Matches(b, e, x, &match)) return std::nullopt;
    const Type type = b.TypeOf(x[0].is_var() || x.size() == 1 ? x[0] : x[1]);
    const bool f64 = type.dtype == DType::kF64, in_f64 = f64 && parsed->in_f64 != nullptr;
    if (!IsFloat(type.dtype) || (f64 && !parsed->changes_wide && !in_f64)) return std::nullopt;
    if (parsed->calls_library && !CurrentLicences().Allow(Licence::kRounding) &&
        (!type.is_static() || type.size().value() > kMostLibraryCalls))
      return std::nullopt;
    if (parsed->where != nullptr && parsed->where->Number(match) == 0) return std::nullopt;
    // What is found below may be of fewer dimensions: a number beside it was an array.
    Atom made = (in_f64 ? *parsed->in_f64 : parsed->replacement).Emit(b, match, type.dtype);
    if (b.TypeOf(made).dims != type.dims) return std::nullopt;
    return made;
  };
  const std::vector<const Prim*> roots = parsed->pattern.Roots();
  auto rule = std::make_unique<SimplifyRule>(
      SimplifyRule{row.name, roots[0]->name.c_str(), row.licence, apply, nullptr, false, RuleTime::kStabilizing, &row});
  for (size_t i = 1; i < roots.size(); ++i) rule->other_prims.push_back(roots[i]->name.c_str());
  if (key != nullptr) *key = parsed->pattern.Key();
  return rule;
}

std::vector<const SimplifyRule*> RulesOfTheTree();

// All rules, and those that look at equations of each primitive. Replaced as a whole when a rule is added, since others
// read it meanwhile; what was replaced stays.
struct RuleSet {
  explicit RuleSet(std::vector<const SimplifyRule*> rules) : all(std::move(rules)), by_prim(AllPrims().size()) {
    for (const SimplifyRule* r : all) {
      const auto key = KeysOfFormulas().find(r);
      const Entry entry{r, key == KeysOfFormulas().end() ? nullptr : key->second};
      by_prim[static_cast<size_t>(FindPrim(r->prim).id)].push_back(entry);
      for (const char* other : r->other_prims) by_prim[static_cast<size_t>(FindPrim(other).id)].push_back(entry);
    }
  }
  struct Entry {
    const SimplifyRule* rule;
    const Prim* reads;  // one that must have made an operand; null: whatever has made them
  };
  absl::Span<const Entry> Of(const Prim& prim) const {
    const auto i = static_cast<size_t>(prim.id);
    return i < by_prim.size() ? absl::MakeConstSpan(by_prim[i]) : absl::Span<const Entry>();
  }
  std::vector<const SimplifyRule*> all;
  std::vector<std::vector<Entry>> by_prim;
};

std::atomic<const RuleSet*>& CurrentRules() {
  static std::atomic<const RuleSet*> current{new RuleSet(RulesOfTheTree())};
  return current;
}

// What the first rule that applies gives, of those that `use` wants.
template <class Use>
std::optional<Atom> FirstRule(Builder& b, const Eqn& e, const Atoms& x, const Use& use) {
  if (e.num_results != 1) return std::nullopt;
  const Licences licences = CurrentLicences();
  absl::InlinedVector<const Prim*, 4> makers;
  for (const Atom& a : x) {
    const Eqn* made = b.Definition(a);
    if (made != nullptr) makers.push_back(made->prim);
  }
  for (const auto& [rule, reads] : CurrentRules().load(std::memory_order_acquire)->Of(*e.prim)) {
    if (reads != nullptr && std::find(makers.begin(), makers.end(), reads) == makers.end()) continue;
    if (!use(*rule) || !licences.Allow(rule->licence)) continue;
    std::optional<Atom> value = RuleWatch::Try(rule->name, b, e, x, [&] { return rule->apply(b, e, x); });
    if (value) return value;
  }
  return std::nullopt;
}

// Operands that repeat one number become that number, so that the broadcast need not be made.
Atoms WithSplatsAsNumbers(const Builder& b, const Atoms& x) {
  Atoms out;
  for (const Atom& a : x) {
    const Atom* s = Splat(b, a);
    out.push_back(s != nullptr ? *s : a);
  }
  return out;
}

std::vector<const SimplifyRule*> RulesOfTheTree() {
  std::vector<const SimplifyRule*> rules;
  for (const SimplifyRule& r : kArithmetic) rules.push_back(&r);
  for (const SimplifyRule& r : kStructure) rules.push_back(&r);
  for (const auto family : {AlgebraRules,    ReductionRules,  ScatterRules, CollectRules, StableStructure,
                            StableQuotients, VarianceRules,   ExtremeRules, LoopSumRules, StableExponentials,
                            NormRules,       ReciprocalRules, GuardRules,   LimitRules,   ConversionRules,
                            StableMoves,     ProductRules,    SystemRules,  PartRules,    ScaleRules}) {
    for (const SimplifyRule& r : family()) rules.push_back(&r);
  }
  const auto formulas = static_cast<ptrdiff_t>(rules.size());
  for (const FormulaRule& row : StableFormulas()) {
    const Prim* key = nullptr;
    rules.push_back(RuleOf(row, &key).release());
    if (key != nullptr) KeysOfFormulas().emplace(rules.back(), key);
  }
  // The more a pattern says, the earlier it is looked for: 1 - sqrt(1 - x) before 1 - x.
  std::stable_sort(rules.begin() + formulas, rules.end(), [](const SimplifyRule* x, const SimplifyRule* y) {
    return std::strlen(x->formula->pattern) > std::strlen(y->formula->pattern);
  });
  // What no formula of these knows.
  for (const SimplifyRule& r : StableFactors()) rules.push_back(&r);
  for (const SimplifyRule& r : BaseRules()) rules.push_back(&r);
  return rules;
}

// The type of the only result of `e` with these operands.
Type ResultType(const Builder& b, const Eqn& e, const Atoms& x) {
  Types types;
  Mask literal;
  for (const Atom& a : x) {
    types.push_back(b.TypeOf(a));
    literal.push_back(a.is_literal());
  }
  return InferTypes(Sig{*e.prim, types, literal, e.attrs, e.regions})[0];
}

}  // namespace

// An element-wise equation whose operands all repeat a number gives one number, repeated.
Atoms FoldNumbers(Builder& b, const Eqn& e, const Atoms& x) {
  Tensors values;
  Dims dims;
  for (const Atom& a : x) {
    values.push_back(Splat(b, a)->literal());
    if (const Type& type = b.TypeOf(a); type.rank() > 0) dims = type.dims;
  }
  Eqn numbers{e.prim, {}, 0, 1, e.attrs, {}, e.loc};
  for (const Tensor& t : values) numbers.operands.push_back(Atom(t));
  const Atom number(EvalEqn(numbers, values)[0]);
  return {dims.empty() ? number : Broadcast(b, number, dims, {})};
}

std::optional<Atom> StableForm(Builder& b, const Eqn& e, const Atoms& x) {
  static const auto& forms = *new absl::flat_hash_set<const SimplifyRule*>([] {
    absl::flat_hash_set<const SimplifyRule*> all;
    for (const auto family : {StableStructure, StableQuotients, VarianceRules, ExtremeRules, StableExponentials,
                              NormRules, BaseRules, StableFactors}) {
      for (const SimplifyRule& r : family()) all.insert(&r);
    }
    return all;
  }());
  return FirstRule(b, e, x, [&](const SimplifyRule& rule) {
    return rule.time == RuleTime::kStabilizing && (rule.formula != nullptr || forms.contains(&rule));
  });
}

const std::vector<const SimplifyRule*>& SimplifyRules() { return CurrentRules().load()->all; }

void RegisterRule(const SimplifyRule& rule) {
  const std::string name = rule.name == nullptr ? "" : rule.name;
  if (name.empty()) throw ValueError("RegisterRule: the rule has no name");
  if (!rule.apply) throw ValueError("RegisterRule: the rule '", name, "' has no function");
  std::vector<const char*> prims = rule.other_prims;
  prims.push_back(rule.prim);
  for (const char* prim : prims) {
    if (prim == nullptr || TryFindPrim(prim) == nullptr)
      throw ValueError("RegisterRule: the rule '", name, "' names no primitive: there is no '", prim ? prim : "", "'");
  }
  static auto& adding = *new ForkSafeMutex;
  const std::lock_guard<ForkSafeMutex> lock(adding);
  for (const SimplifyRule* other : SimplifyRules()) {
    if (name == other->name) throw ValueError("RegisterRule: there is a rule named '", name, "' already");
  }
  auto* added = new SimplifyRule(rule);
  added->apply = [name, apply = rule.apply](Builder& b, const Eqn& e, const Atoms& x) -> std::optional<Atom> {
    std::optional<Atom> value;
    try {
      value = apply(b, e, x);
    } catch (const Error& error) {
      throw UserError(error.kind(), e.loc, "the rule '", name, "' failed on ", e.prim->name, ": ", error.message());
    }
    if (value) {
      const Type expected = ResultType(b, e, x);
      const Type& found = b.TypeOf(*value);
      if (!(found == expected)) {
        throw UserError(ErrorKind::kType, e.loc, "the rule '", name, "' replaces ", e.prim->name, ", which is ",
                        expected, ", by a value that is ", found);
      }
    }
    return value;
  };
  std::vector<const SimplifyRule*> all = {added};
  all.insert(all.end(), SimplifyRules().begin(), SimplifyRules().end());
  static auto& replaced = *new std::vector<const RuleSet*>();  // others may be reading it
  replaced.push_back(CurrentRules().load());
  CurrentRules().store(new RuleSet(std::move(all)), std::memory_order_release);
  NoteExtension("rule " + name);
}

void RegisterRule(const FormulaRule& rule) { RegisterRule(*RuleOf(*new FormulaRule(rule))); }

FnRef SampleOf(const FormulaRule& rule, DType dtype) {
  FormulaMatch letters;
  Builder b("f");
  const Formula pattern(rule.pattern);
  for (int i = 0; i < kFormulaLetters; ++i) {
    if (pattern.HasOperand(i)) letters.operands[i] = b.Parameter({dtype, {Dim(3)}}, std::string(1, "wxyz"[i]));
  }
  for (const absl::string_view number : absl::StrSplit(rule.numbers, ',', absl::SkipEmpty()))
    letters.numbers[static_cast<size_t>(number[0] - 'a')] = std::stod(std::string(number.substr(2)));
  const Atom value = pattern.Emit(b, letters, dtype);
  return std::move(b).Build({value}, /*keep_dead=*/true);
}

std::optional<Atoms> SimplifyEqn(Builder& b, const Eqn& e, const Atoms& operands, bool lowering) {
  std::optional<Atoms> numbers;
  bool number = false;
  if (e.prim->is_elementwise()) {
    bool shaped = false, repeats = false;
    for (const Atom& a : operands) {
      const Atom* s = Splat(b, a);
      shaped |= s == nullptr;
      number |= s != nullptr;
      repeats |= s != nullptr && s != &a;
    }
    if (!shaped && e.num_results == 1 && !operands.empty()) return FoldNumbers(b, e, operands);
    if (shaped && repeats) numbers = WithSplatsAsNumbers(b, operands);  // some operand keeps the shape
  }
  const Atoms& x = numbers ? *numbers : operands;
  const auto use = [number, lowering](const SimplifyRule& rule) {
    return rule.time != RuleTime::kBeforeDerivatives && (lowering || rule.time != RuleTime::kLowering) &&
           (number || !rule.needs_number);
  };
  if (const std::optional<Atom> value = FirstRule(b, e, x, use)) return Atoms{*value};
  return numbers ? std::optional<Atoms>(b.Clone(e, *numbers)) : std::nullopt;
}

FnRef Simplify(FnRef fn) {
  return Rewrite(
      std::move(fn),
      [](Builder& b, const Eqn& e, const Atoms& x) {
        const std::optional<Atoms> made = SimplifyEqn(b, e, x, /*lowering=*/true);
        return made || e.regions.empty() ? made : WithOperandsInside(b, e, x, Simplify);
      },
      nullptr, nullptr, /*count_readers=*/true);
}

namespace {

// Whether an element-wise operation is of numbers alone: log(2).
bool IsOfNumbers(const Builder& b, const Eqn& e, const Atoms& x) {
  return e.prim->is_elementwise() && e.num_results == 1 && !x.empty() &&
         std::all_of(x.begin(), x.end(), [&](const Atom& a) { return Splat(b, a) != nullptr; });
}

// Of a region: functions that made its operands are in it already.
FnRef StableForms(FnRef fn) {
  const auto use = [](const SimplifyRule& rule) {
    return rule.time == RuleTime::kStabilizing || rule.time == RuleTime::kBeforeDerivatives;
  };
  return Rewrite(
      std::move(fn),
      [&](Builder& b, const Eqn& e, const Atoms& x) -> std::optional<Atoms> {
        if (IsOfNumbers(b, e, x)) return FoldNumbers(b, e, x);
        if (const std::optional<Atom> value = FirstRule(b, e, x, use)) return Atoms{*value};
        return e.regions.empty() ? std::nullopt : WithOperandsInside(b, e, x, StableForms);
      },
      nullptr, nullptr, /*count_readers=*/true);
}

}  // namespace

FnRef Stabilize(FnRef fn) {
  const RuleWatch* const watch = RuleWatch::Current();
  if (watch != nullptr && !watch->Allows(kStabilize)) return fn;
  const RuleWatch::RunningPass pass(kStabilize);
  fn = StableForms(std::move(fn));
  if (watch == nullptr || watch->Allows("widen")) fn = WidenBeforeDerivatives(std::move(fn));
  return ComputeInBlocksAgain(std::move(fn));
}

}  // namespace weft
