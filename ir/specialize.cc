#include "ir/specialize.h"

#include <utility>
#include <variant>

#include "ir/builder.h"
#include "ir/error.h"

namespace weft {
namespace {

template <class List>
List Substituted(List dims, const std::map<std::string, Dim>& symbols) {
  for (Dim& d : dims) d = d.Substitute(symbols);
  return dims;
}

Attrs Substituted(const Attrs& attrs, const std::map<std::string, Dim>& symbols) {
  Attrs out = attrs;
  for (const auto& [name, value] : attrs.entries()) {
    if (const Dims* dims = std::get_if<Dims>(&value)) {
      if (!IsStatic(*dims)) out.Set(name, Substituted(*dims, symbols));
    } else if (const Types* types = std::get_if<Types>(&value)) {
      Types changed = *types;
      for (Type& t : changed) t.dims = Substituted(t.dims, symbols);
      if (changed != *types) out.Set(name, std::move(changed));
    }
  }
  return out;
}

}  // namespace

std::map<std::string, Dim> MatchArguments(const Fn& fn, absl::Span<const Type> args) {
  const auto& params = fn.params();
  if (args.size() != params.size())
    throw TypeError(fn.name(), ": takes ", params.size(), " arguments, got ", args.size());
  std::map<std::string, Dim> symbols;
  auto mismatch = [&](size_t i) {
    std::string where;
    for (const auto& [symbol, value] : symbols)
      where += (where.empty() ? ", where " : ", ") + symbol + " = " + value.ToString();
    return TypeError(fn.name(), ": argument ", i, params[i].name.empty() ? "" : " (" + params[i].name + ")", " is ",
                     args[i], ", expected ", params[i].type, where);
  };
  // Dimensions that determine a symbol first, then the check of all of them.
  for (size_t i = 0; i < args.size(); ++i) {
    const Type& type = params[i].type;
    if (args[i].dtype != type.dtype || args[i].rank() != type.rank()) throw mismatch(i);
    for (int d = 0; d < type.rank(); ++d) {
      if (auto solved = type.dims[d].Solve(args[i].dims[d])) symbols.insert(*std::move(solved));
    }
  }
  for (size_t i = 0; i < args.size(); ++i) {
    const Type& type = params[i].type;
    for (int d = 0; d < type.rank(); ++d) {
      if (!(type.dims[d].Substitute(symbols) == args[i].dims[d])) throw mismatch(i);
    }
  }
  return symbols;
}

FnRef Specialize(const FnRef& fn, const std::map<std::string, Dim>& symbols) {
  bool changes = false;
  for (const auto& [symbol, size] : symbols) changes |= !(size == Dim::Symbol(symbol));
  if (!changes) return fn;
  Builder b(fn->name());
  std::vector<Atom> env;
  env.reserve(fn->num_vars());
  for (const Param& p : fn->params())
    env.push_back(b.Parameter(p.type.With(Substituted(p.type.dims, symbols)), p.name, p.kind));
  auto read = [&](const Atom& a) { return a.is_var() ? env[a.id()] : a; };
  for (const Eqn& e : fn->eqns()) {
    Atoms operands;
    for (const Atom& a : e.operands) operands.push_back(read(a));
    std::vector<FnRef> regions;
    for (const FnRef& region : e.regions) regions.push_back(Specialize(region, symbols));
    b.set_loc(e.loc);
    for (const Atom& a : b.Emit(*e.prim, std::move(operands), Substituted(e.attrs, symbols), std::move(regions)))
      env.push_back(a);
  }
  Atoms results;
  for (const Atom& a : fn->results()) results.push_back(read(a));
  return std::move(b).Build(results, /*keep_dead=*/true);
}

}  // namespace weft
