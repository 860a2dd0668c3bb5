// Short functions for the primitives that rules and tests in C++ use most (every other one is emitted by its name,
// b.Emit(FindPrim("sort"), operands, attrs)):
//
//   Atom y = Mul(b, Sin(b, x), Full(b, 2.0, x));
//
// and `Expr`, an atom together with its builder, so that formulas read like formulas:
//
//   Expr y = Sin(x) * 2.0 + 1.0;
//
// Element-wise functions drop trivial work (x*1, x+0, x/1, -(-x)); everything else is left to the simplifier.
#ifndef WEFT_IR_OPS_H_
#define WEFT_IR_OPS_H_

#include <string>
#include <utility>
#include <vector>

#include "ir/builder.h"

namespace weft {

// clang-format off
#define WEFT_UNARY_OPS(V)                                                                                          \
  V(Neg, "neg") V(Sign, "sign") V(Abs, "abs") V(Floor, "floor") V(Ceil, "ceil") V(Exp, "exp") V(Exp2, "exp2")       \
  V(Expm1, "expm1") V(Log, "log") V(Log1p, "log1p") V(Sqrt, "sqrt") V(Rsqrt, "rsqrt") V(Cbrt, "cbrt")               \
  V(Sin, "sin") V(Cos, "cos") V(Tan, "tan") V(Asin, "asin") V(Acos, "acos") V(Atan, "atan") V(Sinh, "sinh")         \
  V(Cosh, "cosh") V(Tanh, "tanh") V(Asinh, "asinh") V(Acosh, "acosh") V(Atanh, "atanh") V(Logistic, "logistic")     \
  V(Erf, "erf") V(Erfc, "erfc") V(ErfInv, "erf_inv") V(Lgamma, "lgamma") V(Digamma, "digamma") V(Square, "square")  \
  V(IsFinite, "is_finite") V(Not, "not") V(Real, "real") V(Imag, "imag") V(Conj, "conj")                            \
  V(StopGradient, "stop_gradient")
#define WEFT_BINARY_OPS(V)                                                                                         \
  V(Add, "add") V(Sub, "sub") V(Mul, "mul") V(Div, "div") V(Rem, "rem") V(Pow, "pow") V(Max, "max") V(Min, "min")   \
  V(Atan2, "atan2") V(And, "and") V(Or, "or") V(Xor, "xor") V(Eq, "eq") V(Ne, "ne") V(Lt, "lt") V(Le, "le")         \
  V(Gt, "gt") V(Ge, "ge") V(MakeComplex, "complex")
// clang-format on

#define WEFT_DECLARE_UNARY(Function, name) Atom Function(Builder& b, const Atom& x);
#define WEFT_DECLARE_BINARY(Function, name) Atom Function(Builder& b, const Atom& x, const Atom& y);
WEFT_UNARY_OPS(WEFT_DECLARE_UNARY)
WEFT_BINARY_OPS(WEFT_DECLARE_BINARY)
#undef WEFT_DECLARE_UNARY
#undef WEFT_DECLARE_BINARY

Atom IntegerPow(Builder& b, const Atom& x, int64_t exponent);
Atom Select(Builder& b, const Atom& pred, const Atom& on_true, const Atom& on_false);
Atom Convert(Builder& b, const Atom& x, DType dtype);  // x itself when it has that type

// An array of `type` full of `value`: a literal for rank 0, else its broadcast; varying as the type says.
Atom Full(Builder& b, const Type& type, double value);
inline Atom Zeros(Builder& b, const Type& type) { return Full(b, type, 0); }

Atom Broadcast(Builder& b, const Atom& x, const Dims& shape, const Ints& dims);  // x itself when nothing changes
Atom Reshape(Builder& b, const Atom& x, const Dims& shape);
Atom Transpose(Builder& b, const Atom& x, const Ints& perm);
Atom Reverse(Builder& b, const Atom& x, const Ints& dims);
Atom Concatenate(Builder& b, const Atoms& xs, int64_t dim);
Atom Pad(Builder& b, const Atom& x, const Atom& value, const Ints& lo, const Ints& hi, const Ints& interior);
Atom Slice(Builder& b, const Atom& x, const Ints& start, const Ints& limit, const Ints& strides);
Atom Iota(Builder& b, const Dims& shape, int64_t dim, DType dtype);
Atom ReduceSum(Builder& b, const Atom& x, const Ints& dims);  // x itself for no dims
Atom Reduce(Builder& b, const std::string& prim, const Atom& x, const Ints& dims);
Atom Contract(Builder& b, const std::string& spec, const Atom& x, const Atom& y);
Atom DynamicSlice(Builder& b, const Atom& x, const Atoms& start, const Ints& sizes);
Atom DynamicUpdateSlice(Builder& b, const Atom& x, const Atom& update, const Atoms& start);
// y[..., i, ...] = x[..., indices[..., i, ...], ...] along `dim`; the other sizes agree and every index is within
// bounds.
Atom TakeAlong(Builder& b, const Atom& x, const Atom& indices, int64_t dim);

// x as a value that varies over `axes` too: x itself where it does.
Atom Pvary(Builder& b, const Atom& x, const Strings& axes);
// The sum over the devices along `axes`.
Atom Psum(Builder& b, const Atom& x, const Strings& axes);
// x, of the type `type` but for the axes over which it varies, as a value of `type`: what varies over too few is
// declared to vary. With `sum`, the way back: the cotangent of a value that was taken as varying is the sum over
// devices.
Atom MatchVarying(Builder& b, const Atom& x, const Type& type, bool sum = false);

// A + b where either may be a symbolic zero.
std::optional<Atom> AddTangents(Builder& b, const std::optional<Atom>& x, const std::optional<Atom>& y);

// The reduced shape `type` would have without `dims`; and the positions of the others.
Dims WithoutDims(const Dims& shape, const Ints& dims);
Ints OtherDims(int rank, const Ints& dims);
Ints Range(int64_t begin, int64_t end);

struct Expr {
  Builder* b;
  Atom atom;
  operator Atom() const { return atom; }  // NOLINT: an expression is used where an atom is needed
  DType dtype() const { return b->DTypeOf(atom); }
  // A number of this expression's type.
  Expr Number(double value) const { return {b, Atom::Scalar(dtype(), value)}; }
};

// x and y as they may stand in one operation: a computed number beside an array becomes an array. (Literals may stay.)
std::pair<Expr, Expr> SideBySide(const Expr& x, const Expr& y);

#define WEFT_EXPR_UNARY(Function, name) \
  inline Expr Function(const Expr& x) { return {x.b, Function(*x.b, x.atom)}; }
#define WEFT_EXPR_BINARY(Function, name)                                             \
  inline Expr Function(const Expr& x, const Expr& y) {                               \
    const auto [u, v] = SideBySide(x, y);                                            \
    return {x.b, Function(*x.b, u.atom, v.atom)};                                    \
  }                                                                                  \
  inline Expr Function(const Expr& x, double y) { return Function(x, x.Number(y)); } \
  inline Expr Function(double x, const Expr& y) { return Function(y.Number(x), y); }
WEFT_UNARY_OPS(WEFT_EXPR_UNARY)
WEFT_BINARY_OPS(WEFT_EXPR_BINARY)
#undef WEFT_EXPR_UNARY
#undef WEFT_EXPR_BINARY
#define WEFT_EXPR_OPERATOR(op, Function)                                           \
  inline Expr operator op(const Expr& x, const Expr& y) { return Function(x, y); } \
  inline Expr operator op(const Expr& x, double y) { return Function(x, y); }      \
  inline Expr operator op(double x, const Expr& y) { return Function(x, y); }
WEFT_EXPR_OPERATOR(+, Add)
WEFT_EXPR_OPERATOR(-, Sub)
WEFT_EXPR_OPERATOR(*, Mul)
WEFT_EXPR_OPERATOR(/, Div)
#undef WEFT_EXPR_OPERATOR
inline Expr operator-(const Expr& x) { return Neg(x); }
Expr Select(const Expr& p, const Expr& x, const Expr& y);

}  // namespace weft
#endif  // WEFT_IR_OPS_H_
