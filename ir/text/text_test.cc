#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_replace.h"
#include "ir/builder.h"
#include "ir/samples/sample_fns.h"
#include "ir/text/element_text.h"
#include "ir/text/parser.h"
#include "ir/text/printer.h"
#include "ir/verify.h"

namespace weft {
namespace {

std::string ParseErrorOf(const std::string& text) {
  try {
    ParseFn(text);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kParse) << error.message();
    return error.message();
  }
  ADD_FAILURE() << "this text was accepted:\n" << text;
  return "";
}

void ExpectRoundTrip(const Fn& fn, const ParseOptions& options = {}) {
  const std::string text = Print(fn);
  FnRef back;
  ASSERT_NO_THROW(back = ParseFn(text, options)) << text.substr(0, 3000);
  EXPECT_TRUE(back->StructurallyEquals(fn)) << text.substr(0, 3000) << "\nread back as\n"
                                            << Print(*back).substr(0, 3000);
  EXPECT_EQ(back->StructuralHash(), fn.StructuralHash());
  EXPECT_TRUE(Print(*back) == text) << text.substr(0, 3000) << "\nprinted again\n" << Print(*back).substr(0, 3000);
  EXPECT_NO_THROW(Verify(*back));
}

TEST(TextTest, EverySampleOfEveryPrimitiveRoundTrips) {
  int functions = 0;
  for (const Prim* prim : AllPrims()) {
    for (const FnRef& fn : SampleFns(*prim)) {
      ExpectRoundTrip(*fn);
      ++functions;
    }
  }
  EXPECT_GT(functions, static_cast<int>(AllPrims().size()));
}

TEST(TextTest, LiteralsOfEveryTypeRoundTrip) {
  const FnRef fn = KitchenSinkFn();
  for (const Atom& result : fn->results()) {
    if (result.is_var()) continue;
    const FnRef one = ParseFn("fn f() { return " + Print(result.literal()) + " }");
    EXPECT_TRUE(one->results()[0].literal().BitEquals(result.literal()))
        << Print(result.literal()) << " became " << Print(one->results()[0].literal());
  }
  ExpectRoundTrip(*fn);
}

TEST(TextTest, PrintsTheDocumentedForm) {
  Builder b("f");
  const Atom x = b.Parameter({DType::kF32, {3}}, "x");
  const Atom w = b.Parameter({DType::kF32, {Dim::Symbol("n"), 10}}, "w", Param::Kind::kConstant);
  const Atom y = b.Emit1(FindPrim("mul"), {x, Atom::Scalar(DType::kF32, 2)});
  const Atom z = b.Emit1(FindPrim("reduce_sum"), {y}, {{"dims", Ints{0}}});
  const FnRef fn = b.Build({z, Atom(Tensor::FromVector<int32_t>({3}, {1, 2, 3})), w});
  EXPECT_EQ(Print(*fn),
            "fn f(x: f32[3], const w: f32[n,10]) -> (f32[], i32[3], f32[n,10]) {\n"
            "  a: f32[3] = mul x 2.0:f32\n"
            "  b: f32[] = reduce_sum[dims=[0]] a\n"
            "  return b, [1,2,3]:i32[3], w\n"
            "}\n");
}

TEST(TextTest, PrintsElementsInTheirShortestForm) {
  const std::vector<std::pair<Tensor, std::string>> cases = {
      {Tensor::Full(DType::kF32, {}, 0.1), "0.1:f32"},
      {Tensor::Full(DType::kBF16, {}, 0.1), "0.1:bf16"},
      {Tensor::Full(DType::kF16, {}, 65504), "65504.0:f16"},
      {Tensor::Full(DType::kF64, {}, 1e300), "1e+300:f64"},
      {Tensor::Full(DType::kF32, {}, -0.0), "-0.0:f32"},
      {Tensor::Full(DType::kF64, {}, -INFINITY), "-inf:f64"},
      {Tensor::Scalar(DType::kF32, 0x7fc00000u), "nan:f32"},
      {Tensor::Scalar(DType::kF32, 0xffc00000u), "-nan:f32"},
      {Tensor::Scalar(DType::kF32, 0x7fc00001u), "0x7fc00001:f32"},
      {Tensor::Scalar(DType::kF8E4M3FN, uint8_t{0x7f}), "nan:f8e4m3fn"},
      {Tensor::Scalar(DType::kF8E4M3FNUZ, uint8_t{0x80}), "nan:f8e4m3fnuz"},
      {Tensor::Scalar(DType::kF4E2M1FN, uint8_t{0x8}), "-0.0:f4e2m1fn"},
      {Tensor::Full(DType::kI64, {}, -5), "-5:i64"},
      {Tensor::Full(DType::kBool, {}, 1), "true:bool"},
      {Tensor::Scalar(DType::kC64, std::complex<float>(1, -2)), "(1.0,-2.0):c64"},
      {Tensor::Scalar(DType::kKey, uint64_t{10}), "0x000000000000000a:key"},
      {Tensor::FromVector<float>({2, 1, 2}, {1, 2, 3, 4}), "[[[1.0,2.0]],[[3.0,4.0]]]:f32[2,1,2]"},
      {Tensor(DType::kF32, {0, 1000000}), "[]:f32[0,1000000]"},
  };
  for (const auto& [tensor, text] : cases) EXPECT_EQ(Print(tensor), text);
}

TEST(TextTest, EveryNarrowFloatReadsBackAsItself) {
  for (int i = 0; i < kNumDTypes; ++i) {
    const auto dtype = static_cast<DType>(i);
    const int bytes = ByteWidth(dtype);
    if (!IsFloat(dtype) || bytes > 2) continue;
    Tensor t = Tensor::Zeros(dtype, {}), back = Tensor::Zeros(dtype, {});
    for (uint32_t bits = 0; bits < 1u << BitWidth(dtype); ++bits) {
      std::memcpy(t.raw(), &bits, bytes);
      const std::string text = ElementText(t, 0);
      SetElementFromText(back, 0, text);
      ASSERT_TRUE(back.BitEquals(t)) << dtype << " " << bits << " " << text;
    }
  }
}

TEST(TextTest, EveryKindOfAttributeRoundTrips) {
  Builder b;
  const Atom x = b.Parameter({DType::kF32, {3}}, "x");
  const Attrs attrs = {{"a", true},
                       {"b", int64_t{INT64_MIN}},
                       {"c", 2.0},
                       {"d", std::string("a\"\n\\ \x01"
                                         "f\xff")},
                       {"e", DType::kBF16},
                       {"f", Ints{1, -2}},
                       {"g", Dims{8, Dim::Symbol("n") * 2 - 1}},
                       {"h", Types{{DType::kF32, {3}}, {DType::kI8, {}}}},
                       {"i", Strings{"x", ""}},
                       {"j", Ints{}},
                       {"k", Strings{}},
                       {"l", Types{}},
                       {"m", Dims{}},
                       {"n", -HUGE_VAL},
                       {"o", 1e300},
                       {"p", std::string()},
                       {"q", Strings{""}}};
  const Atom y = b.Emit1(FindPrim("sin"), {x}, attrs);  // type rules ignore attributes that they do not know
  ExpectRoundTrip(*b.Build({y}), {.any_attributes = true});
}

TEST(TextTest, RegionsStandInlineAndSharedFunctionsOnce) {
  const std::string text =
      "fn square(x: f32[3]) -> (f32[3]) {\n"
      "  a: f32[3] = mul x x\n"
      "  return a\n"
      "}\n"
      "\n"
      "fn f(p: bool[], x: f32[3]) -> (f32[3]) {\n"
      "  a: f32[3] = call @square x\n"
      "  b: f32[3] = cond p a (y: f32[3]) -> (f32[3]) {\n"
      "    a: f32[3] = neg y\n"
      "    return a\n"
      "  } @square\n"
      "  c: f32[3] = cond @square @square p b\n"
      "  return c\n"
      "}\n";
  const FnRef fn = ParseFn(text);
  EXPECT_EQ(Print(*fn), text);
  EXPECT_EQ(fn->eqns()[0].regions[0], fn->eqns()[1].regions[1]) << "the function is shared, not copied";
  ExpectRoundTrip(*fn);
}

// 2^100 calls when written out.
TEST(TextTest, TheTextIsAsLongAsTheProgramNotItsExpansion) {
  const Type type{DType::kF32, {}};
  FnRef fn;
  for (int i = 0; i < 100; ++i) {
    Builder b("f");
    const Atom x = b.Parameter(type, "x");
    Atom y = x;
    for (int k = 0; k < 2; ++k) y = fn ? b.Emit1(FindPrim("call"), {y}, {}, {fn}) : b.Emit1(FindPrim("sin"), {y});
    fn = b.Build({y});
  }
  const std::string text = Print(*fn);
  EXPECT_LT(text.size(), 20000u);
  const FnRef back = ParseFn(text);
  EXPECT_EQ(Print(*back), text);
  EXPECT_EQ(back->StructuralHash(), fn->StructuralHash());
  EXPECT_NO_THROW(Verify(*back));
}

TEST(TextTest, AcceptsWhatPeopleWrite) {
  // Semicolons, left-out types, comments, a version, line ends within brackets, a single result without parentheses.
  const FnRef fn = ParseFn(R"(weft 1
# a comment
fn f(x: f32[2],   # the first
     y: f32[2]) -> f32[2] { a = mul x y; b = mul a 2:f32
  c = add b [1,
    2]:f32[2];
  return c })");
  EXPECT_EQ(Print(*fn),
            "fn f(x: f32[2], y: f32[2]) -> (f32[2]) {\n"
            "  a: f32[2] = mul x y\n"
            "  b: f32[2] = mul a 2.0:f32\n"
            "  c: f32[2] = add b [1.0,2.0]:f32[2]\n"
            "  return c\n"
            "}\n");
}

TEST(TextTest, LocationsAreCommentsAndLinesOfTheTextBecomeLocations) {
  const FnRef fn = ParseFn(
      "fn f(x: f32[2]) {\n  a = sin x\n  b = call a (y: f32[2]) {\n    c = cos y\n    return c }\n  return b\n}",
      {.file = "m.weft"});
  EXPECT_EQ(Print(*fn, {.locations = true}),
            "fn region(y: f32[2]) -> (f32[2]) {\n"
            "  a: f32[2] = cos y  # m.weft:4 (region)\n"
            "  return a\n"
            "}\n"
            "\n"
            "fn f(x: f32[2]) -> (f32[2]) {\n"
            "  a: f32[2] = sin x  # m.weft:2 (f)\n"
            "  b: f32[2] = call @region a  # m.weft:3 (f)\n"
            "  return b\n"
            "}\n");
  EXPECT_TRUE(ParseFn(Print(*fn, {.locations = true}))->StructurallyEquals(*fn));
}

TEST(TextTest, AnErrorShowsThePlace) {
  EXPECT_EQ(ParseErrorOf("fn f(x: f32[3]) -> (f32[3]) {\n  a: f32[3] = mul x y\n  return a\n}\n"),
            "<text>:2:21: 'y' is not defined\n"
            "    a: f32[3] = mul x y\n"
            "                      ^");
  try {
    ParseFn("fn f() -> () {\n\treturn 1\n}", {.file = "m.weft"});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.message(),
              "m.weft:2:10: expected ':' and the type of the literal, such as 2.0:f32, found the end of the line\n  "
              "\treturn 1\n  \t        ^");
  }
  const std::string long_line = ParseErrorOf("fn f(" + std::string(100000, ' ') + "%");
  EXPECT_LT(long_line.size(), 400u);
}

