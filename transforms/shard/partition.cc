#include "transforms/shard/partition.h"

#include <algorithm>
#include <bit>
#include <unordered_map>
#include <utility>

#include "absl/strings/str_join.h"
#include "ir/analysis/cost.h"
#include "ir/error.h"
#include "ir/ops.h"
#include "ir/prim_table.h"
#include "ir/prims/collectives.h"
#include "ir/prims/control/scan.h"
#include "ir/prims/control/while.h"
#include "transforms/shard/device_parts.h"
#include "transforms/shard/equation_cuts.h"
#include "transforms/shard/program_meshes.h"

namespace weft {
namespace {

using Kind = ShardingRule::Kind;
Layout Stacked(Layout l) {
  l.dims.insert(l.dims.begin(), std::vector<int>());
  return l;
}
Layout Slice(Layout l) {
  l.dims.erase(l.dims.begin());
  return l;
}

// Adds up what it is given.
bool IsSum(const Prim& prim) {
  static const auto& sums = *new PrimSet{"contract", "reduce_sum"};
  return sums.Has(prim);
}

uint32_t At(const std::vector<uint32_t>& all, size_t i) { return i < all.size() ? all[i] : 0; }

class Partitioner {
 public:
  explicit Partitioner(const PartitionOptions& options) : reshard_(options.mesh), options_(options) {}

  // The region of the scope: parameters lie as `params`, results as `results`; those of the program that are sums in
  // parts have them side by side.
  FnRef Region(const Scope& scope, const std::vector<Layout>& params, const std::vector<Layout>& results) {
    Builder b(scope.fn->name());
    std::vector<CutValue> env(scope.fn->num_vars());
    const auto parts_of = [&](size_t i) { return outermost_ ? At(options_.params_in_parts, i) : 0; };
    Atoms given;
    for (size_t i = 0; i < params.size(); ++i) {
      const Param& p = scope.fn->params()[i];
      const uint32_t parts = parts_of(i);
      const Type local = parts == 0
                             ? LocalTypeOf(mesh(), params[i], p.type)
                             : LocalTypeOf(mesh(), SideBySide(params[i], parts), SideBySide(mesh(), p.type, parts));
      given.push_back(b.Parameter(local, p.name));
    }
    for (size_t i = 0; i < params.size(); ++i) {
      const Type& type = scope.fn->params()[i].type;
      const Layout lies = WithPartial(params[i], parts_of(i));
      const Dims block = LocalTypeOf(mesh(), params[i], type).dims;
      const Atom a = lies.partial == 0 ? given[i] : Reshape(b, given[i], block);
      env[i] = {type, {{lies, a}}, outermost_ ? static_cast<int>(i) : -1, false, lies.partial != 0};
    }
    return Finish(b, scope, env, results);
  }

  // What the program sends, its functions as often as they are called.
  std::vector<Communication> Communications() const {
    std::vector<Communication> all;
    std::vector<double> runs(bodies_.size(), 0);
    runs[0] = 1;
    std::vector<size_t> order = {0};  // callers before what they call
    order.insert(order.end(), finished_.rbegin(), finished_.rend());
    for (size_t body : order) {
      for (const auto& [callee, times] : bodies_[body].calls) runs[callee] += runs[body] * times;
      for (Communication c : bodies_[body].comms) {
        c.times *= runs[body];
        all.push_back(std::move(c));
      }
    }
    return all;
  }

  std::vector<std::pair<int64_t, Layout>> Told() const { return told_; }

  bool outermost_ = true;

 private:
  // The program, or a function that stays a call: what it sends each time, and what it calls how often.
  struct Body {
    std::vector<Communication> comms;
    std::vector<std::pair<size_t, double>> calls;
  };
  std::vector<Communication>& comms() { return bodies_[body_].comms; }

  const Mesh& mesh() const { return reshard_.mesh(); }
  std::string Text(const Layout& l) const { return ShardingOf(mesh(), l).ToString(); }

