#include "lowering/program/explicit_form.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "ir/builder.h"
#include "ir/error.h"
#include "ir/memory_form.h"
#include "ir/ops.h"
#include "ir/prim.h"
#include "lowering/memory/assignment.h"
#include "lowering/memory/liveness.h"
#include "lowering/program/program.h"
#include "lowering/schedule/block_trace.h"
#include "lowering/schedule/schedule.h"
#include "transforms/opt/pass.h"

namespace weft {
namespace {

using Step = Schedule::Step;
using Place = Assignment::Buffer::Place;

[[noreturn]] void Refuse(const std::string& what, Loc loc = {}) {
  throw Error(ErrorKind::kUnsupported, "explicit-alloc: " + what + " have no explicit memory form", loc);
}

// Where a tape is made, if one is.
std::optional<Loc> MakerOfTape(const Fn& fn) {
  std::optional<Loc> at;
  AnyFunction(fn, [&](const Fn& f) {
    for (const Eqn& e : f.eqns()) {
      for (uint32_t r = 0; r < e.num_results; ++r) {
        if (f.TypeOf(e.result(static_cast<int>(r))).dtype == DType::kTape) at = e.loc;
      }
    }
    return at.has_value();
  });
  return at;
}

// What is known while a body is written.
struct Scope {
  Builder& b;
  const BlockTrace& trace;
  Atoms params;                 // of the body
  std::map<int, Atom> atoms;    // by value of the schedule: what it is now
  std::map<int, Atom> holders;  // by buffer: the last that was computed into it
  std::set<int> own;            // buffers that were allocated in this body
};

class Writer {
 public:
  explicit Writer(const FnRef& fn) : fn_(fn) {
    schedule_ = BuildSchedule(*fn, FusionPolicy{}, {}, &trace_);
    assignment_ = AssignBuffers(schedule_, FindLiveness(schedule_));
    program_ = MakeProgram(*fn, schedule_, assignment_);
  }

  FnRef Write() {
    Builder b(fn_->name());
    Scope s{b, trace_, {}, {}, {}, {}};
    for (size_t i = 0; i < fn_->params().size(); ++i) {
      const Param& p = fn_->params()[i];
      s.params.push_back(b.Parameter(p.type, p.name, p.kind));
      Holds(s, trace_.params[i], s.params.back());
    }
    const Atoms results = Body(s, schedule_.frames[0].body);
    return std::move(b).Build(results, /*keep_dead=*/true);
  }

 private:
  // ---- Places ------------------------------------------------------------------------------------------------------

  int BufferOf(int value) const { return assignment_.frames[0].buffer[static_cast<size_t>(value)]; }
  const Assignment::Buffer& At(int buffer) const { return assignment_.frames[0].buffers[static_cast<size_t>(buffer)]; }
  void Holds(Scope& s, int value, const Atom& a) {
    s.atoms[value] = a;
    if (At(BufferOf(value)).place != Place::kConstant) s.holders[BufferOf(value)] = a;
  }

  // What is computed into for `value`: what has its memory now, or an allocation.
  Atom MemoryFor(Scope& s, int value, const Type& type) {
    const int buffer = BufferOf(value);
    if (const auto held = s.holders.find(buffer); held != s.holders.end()) return held->second;
    const Assignment::Buffer& at = At(buffer);
    WEFT_CHECK(at.place == Place::kArena || at.place == Place::kResult) << "explicit-alloc: memory of nobody's";
    int64_t offset = at.index;
    const int slot = program_.slots[0][static_cast<size_t>(value)];
    if (at.place == Place::kArena) {
      const auto& slots = program_.artifact.slots;
      // Nobody names what has no elements.
      offset =
          slot < 0 ? 0 : program_.artifact.buffers[static_cast<size_t>(slots[static_cast<size_t>(slot)].index)].offset;
    }
    const Attrs attrs = {{"at", offset},
                         {"dtype", type.dtype},
                         {"place", std::string(at.place == Place::kArena ? "arena" : "result")},
                         {"shape", type.dims}};
    const Atom made = s.b.Emit1(FindPrim("allocate"), {}, attrs);
    if (at.place == Place::kArena && !(at.bytes == Dim(0))) s.own.insert(buffer);
    return s.holders[buffer] = made;
  }

  // Whether a result of the body lies there, which whoever runs it gives back.
  bool IsLeft(const Scope& s, int buffer) const {
    return std::any_of(s.trace.dest.begin(), s.trace.dest.end(), [&](int v) { return BufferOf(v) == buffer; });
  }
  void FreeUpTo(Scope& s, int position) {
    for (auto it = s.own.begin(); it != s.own.end();) {
      if (At(*it).last > position || IsLeft(s, *it)) {
        ++it;
        continue;
      }
      s.b.Emit(FindPrim("free"), {s.holders.at(*it)});
      s.holders.erase(*it);
      it = s.own.erase(it);
    }
  }

