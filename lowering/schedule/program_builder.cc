// Slots, constants, kernels and desc entries of a program under construction.
#include <algorithm>
#include <sstream>

#include "ir/analysis/size_conditions.h"
#include "ir/prim.h"
#include "lowering/schedule/block_lowering.h"

namespace weft {

ProgramBuilder::ProgramBuilder(const Fn& fn, const FusionPolicy& policy, const std::vector<bool>& donated)
    : policy(policy), symbols_(fn.Symbols()) {
  program.artifact.donated.assign(donated.begin(), donated.end());
  program.artifact.result_in.assign(donated.empty() ? 0 : fn.results().size(), -1);
  program.artifact.symbols = symbols_;
  auto value = [&](const Type& t) {
    Artifact::Value v;
    v.dtype = static_cast<uint8_t>(t.dtype);
    for (const Dim& d : t.dims) v.dims.push_back(Size(d));
    return v;
  };
  for (const Type& t : fn.ParamTypes()) program.artifact.params.push_back(value(t));
  for (const Type& t : fn.ResultTypes()) program.artifact.results.push_back(value(t));
  if (symbols_.empty()) return;
  for (const std::vector<SizeCondition>& list : {SizeConditions(fn), ResultSizes(fn)}) {
    for (const SizeCondition& c : list)
      program.artifact.conditions.push_back({Size(c.size), c.least, Size(c.reads), c.what});
  }
}

SizeExpr ProgramBuilder::Size(const Dim& d) {
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

int64_t ProgramBuilder::AddDesc(const std::vector<Dim>& entries) {
  Artifact& a = program.artifact;
  const int64_t at = static_cast<int64_t>(a.desc.size());
  for (const Dim& d : entries) {
    if (!d.is_static()) a.desc_patches.push_back({static_cast<int64_t>(a.desc.size()), Size(d)});
    a.desc.push_back(d.TryValue().value_or(0));
  }
  return at;
}

int ProgramBuilder::NewSlot(Artifact::Place place, int64_t index) {
  program.artifact.slots.push_back({place, index});
  return static_cast<int>(program.artifact.slots.size()) - 1;
}

int ProgramBuilder::NewArena(const Type& type) {
  Artifact::Buffer b;
  b.bytes = Size(type.size() * Dim(ByteWidth(type.dtype)));
  b.first = b.last = position_;
  program.artifact.buffers.push_back(b);
  return NewSlot(Artifact::Place::kArena, static_cast<int64_t>(program.artifact.buffers.size()) - 1);
}

void ProgramBuilder::ResultInParam(int i, int slot) {
  program.artifact.result_in[static_cast<size_t>(i)] =
      static_cast<int32_t>(program.artifact.slots[static_cast<size_t>(slot)].index);
}

void ProgramBuilder::UsesDonated(int slot) {
  uint8_t& use = program.artifact.donated[static_cast<size_t>(program.artifact.slots[static_cast<size_t>(slot)].index)];
  program.artifact.counters.donated += use != 2;
  use = 2;
}

int ProgramBuilder::ConstantSlot(const Tensor& t) {
  const std::string bytes(static_cast<const char*>(t.raw()), static_cast<size_t>(t.bytes()));
  auto [it, inserted] = constants_.try_emplace(bytes, -1);
  if (inserted) {
    std::string& all = program.artifact.constants;
    all.resize((all.size() + 63) / 64 * 64, '\0');
    it->second = NewSlot(Artifact::Place::kConstant, static_cast<int64_t>(all.size()));
    all += bytes;
  }
  return it->second;
}

int ProgramBuilder::AddString(const std::string& text) {
  auto& all = program.artifact.strings;
  const auto it = std::find(all.begin(), all.end(), text);
  if (it != all.end()) return static_cast<int>(it - all.begin());
  all.push_back(text);
  return static_cast<int>(all.size()) - 1;
}

void ProgramBuilder::Use(int slot) {
  if (slot < 0 || !IsArena(slot)) return;
  Artifact::Buffer& b = program.artifact.buffers[program.artifact.slots[slot].index];
  b.last = std::max(b.last, position_);
}

void ProgramBuilder::EndLoop(int begin) {
  for (Artifact::Buffer& b : program.artifact.buffers) {
    if (b.first < begin && b.last >= begin) b.last = std::max(b.last, position_);
  }
}

int ProgramBuilder::AddKernel(const KernelSpec& spec) {
  auto [it, inserted] = kernels_.try_emplace(spec.Key(), static_cast<int>(program.kernels.size()));
  if (inserted) {
    program.kernels.push_back(spec);
    ++program.artifact.counters.kernels;
  }
  return it->second;
}

void ProgramBuilder::EmitKernel(Steps& steps, const KernelSpec& spec, const std::vector<int>& slots) {
  for (int d = 0; d < spec.num_outer; ++d) {
    if (spec.sizes[d] == Dim(0)) return;  // nothing to compute
  }
  Step step;
  step.kind = Step::Kind::kKernel;
  step.index = AddKernel(spec);
  std::vector<Dim> desc;
  for (int s : slots) desc.push_back(Dim(s));
  const std::vector<bool> touched = spec.Touched();
  for (size_t i = 0; i < slots.size(); ++i) {
    if (touched[i]) Use(slots[i]);
  }
  for (const Dim& d : spec.SymbolicSizes()) desc.push_back(d);
  step.desc = AddDesc(desc);
  Dim points = 1;
  for (const Dim& d : spec.sizes) points = points * d;
  if (points.is_static()) step.cost = static_cast<double>(*points.TryValue()) * spec.PointCost();
  Artifact::Counters& c = program.artifact.counters;
  ++c.kernel_calls;
  // Bytes: every element of a buffer counts once per kernel.
  std::vector<int64_t> bytes(slots.size(), 0);
  auto count = [&](const Access& a) {
    Dim n = ByteWidth(a.dtype);
    for (size_t v = 0; v < spec.sizes.size(); ++v) {
      if ((a.offset.VarMask() >> v) & 1) n = n * spec.sizes[v];
    }
    if (auto value = n.TryValue()) bytes[a.operand] = std::max(bytes[a.operand], *value);
  };
  for (const KernelNode& n : spec.nodes) {
    if (n.kind == KernelNode::Kind::kLoad) count(n.access);
  }
  for (int64_t b : bytes) c.bytes_moved += b;
  std::fill(bytes.begin(), bytes.end(), 0);
  for (const KernelStore& s : spec.stores) count(s.access);
  for (int64_t b : bytes) c.bytes_moved += b;
  std::ostringstream line;
  line << "kernel k" << step.index << " (";
  const char* comma = "";
  for (size_t i = 0; i < slots.size(); ++i) {
    if (!touched[i]) continue;
    line << comma << (spec.written[i] ? "-> s" : "s") << slots[i];
    comma = ", ";
  }
  line << ")";
  Log(line.str());
  steps.push_back(std::move(step));
  NextPosition();
}

void ProgramBuilder::EmitOp(Steps& steps, WeftOpcode op, const std::vector<Dim>& desc, const std::vector<int>& slots) {
  Step step;
  step.kind = Step::Kind::kOp;
  step.index = op;
  step.desc = AddDesc(desc);
  for (int s : slots) Use(s);
  if (op != WEFT_OP_COPY) ++program.artifact.counters.library_calls;
  std::ostringstream line;
  line << "call op" << op << " (";
  for (size_t i = 0; i < slots.size(); ++i) line << (i ? ", s" : "s") << slots[i];
  line << ")";
  Log(line.str());
  steps.push_back(std::move(step));
  NextPosition();
}

void ProgramBuilder::EmitCopy(Steps& steps, int to, int from, const Type& type) {
  if (to == from || type.size() == Dim(0)) return;
  const Dim bytes = type.size() * Dim(ByteWidth(type.dtype));
  EmitOp(steps, WEFT_OP_COPY, {Dim(to), Dim(from), bytes}, {to, from});
  Artifact::Counters& c = program.artifact.counters;
  ++c.copies;
  if (auto n = bytes.TryValue()) c.bytes_copied += *n, c.bytes_moved += 2 * *n;
}

void ProgramBuilder::Log(const std::string& line) {
  program.artifact.schedule +=
      std::string(static_cast<size_t>(2 * indent), ' ') + std::to_string(position_) + ": " + line + "\n";
}

Program ProgramBuilder::Finish() {
  Artifact& a = program.artifact;
  for (Artifact::Function& f : a.functions) {
    bool is_static = true;
    std::vector<int64_t> bytes, offsets;
    for (const Artifact::Buffer& b : f.buffers) {
      is_static = is_static && b.bytes.is_static();
      bytes.push_back(b.bytes.constant);
    }
    f.arena_bytes = is_static ? PlanArena(f.buffers, bytes, &offsets) : -1;
    for (size_t i = 0; i < offsets.size(); ++i) f.buffers[i].offset = offsets[i];
  }
  bool is_static = true;
  std::vector<int64_t> bytes, offsets;
  for (const Artifact::Buffer& b : a.buffers) {
    is_static = is_static && b.bytes.is_static();
    bytes.push_back(b.bytes.constant);
  }
  a.arena_bytes = -1;
  std::ostringstream memory;
  if (is_static) {
    a.arena_bytes = PlanArena(a.buffers, bytes, &offsets);
    memory << "arena " << a.arena_bytes << " bytes\n";
    for (size_t i = 0; i < a.buffers.size(); ++i) a.buffers[i].offset = offsets[i];
  } else {
    memory << "arena: sizes depend on symbols, planned per call\n";
  }
  for (size_t s = 0; s < a.slots.size(); ++s) {
    static const char* kPlaces[] = {"arena", "param", "result", "constant", "moving"};
    memory << "  s" << s << ": " << kPlaces[static_cast<int>(a.slots[s].place)] << " " << a.slots[s].index;
    if (a.slots[s].place == Artifact::Place::kParam && !a.donated.empty() && a.donated[a.slots[s].index])
      memory << (a.donated[a.slots[s].index] == 2 ? ", donated" : ", donated but of no use");
    if (a.slots[s].place == Artifact::Place::kResult && !a.result_in.empty() && a.result_in[a.slots[s].index] >= 0)
      memory << ", in the memory of param " << a.result_in[a.slots[s].index];
    if (a.slots[s].place == Artifact::Place::kArena) {
      const Artifact::Buffer& b = a.buffers[a.slots[s].index];
      memory << ", "
             << (b.bytes.is_static() ? std::to_string(b.bytes.constant) + " bytes" : std::string("symbolic size"))
             << " at " << b.offset << ", steps " << b.first << " to " << b.last;
    }
    memory << "\n";
  }
  std::ostringstream kernels;
  for (size_t k = 0; k < program.kernels.size(); ++k) kernels << "k" << k << " " << program.kernels[k].ToString();
  a.schedule = "steps\n" + a.schedule + memory.str() + kernels.str();
  return std::move(program);
}

Program BuildProgram(const Fn& fn, const FusionPolicy& policy, const std::vector<bool>& donated) {
  WEFT_CHECK(donated.empty() || donated.size() == fn.params().size()) << "one flag per parameter";
  ProgramBuilder builder(fn, policy, donated);
  std::vector<int> params, results;
  for (size_t i = 0; i < fn.params().size(); ++i)
    params.push_back(builder.NewSlot(Artifact::Place::kParam, static_cast<int64_t>(i)));
  for (size_t i = 0; i < fn.results().size(); ++i)
    results.push_back(builder.NewSlot(Artifact::Place::kResult, static_cast<int64_t>(i)));
  Steps steps;
  BlockLowering block(builder, fn, params, results);
  for (size_t i = 0; i < donated.size(); ++i) {
    if (donated[i]) block.Donate(static_cast<int>(i));
  }
  block.SizesAreChecked();
  block.Run(steps);
  builder.program.steps = std::move(steps);
  return builder.Finish();
}

}  // namespace weft
