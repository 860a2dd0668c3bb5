// Random programs on random meshes: what the devices compute together is what one device computes, bit by bit, on
// integers, in the interpreter. With --floats: compiled, in f64, and within 1e-9. A case is a seed; a failing one is
// printed whole.
//
//   partition_test --first=1 --count=60            what continuous integration runs
//   partition_test --first=1000 --count=1500
//   partition_test --floats --first=1 --count=300
#include "transforms/shard/partition.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iostream>
#include <random>
#include <string>

#include "driver/executable.h"
#include "ir/builder.h"
#include "ir/error.h"
#include "ir/eval/eval.h"
#include "ir/ops.h"
#include "ir/prims/indexing.h"
#include "ir/text/printer.h"
#include "ir/verify.h"
#include "transforms/opt/pass.h"
#include <CLI/CLI.hpp>

namespace weft {
namespace {

class RandomProgram {
 public:
  RandomProgram(uint64_t seed, DType dtype) : rng_(seed), dtype_(dtype) {}

  Mesh RandomMesh() {
    static const std::vector<std::vector<int64_t>> kShapes = {
        {2}, {3}, {4}, {6}, {12}, {2, 2}, {2, 3}, {3, 2}, {4, 3}, {2, 6}, {2, 2, 2}, {2, 2, 3}, {3, 2, 2}, {2, 1}};
    const char* names[] = {"x", "y", "z"};
    Mesh mesh;
    for (int64_t n : kShapes[Below(kShapes.size())]) mesh.axes.push_back({names[mesh.axes.size()], n});
    return mesh;
  }

  FnRef Program(const Mesh& mesh) {
    mesh_ = &mesh;
    Builder b("f");
    Atoms values;
    const int params = 1 + Below(3);
    for (int i = 0; i < params; ++i) values.push_back(b.Parameter(RandomType(), "p" + std::to_string(i)));
    Grow(b, values, 4 + Below(10), 2);
    Atoms results;
    const int count = 1 + Below(3);
    for (int i = 0; i < count; ++i)
      results.push_back(values[values.size() - 1 - Below(std::min<size_t>(values.size(), 5))]);
    return b.Build(results);
  }

  // What is said of about half of the values.
  OptionalLayouts Layouts(const Mesh& mesh, const Types& types) {
    OptionalLayouts layouts;
    for (const Type& t : types) layouts.push_back(Below(2) ? std::optional(RandomLayout(mesh, t)) : std::nullopt);
    return layouts;
  }

  Tensor Draw(const Type& type) {
    Tensor t(type.dtype, StaticSizes(type.dims, "test"));
    const double unit = floats() ? 1.0 / 7 : 1;
    for (int64_t i = 0; i < t.size(); ++i) t.Set(i, (static_cast<double>(Below(19)) - 9) * unit);
    return t;
  }

 private:
  bool floats() const { return IsFloat(dtype_); }
  Atom Number(double v) const { return Atom::Scalar(dtype_, v); }
  // Floats stay of the size of 1, so that errors do not grow; integers wrap around.
  Atom Bounded(Builder& b, const Atom& x) { return floats() ? Tanh(b, x) : x; }

  size_t Below(size_t n) { return std::uniform_int_distribution<size_t>(0, n - 1)(rng_); }

  Type RandomType() {
    static const int64_t kSizes[] = {12, 12, 12, 6, 24, 4, 3, 1};
    Type t{dtype_, {}, {}};
    const size_t rank = 1 + Below(3);
    for (size_t d = 0; d < rank; ++d) t.dims.push_back(kSizes[Below(d == 2 ? 4 : 8)]);
    if (rank == 3) t.dims[Below(3)] = 2;
    return t;
  }

  Layout RandomLayout(const Mesh& mesh, const Type& t) {
    Layout l = Replicated(t.rank());
    std::vector<int> axes;
    for (size_t a = 0; a < mesh.axes.size(); ++a) axes.push_back(static_cast<int>(a));
    std::shuffle(axes.begin(), axes.end(), rng_);
    for (int a : axes) {
      if (t.rank() == 0 || mesh.axes[a].size == 1 || Below(4) == 0) continue;
      const size_t d = Below(t.dims.size());
      l.dims[d].push_back(a);
      if (t.dims[d].value() % Blocks(mesh, l.dims[d]) != 0) l.dims[d].pop_back();
    }
    return l;
  }

  Atom Any(const Atoms& values) { return values[values.size() - 1 - Below(std::min<size_t>(values.size(), 6))]; }

