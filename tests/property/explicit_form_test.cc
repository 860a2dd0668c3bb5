// The explicit memory form of programs of every kind: it is checked, has the values and the text that it says, and asks
// for the arena that compiled code has. Forms that are wrong are refused, each with what is wrong.
#include "lowering/program/explicit_form.h"

#include <gtest/gtest.h>

#include <random>

#include "ir/error.h"
#include "ir/eval/eval.h"
#include "ir/memory_form.h"
#include "ir/prim.h"
#include "ir/samples/drawn_tensors.h"
#include "ir/samples/sample_fns.h"
#include "ir/text/parser.h"
#include "ir/text/printer.h"
#include "ir/verify.h"
#include "lowering/program/program.h"
#include "tests/property/random_fn.h"
#include "transforms/opt/pass.h"

namespace weft {
namespace {

void ExpectSameValues(const FnRef& f, const FnRef& g, unsigned seed) {
  std::mt19937 rng(seed);
  const Tensors x = DrawArguments(*f, rng);
  const Tensors want = Eval(*f, x), got = Eval(*g, x);
  ASSERT_EQ(want.size(), got.size());
  for (size_t i = 0; i < want.size(); ++i) ASSERT_TRUE(want[i].BitEquals(got[i])) << Print(*f) << Print(*g);
}

// Whether it has a form.
bool Check(const FnRef& f, unsigned seed) {
  FnRef form;
  try {
    form = ExplicitMemory(f);
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::kUnsupported) ADD_FAILURE() << e.what() << "\n" << Print(*f);
    return false;
  }
  Verify(*form);
  EXPECT_TRUE(ParseFn(Print(*form))->StructurallyEquals(*form)) << Print(*form);
  const int64_t planned = BuildProgram(*WithoutCalls(f, Functions::kInlined), {}).artifact.arena_bytes;
  EXPECT_EQ((ArenaBytes(*form) + 63) / 64 * 64, planned) << Print(*f) << Print(*form);
  ExpectSameValues(f, form, seed);
  return true;
}

TEST(ExplicitForm, OfEveryOperation) {
  int formed = 0, all = 0;
  for (const Prim* prim : AllPrims()) {
    for (const FnRef& f : SampleFns(*prim)) {
      if (!f->FreeAxes().empty() || f->OutwardCalls() > 0 || prim->family == Family::kEffect) continue;
      ++all;
      SCOPED_TRACE(prim->name);
      formed += Check(f, 3);
    }
  }
  EXPECT_GT(formed, all * 9 / 10);
}

TEST(ExplicitForm, OfRandomPrograms) {
  int formed = 0;
  for (unsigned seed = 0; seed < 300; ++seed) {
    std::mt19937 rng(seed);
    RandomFnOptions options;
    options.max_eqns = 25;
    options.loops = seed % 2 == 0;
    FnRef f = RandomFn(rng, options);
    if (seed % 3 == 0) f = Optimize(f);
    SCOPED_TRACE(seed);
    formed += Check(f, seed);
  }
  EXPECT_GT(formed, 200);
}

const char kLoops[] = R"(fn f(x: f32[8,8], w: f32[8,8]) -> (f32[8], f32[8,8], f32[3,8,8]) {
  a = contract[spec="az,zy->ay"] x w
  b = tanh a
  c, s = scan[num_consts=1, num_carry=1, length=<3>, reverse=false] w b (w: f32[8,8], c: f32[8,8]) {
    d = contract[spec="az,zy->ay"] c w
    e = while[num_carry=1] d c (d: f32[8,8], c: f32[8,8]) {
      n = reduce_sum[dims=[0,1]] d; p = gt n 1000.0:f32; return p } (d: f32[8,8], c: f32[8,8]) {
      h = mul d 0.5:f32; g = sub h c; return g }
    i = reduce_max[dims=[0,1]] e
    j = gt i 0.0:f32
    k = cond j e c (e: f32[8,8], c: f32[8,8]) { m = sin e; return m } (e: f32[8,8], c: f32[8,8]) {
      m = mul e c; n = exp m; return n }
    return k, d
  }
  t = reduce_max[dims=[1]] c
  u = reshape[shape=<8,1>] t
  v = broadcast[dims=[0,1], shape=<8,8>] u
  y = sub b v
  z = reduce_sum[dims=[0]] y
  return z, c, s
}
)";

