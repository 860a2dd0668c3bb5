// Operations that are added: each rule that they leave out follows from what they compute, whatever they are.
#include "ir/extensions.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <thread>
#include <vector>

#include "ir/builder.h"
#include "ir/error.h"
#include "ir/eval/eval.h"
#include "ir/ops.h"
#include "ir/text/parser.h"
#include "ir/text/printer.h"
#include "ir/verify.h"
#include "transforms/ad/grad.h"
#include "transforms/ad/jvp.h"
#include "transforms/batch/vmap.h"
#include "transforms/opt/pass.h"
#include "transforms/opt/simplify.h"
#include "transforms/opt/stable_rules.h"

namespace weft {
namespace {

// The program with the operation, and the same written out.
struct Case {
  const char* name;
  const char* text;
  const char* written_out;
};

void Register() {
  static const bool once = [] {
    Prim linear;
    linear.name = "t_linear";  // 2 x - 3 reversed(y), in both
    linear.num_operands = 2;
    linear.linear = {-1};
    RegisterPrimitive(std::move(linear), [](Builder& b, const Atoms& x, const Attrs&) -> Atoms {
      const Expr u{&b, x[0]}, v{&b, Reverse(b, x[1], {0})};
      return {u * 2.0 - v * 3.0};
    });
    Prim plain;
    plain.name = "t_plain";  // two results, of which one is made by another operation that was added
    plain.num_operands = 2;
    plain.more_attributes = {"scale"};
    RegisterPrimitive(std::move(plain), [](Builder& b, const Atoms& x, const Attrs& attrs) -> Atoms {
      const Expr u{&b, x[0]}, v{&b, x[1]};
      return {(Sin(u) * v) * attrs.Get<double>("scale"), b.Emit1(FindPrim("t_linear"), {x[1], x[0]})};
    });
    Prim unary;
    unary.name = "t_unary";
    unary.family = Family::kElementwise;
    unary.num_operands = 1;
    unary.dtypes = kFloats;
    RegisterPrimitive(std::move(unary),
                      [](Builder& b, const Atoms& x, const Attrs&) -> Atoms { return {Exp(Expr{&b, x[0]}) + 1.0}; });
    return true;
  }();
  (void)once;
}

constexpr Case kCases[] = {
    {"Linear",
     "fn f(x: f64[3], y: f64[3]) -> (f64[]) {\n  a: f64[3] = t_linear x y\n  b: f64[3] = mul a a\n"
     "  c: f64[] = reduce_sum[dims=[0]] b\n  return c\n}",
     "fn f(x: f64[3], y: f64[3]) -> (f64[]) {\n  u: f64[3] = mul x 2.0:f64\n  r: f64[3] = reverse[dims=[0]] y\n"
     "  v: f64[3] = mul r 3.0:f64\n  a: f64[3] = sub u v\n  b: f64[3] = mul a a\n"
     "  c: f64[] = reduce_sum[dims=[0]] b\n  return c\n}"},
    {"Plain",
     "fn f(x: f64[3], y: f64[3]) -> (f64[]) {\n  a, d = t_plain[scale=0.5] x y\n  b: f64[3] = mul a d\n"
     "  c: f64[] = reduce_sum[dims=[0]] b\n  return c\n}",
     "fn f(x: f64[3], y: f64[3]) -> (f64[]) {\n  s: f64[3] = sin x\n  p: f64[3] = mul s y\n"
     "  a: f64[3] = mul p 0.5:f64\n  u: f64[3] = mul y 2.0:f64\n  r: f64[3] = reverse[dims=[0]] x\n"
     "  v: f64[3] = mul r 3.0:f64\n  d: f64[3] = sub u v\n  b: f64[3] = mul a d\n"
     "  c: f64[] = reduce_sum[dims=[0]] b\n  return c\n}"},
    {"UnaryBesideANumber",
     "fn f(x: f64[3], y: f64[3]) -> (f64[]) {\n  n: f64[] = t_unary 0.5:f64\n"
     "  a: f64[3] = t_unary x\n  m: f64[3] = broadcast[dims=[], shape=<3>] n\n"
     "  b: f64[3] = mul a m\n  e: f64[3] = mul b y\n"
     "  c: f64[] = reduce_sum[dims=[0]] e\n  return c\n}",
     "fn f(x: f64[3], y: f64[3]) -> (f64[]) {\n  g: f64[] = exp 0.5:f64\n  n: f64[] = add g 1.0:f64\n"
     "  h: f64[3] = exp x\n  a: f64[3] = add h 1.0:f64\n  m: f64[3] = broadcast[dims=[], shape=<3>] n\n"
     "  b: f64[3] = mul a m\n  e: f64[3] = mul b y\n  c: f64[] = reduce_sum[dims=[0]] e\n  return c\n}"},
};

class ExtensionsTest : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    Register();
    with_ = ParseFn(GetParam().text);
    without_ = ParseFn(GetParam().written_out);
  }
  static void ExpectAlike(const FnRef& f, const FnRef& g, const Tensors& args) {
    Verify(*f);
    const Tensors found = Eval(*f, args), expected = Eval(*g, args);
    ASSERT_EQ(found.size(), expected.size());
    for (size_t r = 0; r < found.size(); ++r) {
      ASSERT_EQ(found[r].size(), expected[r].size());
      for (int64_t i = 0; i < found[r].size(); ++i)
        EXPECT_NEAR(found[r].Get(i).real(), expected[r].Get(i).real(), 1e-12);
    }
  }

