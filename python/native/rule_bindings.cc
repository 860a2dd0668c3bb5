// Functions with rules of their own: custom_jvp, custom_vjp, custom_vmap. Their rules run when a transform meets the
// equation (ir/custom_rules.h), after the trace of the call has ended. What the rule finds is as it was at the call:
// named axes are bound, what the function captured from around it is there, and numbers that were known are known.
#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "ir/custom_rules.h"
#include "ir/ops.h"
#include "python/native/bindings.h"
#include "python/native/effects.h"
#include "python/native/typed_layouts.h"
#include "tracer/axes.h"
#include "tracer/context.h"
#include "tracer/regions.h"

namespace weft::python {
namespace {

py::object ListOf(const Values& values) { return Take(WrapValues(values)); }

std::vector<int> Range(int begin, int end) {
  std::vector<int> numbers;
  for (int i = begin; i < end; ++i) numbers.push_back(i);
  return numbers;
}

Attrs ConstsAttr(int consts) {
  Attrs attrs;
  if (consts > 0) attrs.Set("num_consts", int64_t{consts});
  return attrs;
}

// A rule of the user's names tangents and cotangents of everything; the primitives only those of types that have some.
// `fn` with zeros for the last parameters, as far as `types` of those have none, and without the last results that
// belong to other `result_types`. What those vary over, its results do.
FnRef OnlyMoving(const FnRef& fn, const Types& types, const Types& result_types) {
  Builder b(fn->name());
  const size_t first = fn->params().size() - types.size();
  Atoms args;
  for (size_t i = 0; i < fn->params().size(); ++i) {
    const Param& p = fn->params()[i];
    const bool dropped = i >= first && !HasTangents(types[i - first].dtype);
    args.push_back(dropped ? Zeros(b, p.type) : b.Parameter(p.type, p.name));
  }
  Atoms results = b.Inline(*fn, args), kept;
  const size_t first_result = results.size() - result_types.size();
  for (size_t i = 0; i < results.size(); ++i) {
    if (i < first_result)
      kept.push_back(results[i]);
    else if (const Type& type = result_types[i - first_result]; HasTangents(type.dtype))
      kept.push_back(Pvary(b, results[i], type.varying));
  }
  return b.Build(kept);
}

// What the rule of a custom_vmap gives for `batched` arguments, the values that the function captured last.
BatchedFn BatchedByRule(const py::function& rule, const Values& captures, size_t args, const std::string& name,
                        const ScopedSettings::All& settings, const Dim& size, const Mask& batched, const Types& types) {
  const ScopedSettings as_at_the_call(settings);
  py::list specs;
  for (size_t i = 0; i < args; ++i) {
    py::list dims;
    if (batched[i]) dims.append(Take(DimObject(size)));
    for (const Dim& d : types[i].dims) dims.append(Take(DimObject(d)));
    specs.append(py::make_tuple(py::tuple(dims), Take(DTypeObject(types[i].dtype))));
  }
  const py::object out = RunningPython(
      [&] { return rule(Take(DimObject(size)), std::vector<bool>(batched.begin(), batched.begin() + args), specs); });
  if (out.is_none()) return {};
  const Traced& t = *out.attr("__getitem__")(0).cast<const Traced*>();
  const auto flags = out.attr("__getitem__")(1).cast<std::vector<bool>>();
  Builder b(t.fn->name());
  Atoms params, own;
  for (size_t i = 0; i < args; ++i) own.push_back(b.Parameter(t.fn->params()[i].type, t.fn->params()[i].name));
  for (const Value& v : captures) params.push_back(b.Parameter(v.type()));
  // Large arrays of the function's, which the rule has itself (ir/large_literals.h).
  for (size_t i = args + captures.size(); i < types.size(); ++i) b.Parameter(types[i]);
  for (const Value& v : t.captures) {
    size_t i = 0;
    while (i < captures.size() && !SameCaptures({captures[i]}, {v})) ++i;
    if (i == captures.size()) {
      if (!v.traced()) {
        own.push_back(Atom(v.tensor()));
        continue;
      }
      throw TypeError("custom_vmap: the batching rule of '", name, "' uses a value ", v.type(),
                      " from around it, which '", name, "' does not use; make it an argument");
    }
    own.push_back(params[i]);
  }
  return {b.Build(b.Inline(*t.fn, own)), Mask(flags.begin(), flags.end())};
}

using Layouts = std::vector<std::optional<ValueLayout>>;  // without the mesh

// As the type of a value says it; the mesh, which Python has, goes to `mesh`.
std::optional<ValueLayout> LayoutOf(const Value& value, std::shared_ptr<void>& mesh) {
  std::optional<ValueLayout> l = LayoutForRules(value);
  if (!l) return l;
  if (mesh == nullptr) mesh = HeldFunction(l->mesh.get());
  l->mesh = Ref();
  return l;
}

// A call as its rules see it later.
struct Call {
  std::string name, kind;          // of the function; "custom_jvp"
  std::vector<std::string> names;  // of its arguments, for reading the program
  Values arguments;                // with their numbers, where those are known
  std::vector<bool> weak;          // of the arguments
  Layouts layouts;                 // of the arguments, as their types say it
  std::shared_ptr<void> mesh;      // of these
  Values captures;                 // the operands after the arguments
  std::vector<NamedAxis> axes = BoundAxes();
  ScopedSettings::All settings = ScopedSettings::Here();
  bool keeps_known = false;