TEST(TextTest, ErrorsSayWhatIsWrong) {
  const std::string open = "fn f(x: f32[3], i: i32[]) -> (f32[3]) {\n", close = "\n  return x\n}\n";
  const std::vector<std::pair<std::string, std::string>> bodies = {
      {"a: f32[3] = frobnicate x", "there is no primitive 'frobnicate'"},
      {"a: f32[4] = mul x x", "'a' is written as f32[4], but is f32[3]"},
      {"a = mul x i", "mul"},
      {"a = mul x", "mul: takes 2 operands, got 1"},
      {"a = mul x x\n a = mul x x", "'a' is defined twice"},
      {"x = mul x x", "'x' is defined twice"},
      {"a, b = mul x x", "mul has 1 results here, but 2 are named"},
      {"mul x x", "mul has 1 results here, but 0 are named"},
      {"return = mul x x", "expected"},
      {"nan = mul x x", "'nan' is a word of the grammar"},
      {"a = mul x 2.0", "expected ':' and the type of the literal"},
      {"a = mul x 2.0:f33", "expected an element type such as f32, found 'f33'"},
      {"a = mul x 2.0:f32[]", "a number has an element type alone"},
      {"a = mul x 1e39:f32", "1e39 does not fit f32"},
      {"a = mul x 128:i8", "128 does not fit i8"},
      {"a = mul x -1:u8", "-1 does not fit u8"},
      {"a = mul x 0xff:i8", "0xff does not fit i8"},
      {"a = mul x 1.5:i32", "'1.5' is not a value of type i32"},
      {"a = mul x 70000:f16", "70000 does not fit f16"},
      {"a = mul x inf:f8e4m3fn", "inf does not fit f8e4m3fn"},
      {"a = mul x nan:f4e2m1fn", "nan does not fit f4e2m1fn"},
      {"a = mul x 7.0:f4e2m1fn", "7.0 does not fit f4e2m1fn"},
      {"a = mul x 0.0:f8e8m0fnu", "0.0 does not fit f8e8m0fnu"},
      {"a = mul x 0x1ffffffff:f32", "0x1ffffffff does not fit f32"},
      {"a = mul x 5:key", "'5' is not a value of type key"},
      {"a = mul x (1,2):f32", "'(1,2)' is not a value of type f32"},
      {"a = mul x 1:c64", "'1' is not a value of type c64"},
      {"a = mul x [1,2]:f32[3]", "the type f32[3] has 3 elements, the list 2"},
      {"a = mul x [[1,2],[3]]:f32[3]", "this list has 1 entries, the one before it 2"},
      {"a = mul x [[1,2],3]:f32[3]", "expected '['"},
      {"a = mul x [1,[2]]:f32[2]", "expected a number"},
      {"a = mul x [[1,2,3]]:f32[3]", "the lists are not nested as f32[3] is"},
      {"a = mul x [1]:f32[n]", "the type of a literal has plain numbers as sizes"},
      {"a = mul x []:f32[4294967296,4294967296]", "more than 2^63"},
      {"a = mul x [" + absl::StrReplaceAll(std::string(65, 'x'), {{"x", "1,"}}) + "1]:f32[66]",
       "a literal has at most 64 elements"},
      {"a = mul x " + std::string(100, '['), "lists nested too deeply"},
      {"a = reduce_sum[dims=[0], dims=[0]] x", "attribute 'dims' is given twice"},
      {"a = reduce_sum[dims=0] x", "dims"},
      {"a = reduce_sum[dims=[1]] x", "reduce_sum"},
      {"a = reduce_sum[dims=[99999999999999999999]] x", "does not fit a 64-bit integer"},
      {"a = reduce_sum[dims=[0.5]] x", "'0.5' is not an integer"},
      {"a = reduce_sum x", "attribute 'dims' is missing"},
      {"a = reduce_sum[dims=[0]", "expected"},
      {"a = reduce_sum[dims] x", "expected '=' after the name of an attribute"},
      {"a = reduce_sum[dims=what] x", "'what' is no value of an attribute"},
      {"a = reduce_sum[dims=\"x] x", "this string has no end"},
      {"a = reduce_sum[dims=\"\\q\"] x", "malformed string"},
      {"a = reduce_sum[dims=[0], keep=true] x", "reduce_sum: there is no attribute 'keep'; it has dims"},
      {"a = sin[fast=true] x", "sin: there is no attribute 'fast'; it has none"},
      {"a = log[accuracy=\"low\"] x", "log: accuracy is \"low\"; expected \"highest\" or none"},
      {"a = add[fused=false] x x", "add: fused is false; expected true or none"},
      {"a = call @g x", "there is no function 'g' before this line"},
      {"a = call @f x", "there is no function 'f' before this line"},
      {"a: f32[-1] = mul x x", "a size cannot be negative"},
      {"a: f32[3.5] = mul x x", "expected ']'"},
      {"a: f32[2*] = mul x x", "'2*' is not a size"},
      {"a: f32[99999999999999999999] = mul x x", "is not a size"},
      {"a: f32{x}[3] = mul x x", "expected '['"},
      {"a: f32[3]{y,x} = mul x x", "mesh axes stand in order"},
      {"a: f32[3] mul x x", "expected '=' after the results"},
      {"a: f32[3] = mul x $", "expected a variable or a literal, found '$'"},
      {"a: f32[3] = mul x \x80", "found a byte that no text of this form has"},
      {"}", "expected an equation or 'return', found '}'"},
  };
  for (const auto& [body, problem] : bodies) {
    EXPECT_NE(ParseErrorOf(open + "  " + body + close).find(problem), std::string::npos)
        << body << "\n"
        << ParseErrorOf(open + "  " + body + close);
  }
  const std::vector<std::pair<std::string, std::string>> texts = {
      {"", "expected a function"},
      {"def f(x):", "expected a function"},
      {"weft 2\nfn f() { return }", "version '2'"},
      {"fn", "expected the name of the function"},
      {"fn return() { return }", "is a word of the grammar"},
      {"fn f(x: f32[3], x: f32[3]) { return }", "'x' is defined twice"},
      {"fn f(x) { return }", "expected ':'"},
      {"fn f(x: f32) { return }", "expected '[' after f32, as in f32[8,n]"},
      {"fn f(const: f32[]) { return }", "expected the name of the constant"},
      {"fn f(x: f32[3]) -> (f32[4]) { return x }", "result 0 is f32[3], but declared as f32[4]"},
      {"fn f(x: f32[3]) -> () { return x }", "returns 1 results, but 0 are declared"},
      {"fn f(x: f32[3]) { return x, }", "expected a result after ','"},
      {"fn f(x: f32[3]) { return x x }", "expected the end of the line"},
      {"fn f(x: f32[3]) { return x } trailing", "expected 'fn' or the end of the text"},
      {"fn f(x: f32[3]) { return x", "expected '}' after the results, found the end of the text"},
      {"fn f(x: f32[3]) {", "expected an equation or 'return', found the end of the text"},
      {"fn f() { return }\nfn f() { return }", "function 'f' is defined twice"},
  };
  for (const auto& [text, problem] : texts) {
    EXPECT_NE(ParseErrorOf(text).find(problem), std::string::npos) << text << "\n" << ParseErrorOf(text);
  }
}

