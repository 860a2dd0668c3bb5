#include "lowering/program/program.h"

#include <algorithm>
#include <map>
#include <optional>
#include <sstream>
#include <utility>

#include "ir/analysis/size_conditions.h"
#include "ir/prim.h"
#include "lowering/abi/steps.h"

namespace weft {
namespace {

using Buffer = Assignment::Buffer;
using Place = Assignment::Buffer::Place;

// Fields of steps (lowering/abi/steps.h) while a program is made: slots, and sizes that may depend on symbols.
struct InProgram {
  using Place = int;
  using Number = Dim;
  using Places = std::vector<int>;
  using Numbers = std::vector<Dim>;
  template <class T>
  using List = std::vector<T>;
};

class Maker {
 public:
  Maker(const Fn& fn, Schedule schedule, const Assignment& assignment)
      : schedule_(std::move(schedule)), assignment_(assignment), symbols_(fn.Symbols()) {
    artifact_.symbols = symbols_;
    auto value = [&](const Type& t) {
      Artifact::Value v;
      v.dtype = static_cast<uint8_t>(t.dtype);
      for (const Dim& d : t.dims) v.dims.push_back(Size(d));
      return v;
    };
    for (const Type& t : fn.ParamTypes()) artifact_.params.push_back(value(t));
    for (const Type& t : fn.ResultTypes()) artifact_.results.push_back(value(t));
    if (symbols_.empty()) return;
    for (const std::vector<SizeCondition>& list : {SizeConditions(fn), ResultSizes(fn)}) {
      for (const SizeCondition& c : list)
        artifact_.conditions.push_back({Size(c.size), c.least, Size(c.reads), c.what});
    }
  }

  Program Make() {
    kernel_of_.assign(schedule_.kernels.size(), -1);
    artifact_.strings = schedule_.strings;
    for (size_t f = 0; f < schedule_.frames.size(); ++f) {
      BeginFrame(f);
      Steps steps = MakeSteps(schedule_.frames[f].body);
      int64_t arena_bytes = 0;
      PlaceBuffers(&arena_bytes);
      if (f == 0) {
        artifact_.slots = std::move(slots_);
        artifact_.buffers = std::move(buffers_);
        artifact_.arena_bytes = arena_bytes;
        program_.steps = std::move(steps);
        NoteDonations();
      } else {
        artifact_.functions.push_back(
            {schedule_.frames[f].name, std::move(slots_), std::move(buffers_), arena_bytes, first_word_});
        program_.functions.push_back(std::move(steps));
      }
      program_.slots.push_back(std::move(slot_of_value_));
    }
    artifact_.counters.kernels = static_cast<int64_t>(program_.kernels.size());
    return std::move(program_);
  }

 private:
  // ---- Slots -----------------------------------------------------------------------------------------------------

  void BeginFrame(size_t f) {
    frame_ = f;
    first_word_ = static_cast<int64_t>(artifact_.desc.size());
    slots_.clear();
    buffers_.clear();
    slot_of_value_.assign(schedule_.frames[f].values.size(), -1);
    slot_of_buffer_.assign(assignment_.frames[f].buffers.size(), -1);
    for (size_t v = 0; v < slot_of_value_.size(); ++v) {
      const Schedule::Value::Kind kind = schedule_.frames[f].values[v].kind;
      if (kind == Schedule::Value::Kind::kParam || kind == Schedule::Value::Kind::kResult) SlotOf(static_cast<int>(v));
    }
  }

  const Buffer& BufferOf(int value) const {
    const Assignment::Frame& frame = assignment_.frames[frame_];
    return frame.buffers[static_cast<size_t>(frame.buffer[static_cast<size_t>(value)])];
  }

  int SlotOf(int value) {
    int& slot = slot_of_value_[static_cast<size_t>(value)];
    if (slot >= 0) return slot;
    const int buffer = assignment_.frames[frame_].buffer[static_cast<size_t>(value)];
    if (slot_of_buffer_[static_cast<size_t>(buffer)] < 0) {
      const int made = NewSlot(BufferOf(value));
      slot_of_buffer_[static_cast<size_t>(buffer)] = made;
    }
    return slot_of_value_[static_cast<size_t>(value)] = slot_of_buffer_[static_cast<size_t>(buffer)];
  }

