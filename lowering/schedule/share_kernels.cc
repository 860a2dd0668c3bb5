#include "lowering/schedule/share_kernels.h"

#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/dtype.h"

namespace weft {
namespace {

// A division or shift by an integer that the code knows is faster, which shows in loops.
constexpr int64_t kFewPoints = 64;

bool HasFewPoints(const KernelSpec& spec) {
  Dim points = 1;
  for (const Dim& d : spec.sizes) points = points * d;
  return points.TryValue().value_or(kFewPoints + 1) <= kFewPoints;
}

// Which literals may be read from memory, by node.
std::vector<bool> MayBeRead(const KernelSpec& spec) {
  const bool few = HasFewPoints(spec);
  std::vector<bool> may;
  for (const KernelNode& n : spec.nodes)
    may.push_back(n.kind == KernelNode::Kind::kLiteral && (IsInexact(n.dtype) || (few && IsInteger(n.dtype))));
  return may;
}

std::string BytesOf(const Tensor& t) { return {static_cast<const char*>(t.raw()), static_cast<size_t>(t.bytes())}; }

// What kernels have in common that differ in numbers only.
std::string KeyWithoutNumbers(KernelSpec spec) {
  const std::vector<bool> may_be_read = MayBeRead(spec);
  for (size_t i = 0; i < spec.nodes.size(); ++i) {
    KernelNode& n = spec.nodes[i];
    if (may_be_read[i]) n.literal = Tensor::Zeros(n.dtype, {});
  }
  return spec.Key();
}

// Where the steps of a kernel find the one that it became.
struct Shared {
  int index = 0;                // among the kernels that stay
  int operands = 0;             // before the numbers were added
  std::vector<Tensor> numbers;  // the further operands
};

// The kernels `members` as one; `shared` says what each of them hands to it.
KernelSpec Join(const std::vector<KernelSpec>& kernels, const std::vector<int>& members, std::vector<Shared>* shared) {
  KernelSpec joined = kernels[static_cast<size_t>(members[0])];
  const int operands = joined.num_operands;
  const std::vector<bool> may_be_read = MayBeRead(joined);
  for (int m : members) (*shared)[static_cast<size_t>(m)].operands = operands;
  // Literals that agree in every member with one another are one operand.
  std::map<std::vector<std::string>, int> operand_of;
  for (size_t i = 0; i < joined.nodes.size(); ++i) {
    KernelNode& n = joined.nodes[i];
    if (!may_be_read[i]) continue;
    std::vector<std::string> values{Name(n.dtype)};
    bool differ = false;
    for (int m : members) {
      values.push_back(BytesOf(kernels[static_cast<size_t>(m)].nodes[i].literal));
      differ |= values.back() != values[1];
    }
    if (!differ) continue;
    const auto [at, first] = operand_of.try_emplace(std::move(values), joined.num_operands);
    if (first) {
      for (int m : members)
        (*shared)[static_cast<size_t>(m)].numbers.push_back(kernels[static_cast<size_t>(m)].nodes[i].literal);
      joined.num_operands += 1;
      joined.written.push_back(false);
    }
    n.kind = KernelNode::Kind::kLoad;
    n.literal = {};
    n.access = {};
    n.access.operand = at->second;
    n.access.dtype = n.dtype;
  }
  return joined;
}

// Constants of one frame.
class Numbers {
 public:
  explicit Numbers(Schedule::Frame* frame) : frame_(*frame) {}
  int ValueOf(const Tensor& number) {
    const auto [at, first] = values_.try_emplace(BytesOf(number), static_cast<int>(frame_.values.size()));
    if (first) {
      Schedule::Value v;
      v.kind = Schedule::Value::Kind::kConstant;
      v.bytes = number.bytes();
      v.constant = number;
      frame_.values.push_back(std::move(v));
    }
    return at->second;
  }

 private:
  Schedule::Frame& frame_;
  std::unordered_map<std::string, int> values_;
};

void Rewrite(Schedule::Steps* steps, const std::vector<Shared>& shared, Numbers* numbers) {
  for (Schedule::Step& step : *steps) {
    for (Schedule::Block& block : step.blocks) Rewrite(&block.steps, shared, numbers);
    if (step.kind != Schedule::Step::Kind::kKernel) continue;
    const Shared& to = shared[static_cast<size_t>(step.index)];
    step.index = to.index;
    for (size_t i = 0; i < to.numbers.size(); ++i) {
      const int value = numbers->ValueOf(to.numbers[i]);
      // Places of operands come before sizes.
      step.desc.insert(step.desc.begin() + to.operands + static_cast<int64_t>(i), Schedule::Entry::Place(value));
      step.uses.push_back({value, Schedule::Access::kRead});
    }
  }
}

}  // namespace

void ShareKernels(Schedule* schedule) {
  std::unordered_map<std::string, size_t> group_of;
  std::vector<std::vector<int>> groups;
  for (size_t k = 0; k < schedule->kernels.size(); ++k) {
    const KernelSpec& spec = schedule->kernels[k];
    const auto [at, first] = group_of.try_emplace(KeyWithoutNumbers(spec), groups.size());
    if (first) groups.emplace_back();
    groups[at->second].push_back(static_cast<int>(k));
  }
  if (groups.size() == schedule->kernels.size()) return;
  std::vector<Shared> shared(schedule->kernels.size());
  std::vector<KernelSpec> kernels;
  for (const std::vector<int>& members : groups) {
    for (int m : members) shared[static_cast<size_t>(m)].index = static_cast<int>(kernels.size());
    kernels.push_back(Join(schedule->kernels, members, &shared));
  }
  schedule->kernels = std::move(kernels);
  for (Schedule::Frame& frame : schedule->frames) {
    Numbers numbers(&frame);
    Rewrite(&frame.body.steps, shared, &numbers);
  }
}

}  // namespace weft
