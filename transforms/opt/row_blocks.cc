#include "transforms/opt/row_blocks.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "ir/analysis/sharding_rules.h"
#include "ir/builder.h"
#include "ir/licences.h"
#include "ir/mesh.h"
#include "ir/ops.h"
#include "ir/prim_table.h"
#include "ir/prims/contraction.h"
#include "transforms/opt/pass.h"
#include "transforms/opt/rewrite.h"
#include "transforms/opt/rule_watch.h"

namespace weft {
namespace {

constexpr int kWhole = -1;          // no dimension is cut
constexpr int kMostRewrites = 256;  // products of a function
constexpr char kAxis[] = "blocks";

bool IsPlain(const Type& t) { return t.is_static() && t.varying.empty() && t.dtype != DType::kTape; }
int64_t Bytes(const Type& t) { return t.size().value("the size of an array") * ByteWidth(t.dtype); }
int64_t Size(const Type& t, int d) { return t.dims[static_cast<size_t>(d)].value("the size of a dimension"); }

// Where one factor of an equation cuts its operands and results: a dimension of each, or kWhole.
struct Cut {
  int factor = 0;
  std::vector<int> operands, results;
};

// The dimension that holds `factor` and nothing else; kWhole if none holds it; nullopt where it stands beside others.
std::optional<int> DimOf(const ShardingRule::Tensor& tensor, int factor) {
  int at = kWhole;
  for (size_t d = 0; d < tensor.size(); ++d) {
    if (std::find(tensor[d].begin(), tensor[d].end(), factor) == tensor[d].end()) continue;
    if (tensor[d].size() != 1 || at != kWhole) return std::nullopt;
    at = static_cast<int>(d);
  }
  return at;
}

FnRef OfBody(FnRef fn, const RowBlockPolicy& policy, bool again);

class Blocks {
 public:
  Blocks(const Fn& fn, const RowBlockPolicy& policy, bool again)
      : fn_(fn), policy_(policy), again_(again), rules_(fn.eqns().size()), defined_(fn.num_vars(), -1) {
    for (size_t i = 0; i < fn.eqns().size(); ++i) {
      const Eqn& e = fn.eqns()[i];
      for (uint32_t r = 0; r < e.num_results; ++r) defined_[e.first_result + r] = static_cast<int64_t>(i);
    }
  }

  // Whether it is worth looking.
  bool Any() const {
    return std::any_of(fn_.eqns().begin(), fn_.eqns().end(), [&](const Eqn& e) { return !RowsOf(e).empty(); });
  }

  // The function with the products from equation `from` on tried until one is computed in blocks; null: none is.
  FnRef Rewritten(size_t* from) {
    for (size_t seed = *from; seed < fn_.eqns().size(); ++seed) {
      *from = seed + 1;
      for (const auto& [dim, stacked] : RowsOf(fn_.eqns()[seed])) {
        if (!Grow(seed, dim)) continue;
        stacked_ = stacked;
        ChooseBlocks(Size(fn_.TypeOf(fn_.eqns()[seed].result()), dim));
        if (count_ < 2) continue;
        if (RuleWatch* const watch = RuleWatch::Current()) {
          if (!watch->Allows(kRowBlocks)) return nullptr;
          watch->Applied(kRowBlocks, fn_, fn_.eqns()[seed]);
        }
        return Emit();
      }
    }
    return nullptr;
  }

 private:
  // --- What may be cut -----------------------------------------------------------------------------------------------

  struct Rows {
    int dim = 0;
    bool stacked = false;  // both factors have it: a stack of products
  };

  // The dimensions of a large product that could be its rows, the best first. A stack is cut into its matrices, and
  // those into rows: a block of many rows of one matrix reads that one's other factor, which a cache holds, where one
  // of a few rows of every matrix reads all of them.
  std::vector<Rows> RowsOf(const Eqn& e) const {
    if (!Is<"contract">(*e.prim) || !IsPlain(fn_.TypeOf(e.result()))) return {};
    const Type& type = fn_.TypeOf(e.result());
    if (!IsFloat(type.dtype) || Bytes(type) < policy_.least_bytes) return {};
    const ContractSpec spec = ContractSpec::Parse(e.attrs.Get<std::string>("spec"));
    int64_t summed = 1;
    for (size_t d = 0; d < spec.lhs.size(); ++d) {
      if (spec.out.find(spec.lhs[d]) == std::string::npos)
        summed *= Size(fn_.TypeOf(e.operands[0]), static_cast<int>(d));
    }
    if (summed > policy_.most_summed) return {};
    std::vector<Rows> rows;
    for (size_t d = 0; d < spec.out.size(); ++d) {
      const bool both =
          spec.lhs.find(spec.out[d]) != std::string::npos && spec.rhs.find(spec.out[d]) != std::string::npos;
      if (both) rows.push_back({static_cast<int>(d), true});
    }
    for (size_t d = spec.out.size(); d-- > 0;) {
      const bool both =
          spec.lhs.find(spec.out[d]) != std::string::npos && spec.rhs.find(spec.out[d]) != std::string::npos;
      if (!both) rows.push_back({static_cast<int>(d), false});
    }
    return rows;
  }

