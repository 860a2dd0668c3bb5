// Loops that need no trips: what a scan computes of its slices alone is computed of all of them at once, carries that
// sum it up are reductions, a carry that is multiplied by a constant is a power, and a carry that never changes is a
// constant.
// What one branch alone reads is computed there.
#include "transforms/opt/loops.h"

#include <algorithm>
#include <functional>
#include <map>

#include "ir/builder.h"
#include "ir/licences.h"
#include "ir/ops.h"
#include "ir/prim_table.h"
#include "ir/prims/control/scan.h"
#include "ir/prims/control/while.h"
#include "ir/prims/indexing.h"
#include "transforms/opt/known.h"
#include "transforms/opt/loop_parts.h"
#include "transforms/opt/network.h"
#include "transforms/opt/pass.h"
#include "transforms/opt/rewrite.h"
#include "transforms/opt/rule_watch.h"

namespace weft {
namespace {

constexpr const char* kFewTrips = "few-trips";
constexpr const char* kRuleNames[] = {"constant-carry", "loop-without-trips", "sink-into-branch",    "last-trip-alone",
                                      kSumAfterLoop,    kProductBeforeLoop,   kProductsOfOneOperand, kFewTrips};

// What a carry is of its slices.
struct Fold {
  const Eqn* step = nullptr;  // carry' = step(carry, other)
  size_t own = 0;             // which operand the carry is
};

class Unrolled {
 public:
  Unrolled(Builder& b, const Eqn& e, const Atoms& x)
      : b_(b), e_(e), x_(x), scan_(*e.prim, e.attrs, e.regions[0]), body_(*scan_.body), length_(scan_.length.value()) {}

  std::optional<Atoms> Run() {
    if (!Fits()) return std::nullopt;
    Atoms results;
    if (!MakeValues()) return std::nullopt;
    for (size_t i = 0; i < scan_.carries; ++i) results.push_back(Carry(i));
    for (size_t k = scan_.carries; k < body_.results().size(); ++k) results.push_back(Stacked(body_.results()[k]));
    return results;
  }

 private:
  uint32_t CarryVar(size_t i) const { return static_cast<uint32_t>(scan_.consts + i); }
  bool IsCarry(const Atom& a) const {
    return a.is_var() && a.id() >= scan_.consts && a.id() < scan_.consts + scan_.carries;
  }

