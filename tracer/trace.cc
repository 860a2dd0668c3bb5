#include "tracer/trace.h"

#include <algorithm>
#include <cctype>
#include <set>

#include "ir/large_literals.h"
#include "ir/ops.h"
#include "ir/specialize.h"
#include "tracer/differentiated.h"
#include "tracer/eager_scope.h"

namespace weft {
namespace {

Runner& GlobalRunner() {
  static auto& runner = *new Runner();
  return runner;
}

LocProvider g_loc_provider = nullptr;
ShardsRunner g_shards_runner = nullptr;

std::vector<std::shared_ptr<Trace>>& Stack() {
  thread_local std::vector<std::shared_ptr<Trace>> stack;
  return stack;
}

// What the user calls a function: programs of lambdas have JAX's name for them where JAX's meaning counts.
std::string ShownName(const std::string& name) { return name == "_lambda_" ? "<lambda>" : name; }

// What to write instead of asking a traced value for its number.
std::string Advice(const std::string& why) {
  if (why == "bool()") {
    return "Use weft.cond or weft.numpy.where instead of Python's `if`/`and`/`or`/`not`, weft.while_loop instead of "
           "`while`, "
           "or mark the argument that it depends on as static (static_argnums, static_argnames).";
  }
  if (why == "int()" || why == "an index") {
    return "A Python integer (a shape, an axis, a loop bound) must be known while tracing: mark the argument as static "
           "(static_argnums), take it from x.shape, or use weft.fori_loop and weft.lax.dynamic_slice.";
  }
  if (why == "a boolean mask") {
    return "The number of selected elements would not be known: use weft.numpy.where(mask, x, y), or give `size=` "
           "where the function has it.";
  }
  return "Use weft.debug.print to show a value from inside compiled code, or return it from the function.";
}

// In itself or in one of its regions.
bool HasEffect(const Eqn& eqn) {
  return eqn.prim->has_effect ||
         std::any_of(eqn.regions.begin(), eqn.regions.end(), [](const FnRef& r) { return r->HasEffects(); });
}

}  // namespace

void SetRunner(Runner runner) { GlobalRunner() = std::move(runner); }
Tensors Run(const FnRef& fn, const Tensors& args) {
  WEFT_CHECK(GlobalRunner()) << "SetRunner was not called";
  return GlobalRunner()(fn, args);
}
void SetShardsRunner(ShardsRunner runner) { g_shards_runner = runner; }
Values Run(const FnRef& fn, const Values& args) {
  if (g_shards_runner != nullptr &&
      std::any_of(args.begin(), args.end(), [](const Value& v) { return v.placement() != nullptr; }))
    return g_shards_runner(fn, args);
  Tensors tensors;
  tensors.reserve(args.size());
  for (const Value& v : args) tensors.push_back(v.tensor());
  Values results;
  for (Tensor& t : Run(fn, tensors)) results.emplace_back(std::move(t));
  return results;
}
void SetLocProvider(LocProvider provider) { g_loc_provider = provider; }
Loc CurrentLoc() { return g_loc_provider ? g_loc_provider() : Loc(); }

Type Value::type() const {
  return traced() ? home_->builder().TypeOf(Atom(var_)) : Type{dtype(), Dims(shape().begin(), shape().end()), {}};
}
DType Value::dtype() const {
  if (traced()) return home_->builder().TypeOf(var_).dtype;
  return shards_ == nullptr ? tensor_.dtype() : shards_->layout().dtype;
}
int Value::rank() const { return traced() ? home_->builder().TypeOf(var_).rank() : static_cast<int>(shape().size()); }
Dims Value::dims() const {
  return traced() ? home_->builder().TypeOf(var_).dims : Dims(shape().begin(), shape().end());
}

Trace* Trace::Current() {
  auto& stack = Stack();
  return stack.empty() ? nullptr : stack.back().get();
}

Type TypeHere(const Value& value) {
  const Trace* trace = Trace::Current();
  return trace == nullptr ? value.type() : trace->TypeOf(value);
}

ScopedTrace::ScopedTrace(const std::string& name, std::string kind)
    : trace_(std::make_shared<Trace>(name, std::move(kind))) {
  if (const Trace* around = Trace::Current()) {
    trace_->varying_ = around->varying_;
    trace_->keeps_known_ = around->keeps_known_;
    if (around->own_numbers_ != nullptr) trace_->own_numbers_ = around->own_numbers_;
  }
  Stack().push_back(trace_);
}

ScopedTrace::~ScopedTrace() {
  auto& stack = Stack();
  // A generator that was left inside the trace may have left its own traces open above this one.
  while (!stack.empty()) {
    const bool mine = stack.back() == trace_;
    stack.back()->open_ = false;
    if (!stack.back()->keeps_known_) stack.back()->known_.clear();
    ForgetSources(*stack.back());
    stack.pop_back();
    if (mine) break;
  }
}

namespace {
thread_local EagerScope* g_eager_scope = nullptr;
}  // namespace

EagerScope::EagerScope() : around_(g_eager_scope) {
  hidden_.swap(Stack());
  g_eager_scope = this;
}
EagerScope::~EagerScope() {
  hidden_.swap(Stack());
  g_eager_scope = around_;
}
bool EagerScope::Hides(absl::Span<const Value> values) {
  // A trace that was opened inside the scope records as ever.
  return g_eager_scope != nullptr && Stack().empty() &&
         std::any_of(values.begin(), values.end(), [](const Value& v) { return v.traced(); });
}
EagerScope::Suspended::Suspended() : scope_(g_eager_scope) {
  scope_->hidden_.swap(Stack());
  g_eager_scope = scope_->around_;
}
EagerScope::Suspended::~Suspended() {
  scope_->hidden_.swap(Stack());
  g_eager_scope = scope_;
}

namespace {

// The name of a function in the IR, where it is one there: "<lambda>" is none.
std::string NameInIr(const std::string& name) {
  const bool word =
      !name.empty() && std::isdigit(static_cast<unsigned char>(name[0])) == 0 &&
      std::all_of(name.begin(), name.end(), [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; });
  return word ? name : "f";
}

}  // namespace

Trace::Trace(const std::string& name, std::string kind)
    : builder_(NameInIr(name)), name_(name), kind_(std::move(kind)), loc_(CurrentLoc()) {}

NoTrace::NoTrace() { saved_.swap(Stack()); }
NoTrace::~NoTrace() { saved_.swap(Stack()); }

Value Trace::Parameter(Type type, const std::string& name, bool weak, const Value* known) {
  WEFT_CHECK(captures_.empty()) << "a parameter after the first capture";
  const Var v = builder_.Parameter(std::move(type), name).var();
  if (known != nullptr) known_.emplace(v.id, *known);
  ++num_params_;
  return Value(shared_from_this(), v, weak);
}

Value Trace::Wrap(const Atom& atom, bool weak) {
  return atom.is_var() ? Value(shared_from_this(), atom.var(), weak) : Value(OwnNumber(atom.literal()), weak);
}

Atom Trace::Use(const Value& value) {
  if (value.home().get() == this) [[likely]] {
    if (!open_)
      throw UserError(ErrorKind::kTracer, {}, "a value of '", name_,
                      "' was used after its trace had ended; return it from the function instead");
    return value.var();
  }
  if (!value.traced()) {
    WEFT_CHECK(value.defined()) << "an undefined value";
    if (IsLiteral(value)) return Atom(value.tensor());
    if (!varying_.empty()) return Use(Widened(value));
    auto& same_buffer = constants_[value.identity()];
    for (const auto& [known, var] : same_buffer) {
      if (known.dtype() == value.dtype() && known.shape() == value.shape()) return var;
    }
    const Var v = builder_.Parameter(value.type(), "", Param::Kind::kConstant).var();
    same_buffer.emplace_back(value, v);
    captures_.push_back(value);
    known_.emplace(v.id, value);
    return v;
  }
  if (const auto [trace, parameter] = StandInFor(value); trace != nullptr)
    return trace == this ? Atom(parameter) : Use(trace->Wrap(parameter, value.weak()));
  const Trace& home = *value.home();
  if (home.open_ && !AxesWithout(varying_, value.type().varying).empty()) return Use(Widened(value));
  if (!home.open_) {
    throw UserError(ErrorKind::kTracer, CurrentLoc(), "a traced value escaped: ", home.Describe(value.var()),
                    " inside '", ShownName(home.name()), "' (", home.kind_,
                    "), was used after the trace of that function had ended. ",
                    "Return it from the function instead of storing it in a variable, list or attribute outside.");
  }
  const auto& stack = Stack();
  if (std::none_of(stack.begin(), stack.end(), [&](const auto& t) { return t.get() == &home; })) {
    throw UserError(ErrorKind::kTracer, CurrentLoc(),
                    "a traced value was used in another thread: ", home.Describe(value.var()),
                    " belongs to the trace of '", home.name(), "'.");
  }
  auto [it, inserted] = outer_[&home].try_emplace(value.var().id);
  if (inserted) {
    it->second = builder_.Parameter(value.type()).var();
    captures_.push_back(value);
    known_.emplace(it->second.id, value);
    SetSource(*this, it->second, value);
  }
  return it->second;
}

std::pair<Trace*, Var> Trace::StandInFor(const Value& value) {
  const auto& stack = Stack();
  for (size_t i = stack.size(); i-- > 0;) {
    for (const auto& [other, parameter] : stack[i]->stand_ins_) {
      if (other.home() == value.home() && other.var() == value.var()) return {stack[i].get(), parameter};
    }
  }
  return {nullptr, Var{0}};
}

bool IsUsable(const Value& value) {
  if (!value.traced() || Trace::StandInFor(value).first != nullptr) return true;
  const auto& stack = Stack();
  return value.home()->open() &&
         std::any_of(stack.begin(), stack.end(), [&](const auto& t) { return t.get() == value.home().get(); });
}

// A value from outside, declared there to vary over `varying_`.
Value Trace::Widened(const Value& value) {
  const void* const of = value.traced() ? static_cast<const void*>(value.home().get()) : value.identity();
  auto [it, inserted] = widened_.try_emplace({of, value.traced() ? value.var().id : 0});
  if (inserted) {
    const auto& stack = Stack();
    size_t mine = 0;
    while (mine < stack.size() && stack[mine].get() != this) ++mine;
    WEFT_CHECK(mine > 0 && mine < stack.size()) << "a trace under a varying choice has none around it";
    Trace& around = *stack[mine - 1];
    it->second = around.Wrap(Pvary(around.builder_, around.Use(value), varying_), value.weak());
  }
  return it->second;
}

Atoms Trace::Emit(const Prim& prim, Atoms operands, Attrs attrs, std::vector<FnRef> regions) {
  builder_.set_loc(CurrentLoc());
  return builder_.Emit(prim, std::move(operands), std::move(attrs), std::move(regions));
}

Traced Trace::Finish(const Values& results) {
  Atoms atoms;
  Traced traced;
  for (const Value& v : results) {
    atoms.push_back(Use(v));
    traced.weak_results.push_back(v.weak());
  }
  traced.fn = done_.empty() ? builder_.Build(atoms) : WithoutDone(atoms);
  traced.held = HostFunctions(*traced.fn);
  traced.captures = captures_;
  traced.num_params = num_params_;
  traced.happened = happened_;
  return traced;
}

// The function without the effects that have happened; their results are captured like any concrete array.
FnRef Trace::WithoutDone(const Atoms& results) {
  Builder b(builder_.name());
  std::unordered_map<uint32_t, Atom> env;
  for (size_t i = 0; i < builder_.params().size(); ++i) {
    const Param& p = builder_.params()[i];
    env[builder_.param_vars()[i]] = b.Parameter(p.type, p.name, p.kind);
  }
  auto of = [&](const Atom& a) { return a.is_var() ? env.at(a.id()) : a; };
  for (int e : done_) {
    const Eqn& eqn = builder_.eqns()[e];
    for (uint32_t r = 0; r < eqn.num_results; ++r) {
      const Value& value = known_.at(eqn.first_result + r);
      if (IsLiteral(value)) {
        env[eqn.first_result + r] = Atom(value.tensor());
      } else {
        env[eqn.first_result + r] = b.Parameter(value.type(), "", Param::Kind::kConstant);
        captures_.push_back(value);
      }
    }
  }
  for (size_t e = 0; e < builder_.eqns().size(); ++e) {
    const Eqn& eqn = builder_.eqns()[e];
    if (done_.count(static_cast<int>(e))) continue;
    Atoms operands;
    for (const Atom& a : eqn.operands) operands.push_back(of(a));
    b.set_loc(eqn.loc);
    const Atoms out = b.Clone(eqn, std::move(operands));
    for (uint32_t r = 0; r < eqn.num_results; ++r) env[eqn.first_result + r] = out[r];
  }
  Atoms final;
  for (const Atom& a : results) final.push_back(of(a));
  return b.Build(final);
}

bool Trace::IsDerived(size_t eqn) const {
  const auto after = std::upper_bound(derived_.begin(), derived_.end(), eqn,
                                      [](size_t e, const std::pair<size_t, size_t>& range) { return e < range.first; });
  return after != derived_.begin() && eqn < std::prev(after)->second;
}

int Trace::EqnOf(Var var) const {
  const auto& eqns = builder_.eqns();
  auto it =
      std::upper_bound(eqns.begin(), eqns.end(), var.id, [](uint32_t id, const Eqn& e) { return id < e.first_result; });
  while (it != eqns.begin()) {
    --it;
    if (it->num_results == 0) continue;
    return var.id < it->first_result + it->num_results ? static_cast<int>(it - eqns.begin()) : -1;
  }
  return -1;
}

Loc Trace::OriginOf(Var var) const {
  const int e = EqnOf(var);
  return e >= 0 ? builder_.eqns()[e].loc : Loc();
}

std::string Trace::Describe(Var var) const {
  const std::string type = builder_.TypeOf(var).ToString();
  const int e = EqnOf(var);
  if (e >= 0) {
    const Eqn& eqn = builder_.eqns()[e];
    return type + ", the result of '" + eqn.prim->name + "'" + (eqn.loc ? " at " + eqn.loc.ToString() : "");
  }
  for (size_t i = 0; i < builder_.params().size(); ++i) {
    if (builder_.param_vars()[i] != var.id) continue;
    const std::string& name = builder_.params()[i].name;
    return type + (name.empty() ? ", an argument" : ", argument '" + name + "'");
  }
  return type;
}

void Trace::RaiseUnknown(Var wanted, Var parameter, const std::string& why) const {
  throw UserError(ErrorKind::kTracer, CurrentLoc(), why, " of a traced value: ", Describe(wanted), ". ", "Inside ",
                  kind_, " of '", ShownName(name_), "' the numbers are not known; this value depends on ",
                  Describe(parameter), ". ", Advice(why));
}

// Adds the equations that `pending` needs, down to known values. False if that ends at a parameter that is not known.
bool Trace::Collect(std::vector<Var> pending, std::set<int>& slice, std::set<uint32_t>& leaves, Var* unknown) const {
  const auto& eqns = builder_.eqns();
  while (!pending.empty()) {
    const Var v = pending.back();
    pending.pop_back();
    if (known_.count(v.id)) {
      leaves.insert(v.id);
      continue;
    }
    const int e = EqnOf(v);
    if (e < 0) {
      *unknown = v;
      return false;
    }
    if (!eqns[e].FreeAxes().empty()) {  // differs between batch elements, or between devices
      *unknown = v;
      return false;
    }
    if (!slice.insert(e).second) continue;
    for (const Atom& a : eqns[e].operands) {
      if (a.is_var()) pending.push_back(a.var());
    }
  }
  return true;
}

// Effects keep their order: those recorded before an effect that happens now happen too, if their operands are known.
void Trace::AddEarlierEffects(int until, std::set<int>& slice, std::set<uint32_t>& leaves) const {
  for (int e = 0; e < until; ++e) {
    const Eqn& eqn = builder_.eqns()[e];
    if (!HasEffect(eqn) || done_.count(e) || slice.count(e)) continue;
    std::vector<Var> needs;
    for (const Atom& a : eqn.operands) {
      if (a.is_var()) needs.push_back(a.var());
    }
    std::set<int> more = slice;
    std::set<uint32_t> from = leaves;
    Var unknown;
    if (!Collect(needs, more, from, &unknown)) continue;
    more.insert(e);
    slice = std::move(more), leaves = std::move(from);
  }
}

Tensor Trace::Demand(Var var, const std::string& why) {
  Tensor value = Compute(var, why);
  if (demanded_vars_.insert(var.id).second) demanded_.emplace_back(var, value);
  return value;
}

Tensor Trace::Compute(Var var, const std::string& why) {
  if (auto it = known_.find(var.id); it != known_.end() && !it->second.traced()) return it->second.tensor();
  const auto& eqns = builder_.eqns();
  std::set<int> slice;
  std::set<uint32_t> leaves;
  Var unknown;
  if (!Collect({var}, slice, leaves, &unknown)) RaiseUnknown(var, unknown, why);
  int last_effect = -1;
  for (int e : slice) last_effect = HasEffect(eqns[e]) ? e : last_effect;
  if (last_effect >= 0) {
    const auto& stack = Stack();
    if (std::any_of(stack.begin(), stack.end(), [](const auto& t) { return !t->concrete_; })) {
      throw UserError(ErrorKind::kTracer, CurrentLoc(), why, " of a traced value: ", Describe(var), ". It depends on '",
                      eqns[last_effect].prim->name, "', whose result is known only when the compiled code runs. ",
                      Advice(why));
    }
    AddEarlierEffects(last_effect, slice, leaves);
  }
  // Known through an outer trace: that one may know it, or raise.
  Builder b(builder_.name());
  std::unordered_map<uint32_t, Atom> env;
  Values args;
  for (uint32_t id : leaves) {
    const Value known = known_.at(id);
    if (known.traced()) known_.insert_or_assign(id, Value(known.home()->Demand(known.var(), why), known.weak()));
    args.push_back(known_.at(id));
    env[id] = b.Parameter(args.back().type());
  }
  if (slice.empty()) return known_.at(var.id).tensor();
  // Every value of the slice is kept, so that nothing is computed twice.
  Atoms results;
  std::vector<uint32_t> ids;
  for (int e : slice) {
    Atoms operands;
    for (const Atom& a : eqns[e].operands) operands.push_back(a.is_var() ? env.at(a.id()) : a);
    b.set_loc(eqns[e].loc);
    const Atoms out = b.Clone(eqns[e], std::move(operands));
    for (uint32_t r = 0; r < eqns[e].num_results; ++r) {
      env[eqns[e].first_result + r] = out[r];
      results.push_back(out[r]);
      ids.push_back(eqns[e].first_result + r);
    }
  }
  Values values;
  {
    NoTrace outside;
    values = Run(b.Build(results), args);
  }
  for (size_t i = 0; i < ids.size(); ++i) known_.emplace(ids[i], values[i]);
  for (int e : slice) {
    if (HasEffect(eqns[e])) done_.insert(e);
  }
  if (last_effect >= 0) {
    for (const auto& trace : Stack()) trace->happened_ = true;
  }
  return known_.at(var.id).tensor();
}

Tensor Demand(const Value& value, const std::string& why) {
  if (!value.traced()) return value.tensor();
  if (const auto [trace, parameter] = Trace::StandInFor(value); trace != nullptr) return trace->Demand(parameter, why);
  if (!value.home()->open()) {
    throw UserError(
        ErrorKind::kTracer, CurrentLoc(), why, " of a traced value that escaped: ", value.home()->Describe(value.var()),
        " inside '", ShownName(value.home()->name()), "' (", value.home()->kind(),
        "), whose trace has ended. Return it from the function instead of storing it in a variable, list or "
        "attribute outside.");
  }
  return value.home()->Demand(value.var(), why);
}

Value DemandValue(const Value& value, const std::string& why) {
  return value.traced() ? Value(Demand(value, why), value.weak()) : value;
}

Values Bind(const Prim& prim, absl::Span<const Value> operands, Attrs attrs, std::vector<FnRef> regions) {
  bool weak = !operands.empty();
  for (const Value& v : operands) weak &= v.weak();
  if (EagerScope::Hides(operands)) {
    const EagerScope::Suspended suspended;
    return Bind(prim, operands, std::move(attrs), std::move(regions));
  }
  Values results;
  const auto record = [&](Trace* trace) {
    Atoms atoms;
    atoms.reserve(operands.size());
    for (const Value& v : operands) atoms.push_back(trace->Use(v));
    for (const Atom& a : trace->Emit(prim, std::move(atoms), std::move(attrs), std::move(regions))) {
      results.push_back(trace->Wrap(a, weak));
    }
    return results;
  };
  if (Trace* trace = Recorder(operands)) return record(trace);
  Builder b(prim.name);
  b.set_loc(CurrentLoc());
  Atoms atoms;
  Values known, args;
  for (const Value& v : operands) known.push_back(DemandValue(v, prim.name));  // raises for an escaped value
  // A number beside arrays is a literal here as it is in a trace.
  const bool arrays = std::any_of(known.begin(), known.end(), [](const Value& v) { return v.type().rank() > 0; });
  for (const Value& v : known) {
    if (prim.is_elementwise() && arrays && v.type().rank() == 0) {
      atoms.push_back(Atom(v.tensor()));
      continue;
    }
    args.push_back(v);
    atoms.push_back(b.Parameter(v.type()));
  }
  Trace* const around = Trace::Current();  // it computes what is known, and has all effects itself
  const Atoms out = around == nullptr ? b.Emit(prim, std::move(atoms), std::move(attrs), std::move(regions))
                                      : b.Emit(prim, std::move(atoms), attrs, regions);
  const FnRef fn = b.Build(out, /*keep_dead=*/true);
  if (around != nullptr && !RunsAlone(*fn)) return record(around);
  const NoTrace none;
  for (const Value& v : Run(fn, args)) results.push_back(v.WithWeak(weak));
  return results;
}

namespace {

thread_local int t_applied = 0;
struct AppliedScope {
  AppliedScope() { ++t_applied; }
  ~AppliedScope() { --t_applied; }
  AppliedScope(const AppliedScope&) = delete;
};

// Equations from which on a function is called rather than copied, so that transforms see it once however often it is
// applied. (Compiled code has the call only where it is made more than once: transforms/opt/calls.h.)
constexpr int64_t kLarge = 256;

// What refers to something around the function is part of that. `types`: of the operands, which may vary over more mesh
// axes than the function's parameters.
bool StaysCall(const Fn& fn, const Types& types, bool as_call) {
  return (as_call || fn.NumEqns() >= kLarge) && fn.OutwardCalls() == 0 && fn.FreeAxes().empty() &&
         fn.ParamTypes() == types;
}

}  // namespace

bool RunsApplied() { return t_applied > 0; }

Values Apply(const FnRef& fn, absl::Span<const Value> args, bool as_call) {
  if (EagerScope::Hides(args)) {
    const EagerScope::Suspended suspended;
    return Apply(fn, args, as_call);
  }
  if (args.size() != fn->params().size()) {
    throw TypeError("'", fn->name(), "' takes ", fn->params().size(), " arrays, got ", args.size());
  }
  // What a rule that was run in a transform took from outside (python/native/rule_bindings.cc).
  if (LargeLiteralsWereMade()) {
    if (const WithConstants plain = WithoutLargeLiterals(fn); !plain.constants.empty()) {
      Values all(args.begin(), args.end());
      for (const Tensor& t : plain.constants) all.push_back(Value(t));
      return Apply(plain.fn, all, as_call);
    }
  }
  Values results;
  Trace* trace = Recorder(args);
  if (trace == nullptr && Trace::Current() != nullptr && !RunsAlone(*fn)) trace = Trace::Current();
  if (trace != nullptr) {
    Atoms atoms;
    Types types;
    for (const Value& v : args) {
      atoms.push_back(trace->Use(v));
      types.push_back(trace->builder().TypeOf(atoms.back()));
    }
    trace->builder().set_loc(CurrentLoc());
    const FnRef fitting = Specialize(fn, MatchArguments(*fn, types));
    const size_t first = trace->builder().num_eqns();
    const Atoms out = StaysCall(*fitting, types, as_call)
                          ? trace->Emit(FindPrim("call"), std::move(atoms), {}, {fitting})
                          : trace->builder().Inline(*fitting, atoms);
    trace->SetDerived(first, trace->builder().num_eqns());
    for (const Atom& a : out) results.push_back(trace->Wrap(a));
    return results;
  }
  Values known;
  for (const Value& v : args) known.push_back(DemandValue(v, fn->name()));
  const AppliedScope applied;
  const NoTrace none;
  return Run(fn, known);
}

}  // namespace weft
