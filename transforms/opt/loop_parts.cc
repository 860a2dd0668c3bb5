// What trips of a scan need not compute themselves.
//
// Trips that add products to a carry, as the derivative of a recurrent network does for its weights, keep the factors
// instead, and one product after the loop sums over trips too: the carry does not go through memory in every trip. A
// vector of a slice times a matrix is computed for all slices at once before the loop. Products of one value with
// several constant matrices are one product with the matrices side by side, which are put there once.
//
// When: the limits are measured. Products of few rows are calls that take as long as their arithmetic; of more rows,
// each call uses all that a core can do, and to put results where others read them costs more than a call saves.
#include "transforms/opt/loop_parts.h"

#include <algorithm>
#include <map>
#include <string>

#include "ir/analysis/cost.h"
#include "ir/ops.h"
#include "ir/prim_table.h"
#include "ir/prims/contraction.h"
#include "ir/prims/control/scan.h"
#include "transforms/opt/loops.h"

namespace weft {
namespace {

constexpr int64_t kMostRowsBefore = 2;  // of a product that is computed before the loop
constexpr int64_t kMostRowsTogether = 4;
constexpr int64_t kLeastTrips = 8;
constexpr int64_t kElementsPerCall = 600;  // that are copied in the time that a call takes besides its arithmetic

int64_t Elements(const Type& t) { return t.size().value(); }

bool Fits(const Type& type, int64_t length) {
  int64_t bytes = 0;
  return !__builtin_mul_overflow(type.Bytes(), length, &bytes) && bytes <= kMostAtOnce;
}

bool IsPlain(const Type& t) { return t.is_static() && t.varying.empty() && !IsOpaque(t.dtype); }

class LoopProducts {
 public:
  LoopProducts(Builder& b, const Eqn& e, const Atoms& x)
      : b_(b),
        e_(e),
        x_(x),
        scan_(*e.prim, e.attrs, e.regions[0]),
        body_(*scan_.body),
        length_(scan_.length.value()),
        uses_(body_.UseCounts()),
        made_by_(body_.num_vars(), -1),
        skip_(body_.eqns().size(), false) {
    for (size_t k = 0; k < body_.eqns().size(); ++k) {
      const Eqn& eqn = body_.eqns()[k];
      for (uint32_t r = 0; r < eqn.num_results; ++r) made_by_[eqn.first_result + r] = static_cast<int>(k);
    }
    for (size_t i = scan_.carries; i < body_.results().size(); ++i) {
      const Atom& y = body_.results()[i];
      if (y.is_var()) stacks_.emplace(y.id(), i - scan_.carries);
    }
    ys_ = body_.results().size() - scan_.carries;
  }

  std::optional<Atoms> Run(const std::function<bool(const char*)>& allows,
                           const std::function<void(const char*)>& applied) {
    if (length_ < 2) return std::nullopt;
    if (allows(kSumAfterLoop)) FindSums();
    if (length_ >= kLeastTrips && allows(kProductBeforeLoop)) FindProductsOfSlices();
    if (length_ >= kLeastTrips && allows(kProductsOfOneOperand)) FindGroups();
    if (sums_.empty() && before_.empty() && groups_.empty()) return std::nullopt;
    if (!sums_.empty()) applied(kSumAfterLoop);
    if (!before_.empty()) applied(kProductBeforeLoop);
    if (!groups_.empty()) applied(kProductsOfOneOperand);
    return Emit();
  }

 private:
  struct Sum {
    size_t carry;
    const Eqn* addend;  // a product or a sum over dimensions of what is stacked
  };
  struct Group {
    std::vector<size_t> products;
    size_t factor;  // which operand differs
    int64_t dim;    // of the factors, along which they lie side by side
  };

