// Why equations stay out of groups: every reason is reached, and named where a person can read it.
#include "lowering/fusion/fusion.h"

#include <gtest/gtest.h>

#include <set>

#include "ir/builder.h"
#include "ir/ops.h"
#include "ir/text/parser.h"
#include "lowering/program/program.h"

namespace weft {
namespace {

Type F32(Dims dims) { return {DType::kF32, std::move(dims), {}}; }

struct Case {
  std::string reason;
  std::function<Atoms(Builder&)> make;
  FusionPolicy policy = {};
};

std::vector<Case> Cases() {
  FusionPolicy off, small;
  off.fuse = false;
  small.max_members = 1;
  return {
      {"tanh: fusion is off", [](Builder& b) { return Atoms{Tanh(b, Exp(b, b.Parameter(F32({8}))))}; }, off},
      {"tanh: its operand comes from contract",
       [](Builder& b) {
         const Atom x = b.Parameter(F32({8, 8}));
         return Atoms{Tanh(b, Contract(b, "ij,jk->ik", x, x))};
       }},
      {"tanh: the group is full", [](Builder& b) { return Atoms{Tanh(b, Exp(b, b.Parameter(F32({8}))))}; }, small},
      {"tanh: it reads its operand at computed positions",
       [](Builder& b) {
         const Atom y = Exp(b, b.Parameter(F32({8}))), i = b.Parameter({DType::kI32, {}, {}});
         return Atoms{Tanh(b, DynamicSlice(b, y, {i}, {4}))};
       }},
      {"tanh: it reads its operand at shifted or repeated positions",
       [](Builder& b) { return Atoms{Tanh(b, Slice(b, Exp(b, b.Parameter(F32({8}))), {1}, {8}, {1}))}; }},
      {"tanh: it reads its operand at shifted or repeated positions",
       [](Builder& b) { return Atoms{Tanh(b, Reverse(b, Exp(b, b.Parameter(F32({8}))), {0}))}; }},
      {"atan2: it reads its operand transposed",
       [](Builder& b) {
         const Atom y = Exp(b, b.Parameter(F32({8, 8})));
         return Atoms{b.Emit1(FindPrim("atan2"), {y, Transpose(b, y, {1, 0})})};
       }},
      {"atan2: it reads its operand along a diagonal",
       [](Builder& b) {
         const Atom y = Exp(b, b.Parameter(F32({8})));
         return Atoms{b.Emit1(FindPrim("atan2"), {Broadcast(b, y, {8, 8}, {0}), Broadcast(b, y, {8, 8}, {1})})};
       }},
      {"tanh: it reads part of its operand",
       [](Builder& b) { return Atoms{Tanh(b, Slice(b, Exp(b, b.Parameter(F32({8}))), {0}, {5}, {1}))}; }},
      {"tanh: its shape differs from the group's domain",
       [](Builder& b) { return Atoms{Tanh(b, Broadcast(b, Exp(b, b.Parameter(F32({8}))), {4, 8}, {1}))}; }},
      {"reduce_sum: it reduces the result of a reduction",
       [](Builder& b) {
         const Atom rows = ReduceSum(b, Exp(b, b.Parameter(F32({8, 16}))), {1});
         return Atoms{rows, ReduceSum(b, rows, {0})};
       }},
      {"reduce_sum: it reduces other dimensions than the group",
       [](Builder& b) {
         const Atom y = Exp(b, b.Parameter(F32({8, 16})));
         return Atoms{ReduceSum(b, y, {1}), ReduceSum(b, y, {0})};
       }},
      {"exp: its rows are too few and too long to share between threads",
       [](Builder& b) {
         const Atom x = b.Parameter(F32({100000}));
         const Atom top = Broadcast(b, Reduce(b, "reduce_max", x, {0}), {100000}, {});
         return Atoms{Exp(b, b.Emit1(FindPrim("sub"), {x, top}))};
       }},
      {"reduce_sum: the group passes over its rows as often as is allowed",
       [](Builder& b) {
         Atom x = b.Parameter(F32({8, 16}));
         for (int i = 0; i < 9; ++i) x = Exp(b, Broadcast(b, ReduceSum(b, Tanh(b, x), {1}), {8, 16}, {0}));
         return Atoms{x};
       }},
      {"atan2: another operand depends on the group",
       [](Builder& b) {
         const Atom y = Exp(b, b.Parameter(F32({8, 8})));
         return Atoms{b.Emit1(FindPrim("atan2"), {y, Contract(b, "ij,jk->ik", y, y)})};
       }},
      {"contract: it is no element-wise operation, view or reduction",
       [](Builder& b) {
         const Atom y = Exp(b, b.Parameter(F32({8, 8})));
         return Atoms{Contract(b, "ij,jk->ik", y, y)};
       }},
      {"cumsum: neither is an element-wise operation, view or reduction",
       [](Builder& b) {
         const Atom sorted =
             b.Emit1(FindPrim("sort"), {b.Parameter(F32({8}))}, {{"dim", int64_t{0}}, {"num_keys", int64_t{1}}});
         return Atoms{b.Emit1(FindPrim("cumsum"), {sorted}, {{"dim", int64_t{0}}, {"reverse", false}})};
       }},
  };
}

TEST(Fusion, EveryReasonIsReached) {
  for (const Case& c : Cases()) {
    Builder b("f");
    const Atoms results = c.make(b);
    const FnRef f = b.Build(results);
    std::string all;
    for (const BlockPlan::Note& note : Fuse(*f, c.policy).notes)
      all += f->eqns()[static_cast<size_t>(note.eqn)].prim->name + ": " + note.why + "\n";
    EXPECT_NE(all.find(c.reason + "\n"), std::string::npos) << "expected \"" << c.reason << "\" among:\n" << all;
  }
}

TEST(Fusion, WhatFusesGivesNoReason) {
  Builder b("f");
  const Expr x{&b, b.Parameter(F32({8, 16}))};
  const Expr e = Exp(x);
  const Expr total{&b, Broadcast(b, ReduceSum(b, e, {1}), {8, 16}, {0})};
  const BlockPlan plan = Fuse(*b.Build({Tanh(e / total)}), {});
  EXPECT_TRUE(plan.notes.empty()) << plan.notes[0].why;
  EXPECT_EQ(plan.order.size(), 1u);
}

TEST(Fusion, SentencesNameBothOperationsTheirLinesAndThoseInsideOfLoops) {
  const FnRef f = ParseFn(
      "fn f(x: f32[8,8]) -> (f32[8,8]) {\n"
      "  a: f32[8,8] = exp x\n"
      "  b: f32[8,8] = scan[length=<3>, num_carry=1, num_consts=0, reverse=false] a (c: f32[8,8]) -> (f32[8,8]) {\n"
      "    d: f32[8,8] = contract[spec=\"ij,jk->ik\"] c c\n"
      "    e: f32[8,8] = tanh d\n"
      "    return e\n"
      "  }\n"
      "  return b\n"
      "}\n",
      {.file = "f.weft"});
  const std::vector<std::string> expected = {
      "scan at f.weft:3 (f) is not computed with exp at f.weft:2 (f): it is no element-wise operation, view or "
      "reduction",
      "tanh at f.weft:5 (region) is not computed with contract at f.weft:4 (region): its operand comes from contract"};
  EXPECT_EQ(WhyNotFused(*f, {}), expected);
}

// What reads one array and a number is computed by each of its readers, whether or not the program knows the number.
TEST(Fusion, NumbersAreNoArrays) {
  for (const bool known : {true, false}) {
    Builder b("f");
    const Atom x = b.Parameter(F32({8, 16})), p = b.Parameter(F32({}));
    const Atom y = Mul(b, x, known ? Atom::Scalar(DType::kF32, 0.3) : Broadcast(b, p, {8, 16}, {}));
    const FnRef f = b.Build({Exp(b, y), Contract(b, "ij,kj->ik", Tanh(b, y), x)});
    const BlockPlan plan = Fuse(*f, {});
    EXPECT_EQ(plan.values[y.id()].how, BlockPlan::How::kInline) << known;
  }
}

// Blocks of the same kind, as many as one likes, are few kernels of a bounded size.
TEST(Fusion, ManyPassesOverRowsAreFewKernels) {
  for (int blocks : {30, 90}) {
    Builder b("f");
    Atom x = b.Parameter(F32({64, 64}));
    const Atom w = b.Parameter(F32({64, 64}));
    for (int i = 0; i < blocks; ++i) {
      const Atom y = Mul(b, Tanh(b, x), w);
      x = Add(b, y, Broadcast(b, ReduceSum(b, y, {1}), {64, 64}, {0}));
    }
    const Program program = BuildProgram(*b.Build({x}), {});
    EXPECT_LE(program.kernels.size(), 4u);
    for (const KernelSpec& k : program.kernels) EXPECT_LE(k.nodes.size(), 60u) << k.ToString();
  }
}

size_t NodesOfStencil(int times) {
  Builder b("f");
  int64_t n = 4000;
  Atom x = b.Parameter(F32({n}));
  for (int i = 0; i < times; ++i, --n) {
    const Atom sum = Add(b, Slice(b, x, {0}, {n - 1}, {1}), Slice(b, x, {1}, {n}, {1}));
    x = Mul(b, sum, Atom::Scalar(DType::kF32, 0.5));
  }
  size_t nodes = 0;
  const Program program = BuildProgram(*b.Build({x}), {});
  for (const Step& s : program.steps) nodes += program.kernels[s.index].nodes.size();
  return nodes;
}

// A value that several views read is computed by each of them, but not what it was made from, again and again.
TEST(Fusion, WorkOfAStencilGrowsWithItsSteps) {
  const size_t few = NodesOfStencil(40), many = NodesOfStencil(160);
  EXPECT_LT(many, 5 * few) << few;
  EXPECT_LT(many, 160u * 12);
}

// A forward and a backward sweep: each step backwards reads what a step forwards made, ever further away.
TEST(Fusion, GroupsOfALongProgramStaySmallAndInOrder) {
  Builder b("f");
  Atom x = b.Parameter(F32({8, 8}));
  const Atom w = b.Parameter(F32({8, 8}));
  Atoms kept;
  for (int i = 0; i < 2000; ++i) kept.push_back(x = Tanh(b, Contract(b, "ij,jk->ik", x, w)));
  for (int i = 2000; i-- > 0;) x = Contract(b, "ij,kj->ik", Mul(b, x, Sub(b, w, Mul(b, kept[i], kept[i]))), w);
  const BlockPlan plan = Fuse(*b.Build({x}), {});
  EXPECT_EQ(plan.order.size(), 7999u);  // the last step forwards and the first one backwards are one
}

// Sums of arrays that have nothing else in common, where what is computed of them is elementwise: the gates of an LSTM
// step of one row. Their reduced dimensions correspond.
TEST(Fusion, ReductionsThatMeetAreOneKernel) {
  struct Sums {
    Dims first, second;
    Ints dims;
    bool one;
  };
  for (const Sums& s : {Sums{{64, 32}, {64, 32}, {0}, true},
                        {{32, 64}, {32, 64}, {1}, true},
                        {{4, 5, 6}, {4, 5, 6}, {0, 2}, true},
                        {{64}, {64}, {0}, true},
                        {{64, 32}, {65, 32}, {0}, false},     // of other lengths
                        {{100000}, {100000}, {0}, false}}) {  // threads share each
    for (const size_t more : {0, 1, 2}) {
      Builder b("f");
      Atom x = ReduceSum(b, Exp(b, b.Parameter(F32(s.first))), s.dims);
      for (size_t i = 0; i <= more; ++i)
        x = Tanh(b, Add(b, x, ReduceSum(b, Exp(b, b.Parameter(F32(s.second))), s.dims)));
      const BlockPlan plan = Fuse(*b.Build({x}), {});
      EXPECT_EQ(plan.order.size(), s.one ? 1 : 2 + more);
    }
  }
}

// What follows a reduction is computed once per row.
TEST(Fusion, CostsAreOfTheValuesThatThereAre) {
  const auto cost = [](const std::string& text) {
    const Program program = BuildProgram(*ParseFn(text), {});
    EXPECT_EQ(program.kernels.size(), 1u) << text;
    return program.steps[0].cost;
  };
  const std::string sum = "fn f(x: f32[64,256]) { s = reduce_sum[dims=[1]] x; ";
  const double alone = cost(sum + "return s }"), then = cost(sum + "t = tanh s; return t }");
  EXPECT_GT(then, alone);
  EXPECT_LT(then, 1.1 * alone);
  EXPECT_GT(cost("fn f(x: f32[64,256]) { t = tanh x; s = reduce_sum[dims=[1]] t; return s }"), 2 * alone);
  // A row that every row meets is read from registers and caches.
  const double by_row = cost(
      "fn f(x: f32[64,256], r: f32[256]) { b = broadcast[dims=[1], shape=<64,256>] r; "
      "p = mul x b; s = reduce_sum[dims=[1]] p; return s }");
  EXPECT_LT(by_row, cost("fn f(x: f32[64,256], r: f32[64,256]) { p = mul x r; s = reduce_sum[dims=[1]] p; return s }"));
}

size_t Kernels(const std::string& text) {
  const FnRef f = ParseFn(text);
  size_t kernels = 0;
  for (const Step& s : BuildProgram(*f, {}).steps) kernels += s.kind == Step::Kind::kKernel;
  return kernels;
}

// Results that read one array are written by one kernel, where neither waits for the other.
TEST(Fusion, ResultsSideBySideAreOneKernel) {
  const std::string of_x = "fn f(x: f32[64,32], y: f32[64,32]) { a = sin x; b = cos x; ";
  EXPECT_EQ(Kernels(of_x + "return a, b }"), 1u);
  EXPECT_EQ(Kernels(of_x + "c = mul x y; d = tanh y; return a, b, c, d }"), 1u);
  EXPECT_EQ(Kernels("fn f(x: f32[64,1,32]) { a = sin x; s = reshape[shape=<64,32>] x; b = exp s; return a, b }"), 1u);
  // Another array; another domain; a row's reduction; a value that is not a result and would live longer; a path
  // between them; more results than registers are for.
  EXPECT_EQ(Kernels("fn f(x: f32[64], y: f32[64]) { a = sin x; b = cos y; return a, b }"), 2u);
  EXPECT_EQ(Kernels("fn f(x: f32[64]) { a = sin x; p = broadcast[dims=[1], shape=<8,64>] x; b = exp p; return a, b }"),
            2u);
  EXPECT_EQ(Kernels("fn f(x: f32[64,32]) { a = sin x; b = reduce_sum[dims=[0]] x; return a, b }"), 2u);
  EXPECT_EQ(Kernels("fn f(x: f32[8,8]) { a = sin x; b = cos x; c = contract[spec=\"ij,jk->ik\"] b b; return a, c }"),
            2u);
  EXPECT_EQ(Kernels("fn f(x: f32[8,8]) { a = sin x; c = contract[spec=\"ij,jk->ik\"] x x; b = mul x c; return a, b }"),
            2u);
  EXPECT_EQ(Kernels("fn f(x: f32[8,8]) { a = sin x; c = contract[spec=\"ij,jk->ik\"] a a; b = mul x c; return a, b }"),
            2u);
  std::string many =
      "fn f(x: f32[64]) { a = sin x; b = cos x; c = tan x; d = exp x; e = log x; g = tanh x; h = cosh x; ";
  EXPECT_EQ(Kernels(many + "return a, b, c, d, e, g, h }"), 2u);
}

// A concatenation and a pad compute where they write what is computed for them alone.
TEST(Fusion, WhatIsWrittenInPartsIsComputedThere) {
  const std::string two = "fn f(x: f32[64], y: f32[32]) { a = sin x; b = cos y; ";
  EXPECT_EQ(Kernels(two + "c = concatenate[dim=0] a b; return c }"), 2u);
  EXPECT_EQ(Kernels(two + "d = exp a; e = mul d x; c = concatenate[dim=0] e b y; return c }"), 3u);
  EXPECT_EQ(Kernels("fn f(x: f32[64]) { a = sin x; b = tanh a; p = pad[lo=[1], hi=[2], interior=[0]] b 0.0:f32; "
                    "return p }"),
            2u);
  // Read twice; a result, too; a number that each element would compute again; a sum.
  EXPECT_EQ(Kernels("fn f(x: f32[64]) { a = sin x; c = concatenate[dim=0] a a; return c }"), 3u);
  EXPECT_EQ(Kernels(two + "c = concatenate[dim=0] a b; return c, a }"), 3u);
  EXPECT_EQ(Kernels("fn f(x: f32[64], y: f32[]) { a = sin y; b = broadcast[dims=[], shape=<64>] a; m = mul x b; "
                    "c = concatenate[dim=0] m x; return c }"),
            3u);
}

}  // namespace
}  // namespace weft