  FnRef Finish(Builder& b, const Scope& scope, std::vector<CutValue>& env, const std::vector<Layout>& results) {
    const bool outermost = outermost_;
    outermost_ = false;
    const std::vector<int> uses = scope.fn->UseCounts();
    for (size_t k = 0; k < scope.fn->eqns().size(); ++k) {
      const Eqn& e = scope.fn->eqns()[k];
      ScopedLoc loc(b, e.loc);
      EmitEqn(b, scope, k, env, uses);
    }
    Atoms out;
    for (size_t i = 0; i < results.size(); ++i) {
      CutValue v = Read(scope, env, scope.fn->results()[i]);
      const std::string who = (outermost ? "result " : "result of the region ") + std::to_string(i);
      if (const uint32_t parts = outermost ? At(options_.results_in_parts, i) : 0; parts != 0) {
        const Atom a = InParts(b, v, results[i], parts, who, LocOf(scope, scope.fn->results()[i]));
        out.push_back(Declare(b, a, SideBySide(results[i], parts)));
        continue;
      }
      const Atom a = Reach(b, v, results[i], who, LocOf(scope, scope.fn->results()[i]));
      Write(scope, env, scope.fn->results()[i], v);
      out.push_back(Declare(b, a, results[i]));
    }
    return b.Build(out);
  }

  // One device's part of a sum along `axes`, behind a dimension of size 1: what it has already; of what these axes cut
  // its block, with zeros around it; else the first device has all of it.
  Atom InParts(Builder& b, CutValue v, const Layout& to, uint32_t axes, const std::string& who, Loc loc) {
    const auto has_all = std::find_if(v.versions.begin(), v.versions.end(),
                                      [&](const auto& version) { return (version.first.partial & axes) == axes; });
    if (has_all != v.versions.end())
      v.versions = {*has_all};
    else if (PartialOf(v) == 0)
      v.versions = {BlocksAmongZeros(b, mesh(), v, axes)};
    const uint32_t kept = PartialOf(v) & axes;
    const Atom a = OnFirstDevice(b, Reach(b, v, WithPartial(to, kept), who, loc), AxisNames(mesh(), axes & ~kept));
    Dims stacked = b.TypeOf(a).dims;
    stacked.insert(stacked.begin(), Dim(1));
    return Reshape(b, a, stacked);
  }

  static Loc LocOf(const Scope& scope, const Atom& a) {
    for (const Eqn& e : scope.fn->eqns()) {
      if (a.is_var() && a.id() >= e.first_result && a.id() < e.first_result + e.num_results) return e.loc;
    }
    return {};
  }

  static CutValue Read(const Scope& scope, const std::vector<CutValue>& env, const Atom& a) {
    if (a.is_var()) return env[a.id()];
    return {scope.fn->TypeOf(a), {{Replicated(scope.fn->TypeOf(a).rank()), a}}, -1};
  }
  // What was moved is kept for who needs it next.
  static void Write(const Scope&, std::vector<CutValue>& env, const Atom& a, const CutValue& v) {
    if (a.is_var()) env[a.id()] = v;
  }

  // Of a type that varies over exactly the axes of the layout.
  Atom Declare(Builder& b, Atom a, const Layout& layout) {
    const Strings axes = AxisNames(mesh(), layout.Axes());
    const Strings extra = AxesWithout(b.TypeOf(a).varying, axes);
    if (!extra.empty()) {  // axes of size 1, of a user's own spmd
      for (const std::string& axis : extra) WEFT_CHECK(mesh().Size(axis) == 1) << "a value that varies over " << axis;
      const Dims dims = b.TypeOf(a).dims;
      a = Reshape(b, GatherStacked(b, a, mesh(), extra), dims);
    }
    return Pvary(b, a, axes);
  }

