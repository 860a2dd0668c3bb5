// What steps of a program read and write, and whether that meets.
#ifndef WEFT_LOWERING_PROGRAM_TOUCHES_H_
#define WEFT_LOWERING_PROGRAM_TOUCHES_H_

#include <cstddef>
#include <vector>

#include "lowering/abi/product_form.h"
#include "lowering/program/program.h"

namespace weft {

// A slot that a kernel or a product reads or writes.
struct Touch {
  size_t slot = 0;
  bool writes = false;
};

// One frame's memory.
class FrameMemory {
 public:
  FrameMemory(const Program& program, const std::vector<Artifact::Slot>& slots,
              const std::vector<Artifact::Buffer>& buffers, bool offsets_are_known)
      : program_(program), slots_(slots), buffers_(buffers), offsets_are_known_(offsets_are_known) {}

  static bool IsProduct(const Step& s) { return s.kind == Step::Kind::kOp && s.index == WEFT_OP_CONTRACT; }
  ContractWords ProductOf(const Step& s) const { return abi::Decode<ContractWords>(Words(s)); }

  // Of a kernel, by operand; of a product: x, y and the result.
  std::vector<Touch> TouchesOf(const Step& s) const;

  // It points into what another slot may be.
  bool Moves(const Touch& t) const { return slots_[t.slot].place == Artifact::Place::kMoving; }
  bool IsInArena(const Touch& t) const { return slots_[t.slot].place == Artifact::Place::kArena; }
  // Of two slots in the arena: whether they may share bytes.
  bool MayOverlap(const Touch& a, const Touch& b) const;
  // Whether both begin at the same byte.
  bool BeginTogether(const Touch& a, const Touch& b) const;
  // Whether the order of what touches `a` and what touches `b` matters.
  bool Meets(const Touch& a, const Touch& b) const;

  bool offsets_are_known() const { return offsets_are_known_; }

 private:
  const int64_t* Words(const Step& s) const { return program_.artifact.desc.data() + s.desc; }
  const Artifact::Buffer& BufferOf(const Touch& t) const { return buffers_[static_cast<size_t>(slots_[t.slot].index)]; }

  const Program& program_;
  const std::vector<Artifact::Slot>& slots_;
  const std::vector<Artifact::Buffer>& buffers_;
  const bool offsets_are_known_;
};

}  // namespace weft
#endif  // WEFT_LOWERING_PROGRAM_TOUCHES_H_
