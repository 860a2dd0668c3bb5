#include "ir/specialize.h"

#include <optional>
#include <unordered_map>
#include <utility>
#include <variant>

#include "base/run_messages.h"
#include "ir/analysis/size_conditions.h"
#include "ir/builder.h"
#include "ir/error.h"
#include "ir/ops.h"

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

// The first condition of the equation that is known not to hold for these sizes.
std::optional<SizeCondition> Failing(const Fn& fn, const Eqn& e, const std::map<std::string, Dim>& symbols) {
  for (SizeCondition& c : SizeConditions(fn, e)) {
    c.size = c.size.Substitute(symbols);
    c.reads = c.reads.Substitute(symbols);
    if (c.size.is_static() && c.size.value() < c.least && !(c.reads == Dim(0))) return std::move(c);
  }
  return std::nullopt;
}

// What stands in a region for an equation that no operands of these sizes have: a loop or a branch may never come to
// it, and fails where it does (an assertion over no elements holds, so nothing has to be read). Its results are zeros
// for the equations after it, which nobody sees.
Atoms EmitFailure(Builder& b, const SizeCondition& failing, const Types& results) {
  const Dims asked = failing.reads.is_static() ? Dims{} : Dims{failing.reads};
  b.Emit(FindPrim("assert"), {Full(b, Type{DType::kBool, asked, {}}, 0)},
         {{"message", SizeMessage(failing.what, failing.size.value(), failing.least)}});
  Atoms zeros;
  for (const Type& t : results) zeros.push_back(Zeros(b, t));
  return zeros;
}

// Regions for these sizes: one that occurs often is made once.
using Specialized = std::unordered_map<const Fn*, FnRef>;

FnRef Specialize(const FnRef& fn, const std::map<std::string, Dim>& symbols, bool is_region,
                 Specialized& regions_made) {
  Builder b(fn->name());
  std::vector<Atom> env;
  env.reserve(fn->num_vars());
  for (const Param& p : fn->params())
    env.push_back(b.Parameter(p.type.With(Substituted(p.type.dims, symbols)), p.name, p.kind));
  auto read = [&](const Atom& a) { return a.is_var() ? env[a.id()] : a; };
  for (const Eqn& e : fn->eqns()) {
    b.set_loc(e.loc);
    Atoms emitted;
    const auto failing = is_region ? Failing(*fn, e, symbols) : std::nullopt;
    if (failing) {
      Types results;
      for (uint32_t r = 0; r < e.num_results; ++r) {
        const Type& type = fn->TypeOf(Var{e.first_result + r});
        results.push_back(type.With(Substituted(type.dims, symbols)));
      }
      emitted = EmitFailure(b, *failing, results);
    } else {
      Atoms operands;
      for (const Atom& a : e.operands) operands.push_back(read(a));
      std::vector<FnRef> regions;
      for (const FnRef& region : e.regions) {
        FnRef& made = regions_made[region.get()];
        if (!made) made = Specialize(region, symbols, /*is_region=*/true, regions_made);
        regions.push_back(made);
      }
      emitted = b.Emit(*e.prim, std::move(operands), Substituted(e.attrs, symbols), std::move(regions));
    }
    env.insert(env.end(), emitted.begin(), emitted.end());
  }
  Atoms results;
  for (const Atom& a : fn->results()) results.push_back(read(a));
  return std::move(b).Build(results, /*keep_dead=*/true);
}

}  // namespace

namespace {

// For a dimension being `size`: the symbol that it tells, and its value, if all its other symbols are known and it is
// linear in that one.
std::optional<std::pair<std::string, Dim>> Tell(const Dim& dim, const Dim& size,
                                                const std::map<std::string, Dim>& known) {
  std::string unknown;
  Dim rest = size, coefficient = 0;
  for (const Dim::Term& term : dim.Terms()) {
    Dim product = term.coefficient;
    const std::string* in_term = nullptr;
    for (const std::string& symbol : term.symbols) {
      if (auto it = known.find(symbol); it != known.end()) {
        product = product * it->second;
      } else if (in_term != nullptr || (!unknown.empty() && unknown != symbol)) {
        return std::nullopt;
      } else {
        in_term = &symbol;
      }
    }
    if (in_term == nullptr) {
      rest = rest - product;
    } else {
      unknown = *in_term;
      coefficient = coefficient + product;
    }
  }
  if (unknown.empty() || coefficient == Dim(0)) return std::nullopt;
  std::optional<Dim> value = Dim::ExactQuotient(rest, coefficient);
  if (!value) return std::nullopt;
  return std::make_pair(unknown, *std::move(value));
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
  // Dimensions that determine a symbol first, as long as one does, then the check of all of them.
  for (size_t i = 0; i < args.size(); ++i) {
    const Type& type = params[i].type;
    if (args[i].dtype != type.dtype || args[i].rank() != type.rank()) throw mismatch(i);
  }
  for (bool more = true; more;) {
    more = false;
    for (size_t i = 0; i < args.size(); ++i) {
      const Type& type = params[i].type;
      for (int d = 0; d < type.rank(); ++d) {
        auto solved = Tell(type.dims[d], args[i].dims[d], symbols);
        if (!solved) continue;
        const bool negative = solved->second.is_static() && solved->second.value() < 0;
        symbols.insert(*std::move(solved));
        if (negative) throw mismatch(i);
        more = true;
      }
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
  Specialized regions;
  return Specialize(fn, symbols, /*is_region=*/false, regions);
}

FnRef Generalize(const FnRef& fn, int64_t least) {
  std::map<int64_t, Dim> symbols;
  std::map<std::string, Dim> sizes;
  for (const Param& p : fn->params()) {
    for (const Dim& d : p.type.dims) {
      if (!d.is_static()) return nullptr;
      if (d.value() < least || symbols.contains(d.value())) continue;
      const std::string name = "n" + std::to_string(symbols.size());
      symbols.emplace(d.value(), Dim::Symbol(name));
      sizes.emplace(name, d);
    }
  }
  if (symbols.empty()) return nullptr;
  const auto general = [&](Dims dims) {
    for (Dim& d : dims) {
      const auto it = d.is_static() ? symbols.find(d.value()) : symbols.end();
      if (it != symbols.end()) d = it->second;
    }
    return dims;
  };
  Builder b(fn->name());
  std::vector<Atom> env;
  env.reserve(fn->num_vars());
  for (const Param& p : fn->params()) env.push_back(b.Parameter(p.type.With(general(p.type.dims)), p.name, p.kind));
  const auto read = [&](const Atom& a) { return a.is_var() ? env[a.id()] : a; };
  try {
    for (const Eqn& e : fn->eqns()) {
      if (!e.regions.empty()) return nullptr;
      b.set_loc(e.loc);
      Atoms operands;
      for (const Atom& a : e.operands) operands.push_back(read(a));
      Attrs attrs = e.attrs;
      for (const auto& [name, value] : e.attrs.entries()) {
        if (const Dims* dims = std::get_if<Dims>(&value)) attrs.Set(name, general(*dims));
      }
      const Atoms emitted = b.Emit(*e.prim, std::move(operands), std::move(attrs));
      env.insert(env.end(), emitted.begin(), emitted.end());
    }
    Atoms results;
    for (const Atom& a : fn->results()) results.push_back(read(a));
    FnRef made = std::move(b).Build(results, /*keep_dead=*/true);
    // A size that follows from others (of a concatenation) has to be the number that it was.
    return FnEqual{}(Specialize(made, sizes), fn) ? made : nullptr;
  } catch (const Error&) {  // an operation that needs a number
    return nullptr;
  }
}

}  // namespace weft
