#include "tests/property/random_fn.h"

#include <algorithm>

#include "ir/builder.h"
#include "ir/ops.h"
#include "ir/prims/indexing.h"

namespace weft {
namespace {

class Generator {
 public:
  Generator(std::mt19937& rng, const RandomFnOptions& options) : rng_(rng), options_(options) {}

  FnRef Make(const Types& params, const Types& results, int eqns, int depth) {
    Builder b("f");
    Atoms pool;
    for (const Type& t : params) pool.push_back(b.Parameter(t));
    for (int i = 0; i < eqns; ++i) Step(b, pool, depth);
    Atoms out;
    for (const Type& t : results) out.push_back(OfType(b, pool, t));
    return b.Build(out);
  }

  Type RandomType() {
    static const Dims kShapes[] = {{}, {3}, {2, 3}, {4}, {2, 2}};
    return Type{options_.dtype, kShapes[Pick(5)], {}};
  }
  int Pick(int n) { return static_cast<int>(rng_() % static_cast<unsigned>(n)); }

 private:
  Atom Choose(const Atoms& pool) { return pool[Pick(static_cast<int>(pool.size()))]; }

  // A value of type `t` from the pool: one that has it, or one made to have it.
  Atom OfType(Builder& b, const Atoms& pool, const Type& t) {
    Atoms fitting;
    for (const Atom& a : pool) {
      if (b.TypeOf(a) == t) fitting.push_back(a);
    }
    if (!fitting.empty() && Pick(4) != 0) return Choose(fitting);
    if (!fitting.empty() && t.dtype != options_.dtype) return fitting[0];
    const Atom x = Choose(Inexact(b, pool));
    const Atom scalar = Mul(b, ReduceSum(b, x, Range(0, b.TypeOf(x).rank())), Atom::Scalar(options_.dtype, 0.3));
    return Broadcast(b, scalar, t.dims, {});
  }

  Atoms Inexact(const Builder& b, const Atoms& pool) {
    Atoms out;
    for (const Atom& a : pool) {
      if (b.DTypeOf(a) == options_.dtype) out.push_back(a);
    }
    return out;
  }

  void Step(Builder& b, Atoms& pool, int depth) {
    const Atom x = Choose(Inexact(b, pool));
    const Type type = b.TypeOf(x);
    const int rank = type.rank();
    const Atom number = Atom::Scalar(options_.dtype, 0.25 * (1 + Pick(6)));
    switch (Pick(depth > 0 ? 24 : 18)) {
      case 0: pool.push_back(Sin(b, x)); break;
      case 1: pool.push_back(Tanh(b, x)); break;
      case 2: pool.push_back(Exp(b, Neg(b, Mul(b, x, x)))); break;
      case 3: pool.push_back(Logistic(b, x)); break;
      case 4: pool.push_back(Add(b, x, OfType(b, pool, type))); break;
      case 5: pool.push_back(Mul(b, Sin(b, x), OfType(b, pool, type))); break;
      case 6: pool.push_back(Sub(b, number, x)); break;
      case 7: pool.push_back(Div(b, x, Add(b, Mul(b, x, x), Atom::Scalar(options_.dtype, 1)))); break;
      case 8: pool.push_back(Log1p(b, Mul(b, x, x))); break;
      case 9:
        if (rank > 0) pool.push_back(ReduceSum(b, x, {Pick(rank)}));
        break;
      case 10:
        if (rank == 1) pool.push_back(Contract(b, "i,j->ij", x, Tanh(b, x)));
        if (rank == 2) pool.push_back(Contract(b, "ij,kj->ik", x, x));
        break;
      case 11:
        if (rank == 2) pool.push_back(Transpose(b, x, {1, 0}));
        break;
      case 12: pool.push_back(Reshape(b, x, {type.size()})); break;
      case 13:
        if (rank > 0) {
          pool.push_back(Concatenate(b, {x, Sin(b, x)}, Pick(rank)));
          if (b.TypeOf(pool.back()).size().value() > 24) pool.pop_back();
        }
        break;
      case 14:
        if (rank == 1) {
          const int64_t n = type.dims[0].value();
          pool.push_back(Slice(b, x, {n > 1 ? 1 : 0}, {n}, {1}));
          pool.push_back(Pad(b, x, Atom::Scalar(options_.dtype, 0.5), {1}, {0}, {Pick(2)}));
          if (b.TypeOf(pool.back()).size().value() > 24) pool.pop_back();
        }
        break;
      case 15:  // rows read and added at literal positions, some of them twice
        if (rank > 0) Index(b, pool, x);
        break;
      case 16: pool.push_back(Select(b, Gt(b, x, number), Sin(b, x), Mul(b, x, number))); break;
      case 17:
        if (rank == 2) pool.push_back(Reverse(b, x, {Pick(2)}));
        break;
      case 18:
      case 19: Cond(b, pool, x, depth); break;
      case 20:
      case 21: Scan(b, pool, depth); break;
      case 22:
        if (options_.loops) While(b, pool, depth);
        break;
      case 23: Call(b, pool, depth); break;
    }
  }

  void Index(Builder& b, Atoms& pool, const Atom& x) {
    const Type type = b.TypeOf(x);
    const int64_t n = type.dims[0].value();
    if (n == 0) return;
    const Atom indices(Tensor::FromVector<int32_t>(
        {3, 1}, {0, static_cast<int32_t>(n - 1), static_cast<int32_t>(Pick(static_cast<int>(n)))}));
    Ints sizes = {1};
    for (int d = 1; d < type.rank(); ++d) sizes.push_back(type.dims[d].value());
    const GatherDims g{Range(1, type.rank()), {0}, {}, {}, {0}, sizes, "clip"};
    const Atom rows = b.Emit1(FindPrim("gather"), {x, indices}, g.ToAttrs());
    pool.push_back(rows);
    pool.push_back(b.Emit1(FindPrim("scatter_add"), {x, indices, Sin(b, rows)}, g.AsScatter().ToAttrs()));
  }