TEST(ExplicitForm, LoopsAndBranchesInsideOfEachOther) {
  const FnRef f = ParseFn(kLoops);
  EXPECT_TRUE(Check(f, 1));
  EXPECT_TRUE(Check(Optimize(f), 2));
  EXPECT_EQ(ExplicitMemory(f)->results().size(), 3u);
}

TEST(ExplicitForm, WhatHasNone) {
  const auto message = [](const char* text) -> std::string {
    try {
      ExplicitMemory(ParseFn(text));
    } catch (const Error& e) {
      return e.what();
    }
    return "";
  };
  EXPECT_NE(message("fn f(x: f32[n]) { y = sin x; return y }").find("symbolic sizes have no explicit memory form"),
            std::string::npos);
}

// Each is the form of sin(x), exp of that, changed in one place.
TEST(MemoryForm, WrongOnesAreRefused) {
  struct Case {
    std::string body, what;
  };
  const std::string a = "  a = allocate[at=0, dtype=f32, place=\"arena\", shape=<8>]\n";
  const std::string b = "  b = into a x (to: f32[8], x: f32[8]) { c = sin x; return c }\n";
  const std::string r = "  r = allocate[at=0, dtype=f32, place=\"result\", shape=<8>]\n";
  const std::string y = "  y = into r b (to: f32[8], x: f32[8]) { c = exp x; return c }\n";
  const auto problem = [&](const std::string& body) -> std::string {
    try {
      VerifyMemory(*ParseFn("fn f(x: f32[8]) -> (f32[8]) {\n" + body + "}\n", {.file = "f.weft"}));
    } catch (const Error& e) {
      return e.what();
    }
    return "";
  };
  EXPECT_EQ(problem(a + b + r + y + "  free b\n  return y\n"), "");
  const Case cases[] = {
      {a + b + r + y + "  return y\n", "nobody gives back the memory of 'allocate' at f.weft:2"},
      {a + b + r + y + "  free b\n  free b\n  return y\n",
       "gives back the memory of the value of 'into' at f.weft:3 (f) a second time"},
      {a + b + "  free b\n" + r + y + "  return y\n", "'into' at f.weft:6 (f) reads the value of 'into' at f.weft:3"},
      {a + r + "  y = into r a (to: f32[8], x: f32[8]) { c = exp x; return c }\n  free a\n  return y\n",
       "into which nothing has been computed"},
      {a + b + "  d = allocate[at=16, dtype=f32, place=\"arena\", shape=<8>]\n" + r + y + "  free b\n  return y\n",
       "takes bytes 16 to 48 of the arena, of which 'allocate' at f.weft:2 (f) has 0 to 32"},
      {a + b + "  d = into b x (to: f32[8], x: f32[8]) { c = cos x; return c }\n" + r + y + "  free d\n  return y\n",
       "whose memory 'into' at f.weft:4 (f) has taken"},
      {a + b + "  free b\n  y = sin x\n  return y\n", "'sin' at f.weft:5 (f) has no memory to compute into"},
      {a + b + "  return b\n", "result 0 lies in the arena"},
      {"  y = into x x (to: f32[8], x: f32[8]) { c = sin x; return c }\n  return y\n", "not the program's to write"},
      {a + b + r + "  free x\n" + y + "  free b\n  return y\n", "does not lie in memory that was allocated here"},
  };
  for (const Case& c : cases)
    EXPECT_NE(problem(c.body).find(c.what), std::string::npos)
        << "expected \"" << c.what << "\", got: " << problem(c.body);
}

}  // namespace
}  // namespace weft
