// scan: a loop over the leading dimension of arrays that carries values and stacks results.
//
//   operands: constants, carries, arrays xs;  region body: (constants, carries, slices of xs) -> (carries, slices of
//   ys) results:  final carries, stacked ys
#include <algorithm>

#include "ir/prims/families.h"
#include "ir/prims/regions.h"
#include "ir/prims/shape.h"

namespace weft {
namespace {

const Dim& OneLength(const Dims& length) {
  if (length.size() != 1 || (length[0].is_static() && length[0].value() < 0)) {
    throw ValueError("scan: length=<", ToString(length), ">; expected one size of 0 or more");
  }
  return length[0];
}

// The parts of a scan's operands, results and attributes.
struct Scan {
  size_t consts, carries;
  Dim length;
  bool reverse;
  FnRef body;
  size_t operands, results;

  explicit Scan(const Attrs& attrs, const FnRef& region)
      : consts(static_cast<size_t>(attrs.GetInt("num_consts"))),
        carries(static_cast<size_t>(attrs.GetInt("num_carry"))),
        length(OneLength(attrs.Get<Dims>("length"))),
        reverse(attrs.GetBool("reverse")),
        body(region),
        operands(region->params().size()),
        results(region->results().size()) {
    for (const char* name : {"num_consts", "num_carry"}) {
      const int64_t count = attrs.GetInt(name);
      if (count < 0 || count > static_cast<int64_t>(operands)) {
        throw ValueError("scan: ", name, "=", count, " does not fit a body of ", operands, " parameters");
      }
    }
  }

