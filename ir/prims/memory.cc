// The explicit memory form (docs/program_forms.md): arrays without elements, operations that say where their results
// lie, and memory that is given back. lowering/program/explicit_form.h makes it, ir/memory_form.h checks it.
#include "ir/ops.h"
#include "ir/prims/control/regions.h"
#include "ir/prims/families.h"
#include "ir/prims/shape.h"

namespace weft {
namespace {

void RegisterAllocate(PrimRegistry& r) {
  Prim& p = r.Add("allocate", Family::kEffect, 0,
                  "Memory for an array of `shape` and `dtype`, `at` so many bytes from the start of the program's "
                  "arena; of place \"result\", that of the program's result number `at`. What its elements are is not "
                  "said; who looks finds 0.");
  p.has_effect = true;
  p.infer = [](const Sig& s) -> Types {
    const std::string& place = s.attrs.Get<std::string>("place");
    if (place != "arena" && place != "result")
      throw TypeError("allocate: place is '", place, "'; expected \"arena\" or \"result\"");
    if (s.attrs.GetInt("at") < 0) throw TypeError("allocate: at is ", s.attrs.GetInt("at"), "; expected 0 or more");
    return {Type{s.attrs.Get<DType>("dtype"), s.attrs.Get<Dims>("shape"), {}}};
  };
  p.eval = [](const EvalContext& c, const Tensors&) -> Tensors {
    return {Tensor::Zeros(c.results[0].dtype, StaticSizes(c.results[0].dims, "eval"))};
  };
  p.not_differentiable = "it has no elements before something is computed into it";
  p.batch = [](BatchContext& c) {
    c.y = c.b.Emit(*c.eqn.prim, {}, c.eqn.attrs);
    c.batched_out = {false};
  };
  p.samples = [] {
    return std::vector<Sample>{SampleOf(
        {}, {{"shape", Dims{2, 3}}, {"dtype", DType::kI32}, {"place", std::string("arena")}, {"at", int64_t{64}}})};
  };
}

void RegisterFree(PrimRegistry& r) {
  Prim& p = r.Add("free", Family::kEffect, 1, "Gives back the memory that the operand lies in. No result.");
  p.has_effect = true;
  p.infer = [](const Sig&) -> Types { return {}; };
  p.eval = [](const EvalContext&, const Tensors&) -> Tensors { return {}; };
  p.not_differentiable = "it has no result";
  p.batch = [](BatchContext& c) {
    c.y = c.b.Emit(*c.eqn.prim, c.x, c.eqn.attrs);
    c.batched_out = {};
  };
  p.samples = [] { return std::vector<Sample>{SampleOf({Type{DType::kF32, {3}, {}}})}; };
}

void RegisterLoad(PrimRegistry& r) {
  Prim& p = r.Add("load", Family::kEffect, 1,
                  "The number that x [] lies in memory as, without memory of its own: what decides which branch runs "
                  "is known before the branch takes its memory.");
  p.has_effect = true;
  p.infer = [](const Sig& s) -> Types {
    if (s.operands[0].rank() != 0) throw TypeError("load: x is ", s.operands[0], "; expected rank 0");
    return {s.operands[0]};
  };
  p.eval = [](const EvalContext&, const Tensors& in) -> Tensors { return {in[0]}; };
  p.not_differentiable = "it decides which branch runs";
  p.batch = [](BatchContext& c) {
    c.y = {c.x[0]};
    c.batched_out = {c.batched[0]};
  };
  p.samples = [] { return std::vector<Sample>{SampleOf({Type{DType::kBool, {}, {}}})}; };
}

void RegisterInto(PrimRegistry& r) {
  Prim& p = r.Add("into", Family::kControl, -1,
                  "The results of the region on the operands. Result i takes the memory of operand i, whose value is "
                  "gone then: one of `allocate`, or one that the region reads for the last time. Transforms see a "
                  "call.");
  p.region_use = RegionUse::kCall;
  p.infer = [](const Sig& s) -> Types {
    CheckRegionCount(s, 1);
    CheckRegionParams(s, 0, s.operands);
    const Types results = s.regions[0]->ResultTypes();
    if (results.size() > s.operands.size())
      throw TypeError("into: has ", results.size(), " results and ", s.operands.size(),
                      " operands; each result lies in the memory of an operand");
    for (size_t i = 0; i < results.size(); ++i) {
      const auto bytes = [](const Type& t) { return t.size() * Dim(ByteWidth(t.dtype)); };
      const Type& to = s.operands[i];
      if (to.is_static() && results[i].is_static() && bytes(to).value() < bytes(results[i]).value())
        throw TypeError("into: result ", i, " is ", results[i], ", which does not fit into the memory of operand ", i,
                        ", ", to);
    }
    return results;
  };
  p.eval = [](const EvalContext& c, const Tensors& in) -> Tensors { return c.run(*c.sig.regions[0], in); };
  const auto as_call = [](const Eqn& e) {
    Eqn call = e;
    call.prim = &FindPrim("call");
    return call;
  };
  p.push = [as_call](PushContext& c) {
    const Eqn call = as_call(c.eqn);
    PushContext inner{c.b, call, c.x, c.dx, c.count, c.push, {}, {}};
    PushCall(inner);
    c.y = inner.y;
    c.dy = inner.dy;
  };
  p.batch = [](BatchContext& c) {
    const BatchedFn f = c.regions.batch(c.eqn.regions[0], c.batched, Mask(c.eqn.num_results, false), c.size);
    c.y = c.b.Emit(FindPrim("call"), c.x, {}, {f.fn});
    c.batched_out = f.batched_out;
  };
  p.split = [](SplitContext& c) { SplitCall(c, {}); };
  p.keeps_results = "each of them says where it lies";
  p.samples = [] {
    std::vector<Sample> samples;
    for (const DType dtype : {DType::kF32, DType::kF64}) {
      const Type type{dtype, {5}, {}};
      Builder b("f");
      b.Parameter(type);
      const Atom x = b.Parameter(type);
      samples.push_back(SampleOf({type, type}));
      samples.back().regions = {b.Build({Sin(b, x)})};
    }
    return samples;
  };
}

}  // namespace

void RegisterMemory(PrimRegistry& r) {
  RegisterAllocate(r);
  RegisterFree(r);
  RegisterLoad(r);
  RegisterInto(r);
}

}  // namespace weft