  Atom Reach(Builder& b, CutValue& v, const Layout& to, const std::string& who, Loc loc) {
    const std::pair<Layout, Atom>* from = nullptr;
    const ReshardPlan* plan = nullptr;
    for (const auto& version : v.versions) {
      if ((to.partial & ~version.first.partial) != 0) continue;
      const ReshardPlan& p = reshard_.Plan(v.type, version.first, to);
      if (plan == nullptr || p.cost < plan->cost) plan = &p, from = &version;
    }
    WEFT_CHECK(plan != nullptr) << "no version that reaches " << Text(to);
    if (plan->steps.empty()) return from->second;
    std::vector<Emitted> emitted;
    const Atom a = reshard_.Emit(b, from->second, *plan, &emitted);
    for (const Emitted& m : emitted) {
      Communication c{m.prim, m.axes, m.bytes, times_, "", loc, v.param, to};
      c.cause = who + " is " + v.type.ToString() + ", which lies " + Text(from->first) + " and is needed " + Text(to);
      comms().push_back(std::move(c));
    }
    v.versions.emplace_back(to, a);
    return a;
  }

  Atom Reach(Builder& b, const Scope& scope, std::vector<CutValue>& env, const Eqn& e, size_t i, const Layout& to) {
    CutValue v = Read(scope, env, e.operands[i]);
    const Atom a = Reach(b, v, to, "operand " + std::to_string(i) + " of " + e.prim->name, e.loc);
    Write(scope, env, e.operands[i], v);
    return a;
  }

  void Define(const Scope& scope, std::vector<CutValue>& env, const Eqn& e, size_t i, const Layout& layout,
              const Atom& a) {
    const uint32_t id = e.first_result + static_cast<uint32_t>(i);
    env[id] = {scope.fn->TypeOf(Var{id}), {{layout, a}}, -1};
  }

  const Layout& Target(const Scope& scope, const Eqn& e, size_t i) const {
    return scope.vars[e.first_result + i].layout;
  }

  void EmitEqn(Builder& b, const Scope& scope, size_t k, std::vector<CutValue>& env, const std::vector<int>& uses) {
    const Eqn& e = scope.fn->eqns()[k];
    const OpShardingRule& rule = OpShardingRuleOf(*e.prim);
    if (IsConstraint(e)) {
      Layout to = Target(scope, e, 0);
      CutValue v = Read(scope, env, e.operands[0]);
      // What is to be a sum in parts stays one, and blocks along its axes become parts without moving.
      if (const Attr* unreduced = e.attrs.Find("unreduced")) {
        const uint32_t axes = LayoutOf(mesh(), Sharding{{}, std::get<Strings>(*unreduced)}).partial & ~to.Cuts();
        if (PartialOf(v) == 0 && !options_.deterministic) v.versions.push_back(BlocksAmongZeros(b, mesh(), v, axes));
        const auto parts = std::max_element(v.versions.begin(), v.versions.end(), [&](const auto& l, const auto& r) {
          return std::popcount(l.first.partial & axes) < std::popcount(r.first.partial & axes);
        });
        to.partial = parts->first.partial & axes;
        if (to.partial != 0) v.versions = {std::pair(*parts)};
      }
      const Atom a = Reach(b, v, to, "the constraint's operand", e.loc);
      if (to.partial == 0) Write(scope, env, e.operands[0], v);
      Define(scope, env, e, 0, to, a);
      env[e.first_result].param = v.param;
      env[e.first_result].said = to.partial != 0;
    } else if (const Attr* parts = e.attrs.Find("parts"); parts != nullptr) {
      EmitParts(b, scope, e, std::get<Strings>(*parts), env);
    } else if (e.prim->region_use == RegionUse::kDevices) {
      EmitSpmd(b, scope, e, env);
    } else if (RegionsAreCut(e)) {
      EmitControl(b, scope, k, env);
    } else if (rule.once && e.attrs.Find("each_device") != nullptr) {
      Atoms x;
      for (size_t i = 0; i < e.operands.size(); ++i)
        x.push_back(Reach(b, scope, env, e, i, AsItIs(scope, env, e.operands[i])));
      b.Emit(*e.prim, x, e.attrs, e.regions);
    } else if (const Attr* told = e.attrs.Find("told"); rule.once && told != nullptr) {
      told_.emplace_back(std::get<int64_t>(*told), AsItIs(scope, env, e.operands[0]));
      Atoms x;
      for (size_t i = 0; i < e.operands.size(); ++i)
        x.push_back(Reach(b, scope, env, e, i, AsItIs(scope, env, e.operands[i])));
      EmitOnce(b, scope, e, x, env);
    } else if (rule.once) {
      EmitOnce(b, scope, e, WholeOperands(b, scope, e, env), env);
    } else if (!rule.map) {
      EmitWhole(b, scope, e, env);
    } else {
      EmitCut(b, scope, k, env, uses);
    }
  }