  // The sharding rule of an equation that runs on blocks as it runs on whole arrays; null if it has none.
  const ShardingRule* RuleOf(size_t i) {
    auto& known = rules_[i];
    if (!known) {
      known.emplace();
      const Eqn& e = fn_.eqns()[i];
      const OpShardingRule& op = OpShardingRuleOf(*e.prim);
      Types operands, results;
      Mask literal;
      bool plain = e.regions.empty() && !e.prim->has_effect && !e.prim->communicates && op.map && !op.emit;
      for (const Atom& a : e.operands) {
        operands.push_back(fn_.TypeOf(a));
        literal.push_back(a.is_literal());
        plain &= IsPlain(operands.back());
      }
      for (uint32_t r = 0; r < e.num_results; ++r) {
        results.push_back(fn_.TypeOf(e.result(static_cast<int>(r))));
        plain &= IsPlain(results.back());
      }
      if (plain) *known = op.map(Sig{*e.prim, operands, literal, e.attrs, e.regions}, results);
    }
    return *known ? &**known : nullptr;
  }

  // What a factor of equation `i` cuts; nullopt where blocks of it do not make blocks of all results.
  std::optional<Cut> CutBy(size_t i, int factor) {
    const ShardingRule& rule = *RuleOf(i);
    if (rule.factors[static_cast<size_t>(factor)].kind != ShardingRule::Kind::kPass) return std::nullopt;
    Cut cut{factor, {}, {}};
    for (const auto& operand : rule.operands) {
      const std::optional<int> d = DimOf(operand, factor);
      if (!d) return std::nullopt;
      cut.operands.push_back(*d);
    }
    for (const auto& result : rule.results) {
      const std::optional<int> d = DimOf(result, factor);
      if (!d || *d == kWhole) return std::nullopt;
      cut.results.push_back(*d);
    }
    return cut;
  }
  std::optional<Cut> CutOfResult(size_t i, int dim) {
    const ShardingRule* rule = RuleOf(i);
    if (rule == nullptr || rule->results.size() != 1) return std::nullopt;
    const std::vector<int>& held = rule->results[0][static_cast<size_t>(dim)];
    return held.size() == 1 ? CutBy(i, held[0]) : std::nullopt;
  }
  // Of an equation that reads blocks: its operands that are cut have to be cut by one factor.
  std::optional<Cut> CutOfOperands(size_t i) {
    const ShardingRule* rule = RuleOf(i);
    if (rule == nullptr) return std::nullopt;
    const Eqn& e = fn_.eqns()[i];
    std::optional<Cut> cut;
    for (size_t k = 0; k < e.operands.size(); ++k) {
      const int dim = DimCut(e.operands[k]);
      if (dim == kWhole) continue;
      const std::vector<int>& held = rule->operands[k][static_cast<size_t>(dim)];
      if (held.size() != 1 || (cut && cut->factor != held[0])) return std::nullopt;
      if (!cut) cut = CutBy(i, held[0]);
      if (!cut || cut->operands[k] != dim) return std::nullopt;
    }
    return cut;
  }
  int DimCut(const Atom& a) const { return a.is_var() ? dims_[a.id()] : kWhole; }

  // Whether a value is made of literals and numbers in a row, element by element.
  bool MadeOfNumbers(const Atom& a) {
    if (a.is_literal()) return true;
    const int64_t at = defined_[a.id()];
    if (at < 0) return false;
    const auto [known, first] = of_numbers_.try_emplace(at, false);
    if (!first) return known->second;
    const Eqn& e = fn_.eqns()[static_cast<size_t>(at)];
    const bool numbers = e.operands.empty() && !e.prim->has_effect;
    const bool by_element = e.prim->is_elementwise() || e.prim->view || e.prim->expands || numbers;
    return of_numbers_[at] =
               by_element && IsPlain(fn_.TypeOf(e.result())) &&
               std::all_of(e.operands.begin(), e.operands.end(), [&](const Atom& x) { return MadeOfNumbers(x); });
  }

