// What branches have in common: what is computed before the choice, and what stays in it. That the meaning stays:
// transforms/opt/pass_test.cc, for every primitive, and the random programs of tests/property.
#include <gtest/gtest.h>

#include "ir/prim.h"
#include "ir/text/parser.h"
#include "ir/text/printer.h"
#include "ir/verify.h"
#include "transforms/opt/pass.h"

namespace weft {
namespace {

std::string Names(const Fn& fn) {
  std::string names;
  for (const Eqn& e : fn.eqns()) names += (names.empty() ? "" : " ") + e.prim->name;
  return names;
}

// The names outside, and of each branch of the choice.
struct Found {
  std::string outside;
  std::vector<std::string> branches;
};
Found Shared(const std::string& text) {
  const FnRef after = RunPasses(ParseFn(text), {"branches", "dce"});
  Verify(*after);
  Found found{Names(*after), {}};
  for (const Eqn& e : after->eqns()) {
    for (const FnRef& r : e.regions) found.branches.push_back(Names(*r));
  }
  return found;
}

TEST(Branches, AProductThatAllHaveIsComputedBefore) {
  const Found found = Shared(R"(
fn f(k: i32[], a: f32[8,8], b: f32[8,8]) -> (f32[8,8]) {
  r: f32[8,8] = cond k a b (x: f32[8,8], y: f32[8,8]) -> (f32[8,8]) {
    p: f32[8,8] = contract[spec="ij,jk->ik"] x y
    q: f32[8,8] = sin p
    return q
  } (x: f32[8,8], y: f32[8,8]) -> (f32[8,8]) {
    p: f32[8,8] = contract[spec="ij,jk->ik"] x y
    q: f32[8,8] = cos p
    return q
  } (x: f32[8,8], y: f32[8,8]) -> (f32[8,8]) {
    p: f32[8,8] = contract[spec="ij,jk->ik"] x y
    return p
  }
  return r
})");
  EXPECT_EQ(found.outside, "contract cond");
  EXPECT_EQ(found.branches, (std::vector<std::string>{"sin", "cos", ""}));
}

TEST(Branches, OperandsMayBeInEitherOrder) {
  const Found found = Shared(R"(
fn f(p: bool[], a: f32[8,8], b: f32[8,8]) -> (f32[8,8]) {
  r: f32[8,8] = cond p a b (x: f32[8,8], y: f32[8,8]) -> (f32[8,8]) {
    d: f32[8,8] = mul x y
    e: f32[8,8] = exp d
    q: f32[8,8] = sin e
    return q
  } (x: f32[8,8], y: f32[8,8]) -> (f32[8,8]) {
    d: f32[8,8] = mul y x
    e: f32[8,8] = exp d
    q: f32[8,8] = cos e
    return q
  }
  return r
})");
  EXPECT_EQ(found.outside, "mul exp cond");
  EXPECT_EQ(found.branches, (std::vector<std::string>{"sin", "cos"}));
}

TEST(Branches, CheapElementwiseWorkStays) {
  const Found found = Shared(R"(
fn f(p: bool[], a: f32[8,8]) -> (f32[8,8]) {
  r: f32[8,8] = cond p a (x: f32[8,8]) -> (f32[8,8]) {
    d: f32[8,8] = mul x 2.0:f32
    q: f32[8,8] = sin d
    return q
  } (x: f32[8,8]) -> (f32[8,8]) {
    d: f32[8,8] = mul x 2.0:f32
    q: f32[8,8] = cos d
    return q
  }
  return r
})");
  EXPECT_EQ(found.outside, "cond");
  EXPECT_EQ(found.branches, (std::vector<std::string>{"mul sin", "mul cos"}));
}

// An equation without results has the place of the one that follows, which may be moved.
TEST(Branches, EffectsStayWhereWhatFollowsThemMoves) {
  for (const char* common : {"mul x 2.0:f32", "exp x", "contract[spec=\"ij,jk->ik\"] x x"}) {
    const std::string body =
        "(x: f32[8,8]) -> (f32[8,8]) {\n    io_callback[callback=1, results=types()] x\n"
        "    d: f32[8,8] = " +
        std::string(common) + "\n    io_callback[callback=2, results=types()]\n    return d\n  }";
    const Found found = Shared("fn f(p: bool[], a: f32[8,8]) -> (f32[8,8]) {\n  r: f32[8,8] = cond p a " + body + " " +
                               body + "\n  return r\n}");
    EXPECT_EQ(found.branches, std::vector<std::string>(2, "io_callback io_callback")) << common;
    EXPECT_NE(found.outside.find(std::string(common, std::string(common).find_first_of(" ["))), std::string::npos)
        << common;
  }
}

TEST(Branches, AResultThatAllGiveIsNone) {
  const Found found = Shared(R"(
fn f(p: bool[], a: f32[3], b: f32[3]) -> (f32[3], f32[3]) {
  r: f32[3], s: f32[3] = cond p a b (x: f32[3], y: f32[3]) -> (f32[3], f32[3]) {
    q: f32[3] = sin x
    return q, y
  } (x: f32[3], y: f32[3]) -> (f32[3], f32[3]) {
    q: f32[3] = sin y
    return q, y
  }
  return r, s
})");
  EXPECT_EQ(found.outside, "cond");
  EXPECT_EQ(found.branches, (std::vector<std::string>{"sin", "sin"}));
}

}  // namespace
}  // namespace weft
