#include <functional>

#include "ir/analysis/cost.h"
#include "ir/analysis/residuals.h"
#include "ir/exchange/serialize.h"
#include "ir/samples/sample_fns.h"
#include "ir/text/parser.h"
#include "ir/text/printer.h"
#include "python/native/bindings.h"
#include "python/native/frames.h"
#include "python/native/function.h"
#include "python/native/run.h"
#include "transforms/ad/traced_rules.h"
#include "transforms/opt/pass.h"

namespace weft::python {

void SetDimConversions(PyObject* type, PyObject* (*make)(const Dim&), const Dim* (*get)(PyObject*));  // convert.cc

namespace {

// A context manager: inside it this is where the user's program is.
struct Place {
  Loc loc;
  std::vector<std::shared_ptr<ScopedUserLoc>> open = {};
};

// Sizes: ints, and Dims where only a call tells them.
py::tuple ShapeObject(const Dims& dims) {
  py::list sizes;
  for (const Dim& d : dims) sizes.append(Take(DimObject(d)));
  return py::tuple(sizes);
}

py::object AttrObject(const Attr& attr) {
  return std::visit(
      [](const auto& a) -> py::object {
        using T = std::decay_t<decltype(a)>;
        if constexpr (std::is_same_v<T, DType>)
          return py::str(NumpyName(a));
        else if constexpr (std::is_same_v<T, Dims>)
          return ShapeObject(a);
        else if constexpr (std::is_same_v<T, Types>)
          return py::tuple(py::cast(a));
        else if constexpr (std::is_same_v<T, Mesh> || std::is_same_v<T, Shardings>)
          return py::str(ToString(Attr(a)));
        else
          return py::cast(a);
      },
      attr);
}

// As weft.primitives takes it: lists of sizes, types and dtypes as lists of texts.
py::object AttrValue(const Attr& attr) {
  py::list texts;
  if (const auto* dims = std::get_if<Dims>(&attr)) {
    for (const Dim& d : *dims) texts.append(d.ToString());
  } else if (const auto* types = std::get_if<Types>(&attr)) {
    for (const Type& t : *types) texts.append(t.ToString());
  } else if (const auto* dtype = std::get_if<DType>(&attr)) {
    texts.append(Name(*dtype));
  } else {
    return AttrObject(attr);
  }
  return texts;
}

// The user's innermost line, the stack around it, and the transforms that the equation went through, first to last.
py::dict OriginObject(Loc loc) {
  py::dict d;
  d["file"] = loc.file();
  d["line"] = loc.line();
  d["function"] = loc.function();
  // What the user calls the part of the program, and the transforms: of the equation, then of the places from which the
  // functions around it were traced.
  py::list levels;
  for (Loc place = loc; place; place = place.caller()) {
    const std::vector<std::string> steps = place.transforms();
    py::list transforms, level;
    for (const std::string& step : steps) {
      level.append(step);
      if (!IsNamedScope(step)) transforms.append(step);
    }
    if (place == loc) d["transforms"] = py::tuple(transforms);
    if (place == loc || !steps.empty()) levels.append(level);
  }
  if (!loc) d["transforms"] = py::tuple();
  d["steps"] = levels;
  d["stack"] = loc.Stack();
  d["derivative_of"] = loc.DerivativeOf();
  return d;
}

std::string AtomText(const Fn& fn, const Atom& a) {
  if (a.is_literal()) return Print(a.literal());
  return "%" + std::to_string(a.id()) + ": " + fn.TypeOf(a).ToString();
}

// `outer`: where an equation without a place of its own comes from.
py::dict EqnObject(const Fn& fn, const Eqn& e, Loc outer) {
  const Loc loc = e.loc ? e.loc : outer;
  py::dict d;
  const py::dict attrs = AttrsObject(e.attrs);
  py::list operands, results, regions;
  for (const Atom& a : e.operands) operands.append(AtomText(fn, a));
  for (uint32_t i = 0; i < e.num_results; ++i) results.append(AtomText(fn, Atom(e.result(static_cast<int>(i)))));
  for (const FnRef& r : e.regions) regions.append(FnHandle{r, loc});
  d["name"] = e.prim->name;
  d["operands"] = operands;
  d["results"] = results;
  d["attrs"] = attrs;
  py::dict kinds, values;
  for (const auto& [name, attr] : e.attrs.entries()) {
    kinds[py::str(name)] = KindName(attr);
    values[py::str(name)] = AttrValue(attr);
  }
  d["attr_kinds"] = kinds;
  d["attr_values"] = values;
  d["regions"] = regions;
  // The same for weft.ir: variables by number, literals as arrays.
  py::list read, made;
  for (const Atom& a : e.operands)
    read.append(a.is_var() ? py::object(py::int_(a.id())) : Take(WrapValue(Value(a.literal()))));
  for (uint32_t i = 0; i < e.num_results; ++i) made.append(e.result(static_cast<int>(i)).id);
  d["operand_values"] = read;
  d["result_vars"] = made;
  d["place"] = py::cast(Place{loc});
  d["location"] = loc ? loc.ToString() : "";
  d["origin"] = OriginObject(loc);
  return d;
}

// What a value that is kept comes from.
py::dict ResidualObject(const Fn& fn, const Atom& value) {
  static constexpr const char* kKinds[] = {"argument", "constant", "literal", "value"};
  const Origin o = OriginOf(fn, value);
  py::dict d = OriginObject(o.loc);
  auto bytes = [](const Type& t) -> py::object {
    if (!t.is_static()) return py::str((t.size() * Dim(ByteWidth(t.dtype))).ToString());
    return py::int_(t.Bytes());
  };
  const Type& type = o.row ? *o.row : o.type;
  d["kind"] = kKinds[static_cast<int>(o.kind)];
  d["type"] = type.ToString();
  d["tape"] = o.row.has_value();
  d["bytes"] = bytes(type);
  py::list dims;
  for (const Dim& dim : type.dims) dims.append(Take(DimObject(dim)));
  d["shape"] = py::tuple(dims);
  d["dtype"] = NumpyName(type.dtype);
  d["param"] = o.param;
  d["primitive"] = o.prim;
  d["name"] = o.name;
  d["repeats"] = o.repeats;
  return d;
}

// The program with derivative rules of its own, as far as they can be traced: what a rule of the user's raises stays
// between the user and who differentiates.
FnRef ForOtherProcesses(const FnRef& fn) {
  return WithTracedRules(fn, [](const std::exception& failure) {
    if (const auto* python = dynamic_cast<const py::error_already_set*>(&failure))
      return python->matches(PyExc_Exception);
    const auto* error = dynamic_cast<const Error*>(&failure);
    return error != nullptr && error->kind() != ErrorKind::kInternal;
  });
}

}  // namespace

py::dict AttrsObject(const Attrs& attrs) {
  py::dict d;
  for (const auto& [name, attr] : attrs.entries()) d[py::str(name)] = AttrObject(attr);
  return d;
}

namespace {

PyObject* MakeDim(const Dim& d) { return py::cast(d).release().ptr(); }
const Dim* GetDim(PyObject* object) { return py::handle(object).cast<const Dim*>(); }

// The operator of both sides for all operands that it has no rule for so far.
void RefuseOperator(py::class_<Dim>& dim, const std::string& name, const char* sign) {
  const auto refuse = [sign](const std::string& left, const std::string& right) {
    return TypeError(sign, ": ", left, " and ", right,
                     ": a symbolic size is a number only when the program runs; until then it adds, subtracts and "
                     "multiplies with integers and other sizes. As an array it is weft.primitives.dim_size(x, dim=d)");
  };
  const auto type_name = [](const py::object& o) { return py::type::of(o).attr("__name__").cast<std::string>(); };
  dim.def(("__" + name + "__").c_str(),
          [=](const Dim& a, const py::object& b) -> py::object { throw refuse(a.ToString(), type_name(b)); });
  dim.def(("__r" + name + "__").c_str(),
          [=](const Dim& a, const py::object& b) -> py::object { throw refuse(type_name(b), a.ToString()); });
}

}  // namespace

void BindIr(py::module_& m) {
  py::class_<Dim> dim(m, "Dim", R"(A symbolic dimension: a polynomial in named sizes, such as "n" or "2*n+1".

It adds, subtracts and multiplies with integers and with others of its kind, and compares where the answer is the same
for all sizes. As an integer it counts only where it is a number.

Args:
    text: the polynomial.

Raises:
    ValueError: the text is none.

Example:
    >>> weft.Dim("n") * 2 + 1
    2*n+1
    >>> weft.make_ir(lambda x: x.reshape(-1))(weft.ShapeDtype(("n", 3))).out_types
    ['f32[3*n]']
)");
  dim.def(py::init([](const std::string& text) {
            const auto d = Dim::Parse(text);
            if (!d) throw ValueError("'", text, "' is not a dimension; expected something like 'n' or '2*n+1'");
            return *d;
          }),
          py::arg("text"))
      // What is no string, or none that UTF-8 can say: pybind11's message would name C++ types.
      .def(py::init([](const py::object& text) -> Dim {
             throw TypeError("Dim: text must be a string such as 'n' or '2*n+1', got ", Repr(text.ptr()));
           }),
           py::arg("text"))
      .def("__repr__", &Dim::ToString)
      .def("__str__", &Dim::ToString)
      .def(
          "__eq__", [](const Dim& a, const Dim& b) { return a == b; }, py::is_operator())
      .def(
          "__eq__", [](const Dim& a, int64_t b) { return a == Dim(b); }, py::is_operator())
      .def(
          "__ne__", [](const Dim& a, const Dim& b) { return !(a == b); }, py::is_operator())
      .def(
          "__ne__", [](const Dim& a, int64_t b) { return !(a == Dim(b)); }, py::is_operator())
      .def("__hash__", [](const Dim& a) { return std::hash<std::string>()(a.ToString()); })
      .def("__neg__", [](const Dim& a) { return Dim(0) - a; })
      .def("__reduce__",
           [](const py::object& d) {
             return py::make_tuple(py::type::of(d), py::make_tuple(d.cast<const Dim&>().ToString()));
           })
      .def("__bool__",
           [](const Dim& a) -> bool {
             throw UserError(
                 ErrorKind::kTracer, {}, "whether ", a.ToString(),
                 " is 0 is not known while tracing: a symbolic size is a number only when the program runs");
           })
      .def("__index__", [](const Dim& a) { return a.value("a Python integer"); });
  const auto compute = [&](const std::string& name, const char* sign, auto rule) {
    const std::string plain = "__" + name + "__", reflected = "__r" + name + "__";
    dim.def(plain.c_str(), [rule](const Dim& a, const Dim& b) { return rule(a, b); }, py::is_operator());
    dim.def(plain.c_str(), [rule](const Dim& a, int64_t b) { return rule(a, Dim(b)); }, py::is_operator());
    dim.def(reflected.c_str(), [rule](const Dim& a, int64_t b) { return rule(Dim(b), a); }, py::is_operator());
    RefuseOperator(dim, name, sign);
  };
  compute("add", "+", std::plus<>());
  compute("sub", "-", std::minus<>());
  compute("mul", "*", std::multiplies<>());
  RefuseOperator(dim, "truediv", "/");
  RefuseOperator(dim, "floordiv", "//");
  RefuseOperator(dim, "mod", "%");
  RefuseOperator(dim, "divmod", "divmod");
  RefuseOperator(dim, "pow", "**");
  const auto order = [&](const char* name, const char* sign, auto holds) {
    const auto decide = [sign, holds](const Dim& a, const Dim& b) -> bool {
      const Dim difference = a - b;
      if (!difference.is_static()) {
        throw UserError(ErrorKind::kTracer, {}, "whether ", a.ToString(), " ", sign, " ", b.ToString(),
                        " is not known while tracing: a symbolic size is a number only when the program runs");
      }
      return holds(difference.value(), int64_t{0});
    };
    dim.def(name, decide, py::is_operator());
    dim.def(name, [decide](const Dim& a, int64_t b) { return decide(a, Dim(b)); }, py::is_operator());
  };
  order("__lt__", "<", std::less<>());
  order("__le__", "<=", std::less_equal<>());
  order("__gt__", ">", std::greater<>());
  order("__ge__", ">=", std::greater_equal<>());
  SetDimConversions(dim.ptr(), MakeDim, GetDim);

  py::class_<Place>(m, "Place", "Where an equation comes from.")
      .def("through", [](const Place& p, const std::string& name) { return Place{p.loc.Through(name)}; })
      .def("__enter__", [](Place& p) { p.open.push_back(std::make_shared<ScopedUserLoc>(p.loc)); })
      .def("__exit__", [](Place& p, const py::args&) { p.open.pop_back(); })
      .def("__repr__", [](const Place& p) { return p.loc.ToString(); });
  py::class_<Type>(m, "Type", R"(The type of a value of a program: an element type and sizes.

Example:
    >>> ir = weft.make_ir(lambda x: x + 1)(wnp.ones((2, 3)))
    >>> type = ir.walk()[0].results[0].type
    >>> type, type.shape, type.dtype
    (f32[2,3], (2, 3), dtype('float32'))
)")
      .def("__repr__", &Type::ToString)
      .def(
          "__eq__", [](const Type& a, const Type& b) { return a == b; }, py::is_operator())
      .def("__hash__", [](const Type& t) { return std::hash<std::string>()(t.ToString()); })
      .def_property_readonly("shape",
                             [](const Type& t) {
                               py::list dims;
                               for (const Dim& d : t.dims) dims.append(Take(DimObject(d)));
                               return py::tuple(dims);
                             })
      .def_property_readonly("dtype", [](const Type& t) { return Take(DTypeObject(t.dtype)); })
      .def_property_readonly("varying", [](const Type& t) { return t.varying; });
  py::class_<FnHandle>(m, "Fn", "A closed, typed, immutable function of the IR.")
      .def_property_readonly("name", [](const FnHandle& f) { return f.fn->name(); })
      .def(
          "text",
          [](const FnHandle& f, bool locations) {
            PrintOptions options;
            options.locations = locations;
            return Print(*f.fn, options);
          },
          py::arg("locations") = false)
      .def_property_readonly("eqns",
                             [](const FnHandle& f) {
                               py::list list;
                               for (const Eqn& e : f.fn->eqns()) list.append(EqnObject(*f.fn, e, f.loc));
                               return list;
                             })
      .def_property_readonly("var_types",
                             [](const FnHandle& f) {
                               Types types;
                               for (uint32_t i = 0; i < f.fn->num_vars(); ++i) types.push_back(f.fn->TypeOf(Var{i}));
                               return types;
                             })
      // Of what it returns: numbers of variables, and arrays for literals.
      .def_property_readonly(
          "result_values",
          [](const FnHandle& f) {
            py::list values;
            for (const Atom& a : f.fn->results())
              values.append(a.is_var() ? py::object(py::int_(a.id())) : Take(WrapValue(Value(a.literal()))));
            return values;
          })
      // (flops, bytes) of each equation by itself.
      .def_property_readonly("costs",
                             [](const FnHandle& f) {
                               std::vector<std::pair<double, double>> costs;
                               for (const Eqn& e : f.fn->eqns()) {
                                 const Cost c = CostOf(*f.fn, e);
                                 costs.emplace_back(c.flops, c.bytes);
                               }
                               return costs;
                             })
      .def_property_readonly("num_eqns", [](const FnHandle& f) { return f.fn->NumEqns(); })
      .def_property_readonly("param_types",
                             [](const FnHandle& f) {
                               std::vector<std::string> types;
                               for (const Type& t : f.fn->ParamTypes()) types.push_back(t.ToString());
                               return types;
                             })
      .def_property_readonly("results",
                             [](const FnHandle& f) {
                               std::vector<std::string> results;
                               for (const Atom& a : f.fn->results()) results.push_back(AtomText(*f.fn, a));
                               return results;
                             })
      // Which parameters are captured arrays.
      .def_property_readonly("constants",
                             [](const FnHandle& f) {
                               std::vector<bool> constants;
                               for (const Param& p : f.fn->params())
                                 constants.push_back(p.kind == Param::Kind::kConstant);
                               return constants;
                             })
      .def_property_readonly("param_names",
                             [](const FnHandle& f) {
                               std::vector<std::string> names;
                               for (const Param& p : f.fn->params()) names.push_back(p.name);
                               return names;
                             })
      .def_property_readonly("result_types",
                             [](const FnHandle& f) {
                               std::vector<std::string> types;
                               for (const Type& t : f.fn->ResultTypes()) types.push_back(t.ToString());
                               return types;
                             })
      // In place of arrays where only their types matter (_weft.trace), tapes among them.
      .def_property_readonly("result_specs", [](const FnHandle& f) { return f.fn->ResultTypes(); })
      .def_property_readonly("has_effects", [](const FnHandle& f) { return f.fn->HasEffects(); })
      .def("__hash__", [](const FnHandle& f) { return f.fn->StructuralHash(); })
      .def("__eq__", [](const FnHandle& a, const FnHandle& b) { return a.fn->StructurallyEquals(*b.fn); })
      .def("__repr__", [](const FnHandle& f) { return Print(*f.fn); })
      // For every protocol: what pickle does by itself for the oldest ones ends the process inside pybind11.
      .def("__reduce__", [](const py::object& f) {
        return py::make_tuple(py::module_::import("weft._pickled").attr("program"),
                              py::make_tuple(Print(*ForOtherProcesses(f.cast<const FnHandle&>().fn)), ""));
      });

  // What the results of a function from `first` on come from.
  m.def("residuals", [](const FnHandle& f, size_t first) {
    py::list list;
    for (size_t i = first; i < f.fn->results().size(); ++i) list.append(ResidualObject(*f.fn, f.fn->results()[i]));
    return list;
  });
  m.def("loop_memory", [](const FnHandle& f) { return LoopMemory(*f.fn); });
  m.def("serialize", [](const FnHandle& f) { return py::bytes(Serialize(*ForOtherProcesses(f.fn))); });
  m.def("deserialize", [](const py::bytes& bytes) { return FnHandle{Deserialize(std::string(bytes))}; });
  m.def("parse_fn", [](const std::string& text, const std::string& file) {
    ParseOptions options;
    options.file = file;
    return FnHandle{ParseFn(text, options)};
  });
  // (flops, bytes) of the program as it is.
  m.def("cost", [](const FnHandle& f) {
    const Cost c = CostOf(*f.fn);
    return py::make_tuple(c.flops, c.bytes);
  });
  m.def("primitives", [] {
    py::list list;
    for (const Prim* p : AllPrims()) {
      py::dict d;
      d["name"] = p->name;
      d["doc"] = p->doc;
      d["family"] = Name(p->family);
      d["num_operands"] = p->num_operands;
      d["dtypes"] = p->dtypes.ToString();
      d["elementwise"] = p->is_elementwise();
      d["region_use"] = static_cast<int>(p->region_use);
      d["example"] = p->example;
      list.append(d);
    }
    return list;
  });
  m.def("elementwise", [](const std::string& prim, const std::string& name, bool inexact) {
    return Take(MakeElementwise(FindPrim(prim), name, inexact ? Promotion::kInexact : Promotion::kAuto));
  });
  // The programs, as text, on which tests run each primitive.
  m.def("sample_programs", [] {
    py::dict programs;
    for (const Prim* p : AllPrims()) {
      py::list texts;
      for (const FnRef& f : SampleFns(*p)) texts.append(Print(*f));
      programs[py::str(p->name)] = texts;
    }
    return programs;
  });
  m.def("has_primitive", [](const std::string& name) { return TryFindPrim(name) != nullptr; });
  m.def("binary", [](const std::string& name) {
    for (int i = 0; i <= static_cast<int>(Binary::kMatmul); ++i) {
      if (name == Name(static_cast<Binary>(i))) return Take(MakeBinary(static_cast<Binary>(i)));
    }
    throw ValueError("no binary operation '", name, "'");
  });
}

}  // namespace weft::python
