// spmd: the devices of a mesh in the interpreter. That infer, derivatives, batching and text agree is in
// registry_test.cc; here are the meaning against whole arrays and against vmap, control flow, and what is refused.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "ir/builder.h"
#include "ir/eval/effects.h"
#include "ir/eval/eval.h"
#include "ir/exchange/serialize.h"
#include "ir/ops.h"
#include "ir/samples/drawn_tensors.h"
#include "ir/samples/sample_fns.h"
#include "ir/text/parser.h"
#include "ir/text/printer.h"
#include "ir/verify.h"
#include "transforms/ad/grad.h"
#include "transforms/batch/vmap.h"
#include "transforms/opt/pass.h"

namespace weft {
namespace {

FnRef Parsed(const std::string& text) {
  FnRef f = ParseFn(text);
  Verify(*f);
  return f;
}

void ExpectNear(const Tensor& a, const Tensor& b, const std::string& what) {
  ASSERT_EQ(a.type(), b.type()) << what;
  for (int64_t i = 0; i < a.size(); ++i)
    ASSERT_NEAR(a.Get(i).real(), b.Get(i).real(), 1e-9) << what << " element " << i;
}

Error ErrorOf(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "no error";
  return Error(ErrorKind::kInternal, "");
}

// Every collective on the devices of a mesh and on the batch elements of vmap: two meanings that share no code.
TEST(Spmd, DevicesAndLanesAgree) {
  std::mt19937 rng(1);
  int ran = 0;
  for (const Prim* prim : AllPrims()) {
    if (prim->family != Family::kCollective || prim->num_operands != 1) continue;
    for (Sample s : prim->samples()) {
      Type x = s.operands[0];
      if (x.dtype != DType::kF32) continue;
      x.dtype = DType::kF64;
      s.operands[0] = x;
      const FnRef on_devices = OnDevices(*prim, s);
      Verify(*on_devices);
      // On batch elements.
      Builder lb("lane");
      FnRef on_lanes = lb.Build(lb.Emit(*prim, {lb.Parameter(x)}, s.attrs));
      for (size_t i = s.axes.size(); i-- > 0;)
        on_lanes = Batch(on_lanes, {true}, {true}, s.axes[i].size, s.axes[i].name).fn;
      const Tensor value = Draw(on_devices->params()[0].type, -2, 2, rng);
      ExpectNear(Eval(*on_devices, {value})[0], Eval(*on_lanes, {value})[0], Print(*on_devices));
      ++ran;
    }
  }
  EXPECT_GE(ran, 18);
}

const char* const kLoss = R"(
fn loss(w: f64[3,2], x: f64[8,3], t: f64[8,2]) -> (f64[]) {
  y: f64[] = spmd[in_shardings=shardings((-,-),(data,-),(data,-)), mesh=mesh(data=4), out_shardings=shardings(())] w x t (w: f64[3,2], x: f64[2,3]{data}, t: f64[2,2]{data}) -> (f64[]) {
    p: f64[2,2]{data} = contract[spec="ij,jk->ik"] x w
    q: f64[2,2]{data} = tanh p
    d: f64[2,2]{data} = sub q t
    e: f64[2,2]{data} = square d
    s: f64[]{data} = reduce_sum[dims=[0,1]] e
    m: f64[] = psum[axes=["data"]] s
    return m
  }
  return y
})";
const char* const kWhole = R"(
fn loss(w: f64[3,2], x: f64[8,3], t: f64[8,2]) -> (f64[]) {
  p: f64[8,2] = contract[spec="ij,jk->ik"] x w
  q: f64[8,2] = tanh p
  d: f64[8,2] = sub q t
  e: f64[8,2] = square d
  m: f64[] = reduce_sum[dims=[0,1]] e
  return m
})";

