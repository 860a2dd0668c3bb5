// The partitioner: every rule by enumeration, every reshard on a small mesh, the programs people write.
// Oracle: the reference interpreter on whole arrays.
#include "transforms/shard/partition.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <random>
#include <set>

#include "ir/analysis/cost.h"
#include "ir/eval/effects.h"
#include "ir/eval/eval.h"
#include "ir/ops.h"
#include "ir/samples/drawn_tensors.h"
#include "ir/text/parser.h"
#include "ir/text/printer.h"
#include "ir/verify.h"
#include "transforms/ad/grad.h"
#include "transforms/opt/pass.h"

namespace weft {
namespace {

using Kind = ShardingRule::Kind;

double Epsilon(DType t) {
  const int digits = RowOf(t).digits;
  return digits >= 53 ? 1e-12 : digits >= 24 ? 1e-5 : std::ldexp(8, 1 - digits);
}

// Bitwise, but for inexact numbers that were summed in another order.
void ExpectSame(const Tensor& a, const Tensor& b, bool exact, const std::string& what) {
  ASSERT_EQ(a.type(), b.type()) << what;
  if (exact || !IsInexact(a.dtype())) {
    EXPECT_TRUE(a.bytes() == 0 || std::memcmp(a.raw(), b.raw(), static_cast<size_t>(a.bytes())) == 0) << what;
    return;
  }
  for (int64_t i = 0; i < a.size(); ++i) {
    const std::complex<double> x = a.Get(i), y = b.Get(i);
    if (std::isnan(x.real()) && std::isnan(y.real())) continue;
    ASSERT_LE(std::abs(x - y), Epsilon(a.dtype()) * (1 + std::abs(y))) << what << " element " << i;
  }
}

std::map<std::string, int> CollectivesOf(const Fn& fn) {
  std::map<std::string, int> counts;
  std::function<void(const Fn&)> visit = [&](const Fn& f) {
    for (const Eqn& e : f.eqns()) {
      if (e.prim->family == Family::kCollective && e.prim->name != "pvary" && e.prim->name != "axis_index")
        ++counts[e.prim->name];
      for (const FnRef& r : e.regions) visit(*r);
    }
  };
  visit(fn);
  return counts;
}
using Counts = std::map<std::string, int>;

const Fn& BodyOf(const Fn& fn) { return *fn.eqns().at(0).regions.list().at(0); }

// The most bytes that are alive at once.
double PeakBytes(const Fn& fn) {
  std::vector<size_t> last(fn.num_vars(), 0);
  for (size_t k = 0; k < fn.eqns().size(); ++k) {
    for (const Atom& a : fn.eqns()[k].operands) {
      if (a.is_var()) last[a.id()] = k;
    }
  }
  for (const Atom& a : fn.results()) {
    if (a.is_var()) last[a.id()] = fn.eqns().size();
  }
  double live = 0, peak = 0;
  for (uint32_t i = 0; i < fn.params().size(); ++i) live += BytesPerArray(fn.TypeOf(Var{i}));
  for (size_t k = 0; k < fn.eqns().size(); ++k) {
    const Eqn& e = fn.eqns()[k];
    for (uint32_t r = 0; r < e.num_results; ++r) live += BytesPerArray(fn.TypeOf(Var{e.first_result + r}));
    peak = std::max(peak, live);
    for (uint32_t v = 0; v < fn.num_vars(); ++v) {
      const bool made = v < fn.params().size() || v < e.first_result + e.num_results;
      if (made && last[v] == k && k > 0) live -= BytesPerArray(fn.TypeOf(Var{v}));
    }
  }
  return peak;
}

// --- Rules -----------------------------------------------------------------------------------------------------------

TEST(Factors, EveryPrimitiveHasARuleOrAReason) {
  for (const Prim* prim : AllPrims()) {
    const OpShardingRule& rule = OpShardingRuleOf(*prim);
    EXPECT_NE(static_cast<bool>(rule.map), !rule.reason.empty()) << prim->name;
  }
}

int64_t SmallestDivisor(int64_t n) {
  for (int64_t d = 2; d < n; ++d) {
    if (n % d == 0) return d;
  }
  return n;
}

// The operation with one factor cut, results put together as the factor's kind says.
FnRef ByRule(const Prim& prim, const Sample& s, const Fn& fn, const ShardingRule& map, const Mesh& mesh,
             const std::vector<std::vector<int>>& cuts, const PartitionOptions& layouts) {
  Builder body(prim.name);
  Atoms x;
  Shardings in, out;
  for (size_t i = 0; i < s.operands.size(); ++i) {
    x.push_back(body.Parameter(LocalTypeOf(mesh, *layouts.params[i], s.operands[i])));
    in.push_back(ShardingOf(mesh, *layouts.params[i]));
  }
  Kind kind = Kind::kPass;
  std::vector<Strings> axes;
  Types results;
  for (size_t f = 0; f < cuts.size(); ++f) {
    axes.push_back(cuts[f].empty() ? Strings{} : Strings{"d"});
    if (!cuts[f].empty()) kind = map.factors[f].kind;
  }
  for (size_t i = 0; i < fn.results().size(); ++i)
    results.push_back(LocalTypeOf(mesh, *layouts.results[i], fn.TypeOf(fn.results()[i])));
  Atoms y = EmitLocal({body, fn.eqns()[0], x, s.operands, results, map, mesh, axes});
  for (size_t i = 0; i < y.size(); ++i) {
    Sharding to = ShardingOf(mesh, *layouts.results[i]);
    if (kind == Kind::kSum && prim.name != "dim_size") {
      to.partial = {"d"};
    } else if (kind == Kind::kAgain || (kind != Kind::kPass && kind != Kind::kSum && IsBool(body.DTypeOf(y[i])))) {
      y[i] = body.Emit1(prim, {GatherStacked(body, y[i], mesh, {"d"})}, {{"dims", Ints{0}}});
    } else if (kind == Kind::kMax || kind == Kind::kMin) {
      y[i] = body.Emit1(FindPrim(kind == Kind::kMax ? "pmax" : "pmin"), {y[i]}, {{"axes", Strings{"d"}}});
    }
    y[i] = Pvary(body, y[i], UnionOfAxes(to.Axes(), to.partial));
    out.push_back(to);
  }
  Builder b(prim.name);
  Atoms whole;
  for (const Type& t : s.operands) whole.push_back(b.Parameter(t));
  return b.Build(
      b.Emit(FindPrim("spmd"), whole, {{"mesh", mesh}, {"in_shardings", in}, {"out_shardings", out}}, {body.Build(y)}));
}

// For every sample of every primitive and every one of its factors: cut it, run the devices, put the results together.
TEST(Factors, Enumeration) {
  std::mt19937 rng(1);
  std::set<std::string> cut;
  int ran = 0;
  for (const Prim* prim : AllPrims()) {
    const OpShardingRule& rule = OpShardingRuleOf(*prim);
    if (!rule.map) continue;
    for (const Sample& s : prim->samples()) {
      bool is_static = true;
      for (const Type& t : s.operands) is_static &= t.is_static();
      if (!is_static) continue;
      Builder b(prim->name);
      Atoms operands;
      for (const Type& t : s.operands) operands.push_back(b.Parameter(t));
      const FnRef fn = b.Build(b.Emit(*prim, operands, s.attrs, s.regions));
      if (fn->eqns().empty()) continue;
      Tensors x;
      for (const Type& t : s.operands) x.push_back(Draw(t, s.low, s.high, rng));
      for (const auto& [i, value] : s.values) x[i] = value;
      const Tensors whole = Eval(*fn, x);
      const ShardingRule map =
          rule.map(Sig{*prim, s.operands, Mask(s.operands.size()), s.attrs, s.regions}, fn->ResultTypes());
      for (size_t f = 0; f < map.factors.size(); ++f) {
        if (map.factors[f].size <= 1) continue;
        const int64_t n = SmallestDivisor(map.factors[f].size);
        const Mesh mesh{{{"one", 1}, {"d", n}}};
        std::vector<std::vector<int>> cuts(map.factors.size());
        cuts[f] = {1};
        PartitionOptions options{mesh, {}, {}};
        bool possible = true;
        for (const auto& t : map.operands) {
          options.params.push_back(LayoutOfCuts(mesh, map, t, cuts));
          possible &= options.params.back().has_value();
        }
        for (const auto& t : map.results) {
          options.results.push_back(LayoutOfCuts(mesh, map, t, cuts));
          possible &= options.results.back().has_value();
        }
        if (!possible) continue;
        const Partitioned p = Partition(fn, options);
        const std::string what = prim->name + " factor " + std::to_string(f) + "\n" + Print(*fn) + Print(*p.fn);
        SCOPED_TRACE(what);
        Verify(*p.fn);
        const Tensors parts = Eval(*p.fn, x);
        const Kind kind = map.factors[f].kind;
        // A device's part may have size 1, without which its neighbours are summed as one dimension.
        const bool exact = kind == Kind::kPass && !prim->in_order;
        for (size_t i = 0; i < whole.size(); ++i) ExpectSame(parts[i], whole[i], exact, what);
        // Where every result is cut nothing is sent.
        if (kind == Kind::kPass) {
          EXPECT_EQ(CollectivesOf(*p.fn), Counts()) << what;
        }
        // The rule alone, whatever would be cheaper.
        const FnRef forced = ByRule(*prim, s, *fn, map, mesh, cuts, options);
        Verify(*forced);
        const Tensors by_rule = Eval(*forced, x);
        for (size_t i = 0; i < whole.size(); ++i) ExpectSame(by_rule[i], whole[i], exact, what + Print(*forced));
        // And each device does its part of the work alone.
        if (kind == Kind::kPass && !rule.emit && prim->family != Family::kSorting && prim->name != "triangular_solve" &&
            whole[0].size() > 0) {
          const Fn& body = BodyOf(*p.fn);
          for (const Eqn& e : body.eqns()) {
            if (e.prim != prim) continue;
            EXPECT_LE(CostOf(body, e).flops, CostOf(*fn, fn->eqns()[0]).flops / static_cast<double>(n) + 1e-9) << what;
          }
        }
        cut.insert(prim->name);
        ++ran;
      }
    }
  }
  EXPECT_GE(ran, 700);
  // Samples of these hold nothing that can be cut.
  const std::set<std::string> never = {};
  for (const Prim* prim : AllPrims()) {
    if (OpShardingRuleOf(*prim).map) {
      EXPECT_EQ(cut.count(prim->name), never.count(prim->name) ? 0u : 1u) << prim->name;
    }
  }
}

// --- Resharding ------------------------------------------------------------------------------------------------------

void AllLayouts(int axes, int rank, int next, Layout& l, std::vector<Layout>& out) {
  if (next == axes) {
    out.push_back(l);
    return;
  }
  AllLayouts(axes, rank, next + 1, l, out);
  for (int d = 0; d < rank; ++d) {
    for (size_t at = 0; at <= l.dims[d].size(); ++at) {
      l.dims[d].insert(l.dims[d].begin() + static_cast<int64_t>(at), next);
      AllLayouts(axes, rank, next + 1, l, out);
      l.dims[d].erase(l.dims[d].begin() + static_cast<int64_t>(at));
    }
  }
}

FnRef MoveFn(Resharder& r, const Type& type, const Layout& from, const Layout& to) {
  const Mesh& mesh = r.mesh();
  Builder body("move");
  Atom x = body.Parameter(LocalTypeOf(mesh, from, type));
  x = r.Emit(body, x, r.Plan(type, from, to), nullptr);
  x = Pvary(body, x, AxisNames(mesh, to.Axes()));
  Builder b("f");
  const Shardings in = {ShardingOf(mesh, from)}, out = {ShardingOf(mesh, to)};
  return b.Build(b.Emit(FindPrim("spmd"), {b.Parameter(type)},
                        {{"mesh", mesh}, {"in_shardings", in}, {"out_shardings", out}}, {body.Build({x})}));
}

// Every pair of layouts of an array of rank 3 on a mesh of three axes.
TEST(Reshard, EveryPair) {
  Resharder r(Mesh{{{"x", 2}, {"y", 2}, {"z", 2}}});
  const Type type{DType::kI32, {8, 8, 8}, {}};
  Tensor x(DType::kI32, {8, 8, 8});
  for (int64_t i = 0; i < x.size(); ++i) x.Set(i, static_cast<double>(i));
  Layout none = Replicated(3);
  std::vector<Layout> layouts;
  AllLayouts(3, 3, 0, none, layouts);
  EXPECT_EQ(layouts.size(), 106u);
  for (const Layout& from : layouts) {
    for (const Layout& to : layouts) {
      const FnRef f = MoveFn(r, type, from, to);
      ExpectSame(Eval(*f, {x})[0], x, true, Print(*f));
      if (HasFailure()) return;
    }
  }
}

// Parts of sums: on every subset of axes, to every layout.
TEST(Reshard, Sums) {
  Resharder r(Mesh{{{"x", 2}, {"y", 3}}});
  const Type type{DType::kI32, {6, 12}, {}};
  Layout none = Replicated(2);
  std::vector<Layout> layouts;
  AllLayouts(2, 2, 0, none, layouts);
  for (const Layout& from : layouts) {
    for (uint32_t partial = 1; partial < 4; ++partial) {
      if (from.Cuts() & partial) continue;
      for (const Layout& to : layouts) {
        Layout parts = from;
        parts.partial = partial;
        // Device k adds (1 + its number) times x: 1 + 2, or 1 + 2 + 3 times x over an axis.
        Builder body("move");
        Atom a = body.Parameter(LocalTypeOf(r.mesh(), from, type));
        double factor = 1;
        for (const std::string& axis : AxisNames(r.mesh(), partial)) {
          const Atom at = body.Emit1(FindPrim("axis_index"), {}, {{"axes", Strings{axis}}, {"varying", true}});
          a = Mul(body, a, Broadcast(body, Add(body, at, Atom::Scalar(DType::kI32, 1)), body.TypeOf(a).dims, {}));
          factor *= axis == "x" ? 3 : 6;
        }
        a = r.Emit(body, a, r.Plan(type, parts, to), nullptr);
        a = Pvary(body, a, AxisNames(r.mesh(), to.Axes()));
        Builder b("f");
        const FnRef f = b.Build(b.Emit(FindPrim("spmd"), {b.Parameter(type)},
                                       {{"mesh", r.mesh()},
                                        {"in_shardings", Shardings{ShardingOf(r.mesh(), from)}},
                                        {"out_shardings", Shardings{ShardingOf(r.mesh(), to)}}},
                                       {body.Build({a})}));
        Tensor x(DType::kI32, {6, 12}), expected(DType::kI32, {6, 12});
        for (int64_t i = 0; i < x.size(); ++i)
          x.Set(i, static_cast<double>(i)), expected.Set(i, static_cast<double>(i) * factor);
        ExpectSame(Eval(*f, {x})[0], expected, true, Print(*f));
        if (HasFailure()) return;
      }
    }
  }
}

// A pair for which gathering and cutting again sends 5.6 times as much: two all-to-alls.
TEST(Reshard, NoDetourOverTheWholeArray) {
  Resharder r(Mesh{{{"x", 4}, {"y", 2}}});
  const ReshardPlan plan =
      r.Plan({DType::kF32, {16, 16, 16}, {}}, Layout{{{1}, {}, {0}}, 0}, Layout{{{}, {0, 1}, {}}, 0});
  ASSERT_EQ(plan.steps.size(), 2u);
  for (const ReshardStep& s : plan.steps) EXPECT_EQ(s.kind, ReshardStep::Kind::kAllToAll);
  EXPECT_EQ(plan.bytes, 2560);
}

// --- Programs --------------------------------------------------------------------------------------------------------

struct Case {
  FnRef fn;
  Partitioned p;
};

Case Cut(const std::string& text, const Mesh& mesh, const Shardings& in, const std::vector<bool>& said = {}) {
  Case c;
  c.fn = ParseFn(text);
  PartitionOptions options{mesh, {}, {}};
  for (size_t i = 0; i < in.size(); ++i)
    options.params.push_back(said.empty() || said[i] ? std::optional(LayoutOf(mesh, in[i])) : std::nullopt);
  c.p = Partition(c.fn, options);
  Verify(*c.p.fn);
  return c;
}

void ExpectMeaning(const Case& c, std::mt19937& rng, double low = -2, double high = 2) {
  const Tensors x = DrawArguments(*c.fn, rng, low, high);
  const Tensors a = Eval(*c.p.fn, x), b = Eval(*c.fn, x);
  for (size_t i = 0; i < a.size(); ++i) ExpectSame(a[i], b[i], false, Print(*c.p.fn));
}

const char* const kMlp = R"(
fn mlp(w: f64[16,64], v: f64[64,16], x: f64[8,16], t: f64[8,16]) -> (f64[]) {
  h: f64[8,64] = contract[spec="bi,ij->bj"] x w
  g: f64[8,64] = tanh h
  y: f64[8,16] = contract[spec="bj,jk->bk"] g v
  d: f64[8,16] = sub y t
  e: f64[8,16] = square d
  s: f64[] = reduce_sum[dims=[0,1]] e
  m: f64[] = div s 128.0:f64
  return m
})";

// Data parallel: the weights are the same everywhere, the batch is cut: the loss and each gradient are one sum.
TEST(Partition, DataParallel) {
  std::mt19937 rng(2);
  const Mesh mesh{{{"data", 4}}};
  const FnRef grad = Grad(ParseFn(kMlp), {.wrt = {true, true, false, false}, .value = true});
  const Sharding whole{{{}, {}}, {}}, rows{{{"data"}, {}}, {}};
  const Case c = Cut(Print(*grad), mesh, {whole, whole, rows, rows});
  EXPECT_EQ(CollectivesOf(*c.p.fn), (Counts{{"psum", 3}})) << Print(*c.p.fn);
  ExpectMeaning(c, rng);
  // Each device does a quarter of the work, and holds the weights, their gradients and a quarter of the rest.
  const FnRef one = Optimize(grad);
  EXPECT_LE(CostOf(BodyOf(*c.p.fn)).flops, CostOf(*one).flops / 4 * 1.02 + 2 * 16 * 64);  // and the sums
  const double weights = 2 * 16 * 64 * 8;
  EXPECT_LE(PeakBytes(BodyOf(*c.p.fn)), 2 * weights + (PeakBytes(*one) - weights) / 4 + 4096);
}

// Tensor parallel: the first matrix cut by columns, the second by rows: one all-reduce forward, one backward.
TEST(Partition, TensorParallelMlp) {
  std::mt19937 rng(3);
  const Mesh mesh{{{"model", 4}}};
  const char* forward = R"(
fn mlp(w: f64[16,64], v: f64[64,16], x: f64[8,16]) -> (f64[8,16]) {
  h: f64[8,64] = contract[spec="bi,ij->bj"] x w
  g: f64[8,64] = tanh h
  y: f64[8,16] = contract[spec="bj,jk->bk"] g v
  return y
})";
  const Sharding columns{{{}, {"model"}}, {}}, rows{{{"model"}, {}}, {}}, whole{{{}, {}}, {}};
  const Case c = Cut(forward, mesh, {columns, rows, whole});
  EXPECT_EQ(CollectivesOf(*c.p.fn), (Counts{{"psum", 1}})) << Print(*c.p.fn);
  ExpectMeaning(c, rng);
  EXPECT_LE(CostOf(BodyOf(*c.p.fn)).flops, CostOf(*c.fn).flops / 4 * 1.02);
  EXPECT_LE(PeakBytes(BodyOf(*c.p.fn)), PeakBytes(*c.fn) / 2);
  // Of the second matrix alone nothing need be said.
  const Case open = Cut(forward, mesh, {columns, rows, whole}, {true, false, true});
  EXPECT_EQ(open.p.params[1], LayoutOf(mesh, rows));
  // With the gradients of everything: one more, of the cotangent of x.
  const FnRef grad = Grad(ParseFn(kMlp), {.wrt = {true, true, true, false}, .value = false});
  const Case back = Cut(Print(*grad), mesh, {columns, rows, whole, whole});
  EXPECT_EQ(CollectivesOf(*back.p.fn), (Counts{{"psum", 2}})) << Print(*back.p.fn);
  ExpectMeaning(back, rng);
}