  std::string NameOf(size_t argument) const { return argument < names.size() ? names[argument] : ""; }
};

struct RuleParameter {
  Type type;
  std::string name = {};
  bool weak = false;
  const Value* known = nullptr;
  std::optional<ValueLayout> layout = {};
};

RuleParameter Argument(const Call& call, const Type& type, size_t i) {
  return {type, call.NameOf(i), call.weak[i], call.keeps_known ? &call.arguments[i] : nullptr, call.layouts[i]};
}

// What the function captured, and behind that large arrays of the function's, which rules have themselves
// (ir/large_literals.h).
RuleParameter Captured(const Call& call, const Type& type, size_t i) {
  if (i >= call.captures.size()) return {type};
  const Value& value = call.captures[i];
  return {type, "", value.weak(), call.keeps_known || !value.traced() ? &value : nullptr};
}

// The closed function of these parameters, of which those from `captured` on stand for what the call captured. `run`
// gets their traced values.
template <class Run>
FnRef TraceRule(const Call& call, const std::vector<RuleParameter>& parameters, size_t captured, const Run& run) {
  const InsidePython inside;
  const ScopedAxes axes(call.axes);
  const ScopedSettings settings(call.settings);
  ScopedTrace trace(call.name, call.kind);
  trace->set_keeps_known(call.keeps_known);
  ScopedTypedLayouts typed(*trace, ScopedTypedLayouts::Rule{static_cast<PyObject*>(call.mesh.get())});
  Values values;
  for (size_t i = 0; i < parameters.size(); ++i) {
    const RuleParameter& p = parameters[i];
    values.push_back(trace->Parameter(p.type, p.name, p.weak, p.known));
    typed.Parameter(p.layout, values.back());
    if (i >= captured && i < captured + call.captures.size())
      trace->StandFor(call.captures[i - captured], values.back().var());
  }
  const Traced t = trace->Finish(run(values));
  if (t.captures.empty()) return t.fn;
  Builder b(call.name);
  Atoms args;
  for (const RuleParameter& p : parameters) args.push_back(b.Parameter(p.type, p.name));
  for (const Value& v : t.captures) {
    if (v.traced()) {
      throw UserError(ErrorKind::kTracer, CurrentLoc(), call.kind, ": the rule of '", call.name,
                      "' uses a traced value, ", v.type(), ", from around it, which '", call.name,
                      "' does not use; make it an argument");
    }
    args.push_back(Atom(v.tensor()));  // whatever its size: see Apply in tracer/trace.cc
  }
  return b.Build(b.Inline(*t.fn, args));
}

// What Python runs, which may be let go on any thread.
py::object Held(const std::shared_ptr<void>& function) {
  return py::reinterpret_borrow<py::object>(static_cast<PyObject*>(function.get()));
}

py::list Wrapped(const Values& values, size_t begin, size_t end) {
  py::list list;
  for (size_t i = begin; i < end; ++i) list.append(Take(WrapValue(values[i])));
  return list;
}

// The values from `begin` on in the places of the flags that are set; None in the others.
py::list WrappedWhere(const Mask& mask, const Values& values, size_t begin) {
  py::list list;
  for (bool set : mask) list.append(set ? Take(WrapValue(values[begin++])) : py::none());
  return list;
}

// Its exception as one that says of the rule (ir/custom_rules.h), unless memory ran out or the program is to end.
struct RaisedByRule : py::error_already_set, RuleRaised {
  explicit RaisedByRule(const py::error_already_set& error) : py::error_already_set(error) {}
};

// rule(arguments...), for a rule that a transform runs.
template <class... Args>
py::object RunRule(const std::shared_ptr<void>& rule, const Args&... args) {
  return RunningPython([&]() -> py::object {
    try {
      return Held(rule)(args...);
    } catch (const py::error_already_set& error) {
      if (!error.matches(PyExc_Exception) || error.matches(PyExc_MemoryError)) throw;
      throw RaisedByRule(error);
    }
  });
}

// Results of a rule: a list in which None is a symbolic zero. Appends the others to `values`.
Mask AppendGiven(const py::handle& list, const char* what, Values& values) {
  Mask given;
  py::list there;
  for (py::handle item : list) {
    given.push_back(!item.is_none());
    if (given.back()) there.append(item);
  }
  const Values more = ValuesFrom(there, what);
  values.insert(values.end(), more.begin(), more.end());
  return given;
}

// rule(arguments, tangents, stack) -> (values, tangents), lists in which None is a zero tangent.
JvpHostRule::Run JvpRuleOf(std::shared_ptr<const Call> call, std::shared_ptr<void> rule) {
  return [call = std::move(call), rule = std::move(rule)](const Types& types, const Mask& active, const Loc& loc) {
    const py::gil_scoped_acquire locked;
    const size_t own = call->arguments.size(), all = types.size();
    std::vector<RuleParameter> parameters;
    for (size_t i = 0; i < all; ++i)
      parameters.push_back(i < own ? Argument(*call, types[i], i) : Captured(*call, types[i], i - own));
    for (size_t i = 0; i < own; ++i) {
      if (active[i])
        parameters.push_back({types[i], call->NameOf(i).empty() ? "" : "d" + call->NameOf(i), call->weak[i]});
    }
    JvpFn out;
    out.fn = TraceRule(*call, parameters, own, [&](const Values& values) {
      const Mask moving(active.begin(), active.begin() + static_cast<int64_t>(own));
      const py::object both = RunRule(rule, Wrapped(values, 0, own), WrappedWhere(moving, values, all), loc.Stack());
      Values results = ValuesFrom(both.attr("__getitem__")(0), "custom_jvp");
      out.active_out = AppendGiven(both.attr("__getitem__")(1), "custom_jvp", results);
      return results;
    });
    return out;
  };
}

// What the backward rule needs to know of the run of the forward rule.
struct Forward {
  std::shared_ptr<const Call> call;
  Values residuals;  // in the trace of the forward rule
  Layouts layouts;   // of the residuals
  Layouts of_results;
  Types results;   // those with cotangents
  Types operands;  // those that had tangents
};

// backward(residuals, cotangents, stack) -> cotangents of the operands that had tangents. A None among the cotangents
// is a zero.
BackwardRule::Run BackwardRuleOf(const Forward& forward, std::shared_ptr<void> backward) {
  return [forward, backward = std::move(backward)](const Types& types, const Mask& given, const Loc& loc) {
    const py::gil_scoped_acquire locked;
    const Call& call = *forward.call;
    const size_t own = forward.residuals.size();
    std::vector<RuleParameter> parameters;
    for (size_t i = 0; i < types.size(); ++i) {
      if (i >= own) {
        parameters.push_back(Captured(call, types[i], i - own));
        continue;
      }
      const Value& residual = forward.residuals[i];
      parameters.push_back({types[i], "", residual.weak(), call.keeps_known ? &residual : nullptr, forward.layouts[i]});
    }
    for (size_t r = 0; r < given.size(); ++r) {
      if (!given[r]) continue;
      parameters.push_back({forward.results[r], "ct"});
      if (const auto& l = forward.of_results[r]) parameters.back().layout = l->OfCotangent();
    }
    const FnRef fn = TraceRule(call, parameters, own, [&](const Values& values) {
      const py::object cts =
          RunRule(backward, Wrapped(values, 0, own), WrappedWhere(given, values, types.size()), loc.Stack());
      return ValuesFrom(cts, "custom_vjp");
    });
    WEFT_CHECK(fn->results().size() == forward.operands.size()) << "cotangents of a custom_vjp";
    Builder b(fn->name());
    Atoms params;
    for (const Param& p : fn->params()) params.push_back(b.Parameter(p.type, p.name));
    Atoms results = b.Inline(*fn, params);
    for (size_t i = 0; i < results.size(); ++i) results[i] = Pvary(b, results[i], forward.operands[i].varying);
    return BackwardFn{b.Build(results)};
  };
}

// forward(arguments, perturbed, stack) -> (values, residuals that are arrays, backward)
ForwardRule::Run ForwardRuleOf(std::shared_ptr<const Call> call, std::shared_ptr<void> rule) {
  return [call = std::move(call), rule = std::move(rule)](const Types& types, const Mask& active, const Loc& loc) {
    const py::gil_scoped_acquire locked;
    const size_t own = call->arguments.size();
    std::vector<RuleParameter> parameters;
    for (size_t i = 0; i < types.size(); ++i)
      parameters.push_back(i < own ? Argument(*call, types[i], i) : Captured(*call, types[i], i - own));
    Forward forward{call, {}, {}, {}, {}, {}};
    std::shared_ptr<void> backward;
    size_t num_results = 0;
    ForwardFn out;
    out.fn = TraceRule(*call, parameters, own, [&](const Values& values) {
      const std::vector<bool> perturbed(active.begin(), active.begin() + static_cast<int64_t>(own));
      const py::object three = RunRule(rule, Wrapped(values, 0, own), perturbed, loc.Stack());
      Values results = ValuesFrom(three.attr("__getitem__")(0), "custom_vjp");
      num_results = results.size();
      forward.residuals = ValuesFrom(three.attr("__getitem__")(1), "custom_vjp");
      std::shared_ptr<void> mesh = call->mesh;
      for (const Value& v : forward.residuals) forward.layouts.push_back(LayoutOf(v, mesh));
      for (const Value& v : results) {
        if (HasTangents(v.type().dtype)) forward.of_results.push_back(LayoutOf(v, mesh));
      }
      backward = HeldFunction(three.attr("__getitem__")(2).ptr());
      results.insert(results.end(), forward.residuals.begin(), forward.residuals.end());
      return results;
    });
    const Types results = out.fn->ResultTypes();
    for (size_t r = 0; r < num_results; ++r) {
      if (HasTangents(results[r].dtype)) forward.results.push_back(results[r]);
    }
    for (size_t i = 0; i < types.size(); ++i) {
      if (active[i]) forward.operands.push_back(types[i]);
    }
    // A transform is under way, which makes it stay; who gets the result holds it.
    const HostFunctions held = HoldRule(BackwardRuleOf(forward, std::move(backward)), NewHostNumber());
    out.backward = held.number();
    return out;
  };
}

// transpose(operands, None for those that are linear; cotangents, stack) -> cotangents of the linear operands.
BackwardRule::Run TransposeRuleOf(std::shared_ptr<const Call> call, Types results, std::shared_ptr<void> rule) {
  return [call = std::move(call), results = std::move(results), rule = std::move(rule)](
             const Types& types, const Mask& linear, const Loc& loc) {
    const py::gil_scoped_acquire locked;
    const size_t own = call->arguments.size();
    std::vector<RuleParameter> parameters;
    size_t captured = 0, known = 0;
    for (size_t i = 0; i < types.size(); ++i) {
      if (i >= own && linear[i]) {
        throw UserError(ErrorKind::kDerivative, loc, "primitive '", call->name,
                        "': a value that its lowering captured is differentiated; make it an operand");
      }
      if (linear[i]) continue;
      captured += i < own ? 1 : 0;
      parameters.push_back(i < own ? RuleParameter{types[i], call->NameOf(i), call->weak[i]}
                                   : Captured(*call, types[i], i - own));
    }
    known = parameters.size();
    for (const Type& t : results) parameters.push_back({t, "ct"});
    const FnRef fn = TraceRule(*call, parameters, captured, [&](const Values& values) {
      py::list operands;
      size_t next = 0;
      for (size_t i = 0; i < own; ++i) operands.append(linear[i] ? py::none() : Take(WrapValue(values[next++])));
      const py::object cts =
          RunningPython([&] { return Held(rule)(operands, Wrapped(values, known, values.size()), loc.Stack()); });
      return ValuesFrom(cts, "primitive");
    });
    Builder b(fn->name());
    Atoms params;
    for (const Param& p : fn->params()) params.push_back(b.Parameter(p.type, p.name));
    Atoms cts = b.Inline(*fn, params);
    size_t next = 0;
    for (size_t i = 0; i < own; ++i) {
      if (linear[i]) cts[next] = Pvary(b, cts[next], types[i].varying), ++next;
    }
    WEFT_CHECK(next == cts.size()) << "cotangents of a primitive";
    return BackwardFn{b.Build(cts)};
  };
}

// The equation of a primitive: `f` is what it computes. Rules that are None follow from that.
py::object EmitPrimitive(const Traced& f, const Values& operands, const std::vector<std::string>& names,
                         const std::string& name, const std::string& params, bool opaque, const py::object& jvp,
                         const py::object& transpose, const py::object& batch, const Ints& numbers) {
  for (const Value& v : f.captures) {
    if (!v.traced()) continue;
    throw UserError(ErrorKind::kTracer, CurrentLoc(), "primitive '", name, "': its lowering uses a traced value, ",
                    v.type(), ", from around it; make it an operand");
  }
  auto call = std::make_shared<Call>();
  call->name = name;
  call->kind = "primitive";
  call->names = names;
  for (const Value& v : operands) call->weak.push_back(v.weak());
  call->arguments.assign(operands.size(), Value());
  call->layouts.resize(operands.size());
  call->captures = f.captures;
  const Aligned closed = AlignCaptures({f});
  Attrs attrs = ConstsAttr(static_cast<int>(f.captures.size()));
  attrs.Set("name", name);
  if (!params.empty()) attrs.Set("params", params);
  if (opaque) attrs.Set("opaque", true);
  const bool shared = call->captures.empty() && call->axes.empty();
  const auto number = [&](size_t i) { return shared && numbers[i] != 0 ? numbers[i] : NewHostNumber(); };
  HostFunctions held_jvp, held_transpose, held_batch;
  if (!jvp.is_none()) {
    held_jvp = HoldRule(JvpRuleOf(call, HeldFunction(jvp.ptr())), number(0));
    attrs.Set("rule", held_jvp.number());
  }
  if (!transpose.is_none()) {
    held_transpose = HoldRule(TransposeRuleOf(call, f.fn->ResultTypes(), HeldFunction(transpose.ptr())), number(1));
    attrs.Set("transpose", held_transpose.number());
  }
  if (!batch.is_none()) {
    const auto batched_by = [rule = HeldFunction(batch.ptr()), call](const Dim& size, const Mask& batched,
                                                                     const Types& types) {
      const py::gil_scoped_acquire locked;
      return BatchedByRule(py::reinterpret_borrow<py::function>(static_cast<PyObject*>(rule.get())), call->captures,
                           call->arguments.size(), call->name, call->settings, size, batched, types);
    };
    held_batch = HoldRule(BatchingRule(batched_by), number(2));
    attrs.Set("batch", held_batch.number());
  }
  Values args = operands;
  args.insert(args.end(), f.captures.begin(), f.captures.end());
  Values out = Bind(FindPrim("primitive"), args, attrs, closed.fns);
  for (size_t i = 0; i < out.size(); ++i) out[i] = out[i].WithWeak(f.weak_results[i]);
  return ListOf(out);
}

// The equation of a call: `f`, and after its own captures those among `others`, which the rules may use, that are
// usable here.
py::object EmitCall(const char* prim, bool forward, const Traced& f, const Values& operands,
                    const std::vector<std::string>& names, const py::handle& others, py::handle rule, int64_t number,
                    bool elementwise) {
  Values more;
  for (const Value& v : ValuesFrom(others, prim)) {
    if (v.traced() && IsUsable(v)) more.push_back(v);
  }
  Traced with = f;
  if (!more.empty()) {
    Builder b(f.fn->name());
    for (const Value& v : more) b.Parameter(TypeHere(v));
    Traced uses_more;
    uses_more.fn = b.Build({});
    uses_more.captures = more;
    const Aligned a = AlignCaptures({f, uses_more});
    with.fn = a.fns[0];
    with.captures = a.captures;
  }
  auto call = std::make_shared<Call>();
  call->name = f.fn->name();
  call->kind = prim;
  call->names = names;
  for (const Value& v : operands) {
    call->weak.push_back(v.weak());
    call->layouts.push_back(LayoutOf(v, call->mesh));
  }
  call->arguments = operands;
  call->captures = with.captures;
  const Trace* trace = Trace::Current();
  call->keeps_known = trace != nullptr && trace->keeps_known();
  // Calls of one kind name one rule, so that programs are recognised; a rule that knows this call's numbers or where
  // its arguments lie, or has values from around it, is this call's own.
  if (call->keeps_known || !call->captures.empty() || !call->axes.empty() || call->mesh != nullptr || number == 0)
    number = NewHostNumber();
  if (!call->keeps_known) call->arguments.assign(operands.size(), Value());
  const std::shared_ptr<void> function = HeldFunction(rule.ptr());
  const HostFunctions held =
      forward ? HoldRule(JvpRuleOf(call, function), number) : HoldRule(ForwardRuleOf(call, function), number);
  const Aligned closed = AlignCaptures({with});
  Values args = operands;
  args.insert(args.end(), with.captures.begin(), with.captures.end());
  Attrs attrs = ConstsAttr(static_cast<int>(with.captures.size()));
  attrs.Set("rule", held.number());
  if (elementwise) attrs.Set("elementwise", true);
  Values out = Bind(FindPrim(prim), args, attrs, {closed.fns[0]});
  for (size_t i = 0; i < out.size(); ++i) out[i] = out[i].WithWeak(f.weak_results[i]);
  return ListOf(out);
}

}  // namespace

void BindRules(py::module_& m) {
  // A number for the rules of calls of one kind.
  m.def("new_rule_number", NewHostNumber);
  // custom_jvp_call(function, operands, names, others, rule, number, elementwise): a call of `function`, whose
  // derivative rule(arguments, tangents, stack) gives (values, tangents). `others`: values that the rule may use beside
  // those that the function captured. `number`: of the rules of such calls; 0: a new one. `elementwise`: what Python
  // was told of the function.
  m.def("custom_jvp_call", [](const Traced& f, py::handle operands, const std::vector<std::string>& names,
                              py::handle others, py::handle rule, int64_t number, bool elementwise) {
    return EmitCall("custom_jvp", true, f, ValuesFrom(operands, "custom_jvp"), names, others, rule, number,
                    elementwise);
  });
  // The same with rule(arguments, perturbed, stack) -> (values, residuals that are arrays, backward), where
  // backward(residuals, cotangents, stack) gives the cotangents of the arguments that are perturbed.
  m.def("custom_vjp_call", [](const Traced& f, py::handle operands, const std::vector<std::string>& names,
                              py::handle others, py::handle rule, int64_t number) {
    return EmitCall("custom_vjp", false, f, ValuesFrom(operands, "custom_vjp"), names, others, rule, number, false);
  });
  // An equation of a primitive that the program defines. jvp as for custom_jvp_call; transpose(operands, cotangents,
  // stack), where None stands for a linear operand, gives the cotangents of those; batch as for custom_vmap. `numbers`
  // of the three rules.
  m.def("primitive_call", [](const Traced& f, py::handle operands, const std::vector<std::string>& names,
                             const std::string& name, const std::string& params, bool opaque, const py::object& jvp,
                             const py::object& transpose, const py::object& batch, const Ints& numbers) {
    return EmitPrimitive(f, ValuesFrom(operands, name.c_str()), names, name, params, opaque, jvp, transpose, batch,
                         numbers);
  });
  // With rules that are traced already. The functions are closed: what they captured becomes further operands, which
  // the rules receive too.
  m.def("custom_jvp", [](const Traced& f, const Traced& rule, py::handle operands) {
    const Aligned a = AlignCaptures({f, rule});
    const int own = f.num_params, moving = rule.num_params - own, consts = static_cast<int>(a.captures.size());
    std::vector<int> order = Range(0, own);
    for (int i : Range(own + moving, own + moving + consts)) order.push_back(i);
    for (int i : Range(own, own + moving)) order.push_back(i);
    Values args = ValuesFrom(operands, "custom_jvp");
    args.insert(args.end(), a.captures.begin(), a.captures.end());
    const Types types = f.fn->ParamTypes(), results = f.fn->ResultTypes();
    const FnRef fixed = OnlyMoving(ReorderParams(a.fns[1], order), Types(types.begin(), types.begin() + own), results);
    return ListOf(Bind(FindPrim("custom_jvp"), args, ConstsAttr(consts), {a.fns[0], fixed}));
  });
  // rule(size, batched flags, specs of the lanes' arguments) -> (traced function of the arguments, batched results)
  m.def("custom_vmap", [](const Traced& f, py::handle operands, py::handle rule, int64_t number) {
    const auto batched_by = [rule = HeldFunction(rule.ptr()), captures = f.captures, settings = ScopedSettings::Here(),
                             args = static_cast<size_t>(f.num_params),
                             name = f.fn->name()](const Dim& size, const Mask& batched, const Types& types) {
      const py::gil_scoped_acquire locked;
      return BatchedByRule(py::reinterpret_borrow<py::function>(static_cast<PyObject*>(rule.get())), captures, args,
                           name, settings, size, batched, types);
    };
    const HostFunctions held =
        HoldRule(BatchingRule(batched_by), f.captures.empty() && number != 0 ? number : NewHostNumber());
    const Aligned a = AlignCaptures({f});
    Values args = ValuesFrom(operands, "custom_vmap");
    args.insert(args.end(), a.captures.begin(), a.captures.end());
    return ListOf(
        Bind(FindPrim("custom_vmap"), args, {{"rule", held.number()}, {"num_args", int64_t{f.num_params}}}, a.fns));
  });
  // `map`, if there is one: (residuals, tangents) -> tangents, whose transpose `backward` is.
  m.def(
      "custom_vjp",
      [](const Traced& f, const Traced& forward, const Traced& backward, py::handle operands,
         const std::optional<Traced>& map) {
        std::vector<Traced> rules = {f, forward, backward};
        if (map) rules.push_back(*map);
        const Aligned a = AlignCaptures(rules);
        const int consts = static_cast<int>(a.captures.size());
        // The captured values are residuals as well, behind those of the rule.
        Builder b(a.fns[1]->name());
        Atoms params;
        for (const Param& p : a.fns[1]->params()) params.push_back(b.Parameter(p.type, p.name));
        Atoms results = b.Inline(*a.fns[1], params);
        const int residuals = static_cast<int>(results.size() - f.fn->results().size());
        results.insert(results.end(), params.end() - consts, params.end());
        std::vector<int> order = Range(0, residuals);
        for (int i : Range(backward.num_params, backward.num_params + consts)) order.push_back(i);
        for (int i : Range(residuals, backward.num_params)) order.push_back(i);
        Values args = ValuesFrom(operands, "custom_vjp");
        args.insert(args.end(), a.captures.begin(), a.captures.end());
        const Types types = f.fn->ParamTypes();
        const FnRef fixed = OnlyMoving(ReorderParams(a.fns[2], order), f.fn->ResultTypes(),
                                       Types(types.begin(), types.begin() + f.num_params));
        std::vector<FnRef> regions = {a.fns[0], b.Build(results), fixed};
        if (map) {
          std::vector<int> map_order = Range(0, residuals);
          for (int i : Range(map->num_params, map->num_params + consts)) map_order.push_back(i);
          for (int i : Range(residuals, map->num_params)) map_order.push_back(i);
          regions.push_back(ReorderParams(a.fns[3], map_order));
        }
        return ListOf(Bind(FindPrim("custom_vjp"), args, ConstsAttr(consts), regions));
      },
      py::arg("fn"), py::arg("forward"), py::arg("backward"), py::arg("operands"), py::arg("map") = std::nullopt);
}

}  // namespace weft::python
