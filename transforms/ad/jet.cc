#include "transforms/ad/jet.h"

#include <algorithm>
#include <map>
#include <memory>
#include <unordered_map>

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "absl/hash/hash.h"
#include "ir/builder.h"
#include "ir/ops.h"
#include "transforms/ad/jvp.h"
#include "transforms/region_memo.h"
#include "transforms/region_rules.h"

namespace weft {
namespace {

using Coefficient = std::optional<Atom>;                   // nullopt = zero
using Coefficients = absl::InlinedVector<Coefficient, 1>;  // one per result

// Values whose coefficients are found one by one, in order, when somebody asks for them. Asking late is what makes a
// series that is defined by itself (y' = y) work.
class Source {
 public:
  explicit Source(const Types& types) : types_(types.begin(), types.end()) {}
  virtual ~Source() = default;
  Source(const Source&) = delete;

  const Type& type(int result) const { return types_[result]; }
  size_t num_results() const { return types_.size(); }
  // Whether any coefficient but the first may differ from zero.
  bool active() const { return active_; }
  // Whether it depends on a series whose coefficients are being found: then no coefficient may be asked for early.
  bool online() const { return online_; }
  bool extending() const { return extending_; }

  Coefficient At(int result, int k) {
    if (k > 0 && !active_) return std::nullopt;
    Reach(k);
    return known_[k][result];
  }
  // Finds the coefficients up to k.
  void Reach(int k) {
    while (static_cast<int>(known_.size()) <= (active_ ? k : 0)) {
      WEFT_CHECK(!extending_) << "jet: a coefficient depends on itself";
      extending_ = true;
      Extend(static_cast<int>(known_.size()));
      extending_ = false;
    }
  }

 protected:
  // Appends coefficient k of every result, or several coefficients from k on.
  virtual void Extend(int k) = 0;

  absl::InlinedVector<Type, 1> types_;
  bool active_ = false, online_ = false, extending_ = false;
  absl::InlinedVector<Coefficients, 3> known_;  // [k][result]
};

// A result of a source, or a literal.
struct Term {
  Source* source = nullptr;
  int result = 0;
  Atom literal;

  bool is_literal() const { return source == nullptr; }
  bool active() const { return source != nullptr && source->active(); }
  Coefficient At(int k) const {
    if (source != nullptr) return source->At(result, k);
    return k == 0 ? Coefficient(literal) : std::nullopt;
  }
  Type type() const { return source != nullptr ? source->type(result) : literal.literal().type(); }
  friend bool operator==(const Term& a, const Term& b) {
    return a.source == b.source && (a.source != nullptr ? a.result == b.result : a.literal == b.literal);
  }
};
using Terms = absl::InlinedVector<Term, 2>;

class Equation;

// The sources of one function under construction.
class Sources {
 public:
  explicit Sources(Builder& b) : b(b) {}
  template <class S, class... Args>
  S* Make(Args&&... args) {
    auto source = std::make_unique<S>(std::forward<Args>(args)...);
    S* made = source.get();
    owned_.push_back(std::move(source));
    return made;
  }
  // Equal equations are one: the rule of sin finds the cos, whose rule finds the sin again.
  Equation* Find(const Eqn& e, const Terms& x, size_t* hash) const;
  void Remember(size_t hash, Equation* made) { seen_[hash].push_back(made); }
  Term DerivativeOf(const Term& x);
  // The derivative rule of an operation on such operands: a function of those that are no literals and of the tangents
  // of those in `active` to the tangents of the results in `active_out`. Made once for all equations alike.
  struct Rule {
    Eqn eqn;
    Types types;
    Mask active;
    FnRef fn;
    Mask active_out;
  };
  const Rule& RuleOf(const Eqn& e, const Terms& x, const Mask& active);

  Builder& b;

 private:
  std::map<std::pair<Source*, int>, Source*> derivatives_;
  std::vector<std::unique_ptr<Source>> owned_;
  absl::flat_hash_map<size_t, absl::InlinedVector<Equation*, 1>> seen_;  // by hash
  std::unordered_multimap<size_t, Rule> rules_;
};

// A parameter: its coefficients are given.
class Given : public Source {
 public:
  Given(const Type& type, const Atom& primal, const Atoms& coefficients) : Source({type}) {
    active_ = !coefficients.empty();
    known_.push_back({primal});
    for (const Atom& a : coefficients) known_.push_back({a});
  }

