// A primitive operation: everything it means, declared once. Generic tests, the operation reference, Python stubs and
// every transform iterate the registry; a missing derivative is an error, never zero.
//
// An element-wise operation is one row (ir/prims/elementwise.cc), a structural one a block with `infer`, `eval` and
// its derivative rules. Rules that need to transform a region (cond, while, scan ...) do so through RegionRules, so
// ir/ never includes transforms/.
#ifndef WEFT_IR_PRIM_H_
#define WEFT_IR_PRIM_H_

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "ir/attr.h"
#include "ir/fn.h"
#include "ir/tensor.h"

namespace weft {

class Builder;

// What an operation needs of a size that only a call tells: that it is at least `least`, unless `reads` is 0. That a
// size is at most so many is said of its negative: -size >= -most.
struct SizeCondition {
  Dim size;
  int64_t least;
  Dim reads;         // how many elements or windows are read from the dimension of that size
  std::string what;  // "top_k: dimension 1 of f32[3,n]"
};

// What is known of an equation before it exists: the argument of `infer`.
struct Sig {
  const Prim& prim;
  const Types& operands;
  const Mask& literal;  // which operands are literals
  const Attrs& attrs;
  const std::vector<FnRef>& regions;
  std::vector<SizeCondition>* conditions = nullptr;  // gathers what symbolic sizes have to be; see Fits

  // False where dimension `dim` of `type` is known to be less than `least`. Of a symbolic one, which may turn out to
  // be, a condition is noted: where it does not hold, running the equation is an error (ir/analysis/size_conditions.h).
  bool Fits(const Type& type, int dim, int64_t least, const Dim& reads = Dim(1)) const;
  // The same of one that must be at most `most`.
  bool FitsWithin(const Type& type, int dim, int64_t most) const;
};

using OptionalAtoms = absl::InlinedVector<std::optional<Atom>, 2>;  // nullopt = symbolic zero

// A function after jvp: parameters are the primals, then tangents of the active ones; results the primal results, then
// tangents of the results in `active_out`. After jet: the Taylor coefficients 1 ... order in place of each tangent.
struct JvpFn {
  FnRef fn;
  Mask active_out;
};

// A function after vmap: batched parameters have a new leading dimension, batched results too.
struct BatchedFn {
  FnRef fn;
  Mask batched_out;
};

// A function cut in two by `split`. `known`: known parameters -> known results, then residuals.
// `unknown`: residuals, then unknown parameters -> unknown results.
struct SplitFn {
  FnRef known, unknown;
  Mask unknown_out;  // which results of the original are unknown
  Types residuals;
};

// Transforms applied to regions, supplied by whichever transform is running.
struct RegionRules {
  // Results in `force_active` get a tangent even where it is zero.
  std::function<JvpFn(const FnRef&, const Mask& active, const Mask& force_active)> jvp;
  // Taylor mode: coefficients 1 ... order in place of each tangent.
  std::function<JvpFn(const FnRef&, const Mask& active, int order, const Mask& force_active)> jet;
  std::function<BatchedFn(const FnRef&, const Mask& batched, const Mask& force_batched, const Dim& size)> batch;
  // The same over an axis with a name ("": none).
  std::function<BatchedFn(const FnRef&, const Mask& batched, const Mask& force_batched, const Dim& size,
                          const std::string& axis)>
      batch_over;
  std::function<SplitFn(const FnRef&, const Mask& unknown, const Mask& force_unknown)> split;
  // `linear` parameters are the inputs of a linear map; result: (other parameters, cotangents of results) ->
  // cotangents of the linear parameters, all of them (zeros filled in).
  std::function<FnRef(const FnRef&, const Mask& linear)> transpose;
};

// Forward mode of one equation. `x` are the primal operands in the function under construction, `dx` their tangents.
// The rule emits into `b` and fills `y` (all results) and `dy` (nullopt = zero).
struct JvpContext {
  Builder& b;
  const Eqn& eqn;
  const Atoms& x;
  const OptionalAtoms& dx;
  const RegionRules& regions;
  Atoms y;
  OptionalAtoms dy;
};

// The series of each value: its tangent, or its Taylor coefficients 1 ... count. nullopt = all of them are zero.
using Series = std::vector<std::optional<Atoms>>;

// Forward propagation of series through an equation, whether they are tangents or Taylor coefficients: jvp with count =
// 1, jet with count = order. `push` does the same to a region.
struct PushContext {
  Builder& b;
  const Eqn& eqn;
  const Atoms& x;
  const Series& dx;  // of each operand
  size_t count;
  std::function<JvpFn(const FnRef&, const Mask& active, const Mask& force_active)> push;
  Atoms y;
  Series dy;
};

// Taylor mode of one equation: coefficient k > 0 of its result, from those of its operands up to k and of its result
// below k. nullopt = zero.
struct TaylorContext {
  Builder& b;
  const Eqn& eqn;
  int k;
  std::function<std::optional<Atom>(int operand, int j)> x;
  std::function<std::optional<Atom>(int j)> y;
};

// The types of an equation's operands.
class OperandTypes {
 public:
  OperandTypes(const Fn& fn, const Eqn& eqn) : fn_(fn), operands_(eqn.operands) {}
  size_t size() const { return operands_.size(); }
  const Type& operator[](size_t i) const { return fn_.TypeOf(operands_[i]); }
  Types list() const {
    Types types;
    for (const Atom& a : operands_) types.push_back(fn_.TypeOf(a));
    return types;
  }

