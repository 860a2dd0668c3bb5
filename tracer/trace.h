// Functions under construction: a stack of open traces per thread, the innermost last.
//
//   ScopedTrace scope("f");
//   Value x = scope->Parameter({DType::kF32, {3}}, "x");
//   Values y = Bind(FindPrim("mul"), {x, x});       // recorded, because a trace is open
//   Traced f = scope->Finish(y);                    // f.fn, f.captures
//
// Inside a trace, a concrete array or a value of an outer trace is captured: arrays of at most kMaxLiteralElements
// become literals, larger ones and tapes kConstant parameters (one per buffer), outer values extra parameters.
// `captures` lists the values of those parameters, which follow the ordinary ones.
//
// A parameter may be *known*: the value it has in this call. Where a number is demanded (`if x > 0`) the recorded
// equations that it depends on are run on the known values and the result is kept; if it depends on a parameter that
// is not known, Demand raises kTracer. Nothing here knows of Python, derivatives or batching.
//
// What is traced later on behalf of a function whose trace has ended (a derivative rule) uses that function's values:
// a parameter stands for each (StandFor), and numbers that were known then still are (set_keeps_known).
#ifndef WEFT_TRACER_TRACE_H_
#define WEFT_TRACER_TRACE_H_

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "ir/applied_rule.h"
#include "ir/builder.h"
#include "ir/host_functions.h"
#include "tracer/value.h"

namespace weft {

// Runs a closed function on concrete arrays. Set once at start-up by whoever links a compiler or the interpreter.
using Runner = std::function<Tensors(const FnRef&, const Tensors&)>;
void SetRunner(Runner runner);
Tensors Run(const FnRef& fn, const Tensors& args);
// The same where some of the arrays are on devices.
using ShardsRunner = Values (*)(const FnRef& fn, const Values& args);
void SetShardsRunner(ShardsRunner runner);
// Whether what runs now is a function that was applied (Apply): a transform's, or one that was traced before.
bool RunsApplied();
// Runs it where its arguments lie.
Values Run(const FnRef& fn, const Values& args);

// Where the user's program is right now. The default knows nothing.
using LocProvider = Loc (*)();
void SetLocProvider(LocProvider provider);
Loc CurrentLoc();

struct Traced {
  FnRef fn;
  HostFunctions held = {};  // what `fn` names
  Values captures;          // values of the parameters after the first `num_params`
  int num_params = 0;       // without captures
  Mask weak_results;
  Atoms
      numbers;  // the first results: literals of 64 bits for those that are Python's floats; other atoms are variables
  std::vector<AppliedRule> rules;  // that applied before derivatives were taken
  bool happened = false;  // an effect happened while tracing (see Trace::set_concrete): `fn` belongs to this call alone
};

// Whether a captured array is a literal, unless programs are looked at (Setting::kKeepsCalls). A tape refers to memory,
// which a program cannot hold.
inline bool IsLiteralWhenCaptured(const Value& array) {
  return NumElements(array.shape()) <= kMaxLiteralElements && array.dtype() != DType::kTape && array.complete();
}

// Where arrays that are captured stay arrays (Setting::kKeepsCalls, Trace::set_computes_known): the numbers that the
// code being traced makes itself, which are literals. Shared with the traces inside.
struct OwnNumbers {
  static std::shared_ptr<OwnNumbers> IfKept();  // null where the setting is off
  std::unordered_map<const void*, Tensor> by_identity;
};

class Trace : public std::enable_shared_from_this<Trace> {
 public:
  // `kind` says who traces, for messages: "jit", "scan" ... So does `name`, which the function gets if it can.
  Trace(const std::string& name, std::string kind);

  // The innermost open trace of this thread, or null.
  static Trace* Current();

  // Parameters come before the first use of anything. `known`: the value in this call, concrete or of an outer trace.
  Value Parameter(Type type, const std::string& name, bool weak = false, const Value* known = nullptr);
  // The atom that stands for `value` in this trace; captures it if need be. Raises kTracer for a value whose trace has
  // ended.
  Atom Use(const Value& value);
  // The type of that atom. (A value from outside may be declared to vary there.)
  Type TypeOf(const Value& value) const;
  Value Wrap(const Atom& atom, bool weak = false);
  // A number that the code being traced makes, which is a literal in each trace (Setting::kKeepsCalls).
  static Tensor OwnNumber(Tensor number);
  // Appends an equation at the user's current place.
  Atoms Emit(const Prim& prim, Atoms operands, Attrs attrs = {}, std::vector<FnRef> regions = {});
  // Values of outer traces and concrete ones that it has captured: those of the parameters after the first
  // num_params(), in order.
  const Values& captures() const { return captures_; }
  int num_params() const { return num_params_; }
  // Whether a transform made the equation (a derivative, a batch), or another trace whose function is applied here: the
  // user wrote none of it here.
  bool IsDerived(size_t eqn) const;
  void SetDerived(size_t first, size_t end) { derived_.emplace_back(first, end); }
  Builder& builder() { return builder_; }
  const Builder& builder() const { return builder_; }

  Traced Finish(const Values& results);

  // The number behind a value of this trace. `why`: what asked for it, "bool()".
  Tensor Demand(Var var, const std::string& why);
  // What was demanded so far, each variable once, in order: the numbers that the recorded program depends on beyond
  // what it computes.
  const std::vector<std::pair<Var, Tensor>>& demanded() const { return demanded_; }