  // ---- Values ------------------------------------------------------------------------------------------------------

  // A value that stands in memory, as an array of that type.
  static Atom Shaped(Scope& s, const Atom& a, const Type& type) {
    if (s.b.TypeOf(a).dims == type.dims) return a;
    return Reshape(s.b, a, type.dims);
  }
  Atom OfValue(Scope& s, int value) {
    if (const auto it = s.atoms.find(value); it != s.atoms.end()) return it->second;
    const Schedule::Value& v = schedule_.frames[0].values[static_cast<size_t>(value)];
    WEFT_CHECK(v.kind == Schedule::Value::Kind::kConstant)
        << "explicit-alloc: value " << value << " is read before it is computed";
    return Atom(v.constant);
  }
  // An operand of an operation that reads buffers.
  Atom Operand(Scope& s, const Atom& a) {
    if (a.is_literal()) return a;
    const Fn& fn = *s.trace.fn;
    if (a.id() < s.params.size()) return s.params[a.id()];
    const BlockPlan::Value& v = s.trace.plan.values[a.id()];
    if (v.how != BlockPlan::How::kAlias) return OfValue(s, s.trace.values[a.id()]);
    const Eqn& e = fn.eqns()[static_cast<size_t>(v.eqn)];
    return s.b.Clone(e, {Operand(s, e.operands[0])})[0];
  }

  // ---- Steps -------------------------------------------------------------------------------------------------------

  Atoms Body(Scope& s, const Schedule::Block& block) {
    const std::vector<BlockTrace::Unit>& units = s.trace.units;
    for (size_t i = 0; i < units.size(); ++i) {
      const size_t end = i + 1 < units.size() ? units[i + 1].first_step : s.trace.first_copy;
      // Without a step where nothing is computed, or no elements.
      WriteUnit(s, units[i], absl::MakeConstSpan(block.steps).subspan(units[i].first_step, end - units[i].first_step));
      if (end > 0) FreeUpTo(s, block.steps[end - 1].last);
    }
    for (size_t i = s.trace.first_copy; i < block.steps.size(); ++i) {
      Copy(s, block.steps[i]);
      FreeUpTo(s, block.steps[i].last);
    }
    Atoms results;
    const Types types = s.trace.fn->ResultTypes();
    for (size_t i = 0; i < types.size(); ++i) {
      const int to = s.trace.dest[i];
      if (!s.atoms.contains(to)) CopyTo(s, to, Operand(s, s.trace.fn->results()[i]));  // no elements, so no step
      results.push_back(Shaped(s, OfValue(s, to), types[i]));
    }
    return results;
  }

  void Copy(Scope& s, const Step& step) {
    const int to = step.uses[0].value, from = step.uses[1].value;
    const Atom source = OfValue(s, from);
    if (BufferOf(to) == BufferOf(from)) {
      s.atoms[to] = source;
      return;
    }
    CopyTo(s, to, source);
  }

  void CopyTo(Scope& s, int to, const Atom& source) {
    const Type type = s.b.TypeOf(source);
    const Atom memory = MemoryFor(s, to, type);
    Builder copy("copy");
    copy.Parameter(s.b.TypeOf(memory));
    Atoms operands = {memory};
    Atom copied = source;
    if (source.is_var()) {
      copied = copy.Parameter(type);
      operands.push_back(source);
    }
    Holds(s, to, s.b.Emit(FindPrim("into"), operands, {}, {copy.Build({copied})})[0]);
  }

  void WriteUnit(Scope& s, const BlockTrace::Unit& traced, absl::Span<const Step> steps) {
    const BlockPlan::Unit& unit = s.trace.plan.units[static_cast<size_t>(traced.unit)];
    const Fn& fn = *s.trace.fn;
    const Eqn& last = fn.eqns()[static_cast<size_t>(unit.opaque >= 0 ? unit.opaque : unit.members.back())];
    const ScopedLoc loc(s.b, last.loc);
    if (unit.opaque >= 0 && !last.regions.empty()) return WriteRegions(s, traced, last, steps);
    std::vector<uint32_t> results;
    if (unit.opaque >= 0) {
      for (uint32_t r = 0; r < last.num_results; ++r) results.push_back(last.first_result + r);
    } else {
      for (const int m : unit.members) {
        const uint32_t v = fn.eqns()[static_cast<size_t>(m)].first_result;
        if (s.trace.values[v] >= 0) results.push_back(v);
      }
    }
    if (steps.empty() && (results.empty() || fn.TypeOf(Var{results[0]}).size().value() > 0)) return;
    AllocateScratch(s, steps);
    if (results.empty()) {
      Atoms operands;
      for (const Atom& a : last.operands) operands.push_back(Operand(s, a));
      s.b.Clone(last, operands);
      return;
    }
    Builder region(last.prim->name);
    Atoms operands, inside;
    for (const uint32_t v : results) {
      operands.push_back(MemoryFor(s, s.trace.values[v], fn.TypeOf(Var{v})));
      inside.push_back(region.Parameter(s.b.TypeOf(operands.back())));
    }
    Extraction extract(*this, s, region, operands, inside, results);
    Atoms computed;
    for (const uint32_t v : results) computed.push_back(extract.Of(Atom(Var{v})));
    const Atoms out = s.b.Emit(FindPrim("into"), operands, {}, {region.Build(computed)});
    for (size_t i = 0; i < results.size(); ++i) Holds(s, s.trace.values[results[i]], out[i]);
  }