  int NewSlot(const Buffer& b) {
    Artifact::Slot slot;
    const Schedule::Value& value = schedule_.frames[frame_].values[static_cast<size_t>(b.values[0])];
    switch (b.place) {
      case Place::kArena:
        slot = {Artifact::Place::kArena, static_cast<int64_t>(buffers_.size())};
        buffers_.push_back({Size(b.bytes), b.first, b.last, -1});
        break;
      case Place::kParam: slot = {Artifact::Place::kParam, b.index}; break;
      case Place::kResult: slot = {Artifact::Place::kResult, b.index}; break;
      case Place::kConstant: slot = {Artifact::Place::kConstant, PlaceOf(value.constant)}; break;
      case Place::kMoving: slot = {Artifact::Place::kMoving, SlotOf(value.within[0])}; break;
    }
    slots_.push_back(slot);
    return static_cast<int>(slots_.size()) - 1;
  }

  // Where a constant begins among all of them.
  int64_t PlaceOf(const Tensor& t) {
    std::string bytes(static_cast<const char*>(t.raw()), static_cast<size_t>(t.bytes()));
    auto [it, inserted] = constants_.try_emplace(std::move(bytes), -1);
    if (inserted) {
      std::string& all = artifact_.constants;
      all.resize((all.size() + 63) / 64 * 64, '\0');
      it->second = static_cast<int64_t>(all.size());
      all += it->first;
    }
    return it->second;
  }

  void PlaceBuffers(int64_t* arena_bytes) {
    bool is_static = true;
    std::vector<int64_t> bytes, offsets;
    for (const Artifact::Buffer& b : buffers_) {
      is_static = is_static && b.bytes.is_static();
      bytes.push_back(b.bytes.constant);
    }
    *arena_bytes = is_static ? PlanArena(buffers_, bytes, &offsets) : -1;
    for (size_t i = 0; i < offsets.size(); ++i) buffers_[i].offset = offsets[i];
  }

  void NoteDonations() {
    const std::vector<bool>& donated = schedule_.frames[0].donated;
    if (donated.empty()) return;
    artifact_.donated.assign(donated.begin(), donated.end());
    artifact_.result_in.assign(artifact_.results.size(), -1);
    for (const Buffer& b : assignment_.frames[0].buffers) {
      if (b.place != Place::kParam) continue;
      if (b.result >= 0) artifact_.result_in[static_cast<size_t>(b.result)] = b.index;
      if (b.values.size() > 1) artifact_.donated[static_cast<size_t>(b.index)] = 2;
    }
    // What devices write over their blocks of a parameter.
    Schedule::ForEachStep(schedule_.frames[0].body, [&](const Schedule::Step& s) {
      if (s.function < 0) return;
      for (const Buffer& b : assignment_.frames[static_cast<size_t>(s.function)].buffers) {
        if (b.place != Place::kParam || b.values.size() == 1) continue;
        const Schedule::Value& operand =
            schedule_.frames[0].values[static_cast<size_t>(s.uses[static_cast<size_t>(b.index)].value)];
        artifact_.donated[static_cast<size_t>(operand.index)] = 2;
      }
    });
    artifact_.counters.donated = std::count(artifact_.donated.begin(), artifact_.donated.end(), 2);
  }

  // ---- Numbers ---------------------------------------------------------------------------------------------------

  SizeExpr Size(const Dim& d) const {
    SizeExpr e;
    if (auto v = d.TryValue()) {
      e.constant = *v;
      return e;
    }
    for (const Dim::Term& t : d.Terms()) {
      SizeExpr::Term term;
      term.coefficient = t.coefficient;
      for (const std::string& s : t.symbols) {
        const auto at = std::find(symbols_.begin(), symbols_.end(), s);
        if (at == symbols_.end())
          throw ValueError("lower: dimension symbol '", s, "' is not a dimension of any parameter");
        term.symbols.push_back(static_cast<int32_t>(at - symbols_.begin()));
      }
      if (term.symbols.empty())
        e.constant += term.coefficient;
      else
        e.terms.push_back(term);
    }
    return e;
  }

  void AddNumber(const Dim& d) {
    if (!d.is_static()) artifact_.desc_patches.push_back({static_cast<int64_t>(artifact_.desc.size()), Size(d)});
    artifact_.desc.push_back(d.TryValue().value_or(0));
  }

  // A descriptor.
  template <class S>
  void AddDescriptor(const S& told) {
    struct Sink {
      Maker& maker;
      void Field(const char*) {}
      void Place(int slot) { maker.AddNumber(slot); }
      void Result(int number) { maker.AddNumber(number); }
      void Number(const Dim& d) { maker.AddNumber(d); }
    } sink{*this};
    AddNumber(S::kOpcode);
    abi::Encode(told, sink);
  }

  // ---- Steps -----------------------------------------------------------------------------------------------------

  Steps MakeSteps(const Schedule::Block& block) {
    Steps steps;
    for (const Schedule::Step& s : block.steps) MakeStep(s, &steps);
    return steps;
  }

