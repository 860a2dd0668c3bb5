// Transforms, applied to traced functions. What a function captured is never differentiated or mapped here: it belongs
// to an outer function, whose own transform sees it. A transform may run the user's rules (HostFunctionsStay); what
// leaves here has no custom_linear whose rule was not run.
#include <algorithm>
#include <array>

#include "ir/host_functions.h"
#include "python/native/bindings.h"
#include "python/native/nans.h"
#include "python/native/plans.h"
#include "tracer/context.h"
#include "transforms/ad/grad.h"
#include "transforms/ad/jet.h"
#include "transforms/ad/jvp.h"
#include "transforms/ad/traced_rules.h"
#include "transforms/ad/transpose.h"
#include "transforms/batch/vmap.h"
#include "transforms/opt/condense.h"
#include "transforms/opt/simplify.h"

namespace weft::python {
namespace {

Mask Extend(const std::vector<bool>& mask, const Traced& t) {
  Mask all(mask.begin(), mask.end());
  all.resize(t.fn->params().size(), false);
  return all;
}

// `t`, unless it calls a function that is being traced around it. The derivative of that call would be a call of the
// derivative of a function that holds this derivative: it has no finite program.
const Traced& Closed(const Traced& t, const char* what) {
  for (const Eqn& e : t.fn->eqns()) {
    if (!e.CallsOutwards()) continue;
    throw UserError(
        ErrorKind::kDerivative, e.loc, what, ": '", t.fn->name(),
        "' calls the recursive function in which it is differentiated, whose derivative is not known before "
        "that function is; take derivatives outside of it");
  }
  return t;
}

// A gradient outside of any trace is taken anew for every call, and of small functions mostly of the same one: the
// last ones are kept. Not of what has regions or effects, whose rules may be the user's.
FnRef GradAtOnce(const FnRef& fn, const GradOptions& options) {
  constexpr size_t kLargest = 64;  // equations; the time of larger ones is elsewhere
  const auto& eqns = fn->eqns();
  const bool plain = Trace::Current() == nullptr && PlanAround() == 0 && !SettingsHere().HasAny(kSettingsOfRuns) &&
                     eqns.size() <= kLargest && !fn->HasEffects() && fn->FreeAxes().empty() &&
                     HostFunctionsOf(*fn).empty() &&
                     std::all_of(eqns.begin(), eqns.end(), [](const Eqn& e) { return e.regions.empty(); });
  if (!plain) return Grad(fn, options);
  struct Kept {
    FnRef fn, gradient;
    GradOptions options;
  };
  static auto& kept = *new std::array<Kept, 64>();  // Python's lock guards it
  Kept& slot = kept[fn->StructuralHash() % kept.size()];
  const GradOptions& o = slot.options;
  if (slot.fn && o.wrt == options.wrt && o.value == options.value && o.aux == options.aux &&
      o.holomorphic == options.holomorphic && slot.fn->StructurallyEquals(*fn))
    return slot.gradient;
  slot = {fn, Grad(fn, options), options};
  return slot.gradient;
}

}  // namespace

void BindTransforms(py::module_& m) {
  m.def("grad", [](const Traced& t, const std::vector<bool>& wrt, bool value, bool aux, bool holomorphic) {
    GradOptions options;
    options.wrt = Extend(wrt, t);
    options.value = value;
    options.aux = aux;
    options.holomorphic = holomorphic;
    const HostFunctionsStay stay;
    const WatchOfTrace watch;
    return FnHandle{GradAtOnce(Closed(t, "grad").fn, options)};
  });
  // -> (fn, active results)
  m.def("jvp", [](const Traced& t, const std::vector<bool>& active) {
    const HostFunctionsStay stay;
    const WatchOfTrace watch;
    const JvpFn d = Jvp(Stabilize(Closed(t, "jvp").fn), Extend(active, t));
    return py::make_tuple(FnHandle{Condense(WithLinearMaps(d.fn))}, std::vector<bool>(d.active_out));
  });
  // -> (fn, active results): Taylor coefficients 1 ... order of each active argument, and of each active result
  m.def("jet", [](const Traced& t, const std::vector<bool>& active, int order) {
    const HostFunctionsStay stay;
    const WatchOfTrace watch;
    const JvpFn d = Jet(Stabilize(Closed(t, "jet").fn), Extend(active, t), order);
    return py::make_tuple(FnHandle{Condense(WithLinearMaps(d.fn))}, std::vector<bool>(d.active_out));
  });
  // -> (primal, tangent, number of residuals); results behind the first `num_differentiated` are auxiliary
  m.def(
      "linearize",
      [](const Traced& t, const std::vector<bool>& active, std::optional<size_t> num_differentiated) {
        const HostFunctionsStay stay;
        const WatchOfTrace watch;
        const Linearized l =
            Linearize(Closed(t, "linearize").fn, Extend(active, t), num_differentiated.value_or(kAllResults));
        return py::make_tuple(FnHandle{l.primal}, FnHandle{WithLinearMaps(l.tangent)}, l.residuals.size());
      },
      py::arg("traced"), py::arg("active"), py::arg("num_differentiated") = py::none());
  // -> (forward, backward, number of residuals); `as_linearized`: the forward half is that of linearize
  m.def(
      "vjp",
      [](const Traced& t, const std::vector<bool>& active, std::optional<size_t> num_differentiated,
         bool as_linearized) {
        const HostFunctionsStay stay;
        const WatchOfTrace watch;
        const Pullback p =
            Vjp(Closed(t, "vjp").fn, Extend(active, t), as_linearized ? VjpPlan::kReverse : VjpPlan::kCheapest,
                num_differentiated.value_or(kAllResults));
        return py::make_tuple(FnHandle{p.forward}, FnHandle{p.backward}, p.residuals.size());
      },
      py::arg("traced"), py::arg("active"), py::arg("num_differentiated") = py::none(),
      py::arg("as_linearized") = false);
  // -> (captured values, cotangents of the results) -> cotangents of the linear arguments
  m.def("linear_transpose", [](const Traced& t, const std::vector<bool>& linear) {
    const HostFunctionsStay stay;
    return FnHandle{Transpose(Closed(t, "linear_transpose").fn, Extend(linear, t))};
  });
  m.def("vmap", [](const Traced& t, const std::vector<bool>& batched, py::handle size,
                   std::vector<std::optional<int64_t>> out_axes, const std::string& axis) {
    VmapOptions options;
    for (bool b : Extend(batched, t)) options.in_axes.push_back(b ? std::optional<int64_t>(0) : std::nullopt);
    options.out_axes = std::move(out_axes);
    options.size = DimsFrom(size.ptr(), "vmap: size")[0];
    options.axis = axis;
    const HostFunctionsStay stay;  // batching rules of the user's trace functions, which may name some
    return FnHandle{Vmap(t.fn, options)};
  });
}

}  // namespace weft::python
