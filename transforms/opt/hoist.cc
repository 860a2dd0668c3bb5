// Loop-invariant code: what the body or the condition of a loop computes from its constants alone is computed once,
// before the loop.
//
// Moved are equations whose result goes through memory anyway (products, gathers, factorisations ...), reductions, and
// element-wise functions that cost more to compute than to read; with them what they read. Cheap equations stay, where
// they fuse with what reads them.
//
// A constant that is the second factor of a product with its summed dimensions last is transposed before the loop, so
// that no trip packs it again: the weights in the backward pass of a recurrent network.
#include <algorithm>
#include <map>

#include "ir/analysis/size_conditions.h"
#include "ir/builder.h"
#include "ir/ops.h"
#include "ir/prim_table.h"
#include "ir/prims/control/scan.h"
#include "ir/prims/control/while.h"
#include "transforms/opt/pass.h"
#include "transforms/opt/rewrite.h"

namespace weft {
namespace {

// Where the constants of a loop lie among the parameters of its body, and the body's parameters among the operands.
struct Constants {
  size_t lead = 0, first = 0, count = 0;
};

Constants OfScan(const Eqn& e) {
  const Scan s(*e.prim, e.attrs, e.regions[0]);
  return {s.lead(), 0, s.consts};
}

Constants OfWhile(const Eqn& e) {
  const While w(e.attrs, e.regions);
  return {0, w.carries, w.operands - w.carries};
}

std::optional<Constants> ConstantsOf(const Eqn& e) {
  using Rule = Constants (*)(const Eqn& e);
  static const auto& rules = *new PrimTable<Rule>{{"scan", OfScan}, {"tape_scan", OfScan}, {"while", OfWhile}};
  const Rule rule = rules[*e.prim];
  return rule == nullptr ? std::nullopt : std::optional(rule(e));
}

// Nothing for a symbolic size.
std::optional<int64_t> Bytes(const Type& t) {
  const std::optional<int64_t> n = t.size().TryValue();
  return n ? std::optional(*n * ByteWidth(t.dtype)) : std::nullopt;
}

// What needs a size that only a call tells stays: a loop of no trips does not need it. That a size is below 2^31 is no
// such need: an array of more elements may be refused where the loop would not have run.
bool Movable(const Fn& fn, const Eqn& e) {
  const Family f = e.prim->family;
  if (!e.regions.empty() || e.prim->has_effect || e.CallsOutwards() || !e.FreeAxes().empty() || f == Family::kControl ||
      f == Family::kEffect || f == Family::kCollective) {
    return false;
  }
  const std::vector<SizeCondition> conditions = SizeConditions(fn, e);
  return std::all_of(conditions.begin(), conditions.end(), [](const SizeCondition& c) { return c.least < 0; });
}

// Floating-point operations per element that are cheaper than to read it: arithmetic, square roots.
constexpr double kReadingCosts = 4;
constexpr int64_t kMuch = int64_t{1} << 50;  // bytes

// Whether to read the results from memory at every trip is cheaper than to compute them, which reads `read` bytes.
bool Pays(const Fn& fn, const Eqn& e, int64_t read) {
  switch (e.prim->family) {
    case Family::kContraction:
    case Family::kCumulative:
    case Family::kSorting:
    case Family::kWindow:
    case Family::kLinalg:
    case Family::kReduction: return true;
    case Family::kIndexing: break;
    case Family::kElementwise:
      if (e.prim->work <= kReadingCosts) return false;
      break;
    default: return false;
  }
  const Type& result = fn.TypeOf(e.result());
  if (result.rank() == 0) return false;
  const std::optional<int64_t> written = Bytes(result);
  return written && *written <= read;
}

// What `transpose` does to the second factor so that its summed dimensions come first, and the product's spec then;
// nothing when they do already, or when that gains nothing.
struct Transposed {
  std::string spec;
  Ints perm;
};
std::optional<Transposed> SummedFirst(const Eqn& e) {
  // The one operation whose factors are read in either order.
  if (!Is<"contract">(*e.prim) || e.attrs.Find("leaf") != nullptr) return std::nullopt;
  const std::string& spec = e.attrs.Get<std::string>("spec");
  const size_t comma = spec.find(','), arrow = spec.find("->");
  const std::string lhs = spec.substr(0, comma), rhs = spec.substr(comma + 1, arrow - comma - 1),
                    out = spec.substr(arrow + 2);
  const auto in = [](const std::string& letters) {
    return [&letters](char c) { return letters.find(c) != std::string::npos; };
  };
  const auto kept = static_cast<size_t>(std::find_if_not(rhs.begin(), rhs.end(), in(out)) - rhs.begin());
  const bool summed_last =
      kept > 0 && kept < rhs.size() && std::none_of(rhs.begin() + static_cast<int64_t>(kept), rhs.end(), in(out));
  const bool batched = std::any_of(rhs.begin(), rhs.begin() + static_cast<int64_t>(kept), in(lhs));
  // A vector times a matrix reads either order as it lies.
  const bool rows = std::any_of(lhs.begin(), lhs.end(), in(out));
  if (!summed_last || batched || !rows) return std::nullopt;
  Transposed t{lhs + "," + rhs.substr(kept) + rhs.substr(0, kept) + "->" + out, {}};
  for (size_t i = 0; i < rhs.size(); ++i) t.perm.push_back(static_cast<int64_t>((kept + i) % rhs.size()));
  return t;
}

class Hoisting {
 public:
  // Out of the body, or of the condition, which has the same parameters.
  Hoisting(Builder& b, const Eqn& e, const Atoms& operands, const Constants& constants, size_t region)
      : b_(b),
        e_(e),
        operands_(operands),
        constants_(constants),
        body_(*e.regions[region]),
        outside_(body_.num_vars()) {}

