// What reverse mode keeps, from C++: policies of remat, and loops with few snapshots.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "ir/analysis/residuals.h"
#include "ir/builder.h"
#include "ir/eval/eval.h"
#include "ir/ops.h"
#include "ir/prims/control/binomial.h"
#include "ir/prims/control/policy.h"
#include "ir/text/parser.h"
#include "ir/text/printer.h"
#include "ir/verify.h"
#include "transforms/ad/grad.h"
#include "transforms/ad/split.h"
#include "transforms/opt/pass.h"

namespace weft {
namespace {

std::string Loop(int64_t steps, int64_t snapshots, bool reverse, const char* more) {
  return "fn f(w: f64[2], s: f64[2], l: f64[2], x: f64[" + std::to_string(steps) +
         ",2]) {\n  a, b, y, z, k = snapshot_scan[num_consts=1, num_forward=1, num_backward=1, length=<" +
         std::to_string(steps) + ">, reverse=" + (reverse ? "true" : "false") +
         ", snapshots=" + std::to_string(snapshots) + more +
         "] w s l x (w: f64[2], s: f64[2], x: f64[2]) {\n"
         "    t = sin s; u = mul t w; v = add u x; y = mul s x; return v, y\n"
         "  } (w: f64[2], s: f64[2], l: f64[2], x: f64[2]) {\n"
         "    c = cos s; d = mul c w; e = mul d l; g = add e x; z = mul l s; return g, z\n"
         "  }\n  return a, b, y, z, k\n}\n";
}

Tensor Numbers(const Shape& shape, double first) {
  Tensor t(DType::kF64, shape);
  for (int64_t i = 0; i < t.size(); ++i) t.Set(i, std::sin(first + 1.7 * static_cast<double>(i)));
  return t;
}

// The loops that are made of it compute the same numbers, snapshots included: the schedule in the program is the one in
// C++, which the interpreter uses.
TEST(Snapshots, LoopsComputeWhatTheEquationMeans) {
  for (int64_t steps : {0, 1, 2, 3, 5, 9, 17, 30}) {
    for (int64_t snapshots : {1, 2, 3, 5, 40}) {
      for (bool reverse : {false, true}) {
        const FnRef f = ParseFn(Loop(steps, snapshots, reverse, ", kept=[0]"));
        const FnRef loops = ExpandSnapshots(f);
        Verify(*loops);
        const Tensors x = {Numbers({2}, 1), Numbers({2}, 2), Numbers({2}, 3), Numbers({steps, 2}, 4)};
        const Tensors expected = Eval(*f, x), got = Eval(*loops, x);
        ASSERT_EQ(expected.size(), got.size());
        for (size_t r = 0; r < got.size(); ++r) {
          ASSERT_EQ(expected[r].shape(), got[r].shape());
          for (int64_t i = 0; i < got[r].size(); ++i)
            EXPECT_EQ(expected[r].at<double>(i), got[r].at<double>(i))
                << steps << " steps, " << snapshots << " snapshots, result " << r << " element " << i;
        }
      }
    }
  }
}

// The least number of advances, by dynamic programming: m steps to the next snapshot, then both parts.
TEST(Snapshots, AdvancesAreTheFewestThereAre) {
  constexpr int kSteps = 120, kSnapshots = 6;
  std::vector<std::vector<int64_t>> least(kSteps + 1, std::vector<int64_t>(kSnapshots + 1, 0));
  for (int c = 1; c <= kSnapshots; ++c) {
    for (int l = 2; l <= kSteps; ++l) {
      int64_t best = int64_t{l} * (l - 1) / 2;  // one snapshot: from the start every time
      for (int m = 1; c > 1 && m < l; ++m) best = std::min(best, m + least[l - m][c - 1] + least[m][c]);
      least[l][c] = best;
    }
  }
  for (int c = 1; c <= kSnapshots; ++c) {
    for (int l = 1; l <= kSteps; ++l) EXPECT_EQ(BinomialAdvances(l, c), least[l][c]) << l << " steps, " << c;
  }
}

TEST(Snapshots, ALoopThatIsNotLinearBackwardsHasNoTranspose) {
  const FnRef f = ParseFn(
      "fn f(s: f64[], l: f64[]) {\n"
      "  a, b = snapshot_scan[num_consts=0, num_forward=1, num_backward=1, length=<3>, reverse=false, snapshots=2] s l "
      "(s: f64[]) { t = sin s; return t } (s: f64[], l: f64[]) { m = mul l l; n = mul m s; return n }\n"
      "  return b\n}\n");
  try {
    Grad(f, {.wrt = {false, true}});
    FAIL() << "a square was taken for linear";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kDerivative) << e.what();
  }
}

FnRef Chain(const std::string& policy) {
  return ParseFn(
      "fn f(x: f64[4], w: f64[4,4]) {\n"
      "  y = remat[policy=\"" +
      policy +
      "\"] x w (x: f64[4], w: f64[4,4]) {\n"
      "    a = contract[spec=\"i,ij->j\"] x w\n    b = sin a\n    c = checkpoint_name[name=\"c\"] b\n"
      "    d = contract[spec=\"i,ij->j\"] c w\n    e = exp d\n    return e\n  }\n"
      "  z = reduce_sum[dims=[0]] y\n  return z\n}\n");
}

// The operations whose results the forward half hands over.
std::vector<std::string> Saved(const FnRef& f) {
  const Pullback p = Vjp(f, Mask(f->params().size(), true));
  std::vector<std::string> prims;
  for (size_t i = f->results().size(); i < p.forward->results().size(); ++i) {
    const Origin o = OriginOf(*p.forward, p.forward->results()[i]);
    if (o.kind == Origin::Kind::kValue) prims.push_back(o.name.empty() ? o.prim : o.name);
  }
  std::sort(prims.begin(), prims.end());
  return prims;
}

using Names = std::vector<std::string>;

// A parameter in another order is made again from it, or the trips of a loop would store what the loop reads.
TEST(Residuals, ParametersInAnotherOrderAreNotKept) {
  struct Case {
    const char* body;
    Dims kept;
  };
  for (const Case& c : {Case{"m: f32[3,2] = transpose[perm=[1,0]] c", {2, 3}},
                        Case{"r: f32[6] = reshape[shape=<6>] c\n  m: f32[3,2] = reshape[shape=<3,2>] r", {2, 3}},
                        Case{"s: f32[2,3] = sin c\n  m: f32[3,2] = transpose[perm=[1,0]] s", {3, 2}}}) {
    const SplitFn halves = Split(ParseFn(std::string("fn f(c: f32[2,3], x: f32[3,2]) -> (f32[3,2]) {\n  ") + c.body +
                                         "\n  y: f32[3,2] = mul m x\n  return y\n}\n"),
                                 {false, true});
    ASSERT_EQ(halves.residuals.size(), 1u) << Print(*halves.known);
    EXPECT_EQ(halves.residuals[0].dims, c.kept) << Print(*halves.known);
  }
}

TEST(Policies, SayWhatIsSaved) {
  EXPECT_EQ(Saved(Chain("nothing_saveable")), Names{});
  EXPECT_EQ(Saved(Chain("dots_saveable")), (Names{"contract", "contract"}));
  EXPECT_EQ(Saved(Chain("dots_with_no_batch_dims_saveable")), (Names{"contract", "contract"}));
  EXPECT_EQ(Saved(Chain("save_only_these_names(\\\"c\\\")")), Names{"c"});
  EXPECT_EQ(Saved(Chain("save_only_these_names(\\\"d\\\")")), Names{});
  EXPECT_EQ(Saved(Chain("save_any_names_but_these(\\\"d\\\")")), Names{"c"});
  const Names everything = Saved(Chain("everything_saveable"));
  EXPECT_GE(everything.size(), 3u);
}

TEST(Policies, DoNotChangeDerivatives) {
  const Tensors x = {Numbers({4}, 1), Numbers({4, 4}, 2)};
  const FnRef plain = RunPasses(Chain("nothing_saveable"), {"drop-rules"});
  const Tensors expected = Eval(*Grad(plain, {.wrt = {true, true}}), x);
  for (const char* policy :
       {"nothing_saveable", "everything_saveable", "dots_saveable", "save_anything_except_these_names(\\\"c\\\")",
        "save_from_both_policies(dots_saveable, save_only_these_names(\\\"c\\\"))"}) {
    const FnRef f = Chain(policy), g = Grad(f, {.wrt = {true, true}});
    const FnRef again = ParseFn(Print(*g));  // the policy prints and parses
    EXPECT_TRUE(again->StructurallyEquals(*g));
    const Tensors got = Eval(*again, x);
    for (size_t r = 0; r < got.size(); ++r) {
      for (int64_t i = 0; i < got[r].size(); ++i)
        EXPECT_NEAR(got[r].at<double>(i), expected[r].at<double>(i), 1e-12) << policy;
    }
  }
}

TEST(Policies, TextsAreRead) {
  for (const char* text :
       {"everything_saveable", "nothing_saveable", "dots_saveable", "dots_with_no_batch_dims_saveable",
        "save_only_these_names()", "save_only_these_names(\"a\",\"b\\\"c\")", "save_any_names_but_these(\"a\")",
        "save_anything_except_these_names(\"a\")",
        "save_from_both_policies(save_from_both_policies(dots_saveable,nothing_saveable),callback(7))"}) {
    EXPECT_EQ(Policy::Parse(text).ToString(), text);
  }
  EXPECT_EQ(Policy::Parse("checkpoint_dots").ToString(), "dots_saveable");
  for (const char* text :
       {"", "dots", "dots_saveable(", "save_only_these_names", "save_only_these_names(a)",
        "save_from_both_policies(dots_saveable)", "callback(x)", "nothing_saveable nothing_saveable"}) {
    EXPECT_THROW(Policy::Parse(text), Error) << text;
  }
}

TEST(LoopMemory, NamesTripsAndBytes) {
  const FnRef f = ParseFn(
      "fn f(x: f64[]) {\n  y = while[num_carry=1] x (c: f64[]) { p = lt c 100:f64; return p } "
      "(c: f64[]) { d = mul c c; return d }\n  return y\n}\n");
  const std::vector<std::string> lines = LoopMemory(*Grad(f, {.wrt = {true}}));
  ASSERT_FALSE(lines.empty());
  EXPECT_NE(lines[0].find("while"), std::string::npos) << lines[0];
  EXPECT_NE(lines[0].find("bytes per trip"), std::string::npos) << lines[0];
}

}  // namespace
}  // namespace weft