// A sum in parts comes and goes side by side: nothing is sent, however often it is used.
TEST(Partition, SumsInParts) {
  std::mt19937 rng(5);
  const Mesh mesh{{{"x", 2}, {"y", 2}}};
  const FnRef fn = ParseFn(R"(
fn f(w: f64[4,8], v: f64[8,6], s: f64[4,6]) -> (f64[6,4]) {
  p: f64[4,6] = contract[spec="ij,jk->ik"] w v
  q: f64[4,6] = add p s
  r: f64[4,6] = add q q
  t: f64[6,4] = transpose[perm=[1,0]] r
  return t
})");
  const Sharding both{{{"x"}, {"y"}}, {}}, rows{{{"y"}, {}}, {}}, sums{{{"x"}, {}}, {}}, turned{{{}, {"x"}}, {}};
  PartitionOptions options{mesh, {}, {LayoutOf(mesh, turned)}};
  for (const Sharding& s : {both, rows, sums}) options.params.push_back(LayoutOf(mesh, s));
  options.params_in_parts = {0, 0, AxisBit(1)};
  options.results_in_parts = {AxisBit(1)};
  const Partitioned p = Partition(fn, options);
  Verify(*p.fn);
  EXPECT_EQ(CollectivesOf(*p.fn), Counts{}) << Print(*p.fn);
  EXPECT_EQ(p.fn->params()[2].type.ToString(), "f64[2,4,6]");
  EXPECT_EQ(p.fn->ResultTypes()[0].ToString(), "f64[2,6,4]");
  Tensors x = DrawArguments(*p.fn, rng, -2, 2);
  const Tensor parts = Eval(*p.fn, x)[0];
  const auto sum_of_two = [](const Tensor& both, Shape shape) {
    Tensor sum(DType::kF64, std::move(shape));
    for (int64_t i = 0; i < sum.size(); ++i)
      sum.data<double>()[i] = both.at<double>(i) + both.at<double>(sum.size() + i);
    return sum;
  };
  x[2] = sum_of_two(x[2], {4, 6});
  ExpectSame(sum_of_two(parts, {6, 4}), Eval(*fn, x)[0], false, Print(*p.fn));
}