  // --- Which equations -----------------------------------------------------------------------------------------------

  // Finds what is computed in blocks when `dim` of product `seed` is cut: from there to where results are small again.
  bool Grow(size_t seed, int dim) {
    const size_t n = fn_.eqns().size();
    dims_.assign(fn_.num_vars(), kWhole);
    cuts_.assign(n, std::nullopt);
    std::vector<bool> after(fn_.num_vars(), false);  // depends on the product, and is not cut
    const std::optional<Cut> first = CutOfResult(seed, dim);
    if (!first) return false;
    const Eqn& product = fn_.eqns()[seed];
    large_ = Bytes(fn_.TypeOf(product.result())) / 8;
    cuts_[seed] = first;
    dims_[product.first_result] = dim;
    for (size_t i = seed + 1; i < n; ++i) {
      const Eqn& e = fn_.eqns()[i];
      bool reads_cut = false, reads_after = false;
      for (const Atom& a : e.operands) {
        reads_cut |= DimCut(a) != kWhole;
        reads_after |= a.is_var() && after[a.id()];
      }
      if (!reads_cut && !reads_after) continue;
      if (!reads_after) cuts_[i] = CutOfOperands(i);
      for (uint32_t r = 0; r < e.num_results; ++r) {
        if (cuts_[i]) {
          dims_[e.first_result + r] = cuts_[i]->results[r];
        } else {
          after[e.first_result + r] = true;
        }
      }
    }
    return KeepToSmallResults(seed, after);
  }

  bool IsLarge(Var v) const { return Bytes(fn_.TypeOf(v)) >= large_; }

  // Of the equations that could run on blocks, keeps those that large arrays go through.
  bool KeepToSmallResults(size_t seed, std::vector<bool>& after) {
    std::vector<bool> needed(fn_.num_vars(), false);
    last_ = seed;
    first_ = seed;
    for (size_t i = fn_.eqns().size(); i-- > seed;) {
      if (!cuts_[i]) continue;
      const Eqn& e = fn_.eqns()[i];
      bool keep = i == seed;
      for (uint32_t r = 0; r < e.num_results; ++r) {
        keep |= needed[e.first_result + r] || IsLarge(e.result(static_cast<int>(r)));
      }
      for (const Atom& a : e.operands) keep |= DimCut(a) != kWhole && IsLarge(a.var());
      if (!keep) {
        cuts_[i].reset();
        for (uint32_t r = 0; r < e.num_results; ++r) after[e.first_result + r] = true;
        continue;
      }
      last_ = std::max(last_, i);
      for (const Atom& a : e.operands) {
        if (DimCut(a) != kWhole) needed[a.id()] = true;
      }
    }
    // Results that others read. None may be large, or nothing is gained.
    outputs_.clear();
    after_.assign(fn_.eqns().size(), false);
    std::vector<bool> read(fn_.num_vars(), false);
    for (size_t i = 0; i < fn_.eqns().size(); ++i) {
      const Eqn& e = fn_.eqns()[i];
      for (const Atom& a : e.operands) {
        if (!a.is_var()) continue;
        if (!cuts_[i]) {
          read[a.id()] = true;
          after_[i] = after_[i] || after[a.id()] || dims_[a.id()] != kWhole;
        } else if (after[a.id()]) {
          return false;  // it would have to run before and after
        }
      }
      if (after_[i]) {
        if (i < last_ && (e.prim->has_effect || !e.regions.empty())) return false;  // would be moved
        for (uint32_t r = 0; r < e.num_results; ++r) after[e.first_result + r] = true;
      }
    }
    for (const Atom& a : fn_.results()) {
      if (a.is_var()) read[a.id()] = true;
    }
    for (size_t i = seed; i <= last_; ++i) {
      if (!cuts_[i]) continue;
      const Eqn& e = fn_.eqns()[i];
      for (uint32_t r = 0; r < e.num_results; ++r) {
        const Var v = e.result(static_cast<int>(r));
        if (!read[v.id]) continue;
        if (IsLarge(v)) return false;
        outputs_.push_back(v);
      }
    }
    return !outputs_.empty() && last_ > seed;
  }

