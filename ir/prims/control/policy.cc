#include "ir/prims/control/policy.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <optional>

#include "ir/builder.h"
#include "ir/ops.h"
#include "ir/prim_table.h"
#include "ir/prims/control/branch_slots.h"
#include "ir/prims/control/regions.h"

namespace weft {
namespace {

PolicyCallback& TheCallback() {
  static auto& callback = *new PolicyCallback();
  return callback;
}

const char kKnown[] =
    "everything_saveable, nothing_saveable, dots_saveable, dots_with_no_batch_dims_saveable, "
    "save_only_these_names(...), save_any_names_but_these(...), save_anything_except_these_names(...), "
    "save_from_both_policies(P,Q)";

// NAME, or NAME(argument, ...); an argument is a text in quotes, a number or a policy.
class Reader {
 public:
  explicit Reader(const std::string& text) : text_(text) {}

  std::string Word() {
    Spaces();
    const size_t begin = at_;
    while (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) || text_[at_] == '_')) ++at_;
    return text_.substr(begin, at_ - begin);
  }
  bool Take(char c) {
    Spaces();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void Expect(char c) {
    if (!Take(c)) Fail(std::string("expected '") + c + "'");
  }
  std::string Quoted() {
    Expect('"');
    std::string out;
    while (at_ < text_.size() && text_[at_] != '"') {
      if (text_[at_] == '\\' && at_ + 1 < text_.size()) ++at_;
      out += text_[at_++];
    }
    Expect('"');
    return out;
  }
  bool AtEnd() {
    Spaces();
    return at_ == text_.size();
  }
  [[noreturn]] void Fail(const std::string& why) const {
    throw ValueError("checkpoint: '", text_, "' is no policy: ", why, " at character ", at_, "; policies: ", kKnown);
  }

 private:
  void Spaces() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  const std::string& text_;
  size_t at_ = 0;
};

// A product of matrices whose spec has an index in both operands and in the result: a batch of products.
bool HasBatchDims(const std::string& spec) {
  const size_t comma = spec.find(','), arrow = spec.find("->");
  for (char c : spec.substr(0, comma)) {
    if (spec.substr(comma, arrow - comma).find(c) != std::string::npos && spec.find(c, arrow) != std::string::npos)
      return true;
  }
  return false;
}

// The name that the user gave the equation's value, if any.
const std::string* NameOf(const Eqn& e) {
  // The one operation that policies are about.
  return Is<"checkpoint_name">(*e.prim) ? &e.attrs.Get<std::string>("name") : nullptr;
}

}  // namespace

Policy Policy::Parse(const std::string& text) {
  Reader in(text);
  std::function<Policy()> policy = [&]() -> Policy {
    Policy p;
    const std::string name = in.Word();
    auto names = [&](Kind kind) {
      p.kind_ = kind;
      in.Expect('(');
      while (!in.Take(')')) {
        p.names_.push_back(in.Quoted());
        if (!in.Take(',')) {
          in.Expect(')');
          break;
        }
      }
    };
    if (name == "everything_saveable") {
      p.kind_ = Kind::kEverything;
    } else if (name == "nothing_saveable") {
      p.kind_ = Kind::kNothing;
    } else if (name == "dots_saveable" || name == "checkpoint_dots") {
      p.kind_ = Kind::kDots;
    } else if (name == "dots_with_no_batch_dims_saveable" || name == "checkpoint_dots_with_no_batch_dims") {
      p.kind_ = Kind::kPlainDots;
    } else if (name == "save_only_these_names") {
      names(Kind::kOnlyNames);
    } else if (name == "save_any_names_but_these") {
      names(Kind::kAnyNameBut);
    } else if (name == "save_anything_except_these_names") {
      names(Kind::kAnythingBut);
    } else if (name == "save_from_both_policies") {
      p.kind_ = Kind::kBoth;
      in.Expect('(');
      p.both_.push_back(policy());
      in.Expect(',');
      p.both_.push_back(policy());
      in.Expect(')');
    } else if (name == "callback") {
      p.kind_ = Kind::kCallback;
      in.Expect('(');
      const std::string id = in.Word();
      if (id.empty() || id.size() > 18 ||
          !std::all_of(id.begin(), id.end(), [](char c) { return c >= '0' && c <= '9'; }))
        in.Fail("expected the number of a callback");
      p.callback_ = std::stoll(id);
      in.Expect(')');
    } else {
      in.Fail("there is none of this name");
    }
    return p;
  };
  const Policy p = policy();
  if (!in.AtEnd()) in.Fail("expected the end");
  return p;
}

