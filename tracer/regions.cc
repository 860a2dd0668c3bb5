#include "tracer/regions.h"

#include <algorithm>

#include "tracer/ops.h"
#include "tracer/promote.h"

namespace weft {
namespace {

bool SameValue(const Value& a, const Value& b) {
  if (a.traced() != b.traced()) return false;
  if (a.traced()) return a.home() == b.home() && a.var() == b.var();
  return a.identity() == b.identity() && a.dtype() == b.dtype() && a.shape() == b.shape();
}

// The function with results converted to the given dtypes, and varying over further mesh axes. A Python number has all
// its digits until it gets a dtype.
FnRef ConvertResults(const Traced& function, const std::vector<DType>& dtypes, const std::vector<Strings>& varying) {
  const Fn& fn = *function.fn;
  Builder b(fn.name());
  Atoms args;
  for (const Param& p : fn.params()) args.push_back(b.Parameter(p.type, p.name, p.kind));
  Atoms results = b.Inline(fn, args);
  for (size_t i = 0; i < results.size(); ++i) {
    if (i < function.numbers.size() && !function.numbers[i].is_var() && b.TypeOf(results[i]).dtype != dtypes[i])
      results[i] = function.numbers[i];
    results[i] = Pvary(b, Convert(b, results[i], dtypes[i]), varying[i]);
  }
  return b.Build(results);
}

std::vector<DType> ResultDTypes(const Fn& fn) {
  std::vector<DType> dtypes;
  for (const Type& t : fn.ResultTypes()) dtypes.push_back(t.dtype);
  return dtypes;
}

std::vector<Strings> ResultVarying(const Fn& fn) {
  std::vector<Strings> varying;
  for (const Type& t : fn.ResultTypes()) varying.push_back(t.varying);
  return varying;
}

std::string PathOf(const std::vector<std::string>& paths, size_t i) {
  return i < paths.size() && !paths[i].empty() ? " " + paths[i] : "";
}

}  // namespace

Aligned AlignCaptures(const std::vector<Traced>& functions) {
  Aligned a;
  std::vector<std::vector<size_t>> where(functions.size());
  for (size_t f = 0; f < functions.size(); ++f) {
    for (const Value& v : functions[f].captures) {
      size_t i = 0;
      while (i < a.captures.size() && !SameValue(a.captures[i], v)) ++i;
      if (i == a.captures.size()) a.captures.push_back(v);
      where[f].push_back(i);
    }
  }
  for (size_t f = 0; f < functions.size(); ++f) {
    const Fn& fn = *functions[f].fn;
    Builder b(fn.name());
    Atoms args;
    for (int i = 0; i < functions[f].num_params; ++i)
      args.push_back(b.Parameter(fn.params()[i].type, fn.params()[i].name));
    Atoms shared;
    for (const Value& v : a.captures) shared.push_back(b.Parameter(v.type()));
    for (size_t i : where[f]) args.push_back(shared[i]);
    a.fns.push_back(b.Build(b.Inline(fn, args)));
  }
  return a;
}

void CanonicalOperands(std::vector<FnRef>& fns, Values& args) {
  const size_t n = args.size();
  std::vector<size_t> same(n), order;
  for (size_t i = 0; i < n; ++i) {
    while (same[i] < i && !SameValue(args[same[i]], args[i])) ++same[i];
  }
  std::vector<bool> seen(n, false);
  auto use = [&](const Atoms& atoms) {
    for (const Atom& a : atoms) {
      if (!a.is_var() || a.id() >= n || seen[same[a.id()]]) continue;
      seen[same[a.id()]] = true;
      order.push_back(same[a.id()]);
    }
  };
  for (auto fn = fns.rbegin(); fn != fns.rend(); ++fn) {
    for (const Eqn& e : (*fn)->eqns()) use(e.operands);
    use((*fn)->results());
  }
  bool already = order.size() == n;
  for (size_t k = 0; already && k < n; ++k) already = order[k] == k;
  if (already) return;
  for (FnRef& fn : fns) {
    Builder b(fn->name());
    Atoms params(n);
    for (size_t i : order) params[i] = b.Parameter(fn->params()[i].type, fn->params()[i].name, fn->params()[i].kind);
    Atoms call(n);  // what no function uses stays empty
    for (size_t i = 0; i < n; ++i) call[i] = params[same[i]];
    fn = b.Build(b.Inline(*fn, call));
  }
  Values kept;
  for (size_t i : order) kept.push_back(args[i]);
  args = std::move(kept);
}

FnRef ReorderParams(const FnRef& fn, const std::vector<int>& order) {
  WEFT_CHECK(order.size() == fn->params().size()) << "ReorderParams of " << fn->name();
  Builder b(fn->name());
  Atoms args(order.size());
  for (int i : order) args[i] = b.Parameter(fn->params()[i].type, fn->params()[i].name, fn->params()[i].kind);
  return b.Build(b.Inline(*fn, args));
}

bool SameCaptures(const Values& a, const Values& b) {
  if (a.size() != b.size()) return false;
  return std::all_of(a.begin(), a.end(), [&](const Value& v) {
    return std::any_of(b.begin(), b.end(), [&](const Value& w) { return SameValue(v, w); });
  });
}

Traced AsRecursive(const Traced& f, const Values& captures) {
  std::vector<int> order;
  for (int i = 0; i < f.num_params; ++i) order.push_back(i);
  for (const Value& v : captures) {
    size_t i = 0;
    while (i < f.captures.size() && !SameValue(f.captures[i], v)) ++i;
    WEFT_CHECK(i < f.captures.size()) << "a recursive function lost a captured value";
    order.push_back(f.num_params + static_cast<int>(i));
  }
  const FnRef region = ReorderParams(f.fn, order);
  Builder b(f.fn->name());
  Atoms params;
  for (const Param& p : region->params()) params.push_back(b.Parameter(p.type, p.name, p.kind));
  Traced out = f;
  out.fn = b.Build(b.Emit(FindPrim("recursive"), params, {}, {region}));
  out.captures = captures;
  return out;
}

void UnifyResults(std::vector<Traced>& functions, const std::string& what, const std::vector<std::string>& names,
                  const std::vector<std::string>& paths, const Strings& varying) {
  const size_t n = functions[0].fn->results().size();
  for (const Traced& f : functions) {
    if (f.fn->results().size() != n)
      throw TypeError(what, ": the functions return ", n, " and ", f.fn->results().size(),
                      " arrays; expected equally many");
  }
  std::vector<DType> dtypes = ResultDTypes(*functions[0].fn);
  for (size_t i = 0; i < n; ++i) {
    WeakDType joint{dtypes[i], functions[0].weak_results[i]};
    for (const Traced& f : functions) {
      const WeakDType mine{f.fn->ResultTypes()[i].dtype, f.weak_results[i]};
      if (mine.dtype != joint.dtype || mine.weak != joint.weak) joint = Promote(joint, mine);
    }
    for (size_t f = 0; f < functions.size(); ++f) {
      const Type mine = functions[f].fn->ResultTypes()[i], first = functions[0].fn->ResultTypes()[i];
      const bool weak = functions[f].weak_results[i];
      if (!(mine.dims == first.dims) || (mine.dtype != joint.dtype && !weak)) {
        size_t other = 0;  // the first function, or for itself the first that differs
        while (f == 0 && other + 1 < functions.size() && functions[other].fn->ResultTypes()[i] == mine) ++other;
        throw TypeError(what, ": result", PathOf(paths, i), " of ", names[f], " is ", mine, ", of ", names[other], " ",
                        functions[other].fn->ResultTypes()[i], "; both must have the same shape and dtype");
      }
    }
    dtypes[i] = joint.dtype;
    for (Traced& f : functions) f.weak_results[i] = joint.weak;
  }
  std::vector<Strings> joint_varying(n, varying);
  for (const Traced& f : functions) {
    for (size_t i = 0; i < n; ++i)
      joint_varying[i] = UnionOfAxes(joint_varying[i], f.fn->TypeOf(f.fn->results()[i]).varying);
  }
  for (Traced& f : functions) {
    if (ResultDTypes(*f.fn) != dtypes || ResultVarying(*f.fn) != joint_varying)
      f.fn = ConvertResults(f, dtypes, joint_varying);
  }
}

bool PromoteCarry(Values& carry, Operands given, Traced& body, const std::string& what,
                  const std::vector<std::string>& paths) {
  if (body.fn->results().size() < carry.size()) {
    throw TypeError(what, ": the body returns ", body.fn->results().size(), " arrays; expected the carry's ",
                    carry.size(), " first");
  }
  std::vector<DType> dtypes = ResultDTypes(*body.fn);
  const Types types = body.fn->ResultTypes();
  std::vector<Strings> varying = ResultVarying(*body.fn);
  bool again = false;
  for (size_t i = 0; i < carry.size(); ++i) {
    const Type in = TypeHere(carry[i]), out = types[i];
    if (in.dtype != out.dtype || carry[i].weak() != body.weak_results[i]) {
      if (carry[i].weak() &&
          (in.dtype == out.dtype || Promote({in.dtype, true}, {out.dtype, body.weak_results[i]}).dtype == out.dtype)) {
        carry[i] = Astype(given[i], out.dtype, body.weak_results[i]);
        again = true;
      } else if (body.weak_results[i] &&
                 (in.dtype == out.dtype || Promote({in.dtype, false}, {out.dtype, true}).dtype == in.dtype)) {
        dtypes[i] = in.dtype;
      } else if (in.dtype != out.dtype) {
        throw TypeError(what, ": carry", PathOf(paths, i), " is ", in, " on entry but ", out,
                        " after one step; the types must agree (convert with astype)");
      }
    }
    if (!(in.dims == out.dims)) {
      throw TypeError(what, ": carry", PathOf(paths, i), " is ", in, " on entry but ", out,
                      " after one step; the shapes must agree");
    }
    // What is the same on all devices on entry may differ after a step.
    varying[i] = UnionOfAxes(in.varying, out.varying);
    if (varying[i] != in.varying) {
      Site site = Site::OfAxes();
      carry[i] = site.Finish(Pvary(site.b(), site.Use(carry[i]), varying[i]), carry[i].weak());
      again = true;
    }
  }
  if (!again && (ResultDTypes(*body.fn) != dtypes || ResultVarying(*body.fn) != varying))
    body.fn = ConvertResults(body, dtypes, varying);
  return again;
}

}  // namespace weft
