// What the generic laws of registry_test.cc cannot see: the choices primitives make where derivatives are not unique,
// the bits of random numbers, what effects do, and eigenvectors of complex matrices.
//
// Expected numbers are JAX's (0.10.2, jax_enable_x64, jax_threefry_partitionable): the call is in the comment beside
// each.
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "ir/builder.h"
#include "ir/eval/eval.h"
#include "ir/ops.h"
#include "ir/random_ops.h"
#include "ir/text/parser.h"
#include "ir/text/printer.h"
#include "transforms/ad/grad.h"
#include "transforms/ad/jvp.h"
#include "transforms/batch/vmap.h"

namespace weft {
namespace {

using Doubles = std::vector<double>;

// jax.vjp(f, x)[1](ct)[0] of the first result of a primitive.
Doubles PullBack(const char* prim, const Attrs& attrs, const Tensor& x, const Tensor& ct) {
  Builder b("f");
  const Atom operand = b.Parameter(x.type());
  const Pullback v = Vjp(b.Build({b.Emit(FindPrim(prim), {operand}, attrs)[0]}), {true});
  Tensors args = Eval(*v.forward, {x});
  args.erase(args.begin());
  args.push_back(ct);
  const Tensor dx = Eval(*v.backward, args)[0];
  return Doubles(dx.data<double>(), dx.data<double>() + dx.size());
}

Tensor Vector(const Doubles& values) {
  return Tensor::FromVector<double>({static_cast<int64_t>(values.size())}, values);
}
Attrs Along(int64_t dim) { return {{"dim", dim}, {"reverse", false}}; }

TEST(Ties, CumulativeExtremesShareInHalves) {
  // lax.cummax, lax.cummin
  EXPECT_EQ(PullBack("cummax", Along(0), Vector({1, 1, 2, 0, 2}), Vector({1, 10, 100, 1000, 10000})),
            (Doubles{6, 5, 6100, 0, 5000}));
  EXPECT_EQ(PullBack("cummin", Along(0), Vector({2, 2, 1, 3}), Vector({1, 10, 100, 1000})), (Doubles{6, 5, 1100, 0}));
  // The same of several equal elements, which share pair by pair; from the other end with reverse=True.
  const Doubles ones(7, 1), ct = {1, 2, 4, 8, 16, 32, 64};
  const Doubles shares = {15, 14, 14, 12, 24, 16, 32};
  const Attrs backwards = {{"dim", int64_t{0}}, {"reverse", true}};
  const Doubles from_the_end = {0.5, 0.625, 2.625, 2.8125, 10.8125, 22.8125, 86.8125};
  for (const char* name : {"cummax", "cummin"}) {
    EXPECT_EQ(PullBack(name, Along(0), Vector(ones), Vector(ct)), shares);
    EXPECT_EQ(PullBack(name, backwards, Vector(ones), Vector(ct)), from_the_end);
  }
}

TEST(Ties, CumulativeProductsAreExactAtZeros) {
  // lax.cumprod
  EXPECT_EQ(PullBack("cumprod", Along(0), Vector({2, 0, 3, 0, 5}), Vector({1, 10, 100, 1000, 10000})),
            (Doubles{1, 620, 0, 0, 0}));
}

TEST(Ties, CumulativeLogSumExpHasNoOverflow) {
  // lax.cumlogsumexp
  const Doubles got = PullBack("cumlogsumexp", Along(0), Vector({0, 1000, 1000}), Vector({1, 10, 100}));
  const Doubles want = {1, 60, 50};
  for (int i = 0; i < 3; ++i) EXPECT_NEAR(got[i], want[i], 1e-9);
}

TEST(Ties, CumulativeLogSumExpOfZerosIsFinite) {
  // Where the sum is exp(-inf) + ... JAX gives NaN; the element that is finite has derivative 1.
  const double inf = std::numeric_limits<double>::infinity();
  EXPECT_EQ(PullBack("cumlogsumexp", Along(0), Vector({-inf, -inf, 1}), Vector({0, 0, 1})), (Doubles{0, 0, 1}));
}

Attrs Window(Ints window, Ints strides, Ints lo, Ints hi) {
  const Ints ones(window.size(), 1);
  return {{"window", window}, {"strides", strides},    {"lo", lo},
          {"hi", hi},         {"base_dilation", ones}, {"window_dilation", ones}};
}

TEST(Ties, PoolingPicksTheFirstInTheWindow) {
  // lax.reduce_window(x, -jnp.inf, lax.max, (3,), (2,), ((1, 1),))
  EXPECT_EQ(PullBack("reduce_window_max", Window({3}, {2}, {1}, {1}), Vector({1, 1, 1, 0, 0, 0, 0}),
                     Vector({1, 10, 100, 1000})),
            (Doubles{1, 10, 0, 100, 0, 1000, 0}));
  // lax.reduce_window(x, jnp.inf, lax.min, (2, 2), (1, 1), 'VALID')
  const Tensor x = Tensor::FromVector<double>({3, 3}, {1, 1, 1, 1, 1, 1, 1, 0, 0}),
               ct = Tensor::FromVector<double>({2, 2}, {1, 10, 100, 1000});
  EXPECT_EQ(PullBack("reduce_window_min", Window({2, 2}, {1, 1}, {0, 0}, {0, 0}), x, ct),
            (Doubles{1, 10, 0, 0, 0, 0, 0, 1100, 0}));
}

TEST(Ties, SortingIsStable) {
  // lax.sort; lax.top_k(x, 3)[0]
  EXPECT_EQ(PullBack("sort", {{"dim", int64_t{0}}, {"num_keys", int64_t{1}}}, Vector({1, 0, 1, 0}),
                     Vector({1, 10, 100, 1000})),
            (Doubles{100, 1, 1000, 10}));
  EXPECT_EQ(PullBack("top_k", {{"k", int64_t{3}}}, Vector({1, 2, 1, 2}), Vector({1, 10, 100})),
            (Doubles{100, 1, 0, 10}));
}

// The bits of the function's first result, as integers.
template <class T>
std::vector<uint64_t> Bits(const std::function<Atom(Builder&)>& make) {
  Builder b("f");
  const Tensor y = Eval(*b.Build({make(b)}), {})[0];
  return std::vector<uint64_t>(y.data<T>(), y.data<T>() + y.size());
}

Atom Key42(Builder& b) { return RandomKey(b, Atom(Tensor::Scalar<int32_t>(DType::kI32, 42))); }

// The gradient of sum of w * f(x), for `text` the program f, and how often each operation is in it.
std::pair<Doubles, std::map<std::string, int>> PullBackText(const std::string& text, const Tensor& x,
                                                            const Tensor& ct) {
  const Pullback v = Vjp(ParseFn(text), {true});
  Tensors args = Eval(*v.forward, {x});
  args.erase(args.begin());
  args.push_back(ct);
  const Tensor dx = Eval(*v.backward, args)[0];
  std::map<std::string, int> names;
  for (const Eqn& e : v.backward->eqns()) ++names[e.prim->name];
  return {Doubles(dx.data<double>(), dx.data<double>() + dx.size()), names};
}

TEST(Slices, PartsThatLieApartMakeUpTheCotangentWithoutAdditions) {
  // In any order, with a gap between them and one at the end.
  const auto [dx, names] = PullBackText(R"(
fn f(x: f64[9]) -> (f64[2]) {
  a: f64[2] = slice[limit=[5], start=[3], strides=[1]] x
  b: f64[2] = slice[limit=[2], start=[0], strides=[1]] x
  c: f64[2] = slice[limit=[7], start=[5], strides=[1]] x
  d: f64[2] = mul a 2.0:f64
  e: f64[2] = mul b 3.0:f64
  g: f64[2] = add d e
  h: f64[2] = add g c
  return h
})",
                                        Vector({1, 2, 3, 4, 5, 6, 7, 8, 9}), Vector({10, 100}));
  EXPECT_EQ(dx, (Doubles{30, 300, 0, 20, 200, 10, 100, 0, 0}));
  EXPECT_EQ(names.at("concatenate"), 1);
  EXPECT_EQ(names.count("pad") + names.count("add"), 0u);
}

TEST(Slices, PartsThatOverlapAreAdded) {
  const auto [dx, names] = PullBackText(R"(
fn f(x: f64[4]) -> (f64[3]) {
  a: f64[3] = slice[limit=[3], start=[0], strides=[1]] x
  b: f64[3] = slice[limit=[4], start=[1], strides=[1]] x
  c: f64[3] = sub a b
  return c
})",
                                        Vector({1, 2, 3, 4}), Vector({1, 10, 100}));
  EXPECT_EQ(dx, (Doubles{1, 9, 90, -100}));
  EXPECT_EQ(names.at("pad"), 2);
  EXPECT_EQ(names.at("add"), 1);
}