  // Memory that a step needs besides its operands and results.
  void AllocateScratch(Scope& s, absl::Span<const Step> steps) {
    const std::vector<int>& known = s.trace.values;
    for (const Step& step : steps) {
      for (const Schedule::Use& use : step.uses) {
        const Schedule::Value& v = schedule_.frames[0].values[static_cast<size_t>(use.value)];
        if (v.kind != Schedule::Value::Kind::kTemporary || s.atoms.contains(use.value) ||
            std::find(known.begin(), known.end(), use.value) != known.end() || s.holders.contains(BufferOf(use.value)))
          continue;
        MemoryFor(s, use.value, Type{DType::kU8, {v.bytes}, {}});
      }
    }
  }

  // What a unit computes, as a function of what it reads.
  class Extraction {
   public:
    Extraction(Writer& writer, Scope& s, Builder& region, Atoms& operands, Atoms& inside,
               const std::vector<uint32_t>& results)
        : writer_(writer),
          s_(s),
          region_(region),
          operands_(operands),
          inside_(inside),
          results_(results.begin(), results.end()) {}

    Atom Of(const Atom& a) {
      if (a.is_literal()) return a;
      if (const auto it = made_.find(a.id()); it != made_.end()) return it->second;
      const Fn& fn = *s_.trace.fn;
      const bool is_param = a.id() < s_.params.size();
      if (is_param || (s_.trace.values[a.id()] >= 0 && !results_.contains(a.id()))) {
        const Atom outside = is_param ? s_.params[a.id()] : writer_.OfValue(s_, s_.trace.values[a.id()]);
        return made_[a.id()] = Input(outside, fn.TypeOf(a));
      }
      const Eqn& e = fn.eqns()[static_cast<size_t>(DefiningEqn(a.id()))];
      Atoms in;
      for (const Atom& operand : e.operands) in.push_back(Of(operand));
      const ScopedLoc loc(region_, e.loc);
      const Atoms out = region_.Clone(e, std::move(in));
      for (uint32_t r = 0; r < e.num_results; ++r) made_[e.first_result + r] = out[r];
      return made_.at(a.id());
    }

   private:
    Atom Input(const Atom& outside, const Type& type) {
      if (outside.is_literal()) return outside;
      const auto there = std::find(operands_.begin(), operands_.end(), outside);
      Atom in;
      if (there != operands_.end()) {
        in = inside_[static_cast<size_t>(there - operands_.begin())];
      } else {
        operands_.push_back(outside);
        in = region_.Parameter(s_.b.TypeOf(outside));
        inside_.push_back(in);
      }
      return region_.TypeOf(in).dims == type.dims ? in : Reshape(region_, in, type.dims);
    }
    int DefiningEqn(uint32_t var) {
      if (defining_.empty()) defining_ = DefiningEqns(*s_.trace.fn);
      return defining_[var];
    }

    Writer& writer_;
    Scope& s_;
    Builder& region_;
    Atoms &operands_, &inside_;
    const std::set<uint32_t> results_;
    std::map<uint32_t, Atom> made_;
    std::vector<int> defining_;
  };

  // ---- Branches and loops ------------------------------------------------------------------------------------------