  // Whether the body is of the form, without looking at sizes of what it makes.
  bool Fits() {
    const std::vector<int> uses = body_.UseCounts();
    std::vector<bool> carried(body_.num_vars(), false);
    for (size_t i = 0; i < scan_.carries; ++i) carried[CarryVar(i)] = true;
    std::map<uint32_t, const Eqn*> steps;
    int64_t bytes = 0;
    for (const Param& p : body_.params()) {
      if (!p.type.is_static() || !p.type.varying.empty() || p.type.dtype == DType::kTape) return false;
    }
    for (const Eqn& e : body_.eqns()) {
      if (!e.regions.empty() || e.num_results != 1 || !e.prim->batch || e.prim->has_effect || e.prim->may_diverge)
        return false;
      const Family f = e.prim->family;
      if (f != Family::kElementwise && f != Family::kContraction && f != Family::kReduction && f != Family::kShape &&
          e.prim != &FindPrim("dynamic_slice"))
        return false;
      const Type& type = body_.TypeOf(e.result());
      if (!type.is_static() || !type.varying.empty()) return false;
      const bool reads = std::any_of(e.operands.begin(), e.operands.end(),
                                     [&](const Atom& a) { return a.is_var() && carried[a.id()]; });
      carried[e.first_result] = reads;
      if (reads) {
        steps[e.first_result] = &e;
        continue;
      }
      // Shapes and broadcasts are read where they lie, and functions of elements fused; the rest lies in memory.
      const bool fused = e.prim->is_elementwise() || e.prim->view || e.prim->expands;
      if (!fused && type.Bytes() >= kWorthATrip) return false;
      if (__builtin_mul_overflow(type.Bytes(), length_, &bytes) || bytes > (fused ? 4 : 1) * kMostAtOnce) return false;
    }
    size_t used = 0;
    for (size_t i = 0; i < scan_.carries; ++i) {
      const Atom& next = body_.results()[i];
      Fold fold;
      const auto step = next.is_var() ? steps.find(next.id()) : steps.end();
      if (step == steps.end()) return false;
      fold.step = step->second;
      const Eqn& s = *fold.step;
      if (s.operands.size() != 2 || uses[CarryVar(i)] != 1) return false;
      if (!(s.operands[0] == Atom(Var{CarryVar(i)})) && !(s.operands[1] == Atom(Var{CarryVar(i)}))) return false;
      fold.own = s.operands[0] == Atom(Var{CarryVar(i)}) ? 0 : 1;
      const Atom& other = s.operands[1 - fold.own];
      if (other.is_var() && carried[other.id()]) return false;
      const DType dtype = body_.TypeOf(next).dtype;
      if (dtype == DType::kF16 || IsFloat8(dtype)) return false;  // may overflow on the way
      if (IsBool(dtype)) return false;                            // there are no running extremes of booleans
      if (IsInteger(dtype) && BitWidth(dtype) < 64 && length_ >> (BitWidth(dtype) - 1) != 0)
        return false;  // no such number
      if (Reduction(*s.prim) == nullptr && !(Is<"sub">(*s.prim) && fold.own == 0) && !IsMultiplication(i, fold))
        return false;
      if (!IsMultiplication(i, fold)) {
        const bool same = other.is_var() ? body_.TypeOf(other) == body_.TypeOf(next) : body_.TypeOf(next).rank() == 0;
        if (!same) return false;
      }
      folds_.push_back(fold);
      ++used;
    }
    // Nothing else may be made of carries.
    if (steps.size() != used) return false;
    for (size_t k = scan_.carries; k < body_.results().size(); ++k) {
      const Atom& y = body_.results()[k];
      if (!y.is_var() || !carried[y.id()]) continue;
      const auto fold =
          std::find_if(folds_.begin(), folds_.end(), [&](const Fold& g) { return g.step->result().id == y.id(); });
      if (fold == folds_.end() || Running(*fold->step->prim) == nullptr) return false;
    }
    return true;
  }

  static const Prim* Reduction(const Prim& step) {
    static const auto& rows = *new PrimTable<const Prim*>{
        {"add", &FindPrim("reduce_sum")}, {"max", &FindPrim("reduce_max")}, {"min", &FindPrim("reduce_min")}};
    return rows[step];
  }
  static const Prim* Running(const Prim& step) {
    static const auto& rows = *new PrimTable<const Prim*>{
        {"add", &FindPrim("cumsum")}, {"max", &FindPrim("cummax")}, {"min", &FindPrim("cummin")}};
    return rows[step];
  }

  // Carries that are multiplied, by a matrix from the right or element by element, by what is no slice.
  bool IsMultiplication(size_t i, const Fold& fold) const {
    const Eqn& s = *fold.step;
    const Type &own = body_.params()[CarryVar(i)].type, &type = body_.TypeOf(s.operands[1 - fold.own]);
    if (length_ < 4 || !(body_.TypeOf(body_.results()[i]) == own)) return false;
    if (Is<"mul">(*s.prim)) return true;
    if (!Is<"contract">(*s.prim) || s.attrs.entries().size() != 1 || own.rank() != 2 || type.rank() != 2) return false;
    const std::string& spec = s.attrs.Get<std::string>("spec");
    if (spec.size() != 9 || spec[1] != spec[3] || spec[0] != spec[7] || spec[4] != spec[8]) return false;
    // Squarings in place of trips.
    const double order = static_cast<double>(type.dims[0].value()),
                 rows = static_cast<double>(own.size().value()) / order;
    double products = 0;
    for (int64_t n = length_; n > 1; n /= 2) products += n % 2 == 0 ? 1 : 2;
    return products * order + rows < 0.7 * static_cast<double>(length_) * rows;
  }

