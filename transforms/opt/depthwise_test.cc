// Depthwise convolutions as sums of shifted products: the same numbers, and what stays a convolution.
#include "transforms/opt/depthwise.h"

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
  for (int64_t i = 0; i < t.size(); ++i) t.Set(i, std::sin(by * static_cast<double>(i)));
  return t;
}

bool HasConv(const Fn& fn) { return Print(fn).find(" conv[") != std::string::npos; }

FnRef Conv(const std::string& x, const std::string& w, const std::string& attributes) {
  return ParseFn("fn f(x: " + x + ", w: " + w + ") { y = conv[" + attributes + "] x w; return y }");
}

struct Case {
  std::string x, w, attributes;
};

const Case kCases[] = {
    {"f32[2,4,6,7]", "f32[4,1,3,3]",
     "batch_groups=1, feature_groups=4, hi=[1,1], lhs_dilation=[1,1], lo=[1,1], rhs_dilation=[1,1], strides=[1,1]"},
    {"f64[1,3,9]", "f64[3,1,4]",
     "batch_groups=1, feature_groups=3, hi=[0], lhs_dilation=[1], lo=[0], rhs_dilation=[1], strides=[1]"},
    {"f32[2,5,9,8]", "f32[5,1,2,3]",
     "batch_groups=1, feature_groups=5, hi=[2,0], lhs_dilation=[1,1], lo=[0,3], rhs_dilation=[2,1], strides=[2,3]"},
    {"f64[2,2,4,5,6]", "f64[2,1,2,1,3]",
     "batch_groups=1, feature_groups=2, hi=[1,0,1], lhs_dilation=[1,1,1], lo=[0,1,1], rhs_dilation=[1,1,2], "
     "strides=[1,2,1]"},
};

TEST(Depthwise, SumsHaveTheNumbersOfTheConvolution) {
  for (const Case& c : kCases) {
    const FnRef f = Conv(c.x, c.w, c.attributes), g = DepthwiseAsSums(f);
    Verify(*g);
    EXPECT_FALSE(HasConv(*g)) << Print(*g);
    const Tensors in = {Numbers(f->params()[0].type, 0.7), Numbers(f->params()[1].type, 1.3)};
    const Tensor want = Eval(*f, in)[0], got = Eval(*g, in)[0];
    ASSERT_EQ(want.type(), got.type());
    const double bound = want.dtype() == DType::kF32 ? 4e-6 : 1e-14;
    for (int64_t i = 0; i < want.size(); ++i) ASSERT_NEAR(want.Get(i).real(), got.Get(i).real(), bound) << Print(*g);
  }
}

TEST(Depthwise, OtherConvolutionsStay) {
  const std::string same = "hi=[1,1], lhs_dilation=[1,1], lo=[1,1], rhs_dilation=[1,1], strides=[1,1]";
  for (const Case& c : {
           Case{"f32[2,4,6,6]", "f32[4,4,3,3]", "batch_groups=1, feature_groups=1, " + same},  // all channels
           {"f32[2,4,6,6]", "f32[4,2,3,3]", "batch_groups=1, feature_groups=2, " + same},      // two of them
           {"f32[2,4,6,6]", "f32[8,1,3,3]", "batch_groups=1, feature_groups=4, " + same},      // two windows of each
           {"f32[2,4,9,9]", "f32[4,1,4,4]", "batch_groups=1, feature_groups=4, " + same},      // a large window
           {"f16[2,4,6,6]", "f16[4,1,3,3]", "batch_groups=1, feature_groups=4, " + same},      // rounded at each term
           {"c64[2,4,6,6]", "c64[4,1,3,3]", "batch_groups=1, feature_groups=4, " + same},
           {"f32[2,4,6,6]", "f32[4,1,3,3]",
            "batch_groups=1, feature_groups=4, hi=[1,1], lhs_dilation=[2,1], lo=[1,1], rhs_dilation=[1,1], "
            "strides=[1,1]"},
           {"f32[2,4,6,6]", "f32[4,1,3,3]",
            "batch_groups=1, feature_groups=4, hi=[1,1], lhs_dilation=[1,1], lo=[-1,1], rhs_dilation=[1,1], "
            "strides=[1,1]"},
       }) {
    EXPECT_TRUE(HasConv(*DepthwiseAsSums(Conv(c.x, c.w, c.attributes)))) << c.x << " " << c.w << " " << c.attributes;
  }
}

TEST(Depthwise, ChannelsBesideEachOtherStay) {
  const FnRef f = ParseFn("fn f(z: f32[2,6,6,4], w: f32[4,1,3,3]) { x = transpose[perm=[0,3,1,2]] z; y = conv[" +
                          kCases[0].attributes + "] x w; return y }");
  EXPECT_TRUE(HasConv(*DepthwiseAsSums(f)));
}

TEST(Depthwise, ARuleThatIsCountedLeftOutAndLicensed) {
  const FnRef f = Conv(kCases[0].x, kCases[0].w, kCases[0].attributes);
  int applied = 0;
  {
    RuleWatch watch;
    watch.applied = [&](const AppliedRule& a) { applied += a.rule == kDepthwise; };
    DepthwiseAsSums(f);
  }
  EXPECT_EQ(applied, 1);
  RuleWatch watch({kDepthwise});
  EXPECT_TRUE(HasConv(*DepthwiseAsSums(f)));
}

}  // namespace
}  // namespace weft