  Atoms SomeOperands(Builder& b, const Atoms& pool, Types& types) {
    Atoms out;
    const int n = 1 + Pick(2);
    for (int i = 0; i < n; ++i) {
      out.push_back(Choose(Inexact(b, pool)));
      types.push_back(b.TypeOf(out.back()));
    }
    return out;
  }

  void Cond(Builder& b, Atoms& pool, const Atom& x, int depth) {
    Types types;
    Atoms operands = SomeOperands(b, pool, types);
    const Types results = {RandomType()};
    const Atom total = ReduceSum(b, x, Range(0, b.TypeOf(x).rank()));
    const bool two = Pick(2);
    std::vector<FnRef> branches;
    for (int i = 0; i < (two ? 2 : 3); ++i) branches.push_back(Make(types, results, 2, depth - 1));
    Atom index = Gt(b, total, Atom::Scalar(options_.dtype, 0.1));
    if (!two)
      index = Add(b, Convert(b, index, DType::kI32),
                  Convert(b, Lt(b, total, Atom::Scalar(options_.dtype, 2)), DType::kI32));
    operands.insert(operands.begin(), index);
    for (const Atom& a : b.Emit(FindPrim("cond"), operands, {}, branches)) pool.push_back(a);
  }

  void Scan(Builder& b, Atoms& pool, int depth) {
    Types types;
    const Atoms operands = SomeOperands(b, pool, types);
    const Type carry = RandomType(), y = RandomType();
    const Atom start = OfType(b, pool, carry);
    Types params = types;
    params.push_back(carry);
    Types results = {carry, y};
    Atoms args = operands;
    args.push_back(start);
    // A leading dimension of some value is scanned over.
    Dim length(2);
    for (const Atom& a : Inexact(b, pool)) {
      const Type t = b.TypeOf(a);
      if (t.rank() == 0 || t.dims[0].value() == 0 || Pick(2)) continue;
      length = t.dims[0];
      args.push_back(a);
      params.push_back(t.With(Dims(t.dims.begin() + 1, t.dims.end())));
      break;
    }
    const Attrs attrs = {{"num_consts", static_cast<int64_t>(types.size())},
                         {"num_carry", int64_t{1}},
                         {"length", Dims{length}},
                         {"reverse", Pick(2) == 1}};
    for (const Atom& a : b.Emit(FindPrim("scan"), args, attrs, {Tamed(Make(params, results, 3, depth - 1))})) {
      if (b.TypeOf(a).size().value() <= 24) pool.push_back(a);
    }
  }

  void While(Builder& b, Atoms& pool, int depth) {
    const Type i32{DType::kI32, {}, {}}, carry = RandomType();
    Types types;
    const Atoms operands = SomeOperands(b, pool, types);
    Types params = {carry};
    params.insert(params.end(), types.begin(), types.end());
    const FnRef step = Tamed(Make(params, {carry}, 2, depth - 1));
    Builder cond("cond"), body("body");
    const Atom i = cond.Parameter(i32), j = body.Parameter(i32);
    Atoms args;
    for (const Type& t : params) cond.Parameter(t), args.push_back(body.Parameter(t));
    const FnRef c = cond.Build({Lt(cond, i, Atom::Scalar(DType::kI32, 1 + Pick(3)))});
    Atoms next = {Add(body, j, Atom::Scalar(DType::kI32, 1))};
    for (const Atom& a : body.Inline(*step, args)) next.push_back(a);
    Atoms all = {Atom::Scalar(DType::kI32, 0), OfType(b, pool, carry)};
    all.insert(all.end(), operands.begin(), operands.end());
    pool.push_back(b.Emit(FindPrim("while"), all, {{"num_carry", int64_t{2}}}, {c, body.Build(next)})[1]);
  }

  void Call(Builder& b, Atoms& pool, int depth) {
    Types types;
    const Atoms operands = SomeOperands(b, pool, types);
    const FnRef f = Make(types, {RandomType(), RandomType()}, 3, depth - 1);
    for (const Atom& a : b.Emit(FindPrim(Pick(2) ? "call" : "remat"), operands, {}, {f})) pool.push_back(a);
  }

  // Repeated application must not run away: results pass through tanh.
  FnRef Tamed(const FnRef& f) {
    Builder b(f->name());
    Atoms args;
    for (const Param& p : f->params()) args.push_back(b.Parameter(p.type));
    Atoms out = b.Inline(*f, args);
    for (Atom& a : out) a = Tanh(b, a);
    return b.Build(out);
  }

  std::mt19937& rng_;
  const RandomFnOptions& options_;
};

}  // namespace

FnRef RandomFn(std::mt19937& rng, const RandomFnOptions& options) {
  Generator g(rng, options);
  Types params;
  const int n = 1 + g.Pick(options.max_params);
  for (int i = 0; i < n; ++i) params.push_back(g.RandomType());
  return g.Make(params, {g.RandomType(), g.RandomType()}, 2 + g.Pick(options.max_eqns - 1), options.max_depth);
}

Tensors RandomArgs(const Fn& fn, std::mt19937& rng) {
  std::uniform_real_distribution<double> uniform(-1, 1);
  Tensors args;
  for (const Param& p : fn.params()) {
    Tensor t(p.type.dtype, StaticSizes(p.type.dims, "a random argument"));
    for (int64_t i = 0; i < t.size(); ++i) t.Set(i, uniform(rng));
    args.push_back(t);
  }
  return args;
}

}  // namespace weft