  // All values of all trips that no carry goes into.
  bool MakeValues() {
    values_.resize(body_.num_vars());
    stacked_.assign(body_.num_vars(), false);
    std::vector<bool> carried(body_.num_vars(), false);
    for (size_t i = 0; i < body_.params().size(); ++i) {
      values_[i] = x_[i];
      stacked_[i] = i >= scan_.first_x();
      carried[i] = i >= scan_.consts && i < scan_.first_x();
    }
    const RegionRules none;
    for (const Eqn& e : body_.eqns()) {
      Atoms x;
      Mask mask;
      bool skip = false;
      for (const Atom& a : e.operands) {
        x.push_back(a.is_var() ? values_[a.id()] : a);
        mask.push_back(a.is_var() && stacked_[a.id()]);
        skip |= a.is_var() && carried[a.id()];
      }
      carried[e.first_result] = skip;
      if (skip) continue;
      const ScopedLoc loc(b_, e.loc);
      if (std::find(mask.begin(), mask.end(), true) == mask.end()) {
        values_[e.first_result] = b_.Clone(body_, e, x)[0];
        continue;
      }
      stacked_[e.first_result] = true;
      if (const std::optional<Atom> rows = Rows(e, x, mask)) {
        values_[e.first_result] = *rows;
        continue;
      }
      BatchContext c{b_, e, x, mask, scan_.length, "", none, {}, {}};
      e.prim->batch(c);
      values_[e.first_result] = c.batched_out[0] ? c.y[0] : Repeated(c.y[0]);
    }
    for (const Fold& f : folds_) {  // a factor must be the same in all trips
      const Atom& other = f.step->operands[1 - f.own];
      if (Reduction(*f.step->prim) == nullptr && !Is<"sub">(*f.step->prim) && other.is_var() && stacked_[other.id()])
        return false;
    }
    return true;
  }

  // x[i] for each trip's i.
  std::optional<Atom> Rows(const Eqn& e, const Atoms& x, const Mask& mask) {
    if (e.prim != &FindPrim("dynamic_slice") || mask[0]) return std::nullopt;
    const Type type = b_.TypeOf(x[0]);
    const Ints& sizes = e.attrs.Get<Ints>("sizes");
    int dim = -1;
    GatherDims g;
    for (int d = 0; d < type.rank(); ++d) {
      const auto i = static_cast<size_t>(d);
      if (mask[i + 1]) {
        if (dim >= 0 || sizes[i] != 1) return std::nullopt;
        dim = d;
      } else if (!(type.dims[i] == Dim(sizes[i])) && sizes[i] != -1) {
        return std::nullopt;
      }
      g.slice_sizes.push_back(mask[i + 1] ? 1 : type.dims[i].value());
      if (!mask[i + 1]) g.offset_dims.push_back(static_cast<int64_t>(g.offset_dims.size()) + 1);
    }
    if (dim < 0) return std::nullopt;
    Atom rows;
    const Atom& at = x[static_cast<size_t>(dim) + 1];
    if (type.dims[static_cast<size_t>(dim)] == scan_.length && IndexedDim(b_, at) == 0) {
      Ints perm = OtherDims(type.rank(), {dim});
      perm.insert(perm.begin(), dim);
      rows = Transpose(b_, x[0], perm);
    } else {
      g.collapsed_dims = g.start_index_map = {dim};
      g.mode = "clip";
      rows = b_.Emit1(FindPrim("gather"), {x[0], Reshape(b_, at, {scan_.length, Dim(1)})}, g.ToAttrs());
    }
    Dims shape = {scan_.length};
    for (int d = 0; d < type.rank(); ++d) shape.push_back(d == dim ? Dim(1) : type.dims[static_cast<size_t>(d)]);
    return Reshape(b_, rows, shape);
  }

  Atom Repeated(const Atom& a) {
    Dims dims = b_.TypeOf(a).dims;
    dims.insert(dims.begin(), scan_.length);
    return Broadcast(b_, a, dims, Range(1, static_cast<int64_t>(dims.size())));
  }

  Atom Power(const Eqn& step, const Atom& base, int64_t n) {
    if (n == 1) return base;
    const Atom less = Power(step, base, n % 2 == 0 ? n / 2 : n - 1);
    return b_.Emit1(*step.prim, {less, n % 2 == 0 ? less : base}, step.attrs);
  }