  // x with the shape of `type`: a reduction, a broadcast, or a reshape of its sum.
  Atom Like(Builder& b, const Atom& x, const Type& type) {
    const Type t = b.TypeOf(x);
    if (t.dims == type.dims) return x;
    if (t.size() == type.size()) return Reshape(b, x, type.dims);
    if (type.rank() > 0 && t.rank() > 0 && t.dims[0] == type.dims[0]) {
      const Atom column = ReduceSum(b, x, Range(1, t.rank()));
      return Broadcast(b, column, type.dims, {0});
    }
    return Broadcast(b, ReduceSum(b, x, Range(0, t.rank())), type.dims, {});
  }

  void Grow(Builder& b, Atoms& values, size_t equations, int depth) {
    for (size_t i = 0; i < equations; ++i) {
      const Atom y = One(b, values, depth);
      const Dim size = b.TypeOf(y).size();
      if (size.value() <= 5000 && size.value() > 0) values.push_back(y);
    }
  }

  Atom One(Builder& b, const Atoms& values, int depth) {
    const Atom x = Any(values);
    const Type t = b.TypeOf(x);
    const int rank = t.rank();
    const Atom two = Number(2);
    if (rank == 0) return Broadcast(b, x, {12, 6}, {});
    const auto d = static_cast<int64_t>(Below(static_cast<size_t>(rank)));
    const int64_t n = t.dims[d].value();
    switch (Below(depth > 0 ? 26 : 22)) {
      case 0: return Add(b, x, Like(b, Any(values), t));
      case 1: return Bounded(b, Mul(b, x, Like(b, Any(values), t)));
      case 2: return Sub(b, Neg(b, x), two);
      case 3: return Max(b, x, Like(b, Any(values), t));
      case 4: {  // rounding must not decide
        const Atom other = floats() ? Iota(b, t.dims, d, dtype_) : Like(b, Any(values), t);
        return Select(b, Gt(b, floats() ? other : x, floats() ? Broadcast(b, Number(2.5), t.dims, {}) : other), x,
                      Mul(b, x, two));
      }
      case 5: {
        Ints perm = Range(0, rank);
        std::shuffle(perm.begin(), perm.end(), rng_);
        return Transpose(b, x, perm);
      }
      case 6: {  // two dimensions become one, or one becomes two
        Dims dims = t.dims;
        if (rank > 1 && Below(2)) {
          const size_t k = Below(static_cast<size_t>(rank) - 1);
          dims[k] = dims[k] * dims[k + 1];
          dims.erase(dims.begin() + static_cast<int64_t>(k) + 1);
        } else if (rank < 3) {
          for (int64_t f : {4, 3, 2}) {
            if (n % f != 0) continue;
            dims[d] = n / f;
            dims.insert(dims.begin() + d + static_cast<int64_t>(Below(2)), f);
            break;
          }
        }
        return Reshape(b, x, dims);
      }
      case 7: return Reduce(b, "reduce_max", x, {d});
      case 8: return Bounded(b, ReduceSum(b, x, {d}));
      case 9: return Reduce(b, "reduce_min", x, Range(0, rank));
      case 10: {
        if (rank == 3) return ReduceSum(b, x, {d});
        Dims dims = t.dims;
        dims.insert(dims.begin() + d, 6);
        return Broadcast(b, x, dims, OtherDims(rank + 1, {d}));
      }
      case 11:
      case 12: {  // a product over what both have
        const Atom y = Any(values);
        const Type u = b.TypeOf(y);
        if (rank == 2 && u.rank() == 2 && t.dims[1] == u.dims[0]) return Bounded(b, Contract(b, "ij,jk->ik", x, y));
        if (rank == 2 && u.rank() == 2 && t.dims[0] == u.dims[0]) return Bounded(b, Contract(b, "ji,jk->ik", x, y));
        if (rank == 2) return Bounded(b, Contract(b, "ij,kj->ik", x, x));
        return Bounded(b, Contract(b, "i,i->", Reshape(b, x, {t.size()}), Reshape(b, Like(b, y, t), {t.size()})));
      }
      case 13: {
        Ints start(static_cast<size_t>(rank), 0), limit, strides(static_cast<size_t>(rank), 1);
        for (const Dim& s : t.dims) limit.push_back(s.value());
        start[d] = static_cast<int64_t>(Below(static_cast<size_t>((n + 1) / 2)));
        strides[d] = 1 + static_cast<int64_t>(Below(2));
        return Slice(b, x, start, limit, strides);
      }
      case 14: return Concatenate(b, {x, Neg(b, x)}, d);
      case 15: return Reverse(b, x, {d});
      case 16: return Bounded(b, b.Emit1(FindPrim("cumsum"), {x}, {{"dim", d}, {"reverse", Below(2) == 1}}));
      case 17: return b.Emit1(FindPrim("sort"), {x}, {{"dim", d}, {"num_keys", int64_t{1}}});
      case 18: return Bounded(b, Add(b, x, Iota(b, t.dims, d, dtype_)));
      case 19: {  // rows by computed numbers, some out of bounds
        const int64_t count = std::min<int64_t>(3, t.size().value());
        const Atom i = floats() ? Mul(b, Iota(b, {count, 1}, 0, DType::kI32), Atom::Scalar(DType::kI32, 5))
                                : Reshape(b, Slice(b, Reshape(b, x, {t.size()}), {0}, {count}, {1}), {count, 1});
        Ints sizes = {1};
        for (int k = 1; k < rank; ++k) sizes.push_back(t.dims[k].value());
        const char* modes[] = {"clip", "fill", "zero"};
        const GatherDims g{Range(1, rank), {0}, {}, {}, {0}, sizes, modes[Below(3)]};
        return b.Emit1(FindPrim("gather"), {x, i}, g.ToAttrs());
      }
      case 20: {  // sums into rows
        const Atom i = floats() ? Mul(b, Iota(b, {t.dims[0], 1}, 0, DType::kI32), Atom::Scalar(DType::kI32, 3))
                                : Reshape(b, ReduceSum(b, x, Range(1, rank)), {t.dims[0], 1});
        const ScatterDims s{Range(1, rank), {0}, {}, {}, {0}, Below(2) ? "clip" : "drop", false};
        return b.Emit1(FindPrim(Below(2) ? "scatter_add" : "scatter_max"),
                       {x, Rem(b, i, Atom::Scalar(DType::kI32, 7)), x}, s.ToAttrs());
      }
      case 21:
        return b.Emit1(
            FindPrim("sharding_constraint"), {x},
            {{"mesh", *mesh_}, {"sharding", Shardings{ShardingOf(*mesh_, RandomLayout(*mesh_, t))}}, {"open", Ints{}}});
      case 22: {  // a branch by a sum of everything
        const Atom p = Gt(b, ReduceSum(b, x, Range(0, rank)), Number(!floats() ? 0 : Below(2) ? 1e9 : -1e9));
        const Atom w = Any(values);
        std::vector<FnRef> branches;
        for (int k = 0; k < 2; ++k) {
          Builder r("branch");
          Atoms inner = {r.Parameter(t), r.Parameter(b.TypeOf(w))};
          Grow(r, inner, 2, 0);
          branches.push_back(r.Build({Like(r, inner.back(), t)}));
        }
        return b.Emit1(FindPrim("cond"), {p, x, w}, {}, branches);
      }
      case 23: {  // a few trips, or fewer
        const Atom w = Any(values);
        Builder c("more"), r("body");
        const Type number{DType::kI32, {}, {}};
        const Atom ck = c.Parameter(number), cx = c.Parameter(t);
        c.Parameter(b.TypeOf(w));
        const Atom small = Lt(c, Reduce(c, "reduce_max", cx, Range(0, rank)), Number(100000));
        const FnRef cond = c.Build({And(c, small, Lt(c, ck, Atom::Scalar(DType::kI32, 3)))});
        const Atom k = r.Parameter(number);
        Atoms inner = {r.Parameter(t), r.Parameter(b.TypeOf(w))};
        Grow(r, inner, 3, 0);
        const FnRef body = r.Build({Add(r, k, Atom::Scalar(DType::kI32, 1)), Like(r, inner.back(), t)});
        return b.Emit(FindPrim("while"), {Atom::Scalar(DType::kI32, 0), x, w}, {{"num_carry", int64_t{2}}},
                      {cond, body})[1];
      }
      default: {  // over the rows of x
        const Atom w = Any(values);
        Type row = t;
        row.dims.erase(row.dims.begin());
        Builder r("body");
        Atoms inner = {r.Parameter(b.TypeOf(w))};
        const Atom carry = r.Parameter(b.TypeOf(w)), slice = r.Parameter(row);
        inner.push_back(carry);
        inner.push_back(Like(r, slice, b.TypeOf(w)));
        Grow(r, inner, 2, 0);
        const FnRef body = r.Build({Like(r, inner.back(), b.TypeOf(w)), inner[inner.size() - 1 - Below(2)]});
        return b.Emit(FindPrim("scan"), {w, w, x},
                      {{"num_consts", int64_t{1}},
                       {"num_carry", int64_t{1}},
                       {"length", Dims{t.dims[0]}},
                       {"reverse", Below(2) == 1}},
                      {body})[Below(2)];
      }
    }
  }