  void MakeStep(const Schedule::Step& s, Steps* steps) {
    Artifact::Counters& c = artifact_.counters;
    Step step;
    step.desc = static_cast<int64_t>(artifact_.desc.size());
    step.cost = s.cost;
    step.dtype = s.dtype;
    step.reverse = s.reverse;
    step.can_fail = s.can_fail;
    if (s.predicate >= 0) step.slot = SlotOf(s.predicate);
    switch (s.kind) {
      case Schedule::Step::Kind::kCopy: {
        const int to = SlotOf(s.uses[0].value), from = SlotOf(s.uses[1].value);
        if (to == from) return;
        const Dim bytes = schedule_.frames[frame_].values[static_cast<size_t>(s.uses[0].value)].bytes;
        step.kind = Step::Kind::kOp;
        step.index = WEFT_OP_COPY;
        AddDescriptor(abi::Copy<InProgram>{to, from, bytes});
        ++c.copies;
        if (auto n = bytes.TryValue()) c.bytes_copied += *n, c.bytes_moved += 2 * *n;
        break;
      }
      case Schedule::Step::Kind::kKernel:
        step.kind = Step::Kind::kKernel;
        step.index = KernelOf(s);
        AddKernelDescriptor(s);
        ++c.kernel_calls;
        break;
      case Schedule::Step::Kind::kCall:
        step.kind = Step::Kind::kOp;
        step.index = s.index;
        AddNumber(s.index);
        for (const Schedule::Entry& e : s.desc) AddEntry(e, s.function);
        ++c.library_calls;
        break;
      case Schedule::Step::Kind::kIf: step.kind = Step::Kind::kIf; break;
      case Schedule::Step::Kind::kWhile: step.kind = Step::Kind::kWhile; break;
      case Schedule::Step::Kind::kChecked: step.kind = Step::Kind::kChecked; break;
      case Schedule::Step::Kind::kFor: {
        step.kind = Step::Kind::kFor;
        abi::Loop<InProgram> told{s.trips, {}};
        for (const Schedule::Slice& m : s.slices) told.strides.push_back(m.stride);
        step.trips = abi::WordOf(told, "trips");
        for (size_t i = 0; i < s.slices.size(); ++i) {
          const Schedule::Slice& m = s.slices[i];
          step.moving.push_back({SlotOf(m.value), SlotOf(m.base), abi::WordOfEntry(told, "strides", i)});
        }
        AddDescriptor(told);
        break;
      }
    }
    c.bytes_moved += s.bytes_moved;
    for (const Schedule::Block& b : s.blocks) step.blocks.push_back(MakeSteps(b));
    steps->push_back(std::move(step));
  }

  void AddKernelDescriptor(const Schedule::Step& s) {
    abi::Kernel<InProgram> told;
    for (const Schedule::Entry& e : s.desc) {
      if (e.kind == Schedule::Entry::Kind::kPlace)
        told.operands.push_back(SlotOf(e.value));
      else
        told.sizes.push_back(e.number);
    }
    AddDescriptor(told);
  }

  // `function`: that the step runs, if it does.
  void AddEntry(const Schedule::Entry& e, int function) {
    switch (e.kind) {
      case Schedule::Entry::Kind::kNumber: return AddNumber(e.number);
      case Schedule::Entry::Kind::kPlace: return AddNumber(SlotOf(e.value));
      case Schedule::Entry::Kind::kResultNumber:
        return AddNumber(BufferOf(e.value).place == Place::kResult ? BufferOf(e.value).index : -1);
      case Schedule::Entry::Kind::kLeftIn: return AddNumber(LeftIn(function, e.value));
      case Schedule::Entry::Kind::kOverwritten: return AddNumber(Overwritten(function, e.value) ? 1 : 0);
    }
  }

  // The parameter of a function in whose memory a result of it is left; -1: in none.
  int LeftIn(int function, int result) const {
    for (const Buffer& b : assignment_.frames[static_cast<size_t>(function)].buffers) {
      if (b.place == Place::kParam && b.result == result) return b.index;
    }
    return -1;
  }
  // Whether a function writes to the memory of a parameter.
  bool Overwritten(int function, int param) const {
    const std::vector<Buffer>& buffers = assignment_.frames[static_cast<size_t>(function)].buffers;
    return std::any_of(buffers.begin(), buffers.end(), [&](const Buffer& b) {
      return b.place == Place::kParam && b.index == param && b.values.size() > 1;
    });
  }

