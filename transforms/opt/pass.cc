#include "transforms/opt/pass.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>

#include "base/fork_safe_mutex.h"
#include "base/interrupt.h"
#include "ir/error.h"
#include "ir/licences.h"
#include "ir/verify.h"
#include "transforms/opt/components.h"
#include "transforms/opt/condense.h"
#include "transforms/opt/depthwise.h"
#include "transforms/opt/row_blocks.h"
#include "transforms/opt/rule_watch.h"
#include "transforms/opt/simplify.h"
#include "transforms/opt/vector_products.h"

namespace weft {

namespace {

const std::vector<Pass>& PassesOfTheTree() {
  static const auto& passes = *new std::vector<Pass>{
      {"drop-rules",
       "Replace custom_jvp, custom_vjp, custom_vmap, linear_solve, remat, stop_gradient and checkpoint_name by what "
       "they "
       "compute.",
       DropDifferentiationRules},
      {"snapshots", "Make plain loops of snapshot_scan, by the binomial schedule.", ExpandSnapshots},
      {"inline", "Inline calls.", InlineEveryCall},
      {"inline-small", "Inline calls, but of functions that are large and called more than once.", InlineCalls},
      {"inline-most", "Inline calls, but in long programs those of functions that are large and called more than once.",
       InlineMostCalls},
      {"cse", "Compute equal pure equations once.", EliminateCommonSubexpressions},
      {"dce", "Drop what no result needs: equations, results of branches, loop carries and stacked outputs.",
       EliminateDeadCode},
      {"fold", "Evaluate equations whose operands are all literals; take the branch of a known predicate.",
       FoldConstants},
      {"hoist", "Compute once, before a loop, what its body computes from constants of the loop.", HoistConstants},
      {"loops",
       "Compute without trips what a scan computes of its slices alone, sums up, or multiplies; carries that never "
       "change become constants.",
       SimplifyLoops},
      {kCondense, "What runs between two orders of differentiation: simplify, fold numbers, cse, dce in one walk.",
       Condense},
      {"simplify", "Apply the rules of transforms/opt/simplify.cc and the stable forms of stable_*.cc.", Simplify},
      {kStabilize, "What runs before a derivative is taken: stable forms alone.", Stabilize},
      {"blocks", "Compute large products, and what follows row by row until it is small again, in blocks of rows.",
       ComputeInBlocks},
      {"components", "Take dimensions of 2 to 4 elements that are summed over apart: arrays of coordinates.",
       TakeComponentsApart},
      {"depthwise", "Compute convolutions of each channel for itself as sums of shifted products.", DepthwiseAsSums},
      {"vector-products", "Compute products of vectors and matrices as sums.", VectorProductsAsSums},
      {"widen",
       "Compute in f64 what cancels or overflows in f32: a few operations on one value, all with \"rounding\".",
       WidenWhatCancels},
  };
  return passes;
}

// Replaced as a whole when a pass is added, since others read it meanwhile; what was replaced stays.
std::atomic<const std::vector<Pass>*>& CurrentPasses() {
  static std::atomic<const std::vector<Pass>*> current{&PassesOfTheTree()};
  return current;
}

}  // namespace

const std::vector<Pass>& AllPasses() { return *CurrentPasses().load(std::memory_order_acquire); }

void RegisterPass(const Pass& pass) {
  const std::string name = pass.name == nullptr ? "" : pass.name;
  const bool is_name = !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
  });
  if (!is_name) throw ValueError("RegisterPass: the name '", name, "' is none; expected a-z, digits, - and _");
  if (pass.run == nullptr) throw ValueError("RegisterPass: the pass '", name, "' has no function");
  static auto& adding = *new ForkSafeMutex;
  const std::lock_guard<ForkSafeMutex> lock(adding);
  for (const Pass& p : AllPasses()) {
    if (name == p.name) throw ValueError("RegisterPass: there is a pass named '", name, "' already");
  }
  if (name == "optimize") throw ValueError("RegisterPass: 'optimize' stands for the passes that run by default");
  static auto& replaced = *new std::vector<const std::vector<Pass>*>();  // others may be reading it
  replaced.push_back(&AllPasses());
  auto* next = new std::vector<Pass>(AllPasses());
  next->push_back(pass);
  if (pass.doc == nullptr) next->back().doc = "";
  next->back().from_outside = true;
  CurrentPasses().store(next, std::memory_order_release);
}

FnRef RunPass(const Pass& pass, FnRef fn) {
  const RuleWatch::RunningPass here(pass.name);
  if (!pass.from_outside) return pass.run(std::move(fn));
  const auto type_of = [](const Fn& f) {
    Types params;
    for (const Param& p : f.params()) params.push_back(p.type);
    return "(" + ToString(params) + ") -> (" + ToString(f.ResultTypes()) + ")";
  };
  const std::string before = type_of(*fn), name = fn->name();
  FnRef out = pass.run(std::move(fn));
  if (out == nullptr) throw ValueError("the pass '", pass.name, "' returned no program for '", name, "'");
  if (const std::string after = type_of(*out); after != before) {
    throw TypeError("the pass '", pass.name, "' changed the type of '", name, "' from ", before, " to ", after,
                    "; a pass keeps parameters and results");
  }
  Verify(*out, {.large_literals = true});
  return out;
}

const Pass& FindPass(const std::string& name) {
  std::string known;
  for (const Pass& p : AllPasses()) {
    if (name == p.name) return p;
    known += (known.empty() ? "" : ", ") + std::string(p.name);
  }
  throw ValueError("there is no pass named '", name, "'; passes: ", known);
}

FnRef RunPasses(FnRef fn, const std::vector<std::string>& names, const PassObserver& observe) {
  for (const std::string& name : names) {
    const Pass& pass = FindPass(name);
    PollInterrupt();
    PassRecord record;
    if (observe) record = {name, 0, static_cast<int64_t>(fn->NumEqns()), 0};
    const auto start = std::chrono::steady_clock::now();
    fn = RunPass(pass, std::move(fn));
    if (observe) {
      const auto took = std::chrono::steady_clock::now() - start;
      record.milliseconds = std::chrono::duration<double, std::milli>(took).count();
      record.equations_after = static_cast<int64_t>(fn->NumEqns());
      observe(record, *fn);
    }
#ifndef NDEBUG
    try {
      Verify(*fn, {.large_literals = true});
    } catch (const Error& wrong) {
      throw Error(ErrorKind::kInternal, "the pass '" + name + "' made a wrong program: " + wrong.message(),
                  wrong.loc());
    }
#endif
  }
  return fn;
}

const std::vector<std::string>& DefaultPasses() {
  // Simplification exposes equal equations and dead ones; a second round catches what the first one uncovered.
  static const auto& names = *new std::vector<std::string>{
      "drop-rules", "inline-small", "fold", "simplify", "cse",   "dce",       "loops",           "blocks", "components",
      "fold",       "simplify",     "cse",  "hoist",    "widen", "depthwise", "vector-products", "cse",    "dce"};
  return names;
}

FnRef Optimize(FnRef fn) { return RunPasses(std::move(fn), DefaultPasses()); }

}  // namespace weft
