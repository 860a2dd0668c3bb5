// What is taken apart into components and what is not; that the meaning stays.
#include "transforms/opt/components.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "ir/eval/eval.h"
#include "ir/text/parser.h"
#include "ir/text/printer.h"
#include "ir/verify.h"
#include "transforms/opt/rule_watch.h"

namespace weft {
namespace {

constexpr int64_t kLeast = 100;

Tensors Samples(const Fn& fn) {
  Tensors x;
  for (const Param& p : fn.params()) {
    Shape shape;
    for (const Dim& d : p.type.dims) shape.push_back(d.value("a test"));
    Tensor t = Tensor::Full(p.type.dtype, shape, 0);
    for (int64_t i = 0; i < t.size(); ++i)
      t.Set(i, 5 * std::sin(static_cast<double>(i * (7 + static_cast<int64_t>(x.size())) % 101)));
    x.push_back(t);
  }
  return x;
}

void ExpectSame(const Fn& f, const Fn& g) {
  Verify(g);
  const Tensors x = Samples(f), a = Eval(f, x), b = Eval(g, x);
  ASSERT_EQ(a.size(), b.size());
  for (size_t r = 0; r < a.size(); ++r) {
    ASSERT_EQ(a[r].shape(), b[r].shape());
    // The interpreter rounds a sum once, at its end.
    const double bound = IsInexact(a[r].dtype()) ? 1e-6 : 0;
    for (int64_t i = 0; i < a[r].size(); ++i)
      ASSERT_LE(std::abs(a[r].Get(i) - b[r].Get(i)), bound * (1 + std::abs(a[r].Get(i)))) << Print(g);
  }
}

// How many equations have a result of at least kLeast elements, with a dimension of 2 to 4.
int64_t Structures(const Fn& fn) {
  int64_t n = 0;
  for (const Eqn& e : fn.eqns()) {
    for (uint32_t r = 0; r < e.num_results; ++r) {
      const Type& t = fn.TypeOf(e.result(static_cast<int>(r)));
      bool few = false;
      for (const Dim& d : t.dims) few |= d.value("a test") >= 2 && d.value("a test") <= 4;
      n += few && t.size().value("a test") >= kLeast ? 1 : 0;
    }
    for (const FnRef& region : e.regions) n += Structures(*region);
  }
  return n;
}

FnRef Apart(const std::string& text) {
  const FnRef fn = ParseFn(text);
  FnRef apart = TakeComponentsApart(fn, kLeast);
  ExpectSame(*fn, *apart);
  return apart;
}

constexpr char kForces[] = R"(
fn forces(x: f32[20,3]) -> (f32[20,3]) {
  a: f32[20,20,3] = broadcast[shape=<20,20,3>, dims=[0,2]] x
  b: f32[20,20,3] = broadcast[shape=<20,20,3>, dims=[1,2]] x
  d: f32[20,20,3] = sub a b
  s: f32[20,20,3] = mul d d
  r: f32[20,20] = reduce_sum[dims=[2]] s
  q: f32[20,20] = add r 0.01:f32
  w: f32[20,20,3] = broadcast[shape=<20,20,3>, dims=[0,1]] q
  f: f32[20,20,3] = div d w
  y: f32[20,3] = reduce_sum[dims=[1]] f
  return y
}
)";

TEST(Components, OfPairsOfPoints) {
  const FnRef apart = Apart(kForces);
  EXPECT_EQ(Structures(*apart), 0) << Print(*apart);
}

// Every reduction, dtype, position and size.
TEST(Components, OfEveryKind) {
  struct Case {
    const char* reduction;
    const char* dtype;
    bool apart;
  };
  for (const Case& c : {Case{"reduce_sum", "f32", true},
                        {"reduce_sum", "f64", true},
                        {"reduce_sum", "i32", true},
                        {"reduce_sum", "c64", true},
                        {"reduce_prod", "f32", true},
                        {"reduce_max", "f32", true},
                        {"reduce_min", "f64", true},
                        {"reduce_max", "bf16", true},
                        {"reduce_sum", "f16", false},
                        {"reduce_sum", "bf16", false}}) {
    for (const int size : {2, 3, 4}) {
      for (const int at : {0, 1, 2}) {
        std::vector<std::string> sizes = {"12", "10"};
        sizes.insert(sizes.begin() + at, std::to_string(size));
        const std::string type = std::string(c.dtype) + "[" + sizes[0] + "," + sizes[1] + "," + sizes[2] + "]";
        const FnRef apart =
            Apart("fn f(x: " + type + ") -> (" + c.dtype + "[12,10]) {\n  a: " + type + " = mul x x\n  y: " + c.dtype +
                  "[12,10] = " + c.reduction + "[dims=[" + std::to_string(at) + "]] a\n  return y\n}\n");
        EXPECT_EQ(Structures(*apart) == 0, c.apart) << Print(*apart);
      }
    }
  }
}

TEST(Components, ThroughViews) {
  const FnRef apart = Apart(R"(
fn f(x: f32[12,30], n: f32[12,10,1]) -> (f32[12,10], f32[3]) {
  a: f32[12,10,3] = reshape[shape=<12,10,3>] x
  b: f32[12,10,3] = broadcast[shape=<12,10,3>, dims=[0,1,2]] n
  c: f32[12,10,3] = sub a b
  t: f32[3,10,12] = transpose[perm=[2,1,0]] c
  m: f32[3,10,12] = mul t t
  r: f32[10,12] = reduce_sum[dims=[0]] m
  u: f32[12,10] = transpose[perm=[1,0]] r
  z: f32[3] = reduce_max[dims=[1,2]] m
  return u, z
}
)");
  // What comes from a matrix of whole rows is cut out of it.
  EXPECT_LE(Structures(*apart), 1) << Print(*apart);
}

// A value that is a result, or goes through an operation that has no components, is there as a whole.
TEST(Components, BesideWholeValues) {
  Apart(R"(
fn f(x: f32[20,3], y: f32[20,3]) -> (f32[20,20,3], f32[20,20], f32[20,20,3]) {
  a: f32[20,20,3] = broadcast[shape=<20,20,3>, dims=[0,2]] x
  b: f32[20,20,3] = broadcast[shape=<20,20,3>, dims=[1,2]] y
  d: f32[20,20,3] = sub a b
  s: f32[20,20,3] = mul d d
  r: f32[20,20] = reduce_sum[dims=[2]] s
  t: f32[20,20,3] = cumsum[dim=1, reverse=false] s
  return d, r, t
}
)");
  // Of two short dimensions one.
  Apart(R"(
fn f(x: f32[50,3,3]) -> (f32[50,3], f32[50,3], f32[50]) {
  s: f32[50,3,3] = mul x x
  a: f32[50,3] = reduce_sum[dims=[1]] s
  b: f32[50,3] = reduce_sum[dims=[2]] s
  c: f32[50] = reduce_max[dims=[1,2]] s
  return a, b, c
}
)");
  // Two arrays that are taken apart along different dimensions meet.
  Apart(R"(
fn f(x: f32[60,2]) -> (f32[60], f32[2,2]) {
  a: f32[60,2] = mul x x
  b: f32[60] = reduce_sum[dims=[1]] a
  l: f32[60,2,1] = reshape[shape=<60,2,1>] a
  m: f32[60,1,2] = reshape[shape=<60,1,2>] a
  n: f32[60,2,2] = broadcast[dims=[0,1,2], shape=<60,2,2>] l
  o: f32[60,2,2] = broadcast[dims=[0,1,2], shape=<60,2,2>] m
  p: f32[60,2,2] = mul n o
  r: f32[2,2] = reduce_sum[dims=[0]] p
  return b, r
}
)");
  // An array that is large itself, from one that is larger.
  const FnRef sums = Apart(R"(
fn f(x: f32[40,3]) -> (f32[40,3]) {
  a: f32[40,40,3] = broadcast[shape=<40,40,3>, dims=[0,2]] x
  b: f32[40,40,3] = broadcast[shape=<40,40,3>, dims=[1,2]] x
  d: f32[40,40,3] = mul a b
  r: f32[40,40] = reduce_sum[dims=[2]] d
  w: f32[40,40,3] = broadcast[shape=<40,40,3>, dims=[0,1]] r
  f: f32[40,40,3] = mul d w
  y: f32[40,3] = reduce_sum[dims=[0]] f
  return y
}
)");
  EXPECT_EQ(Structures(*sums), 1) << Print(*sums);  // the result
}

TEST(Components, InRegions) {
  const FnRef apart = Apart(R"(
fn f(x: f32[20,3]) -> (f32[20,3]) {
  y: f32[20,3] = scan[length=<3>, num_carry=1, num_consts=0, reverse=false] x (x: f32[20,3]) -> (f32[20,3]) {
    a: f32[20,20,3] = broadcast[shape=<20,20,3>, dims=[0,2]] x
    b: f32[20,20,3] = broadcast[shape=<20,20,3>, dims=[1,2]] x
    d: f32[20,20,3] = sub a b
    r: f32[20,20] = reduce_max[dims=[2]] d
    w: f32[20,20,3] = broadcast[shape=<20,20,3>, dims=[0,1]] r
    f: f32[20,20,3] = mul d w
    y: f32[20,3] = reduce_max[dims=[1]] f
    return y
  }
  return y
}
)");
  EXPECT_EQ(Structures(*apart), 0) << Print(*apart);
}

TEST(Components, SmallArraysStay) {
  const FnRef fn = ParseFn("fn f(x: f32[10,3]) -> (f32[10]) {\n  y: f32[10] = reduce_sum[dims=[1]] x\n  return y\n}\n");
  EXPECT_EQ(TakeComponentsApart(fn, kLeast), fn);
  const FnRef five =
      ParseFn("fn f(x: f32[50,5]) -> (f32[50]) {\n  y: f32[50] = reduce_sum[dims=[1]] x\n  return y\n}\n");
  EXPECT_EQ(TakeComponentsApart(five, kLeast), five);
  // One long sum is none over components.
  const FnRef sum = ParseFn("fn f(x: f32[100,3]) -> (f32[]) {\n  y: f32[] = reduce_sum[dims=[0,1]] x\n  return y\n}\n");
  EXPECT_EQ(TakeComponentsApart(sum, kLeast), sum);
}

TEST(Components, CanBeLeftOut) {
  const FnRef fn = ParseFn(kForces);
  const RuleWatch watch({kComponents});
  EXPECT_EQ(TakeComponentsApart(fn, kLeast), fn);
}

}  // namespace
}  // namespace weft
