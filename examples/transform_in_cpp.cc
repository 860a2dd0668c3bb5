// Building a function, transforming it, and writing a pass of one's own, in C++ alone.
//
//   ./bazelw run //examples:transform_in_cpp
//
// The text of docs/write_a_transform.md walks through this file.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <iostream>

#include "ir/builder.h"
#include "ir/eval/eval.h"
#include "ir/ops.h"
#include "ir/text/printer.h"
#include "transforms/ad/grad.h"
#include "transforms/batch/vmap.h"
#include "transforms/opt/pass.h"
#include "transforms/opt/rewrite.h"

using namespace weft;

// f(x, w) = sum(tanh(x * w))
FnRef Build() {
  Builder b("f");
  const Type vector{DType::kF64, {3}, {}};
  const Expr x{&b, b.Parameter(vector, "x")}, w{&b, b.Parameter(vector, "w")};
  return b.Build({ReduceSum(b, Tanh(x * w), {0})});
}

// A pass: tanh(x) becomes 2 logistic(2 x) - 1.
FnRef TanhToLogistic(const FnRef& fn) {
  return Rewrite(fn, [](Builder& b, const Eqn& e, const Atoms& operands) -> std::optional<Atoms> {
    if (e.prim->name != "tanh") return std::nullopt;  // keep the equation
    const Expr x{&b, operands[0]};
    return Atoms{2.0 * Logistic(2.0 * x) - 1.0};
  });
}

void Expect(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "failed: %s\n", what);
  std::exit(1);
}

int main() {
  const FnRef f = Build();
  std::cout << "# f\n" << Print(*f) << "\n";

  const FnRef grad = Optimize(Grad(f, {.wrt = {true, false}}));
  std::cout << "# grad(f), simplified\n" << Print(*grad) << "\n";

  const FnRef batched = Vmap(grad, {.in_axes = {0, std::nullopt}, .out_axes = {0}, .size = Dim::Symbol("n")});
  std::cout << "# vmap(grad(f)), for any number of examples\n" << Print(*batched) << "\n";

  const FnRef rewritten = TanhToLogistic(f);
  std::cout << "# f after a pass of our own\n" << Print(*rewritten) << "\n";

  const Tensor x = Tensor::FromVector<double>({3}, {0.1, -0.4, 0.7}),
               w = Tensor::FromVector<double>({3}, {1.5, 2.0, -0.3});
  const double expected = (1 - std::pow(std::tanh(0.1 * 1.5), 2)) * 1.5;  // closed form of the first component
  Expect(std::abs(Eval(*grad, {x, w})[0].at<double>(0) - expected) < 1e-12, "the gradient has its closed form");
  Expect(std::abs(Eval(*f, {x, w})[0].at<double>(0) - Eval(*rewritten, {x, w})[0].at<double>(0)) < 1e-12,
         "the pass keeps the meaning");
  const Tensor two = Tensor::FromVector<double>({2, 3}, {0.1, -0.4, 0.7, 0, 0, 0});
  Expect(std::abs(Eval(*batched, {two, w})[0].at<double>(0) - expected) < 1e-12,
         "lane 0 of the batch is the gradient at x");
  std::cout << "all checks hold\n";
}