// A table cut by rows: each device finds its own rows, and the sum of what they found is one all-reduce. The gradient
// of the table is cut like the table, and nothing is sent for it.
TEST(Partition, EmbeddingCutByRows) {
  std::mt19937 rng(4);
  const Mesh mesh{{{"rows", 4}}};
  for (const char* mode : {"clip", "fill", "zero"}) {
    const std::string text =
        std::string(R"(
fn embed(table: f64[32,6], i: i32[10,1]) -> (f64[10,6]) {
  y: f64[10,6] = gather[collapsed_dims=[0], indices_batch_dims=[], mode=")") +
        mode + R"(", offset_dims=[1], operand_batch_dims=[], slice_sizes=[1,6], start_index_map=[0]] table i
  return y
})";
    const Sharding rows{{{"rows"}, {}}, {}}, whole{{{}, {}}, {}};
    const Case c = Cut(text, mesh, {rows, whole});
    EXPECT_EQ(CollectivesOf(*c.p.fn), (Counts{{"psum", 1}})) << Print(*c.p.fn);
    ExpectMeaning(c, rng, -4, 40);
    EXPECT_LE(PeakBytes(BodyOf(*c.p.fn)), 32 * 6 * 8 / 4 + 6 * 10 * 6 * 8);
  }
  const FnRef f = ParseFn(R"(
fn loss(table: f64[32,6], i: i32[10,1]) -> (f64[]) {
  y: f64[10,6] = gather[collapsed_dims=[0], indices_batch_dims=[], mode="clip", offset_dims=[1], operand_batch_dims=[], slice_sizes=[1,6], start_index_map=[0]] table i
  e: f64[10,6] = square y
  s: f64[] = reduce_sum[dims=[0,1]] e
  return s
})");
  const FnRef grad = Grad(f, {.wrt = {true, false}, .value = false});
  Builder b("step");
  const Atom table = b.Parameter(f->params()[0].type, "table"), i = b.Parameter(f->params()[1].type, "i");
  const Atom d = b.Inline(*grad, Atoms{table, i})[0];
  const FnRef step = b.Build({Sub(b, table, Mul(b, d, Atom::Scalar(DType::kF64, 0.1)))});
  const Case c = Cut(Print(*step), mesh, {{{{"rows"}, {}}, {}}, {{{}, {}}, {}}});
  EXPECT_EQ(CollectivesOf(*c.p.fn), (Counts{{"psum", 1}})) << Print(*c.p.fn);
  EXPECT_EQ(c.p.results[0], LayoutOf(mesh, {{{"rows"}, {}}, {}}));
  EXPECT_LE(PeakBytes(BodyOf(*c.p.fn)), 4 * 32 * 6 * 8 / 4 + 6 * 10 * 6 * 8);
  ExpectMeaning(c, rng, -4, 40);
}