  void EmitControl(Builder& b, const Scope& scope, size_t k, std::vector<CutValue>& env) {
    switch (scope.fn->eqns()[k].prim->region_use) {
      case RegionUse::kCall: return EmitCall(b, scope, k, env);
      case RegionUse::kBranches: return EmitCond(b, scope, k, env);
      case RegionUse::kCounted: return EmitScan(b, scope, k, env);
      default: return EmitWhile(b, scope, k, env);
    }
  }

  // --- Operations that run on whole arrays ---

  Atoms WholeOperands(Builder& b, const Scope& scope, const Eqn& e, std::vector<CutValue>& env) {
    Atoms x;
    for (size_t i = 0; i < e.operands.size(); ++i)
      x.push_back(Reach(b, scope, env, e, i, Replicated(scope.fn->TypeOf(e.operands[i]).rank())));
    return x;
  }

  void EmitWhole(Builder& b, const Scope& scope, const Eqn& e, std::vector<CutValue>& env) {
    std::vector<FnRef> regions;
    for (const FnRef& r : e.regions) {
      if (!r->FreeAxes().empty() || HasMesh(*r))
        throw UserError(ErrorKind::kUnsupported, e.loc, e.prim->name,
                        ": holds a function for the devices of a mesh, and is itself cut over devices, which is not "
                        "supported: ",
                        OpShardingRuleOf(*e.prim).reason);
      regions.push_back(WithoutConstraints(r));
    }
    const Atoms y = b.Emit(*e.prim, WholeOperands(b, scope, e, env), e.attrs, regions);
    for (size_t i = 0; i < y.size(); ++i) Define(scope, env, e, i, Replicated(b.TypeOf(y[i]).rank()), y[i]);
  }

  static bool HasMesh(const Fn& fn) {
    return AnyFunction(fn, [](const Fn& f) {
      return std::any_of(f.eqns().begin(), f.eqns().end(),
                         [](const Eqn& e) { return e.prim->region_use == RegionUse::kDevices; });
    });
  }

  // The first device does it, with `x`; all have what it gives.
  void EmitOnce(Builder& b, const Scope& scope, const Eqn& e, const Atoms& x, std::vector<CutValue>& env) {
    Strings axes;
    for (const Mesh::Axis& a : mesh().axes) axes.push_back(a.name);
    std::sort(axes.begin(), axes.end());
    Types results;
    for (uint32_t i = 0; i < e.num_results; ++i) results.push_back(scope.fn->TypeOf(Var{e.first_result + i}));
    const Atoms y = DoneByFirstDevice(b, e, x, results, axes);
    for (size_t i = 0; i < y.size(); ++i) {
      const Type& type = results[i];
      const Atom all = GatherStacked(b, y[i], mesh(), axes);
      Ints start(type.rank() + 1, 0), limit = {1}, ones(type.rank() + 1, 1);
      for (const Dim& d : type.dims) limit.push_back(d.value("a callback"));
      Record(b, "all_gather", axes, y[i], e, "the first device's result of " + e.prim->name + " is needed by all");
      Define(scope, env, e, i, Replicated(type.rank()), Reshape(b, weft::Slice(b, all, start, limit, ones), type.dims));
    }
  }

