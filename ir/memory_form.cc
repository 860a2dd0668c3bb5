#include "ir/memory_form.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "ir/error.h"
#include "ir/prim.h"
#include "ir/prim_table.h"

namespace weft {
namespace {

// What an operation does with memory itself.
enum class Role : uint8_t { kNone, kAllocates, kFrees, kLoads, kComputes };
Role RoleOf(const Prim& prim) {
  static const auto& roles = *new PrimTable<Role>{
      {"allocate", Role::kAllocates}, {"free", Role::kFrees}, {"load", Role::kLoads}, {"into", Role::kComputes}};
  return roles[prim];
}

int64_t Bytes(const Type& t) { return t.size().value() * ByteWidth(t.dtype); }

std::string Named(const Eqn& e) { return "'" + e.prim->name + "'" + (e.loc ? " at " + e.loc.ToString() : ""); }

// Of one function: what every value lies in, and what has become of that.
class Checker {
 public:
  // Where values lie. Parameters of a region stand for memory of whoever runs it.
  struct Memory {
    enum class Kind : uint8_t { kArena, kResult, kParam, kNone } kind = Kind::kNone;
    int64_t at = 0, bytes = 0;  // of the arena; where that is not known, nothing
    int64_t index = 0;          // kResult, kParam: which
    const Eqn* made = nullptr;
    bool freed = false;
    bool lost = false;  // a region has taken it for something of its own: nobody reads what was there any more
  };
  // What a region has done to its parameters' memory, and where its results lie.
  struct Effects {
    std::vector<bool> read, written;             // by parameter; read: before anything is computed into it
    std::vector<std::optional<size_t>> lies_in;  // by result: the parameter; or else
    std::vector<std::optional<std::pair<int64_t, int64_t>>> left;  // by result: memory of the arena, from, to
    std::vector<std::pair<int64_t, int64_t>> taken;                // of the arena: from, to
  };

  using Range = std::pair<int64_t, int64_t>;  // of the arena: from, to

  // `params`: what of the arena the parameters of a region lie in.
  Checker(const Fn& fn, bool is_program, const std::vector<Range>& params = {})
      : fn_(fn), is_program_(is_program), lies_in_(fn.num_vars(), -1), ended_(fn.num_vars(), nullptr) {
    empty_.assign(fn.num_vars(), false);
    for (size_t i = 0; i < fn.params().size(); ++i) {
      lies_in_[i] = static_cast<int>(memories_.size());
      const Range range = i < params.size() ? params[i] : Range();
      memories_.push_back(
          {Memory::Kind::kParam, range.first, range.second - range.first, static_cast<int64_t>(i), nullptr});
    }
    effects_.read.assign(fn.params().size(), false);
    effects_.written.assign(fn.params().size(), false);
  }

  Effects Run() {
    for (const Eqn& e : fn_.eqns()) {
      at_ = &e;
      switch (RoleOf(*e.prim)) {
        case Role::kAllocates: Allocate(e); break;
        case Role::kFrees: Free(e); break;
        case Role::kLoads: Load(e); break;
        case Role::kComputes: Into(e); break;
        case Role::kNone:
          switch (e.prim->region_use) {
            case RegionUse::kBranches:
            case RegionUse::kCounted:
            case RegionUse::kUncounted: WithRegions(e); break;
            default: Elsewhere(e);
          }
      }
    }
    at_ = nullptr;
    Finish();
    return effects_;
  }

 private:
  [[noreturn]] void Fail(const std::string& what) const {
    throw Error(ErrorKind::kValue, "explicit memory: in '" + fn_.name() + "', " + what, at_ ? at_->loc : Loc());
  }
  std::string ValueName(const Atom& a) const {
    if (!a.is_var()) return "a literal";
    if (a.id() < fn_.params().size()) return "parameter " + std::to_string(a.id());
    for (const Eqn& e : fn_.eqns()) {
      if (a.id() >= e.first_result && a.id() < e.first_result + e.num_results) return "the value of " + Named(e);
    }
    return "a value";
  }