  bool IsConstant(const Atom& a) const { return a.is_var() && a.id() < scan_.consts; }
  bool IsSlice(const Atom& a) const {
    return a.is_var() && a.id() >= scan_.first_x() && a.id() < body_.params().size();
  }
  bool IsFactor(const Atom& a) const { return a.is_var() && IsPlain(body_.TypeOf(a)); }
  static bool IsPlainProduct(const Eqn& e) { return Is<"contract">(*e.prim) && e.attrs.entries().size() == 1; }
  static ContractSpec SpecOf(const Eqn& e) { return ContractSpec::Parse(e.attrs.Get<std::string>("spec")); }

  // Whether a product sums over the first dimensions of both factors, in one order. A sum over trips too is read as it
  // lies then.
  static bool SumsLeadingDims(const Eqn& e) {
    const ContractSpec spec = SpecOf(e);
    std::string summed;
    for (const char c : spec.lhs) {
      if (spec.out.find(c) == std::string::npos)
        summed += c;
      else if (spec.rhs.find(c) != std::string::npos)
        return false;  // a stack of products
    }
    return spec.lhs.substr(0, summed.size()) == summed && spec.rhs.substr(0, summed.size()) == summed;
  }

  void FindSums() {
    // Products first: what they stack, sums over dimensions may read.
    for (const bool products : {true, false}) {
      for (size_t i = 0; i < scan_.carries; ++i) {
        const Atom carry = Var{static_cast<uint32_t>(scan_.consts + i)};
        const Atom& next = body_.results()[i];
        if (!next.is_var() || made_by_[next.id()] < 0 || uses_[next.id()] != 1 || uses_[carry.id()] != 1) continue;
        const auto at = static_cast<size_t>(made_by_[next.id()]);
        const Eqn& step = body_.eqns()[at];
        if (!Is<"add">(*step.prim) || !(step.operands[0] == carry || step.operands[1] == carry)) continue;
        const Atom& other = step.operands[step.operands[0] == carry ? 1 : 0];
        if (!other.is_var() || made_by_[other.id()] < 0 || uses_[other.id()] != 1) continue;
        const auto from = static_cast<size_t>(made_by_[other.id()]);
        const Eqn& addend = body_.eqns()[from];
        const bool sums = Is<"reduce_sum">(*addend.prim) && addend.attrs.entries().size() == 1;
        if (!(products ? IsPlainProduct(addend) && SumsLeadingDims(addend) : sums)) continue;
        const Type& type = body_.TypeOf(carry);
        if (!IsPlain(type) || !(body_.TypeOf(other) == type) || !(body_.TypeOf(next) == type)) continue;
        if (type.dtype == DType::kF16 || IsFloat8(type.dtype)) continue;  // may overflow on the way
        // What has to be kept of every trip, against the carry that is read and written.
        std::vector<uint32_t> kept;
        int64_t elements = 0;
        bool fits = true;
        for (const Atom& a : addend.operands) {
          fits = fits && IsFactor(a) && !IsConstant(a) && body_.TypeOf(a).dtype == type.dtype &&
                 Fits(body_.TypeOf(a), length_);
          if (!fits || IsSlice(a) || stacks_.count(a.id()) != 0) continue;
          if (std::find(kept.begin(), kept.end(), a.id()) != kept.end()) continue;
          kept.push_back(a.id());
          elements += Elements(body_.TypeOf(a));
        }
        if (!fits || elements > 2 * Elements(type)) continue;
        for (const uint32_t var : kept) {
          stacks_.emplace(var, ys_++);
          added_ys_.push_back(Var{var});
        }
        sums_.push_back({i, &addend});
        skip_[at] = skip_[from] = true;
      }
    }
  }

  // How many rows of operand `i` a product multiplies with the other one.
  int64_t Rows(const Eqn& e, size_t i) const {
    const ContractSpec spec = SpecOf(e);
    const std::string& own = i == 0 ? spec.lhs : spec.rhs;
    int64_t rows = 1;
    for (size_t d = 0; d < own.size(); ++d) {
      if (spec.out.find(own[d]) != std::string::npos) rows *= body_.TypeOf(e.operands[i]).dims[d].value();
    }
    return rows;
  }

