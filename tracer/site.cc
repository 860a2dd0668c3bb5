#include "tracer/site.h"

#include <bit>
#include <cmath>
#include <iomanip>
#include <limits>
#include <sstream>

#include "base/to_integer.h"
#include "tracer/context.h"
#include "tracer/eager_scope.h"
#include "tracer/promote.h"

namespace weft {

WeakDType Scalar::dtype() const {
  switch (kind) {
    case Kind::kBool: return {DType::kBool, false};
    case Kind::kInt:
    case Kind::kUint:
    case Kind::kLarge: return {DefaultInt(), true};
    case Kind::kFloat: return {DefaultFloat(), true};
    case Kind::kComplex: return {DefaultComplex(), true};
  }
  __builtin_unreachable();
}

std::string Scalar::ToString() const {
  if (kind == Kind::kUint) return std::to_string(static_cast<uint64_t>(i));
  if (kind == Kind::kInt || kind == Kind::kBool) return std::to_string(i);
  if (kind == Kind::kLarge) {
    std::ostringstream text;
    text << std::setprecision(17) << re;
    return text.str();
  }
  if (kind == Kind::kFloat) return std::to_string(re);
  return std::to_string(re) + "+" + std::to_string(im) + "j";
}

namespace {

template <class T>
T IntegerOf(DType dtype, const Scalar& s) {
  bool fits = true;
  WordOf<T> value = 0;
  if (s.kind == Scalar::Kind::kLarge) {
    fits = false;
  } else if (s.kind == Scalar::Kind::kUint) {
    value = static_cast<WordOf<T>>(s.i);
    fits = std::is_same_v<T, uint64_t>;
  } else {
    value = T(s.i);
    fits = static_cast<__int128>(value) == static_cast<__int128>(s.i);
  }
  // In JAX what fits the default integers wraps around.
  const bool wraps = !fits && On(Setting::kJaxSemantics) && s.kind == Scalar::Kind::kInt &&
                     (X64() || s.i == static_cast<int32_t>(s.i));
  if (!fits && !wraps)
    throw IntegerOverflow("the Python integer ", s.ToString(), " does not fit ", dtype, "; use an array of a ",
                          s.kind == Scalar::Kind::kLarge ? "float" : "wider", " dtype");
  return value;
}

Tensor MakeNumber(DType dtype, const Scalar& s) {
  Tensor t(dtype, {});
  VisitDType(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const bool whole = s.kind != Scalar::Kind::kFloat && s.kind != Scalar::Kind::kComplex;
    const double real = s.kind == Scalar::Kind::kUint             ? static_cast<double>(static_cast<uint64_t>(s.i))
                        : whole && s.kind != Scalar::Kind::kLarge ? static_cast<double>(s.i)
                                                                  : s.re;
    if constexpr (std::is_same_v<T, bool>) {
      *t.data<T>() = real != 0 || s.im != 0;
    } else if constexpr (kIsInteger<T>) {
      if (whole)
        *t.data<T>() = IntegerOf<T>(dtype, s);
      else
        *t.data<T>() = ToInteger<T>(s.re);
    } else if constexpr (std::is_same_v<T, std::complex<float>> || std::is_same_v<T, std::complex<double>>) {
      *t.data<T>() = T(static_cast<typename T::value_type>(real), static_cast<typename T::value_type>(s.im));
    } else if constexpr (kIsSmallFloat<T>) {
      *t.data<T>() = T(static_cast<float>(real));
    } else {
      *t.data<T>() = static_cast<T>(real);
    }
  });
  return t;
}

}  // namespace

const Atom& NumberLiteral(DType dtype, const Scalar& s) {
  struct Slot {
    DType dtype;
    Scalar::Kind kind;
    uint64_t a, b;
    Atom literal;  // a variable while the slot is empty
  };
  constexpr size_t kSlots = 512;
  thread_local auto& slots = *new std::vector<Slot>(kSlots);
  const bool whole = s.kind != Scalar::Kind::kFloat && s.kind != Scalar::Kind::kComplex;
  const uint64_t a = whole && s.kind != Scalar::Kind::kLarge ? static_cast<uint64_t>(s.i)
                                                             : std::bit_cast<uint64_t>(s.re),
                 b = std::bit_cast<uint64_t>(s.im);
  const uint64_t h = (a ^ (a >> 32) ^ (a >> 17) ^ b * 31 ^ static_cast<uint64_t>(dtype) * 0x9e3779b9u ^
                      static_cast<uint64_t>(s.kind) << 7);
  Slot& slot = slots[(h ^ h >> 9 ^ h >> 45) % kSlots];
  if (!(slot.literal.is_literal() && slot.dtype == dtype && slot.kind == s.kind && slot.a == a && slot.b == b)) {
    slot = {dtype, s.kind, a, b, Atom(MakeNumber(dtype, s))};
  }
  return slot.literal;
}

Value Operand::ToValue() const {
  if (value_) return *value_;
  const WeakDType t = scalar_.dtype();
  return Value(Trace::OwnNumber(NumberTensor(t.dtype, scalar_)), t.weak);
}

Trace* Recorder(Operands xs) {
  Trace* trace = Trace::Current();
  if (trace == nullptr || !trace->computes_known()) return trace;
  const auto is_traced = [](const Operand& x) { return !x.is_scalar() && x.value().traced(); };
  return std::any_of(xs.begin(), xs.end(), is_traced) ? trace : nullptr;
}

Site::Site(Trace* trace) : trace_(trace) {
  if (trace_) {
    b_ = &trace_->builder();
  } else {
    own_.emplace("eager");
    b_ = &*own_;
  }
  b_->set_loc(CurrentLoc());
}