 protected:
  void Extend(int) override { known_.push_back({std::nullopt}); }
};

Coefficient Scaled(Builder& b, const Coefficient& x, double factor) {
  if (!x || factor == 1) return x;
  return Mul(b, *x, Atom::Scalar(b.DTypeOf(*x), factor));
}

// The derivative of a series along the curve: coefficient k is (k + 1) x_(k+1).
class Derivative : public Source {
 public:
  Derivative(Builder& b, const Term& x) : Source({x.type()}), b_(b), x_(x) {
    active_ = x.active();
    online_ = x.source != nullptr && (x.source->online() || x.source->extending());
  }

 protected:
  void Extend(int k) override { known_.push_back({Scaled(b_, x_.At(k + 1), k + 1)}); }

 private:
  Builder& b_;
  Term x_;
};

Term Sources::DerivativeOf(const Term& x) {
  Source*& made = derivatives_[{x.source, x.result}];
  if (made == nullptr) made = Make<Derivative>(b, x);
  return {made, 0, Atom()};
}

// The results of `fn` on `args`, which are asked for coefficients up to `order`. `origin`: where the equations come
// from, if not from the user's program; those of the program are worked off at once, others are put into `made`, in
// order.
Terms Instantiate(Sources& sources, const Fn& fn, const Terms& args, int order, const Loc* origin,
                  std::vector<Source*>* made);

class Equation : public Source {
 public:
  // `order`: the coefficients that will be asked for, as far as is known.
  Equation(Sources& sources, const Eqn& e, Loc loc, const Types& types, Terms x, int order)
      : Source(types), sources_(sources), eqn_(e), loc_(loc), x_(std::move(x)), order_(order) {
    bool any = eqn_.CallsOutwards(), has_tangents = false;
    for (const Term& t : x_) {
      any |= t.active();
      if (t.source != nullptr) online_ |= t.source->online() || t.source->extending();
    }
    for (const Type& t : types_) has_tangents |= HasTangents(t.dtype);
    active_ = any && has_tangents;
  }
  const Eqn& eqn() const { return eqn_; }
  const Terms& operands() const { return x_; }

 protected:
  void Extend(int k) override {
    ScopedLoc loc(sources_.b, k > 0 || (eqn_.prim->push && active_) ? loc_.Through("jet", eqn_.prim->name) : loc_);
    const Prim& prim = *eqn_.prim;
    if (prim.push && active_ && order_ > 0)
      Push(k, online_ ? k : std::max(k, order_));
    else if (k == 0)
      known_.push_back(First());
    else
      known_.push_back(Next(k));
  }

 private:
  // Whether exactly some of the linear operands vary, so that the operation is linear in what varies.
  bool LinearInActive() const {
    const Prim& prim = *eqn_.prim;
    if (!prim.is_linear() || (prim.jvp && prim.linear[0] == -1)) return false;
    for (size_t i = 0; i < x_.size(); ++i) {
      if (x_[i].active() && !prim.LinearIn(static_cast<int>(i))) return false;
    }
    return true;
  }

  Coefficients First() {
    Atoms x;
    for (const Term& t : x_) {
      const Coefficient c = t.At(0);
      x.push_back(c ? *c : Zeros(sources_.b, t.type()));
    }
    return Emitted(x);
  }

  Coefficients Emitted(const Atoms& x) { return Emitted(x, eqn_.attrs); }
  Coefficients Emitted(const Atoms& x, const Attrs& attrs) {
    const Atoms y = sources_.b.Emit(*eqn_.prim, x, attrs, eqn_.regions);
    return {y.begin(), y.end()};
  }