  std::optional<Atoms> Run() {
    Find();
    if (!std::count(root_.begin(), root_.end(), true) && transposed_.empty()) return std::nullopt;
    MoveOut();
    return Loop();
  }

 private:
  // Marks what is constant, and of it what is worth moving.
  void Find() {
    constant_.assign(body_.num_vars(), false);
    std::fill_n(constant_.begin() + static_cast<int64_t>(constants_.first), constants_.count, true);
    // Per constant: the bytes of memory that computing it reads.
    std::vector<int64_t> read(body_.num_vars(), 0);
    for (size_t i = constants_.first; i < constants_.first + constants_.count; ++i) {
      read[i] = Bytes(body_.params()[i].type).value_or(0);
    }
    const auto is_constant = [&](const Atom& a) { return a.is_literal() || constant_[a.id()]; };
    for (size_t k = 0; k < body_.eqns().size(); ++k) {
      const Eqn& e = body_.eqns()[k];
      const bool constant = Movable(body_, e) && std::all_of(e.operands.begin(), e.operands.end(), is_constant);
      int64_t reads = 0;
      for (const Atom& a : e.operands) reads += constant && a.is_var() ? read[a.id()] : 0;
      reads = std::min(reads, kMuch);  // it may double with every equation
      root_.push_back(constant && Pays(body_, e, reads));
      for (uint32_t r = 0; r < e.num_results; ++r) {
        const uint32_t var = e.first_result + r;
        constant_[var] = constant;
        read[var] = root_[k] ? Bytes(body_.TypeOf(Var{var})).value_or(0) : reads;
      }
      // A view of a constant is read as it lies, whatever that is.
      if (constant || e.operands.size() < 2 || !e.operands[1].is_var() || !IsParam(e.operands[1].id()) ||
          !constant_[e.operands[1].id()]) {
        continue;
      }
      if (std::optional<Transposed> t = SummedFirst(e)) transposed_.emplace(k, *t);
    }
  }

  bool IsParam(uint32_t var) const { return var < body_.params().size(); }

  void MoveOut() {
    std::vector<bool> needed(body_.num_vars(), false);
    for (size_t k = body_.eqns().size(); k-- > 0;) {
      const Eqn& e = body_.eqns()[k];
      bool moved = root_[k];
      for (uint32_t r = 0; r < e.num_results; ++r) moved |= needed[e.first_result + r];
      if (!moved) continue;
      for (const Atom& a : e.operands) {
        if (a.is_var()) needed[a.id()] = true;
      }
      for (uint32_t r = 0; r < e.num_results; ++r) needed[e.first_result + r] = true;
    }
    for (size_t i = 0; i < constants_.count; ++i) {
      outside_[constants_.first + i] = operands_[constants_.lead + constants_.first + i];
    }
    for (const Eqn& e : body_.eqns()) {
      if (e.num_results == 0 || !needed[e.first_result]) continue;
      Atoms x;
      for (const Atom& a : e.operands) x.push_back(a.is_var() ? outside_[a.id()] : a);
      ScopedLoc loc(b_, e.loc);
      const Atoms y = b_.Clone(e, x);
      std::copy(y.begin(), y.end(), outside_.begin() + e.first_result);
    }
  }