// Data parallelism: the same loss and gradients as on one device, and the gradient of the weights is one sum.
TEST(Spmd, DataParallelGradient) {
  std::mt19937 rng(2);
  const FnRef cut = Parsed(kLoss), whole = Parsed(kWhole);
  const Tensors x = DrawArguments(*whole, rng);
  ExpectNear(Eval(*cut, x)[0], Eval(*whole, x)[0], "loss");
  const Mask all(3, true);
  const FnRef grad = Grad(cut, {.wrt = all}), expected = Grad(whole, {.wrt = all});
  Verify(*grad);
  const Tensors a = Eval(*grad, x), b = Eval(*expected, x);
  for (size_t i = 0; i < 3; ++i) ExpectNear(a[i], b[i], "gradient " + std::to_string(i));
  // Optimised, the backward half holds one psum: that of the weights.
  const FnRef weights = Optimize(Grad(cut, {.wrt = {true, false, false}}));
  Verify(*weights);
  int sums = 0;
  std::function<void(const Fn&)> count = [&](const Fn& f) {
    for (const Eqn& e : f.eqns()) {
      sums += e.prim->name == "psum";
      for (const FnRef& r : e.regions) count(*r);
    }
  };
  count(*weights);
  EXPECT_EQ(sums, 1) << Print(*weights);
  ExpectNear(Eval(*weights, x)[0], b[0], "optimised");
}

TEST(Spmd, BatchedOverExamples) {
  std::mt19937 rng(3);
  const FnRef cut = Parsed(kLoss), whole = Parsed(kWhole);
  const FnRef a = Batch(cut, {false, true, false}, {true}, 5).fn, b = Batch(whole, {false, true, false}, {true}, 5).fn;
  Verify(*a);
  const Tensors x = DrawArguments(*a, rng);
  ExpectNear(Eval(*a, x)[0], Eval(*b, x)[0], Print(*a));
}

TEST(Spmd, TextAndBytes) {
  const FnRef f = Parsed(kLoss);
  EXPECT_TRUE(ParseFn(Print(*f))->StructurallyEquals(*f));
  EXPECT_TRUE(Deserialize(Serialize(*f))->StructurallyEquals(*f));
  EXPECT_NE(Print(*f).find("in_shardings=shardings((-,-),(data,-),(data,-)), mesh=mesh(data=4)"), std::string::npos);
  const FnRef partial = Parsed(R"(
fn f(x: f64[4]) -> (f64[2]) {
  y: f64[2] = spmd[in_shardings=shardings((a.b)), mesh=mesh(a=2,b=2), out_shardings=shardings((a)+b)] x (x: f64[1]{a,b}) -> (f64[1]{a,b}) {
    return x
  }
  return y
})");
  EXPECT_TRUE(Deserialize(Serialize(*partial))->StructurallyEquals(*partial));
  Tensor x(DType::kF64, {4});
  for (int i = 0; i < 4; ++i) x.Set(i, std::pow(10, i));
  const Tensor y = Eval(*partial, {x})[0];
  EXPECT_EQ(y.Get(0).real(), 11);
  EXPECT_EQ(y.Get(1).real(), 1100);
}

// Collectives in loops, branches and recursion; each device goes its own way where none meets another.
TEST(Spmd, ControlFlow) {
  const FnRef f = Parsed(R"(
fn f(x: f64[4]) -> (f64[4], f64[4]) {
  y: f64[4], z: f64[4] = spmd[in_shardings=shardings((d)), mesh=mesh(d=4), out_shardings=shardings((d),(d))] x (x: f64[1]{d}) -> (f64[1]{d}, f64[1]{d}) {
    a: f64[1]{d} = while[num_carry=1] x (x: f64[1]{d}) -> (bool[]) {
      s: f64[1] = psum[axes=["d"]] x
      r: f64[] = reduce_sum[dims=[0]] s
      more: bool[] = lt r 100.0:f64
      return more
    } (x: f64[1]{d}) -> (f64[1]{d}) {
      n: f64[1]{d} = ppermute[axes=["d"], perm=[0,1,1,2,2,3,3,0]] x
      t: f64[1]{d} = add x n
      return t
    }
    one: f64[1]{d} = pvary[axes=["d"]] [1.0]:f64[1]
    b: f64[1]{d}, c: f64[1]{d} = while[num_carry=2] x one (x: f64[1]{d}, k: f64[1]{d}) -> (bool[]{d}) {
      r: f64[]{d} = reduce_sum[dims=[0]] x
      more: bool[]{d} = gt r 0.5:f64
      return more
    } (x: f64[1]{d}, k: f64[1]{d}) -> (f64[1]{d}, f64[1]{d}) {
      h: f64[1]{d} = sub x 1.0:f64
      m: f64[1]{d} = mul k 2.0:f64
      return h, m
    }
    return a, c
  }
  return y, z
})");
  Tensor x(DType::kF64, {4});
  for (int i = 0; i < 4; ++i) x.Set(i, i);
  const Tensors y = Eval(*f, {x});
  // [0 1 2 3] -> each the sum of itself and its left neighbour, until the sum of all reaches 100.
  std::vector<double> v = {0, 1, 2, 3};
  while (v[0] + v[1] + v[2] + v[3] < 100) {
    const std::vector<double> w = v;
    for (size_t i = 0; i < 4; ++i) v[i] = w[i] + w[(i + 3) % 4];
  }
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(y[0].Get(i).real(), v[static_cast<size_t>(i)]);
    EXPECT_EQ(y[1].Get(i).real(), std::pow(2, i));
  }
}