TEST(Slices, PartsOfAPartAndOtherReadersAreAddedToThem) {
  // Along both dimensions, a part of a part, and a reader of the whole.
  const auto [dx, names] =
      PullBackText(R"(
fn f(x: f64[2,3]) -> (f64[2,1]) {
  a: f64[2,2] = slice[limit=[2,2], start=[0,0], strides=[1,1]] x
  b: f64[2,1] = slice[limit=[2,3], start=[0,2], strides=[1,1]] x
  c: f64[2,1] = slice[limit=[2,1], start=[0,0], strides=[1,1]] a
  d: f64[2,1] = slice[limit=[2,2], start=[0,1], strides=[1,1]] a
  e: f64[2,1] = sub c d
  g: f64[2,1] = add e b
  h: f64[1,3] = slice[limit=[2,3], start=[1,0], strides=[1,1]] x
  i: f64[1,1] = slice[limit=[1,1], start=[0,0], strides=[1,1]] h
  j: f64[2,1] = concatenate[dim=0] i i
  k: f64[2,1] = mul g 2.0:f64
  l: f64[2,1] = add k j
  m: f64[2] = reduce_sum[dims=[1]] x
  n: f64[2,1] = reshape[shape=<2,1>] m
  o: f64[2,1] = add l n
  return o
})",
                   Tensor::FromVector<double>({2, 3}, {1, 2, 3, 4, 5, 6}), Tensor::FromVector<double>({2, 1}, {1, 10}));
  EXPECT_EQ(dx, (Doubles{3, -1, 3, 41, -10, 30}));
  EXPECT_EQ(names.at("concatenate"), 1);  // of `x` along its columns: a part of a part is one of `x`
}