TEST(Partition, ControlFlow) {
  std::mt19937 rng(5);
  const Mesh mesh{{{"x", 2}, {"y", 3}}};
  const Case c = Cut(R"(
fn f(a: f64[6,6], w: f64[6,6]) -> (f64[6,6], f64[], f64[5,6,6]) {
  s: f64[] = reduce_sum[dims=[0,1]] a
  p: bool[] = gt s 0.0:f64
  b: f64[6,6] = cond p a w (a: f64[6,6], w: f64[6,6]) -> (f64[6,6]) {
    c: f64[6,6] = contract[spec="ij,jk->ik"] a w
    return c
  } (a: f64[6,6], w: f64[6,6]) -> (f64[6,6]) {
    c: f64[6,6] = sin a
    return c
  }
  n: i32[], u: f64[6,6] = while[num_carry=2] 0:i32 b w (n: i32[], u: f64[6,6], w: f64[6,6]) -> (bool[]) {
    t: f64[] = reduce_max[dims=[0,1]] u
    q: bool[] = lt t 1000.0:f64
    r: bool[] = lt n 4:i32
    z: bool[] = and q r
    return z
  } (n: i32[], u: f64[6,6], w: f64[6,6]) -> (i32[], f64[6,6]) {
    v: f64[6,6] = contract[spec="ij,jk->ik"] u w
    m: i32[] = add n 1:i32
    return m, v
  }
  l: f64[6,6], ys: f64[5,6,6] = scan[length=<5>, num_carry=1, num_consts=1, reverse=false] w u (w: f64[6,6], u: f64[6,6]) -> (f64[6,6], f64[6,6]) {
    t: f64[6,6] = contract[spec="ij,jk->ik"] u w
    v: f64[6,6] = tanh t
    return v, v
  }
  k: f64[] = reduce_sum[dims=[0,1]] l
  return u, k, ys
})",
                     mesh, {{{{"x"}, {"y"}}, {}}, {{{}, {"y"}}, {}}});
  for (int i = 0; i < 4; ++i) ExpectMeaning(c, rng);
}

