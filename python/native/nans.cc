#include "python/native/nans.h"

#include <Python.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "ir/builder.h"
#include "ir/eval/eval.h"
#include "ir/eval/evaluated.h"
#include "ir/ops.h"
#include "ir/prim.h"
#include "python/native/errors.h"
#include "python/native/run.h"
#include "tracer/context.h"
#include "transforms/opt/pass.h"

namespace weft::python {

namespace {

// What is looked for, as messages say it.
constexpr const char *kNan = "a NaN", *kInf = "an infinity";

// What a tensor holds of that; null: nothing.
const char* Found(const Tensor& t) {
  if (!IsInexact(t.dtype())) return nullptr;
  const bool nans = On(Setting::kDebugNans), infs = On(Setting::kDebugInfs);
  for (int64_t k = 0; k < t.size(); ++k) {
    const std::complex<double> v = t.Get(k);
    if (nans && (std::isnan(v.real()) || std::isnan(v.imag()))) return kNan;
    if (infs && (std::isinf(v.real()) || std::isinf(v.imag()))) return kInf;
  }
  return nullptr;
}

Atom Any(Builder& b, const Atom& flags) {
  Ints dims(static_cast<size_t>(b.TypeOf(flags).rank()));
  std::iota(dims.begin(), dims.end(), int64_t{0});
  return Reduce(b, "reduce_or", flags, dims);
}

Atom AnyNan(Builder& b, const Atom& x) { return Any(b, b.Emit1(FindPrim("ne"), {x, x})); }

// A number that is itself, and whose difference with itself is not 0: only an infinity.
Atom AnyInf(Builder& b, const Atom& x) {
  const Atom difference = b.Emit1(FindPrim("sub"), {x, x});
  const Atom not_finite = b.Emit1(FindPrim("ne"), {difference, difference});
  return Any(b, b.Emit1(FindPrim("and"), {not_finite, b.Emit1(FindPrim("eq"), {x, x})}));
}

// A function with the parameters of another, to which equations of that are added.
class Copy {
 public:
  explicit Copy(const Fn& fn) : b_(fn.name()), env_(static_cast<size_t>(fn.num_vars())) {
    for (size_t i = 0; i < fn.params().size(); ++i) {  // the first variables
      const Param& p = fn.params()[i];
      env_[i] = b_.Parameter(p.type, p.name, p.kind);
    }
  }
  Builder& builder() { return b_; }
  Atoms Read(const Atoms& atoms) const {
    Atoms found;
    for (const Atom& a : atoms) found.push_back(a.is_var() ? env_[a.id()] : a);
    return found;
  }
  Atoms Add(const Eqn& e) {
    b_.set_loc(e.loc);
    Atoms out = b_.Clone(e, Read(e.operands));
    std::copy(out.begin(), out.end(), env_.begin() + e.first_result);
    return out;
  }