  void WriteRegions(Scope& s, const BlockTrace::Unit& traced, const Eqn& e, absl::Span<const Step> steps) {
    const bool branches = e.prim->region_use == RegionUse::kBranches;
    const bool counted = e.prim->region_use == RegionUse::kCounted;
    if (!branches && !counted && e.prim->region_use != RegionUse::kUncounted)
      Refuse("programs with '" + e.prim->name + "'", e.loc);
    for (const Step& step : steps.first(steps.size() - 1)) {
      if (step.kind != Step::Kind::kCopy) Refuse("loops that record on tapes", e.loc);
      Copy(s, step);
    }
    const Step& step = steps.back();
    const size_t carries = branches ? 0 : static_cast<size_t>(e.attrs.GetInt("num_carry"));
    const size_t consts = counted ? static_cast<size_t>(e.attrs.GetInt("num_consts")) : 0;
    const std::vector<int>& values = s.trace.values;
    const size_t first = branches ? 1 : 0;  // of the operands that are parameters of the regions
    const auto is_carry = [&](size_t i) { return i >= consts && i < consts + carries; };
    // What no region reads need not be there any more.
    std::vector<bool> kept(e.operands.size(), false);
    for (const FnRef& region : e.regions) {
      const std::vector<int> uses = region->UseCounts();
      for (size_t i = 0; i < kept.size(); ++i) kept[i] = kept[i] || i < first || is_carry(i) || uses[i - first] > 0;
    }
    Atoms operands;
    Attrs attrs = e.attrs;
    if (counted)
      attrs.Set("num_consts",
                static_cast<int64_t>(std::count(kept.begin(), kept.begin() + static_cast<int64_t>(consts), true)));
    if (branches) {
      // Known before the branches run, which may take its memory.
      operands.push_back(Operand(s, e.operands[0]));
      if (operands[0].is_var()) operands[0] = s.b.Emit1(FindPrim("load"), operands);
      FreeUpTo(s, step.first);
    }
    for (size_t i = first; i < e.operands.size(); ++i) {
      if (!kept[i]) continue;
      operands.push_back(
          is_carry(i) ? Shaped(s, OfValue(s, values[e.first_result + i - consts]), s.trace.fn->TypeOf(e.operands[i]))
                      : Operand(s, e.operands[i]));
    }
    // Memory of results that no operand has. Branches take memory of the arena when they need it, and leave it.
    const BlockTrace& body = traced.bodies.back();
    std::vector<int> places;  // values of the bodies, whose memory further parameters are
    Types place_types;
    for (uint32_t r = static_cast<uint32_t>(carries); r < e.num_results; ++r) {
      const int buffer = BufferOf(body.dest[r]), value = values[e.first_result + r];
      bool has = false;
      for (size_t p = 0; p < body.params.size(); ++p)
        has = has || (kept[p + first] && BufferOf(body.params[p]) == buffer);
      for (const int p : places) has = has || BufferOf(p) == buffer;
      if (branches && (has || (At(buffer).place == Place::kArena && !s.holders.contains(buffer)))) continue;
      operands.push_back(MemoryFor(s, value, s.trace.fn->TypeOf(Var{e.first_result + r})));
      places.push_back(body.dest[r]);
      place_types.push_back(branches ? s.b.TypeOf(operands.back()) : body.fn->ResultTypes()[r]);
    }
    std::vector<FnRef> regions;
    for (size_t i = 0; i < traced.bodies.size(); ++i) {
      const BlockTrace& inner = traced.bodies[i];
      Builder b(inner.fn->name());
      Scope scope{b, inner, {}, {}, {}, {}};
      for (size_t p = 0; p < inner.params.size(); ++p) {
        scope.params.emplace_back();
        if (!kept[p + first]) continue;
        scope.params.back() = b.Parameter(inner.fn->params()[p].type, inner.fn->params()[p].name);
        Holds(scope, inner.params[p], scope.params.back());
      }
      const bool computes = branches || i + 1 == traced.bodies.size();
      for (size_t p = 0; computes && p < places.size(); ++p)
        scope.holders[BufferOf(places[p])] = b.Parameter(place_types[p]);
      const Atoms results = Body(scope, step.blocks[i]);
      regions.push_back(b.Build(results, /*keep_dead=*/true));
    }
    const Atoms out = s.b.Emit(*e.prim, operands, attrs, regions);
    for (uint32_t r = 0; r < e.num_results; ++r) {
      const int buffer = BufferOf(values[e.first_result + r]);
      if (At(buffer).place == Place::kArena && !s.holders.contains(buffer) && !(At(buffer).bytes == Dim(0)))
        s.own.insert(buffer);
      Holds(s, values[e.first_result + r], out[r]);
    }
  }

  const FnRef fn_;
  BlockTrace trace_;
  Schedule schedule_;
  Assignment assignment_;
  Program program_;
};

}  // namespace

FnRef ExplicitMemory(const FnRef& fn) {
  if (!fn->Symbols().empty()) Refuse("programs of symbolic sizes");
  if (const std::optional<Loc> at = MakerOfTape(*fn)) Refuse("loops that record on tapes", *at);
  const FnRef flat = WithoutCalls(fn, Functions::kInlined);
  const FnRef made = Writer(flat).Write();
  VerifyMemory(*made);
  return made;
}

void RegisterExplicitMemory() {
  static std::once_flag once;
  std::call_once(once, [] {
    RegisterPass({"explicit-alloc",
                  "Say where every value lies: allocations, what is computed into them together, what is given back.",
                  [](FnRef fn) { return ExplicitMemory(fn); }});
  });
}

}  // namespace weft
