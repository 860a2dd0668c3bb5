#include "tracer/trace.h"

#include <gtest/gtest.h>

#include "ir/eval/eval.h"
#include "ir/text/printer.h"
#include "tracer/index_ops.h"
#include "tracer/ops.h"
#include "tracer/regions.h"

namespace weft {
namespace {

const Type kVector{DType::kF32, {3}, {}};

int g_runs = 0;

class TraceTest : public testing::Test {
 protected:
  TraceTest() {
    g_runs = 0;
    SetRunner([](const FnRef& fn, const Tensors& args) {
      ++g_runs;
      return Eval(*fn, args);
    });
  }
};

Value Concrete(std::vector<float> values) {
  const auto n = static_cast<int64_t>(values.size());
  return Value(Tensor::FromVector<float>({n}, values));
}

template <class F>
ErrorKind KindOf(F f, std::string* message = nullptr) {
  try {
    f();
  } catch (const Error& e) {
    if (message) *message = e.message();
    return e.kind();
  }
  ADD_FAILURE() << "nothing was raised";
  return ErrorKind::kInternal;
}

TEST_F(TraceTest, RecordsWhileOpenAndRunsAtOnceOtherwise) {
  const Value y = Apply(Binary::kMul, Concrete({1, 2, 3}), Scalar::Float(2));
  EXPECT_FALSE(y.traced());
  EXPECT_EQ(y.tensor().at<float>(2), 6);
  FnRef fn;
  {
    ScopedTrace t("f", "test");
    const Value x = t->Parameter(kVector, "x");
    fn = t->Finish({Apply(Binary::kMul, x, Scalar::Float(2))}).fn;
  }
  EXPECT_EQ(Print(*fn), "fn f(x: f32[3]) -> (f32[3]) {\n  a: f32[3] = mul x 2.0:f32\n  return a\n}\n");
  EXPECT_EQ(Trace::Current(), nullptr);
}

TEST_F(TraceTest, ComputesWhatIsKnownWhereItIsAskedTo) {
  ScopedTrace t("f", "vmap");
  t->set_computes_known();
  const Value x = t->Parameter(kVector, "x");
  const Value c = Concrete({1, 2, 3});
  EXPECT_FALSE(Apply(Binary::kMul, c, Scalar::Float(2)).traced());
  EXPECT_FALSE(Full({Dim(2)}, Scalar::Float(1), std::nullopt).traced());
  EXPECT_FALSE(GetItem(c, {Index::Int(1)}).traced());
  EXPECT_FALSE(Bind(FindPrim("add"), {c, c})[0].traced());
  EXPECT_TRUE(Apply(Binary::kMul, x, c).traced());
  const Value at = Astype(GetItem(x, {Index::Int(0)}), DType::kI32);
  EXPECT_TRUE(GetItem(c, {Index::Array(at)}).traced());
  {
    ScopedTrace inner("g", "scan");  // records all that is in it
    EXPECT_TRUE(Apply(Binary::kMul, c, Scalar::Float(2)).traced());
  }
  // What was computed is no constant of the function: another call may compute something else.
  const Value sum = Apply(Binary::kAdd, x, Apply(Binary::kAdd, c, c));
  const Traced f = t->Finish({sum});
  ASSERT_EQ(f.captures.size(), 2u);
  EXPECT_EQ(f.captures[0].identity(), c.identity());
  EXPECT_EQ(f.captures[1].tensor().at<float>(2), 6);
}

TEST_F(TraceTest, CapturesSmallArraysAsLiteralsAndLargeOnesOncePerBuffer) {
  const Value small = Concrete({1, 2, 3}), large(Tensor::Zeros(DType::kF32, {100}));
  ScopedTrace t("f", "test");
  const Value x = t->Parameter(kVector, "x");
  const Value a = Apply(Binary::kAdd, x, small);
  const Value b = Apply(Binary::kAdd, large, large);
  const Value same_buffer(large.tensor());
  const Traced f = t->Finish({a, b, Apply(Binary::kMul, same_buffer, Scalar::Float(2))});
  ASSERT_EQ(f.captures.size(), 1u);
  EXPECT_EQ(f.captures[0].tensor().raw(), large.tensor().raw());
  EXPECT_EQ(f.fn->params()[1].kind, Param::Kind::kConstant);
  EXPECT_EQ(f.num_params, 1);
}

TEST_F(TraceTest, ValuesOfAnOuterTraceAreCaptured) {
  ScopedTrace outer("outer", "test");
  const Value x = outer->Parameter(kVector, "x");
  Traced inner;
  {
    ScopedTrace t("inner", "test");
    const Value y = t->Parameter(kVector, "y");
    inner = t->Finish({Apply(Binary::kAdd, Apply(Binary::kMul, x, y), x)});
  }
  ASSERT_EQ(inner.captures.size(), 1u);
  EXPECT_EQ(inner.captures[0].var(), x.var());
  Values args = {Concrete({1, 1, 1})};
  args.insert(args.end(), inner.captures.begin(), inner.captures.end());
  const Traced f = outer->Finish(Apply(inner.fn, args));
  EXPECT_EQ(f.fn->eqns().size(), 2u);
  EXPECT_TRUE(f.captures.empty());
}

TEST_F(TraceTest, EscapedValuesAreErrorsThatSayWhereTheyWereMade) {
  Value kept;
  {
    ScopedTrace t("loss", "jit");
    kept = Apply(Binary::kMul, t->Parameter(kVector, "x"), Scalar::Float(2));
  }
  std::string message;
  EXPECT_EQ(KindOf([&] { Apply(Binary::kAdd, kept, Scalar::Float(1)); }, &message), ErrorKind::kTracer);
  EXPECT_NE(message.find("'mul'"), std::string::npos) << message;
  EXPECT_EQ(KindOf(
                [&] {
                  ScopedTrace t("other", "jit");
                  Apply(Binary::kAdd, kept, Scalar::Float(1));
                },
                &message),
            ErrorKind::kTracer);
  EXPECT_NE(message.find("'loss'"), std::string::npos) << message;
  EXPECT_EQ(kept.type().ToString(), "f32[3]");
}

TEST_F(TraceTest, KnownParametersGiveNumbersOnce) {
  const Value known = Concrete({1, 2, 3});
  ScopedTrace t("f", "grad");
  const Value x = t->Parameter(kVector, "x", false, &known), y = t->Parameter(kVector, "y");
  const Value s = ReduceAxes("reduce_sum", Apply(Binary::kMul, x, x), std::nullopt, false);
  EXPECT_EQ(Demand(s, "float()").at<float>(0), 14);
  EXPECT_EQ(Demand(s, "float()").at<float>(0), 14);
  EXPECT_EQ(g_runs, 1);
  // What follows starts from the kept values.
  EXPECT_EQ(Demand(Apply(Binary::kAdd, s, Scalar::Float(1)), "float()").at<float>(0), 15);
  EXPECT_EQ(g_runs, 2);
  std::string message;
  EXPECT_EQ(KindOf([&] { Demand(Apply(Binary::kAdd, y, s), "bool()"); }, &message), ErrorKind::kTracer);
  EXPECT_NE(message.find("argument 'y'"), std::string::npos) << message;
  EXPECT_NE(message.find("weft.cond"), std::string::npos) << message;
}

TEST_F(TraceTest, KnownThroughTheOuterTrace) {
  const Value known = Concrete({2, 2, 2});
  ScopedTrace outer("outer", "grad");
  const Value x = outer->Parameter(kVector, "x", false, &known);
  const Value twice = Apply(Binary::kMul, x, Scalar::Float(2));
  ScopedTrace inner("inner", "grad");
  const Value y = inner->Parameter(kVector, "y", false, &twice);
  EXPECT_EQ(Demand(Apply(Binary::kAdd, y, x), "float()").at<float>(0), 6);
}

TEST_F(TraceTest, BroadcastIsExplicit) {
  ScopedTrace t("f", "test");
  const Value x = t->Parameter({DType::kF32, {2, 3}, {}}, "x"), y = t->Parameter({DType::kI32, {3}, {}}, "y");
  const Value z = Apply(Binary::kAdd, x, y);
  EXPECT_EQ(z.type().ToString(), "f32[2,3]");
  EXPECT_EQ(KindOf([&] { Apply(Binary::kAdd, x, Concrete({1, 2})); }), ErrorKind::kType);
}

TEST_F(TraceTest, AlignedRegionsShareTheirCaptures) {
  ScopedTrace outer("outer", "test");
  const Value a = outer->Parameter(kVector, "a"), b = outer->Parameter(kVector, "b");
  auto make = [&](const Value& first, const Value& second) {
    ScopedTrace t("branch", "cond");
    return t->Finish({Apply(Binary::kSub, first, second)});
  };
  const Aligned aligned = AlignCaptures({make(a, b), make(b, a)});
  EXPECT_EQ(aligned.captures.size(), 2u);
  const Tensors args = {Concrete({3, 3, 3}).tensor(), Concrete({1, 1, 1}).tensor()};
  EXPECT_EQ(Eval(*aligned.fns[0], args)[0].at<float>(0), 2);
  EXPECT_EQ(Eval(*aligned.fns[1], args)[0].at<float>(0), -2);
}

TEST_F(TraceTest, WeakCarriesArePromoted) {
  Values carry = {Value(NumberTensor(DType::kI32, Scalar::Int(0)), true)};
  ScopedTrace t("body", "while_loop");
  t->Parameter({DType::kI32, {}, {}}, "i", true);
  Traced body = t->Finish({Value(Tensor::Scalar(DType::kF32, 1.0f))});
  const Operand given[] = {carry[0]};
  EXPECT_TRUE(PromoteCarry(carry, given, body, "while_loop", {}));
  EXPECT_EQ(carry[0].dtype(), DType::kF32);
}

TEST_F(TraceTest, NumbersKeepTheirDigitsUntilTheyGetADType) {
  Values carry = {Value(NumberTensor(DType::kF32, Scalar::Float(0.1)), true)};
  auto body = [](const Value& result) {
    ScopedTrace t("body", "while_loop");
    t->Parameter({DType::kF32, {}, {}}, "x", true);
    return t->Finish({result});
  };
  Traced wide = body(Value(Tensor::Scalar(DType::kF64, 1.0)));
  const Operand given[] = {Scalar::Float(0.1)};
  EXPECT_TRUE(PromoteCarry(carry, given, wide, "while_loop", {}));
  EXPECT_EQ(carry[0].tensor().at<double>(0), 0.1);
  std::vector<Traced> branches = {body(Value(NumberTensor(DType::kF32, Scalar::Float(0.1)), true)), wide};
  branches[0].numbers = {NumberLiteral(DType::kF64, Scalar::Float(0.1))};
  UnifyResults(branches, "cond", {"f", "g"}, {});
  EXPECT_EQ(Eval(*branches[0].fn, {Tensor::Scalar(DType::kF32, 0.0f)})[0].at<double>(0), 0.1);
}

TEST_F(TraceTest, Indexing) {
  const Value x = Concrete({0, 1, 2, 3, 4});
  EXPECT_EQ(GetItem(x, {Index::Slice(std::nullopt, std::nullopt, -2)}).tensor().at<float>(1), 2);
  EXPECT_EQ(KindOf([&] { GetItem(x, {Index::Int(5)}); }), ErrorKind::kIndex);
  const Value rows(Tensor::FromVector<int32_t>({2}, {-1, 9}));
  EXPECT_EQ(GetItem(x, {Index::Array(rows)}).tensor().at<float>(1), 4);
  const Value y = UpdateItem(x, {Index::Array(rows)}, Scalar::Float(7), Update::kAdd);
  EXPECT_EQ(y.tensor().at<float>(4), 11);  // -1 is the last; 9 is dropped
}

TEST(PromoteTest, Join) {
  using enum DType;
  EXPECT_EQ(Promote({kI32, false}, {kF32, true}), (WeakDType{kF32, true}));
  EXPECT_EQ(Promote({kF16, false}, {kF32, true}), (WeakDType{kF16, false}));
  EXPECT_EQ(Promote({kF16, false}, {kBF16, false}), (WeakDType{kF32, false}));
  EXPECT_EQ(Promote({kU32, false}, {kI32, false}), (WeakDType{kI64, false}));
  EXPECT_EQ(Promote({kF64, false}, {kC64, false}), (WeakDType{kC128, false}));
  EXPECT_THROW(Promote({kF8E5M2, false}, {kF32, false}), Error);
}

}  // namespace
}  // namespace weft