  Atoms Loop() {
    // The parameters that the regions get beside those they have, and what they are outside.
    Atoms added;
    Types types;
    const auto add = [&](const Atom& a) {
      const auto at = std::find(added.begin(), added.end(), a);
      if (at != added.end()) return static_cast<size_t>(at - added.begin());
      added.push_back(a);
      types.push_back(b_.TypeOf(a));
      return added.size() - 1;
    };
    std::map<uint32_t, size_t> of_var;   // a variable of the body: the parameter instead of it
    std::map<size_t, size_t> of_factor;  // an equation: the parameter instead of its second operand
    for (size_t k = 0; k < body_.eqns().size(); ++k) {
      const Eqn& e = body_.eqns()[k];
      for (uint32_t r = 0; root_[k] && r < e.num_results; ++r) {
        of_var[e.first_result + r] = add(outside_[e.first_result + r]);
      }
      if (const auto t = transposed_.find(k); t != transposed_.end()) {
        ScopedLoc loc(b_, e.loc);
        const auto key = std::make_pair(e.operands[1].id(), t->second.perm);
        auto made = transposes_.find(key);
        if (made == transposes_.end()) {
          made = transposes_.emplace(key, Transpose(b_, outside_[e.operands[1].id()], t->second.perm)).first;
        }
        of_factor[k] = add(made->second);
      }
    }
    std::vector<FnRef> regions;
    for (const FnRef& region : e_.regions) {
      Builder r(region->name());
      Atoms args, more;
      const size_t end = constants_.first + constants_.count;
      const auto own = [&](size_t from, size_t to) {
        for (size_t i = from; i < to; ++i) {
          const Param& p = region->params()[i];
          args.push_back(r.Parameter(p.type, p.name, p.kind));
        }
      };
      own(0, end);
      for (const Type& t : types) more.push_back(r.Parameter(t));
      own(end, region->params().size());
      const Atoms results = region.get() == &body_ ? Body(r, args, more, of_var, of_factor) : r.Inline(*region, args);
      regions.push_back(std::move(r).Build(results));
    }
    Atoms x = operands_;
    x.insert(x.begin() + static_cast<int64_t>(constants_.lead + constants_.first + constants_.count), added.begin(),
             added.end());
    Attrs attrs = e_.attrs;
    if (attrs.Find("num_consts") != nullptr)
      attrs.Set("num_consts", static_cast<int64_t>(constants_.count + added.size()));
    return b_.Emit(*e_.prim, x, attrs, regions);
  }

  Atoms Body(Builder& r, const Atoms& args, const Atoms& more, const std::map<uint32_t, size_t>& of_var,
             const std::map<size_t, size_t>& of_factor) const {
    Atoms env = args;
    env.resize(body_.num_vars());
    for (const auto& [var, i] : of_var) env[var] = more[i];
    for (size_t k = 0; k < body_.eqns().size(); ++k) {
      if (root_[k]) continue;
      const Eqn& e = body_.eqns()[k];
      Atoms x;
      for (const Atom& a : e.operands) x.push_back(a.is_var() ? env[a.id()] : a);
      ScopedLoc loc(r, e.loc);
      Atoms y;
      if (const auto f = of_factor.find(k); f != of_factor.end()) {
        x[1] = more[f->second];
        Attrs attrs = e.attrs;
        attrs.Set("spec", transposed_.at(k).spec);
        y = r.Emit(*e.prim, x, attrs);
      } else {
        y = r.Clone(e, x);
      }
      std::copy(y.begin(), y.end(), env.begin() + e.first_result);
    }
    Atoms results;
    for (const Atom& a : body_.results()) results.push_back(a.is_var() ? env[a.id()] : a);
    return results;
  }

  Builder& b_;
  const Eqn& e_;
  const Atoms& operands_;
  const Constants constants_;
  const Fn& body_;
  std::vector<bool> constant_;               // per variable of the body
  std::vector<bool> root_;                   // per equation: its results are constants of the loop from now on
  std::map<size_t, Transposed> transposed_;  // per equation whose second factor is transposed
  Atoms outside_;                            // per variable of the body that is moved: what it is before the loop
  std::map<std::pair<uint32_t, Ints>, Atom> transposes_;
};

}  // namespace

FnRef HoistConstants(FnRef fn) {
  const auto has_regions = [](const Eqn& e) { return !e.regions.empty(); };
  if (std::none_of(fn->eqns().begin(), fn->eqns().end(), has_regions)) return fn;
  return Rewrite(std::move(fn), [](Builder& b, const Eqn& e, const Atoms& operands) -> std::optional<Atoms> {
    if (!ConstantsOf(e)) return std::nullopt;
    Eqn loop = e;
    Atoms x = operands;
    std::optional<Atoms> made;
    const size_t last = e.regions.size() - 1, first = e.prim->region_use == RegionUse::kUncounted ? 0 : last;
    for (size_t region = last + 1; region-- > first;) {
      const std::optional<Constants> constants = ConstantsOf(loop);
      if (!constants) return std::nullopt;
      const std::optional<Atoms> next = Hoisting(b, loop, x, *constants, region).Run();
      if (!next) continue;
      made = next;
      if (next->empty()) break;
      loop = *b.Definition((*next)[0]);
      x = loop.operands;
    }
    return made;
  });
}

}  // namespace weft