  void FindProductsOfSlices() {
    for (size_t k = 0; k < body_.eqns().size(); ++k) {
      const Eqn& e = body_.eqns()[k];
      if (skip_[k] || !IsPlainProduct(e)) continue;
      for (const size_t i : {size_t{0}, size_t{1}}) {
        const Atom &slice = e.operands[i], &factor = e.operands[1 - i];
        if (!IsSlice(slice) || !IsConstant(factor) || !IsFactor(slice) || !IsFactor(factor)) continue;
        if (Rows(e, i) > kMostRowsBefore || body_.TypeOf(factor).rank() < 2) continue;
        if (!IsPlain(body_.TypeOf(e.result())) || !Fits(body_.TypeOf(e.result()), length_)) continue;
        before_.emplace_back(k, i);
        skip_[k] = true;
        break;
      }
    }
  }

  void FindGroups() {
    std::map<std::pair<uint32_t, std::string>, Group> groups;  // by the common operand, and what is multiplied how
    for (size_t k = 0; k < body_.eqns().size(); ++k) {
      const Eqn& e = body_.eqns()[k];
      if (skip_[k] || !IsPlainProduct(e)) continue;
      const ContractSpec spec = SpecOf(e);
      for (const size_t i : {size_t{0}, size_t{1}}) {
        const Atom &common = e.operands[1 - i], &factor = e.operands[i];
        if (!IsConstant(factor) || IsConstant(common) || !IsFactor(common) || !IsFactor(factor)) continue;
        if (body_.TypeOf(factor).rank() != 2 || !IsPlain(body_.TypeOf(e.result()))) continue;
        const std::string& own = i == 0 ? spec.lhs : spec.rhs;
        const size_t dim = spec.out.empty() ? std::string::npos : own.find(spec.out.back());
        const std::string& its = i == 0 ? spec.rhs : spec.lhs;
        if (dim == std::string::npos || its.find(own[dim]) != std::string::npos ||
            spec.out.find(own[1 - dim]) != std::string::npos)
          continue;
        // One row is no call (transforms/opt/vector_products.h).
        if (const int64_t rows = Rows(e, 1 - i); rows < 2 || rows > kMostRowsTogether) continue;
        const std::string key = std::to_string(i) + spec.ToString() + ToString({body_.TypeOf(common)});
        Group& group =
            groups.emplace(std::pair(common.id(), key), Group{{}, i, static_cast<int64_t>(dim)}).first->second;
        const auto same = [&](size_t other) { return body_.eqns()[other].operands[i] == factor; };
        if (std::none_of(group.products.begin(), group.products.end(), same)) group.products.push_back(k);
        break;
      }
    }
    for (auto& [key, group] : groups) {
      int64_t copied = 0;
      for (const size_t k : group.products) copied += Elements(body_.TypeOf(body_.eqns()[k].operands[group.factor]));
      const int64_t saved = length_ * static_cast<int64_t>(group.products.size() - 1);  // calls
      if (copied / kElementsPerCall < saved) groups_.push_back(std::move(group));
    }
  }

  // A product of all trips at once.
  Atom Emitted(const Eqn& e, const Atoms& operands, const Mask& stacked, bool kept) {
    ContractSpec spec = SpecOf(e);
    const char letter = spec.FreshLetter();
    for (const size_t i : {size_t{0}, size_t{1}}) {
      std::string& own = i == 0 ? spec.lhs : spec.rhs;
      if (stacked[i]) own.insert(0, 1, letter);
    }
    if (kept) spec.out.insert(0, 1, letter);
    return b_.Emit1(*e.prim, operands, e.attrs.With("spec", spec.ToString()));
  }

  Atom Operand(const Atom& a) const { return a.is_var() ? x_[a.id()] : a; }