std::string Policy::ToString() const {
  auto names = [&](const char* name) {
    std::string text = std::string(name) + "(";
    for (size_t i = 0; i < names_.size(); ++i) {
      text += i ? ",\"" : "\"";
      for (char c : names_[i]) text += c == '"' || c == '\\' ? std::string("\\") + c : std::string(1, c);
      text += "\"";
    }
    return text + ")";
  };
  switch (kind_) {
    case Kind::kEverything: return "everything_saveable";
    case Kind::kNothing: return "nothing_saveable";
    case Kind::kDots: return "dots_saveable";
    case Kind::kPlainDots: return "dots_with_no_batch_dims_saveable";
    case Kind::kOnlyNames: return names("save_only_these_names");
    case Kind::kAnyNameBut: return names("save_any_names_but_these");
    case Kind::kAnythingBut: return names("save_anything_except_these_names");
    case Kind::kBoth: return "save_from_both_policies(" + both_[0].ToString() + "," + both_[1].ToString() + ")";
    case Kind::kCallback: return "callback(" + std::to_string(callback_) + ")";
  }
  return "";
}

Ints Policy::Callbacks() const {
  if (kind_ == Kind::kCallback) return {callback_};
  Ints all;
  for (const Policy& p : both_) {
    for (int64_t n : p.Callbacks()) all.push_back(n);
  }
  return all;
}

Policy Policy::Renumbered(const std::function<int64_t(int64_t)>& number) const {
  Policy out = *this;
  if (kind_ == Kind::kCallback) out.callback_ = number(callback_);
  for (Policy& p : out.both_) p = p.Renumbered(number);
  return out;
}

Mask Policy::Saves(const Fn& fn) const {
  const Eqns& eqns = fn.eqns();
  Mask saves(eqns.size(), kind_ == Kind::kEverything || kind_ == Kind::kAnythingBut);
  auto listed = [&](const std::string& name) { return std::find(names_.begin(), names_.end(), name) != names_.end(); };
  Mask hidden;  // by variable: it is given one of the names
  if (kind_ == Kind::kAnythingBut) {
    hidden.assign(fn.num_vars(), false);
    for (size_t i = eqns.size(); i-- > 0;) {  // last to first: a name of a name hides the value too
      const Eqn& e = eqns[i];
      const std::string* name = NameOf(e);
      if (name && e.operands[0].is_var() && (listed(*name) || hidden[e.first_result]))
        hidden[e.operands[0].id()] = hidden[e.first_result] = true;
      else if (name && listed(*name))
        hidden[e.first_result] = true;
    }
  }
  if (kind_ == Kind::kBoth) {
    saves = Union(both_[0].Saves(fn), both_[1].Saves(fn));
    return saves;
  }
  for (size_t i = 0; i < eqns.size(); ++i) {
    const Eqn& e = eqns[i];
    const std::string* name = NameOf(e);
    switch (kind_) {
      case Kind::kDots: saves[i] = e.prim->family == Family::kContraction; break;
      case Kind::kPlainDots:
        // A convolution is no product of matrices.
        saves[i] = Is<"contract">(*e.prim) && !HasBatchDims(e.attrs.Get<std::string>("spec"));
        break;
      case Kind::kOnlyNames: saves[i] = name && listed(*name); break;
      case Kind::kAnyNameBut: saves[i] = name && !listed(*name); break;
      case Kind::kAnythingBut:
        for (uint32_t r = 0; r < e.num_results; ++r) {
          if (hidden[e.first_result + r]) saves[i] = false;
        }
        break;
      case Kind::kCallback:
        if (!TheCallback()) throw ValueError("checkpoint: nobody in this process answers the policy ", ToString());
        saves[i] = TheCallback()(callback_, fn, e);
        break;
      case Kind::kEverything:
      case Kind::kNothing:
      case Kind::kBoth: break;
    }
  }
  return saves;
}

void SetPolicyCallback(PolicyCallback callback) { TheCallback() = std::move(callback); }

// --- Cutting ---------------------------------------------------------------------------------------------------------

namespace {

// Functions that have been cut: one that is called often is cut once for each set of results that are needed.
using CutFns = std::map<std::pair<const Fn*, Mask>, CutFn>;

class Cutter {
 public:
  Cutter(const Fn& fn, const Policy& policy, const Mask& needed, CutFns& regions)
      : fn_(fn), policy_(policy), needed_(needed), regions_(regions), keep_(fn.name()), rest_(fn.name()) {}

