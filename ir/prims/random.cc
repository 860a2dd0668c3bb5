// Random numbers from counters: threefry2x32, and keys as words. ir/random_ops.h composes bits, split and fold_in.
#include <cstring>

#include "ir/ops.h"
#include "ir/prims/elementwise.h"
#include "ir/prims/families.h"
#include "ir/prims/shape.h"
#include "ir/prims/threefry.h"

namespace weft {
namespace {

struct HostWord {
  uint32_t v;
  friend HostWord operator+(HostWord x, HostWord y) { return {x.v + y.v}; }
  friend HostWord operator+(HostWord x, uint32_t y) { return {x.v + y}; }
  friend HostWord operator^(HostWord x, HostWord y) { return {x.v ^ y.v}; }
  friend HostWord operator^(HostWord x, uint32_t y) { return {x.v ^ y}; }
  friend HostWord RotateLeft(HostWord x, int bits) { return {x.v << bits | x.v >> (32 - bits)}; }
};

void RegisterThreefry(PrimRegistry& r) {
  Prim& p = r.Add("threefry2x32", Family::kElementwise, 4,
                  "Two random words for each counter: Threefry-2x32 with 20 rounds (Salmon et al. 2011) of the counter "
                  "words (operands 2 and 3) under the key words (operands 0 "
                  "and 1), all u32 of one shape; the same bits as JAX's threefry2x32.");
  p.dtypes = {DType::kU32};
  p.work = 100;  // 20 rounds of an addition, a rotation and a difference
  p.infer = [](const Sig& s) -> Types {
    const Type t = InferElementwise(s);
    return {t, t};
  };
  p.eval = [](const EvalContext& c, const Tensors& in) -> Tensors {
    const Shape shape = StaticSizes(c.results[0].dims, "eval");
    Tensor y0(DType::kU32, shape), y1(DType::kU32, shape);
    auto word = [&](int operand, int64_t i) {
      return HostWord{in[operand].at<uint32_t>(in[operand].rank() == 0 ? 0 : i)};
    };
    for (int64_t i = 0; i < y0.size(); ++i) {
      const auto [a, b] = ThreefryRounds(word(0, i), word(1, i), word(2, i), word(3, i));
      y0.data<uint32_t>()[i] = a.v;
      y1.data<uint32_t>()[i] = b.v;
    }
    return {y0, y1};
  };
  p.not_differentiable = "random bits are integers";
  p.batch = BatchElementwise;
  p.samples = [] {
    std::vector<Sample> samples;
    for (const Dims& dims : {Dims{7}, Dims{}, Dims{2, 3}, Dims{0}}) {
      Sample s = SampleOf(Types(4, Type{DType::kU32, dims, {}}));
      s.low = 0, s.high = 4e9;
      samples.push_back(s);
    }
    return samples;
  };
}

// Keys are stored as their two words in order, so both directions keep the bytes.
void RegisterKeys(PrimRegistry& r) {
  Prim& wrap = r.Add("random_wrap", Family::kRandom, 1,
                     "The keys whose two words are the last dimension of a u32 array: u32[...,2] -> key[...].");
  wrap.dtypes = {DType::kU32};
  wrap.infer = [](const Sig& s) -> Types {
    const Type& x = s.operands[0];
    if (x.dtype != DType::kU32 || x.rank() == 0 || !(x.dims.back() == Dim(2)))
      throw TypeError("random_wrap: operand is ", x, "; expected u32[...,2]");
    return {x.With(Dims(x.dims.begin(), x.dims.end() - 1)).With(DType::kKey)};
  };
  Prim& unwrap = r.Add("random_unwrap", Family::kRandom, 1,
                       "The two words of each key, in a new last dimension: key[...] -> u32[...,2].");
  unwrap.dtypes = {DType::kKey};
  unwrap.infer = [](const Sig& s) -> Types {
    const Type& x = s.operands[0];
    if (x.dtype != DType::kKey) throw TypeError("random_unwrap: operand is ", x, "; expected key[...]");
    Dims dims = x.dims;
    dims.push_back(2);
    return {x.With(dims).With(DType::kU32)};
  };
  for (Prim* p : {&wrap, &unwrap}) {
    p->eval = [](const EvalContext& c, const Tensors& in) -> Tensors {
      Tensor y(c.results[0].dtype, StaticSizes(c.results[0].dims, "eval"));
      std::memcpy(y.raw(), in[0].raw(), y.bytes());
      return {y};
    };
    p->not_differentiable = "random keys are integers";
    p->batch = [](BatchContext& c) {
      c.y = {c.b.Emit1(*c.eqn.prim, {c.x[0]}, c.eqn.attrs)};
      c.batched_out = {true};
    };
  }
  wrap.samples = [] {
    Sample s = SampleOf({Type{DType::kU32, {3, 2}, {}}}), one = SampleOf({Type{DType::kU32, {2}, {}}});
    s.low = one.low = 0, s.high = one.high = 4e9;
    return std::vector<Sample>{s, one};
  };
  unwrap.samples = [] {
    Sample s = SampleOf({Type{DType::kKey, {3}, {}}}), one = SampleOf({Type{DType::kKey, {}, {}}});
    s.low = one.low = 0, s.high = one.high = 1e15;
    return std::vector<Sample>{s, one};
  };
}

}  // namespace

void RegisterRandom(PrimRegistry& r) {
  RegisterThreefry(r);
  RegisterKeys(r);
}

}  // namespace weft
