// Threefry-2x32 with 20 rounds: a counter-based random function (Salmon, Moraes, Dror, Shaw, "Parallel random numbers:
// as easy as 1, 2, 3", SC 2011), here once for numbers and for expressions of the IR.
#ifndef WEFT_IR_PRIMS_THREEFRY_H_
#define WEFT_IR_PRIMS_THREEFRY_H_

#include <cstdint>
#include <utility>

namespace weft {

// W: an unsigned 32-bit number with +, ^ and RotateLeft(w, bits).
template <class W>
std::pair<W, W> ThreefryRounds(const W& k0, const W& k1, const W& c0, const W& c1) {
  constexpr int kRotations[2][4] = {{13, 15, 26, 6}, {17, 29, 16, 24}};
  const W keys[3] = {k0, k1, k0 ^ k1 ^ uint32_t{0x1BD11BDA}};
  W x = c0 + keys[0], y = c1 + keys[1];
  for (uint32_t group = 0; group < 5; ++group) {
    for (const int bits : kRotations[group % 2]) {
      x = x + y;
      y = RotateLeft(y, bits) ^ x;
    }
    // A part of the key after every four rounds.
    x = x + keys[(group + 1) % 3];
    y = y + keys[(group + 2) % 3] + (group + 1);
  }
  return {x, y};
}

}  // namespace weft
#endif  // WEFT_IR_PRIMS_THREEFRY_H_