// Functions that stay calls are cut as what is around them, once for all calls, at any depth.
TEST(Partition, CallsAreCut) {
  std::mt19937 rng(6);
  const Mesh mesh{{{"x", 2}, {"y", 3}}};
  const auto inner = [](const std::string& operand) {
    return "call[out_of_line=true] " + operand + R"( w (a: f64[6,6], w: f64[6,6]) -> (f64[6,6], f64[6]) {
    c: f64[6,6] = contract[spec="ij,jk->ik"] a w
    d: f64[6,6] = tanh c
    e: f64[6] = reduce_sum[dims=[0]] d
    return d, e
  })";
  };
  const Case c = Cut(R"(
fn f(a: f64[6,6], w: f64[6,6]) -> (f64[6,6], f64[6], f64[6], f64[4,6]) {
  b: f64[6,6], e: f64[6] = )" +
                         inner("a") + R"(
  u: f64[6,6], g: f64[6] = call[out_of_line=true] b w (b: f64[6,6], w: f64[6,6]) -> (f64[6,6], f64[6]) {
    i: f64[6,6], k: f64[6] = )" +
                         inner("b") + R"(
    j: f64[6,6], h: f64[6] = )" +
                         inner("i") + R"(
    m: f64[6] = add k h
    return j, m
  }
  l: f64[6,6], ys: f64[4,6] = scan[length=<4>, num_carry=1, num_consts=1, reverse=false] w u (w: f64[6,6], a: f64[6,6]) -> (f64[6,6], f64[6]) {
    v: f64[6,6], h: f64[6] = )" +
                         inner("a") + R"(
    return v, h
  }
  return l, e, g, ys
})",
                     mesh, {{{{"x"}, {}}, {}}, {{{}, {}}, {}}});
  EXPECT_EQ(c.p.results[0], (Layout{{{0}, {}}, 0})) << Print(*c.p.fn);
  // Rows stay where they are; what moves is the sum over rows of the function, each time it is called: once at first,
  // twice from the one around it, and in each of four trips.
  ASSERT_EQ(c.p.comms.size(), 1u) << Print(*c.p.fn);
  EXPECT_EQ(c.p.comms[0].prim, "psum");
  EXPECT_EQ(c.p.comms[0].times, 7);
  for (int i = 0; i < 4; ++i) ExpectMeaning(c, rng);
}

