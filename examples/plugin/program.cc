// A program outside of Weft's tree: makes a function, differentiates it, runs a plugin's pass over it, interprets it.
//
//   program build/example.so
#include <cmath>
#include <cstdio>

#include "ir/eval/eval.h"
#include "ir/ops.h"
#include "ir/text/printer.h"
#include "sdk/load_plugin.h"
#include "transforms/ad/grad.h"
#include "transforms/opt/pass.h"

using namespace weft;

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: program PLUGIN\n");
    return 2;
  }
  try {
    const LoadedPlugin& plugin = LoadPlugin(argv[1]);
    Builder b("f");
    const Expr x{&b, b.Parameter({DType::kF64, {}}, "x")};
    const FnRef f = std::move(b).Build({Tanh(x) * x});
    const FnRef g = RunPasses(Grad(f, {.wrt = {true}}), {"simplify", "cse", "dce", plugin.passes.at(0)});
    std::printf("%s", Print(*g).c_str());
    const double at = 0.7, t = std::tanh(at), expected = t + at * (1 - t * t);
    const double found = Eval(*g, {Tensor::Full(DType::kF64, {}, at)})[0].at<double>(0);
    if (std::abs(found - expected) > 1e-14) {
      std::fprintf(stderr, "the derivative is %.17g, expected %.17g\n", found, expected);
      return 1;
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "program: %s\n", error.what());
    return 1;
  }
  return 0;
}
