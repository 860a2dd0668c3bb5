#include "ir/exchange/serialize.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <string>

#include "ir/builder.h"
#include "ir/exchange/weft.pb.h"
#include "ir/samples/sample_fns.h"
#include "ir/text/parser.h"
#include "ir/text/printer.h"
#include "ir/verify.h"

namespace weft {
namespace {

void ExpectRoundTrip(const Fn& fn, const DeserializeOptions& options = {}) {
  const std::string bytes = Serialize(fn);
  FnRef back;
  ASSERT_NO_THROW(back = Deserialize(bytes, options)) << Print(fn);
  EXPECT_TRUE(back->StructurallyEquals(fn)) << Print(fn) << "\nread back as\n" << Print(*back);
  EXPECT_EQ(Print(*back, {.locations = true}), Print(fn, {.locations = true}));
  EXPECT_EQ(back->name(), fn.name());
  EXPECT_TRUE(IsSerialized(bytes));
  EXPECT_EQ(Serialize(*back), bytes) << "bytes depend on the program alone";
  EXPECT_NO_THROW(Verify(*back));
}

std::string ParseErrorOf(const std::string& bytes) {
  try {
    Deserialize(bytes);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kParse) << error.message();
    return error.message();
  }
  return "";
}

TEST(SerializeTest, EverySampleOfEveryPrimitiveRoundTrips) {
  std::set<std::string> names;
  for (const Prim* prim : AllPrims()) {
    for (const FnRef& fn : SampleFns(*prim)) {
      ExpectRoundTrip(*fn);
      names.merge(PrimsOf(*fn));
    }
  }
  Builder b("boxed");  // a box has no sample: it equals itself only
  const FnRef boxed = b.Build(b.Emit(FindPrim("box"), {b.Parameter({DType::kF64, {3}, {}})}));
  ExpectRoundTrip(*boxed);
  names.merge(PrimsOf(*boxed));
  for (const Prim* prim : AllPrims()) EXPECT_TRUE(names.count(prim->name)) << prim->name;
}

TEST(SerializeTest, LiteralsConstantsAndLocationsRoundTrip) {
  const FnRef fn = KitchenSinkFn();
  ExpectRoundTrip(*fn);
  const FnRef back = Deserialize(Serialize(*fn));
  EXPECT_EQ(back->eqns()[0].loc.ToString(), "model.py:12 (loss) via jvp, transpose");
  EXPECT_EQ(back->eqns()[0].loc, fn->eqns()[0].loc) << "the caller's line too";
  EXPECT_EQ(back->params()[1].name, "params['w']");
  EXPECT_EQ(back->params()[1].kind, Param::Kind::kConstant);
  EXPECT_FALSE(Deserialize(Serialize(*fn, {.locations = false}))->eqns()[0].loc);
}

TEST(SerializeTest, EveryKindOfAttributeRoundTrips) {
  Builder b;
  const Atom x = b.Parameter({DType::kF32, {3}}, "x");
  const Attrs attrs = {{"a", false},
                       {"b", int64_t{INT64_MIN}},
                       {"c", -0.5},
                       {"d", std::string("\xff\0 x", 4)},
                       {"e", DType::kBool},
                       {"f", Ints{1, -2}},
                       {"g", Dims{8, Dim::Symbol("n") * 2 - 1}},
                       {"h", Types{{DType::kF32, {3}}, {DType::kI8, {}}}},
                       {"i", Strings{"x", ""}},
                       {"j", Ints{}},
                       {"k", Strings{}},
                       {"l", Types{}},
                       {"m", Dims{}},
                       {"n", int64_t{0}}};
  ExpectRoundTrip(*b.Build({b.Emit1(FindPrim("sin"), {x}, attrs)}), {.any_attributes = true});
}

TEST(SerializeTest, SharedFunctionsAreWrittenOnceAndStayShared) {
  const Type type{DType::kF32, {}};
  FnRef fn;
  for (int i = 0; i < 100; ++i) {
    Builder b("f" + std::to_string(i));
    Atom y = b.Parameter(type, "x");
    for (int k = 0; k < 2; ++k) y = fn ? b.Emit1(FindPrim("call"), {y}, {}, {fn}) : b.Emit1(FindPrim("sin"), {y});
    fn = b.Build({y});
  }
  const std::string bytes = Serialize(*fn);
  EXPECT_LT(bytes.size(), 10000u);
  const FnRef back = Deserialize(bytes);
  EXPECT_EQ(back->eqns()[0].regions[0], back->eqns()[1].regions[0]);
  EXPECT_EQ(Print(*back), Print(*fn));
}

TEST(SerializeTest, TruncatedBytesAreRefused) {
  const std::string bytes = Serialize(*KitchenSinkFn());
  for (size_t size = 0; size < bytes.size(); size += size < 64 || size + 64 > bytes.size() ? 1 : 13) {
    EXPECT_NE(ParseErrorOf(bytes.substr(0, size)), "") << size << " of " << bytes.size() << " bytes";
  }
}

TEST(SerializeTest, AnyChangedBitIsFound) {
  const std::string bytes = Serialize(*ParseFn("fn f(x: f32[3]) { a = mul x 2.0:f32; return a }"));
  for (size_t i = 0; i < bytes.size() * 8; ++i) {
    std::string changed = bytes;
    changed[i / 8] = static_cast<char>(changed[i / 8] ^ (1 << (i % 8)));
    EXPECT_NE(ParseErrorOf(changed), "") << "bit " << i;
  }
}

TEST(SerializeTest, ForeignBytesAreRefused) {
  EXPECT_FALSE(IsSerialized("fn f(x: f32[3]) { return x }"));
  EXPECT_NE(ParseErrorOf("").find("no bytes at all"), std::string::npos);
  EXPECT_NE(ParseErrorOf("\x7f"
                         "ELF and so on")
                .find("not a whole Weft program"),
            std::string::npos);
  EXPECT_NE(ParseErrorOf("fn f(x: f32[3]) { return x }").find("not a whole Weft program"), std::string::npos);
  EXPECT_NE(ParseErrorOf(WrapModule("", 2)).find("is of version 2"), std::string::npos);
  EXPECT_NE(ParseErrorOf(WrapModule("")).find("there is no function"), std::string::npos);
}

// A well-formed module with one thing wrong.
class ModuleTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::string bytes =
        Serialize(*ParseFn("fn g(x: f32[3]) { a = sin x; return a }\nfn f(x: f32[3]) { a = call @g x; b = "
                           "reduce_sum[dims=[0]] a; c = mul b 2.0:f32; return c }",
                           {.file = "m.weft"}));
    exchange::File file;
    ASSERT_TRUE(file.ParseFromString(bytes));
    ASSERT_TRUE(module.ParseFromString(file.module()));
    ASSERT_EQ(ParseErrorOf(WrapModule(module.SerializeAsString())), "");
  }
  exchange::Function& f() { return *module.mutable_functions(1); }
  exchange::Equation& eqn(int i) { return *f().mutable_equations(i); }
  void ExpectError(const std::string& problem) {
    const std::string found = ParseErrorOf(WrapModule(module.SerializeAsString()));
    EXPECT_NE(found.find(problem), std::string::npos) << "expected: " << problem << "\nfound: " << found;
    SetUp();
  }
  exchange::Module module;
};

