#include "ir/atom.h"

#include <array>
#include <atomic>
#include <bit>

#include "ir/large_literals.h"

namespace weft {
namespace {

std::atomic<bool> g_large_literals = false;

}  // namespace

bool LargeLiteralsWereMade() { return g_large_literals.load(std::memory_order_relaxed); }

Literal::Literal(Tensor tensor) : tensor_(std::move(tensor)), type_(Intern(tensor_.type())) {
  if (!tensor_.defined()) return;  // the verifier's business
  hash_ = tensor_.Hash();
  if (tensor_.size() == 0) return;
  if (tensor_.size() > kMaxLiteralElements) g_large_literals.store(true, std::memory_order_relaxed);
  splat_ = tensor_.Get(0);
  for (int64_t i = 1; splat_ && i < tensor_.size(); ++i) {
    if (tensor_.Get(i) != *splat_) splat_.reset();
  }
}

Atom Atom::Scalar(DType dtype, double value) {
  struct Slot {
    DType dtype;
    uint64_t bits;
    Atom atom;  // a variable while the slot is empty
  };
  constexpr size_t kSlots = 64;
  thread_local std::array<Slot, kSlots> slots;
  const uint64_t bits = std::bit_cast<uint64_t>(value);
  Slot& slot = slots[(bits >> 52 ^ bits >> 40 ^ bits ^ static_cast<uint64_t>(dtype) * 7) % kSlots];
  if (slot.atom.is_var() || slot.dtype != dtype || slot.bits != bits)
    slot = {dtype, bits, Atom(Tensor::Full(dtype, {}, value))};
  return slot.atom;
}

}  // namespace weft
