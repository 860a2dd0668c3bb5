#include "ir/eval/eval.h"

#include <atomic>

#include "base/interrupt.h"
#include "base/run_messages.h"
#include "ir/analysis/size_conditions.h"
#include "ir/eval/evaluated.h"
#include "ir/prim.h"
#include "ir/prims/control/tapes.h"
#include "ir/specialize.h"

namespace weft {
namespace {

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

// Raises kType where a size is less than an equation needs.
void CheckSizes(const Fn& fn, const std::map<std::string, int64_t>& symbols) {
  for (const std::vector<SizeCondition>& list : {SizeConditions(fn), ResultSizes(fn)}) {
    for (const SizeCondition& c : list) {
      const int64_t size = c.size.Evaluate(symbols);
      if (size < c.least && c.reads.Evaluate(symbols) != 0) throw TypeError(SizeMessage(c.what, size, c.least));
    }
  }
}

}  // namespace

std::map<std::string, int64_t> BindSymbols(const Fn& fn, const Tensors& args) {
  Types types;
  types.reserve(args.size());
  for (const Tensor& t : args) types.push_back(t.type());
  std::map<std::string, int64_t> symbols;
  for (const auto& [symbol, size] : MatchArguments(fn, types)) symbols.emplace(symbol, size.value());
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
  const Types results = InferTypes(sig);
  const EvalTapes tapes;
  Tensors out = eqn.prim->eval(
      EvalContext{sig, results, [](const Fn& fn, const Tensors& args) { return Eval(fn, args); }}, operands);
  tapes.Keep(out, operands);
  return out;
}

namespace {
std::atomic<int64_t> g_eval_count{0};
thread_local EvaluatedElements* t_evaluated = nullptr;
}  // namespace

EvaluatedElements::EvaluatedElements() : outer_(t_evaluated) { t_evaluated = this; }
EvaluatedElements::~EvaluatedElements() { t_evaluated = outer_; }
void EvaluatedElements::Add(const std::string& prim, int64_t elements) {
  if (t_evaluated != nullptr) t_evaluated->counts_[prim] += elements;
}
int64_t EvaluatedElements::Of(const std::string& prim) const {
  const auto at = counts_.find(prim);
  return at == counts_.end() ? 0 : at->second;
}

int64_t EvalCount() { return g_eval_count.load(std::memory_order_relaxed); }

Tensors Eval(const Fn& fn, const Tensors& args) {
  g_eval_count.fetch_add(1, std::memory_order_relaxed);
  const std::map<std::string, int64_t> symbols = BindSymbols(fn, args);
  if (!symbols.empty()) CheckSizes(fn, symbols);
  const EvalTapes tapes;
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
    const auto evaluate = [](const Fn& f, const Tensors& a) {
      PollInterrupt();  // a trip of a loop, maybe
      return Eval(f, a);
    };
    try {
      Tensors out = e.prim->eval(EvalContext{sig, results, evaluate}, operands);
      WEFT_CHECK(out.size() == e.num_results) << e.prim->name << ": eval gave " << out.size() << " results";
      for (uint32_t r = 0; r < e.num_results; ++r) {
        WEFT_CHECK(out[r].type().dtype == results[r].dtype && out[r].type().dims == results[r].dims)
            << e.prim->name << ": eval gave " << out[r].type() << ", infer says " << results[r];
        EvaluatedElements::Add(e.prim->name, out[r].size());
        env[e.first_result + r] = std::move(out[r]);
      }
    } catch (Error& error) {
      error.set_loc(e.loc);
      throw;
    }
  }
  Tensors results;
  for (const Atom& a : fn.results()) results.push_back(read(a));
  tapes.Keep(results, args);
  return results;
}

}  // namespace weft