  std::mt19937_64 rng_;
  const DType dtype_;
  const Mesh* mesh_ = nullptr;
};

struct Totals {
  int cases = 0, failed = 0, communications = 0, loops = 0;
};

// Within 1e-9 of the largest element: some programs subtract large numbers from each other, and sums are taken in an
// order that depends on the mesh and the CPU, so that in f32 nothing would remain, and in f64 something does in all but
// one of some thousands.
void CompareFloats(const Tensor& whole, const Tensor& parts, size_t result) {
  double most = 1;
  const auto is_nan = [](std::complex<double> v) { return v != v; };
  for (int64_t i = 0; i < whole.size(); ++i) {
    if (std::isfinite(std::abs(whole.Get(i)))) most = std::max(most, std::abs(whole.Get(i)));
  }
  for (int64_t i = 0; i < whole.size(); ++i) {
    if (whole.Get(i) == parts.Get(i) || (is_nan(whole.Get(i)) && is_nan(parts.Get(i)))) continue;
    if (!(std::abs(whole.Get(i) - parts.Get(i)) <= 1e-9 * most))
      throw ValueError("result ", result, ": ", parts.Get(i).real(), " in place of ", whole.Get(i).real());
  }
}

Tensors RunCompiled(const FnRef& fn, const Tensors& x) {
  CompileRequest options;
  options.use_disk_cache = false;
  return Compile(options.For(fn))->Run(x);
}

void Run(uint64_t seed, bool floats, Totals& totals) {
  RandomProgram random(seed, floats ? DType::kF64 : DType::kI32);
  const Mesh mesh = random.RandomMesh();
  const FnRef fn = random.Program(mesh);
  const PartitionOptions options{mesh, random.Layouts(mesh, fn->ParamTypes()), random.Layouts(mesh, fn->ResultTypes())};
  ++totals.cases;
  std::string text;
  try {
    const Partitioned p = Partition(fn, options);
    text = Print(*p.fn);
    Verify(*p.fn);
    totals.communications += static_cast<int>(p.comms.size());
    for (const Eqn& e : fn->eqns()) totals.loops += !e.regions.empty();
    Tensors x;
    for (const Type& t : fn->ParamTypes()) x.push_back(random.Draw(t));
    const Tensors whole = Eval(*fn, x), parts = floats ? RunCompiled(p.fn, x) : Eval(*p.fn, x);
    for (size_t i = 0; i < whole.size(); ++i) {
      if (floats && whole[i].type() == parts[i].type() && IsInexact(whole[i].dtype())) {
        CompareFloats(whole[i], parts[i], i);
        continue;
      }
      if (!(whole[i].type() == parts[i].type()) ||
          std::memcmp(whole[i].raw(), parts[i].raw(), static_cast<size_t>(whole[i].bytes())) != 0)
        throw ValueError("result ", i, " differs");
    }
  } catch (const std::exception& e) {
    ++totals.failed;
    std::cout << "seed " << seed << " on " << mesh.ToString() << ": " << e.what() << "\n" << Print(*fn) << text << "\n";
  }
}

int Main(int argc, char** argv) {
  uint64_t first = 1, count = 60;
  bool floats = false;
  CLI::App app("Random programs cut over random meshes, against one device");
  // Of an option given twice the last counts: Bazel puts a target's own arguments in front.
  app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  app.add_option("--count", count, "How many programs")->check(CLI::PositiveNumber);
  app.add_option("--first", first, "The first seed")->check(CLI::NonNegativeNumber);
  app.add_flag("--floats", floats, "Compiled programs of floats");
  CLI11_PARSE(app, argc, argv);
  Totals totals;
  for (uint64_t seed = first; seed < first + count; ++seed) Run(seed, floats, totals);
  std::cout << totals.cases << " programs, " << totals.communications << " collectives, " << totals.loops
            << " branches and loops: " << totals.failed << " failed\n";
  // Programs in which nothing moves would prove little.
  return totals.failed == 0 && totals.communications > totals.cases ? 0 : 1;
}

}  // namespace
}  // namespace weft

int main(int argc, char** argv) { return weft::Main(argc, argv); }