  Atom Carry(size_t i) {
    const Fold& f = folds_[i];
    const Eqn& step = *f.step;
    const ScopedLoc loc(b_, step.loc);
    const Atom &first = x_[CarryVar(i)], &other = step.operands[1 - f.own];
    const Atom value = other.is_var() ? values_[other.id()] : other;
    const bool stacked = other.is_var() && stacked_[other.id()];
    const DType dtype = b_.DTypeOf(first);
    if (const Prim* reduction = Is<"sub">(*step.prim) ? &FindPrim("reduce_sum") : Reduction(*step.prim)) {
      Atom all = value;
      if (stacked)
        all = b_.Emit1(*reduction, {value}, {{"dims", Ints{0}}});
      else if (reduction == &FindPrim("reduce_sum"))
        all = Mul(b_, value, Atom::Scalar(dtype, static_cast<double>(length_)));
      return b_.Emit1(*step.prim, {first, all}, step.attrs);
    }
    Atom base = value;
    if (Is<"mul">(*step.prim) && b_.TypeOf(base).rank() == 0 && b_.TypeOf(first).rank() > 0)
      base = Broadcast(b_, base, b_.TypeOf(first).dims, {});
    const Atom power = Power(step, base, length_);
    return b_.Emit1(*step.prim, {first, power}, step.attrs);
  }

  // What the trips stack up.
  Atom Stacked(const Atom& y) {
    if (!y.is_var()) return Repeated(y);
    for (size_t i = 0; i < folds_.size(); ++i) {
      const Eqn& step = *folds_[i].step;
      if (step.result().id != y.id()) continue;
      const Atom& other = step.operands[1 - folds_[i].own];
      Atom value = other.is_var() ? values_[other.id()] : other;
      if (!other.is_var() || !stacked_[other.id()]) value = Repeated(value);
      const Atom running = b_.Emit1(*Running(*step.prim), {value}, {{"dim", int64_t{0}}, {"reverse", scan_.reverse}});
      return b_.Emit1(*step.prim, {Repeated(x_[CarryVar(i)]), running}, step.attrs);
    }
    return stacked_[y.id()] ? values_[y.id()] : Repeated(values_[y.id()]);
  }