  // Of an emitted collective over `axes` whose operand is x.
  void Record(Builder& b, const char* prim, const Strings& axes, const Atom& x, const Eqn& e, std::string cause) {
    double n = 1;
    for (const std::string& axis : axes) n *= static_cast<double>(mesh().Size(axis));
    const double sent = BytesReceived(prim, static_cast<double>(b.TypeOf(x).Bytes()), n);
    comms().push_back({prim, axes, sent, times_, std::move(cause), e.loc, -1, {}});
  }

  // The parts of a sum side by side, as a function for the devices takes them.
  void EmitParts(Builder& b, const Scope& scope, const Eqn& e, const Strings& names, std::vector<CutValue>& env) {
    const uint32_t axes = LayoutOf(mesh(), Sharding{{}, names}).partial;
    CutValue v = Read(scope, env, e.operands[0]);
    Layout to = Slice(Target(scope, e, 0));
    for (auto& of_dim : to.dims) std::erase_if(of_dim, [&](int a) { return (axes & AxisBit(a)) != 0; });
    const Atom a = InParts(b, v, Stacked(to), axes, "the parts of a sum", e.loc);
    Dims dims = b.TypeOf(a).dims;
    dims.erase(dims.begin());
    Define(scope, env, e, 0, SideBySide(to, axes), Declare(b, Reshape(b, a, dims), SideBySide(to, axes)));
  }

  // A program that was for the devices of the mesh anyway.
  void EmitSpmd(Builder& b, const Scope& scope, const Eqn& e, std::vector<CutValue>& env) {
    const Mesh& own = e.attrs.Get<Mesh>("mesh");
    if (!(own == mesh()))
      throw UserError(ErrorKind::kValue, e.loc, "a function for the devices of ", own.ToString(),
                      " stands in a program that is cut over ", mesh().ToString(), "; give both the same mesh");
    const Shardings &in = e.attrs.Get<Shardings>("in_shardings"), &out = e.attrs.Get<Shardings>("out_shardings");
    Atoms args;
    for (size_t i = 0; i < in.size(); ++i)
      args.push_back(Pvary(b, Reach(b, scope, env, e, i, LayoutOf(mesh(), in[i])), in[i].Axes()));
    RecordOwn(*e.regions[0], times_);
    const Atoms y = b.Inline(*e.regions[0], args);
    for (size_t i = 0; i < out.size(); ++i) Define(scope, env, e, i, LayoutOf(mesh(), out[i]), y[i]);
  }

  // The collectives that a function for the devices has itself.
  void RecordOwn(const Fn& fn, double times) {
    if (fn.FreeAxes().empty()) return;
    for (const Eqn& e : fn.eqns()) {
      const double inside = times * TripsOf(e);
      for (const FnRef& r : e.regions) RecordOwn(*r, inside);
      const std::string& name = e.prim->name;
      if (!e.prim->communicates) continue;
      const Strings& axes = e.attrs.Get<Strings>("axes");
      double n = 1;
      for (const std::string& axis : axes) n *= static_cast<double>(mesh().Size(axis));
      const double sent = BytesReceived(name, static_cast<double>(fn.TypeOf(e.operands[0]).Bytes()), n);
      comms().push_back({name, axes, sent, times, "the program asks for it", e.loc, -1, {}});
    }
  }

  // --- Control flow ---

  // The layout of an operand as it is: no parts of sums.
  Layout AsItIs(const Scope& scope, const std::vector<CutValue>& env, const Atom& a) {
    const CutValue v = Read(scope, env, a);
    for (const auto& [layout, atom] : v.versions) {
      if (layout.partial == 0) return layout;
    }
    return a.is_var() ? scope.vars[a.id()].layout : WithPartial(v.versions[0].first, 0);
  }