TEST(Random, KeysAreThoseOfJax) {
  using Words = std::vector<uint64_t>;
  // random.key_data(random.key(0x123456789abcdef0)), random.key_data(random.key(42))
  auto seed = Atom(Tensor::Scalar<int64_t>(DType::kI64, 0x123456789abcdef0));
  EXPECT_EQ(Bits<uint32_t>([&](Builder& b) { return RandomUnwrap(b, RandomKey(b, seed)); }),
            (Words{0x12345678, 0x9abcdef0}));
  EXPECT_EQ(Bits<uint32_t>([](Builder& b) { return RandomUnwrap(b, Key42(b)); }), (Words{0, 0x2a}));
  // random.split(random.key(42), (3,))
  EXPECT_EQ(Bits<uint32_t>([](Builder& b) { return RandomUnwrap(b, RandomSplit(b, Key42(b), {3})); }),
            (Words{0x6d3e048f, 0x1022172d, 0x3d7b32d, 0xadd083f4, 0x92fb20ea, 0xf38d913}));
  // random.fold_in(random.key(42), 7), random.fold_in(random.key(42), np.uint32(0xfffffff0))
  auto fold = [](Atom data) {
    return Bits<uint32_t>([&](Builder& b) { return RandomUnwrap(b, RandomFoldIn(b, Key42(b), data)); });
  };
  EXPECT_EQ(fold(Atom(Tensor::Scalar<int32_t>(DType::kI32, 7))), (Words{0x97d0552f, 0x51bf719f}));
  EXPECT_EQ(fold(Atom(Tensor::Scalar<uint32_t>(DType::kU32, 0xfffffff0))), (Words{0x656abec7, 0x26e8f0ef}));
}

TEST(Random, BitsAreThoseOfJax) {
  using Words = std::vector<uint64_t>;
  // random.bits(random.key(42), (2, 3), dtype) and random.bits(random.key(42), (), jnp.uint32)
  auto bits = [](int width) { return [width](Builder& b) { return RandomBits(b, Key42(b), width, {2, 3}); }; };
  EXPECT_EQ(Bits<uint8_t>(bits(8)), (Words{0xa2, 0xd9, 0xf9, 0xd7, 0x15, 0xd8}));
  EXPECT_EQ(Bits<uint16_t>(bits(16)), (Words{0x13a2, 0x30d9, 0xf9f9, 0xc1d7, 0x7315, 0x4ed8}));
  EXPECT_EQ(Bits<uint32_t>(bits(32)), (Words{0x7d1c13a2, 0xae0730d9, 0x9dc3f9f9, 0x8f9ec1d7, 0x735d7315, 0x95fb4ed8}));
  EXPECT_EQ(Bits<uint64_t>(bits(64)), (Words{0x6d3e048f1022172d, 0x3d7b32dadd083f4, 0x92fb20ea0f38d913,
                                             0xbad56946354ba891, 0xb013aee3c34eddf6, 0xa4d91a963122544e}));
  EXPECT_EQ(Bits<uint32_t>([](Builder& b) { return RandomBits(b, Key42(b), 32, {}); }), (Words{0x7d1c13a2}));
}