// Devices take different branches and leave a loop after different numbers of trips. What branches compute from numbers
// alone, array and all, has to leave them as something that varies.
const char* const kChoices = R"(
fn f(x: f64[4,2], w: f64[2]) -> (f64[4,2]) {
  y: f64[4,2] = spmd[in_shardings=shardings((d,-),(-)), mesh=mesh(d=4), out_shardings=shardings((d,-))] x w (b: f64[1,2]{d}, w: f64[2]) -> (f64[1,2]{d}) {
    x: f64[2]{d} = reshape[shape=<2>] b
    v: f64[2]{d} = pvary[axes=["d"]] w
    r: f64[]{d} = reduce_sum[dims=[0]] x
    p: bool[]{d} = gt r 0.0:f64
    y: f64[2]{d} = cond p x v (x: f64[2]{d}, v: f64[2]{d}) -> (f64[2]{d}) {
      a: f64[2]{d} = sin x
      b: f64[2]{d} = mul a v
      return b
    } (x: f64[2]{d}, v: f64[2]{d}) -> (f64[2]{d}) {
      i: f64[3,2] = iota[dim=0, dtype=f64, shape=<3,2>]
      s: f64[3,2] = cos i
      c: f64[2]{d} = scan[length=<3>, num_carry=1, num_consts=1, reverse=false] v x s (v: f64[2]{d}, c: f64[2]{d}, s: f64[2]) -> (f64[2]{d}) {
        m: f64[2]{d} = mul c s
        n: f64[2]{d} = sin m
        o: f64[2]{d} = mul n v
        return o
      }
      return c
    }
    place: i32[]{d} = axis_index[axes=["d"], varying=true]
    zero: i32[]{d} = pvary[axes=["d"]] 0:i32
    k: i32[]{d}, z: f64[2]{d} = while[num_carry=2] zero y place v (k: i32[]{d}, y: f64[2]{d}, place: i32[]{d}, v: f64[2]{d}) -> (bool[]{d}) {
      more: bool[]{d} = le k place
      return more
    } (k: i32[]{d}, y: f64[2]{d}, place: i32[]{d}, v: f64[2]{d}) -> (i32[]{d}, f64[2]{d}) {
      t: i32[]{d} = add k 1:i32
      i: f64[2] = iota[dim=0, dtype=f64, shape=<2>]
      e: f64[2] = exp i
      m: f64[2]{d} = mul y v
      n: f64[2]{d} = sin m
      o: f64[2]{d} = mul n e
      return t, o
    }
    u: f64[1,2]{d} = reshape[shape=<1,2>] z
    return u
  }
  return y
})";