  void Read(const Atom& a) {
    if (!a.is_var()) return;
    if (const Eqn* end = ended_[a.id()])
      Fail(Named(*at_) + " reads " + ValueName(a) + ", whose memory " + Named(*end) + " has taken");
    if (empty_[a.id()]) Fail(Named(*at_) + " reads " + ValueName(a) + ", into which nothing has been computed");
    const Memory& m = MemoryOf(a);
    if (m.kind == Memory::Kind::kParam && !effects_.written[static_cast<size_t>(m.index)])
      effects_.read[static_cast<size_t>(m.index)] = true;
  }
  Memory& MemoryOf(const Atom& a) { return memories_[static_cast<size_t>(lies_in_[a.id()])]; }
  void Lies(uint32_t var, int memory, bool empty = false) {
    lies_in_[var] = memory;
    empty_[var] = empty;
  }
  // Every value in it is gone.
  void End(int memory, const Eqn& e) {
    for (size_t v = 0; v < lies_in_.size(); ++v) {
      if (lies_in_[v] == memory && ended_[v] == nullptr) ended_[v] = &e;
    }
  }
  // Somebody computes into the memory of `a`.
  int Take(const Atom& a, const Eqn& e) {
    if (!a.is_var()) Fail(Named(e) + " computes into a literal");
    const int memory = lies_in_[a.id()];
    Memory& m = memories_[static_cast<size_t>(memory)];
    if (const Eqn* end = ended_[a.id()]) {
      if (!m.lost || LiveIn(m.at, m.at + m.bytes) != nullptr)
        Fail(Named(e) + " computes into the memory of " + ValueName(a) + ", which " + Named(*end) + " has taken");
      m.lost = false;  // what took it is gone
    }
    if (m.kind == Memory::Kind::kParam) {
      if (is_program_) Fail(Named(e) + " computes into " + ValueName(a) + ", which is not the program's to write");
      effects_.written[static_cast<size_t>(m.index)] = true;
    }
    if (m.kind == Memory::Kind::kNone) Fail(Named(e) + " computes into " + ValueName(a) + ", which has no memory");
    End(memory, e);
    return memory;
  }

  void Allocate(const Eqn& e) {
    const Type& type = fn_.TypeOf(Var{e.first_result});
    if (!type.is_static()) Fail(Named(e) + " has the size " + ToString(Types{type}) + "; sizes must be known");
    const bool arena = e.attrs.Get<std::string>("place") == "arena";
    Memory m{Memory::Kind::kResult, 0, 0, e.attrs.GetInt("at"), &e};
    if (arena) {
      m = {Memory::Kind::kArena, m.index, Bytes(type), 0, &e};
      if (const Memory* other = LiveIn(m.at, m.at + m.bytes))
        Fail(Named(e) + " takes bytes " + std::to_string(m.at) + " to " + std::to_string(m.at + m.bytes) +
             " of the arena, of which " + Named(*other->made) + " has " + std::to_string(other->at) + " to " +
             std::to_string(other->at + other->bytes));
      Lose(m.at, m.at + m.bytes, e);
      effects_.taken.emplace_back(m.at, m.at + m.bytes);
    } else if (!is_program_) {
      Fail(Named(e) + " takes a result of the program inside of a region; it must be an operand of that");
    }
    Lies(e.first_result, static_cast<int>(memories_.size()), true);
    memories_.push_back(m);
  }

  static bool Meets(const Memory& m, int64_t from, int64_t to) {
    return !m.freed && !m.lost && m.at < to && from < m.at + m.bytes;
  }
  // What was allocated here and has some of these bytes.
  const Memory* LiveIn(int64_t from, int64_t to) const {
    for (const Memory& m : memories_) {
      if (m.kind == Memory::Kind::kArena && Meets(m, from, to)) return &m;
    }
    return nullptr;
  }
  // Somebody takes these bytes: what anything else has of them is gone.
  void Lose(int64_t from, int64_t to, const Eqn& e) {
    for (size_t m = 0; m < memories_.size(); ++m) {
      if (!Meets(memories_[m], from, to)) continue;
      End(static_cast<int>(m), e);
      memories_[m].lost = true;
    }
  }

  void Free(const Eqn& e) {
    const Atom& a = e.operands[0];
    if (!a.is_var()) Fail(Named(e) + " gives back a literal");
    Memory& m = MemoryOf(a);
    if (m.kind != Memory::Kind::kArena)
      Fail(Named(e) + " gives back " + ValueName(a) + ", which does not lie in memory that was allocated here");
    if (m.freed) Fail(Named(e) + " gives back the memory of " + ValueName(a) + " a second time");
    // A region may have taken it for something of its own: nobody reads the value any more then.
    for (uint32_t v = 0; v < fn_.num_vars(); ++v) {
      if (v != a.id() && lies_in_[v] == lies_in_[a.id()] && ended_[v] == nullptr && ended_[a.id()] != nullptr)
        Fail(Named(e) + " gives back the memory of " + ValueName(a) + ", in which " + ValueName(Atom(Var{v})) +
             " lies");
    }
    m.freed = true;
    End(lies_in_[a.id()], e);
  }