  Builder& b_;
  const Eqn& e_;
  const Atoms& x_;
  const Scan scan_;
  const Fn& body_;
  const int64_t length_;
  std::vector<Fold> folds_;
  Atoms values_;  // per variable of the body: the value outside, of all trips where it is stacked
  std::vector<bool> stacked_;
};

// A loop of one trip is its body, and one of none gives back what it got.
std::optional<Atoms> FewTrips(Builder& b, const Eqn& e, const Atoms& x) {
  const Scan s(*e.prim, e.attrs, e.regions[0]);
  if (s.taped || !s.length.is_static() || s.length.value() > 1) return std::nullopt;
  if (s.length.value() == 0) {
    Atoms results(x.begin() + static_cast<int64_t>(s.consts), x.begin() + static_cast<int64_t>(s.first_x()));
    for (size_t k = s.carries; k < s.results; ++k) {
      Type type = s.body->TypeOf(s.body->results()[k]);
      if (type.dtype == DType::kTape) return std::nullopt;
      type.dims.insert(type.dims.begin(), Dim(0));
      results.push_back(Zeros(b, type));
    }
    return results;
  }
  Atoms args = x;
  for (size_t i = s.first_x(); i < args.size(); ++i) args[i] = Reshape(b, args[i], s.body->params()[i].type.dims);
  Atoms results = b.Inline(*s.body, args);
  for (size_t k = s.carries; k < results.size(); ++k) {
    Dims dims = s.body->TypeOf(s.body->results()[k]).dims;
    dims.insert(dims.begin(), Dim(1));
    results[k] = Reshape(b, results[k], dims);
  }
  return results;
}

// Carries that every trip gives back as it got them become constants.
std::optional<Atoms> ConstantCarries(Builder& b, const Eqn& e, const Atoms& x) {
  const Scan s(*e.prim, e.attrs, e.regions[0]);
  const Fn& body = *s.body;
  std::vector<bool> constant(s.carries, false);
  for (size_t i = 0; i < s.carries; ++i) {
    const Atom& next = body.results()[i];
    constant[i] = next.is_var() && next.id() == s.consts + i;
  }
  const auto count = static_cast<size_t>(std::count(constant.begin(), constant.end(), true));
  if (count == 0) return std::nullopt;
  Builder r(body.name());
  Atoms operands(x.begin(), x.begin() + static_cast<int64_t>(s.consts)), args(body.params().size()), results;
  const auto take = [&](size_t param) {
    const Param& p = body.params()[param];
    args[param] = r.Parameter(p.type, p.name, p.kind);
  };
  for (size_t i = 0; i < s.consts; ++i) take(i);
  for (const bool moved : {true, false}) {
    for (size_t i = 0; i < s.carries; ++i) {
      if (constant[i] != moved) continue;
      take(s.consts + i);
      operands.push_back(x[s.consts + i]);
    }
  }
  for (size_t i = s.first_x(); i < body.params().size(); ++i) take(i);
  operands.insert(operands.end(), x.begin() + static_cast<int64_t>(s.first_x()), x.end());
  const Atoms made = r.Inline(body, args);
  for (size_t i = 0; i < made.size(); ++i) {
    if (i >= s.carries || !constant[i]) results.push_back(made[i]);
  }
  Attrs attrs = e.attrs;
  attrs.Set("num_consts", static_cast<int64_t>(s.consts + count));
  attrs.Set("num_carry", static_cast<int64_t>(s.carries - count));
  const Atoms y = results.empty() ? Atoms{} : b.Emit(*e.prim, operands, attrs, {std::move(r).Build(results)});
  Atoms out;
  size_t next = 0;
  for (size_t i = 0; i < body.results().size(); ++i)
    out.push_back(i < s.carries && constant[i] ? x[s.consts + i] : y[next++]);
  return out;
}

// The same of a loop with a condition: what it gives back as it got it is a constant of both regions.
std::optional<Atoms> ConstantCarriesOfWhile(Builder& b, const Eqn& e, const Atoms& x) {
  const While w(e.attrs, e.regions);
  std::vector<bool> constant(w.carries, false);
  for (size_t i = 0; i < w.carries; ++i) {
    const Atom& next = w.body->results()[i];
    constant[i] = next.is_var() && next.id() == i;
  }
  const auto count = static_cast<size_t>(std::count(constant.begin(), constant.end(), true));
  if (count == 0 || count == w.carries) return std::nullopt;
  // Other carries, what was constant before, and what is now.
  std::vector<size_t> order;
  for (size_t i = 0; i < w.carries; ++i) {
    if (!constant[i]) order.push_back(i);
  }
  for (size_t i = w.carries; i < w.operands; ++i) order.push_back(i);
  for (size_t i = 0; i < w.carries; ++i) {
    if (constant[i]) order.push_back(i);
  }
  std::vector<FnRef> regions;
  for (const FnRef& region : e.regions) {
    Builder r(region->name());
    Atoms args(w.operands), results;
    for (const size_t i : order) {
      const Param& p = region->params()[i];
      args[i] = r.Parameter(p.type, p.name, p.kind);
    }
    const Atoms made = r.Inline(*region, args);
    for (size_t i = 0; i < made.size(); ++i) {
      if (region != w.body || i >= w.carries || !constant[i]) results.push_back(made[i]);
    }
    regions.push_back(std::move(r).Build(results));
  }
  Atoms operands;
  for (const size_t i : order) operands.push_back(x[i]);
  const Atoms y = b.Emit(*e.prim, operands, WhileAttrs(e.attrs, w.carries - count, w.tape_dims), regions);
  Atoms out;
  size_t next = 0;
  for (size_t i = 0; i < w.results; ++i) out.push_back(i < w.carries && constant[i] ? x[i] : y[next++]);
  return out;
}

// --- Branches --------------------------------------------------------------------------------------------------------

// What a branch has to save, in operations.
constexpr double kWorthwhile = 4096;

double WorkOf(const Builder& b, const Eqn& e) {
  const Type& type = b.TypeOf(e.result());
  double work = type.is_static() ? static_cast<double>(type.size().value()) : 64;
  if (e.prim->family == Family::kContraction || e.prim->family == Family::kReduction) {
    // At most: every element of the larger operand meets as many of the other as the result has columns.
    for (const Atom& a : e.operands) {
      const Type& t = b.TypeOf(a);
      if (t.is_static()) work = std::max(work, static_cast<double>(t.size().value()));
    }
    return 2 * work;
  }
  return e.prim->is_elementwise() ? work * e.prim->work : e.prim->view ? 0 : 8 * work;
}

// What is computed before a branch and read in some branches only is computed there.
std::optional<Atoms> SinkIntoBranches(Builder& b, const Eqn& e, const Atoms& x) {
  constexpr size_t kMostEquations = 16;
  std::vector<size_t> sunk;                 // operands
  std::vector<std::vector<Eqn>> equations;  // what each of them is, in order
  for (size_t i = 1; i < x.size(); ++i) {
    if (!x[i].is_var()) continue;
    size_t readers = 0;
    for (const FnRef& region : e.regions) readers += region->UseCounts()[i - 1] > 0;
    if (readers == 0 || readers == e.regions.size()) continue;
    std::map<uint32_t, Eqn> found;  // by variable: in order
    double work = 0;
    // How often what is found reads a value, the last one first: when its turn comes, all its readers have been seen.
    std::map<uint32_t, int, std::greater<>> open = {{x[i].id(), 1}};
    while (!open.empty() && found.size() < kMostEquations) {
      const auto [id, reads] = *open.begin();
      open.erase(open.begin());
      const Atom a{Var{id}};
      const Eqn* made = b.Definition(a);
      if (made == nullptr || made->num_results != 1 || !made->regions.empty() || made->prim->has_effect ||
          made->prim->family == Family::kCollective || made->prim->family == Family::kEffect ||
          TimesRead(b, a) > reads || !b.TypeOf(a).varying.empty() || made->OutwardCalls() > 0)
        continue;
      found.emplace(id, *made);
      work += WorkOf(b, *made);
      for (const Atom& o : made->operands) {
        if (o.is_var()) ++open[o.id()];
      }
    }
    if (work < kWorthwhile || found.count(x[i].id()) == 0) continue;
    sunk.push_back(i);
    equations.emplace_back();
    for (auto& [var, eqn] : found) equations.back().push_back(std::move(eqn));
  }
  if (sunk.empty()) return std::nullopt;
  // What they read comes in as further operands.
  Atoms operands, added;
  for (size_t i = 0; i < x.size(); ++i) {
    if (std::find(sunk.begin(), sunk.end(), i) == sunk.end()) operands.push_back(x[i]);
  }
  for (const std::vector<Eqn>& list : equations) {
    for (const Eqn& eqn : list) {
      for (const Atom& a : eqn.operands) {
        const bool own = std::any_of(list.begin(), list.end(),
                                     [&](const Eqn& other) { return a.is_var() && other.first_result == a.id(); });
        if (a.is_var() && !own && std::find(added.begin(), added.end(), a) == added.end()) added.push_back(a);
      }
    }
  }
  std::vector<FnRef> regions;
  for (const FnRef& region : e.regions) {
    const std::vector<int> uses = region->UseCounts();
    Builder r(region->name());
    Atoms args(region->params().size());
    for (size_t i = 0; i < args.size(); ++i) {
      const Param& p = region->params()[i];
      if (std::find(sunk.begin(), sunk.end(), i + 1) == sunk.end()) args[i] = r.Parameter(p.type, p.name, p.kind);
    }
    std::map<uint32_t, Atom> inside;
    for (const Atom& a : added) inside.emplace(a.id(), r.Parameter(b.TypeOf(a)));
    for (size_t k = 0; k < sunk.size(); ++k) {
      const size_t param = sunk[k] - 1;
      if (uses[param] == 0) {  // nobody asks for it
        args[param] = Zeros(r, region->params()[param].type);
        continue;
      }
      for (const Eqn& eqn : equations[k]) {
        Atoms y;
        for (const Atom& a : eqn.operands) y.push_back(a.is_var() ? inside.at(a.id()) : a);
        const ScopedLoc loc(r, eqn.loc);
        inside[eqn.first_result] = r.Clone(eqn, y)[0];
      }
      args[param] = inside.at(x[sunk[k]].id());
    }
    const Atoms results = r.Inline(*region, args);
    regions.push_back(std::move(r).Build(results));
  }
  operands.insert(operands.end(), added.begin(), added.end());
  return b.Emit(*e.prim, operands, e.attrs, regions);
}

// A rule of loops, for those who watch rules.
template <class Rule>
std::optional<Atoms> Try(const char* name, Builder& b, const Eqn& e, const Atoms& x, const Rule& rule) {
  return RuleWatch::Try(name, b, e, x, [&]() -> std::optional<Atoms> { return rule(b, e, x); });
}

bool HasEffects(const Eqn& e) {
  return std::any_of(e.regions.begin(), e.regions.end(), [](const FnRef& region) { return region->HasEffects(); });
}
bool IsScan(const Eqn& e) { return Is<"scan">(*e.prim) && !HasEffects(e) && e.OutwardCalls() == 0; }

}  // namespace

std::optional<Atoms> WithoutTrips(Builder& b, const Eqn& e, const Atoms& x) {
  if (!IsScan(e)) return std::nullopt;
  const Scan s(*e.prim, e.attrs, e.regions[0]);
  if (!s.length.is_static() || s.length.value() < 1 || !e.FreeAxes().empty()) return std::nullopt;
  return Unrolled(b, e, x).Run();
}

FnRef SimplifyLoops(FnRef fn) {
  const auto has_regions = [](const Eqn& e) { return !e.regions.empty(); };
  if (std::none_of(fn->eqns().begin(), fn->eqns().end(), has_regions)) return fn;
  std::vector<std::vector<Read>> reads;  // of the functions that are open
  bool has_new_constants = false;        // which the other rules may make something of
  const auto rewrite = [&](Builder& b, const Eqn& e, const Atoms& x) -> std::optional<Atoms> {
    if (e.regions.empty()) return std::nullopt;
    if (e.prim->region_use == RegionUse::kBranches && e.OutwardCalls() == 0)
      return Try(kRuleNames[2], b, e, x, SinkIntoBranches);
    using Rule = std::optional<Atoms> (*)(Builder& b, const Eqn& e, const Atoms& x);
    static const auto& constant_carries =
        *new PrimTable<Rule>{{"scan", ConstantCarries}, {"while", ConstantCarriesOfWhile}};
    const Rule of_carries = constant_carries[*e.prim];
    if (of_carries == nullptr || HasEffects(e) || e.OutwardCalls() != 0) return std::nullopt;
    if (std::optional<Atoms> made = Try(kRuleNames[0], b, e, x, of_carries)) {
      has_new_constants = true;
      return made;
    }
    if (!IsScan(e)) return std::nullopt;
    if (std::optional<Atoms> made = Try(kFewTrips, b, e, x, FewTrips)) return made;
    // Sums over trips are taken in another order.
    const bool reorders = CurrentLicences().Allow(Licence::kProducts);
    if (std::optional<Atoms> made = reorders ? Try(kRuleNames[1], b, e, x, WithoutTrips) : std::nullopt) return made;
    const auto first = reads.back().begin() + e.first_result;
    const std::vector<Read> of_results(first, first + e.num_results);
    const auto peel = [&](Builder& b, const Eqn& e, const Atoms& x) { return PeelLastTrip(b, e, x, of_results); };
    if (std::optional<Atoms> made = Try(kRuleNames[3], b, e, x, peel)) return made;
    if (!reorders) return std::nullopt;
    RuleWatch* const watch = RuleWatch::Current();
    return MoveProducts(
        b, e, x, [&](const char* name) { return watch == nullptr || watch->Allows(name); },
        [&](const char* name) {
          if (watch != nullptr) watch->Applied(name, b, e, x, {}, b.num_vars());
        });
  };
  const auto enter = [&](const Fn& f, Builder&) {
    const bool has_scan =
        std::any_of(f.eqns().begin(), f.eqns().end(), [](const Eqn& e) { return Is<"scan">(*e.prim); });
    reads.push_back(has_scan ? ReadsOfStacks(f) : std::vector<Read>());
  };
  FnRef out = Rewrite(std::move(fn), rewrite, enter, [&] { reads.pop_back(); }, /*count_readers=*/true);
  return has_new_constants ? SimplifyLoops(std::move(out)) : out;
}

absl::Span<const char* const> LoopRuleNames() { return kRuleNames; }

}  // namespace weft