 private:
  const Fn& fn_;
  const Atoms& operands_;
};

// Reverse mode of one linear equation: given `ct`, the cotangents of its results (nullopt = zero), return those of its
// operands: an entry per operand, nullopt for operands that are not linear or whose cotangent is zero.
struct TransposeContext {
  Builder& b;
  const Eqn& eqn;
  const OptionalAtoms& x;  // value of each operand that is not linear; nullopt marks a linear operand
  OperandTypes types;
  const OptionalAtoms& ct;
  const RegionRules& regions;
  bool linear(int i) const { return !x[i].has_value(); }
};

// Batching of one equation: operands with `batched[i]` have the mapped dimension in front. Fills `y` and `batched_out`.
struct BatchContext {
  Builder& b;
  const Eqn& eqn;
  const Atoms& x;
  const Mask& batched;
  const Dim& size;          // of the mapped dimension
  const std::string& axis;  // its name; empty for none
  const RegionRules& regions;
  Atoms y;
  Mask batched_out;
  // Operand i with a leading mapped dimension, broadcast when it has none.
  Atom Batched(int i) const;
};

// Partial evaluation of one region equation. Operands that are known are given in `known`; the rule emits the known
// half into `known_b` and the unknown half into `unknown_b`. `residual(atom)` makes a value of the known half available
// in the unknown half and returns it there.
struct SplitContext {
  Builder& known_b;
  Builder& unknown_b;
  const Eqn& eqn;
  const Mask& unknown;     // per operand
  const Atoms& known_x;    // valid where !unknown[i]; atoms of known_b
  const Atoms& unknown_x;  // valid where unknown[i]; atoms of unknown_b
  std::function<Atom(const Atom&)> residual;
  const RegionRules& regions;
  // Outputs of the rule: per result, whether it is unknown, and its atom in the builder it belongs to.
  Mask unknown_out;
  Atoms y;
};

// What is left of an equation of which some results are needed: which of its results and operands, and its attributes
// and regions then.
struct Kept {
  Mask results, operands;
  Attrs attrs;
  std::vector<FnRef> regions;
};

// Dead code in regions. An equation whose results in `needed` are read, or none and it has an effect: the rule says
// what to keep of it. A result that is not needed may be kept (a carry that others depend on).
struct DceContext {
  const Eqn& eqn;
  const Mask& needed;  // per result
  // Which parameters of a region its results in `needed` depend on; what its effects read counts as well.
  std::function<Mask(const FnRef&, const Mask& needed)> reads;
  // The region with these results and parameters alone, and without what they do not need. `params` has all of `reads`.
  std::function<FnRef(const FnRef&, const Mask& needed, const Mask& params)> keep;
};

struct EvalContext {
  const Sig& sig;
  const Types& results;                                   // static types
  std::function<Tensors(const Fn&, const Tensors&)> run;  // runs a region
};

// One input on which the generic tests run a primitive.
struct Sample {
  Types operands;
  Attrs attrs;
  std::vector<FnRef> regions;
  // Operand values are drawn uniformly from [low, high] (integers: rounded; bool: coin), except those given here.
  double low = -2, high = 2;
  std::vector<std::pair<int, Tensor>> values;
  // Named axes and their sizes that the sample needs around it: a collective means nothing alone.
  std::vector<Mesh::Axis> axes = {};
  Mask linear;  // for transpose: the operands that are linear here (defaults to the primitive's linear set)
};

enum class Family {
  kElementwise,
  kReduction,
  kCumulative,
  kContraction,
  kShape,
  kIndexing,
  kSorting,
  kWindow,
  kLinalg,
  kRandom,
  kControl,
  kEffect,
  kCollective
};
const char* Name(Family family);

// What an operation does with its regions.
enum class RegionUse : uint8_t {
  kNone,       // it has none
  kCall,       // computes region 0
  kWithRules,  // computes region 0 too; further regions and attributes are rules for transforms
  kBranches,   // computes one of them: operand 0 says which
  kCounted,    // computes region 0 as often as the attribute `length` says
  kUncounted,  // computes all of them, trip by trip, as often as values say
  kSnapshots,  // computes region 0 forwards, and again from snapshots, and region 1 backwards
  kRecursive,  // computes region 0, which may call itself
  kDevices,    // computes region 0 on every device of a mesh
};

// What an operation reads and writes of arrays.
enum class Traffic : uint8_t {
  kWhole,     // its operands and results
  kNone,      // nothing: the result is the operand, or is known without it
  kTaken,     // of operand 0 only what it puts into its result
  kReplaced,  // of operand 0 the elements that operand 1 takes the place of
  kCombined,  // of operand 0 the elements that those of the last operand are combined with
};

// The size that stands for a dimension in a count: its own, or a guess for a symbolic one.
using SizeOf = std::function<double(const Dim&)>;
// Floating-point operations of one equation.
using FlopsRule = std::function<double(const Sig&, const Types& results, const SizeOf&)>;
using InferFn = std::function<Types(const Sig&)>;
using EvalFn = std::function<Tensors(const EvalContext&, const Tensors&)>;
using JvpRule = std::function<void(JvpContext&)>;
using PushRule = std::function<void(PushContext&)>;
using TaylorRule = std::function<std::optional<Atom>(TaylorContext&)>;
using TransposeRule = std::function<OptionalAtoms(TransposeContext&)>;
using BatchRule = std::function<void(BatchContext&)>;
using SplitRule = std::function<void(SplitContext&)>;
using DceRule = std::function<Kept(const DceContext&)>;
// Partial derivatives of an element-wise operation, one per operand, given operands `x` and result `y`.
// nullopt: the derivative with respect to that operand is zero everywhere it exists (declared, not unknown).
using PartialsRule = std::function<OptionalAtoms(Builder&, const Atoms& x, const Atom& y)>;

struct Prim {
  std::string name;
  int id = -1;      // dense, in name order: an index into tables of all primitives
  std::string doc;  // one sentence on the meaning, then shapes, dtypes and the source of a formula
  Family family = Family::kElementwise;
  int num_operands = -1;  // -1: any number
  DTypeSet dtypes;        // of the first operand, for documentation and generated samples