  CutFn Run() {
    std::vector<bool> live(fn_.num_vars(), false);
    for (size_t i = 0; i < needed_.size(); ++i) {
      if (needed_[i] && fn_.results()[i].is_var()) live[fn_.results()[i].id()] = true;
    }
    for (size_t i = fn_.eqns().size(); i-- > 0;) {
      const Eqn& e = fn_.eqns()[i];
      bool any = false;
      for (uint32_t r = 0; r < e.num_results; ++r) any |= live[e.first_result + r];
      for (const Atom& a : e.operands) {
        if (any && a.is_var()) live[a.id()] = true;
      }
    }
    k_.resize(fn_.num_vars());
    r_.resize(fn_.num_vars());
    for (size_t i = 0; i < fn_.params().size(); ++i) {
      const Param& p = fn_.params()[i];
      k_[i] = keep_.Parameter(p.type, p.name, p.kind);
      r_[i] = rest_.Parameter(p.type, p.name, p.kind);
    }
    const size_t num_params = fn_.params().size();
    const Mask saves = policy_.Saves(fn_);
    for (size_t i = 0; i < fn_.eqns().size(); ++i) {
      const Eqn& e = fn_.eqns()[i];
      Mask wanted;
      for (uint32_t r = 0; r < e.num_results; ++r) wanted.push_back(live[e.first_result + r]);
      ScopedLoc keep_loc(keep_, e.loc), rest_loc(rest_, e.loc.Through("remat"));
      Visit(e, saves[i], wanted);
    }
    Atoms results, all;
    for (size_t i = 0; i < needed_.size(); ++i) {
      const Atom& a = fn_.results()[i];
      all.push_back(a.is_var() ? k_[a.id()] : a);
      if (needed_[i]) results.push_back(a.is_var() ? r_[a.id()] : a);
    }
    rest_.MoveParametersToFront(num_params);
    CutFn cut;
    cut.rest = rest_.Build(results);
    // What turned out not to be read is not saved.
    const std::vector<int> uses = cut.rest->UseCounts();
    Builder trimmed(fn_.name());
    Atoms args(saved_.size());
    for (size_t i = 0; i < saved_.size(); ++i) {
      if (uses[i] == 0) continue;
      const Type type = keep_.TypeOf(saved_[i]);
      args[i] = trimmed.Parameter(type);
      all.push_back(saved_[i]);
      cut.saved.push_back(type);
    }
    if (cut.saved.size() != saved_.size()) {
      for (const Param& p : fn_.params()) args.push_back(trimmed.Parameter(p.type, p.name, p.kind));
      cut.rest = trimmed.Build(trimmed.Inline(*cut.rest, args));
    }
    cut.keep = keep_.Build(all);
    return cut;
  }

 private:
  Atom Save(const Atom& value) {
    saved_.push_back(value);
    return rest_.Parameter(keep_.TypeOf(value));
  }
  Atoms Save(const Atoms& values) {
    Atoms out;
    for (const Atom& v : values) out.push_back(Save(v));
    return out;
  }
  static Atoms Mapped(const Atoms& operands, const Atoms& env) {
    Atoms x;
    for (const Atom& a : operands) x.push_back(a.is_var() ? env[a.id()] : a);
    return x;
  }

  void Visit(const Eqn& e, bool saved, const Mask& wanted) {
    const Atoms kx = Mapped(e.operands, k_), rx = Mapped(e.operands, r_);
    Atoms ky, ry;  // ry: only where wanted
    const RegionUse use = e.prim->region_use;
    const bool cut_inside = use == RegionUse::kCall || use == RegionUse::kCounted || use == RegionUse::kBranches;
    // `rest` is part of another half of the enclosing recursive function, which cannot call this one.
    saved |= e.CallsOutwards() && !cut_inside;
    if (saved) {
      ky = keep_.Clone(e, kx);
      for (size_t i = 0; i < ky.size(); ++i) ry.push_back(wanted[i] ? Save(ky[i]) : ky[i]);
    } else if (!Any(wanted)) {
      ky = keep_.Clone(e, kx);
      ry = ky;
    } else if (use == RegionUse::kCall) {
      const CutFn& cut = CutRegion(*e.regions[0], wanted);
      if (IsBetterMadeAgain(*e.regions[0], cut.saved)) {
        ky = keep_.Clone(e, kx);
        ry = rest_.Clone(e, rx);
      } else {
        const BranchSlots slots(cut.keep, e.num_results);
        const Fn& callee = *e.regions[0];
        Builder kb(callee.name()), rb(callee.name());
        const Atoms out = kb.Inline(*cut.keep, Parameters(kb, callee.ParamTypes()));
        Atoms results = Part(out, 0, e.num_results);
        Append(results, slots.Fill(kb, 0, Part(out, e.num_results, out.size())));
        Atoms args = slots.Read(rb, 0, Parameters(rb, slots.types()));
        Append(args, Parameters(rb, callee.ParamTypes()));
        ky = keep_.Emit(*e.prim, kx, e.attrs, {kb.Build(results)});
        Atoms operands = Save(Part(ky, e.num_results, ky.size()));
        Append(operands, rx);
        ry = Placed(rest_.Emit(*e.prim, operands, e.attrs, {rb.Build(rb.Inline(*cut.rest, args))}), wanted);
      }
    } else if (use == RegionUse::kCounted) {
      VisitScan(e, kx, rx, wanted, &ky, &ry);
    } else if (use == RegionUse::kBranches) {
      VisitCond(e, kx, rx, wanted, &ky, &ry);
    } else {
      ky = keep_.Clone(e, kx);
      ry = rest_.Clone(e, rx);
    }
    for (uint32_t i = 0; i < e.num_results; ++i) {
      k_[e.first_result + i] = ky[i];
      if (wanted[i]) r_[e.first_result + i] = ry[i];
    }
  }