TEST(Random, SymbolicShapesGiveTheSameBits) {
  Builder b("f");
  const Atom x = b.Parameter({DType::kF32, {Dim::Symbol("n"), 3}});
  const FnRef f = b.Build({RandomBits(b, Key42(b), 32, b.TypeOf(x).dims)});
  const Tensor y = Eval(*f, {Tensor::Zeros(DType::kF32, {2, 3})})[0];
  EXPECT_EQ(y.at<uint32_t>(0), 0x7d1c13a2u);
  EXPECT_EQ(y.at<uint32_t>(5), 0x95fb4ed8u);
}

TEST(Random, TheExpansionIsThePrimitive) {
  Builder b("f");
  Atoms x;
  for (int i = 0; i < 4; ++i) x.push_back(b.Parameter({DType::kU32, {3}}));
  const auto [p0, p1] = Threefry2x32(b, x[0], x[1], x[2], x[3]);
  const auto [e0, e1] = ExpandThreefry2x32(b, x[0], x[1], x[2], x[3]);
  Tensors words;
  for (uint32_t i = 0; i < 4; ++i)
    words.push_back(Tensor::FromVector<uint32_t>({3}, {i, 0xdeadbeef * (i + 1), 0xffffffff - i}));
  const Tensors y = Eval(*b.Build({p0, p1, e0, e1}), words);
  EXPECT_TRUE(y[0].BitEquals(y[2]) && y[1].BitEquals(y[3]));
  EXPECT_FALSE(y[0].BitEquals(y[1]));
}

// What a function prints while it runs.
class Printed {
 public:
  Printed() : saved_(GetEffectHandlers()) {
    EffectHandlers handlers = saved_;
    handlers.print = [this](const std::string& text) { lines_.push_back(text); };
    SetEffectHandlers(handlers);
  }
  ~Printed() { SetEffectHandlers(saved_); }
  std::vector<std::string> lines() const { return lines_; }

 private:
  EffectHandlers saved_;
  std::vector<std::string> lines_;
};

FnRef PrintsAndSquares() {
  Builder b("f");
  const Atom x = b.Parameter({DType::kF64, {}});
  b.Emit(FindPrim("debug_print"), {x}, {{"format", std::string("x={}")}});
  return b.Build({Mul(b, x, x)});
}

TEST(Effects, PrintOncePerLane) {
  const BatchedFn f = Batch(PrintsAndSquares(), {true}, {true}, 3);
  Printed printed;
  Eval(*f.fn, {Vector({1, 2, 3})});
  EXPECT_EQ(printed.lines(), (std::vector<std::string>{"x=1.0", "x=2.0", "x=3.0"}));
}

TEST(Effects, PrintThePrimalOnceUnderDifferentiation) {
  const FnRef gradient = Grad(PrintsAndSquares(), {.wrt = {true}});
  Printed printed;
  EXPECT_EQ(Eval(*gradient, {Tensor::Scalar(DType::kF64, 3.0)})[0].at<double>(0), 6);
  EXPECT_EQ(printed.lines(), (std::vector<std::string>{"x=3.0"}));
}

TEST(Effects, AFailedAssertionSaysWhy) {
  Builder b("f");
  const Atom x = b.Parameter({DType::kF64, {2}});
  b.Emit(FindPrim("assert"), {Gt(b, x, Atom::Scalar(DType::kF64, 0)), x}, {{"message", std::string("x is {}")}});
  const FnRef f = b.Build({x});
  EXPECT_NO_THROW(Eval(*f, {Vector({1, 2})}));
  try {
    Eval(*f, {Vector({1, -2})});
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kRuntime);
    EXPECT_EQ(error.message(), "x is [1.0 -2.0]");
  }
}

TEST(Effects, CallbacksHaveNoDerivative) {
  Builder b("f");
  const Type type{DType::kF64, {}, {}};
  const Atom x = b.Parameter(type);
  const FnRef f =
      b.Build({b.Emit1(FindPrim("pure_callback"), {x}, {{"callback", int64_t{0}}, {"results", Types{type}}})});
  EXPECT_THROW(Jvp(f, {true}, {true}), Error);
}