  Atoms Emit() {
    Atoms consts, carries, slices;
    for (size_t i = 0; i < scan_.consts; ++i) consts.push_back(x_[i]);
    std::vector<bool> dropped(scan_.carries, false);
    for (const Sum& s : sums_) dropped[s.carry] = true;
    for (size_t i = 0; i < scan_.carries; ++i) {
      if (!dropped[i]) carries.push_back(x_[scan_.consts + i]);
    }
    for (size_t i = scan_.first_x(); i < x_.size(); ++i) slices.push_back(x_[i]);
    for (const Group& g : groups_) {
      Atoms factors;
      for (const size_t k : g.products) factors.push_back(Operand(body_.eqns()[k].operands[g.factor]));
      const ScopedLoc loc(b_, body_.eqns()[g.products[0]].loc);
      consts.push_back(Concatenate(b_, factors, g.dim));
    }
    for (const auto& [k, i] : before_) {
      const Eqn& e = body_.eqns()[k];
      const ScopedLoc loc(b_, e.loc);
      slices.push_back(Emitted(e, {Operand(e.operands[0]), Operand(e.operands[1])}, {i == 0, i == 1}, true));
    }
    Atoms operands = consts;
    operands.insert(operands.end(), carries.begin(), carries.end());
    operands.insert(operands.end(), slices.begin(), slices.end());
    Attrs attrs = e_.attrs;
    attrs.Set("num_consts", static_cast<int64_t>(consts.size()));
    attrs.Set("num_carry", static_cast<int64_t>(carries.size()));
    const Atoms y = b_.Emit(*e_.prim, operands, attrs, {Body(consts, dropped)});
    // The results as they were.
    Atoms out(body_.results().size());
    size_t next = 0;
    for (size_t i = 0; i < out.size(); ++i) {
      if (i >= scan_.carries || !dropped[i]) out[i] = y[next++];
    }
    const auto stack = [&](const Atom& a) { return IsSlice(a) ? x_[a.id()] : y[carries.size() + stacks_.at(a.id())]; };
    for (const Sum& s : sums_) {
      const ScopedLoc loc(b_, s.addend->loc);
      Atom sum;
      if (IsPlainProduct(*s.addend)) {
        sum = Emitted(*s.addend, {stack(s.addend->operands[0]), stack(s.addend->operands[1])}, {true, true}, false);
      } else {
        Ints dims = {0};
        for (const int64_t d : s.addend->attrs.Get<Ints>("dims")) dims.push_back(d + 1);
        sum = ReduceSum(b_, stack(s.addend->operands[0]), dims);
      }
      out[s.carry] = Add(b_, x_[scan_.consts + s.carry], sum);
    }
    return out;
  }

  FnRef Body(const Atoms& consts, const std::vector<bool>& dropped) {
    Builder r(body_.name());
    Atoms env(body_.num_vars()), side_by_side;
    const auto take = [&](size_t i) {
      const Param& p = body_.params()[i];
      env[i] = r.Parameter(p.type, p.name, p.kind);
    };
    for (size_t i = 0; i < scan_.consts; ++i) take(i);
    for (size_t i = scan_.consts; i < consts.size(); ++i) side_by_side.push_back(r.Parameter(b_.TypeOf(consts[i])));
    for (size_t i = 0; i < scan_.carries; ++i) {
      if (!dropped[i]) take(scan_.consts + i);
    }
    for (size_t i = scan_.first_x(); i < body_.params().size(); ++i) take(i);
    for (const auto& [k, i] : before_) {
      const Atom result = body_.eqns()[k].result();
      env[result.id()] = r.Parameter(body_.TypeOf(result));
    }
    std::map<size_t, std::pair<size_t, size_t>> grouped;  // by equation: its group, its place there
    for (size_t g = 0; g < groups_.size(); ++g) {
      for (size_t i = 0; i < groups_[g].products.size(); ++i) grouped[groups_[g].products[i]] = {g, i};
    }
    Atoms made(groups_.size());
    std::vector<bool> is_made(groups_.size(), false);
    for (size_t k = 0; k < body_.eqns().size(); ++k) {
      if (skip_[k]) continue;
      const Eqn& e = body_.eqns()[k];
      const ScopedLoc loc(r, e.loc);
      Atoms x;
      for (const Atom& a : e.operands) x.push_back(a.is_var() ? env[a.id()] : a);
      if (const auto at = grouped.find(k); at != grouped.end()) {
        const auto [g, place] = at->second;
        if (!is_made[g]) {
          x[groups_[g].factor] = side_by_side[g];
          made[g] = r.Emit1(*e.prim, x, e.attrs);
          is_made[g] = true;
        }
        env[e.first_result] = Place(r, made[g], g, place);
        continue;
      }
      const Atoms y = r.Clone(body_, e, x);
      std::copy(y.begin(), y.end(), env.begin() + e.first_result);
    }
    Atoms results;
    const auto result = [&](const Atom& a) { results.push_back(a.is_var() ? env[a.id()] : a); };
    for (size_t i = 0; i < body_.results().size(); ++i) {
      if (i >= scan_.carries || !dropped[i]) result(body_.results()[i]);
    }
    for (const Atom& a : added_ys_) result(a);
    return std::move(r).Build(results);
  }