  // The step's kernel, with those results streamed that no cache holds until they are read again: they need not pass
  // through them. Only where one lies from one element to the next, so that every vector is aligned.
  int KernelOf(const Schedule::Step& s) {
    constexpr int64_t kLarge = 24 << 20;
    const KernelSpec& spec = schedule_.kernels[static_cast<size_t>(s.index)];
    uint64_t streamed = 0;
    if (spec.sizes.size() == 1 && spec.num_outer == 1 && spec.spills.empty()) {
      const std::optional<int64_t> n = spec.sizes[0].TryValue();
      for (size_t i = 0; n && i < spec.stores.size() && i < 64; ++i) {
        const KernelStore& store = spec.stores[i];
        if (*n * ByteWidth(store.access.dtype) < kLarge || !store.access.dynamic.empty() ||
            IsComplex(store.access.dtype) || !(store.access.offset == Affine::Var(0)))
          continue;
        const int value = s.desc[static_cast<size_t>(store.access.operand)].value;
        const Place place = BufferOf(value).place;
        int operands = 0;
        for (int o = 0; o < spec.num_operands; ++o)
          operands += SlotOf(s.desc[static_cast<size_t>(o)].value) == SlotOf(value);
        if ((place == Place::kArena || place == Place::kResult) && operands == 1) streamed |= uint64_t{1} << i;
      }
    }
    int& made = streamed == 0 ? kernel_of_[static_cast<size_t>(s.index)]
                              : streaming_.try_emplace({s.index, streamed}, -1).first->second;
    if (made < 0) {
      made = static_cast<int>(program_.kernels.size());
      program_.kernels.push_back(spec);
      for (size_t i = 0; i < spec.stores.size() && i < 64; ++i)
        program_.kernels.back().stores[i].streamed = (streamed >> i) & 1;
    }
    return made;
  }

  const Schedule schedule_;
  const Assignment& assignment_;
  const std::vector<std::string> symbols_;
  Program program_;
  Artifact& artifact_ = program_.artifact;
  std::vector<int> kernel_of_;                         // of the schedule's kernels -> the program's, -1
  std::map<std::pair<int, uint64_t>, int> streaming_;  // the same with what is streamed
  std::map<std::string, int64_t> constants_;
  // Of the frame being made.
  size_t frame_ = 0;
  int64_t first_word_ = 0;  // of its descriptors
  std::vector<Artifact::Slot> slots_;
  std::vector<Artifact::Buffer> buffers_;
  std::vector<int> slot_of_value_, slot_of_buffer_;
};

}  // namespace

Program MakeProgram(const Fn& fn, Schedule schedule, const Assignment& assignment) {
  return Maker(fn, std::move(schedule), assignment).Make();
}

Program BuildProgram(const Fn& fn, const FusionPolicy& policy, const std::vector<bool>& donated) {
  Schedule schedule = BuildSchedule(fn, policy, donated);
  const Assignment assignment = AssignBuffers(schedule, FindLiveness(schedule));
  return MakeProgram(fn, std::move(schedule), assignment);
}

std::string MemoryText(const Program& program) {
  const Artifact& a = program.artifact;
  std::ostringstream out;
  const auto frame = [&](const std::vector<Artifact::Slot>& slots, const std::vector<Artifact::Buffer>& buffers,
                         int64_t arena_bytes, bool is_program) {
    if (arena_bytes >= 0)
      out << "arena " << arena_bytes << " bytes\n";
    else
      out << "arena: sizes depend on symbols, planned per call\n";
    for (size_t s = 0; s < slots.size(); ++s) {
      static const char* kPlaces[] = {"arena", "param", "result", "constant", "moving"};
      const auto i = static_cast<size_t>(slots[s].index);
      out << "  s" << s << ": " << kPlaces[static_cast<int>(slots[s].place)] << " " << i;
      if (is_program && slots[s].place == Artifact::Place::kParam && !a.donated.empty() && a.donated[i] != 0)
        out << (a.donated[i] == 2 ? ", donated" : ", donated but of no use");
      if (slots[s].place == Artifact::Place::kArena) {
        const Artifact::Buffer& b = buffers[i];
        out << ", " << (b.bytes.is_static() ? std::to_string(b.bytes.constant) + " bytes" : "symbolic size") << " at "
            << b.offset << ", steps " << b.first << " to " << b.last;
      }
      out << "\n";
    }
  };
  frame(a.slots, a.buffers, a.arena_bytes, true);
  for (size_t r = 0; r < a.result_in.size(); ++r) {
    if (a.result_in[r] >= 0) out << "  result " << r << " is in the memory of param " << a.result_in[r] << "\n";
  }
  for (const Artifact::Function& f : a.functions) {
    out << "function " << f.name << ", ";
    frame(f.slots, f.buffers, f.arena_bytes, false);
  }
  return out.str();
}

std::string KernelsText(const std::vector<KernelSpec>& kernels) {
  std::ostringstream out;
  for (size_t k = 0; k < kernels.size(); ++k) out << "k" << k << " " << kernels[k].ToString();
  return out.str();
}

}  // namespace weft
