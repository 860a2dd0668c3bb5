// Products of vectors as sums: the same numbers, whatever the dimensions, and what stays a product.
#include "transforms/opt/vector_products.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "ir/eval/eval.h"
#include "ir/licences.h"
#include "ir/text/parser.h"
#include "ir/text/printer.h"
#include "ir/verify.h"
#include "transforms/opt/rule_watch.h"

namespace weft {
namespace {

Tensor Numbers(const Type& type, double by) {
  Shape shape;
  for (const Dim& d : type.dims) shape.push_back(d.value());
  Tensor t(type.dtype, shape);
  for (int64_t i = 0; i < t.size(); ++i) {
    const double x = std::sin(by * static_cast<double>(i));
    t.Set(i, IsFloat(type.dtype) ? x : std::round(100 * x));
  }
  return t;
}

bool HasProduct(const Fn& fn) { return Print(fn).find(" contract[") != std::string::npos; }

FnRef Product(const std::string& x, const std::string& y, const std::string& attributes) {
  return ParseFn("fn f(x: " + x + ", y: " + y + ") { z = contract[" + attributes + "] x y; return z }");
}

struct Case {
  std::string spec, x, y;  // dimensions of the operands
};

const Case kVectors[] = {
    {"ab,bc->ac", "1,7", "7,5"},
    {"ab,bc->ac", "6,7", "7,1"},
    {"b,bc->c", "7", "7,5"},
    {"ab,b->a", "6,7", "7"},
    {"a,a->", "9", "9"},
    {"ab,cb->ac", "1,7", "5,7"},
    {"ba,bc->ca", "7,1", "7,5"},
    {"hab,hbc->hac", "3,1,7", "3,7,5"},
    {"bha,hbc->ahc", "7,3,1", "3,7,5"},
    {"ab,cd->abcd", "2,3", "4,5"},
    {"ab,bc->ac", "6,1", "1,5"},
    {"ba,bc->ca", "1,6", "1,5"},
    {"a,b->ba", "4", "3"},
    {"hab,hbc->cha", "2,6,1", "2,1,5"},
    {"abc,bcd->ad", "1,3,4", "3,4,5"},
    {"cab,bcd->da", "4,1,3", "3,4,5"},
    {"ab,ab->b", "6,5", "6,5"},
    {"ab,ba->", "4,5", "5,4"},
    {"hab,hbc->ahc", "3,5,4", "3,4,1"},
};

TEST(VectorProducts, SumsHaveTheNumbersOfTheProduct) {
  for (const Case& c : kVectors) {
    for (const char* dtype : {"f32", "f64", "f16", "bf16", "i32", "u64"}) {
      const std::string of = dtype;
      const FnRef f = Product(of + "[" + c.x + "]", of + "[" + c.y + "]", "spec=\"" + c.spec + "\"");
      const FnRef g = VectorProductsAsSums(f);
      Verify(*g);
      EXPECT_FALSE(HasProduct(*g)) << Print(*g);
      const Tensors in = {Numbers(f->params()[0].type, 0.7), Numbers(f->params()[1].type, 1.3)};
      const Tensor want = Eval(*f, in)[0], got = Eval(*g, in)[0];
      ASSERT_EQ(want.type(), got.type());
      const double bound = of == "f32" ? 4e-6 : of == "f64" ? 1e-14 : of == "f16" ? 4e-3 : of == "bf16" ? 4e-2 : 0;
      for (int64_t i = 0; i < want.size(); ++i) ASSERT_NEAR(want.Get(i).real(), got.Get(i).real(), bound) << Print(*g);
    }
  }
}

TEST(VectorProducts, OtherProductsStay) {
  for (const Case& c : {Case{"ab,bc->ac", "f32[6,7]", "f32[7,5]"},
                        {"hab,hbc->hac", "f64[3,2,7]", "f64[3,7,5]"},
                        {"ab,bc->ac", "f32[2,7]", "f32[7,2]"},
                        {"ab,b->a", "c64[6,7]", "c64[7]"},
                        {"ab,b->a", "i8[6,7]", "i8[7]"},
                        {"ab,b->a", "f32[6,0]", "f32[0]"}}) {
    EXPECT_TRUE(HasProduct(*VectorProductsAsSums(Product(c.x, c.y, "spec=\"" + c.spec + "\"")))) << c.spec << c.x;
  }
}

TEST(VectorProducts, ATransposedMatrixIsReadWhereItLies) {
  const FnRef f = VectorProductsAsSums(
      ParseFn("fn f(w: f32[5,7], x: f32[7]) { t = transpose[perm=[1,0]] w; z = contract[spec=\"b,bc->c\"] x t; "
              "return z }"));
  EXPECT_NE(Print(*f).find("reduce_sum[dims=[1]]"), std::string::npos) << Print(*f);
}

TEST(VectorProducts, InRegions) {
  const FnRef f = ParseFn(
      "fn f(w: f32[4,4], x: f32[4]) { y: f32[4] = scan[length=<3>, num_carry=1, num_consts=1, reverse=false] w x "
      "(v: f32[4,4], c: f32[4]) -> (f32[4]) { d: f32[4] = contract[spec=\"a,ab->b\"] c v; return d }; return y }");
  EXPECT_FALSE(HasProduct(*VectorProductsAsSums(f))) << Print(*f);
}

TEST(VectorProducts, ARuleThatIsCountedLeftOutAndLicensed) {
  const FnRef f = Product("f32[1,7]", "f32[7,5]", "spec=\"ab,bc->ac\"");
  int applied = 0;
  {
    RuleWatch watch;
    watch.applied = [&](const AppliedRule& a) { applied += a.rule == kVectorProduct; };
    VectorProductsAsSums(f);
  }
  EXPECT_EQ(applied, 1);
  {
    RuleWatch watch({kVectorProduct});
    EXPECT_TRUE(HasProduct(*VectorProductsAsSums(f)));
  }
  const ScopedLicences exact(Licences::Named({"accurate"}));
  EXPECT_TRUE(HasProduct(*VectorProductsAsSums(f)));
}

}  // namespace
}  // namespace weft
