// primitive: an operation that a program defines (weft.Primitive in Python). Its region is what it computes; its rules
// are functions of the host, which the equation names by number, as custom_jvp and custom_vmap do:
//
//   rule       operands, tangents -> results, tangents              (JvpHostRule)
//   transpose  operands that are not linear, cotangents of the results -> cotangents of the linear operands
//   (BackwardRule) batch      batched operands -> results                          (BatchingRule)
//
// A rule that is not there follows from the region, unless that is `opaque`: a call of the host has no derivative, and
// to ask for one is an error at the user's line. Without `batch` the region is batched, and `through` notes it, so that
// the other rules are batched likewise (custom_host.h).
#include <algorithm>

#include "ir/custom_rules.h"
#include "ir/prims/control/custom_host.h"
#include "ir/prims/control/mapped_results.h"
#include "ir/prims/control/regions.h"
#include "ir/prims/families.h"

namespace weft {
namespace {

constexpr const char* kRuleNumbers[] = {"rule", "transpose", "batch"};

std::string NameOf(const Eqn& eqn) { return eqn.attrs.GetOr<std::string>("name", eqn.regions[0]->name()); }

[[noreturn]] void NoRule(const Eqn& eqn, const char* rule, const char* what) {
  throw UserError(ErrorKind::kDerivative, eqn.loc, "primitive '", NameOf(eqn), "' has no ", rule, " rule, which ", what,
                  " needs: what it computes is a call of the host, of which no derivative is known. Give it one: "
                  "weft.Primitive('",
                  NameOf(eqn), "', ..., ", rule, "=...)");
}

bool IsOpaque(const Eqn& eqn) { return eqn.attrs.GetOr<bool>("opaque", false); }

Types TypesOf(const Builder& b, const Atoms& atoms) {
  Types types;
  for (const Atom& a : atoms) types.push_back(b.TypeOf(a));
  return types;
}

Types InferPrimitive(const Sig& s) {
  CheckRegionCount(s, 1);
  for (const char* number : kRuleNumbers) s.attrs.GetOr<int64_t>(number, 0);
  s.attrs.GetOr<std::string>("name", "");
  s.attrs.GetOr<std::string>("params", "");
  s.attrs.GetOr<bool>("opaque", false);
  CheckThrough(s);
  CheckRegionParams(s, 0, s.operands);
  return s.regions[0]->ResultTypes();
}

void PrimitiveJvp(JvpContext& c) {
  if (HasHostRule(c.eqn.attrs)) return HostJvp(c);
  const Mask active = ActiveOf(c.dx);
  if (c.eqn.attrs.Find("transpose") != nullptr) {
    // A transposition without a derivative: the operation is linear in all its operands.
    c.y = c.b.Clone(c.eqn, c.x);
    Atoms tangents;
    for (size_t i = 0; i < c.x.size(); ++i) tangents.push_back(c.dx[i] ? *c.dx[i] : Zeros(c.b, c.b.TypeOf(c.x[i])));
    for (const Atom& t : c.b.Clone(c.eqn, tangents)) c.dy.push_back(t);
    return;
  }
  if (IsOpaque(c.eqn)) NoRule(c.eqn, "jvp", "a derivative");
  const JvpFn f = c.regions.jvp(c.eqn.regions[0], active, Mask(c.eqn.num_results, false));
  Atoms args = c.x;
  Append(args, Tangents(c.b, c.x, c.dx, active));
  const Atoms out = c.b.Inline(*f.fn, args);
  c.y = Part(out, 0, c.eqn.num_results);
  c.dy.assign(c.eqn.num_results, std::nullopt);
  size_t next = c.eqn.num_results;
  for (size_t r = 0; r < c.eqn.num_results; ++r) {
    if (f.active_out[r]) c.dy[r] = out[next++];
  }
}

OptionalAtoms PrimitiveTranspose(TransposeContext& c) {
  Mask linear;
  Atoms args;
  for (const auto& x : c.x) {
    linear.push_back(!x);
    if (x) args.push_back(*x);
  }
  const Types results = c.eqn.regions[0]->ResultTypes();
  for (uint32_t i = 0; i < c.eqn.num_results; ++i) args.push_back(c.ct[i] ? *c.ct[i] : Zeros(c.b, results[i]));
  if (c.eqn.attrs.Find("transpose") == nullptr) {
    if (IsOpaque(c.eqn)) NoRule(c.eqn, "transpose", "reverse mode");
    return Spread(c.b.Inline(*c.regions.transpose(c.eqn.regions[0], linear), args), linear);
  }
  return Spread(c.b.Inline(*HostTranspose(c.eqn, c.types.list(), linear, c.regions), args), linear);
}

void PrimitiveBatch(BatchContext& c) {
  if (const int64_t number = c.eqn.attrs.GetOr<int64_t>("batch", 0)) {
    const auto rule = std::static_pointer_cast<BatchingRule>(FindHostFunction(number, HostKind::kBatchingRule));
    if (rule == nullptr) {
      throw UserError(ErrorKind::kUnsupported, c.eqn.loc, "vmap: the batch rule of the primitive '", NameOf(c.eqn),
                      "' (number ", number, ") belongs to another process, or is gone");
    }
    Types types = TypesOf(c.b, c.x);
    for (size_t i = 0; i < types.size(); ++i) {
      if (c.batched[i]) types[i].dims.erase(types[i].dims.begin());
    }
    const BatchedFn f = (*rule)(c.size, c.batched, types);
    c.y = c.b.Inline(*f.fn, c.x);
    c.batched_out = f.batched_out;
    return;
  }
  c.y = c.b.Emit(*c.eqn.prim, c.x, WithVmap(c, c.batched), {BatchAllResults(c, c.eqn.regions[0], c.batched)});
  GiveResultsOfRuled(c);
}

}  // namespace

void RegisterCustomPrimitive(PrimRegistry& r) {
  Prim& p = r.Add("primitive", Family::kControl, -1,
                  "An operation that the program defines: the results of the region. `name` and `params` say which; "
                  "`rule`, `transpose` and `batch` are the numbers of its rules, functions of the host, for the "
                  "derivative, its transposition and vmap. One that is not given follows from the region; where that "
                  "is `opaque`, a call of the host, to need a derivative is an error. The vmaps that the equation went "
                  "through without a batch rule (through, sizes) are done to what the rules give. The last num_consts "
                  "operands are captured values without tangents.");
  p.region_use = RegionUse::kWithRules;
  p.infer = InferPrimitive;
  p.eval = [](const EvalContext& c, const Tensors& in) -> Tensors { return c.run(*c.sig.regions[0], in); };
  p.jvp = PrimitiveJvp;
  p.linear = {-1};
  p.transpose = PrimitiveTranspose;
  p.batch = PrimitiveBatch;
  p.host_functions = [](const Attrs& attrs) {
    Ints numbers;
    for (const char* name : kRuleNumbers) {
      if (const int64_t number = attrs.GetOr<int64_t>(name, 0)) numbers.push_back(number);
    }
    return numbers;
  };
  p.keeps_results = "its rules, functions of the user's, give and take all results";
  p.more_attributes = {"name", "params", "rule", "transpose", "batch", "opaque", "through", "sizes", "num_consts"};
  p.samples = [] {
    std::vector<Sample> samples;
    for (DType t : {DType::kF32, DType::kF64}) {
      const Type type{t, {4}, {}};
      Builder f("f");
      const Atom x = f.Parameter(type), y = f.Parameter(type);
      Sample s;
      s.operands = {type, type};
      s.attrs = {{"name", std::string("f")}, {"params", std::string("order=1")}};
      s.regions = {f.Build({Mul(f, Sin(f, x), y)})};
      samples.push_back(s);
    }
    return samples;
  };
}

}  // namespace weft
