// Programs of a given number of equations, for what is measured per equation.
#ifndef WEFT_BENCH_LONG_PROGRAMS_H_
#define WEFT_BENCH_LONG_PROGRAMS_H_

#include <string>

#include "ir/builder.h"
#include "ir/ops.h"

namespace weft::bench {

struct Program {
  const char* name;
  FnRef (*make)(int length);
};

inline Type Number() { return {DType::kF32, {}, {}}; }

// About `length` equations of numbers, with values that are used more than once.
inline Atom Chain(Builder& b, const Atom& from, int length) {
  const Expr x{&b, from};
  Expr y = x;
  for (int i = 0; i < length / 4; ++i) {
    b.set_loc(Loc::File("model.py", 1 + i % 100, "loss"));  // as in a program traced from Python
    const Expr z = Sin(y) * x;
    y = y + z * 0.5;
  }
  b.set_loc({});
  return y;
}

inline FnRef ChainFunction(int length) {
  Builder b("chain");
  return b.Build({Chain(b, b.Parameter(Number()), length)});
}

inline Atom Scan(Builder& b, const Atom& x, const FnRef& step) {
  return b.Emit(FindPrim("scan"), {x},
                {{"num_consts", int64_t{0}}, {"num_carry", int64_t{1}}, {"length", Dims{10}}, {"reverse", false}},
                {step})[0];
}

inline FnRef InScan(int length) {
  Builder b("in_scan");
  return b.Build({Scan(b, b.Parameter(Number()), ChainFunction(length))});
}

inline FnRef InWhile(int length) {
  Builder cond("cond"), b("in_while");
  const FnRef below = cond.Build({Lt(cond, cond.Parameter(Number()), Atom::Scalar(DType::kF32, 100))});
  return b.Build(
      b.Emit(FindPrim("while"), {b.Parameter(Number())}, {{"num_carry", int64_t{1}}}, {below, ChainFunction(length)}));
}

// Many small loops, one after the other.
inline FnRef Loops(int length) {
  Builder b("loops");
  Atom x = b.Parameter(Number());
  for (int i = 0; i < length / 21; ++i) x = Scan(b, x, ChainFunction(20));
  return b.Build({x});
}

inline FnRef Products(int length) {
  Builder b("products");
  const Type matrix{DType::kF32, {8, 8}, {}};
  Atom x = b.Parameter(matrix);
  const Atom w = b.Parameter(matrix);
  for (int i = 0; i < length / 2; ++i)
    x = Tanh(b, b.Emit1(FindPrim("contract"), {x, w}, {{"spec", std::string("ab,bc->ac")}}));
  return b.Build({ReduceSum(b, x, {0, 1})});
}

}  // namespace weft::bench
#endif  // WEFT_BENCH_LONG_PROGRAMS_H_
