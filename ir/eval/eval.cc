#include "ir/eval/eval.h"

#include <algorithm>
#include <atomic>
#include <functional>
#include <utility>

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

bool HasShape(const Tensor& t, const Dims& dims) {
  if (t.shape().size() != dims.size()) return false;
  for (size_t d = 0; d < dims.size(); ++d)
    if (!(dims[d] == Dim(t.shape()[d]))) return false;
  return true;
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
thread_local EvaluatedEquations* t_equations = nullptr;
}  // namespace

EvaluatedEquations::EvaluatedEquations(See see) : see_(std::move(see)), outer_(t_equations) { t_equations = this; }
EvaluatedEquations::~EvaluatedEquations() { t_equations = outer_; }
const EvaluatedEquations::See* EvaluatedEquations::Here() { return t_equations ? &t_equations->see_ : nullptr; }

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

namespace {

// What an equation needs to be evaluated besides the numbers of its operands.
using Step = PreparedEval::Step;
Step StepOf(const Fn& fn, const Eqn& e, const std::map<std::string, int64_t>& symbols) {
  Step step;
  for (const Atom& a : e.operands) {
    Type type = a.is_var() ? fn.TypeOf(a.var()) : a.literal().type();
    for (Dim& d : type.dims) d = Dim(d.Evaluate(symbols));
    step.operands.push_back(Type{type.dtype, std::move(type.dims), {}});
    step.literal.push_back(a.is_literal());
  }
  step.results = Concrete(fn, e.first_result, e.num_results, symbols);
  step.attrs = e.attrs;
  if (symbols.empty()) return step;
  // Attributes may hold symbolic shapes.
  for (const auto& [name, value] : e.attrs.entries()) {
    if (const Dims* dims = std::get_if<Dims>(&value)) {
      Dims concrete;
      for (const Dim& d : *dims) concrete.push_back(Dim(d.Evaluate(symbols)));
      step.attrs.Set(name, concrete);
    }
  }
  return step;
}

// Evaluates all equations; `step_of` gives the step of each.
template <class StepOfEqn>
Tensors EvalSteps(const Fn& fn, const Tensors& args, const StepOfEqn& step_of) {
  const EvalTapes tapes;
  Tensors env;
  env.reserve(fn.num_vars());
  env = args;
  env.resize(fn.num_vars());
  auto read = [&](const Atom& a) -> const Tensor& { return a.is_var() ? env[a.id()] : a.literal(); };
  static const auto& evaluate =
      *new std::function<Tensors(const Fn&, const Tensors&)>([](const Fn& f, const Tensors& a) {
        PollInterrupt();  // a trip of a loop, maybe
        return Eval(f, a);
      });
  const EvaluatedEquations::See* const see = EvaluatedEquations::Here();
  Tensors operands;
  for (size_t i = 0; i < fn.eqns().size(); ++i) {
    const Eqn& e = fn.eqns()[i];
    const Step& step = step_of(i);
    operands.clear();
    for (const Atom& a : e.operands) operands.push_back(read(a));
    const Sig sig{*e.prim, step.operands, step.literal, step.attrs, e.regions};
    try {
      Tensors out =
          step.run ? Tensors{step.run(operands)} : e.prim->eval(EvalContext{sig, step.results, evaluate}, operands);
      WEFT_CHECK(out.size() == e.num_results) << e.prim->name << ": eval gave " << out.size() << " results";
      for (uint32_t r = 0; r < e.num_results; ++r) {
        const Type& expected = step.results[r];
        WEFT_CHECK(out[r].dtype() == expected.dtype && HasShape(out[r], expected.dims))
            << e.prim->name << ": eval gave " << out[r].type() << ", infer says " << expected;
        EvaluatedElements::Add(e.prim->name, out[r].size());
      }
      if (see != nullptr) (*see)(e, out);
      for (uint32_t r = 0; r < e.num_results; ++r) env[e.first_result + r] = std::move(out[r]);
    } catch (Error& error) {
      error.set_loc(e.loc);
      throw;
    }
  }
  Tensors results;
  results.reserve(fn.results().size());
  for (const Atom& a : fn.results()) results.push_back(read(a));
  tapes.Keep(results, args);
  return results;
}

}  // namespace

Tensors Eval(const Fn& fn, const Tensors& args) {
  g_eval_count.fetch_add(1, std::memory_order_relaxed);
  const std::map<std::string, int64_t> symbols = BindSymbols(fn, args);
  if (!symbols.empty()) CheckSizes(fn, symbols);
  Step step;
  return EvalSteps(fn, args, [&](size_t i) -> const Step& { return step = StepOf(fn, fn.eqns()[i], symbols); });
}

PreparedEval::PreparedEval(FnRef fn, const Otherwise& otherwise) : fn_(std::move(fn)) {
  const auto is_static = [](const Param& p) { return p.type.is_static(); };
  if (!std::all_of(fn_->params().begin(), fn_->params().end(), is_static)) return;
  steps_.reserve(fn_->eqns().size());
  for (const Eqn& e : fn_->eqns()) {
    steps_.push_back(StepOf(*fn_, e, {}));
    if (otherwise) steps_.back().run = otherwise(e);
  }
  static_ = true;
}

Tensors PreparedEval::operator()(const Tensors& args) const {
  bool fits = static_ && args.size() == fn_->params().size();
  for (size_t i = 0; fits && i < args.size(); ++i) {
    const Type& type = fn_->params()[i].type;
    fits = args[i].dtype() == type.dtype && HasShape(args[i], type.dims);
  }
  if (!fits) return Eval(*fn_, args);  // which says what does not fit
  g_eval_count.fetch_add(1, std::memory_order_relaxed);
  return EvalSteps(*fn_, args, [&](size_t i) -> const Step& { return steps_[i]; });
}

}  // namespace weft
