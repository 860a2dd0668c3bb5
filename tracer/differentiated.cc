#include "tracer/differentiated.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "ir/ops.h"
#include "ir/prim_table.h"
#include "tracer/trace.h"

namespace weft {
namespace {

struct Source {
  bool differentiated = false;
  Value value;
};

using Sources = std::unordered_map<uint32_t, Source>;  // by parameter

std::unordered_map<const Trace*, Sources>& ByTrace() {
  thread_local std::unordered_map<const Trace*, Sources> by_trace;
  return by_trace;
}

}  // namespace

void SetDifferentiated(const Trace& trace, Var parameter) { ByTrace()[&trace][parameter.id].differentiated = true; }

void SetSource(const Trace& trace, Var parameter, const Value& value) {
  // Without derivatives, which are the first to be noted, nobody asks.
  if (!ByTrace().empty()) ByTrace()[&trace][parameter.id].value = value;
}

void ForgetSources(const Trace& trace) { ByTrace().erase(&trace); }

bool CarriesDerivative(const Value& value) {
  const auto& by_trace = ByTrace();
  if (by_trace.empty() || !value.traced() || !value.home()->open()) return false;
  const Builder& builder = value.home()->builder();
  const auto sources = by_trace.find(value.home().get());
  std::vector<Var> pending = {value.var()};
  std::unordered_set<uint32_t> seen;
  while (!pending.empty()) {
    const Var v = pending.back();
    pending.pop_back();
    if (!seen.insert(v.id).second || !HasTangents(builder.TypeOf(v).dtype)) continue;
    if (const Eqn* eqn = builder.Definition(v)) {
      if (Is<"stop_gradient">(*eqn->prim)) continue;  // declared to have no derivative
      for (const Atom& a : eqn->operands) {
        if (a.is_var()) pending.push_back(a.var());
      }
      continue;
    }
    if (sources == by_trace.end()) continue;
    const auto source = sources->second.find(v.id);
    if (source == sources->second.end()) continue;
    if (source->second.differentiated || CarriesDerivative(source->second.value)) return true;
  }
  return false;
}

Tensor DemandArray(const Value& value, const std::string& why) {
  Tensor array = Demand(value, why);
  if (CarriesDerivative(value)) {
    throw UserError(ErrorKind::kTracer, CurrentLoc(), why,
                    " of a traced value that carries a derivative: ", value.home()->Describe(value.var()),
                    ". What NumPy or another library computes from it would count as a constant. Use the function of "
                    "weft.numpy, or take the value without its derivative: weft.stop_gradient(x).");
  }
  return array;
}

}  // namespace weft