  Coefficients Next(int k) {
    const Prim& prim = *eqn_.prim;
    if (!prim.not_differentiable.empty()) return Refused(k);
    if (prim.taylor) {
      TaylorContext c{sources_.b, eqn_, k, [this](int operand, int j) { return x_[operand].At(j); },
                      [this](int j) { return At(0, j); }};
      return {prim.taylor(c)};
    }
    Coefficients y(num_results());
    if (LinearInActive()) {
      if (prim.multilinear)
        AddProducts(y, Atoms(x_.size()), 0, k);
      else
        y = EachOperand(k);
    } else {
      y = FromDerivative(k);
    }
    for (size_t r = 0; r < y.size(); ++r) {
      if (!HasTangents(types_[r].dtype)) y[r] = std::nullopt;
    }
    return y;
  }

  // Nothing is known of its derivative: fine where nothing that it depends on changes.
  Coefficients Refused(int k) {
    for (const Term& t : x_) {
      for (int j = 1; j <= k; ++j) {
        if (!t.At(j)) continue;
        throw UserError(ErrorKind::kDerivative, eqn_.loc, eqn_.prim->name,
                        " cannot be differentiated: ", eqn_.prim->not_differentiable);
      }
    }
    return Coefficients(num_results());
  }

  Coefficients EachOperand(int k) {
    const Prim& prim = *eqn_.prim;
    Atoms x;
    bool any = false;
    for (size_t i = 0; i < x_.size(); ++i) {
      const bool linear = prim.LinearIn(static_cast<int>(i));
      const Coefficient c = x_[i].At(linear ? k : 0);
      any |= linear && c.has_value();
      if (c)
        x.push_back(*c);
      else if (prim.is_elementwise())
        x.push_back(Atom::Scalar(x_[i].type().dtype, 0));
      else
        x.push_back(Zeros(sources_.b, x_[i].type()));
    }
    return any ? Emitted(x, prim.LinearPart(eqn_.attrs)) : Coefficients(num_results());
  }

  // Sum over all ways to share order k among the operands from `i` on that vary.
  void AddProducts(Coefficients& sum, Atoms x, size_t i, int k) {
    bool last = true;
    for (size_t j = i + 1; j < x_.size(); ++j) last &= !x_[j].active();
    if (i == x_.size()) {
      const Coefficients term = Emitted(x);
      for (size_t r = 0; r < sum.size(); ++r) sum[r] = AddTangents(sources_.b, sum[r], term[r]);
      return;
    }
    const int from = !x_[i].active() ? 0 : last ? k : 0, to = x_[i].active() ? k : 0;
    for (int j = from; j <= to; ++j) {
      const Coefficient c = x_[i].At(j);
      if (!c) continue;
      x[i] = *c;
      AddProducts(sum, x, i + 1, k - j);
    }
  }

  // The operation's own derivative, as an equation for y'.
  Coefficients FromDerivative(int k) {
    if (derivative_.empty()) derivative_ = MakeDerivative();
    // In order, so that the depth of calls here does not grow with the length of a rule.
    for (Source* s : derivative_sources_) s->Reach(k - 1);
    Coefficients y(num_results());
    for (size_t r = 0; r < y.size(); ++r) {
      if (derivative_[r]) y[r] = Scaled(sources_.b, derivative_[r]->At(k - 1), 1.0 / k);
    }
    return y;
  }

  absl::InlinedVector<std::optional<Term>, 1> MakeDerivative() {
    Terms args, tangents;
    Mask active;
    for (const Term& t : x_) {
      if (t.is_literal()) continue;
      args.push_back(t);
      active.push_back(t.active() && HasTangents(t.type().dtype));
      if (active.back()) tangents.push_back(sources_.DerivativeOf(t));
    }
    args.insert(args.end(), tangents.begin(), tangents.end());
    const Sources::Rule& rule = sources_.RuleOf(eqn_, x_, active);
    const Terms out = Instantiate(sources_, *rule.fn, args, order_ - 1, &loc_, &derivative_sources_);
    absl::InlinedVector<std::optional<Term>, 1> terms(num_results());
    size_t next = 0;
    for (size_t r = 0; r < terms.size(); ++r) {
      if (rule.active_out[r]) terms[r] = out[next++];
    }
    return terms;
  }