// sum(sin(max pooling of (conv of x and w))) and its gradients, for n images.
FnRef ConvolutionalLoss(const Dim& n) {
  Builder b("loss");
  const Atom x = b.Parameter({DType::kF64, {n, 2, 6}}), w = b.Parameter({DType::kF64, {3, 2, 3}});
  const Ints one = {1}, none = {0};
  const Atom y = b.Emit1(FindPrim("conv"), {x, w},
                         {{"strides", one},
                          {"lo", one},
                          {"hi", one},
                          {"lhs_dilation", one},
                          {"rhs_dilation", one},
                          {"feature_groups", int64_t{1}},
                          {"batch_groups", int64_t{1}}});
  const Atom pooled = b.Emit1(FindPrim("reduce_window_max"), {y}, Window({1, 1, 2}, {1, 1, 2}, {0, 0, 0}, {0, 0, 0}));
  return b.Build({ReduceSum(b, Sin(b, pooled), {0, 1, 2})});
}

TEST(SymbolicSizes, GradientsOfConvAndPoolingServeEveryBatch) {
  Tensor x(DType::kF64, {4, 2, 6}), w(DType::kF64, {3, 2, 3});
  for (int64_t i = 0; i < x.size(); ++i) x.Set(i, std::sin(7.0 * static_cast<double>(i)));
  for (int64_t i = 0; i < w.size(); ++i) w.Set(i, std::cos(5.0 * static_cast<double>(i)));
  const GradOptions both{.wrt = {true, true}};
  const Tensors fixed = Eval(*Grad(ConvolutionalLoss(4), both), {x, w});
  const Tensors symbolic = Eval(*Grad(ConvolutionalLoss(Dim::Symbol("n")), both), {x, w});
  for (size_t i = 0; i < fixed.size(); ++i) EXPECT_TRUE(fixed[i].BitEquals(symbolic[i]));
}

// Functions of a complex matrix in which the free phase of its vectors cancels: v sin(w) v^H and u sin(s) vt.
FnRef MatrixSine(const char* prim, const Type& type) {
  Builder b("f");
  const Atom x = b.Parameter(type);
  const bool eigh = std::string(prim) == "eigh";
  const Atoms y = b.Emit(FindPrim(prim), {x}, eigh ? Attrs() : Attrs{{"compute_uv", true}});
  const Atom &values = eigh ? y[0] : y[1], &left = eigh ? y[1] : y[0];
  const Atom right = eigh ? Conj(b, Transpose(b, y[1], {1, 0})) : y[2];
  const Atom scale = Broadcast(b, Convert(b, Sin(b, values), type.dtype), b.TypeOf(left).dims, {1});
  return b.Build({Contract(b, "ij,jk->ik", Mul(b, left, scale), right)});
}

TEST(ComplexVectors, DerivativesThatDoNotDependOnThePhase) {
  for (const auto& [prim, shape] : std::vector<std::pair<const char*, Shape>>{
           {"eigh", {3, 3}}, {"svd", {3, 3}}, {"svd", {4, 2}}, {"svd", {2, 4}}}) {
    Tensor x(DType::kC128, shape), dx(DType::kC128, shape), up(DType::kC128, shape), down(DType::kC128, shape);
    const double h = 1e-6;
    for (int64_t i = 0; i < x.size(); ++i) {
      x.Set(i, {1 + std::sin(7.0 * static_cast<double>(i)), std::cos(3.0 * static_cast<double>(i))});
      dx.Set(i, {std::cos(5.0 * static_cast<double>(i)), std::sin(2.0 * static_cast<double>(i))});
      up.Set(i, x.Get(i) + h * dx.Get(i));
      down.Set(i, x.Get(i) - h * dx.Get(i));
    }
    const FnRef f = MatrixSine(prim, x.type());
    const Tensor tangent = Eval(*Jvp(f, {true}, {true}).fn, {x, dx})[1];
    const Tensor y_up = Eval(*f, {up})[0], y_down = Eval(*f, {down})[0];
    for (int64_t i = 0; i < tangent.size(); ++i) {
      EXPECT_LE(std::abs(tangent.Get(i) - (y_up.Get(i) - y_down.Get(i)) / (2 * h)), 1e-6)
          << prim << " of " << x.type() << " element " << i;
    }
  }
}

}  // namespace
}  // namespace weft
