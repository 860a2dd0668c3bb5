// The registry: every family, in one explicit list.
#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <mutex>

#include "base/fork_safe_mutex.h"
#include "ir/builder.h"
#include "ir/ops.h"
#include "ir/prims/families.h"

namespace weft {
namespace {

struct Registry {
  std::vector<std::shared_ptr<Prim>> owned;
  std::vector<const Prim*> in_name_order;  // those of the tree; others follow
  std::map<std::string, const Prim*> by_name;

  Registry() {
    PrimRegistry r;
    RegisterElementwiseUnary(r);
    RegisterElementwiseBinary(r);
    RegisterConversions(r);
    RegisterShape(r);
    RegisterReductions(r);
    RegisterContraction(r);
    RegisterIndexing(r);
    RegisterControl(r);
    RegisterCustom(r);
    RegisterCustomBatching(r);
    RegisterCustomPrimitive(r);
    RegisterLinearSolve(r);
    RegisterScan(r);
    RegisterSnapshotScan(r);
    RegisterWhile(r);
    RegisterTapes(r);
    RegisterRecursion(r);
    RegisterFft(r);
    RegisterLinalg(r);
    RegisterConvolution(r);
    RegisterWindow(r);
    RegisterSorting(r);
    RegisterRandom(r);
    RegisterEffects(r);
    RegisterMemory(r);
    RegisterCumulative(r);
    RegisterCollectives(r);
    RegisterSpmd(r);
    RegisterShardingConstraint(r);
    for (std::unique_ptr<Prim>& p : r.Take()) owned.push_back(std::move(p));
    for (const auto& p : owned) {
      WEFT_CHECK(by_name.emplace(p->name, p.get()).second) << "primitive " << p->name << " is registered twice";
    }
    for (const auto& [name, p] : by_name) in_name_order.push_back(p);
    for (const auto& p : owned) {
      const auto at = std::find(in_name_order.begin(), in_name_order.end(), p.get());
      p->id = static_cast<int>(at - in_name_order.begin());
    }
  }
};

// Others read it while a primitive is added, so that replaces it as a whole, and what was replaced stays.
std::atomic<const Registry*>& CurrentRegistry() {
  static std::atomic<const Registry*> current{new Registry()};
  return current;
}

const Registry& TheRegistry() { return *CurrentRegistry().load(std::memory_order_acquire); }

}  // namespace

const Prim& AddPrim(Prim prim) {
  static auto& adding = *new ForkSafeMutex;
  const std::lock_guard<ForkSafeMutex> lock(adding);
  static auto& replaced = *new std::vector<const Registry*>();
  auto* next = new Registry(TheRegistry());
  prim.id = static_cast<int>(next->in_name_order.size());
  next->owned.push_back(std::make_shared<Prim>(std::move(prim)));
  const Prim& added = *next->owned.back();
  if (!next->by_name.emplace(added.name, &added).second) {
    const std::string name = added.name;
    delete next;
    throw ValueError("there is a primitive named '", name, "' already");
  }
  next->in_name_order.push_back(&added);
  replaced.push_back(&TheRegistry());
  CurrentRegistry().store(next, std::memory_order_release);
  return added;
}

const std::vector<const Prim*>& AllPrims() { return TheRegistry().in_name_order; }

const Prim* TryFindPrim(const std::string& name) {
  const auto& names = TheRegistry().by_name;
  auto it = names.find(name);
  return it == names.end() ? nullptr : it->second;
}

const Prim& FindPrim(const std::string& name) {
  const Prim* prim = TryFindPrim(name);
  if (prim == nullptr) throw ValueError("there is no primitive named '", name, "'");
  return *prim;
}

Prim& PrimRegistry::Get(const std::string& name) {
  for (const auto& p : prims_) {
    if (p->name == name) return *p;
  }
  WEFT_CHECK(false) << "no primitive " << name;
  std::abort();
}

Prim& PrimRegistry::Add(std::string name, Family family, int num_operands, std::string doc) {
  prims_.push_back(std::make_unique<Prim>());
  Prim& p = *prims_.back();
  p.name = std::move(name);
  p.family = family;
  p.num_operands = num_operands;
  p.doc = std::move(doc);
  p.dtypes = kAll;
  return p;
}

const char* Name(Family family) {
  static constexpr const char* kNames[] = {"element-wise", "reduction", "cumulative", "contraction",    "shape",
                                           "indexing",     "sorting",   "window",     "linear algebra", "random",
                                           "control flow", "effect",    "collective"};
  return kNames[static_cast<int>(family)];
}

Types InferTypes(const Sig& sig) {
  const bool varies =
      std::any_of(sig.operands.begin(), sig.operands.end(), [](const Type& t) { return !t.varying.empty(); });
  const bool says_itself = !sig.regions.empty() || sig.prim.family == Family::kCollective || sig.prim.says_varying;
  if (!varies || says_itself) return sig.prim.infer(sig);
  Types plain = sig.operands;
  std::vector<std::string> varying;
  for (Type& t : plain) {
    varying = UnionOfAxes(varying, t.varying);
    t.varying.clear();
  }
  Types results = sig.prim.infer(Sig{sig.prim, plain, sig.literal, sig.attrs, sig.regions, sig.conditions});
  for (Type& t : results) t.varying = varying;
  return results;
}

Atom BatchContext::Batched(int i) const {
  if (batched[i]) return x[i];
  Dims shape = {size};
  const Type type = b.TypeOf(x[i]);
  shape.insert(shape.end(), type.dims.begin(), type.dims.end());
  return Broadcast(b, x[i], shape, Range(1, type.rank() + 1));
}

}  // namespace weft