TEST(Spmd, DerivativesWhereDevicesChooseDifferently) {
  std::mt19937 rng(5);
  const FnRef f = Parsed(kChoices);
  Builder b("loss");
  const Atom x = b.Parameter(f->params()[0].type), w = b.Parameter(f->params()[1].type);
  const FnRef loss = b.Build({ReduceSum(b, Sin(b, b.Inline(*f, {x, w})[0]), {0, 1})});
  const FnRef grad = Grad(loss, {.wrt = {true, true}});
  Verify(*grad);
  const Tensors at = DrawArguments(*loss, rng), got = Eval(*grad, at), optimized = Eval(*Optimize(grad), at);
  for (size_t k = 0; k < at.size(); ++k) {
    ExpectNear(optimized[k], got[k], "optimized");
    for (int64_t i = 0; i < at[k].size(); ++i) {
      const auto value = [&](double step) {
        Tensors there = at;
        there[k] = at[k].Copy();
        there[k].Set(i, at[k].Get(i).real() + step);
        return Eval(*loss, there)[0].Get(0).real();
      };
      EXPECT_NEAR(got[k].Get(i).real(), (value(1e-6) - value(-1e-6)) / 2e-6, 1e-7)
          << "operand " << k << " [" << i << "]";
    }
  }
  // Batch elements on every device that choose differently as well.
  const FnRef lanes = Batch(grad, {true, true}, {true, true}, 5).fn;
  Verify(*lanes);
  const Tensors many = DrawArguments(*lanes, rng), all = Eval(*lanes, many);
  for (int64_t lane = 0; lane < 5; ++lane) {
    Tensors one;
    for (size_t k = 0; k < at.size(); ++k) {
      one.emplace_back(DType::kF64, at[k].shape());
      for (int64_t i = 0; i < one[k].size(); ++i) one[k].Set(i, many[k].Get(lane * one[k].size() + i));
    }
    const Tensors expected = Eval(*grad, one);
    for (size_t k = 0; k < at.size(); ++k) {
      for (int64_t i = 0; i < one[k].size(); ++i)
        EXPECT_NEAR(all[k].Get(lane * one[k].size() + i).real(), expected[k].Get(i).real(), 1e-9) << lane;
    }
  }
}

TEST(Spmd, RecursionWithCollectives) {
  // sum over k of k * (sum of x over devices), k = 3 ... 1, each addend a collective of its own.
  const FnRef f = Parsed(R"(
fn f(x: f64[2]) -> (f64[]) {
  y: f64[] = spmd[in_shardings=shardings((d)), mesh=mesh(d=2), out_shardings=shardings(())] x (x: f64[1]{d}) -> (f64[]) {
    s: f64[]{d} = reduce_sum[dims=[0]] x
    r: f64[] = recursive 3.0:f64 s (k: f64[], s: f64[]{d}) -> (f64[]) {
      more: bool[] = gt k 0.5:f64
      v: f64[] = cond more k s (k: f64[], s: f64[]{d}) -> (f64[]) { return 0.0:f64 } (k: f64[], s: f64[]{d}) -> (f64[]) {
        t: f64[] = psum[axes=["d"]] s
        a: f64[] = mul t k
        j: f64[] = sub k 1.0:f64
        b: f64[] = recur[depth=0, results=types(f64[])] j s
        c: f64[] = add a b
        return c
      }
      return v
    }
    return r
  }
  return y
})");
  Tensor x(DType::kF64, {2});
  x.Set(0, 1), x.Set(1, 10);
  EXPECT_EQ(Eval(*f, {x})[0].Get(0).real(), 66);
}

TEST(Spmd, ErrorsOfOneDeviceEndAll) {
  const FnRef f = Parsed(R"(
fn f(x: f64[2]) -> (f64[]) {
  y: f64[] = spmd[in_shardings=shardings((d)), mesh=mesh(d=2), out_shardings=shardings(())] x (x: f64[1]{d}) -> (f64[]) {
    s: f64[]{d} = reduce_sum[dims=[0]] x
    ok: bool[]{d} = lt s 5.0:f64
    assert[message="too large: {}"] ok s
    t: f64[] = psum[axes=["d"]] s
    return t
  }
  return y
})");
  Tensor x(DType::kF64, {2});
  x.Set(0, 1), x.Set(1, 10);
  EXPECT_NE(ErrorOf([&] { Eval(*f, {x}); }).message().find("too large: 10"), std::string::npos);
  x.Set(1, 2);
  EXPECT_EQ(Eval(*f, {x})[0].Get(0).real(), 3);
}