  Atom Operand(Builder& b, const Scope& scope, std::vector<CutValue>& env, const Eqn& e, size_t i, const Layout& to) {
    return Declare(b, Reach(b, scope, env, e, i, to), to);
  }

  // All calls of a function take and give what lies alike, and share its region.
  void EmitCall(Builder& b, const Scope& scope, size_t k, std::vector<CutValue>& env) {
    const Eqn& e = scope.fn->eqns()[k];
    const Scope& body = *scope.regions[k][0];
    std::vector<Layout> params, results;
    for (size_t i = 0; i < e.operands.size(); ++i) params.push_back(body.vars[i].layout);
    for (const Atom& a : body.fn->results())
      results.push_back(a.is_var() ? body.vars[a.id()].layout : Replicated(body.fn->TypeOf(a).rank()));
    Atoms x;
    for (size_t i = 0; i < e.operands.size(); ++i) x.push_back(Operand(b, scope, env, e, i, params[i]));
    auto& [region, index] = functions_[&body];
    if (region == nullptr) {
      index = bodies_.size();
      bodies_.emplace_back();
      const auto [caller, times] = std::pair(std::exchange(body_, index), std::exchange(times_, 1));
      region = Region(body, params, results);
      body_ = caller, times_ = times;
      finished_.push_back(index);
    }
    bodies_[body_].calls.emplace_back(index, times_);
    const Atoms y = b.Emit(*e.prim, x, e.attrs, {region});
    for (size_t i = 0; i < y.size(); ++i) Define(scope, env, e, i, results[i], y[i]);
  }

  void EmitCond(Builder& b, const Scope& scope, size_t k, std::vector<CutValue>& env) {
    const Eqn& e = scope.fn->eqns()[k];
    Atoms x = {Reach(b, scope, env, e, 0, Replicated(0))};
    std::vector<Layout> params, results;
    for (size_t i = 1; i < e.operands.size(); ++i) {
      params.push_back(AsItIs(scope, env, e.operands[i]));
      x.push_back(Operand(b, scope, env, e, i, params.back()));
    }
    for (size_t i = 0; i < e.num_results; ++i) results.push_back(Target(scope, e, i));
    std::vector<FnRef> regions;
    for (size_t r = 0; r < e.regions.size(); ++r) regions.push_back(Region(*scope.regions[k][r], params, results));
    const Atoms y = b.Emit(*e.prim, x, e.attrs, regions);
    for (size_t i = 0; i < y.size(); ++i) Define(scope, env, e, i, results[i], y[i]);
  }

  void EmitWhile(Builder& b, const Scope& scope, size_t k, std::vector<CutValue>& env) {
    const Eqn& e = scope.fn->eqns()[k];
    const While loop(e.attrs, e.regions);
    Atoms x;
    std::vector<Layout> params;
    for (size_t i = 0; i < e.operands.size(); ++i) {
      params.push_back(i < loop.carries ? Target(scope, e, i) : AsItIs(scope, env, e.operands[i]));
      x.push_back(Operand(b, scope, env, e, i, params.back()));
    }
    const std::vector<Layout> carries = loop.Carries(params);
    const FnRef cond = Region(*scope.regions[k][0], params, {Replicated(0)});
    const FnRef body = Region(*scope.regions[k][1], params, carries);
    const Atoms y = b.Emit(*e.prim, x, e.attrs, {cond, body});
    for (size_t i = 0; i < y.size(); ++i) Define(scope, env, e, i, carries[i], y[i]);
  }

