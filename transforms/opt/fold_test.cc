// What folding evaluates, and what it leaves to whoever runs the program: loops that might not end, in branches that
// are never taken, wherever those are; loops of many trips.
#include <gtest/gtest.h>

#include "ir/builder.h"
#include "ir/eval/eval.h"
#include "ir/licences.h"
#include "ir/ops.h"
#include "ir/text/parser.h"
#include "ir/text/printer.h"
#include "transforms/ad/grad.h"
#include "transforms/batch/vmap.h"
#include "transforms/opt/pass.h"

namespace weft {
namespace {

// Functions that do not end.
const char* const kEndless = R"(
fn again(x: f32[]) -> (bool[]) {
  a: bool[] = lt 0.0:f32 1.0:f32
  return a
}

fn same(x: f32[]) -> (f32[]) {
  return x
}

fn endless(x: f32[]) -> (f32[]) {
  a: f32[] = while[num_carry=1] @again @same x
  return a
}

fn recursive_endless(x: f32[]) -> (f32[]) {
  a: f32[] = recur[depth=0, results=types(f32[])] x
  return a
}
)";

// Ways to hold a loop that does not end behind operands that are all literals.
const std::pair<const char*, const char*> kHolders[] = {
    {"while", "a: f32[] = while[num_carry=1] @again @same 1.0:f32"},
    {"call", "a: f32[] = call @endless 1.0:f32"},
    {"scan", "a: f32[] = scan[num_consts=0, num_carry=1, length=<3>, reverse=false] @endless 1.0:f32"},
    {"cond", "a: f32[] = cond 1:i32 1.0:f32 @same @endless @same"},
    {"remat", "a: f32[] = remat @endless 1.0:f32"},
    {"while in while", "a: f32[] = while[num_carry=1] @again @endless 1.0:f32"},
    {"recursive", "a: f32[] = recursive @recursive_endless 1.0:f32"},
    {"call of call",
     "a: f32[] = call (x: f32[]) -> (f32[]) {\n    a: f32[] = call @endless x\n    return a\n  } 1.0:f32"},
};

// The holder in a branch that is not taken, which is in `place`.
FnRef Program(const std::string& holder, const std::string& place) {
  std::string text = kEndless;
  text += "\nfn never(x: f32[]) -> (f32[]) {\n  " + holder + "\n  return a\n}\n";
  text +=
      "\nfn branch(x: f32[]) -> (f32[]) {\n  p: bool[] = gt x 100.0:f32\n  a: f32[] = cond p x @same @never\n"
      "  return a\n}\n";
  if (place == "program")
    return ParseFn(text + "\nfn f(x: f32[]) -> (f32[]) {\n  a: f32[] = call @branch x\n  return a\n}\n");
  if (place == "scan") {
    return ParseFn(text +
                   "\nfn f(x: f32[]) -> (f32[]) {\n  a: f32[] = scan[num_consts=0, num_carry=1, length=<2>, "
                   "reverse=false] @branch x\n  return a\n}\n");
  }
  if (place == "cond") {
    return ParseFn(text +
                   "\nfn f(x: f32[]) -> (f32[]) {\n  p: bool[] = gt x 0.0:f32\n  a: f32[] = cond p x @same @branch\n"
                   "  return a\n}\n");
  }
  return ParseFn(text +
                 "\nfn few(i: i32[], x: f32[]) -> (bool[]) {\n  a: bool[] = lt i 2:i32\n  return a\n}\n"
                 "\nfn trip(i: i32[], x: f32[]) -> (i32[], f32[]) {\n  a: i32[] = add i 1:i32\n"
                 "  b: f32[] = call @branch x\n  return a, b\n}\n"
                 "\nfn f(x: f32[]) -> (f32[]) {\n  i: i32[], a: f32[] = while[num_carry=2] @few @trip 0:i32 x\n"
                 "  return a\n}\n");
}

TEST(Fold, NeverRunsWhatMightNotEnd) {
  for (const auto& [holder, text] : kHolders) {
    for (const char* place : {"program", "scan", "while", "cond"}) {
      const FnRef f = Program(text, place);
      const Tensor x = Tensor::Scalar<float>(DType::kF32, 2.5F);
      EXPECT_EQ(Eval(*Optimize(f), {x})[0].at<float>(0), 2.5F) << holder << " in " << place;
      EXPECT_EQ(Eval(*FoldConstants(f), {x})[0].at<float>(0), 2.5F) << holder << " in " << place;
      if (std::string(holder).find("while") != std::string::npos || std::string(holder) == "recursive") continue;
      const FnRef lanes = Optimize(Vmap(f, {{0}, {0}, 2}));
      EXPECT_EQ(Eval(*lanes, {Tensor::FromVector<float>({2}, {1.5F, 2.5F})})[0].at<float>(1), 2.5F)
          << holder << " in " << place;
    }
  }
}

std::string Loop(int64_t trips) {
  return "fn body(x: f32[]) -> (f32[]) {\n  a: f32[] = add x 1.0:f32\n  return a\n}\n\n"
         "fn f() -> (f32[]) {\n  a: f32[] = scan[num_consts=0, num_carry=1, length=<" +
         std::to_string(trips) + ">, reverse=false] @body 0.0:f32\n  return a\n}\n";
}

TEST(Fold, EvaluatesShortLoopsAndLeavesLongOnes) {
  EXPECT_TRUE(FoldConstants(ParseFn(Loop(100)))->eqns().empty());
  EXPECT_EQ(FoldConstants(ParseFn(Loop(1'000'000'000)))->eqns().size(), 1);
  const ScopedLicences as_written(Licences::Named({"accurate"}));  // a sum of equal numbers needs no loop
  EXPECT_EQ(Optimize(ParseFn(Loop(1'000'000'000)))->eqns().size(), 1);
}

TEST(Fold, BudgetIsTheProgrammesNotTheLoops) {
  // Loops that each fit, of which a thousand would take long.
  std::string text = "fn body(x: f32[]) -> (f32[]) {\n  a: f32[] = add x 1.0:f32\n  return a\n}\n\nfn f() -> (";
  std::string lines, results;
  constexpr int kLoops = 1000;
  for (int i = 0; i < kLoops; ++i) {
    const std::string name = "v" + std::to_string(i);
    text += i > 0 ? ", f32[]" : "f32[]";
    lines += "  " + name + ": f32[] = scan[num_consts=0, num_carry=1, length=<5000>, reverse=false] @body " +
             std::to_string(i) + ".0:f32\n";
    results += (i > 0 ? ", " : "") + name;
  }
  const FnRef folded = FoldConstants(ParseFn(text + ") {\n" + lines + "  return " + results + "\n}\n"));
  EXPECT_GE(folded->eqns().size(), kLoops - 3U);
  EXPECT_LT(folded->eqns().size(), static_cast<size_t>(kLoops));
}

// Work inside counts too, not only equations.
TEST(Fold, LeavesLargeArraysInsideRegions) {
  const FnRef f = ParseFn(
      "fn g(x: f32[]) -> (f32[]) {\n  a: f32[4000,4000] = broadcast[dims=[], shape=<4000,4000>] x\n"
      "  b: f32[4000,4000] = contract[spec=\"ab,bc->ac\"] a a\n  c: f32[] = reduce_sum[dims=[0,1]] b\n  return c\n}\n\n"
      "fn f() -> (f32[]) {\n  a: f32[] = call @g 1.0:f32\n  return a\n}\n");
  EXPECT_EQ(FoldConstants(f)->eqns().size(), 1);
}

// Every obstacle is named, with lines, inside of regions too.
TEST(Fold, SaysWhyWhatIsLeftIsLeft) {
  const auto left = [](const std::string& type, const std::string& lines) {
    const std::string text =
        "fn g(x: f32[]) -> (f32[]) {\n  a: f32[] = sin x\n  b: f32[] = mul a 2.0:f32\n  return b\n}\n\n"
        "fn f(x: f32[]) -> (" +
        type + ") {\n" + lines + "  return a\n}\n";
    std::string all;
    for (const std::string& sentence : WhyNotFolded(*FoldConstants(ParseFn(text, {.file = "f.weft"}))))
      all += sentence + "\n";
    return all;
  };
  EXPECT_EQ(left("f32[]", "  b: f32[] = sin x\n  a: f32[] = mul 2.0:f32 b\n"),
            "sin at f.weft:8 (f) is not folded: its operand is parameter 'x'\n"
            "mul at f.weft:9 (f) is not folded: its operand comes from sin at f.weft:8 (f)\n");
  EXPECT_EQ(left("f32[2]", "  a: f32[2] = broadcast[dims=[], shape=<2>] 1.0:f32\n"),
            "broadcast at f.weft:8 (f) is not folded: its result f32[2] has more than 1 elements\n");
  EXPECT_EQ(left("i32[9]", "  a: i32[9] = iota[dim=0, dtype=i32, shape=<9>]\n"),
            "iota at f.weft:8 (f) is not folded: it is made without operands\n");
  EXPECT_EQ(
      left("f32[]", "  a: f32[] = scan[num_consts=0, num_carry=1, length=<1000000000>, reverse=false] @g 0.0:f32\n"),
      "scan at f.weft:8 (f) is not folded: its regions would take too long\n"
      "sin at f.weft:2 (g) is not folded: its operand is parameter 'x'\n"
      "mul at f.weft:3 (g) is not folded: its operand comes from sin at f.weft:2 (g)\n");
}

}  // namespace
}  // namespace weft