// What types cannot see: a callback answers differently on each device.
TEST(Spmd, DevicesThatDoNotMeetSayWhoWaits) {
  const EffectHandlers saved = GetEffectHandlers();
  EffectHandlers handlers = saved;
  int calls = 0;
  handlers.callback = [&](int64_t, const Tensors&, const Types&) {
    return Tensors{Tensor::Scalar<bool>(DType::kBool, calls++ == 0)};
  };
  SetEffectHandlers(handlers);
  const FnRef f = Parsed(R"(
fn f(x: f64[2]) -> (f64[2]) {
  y: f64[2] = spmd[in_shardings=shardings((d)), mesh=mesh(d=2), out_shardings=shardings((d))] x (x: f64[1]{d}) -> (f64[1]{d}) {
    p: bool[] = io_callback[callback=1, results=types(bool[])]
    z: f64[1] = cond p x (x: f64[1]{d}) -> (f64[1]) { return [0.0]:f64[1] } (x: f64[1]{d}) -> (f64[1]) {
      s: f64[1] = psum[axes=["d"]] x
      return s
    }
    y: f64[1]{d} = pvary[axes=["d"]] z
    return y
  }
  return y
})");
  const Error error = ErrorOf([&] { Eval(*f, {Tensor::Zeros(DType::kF64, {2})}); });
  SetEffectHandlers(saved);
  EXPECT_EQ(error.kind(), ErrorKind::kRuntime);
  EXPECT_NE(error.message().find("do not meet"), std::string::npos) << error.message();
  EXPECT_NE(error.message().find("device 0 (d=0) waits at psum[axes=[\"d\"]]"), std::string::npos) << error.message();
  EXPECT_NE(error.message().find("device 1 (d=1) has ended"), std::string::npos) << error.message();
}

std::string WithBody(const std::string& in, const std::string& out, const std::string& type, const std::string& body) {
  return "fn f(x: f64[4]) -> (f64[" + std::string(out == "()" ? "" : "4") + "]) {\n  y = spmd[in_shardings=shardings(" +
         in + "), mesh=mesh(d=4), out_shardings=shardings(" + out + ")] x (x: " + type + ") {\n" + body +
         "  }\n  return y\n}";
}

TEST(Spmd, WhatIsRefused) {
  auto refused = [](const std::string& text, const std::string& words) {
    const Error error = ErrorOf([&] { ParseFn(text); });
    EXPECT_NE(error.message().find(words), std::string::npos) << error.message();
  };
  const std::string same = "    y = neg x\n    return y\n";
  ParseFn(WithBody("(d)", "(d)", "f64[1]{d}", same));
  refused(WithBody("(e)", "(e)", "f64[1]{e}", same), "'e', which is no axis of mesh(d=4)");
  refused(WithBody("(d.d)", "(d)", "f64[1]{d}", same), "uses the axis 'd' twice");
  refused(WithBody("(d)", "(d)", "f64[4]", same), "region 0 takes (f64[4]); expected (f64[1]{d})");
  refused(WithBody("(d)", "()", "f64[1]{d}", "    y = reduce_sum[dims=[0]] x\n    return y\n"),
          "says that it varies over exactly");
  refused(
      "fn f(x: f64[5]) {\n  y = spmd[in_shardings=shardings((d)), mesh=mesh(d=4), out_shardings=shardings((d))] x "
      "(x: f64[1]{d}) {\n    return x\n  }\n  return y\n}",
      "cannot share evenly");
  refused(WithBody("(d)", "(d)", "f64[1]{d}", "    y = all_gather[axes=[\"d\"], dim=0, sizes=<3>] x\n    return y\n"),
          "made for size 3");
  // Devices that may choose differently have to meet nowhere inside.
  refused(WithBody("(d)", "()", "f64[1]{d}", R"(    s = reduce_sum[dims=[0]] x
    p = gt s 0.0:f64
    y = cond p s (s: f64[]{d}) { return s } (s: f64[]{d}) {
      t = psum[axes=["d"]] s
      u = pvary[axes=["d"]] t
      return u
    }
    return y
)"),
          "devices along 'd' may choose differently");
}

}  // namespace
}  // namespace weft