  // --- The loop ------------------------------------------------------------------------------------------------------

  // count_ blocks of rows_ rows, and rest_ rows that are left.
  void ChooseBlocks(int64_t rows) {
    const int64_t of_row = std::max<int64_t>(1, 8 * large_ / rows);
    rows_ = std::clamp<int64_t>(policy_.block_bytes / of_row, 1, rows);
    for (int64_t even = rows_; even > rows_ / 2; --even) {
      if (rows % even == 0) {
        rows_ = even;
        break;
      }
    }
    count_ = rows / rows_;
    rest_ = rows - count_ * rows_;
    whole_rows_ = rows;
  }

  // Builds the body for blocks of some rows. What it reads is found while it is built: arrays of fn_, with the
  // dimension of which it gets a block, or kWhole.
  class Body {
   public:
    Body(Blocks& of, int64_t rows, const std::vector<std::pair<Atom, int>>& known)
        : of_(of), rows_(rows), mesh_{{{kAxis, of.whole_rows_ / rows}}}, b_("rows") {
      for (const auto& [a, dim] : known) Parameter(a, dim);
    }

    FnRef Build() {
      Atoms results;
      for (size_t i = of_.first_; i <= of_.last_; ++i) {
        if (of_.cuts_[i]) Run(i, *of_.cuts_[i]);
      }
      for (const Var v : of_.outputs_) results.push_back(made_.at({v.id, of_.dims_[v.id]}));
      return std::move(b_).Build(results);
    }
    const std::vector<std::pair<Atom, int>>& inputs() const { return inputs_; }

   private:
    Type BlockType(const Type& whole, int dim) const {
      Type type = whole;
      if (dim != kWhole) type.dims[static_cast<size_t>(dim)] = Dim(rows_);
      return type;
    }
    Atom Parameter(const Atom& a, int dim) {
      const Atom p = b_.Parameter(BlockType(of_.fn_.TypeOf(a), dim));
      inputs_.emplace_back(a, dim);
      made_.emplace(std::pair(a.id(), dim), p);
      return p;
    }
    // Equation `i` on blocks.
    void Run(size_t i, const Cut& cut) {
      const Eqn& e = of_.fn_.eqns()[i];
      Atoms x;
      for (size_t k = 0; k < e.operands.size(); ++k) x.push_back(Value(e.operands[k], cut.operands[k]));
      const ScopedLoc loc(b_, e.loc);
      Types global, local;
      for (const Atom& a : e.operands) global.push_back(of_.fn_.TypeOf(a));
      for (uint32_t r = 0; r < e.num_results; ++r)
        local.push_back(BlockType(of_.fn_.TypeOf(e.result(static_cast<int>(r))), cut.results[r]));
      const ShardingRule& rule = *of_.RuleOf(i);
      std::vector<Strings> cuts(rule.factors.size());
      cuts[static_cast<size_t>(cut.factor)] = {kAxis};
      const Atoms y = EmitLocal(LocalEqn{b_, e, x, global, local, rule, mesh_, cuts});
      for (uint32_t r = 0; r < e.num_results; ++r) made_[{e.first_result + r, cut.results[r]}] = y[r];
    }
    // A value of the function, or a block of it.
    Atom Value(const Atom& a, int dim) {
      if (a.is_literal()) return a;
      if (const auto at = made_.find({a.id(), dim}); at != made_.end()) return at->second;
      if (dim != kWhole && Makes(a, dim)) return made_.at({a.id(), dim});
      if (dim == kWhole && of_.stacked_ && MakesOfNumbers(a)) return made_.at({a.id(), dim});
      return Parameter(a, dim);
    }
    // A mask that every matrix of a stack reads: made in the loop over the stack, that loops over its rows may make it,
    // too, block by block.
    bool MakesOfNumbers(const Atom& a) {
      if (!of_.MadeOfNumbers(a)) return false;
      const Eqn& e = of_.fn_.eqns()[static_cast<size_t>(of_.defined_[a.id()])];
      Atoms x;
      for (const Atom& operand : e.operands) x.push_back(Value(operand, kWhole));
      const Atoms y = b_.Clone(of_.fn_, e, x);
      for (uint32_t r = 0; r < e.num_results; ++r) made_[{e.first_result + r, kWhole}] = y[r];
      return true;
    }
    // Masks and the like are made block by block, too, rather than read.
    bool Makes(const Atom& a, int dim) {
      const int64_t at = of_.defined_[a.id()];
      if (at < 0 || Bytes(of_.fn_.TypeOf(a)) * 64 < of_.large_) return false;
      const auto i = static_cast<size_t>(at);
      const Eqn& e = of_.fn_.eqns()[i];
      if (!e.prim->is_elementwise() && !e.prim->view && !e.prim->expands) return false;
      const std::optional<Cut> cut = of_.CutOfResult(i, dim);
      if (!cut) return false;
      Run(i, *cut);
      return true;
    }