  // One product of a group, of all of them side by side.
  Atom Place(Builder& r, const Atom& all, size_t group, size_t place) const {
    int64_t start = 0;
    for (size_t i = 0; i < place; ++i)
      start += body_.TypeOf(body_.eqns()[groups_[group].products[i]].result()).dims.back().value();
    const Dims dims = body_.TypeOf(body_.eqns()[groups_[group].products[place]].result()).dims;
    Ints from(dims.size(), 0), to, strides(dims.size(), 1);
    for (const Dim& d : dims) to.push_back(d.value());
    from.back() = start;
    to.back() += start;
    return Slice(r, all, from, to, strides);
  }

  Builder& b_;
  const Eqn& e_;
  const Atoms& x_;
  const Scan scan_;
  const Fn& body_;
  const int64_t length_;
  const std::vector<int> uses_;
  std::vector<int> made_by_;  // per variable: its equation, -1 for parameters
  std::vector<bool> skip_;    // per equation: it is not in the loop any more
  std::vector<Sum> sums_;
  std::vector<std::pair<size_t, size_t>> before_;  // equation, which operand is a slice
  std::vector<Group> groups_;
  std::map<uint32_t, size_t> stacks_;  // by variable: which of the stacked results it is
  Atoms added_ys_;
  size_t ys_;
};

}  // namespace

std::optional<Atoms> MoveProducts(Builder& b, const Eqn& e, const Atoms& x,
                                  const std::function<bool(const char*)>& allows,
                                  const std::function<void(const char*)>& applied) {
  const Scan s(*e.prim, e.attrs, e.regions[0]);
  if (!s.length.is_static() || !e.FreeAxes().empty()) return std::nullopt;
  return LoopProducts(b, e, x).Run(allows, applied);
}

// --- The last trip ---------------------------------------------------------------------------------------------------

std::vector<Read> ReadsOfStacks(const Fn& fn) {
  std::vector<Read> reads(fn.num_vars(), Read::kNot);
  const auto note = [&](const Atom& a, Read how) {
    if (!a.is_var()) return;
    Read& read = reads[a.id()];
    read = read == Read::kNot || read == how ? how : Read::kOtherwise;
  };
  const auto of_slice = [&](const Eqn& e) {
    const Type& type = fn.TypeOf(e.operands[0]);
    if (type.rank() == 0 || !type.dims[0].is_static() || e.attrs.Get<Ints>("strides")[0] != 1) return Read::kOtherwise;
    const int64_t start = e.attrs.Get<Ints>("start")[0], size = type.dims[0].value();
    const int64_t limit = e.attrs.Get<Ints>("limit")[0] == -1 ? size : e.attrs.Get<Ints>("limit")[0];
    if (limit != start + 1) return Read::kOtherwise;
    return limit == size ? Read::kLast : start == 0 ? Read::kFirst : Read::kOtherwise;
  };
  for (const Eqn& e : fn.eqns()) {
    const Read how = Is<"slice">(*e.prim) ? of_slice(e) : Read::kOtherwise;
    for (const Atom& a : e.operands) note(a, how);
  }
  for (const Atom& a : fn.results()) note(a, Read::kOtherwise);
  return reads;
}

std::optional<Atoms> PeelLastTrip(Builder& b, const Eqn& e, const Atoms& x, const std::vector<Read>& reads) {
  constexpr size_t kMostEquations = 128;  // which there are twice then
  const Scan s(*e.prim, e.attrs, e.regions[0]);
  const Fn& body = *s.body;
  if (!s.length.is_static() || s.length.value() < 4 || !e.FreeAxes().empty() || body.eqns().size() > kMostEquations)
    return std::nullopt;
  const int64_t length = s.length.value();
  bool stacks = false;
  for (size_t i = s.carries; i < body.results().size(); ++i) {
    if (reads[i] == Read::kNot) continue;
    if (reads[i] != (s.reverse ? Read::kFirst : Read::kLast)) return std::nullopt;
    stacks = true;
  }
  if (!stacks) return std::nullopt;
  // What the other trips do not compute any more, against the slices, which are copied.
  std::vector<bool> needed(body.num_vars(), false);
  for (size_t i = 0; i < s.carries; ++i) {
    if (body.results()[i].is_var()) needed[body.results()[i].id()] = true;
  }
  double saved = 0, copied = 0;
  for (size_t k = body.eqns().size(); k-- > 0;) {
    const Eqn& eqn = body.eqns()[k];
    bool is_needed = false;
    for (uint32_t r = 0; r < eqn.num_results; ++r) is_needed |= needed[eqn.first_result + r];
    if (!is_needed) {
      saved += FlopsOf(body, eqn);
      continue;
    }
    for (const Atom& a : eqn.operands) {
      if (a.is_var()) needed[a.id()] = true;
    }
  }
  for (size_t i = 0; i < body.params().size(); ++i) {
    const Type& type = body.params()[i].type;
    if (!IsPlain(type)) return std::nullopt;
    if (i >= s.first_x()) copied += static_cast<double>(Elements(type));
  }
  if (saved < 1024 || saved < 8 * copied) return std::nullopt;
  // The other trips.
  Builder r(body.name());
  Atoms args;
  for (const Param& p : body.params()) args.push_back(r.Parameter(p.type, p.name, p.kind));
  Atoms carried = r.Inline(body, args);
  carried.resize(s.carries);
  const auto part = [&](const Atom& a, int64_t start, int64_t count) {
    const Dims dims = b.TypeOf(a).dims;
    Ints from(dims.size(), 0), to, strides(dims.size(), 1);
    for (const Dim& d : dims) to.push_back(d.value());
    from[0] = start;
    to[0] = start + count;
    return Slice(b, a, from, to, strides);
  };
  Atoms operands = s.Consts(x), last = operands;
  for (const Atom& a : s.Carries(x)) operands.push_back(a);
  for (const Atom& a : s.Xs(x)) operands.push_back(part(a, s.reverse ? 1 : 0, length - 1));
  Attrs attrs = e.attrs;
  attrs.Set("length", Dims{Dim(length - 1)});
  if (s.carries > 0) {
    for (const Atom& a : b.Emit(*e.prim, operands, attrs, {std::move(r).Build(carried)})) last.push_back(a);
  }
  for (const Atom& a : s.Xs(x)) {
    const Atom slice = part(a, s.reverse ? 0 : length - 1, 1);
    last.push_back(Reshape(b, slice, WithoutDims(b.TypeOf(slice).dims, {0})));
  }
  Atoms results = b.Inline(body, last);
  for (size_t i = s.carries; i < results.size(); ++i) {
    Dims dims = body.TypeOf(body.results()[i]).dims;
    dims.insert(dims.begin(), s.length);
    results[i] = Broadcast(b, results[i], dims, Range(1, static_cast<int64_t>(dims.size())));
  }
  return results;
}

}  // namespace weft