TEST_F(ModuleTest, NothingInItIsTrusted) {
  eqn(0).set_primitive(1000000);
  ExpectError("function 1, 'f': equation 0: refers to string number 1000000");
  module.set_strings(static_cast<int>(eqn(0).primitive()), "frobnicate");
  ExpectError("there is no primitive 'frobnicate'");
  eqn(0).mutable_operands(0)->set_variable(1);
  ExpectError("variable 1 is used, but only 1 are defined before");
  eqn(0).mutable_operands(0)->set_variable(4000000000u);
  ExpectError("variable 4000000000 is used");
  eqn(0).mutable_operands(0)->Clear();
  ExpectError("neither variable nor literal");
  eqn(0).set_regions(0, 1);
  ExpectError("refers to function number 1 of 1");
  eqn(0).clear_operands();
  ExpectError("call");
  eqn(1).clear_attributes();
  ExpectError("attribute 'dims' is missing");
  eqn(1).mutable_attributes(0)->clear_value();
  ExpectError("attribute 'dims' has no value");
  module.set_strings(static_cast<int>(eqn(1).attributes(0).name()), "dim");
  ExpectError("reduce_sum: there is no attribute 'dim'; it has dims");
  *eqn(1).add_attributes() = eqn(1).attributes(0);
  ExpectError("not in the order of their names");
  eqn(1).set_result_types(0, eqn(0).result_types(0));
  ExpectError("is f32[], but written as f32[3]");
  eqn(1).add_result_types(0);
  ExpectError("has 1 results here, but 2 are written");
  eqn(1).set_location(77);
  ExpectError("refers to location number 76");
  module.mutable_locations(0)->set_caller(1);
  ExpectError("refers to location number 0 of 0");
  f().mutable_results(0)->set_variable(9);
  ExpectError("results: variable 9 is used");
  f().mutable_parameters(0)->set_type(9);
  ExpectError("refers to type number 9");
  f().mutable_parameters(0)->set_kind(static_cast<exchange::Parameter::Kind>(7));
  ExpectError("a parameter of unknown kind");
  module.mutable_types(0)->set_dtype(static_cast<exchange::DType>(99));
  ExpectError("an element type of unknown number 99");
  module.mutable_types(0)->mutable_dims(0)->set_size(-1);
  ExpectError("a size of -1");
  module.mutable_types(0)->mutable_dims(0)->set_expression("n+");
  ExpectError("malformed expression 'n+'");
  module.mutable_types(0)->mutable_dims(0)->Clear();
  ExpectError("a size without a value");
  for (int i = 0; i < 100; ++i) module.mutable_types(0)->add_dims()->set_size(1);
  ExpectError("a type with 101 dimensions");
}