// A function that calls the next one twice, and so on: it takes no longer than there are functions.
TEST(Partition, CallsOfCallsAreCutOnce) {
  FnRef fn = ParseFn("fn f(a: f64[8]) -> (f64[8]) {\n  b: f64[8] = sin a\n  return b\n}");
  const Prim& call = FindPrim("call");
  for (int i = 0; i < 40; ++i) {
    Builder b("f");
    Atom x = b.Parameter(Type{DType::kF64, {8}, {}}, "a");
    for (int k = 0; k < 2; ++k) x = b.Emit(call, {x}, {{"out_of_line", true}}, {fn})[0];
    fn = b.Build({Neg(b, x)});
  }
  const Mesh mesh{{{"x", 4}}};
  const Partitioned p = Partition(fn, {mesh, {Layout{{{0}}, 0}}, {}});  // 2^40 calls
  EXPECT_EQ(p.results[0], (Layout{{{0}}, 0}));
}

// Sums stay in parts through what is linear, and become one all-reduce, or a scatter where the result is cut anyway.
TEST(Partition, SumsStayInParts) {
  std::mt19937 rng(6);
  const Mesh mesh{{{"x", 4}}};
  const char* text = R"(
fn f(a: f64[8,8], b: f64[8,8], c: f64[8,8], d: f64[8,8]) -> (f64[8,8]) {
  p: f64[8,8] = contract[spec="ij,jk->ik"] a b
  q: f64[8,8] = contract[spec="ij,jk->ik"] c d
  r: f64[8,8] = add p q
  s: f64[8,8] = mul r 3.0:f64
  t: f64[8,8] = transpose[perm=[1,0]] s
  return t
})";
  const Sharding columns{{{}, {"x"}}, {}}, rows{{{"x"}, {}}, {}};
  const Case c = Cut(text, mesh, {columns, rows, columns, rows});
  EXPECT_EQ(CollectivesOf(*c.p.fn), (Counts{{"psum", 1}})) << Print(*c.p.fn);
  ExpectMeaning(c, rng);
  PartitionOptions options{mesh, {}, {LayoutOf(mesh, rows)}};
  for (const Sharding& s : {columns, rows, columns, rows}) options.params.push_back(LayoutOf(mesh, s));
  const Partitioned p = Partition(c.fn, options);
  EXPECT_EQ(CollectivesOf(*p.fn), (Counts{{"psum_scatter", 1}})) << Print(*p.fn);
}