 private:
  Builder b_;
  Atoms env_;
};

// Without what only prints, which is not to print again.
FnRef Silent(const FnRef& fn) {
  if (!fn->HasEffects()) return fn;
  Copy copy(*fn);
  for (const Eqn& e : fn->eqns()) {
    if (e.num_results == 0) continue;
    Eqn silent = e;
    for (FnRef& region : silent.regions) region = Silent(region);
    copy.Add(silent);
  }
  return copy.builder().Build(copy.Read(fn->results()), /*keep_dead=*/true);
}

// The same parameters; for each watched equation of `fn` (calls have been inlined), whether it gives what is looked
// for.
struct Watch {
  FnRef fn;
  std::vector<std::pair<const Eqn*, const char*>> eqns;  // by result, with what it would hold
};
Watch WatchEverything(const Fn& fn) {
  Watch watch;
  Copy copy(fn);
  Builder& b = copy.builder();
  Atoms flags;
  for (const Eqn& e : fn.eqns()) {
    for (const Atom& result : copy.Add(e)) {
      if (!IsInexact(b.DTypeOf(result))) continue;
      if (On(Setting::kDebugNans)) {
        flags.push_back(AnyNan(b, result));
        watch.eqns.emplace_back(&e, kNan);
      }
      if (On(Setting::kDebugInfs)) {
        flags.push_back(AnyInf(b, result));
        watch.eqns.emplace_back(&e, kInf);
      }
    }
  }
  watch.fn = b.Build(flags);
  return watch;
}

// `fn` up to an equation of it, whose operands it returns.
FnRef OperandsOf(const Fn& fn, const Eqn& eqn) {
  Copy copy(fn);
  for (const Eqn& e : fn.eqns()) {
    if (&e == &eqn) break;
    copy.Add(e);
  }
  return copy.builder().Build(copy.Read(eqn.operands));
}

// An operation whose result holds what is looked for.
struct Culprit {
  std::string prim;
  const char* found;
  Loc loc;
};

// The first that runs in the regions of an equation on given operands, by the interpreter; the equation itself where
// none does, as the interpreter sees it.
Culprit InRegions(const Eqn& eqn, const Tensors& operands, Culprit itself) {
  try {
    const EvaluatedEquations watched([](const Eqn& e, const Tensors& results) {
      for (const Tensor& t : results) {
        if (const char* found = Found(t)) throw Culprit{e.prim->name, found, e.loc};
      }
    });
    const Unlocked unlocked;
    EvalEqn(eqn, operands);
  } catch (const Culprit& inside) {
    return inside;
  } catch (const Error&) {
    return itself;  // what the interpreter cannot do
  }
  return itself;
}

}  // namespace

std::vector<bool> HoldNans(const Tensors& tensors) {
  std::vector<bool> found;
  for (const Tensor& t : tensors) found.push_back(Found(t) != nullptr);
  return found;
}

bool LooksForNans() { return SettingsHere().HasAny(kSettingsOfNans); }

void CheckNans(const FnRef& fn, const std::optional<Tensors>& args, const Tensors& results) {
  const std::vector<bool> nans = HoldNans(results);
  if (std::find(nans.begin(), nans.end(), true) == nans.end()) return;
  RaiseForNans(
      fn, args ? std::optional(HoldNans(*args)) : std::nullopt, nans,
      [&](const FnRef& watch) { return RunProgram(*ProgramOf(watch), *args); }, /*whole_arrays=*/true);
}

void RaiseForNans(const FnRef& fn, const std::optional<std::vector<bool>>& args, const std::vector<bool>& results,
                  const std::function<Tensors(const FnRef&)>& run, bool whole_arrays) {
  const auto result = std::find(results.begin(), results.end(), true) - results.begin();
  if (result == static_cast<int64_t>(results.size())) return;
  std::string message;
  Loc loc;
  std::string holds = "' holds ";
  if (On(Setting::kDebugNans)) holds += kNan;
  if (On(Setting::kDebugInfs)) holds += std::string(On(Setting::kDebugNans) ? " or " : "") + kInf;
  if (!args) {
    message = "result " + std::to_string(result) + " of '" + fn->name() + holds +
              "; which operation made it cannot be told, since an argument was donated";
  } else {
    const FnRef inlined = Silent(InlineEveryCall(fn));
    const Watch watch = WatchEverything(*inlined);
    const Tensors flags = run(watch.fn);
    size_t first = 0;
    while (first < flags.size() && !flags[first].at<bool>(0)) ++first;
    std::string given;
    for (size_t i = 0; i < args->size() && given.empty(); ++i) {
      if ((*args)[i]) {
        const std::string& name = fn->params()[i].name;
        given = "argument " + (name.empty() ? std::to_string(i) : "'" + name + "'") + " of '" + fn->name() + holds;
      }
    }
    if (first < flags.size()) {
      const Eqn& e = *watch.eqns[first].first;
      Culprit culprit{e.prim->name, watch.eqns[first].second, e.loc};
      if (!e.regions.empty() && whole_arrays) culprit = InRegions(e, run(OperandsOf(*inlined, e)), culprit);
      const bool inside = culprit.prim != e.prim->name;
      const std::string of = culprit.loc.DerivativeOf();
      message = "'" + culprit.prim + (of.empty() || of == culprit.prim ? "'" : "' in the derivative of '" + of + "'") +
                " gives " + culprit.found + (inside ? " inside '" + e.prim->name + "'" : "") +
                (given.empty() ? "" : " (" + given + ")");
      loc = culprit.loc;
    } else {
      message = given.empty() ? "result " + std::to_string(result) + " of '" + fn->name() + holds : given;
    }
  }
  SetPythonException(PyExc_FloatingPointError, message, loc);
  throw PythonError();
}

}  // namespace weft::python
