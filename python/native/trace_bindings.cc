#include "ir/ops.h"
#include "ir/prims/control/policy.h"
#include "ir/text/attribute_names.h"
#include "ir/text/parser.h"
#include "python/native/bindings.h"
#include "python/native/effects.h"
#include "python/native/jit.h"
#include "python/native/placed.h"
#include "python/native/plans.h"
#include "python/native/typed_layouts.h"
#include "tracer/differentiated.h"
#include "tracer/eager_scope.h"
#include "tracer/regions.h"
#include "tracer/site.h"
#include "transforms/ad/traced_rules.h"
#include "transforms/opt/condense.h"

namespace weft::python {
namespace {

// What a parameter is made of: an array or number (its type, and its value if known), a type, or something with a shape
// and a dtype.
struct Spec {
  Type type;
  bool weak = false;
  std::optional<Value> value;
};

Spec SpecFrom(py::handle leaf) {
  OperandHolder holder;
  if (holder.Set(leaf.ptr())) {
    const Value v = holder.operand().ToValue();
    return {TypeHere(v), v.weak(), v};
  }
  if (py::isinstance<Type>(leaf)) return {leaf.cast<Type>(), false, {}};
  if (py::hasattr(leaf, "shape") && py::hasattr(leaf, "dtype")) {
    const bool weak = py::hasattr(leaf, "weak_type") && py::bool_(leaf.attr("weak_type"));
    Strings varying;
    if (py::hasattr(leaf, "varying")) varying = UnionOfAxes({}, leaf.attr("varying").cast<Strings>());
    return {Type{DTypeFrom(leaf.attr("dtype").ptr(), "dtype"), DimsFrom(leaf.attr("shape").ptr(), "shape"), varying},
            weak,
            {}};
  }
  throw TypeError("expected an array, a number or a ShapeDtype, got ", Repr(leaf.ptr()), " of type '",
                  Py_TYPE(leaf.ptr())->tp_name, "'");
}

// (weak, rank, "bool", "int", "float" or "complex") of each operand among these; None where none is weak or boolean.
py::object WeakOperands(const py::args& xs) {
  py::list out;
  bool any = false;
  const auto add = [&](DType dtype, bool weak, size_t rank) {
    const char* kind = IsBool(dtype) ? "bool" : IsInteger(dtype) ? "int" : IsFloat(dtype) ? "float" : "complex";
    out.append(py::make_tuple(weak, rank, kind));
    any = any || weak || IsBool(dtype);
  };
  for (py::handle x : xs) {
    if (IsArray(x.ptr())) {
      const Value& v = ValueOf(x.ptr());
      add(v.dtype(), v.weak(), v.dims().size());
    } else if (IsOperand(x.ptr())) {
      const Spec s = SpecFrom(x);
      add(s.type.dtype, s.weak, s.type.dims.size());
    }
  }
  return any ? py::object(out) : py::object(py::none());
}

py::object ListOf(const Values& values) { return Take(WrapValues(values)); }

// Python's floats and complex numbers as literals of 64 bits and more; variables for all else. Empty where there is
// none.
Atoms FloatsAmong(const py::handle& results) {
  Atoms numbers;
  size_t i = 0;
  for (py::handle result : results) {
    if (PyFloat_CheckExact(result.ptr()) || PyComplex_CheckExact(result.ptr())) {
      OperandHolder number;
      number.Set(result.ptr());
      numbers.resize(i + 1);
      numbers[i] =
          NumberLiteral(PyFloat_CheckExact(result.ptr()) ? DType::kF64 : DType::kC128, number.operand().scalar());
    }
    ++i;
  }
  return numbers;
}

// `places`: what messages call the leaves. `demanded`: if not null, takes the values that Python asked for; their
// variables become results, after the others.
Traced TraceWith(const py::object& function, const py::list& leaves, const std::vector<std::string>& names,
                 const std::string& name, const std::string& kind, const std::vector<bool>& known, Values* demanded,
                 const Strings& varying = {}, const std::vector<bool>& differentiated = {}, bool concrete = true,
                 bool computes_known = false, const py::list& places = py::list()) {
  std::vector<Spec> specs;
  for (py::handle leaf : leaves) {
    try {
      specs.push_back(SpecFrom(leaf));
    } catch (const IntegerOverflow& error) {
      if (specs.size() >= places.size()) throw;
      RaiseOverflowOf(py::str(places[specs.size()]), error);
    }
  }
  ScopedTrace trace(name.empty() ? "f" : name, kind);
  if (concrete) trace->set_concrete();
  if (computes_known) trace->set_computes_known();
  trace->set_varying(varying);
  // Rules are run after the trace, and may ask for the numbers of this call. What is recorded is for other calls, too.
  if (demanded != nullptr)
    trace->set_keeps_known(false);
  else if (std::find(differentiated.begin(), differentiated.end(), true) != differentiated.end())
    trace->set_keeps_known(true);
  ScopedTypedLayouts typed(*trace, leaves.ptr());
  py::list tracers;
  for (size_t i = 0; i < specs.size(); ++i) {
    const Value* value = i < known.size() && known[i] && specs[i].value ? &*specs[i].value : nullptr;
    const Value parameter = trace->Parameter(specs[i].type, i < names.size() ? names[i] : "", specs[i].weak, value);
    if (i < differentiated.size() && differentiated[i])
      SetDifferentiated(*trace, parameter.var());
    else if (value != nullptr)
      SetSource(*trace, parameter.var(), *value);
    PyObject* const leaf = PyList_GET_ITEM(leaves.ptr(), static_cast<Py_ssize_t>(i));
    typed.Parameter(leaf, parameter);
    if (computes_known && value != nullptr && IsArray(leaf) && !value->traced()) {
      // The function has the array itself, which is the parameter where something that is traced meets it.
      trace->StandFor(*value, parameter.var());
      tracers.append(py::handle(leaf));
    } else {
      tracers.append(Take(WrapValue(parameter)));
    }
  }
  std::vector<AppliedRule> rules;
  const py::object out = [&] {
    const WatchOfTrace watch(&rules, /*own=*/false, /*texts=*/kind == "make_ir");
    return RunningPython([&] { return function(tracers); });
  }();
  Values results = ValuesFrom(out, name.c_str());
  typed.Check(results);
  const Atoms numbers = FloatsAmong(out);
  if (demanded != nullptr) {
    for (const auto& [var, value] : trace->demanded()) {
      results.push_back(trace->Wrap(Atom(var)));
      demanded->emplace_back(value);
    }
  }
  Traced traced = trace->Finish(results);
  traced.numbers = numbers;
  traced.rules = std::move(rules);
  return traced;
}

// (pass, rule, operation, where, the user's lines, before, after) of each.
py::list RecordsOf(const std::vector<AppliedRule>& rules) {
  py::list records;
  for (const AppliedRule& a : rules)
    records.append(py::make_tuple(a.pass, a.rule, a.operation, a.at.ToString(), a.at.Stack(), a.before, a.after));
  return records;
}

std::vector<int> Range(int begin, int end) {
  std::vector<int> numbers;
  for (int i = begin; i < end; ++i) numbers.push_back(i);
  return numbers;
}

Attr ProgramAttr(const std::string& name, const std::string& kind, const py::object& value) {
  if (kind == "bool") return value.cast<bool>();
  if (kind == "int") return value.cast<int64_t>();
  if (kind == "float") return value.cast<double>();
  if (kind == "string") return value.cast<std::string>();
  if (kind == "list of ints") return value.cast<Ints>();
  if (kind == "list of strings") return value.cast<Strings>();
  if (kind == "mesh" || kind == "list of shardings") {
    Attr attr = ParseAttribute(value.cast<std::string>());
    if (KindName(attr) != kind) throw ValueError("attribute '", name, "' is a ", KindName(attr), ", not a ", kind);
    return attr;
  }
  const auto texts = value.cast<std::vector<std::string>>();
  auto parsed = [&](auto parse, auto list) -> Attr {
    for (const std::string& text : texts) {
      const auto item = parse(text);
      if (!item) throw ValueError("attribute '", name, "': '", text, "' is no ", kind);
      list.push_back(*item);
    }
    return list;
  };
  if (kind == "dtype") {
    const auto dtype = texts.size() == 1 ? ParseDType(texts[0]) : std::nullopt;
    if (!dtype) throw ValueError("attribute '", name, "' is no dtype");
    return *dtype;
  }
  if (kind == "shape") return parsed([](const std::string& t) { return Dim::Parse(t); }, Dims{});
  if (kind == "list of types") return parsed([](const std::string& t) { return Type::Parse(t); }, Types{});
  throw ValueError("attribute '", name, "' is of no kind that there is: ", kind);
}

}  // namespace

PyObject* WrapTraced(const Traced& traced) { return py::cast(traced).release().ptr(); }
PyObject* WrapFn(const FnRef& fn) { return py::cast(FnHandle{fn}).release().ptr(); }
FnRef FnOf(PyObject* object) { return py::handle(object).cast<FnHandle>().fn; }
const Traced& TracedOf(PyObject* object) { return *py::handle(object).cast<const Traced*>(); }

void BindTracing(py::module_& m) {
  py::class_<Traced>(m, "Traced", "A traced function with the values that it captured.")
      .def(py::init([](const FnHandle& f) {
        Traced t;
        t.fn = f.fn;
        t.held = f.held;
        t.num_params = static_cast<int>(f.fn->params().size());
        t.weak_results = Mask(f.fn->results().size(), false);
        return t;
      }))
      .def("__reduce__", [](const Traced&) -> py::object { throw TypeError("a traced function cannot be pickled"); })
      .def_property_readonly("fn", [](const Traced& t) { return FnHandle{t.fn}; })
      .def_property_readonly("captures", [](const Traced& t) { return ListOf(t.captures); })
      .def_readonly("num_params", &Traced::num_params)
      .def_property_readonly("rules", [](const Traced& t) { return RecordsOf(t.rules); })
      .def_readonly("happened", &Traced::happened)
      .def_property_readonly("weak_results", [](const Traced& t) { return std::vector<bool>(t.weak_results); })
      .def_property_readonly("num_results", [](const Traced& t) { return t.fn->results().size(); })
      .def_property_readonly("captures_tracers", [](const Traced& t) {
        for (const Value& v : t.captures) {
          if (v.traced()) return true;
        }
        return false;
      });
  // trace(function, leaves, names, name, kind, known, axes, varying, differentiated, concrete): function takes and
  // returns a list. `axes`: the named axes that are bound inside. `varying`: mesh axes over which all that it captures
  // varies. `differentiated`: with respect to which parameters its derivative is taken in this call. `concrete`: it is
  // what runs, so that effects whose results Python asks for may happen at once.
  m.def(
      "trace",
      [](const py::object& function, const py::list& leaves, const std::vector<std::string>& names,
         const std::string& name, const std::string& kind, const std::vector<bool>& known, py::handle axes,
         const Strings& varying, const std::vector<bool>& differentiated, bool concrete, bool computes_known,
         const py::list& places) {
        const ScopedAxes bound(NamedAxesFrom(axes));
        return TraceWith(function, leaves, names, name, kind, known, nullptr, varying, differentiated, concrete,
                         computes_known, places);
      },
      py::arg("function"), py::arg("leaves"), py::arg("names"), py::arg("name"), py::arg("kind"), py::arg("known"),
      py::arg("axes") = py::tuple(), py::arg("varying") = Strings{}, py::arg("differentiated") = std::vector<bool>{},
      py::arg("concrete") = false, py::arg("computes_known") = false, py::arg("places") = py::list());
  // The same with every parameter known. (traced, values): `values` are what Python asked for on the way, and the last
  // results of `traced` are the same values for other arguments.
  m.def("record", [](const py::object& function, const py::list& leaves, const std::vector<std::string>& names,
                     const std::string& name) {
    Values demanded;
    Traced traced = TraceWith(function, leaves, names, name, "jit", std::vector<bool>(leaves.size(), true), &demanded);
    return py::make_tuple(std::move(traced), ListOf(demanded));
  });
  // Calls a function: inlined into the open trace, or run. `weak`: flags of the results.
  m.def(
      "apply",
      [](const FnHandle& f, py::handle args, const std::vector<bool>& weak) {
        // What runs needs no rules, and programs that differ in their rules are one.
        const Values values = ValuesFrom(args, f.fn->name().c_str());
        const bool run = Recorder(values) == nullptr && !f.held.empty();
        Values out = Apply(run ? WithoutHostRules(f.fn) : f.fn, values);
        for (size_t i = 0; i < out.size() && i < weak.size(); ++i) out[i] = out[i].WithWeak(weak[i]);
        return ListOf(out);
      },
      py::arg("fn"), py::arg("args"), py::arg("weak") = std::vector<bool>{});
  // The same for a derivative: what it does with the numbers among its arguments (a tangent of 1) is worked out first.
  m.def("apply_derivative", [](const FnHandle& f, py::handle args) {
    const Values values = ValuesFrom(args, f.fn->name().c_str());
    if (Recorder(values) == nullptr || values.size() != f.fn->params().size()) return ListOf(Apply(f.fn, values));
    Atoms numbers;
    Values rest;
    for (const Value& v : values) {
      const bool number = !v.traced() && IsLiteralWhenCaptured(v);
      numbers.push_back(number ? Atom(v.tensor()) : Atom(Var{0}));
      if (!number) rest.push_back(v);
    }
    return ListOf(Apply(Condense(f.fn, numbers), rest));
  });
  m.def("with_weak", [](py::handle values, const std::vector<bool>& weak) {
    Values out = ValuesFrom(values, "with_weak");
    for (size_t i = 0; i < out.size() && i < weak.size(); ++i) out[i] = out[i].WithWeak(weak[i]);
    return ListOf(out);
  });
  m.def("is_traced", [](py::handle object) { return IsArray(object.ptr()) && ValueOf(object.ptr()).traced(); });
  // Whether a derivative that is being taken goes through it.
  m.def("carries_derivative",
        [](py::handle object) { return IsArray(object.ptr()) && CarriesDerivative(ValueOf(object.ptr())); });
  // Whether it may be used here: it is no value of a trace that has ended.
  m.def("is_usable", [](py::handle object) { return !IsArray(object.ptr()) || IsUsable(ValueOf(object.ptr())); });
  // The number of the trace of a traced value, as current_trace says it; 0 for other values.
  m.def("trace_of", [](py::handle object) {
    return IsArray(object.ptr()) && PeekValue(object.ptr()).traced()
               ? reinterpret_cast<uintptr_t>(PeekValue(object.ptr()).home().get())
               : uintptr_t{0};
  });
  m.def("is_tracing", [] { return Trace::Current() != nullptr; });
  // Whether what is known is computed at once here: nothing is traced, or such functions alone.
  m.def("computes_known", [] { return Trace::Current() == nullptr || Trace::Current()->computes_known(); });
  // Whether an operation on these is part of a function that is being traced, and not run at once.
  m.def("is_recorded", [](const py::args& values) {
    const Trace* trace = Trace::Current();
    if (trace == nullptr || !trace->computes_known()) return trace != nullptr;
    const auto is_traced = [](py::handle x) { return IsArray(x.ptr()) && PeekValue(x.ptr()).traced(); };
    return std::any_of(values.begin(), values.end(), is_traced);
  });
  // A number for the function that is being traced here, of those that are alive; 0 where none is.
  m.def("current_trace", [] { return reinterpret_cast<uintptr_t>(Trace::Current()); });
  // An EagerScope, which ends when the object that it returns is gone.
  m.def("eager_scope", [] { return py::capsule(new EagerScope, [](void* p) { delete static_cast<EagerScope*>(p); }); });
  m.def("is_operand", [](py::handle object) { return IsOperand(object.ptr()); });
  // Of whatever a parameter is made of.
  m.def("has_tangents", [](py::handle leaf) { return HasTangents(SpecFrom(leaf).type.dtype); });
  m.def("zeros", [](py::handle leaf) {
    Site site(Operands{});
    return Take(WrapValue(site.Finish(Zeros(site.b(), SpecFrom(leaf).type))));
  });
  // (type text, dtype name, dims, weak) of an array, number or ShapeDtype.
  m.def("abstract", [](py::handle leaf) {
    const Spec s = SpecFrom(leaf);
    py::list dims;
    for (const Dim& d : s.type.dims) dims.append(Take(DimObject(d)));
    return py::make_tuple(py::tuple(dims), Take(DTypeObject(s.type.dtype)), s.weak, s.type.ToString());
  });
  m.def("weak_operands", &WeakOperands);
  // (which leaves are of float or complex dtypes, which are weakly typed)
  m.def("inexact_and_weak", [](const py::list& leaves) {
    py::list inexact, weak;
    for (py::handle leaf : leaves) {
      const Spec s = SpecFrom(leaf);
      inexact.append(IsInexact(s.type.dtype));
      weak.append(s.weak);
    }
    return py::make_tuple(inexact, weak);
  });
  m.def("param_specs", [](const Traced& t) {
    py::list list;
    for (const Param& p : t.fn->params()) {
      py::list dims;
      for (const Dim& d : p.type.dims) dims.append(Take(DimObject(d)));
      list.append(py::make_tuple(py::tuple(dims), Take(DTypeObject(p.type.dtype)), p.name));
    }
    return list;
  });
  m.def("result_specs", [](const Traced& t) {
    py::list list;
    for (size_t i = 0; i < t.fn->results().size(); ++i) {
      const Type type = t.fn->TypeOf(t.fn->results()[i]);
      py::list dims;
      for (const Dim& d : type.dims) dims.append(Take(DimObject(d)));
      list.append(py::make_tuple(py::tuple(dims), Take(DTypeObject(type.dtype)), static_cast<bool>(t.weak_results[i])));
    }
    return list;
  });

  // --- Control flow ---
  // what: "switch", and the index is the place of a branch; or "cond", and it chooses the second of two unless it is 0.
  m.def("cond",
        [](py::handle index, std::vector<Traced> branches, py::handle operands, const std::vector<std::string>& names,
           const std::vector<std::string>& paths, const std::string& what) {
          Value i = ValueFrom(index, what.c_str());
          UnifyResults(branches, what, names, paths, TypeHere(i).varying);
          Aligned a = AlignCaptures(branches);
          if (i.rank() != 0)
            throw TypeError(what, ": the condition must be a single boolean or number, got ", i.type());
          i = Astype(i, what == "switch" ? DType::kI32 : DType::kBool);
          Values args = ValuesFrom(operands, what.c_str());
          args.insert(args.end(), a.captures.begin(), a.captures.end());
          CanonicalOperands(a.fns, args);
          args.insert(args.begin(), i);
          Values out = Bind(FindPrim("cond"), args, {}, a.fns);
          for (size_t r = 0; r < out.size(); ++r) out[r] = out[r].WithWeak(branches[0].weak_results[r]);
          return ListOf(out);
        });
  // (carry, again): again when the carry was converted and the body must be traced once more.
  m.def("promote_carry",
        [](py::handle carry, Traced& body, const std::string& what, const std::vector<std::string>& paths) {
          const OperandList given(carry, what.c_str());
          Values values;
          for (const Operand& x : given.operands) values.push_back(x.ToValue());
          const bool again = PromoteCarry(values, given.operands, body, what, paths);
          return py::make_tuple(ListOf(values), again);
        });
  m.def("while_loop", [](py::handle carry, const Traced& condition, const Traced& body, const std::string& strategy) {
    const Type type = condition.fn->TypeOf(condition.fn->results().at(0));
    if (condition.fn->results().size() != 1 || !(type == Type{DType::kBool, {}, type.varying})) {
      throw TypeError("while_loop: the condition must return one boolean, got ", ToString(condition.fn->ResultTypes()));
    }
    Aligned a = AlignCaptures({condition, body});
    Values args = ValuesFrom(carry, "while_loop");
    const auto num_carry = static_cast<int64_t>(args.size());
    std::vector<bool> weak;
    for (const Value& v : args) weak.push_back(v.weak());
    args.insert(args.end(), a.captures.begin(), a.captures.end());
    Attrs attrs = {{"num_carry", num_carry}};
    if (strategy != "tape") attrs.Set("strategy", strategy);
    Values out = Bind(FindPrim("while"), args, attrs, a.fns);
    for (size_t i = 0; i < out.size(); ++i) out[i] = out[i].WithWeak(weak[i]);
    return ListOf(out);
  });
  // snapshots: how many states reverse mode stores; 0: all of them.
  m.def("scan", [](py::handle carry, py::handle xs, const Traced& body, py::handle length, bool reverse,
                   int64_t snapshots) {
    Values init = ValuesFrom(carry, "scan"), stacked = ValuesFrom(xs, "scan");
    const int num_consts = static_cast<int>(body.captures.size()), own = body.num_params;
    // The primitive wants constants first.
    std::vector<int> order;
    for (int i = 0; i < num_consts; ++i) order.push_back(own + i);
    for (int i = 0; i < own; ++i) order.push_back(i);
    Aligned a = AlignCaptures({body});
    Values args = a.captures;
    args.insert(args.end(), init.begin(), init.end());
    args.insert(args.end(), stacked.begin(), stacked.end());
    Attrs attrs = {
        {"num_consts", int64_t{num_consts}}, {"length", DimsFrom(length.ptr(), "scan: length")}, {"reverse", reverse}};
    attrs.Set(snapshots > 0 ? "num_forward" : "num_carry", static_cast<int64_t>(init.size()));
    if (snapshots > 0) {
      attrs.Set("num_backward", int64_t{0});
      attrs.Set("snapshots", snapshots);
    }
    Values out =
        Bind(FindPrim(snapshots > 0 ? "snapshot_scan" : "scan"), args, attrs, {ReorderParams(a.fns[0], order)});
    for (size_t i = 0; i < out.size(); ++i)
      out[i] = out[i].WithWeak(i < init.size() ? init[i].weak() : static_cast<bool>(body.weak_results[i]));
    return ListOf(out);
  });
  m.def("remat", [](const Traced& f, py::handle operands, const std::string& policy, bool prevent_cse) {
    Aligned a = AlignCaptures({f});
    Values args = ValuesFrom(operands, "checkpoint");
    args.insert(args.end(), a.captures.begin(), a.captures.end());
    Attrs attrs = {{"policy", Policy::Parse(policy).ToString()}};
    if (!prevent_cse) attrs.Set("prevent_cse", false);
    Values out = Bind(FindPrim("remat"), args, attrs, a.fns);
    for (size_t i = 0; i < out.size(); ++i) out[i] = out[i].WithWeak(f.weak_results[i]);
    return ListOf(out);
  });
  // --- Programs written equation by equation (weft.primitives) ---
  // A closed function of parameters of the given types.
  m.def("trace_program", [](const py::object& function, const std::vector<std::string>& types,
                            const std::vector<bool>& constants, const std::vector<std::string>& names,
                            const std::string& name) {
    ScopedTrace trace(name, "program");
    py::list params;
    for (size_t i = 0; i < types.size(); ++i) {
      const auto type = Type::Parse(types[i]);
      if (!type) throw ValueError("'", types[i], "' is no type; expected something like 'f32[3,n]'");
      params.append(Take(WrapValue(trace->Parameter(*type, i < names.size() ? names[i] : ""))));
    }
    const py::object out = RunningPython([&] { return function(*params); });
    const bool many = PyTuple_Check(out.ptr()) || PyList_Check(out.ptr());
    const Traced t = trace->Finish(ValuesFrom(many ? out : py::make_tuple(out), name.c_str()));
    if (!t.captures.empty())
      throw TypeError("'", name, "' uses an array that is neither a parameter nor a literal; make it a parameter");
    Builder b(name);
    Atoms args;
    for (size_t i = 0; i < types.size(); ++i) {
      const Param& p = t.fn->params()[i];
      args.push_back(b.Parameter(p.type, p.name, constants[i] ? Param::Kind::kConstant : Param::Kind::kArgument));
    }
    return FnHandle{b.Build(b.Inline(*t.fn, args))};
  });
  // One equation. Attributes: name -> (kind, value), lists of sizes, types and dtypes as text.
  m.def("bind_program",
        [](const std::string& name, py::handle operands, const py::dict& attrs, const std::vector<FnHandle>& regions) {
          Attrs a;
          for (auto [key, pair] : attrs) {
            const auto k = py::cast<std::string>(key);
            const auto kind = py::cast<std::string>(pair[py::int_(0)]);
            const py::object value = pair[py::int_(1)];
            a.Set(k, ProgramAttr(k, kind, value));
          }
          const Prim& prim = FindPrim(name);
          CheckAttributeNames(prim, a);
          std::vector<FnRef> fns;
          for (const FnHandle& f : regions) fns.push_back(f.fn);
          return ListOf(Bind(prim, ValuesFrom(operands, name.c_str()), std::move(a), std::move(fns)));
        });
  m.def("literal", [](const std::string& text) {
    const FnRef f = ParseFn("fn literal() { return " + text + " }");
    return Take(WrapValue(Value(f->results().at(0).literal())));
  });
  py::class_<HostFunctions>(m, "HostFunction", "Keeps a function that programs name by its number.")
      .def_property_readonly("number", &HostFunctions::number);
  // A policy, under a number of its own (0) or the one that it has had.
  m.def("hold_policy", [](py::handle policy, int64_t number) {
    return HostFunctions(HeldFunction(policy.ptr()), number == 0 ? NewHostNumber() : number);
  });
  // Policies that are Python functions: (policy, primitive, types of operands, attributes) -> bool.
  m.def("set_policy_hook", [](const py::object& hook) {
    static auto& the_hook = *new py::object();
    the_hook = hook;
    SetPolicyCallback([](int64_t id, const Fn& fn, const Eqn& e) {
      const py::gil_scoped_acquire locked;
      const std::shared_ptr<void> policy = FindHostFunction(id);
      if (policy == nullptr) {
        throw ValueError("checkpoint: the policy callback(", id, ") belongs to another process, or is gone: programs ",
                         "with policies that are functions cannot be moved");
      }
      const py::handle function(static_cast<PyObject*>(policy.get()));
      py::list types;
      for (const Atom& a : e.operands) {
        const Type& type = fn.TypeOf(a);
        py::list dims;
        for (const Dim& d : type.dims) dims.append(Take(DimObject(d)));
        types.append(py::make_tuple(py::tuple(dims), NumpyName(type.dtype)));
      }
      const py::dict attrs = AttrsObject(e.attrs);
      return RunningPython([&] { return the_hook(function, e.prim->name, types, attrs).cast<bool>(); });
    });
  });
  // callback(primitive, function, operands, specs): function takes and returns a list of arrays.
  // `each_device`: devices of a mesh call it with what they hold. `told`: a number by which the front end is told how
  // the first operand lies, or None.
  m.def("callback", [](const std::string& prim, py::handle function, py::handle operands, const py::list& specs,
                       bool each_device, const std::optional<int64_t>& told) {
    Types results;
    for (py::handle spec : specs) results.push_back(SpecFrom(spec).type);
    // A trace that is open makes it stay; who gets the traced function holds it.
    const HostFunctions held(HeldFunction(function.ptr()));
    Attrs attrs = {{"callback", held.number()}, {"results", results}};
    if (each_device) attrs.Set("each_device", true);
    if (told) attrs.Set("told", *told);
    return ListOf(Bind(FindPrim(prim), ValuesFrom(operands, prim.c_str()), attrs));
  });
  // functions: the transposed map, of residuals and a cotangent, and the map, of residuals and linear operands.
  m.def("linear_call", [](const std::vector<Traced>& functions, py::handle residuals, py::handle linear) {
    const Aligned a = AlignCaptures(functions);
    const int consts = static_cast<int>(a.captures.size());
    std::vector<FnRef> regions;
    for (size_t i = 0; i < functions.size(); ++i) {
      const int own = functions[i].num_params;
      std::vector<int> order = Range(own, own + consts);
      for (int p : Range(0, own)) order.push_back(p);
      regions.push_back(ReorderParams(a.fns[i], order));
    }
    Values args = a.captures;
    for (const Value& v : ValuesFrom(residuals, "linear_call")) args.push_back(v);
    const Attrs attrs = {{"num_residuals", static_cast<int64_t>(args.size())}};
    for (const Value& v : ValuesFrom(linear, "linear_call")) args.push_back(v);
    return ListOf(Bind(FindPrim("custom_linear"), args, attrs, regions));
  });
  // functions: solve, matvec and perhaps the transposed solve, all of the right side b.
  m.def("linear_solve", [](const std::vector<Traced>& functions, py::handle b, bool symmetric) {
    const Aligned a = AlignCaptures(functions);
    const int own = functions[0].num_params, consts = static_cast<int>(a.captures.size());
    std::vector<int> order = Range(own, own + consts);
    for (int i : Range(0, own)) order.push_back(i);
    std::vector<FnRef> regions;
    for (const FnRef& f : a.fns) regions.push_back(ReorderParams(f, order));
    Values args = a.captures;
    const Values right = ValuesFrom(b, "custom_linear_solve");
    args.insert(args.end(), right.begin(), right.end());
    Attrs attrs = {{"num_consts", int64_t{consts}}};
    if (symmetric) attrs.Set("symmetric", true);
    return ListOf(Bind(FindPrim("linear_solve"), args, attrs, regions));
  });
}

}  // namespace weft::python
