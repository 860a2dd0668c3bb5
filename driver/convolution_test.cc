// Convolutions large enough to be cut into blocks of rows or of images, against the interpreter.
#include <gtest/gtest.h>

#include <cmath>

#include "driver/executable.h"
#include "ir/builder.h"
#include "ir/eval/eval.h"
#include "ir/ops.h"
#include "ir/prim.h"

namespace weft {
namespace {

struct Case {
  Dims x, w;
  Ints strides, lo, hi, lhs_dilation, rhs_dilation;
  int64_t groups = 1;
};

TEST(Convolution, BlocksOfRowsEqualTheWhole) {
  const Case cases[] = {
      {{1, 3, 50, 61}, {8, 3, 7, 7}, {2, 2}, {3, 3}, {3, 3}, {1, 1}, {1, 1}},
      {{2, 4, 40, 33}, {6, 4, 3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, {1, 1}},
      {{1, 4, 40, 70}, {6, 2, 3, 5}, {3, 3}, {0, 4}, {2, 0}, {1, 1}, {2, 2}, 2},
      {{1, 2, 21, 30}, {3, 2, 3, 3}, {1, 2}, {2, 1}, {1, 2}, {2, 2}, {1, 1}},
      {{1, 2, 700}, {3, 2, 9}, {5}, {20}, {3}, {1}, {3}},
      {{1, 2, 9, 12, 40}, {3, 2, 2, 3, 3}, {1, 2, 2}, {0, 1, 1}, {1, 0, 1}, {1, 1, 1}, {1, 1, 2}},
      {{1, 2, 300}, {3, 2, 3}, {4}, {-5}, {-7}, {1}, {1}},
      // Batches that are cut into blocks, with and without a shorter last one; a window as large as the image.
      {{32, 6, 20, 20}, {16, 6, 5, 5}, {1, 1}, {0, 0}, {0, 0}, {1, 1}, {1, 1}},
      {{37, 8, 15, 17}, {12, 4, 3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, 2},
      {{6, 16, 12, 12}, {16, 16, 8, 8}, {1, 1}, {0, 0}, {0, 0}, {1, 1}, {1, 1}},
      // A stride that does not reach the end.
      {{2, 3, 28, 29}, {4, 3, 3, 3}, {2, 4}, {0, 0}, {0, 0}, {1, 1}, {1, 1}},
      {{2, 3, 28}, {4, 3, 3}, {2}, {0}, {-6}, {1}, {1}},
  };
  CompileRequest options;
  options.passes = {};
  options.use_disk_cache = false;
  for (const Case& c : cases) {
    Builder b("f");
    const Atom x = b.Parameter({DType::kF32, c.x, {}}), w = b.Parameter({DType::kF32, c.w, {}});
    const FnRef f = b.Build({b.Emit1(FindPrim("conv"), {x, w},
                                     {{"strides", c.strides},
                                      {"lo", c.lo},
                                      {"hi", c.hi},
                                      {"lhs_dilation", c.lhs_dilation},
                                      {"rhs_dilation", c.rhs_dilation},
                                      {"feature_groups", c.groups},
                                      {"batch_groups", int64_t{1}}})});
    Tensors in;
    for (const Dims& dims : {c.x, c.w}) {
      Tensor t(DType::kF32, StaticSizes(dims, "test"));
      for (int64_t i = 0; i < t.size(); ++i) t.data<float>()[i] = static_cast<float>((i * 37 + i / 11) % 13 - 6) / 4;
      in.push_back(t);
    }
    const Tensor got = Compile(options.For(f))->Run(in)[0], want = Eval(*f, in)[0];
    ASSERT_EQ(got.type(), want.type());
    for (int64_t i = 0; i < want.size(); ++i)
      ASSERT_NEAR(got.at<float>(i), want.at<float>(i), 1e-4 * (1 + std::abs(want.at<float>(i)))) << i;
  }
}

}  // namespace
}  // namespace weft
