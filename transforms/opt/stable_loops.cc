// Logarithms of sums that a loop carries: s = s + exp(x), and log(s) when it ends. Where the trips need nothing else of
// each other it is the logarithm of one sum; otherwise the loop carries the logarithm.
#include <algorithm>

#include "ir/ops.h"
#include "ir/prim_table.h"
#include "ir/prims/control/scan.h"
#include "ir/prims/control/while.h"
#include "transforms/opt/defined_by.h"
#include "transforms/opt/formula.h"
#include "transforms/opt/loops.h"
#include "transforms/opt/rewrite.h"
#include "transforms/opt/shifted_exponentials.h"
#include "transforms/opt/stable_rules.h"

namespace weft {
namespace {

struct SoughtPrims {
  const Prim &add = FindPrim("add"), &exp = FindPrim("exp"), &log = FindPrim("log"), &scan = FindPrim("scan"),
             &loop = FindPrim("while");
};
const SoughtPrims& Prims() {
  static const SoughtPrims prims;
  return prims;
}

// log(a) by a stable form, where it has one.
std::optional<Atom> StableLogOf(Builder& b, const Atom& a) {
  return StableForm(b, Eqn{&Prims().log, {a}, 0, 1, {}, {}, b.loc()}, {a});
}

// A carry to which every trip adds an exponential, and that nothing else reads.
struct CarriedSum {
  const Fn* body;
  size_t region, param;  // of the body
  size_t operand;        // where the sum begins
  uint32_t exponential;  // the variable that is added
};
std::optional<CarriedSum> CarriedSumOf(const Eqn& e, size_t result) {
  const SoughtPrims& p = Prims();
  if (std::any_of(e.regions.begin(), e.regions.end(),
                  [](const FnRef& r) { return r->HasEffects() || r->OutwardCalls() > 0; }))
    return std::nullopt;
  CarriedSum out{};
  if (e.prim == &p.scan) {
    const Scan scan(*e.prim, e.attrs, e.regions[0]);
    if (result >= scan.carries) return std::nullopt;
    out = {e.regions[0].get(), 0, scan.consts + result, scan.consts + result, 0};
  } else if (e.prim == &p.loop) {
    const While loop(e.attrs, e.regions);
    if (result >= loop.carries || loop.cond->UseCounts()[result] > 0) return std::nullopt;
    out = {e.regions[1].get(), 1, result, result, 0};
  } else {
    return std::nullopt;
  }
  const std::vector<int> uses = out.body->UseCounts();
  const Atom& next = out.body->results()[result];
  const auto defining = [&](const Atom& a) -> const Eqn* {
    for (const Eqn& eqn : out.body->eqns()) {
      if (a.is_var() && eqn.num_results == 1 && eqn.result().id == a.id()) return &eqn;
    }
    return nullptr;
  };
  const Eqn* step = defining(next);
  if (step == nullptr || step->prim != &p.add || uses[out.param] != 1 || uses[next.id()] != 1) return std::nullopt;
  const bool first = step->operands[0] == Atom(Var{static_cast<uint32_t>(out.param)});
  if (!first && !(step->operands[1] == Atom(Var{static_cast<uint32_t>(out.param)}))) return std::nullopt;
  const Eqn* exponential = defining(step->operands[first ? 1 : 0]);
  if (exponential == nullptr || exponential->prim != &p.exp || !exponential->attrs.entries().empty())
    return std::nullopt;
  if (!(out.body->TypeOf(exponential->result()) == out.body->params()[out.param].type)) return std::nullopt;
  out.exponential = exponential->result().id;
  return out;
}

// Whether it is never less than 0: the sum begins there.
bool IsNotNegative(const Builder& b, const Atom& a) {
  const Atom* number = Splat(b, a);
  return number != nullptr ? number->literal().size() > 0 && number->literal().Get(0).real() >= 0
                           : DefinedBy(b, a, Prims().exp) != nullptr;
}

// The loop with log(s) in place of s: its result that is the logarithm.
std::optional<Atom> CarryingLogarithm(Builder& b, const Eqn& e, size_t result, const CarriedSum& sum) {
  if (!IsNotNegative(b, e.operands[sum.operand])) return std::nullopt;
  const Fn& body = *sum.body;
  Builder inside(body.name());
  Atoms args;
  for (const Param& p : body.params()) args.push_back(inside.Parameter(p.type, p.name, p.kind));
  const Atom before = args[sum.param];
  args[sum.param] = Exp(inside, before);
  Atoms results = inside.Inline(body, args);
  const std::optional<Atom> after = StableLogOf(inside, results[result]);
  if (!after) return std::nullopt;
  results[result] = *after;
  std::vector<FnRef> regions = e.regions;
  regions[sum.region] = std::move(inside).Build(results);
  Atoms operands = e.operands;
  const Atom& begin = e.operands[sum.operand];
  const Eqn log{&Prims().log, {begin}, 0, 1, {}, {}, b.loc()};
  if (Splat(b, begin) != nullptr) {
    operands[sum.operand] = FoldNumbers(b, log, {begin})[0];
  } else {
    const std::optional<Atom> of_begin = StableLogOf(b, begin);
    operands[sum.operand] = of_begin ? *of_begin : Log(b, begin);
  }
  return b.Emit(*e.prim, operands, e.attrs, regions)[result];
}

std::optional<Atom> LogOfCarriedSum(Builder& b, const Eqn& log, const Atoms& x) {
  if (!log.attrs.entries().empty() || !x[0].is_var() || !IsFloat(b.DTypeOf(x[0]))) return std::nullopt;
  const Eqn* found = b.Definition(x[0]);
  if (found == nullptr || found->regions.empty() || !b.TypeOf(x[0]).varying.empty()) return std::nullopt;
  const size_t result = x[0].id() - found->first_result;
  const std::optional<CarriedSum> sum = CarriedSumOf(*found, result);
  if (!sum) return std::nullopt;
  const Eqn e = *found;  // emitting may move it
  if (const std::optional<Atoms> made = WithoutTrips(b, e, e.operands)) {
    const Eqn* total = DefinedBy(b, (*made)[result], Prims().add);
    Atom all = (*made)[result];
    for (const size_t i : {size_t{0}, size_t{1}}) {
      const Atom* zero = total != nullptr ? Splat(b, total->operands[i]) : nullptr;
      if (zero != nullptr && zero->IsSplat(0)) all = total->operands[1 - i];
    }
    if (std::optional<Atom> value = StableLogOf(b, all)) return value;
  }
  int read = 0;
  for (uint32_t r = 0; r < e.num_results; ++r) read += TimesRead(b, Atom(Var{e.first_result + r}));
  return read > 1 ? std::nullopt : CarryingLogarithm(b, e, result, *sum);
}

const SimplifyRule kRules[] = {
    {"log-of-carried-sum", "log", Licence::kAccurate, LogOfCarriedSum,
     R"(fn f(x: f32[3], y: f32[4,3]) {
          z = exp x
          a, n = scan[length=<4>, num_carry=2, num_consts=0, reverse=false] z 0.0:f32 y (s: f32[3], c: f32[], r: f32[3]) -> (f32[3], f32[]) {
            e = exp r
            t = add s e
            return t, c
          }
          l = log a
          return l
        })",
     false, RuleTime::kStabilizing},
};

}  // namespace

absl::Span<const SimplifyRule> LoopSumRules() { return kRules; }

}  // namespace weft
