#include "ir/eval.h"

#include <cstdio>
#include <sstream>

#include "ir/prim.h"

namespace weft {
namespace {

EffectHandlers& Handlers() {
  static auto& handlers = *new EffectHandlers{
      [](const std::string& text) { std::fputs((text + "\n").c_str(), stdout); },
      [](int64_t, const Tensors&, const Types&) -> Tensors {
        throw Error(ErrorKind::kRuntime, "pure_callback: no callback handler is installed in this process");
      }};
  return handlers;
}

void PrintElement(const Tensor& t, int64_t i, std::ostream& out) {
  if (IsBool(t.dtype())) {
    out << (t.at<bool>(i) ? "True" : "False");
  } else if (IsComplex(t.dtype())) {
    out << t.Get(i).real() << (t.Get(i).imag() < 0 ? "" : "+") << t.Get(i).imag() << "j";
  } else if (IsFloat(t.dtype())) {
    out << t.Get(i).real();
  } else if (IsUnsigned(t.dtype()) || t.dtype() == DType::kKey) {
    VisitDType(t.dtype(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      if constexpr (std::is_integral_v<T>) out << static_cast<uint64_t>(t.at<T>(i));
    });
  } else {
    VisitDType(t.dtype(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      if constexpr (std::is_integral_v<T>) out << static_cast<int64_t>(t.at<T>(i));
    });
  }
}

void PrintTensor(const Tensor& t, int axis, int64_t begin, int64_t count, std::ostream& out) {
  if (axis == t.rank()) return PrintElement(t, begin, out);
  const int64_t n = t.shape()[axis], inner = n == 0 ? 0 : count / n;
  out << "[";
  for (int64_t i = 0; i < n; ++i) {
    if (i > 0) out << " ";
    PrintTensor(t, axis + 1, begin + i * inner, inner, out);
  }
  out << "]";
}

// Types with symbols replaced by their values.
Types Concrete(const Fn& fn, uint32_t first, uint32_t count, const std::map<std::string, int64_t>& symbols) {
  Types types;
  for (uint32_t i = 0; i < count; ++i) {
    Type type = fn.TypeOf(Var{first + i});
    for (Dim& d : type.dims) d = Dim(d.Evaluate(symbols));
    types.push_back(std::move(type));
  }
  return types;
}

}  // namespace

void SetEffectHandlers(EffectHandlers handlers) { Handlers() = std::move(handlers); }
const EffectHandlers& GetEffectHandlers() { return Handlers(); }

std::string FormatTensors(const std::string& format, const Tensors& values) {
  std::ostringstream out;
  size_t next = 0;
  for (size_t i = 0; i < format.size(); ++i) {
    if (format.compare(i, 2, "{{") == 0 || format.compare(i, 2, "}}") == 0) {
      out << format[i++];
    } else if (format.compare(i, 2, "{}") == 0 && next < values.size()) {
      PrintTensor(values[next], 0, 0, values[next].size(), out);
      ++next;
      ++i;
    } else {
      out << format[i];
    }
  }
  return out.str();
}

std::map<std::string, int64_t> BindSymbols(const Fn& fn, const Tensors& args) {
  const auto& params = fn.params();
  if (args.size() != params.size()) throw TypeError(fn.name(), ": takes ", params.size(), " arguments, got ", args.size());
  std::map<std::string, int64_t> symbols;
  auto mismatch = [&](size_t i) {
    return TypeError(fn.name(), ": argument ", i, params[i].name.empty() ? "" : " (" + params[i].name + ")", " is ", args[i].type(),
                     ", expected ", params[i].type);
  };
  // Dimensions that determine a symbol first, then the check of all of them.
  for (size_t i = 0; i < args.size(); ++i) {
    const Type& type = params[i].type;
    if (args[i].dtype() != type.dtype || args[i].rank() != type.rank()) throw mismatch(i);
    for (int d = 0; d < type.rank(); ++d) {
      if (auto solved = type.dims[d].Solve(args[i].shape()[d])) symbols.insert(*solved);
    }
  }
  for (size_t i = 0; i < args.size(); ++i) {
    const Type& type = params[i].type;
    for (int d = 0; d < type.rank(); ++d) {
      if (type.dims[d].Evaluate(symbols) != args[i].shape()[d]) throw mismatch(i);
    }
  }
  return symbols;
}

Tensors EvalEqn(const Eqn& eqn, const Tensors& operands) {
  // Infers again on the static operand types, so that symbolic result types become static ones.
  Types types;
  Mask literal;
  for (size_t i = 0; i < operands.size(); ++i) {
    types.push_back(operands[i].type());
    literal.push_back(eqn.operands[i].is_literal());
  }
  const Sig sig{*eqn.prim, types, literal, eqn.attrs, eqn.regions};
  const Types results = eqn.prim->infer(sig);
  return eqn.prim->eval(EvalContext{sig, results, [](const Fn& fn, const Tensors& args) { return Eval(fn, args); }}, operands);
}

Tensors Eval(const Fn& fn, const Tensors& args) {
  const std::map<std::string, int64_t> symbols = BindSymbols(fn, args);
  Tensors env(args);
  env.resize(fn.num_vars());
  auto read = [&](const Atom& a) { return a.is_var() ? env[a.id()] : a.literal(); };
  for (const Eqn& e : fn.eqns()) {
    Tensors operands;
    Types types;
    Mask literal;
    for (const Atom& a : e.operands) {
      operands.push_back(read(a));
      types.push_back(operands.back().type());
      literal.push_back(a.is_literal());
    }
    // Attributes may hold symbolic shapes.
    Attrs attrs = e.attrs;
    for (const auto& [name, value] : e.attrs.entries()) {
      if (const Dims* dims = std::get_if<Dims>(&value)) {
        Dims concrete;
        for (const Dim& d : *dims) concrete.push_back(Dim(d.Evaluate(symbols)));
        attrs.Set(name, concrete);
      }
    }
    const Sig sig{*e.prim, types, literal, attrs, e.regions};
    const Types results = Concrete(fn, e.first_result, e.num_results, symbols);
    try {
      Tensors out = e.prim->eval(EvalContext{sig, results, [](const Fn& f, const Tensors& a) { return Eval(f, a); }}, operands);
      WEFT_CHECK(out.size() == e.num_results) << e.prim->name << ": eval gave " << out.size() << " results";
      for (uint32_t r = 0; r < e.num_results; ++r) {
        WEFT_CHECK(out[r].type().dtype == results[r].dtype && out[r].type().dims == results[r].dims)
            << e.prim->name << ": eval gave " << out[r].type() << ", infer says " << results[r];
        env[e.first_result + r] = std::move(out[r]);
      }
    } catch (Error& error) {
      error.set_loc(e.loc);
      throw;
    }
  }
  Tensors results;
  for (const Atom& a : fn.results()) results.push_back(read(a));
  return results;
}

}  // namespace weft