  size_t first_x() const { return consts + carries; }
  template <class L>
  L Consts(const L& l) const {
    return Part(l, 0, consts);
  }
  template <class L>
  L Carries(const L& l) const {
    return Part(l, consts, first_x());
  }
  template <class L>
  L Xs(const L& l) const {
    return Part(l, first_x(), operands);
  }
  template <class L>
  L CarriesOut(const L& l) const {
    return Part(l, 0, carries);
  }
  template <class L>
  L Ys(const L& l) const {
    return Part(l, carries, results);
  }
};

Attrs ScanAttrs(size_t consts, size_t carries, const Dim& length, bool reverse) {
  return {{"num_consts", static_cast<int64_t>(consts)},
          {"num_carry", static_cast<int64_t>(carries)},
          {"length", Dims{length}},
          {"reverse", reverse}};
}

Type Stacked(const Type& slice, const Dim& length) {
  Type t = slice;
  t.dims.insert(t.dims.begin(), length);
  return t;
}

Types InferScan(const Sig& s) {
  CheckRegionCount(s, 1);
  const Scan scan(s.attrs, s.regions[0]);
  if (s.operands.size() != scan.operands || scan.first_x() > scan.operands || scan.carries > scan.results) {
    throw TypeError("scan: ", s.operands.size(), " operands with num_consts=", scan.consts,
                    " and num_carry=", scan.carries, " do not fit a body of ", scan.operands, " parameters and ",
                    scan.results, " results");
  }
  Types params = s.operands;
  for (size_t i = scan.first_x(); i < params.size(); ++i) {
    if (params[i].rank() == 0 || !(params[i].dims[0] == scan.length)) {
      throw TypeError("scan: operand ", i, " is ", params[i], "; its leading dimension must be the length, ",
                      scan.length);
    }
    params[i].dims.erase(params[i].dims.begin());
  }
  CheckRegionParams(s, 0, params);
  Types results = scan.body->ResultTypes();
  for (size_t i = 0; i < scan.carries; ++i) {
    if (!(results[i] == params[scan.consts + i])) {
      throw TypeError("scan: carry ", i, " enters the body as ", params[scan.consts + i], " and leaves it as ",
                      results[i], "; types must be equal");
    }
  }
  for (size_t i = scan.carries; i < results.size(); ++i) results[i] = Stacked(results[i], scan.length);
  return results;
}

Tensor SliceOf(const Tensor& x, int64_t i) {
  Shape shape(x.shape().begin() + 1, x.shape().end());
  Tensor y(x.dtype(), shape);
  std::memcpy(y.raw(), x.data<char>() + i * y.bytes(), y.bytes());
  return y;
}

Tensors EvalScan(const EvalContext& c, const Tensors& in) {
  const Scan scan(c.sig.attrs, c.sig.regions[0]);
  const int64_t n = scan.length.value("eval");
  Tensors carry = scan.Carries(in), ys;
  for (size_t i = scan.carries; i < scan.results; ++i)
    ys.emplace_back(c.results[i].dtype, StaticSizes(c.results[i].dims, "eval"));
  for (int64_t step = 0; step < n; ++step) {
    const int64_t i = scan.reverse ? n - 1 - step : step;
    Tensors args = scan.Consts(in);
    Append(args, carry);
    for (const Tensor& x : scan.Xs(in)) args.push_back(SliceOf(x, i));
    const Tensors out = c.run(*scan.body, args);
    carry = scan.CarriesOut(out);
    for (size_t k = 0; k < ys.size(); ++k) {
      const Tensor& y = out[scan.carries + k];
      std::memcpy(ys[k].data<char>() + i * y.bytes(), y.raw(), y.bytes());
    }
  }
  Append(carry, ys);
  return carry;
}

// Repeats `transform(mask of carries)` -> mask of carries out until the masks agree.
template <class F>
auto CarryFixpoint(Mask carry, size_t carries, F transform) {
  while (true) {
    auto result = transform(carry);
    const Mask grown = Union(carry, Part(result.second, 0, carries));
    if (grown == carry) return std::make_pair(carry, result);
    carry = grown;
  }
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
void ScanJvp(JvpContext& c) {
  const Scan scan(c.eqn.attrs, c.eqn.regions[0]);
  const Mask active = ActiveOf(c.dx), consts = scan.Consts(active), xs = scan.Xs(active);
  const auto [carry, jvp] = CarryFixpoint(scan.Carries(active), scan.carries, [&](const Mask& m) {
    const JvpFn j = c.regions.jvp(scan.body, Joined(consts, m, xs), ForceCarries(scan, m));
    return std::make_pair(j.fn, j.active_out);
  });
  const Mask active_out = jvp.second, ys = scan.Ys(active_out);
  const Types types = scan.body->ParamTypes();
  Builder b(scan.body->name());
  const Atoms p_consts = Parameters(b, scan.Consts(types)),
              p_dconsts = Parameters(b, Where(scan.Consts(types), consts));
  const Atoms p_carry = Parameters(b, scan.Carries(types)), p_dcarry = Parameters(b, Where(scan.Carries(types), carry));
  const Atoms p_xs = Parameters(b, scan.Xs(types)), p_dxs = Parameters(b, Where(scan.Xs(types), xs));
  Atoms args = p_consts;
  for (const Atoms* more : {&p_carry, &p_xs, &p_dconsts, &p_dcarry, &p_dxs}) Append(args, *more);
  const Atoms out = b.Inline(*jvp.first, args);
  const Atoms y = Part(out, 0, scan.results), dy = Part(out, scan.results, out.size());
  const size_t num_dcarry = p_dcarry.size();
  Atoms results = scan.CarriesOut(y);
  Append(results, Part(dy, 0, num_dcarry));
  Append(results, scan.Ys(y));
  Append(results, Part(dy, num_dcarry, dy.size()));

  Atoms operands = scan.Consts(c.x);
  Append(operands, Tangents(c.b, scan.Consts(c.x), scan.Consts(c.dx), consts));
  Append(operands, scan.Carries(c.x));
  Append(operands, Tangents(c.b, scan.Carries(c.x), scan.Carries(c.dx), carry));
  Append(operands, scan.Xs(c.x));
  Append(operands, Tangents(c.b, scan.Xs(c.x), scan.Xs(c.dx), xs));
  const Attrs attrs =
      ScanAttrs(p_consts.size() + p_dconsts.size(), scan.carries + num_dcarry, scan.length, scan.reverse);
  const Atoms all = c.b.Emit(*c.eqn.prim, operands, attrs, {b.Build(results)});
  const size_t end_carry = scan.carries + num_dcarry, end_ys = end_carry + (scan.results - scan.carries);
  c.y = Part(all, 0, scan.carries);
  Append(c.y, Part(all, end_carry, end_ys));
  Atoms tangents = Part(all, scan.carries, end_carry);
  Append(tangents, Part(all, end_ys, all.size()));
  Mask out_mask = carry;
  Append(out_mask, ys);
  c.dy = Spread(tangents, out_mask);
}

void ScanBatch(BatchContext& c) {
  const Scan scan(c.eqn.attrs, c.eqn.regions[0]);
  const Mask consts = scan.Consts(c.batched), xs = scan.Xs(c.batched);
  const auto [carry, batched] = CarryFixpoint(scan.Carries(c.batched), scan.carries, [&](const Mask& m) {
    const BatchedFn f = c.regions.batch(scan.body, Joined(consts, m, xs), ForceCarries(scan, m), c.size);
    return std::make_pair(f.fn, f.batched_out);
  });
  Atoms operands = scan.Consts(c.x);
  for (size_t i = 0; i < scan.carries; ++i)
    operands.push_back(carry[i] ? c.Batched(static_cast<int>(scan.consts + i)) : c.x[scan.consts + i]);
  auto swap_leading = [&](const Atom& x) {  // lanes and steps change places
    Ints perm = Range(0, c.b.TypeOf(x).rank());
    std::swap(perm[0], perm[1]);
    return Transpose(c.b, x, perm);
  };
  for (size_t i = scan.first_x(); i < scan.operands; ++i)
    operands.push_back(c.batched[i] ? swap_leading(c.x[i]) : c.x[i]);
  c.y = c.b.Emit(*c.eqn.prim, operands, c.eqn.attrs, {batched.first});
  c.batched_out = batched.second;
  for (size_t i = 0; i < scan.carries; ++i) c.batched_out[i] = carry[i];
  for (size_t i = scan.carries; i < scan.results; ++i) {
    if (c.batched_out[i]) c.y[i] = swap_leading(c.y[i]);
  }
}

// Residuals become stacked results of the known scan and arrays of the unknown one; those that are constants or arrays
// of the known body already are passed on as they are.
void ScanSplit(SplitContext& c) {
  const Scan scan(c.eqn.attrs, c.eqn.regions[0]);
  const Mask consts = scan.Consts(c.unknown), xs = scan.Xs(c.unknown);
  SplitFn split;
  const Mask carry = CarryFixpoint(scan.Carries(c.unknown), scan.carries, [&](const Mask& m) {
                       split = c.regions.split(scan.body, Joined(consts, m, xs), ForceCarries(scan, m));
                       return std::make_pair(0, split.unknown_out);
                     }).first;
  Mask unknown_out = split.unknown_out;
  const Mask ys = scan.Ys(unknown_out);
  const Types types = scan.body->ParamTypes();
  const Fn& known = *split.known;
  const size_t known_consts = static_cast<size_t>(std::count(consts.begin(), consts.end(), false));
  const size_t known_carries = static_cast<size_t>(std::count(carry.begin(), carry.end(), false));
  const size_t known_ys = static_cast<size_t>(std::count(ys.begin(), ys.end(), false));
  const size_t first_residual = known.results().size() - split.residuals.size();

  Atoms known_operands = Where(scan.Consts(c.known_x), consts, false);
  Append(known_operands, Where(scan.Carries(c.known_x), carry, false));
  Append(known_operands, Where(scan.Xs(c.known_x), xs, false));

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
  Builder kb(scan.body->name());
  const Atoms kp = Parameters(kb, known.ParamTypes());
  const Atoms kout = kb.Inline(known, kp);
  Atoms kresults = Part(kout, 0, first_residual);
  for (size_t r = 0; r < source.size(); ++r) {
    if (source[r] == Source::kStacked) kresults.push_back(kout[first_residual + r]);
  }
  const Atoms known_y =
      c.known_b.Emit(*c.eqn.prim, known_operands, ScanAttrs(known_consts, known_carries, scan.length, scan.reverse),
                     {kb.Build(kresults)});

  // The unknown scan: constants = residual constants, unknown constants; xs = residual arrays, unknown xs.
  Builder ub(scan.body->name());
  Atoms operands, residual_consts(source.size()), array_operands;
  std::vector<Atom> args(source.size());
  size_t num_consts = 0;
  for (size_t r = 0; r < source.size(); ++r) {
    if (source[r] != Source::kConst) continue;
    operands.push_back(c.residual(known_operands[param[r]]));
    args[r] = ub.Parameter(split.residuals[r]);
    ++num_consts;
  }
  Append(operands, Where(scan.Consts(c.unknown_x), consts));
  const Atoms up_consts = Parameters(ub, Where(scan.Consts(types), consts));
  num_consts += up_consts.size();
  for (size_t i = 0; i < scan.carries; ++i) {
    if (!carry[i]) continue;
    const size_t operand = scan.consts + i;  // a known start of an unknown carry is a residual
    operands.push_back(c.unknown[operand] ? c.unknown_x[operand] : c.residual(c.known_x[operand]));
  }
  const Atoms up_carry = Parameters(ub, Where(scan.Carries(types), carry));
  size_t next_stacked = known_carries + known_ys;
  for (size_t r = 0; r < source.size(); ++r) {
    if (source[r] == Source::kConst) continue;
    operands.push_back(c.residual(source[r] == Source::kArray ? known_operands[param[r]] : known_y[next_stacked++]));
    args[r] = ub.Parameter(split.residuals[r]);
  }
  Append(operands, Where(scan.Xs(c.unknown_x), xs));
  const Atoms up_xs = Parameters(ub, Where(scan.Xs(types), xs));
  for (const Atoms* more : {&up_consts, &up_carry, &up_xs}) args.insert(args.end(), more->begin(), more->end());
  const Atoms out = ub.Inline(*split.unknown, args);
  const Atoms unknown_y =
      Any(unknown_out)
          ? c.unknown_b.Emit(*c.eqn.prim, operands, ScanAttrs(num_consts, up_carry.size(), scan.length, scan.reverse),
                             {ub.Build(out)})
          : Atoms{};
  size_t k = 0, u = 0;
  for (bool is_unknown : unknown_out) c.y.push_back(is_unknown ? unknown_y[u++] : known_y[k++]);
  c.unknown_out = unknown_out;
}

// The equation as a function of its own, cut in two, the unknown half transposed: for scans with a carry that does not
// depend on the linear inputs, whose values the linear half needs step by step.
OptionalAtoms TransposeBySplitting(TransposeContext& c, const Mask& linear) {
  Builder b("scan");
  const FnRef fn = b.Build(b.Clone(c.eqn, Parameters(b, c.types)));
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

// Runs backwards. Carries: cotangents of linear constants (summed up) and of carries; xs: known arrays and cotangents
// of ys. A carry that starts from a known value (the zero tangent) but becomes linear is linear.
OptionalAtoms ScanTranspose(TransposeContext& c) {
  const Scan scan(c.eqn.attrs, c.eqn.regions[0]);
  Mask operand_linear;
  for (const auto& x : c.x) operand_linear.push_back(!x);
  const Mask carry_linear =
      CarryFixpoint(scan.Carries(operand_linear), scan.carries, [&](const Mask& m) {
        return std::make_pair(0, c.regions
                                     .split(scan.body, Joined(scan.Consts(operand_linear), m, scan.Xs(operand_linear)),
                                            ForceCarries(scan, m))
                                     .unknown_out);
      }).first;
  if (std::find(carry_linear.begin(), carry_linear.end(), false) != carry_linear.end())
    return TransposeBySplitting(c, operand_linear);
  const Mask linear = Joined(scan.Consts(operand_linear), carry_linear, scan.Xs(operand_linear));
  const Mask consts = scan.Consts(linear), xs = scan.Xs(linear);
  const Types types = scan.body->ParamTypes(), results = scan.body->ResultTypes();
  const FnRef back = c.regions.transpose(scan.body, linear);
  Builder b(scan.body->name());
  const Atoms p_consts = Parameters(b, Where(scan.Consts(types), consts, false));
  const Atoms p_sums = Parameters(b, Where(scan.Consts(types), consts)), p_ct = Parameters(b, scan.CarriesOut(results));
  const Atoms p_xs = Parameters(b, Where(scan.Xs(types), xs, false)), p_cty = Parameters(b, scan.Ys(results));
  Atoms args = p_consts;
  for (const Atoms* more : {&p_xs, &p_ct, &p_cty}) Append(args, *more);
  const Atoms cts = b.Inline(*back, args);  // of linear constants, carries, linear xs
  Atoms out;
  for (size_t i = 0; i < p_sums.size(); ++i) out.push_back(Add(b, p_sums[i], cts[i]));
  Append(out, Part(cts, p_sums.size(), cts.size()));

  Atoms operands;
  for (size_t i = 0; i < scan.consts; ++i) {
    if (!linear[i]) operands.push_back(*c.x[i]);
  }
  for (const Type& t : Where(scan.Consts(types), consts)) operands.push_back(Zeros(c.b, t));
  auto cotangent = [&](size_t i, const Type& t) { return c.ct[i] ? *c.ct[i] : Zeros(c.b, t); };
  for (size_t i = 0; i < scan.carries; ++i) operands.push_back(cotangent(i, results[i]));
  for (size_t i = scan.first_x(); i < scan.operands; ++i) {
    if (!linear[i]) operands.push_back(*c.x[i]);
  }
  for (size_t i = scan.carries; i < scan.results; ++i)
    operands.push_back(cotangent(i, Stacked(results[i], scan.length)));
  const Attrs attrs = ScanAttrs(p_consts.size(), p_sums.size() + scan.carries, scan.length, !scan.reverse);
  OptionalAtoms all = Spread(c.b.Emit(*c.eqn.prim, operands, attrs, {b.Build(out)}), linear);
  for (size_t i = 0; i < all.size(); ++i) {
    if (!operand_linear[i]) all[i] = std::nullopt;
  }
  return all;
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

}  // namespace

void RegisterScan(PrimRegistry& r) {
  Prim& p = r.Add("scan", Family::kControl, -1,
                  "Runs the region `length` times. Operands: num_consts constants, num_carry carries, arrays whose "
                  "leading dimension is the length. The region takes "
                  "constants, carries and one slice of each array, and gives new carries and slices of stacked "
                  "results. reverse=true goes from the last slice to the first.");
  p.infer = InferScan;
  p.eval = EvalScan;
  p.jvp = ScanJvp;
  p.batch = ScanBatch;
  p.split = ScanSplit;
  p.linear = {-1};
  p.transpose = ScanTranspose;
  p.samples = ScanSamples;
}

}  // namespace weft