// What becomes of three programs, word for word.
struct Golden {
  const char *name, *program, *partitioned;
  Shardings in;
};

TEST(Partition, Golden) {
  const Mesh mesh{{{"d", 4}}};
  const std::vector<Golden> goldens = {
      {"DataParallelStep",
       R"(
fn step(w: f64[16,4], x: f64[64,16], t: f64[64,4]) -> (f64[16,4]) {
  y: f64[64,4] = contract[spec="bi,ij->bj"] x w
  d: f64[64,4] = sub y t
  g: f64[16,4] = contract[spec="bi,bj->ij"] x d
  s: f64[16,4] = mul g 0.01:f64
  v: f64[16,4] = sub w s
  return v
})",
       R"(fn step(w: f64[16,4], x: f64[64,16], t: f64[64,4]) -> (f64[16,4]) {
  a: f64[16,4] = spmd[in_shardings=shardings((-,-),(d,-),(d,-)), mesh=mesh(d=4), out_shardings=shardings((-,-))] w x t (w: f64[16,4], x: f64[16,16]{d}, t: f64[16,4]{d}) -> (f64[16,4]) {
    a: f64[16,4]{d} = contract[spec="bi,ij->bj"] x w
    b: f64[16,4]{d} = sub a t
    c: f64[16,4]{d} = contract[spec="bi,bj->ij"] x b
    d: f64[16,4]{d} = mul c 0.01:f64
    e: f64[16,4] = psum[axes=["d"]] d
    f: f64[16,4] = sub w e
    return f
  }
  return a
}
)",
       {{{{}, {}}, {}}, {{{"d"}, {}}, {}}, {{{"d"}, {}}, {}}}},
      {"TensorParallelForward",
       R"(
fn mlp(w: f64[16,64], v: f64[64,16], x: f64[8,16]) -> (f64[8,16]) {
  h: f64[8,64] = contract[spec="bi,ij->bj"] x w
  g: f64[8,64] = tanh h
  y: f64[8,16] = contract[spec="bj,jk->bk"] g v
  return y
})",
       R"(fn mlp(w: f64[16,64], v: f64[64,16], x: f64[8,16]) -> (f64[8,16]) {
  a: f64[8,16] = spmd[in_shardings=shardings((-,d),(d,-),(-,-)), mesh=mesh(d=4), out_shardings=shardings((-,-))] w v x (w: f64[16,16]{d}, v: f64[16,16]{d}, x: f64[8,16]) -> (f64[8,16]) {
    a: f64[8,16]{d} = contract[spec="bi,ij->bj"] x w
    b: f64[8,16]{d} = tanh a
    c: f64[8,16]{d} = contract[spec="bj,jk->bk"] b v
    d: f64[8,16] = psum[axes=["d"]] c
    return d
  }
  return a
}
)",
       {{{{}, {"d"}}, {}}, {{{"d"}, {}}, {}}, {{{}, {}}, {}}}},
      {"EmbeddingLookup",
       R"(
fn embed(table: f64[32,6], i: i32[10,1]) -> (f64[10,6]) {
  y: f64[10,6] = gather[collapsed_dims=[0], indices_batch_dims=[], mode="clip", offset_dims=[1], operand_batch_dims=[], slice_sizes=[1,6], start_index_map=[0]] table i
  return y
})",
       R"(fn embed(table: f64[32,6], i: i32[10,1]) -> (f64[10,6]) {
  a: f64[10,6] = spmd[in_shardings=shardings((d,-),(-,-)), mesh=mesh(d=4), out_shardings=shardings((-,-))] table i (table: f64[8,6]{d}, i: i32[10,1]) -> (f64[10,6]) {
    a: i32[]{d} = axis_index[axes=["d"], varying=true]
    b: i32[]{d} = mul a 8:i32
    c: i32[1]{d} = reshape[shape=<1>] b
    d: i32[10,1] = broadcast[dims=[1], shape=<10,1>] [31]:i32[1]
    e: i32[10,1] = broadcast[dims=[], shape=<10,1>] 0:i32
    f: i32[10,1] = max i e
    g: i32[10,1] = min f d
    h: i32[10,1]{d} = broadcast[dims=[1], shape=<10,1>] c
    j: i32[10,1]{d} = sub g h
    k: f64[10,6]{d} = gather[collapsed_dims=[0], indices_batch_dims=[], mode="zero", offset_dims=[1], operand_batch_dims=[], slice_sizes=[1,6], start_index_map=[0]] table j
    l: i32[10,1]{d} = slice[limit=[10,1], start=[0,0], strides=[1,1]] j
    m: i32[10]{d} = reshape[shape=<10>] l
    n: i64[10]{d} = convert[dtype=i64] m
    o: bool[10]{d} = gt n 7:i64
    p: bool[10]{d} = lt n 0:i64
    q: bool[10]{d} = or p o
    r: f64[10,6] = broadcast[dims=[], shape=<10,6>] -0.0:f64
    s: bool[10,6]{d} = broadcast[dims=[0], shape=<10,6>] q
    t: f64[10,6]{d} = select s r k
    u: f64[10,6] = psum[axes=["d"]] t
    return u
  }
  return a
}
)",
       {{{{"d"}, {}}, {}}, {{{}, {}}, {}}}},
  };
  for (const Golden& g : goldens) EXPECT_EQ(Print(*Cut(g.program, mesh, g.in).p.fn), g.partitioned) << g.name;
}