  void Load(const Eqn& e) {
    Read(e.operands[0]);
    Lies(e.first_result, static_cast<int>(memories_.size()));
    memories_.push_back({Memory::Kind::kNone, 0, 0, 0, &e});
  }

  void Into(const Eqn& e) {
    for (size_t i = 0; i < e.operands.size(); ++i) {
      // The region may not read what it has to compute first.
      const bool unread = i < e.num_results && !Reads(*e.regions[0], i);
      if (!unread) Read(e.operands[i]);
    }
    std::vector<int> taken;
    for (uint32_t r = 0; r < e.num_results; ++r) {
      const int memory = Take(e.operands[r], e);
      if (std::find(taken.begin(), taken.end(), memory) != taken.end())
        Fail(Named(e) + " computes two results into the same memory");
      taken.push_back(memory);
    }
    for (uint32_t r = 0; r < e.num_results; ++r) Lies(e.first_result + r, taken[r]);
  }
  static bool Reads(const Fn& fn, size_t param) {
    const std::vector<int> uses = fn.UseCounts();
    return uses[param] > 0;
  }

  // Operations whose results are no arrays of their own.
  void Elsewhere(const Eqn& e) {
    for (const Atom& a : e.operands) Read(a);
    if (e.num_results == 0) return;
    const bool same_bytes = e.num_results == 1 && e.prim->traffic == Traffic::kNone && e.operands.size() == 1 &&
                            e.operands[0].is_var() && e.regions.empty() &&
                            Bytes(fn_.TypeOf(e.operands[0])) == Bytes(fn_.TypeOf(Var{e.first_result}));
    if (!same_bytes) Fail(Named(e) + " has no memory to compute into; it must stand in the region of an 'into'");
    Lies(e.first_result, lies_in_[e.operands[0].id()]);
  }

  void WithRegions(const Eqn& e) {
    const bool branches = e.prim->region_use == RegionUse::kBranches;
    const bool counted = e.prim->region_use == RegionUse::kCounted;
    for (const Atom& a : e.operands) {
      if (fn_.TypeOf(a).dtype == DType::kTape) Fail(Named(e) + " works on tapes, which have no explicit memory form");
    }
    std::vector<Effects> done;
    // A loop's second trip finds what the first one has left.
    const size_t offset = branches ? 1 : 0;
    std::vector<Range> ranges;
    for (size_t i = offset; i < e.operands.size(); ++i) {
      const Memory m = e.operands[i].is_var() ? MemoryOf(e.operands[i]) : Memory();
      ranges.emplace_back(m.at, m.at + m.bytes);
    }
    for (const FnRef& region : e.regions) done.push_back(Checker(*region, false, ranges).Run());
    const auto carries = branches ? size_t{0} : static_cast<size_t>(e.attrs.GetInt("num_carry"));
    const size_t consts = counted ? static_cast<size_t>(e.attrs.GetInt("num_consts")) : 0;
    std::vector<bool> written(e.operands.size(), false);
    for (size_t i = 0; i < e.operands.size(); ++i) {
      bool read = i < offset;
      for (const Effects& d : done) {
        if (i < offset || i - offset >= d.read.size()) continue;
        written[i] = written[i] || d.written[i - offset];
        read = read || d.read[i - offset];
      }
      if (read) Read(e.operands[i]);
    }
    if (!branches) {
      const Effects& body = done.back();
      for (size_t i = 0; i < e.operands.size(); ++i) {
        const bool is_const = counted ? i < consts : i >= carries;
        if (is_const && i < body.written.size() && body.written[i])
          Fail(Named(e) + " computes in its body into operand " + std::to_string(i) + ", which the next trip reads");
      }
      for (size_t k = 0; k < carries; ++k) {
        if (body.lies_in[k] != consts + k)
          Fail(Named(e) + ": carry " + std::to_string(k) +
               " of its body does not lie in the memory of the carry that it replaces");
      }
    }
    // What regions take of the arena may be what a value had that nobody reads any more.
    for (const Effects& d : done) {
      for (const auto& [from, to] : d.taken) {
        for (const Atom& a : e.operands) {
          if (!branches && a.is_var() && Meets(MemoryOf(a), from, to))
            Fail(Named(e) + " takes memory in its body in which " + ValueName(a) + " lies, which every trip reads");
        }
        Lose(from, to, e);
        effects_.taken.emplace_back(from, to);
      }
    }
    // Where results lie: in the memory of an operand, or in some that the branches have left.
    std::vector<int> results;
    for (uint32_t r = 0; r < e.num_results; ++r) {
      std::optional<size_t> operand;
      std::optional<std::pair<int64_t, int64_t>> left;
      if (!branches && r < carries) {
        operand = consts + r;
      } else {
        for (const Effects& d : done) {
          if (!branches && &d != &done.back()) continue;
          const bool first = !operand && !left;
          const std::optional<size_t> lies = d.lies_in[r] ? std::optional(*d.lies_in[r] + offset) : std::nullopt;
          if ((!lies && !d.left[r]) || (!first && (lies != operand || d.left[r] != left)))
            Fail(Named(e) + ": result " + std::to_string(r) + " does not lie in one place");
          operand = lies;
          left = d.left[r];
        }
      }
      if (left && !branches) Fail(Named(e) + ": result " + std::to_string(r) + " does not lie in an operand");
      if (left) {
        results.push_back(static_cast<int>(memories_.size()));
        memories_.push_back({Memory::Kind::kArena, left->first, left->second - left->first, 0, &e});
        continue;
      }
      const Atom& a = e.operands[*operand];
      if (!a.is_var()) Fail(Named(e) + ": result " + std::to_string(r) + " lies in a literal");
      results.push_back(lies_in_[a.id()]);
      written[*operand] = true;
    }
    for (size_t i = offset; i < e.operands.size(); ++i) {
      if (written[i]) Take(e.operands[i], e);
    }
    for (uint32_t r = 0; r < e.num_results; ++r) Lies(e.first_result + r, results[r]);
  }

