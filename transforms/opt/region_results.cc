// Rules across operations with regions.
#include <algorithm>

#include "ir/prim_table.h"
#include "transforms/opt/formula.h"
#include "transforms/opt/rewrite.h"
#include "transforms/opt/stable_rules.h"

namespace weft {
namespace {

// How the operands of an operation stand for parameters of its regions.
struct Regions {
  size_t first = 0;  // the operand that is the first parameter
  // Of a scan: parameters that are the same in every trip, carries; what follows is a slice of an operand for each
  // trip.
  bool scan = false;
  size_t consts = 0, carries = 0;
};
std::optional<Regions> RegionsOf(const Eqn& e) {
  static const PrimSet kScans{"scan"}, kComputedAgain{"remat"};
  if (e.regions.empty() || std::any_of(e.regions.begin(), e.regions.end(),
                                       [](const FnRef& r) { return r->HasEffects() || r->OutwardCalls() > 0; }))
    return std::nullopt;
  if (e.prim->region_use == RegionUse::kBranches) return Regions{1};
  if (e.prim->region_use == RegionUse::kCall || kComputedAgain.Has(*e.prim)) {
    constexpr int64_t kMost = 256;  // equations: a larger function may be called elsewhere, and is compiled once
    return static_cast<int64_t>(e.regions[0]->eqns().size()) <= kMost ? std::optional(Regions{}) : std::nullopt;
  }
  if (!kScans.Has(*e.prim)) return std::nullopt;
  return Regions{0, true, static_cast<size_t>(e.attrs.GetInt("num_consts")),
                 static_cast<size_t>(e.attrs.GetInt("num_carry"))};
}

Type SliceOf(Type type) {
  type.dims.erase(type.dims.begin());
  return type;
}

// Whether what depends on parameter `k` is computed element by element and is, of the results, `result` alone.
bool KeepsElementsApart(const Fn& body, size_t k, size_t result) {
  std::vector<bool> depends(body.num_vars(), false);
  depends[k] = true;
  const Dims& dims = body.params()[k].type.dims;
  for (const Eqn& e : body.eqns()) {
    const bool reads =
        std::any_of(e.operands.begin(), e.operands.end(), [&](const Atom& x) { return x.is_var() && depends[x.id()]; });
    if (!reads) continue;
    if (!e.prim->is_elementwise() || !(body.TypeOf(e.result()).dims == dims)) return false;
    depends[e.first_result] = true;
  }
  for (size_t r = 0; r < body.results().size(); ++r) {
    const Atom& a = body.results()[r];
    if (r != result && a.is_var() && depends[a.id()]) return false;
  }
  return true;
}

}  // namespace

std::optional<Atom> InRegions(Builder& b, const Atom& a, const std::optional<Atom>& given, const ChangeResult& change) {
  const Eqn* found = b.Definition(a);
  if (found == nullptr || !b.TypeOf(a).varying.empty()) return std::nullopt;
  const std::optional<Regions> how = RegionsOf(*found);
  if (!how) return std::nullopt;
  const size_t result = a.id() - found->first_result;
  int read = 0;
  for (uint32_t r = 0; r < found->num_results; ++r) read += TimesRead(b, Atom(Var{found->first_result + r}));
  if (read > 1) return std::nullopt;
  const Eqn e = *found;  // emitting may move it
  std::optional<Type> type;
  if (given) type = b.TypeOf(*given);
  size_t at = e.operands.size();  // where the operand that is given stands
  Attrs attrs = e.attrs;
  if (how->scan && result < how->carries) {
    if (!given || !KeepsElementsApart(*e.regions[0], how->consts + result, result)) return std::nullopt;
    at = how->consts;
    attrs = attrs.With("num_consts", static_cast<int64_t>(how->consts + 1));
  } else if (how->scan && given) {
    type = SliceOf(*type);
  }
  std::vector<FnRef> regions;
  bool changed = false;
  for (const FnRef& region : e.regions) {
    Builder inside(region->name());
    Atoms params;
    std::optional<Atom> inner;
    for (size_t i = 0; i <= region->params().size(); ++i) {
      if (given && i + how->first == at) inner = inside.Parameter(*type, "given");
      if (i == region->params().size()) break;
      const Param& p = region->params()[i];
      params.push_back(inside.Parameter(p.type, p.name, p.kind));
    }
    Atoms results = inside.Inline(*region, params);
    const ChangedResult made = change(inside, results[result], inner);
    changed |= made.changed;
    results[result] = made.value;
    regions.push_back(std::move(inside).Build(results));
  }
  if (!changed) return std::nullopt;
  Atoms operands = e.operands;
  if (given) operands.insert(operands.begin() + static_cast<int64_t>(at), *given);
  return b.Emit(*e.prim, operands, attrs, regions)[result];
}

namespace {

// Functions of one array that rules take together with what reads them, and sums, products and quotients of them.
bool MayBeComputedInside(const Builder& b, const Eqn& e) {
  static const PrimSet kFunctions{"exp",  "exp2",  "expm1", "log", "log1p",       "log2",        "logistic",
                                  "sqrt", "rsqrt", "cbrt",  "pow", "cosh",        "sinh",        "tanh",
                                  "cos",  "erf",   "erfc",  "div", "log_product", "log_quotient"};
  static const PrimSet kOfFunctions{"add", "sub", "mul", "neg"};
  if (e.num_results != 1 || !IsFloat(b.DTypeOf(Atom(e.result())))) return false;
  if (!kFunctions.Has(*e.prim)) {
    if (!kOfFunctions.Has(*e.prim)) return false;
    if (std::none_of(e.operands.begin(), e.operands.end(), [&](const Atom& x) {
          const Eqn* made = x.is_var() ? b.Definition(x) : nullptr;
          return made != nullptr && kFunctions.Has(*made->prim);
        }))
      return false;
  }
  const Dims& dims = b.TypeOf(Atom(e.result())).dims;
  return std::all_of(e.operands.begin(), e.operands.end(),
                     [&](const Atom& x) { return Splat(b, x) != nullptr || (x.is_var() && b.TypeOf(x).dims == dims); });
}

// Whether a parameter is read by what rules with functions of it begin with.
bool MayBeReplaced(const Fn& region, size_t param) {
  static const PrimSet kReaders{"log", "log1p", "log2",   "log10", "add",     "sub",       "mul",
                                "div", "exp",   "select", "neg",   "reshape", "broadcast", "reduce_sum"};
  const Atom value(Var{static_cast<uint32_t>(param)});
  return std::any_of(region.eqns().begin(), region.eqns().end(), [&](const Eqn& e) {
    return std::find(e.operands.begin(), e.operands.end(), value) != e.operands.end() &&
           (kReaders.Has(*e.prim) || !e.regions.empty());
  });
}

// Whether an equation of this primitive reads these parameters alone.
bool Computes(const Fn& region, const Prim& prim, const Atoms& x) {
  return std::any_of(region.eqns().begin(), region.eqns().end(),
                     [&](const Eqn& e) { return e.prim == &prim && e.operands == x; });
}

// `e` with operand `i`, made by `function`, computed inside.
std::optional<Eqn> WithOperandInside(const Builder& b, const Eqn& e, const Regions& how, size_t i, const Eqn& function,
                                     const std::function<FnRef(FnRef)>& stabilize) {
  Eqn out = e;
  const bool slices = how.scan && i >= how.consts + how.carries;
  const size_t at = how.scan && !slices ? how.consts : e.operands.size();  // where what it reads stands
  Atoms given;
  for (const Atom& x : function.operands) {
    if (Splat(b, x) == nullptr) given.push_back(x);
  }
  bool replaced = false;
  for (FnRef& region : out.regions) {
    Builder inside(region->name());
    Atoms params, added;
    for (size_t k = 0; k <= region->params().size(); ++k) {
      if (k + how.first == at) {
        for (const Atom& x : given) added.push_back(inside.Parameter(slices ? SliceOf(b.TypeOf(x)) : b.TypeOf(x)));
      }
      if (k == region->params().size()) break;
      const Param& p = region->params()[k];
      params.push_back(k + how.first == i ? Atom() : inside.Parameter(p.type, p.name, p.kind));
    }
    Atoms operands;
    size_t next = 0;
    for (const Atom& x : function.operands) {
      const Atom* number = Splat(b, x);
      operands.push_back(number != nullptr ? *number : added[next++]);
    }
    params[i - how.first] = inside.Emit1(*function.prim, operands, function.attrs);
    const Atoms results = inside.Inline(*region, params);
    const FnRef made = std::move(inside).Build(results);
    const bool computes = Computes(*made, *function.prim, operands);
    region = stabilize(made);
    replaced |= computes && !Computes(*region, *function.prim, operands);
  }
  if (!replaced) return std::nullopt;
  out.operands.insert(out.operands.begin() + static_cast<int64_t>(at), given.begin(), given.end());
  out.operands.erase(out.operands.begin() + static_cast<int64_t>(i));
  if (how.scan && !slices)
    out.attrs = out.attrs.With("num_consts", static_cast<int64_t>(how.consts + given.size() - 1));
  return out;
}

// Whether `left` is not less than the number of equations of a function and of those within; less what there are.
bool HasAtMost(const Fn& fn, int64_t& left) {
  left -= static_cast<int64_t>(fn.eqns().size());
  for (size_t i = 0; left >= 0 && i < fn.eqns().size(); ++i) {
    for (const FnRef& r : fn.eqns()[i].regions) {
      if (!HasAtMost(*r, left)) return false;
    }
  }
  return left >= 0;
}

}  // namespace

std::optional<Atoms> WithOperandsInside(Builder& b, const Eqn& e, const Atoms& x,
                                        const std::function<FnRef(FnRef)>& stabilize) {
  // Each attempt rewrites regions, and those inside of them: nested ones are made two deep, of regions that have not
  // many equations, those of the regions within included.
  constexpr int kDeepest = 2;
  constexpr int64_t kMostEquations = 200;
  static thread_local int depth = 0;
  std::optional<Regions> how = RegionsOf(e);
  if (!how || depth == kDeepest) return std::nullopt;
  int64_t equations = kMostEquations;
  for (const FnRef& r : e.regions) {
    if (!HasAtMost(*r, equations)) return std::nullopt;
  }
  struct Deeper {
    Deeper() { ++depth; }
    ~Deeper() { --depth; }
  };
  const Deeper deeper;
  Eqn now = e;
  now.operands = x;
  bool changed = false;
  int left = 8;  // attempts: each rewrites the regions once
  for (size_t i = how->first; i < now.operands.size() && left > 0; ++i) {
    if (how->scan && i >= how->consts && i < how->consts + how->carries) continue;
    const Eqn* function = now.operands[i].is_var() ? b.Definition(now.operands[i]) : nullptr;
    if (function == nullptr || !function->prim->is_elementwise() || !MayBeComputedInside(b, *function)) continue;
    if (std::none_of(now.regions.begin(), now.regions.end(),
                     [&](const FnRef& r) { return MayBeReplaced(*r, i - how->first); }))
      continue;
    --left;
    std::optional<Eqn> made = WithOperandInside(b, now, *how, i, *function, stabilize);
    if (!made) continue;
    now = std::move(*made);
    how = RegionsOf(now);
    changed = true;
    i = how->first - 1;  // operands have moved, and there may be functions of functions
  }
  return changed ? std::optional<Atoms>(b.Emit(*now.prim, now.operands, now.attrs, now.regions)) : std::nullopt;
}

}  // namespace weft
