#include "lowering/schedule/schedule_builder.h"

#include <algorithm>
#include <utility>

#include "ir/error.h"
#include "lowering/schedule/share_kernels.h"

namespace weft {
namespace {

using Step = Schedule::Step;
using Value = Schedule::Value;

Dim Bytes(const Type& t) { return t.size() * Dim(ByteWidth(t.dtype)); }

// Loaded and stored by a kernel: every element of a buffer counts once.
int64_t BytesMoved(const KernelSpec& spec) {
  int64_t total = 0;
  std::vector<int64_t> bytes(static_cast<size_t>(spec.num_operands), 0);
  auto count = [&](const Access& a) {
    Dim n = ByteWidth(a.dtype);
    for (size_t v = 0; v < spec.sizes.size(); ++v) {
      if ((a.offset.VarMask() >> v) & 1) n = n * spec.sizes[v];
    }
    int64_t& most = bytes[static_cast<size_t>(a.operand)];
    if (auto value = n.TryValue()) most = std::max(most, *value);
  };
  for (const KernelNode& n : spec.nodes) {
    if (n.kind == KernelNode::Kind::kLoad) count(n.access);
  }
  for (int64_t b : bytes) total += b;
  std::fill(bytes.begin(), bytes.end(), 0);
  for (const KernelStore& s : spec.stores) count(s.access);
  for (int64_t b : bytes) total += b;
  return total;
}

}  // namespace

ScheduleBuilder::ScheduleBuilder(const FusionPolicy& policy, const Fn& program, const std::vector<bool>& donated)
    : policy(policy), program_(program) {
  schedule_.frames.emplace_back();
  schedule_.frames[0].name = program.name();
  schedule_.frames[0].donated = donated;
}

int ScheduleBuilder::New(Value value) {
  frame().values.push_back(std::move(value));
  open_.written.push_back(false);
  return static_cast<int>(frame().values.size()) - 1;
}

int ScheduleBuilder::NewTemporary(const Type& type) {
  Value v;
  v.bytes = Bytes(type);
  return New(std::move(v));
}

int ScheduleBuilder::NewCopyOf(int value) {
  Value v;
  v.bytes = this->value(value).bytes;
  return New(std::move(v));
}

int ScheduleBuilder::NewMoving(const Type& type, std::vector<int> within) {
  Value v;
  v.kind = Value::Kind::kMoving;
  v.bytes = Bytes(type);
  v.within = std::move(within);
  return New(std::move(v));
}

void ScheduleBuilder::NewEnds(const Fn& fn, std::vector<int>* params, std::vector<int>* results) {
  auto add = [&](Value::Kind kind, const Types& types, std::vector<int>* out) {
    for (size_t i = 0; i < types.size(); ++i) {
      Value v;
      v.kind = kind;
      v.index = static_cast<int>(i);
      v.bytes = Bytes(types[i]);
      out->push_back(New(std::move(v)));
    }
  };
  add(Value::Kind::kParam, fn.ParamTypes(), params);
  add(Value::Kind::kResult, fn.ResultTypes(), results);
}

int ScheduleBuilder::Constant(const Tensor& t) {
  std::string bytes(static_cast<const char*>(t.raw()), static_cast<size_t>(t.bytes()));
  auto [it, inserted] = open_.constants.try_emplace(std::move(bytes), -1);
  if (inserted) {
    Value v;
    v.kind = Value::Kind::kConstant;
    v.bytes = t.bytes();
    v.constant = t;
    it->second = New(std::move(v));
  }
  return it->second;
}

int ScheduleBuilder::AddString(const std::string& text) {
  auto [it, inserted] = strings_.try_emplace(text, static_cast<int>(schedule_.strings.size()));
  if (inserted) schedule_.strings.push_back(text);
  return it->second;
}

Schedule::Use ScheduleBuilder::Write(int v) {
  const bool begun = open_.written[static_cast<size_t>(v)];
  open_.written[static_cast<size_t>(v)] = true;
  return {v, begun ? Schedule::Access::kUpdate : Schedule::Access::kWrite};
}

void ScheduleBuilder::AddKernel(Steps& steps, const KernelSpec& spec, const std::vector<int>& values,
                                const std::vector<Schedule::MayShare>& may_share) {
  for (int d = 0; d < spec.num_outer; ++d) {
    if (spec.sizes[d] == Dim(0)) return;  // nothing to compute
  }
  Step step;
  step.kind = Step::Kind::kKernel;
  auto [it, inserted] = kernels_.try_emplace(spec.Key(), static_cast<int>(schedule_.kernels.size()));
  if (inserted) schedule_.kernels.push_back(spec);
  step.index = it->second;
  const std::vector<bool> touched = spec.Touched();
  for (size_t i = 0; i < values.size(); ++i) {
    step.desc.push_back(Schedule::Entry::Place(values[i]));
    if (touched[i]) step.uses.push_back(spec.written[i] ? Write(values[i]) : Read(values[i]));
  }
  auto uses = [&](int v) {
    return std::any_of(step.uses.begin(), step.uses.end(), [&](const Schedule::Use& u) { return u.value == v; });
  };
  for (const Schedule::MayShare& m : may_share) {
    if (uses(m.result) && uses(m.operand)) step.may_share.push_back(m);
  }
  for (const Dim& d : spec.SymbolicSizes()) step.desc.push_back(d);
  step.cost = spec.Nanoseconds().value_or(-1);
  step.bytes_moved = BytesMoved(spec);
  steps.push_back(std::move(step));
}

Step& ScheduleBuilder::AddCall(Steps& steps, WeftOpcode op, std::vector<Schedule::Entry> desc,
                               std::vector<Schedule::Use> uses) {
  Step step;
  step.kind = Step::Kind::kCall;
  step.index = op;
  step.desc = std::move(desc);
  step.uses = std::move(uses);
  steps.push_back(std::move(step));
  return steps.back();
}

void ScheduleBuilder::AddCopy(Steps& steps, Schedule::Copy why, int to, int from) {
  if (to == from || value(from).bytes == Dim(0)) return;
  Step step;
  step.kind = Step::Kind::kCopy;
  step.copy = why;
  Write(to);
  step.uses = {{to, Schedule::Access::kWrite}, Read(from)};
  steps.push_back(std::move(step));
}

int ScheduleBuilder::BeginFunction(const std::string& name) {
  schedule_.frames.emplace_back();
  schedule_.frames.back().name = name;
  around_.push_back(std::move(open_));
  open_ = {};
  open_.frame = schedule_.frames.size() - 1;
  const int index = static_cast<int>(open_.frame) - 1;
  enclosing_.push_back(index);
  return index;
}

void ScheduleBuilder::EndFunction(int index, Steps steps) {
  schedule_.frames[static_cast<size_t>(index) + 1].body.steps = std::move(steps);
  open_ = std::move(around_.back());
  around_.pop_back();
  enclosing_.pop_back();
}

std::optional<int> ScheduleBuilder::FunctionOf(const FnRef& fn) const {
  const auto at = functions_.find(fn);
  return at == functions_.end() ? std::nullopt : std::optional(at->second);
}

void ScheduleBuilder::RememberFunction(const FnRef& fn, int index) {
  if (fn->OutwardCalls() <= 1 && fn->FreeAxes().empty()) functions_[fn] = index;
}

int ScheduleBuilder::Enclosing(int64_t depth) const {
  if (depth >= static_cast<int64_t>(enclosing_.size()))
    throw ValueError("lower: recur[depth=", depth, "] outside of a recursive function");
  return enclosing_[enclosing_.size() - 1 - static_cast<size_t>(depth)];
}

bool ScheduleBuilder::IsDonated(const Fn& fn, uint32_t i) const {
  const std::vector<bool>& donated = schedule_.frames[0].donated;
  return &fn == &program_ && i < donated.size() && donated[i];
}

void ScheduleBuilder::SetDonated(std::vector<bool> donated, std::vector<int> places) {
  frame().donated = std::move(donated);
  frame().places = std::move(places);
}

Schedule ScheduleBuilder::Finish(Steps steps) {
  schedule_.frames[0].body.steps = std::move(steps);
  ShareKernels(&schedule_);
  schedule_.Number();
  return std::move(schedule_);
}

}  // namespace weft