// A product of two sums is no sum of products: they are added first.
TEST(Partition, ProductsOfSums) {
  std::mt19937 rng(8);
  const Mesh mesh{{{"x", 2}, {"y", 2}}};
  const char* text = R"(
fn f(a: f64[8,8], b: f64[8,8], c: f64[8,8], d: f64[8,8]) -> (f64[8,8], f64[8,8]) {
  p: f64[8,8] = contract[spec="ij,jk->ik"] a b
  q: f64[8,8] = contract[spec="ij,jk->ik"] c d
  r: f64[8,8] = mul p q
  u: f64[8,8] = contract[spec="ij,jk->ik"] a d
  v: f64[8,8] = contract[spec="ij,jk->ik"] c b
  w: f64[8,8] = contract[spec="ij,jk->ik"] u v
  return r, w
})";
  const Sharding x_columns{{{}, {"x"}}, {}}, x_rows{{{"x"}, {}}, {}}, y_columns{{{}, {"y"}}, {}},
      y_rows{{{"y"}, {}}, {}};
  ExpectMeaning(Cut(text, mesh, {x_columns, x_rows, x_columns, x_rows}), rng);
  ExpectMeaning(Cut(text, mesh, {x_columns, x_rows, y_columns, y_rows}), rng);
}

// take_along_axis counts along the dimension that is cut: no device needs another one's rows.
TEST(Partition, IndicesThatCountAreABatch) {
  std::mt19937 rng(9);
  const char* text = R"(
fn f(s: f64[8,10], l: i32[8]) -> (f64[8,1], f64[8,10]) {
  b: i32[8,1] = iota[dim=0, dtype=i32, shape=<8,1>]
  c: i32[8,1] = add b 8:i32
  d: bool[8,1] = lt b 0:i32
  e: i32[8,1] = select d c b
  f: i32[8,1,1] = reshape[shape=<8,1,1>] e
  j: i32[8,1,1] = reshape[shape=<8,1,1>] l
  k: i32[8,1,2] = concatenate[dim=2] f j
  m: f64[8,1] = gather[collapsed_dims=[0,1], indices_batch_dims=[], mode="clip", offset_dims=[], operand_batch_dims=[], slice_sizes=[1,1], start_index_map=[0,1]] s k
  n: f64[8,10] = scatter_add[indices_batch_dims=[], inserted_dims=[0,1], mode="clip", operand_batch_dims=[], scatter_dims=[0,1], unique=false, update_window_dims=[]] s k m
  return m, n
})";
  const Case c = Cut(text, Mesh{{{"x", 4}}}, {{{{"x"}, {}}, {}}, {{{"x"}}, {}}});
  EXPECT_EQ(CollectivesOf(*c.p.fn), Counts()) << Print(*c.p.fn);
  ExpectMeaning(c, rng, -3, 13);
}

TEST(Partition, ConstraintsAreKept) {
  const Mesh mesh{{{"x", 2}, {"y", 2}}};
  const Case c = Cut(R"(
fn f(a: f64[4,4]) -> (f64[4,4]) {
  b: f64[4,4] = sin a
  d: f64[4,4] = sharding_constraint[mesh=mesh(x=2,y=2), open=[], sharding=shardings((-,y))] b
  return d
})",
                     mesh, {{{{"x"}, {}}, {}}});
  EXPECT_EQ(c.p.results[0], (Layout{{{}, {1}}, 0}));
  std::mt19937 rng(7);
  ExpectMeaning(c, rng);
  ASSERT_EQ(c.p.comms.size(), 1u);
  EXPECT_EQ(c.p.comms[0].prim, "all_gather");
  // As it stands, or cut the other way, it need not move.
  const std::vector<CheaperLayout> cheaper = CheaperLayouts(c.fn, 1, {mesh, {Layout{{{0}, {}}, 0}}, {}}, c.p);
  ASSERT_EQ(cheaper.size(), 1u);
  EXPECT_EQ(cheaper[0].layout, Replicated(2));
  EXPECT_EQ(cheaper[0].bytes, 0);
}

TEST(Partition, Refused) {
  const FnRef f = ParseFn("fn f(a: f64[6]) -> (f64[6]) {\n  b = sin a\n  return b\n}");
  const Mesh mesh{{{"x", 4}}};
  try {
    Partition(f, {mesh, {Layout{{{0}}, 0}}, {}});
    FAIL() << "six elements on four devices";
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("cannot share evenly"), std::string::npos) << e.what();
  }
  const FnRef s = ParseFn("fn f(a: f64[n]) -> (f64[n]) {\n  b = sin a\n  return b\n}");
  EXPECT_THROW(Partition(s, {mesh, {}, {}}), Error);
}

}  // namespace
}  // namespace weft