    Blocks& of_;
    const int64_t rows_;
    const Mesh mesh_;
    Builder b_;
    std::map<std::pair<uint32_t, int>, Atom> made_;
    std::vector<std::pair<Atom, int>> inputs_;
  };

  // Which parameters it has is known once it is built, so it is built twice.
  FnRef BodyOf(int64_t rows, std::vector<std::pair<Atom, int>>* inputs) {
    if (inputs->empty()) {
      Body draft(*this, rows, {});
      draft.Build();
      *inputs = draft.inputs();
      std::stable_partition(inputs->begin(), inputs->end(), [](const auto& input) { return input.second == kWhole; });
    }
    FnRef body = Body(*this, rows, *inputs).Build();
    if (stacked_) {
      RowBlockPolicy policy = policy_;
      policy.least_bytes = std::min(policy.least_bytes, 2 * policy.block_bytes);
      FnRef inner = OfBody(body, policy, again_);
      if (inner != body) return inner;  // its blocks are what is computed again
    }
    if (!again_) return body;
    Builder b("rows");
    Atoms x;
    for (const Param& p : body->params()) x.push_back(b.Parameter(p.type));
    const Atoms results = b.Emit(FindPrim("remat"), x, {{"policy", std::string("nothing_saveable")}}, {body});
    return std::move(b).Build(results);
  }

  FnRef Emit() {
    Builder b(fn_.name());
    std::vector<Atom> value(fn_.num_vars());
    for (size_t i = 0; i < fn_.params().size(); ++i) {
      const Param& p = fn_.params()[i];
      value[i] = b.Parameter(p.type, p.name, p.kind);
    }
    const auto of = [&](const Atom& a) { return a.is_var() ? value[a.id()] : a; };
    const auto clone = [&](size_t i) {
      const Eqn& e = fn_.eqns()[i];
      Atoms operands;
      for (const Atom& a : e.operands) operands.push_back(of(a));
      const Atoms made = b.Clone(fn_, e, operands);
      for (uint32_t r = 0; r < e.num_results; ++r) value[e.first_result + r] = made[r];
    };
    for (size_t i = 0; i <= last_; ++i) {
      if (!cuts_[i] && !after_[i]) clone(i);
    }
    EmitLoop(b, of, &value);
    for (size_t i = 0; i < fn_.eqns().size(); ++i) {
      if (!cuts_[i] && (after_[i] || i > last_)) clone(i);
    }
    Atoms results;
    for (const Atom& a : fn_.results()) results.push_back(of(a));
    return std::move(b).Build(results);
  }

  template <class Of>
  void EmitLoop(Builder& b, const Of& of, std::vector<Atom>* value) {
    const ScopedLoc loc(b, fn_.eqns()[first_].loc);
    std::vector<std::pair<Atom, int>> inputs;
    const FnRef body = BodyOf(rows_, &inputs);
    Atoms operands, rest;
    int64_t consts = 0;
    for (const auto& [a, dim] : inputs) {
      const Atom x = of(a);
      if (dim == kWhole) {
        ++consts;
        operands.push_back(x);
        rest.push_back(x);
        continue;
      }
      operands.push_back(Stacked(b, Part(b, x, dim, 0, count_ * rows_), dim));
      if (rest_ > 0) rest.push_back(Part(b, x, dim, count_ * rows_, whole_rows_));
    }
    const Atoms stacks = b.Emit(
        FindPrim("scan"), operands,
        {{"num_consts", consts}, {"num_carry", int64_t{0}}, {"reverse", false}, {"length", Dims{Dim(count_)}}}, {body});
    Atoms tail;
    if (rest_ > 0) tail = b.Inline(*BodyOf(rest_, &inputs), rest);
    for (size_t k = 0; k < outputs_.size(); ++k) {
      const int dim = dims_[outputs_[k].id];
      Atom y = Joined(b, stacks[k], dim);
      if (rest_ > 0) y = Concatenate(b, {y, tail[k]}, dim);
      (*value)[outputs_[k].id] = y;
    }
  }

