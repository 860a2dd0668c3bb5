// Which convolutions the library takes: those that programs and their gradients are made of, none of which may fall
// back to the plain loops without anybody noticing. And that its numbers are those of the sum written out.
#include "backends/cpu/ops/convolution.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

namespace weft::cpu {
namespace {

using Ints = std::vector<int64_t>;

Ints Dense(const Ints& dims) {
  Ints strides(dims.size(), 1);
  for (size_t d = dims.size() - 1; d-- > 0;) strides[d] = strides[d + 1] * dims[d + 1];
  return strides;
}

int64_t Size(const Ints& dims) {
  int64_t n = 1;
  for (int64_t d : dims) n *= d;
  return n;
}

struct Given {
  std::string name;
  Ints x, w, y, strides, lo, base_dilation, window_dilation;
  int64_t feature_groups = 1, batch_groups = 1;

  ConvolutionShape shape() const {
    return {x, w, y, Dense(x), Dense(w), strides, lo, base_dilation, window_dilation, feature_groups, batch_groups};
  }
};

// y[n, o, p] of the sum over channels and the window; base dilation puts zeros between the elements of x.
double WrittenOut(const Given& g, const std::vector<float>& x, const std::vector<float>& w, Ints at) {
  const Ints x_strides = Dense(g.x), w_strides = Dense(g.w);
  const int64_t per_group = g.y[1] / std::max(g.feature_groups, g.batch_groups), group = at[1] / per_group;
  const int64_t n = g.batch_groups > 1 ? group * g.y[0] + at[0] : at[0];
  double sum = 0;
  for (int64_t k = 0; k < Size(g.w) / g.w[0]; ++k) {
    int64_t rest = k, x_at = n * x_strides[0], w_at = at[1] * w_strides[0];
    bool inside = true;
    for (size_t d = g.w.size(); d-- > 1;) {
      const int64_t i = rest % g.w[d];
      rest /= g.w[d];
      w_at += i * w_strides[d];
      if (d == 1) {
        x_at += (i + (g.feature_groups > 1 ? group * g.w[1] : 0)) * x_strides[1];
        continue;
      }
      const int64_t place = at[d] * g.strides[d - 2] + i * g.window_dilation[d - 2] - g.lo[d - 2];
      inside = inside && place >= 0 && place % g.base_dilation[d - 2] == 0 && place / g.base_dilation[d - 2] < g.x[d];
      x_at += place / g.base_dilation[d - 2] * x_strides[d];
    }
    if (inside) sum += static_cast<double>(x[static_cast<size_t>(x_at)]) * w[static_cast<size_t>(w_at)];
  }
  return sum;
}

std::vector<float> Numbers(const Ints& dims, double by) {
  std::vector<float> v(static_cast<size_t>(Size(dims)));
  for (size_t i = 0; i < v.size(); ++i) v[i] = static_cast<float>(std::sin(by * static_cast<double>(i + 1)));
  return v;
}

TEST(Convolution, TheLibraryTakesThoseOfPrograms) {
  const std::vector<Given> all = {
      {"along a line", {3, 4, 20}, {6, 4, 3}, {3, 6, 20}, {1}, {1}, {1}, {1}},
      {"of images", {2, 3, 9, 8}, {5, 3, 3, 3}, {2, 5, 9, 8}, {1, 1}, {1, 1}, {1, 1}, {1, 1}},
      {"of volumes", {1, 2, 5, 6, 4}, {3, 2, 2, 3, 2}, {1, 3, 4, 4, 3}, {1, 1, 1}, {0, 0, 0}, {1, 1, 1}, {1, 1, 1}},
      {"with strides", {2, 3, 9, 9}, {4, 3, 3, 3}, {2, 4, 5, 5}, {2, 2}, {1, 1}, {1, 1}, {1, 1}},
      {"of dilated windows", {2, 3, 9, 9}, {4, 3, 3, 3}, {2, 4, 5, 5}, {1, 1}, {0, 0}, {1, 1}, {2, 2}},
      {"in groups", {2, 6, 7, 7}, {4, 3, 3, 3}, {2, 4, 7, 7}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, 2},
      {"of each channel", {2, 6, 7, 7}, {6, 1, 5, 5}, {2, 6, 7, 7}, {1, 1}, {2, 2}, {1, 1}, {1, 1}, 6},
      {"by the input", {2, 4, 4, 4}, {3, 4, 3, 3}, {2, 3, 9, 9}, {1, 1}, {2, 2}, {2, 2}, {1, 1}},
      {"by the weights", {3, 2, 9, 9}, {5, 2, 9, 9}, {3, 5, 3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}},
      {"by the weights of groups", {6, 2, 9, 9}, {4, 2, 9, 9}, {3, 4, 3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, 1, 2},
  };
  for (const Given& g : all) {
    const std::vector<float> x = Numbers(g.x, 0.37), w = Numbers(g.w, 0.73);
    std::vector<float> y(static_cast<size_t>(Size(g.y)), -1);
    ASSERT_TRUE(ConvolveByLibrary(g.shape(), x.data(), w.data(), y.data())) << g.name;
    for (size_t i = 0; i < y.size(); ++i) {
      Ints at(g.y.size());
      auto rest = static_cast<int64_t>(i);
      for (size_t d = at.size(); d-- > 0;) at[d] = rest % g.y[d], rest /= g.y[d];
      ASSERT_NEAR(y[i], WrittenOut(g, x, w, at), 1e-4) << g.name << " " << i;
    }
  }
}

TEST(Convolution, WhatItDoesNotHaveIsLeftUndone) {
  std::vector<float> x = Numbers({1, 2, 6, 6}, 1), w = Numbers({3, 2, 3, 3}, 1), y(1000, -1);
  const Given cut_off{
      "padding that cuts off", {1, 2, 6, 6}, {3, 2, 3, 3}, {1, 3, 3, 4}, {1, 1}, {-1, 0}, {1, 1}, {1, 1}};
  EXPECT_FALSE(ConvolveByLibrary(cut_off.shape(), x.data(), w.data(), y.data()));
  ConvolutionShape backwards =
      Given{"", {1, 2, 6, 6}, {3, 2, 3, 3}, {1, 3, 4, 4}, {1, 1}, {0, 0}, {1, 1}, {1, 1}}.shape();
  backwards.x_strides[3] = -1;
  EXPECT_FALSE(ConvolveByLibrary(backwards, x.data() + 5, w.data(), y.data()));
  EXPECT_EQ(y, std::vector<float>(1000, -1));
}

}  // namespace
}  // namespace weft::cpu
