// scan: a loop over the leading dimension of arrays that carries values and stacks results.
//
//   operands: constants, carries, arrays xs;  region body: (constants, carries, slices of xs) -> (carries, slices of
//   ys) results:  final carries, stacked ys
//
// tape_scan: the same as often as operand 0 says, over tapes (base/tape.h) instead of arrays. It is what `split` makes
// of a while loop. One set of rules serves both.
#include "ir/prims/control/scan.h"

#include <algorithm>

#include "ir/prim_table.h"
#include "ir/prims/control/divergence.h"
#include "ir/prims/control/regions.h"
#include "ir/prims/control/residual_cut.h"
#include "ir/prims/control/varying_choice.h"
#include "ir/prims/families.h"
#include "ir/prims/shape.h"

namespace weft {
namespace {

Attrs ScanAttrs(size_t consts, size_t carries, const Dim& length, bool reverse) {
  return {{"num_consts", static_cast<int64_t>(consts)},
          {"num_carry", static_cast<int64_t>(carries)},
          {"length", Dims{length}},
          {"reverse", reverse}};
}

// The type of a slice of operand `i`, checked against what the body takes.
Type SliceType(const Scan& scan, const std::string& name, const Type& x, size_t i) {
  if (scan.taped) {
    const Type& slice = scan.body->params()[i].type;
    if (x.dtype != DType::kTape || x.rank() > slice.rank() ||
        !std::equal(x.dims.begin(), x.dims.end(), slice.dims.begin())) {
      throw TypeError(name, ": operand ", i + 1, " is ", x, "; expected a tape of ", slice);
    }
    return slice;
  }
  if (x.rank() == 0 || !(x.dims[0] == scan.length)) {
    throw TypeError("scan: operand ", i, " is ", x, "; its leading dimension must be the length, ", scan.length);
  }
  Type t = x;
  t.dims.erase(t.dims.begin());
  return t;
}

Types InferScan(const Sig& s) {
  CheckRegionCount(s, 1);
  const std::string& name = s.prim.name;
  const Scan scan(s.prim, s.attrs, s.regions[0]);
  if (s.operands.size() != scan.lead() + scan.operands || scan.first_x() > scan.operands ||
      scan.carries > scan.results) {
    throw TypeError(name, ": ", s.operands.size(), " operands with num_consts=", scan.consts,
                    " and num_carry=", scan.carries, " do not fit a body of ", scan.operands, " parameters and ",
                    scan.results, " results");
  }
  if (scan.taped) CheckTapeDims(name, scan.tape_dims, scan.Ys(scan.body->ResultTypes()));
  if (scan.taped && s.operands[0].dtype != DType::kI64)
    throw TypeError(name, ": operand 0 is ", s.operands[0], "; the number of steps is an i64");
  Types params = scan.Rest(s.operands);
  for (size_t i = scan.first_x(); i < params.size(); ++i) params[i] = SliceType(scan, name, params[i], i);
  CheckRegionParams(s, 0, params);
  if (scan.taped) CheckVaryingChoice(s, s.operands[0].varying, 1);
  Types results = scan.body->ResultTypes();
  for (size_t i = 0; i < scan.carries; ++i) {
    if (!(results[i] == params[scan.consts + i])) {
      throw TypeError(name, ": carry ", i, " enters the body as ", params[scan.consts + i], " and leaves it as ",
                      results[i], "; types must be equal");
    }
  }
  for (size_t i = scan.carries; i < results.size(); ++i)
    results[i] = scan.Stacked(results[i], scan.taped ? scan.tape_dims[i - scan.carries] : 0);
  return results;
}

Tensor SliceOf(const Tensor& x, int64_t i) {
  Shape shape(x.shape().begin() + 1, x.shape().end());
  Tensor y(x.dtype(), shape);
  std::memcpy(y.raw(), x.data<char>() + i * y.bytes(), y.bytes());
  return y;
}

Tensors EvalScan(const EvalContext& c, const Tensors& in) {
  const Scan scan(c.sig.prim, c.sig.attrs, c.sig.regions[0]);
  const Tensors args_in = scan.Rest(in);
  const Types slices = scan.body->ParamTypes();
  int64_t n = 0;
  std::vector<TapeWriter> writers;
  Tensors carry = scan.Carries(args_in), ys;
  if (scan.taped) {
    for (int64_t i = 0; i < in[0].size(); ++i) n = std::max(n, in[0].at<int64_t>(i));
    for (size_t i = scan.carries; i < scan.results; ++i)
      writers.emplace_back(scan.body->ResultTypes()[i], scan.tape_dims[i - scan.carries], n);
  } else {
    n = scan.length.value("eval");
    for (size_t i = scan.carries; i < scan.results; ++i)
      ys.emplace_back(c.results[i].dtype, StaticSizes(c.results[i].dims, "eval"));
  }
  for (int64_t step = 0; step < n; ++step) {
    const int64_t i = scan.reverse ? n - 1 - step : step;
    Tensors args = scan.Consts(args_in);
    Append(args, carry);
    for (size_t x = scan.first_x(); x < scan.operands; ++x)
      args.push_back(scan.taped ? ReadTape(args_in[x], slices[x], i) : SliceOf(args_in[x], i));
    const Tensors out = c.run(*scan.body, args);
    carry = scan.CarriesOut(out);
    for (size_t k = 0; k + scan.carries < scan.results; ++k) {
      const Tensor& y = out[scan.carries + k];
      if (scan.taped)
        writers[k].Write(i, y);
      else
        std::memcpy(ys[k].data<char>() + i * y.bytes(), y.raw(), y.bytes());
    }
  }
  for (const TapeWriter& w : writers) ys.push_back(w.tape());
  Append(carry, ys);
  return carry;
}

Mask Joined(const Mask& a, const Mask& b, const Mask& c) {
  Mask all = a;
  Append(all, b);
  Append(all, c);
  return all;
}

// The body's carries forced to `carry`, its ys left as they are.
Mask ForceCarries(const Scan& scan, const Mask& carry) {
  Mask force = carry;
  force.resize(scan.results, false);
  return force;
}

// operands: consts dconsts | carry dcarry | xs dxs;   results: carry dcarry | ys dys
void ScanPush(PushContext& c) {
  const Scan scan(*c.eqn.prim, c.eqn.attrs, c.eqn.regions[0]);
  const Atoms x = scan.Rest(c.x);
  const Series dx = scan.Rest(c.dx);
  Mask active = ActiveOf(dx);
  const Types in = scan.body->ParamTypes();
  for (size_t i = 0; i < in.size(); ++i) active[i] = active[i] && HasTangents(in[i].dtype);  // tapes of integers
  const Mask consts = scan.Consts(active), xs = scan.Xs(active);
  auto [carry, jvp] = CarryFixpoint(scan.Carries(active), [&](const Mask& m) {
    JvpFn j = c.push(scan.body, Joined(consts, m, xs), ForceCarries(scan, m));
    return std::make_pair(std::move(j.fn), j.active_out);
  });
  const Mask active_out = jvp.second, ys = scan.Ys(active_out);
  const auto coefficients = [&](const Mask& mask) { return c.count * CountOf(mask); };
  const size_t num_dconsts = coefficients(consts), num_dcarry = coefficients(carry), num_dxs = coefficients(xs);
  const Atoms out = jvp.first->results();
  Builder b(std::move(jvp.first));
  b.KeepParameters(
      Regrouped({scan.consts, scan.carries, scan.operands - scan.first_x(), num_dconsts, num_dcarry, num_dxs},
                {0, 3, 1, 4, 2, 5}));
  const Atoms y = Part(out, 0, scan.results), dy = Part(out, scan.results, out.size());
  Atoms results = scan.CarriesOut(y);
  Append(results, Part(dy, 0, num_dcarry));
  Append(results, scan.Ys(y));
  Append(results, Part(dy, num_dcarry, dy.size()));

  Atoms operands = Part(c.x, 0, scan.lead());
  Append(operands, scan.Consts(x));
  Append(operands, Tangents(c.b, scan.Consts(x), scan.Consts(dx), consts, c.count));
  Append(operands, scan.Carries(x));
  Append(operands, Tangents(c.b, scan.Carries(x), scan.Carries(dx), carry, c.count));
  Append(operands, scan.Xs(x));
  Append(operands, Tangents(c.b, scan.Xs(x), scan.Xs(dx), xs, c.count));
  Ints tape_dims = scan.tape_dims;
  if (scan.taped) Append(tape_dims, Repeated(Where(scan.tape_dims, ys), c.count));
  const Attrs attrs = scan.With(scan.consts + num_dconsts, scan.carries + num_dcarry, tape_dims, scan.reverse);
  const Atoms all = c.b.Emit(*c.eqn.prim, operands, attrs, {std::move(b).Build(results)});
  const size_t end_carry = scan.carries + num_dcarry, end_ys = end_carry + (scan.results - scan.carries);
  c.y = Part(all, 0, scan.carries);
  Append(c.y, Part(all, end_carry, end_ys));
  Atoms tangents = Part(all, scan.carries, end_carry);
  Append(tangents, Part(all, end_ys, all.size()));
  Mask out_mask = carry;
  Append(out_mask, ys);
  c.dy = Spread(tangents, out_mask, c.count);
}

void ScanBatch(BatchContext& c) {
  const Scan scan(*c.eqn.prim, c.eqn.attrs, c.eqn.regions[0]);
  if (scan.taped && c.batched[0])  // each batch element has its own number of steps
    return BatchVaryingChoice(c, c.b.TypeOf(c.x[0]).varying, BatchDivergentTapeScan);
  const Mask mask = scan.Rest(c.batched), consts = scan.Consts(mask), xs = scan.Xs(mask);
  const Atoms x = scan.Rest(c.x);
  const auto [carry, batched] = CarryFixpoint(scan.Carries(mask), [&](const Mask& m) {
    const BatchedFn f = c.regions.batch(scan.body, Joined(consts, m, xs), ForceCarries(scan, m), c.size);
    return std::make_pair(f.fn, f.batched_out);
  });
  Atoms operands = Part(c.x, 0, scan.lead());
  Append(operands, scan.Consts(x));
  for (size_t i = 0; i < scan.carries; ++i)
    operands.push_back(carry[i] ? c.Batched(static_cast<int>(scan.lead() + scan.consts + i)) : x[scan.consts + i]);
  auto swap_leading = [&](const Atom& value) {  // batch elements and steps change places
    Ints perm = Range(0, c.b.TypeOf(value).rank());
    std::swap(perm[0], perm[1]);
    return Transpose(c.b, value, perm);
  };
  for (size_t i = scan.first_x(); i < scan.operands; ++i)
    operands.push_back(mask[i] && !scan.taped ? swap_leading(x[i]) : x[i]);
  c.batched_out = batched.second;
  for (size_t i = 0; i < scan.carries; ++i) c.batched_out[i] = carry[i];
  Ints tape_dims = scan.tape_dims;
  for (size_t i = 0; i < tape_dims.size(); ++i) tape_dims[i] += c.batched_out[scan.carries + i] ? 1 : 0;
  c.y = c.b.Emit(*c.eqn.prim, operands, scan.With(scan.consts, scan.carries, tape_dims, scan.reverse), {batched.first});
  for (size_t i = scan.carries; i < scan.results; ++i) {
    if (c.batched_out[i] && !scan.taped) c.y[i] = swap_leading(c.y[i]);
  }
}

// Residuals become stacked results of the known scan and arrays of the unknown one; those that are constants or arrays
// of the known body already are passed on as they are.
void ScanSplit(SplitContext& c) {
  const bool counted = c.eqn.prim->region_use == RegionUse::kUncounted && !c.unknown[0];
  const Strings choice = counted ? c.known_b.TypeOf(c.known_x[0]).varying : Strings();
  const Scan scan(*c.eqn.prim, c.eqn.attrs, VaryingOver(c.eqn.regions[0], choice));
  if (scan.taped && c.unknown[0]) {  // how often it runs is unknown, so everything is
    Atoms operands;
    for (size_t i = 0; i < c.unknown.size(); ++i)
      operands.push_back(c.unknown[i] ? c.unknown_x[i] : c.residual(c.known_x[i]));
    c.y = c.unknown_b.Clone(c.eqn, operands);
    c.unknown_out.assign(c.y.size(), true);
    return;
  }
  const Mask unknown_in = scan.Rest(c.unknown), consts = scan.Consts(unknown_in), xs = scan.Xs(unknown_in);
  const Atoms known_x = scan.Rest(c.known_x), unknown_x = scan.Rest(c.unknown_x);
  SplitFn split;
  const Mask carry = CarryFixpoint(scan.Carries(unknown_in), [&](const Mask& m) {
                       split = c.regions.split(scan.body, Joined(consts, m, xs), ForceCarries(scan, m));
                       return std::make_pair(0, split.unknown_out);
                     }).first;
  // Constants and arrays are there for the linear half as they are.
  Mask stored(CountOf(consts, false), true);
  stored.resize(stored.size() + CountOf(carry, false), false);
  stored.resize(split.known->params().size(), true);
  split = WithFewestResiduals(std::move(split), stored);
  Mask unknown_out = split.unknown_out;
  const Mask ys = scan.Ys(unknown_out);
  const Types types = scan.body->ParamTypes();
  const Fn& known = *split.known;
  const size_t known_consts = CountOf(consts, false);
  const size_t known_carries = CountOf(carry, false);
  const size_t known_ys = CountOf(ys, false);
  const size_t first_residual = known.results().size() - split.residuals.size();

  Atoms known_operands = Where(scan.Consts(known_x), consts, false);
  Append(known_operands, Where(scan.Carries(known_x), carry, false));
  Append(known_operands, Where(scan.Xs(known_x), xs, false));

  // Where each residual comes from.
  enum class Source { kConst, kStacked, kArray };
  std::vector<Source> source;
  Atoms stacked_in_body;      // results of the known body that get stacked
  std::vector<size_t> param;  // of the known body, for kConst and kArray
  for (size_t r = 0; r < split.residuals.size(); ++r) {
    const Atom& a = known.results()[first_residual + r];
    const bool is_param = a.is_var() && a.id() < known.params().size();
    const bool is_const = is_param && a.id() < known_consts;
    const bool is_x = is_param && a.id() >= known_consts + known_carries;
    source.push_back(is_const ? Source::kConst : is_x ? Source::kArray : Source::kStacked);
    param.push_back(is_param ? a.id() : 0);
  }
  const Atoms kout = known.results();
  Builder kb(std::move(split.known));
  Atoms kresults = Part(kout, 0, first_residual);
  for (size_t r = 0; r < source.size(); ++r) {
    if (source[r] == Source::kStacked) kresults.push_back(kout[first_residual + r]);
  }
  Ints known_tape_dims = scan.taped ? Where(scan.tape_dims, ys, false) : Ints{};
  known_tape_dims.resize(kresults.size() - known_carries, 0);
  Atoms all_known = Part(c.known_x, 0, scan.lead());
  Append(all_known, known_operands);
  const Atoms known_y =
      c.known_b.Emit(*c.eqn.prim, all_known, scan.With(known_consts, known_carries, known_tape_dims, scan.reverse),
                     {std::move(kb).Build(kresults)});

  // The unknown scan: constants = residual constants, unknown constants; xs = residual arrays, unknown xs.
  Atoms operands;
  for (size_t i = 0; i < scan.lead(); ++i) operands.push_back(c.residual(c.known_x[i]));
  std::vector<size_t> places;  // of its parameters among those of the unknown body: residuals, then the unknown ones
  size_t next_unknown = source.size();
  const auto unknown_params = [&](const Mask& mask) {
    for (bool is_unknown : mask) {
      if (is_unknown) places.push_back(next_unknown++);
    }
  };
  for (size_t r = 0; r < source.size(); ++r) {
    if (source[r] != Source::kConst) continue;
    operands.push_back(c.residual(known_operands[param[r]]));
    places.push_back(r);
  }
  Append(operands, Where(scan.Consts(unknown_x), consts));
  unknown_params(consts);
  const size_t num_consts = places.size();
  for (size_t i = 0; i < scan.carries; ++i) {
    if (!carry[i]) continue;
    const size_t operand = scan.consts + i;  // a known start of an unknown carry is a residual
    operands.push_back(unknown_in[operand] ? unknown_x[operand] : c.residual(known_x[operand]));
  }
  unknown_params(carry);
  const size_t num_carry = places.size() - num_consts;
  size_t next_stacked = known_carries + known_ys;
  for (size_t r = 0; r < source.size(); ++r) {
    if (source[r] == Source::kConst) continue;
    operands.push_back(c.residual(source[r] == Source::kArray ? known_operands[param[r]] : known_y[next_stacked++]));
    places.push_back(r);
  }
  Append(operands, Where(scan.Xs(unknown_x), xs));
  unknown_params(xs);
  const Atoms out = split.unknown->results();
  Builder ub(std::move(split.unknown));
  ub.KeepParameters(places);
  const Ints unknown_tape_dims = scan.taped ? Where(scan.tape_dims, ys) : Ints{};
  const Atoms unknown_y =
      Any(unknown_out)
          ? c.unknown_b.Emit(*c.eqn.prim, operands, scan.With(num_consts, num_carry, unknown_tape_dims, scan.reverse),
                             {std::move(ub).Build(out)})
          : Atoms{};
  size_t k = 0, u = 0;
  for (bool is_unknown : unknown_out) c.y.push_back(is_unknown ? unknown_y[u++] : known_y[k++]);
  c.unknown_out = unknown_out;
}

// The equation as a function of its own, cut in two, the unknown half transposed: for scans with a carry that does not
// depend on the linear inputs, whose values the linear half needs step by step.
OptionalAtoms TransposeBySplitting(TransposeContext& c, const Mask& linear) {
  Builder b(c.eqn.prim->name);
  const FnRef fn = std::move(b).Build(b.Clone(c.eqn, Parameters(b, c.types.list())));
  const SplitFn split = c.regions.split(fn, linear, Mask(fn->results().size(), false));
  Atoms known;
  for (const auto& x : c.x) {
    if (x) known.push_back(*x);
  }
  const Atoms out = c.b.Inline(*split.known, known);
  Atoms args = Part(out, out.size() - split.residuals.size(), out.size());
  const Types results = fn->ResultTypes();
  for (size_t r = 0; r < results.size(); ++r) {
    if (split.unknown_out[r]) args.push_back(c.ct[r] ? *c.ct[r] : Zeros(c.b, results[r]));
  }
  Mask unknown_linear(split.unknown->params().size(), true);
  std::fill(unknown_linear.begin(), unknown_linear.begin() + static_cast<int64_t>(split.residuals.size()), false);
  return Spread(c.b.Inline(*c.regions.transpose(split.unknown, unknown_linear), args), linear);
}

// The gather whose cotangent `ct` is: a scatter_add into zeros.
const Eqn* ScatteredIntoZeros(Builder& b, const Atom& ct) {
  const Eqn* e = b.Definition(ct);
  if (e == nullptr || !Is<"scatter_add">(*e->prim)) return nullptr;  // the pattern sought
  const Eqn* zeros = b.Definition(e->operands[0]);
  return zeros != nullptr && Is<"broadcast">(*zeros->prim) && zeros->operands[0].IsSplat(0) ? e : nullptr;  // it too
}

// sum + ct. What was scattered into zeros is scattered into the sum itself: a step that reads a few rows of an array
// costs a few rows backwards, too.
Atom AddInto(Builder& b, const Atom& sum, const Atom& ct) {
  if (const Eqn* e = ScatteredIntoZeros(b, ct)) {
    const Eqn scatter = *e;
    return b.Clone(scatter, {sum, scatter.operands[1], scatter.operands[2]})[0];
  }
  const Eqn* e = b.Definition(ct);
  if (e != nullptr && Is<"add">(*e->prim)) {  // a sum that another rule made of two of them
    const Atom x = e->operands[0], y = e->operands[1];
    if (ScatteredIntoZeros(b, x) || ScatteredIntoZeros(b, y)) return AddInto(b, AddInto(b, sum, x), y);
  }
  return *AddTangents(b, sum, ct);
}

// Runs backwards. Carries: cotangents of linear constants (summed up) and of carries; xs: known arrays and cotangents
// of ys. A carry that starts from a known value (the zero tangent) but becomes linear is linear.
OptionalAtoms ScanTranspose(TransposeContext& c) {
  const Scan scan(*c.eqn.prim, c.eqn.attrs, c.eqn.regions[0]);
  Mask operand_linear;
  for (const auto& x : c.x) operand_linear.push_back(!x);
  const Mask all_linear = operand_linear;
  operand_linear = scan.Rest(operand_linear);
  const OptionalAtoms operand = scan.Rest(c.x);
  const Mask carry_linear =
      CarryFixpoint(scan.Carries(operand_linear), [&](const Mask& m) {
        const Mask linear = Joined(scan.Consts(operand_linear), m, scan.Xs(operand_linear));
        return std::make_pair(0, DependentResults(scan.body, linear, ForceCarries(scan, m), c.regions));
      }).first;
  if (std::find(carry_linear.begin(), carry_linear.end(), false) != carry_linear.end())
    return TransposeBySplitting(c, all_linear);
  const Mask linear = Joined(scan.Consts(operand_linear), carry_linear, scan.Xs(operand_linear));
  const Mask consts = scan.Consts(linear), xs = scan.Xs(linear);
  const Types types = scan.body->ParamTypes(), results = scan.body->ResultTypes();
  FnRef back = c.regions.transpose(scan.body, linear);
  const Atoms cts = back->results();  // of linear constants, carries, linear xs
  Builder b(std::move(back));
  const size_t num_consts = CountOf(consts, false);
  const Atoms p_sums = Parameters(b, Where(scan.Consts(types), consts));
  b.KeepParameters(Regrouped({num_consts, CountOf(xs, false), scan.carries, scan.results - scan.carries, p_sums.size()},
                             {0, 4, 2, 1, 3}));
  Atoms out;
  for (size_t i = 0; i < p_sums.size(); ++i) out.push_back(AddInto(b, p_sums[i], cts[i]));
  Append(out, Part(cts, p_sums.size(), cts.size()));

  Atoms operands;
  for (size_t i = 0; i < scan.lead(); ++i) operands.push_back(*c.x[i]);
  for (size_t i = 0; i < scan.consts; ++i) {
    if (!linear[i]) operands.push_back(*operand[i]);
  }
  for (const Type& t : Where(scan.Consts(types), consts)) operands.push_back(Zeros(c.b, t));
  auto cotangent = [&](size_t i, const Type& t) { return c.ct[i] ? *c.ct[i] : Zeros(c.b, t); };
  for (size_t i = 0; i < scan.carries; ++i) operands.push_back(cotangent(i, results[i]));
  for (size_t i = scan.first_x(); i < scan.operands; ++i) {
    if (!linear[i]) operands.push_back(*operand[i]);
  }
  for (size_t i = scan.carries; i < scan.results; ++i)
    operands.push_back(cotangent(i, scan.Stacked(results[i], scan.taped ? scan.tape_dims[i - scan.carries] : 0)));
  Ints tape_dims;
  for (size_t i = scan.first_x(); scan.taped && i < scan.operands; ++i) {
    if (linear[i]) tape_dims.push_back(c.types[scan.lead() + i].rank());
  }
  const Attrs attrs = scan.With(num_consts, p_sums.size() + scan.carries, tape_dims, !scan.reverse);
  OptionalAtoms all = Spread(c.b.Emit(*c.eqn.prim, operands, attrs, {std::move(b).Build(out)}), linear);
  for (size_t i = 0; i < all.size(); ++i) {
    if (!operand_linear[i]) all[i] = std::nullopt;
  }
  all.insert(all.begin(), scan.lead(), std::nullopt);
  return all;
}

Kept ScanDce(const DceContext& c) {
  const Scan scan(*c.eqn.prim, c.eqn.attrs, c.eqn.regions[0]);
  // A carry that a needed result reads is needed.
  const auto [carry, body] = CarryFixpoint(scan.CarriesOut(c.needed), [&](const Mask& m) {
    Mask results = m;
    Append(results, scan.Ys(c.needed));
    const Mask reads = c.reads(scan.body, results);
    return std::make_pair(reads, scan.Carries(reads));
  });
  Mask results = carry, params = scan.Consts(body.first);
  Append(results, scan.Ys(c.needed));
  Append(params, carry);
  Append(params, scan.Xs(body.first));
  Kept k{results, Mask(scan.lead(), true), {}, {c.keep(scan.body, results, params)}};
  Append(k.operands, params);
  k.attrs = scan.With(CountOf(scan.Consts(params)), CountOf(carry),
                      scan.taped ? Where(scan.tape_dims, scan.Ys(results)) : Ints{}, scan.reverse);
  return k;
}

std::vector<Sample> ScanSamples() {
  std::vector<Sample> samples;
  for (DType t : {DType::kF32, DType::kF64}) {
    const Type vector{t, {3}, {}}, scalar{t, {}, {}};
    for (bool reverse : {false, true}) {
      Builder b("body");  // (w, c, x) -> (sin(c) * w + x, c * x)
      const Atom w = b.Parameter(vector), carry = b.Parameter(vector), x = b.Parameter(vector);
      Sample s = SampleOf({vector, vector, Type{t, {5, 3}, {}}}, ScanAttrs(1, 1, 5, reverse));
      s.regions = {b.Build({Add(b, Mul(b, Sin(b, carry), w), x), Mul(b, carry, x)})};
      samples.push_back(s);
    }
    Builder b("count");  // an integer counter beside a float carry; no arrays
    const Atom i = b.Parameter(Type{DType::kI32, {}, {}}), v = b.Parameter(scalar);
    Sample s = SampleOf({Type{DType::kI32, {}, {}}, scalar}, ScanAttrs(0, 2, 4, false));
    s.regions = {b.Build({Add(b, i, Atom::Scalar(DType::kI32, 1)), Mul(b, Sin(b, v), Convert(b, i, t))})};
    s.values = {{0, Tensor::Scalar<int32_t>(DType::kI32, 1)}};
    samples.push_back(s);
  }
  return samples;
}

void AddLoopRules(Prim& p) {
  p.infer = InferScan;
  p.eval = EvalScan;
  p.push = ScanPush;
  p.batch = ScanBatch;
  p.split = ScanSplit;
  p.dce = ScanDce;
  p.linear = {-1};
  p.transpose = ScanTranspose;
}

std::vector<Sample> TapeScanSamples() {
  std::vector<Sample> samples;
  for (Sample s : ScanSamples()) {
    const int64_t length = s.attrs.Get<Dims>("length")[0].value("samples");
    const size_t first_x = static_cast<size_t>(s.attrs.GetInt("num_consts") + s.attrs.GetInt("num_carry"));
    if (s.operands.size() > first_x) continue;
    s.operands.insert(s.operands.begin(), Type{DType::kI64, {}, {}});
    for (auto& [operand, value] : s.values) ++operand;
    s.values.emplace_back(0, Tensor::Scalar<int64_t>(DType::kI64, length));
    s.attrs = {{"num_consts", s.attrs.GetInt("num_consts")},
               {"num_carry", s.attrs.GetInt("num_carry")},
               {"reverse", s.attrs.GetBool("reverse")},
               {"lanes", Ints{}}};
    samples.push_back(s);
  }
  return samples;
}

}  // namespace

void RegisterScan(PrimRegistry& r) {
  Prim& p = r.Add("scan", Family::kControl, -1,
                  "Runs the region `length` times. Operands: num_consts constants, num_carry carries, arrays whose "
                  "leading dimension is the length. The region takes "
                  "constants, carries and one slice of each array, and gives new carries and slices of stacked "
                  "results. reverse=true goes from the last slice to the first.");
  p.region_use = RegionUse::kCounted;
  AddLoopRules(p);
  p.samples = ScanSamples;
  Prim& t = r.Add("tape_scan", Family::kControl, -1,
                  "A scan over tapes. Operand 0 (i64, any shape) says how many steps, by its largest element; then "
                  "num_consts constants, num_carry carries, tapes. The region takes constants, carries and row i of "
                  "each tape, and gives new carries and rows of tapes. The lanes[k] leading dimensions of row k have a "
                  "tape each. A tape that is shorter gives zeros.");
  t.region_use = RegionUse::kUncounted;
  AddLoopRules(t);
  t.may_diverge = true;  // a number among its operands says for how long it runs
  t.samples = TapeScanSamples;
}

}  // namespace weft