  FnRef with_, without_;
  const Tensor x_ = Tensor::FromVector<double>({3}, {0.3, -1.2, 2.5}),
               y_ = Tensor::FromVector<double>({3}, {1.5, 0.25, -0.75});
};

TEST_P(ExtensionsTest, Means) { ExpectAlike(with_, without_, {x_, y_}); }

TEST_P(ExtensionsTest, ReadsBackAsItIsPrinted) {
  EXPECT_TRUE(ParseFn(Print(*with_))->StructurallyEquals(*with_)) << Print(*with_);
}

TEST_P(ExtensionsTest, Gradients) {
  const GradOptions both{.wrt = {true, true}};
  ExpectAlike(Grad(with_, both), Grad(without_, both), {x_, y_});
}

TEST_P(ExtensionsTest, Tangents) {
  ExpectAlike(Jvp(with_, {true, false}).fn, Jvp(without_, {true, false}).fn, {x_, y_, y_});
  ExpectAlike(Jvp(with_, {true, true}).fn, Jvp(without_, {true, true}).fn, {x_, y_, y_, x_});
}

TEST_P(ExtensionsTest, Batches) {
  const Tensor rows = Tensor::FromVector<double>({2, 3}, {0.1, 0.2, 0.3, -1, -2, 3});
  for (const bool first : {true, false}) {
    const Mask batched = {first, !first};
    const FnRef f = Batch(with_, batched, {true}, Dim(2)).fn, g = Batch(without_, batched, {true}, Dim(2)).fn;
    ExpectAlike(f, g, first ? Tensors{rows, y_} : Tensors{x_, rows});
  }
}

TEST_P(ExtensionsTest, BatchedGradients) {
  const Tensor rows = Tensor::FromVector<double>({2, 3}, {0.1, 0.2, 0.3, -1, -2, 3});
  const auto both = [](const FnRef& f) {
    return Batch(Grad(f, {.wrt = {true, true}}), {true, true}, {true, true}, Dim(2)).fn;
  };
  ExpectAlike(both(with_), both(without_), {rows, rows});
}

TEST_P(ExtensionsTest, IsReplacedByWhatItComputes) {
  const FnRef f = Optimize(with_);
  for (const Eqn& e : f->eqns()) EXPECT_EQ(ExpansionOf(*e.prim), nullptr) << e.prim->name;
  ExpectAlike(f, without_, {x_, y_});
}

INSTANTIATE_TEST_SUITE_P(Extensions, ExtensionsTest, testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(Extensions, RulesOfAddedOperationsApplyBeforeTheseAreReplaced) {
  Register();
  RegisterRule(FormulaRule{"t-rule", Licence::kNoNan, "t_unary(cbrt(x))", "cbrt(x)"});
  const FnRef f =
      ParseFn("fn f(x: f64[3]) -> (f64[3]) {\n  a: f64[3] = cbrt x\n  b: f64[3] = t_unary a\n  return b\n}");
  EXPECT_NE(Print(*Optimize(f)).find("exp"), std::string::npos);  // by default there is no such licence
  const ScopedLicences scope(Licences::Named({"no-nan"}));
  EXPECT_EQ(Print(*Optimize(f)).find("exp"), std::string::npos) << Print(*Optimize(f));
}

// Others read the registries while something is added.
TEST(Extensions, AreAddedWhileOthersRead) {
  Register();
  const FnRef f = ParseFn(kCases[1].text);
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([t] {
      for (int i = 0; i < 50; ++i) {
        Prim p;
        p.name = "t_" + std::to_string(t) + "_" + std::to_string(i);
        p.num_operands = 1;
        RegisterPrimitive(std::move(p), [](Builder&, const Atoms& x, const Attrs&) { return x; });
      }
    });
    threads.emplace_back([&f] {
      for (int i = 0; i < 50; ++i) Optimize(Grad(f, {.wrt = {true, true}}));
    });
  }
  for (std::thread& t : threads) t.join();
  std::set<int> ids;
  for (const Prim* p : AllPrims()) ids.insert(p->id);
  EXPECT_EQ(ids.size(), AllPrims().size());
  EXPECT_EQ(*ids.rbegin(), static_cast<int>(AllPrims().size()) - 1);
  for (int t = 0; t < 3; ++t) EXPECT_NE(TryFindPrim("t_" + std::to_string(t) + "_49"), nullptr);
}

}  // namespace
}  // namespace weft