// Whoever looks at a program takes them for text.
TEST_F(ModuleTest, NamesAreText) {
  for (const std::string wrong : {"\xff", "a\xc3", "\xed\xa0\x80", "\xc0\x80", "\xf5\x80\x80\x80"}) {
    f().set_name(wrong);
    ExpectError("a name that is no UTF-8");
    f().mutable_parameters(0)->set_name(wrong);
    ExpectError("a parameter's name that is no UTF-8");
    module.set_strings(static_cast<int>(eqn(0).primitive()), wrong);
    ExpectError("there is no primitive '");
  }
  f().set_name("s\xc3\xb8rensen \xf0\x9f\xa7\xb6");
  EXPECT_EQ(ParseErrorOf(WrapModule(module.SerializeAsString())), "");
}

TEST_F(ModuleTest, LiteralsAreCheckedBeforeTheyAreMade) {
  const auto literal = [&]() -> exchange::Tensor& { return *eqn(2).mutable_operands(1)->mutable_literal(); };
  literal().set_data("abc");
  ExpectError("a literal of 1 elements with 3 bytes");
  literal().add_shape(int64_t{1} << 40);
  ExpectError("a literal of 1099511627776 elements");
  literal().add_shape(int64_t{1} << 40), literal().add_shape(int64_t{1} << 40);
  ExpectError("more than 2^63 elements");
  literal().add_shape(-1);
  ExpectError("of negative size");
  literal().set_dtype(exchange::BOOL), literal().set_data("\x02");
  ExpectError("bytes that are no numbers of bool");
  literal().set_dtype(exchange::DTYPE_UNSPECIFIED);
  ExpectError("unknown number 0");
}

TEST_F(ModuleTest, DeepNestingIsAnErrorNotACrash) {
  exchange::Module deep = module;
  deep.mutable_functions()->DeleteSubrange(1, 1);
  for (uint32_t i = 0; i < 100000; ++i) {
    *deep.add_functions() = module.functions(1);
    exchange::Function& f = *deep.mutable_functions(static_cast<int>(i) + 1);
    f.mutable_equations()->DeleteSubrange(1, 2);
    f.mutable_equations(0)->set_regions(0, i);
    f.mutable_results(0)->set_variable(1);
  }
  EXPECT_NE(ParseErrorOf(WrapModule(deep.SerializeAsString())).find("nested more than"), std::string::npos);
}

TEST_F(ModuleTest, DamagedModulesAreNoCrash) {
  const std::string bytes = module.SerializeAsString();
  uint32_t random = 1;
  int errors = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string damaged = bytes;
    for (int k = 0; k < 1 + i % 3; ++k) {
      random = random * 1664525u + 1013904223u;
      damaged[(random >> 8) % damaged.size()] = static_cast<char>(random >> 24);
    }
    errors += !ParseErrorOf(WrapModule(damaged)).empty();
  }
  EXPECT_GT(errors, 10000);
}

}  // namespace
}  // namespace weft
