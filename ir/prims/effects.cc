// Operations that do something besides computing: debug_print, assert, pure_callback, io_callback.
#include "ir/eval/effects.h"

#include "ir/ops.h"
#include "ir/prims/control/tapes.h"
#include "ir/prims/families.h"
#include "ir/prims/shape.h"

namespace weft {
namespace {

// One batch element after the other: a scan whose body is the operation. Unmapped operands are constants of the scan.
void BatchByLoop(BatchContext& c) {
  Builder body(c.eqn.prim->name);
  body.set_loc(c.b.loc());
  Atoms inner(c.x.size()), outer;
  int64_t num_consts = 0;
  for (const bool mapped : {false, true}) {
    for (size_t i = 0; i < c.x.size(); ++i) {
      if (c.batched[i] != mapped) continue;
      Type type = c.b.TypeOf(c.x[i]);
      if (mapped)
        type.dims.erase(type.dims.begin());
      else
        ++num_consts;
      inner[i] = body.Parameter(type);
      outer.push_back(c.x[i]);
    }
  }
  const Atoms results = body.Emit(*c.eqn.prim, inner, c.eqn.attrs);
  const Attrs attrs = {
      {"num_consts", num_consts}, {"num_carry", int64_t{0}}, {"length", Dims{c.size}}, {"reverse", false}};
  c.y = c.b.Emit(FindPrim("scan"), outer, attrs, {body.Build(results)});
  c.batched_out.assign(c.y.size(), true);
}

Type Of(DType dtype, Dims dims) { return Type{dtype, std::move(dims), {}}; }

void RegisterDebugPrint(PrimRegistry& r) {
  Prim& p = r.Add(
      "debug_print", Family::kEffect, -1,
      "Prints `format` with each {} or {:.3f} replaced by the next operand ({{ and }} stand for braces); no result. "
      "Under vmap it prints one batch element after the other, under "
      "differentiation the primal values.");
  p.lane_by_lane = true;
  p.has_effect = true;
  p.infer = [](const Sig& s) -> Types {
    CheckFormat("debug_print: format", s.attrs.Get<std::string>("format"), s.operands.size());
    return {};
  };
  p.eval = [](const EvalContext& c, const Tensors& in) -> Tensors {
    GetEffectHandlers().print(FormatTensors(c.sig.attrs.Get<std::string>("format"), in));
    return {};
  };
  p.not_differentiable = "it has no result";
  p.batch = BatchByLoop;
  p.samples = [] {
    return std::vector<Sample>{
        SampleOf({Of(DType::kF32, {3}), Of(DType::kI32, {})}, {{"format", std::string("x={} n={}")}}),
        SampleOf({}, {{"format", std::string("{{here}}")}}),
        SampleOf({Of(DType::kC64, {2, 2})}, {{"format", std::string("{}")}})};
  };
}

void RegisterAssert(PrimRegistry& r) {
  Prim& p = r.Add("assert", Family::kEffect, -1,
                  "Raises a runtime error when an element of the bool operand 0 is false: `message` with each {} "
                  "replaced by the next further operand. No result.");
  p.dtypes = kBools;
  p.has_effect = true;
  p.more_attributes = {"check"};  // its number among those of weft.experimental.checkify
  p.infer = [](const Sig& s) -> Types {
    if (s.operands.empty())
      throw TypeError("assert: takes a predicate and then the operands of its message; got no operand");
    CheckFormat("assert: message", s.attrs.Get<std::string>("message"), s.operands.size() - 1);
    if (!IsBool(s.operands[0].dtype))
      throw TypeError("assert: operand 0 (the predicate) is ", s.operands[0], "; expected dtype bool");
    return {};
  };
  p.eval = [](const EvalContext& c, const Tensors& in) -> Tensors {
    for (int64_t i = 0; i < in[0].size(); ++i) {
      if (in[0].at<bool>(i)) continue;
      const Tensors values(in.begin() + 1, in.end());
      throw Error(ErrorKind::kRuntime, FormatTensors(c.sig.attrs.Get<std::string>("message"), values));
    }
    return {};
  };
  p.not_differentiable = "it has no result";
  p.batch = [](BatchContext& c) {  // it fails when a batch element does
    c.y = c.b.Emit(*c.eqn.prim, c.x, c.eqn.attrs);
    c.batched_out = {};
  };
  p.samples = [] {
    Sample scalar = SampleOf({Of(DType::kBool, {}), Of(DType::kF32, {2})}, {{"message", std::string("x is {}")}});
    scalar.values = {{0, Tensor::Scalar(DType::kBool, true)}};
    Sample array = SampleOf({Of(DType::kBool, {3})}, {{"message", std::string("not all hold")}});
    array.values = {{0, Tensor::Full(DType::kBool, {3}, 1)}};
    return std::vector<Sample>{scalar, array};
  };
}

void RegisterCallback(PrimRegistry& r, bool pure) {
  Prim& p = r.Add(
      pure ? "pure_callback" : "io_callback", Family::kEffect, -1,
      std::string("Calls host function number `callback` with the operands; its results have the types `results`. ") +
          (pure ? "The function depends on its operands alone: calls whose results are not used are dropped."
                : "Calls keep their order and are never dropped.") +
          " Under vmap it is called for one batch element after the other." +
          (pure ? ""
                : " With `each_device`, which one without results may have, each device of a program that is cut calls "
                  "it with what it holds of the operands, and not the first one with all of them. With `told`, a "
                  "number, "
                  "the first one calls it with what it holds, and who cuts the program learns how the first operand "
                  "lies."));
  p.lane_by_lane = true;
  if (!pure) p.more_attributes = {"each_device", "told"};
  p.has_effect = !pure;
  p.host_functions = [](const Attrs& attrs) -> Ints { return {attrs.GetInt("callback")}; };
  p.infer = [](const Sig& s) -> Types {
    s.attrs.GetInt("callback");
    return s.attrs.Get<Types>("results");
  };
  p.eval = [](const EvalContext& c, const Tensors& in) -> Tensors {
    const int64_t id = c.sig.attrs.GetInt("callback");
    Tensors out = GetEffectHandlers().callback(id, in, c.results);
    if (out.size() != c.results.size()) {
      throw Error(ErrorKind::kRuntime, internal::Concat(c.sig.prim.name, ": callback ", id, " gave ", out.size(),
                                                        " results; expected ", c.results.size()));
    }
    for (size_t i = 0; i < out.size(); ++i) {
      if (out[i].dtype() == c.results[i].dtype && out[i].type().dims == c.results[i].dims) continue;
      throw Error(ErrorKind::kRuntime, internal::Concat(c.sig.prim.name, ": callback ", id, " gave ", out[i].type(),
                                                        " as result ", i, "; expected ", c.results[i]));
    }
    for (Tensor& t : out) {
      if (t.dtype() != DType::kTape) continue;
      Tensor own(DType::kTape, t.shape());
      CopyTapes(EvalTapes::Region(), t.data<uint64_t>(), t.size(), own.data<uint64_t>());
      t = own;
    }
    return out;
  };
  p.not_differentiable =
      "what a host function computes is not known; give it a derivative with custom_jvp or custom_vjp";
  p.batch = BatchByLoop;
  p.samples = [] {
    const Type x = Of(DType::kF32, {3});
    return std::vector<Sample>{
        SampleOf({x, Of(DType::kI32, {})}, {{"callback", int64_t{0}}, {"results", Types{x, Of(DType::kF64, {})}}}),
        SampleOf({x}, {{"callback", int64_t{0}}, {"results", Types{}}})};
  };
}

}  // namespace

void RegisterEffects(PrimRegistry& r) {
  RegisterDebugPrint(r);
  RegisterAssert(r);
  RegisterCallback(r, /*pure=*/true);
  RegisterCallback(r, /*pure=*/false);
}

}  // namespace weft
