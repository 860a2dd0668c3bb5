#include "ir/verify.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>

#include "ir/builder.h"
#include "ir/samples/sample_fns.h"
#include "ir/text/parser.h"

namespace weft {

// Builders cannot make the functions that a verifier has to refuse.
struct FnTestPeer {
  static std::shared_ptr<Fn> Copy(const Fn& fn) { return std::shared_ptr<Fn>(new Fn(fn)); }
  static void SetParamType(Fn& fn, const Type& type) {  // of the first one
    std::vector<Param> params;
    for (const Param& p : fn.params_) params.push_back({params.empty() ? *Intern(type) : p.type, p.name, p.kind});
    fn.params_.swap(params);
  }
  static auto& types(Fn& fn) { return fn.types_; }
  static auto& eqns(Fn& fn) { return fn.eqns_; }
  static Atoms& results(Fn& fn) { return fn.results_; }
};

namespace {

FnRef Chain(int length) {
  Builder b("chain");
  Atom x = b.Parameter({DType::kF32, {3}}, "x");
  for (int i = 0; i < length; ++i) {
    b.set_loc(Loc::File("model.py", i + 1, "loss").Through("jvp"));
    x = b.Emit1(FindPrim("mul"), {x, x});
  }
  return b.Build({x});
}

std::string Problem(const Fn& fn) {
  try {
    Verify(fn);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInternal);
    return error.what();
  }
  return "";
}

std::string Broken(const FnRef& fn, const std::function<void(Fn&)>& damage) {
  const std::shared_ptr<Fn> copy = FnTestPeer::Copy(*fn);
  damage(*copy);
  return Problem(*copy);
}

TEST(VerifyTest, AcceptsWhatBuildersMake) {
  int functions = 0;
  for (const Prim* prim : AllPrims()) {
    for (const FnRef& fn : SampleFns(*prim)) {
      EXPECT_EQ(Problem(*fn), "");
      ++functions;
    }
  }
  EXPECT_GT(functions, 0);
  EXPECT_EQ(Problem(*KitchenSinkFn()), "");
}

TEST(VerifyTest, ShowsTheEquationItsSurroundingsAndTheUsersLine) {
  EXPECT_EQ(Broken(Chain(20), [](Fn& f) { FnTestPeer::types(f)[11] = Intern(Type{DType::kF32, {4}}); }),
            "verify: chain: mul has result types (f32[3]), but the function says (f32[4])\n"
            "  fn chain(x: f32[3]) -> (f32[3]) {\n"
            "    ...\n"
            "    f: f32[3] = mul e e\n"
            "    g: f32[3] = mul f f\n"
            "    h: f32[3] = mul g g\n"
            "    i: f32[3] = mul h h\n"
            "    j: f32[3] = mul i i\n"
            "  > k: f32[4] = mul j j\n"
            "    l: f32[3] = mul k k\n"
            "    m: f32[3] = mul l l\n"
            "    n: f32[3] = mul m m\n"
            "    o: f32[3] = mul n n\n"
            "    p: f32[3] = mul o o\n"
            "    ...\n"
            "  }\n"
            "  made by jvp\n"
            "  at model.py:11 in loss\n"
            "  expected (f32[3])\n"
            "  found    (f32[4])");
}

TEST(VerifyTest, RefusesBrokenFunctions) {
  const FnRef chain = Chain(3);
  const std::vector<std::pair<std::string, std::function<void(Fn&)>>> cases = {
      {"variable number 3, which is not defined before", [](Fn& f) { FnTestPeer::eqns(f)[1].operands[1] = Var{3}; }},
      {"variable number 99, which is not defined before", [](Fn& f) { FnTestPeer::eqns(f)[1].operands[1] = Var{99}; }},
      {"variable number 99, which is not defined before", [](Fn& f) { FnTestPeer::results(f)[0] = Var{99}; }},
      {"its results are numbered wrongly", [](Fn& f) { FnTestPeer::eqns(f)[1].first_result = 1; }},
      {"its results are numbered wrongly", [](Fn& f) { FnTestPeer::eqns(f)[2].num_results = 1000000000; }},
      {"one per parameter and result", [](Fn& f) { FnTestPeer::types(f).push_back(Intern(Type())); }},
      {"parameter 0 is wrong", [](Fn& f) { FnTestPeer::SetParamType(f, Type{DType::kI32, {3}}); }},
      {"numbering is wrong", [](Fn& f) { FnTestPeer::types(f).clear(); }},
      {"wrong number of operands", [](Fn& f) { FnTestPeer::eqns(f)[0].operands.pop_back(); }},
      {"a literal without data", [](Fn& f) { FnTestPeer::eqns(f)[0].operands[0] = Atom(Tensor()); }},
      {"a literal of 65 elements",
       [](Fn& f) { FnTestPeer::eqns(f)[0].operands[0] = Atom(Tensor::Zeros(DType::kF32, {65})); }},
      {"the type rule refuses the equation",
       [](Fn& f) { FnTestPeer::eqns(f)[0].operands[0] = Atom(Tensor::Zeros(DType::kI32, {3})); }},
      {"of negative size",
       [](Fn& f) {
         FnTestPeer::SetParamType(f, Type{DType::kF32, {-3}});
         FnTestPeer::types(f)[0] = Intern(Type{DType::kF32, {-3}});
       }},
      {"whose mesh axes are not in order",
       [](Fn& f) {
         FnTestPeer::SetParamType(f, Type{DType::kF32, {3}, {"y", "x"}});
         FnTestPeer::types(f)[0] = Intern(Type{DType::kF32, {3}, {"y", "x"}});
       }},
      {"has no primitive", [](Fn& f) { FnTestPeer::eqns(f)[0].prim = nullptr; }},
      {"has result types", [](Fn& f) { FnTestPeer::eqns(f)[0].prim = &FindPrim("lt"); }},
  };
  for (const auto& [problem, damage] : cases) {
    const std::string found = Broken(chain, damage);
    EXPECT_NE(found.find(problem), std::string::npos) << "expected: " << problem << "\nfound: " << found;
  }
}

TEST(VerifyTest, LooksIntoRegionsAtAnyDepth) {
  const FnRef fn = ParseFn(
      "fn f(x: f32[3]) { a = call x (x: f32[3]) { b = call x (x: f32[3]) { c = sin x; return c }; return b }; return a "
      "}");
  const FnRef middle = fn->eqns()[0].regions[0], inner = middle->eqns()[0].regions[0];
  const auto bad_inner = FnTestPeer::Copy(*inner);
  FnTestPeer::eqns(*bad_inner)[0].operands[0] = Var{7};
  const auto bad_middle = FnTestPeer::Copy(*middle);
  FnTestPeer::eqns(*bad_middle)[0].regions[0] = bad_inner;
  EXPECT_NE(Broken(fn, [&](Fn& f) { FnTestPeer::eqns(f)[0].regions[0] = bad_middle; }).find("variable number 7"),
            std::string::npos);
  EXPECT_NE(Broken(fn, [&](Fn& f) { FnTestPeer::eqns(f)[0].regions[0] = nullptr; }).find("region 0 is missing"),
            std::string::npos);
  // A region whose types do not fit the equation.
  const FnRef other = ParseFn("fn g(x: i32[3]) { return x }");
  EXPECT_NE(Broken(fn, [&](Fn& f) { FnTestPeer::eqns(f)[0].regions[0] = other; }).find("verify: f:"),
            std::string::npos);
}

}  // namespace
}  // namespace weft