  // Coefficients k ... to, with the regions' own.
  void Push(int k, int to) {
    Builder& b = sources_.b;
    Atoms x;
    Series dx;
    bool any = eqn_.CallsOutwards();
    for (const Term& t : x_) {
      const Coefficient first = t.At(0);
      x.push_back(first ? *first : Zeros(b, t.type()));
      std::optional<Atoms> coefficients;
      for (int j = 1; j <= to && HasTangents(t.type().dtype); ++j) {
        const Coefficient c = t.At(j);
        if (!c) continue;
        if (!coefficients) coefficients = Atoms(to);
        (*coefficients)[j - 1] = *c;
        any = true;
      }
      for (int j = 1; coefficients && j <= to; ++j) {
        if (!t.At(j)) (*coefficients)[j - 1] = Zeros(b, t.type());
      }
      dx.push_back(coefficients);
    }
    if (!any || to == 0) {
      if (k == 0) known_.push_back(Emitted(x));
      while (static_cast<int>(known_.size()) <= to) known_.emplace_back(num_results());
      return;
    }
    PushContext c{
        b,
        eqn_,
        x,
        dx,
        static_cast<size_t>(to),
        [to](const FnRef& f, const Mask& active, const Mask& force) { return Regions().jet(f, active, to, force); },
        {},
        {}};
    eqn_.prim->push(c);
    WEFT_CHECK(c.y.size() == num_results() && c.dy.size() == num_results()) << "jet of " << eqn_.prim->name;
    if (k == 0) known_.emplace_back(c.y.begin(), c.y.end());
    for (int j = std::max(k, 1); j <= to; ++j) {
      Coefficients y(num_results());
      for (size_t r = 0; r < y.size(); ++r) {
        if (c.dy[r] && HasTangents(types_[r].dtype)) y[r] = (*c.dy[r])[j - 1];
      }
      known_.push_back(y);
    }
  }