  InferFn infer;
  EvalFn eval;
  // Exactly one of: partials (element-wise), jvp, push (operations with regions), linear operands (jvp follows),
  // not_differentiable (with the reason); none where every result is an integer or a boolean.
  PartialsRule partials;
  JvpRule jvp;
  PushRule push;
  // Taylor mode follows from any of them (transforms/ad/jet.h); a recurrence of its own where that is shorter.
  TaylorRule taylor;
  // The operands in which the operation is linear; {-1} = every operand. Jointly, or each alone when `multilinear`.
  std::vector<int> linear;
  bool multilinear = false;  // mul, contract, div in its numerator
  // Where some attributes make it affine instead (a gather that fills with NaN): those of its linear part.
  std::function<Attrs(const Attrs&)> linear_part;
  Attrs LinearPart(const Attrs& attrs) const { return linear_part ? linear_part(attrs) : attrs; }
  std::string not_differentiable;
  TransposeRule transpose;  // required when `linear` is not empty
  BatchRule batch;          // element-wise operations have the generic one
  SplitRule split;          // region operations only
  // Region operations have one of these two: how results that nobody reads are dropped, or why they are not. (They cost
  // what they cost, and in reverse mode they have cotangents of zero: times an infinite derivative that is NaN.)
  DceRule dce;
  std::string keeps_results;

