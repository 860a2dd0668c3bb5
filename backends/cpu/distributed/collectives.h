// What the members of a group compute when they meet at a collective: one function over the memory of all of them.
#ifndef WEFT_BACKENDS_CPU_DISTRIBUTED_COLLECTIVES_H_
#define WEFT_BACKENDS_CPU_DISTRIBUTED_COLLECTIVES_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "backends/cpu/core/runtime.h"
#include "base/dtype.h"

namespace weft::cpu {

using Kind = abi::CollectiveKind;

// A collective as one device meets it.
struct Collective {
  Kind kind;
  char* result;                   // null: of a device of another process, or nobody reads it
  std::span<const int64_t> axes;  // by their place in the mesh
  int64_t name;                   // a string of the program
  int64_t returned;               // the result of the device's program that this is, and nothing else; -1: it is more
  const char* x;
  DType dtype;
  std::vector<int64_t> shape;
  int64_t dim, concat;
  std::span<const int64_t> senders, receivers;

  Collective(WeftFrame* frame, const abi::Collective<InWords>& op);
  int64_t elements() const;
  // Bytes of what lies behind dimension `dim`, that dimension included, and how often that comes.
  int64_t Inner(int64_t dim) const;
  int64_t Outer(int64_t dim) const;
  int64_t bytes() const { return Inner(0); }
  int64_t result_bytes(int64_t members) const;
  bool reduces() const {
    return kind == Kind::kPsum || kind == Kind::kPmax || kind == Kind::kPmin || kind == Kind::kPsumScatter;
  }
};

// What several neighbours of a group have in all: members [begin, end) of its tree (see TreeMiddle), in the type that
// sums are kept in, or as it is where it is one member.
struct Subtotal {
  int64_t begin, end;
  const char* data;
};

// The members, in order. Where some belong to other processes, `subtotals` stand for operands of reductions.
struct Group {
  std::vector<Collective> members;
  std::vector<Subtotal> subtotals;

  const Collective& operator[](size_t i) const { return members[i]; }
  size_t size() const { return members.size(); }
};

// Reductions follow one tree, whoever holds its leaves: [begin, end) is the sum of [begin, middle) and [middle, end),
// where the first is the largest power of two below the whole. So halves, quarters ... of 2^k devices are subtrees.
int64_t TreeMiddle(int64_t begin, int64_t end);
// Bytes of a subtotal of so many elements.
int64_t SubtotalBytes(DType dtype, int64_t elements, int64_t begin, int64_t end);
// Computes one from the operands of its members.
void ComputeSubtotal(const Group& group, int64_t begin, int64_t end, char* to);

// Writes the results of all members that have one. What is wrong, or "".
std::string RunGroup(const Group& group);

}  // namespace weft::cpu
#endif  // WEFT_BACKENDS_CPU_DISTRIBUTED_COLLECTIVES_H_
