// Atoms of one word, types that are there once, and what a builder remembers of type rules.
#include "ir/atom.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <complex>
#include <limits>
#include <set>
#include <thread>
#include <vector>

#include "ir/builder.h"
#include "ir/ops.h"

namespace weft {
namespace {

const Type kNumber{DType::kF32, {}, {}}, kVector{DType::kF32, {3}, {}};

TEST(Intern, EqualTypesHaveOneAddress) {
  std::set<const Type*> addresses;
  for (const Type& t : {kNumber, kVector, Type{DType::kF64, {3}, {}}, Type{DType::kF32, {Dim::Symbol("n")}, {}},
                        Type{DType::kF32, {3}, {"x"}}, Type{DType::kF32, {3}, {"x", "y"}}}) {
    EXPECT_EQ(*Intern(t), t);
    EXPECT_EQ(Intern(t), Intern(Type(t)));
    addresses.insert(Intern(t));
  }
  EXPECT_EQ(addresses.size(), 6U);
}

TEST(Intern, ThreadsAgree) {
  constexpr int kThreads = 4, kTypes = 500;  // more types than a thread remembers
  std::vector<std::vector<const Type*>> found(kThreads);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&found, t] {
      for (int i = 0; i < kTypes; ++i) {
        const int size = t % 2 == 0 ? i : kTypes - 1 - i;
        found[t].push_back(Intern(Type{DType::kF32, {size, 7}, {}}));
      }
      if (t % 2 == 1) std::reverse(found[t].begin(), found[t].end());
    });
  }
  for (std::thread& t : threads) t.join();
  for (int t = 1; t < kThreads; ++t) EXPECT_EQ(found[t], found[0]);
}

TEST(Atom, IsOneWord) {
  EXPECT_EQ(sizeof(Atom), sizeof(void*));
  EXPECT_LE(sizeof(Eqn), 64U) << "one cache line";
  const Atom largest{Var{std::numeric_limits<uint32_t>::max()}};
  EXPECT_TRUE(largest.is_var());
  EXPECT_EQ(largest.id(), std::numeric_limits<uint32_t>::max());
}

TEST(Atom, CopiesShareALiteral) {
  Atom a{Tensor::FromVector<float>({2}, {1, 2})};
  const float* data = a.literal().data<float>();
  Atom b = a, c = std::move(a);
  EXPECT_EQ(b.literal().data<float>(), data);
  EXPECT_TRUE(b.Is(c));
  b = b;  // NOLINT: onto itself
  EXPECT_EQ(b.literal().at<float>(1), 2);
  c = Atom(Var{3});
  EXPECT_EQ(c.id(), 3U);
  EXPECT_EQ(b.literal().data<float>(), data) << "still held";
  const Atom equal{Tensor::FromVector<float>({2}, {1, 2})};
  EXPECT_FALSE(b.Is(equal));
  EXPECT_TRUE(b == equal);
  EXPECT_EQ(b.literal_hash(), equal.literal_hash());
  EXPECT_FALSE(b == Atom(Tensor::FromVector<float>({1, 2}, {1, 2}))) << "another shape";
}

TEST(Atom, ALiteralKnowsWhetherItIsOneNumber) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_TRUE(Atom(Tensor::Full(DType::kF32, {2, 3}, 1)).IsSplat(1));
  EXPECT_FALSE(Atom(Tensor::FromVector<float>({2}, {1, 2})).IsSplat(1));
  EXPECT_FALSE(Atom(Tensor::Zeros(DType::kF32, {0})).IsSplat(0)) << "no element";
  EXPECT_FALSE(Atom::Scalar(DType::kF64, nan).IsSplat(nan));
  EXPECT_TRUE(Atom::Scalar(DType::kF32, -0.0).IsSplat(0));
  EXPECT_FALSE(Atom(Var{1}).IsSplat(1));
  EXPECT_FALSE(Atom(Tensor::Scalar(DType::kC64, std::complex<float>(1, 1))).IsSplat(1));
}

TEST(Atom, NumbersThatAreAskedForAgainKeepTheirBits) {
  for (int round = 0; round < 2; ++round) {
    for (DType t : {DType::kF32, DType::kF64, DType::kI32}) {
      for (double v : {0.0, -0.0, 1.0, -1.0, 0.5, 2.0, 1e-30}) {
        const Atom a = Atom::Scalar(t, v);
        EXPECT_TRUE(a.literal().BitEquals(Tensor::Full(t, {}, v))) << Name(t) << " " << v;
      }
    }
  }
}

// What a rule said of some types says nothing of others, nor of the same ones where a literal was.
TEST(Builder, RemembersTypeRulesForTheSameQuestionOnly) {
  Builder b("f");
  const Atom x = b.Parameter(kVector), n = b.Parameter(kNumber), i = b.Parameter({DType::kI32, {3}, {}});
  const Prim& add = FindPrim("add");
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(b.TypeOf(b.Emit1(add, {x, x})), kVector);
    EXPECT_EQ(b.TypeOf(b.Emit1(add, {x, Atom::Scalar(DType::kF32, 1)})), kVector);
    EXPECT_EQ(b.TypeOf(b.Emit1(add, {n, n})), kNumber);
    EXPECT_EQ(b.TypeOf(b.Emit1(FindPrim("lt"), {x, x})), (Type{DType::kBool, {3}, {}}));
    EXPECT_THROW(b.Emit1(add, {x, n}), Error) << "a number that is no literal beside an array";
    EXPECT_THROW(b.Emit1(add, {x, i}), Error);
    EXPECT_THROW(b.Emit1(add, {x}), Error);
    EXPECT_THROW(b.Emit1(add, {x, x, x}), Error);
  }
}

}  // namespace
}  // namespace weft
