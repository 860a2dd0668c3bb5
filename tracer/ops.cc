#include "tracer/ops.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "ir/prim_table.h"

namespace weft {
namespace {

OperationRunner g_operation_runner = nullptr;

const Prim& PrimOf(Binary op) {
  // In the order of the enum; nullptr: not one primitive.
  static const auto prims = [] {
    std::array<const Prim*, 25> table{};
    const char* names[] = {"add", "sub",        "mul",   "div", nullptr, nullptr, "pow",  "and", "or",
                           "xor", "shift_left", nullptr, "eq",  "ne",    "lt",    "le",   "gt",  "ge",
                           "max", "min",        "and",   "or",  "xor",   "atan2", nullptr};
    for (int i = 0; i < 25; ++i) table[i] = names[i] ? TryFindPrim(names[i]) : nullptr;
    return table;
  }();
  const Prim* prim = prims[static_cast<int>(op)];
  WEFT_CHECK(prim != nullptr) << Name(op) << " is not one primitive";
  return *prim;
}

// Random keys and tapes are no numbers, for whatever computes with some.
void RefuseOpaque(std::string_view what, Operands xs) {
  if (std::none_of(xs.begin(), xs.end(), [](const Operand& x) { return IsOpaque(x.dtype().dtype); })) return;
  std::string got;
  for (const Operand& x : xs) got += std::string(got.empty() ? "" : " and ") + Name(x.dtype().dtype);
  throw TypeError(what, ": random keys and tapes have no numeric value; got ", got,
                  "; take a key's words with weft.random.key_data, or numbers from it with weft.random.bits");
}

// The common dtype of `xs` for `prim`.
WeakDType CommonDType(const Prim& prim, Operands xs, Promotion promotion) {
  RefuseOpaque(prim.name, xs);
  WeakDType t = PromoteAll(xs);
  if (promotion == Promotion::kInexact || (!IsInexact(t.dtype) && !prim.dtypes.Has(t.dtype))) {
    // What is whole for integers is not a float for booleans: NumPy and JAX refuse their differences.
    if (promotion == Promotion::kAuto && IsBool(t.dtype) && prim.dtypes.Has(DType::kI32)) {
      static const auto& takes_booleans =
          *new PrimSet{"square", "shift_left", "shift_right_logical", "shift_right_arithmetic"};
      if (!takes_booleans.Has(prim))
        throw TypeError(prim.name, ": operands are booleans; expected one of ", prim.dtypes.ToString(),
                        "; convert them with astype, or use logical_not, logical_xor ...");
      t = {DefaultInt(), false};
    } else if (promotion == Promotion::kInexact || prim.dtypes.Has(ToInexact(t).dtype)) {
      t = ToInexact(t);
    }
  }
  return t;
}

bool IsNumber(const Atom& x) { return x.is_literal() && x.literal().rank() == 0; }
bool IsNegative(const Atom& number) { return number.literal().Get(0).real() < 0; }

// Whether the signs of the remainder and of y differ, and the remainder is not 0. y may be a number beside an array.
Atom NeedsCorrection(Builder& b, const Atom& remainder, const Atom& y, DType dtype) {
  const Atom zero = Atom::Scalar(dtype, 0);
  const Atom y_negative = IsNumber(y) ? Atom::Scalar(DType::kBool, IsNegative(y)) : b.Emit1(FindPrim("lt"), {y, zero});
  const Atom differ = b.Emit1(FindPrim("ne"), {b.Emit1(FindPrim("lt"), {remainder, zero}), y_negative});
  return b.Emit1(FindPrim("and"), {differ, b.Emit1(FindPrim("ne"), {remainder, zero})});
}

// floor(x / y), for integers without rounding through floats.
Atom FloorDivide(Builder& b, const Atom& x, const Atom& y, DType dtype) {
  if (IsUnsigned(dtype)) return b.Emit1(FindPrim("div"), {x, y});
  const Atom one = Atom::Scalar(dtype, 1);
  const Atom r = b.Emit1(FindPrim("rem"), {x, y});
  const Atom down = NeedsCorrection(b, r, y, dtype);
  if (IsInteger(dtype)) {
    const Atom q = b.Emit1(FindPrim("div"), {x, y});
    return b.Emit1(FindPrim("select"), {down, b.Emit1(FindPrim("sub"), {q, one}), q});
  }
  // (x - r) / y is whole up to rounding; x / 0 is an infinity or NaN, as in NumPy.
  Atom of = b.Emit1(FindPrim("sub"), {x, r});
  if (!IsNumber(y))
    of = b.Emit1(FindPrim("select"), {b.Emit1(FindPrim("eq"), {y, Atom::Scalar(dtype, 0)}), x, of});
  else if (y.IsSplat(0))
    of = x;
  const Atom q = b.Emit1(FindPrim("div"), {of, y});
  // Rounded whatever y is: the derivative is 0 everywhere.
  const Atom whole =
      b.Emit1(FindPrim("round"), {b.Emit1(FindPrim("select"), {down, b.Emit1(FindPrim("sub"), {q, one}), q})},
              {{"mode", std::string("even")}});
  // A quotient that is 0 has the sign of x / y.
  const Atom signed_zero = b.Emit1(FindPrim("trunc"), {b.Emit1(FindPrim("div"), {x, y})});
  return b.Emit1(FindPrim("select"), {b.Emit1(FindPrim("eq"), {whole, Atom::Scalar(dtype, 0)}), signed_zero, whole});
}

// The remainder that has the sign of y, where it is 0 too; of integers divided by 0 it is 0, as in NumPy.
Atom Remainder(Builder& b, const Atom& x, const Atom& y, DType dtype) {
  Atom r = b.Emit1(FindPrim("rem"), {x, y});
  const Atom zero = Atom::Scalar(dtype, 0);
  if (IsInteger(dtype) && !(IsNumber(y) && !y.IsSplat(0))) {
    r = IsNumber(y) ? b.Emit1(FindPrim("xor"), {x, x})
                    : b.Emit1(FindPrim("select"), {b.Emit1(FindPrim("eq"), {y, zero}), zero, r});
  }
  if (IsUnsigned(dtype)) return r;
  r = b.Emit1(FindPrim("select"), {NeedsCorrection(b, r, y, dtype), b.Emit1(FindPrim("add"), {r, y}), r});
  if (IsInteger(dtype)) return r;
  // Adding 0 makes every zero positive, and leaves derivatives as they are.
  const Prim &add = FindPrim("add"), &neg = FindPrim("neg");
  if (IsNumber(y) && !IsNegative(y)) return b.Emit1(add, {r, zero});
  const Atom negative = b.Emit1(neg, {b.Emit1(add, {b.Emit1(neg, {r}), zero})});
  if (IsNumber(y)) return negative;
  return b.Emit1(FindPrim("select"), {b.Emit1(FindPrim("lt"), {y, zero}), negative, b.Emit1(add, {r, zero})});
}

// The device of those that are on one, or null where none is; nothing where they are on several.
std::optional<const Placement*> OnOneDevice(Operands xs) {
  const Placement* found = nullptr;
  for (const Operand& x : xs) {
    const Placement* const place = x.is_scalar() ? nullptr : x.value().placement();
    if (place == nullptr) continue;
    if (!place->one_device || (found != nullptr && found != place)) return std::nullopt;
    found = place;
  }
  return found;
}

// Operands converted and broadcast, ready for element-wise primitives. Not all of them may stay numbers.
struct Prepared {
  Dims shape;
  Atoms atoms;
};
Prepared Prepare(Site& site, Operands xs, DType dtype, const char* what) {
  Prepared p;
  p.shape = BroadcastShapes(xs, what);
  p.atoms.reserve(xs.size());
  for (const Operand& x : xs) p.atoms.push_back(BroadcastAtom(site.b(), site.Use(x, dtype), p.shape, true, what));
  return p;
}

// The exponent, where it is one whole number that is known now.
std::optional<int64_t> KnownExponent(const Operand& y) {
  if (y.is_scalar()) return y.scalar().kind == Scalar::Kind::kInt ? std::optional<int64_t>(y.scalar().i) : std::nullopt;
  const Value& v = y.value();
  if (v.traced() || v.rank() != 0 || !IsSigned(v.dtype())) return std::nullopt;
  return v.dtype() == DType::kI64 ? v.tensor().at<int64_t>(0) : static_cast<int64_t>(v.tensor().Get(0).real());
}

Value Power(const Operand& x, const Operand& y) {
  if (const std::optional<int64_t> n = KnownExponent(y); n && *n < 0 && !IsInexact(x.dtype().dtype))
    throw TypeError("power: integers to the negative power ", *n, " are no integers; convert them to float first");
  // x ** 3 needs no logarithm and is exact for integers.
  if (y.is_scalar() && y.scalar().kind == Scalar::Kind::kInt && !x.is_scalar() && !IsBool(x.dtype().dtype)) {
    const int64_t n = y.scalar().i;
    if (n == 2) {
      if (const Prim* square = TryFindPrim("square")) return Elementwise(*square, {x});
    }
    if (const Prim* power = TryFindPrim("integer_pow")) return Elementwise(*power, {x}, {{"y", n}});
  }
  const Operand xs[] = {x, y};
  WeakDType t = PromoteAll(xs);
  // Powers of booleans are integers, as JAX has it: not weak, whatever the exponent.
  const bool of_booleans = IsBool(x.dtype().dtype) || IsBool(y.dtype().dtype);
  if (IsBool(t.dtype)) t.dtype = DefaultInt();
  if (of_booleans && IsInteger(t.dtype)) t.weak = false;
  if (!of_booleans) return Elementwise(FindPrim("pow"), xs);
  Site site(xs);
  Prepared p = Prepare(site, xs, t.dtype, "power");
  return site.Finish(site.b().Emit1(FindPrim("pow"), p.atoms), t.weak);
}

// What chooses between complex numbers goes by the order of the real and then of the imaginary part.
const PrimTable<Value (*)(Operands)>& OfComplexNumbers() {
  static const auto& table = *new PrimTable<Value (*)(Operands)>{
      {"max", [](Operands xs) { return ApplyFunction(Binary::kMaximum, xs[0], xs[1]); }},
      {"min", [](Operands xs) { return ApplyFunction(Binary::kMinimum, xs[0], xs[1]); }},
      {"clamp", [](Operands xs) {
         return ApplyFunction(Binary::kMinimum, ApplyFunction(Binary::kMaximum, xs[0], xs[1]), xs[2]);
       }}};
  return table;
}

}  // namespace

void SetOperationRunner(OperationRunner runner) { g_operation_runner = runner; }

std::optional<Value> RunAtOnce(const Prim& prim, WeakDType dtype, const Attrs& attrs, Operands xs) {
  const auto is_traced = [](const Operand& x) { return !x.is_scalar() && x.value().traced(); };
  if (g_operation_runner == nullptr || Recorder(xs) != nullptr || std::any_of(xs.begin(), xs.end(), is_traced))
    return std::nullopt;
  const auto place = OnOneDevice(xs);
  std::optional<Tensor> y = place ? g_operation_runner(prim, dtype.dtype, attrs, xs) : std::nullopt;
  if (!y) return std::nullopt;
  const bool weak = dtype.weak && y->dtype() == dtype.dtype;
  return *place == nullptr ? Value(*std::move(y), weak) : Value(*std::move(y), **place, weak);
}

Value Elementwise(const Prim& prim, Operands xs, Attrs attrs, Promotion promotion) {
  if (prim.num_operands >= 0 && static_cast<int>(xs.size()) != prim.num_operands) {
    throw TypeError(prim.name, ": takes ", prim.num_operands, prim.num_operands == 1 ? " operand" : " operands",
                    ", got ", xs.size());
  }
  // Its first operand has a dtype of its own.
  if (Is<"select">(prim)) return Where(xs[0], xs[1], xs[2]);
  const WeakDType t = CommonDType(prim, xs, promotion);
  if (IsComplex(t.dtype)) {
    if (const auto by_order = OfComplexNumbers()[prim]) return by_order(xs);
  }
  if (auto y = RunAtOnce(prim, t, attrs, xs)) return *std::move(y);
  Site site(xs);
  Builder& b = site.b();
  Atoms atoms;
  atoms.reserve(xs.size());
  bool same = true;
  for (const Operand& x : xs) atoms.push_back(site.Use(x, t.dtype));
  if (xs.size() > 1) {
    // Equal shapes, or numbers beside one shape, are by far the most common.
    const Dims* shape = nullptr;
    for (const Atom& a : atoms) {
      if (a.is_literal() && a.literal().rank() == 0) continue;
      if (a.is_literal()) {
        same = false;
        break;
      }
      const Dims& dims = b.TypeOf(a.var()).dims;
      if (shape == nullptr)
        shape = &dims;
      else
        same &= *shape == dims;
    }
    if (!same) {
      const Dims joint = BroadcastShapes(xs, prim.name.c_str());
      for (Atom& a : atoms) a = BroadcastAtom(b, a, joint, true, prim.name.c_str());
    }
  }
  const Atom y = b.Emit1(prim, std::move(atoms), std::move(attrs));
  const bool weak = t.weak && b.DTypeOf(y) == t.dtype;
  return site.Finish(y, weak);
}

const char* Name(Binary op) {
  static constexpr const char* kNames[] = {"add",         "subtract",    "multiply",      "true_divide", "floor_divide",
                                           "remainder",   "power",       "bitwise_and",   "bitwise_or",  "bitwise_xor",
                                           "left_shift",  "right_shift", "equal",         "not_equal",   "less",
                                           "less_equal",  "greater",     "greater_equal", "maximum",     "minimum",
                                           "logical_and", "logical_or",  "logical_xor",   "arctan2",     "matmul"};
  return kNames[static_cast<int>(op)];
}

namespace {

// Whether a Python integer is larger (1) or smaller (-1) than all integers of a dtype.
int BeyondAll(const Scalar& number, DType dtype) {
  const bool whole = number.kind == Scalar::Kind::kInt || number.kind == Scalar::Kind::kUint;
  if (!(IsSigned(dtype) || IsUnsigned(dtype))) return 0;
  if (number.kind == Scalar::Kind::kLarge) return number.re > 0 ? 1 : -1;
  if (!whole) return 0;
  using Wide = __int128;
  const Wide value = number.kind == Scalar::Kind::kUint ? Wide(static_cast<uint64_t>(number.i)) : Wide(number.i);
  const int bits = BitWidth(dtype) - (IsSigned(dtype) ? 1 : 0);
  return value >= Wide(1) << bits ? 1 : value < (IsSigned(dtype) ? -(Wide(1) << bits) : Wide(0)) ? -1 : 0;
}

// A comparison with a Python integer beyond the dtype, which is the same for all elements.
std::optional<Value> ComparedBeyond(Binary op, const Operand& x, const Operand& y) {
  if (x.is_scalar() == y.is_scalar()) return std::nullopt;
  const Operand& array = x.is_scalar() ? y : x;
  const int beyond = BeyondAll((x.is_scalar() ? x : y).scalar(), array.dtype().dtype);
  if (beyond == 0) return std::nullopt;
  const bool less = (beyond > 0) == y.is_scalar();  // whether x < y
  const bool holds =
      op == Binary::kNe || (less ? op == Binary::kLt || op == Binary::kLe : op == Binary::kGt || op == Binary::kGe);
  return Elementwise(FindPrim(holds ? "eq" : "ne"), {array, array});
}

bool AreKeys(const Operand& x, const Operand& y) {
  return !x.is_scalar() && !y.is_scalar() && x.dtype().dtype == DType::kKey && y.dtype().dtype == DType::kKey;
}

// By the real parts, and where these are equal by the imaginary ones; with a NaN in a part nothing holds.
Value CompareComplex(Binary op, const Value& x, const Value& y) {
  const auto parts = [&](const char* part) {
    return std::pair(Elementwise(FindPrim(part), {x}), Elementwise(FindPrim(part), {y}));
  };
  const auto [x_real, y_real] = parts("real");
  const auto [x_imag, y_imag] = parts("imag");
  const Value by_real = Apply(op, x_real, y_real), by_imag = Apply(op, x_imag, y_imag);
  const Value ordered = Where(Apply(Binary::kEq, x_real, y_real), by_imag, by_real);
  const Value numbers = Apply(Binary::kAnd, Apply(Binary::kEq, x, x), Apply(Binary::kEq, y, y));
  return Apply(Binary::kAnd, ordered, numbers);
}

// Random keys are equal where both of their words are.
Value CompareKeys(Binary op, const Operand& x, const Operand& y) {
  const auto words_of = [&](const Operand& keys, const Operand& other) {
    const Value words = Bind(FindPrim("random_unwrap"), {keys.ToValue()})[0];
    if (keys.value().rank() != 0) return words;
    Dims shape = other.value().dims();  // one key beside several, whatever is said of arrays of different ranks
    shape.push_back(words.dims()[0]);
    return BroadcastTo(words, shape);
  };
  const Value words = Elementwise(PrimOf(op), {words_of(x, y), words_of(y, x)});
  return ReduceAxes(op == Binary::kEq ? "reduce_and" : "reduce_or", words, Ints{-1}, false);
}

}  // namespace

Value Apply(Binary op, const Operand& x, const Operand& y) {
  const Operand xs[] = {x, y};
  if ((op == Binary::kEq || op == Binary::kNe) && AreKeys(x, y)) return CompareKeys(op, x, y);
  RefuseOpaque(Name(op), xs);
  switch (op) {
    case Binary::kEq:
    case Binary::kNe:
    case Binary::kLt:
    case Binary::kLe:
    case Binary::kGt:
    case Binary::kGe:
      if (const auto all = ComparedBeyond(op, x, y)) return *all;
      return Elementwise(PrimOf(op), xs);
    case Binary::kAdd:
    case Binary::kMul:
      // bool + bool is or, bool * bool is and, as in NumPy.
      if (IsBool(x.dtype().dtype) && IsBool(y.dtype().dtype))
        return Elementwise(FindPrim(op == Binary::kAdd ? "or" : "and"), xs);
      return Elementwise(PrimOf(op), xs);
    case Binary::kTrueDivide: return Elementwise(PrimOf(op), xs, {}, Promotion::kInexact);
    case Binary::kPower: return Power(x, y);
    case Binary::kFloorDivide:
    case Binary::kRemainder: {
      WeakDType t = PromoteAll(xs);
      if (IsComplex(t.dtype)) throw TypeError(Name(op), ": complex numbers have no remainder");
      if (IsBool(t.dtype)) t = {DefaultInt(), false};
      Site site(xs);
      Prepared p = Prepare(site, xs, t.dtype, Name(op));
      auto f = op == Binary::kFloorDivide ? FloorDivide : Remainder;
      return site.Finish(f(site.b(), p.atoms[0], p.atoms[1], t.dtype), t.weak);
    }
    case Binary::kShiftRight: {
      const WeakDType t = PromoteAll(xs);
      return Elementwise(FindPrim(IsUnsigned(t.dtype) ? "shift_right_logical" : "shift_right_arithmetic"), xs);
    }
    case Binary::kLogicalAnd:
    case Binary::kLogicalOr:
    case Binary::kLogicalXor: {
      const Value a = Astype(x, DType::kBool), b = Astype(y, DType::kBool);
      return Elementwise(PrimOf(op), {a, b});
    }
    case Binary::kMatmul: return Matmul(x, y);
    default: return Elementwise(PrimOf(op), xs);
  }
}

Value ApplyFunction(Binary op, const Operand& x, const Operand& y) {
  const bool orders = op == Binary::kLt || op == Binary::kLe || op == Binary::kGt || op == Binary::kGe ||
                      op == Binary::kMaximum || op == Binary::kMinimum;
  const Operand xs[] = {x, y};
  if (!orders || !(IsComplex(x.dtype().dtype) || IsComplex(y.dtype().dtype))) return Apply(op, x, y);
  const WeakDType t = PromoteAll(xs);
  const Value a = Astype(x, t.dtype, t.weak), b = Astype(y, t.dtype, t.weak);
  if (op != Binary::kMaximum && op != Binary::kMinimum) return CompareComplex(op, a, b);
  // A NaN beside any number, as in NumPy.
  const Value first = CompareComplex(op == Binary::kMaximum ? Binary::kGe : Binary::kLe, a, b);
  return Where(Apply(Binary::kOr, first, Apply(Binary::kNe, a, a)), a, b);
}

Value Apply(Unary op, const Operand& x) {
  switch (op) {
    case Unary::kNegative: {
      static const Prim& prim = FindPrim("neg");
      return Elementwise(prim, {x});
    }
    case Unary::kPositive: return x.ToValue();
    case Unary::kAbsolute:
      if (IsUnsigned(x.dtype().dtype) || IsBool(x.dtype().dtype)) return x.ToValue();
      return Elementwise(FindPrim("abs"), {x});
    case Unary::kInvert: return Elementwise(FindPrim("not"), {x});
    case Unary::kLogicalNot: {
      const Value a = Astype(x, DType::kBool);
      return Elementwise(FindPrim("not"), {a});
    }
  }
  __builtin_unreachable();
}

Value Astype(const Operand& x, DType dtype, bool weak) {
  if (x.dtype().dtype == dtype) return x.ToValue().WithWeak(weak);
  // A Python number has all its digits until it gets a dtype.
  if (x.is_scalar() && IsInexact(dtype) && (IsComplex(dtype) || !IsComplex(x.dtype().dtype)))
    return Value(NumberTensor(dtype, x.scalar()), weak);
  Site site({x});
  Atom a = site.Use(x);
  // A complex number turned real loses its imaginary part; to bool it asks whether it is not 0.
  if (IsComplex(x.dtype().dtype) && !IsComplex(dtype)) {
    if (IsBool(dtype))
      a = site.b().Emit1(FindPrim("ne"), {a, Atom::Scalar(x.dtype().dtype, 0)});
    else
      a = site.b().Emit1(FindPrim("real"), {a});
  }
  return site.Finish(Convert(site.b(), a, dtype), weak);
}

Value Where(const Operand& condition, const Operand& x, const Operand& y) {
  const Operand xy[] = {x, y};
  const WeakDType t = PromoteAll(xy);
  const Value p = Astype(condition, DType::kBool);
  const Operand all[] = {Operand(p), x, y};
  const Dims shape = BroadcastShapes(all, "where");
  Site site(all);
  Builder& b = site.b();
  const Atom on_true = BroadcastAtom(b, site.Use(x, t.dtype), shape, true, "where");
  const Atom on_false = BroadcastAtom(b, site.Use(y, t.dtype), shape, true, "where");
  const Atom pred = BroadcastAtom(b, site.Use(Operand(p), DType::kBool), shape, true, "where");
  return site.Finish(b.Emit1(FindPrim("select"), {pred, on_true, on_false}), t.weak);
}

Value Full(const Dims& shape, const Operand& value, std::optional<DType> dtype) {
  const WeakDType t = dtype ? WeakDType{*dtype, false} : WeakDType{value.dtype().dtype, false};
  if (Recorder({&value, 1}) == nullptr && value.rank() == 0 && IsStatic(shape) &&
      (value.is_scalar() || !value.value().traced())) {
    const Tensor number = value.is_scalar() ? NumberTensor(t.dtype, value.scalar()) : Astype(value, t.dtype).tensor();
    const std::vector<int64_t> sizes = StaticSizes(shape, "full");
    for (int64_t size : sizes) {
      if (size < 0) throw ValueError("full: the shape ", ShapeText(shape), " has a negative size");
    }
    Tensor out(t.dtype, sizes);
    const int64_t width = ByteWidth(t.dtype), n = out.size();
    auto* to = static_cast<char*>(out.raw());
    const auto* bytes = static_cast<const char*>(number.raw());
    if (std::all_of(bytes, bytes + width, [](char c) { return c == 0; }))
      std::memset(to, 0, out.bytes());
    else
      for (int64_t i = 0; i < n; ++i) std::memcpy(to + i * width, bytes, width);
    return Value(std::move(out));
  }
  Site site({value});
  return site.Finish(BroadcastAtom(site.b(), site.Use(value, t.dtype), shape, false, "full"), false);
}

Value IotaLike(const Dims& shape, int64_t axis, DType dtype) {
  const int64_t dim = CheckAxis(axis, static_cast<int>(shape.size()), "iota");
  Site site(Operands{});
  return site.Finish(Iota(site.b(), shape, dim, dtype));
}

int64_t CheckAxis(int64_t axis, int rank, const char* what) {
  if (axis < -rank || axis >= rank) {
    throw UserError(ErrorKind::kIndex, {}, what, ": axis ", axis, " is out of range for an array of ", rank,
                    " dimensions");
  }
  return axis < 0 ? axis + rank : axis;
}

Ints CheckAxes(const Ints& axes, int rank, const char* what) {
  Ints out;
  for (int64_t axis : axes) out.push_back(CheckAxis(axis, rank, what));
  std::sort(out.begin(), out.end());
  for (size_t i = 1; i < out.size(); ++i) {
    if (out[i] == out[i - 1]) throw ValueError(what, ": axis ", out[i], " is given twice");
  }
  return out;
}

}  // namespace weft