TEST(TextTest, DeepNestingIsAnErrorNotACrash) {
  std::string inline_regions = "fn f(x: f32[]) {\n";
  for (int i = 0; i < 100000; ++i) inline_regions += "a = call x (x: f32[]) {\n";
  EXPECT_NE(ParseErrorOf(inline_regions).find("nested more than"), std::string::npos);
  std::string chain = "fn f0(x: f32[]) { return x }\n";
  for (int i = 1; i < 1000; ++i) {
    chain += "fn f" + std::to_string(i) + "(x: f32[]) { a = call @f" + std::to_string(i - 1) + " x; return a }\n";
  }
  EXPECT_NE(ParseErrorOf(chain).find("nested more than"), std::string::npos);
}

// Cut and damaged texts are errors or other programs, never crashes.
TEST(TextTest, DamagedTextIsNoCrash) {
  const std::string text = Print(*KitchenSinkFn()).substr(0, 3000);
  int errors = 0;
  auto try_parse = [&](const std::string& t) {
    try {
      Verify(*ParseFn(t));
    } catch (const Error& error) {
      ASSERT_EQ(error.kind(), ErrorKind::kParse) << error.message();
      ++errors;
    }
  };
  for (size_t i = 0; i < text.size(); i += 7) try_parse(text.substr(0, i));
  uint32_t random = 1;
  for (int i = 0; i < 3000; ++i) {
    std::string damaged = text;
    for (int k = 0; k < 3; ++k) {
      random = random * 1664525u + 1013904223u;
      damaged[(random >> 8) % damaged.size()] = static_cast<char>(random >> 24);
    }
    try_parse(damaged);
  }
  EXPECT_GT(errors, 1000);
}

TEST(TextTest, PrintAroundMarksTheEquation) {
  std::string text = "fn f(x: f32[2]) {\n";
  for (int i = 0; i < 20; ++i) text += "  v" + std::to_string(i) + " = sin x\n";
  const FnRef fn = ParseFn(text + "  return x\n}");
  EXPECT_EQ(PrintAround(*fn, 10, 1),
            "  fn f(x: f32[2]) -> (f32[2]) {\n"
            "    ...\n"
            "    j: f32[2] = sin x\n"
            "  > k: f32[2] = sin x\n"
            "    l: f32[2] = sin x\n"
            "    ...\n"
            "  }");
}

}  // namespace
}  // namespace weft
