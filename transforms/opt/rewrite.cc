#include "transforms/opt/rewrite.h"

#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "ir/ops.h"

namespace weft {

namespace {

// How often the values of a builder are read in the function that it is made of.
class Readers {
 public:
  Readers(const Builder& b, const Fn& fn) : b_(b), before_(current_), uses_(fn.UseCounts()) {
    counts_.reserve(fn.num_vars());
    current_ = this;
  }
  ~Readers() { current_ = before_; }
  Readers(const Readers&) = delete;

  // `made` stands for the old variable.
  void Note(uint32_t old, const Atom& made) {
    if (!made.is_var()) return;
    if (counts_.size() <= made.id()) counts_.resize(made.id() + 1, 0);
    counts_[made.id()] += uses_[old];
  }
  static int Count(const Builder& b, uint32_t var) {
    const Readers* r = current_;
    return r == nullptr || &r->b_ != &b || r->counts_.size() <= var ? 0 : r->counts_[var];
  }

 private:
  const Builder& b_;
  Readers* before_;
  std::vector<int> uses_, counts_;
  static inline thread_local Readers* current_ = nullptr;
};

class Rewriter {
 public:
  Rewriter(const RewriteEqn& rewrite, const std::function<void(const Fn&, Builder&)>& enter,
           const std::function<void()>& leave, bool count_readers)
      : rewrite_(rewrite), enter_(enter), leave_(leave), count_readers_(count_readers) {}

  FnRef Rewritten(FnRef fn);

 private:
  // A region that others hold too may come again.
  FnRef Region(FnRef region) {
    if (region.use_count() == 1) return Rewritten(std::move(region));
    if (const auto at = shared_.find(region); at != shared_.end()) return at->second;
    FnRef made = Rewritten(region);
    shared_.emplace(std::move(region), made);
    return made;
  }

  const RewriteEqn& rewrite_;
  const std::function<void(const Fn&, Builder&)>& enter_;
  const std::function<void()>& leave_;
  const bool count_readers_;
  absl::flat_hash_map<FnRef, FnRef, FnHash, FnEqual> shared_;
};

FnRef Rewriter::Rewritten(FnRef fn) {
  Builder b(fn->name());
  b.ReserveLike(*fn);
  LongList<Atom> env;
  env.reserve(fn->num_vars());
  for (const Param& p : fn->params()) env.push_back(b.Parameter(p.type, p.name, p.kind));
  env.resize(fn->num_vars());
  std::optional<Readers> readers;
  if (count_readers_) {
    readers.emplace(b, *fn);
    for (uint32_t i = 0; i < fn->params().size(); ++i) readers->Note(i, env[i]);
  }
  if (enter_) enter_(*fn, b);
  for (size_t i = 0; i < fn->eqns().size(); ++i) {
    Eqn copy;
    Eqn& e = Builder::TakeEqn(fn, i, copy);
    const uint32_t first = e.first_result, num_results = e.num_results;
    const bool same_types = b.Translate(*fn, e, [&](Var v) -> const Atom& { return env[v.id]; });
    ScopedLoc loc(b, e.loc);
    for (FnRef& region : e.regions) region = Region(std::move(region));
    std::optional<Atoms> replaced = rewrite_(b, e, e.operands);
    const Atoms results = replaced ? std::move(*replaced) : b.Adopt(*fn, std::move(e), same_types);
    WEFT_CHECK(results.size() == num_results) << "rewrite of equation " << i << " of " << fn->name();
    for (uint32_t r = 0; r < num_results; ++r) {
      // What stands for a value that varies over mesh axes varies over them, as far as its readers know.
      const Type& type = fn->TypeOf(Var{first + r});
      env[first + r] = type.varying.empty() ? results[r] : MatchVarying(b, results[r], type);
      if (readers) readers->Note(first + r, env[first + r]);
    }
  }
  Atoms results;
  for (const Atom& a : fn->results()) results.push_back(a.is_var() ? env[a.id()] : a);
  FnRef out = std::move(b).Build(results);
  if (leave_) leave_();
  return out;
}

}  // namespace

FnRef Rewrite(FnRef fn, const RewriteEqn& rewrite, const std::function<void(const Fn&, Builder&)>& enter,
              const std::function<void()>& leave, bool count_readers) {
  return Rewriter(rewrite, enter, leave, count_readers).Rewritten(std::move(fn));
}

FnRef RewriteBodies(FnRef fn, const std::function<FnRef(FnRef)>& body) {
  const bool regions =
      std::any_of(fn->eqns().begin(), fn->eqns().end(), [](const Eqn& e) { return !e.regions.empty(); });
  if (!regions) return body(std::move(fn));
  absl::flat_hash_map<FnRef, FnRef> made;  // holds the keys, so that no other function gets their addresses
  fn = Rewrite(std::move(fn), [&](Builder& b, const Eqn& e, const Atoms& x) -> std::optional<Atoms> {
    if (e.regions.empty()) return std::nullopt;
    Eqn changed = e;
    for (FnRef& region : changed.regions) {
      FnRef& known = made[region];
      if (known == nullptr) known = body(region);
      region = known;
    }
    return changed.regions == e.regions ? std::nullopt : std::optional<Atoms>(b.Clone(changed, x));
  });
  return body(std::move(fn));
}

int TimesRead(const Builder& b, const Atom& a) { return a.is_literal() ? 0 : Readers::Count(b, a.id()); }

}  // namespace weft
