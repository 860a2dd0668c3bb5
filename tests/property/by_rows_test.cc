// Which steps run by rows (lowering/program/by_rows.h), and that no row of one touches what another row writes.
#include "lowering/program/by_rows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "ir/text/parser.h"
#include "lowering/program/launches.h"
#include "lowering/program/program.h"

namespace weft {
namespace {

Program Made(const std::string& text) {
  Program program = BuildProgram(*ParseFn(text), {});
  Target target;
  target.vector_bytes = 64;
  JoinByRows(&program, target);
  JoinLaunches(&program);
  return program;
}

// "p" a product, "k" a kernel; of what runs by rows, in brackets.
std::string Shown(const Steps& steps) {
  std::string text;
  for (const Step& s : steps) {
    switch (s.kind) {
      case Step::Kind::kKernel: text += "k"; break;
      case Step::Kind::kOp: text += s.index == WEFT_OP_CONTRACT ? "p" : "o"; break;
      case Step::Kind::kByRows: text += "[" + Shown(s.blocks[0]) + "]"; break;
      case Step::Kind::kTogether: text += "{" + Shown(s.blocks[0]) + "}"; break;
      default:
        text += "(";
        for (const Steps& block : s.blocks) text += Shown(block);
        text += ")";
    }
  }
  return text;
}

std::string Layer(const std::string& m, const std::string& k, const std::string& n, const std::string& rest) {
  return "fn f(x: f32[" + m + "," + k + "], w: f32[" + k + "," + n + "], b: f32[" + n + "], v: f32[" + n + "," + k +
         "]) {\n  p = contract[spec=\"ij,jk->ik\"] x w\n  c = broadcast[dims=[1], shape=<" + m + "," + n +
         ">] b\n  s = add p c\n  h = tanh s\n" + rest;
}

TEST(ByRows, WhatFollowsAProduct) {
  EXPECT_EQ(Shown(Made(Layer("1024", "64", "1024", "  return h\n}\n")).steps), "[pk]");
  EXPECT_EQ(Shown(Made(Layer("256", "64", "256", "  return h, p\n}\n")).steps), "[pk]");
  const std::string next = "  q = contract[spec=\"ij,jk->ik\"] h v\n";
  EXPECT_EQ(Shown(Made(Layer("512", "128", "512", next + "  return q\n}\n")).steps), "[pkp]");
  EXPECT_EQ(Shown(Made(Layer("512", "128", "512", next + "  e = exp q\n  return e\n}\n")).steps), "[pkpk]");
}

// Sums of columns take in every row (they are one kernel with what they sum), and so does a product with the transpose.
TEST(ByRows, WhatReadsAllRowsComesAfter) {
  EXPECT_EQ(Shown(Made(Layer("1024", "64", "1024", "  r = reduce_sum[dims=[0]] h\n  return h, r\n}\n")).steps), "pkk");
  EXPECT_EQ(
      Shown(Made(Layer("512", "128", "512", "  q = contract[spec=\"ij,ik->jk\"] x h\n  e = exp h\n  return q, e\n}\n"))
                .steps),
      "[pk]p");
  // As many rows as the product before has, but each is of all of that one's.
  EXPECT_EQ(
      Shown(Made(Layer("512", "512", "512", "  q = contract[spec=\"ij,ik->jk\"] x h\n  e = exp q\n  return h, e\n}\n"))
                .steps),
      "[pk][pk]");
  // In between, too: the next layer's rows need not wait for it.
  EXPECT_EQ(Shown(Made(Layer("512", "128", "512",
                             "  q = contract[spec=\"ij,ik->jk\"] x h\n  d = contract[spec=\"ij,jk->ik\"] h v\n"
                             "  e = exp d\n  return q, e\n}\n"))
                      .steps),
            "[pkpk]p");
}

TEST(ByRows, WhatHasNothingToDoWithItIsOutOfTheWay) {
  const std::string head =
      "fn f(x: f32[512,128], w: f32[128,512], y: f32[100]) {\n  p = contract[spec=\"ij,jk->ik\"] x w\n";
  EXPECT_EQ(Shown(Made(head + "  s = reduce_sum[dims=[0]] y\n  c = broadcast[dims=[], shape=<512,512>] s\n"
                              "  d = mul p c\n  e = reduce_max[dims=[1]] d\n  return e\n}\n")
                      .steps),
            "k[pk]");
}

TEST(ByRows, ProductsOfTheSameRows) {
  std::string text = "fn f(x: f32[256,128]";
  for (const char* w : {"u", "v", "w"}) text += ", " + std::string(w) + ": f32[128,128]";
  text += ", b: f32[128]) {\n  c = broadcast[dims=[1], shape=<256,128>] b\n";
  for (const char* w : {"u", "v", "w"}) {
    const std::string n = w;
    text += "  p" + n + " = contract[spec=\"ij,jk->ik\"] x " + n + "\n  r" + n + " = add p" + n + " c\n";
  }
  const std::string shown = Shown(Made(text + "  return ru, rv, rw\n}\n").steps);
  EXPECT_EQ(std::count(shown.begin(), shown.end(), '['), 1) << shown;
  EXPECT_EQ(std::count(shown.begin(), shown.end(), 'p'), 3) << shown;
  EXPECT_EQ(shown.back(), ']') << shown;
}

TEST(ByRows, StacksGoByTheirProducts) {
  EXPECT_EQ(Shown(Made("fn f(q: f32[16,256,64], k: f32[16,256,64]) {\n  s = contract[spec=\"bij,bkj->bik\"] q k\n"
                       "  m = reduce_max[dims=[2]] s\n  c = broadcast[dims=[0,1], shape=<16,256,256>] m\n"
                       "  d = sub s c\n  e = exp d\n  return e\n}\n")
                      .steps),
            "[pk]");
}

// Threads share few long products one by one.
TEST(ByRows, LongProductsOfAStackAreManyOrNone) {
  const auto shown = [](const std::string& count) {
    return Shown(Made("fn f(x: f32[" + count + ",512,512], y: f32[" + count +
                      ",512,512]) {\n"
                      "  p = contract[spec=\"bij,bjk->bik\"] x y\n  e = exp p\n  return e\n}\n")
                     .steps);
  };
  EXPECT_EQ(shown("2"), "pk");
  EXPECT_EQ(shown("16"), "[pk]");
}

TEST(ByRows, WhatIsNotWorthIt) {
  EXPECT_EQ(Shown(Made(Layer("64", "16", "64", "  return h\n}\n")).steps), "pk");
  EXPECT_EQ(Shown(Made(Layer("64", "2048", "4096", "  return h\n}\n")).steps), "pk") << "columns are shared";
  EXPECT_EQ(Shown(Made("fn f(x: f32[512,512], w: f32[512,512]) {\n  p = contract[spec=\"ij,jk->ik\"] x w\n"
                       "  return p\n}\n")
                      .steps),
            "p");
  EXPECT_EQ(Shown(Made("fn f(x: bf16[512,512], w: bf16[512,512]) {\n  p = contract[spec=\"ij,jk->ik\"] x w\n"
                       "  n = neg p\n  return n\n}\n")
                      .steps),
            "pk")
      << "a product of half precision is converted as a whole";
}

// The kernels that were cut anew, and no others: of six layers alike there are as many kernels as before.
TEST(ByRows, KernelsAreSharedAsBefore) {
  std::string text = "fn f(x: f32[256,256], w: f32[256,256]) {\n  h0 = neg x\n";
  for (int i = 0; i < 6; ++i) {
    const std::string n = std::to_string(i), next = std::to_string(i + 1);
    text += "  p" + n + " = contract[spec=\"ij,jk->ik\"] h" + n + " w\n  h" + next + " = tanh p" + n + "\n";
  }
  const Program program = Made(text + "  return h6\n}\n");
  EXPECT_EQ(Shown(program.steps), "k[pkpkpkpkpkpk]");
  EXPECT_EQ(program.kernels.size(), 2u);
  EXPECT_EQ(program.artifact.counters.kernels, 2);
  EXPECT_EQ(program.artifact.counters.launches, 2);
}

}  // namespace
}  // namespace weft