  void Finish() {
    std::vector<bool> returned(memories_.size(), false);
    for (size_t r = 0; r < fn_.results().size(); ++r) {
      const Atom& a = fn_.results()[r];
      std::optional<size_t> param;
      std::optional<std::pair<int64_t, int64_t>> left;
      if (a.is_var()) {
        if (const Eqn* end = ended_[a.id()])
          Fail("result " + std::to_string(r) + " is " + ValueName(a) + ", whose memory " + Named(*end) + " has taken");
        if (empty_[a.id()])
          Fail("result " + std::to_string(r) + " is " + ValueName(a) + ", into which nothing has been computed");
        const Memory& m = MemoryOf(a);
        returned[static_cast<size_t>(lies_in_[a.id()])] = true;
        if (m.kind == Memory::Kind::kParam) param = static_cast<size_t>(m.index);
        if (m.kind == Memory::Kind::kArena) left = {m.at, m.at + m.bytes};
        if (is_program_ && m.kind == Memory::Kind::kArena)
          Fail("result " + std::to_string(r) + " lies in the arena, which ends with the program");
        if (is_program_ && m.kind == Memory::Kind::kResult && m.index != static_cast<int64_t>(r))
          Fail("result " + std::to_string(r) + " lies in the memory of result " + std::to_string(m.index));
      }
      effects_.lies_in.push_back(param);
      effects_.left.push_back(left);
    }
    for (size_t m = 0; m < memories_.size(); ++m) {
      const Memory& memory = memories_[m];
      if (memory.kind == Memory::Kind::kArena && memory.bytes > 0 && !memory.freed && !memory.lost && !returned[m])
        Fail("nobody gives back the memory of " + Named(*memories_[m].made));
    }
  }

  const Fn& fn_;
  const bool is_program_;
  const Eqn* at_ = nullptr;
  std::vector<Memory> memories_;
  std::vector<int> lies_in_;       // by variable: which memory
  std::vector<const Eqn*> ended_;  // by variable: what took its memory
  std::vector<bool> empty_;        // by variable: allocated, and nothing computed into it
  Effects effects_;
};

}  // namespace

bool IsInMemoryForm(const Fn& fn) {
  return AnyFunction(fn, [](const Fn& f) {
    return std::any_of(f.eqns().begin(), f.eqns().end(),
                       [](const Eqn& e) { return RoleOf(*e.prim) == Role::kAllocates; });
  });
}

void VerifyMemory(const Fn& fn) { Checker(fn, true).Run(); }

int64_t ArenaBytes(const Fn& fn) {
  int64_t most = 0;
  AnyFunction(fn, [&](const Fn& f) {
    for (const Eqn& e : f.eqns()) {
      if (RoleOf(*e.prim) == Role::kAllocates && e.attrs.Get<std::string>("place") == "arena")
        most = std::max(most, e.attrs.GetInt("at") + Bytes(f.TypeOf(Var{e.first_result})));
    }
    return false;
  });
  return most;
}

}  // namespace weft