  bool has_effect = false;  // keeps its order, survives dead-code elimination
  // Whether it may run for ever, or longer than its operands and attributes say: a loop whose trips its values decide,
  // recursion. Nobody runs it but the program itself.
  bool may_diverge = false;
  // Region operations whose transpose takes regions that also compute values that are not linear: nothing is split off
  // first where every result depends on the linear operands.
  bool transposes_mixed_regions = false;
  RegionUse region_use = RegionUse::kNone;
  bool recurs = false;        // calls the function that an enclosing operation of kRecursive computes
  bool lane_by_lane = false;  // batched by computing lanes one after the other
  bool communicates = false;  // devices or lanes meet there
  bool view = false;          // the result is read through a map of indices wherever it is used
  bool expands = false;       // the result is larger than what it is made from: made again rather than kept
  Traffic traffic = Traffic::kWhole;
  // The functions of the host that an equation with these attributes names (ir/host_functions.h).
  std::function<Ints(const Attrs&)> host_functions;
  bool is_callback() const { return family == Family::kEffect && host_functions != nullptr; }
  bool says_varying = false;  // `infer` says over which mesh axes the results vary, as that of operations with regions
  bool is_linear() const { return !linear.empty(); }
  bool LinearIn(int operand) const {
    return !linear.empty() && (linear[0] == -1 || std::find(linear.begin(), linear.end(), operand) != linear.end());
  }
  bool in_order = false;  // a reduction of floating-point numbers: in the order of ir/prims/reduction_order.h
  bool commutes = false;  // f(x, w) = f(w, x), bit by bit but for a NaN's payload
  bool is_elementwise() const { return family == Family::kElementwise; }
  double work = 1;  // element-wise: floating-point operations per element of the result
  FlopsRule flops;  // empty: `work` per element of the result (element-wise) or one per element of the operands
  // Of lowered code, relative, in f32: against `eval`; of an element-wise operation against the exact value, in steps
  // of 2^-23 (its bound in units of the last place; see Declared in ir/prims/elementwise.h).
  double tolerance = 1e-6;
  // Whether the interpreter and compiled code give the same bits, of the exact value rounded once.
  bool correctly_rounded() const { return is_elementwise() && tolerance == 0; }
  std::function<std::vector<Sample>()> samples;
  std::vector<std::string> more_attributes;  // optional ones that no sample has
  // For the documentation and tests of an element-wise operation: its exact value as mpmath says it, of x (and w), and
  // arguments of an example, as Python says them.
  std::string formula, example;
};

// The types of an equation's results: what `infer` says, and of operations without regions that values vary over
// every mesh axis that an operand varies over (collectives say themselves how they change that). Rules need not look
// at `Type::varying`.
Types InferTypes(const Sig& sig);

// All primitives, in name order. Built on first use from the explicit list in ir/prims/all.cc; never changes after.
const std::vector<const Prim*>& AllPrims();
// Raises kValue when there is no such primitive.
const Prim& FindPrim(const std::string& name);
const Prim* TryFindPrim(const std::string& name);

// Filled by the families' registration functions.
class PrimRegistry {
 public:
  Prim& Add(std::string name, Family family, int num_operands, std::string doc);
  Prim& Get(const std::string& name);  // one that has been added
  std::vector<std::unique_ptr<Prim>> Take() { return std::move(prims_); }

 private:
  std::vector<std::unique_ptr<Prim>> prims_;
};

}  // namespace weft
#endif  // WEFT_IR_PRIM_H_