  void EmitScan(Builder& b, const Scope& scope, size_t k, std::vector<CutValue>& env) {
    const Eqn& e = scope.fn->eqns()[k];
    const Scan loop(*e.prim, e.attrs, e.regions[0]);
    const Scope& body = *scope.regions[k][0];
    Atoms x;
    std::vector<Layout> params, results;
    for (size_t i = 0; i < e.operands.size(); ++i) {
      Layout lies, param;
      if (i >= loop.first_x()) {
        param = body.vars[i].layout;
        lies = Stacked(param);
      } else {
        param = lies = i >= loop.consts ? Target(scope, e, i - loop.consts) : AsItIs(scope, env, e.operands[i]);
      }
      params.push_back(param);
      x.push_back(Operand(b, scope, env, e, i, lies));
    }
    for (size_t i = 0; i < loop.results; ++i)
      results.push_back(i < loop.carries ? Target(scope, e, i) : Slice(WithoutStep(Target(scope, e, i))));
    const double times = times_;
    times_ *= static_cast<double>(loop.length.value("a scan"));
    const FnRef region = Region(body, params, results);
    times_ = times;
    const Atoms y = b.Emit(*e.prim, x, e.attrs, {region});
    for (size_t i = 0; i < y.size(); ++i)
      Define(scope, env, e, i, i < loop.carries ? results[i] : Stacked(results[i]), y[i]);
  }

  // The dimension of steps is whole inside a scan.
  static Layout WithoutStep(Layout l) {
    l.dims[0].clear();
    return l;
  }

  // --- Operations that have a sharding rule ---

  void EmitCut(Builder& b, const Scope& scope, size_t k, std::vector<CutValue>& env, const std::vector<int>& uses) {
    const Eqn& e = scope.fn->eqns()[k];
    const ShardingRule& map = scope.maps[k];
    std::vector<CutValue> x;
    Types global, results;
    for (const Atom& a : e.operands) {
      x.push_back(Read(scope, env, a));
      global.push_back(x.back().type);
    }
    const EquationCuts best = ChooseCuts(reshard_, options_.deterministic, {scope, e, map, x, uses});
    Atoms operands;
    for (size_t i = 0; i < x.size(); ++i) {
      // A number stands beside arrays as it is.
      operands.push_back(e.operands[i].is_literal() && x[i].type.rank() == 0
                             ? e.operands[i]
                             : Reach(b, scope, env, e, i, best.operands[i]));
    }
    std::vector<Strings> cuts;
    for (const auto& axes : best.cuts) {
      auto& names = cuts.emplace_back();
      for (int a : axes) names.push_back(mesh().axes[a].name);
    }
    for (size_t i = 0; i < e.num_results; ++i)
      results.push_back(
          LocalTypeOf(mesh(), best.results[i], scope.fn->TypeOf(Var{e.first_result + static_cast<uint32_t>(i)})));
    Atoms y = EmitLocal({b, e, operands, global, results, map, mesh(), cuts});
    const bool picked = Picks(e, best, x);
    const bool said = best.kept != 0 && std::any_of(x.begin(), x.end(), [](const CutValue& v) { return v.said; });
    for (size_t i = 0; i < y.size(); ++i) {
      Define(scope, env, e, i, best.results[i], Joined(b, e, map, cuts, y[i]));
      env[e.first_result + i].picked = picked && best.results[i].partial != 0;
      env[e.first_result + i].said = said && best.results[i].partial != 0;
    }
  }

  // Whether the results are picked by the equation, or from operands that are.
  static bool Picks(const Eqn& e, const EquationCuts& choice, const std::vector<CutValue>& x) {
    for (size_t i = 0; i < x.size(); ++i) {
      if (choice.operands[i].partial != 0 && !x[i].picked) return false;
    }
    return choice.kept == 0 ? OpShardingRuleOf(*e.prim).picks : !IsSum(*e.prim);
  }

