#include "lowering/program/touches.h"

#include "lowering/abi/steps.h"

namespace weft {

std::vector<Touch> FrameMemory::TouchesOf(const Step& s) const {
  std::vector<Touch> touches;
  if (s.kind == Step::Kind::kOp) {
    const ContractWords product = ProductOf(s);
    return {{static_cast<size_t>(product.x), false},
            {static_cast<size_t>(product.y), false},
            {static_cast<size_t>(product.result), true}};
  }
  const auto told = abi::Decode<abi::Kernel<abi::InWords>>(Words(s));
  const KernelSpec& kernel = program_.kernels[static_cast<size_t>(s.index)];
  for (size_t i = 0; i < told.operands.size(); ++i)
    touches.push_back({static_cast<size_t>(told.operands[i]), kernel.written[i]});
  return touches;
}

// Buffers that are alive at the same time are apart. Others are unless they have been put into the same room.
bool FrameMemory::MayOverlap(const Touch& x, const Touch& y) const {
  const Artifact::Buffer &a = BufferOf(x), &b = BufferOf(y);
  if (a.first <= b.last && b.first <= a.last) return false;
  return !offsets_are_known_ || (a.offset < b.offset + b.bytes.constant && b.offset < a.offset + a.bytes.constant);
}

bool FrameMemory::BeginTogether(const Touch& a, const Touch& b) const {
  if (a.slot == b.slot) return true;
  return offsets_are_known_ && IsInArena(a) && IsInArena(b) && BufferOf(a).offset == BufferOf(b).offset;
}

bool FrameMemory::Meets(const Touch& a, const Touch& b) const {
  if (!a.writes && !b.writes) return false;
  if (a.slot == b.slot || Moves(a) || Moves(b)) return true;
  return IsInArena(a) && IsInArena(b) && MayOverlap(a, b);
}

}  // namespace weft