  Sources& sources_;
  const Eqn& eqn_;  // of the function transformed, or of a rule, which the sources keep
  Loc loc_;
  Terms x_;
  int order_;
  absl::InlinedVector<std::optional<Term>, 1> derivative_;  // of each result, once it was needed
  std::vector<Source*> derivative_sources_;                 // what it is made of, in order
};

size_t HashOf(const Eqn& e, const Terms& x) {
  size_t h = absl::HashOf(e.prim, e.attrs, x.size());
  for (const Term& t : x)
    h = t.is_literal() ? absl::HashOf(h, t.literal.literal().Hash()) : absl::HashOf(h, t.source, t.result);
  return h;
}

const Sources::Rule& Sources::RuleOf(const Eqn& e, const Terms& x, const Mask& active) {
  Rule rule{e, {}, active, nullptr, {}};
  rule.eqn.operands.assign(x.size(), Atom());  // literals; others are told apart by their types
  size_t h = absl::HashOf(e.prim, e.attrs, e.regions.size(), active);
  for (size_t i = 0; i < x.size(); ++i) {
    if (x[i].is_literal()) {
      rule.eqn.operands[i] = x[i].literal;
      h = absl::HashOf(h, x[i].literal.literal().Hash());
    } else {
      rule.types.push_back(x[i].type());
      h = absl::HashOf(h, rule.types.back());
    }
  }
  const auto [begin, end] = rules_.equal_range(h);
  for (auto it = begin; it != end; ++it) {
    const Rule& r = it->second;
    if (r.eqn.prim == e.prim && r.eqn.operands == rule.eqn.operands && r.types == rule.types && r.active == active &&
        r.eqn.attrs == e.attrs && r.eqn.regions == e.regions)
      return r;
  }
  Builder one(e.prim->name);
  one.set_loc(e.loc);
  Atoms operands;
  for (const Term& t : x) operands.push_back(t.is_literal() ? t.literal : one.Parameter(t.type()));
  const Atoms values = one.Emit(*e.prim, operands, e.attrs, e.regions);
  const JvpFn d = Jvp(one.Build(values), active);
  Builder tangents_only(e.prim->name);  // what makes the values alone is dropped
  Atoms params;
  for (const Param& p : d.fn->params()) params.push_back(tangents_only.Parameter(p.type));
  const Atoms all = tangents_only.Inline(*d.fn, params);
  rule.fn = tangents_only.Build(Atoms(all.begin() + static_cast<int64_t>(values.size()), all.end()));
  rule.active_out = d.active_out;
  return rules_.emplace(h, std::move(rule))->second;
}

Equation* Sources::Find(const Eqn& e, const Terms& x, size_t* hash) const {
  *hash = HashOf(e, x);
  const auto it = seen_.find(*hash);
  if (it == seen_.end()) return nullptr;
  for (Equation* other : it->second) {
    if (other->eqn().prim == e.prim && other->eqn().attrs == e.attrs && other->eqn().regions == e.regions &&
        other->operands() == x)
      return other;
  }
  return nullptr;
}

Terms Instantiate(Sources& sources, const Fn& fn, const Terms& args, int order, const Loc* origin,
                  std::vector<Source*>* made) {
  Terms env = args;
  env.resize(fn.num_vars());
  auto term_of = [&](const Atom& a) { return a.is_var() ? env[a.id()] : Term{nullptr, 0, a}; };
  for (const Eqn& e : fn.eqns()) {
    Terms x;
    for (const Atom& a : e.operands) x.push_back(term_of(a));
    Types types;
    for (uint32_t r = 0; r < e.num_results; ++r) types.push_back(fn.TypeOf(Atom(e.result(static_cast<int>(r)))));
    const bool effect = e.prim->has_effect ||
                        std::any_of(e.regions.begin(), e.regions.end(), [](const FnRef& f) { return f->HasEffects(); });
    const bool shared = !e.prim->push && !effect;
    size_t hash = 0;
    Equation* equation = shared ? sources.Find(e, x, &hash) : nullptr;
    if (equation == nullptr) {
      equation = sources.Make<Equation>(sources, e, origin != nullptr ? *origin : e.loc, types, x, order);
      if (shared) sources.Remember(hash, equation);
    }
    if (origin == nullptr)
      equation->Reach(order);
    else
      made->push_back(equation);
    for (uint32_t r = 0; r < e.num_results; ++r) env[e.first_result + r] = Term{equation, static_cast<int>(r), Atom()};
  }
  Terms results;
  for (const Atom& a : fn.results()) results.push_back(term_of(a));
  return results;
}

}  // namespace

JvpFn Jet(const FnRef& fn, const Mask& active, int order, const Mask& force_active) {
  const RegionMemo::Scope scope;
  WEFT_CHECK(active.size() == fn->params().size())
      << "jet: " << active.size() << " flags for " << fn->params().size() << " parameters";
  if (order < 0) throw ValueError("jet: order ", order, "; expected 0 or more");
  Builder b(fn->name());
  Sources sources(b);
  Atoms primals;
  for (const Param& p : fn->params()) primals.push_back(b.Parameter(p.type, p.name, p.kind));
  Terms args;
  for (size_t i = 0; i < active.size(); ++i) {
    const Param& p = fn->params()[i];
    if (active[i] && !HasTangents(p.type.dtype)) {
      throw TypeError("jet: parameter ", i, " is ", p.type,
                      "; only inexact dtypes (and tapes) have Taylor coefficients");
    }
    Atoms coefficients;
    for (int k = 1; active[i] && k <= order; ++k)
      coefficients.push_back(b.Parameter(p.type, p.name.empty() ? "" : p.name + std::to_string(k)));
    args.push_back({sources.Make<Given>(p.type, primals[i], coefficients), 0, Atom()});
  }
  const Terms terms = Instantiate(sources, *fn, args, order, nullptr, nullptr);
  Atoms results, series;
  Mask active_out;
  for (const Term& t : terms) results.push_back(*t.At(0));
  for (size_t i = 0; i < terms.size(); ++i) {
    const Type type = fn->TypeOf(fn->results()[i]);
    Coefficients y;
    bool any = !force_active.empty() && force_active[i] && HasTangents(type.dtype);
    for (int k = 1; k <= order; ++k) {
      y.push_back(terms[i].At(k));
      any |= y.back().has_value();
    }
    active_out.push_back(any);
    for (const Coefficient& c : y) {
      if (any) series.push_back(c ? MatchVarying(b, *c, type) : Zeros(b, type));
    }
  }
  results.insert(results.end(), series.begin(), series.end());
  return {std::move(b).Build(results), active_out};
}

}  // namespace weft