  const CutFn& CutRegion(const Fn& region, const Mask& wanted) {
    const auto key = std::make_pair(&region, wanted);
    const auto at = regions_.find(key);
    return at != regions_.end() ? at->second
                                : regions_.emplace(key, Cutter(region, policy_, wanted, regions_).Run()).first->second;
  }

  static Atoms Placed(const Atoms& values, const Mask& wanted) {
    Atoms out(wanted.size());
    size_t next = 0;
    for (size_t i = 0; i < wanted.size(); ++i) {
      if (wanted[i]) out[i] = values[next++];
    }
    return out;
  }

  // What the body saves is stacked, and an array of the loop that is run again.
  void VisitScan(const Eqn& e, const Atoms& kx, const Atoms& rx, Mask wanted, Atoms* ky, Atoms* ry) {
    const size_t carries = static_cast<size_t>(e.attrs.GetInt("num_carry"));
    std::fill(wanted.begin(), wanted.begin() + static_cast<int64_t>(carries), true);
    const CutFn& cut = CutRegion(*e.regions[0], wanted);
    *ky = keep_.Emit(*e.prim, kx, e.attrs, {cut.keep});
    Atoms operands = rx;
    Append(operands, Save(Part(*ky, e.num_results, ky->size())));
    Builder b(e.regions[0]->name());
    const Atoms params = Parameters(b, e.regions[0]->ParamTypes());
    Atoms args = Parameters(b, cut.saved);
    Append(args, params);
    const FnRef body = b.Build(b.Inline(*cut.rest, args));
    *ry = Placed(rest_.Emit(*e.prim, operands, e.attrs, {body}), wanted);
  }

  void VisitCond(const Eqn& e, const Atoms& kx, const Atoms& rx, const Mask& wanted, Atoms* ky, Atoms* ry) {
    std::vector<CutFn> cuts;
    std::vector<FnRef> kept;
    for (const FnRef& f : e.regions) {
      cuts.push_back(CutRegion(*f, wanted));
      kept.push_back(cuts.back().keep);
    }
    const BranchSlots slots(kept, std::vector<size_t>(cuts.size(), e.num_results));
    std::vector<FnRef> keep, rest;
    for (size_t f = 0; f < cuts.size(); ++f) {
      const Fn& branch = *e.regions[f];
      Builder kb(branch.name()), rb(branch.name());
      const Atoms out = kb.Inline(*cuts[f].keep, Parameters(kb, branch.ParamTypes()));
      Atoms results = Part(out, 0, e.num_results);
      Append(results, slots.Fill(kb, f, Part(out, e.num_results, out.size())));
      keep.push_back(kb.Build(results));
      const Atoms filled = Parameters(rb, slots.types()), params = Parameters(rb, branch.ParamTypes());
      Atoms args = slots.Read(rb, f, filled);
      Append(args, params);
      rest.push_back(rb.Build(rb.Inline(*cuts[f].rest, args)));
    }
    *ky = keep_.Emit(*e.prim, kx, e.attrs, keep);
    Atoms operands = {rx[0]};
    Append(operands, Save(Part(*ky, e.num_results, ky->size())));
    Append(operands, Part(rx, 1, rx.size()));
    *ry = Placed(rest_.Emit(*e.prim, operands, e.attrs, rest), wanted);
  }

  const Fn& fn_;
  const Policy& policy_;
  const Mask& needed_;
  CutFns& regions_;
  Builder keep_, rest_;
  Atoms k_, r_, saved_;  // saved_: in keep_, in the order of the parameters of rest_
};

}  // namespace

CutFn CutByPolicy(const FnRef& fn, const Policy& policy, const Mask& needed) {
  WEFT_CHECK(needed.size() == fn->results().size()) << "CutByPolicy: " << needed.size() << " flags";
  CutFns regions;
  return Cutter(*fn, policy, needed, regions).Run();
}

}  // namespace weft