Atom Site::Use(const Value& value) {
  if (trace_) return trace_->Use(value);
  if (value.placement() != nullptr || EagerScope::Hides({&value, 1})) {
    placed_.emplace_back(args_.size(), value);
    args_.emplace_back();
    return own_->Parameter(value.type());
  }
  args_.push_back(Demand(value, "the value"));  // raises for an escaped value
  return own_->Parameter(args_.back().type());
}

Atom Site::Use(const Operand& x, DType dtype) {
  if (x.is_scalar()) {
    const Atom& number = NumberLiteral(dtype, x.scalar());
    if (trace_) return number;
    args_.push_back(number.literal());
    return own_->Parameter(Type{dtype, {}, {}});
  }
  const Value& v = x.value();
  if (trace_ && !v.traced() && v.rank() == 0 && v.dtype() != dtype && !IsComplex(v.dtype()) && !IsStored(v.dtype()) &&
      !IsOpaque(v.dtype())) {
    // A captured number is converted here and now.
    const Tensor& t = v.tensor();
    if (IsSigned(t.dtype())) return Use(Operand(Scalar::Int(static_cast<int64_t>(t.Get(0).real()))), dtype);
    if (IsFloat(t.dtype()) && IsInexact(dtype)) return Use(Operand(Scalar::Float(t.Get(0).real())), dtype);
  }
  return Convert(*b_, Use(v), dtype);
}

Value Site::Finish(const Atom& atom, bool weak) {
  if (trace_) return trace_->Wrap(atom, weak);
  return Finish(Atoms{atom}, weak)[0];
}

Values Site::Finish(const Atoms& atoms, bool weak) {
  Values values;
  values.reserve(atoms.size());
  if (trace_) {
    for (const Atom& a : atoms) values.push_back(trace_->Wrap(a, weak));
    return values;
  }
  // A trace that leaves this to us goes on afterwards. (An EagerScope's are hidden already, and Apply looks there.)
  std::optional<NoTrace> none;
  if (Trace::Current() != nullptr) none.emplace();
  if (!placed_.empty()) {
    Values args(args_.begin(), args_.end());
    for (auto& [i, value] : placed_) args[i] = value;
    const FnRef fn = own_->Build(atoms, /*keep_dead=*/false);
    for (const Value& v : EagerScope::Hides(args) ? Apply(fn, args) : Run(fn, args)) values.push_back(v.WithWeak(weak));
  } else {
    for (Tensor& t : Run(own_->Build(atoms, /*keep_dead=*/false), args_)) values.push_back(Value(std::move(t), weak));
  }
  return values;
}

std::string ShapeText(const Dims& dims) {
  std::string text = "(";
  for (size_t i = 0; i < dims.size(); ++i) text += (i ? ", " : "") + dims[i].ToString();
  return text + (dims.size() == 1 ? ",)" : ")");
}

Dims BroadcastShapes(const Dims& a, const Dims& b, const char* what) {
  if (a == b) return a;
  const Dims& longer = a.size() >= b.size() ? a : b;
  const Dims& shorter = a.size() >= b.size() ? b : a;
  Dims out = longer;
  const size_t shift = longer.size() - shorter.size();
  for (size_t i = 0; i < shorter.size(); ++i) {
    const Dim &x = longer[i + shift], &y = shorter[i];
    if (x == y || y == Dim(1)) continue;
    if (x == Dim(1)) {
      out[i + shift] = y;
      continue;
    }
    throw TypeError(what, ": shapes ", ShapeText(a), " and ", ShapeText(b), " do not broadcast: ", x, " against ", y,
                    " in dimension ", static_cast<int64_t>(i + shift) - static_cast<int64_t>(longer.size()));
  }
  return out;
}

namespace {
RankWatcher g_rank_watcher = nullptr;
}  // namespace

void SetRankWatcher(RankWatcher watcher) { g_rank_watcher = watcher; }

Dims BroadcastShapes(Operands xs, const char* what) {
  if (On(Setting::kWatchRanks) && g_rank_watcher != nullptr) g_rank_watcher(what, xs);
  Dims shape;
  for (const Operand& x : xs) shape = BroadcastShapes(shape, x.dims(), what);
  return shape;
}

Atom BroadcastAtom(Builder& b, const Atom& x, const Dims& shape, bool keep_numbers, const char* what) {
  if (x.is_var() ? b.TypeOf(x.var()).dims == shape : false) return x;
  const Type type = b.TypeOf(x);
  if (type.dims == shape) return x;
  if (keep_numbers && x.is_literal() && type.rank() == 0) return x;
  const size_t rank = type.dims.size();
  bool fits = rank <= shape.size();
  for (size_t i = 0; fits && i < rank; ++i) {
    const Dim& from = type.dims[i];
    const Dim& to = shape[i + shape.size() - rank];
    fits = from == to || from == Dim(1);
  }
  if (!fits)
    throw TypeError(what, ": an array of shape ", ShapeText(type.dims), " does not broadcast to ", ShapeText(shape));
  return Broadcast(b, x, shape, Range(static_cast<int64_t>(shape.size() - rank), static_cast<int64_t>(shape.size())));
}

WeakDType PromoteAll(Operands xs) {
  WEFT_CHECK(!xs.empty()) << "PromoteAll of nothing";
  WeakDType t = xs[0].dtype();
  for (size_t i = 1; i < xs.size(); ++i) t = Promote(t, xs[i].dtype());
  return t;
}

}  // namespace weft