  // In a concrete trace the recorded program belongs to one call, whose numbers are known. An effect that a demanded
  // number depends on then happens at once (after the effects recorded before it), and is taken out of the program.
  void set_concrete() { concrete_ = true; }

  // What has no traced operand is then computed at once instead of being recorded, unless it has effects or speaks of
  // named axes. For a trace that nothing is recorded around, or that is inside of such ones alone. Arrays that it
  // captures are no literals, nor in traces inside: each call may have computed others, of one program.
  void set_computes_known() {
    computes_known_ = true;
    if (own_numbers_ == nullptr) own_numbers_ = std::make_shared<OwnNumbers>();
  }
  bool computes_known() const { return computes_known_; }

  // `parameter` is what `value` means here and in traces inside, whether or not the trace of `value` is open.
  void StandFor(const Value& value, Var parameter);
  // The innermost open trace that has a parameter for a value of another trace, and that parameter; or null.
  static std::pair<Trace*, Var> StandInFor(const Value& value);
  // What is known stays known after the trace has ended, here and in traces inside.
  void set_keeps_known(bool keeps) { keeps_known_ = keeps; }
  bool keeps_known() const { return keeps_known_; }

  // Everything that the function captures, and what is traced inside it, varies over these mesh axes: whether it runs
  // differs between the devices along them.
  void set_varying(const Strings& axes) { varying_ = UnionOfAxes(varying_, axes); }

  bool open() const { return open_; }
  const std::string& kind() const { return kind_; }
  const std::string& name() const { return name_; }
  // "f32[3] made at model.py:12 (loss)", for messages.
  std::string Describe(Var var) const;
  Loc OriginOf(Var var) const;
  Loc loc() const { return loc_; }

 private:
  friend class ScopedTrace;
  Tensor Compute(Var var, const std::string& why);
  int EqnOf(Var var) const;  // -1 for a parameter
  [[noreturn]] void RaiseUnknown(Var wanted, Var parameter, const std::string& why) const;

  void AddEarlierEffects(int until, std::set<int>& slice, std::set<uint32_t>& leaves) const;
  bool Collect(std::vector<Var> pending, std::set<int>& slice, std::set<uint32_t>& leaves, Var* unknown) const;
  FnRef WithoutDone(const Atoms& results);
  bool IsLiteral(const Value& array) const;
  Value Widened(const Value& value);
  Builder builder_;
  std::string name_, kind_;
  Loc loc_;
  bool open_ = true, concrete_ = false, happened_ = false, keeps_known_ = false, computes_known_ = false;
  int num_params_ = 0;
  Values captures_;
  std::unordered_map<const void*, std::vector<std::pair<Value, Var>>> constants_;  // by identity
  std::unordered_map<const Trace*, std::unordered_map<uint32_t, Var>> outer_;      // by trace and variable
  std::vector<std::pair<Value, Var>> stand_ins_;
  std::shared_ptr<OwnNumbers> own_numbers_ = OwnNumbers::IfKept();  // null: every small array is a literal
  std::vector<std::pair<Var, Tensor>> demanded_;
  std::unordered_set<uint32_t> demanded_vars_;
  std::unordered_map<uint32_t, Value> known_;  // by variable
  Strings varying_;
  std::map<std::pair<const void*, uint32_t>, Value> widened_;  // by trace and variable, or by buffer
  std::set<int> done_;                                         // equations with effects that have happened
  std::vector<std::pair<size_t, size_t>> derived_;             // from one equation up to another, in order
};

// Whether a value may be used here: it is concrete, its trace is open, or something stands for it.
bool IsUsable(const Value& value);
// The type of `value` in the innermost open trace.
Type TypeHere(const Value& value);

// The innermost open trace, if it is the one that records an operation on these values; null where that is to be run.
Trace* Recorder(absl::Span<const Value> values);

// Whether a function may be run while a trace that computes what is known goes on.
bool RunsAlone(const Fn& fn);

// Opens a trace for a scope. The value keeps describing its function after the scope has ended.
class ScopedTrace {
 public:
  ScopedTrace(const std::string& name, std::string kind);
  ~ScopedTrace();
  ScopedTrace(const ScopedTrace&) = delete;
  Trace* operator->() const { return trace_.get(); }
  Trace& operator*() const { return *trace_; }

 private:
  HostFunctionsStay stay_;  // what is being recorded may name some
  std::shared_ptr<Trace> trace_;
};

// Hides all open traces for a scope: code that runs while tracing, but is not part of the traced program.
class NoTrace {
 public:
  NoTrace();
  ~NoTrace();
  NoTrace(const NoTrace&) = delete;

 private:
  std::vector<std::shared_ptr<Trace>> saved_;
};

// Applies a primitive: recorded in the current trace, or run at once where none records it. Operands must fit as they
// are (tracer/ops.h promotes and broadcasts).
Values Bind(const Prim& prim, absl::Span<const Value> operands, Attrs attrs = {}, std::vector<FnRef> regions = {});
inline Values Bind(const Prim& prim, std::initializer_list<Value> operands, Attrs attrs = {}) {
  return Bind(prim, absl::MakeConstSpan(operands.begin(), operands.size()), std::move(attrs));
}
// Applies a function: inlined into the current trace, called there if it is large or `as_call`, or run.
Values Apply(const FnRef& fn, absl::Span<const Value> args, bool as_call = false);
// The concrete array behind a value; see Trace::Demand.
Tensor Demand(const Value& value, const std::string& why);
// The same, where it lies.
Value DemandValue(const Value& value, const std::string& why);

}  // namespace weft
#endif  // WEFT_TRACER_TRACE_H_
