// What the core costs from C++, without Python: building a function, transforming it, compiling it, calling it.
//
//   ./bazelw run -c opt //bench:core                                  # all
//   ./bazelw run -c opt //bench:core -- --benchmark_filter=Call       # some
//
// The program of most rows is a network with one hidden layer and a mean squared loss.
#include <benchmark/benchmark.h>

#include "driver/executable.h"
#include "ir/builder.h"
#include "ir/ops.h"
#include "ir/text/parser.h"
#include "ir/text/printer.h"
#include "transforms/ad/grad.h"
#include "transforms/batch/vmap.h"
#include "transforms/opt/pass.h"

namespace weft {
namespace {

Type F32(Dims dims) { return {DType::kF32, std::move(dims), {}}; }

// The loss of one example.
FnRef Loss() {
  Builder b("loss");
  const Atom w1 = b.Parameter(F32({64, 128}), "w1"), w2 = b.Parameter(F32({128, 10}), "w2"),
             x = b.Parameter(F32({64}), "x"), y = b.Parameter(F32({10}), "y");
  const Expr hidden = Tanh(Expr{&b, Contract(b, "i,ij->j", x, w1)});
  const Expr error = Expr{&b, Contract(b, "j,jk->k", hidden, w2)} - Expr{&b, y};
  return b.Build({ReduceSum(b, error * error, {0})});
}

FnRef BatchLoss() {
  VmapOptions options;
  options.in_axes = {std::nullopt, std::nullopt, 0, 0};
  options.out_axes = {0};
  options.size = 32;
  const FnRef per_example = Vmap(Loss(), options);
  Builder b("batch_loss");
  Atoms in;
  for (const Param& p : per_example->params()) in.push_back(b.Parameter(p.type, p.name));
  const Expr losses{&b, b.Inline(*per_example, in)[0]};
  return b.Build({Expr{&b, ReduceSum(b, losses, {0})} * (1.0 / 32)});
}

FnRef Gradient() { return Grad(BatchLoss(), {.wrt = {true, true, false, false}}); }

FnRef Chain(int length) {
  Builder b("chain");
  Expr x{&b, b.Parameter(F32({1024}))};
  for (int i = 0; i < length / 2; ++i) x = Tanh(x * 1.01);
  return b.Build({x});
}

void Report(benchmark::State& state, double per_iteration, const char* what) {
  state.counters[what] = benchmark::Counter(per_iteration, benchmark::Counter::kIsIterationInvariantRate);
}

void Trace(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(Chain(static_cast<int>(state.range(0))));
  Report(state, static_cast<double>(state.range(0)), "operations");
}
BENCHMARK(Trace)->Arg(20)->Arg(2000);

void TransformVmap(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(BatchLoss());
}
BENCHMARK(TransformVmap);

void TransformGrad(benchmark::State& state) {
  const FnRef loss = BatchLoss();
  for (auto _ : state) benchmark::DoNotOptimize(Grad(loss, {.wrt = {true, true, false, false}}));
}
BENCHMARK(TransformGrad);

void Passes(benchmark::State& state) {
  const FnRef gradient = Gradient();
  for (auto _ : state) benchmark::DoNotOptimize(Optimize(gradient));
}
BENCHMARK(Passes);

void TextThereAndBack(benchmark::State& state) {
  const FnRef gradient = Gradient();
  for (auto _ : state) benchmark::DoNotOptimize(ParseFn(Print(*gradient)));
}
BENCHMARK(TextThereAndBack);

// Without passes.
CompileRequest AsItIs(const FnRef& fn) {
  CompileRequest request{fn};
  request.passes = {};
  return request;
}

CompileRequest Uncached() {
  CompileRequest options;
  options.passes = {};
  options.use_cache = options.use_disk_cache = false;
  return options;
}

void CompileGradient(benchmark::State& state) {
  const FnRef f = Optimize(Gradient());
  for (auto _ : state) benchmark::DoNotOptimize(Compile(Uncached().For(f)));
}
BENCHMARK(CompileGradient)->Unit(benchmark::kMillisecond);

void CompileChain(benchmark::State& state) {
  const FnRef f = Chain(static_cast<int>(state.range(0)));
  for (auto _ : state) benchmark::DoNotOptimize(Compile(Uncached().For(f)));
}
BENCHMARK(CompileChain)->Arg(2)->Arg(200)->Unit(benchmark::kMillisecond);

void CompileCached(benchmark::State& state) {
  const FnRef f = Optimize(Gradient());
  Compile(AsItIs(f));
  for (auto _ : state) benchmark::DoNotOptimize(Compile(AsItIs(f)));
}
BENCHMARK(CompileCached);

Tensors ArgumentsOf(const Fn& fn) {
  Tensors in;
  for (const Param& p : fn.params()) in.push_back(Tensor::Full(p.type.dtype, StaticSizes(p.type.dims, "bench"), 0.25));
  return in;
}

void Call(benchmark::State& state, const FnRef& fn) {
  const auto f = Compile(AsItIs(fn));
  const Tensors in = ArgumentsOf(*fn);
  for (auto _ : state) benchmark::DoNotOptimize(f->Run(in));
}

void CallTiny(benchmark::State& state) {
  Builder b("tiny");
  const Expr x{&b, b.Parameter(F32({4}))}, y{&b, b.Parameter(F32({4}))};
  Call(state, b.Build({x + y}));
}
BENCHMARK(CallTiny);

void CallGradient(benchmark::State& state) { Call(state, Optimize(Gradient())); }
BENCHMARK(CallGradient);

void CallSum(benchmark::State& state) {
  Builder b("sum");
  const int64_t n = state.range(0);
  Call(state, b.Build({ReduceSum(b, b.Parameter(F32({n})), {0})}));
  state.SetBytesProcessed(state.iterations() * n * 4);
}
BENCHMARK(CallSum)->Arg(1 << 14)->Arg(10000000)->UseRealTime();

void CallTranspose(benchmark::State& state) {
  Builder b("transpose");
  const int64_t n = state.range(0);
  Call(state, b.Build({Transpose(b, b.Parameter(F32({n, n})), {1, 0})}));
  state.SetBytesProcessed(state.iterations() * n * n * 8);
}
BENCHMARK(CallTranspose)->Arg(256)->Arg(2048)->UseRealTime();

// The same update with the argument kept and given away.
void CallUpdate(benchmark::State& state) {
  Builder b("update");
  const int64_t n = 1 << 20;
  const Atom x = b.Parameter(F32({n})), v = b.Parameter(F32({1}));
  CompileRequest options;
  options.passes = {};
  options.donated = {state.range(0) != 0, false};
  const auto f = Compile(options.For(b.Build({DynamicUpdateSlice(b, x, v, {Atom::Scalar(DType::kI32, 7)})})));
  Tensor kept = Tensor::Full(DType::kF32, {n}, 1);
  const Tensor value = Tensor::Full(DType::kF32, {1}, 2);
  for (auto _ : state) {
    Tensors in;
    in.push_back(std::move(kept));
    in.push_back(value);
    if (state.range(0) != 0) {
      kept = f->RunOwned(std::move(in))[0];
    } else {
      benchmark::DoNotOptimize(f->Run(in));
      kept = std::move(in[0]);
    }
  }
}
BENCHMARK(CallUpdate)->ArgName("donated")->Arg(0)->Arg(1);

}  // namespace
}  // namespace weft
