// Laws of algebra: of orders and shapes of arrays, of choices, comparisons and bits, and cheaper
// operations in place of dear ones. Sums and products of many terms are in
// collect_rules.cc, those of reductions in reduction_rules.cc.
#include "transforms/opt/algebra_rules.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "ir/ops.h"
#include "ir/prim_table.h"
#include "ir/prims/indexing.h"
#include "transforms/opt/defined_by.h"
#include "transforms/opt/formula.h"
#include "transforms/opt/rewrite.h"
#include "transforms/opt/rule_rows.h"

namespace weft {
namespace {

bool SameType(const Builder& b, const Atom& x, const Atom& y) { return b.TypeOf(x) == b.TypeOf(y); }

// Whether no element has a sign; of products and sums, so many operations deep.
bool IsMagnitude(const Builder& b, const Atom& a, int depth = 4) {
  static const PrimSet kMagnitudes{"square", "exp", "exp2", "cosh", "logistic", "abs"},
      kOfMagnitudes{"add", "mul", "div"};
  static const Prim &mul = FindPrim("mul"), &power = FindPrim("integer_pow");
  if (const Atom* s = Splat(b, a)) return !std::signbit(s->literal().Get(0).real());
  const Eqn* e = b.Definition(a);
  if (e == nullptr || depth == 0) return false;
  if (kMagnitudes.Has(*e->prim)) return true;
  if (e->prim == &power) return e->attrs.GetInt("y") % 2 == 0 || IsMagnitude(b, e->operands[0], depth - 1);
  if (!kOfMagnitudes.Has(*e->prim)) return false;
  if (e->prim == &mul && e->operands[0] == e->operands[1]) return true;
  const Atom first = e->operands[0], second = e->operands[1];
  return IsMagnitude(b, first, depth - 1) && IsMagnitude(b, second, depth - 1);
}

// --- Orders and shapes -----------------------------------------------------------------------------------------------

// Twice along a dimension is not at all.
std::optional<Atom> ReverseOfReverse(Builder& b, const Eqn& e, const Atoms& x) {
  const Eqn* inner = DefinedBy<"reverse">(b, x[0]);
  if (inner == nullptr) return std::nullopt;
  const Ints &outer = e.attrs.Get<Ints>("dims"), &first = inner->attrs.Get<Ints>("dims");
  Ints once;
  for (const int64_t d : outer) {
    if (!Contains(first, d)) once.push_back(d);
  }
  for (const int64_t d : first) {
    if (!Contains(outer, d)) once.push_back(d);
  }
  Atom source = inner->operands[0];
  if (once.empty()) return source;
  std::sort(once.begin(), once.end());
  return Reverse(b, source, once);
}

// Whether every number of `from` is one of `to`.
bool Holds(DType to, DType from) {
  if (IsComplex(to) || IsComplex(from)) return false;
  if (from == DType::kBool) return to != DType::kBool;
  if (IsInteger(from) && IsInteger(to))
    return IsUnsigned(from) ? BitWidth(to) > BitWidth(from) : !IsUnsigned(to) && BitWidth(to) >= BitWidth(from);
  return IsFloat(from) && IsFloat(to) && RowOf(to).digits >= RowOf(from).digits &&
         RowOf(to).max_exponent >= RowOf(from).max_exponent && !IsFloat8(from) && !IsFloat8(to);
}

// Through a dtype that holds all numbers of the first.
std::optional<Atom> ConvertOfConvert(Builder& b, const Eqn& e, const Atoms& x) {
  const Eqn* inner = DefinedBy<"convert">(b, x[0]);
  if (inner == nullptr) return std::nullopt;
  const Atom source = inner->operands[0];
  const DType to = e.attrs.Get<DType>("dtype");
  if (IsComplex(to) || !Holds(b.DTypeOf(x[0]), b.DTypeOf(source))) return std::nullopt;
  return Convert(b, source, to);
}

// What is put side by side along the same dimension before.
std::optional<Atom> ConcatenateOfConcatenate(Builder& b, const Eqn& e, const Atoms& x) {
  Atoms flat;
  for (const Atom& a : x) {
    const Eqn* inner = DefinedBy<"concatenate">(b, a);
    if (inner != nullptr && inner->attrs == e.attrs && ReadOnce(b, a))
      flat.insert(flat.end(), inner->operands.begin(), inner->operands.end());
    else
      flat.push_back(a);
  }
  return flat.size() > x.size() ? std::optional(b.Emit1(*e.prim, flat, e.attrs)) : std::nullopt;
}

// A part of what was padded that has nothing of the padding.
std::optional<Atom> SliceOfPad(Builder& b, const Eqn& e, const Atoms& x) {
  const Eqn* pad = DefinedBy<"pad">(b, x[0]);
  if (pad == nullptr || !b.TypeOf(x[0]).is_static()) return std::nullopt;
  const Atom source = pad->operands[0];
  const Type from = b.TypeOf(source);
  const Ints &lo = pad->attrs.Get<Ints>("lo"), &interior = pad->attrs.Get<Ints>("interior");
  Ints start = e.attrs.Get<Ints>("start"), limit = e.attrs.Get<Ints>("limit");
  if (!from.is_static()) return std::nullopt;
  for (size_t d = 0; d < start.size(); ++d) {
    if (limit[d] == -1) limit[d] = b.TypeOf(x[0]).dims[d].value();
    start[d] -= lo[d];
    limit[d] -= lo[d];
    if (interior[d] != 0 || start[d] < 0 || limit[d] > from.dims[d].value() || start[d] >= limit[d])
      return std::nullopt;
  }
  return Slice(b, source, start, limit, e.attrs.Get<Ints>("strides"));
}

// Neighbouring slices of an array, side by side: a slice.
std::optional<Atom> SlicesSideBySide(Builder& b, const Eqn& e, const Atoms& x) {
  const auto dim = static_cast<size_t>(e.attrs.GetInt("dim"));
  std::optional<Atom> source;
  Ints start, limit, strides;
  for (const Atom& a : x) {
    const Eqn* part = DefinedBy<"slice">(b, a);
    if (part == nullptr || !b.TypeOf(part->operands[0]).is_static()) return std::nullopt;
    const Ints &first = part->attrs.Get<Ints>("start"), &by = part->attrs.Get<Ints>("strides");
    if (std::any_of(by.begin(), by.end(), [](int64_t s) { return s != 1; })) return std::nullopt;
    Ints end = first;
    for (size_t d = 0; d < end.size(); ++d) end[d] += b.TypeOf(a).dims[d].value();
    if (!source) {
      source = part->operands[0];
      start = first, limit = end, strides = by;
      continue;
    }
    if (!(part->operands[0] == *source) || first[dim] != limit[dim]) return std::nullopt;
    for (size_t d = 0; d < end.size(); ++d) {
      if (d != dim && (first[d] != start[d] || end[d] != limit[d])) return std::nullopt;
    }
    limit[dim] = end[dim];
  }
  if (x.size() < 2) return std::nullopt;
  return Slice(b, *source, start, limit, strides);
}

// --- Choices, comparisons, bits --------------------------------------------------------------------------------------

std::optional<Atom> SelectByNot(Builder& b, const Eqn&, const Atoms& x) {
  const Eqn* n = DefinedBy<"not">(b, x[0]);
  if (n == nullptr) return std::nullopt;
  const Atom predicate = n->operands[0];
  return Select(b, predicate, x[2], x[1]);
}

// What a branch chooses by the same predicate is known.
std::optional<Atom> SelectOfSelect(Builder& b, const Eqn&, const Atoms& x) {
  for (const size_t i : {1, 2}) {
    const Eqn* inner = DefinedBy<"select">(b, x[i]);
    if (inner == nullptr || !(inner->operands[0] == x[0])) continue;
    const Atom taken = inner->operands[i];
    const Atom &yes = i == 1 ? taken : x[1], &no = i == 1 ? x[2] : taken;
    if (b.TypeOf(yes).rank() == 0 && b.TypeOf(no).rank() == 0) continue;  // nothing would have the shape
    return Select(b, x[0], yes, no);
  }
  return std::nullopt;
}

std::optional<Atom> NotNot(Builder& b, const Eqn&, const Atoms& x) {
  const Eqn* n = DefinedBy<"not">(b, x[0]);
  return n ? std::optional<Atom>(n->operands[0]) : std::nullopt;
}

// not(x < y) is x >= y but for NaN; not(x == y) is x != y for all.
std::optional<Atom> NotOfComparison(Builder& b, const Eqn&, const Atoms& x) {
  static const PrimTable<const char*> kOpposite{{"eq", "ne"}, {"ne", "eq"}, {"lt", "ge"},
                                                {"ge", "lt"}, {"gt", "le"}, {"le", "gt"}};
  const Eqn* comparison = b.Definition(x[0]);
  const char* opposite = comparison == nullptr ? nullptr : kOpposite[*comparison->prim];
  if (opposite == nullptr) return std::nullopt;
  static const PrimSet kOfEquals{"eq", "ne"};
  if (!kOfEquals.Has(*comparison->prim) && IsInexact(b.DTypeOf(comparison->operands[0]))) return std::nullopt;
  const Atoms operands(comparison->operands.begin(), comparison->operands.end());
  return b.Emit1(FindPrim(opposite), operands);
}

// Of a value and itself: nothing is less than itself; but for NaN all are equal to themselves.
std::optional<Atom> CompareWithItself(Builder& b, const Eqn& e, const Atoms& x) {
  static const PrimSet kStrict{"lt", "gt"}, kIfNoNan{"eq", "le", "ge"};
  if (!(x[0] == x[1]) || x[0].is_literal()) return std::nullopt;
  Type type = b.TypeOf(x[0]);
  if (IsInexact(type.dtype) && !kStrict.Has(*e.prim)) return std::nullopt;
  type.dtype = DType::kBool;
  return Full(b, type, kIfNoNan.Has(*e.prim) ? 1 : 0);
}

// x & x, x | x, max(x, x), min(x, x).
std::optional<Atom> OfItself(Builder&, const Eqn&, const Atoms& x) {
  return x[0] == x[1] && x[0].is_var() ? std::optional<Atom>(x[0]) : std::nullopt;
}

// Whether `a` has the shape of an element-wise operation on it and `other`.
bool IsOfResult(const Builder& b, const Atom& a, const Atom& other) {
  return b.TypeOf(a).dims == b.TypeOf(other).dims || b.TypeOf(other).rank() == 0;
}

// max(max(x, y), y).
std::optional<Atom> Absorbed(Builder& b, const Eqn& e, const Atoms& x) {
  for (const size_t i : {size_t{0}, size_t{1}}) {
    const Eqn* inner = b.Definition(x[i]);
    if (inner == nullptr || inner->prim != e.prim || !IsOfResult(b, x[i], x[1 - i])) continue;
    const Atoms& of = inner->operands;
    if (std::find(of.begin(), of.end(), x[1 - i]) != of.end()) return x[i];
  }
  return std::nullopt;
}

// Whether every bit of the number is `bit`.
bool HasAllBits(const Atom& number, bool bit) {
  const DType dtype = number.literal().dtype();
  const std::complex<double> value = number.literal().Get(0);
  if (!bit) return value == 0.0;
  if (IsBool(dtype)) return value == 1.0;
  return IsUnsigned(dtype) ? BitWidth(dtype) <= 32 && value == std::ldexp(1.0, BitWidth(dtype)) - 1 : value == -1.0;
}

// x and true, x or 0, x xor 0; x and false, x or -1.
std::optional<Atom> WithBits(Builder& b, const Eqn& e, const Atoms& x) {
  enum class Form : uint8_t { kNone, kAnd, kOr, kXor };
  static const auto& forms = *new PrimTable<Form>{{"and", Form::kAnd}, {"or", Form::kOr}, {"xor", Form::kXor}};
  const Form form = forms[*e.prim];
  for (const size_t i : {size_t{0}, size_t{1}}) {
    const Atom* s = Splat(b, x[i]);
    const Atom& other = x[1 - i];
    if (s == nullptr || !IsOfResult(b, other, x[i])) continue;
    if (HasAllBits(*s, form == Form::kAnd)) return other;
    if (form != Form::kXor && HasAllBits(*s, form == Form::kOr)) {
      const Type type = b.TypeOf(other);
      return Broadcast(b, *s, type.dims, {});
    }
  }
  return std::nullopt;
}

// real(complex(x, y)) and imag of it; conj(conj(z)).
std::optional<Atom> PartOfComplex(Builder& b, const Eqn& e, const Atoms& x) {
  const Eqn* made = DefinedBy<"complex">(b, x[0]);
  if (made == nullptr) return std::nullopt;
  const Atom& part = made->operands[Is<"imag">(*e.prim) ? 1 : 0];
  return b.TypeOf(part).dims == b.TypeOf(x[0]).dims ? std::optional<Atom>(part) : std::nullopt;
}
std::optional<Atom> Twice(Builder& b, const Eqn& e, const Atoms& x) {
  const Eqn* inner = b.Definition(x[0]);
  return inner != nullptr && inner->prim == e.prim ? std::optional<Atom>(inner->operands[0]) : std::nullopt;
}

// Functions that keep their own results.
std::optional<Atom> Idempotent(Builder& b, const Eqn& e, const Atoms& x) {
  const Eqn* inner = b.Definition(x[0]);
  return inner != nullptr && inner->prim == e.prim && inner->attrs == e.attrs ? std::optional<Atom>(x[0])
                                                                              : std::nullopt;
}

// |x| of what has no sign.
std::optional<Atom> AbsOfMagnitude(Builder& b, const Eqn&, const Atoms& x) {
  if (!x[0].is_var() || !IsFloat(b.DTypeOf(x[0])) || !IsMagnitude(b, x[0])) return std::nullopt;
  return x[0];
}

// f(-x) = f(x).
std::optional<Atom> EvenOfNeg(Builder& b, const Eqn& e, const Atoms& x) {
  const Eqn* n = DefinedBy<"neg">(b, x[0]);
  if (n == nullptr || IsUnsigned(b.DTypeOf(x[0]))) return std::nullopt;
  return b.Emit1(*e.prim, {n->operands[0]}, e.attrs);
}

// (-x) (-y) = x y; so with quotients.
std::optional<Atom> BothNegative(Builder& b, const Eqn& e, const Atoms& x) {
  const Eqn *n = DefinedBy<"neg">(b, x[0]), *m = DefinedBy<"neg">(b, x[1]);
  static const PrimSet kWraps{"mul"};
  if (n == nullptr || m == nullptr || (IsInteger(b.DTypeOf(x[0])) && !kWraps.Has(*e.prim))) return std::nullopt;
  return b.Emit1(*e.prim, {n->operands[0], m->operands[0]}, e.attrs);
}

// -(x - y) = y - x, but for the sign of a zero. -(0 - x) is written where that counts.
std::optional<Atom> NegOfDifference(Builder& b, const Eqn&, const Atoms& x) {
  const Eqn* d = DefinedBy<"sub">(b, x[0]);
  if (d == nullptr || !ReadOnce(b, x[0])) return std::nullopt;
  const Atom left = d->operands[0], right = d->operands[1];
  if (Splat(b, left) != nullptr || Splat(b, right) != nullptr) return std::nullopt;
  return Sub(b, right, left);
}

// --- Cheaper operations ----------------------------------------------------------------------------------------------

// k of 2^k, -1 for other numbers.
int PowerOfTwo(const Builder& b, const Atom& a) {
  const Atom* s = Splat(b, a);
  if (s == nullptr || !IsInteger(s->literal().dtype())) return -1;
  const double n = s->literal().Get(0).real();
  int exponent = 0;
  return n >= 1 && std::frexp(n, &exponent) == 0.5 ? exponent - 1 : -1;
}

std::optional<Atom> UnsignedByPowerOfTwo(Builder& b, const Eqn& e, const Atoms& x) {
  const DType dtype = b.DTypeOf(x[0]);
  const int k = PowerOfTwo(b, x[1]);
  if (k < 0 || !IsUnsigned(dtype)) return std::nullopt;
  static const PrimSet kRemainders{"rem"};
  if (kRemainders.Has(*e.prim)) return And(b, x[0], Atom::Scalar(dtype, std::ldexp(1.0, k) - 1));
  return b.Emit1(FindPrim("shift_right_logical"), {x[0], Atom::Scalar(dtype, k)});
}

// The remainder r = rem x 2^k, whose sign differs from the divisor's where it is negative: as floor division tells.
const Eqn* NegativeRemainder(const Builder& b, const Atom& predicate) {
  const Eqn* both = DefinedBy<"and">(b, predicate);
  if (both == nullptr) return nullptr;
  const Eqn* nonzero = DefinedBy<"ne">(b, both->operands[1]);
  const Eqn* differs = DefinedBy<"ne">(b, both->operands[0]);
  if (nonzero == nullptr || !nonzero->operands[1].IsSplat(0)) return nullptr;
  const Eqn* negative = DefinedBy<"lt">(b, both->operands[0]);
  if (differs != nullptr && differs->operands[1].IsSplat(0)) negative = DefinedBy<"lt">(b, differs->operands[0]);
  if (negative == nullptr || !negative->operands[1].IsSplat(0) || !(negative->operands[0] == nonzero->operands[0]))
    return nullptr;
  return DefinedBy<"rem">(b, nonzero->operands[0]);
}

// select(r < 0 and r != 0, x / 2^k - 1, x / 2^k), where r is x's remainder, is the quotient rounded down; and
// select(..., r + 2^k, r) the remainder that belongs to it.
std::optional<Atom> FloorByPowerOfTwo(Builder& b, const Eqn&, const Atoms& x) {
  const Eqn* rem = NegativeRemainder(b, x[0]);
  if (rem == nullptr) return std::nullopt;
  const Atom value = rem->operands[0], divisor = rem->operands[1], r = Atom(rem->result());
  const DType dtype = b.DTypeOf(value);
  const int k = PowerOfTwo(b, divisor);
  if (k < 0 || IsUnsigned(dtype)) return std::nullopt;
  if (const Eqn* more = DefinedBy<"add">(b, x[1]); more != nullptr && x[2] == r) {
    if (!(more->operands[0] == r) || PowerOfTwo(b, more->operands[1]) != k) return std::nullopt;
    return And(b, value, Atom::Scalar(dtype, std::ldexp(1.0, k) - 1));
  }
  const Eqn *quotient = DefinedBy<"div">(b, x[2]), *less = DefinedBy<"sub">(b, x[1]);
  if (quotient == nullptr || less == nullptr || !(less->operands[0] == x[2]) || !less->operands[1].IsSplat(1) ||
      !(quotient->operands[0] == value) || PowerOfTwo(b, quotient->operands[1]) != k)
    return std::nullopt;
  return b.Emit1(FindPrim("shift_right_arithmetic"), {value, Atom::Scalar(dtype, k)});
}

// Powers that a product or a quotient gives in a tenth of the time.
std::optional<Atom> WholePower(Builder& b, const Eqn&, const Atoms& x) {
  const Atom* s = Splat(b, x[1]);
  const DType dtype = b.DTypeOf(x[0]);
  if (s == nullptr || x[0].is_literal() || !IsFloat(dtype) || IsFloat8(dtype)) return std::nullopt;
  const double y = s->literal().Get(0).real();
  return y == 3 || y == 4 || y == -1 ? std::optional(IntegerPow(b, x[0], static_cast<int64_t>(y))) : std::nullopt;
}

// Those that a root gives. Those of -0 and of -infinity are the power's, not the root's; so are derivatives there,
// which are taken of the power.
std::optional<Atom> PowerByRoot(Builder& b, const Eqn&, const Atoms& x) {
  const Atom* s = Splat(b, x[1]);
  const DType dtype = b.DTypeOf(x[0]);
  if (s == nullptr || x[0].is_literal() || !IsFloat(dtype) || IsFloat8(dtype)) return std::nullopt;
  const double y = s->literal().Get(0).real();
  if (y != 0.5 && y != -0.5) return std::nullopt;
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const Atom& base = x[0];
  const Atom infinity = Atom::Scalar(dtype, kInfinity), zero = Atom::Scalar(dtype, 0);
  const Atom outside = Eq(b, base, Atom::Scalar(dtype, -kInfinity));
  if (y == 0.5) return Select(b, outside, infinity, Sqrt(b, base));
  return Select(b, outside, zero, Select(b, Eq(b, base, zero), infinity, Rsqrt(b, base)));
}

// Of what is more than 0 they are the root's, of every order: x^2 + 4.
std::optional<Atom> RootOfPositive(Builder& b, const Eqn&, const Atoms& x) {
  const Atom* s = Splat(b, x[1]);
  const Eqn* sum = DefinedBy<"add">(b, x[0]);
  if (s == nullptr || sum == nullptr || !IsFloat(b.DTypeOf(x[0])) || IsFloat8(b.DTypeOf(x[0]))) return std::nullopt;
  const double y = s->literal().Get(0).real();
  const auto is_positive = [&](const Atom& a) {
    const Atom* number = Splat(b, a);
    return number != nullptr && number->literal().Get(0).real() > 0;
  };
  const Atom first = sum->operands[0], second = sum->operands[1];
  if ((y != 0.5 && y != -0.5) || !(is_positive(first) || is_positive(second)) || !IsMagnitude(b, first) ||
      !IsMagnitude(b, second))
    return std::nullopt;
  return y > 0 ? Sqrt(b, x[0]) : Rsqrt(b, x[0]);
}

// x / c = x (1 / c), rounded twice.
std::optional<Atom> DivByNumber(Builder& b, const Eqn&, const Atoms& x) {
  const Atom* s = Splat(b, x[1]);
  const DType dtype = b.DTypeOf(x[0]);
  if (s == nullptr || x[0].is_literal() || !IsFloat(dtype)) return std::nullopt;
  const double c = s->literal().Get(0).real(), inverse = 1 / c;
  const double most = std::ldexp(1.0, RowOf(dtype).max_exponent - 2);
  if (!(std::fabs(c) < most && std::fabs(c) > 1 / most)) return std::nullopt;  // the inverse has all its digits
  return Mul(b, x[0], Atom::Scalar(dtype, inverse));
}

// --- Finite numbers --------------------------------------------------------------------------------------------------

std::optional<Atom> Number(Builder& b, const Atom& like, double value) { return Full(b, b.TypeOf(like), value); }

std::optional<Atom> SubItself(Builder& b, const Eqn&, const Atoms& x) {
  return x[0] == x[1] && x[0].is_var() ? Number(b, x[0], 0) : std::nullopt;
}
std::optional<Atom> DivItself(Builder& b, const Eqn&, const Atoms& x) {
  return x[0] == x[1] && x[0].is_var() && IsInexact(b.DTypeOf(x[0])) ? Number(b, x[0], 1) : std::nullopt;
}
template <bool kIntegers>
std::optional<Atom> MulZero(Builder& b, const Eqn&, const Atoms& x) {
  if (!(kIntegers ? IsInteger(b.DTypeOf(x[0])) : IsFloat(b.DTypeOf(x[0])))) return std::nullopt;
  for (const int i : {0, 1}) {
    const Atom* s = Splat(b, x[static_cast<size_t>(i)]);
    const Atom& other = x[static_cast<size_t>(1 - i)];
    if (s == nullptr || !s->IsSplat(0)) continue;
    if (b.TypeOf(other).rank() > 0 || SameType(b, x[0], x[1])) return Number(b, other, 0);
  }
  return std::nullopt;
}

constexpr Licence kExact = Licence::kExact, kSignedZero = Licence::kSignedZero, kProducts = Licence::kProducts,
                  kNoNan = Licence::kNoNan;

std::vector<SimplifyRule> MakeRules() {
  std::vector<SimplifyRule> rules = {
      {"reverse-reverse", "reverse", kExact, ReverseOfReverse,
       "fn f(x: f32[2,3]) { a = reverse[dims=[0,1]] x; b = reverse[dims=[1]] a; return b }"},
      {"convert-convert", "convert", kExact, ConvertOfConvert,
       "fn f(x: f32[3]) { a = convert[dtype=f64] x; b = convert[dtype=f32] a; return b }"},
      {"concatenate-concatenate", "concatenate", kExact, ConcatenateOfConcatenate,
       "fn f(x: f32[2,3], y: f32[4,3]) { a = concatenate[dim=0] x y; b = concatenate[dim=0] y a x; return b }"},
      {"slice-of-pad", "slice", kExact, SliceOfPad,
       R"(fn f(x: f32[6]) { a = pad[hi=[3], interior=[0], lo=[2]] x 0.0:f32
          b = slice[limit=[7], start=[2], strides=[2]] a; return b })"},
      {"slices-side-by-side", "concatenate", kExact, SlicesSideBySide,
       R"(fn f(x: f32[6,2]) { a = slice[limit=[3,2], start=[1,0], strides=[1,1]] x
          b = slice[limit=[4,2], start=[3,0], strides=[1,1]] x; c = slice[limit=[6,2], start=[4,0], strides=[1,1]] x
          d = concatenate[dim=0] a b c; return d })"},
      {"select-not", "select", kExact, SelectByNot,
       "fn f(p: bool[3], x: f32[3], y: f32[3]) { a = not p; b = select a x y; return b }"},
      {"select-select", "select", kExact, SelectOfSelect,
       "fn f(p: bool[3], x: f32[3], y: f32[3]) { a = select p x y; b = neg y; c = select p a b; return c }"},
      {"select-select", "select", kExact, SelectOfSelect,
       "fn f(p: bool[3], x: f32[3], y: f32[3]) { a = select p x y; b = neg x; c = select p b a; return c }"},
      {"not-not", "not", kExact, NotNot, "fn f(p: bool[3]) { a = not p; b = not a; return b }"},
      {"not-comparison", "not", kExact, NotOfComparison,
       "fn f(x: f32[3], y: f32[3]) { a = eq x y; b = not a; return b }"},
      {"not-comparison", "not", kExact, NotOfComparison,
       "fn f(x: i32[3], y: i32[3]) { a = lt x y; b = not a; return b }"},
      {"abs-of-magnitude", "abs", kExact, AbsOfMagnitude, "fn f(x: f32[3]) { a = square x; b = abs a; return b }",
       false, RuleTime::kStabilizing},
      {"abs-of-magnitude", "abs", kExact, AbsOfMagnitude,
       "fn f(x: f32[3]) { a = mul x x; b = div a 3.0:f32; c = add 1.0:f32 b; d = abs c; return d }", false,
       RuleTime::kStabilizing},
      {"neg-difference", "neg", kSignedZero, NegOfDifference,
       "fn f(x: f32[3], y: f32[3]) { a = sub x y; b = neg a; return b }"},
      {"floor-by-power-of-two", "select", kExact, FloorByPowerOfTwo,
       R"(fn f(x: i32[5]) { r = rem x 8:i32; n = lt r 0:i32; o = ne r 0:i32; p = and n o; q = div x 8:i32
          s = sub q 1:i32; t = select p s q; return t })"},
      {"floor-by-power-of-two", "select", kExact, FloorByPowerOfTwo,
       R"(fn f(x: i32[5]) { r = rem x 8:i32; n = lt r 0:i32; m = ne n false:bool; o = ne r 0:i32; p = and m o
          s = add r 8:i32; t = select p s r; return t })"},
      {"power-of-number", "pow", Licence::kAccurate, RootOfPositive,
       "fn f(x: f32[3]) { q = square x; p = add q 16.0:f32; a = pow p 0.5:f32; return a }", true,
       RuleTime::kStabilizing},
      {"power-of-number", "pow", Licence::kAccurate, PowerByRoot, "fn f(x: f32[3]) { a = pow x 0.5:f32; return a }",
       true},
      {"power-of-number", "pow", Licence::kAccurate, PowerByRoot, "fn f(x: f32[3]) { a = pow x -0.5:f32; return a }",
       true},
      {"power-of-number", "pow", Licence::kAccurate, WholePower, "fn f(x: f32[3]) { a = pow x 3.0:f32; return a }",
       true, RuleTime::kStabilizing},
      {"power-of-number", "pow", Licence::kAccurate, WholePower, "fn f(x: f32[3]) { a = pow x -1.0:f32; return a }",
       true, RuleTime::kStabilizing},
      {"div-by-number", "div", Licence::kRounding, DivByNumber, "fn f(x: f32[3]) { a = div x 3.0:f32; return a }",
       true},
      {"sub-itself", "sub", kNoNan, SubItself, "fn f(x: f32[3]) { a = sub x x; return a }"},
      {"div-itself", "div", kNoNan, DivItself, "fn f(x: f32[3]) { a = div x x; return a }"},
      {"mul-zero", "mul", kNoNan, MulZero<false>, "fn f(x: f32[3]) { a = mul 0.0:f32 x; return a }", true},
      {"integer-mul-zero", "mul", kExact, MulZero<true>, "fn f(x: i32[3]) { a = mul x 0:i32; return a }", true},
  };
  AddRows(rules, "compare-with-itself", kExact, CompareWithItself, {"lt", "gt"},
          "fn f(x: f32[3]) { a = ", " x x; return a }");
  AddRows(rules, "compare-with-itself", kExact, CompareWithItself, {"eq", "ne", "le", "ge"},
          "fn f(x: i32[3]) { a = ", " x x; return a }");
  const std::vector<const char*> extremes_of_two = {"max", "min"};
  AddRows(rules, "of-itself", kExact, OfItself, extremes_of_two, "fn f(x: f32[3]) { a = ", " x x; return a }");
  AddRows(rules, "of-itself", kExact, OfItself, {"and", "or"}, "fn f(x: i32[3]) { a = ", " x x; return a }");
  for (const char* prim : extremes_of_two) {
    AddRows(rules, "absorbed", kExact, Absorbed, {prim},
            std::string("fn f(x: f32[3], y: f32[3]) { a = ") + prim + " x y; b = ", " y a; return b }");
  }
  AddRows(rules, "with-bits", kExact, WithBits, {"and"}, "fn f(p: bool[3]) { b = ", " p true:bool; return b }");
  AddRows(rules, "with-bits", kExact, WithBits, {"or", "xor"}, "fn f(x: i32[3]) { b = ", " 0:i32 x; return b }");
  AddRows(rules, "part-of-complex", kExact, PartOfComplex, {"real", "imag"},
          "fn f(x: f32[3], y: f32[3]) { a = complex x y; b = ", " a; return b }");
  AddRows(rules, "twice", kExact, Twice, {"conj"}, "fn f(x: c64[3]) { a = conj x; b = ", " a; return b }");
  for (const char* prim : {"abs", "floor", "ceil", "sign"}) {
    AddRows(rules, "idempotent", kExact, Idempotent, {prim},
            std::string("fn f(x: f32[3]) { a = ") + prim + " x; b = ", " a; return b }");
  }
  AddRows(rules, "even-of-neg", kExact, EvenOfNeg, {"abs", "cos", "cosh", "square"},
          "fn f(x: f32[3]) { a = neg x; b = ", " a; return b }");
  AddRows(rules, "both-negative", kExact, BothNegative, {"mul", "div"},
          "fn f(x: f32[3], y: f32[3]) { a = neg x; b = neg y; c = ", " a b; return c }");
  AddRows(rules, "unsigned-by-power-of-two", kExact, UnsignedByPowerOfTwo, {"div", "rem"},
          "fn f(x: u32[5]) { a = ", " x 8:u32; return a }");
  RoundAtLowering(rules);
  return rules;
}

}  // namespace

absl::Span<const SimplifyRule> AlgebraRules() {
  static const auto& rules = *new std::vector<SimplifyRule>(MakeRules());
  return rules;
}

}  // namespace weft