  // What devices hold of something that is not a sum, put together at once.
  Atom Joined(Builder& b, const Eqn& e, const ShardingRule& map, const std::vector<Strings>& cuts, Atom y) {
    for (size_t f = 0; f < map.factors.size(); ++f) {
      const Kind kind = map.factors[f].kind;
      if (cuts[f].empty() || kind == Kind::kPass || kind == Kind::kSum) continue;
      const std::string cause =
          e.prim->name + " runs along a dimension that is cut along " + absl::StrJoin(cuts[f], ".");
      if (kind != Kind::kAgain && !IsBool(b.DTypeOf(y))) {
        const char* prim = kind == Kind::kMax ? "pmax" : "pmin";
        Record(b, prim, cuts[f], y, e, cause);
        y = b.Emit1(FindPrim(prim), {y}, {{"axes", cuts[f]}});
      } else {
        Record(b, "all_gather", cuts[f], y, e, cause);
        y = b.Emit1(*e.prim, {GatherStacked(b, y, mesh(), cuts[f])}, e.attrs.With("dims", Ints{0}));
      }
    }
    return y;
  }

  Resharder reshard_;
  const PartitionOptions& options_;
  std::vector<std::pair<int64_t, Layout>> told_;
  double times_ = 1;  // that what is emitted runs when its body runs
  std::vector<Body> bodies_{1};
  size_t body_ = 0;
  std::vector<size_t> finished_;  // functions, those that are called before their callers
  std::unordered_map<const Scope*, std::pair<FnRef, size_t>> functions_;
};

void CheckLayouts(const Mesh& mesh, const OptionalLayouts& layouts, const Types& types, const char* what) {
  if (!layouts.empty() && layouts.size() != types.size())
    throw ValueError("partition: ", layouts.size(), " layouts for ", types.size(), " ", what, "s");
  for (size_t i = 0; i < layouts.size(); ++i) {
    if (layouts[i])
      LocalType(mesh, ShardingOf(mesh, *layouts[i]), types[i],
                "partition: " + std::string(what) + " " + std::to_string(i));
  }
}

}  // namespace

Partitioned PartitionPrepared(const FnRef& fn, const PartitionOptions& options) {
  const Mesh& mesh = options.mesh;
  const std::shared_ptr<Scope> scope = Propagate(fn, mesh, options.params, options.results);
  Partitioned p;
  for (size_t i = 0; i < fn->params().size(); ++i) p.params.push_back(scope->vars[i].layout);
  for (size_t i = 0; i < fn->results().size(); ++i) {
    const Atom& a = fn->results()[i];
    if (i < options.results.size() && options.results[i])
      p.results.push_back(*options.results[i]);
    else
      p.results.push_back(a.is_var() ? scope->vars[a.id()].layout : Replicated(fn->TypeOf(a).rank()));
  }
  if (mesh.num_devices() == 1 && MeshesOf(*fn).empty()) {
    p.fn = fn;
    return p;
  }
  Partitioner partitioner(options);
  const FnRef body = partitioner.Region(*scope, p.params, p.results);
  p.comms = partitioner.Communications();
  p.told = partitioner.Told();
  Builder b(fn->name());
  Atoms params;
  Shardings in, out;
  for (size_t i = 0; i < fn->params().size(); ++i) {
    const Param& param = fn->params()[i];
    const uint32_t parts = At(options.params_in_parts, i);
    params.push_back(b.Parameter(parts ? SideBySide(mesh, param.type, parts) : param.type, param.name, param.kind));
    in.push_back(ShardingOf(mesh, parts ? SideBySide(p.params[i], parts) : p.params[i]));
  }
  for (size_t i = 0; i < p.results.size(); ++i) {
    const uint32_t parts = At(options.results_in_parts, i);
    out.push_back(ShardingOf(mesh, parts ? SideBySide(p.results[i], parts) : p.results[i]));
  }
  p.fn =
      b.Build(b.Emit(FindPrim("spmd"), params, {{"mesh", mesh}, {"in_shardings", in}, {"out_shardings", out}}, {body}));
  return p;
}

Partitioned Partition(const FnRef& given, const PartitionOptions& options) {
  CheckLayouts(options.mesh, options.params, given->ParamTypes(), "parameter");
  CheckLayouts(options.mesh, options.results, given->ResultTypes(), "result");
  return PartitionPrepared(PreparedToCut(given, options.mesh), options);
}

}  // namespace weft
