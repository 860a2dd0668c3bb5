// Random bits from counters, composed of primitives: the same bits as jax.random with jax_threefry_partitionable=True.
//
//   Atom key = RandomKey(b, seed);                    // u64[] or i64[] -> key[]
//   Atom keys = RandomSplit(b, key, {2});             // key[2]
//   Atom bits = RandomBits(b, key, 32, {n, 3});       // u32[n,3]
//
// The hash of element i of an array is the hash of its position i in row-major order, a 64-bit number given as two
// words: every element can be made on its own, so the work can be cut anywhere and fuses with what follows.
#ifndef WEFT_IR_RANDOM_OPS_H_
#define WEFT_IR_RANDOM_OPS_H_

#include <utility>

#include "ir/ops.h"

namespace weft {

// A key whose two words are the high and the low half of an integer scalar (0 and the value for 32 bits and fewer).
Atom RandomKey(Builder& b, const Atom& seed);
// u32[...,2] from key[...] and back.
Atom RandomUnwrap(Builder& b, const Atom& key);
Atom RandomWrap(Builder& b, const Atom& words);
// Keys of `shape`, independent of each other and of what is drawn from `key`: key[] -> key[shape].
Atom RandomSplit(Builder& b, const Atom& key, const Dims& shape);
// Another key from `key` and an integer scalar, of which the low 32 bits count.
Atom RandomFoldIn(Builder& b, const Atom& key, const Atom& data);
// Unsigned integers of `width` 8, 16, 32 or 64 bits, each value as likely as any other.
Atom RandomBits(Builder& b, const Atom& key, int width, const Dims& shape);

// The primitive threefry2x32 and the same computation in additions, shifts and exclusive ors, for whoever lowers it.
std::pair<Atom, Atom> Threefry2x32(Builder& b, const Atom& k0, const Atom& k1, const Atom& c0, const Atom& c1);
std::pair<Atom, Atom> ExpandThreefry2x32(Builder& b, const Atom& k0, const Atom& k1, const Atom& c0, const Atom& c1);

}  // namespace weft
#endif  // WEFT_IR_RANDOM_OPS_H_