  Atom Part(Builder& b, const Atom& x, int dim, int64_t begin, int64_t end) const {
    const Type type = b.TypeOf(x);
    if (begin == 0 && end == Size(type, dim)) return x;
    Ints start(type.dims.size(), 0), limit;
    for (int d = 0; d < type.rank(); ++d) limit.push_back(Size(type, d));
    start[static_cast<size_t>(dim)] = begin;
    limit[static_cast<size_t>(dim)] = end;
    return Slice(b, x, start, limit, Ints(type.dims.size(), 1));
  }
  // [.., count * rows, ..] as [count, .., rows, ..].
  Atom Stacked(Builder& b, const Atom& x, int dim) const {
    Dims dims = b.TypeOf(x).dims;
    dims[static_cast<size_t>(dim)] = Dim(rows_);
    dims.insert(dims.begin() + dim, Dim(count_));
    Ints perm = {dim};
    for (int64_t d = 0; d < static_cast<int64_t>(dims.size()); ++d) {
      if (d != dim) perm.push_back(d);
    }
    return Transpose(b, Reshape(b, x, dims), perm);
  }
  Atom Joined(Builder& b, const Atom& x, int dim) const {
    const Type type = b.TypeOf(x);
    Ints perm;
    for (int64_t d = 1; d < type.rank(); ++d) {
      if (d == dim + 1) perm.push_back(0);
      perm.push_back(d);
    }
    Dims dims(type.dims.begin() + 1, type.dims.end());
    dims[static_cast<size_t>(dim)] = Dim(count_ * rows_);
    return Reshape(b, Transpose(b, x, perm), dims);
  }

  const Fn& fn_;
  const RowBlockPolicy& policy_;
  const bool again_;
  std::vector<std::optional<std::optional<ShardingRule>>> rules_;  // by equation, once it was asked for
  std::map<int64_t, bool> of_numbers_;                             // by equation, likewise
  std::vector<int64_t> defined_;                                   // by variable: its equation, or -1
  // Of what is computed in blocks.
  std::vector<int> dims_;                 // by variable: the dimension that is cut
  std::vector<std::optional<Cut>> cuts_;  // by equation: of those inside
  std::vector<bool> after_;               // by equation: whether it reads what they compute
  std::vector<Var> outputs_;
  bool stacked_ = false;  // whether that is one of a stack's
  size_t first_ = 0, last_ = 0;
  int64_t large_ = 0;  // bytes
  int64_t rows_ = 0, count_ = 0, rest_ = 0, whole_rows_ = 0;
};

// Numbers along one dimension are numbers in a row, repeated: those of a block are a block of the row.
FnRef WithRowsOfNumbers(FnRef fn) {
  return Rewrite(std::move(fn), [](Builder& b, const Eqn& e, const Atoms&) -> std::optional<Atoms> {
    if (!Is<"iota">(*e.prim)) return std::nullopt;
    const Dims& shape = e.attrs.Get<Dims>("shape");
    const int64_t dim = e.attrs.GetInt("dim");
    if (shape.size() < 2) return std::nullopt;
    const Atom row = Iota(b, {shape[static_cast<size_t>(dim)]}, 0, e.attrs.Get<DType>("dtype"));
    return Atoms{Broadcast(b, row, shape, {dim})};
  });
}

FnRef OfBody(FnRef fn, const RowBlockPolicy& policy, bool again) {
  if (!Blocks(*fn, policy, again).Any()) return fn;
  FnRef made = WithRowsOfNumbers(fn);
  bool any = false;
  size_t from = 0;
  for (int i = 0; i < kMostRewrites; ++i) {
    FnRef next = Blocks(*made, policy, again).Rewritten(&from);
    if (next == nullptr) break;
    made = std::move(next);
    any = true;
    from = 0;
  }
  return any ? made : fn;
}

}  // namespace

FnRef ComputeInBlocks(FnRef fn, const RowBlockPolicy& policy, bool again) {
  if (!CurrentLicences().Allow(Licence::kProducts)) return fn;
  return RewriteBodies(std::move(fn), [&](FnRef body) { return OfBody(std::move(body), policy, again); });
}

FnRef ComputeInBlocks(FnRef fn) { return ComputeInBlocks(std::move(fn), {}, false); }
FnRef ComputeInBlocksAgain(FnRef fn) { return ComputeInBlocks(std::move(fn), {}, true); }

}  // namespace weft
