// The binary interface between compiled code and whoever runs it. Plain C structs, no LLVM, no IR.
//
// An artifact's code exports one function, `int weft_main(WeftFrame*)`. Everything it touches is reached through the
// frame: buffers as raw pointers in `slots`, numbers that depend on dimension symbols in `desc`, and the outside world
// (thread pool, libraries, callbacks) through `runtime`. Kernels of fused groups have the type WeftKernel and compute
// the units [begin, end) of their group; units are independent, so that a pool may split the range.
//
//   desc of a kernel:   [slot of operand 0, slot of operand 1, ..., symbolic size 0, symbolic size 1, ...]
//   desc of a library operation: see the WEFT_OP_* that reads it.
#ifndef WEFT_LOWERING_ABI_ABI_H_
#define WEFT_LOWERING_ABI_ABI_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WEFT_ABI_VERSION 9

struct WeftRuntime;

typedef struct WeftFrame {
  void** slots;         // one pointer per buffer of the program; loops move those of their slices
  const int64_t* desc;  // constants of all steps, symbolic ones filled in
  const struct WeftRuntime* runtime;
  void* call;     // belongs to the backend: error text, callbacks, scratch memory
  int32_t error;  // set by a failing operation; loops that can fail stop on it
  int32_t trips;  // of loops, until one polls (long ones count for more); an operation that fails sets it to 0
} WeftFrame;

typedef void (*WeftKernel)(WeftFrame* frame, const int64_t* desc, int64_t begin, int64_t end);
typedef void (*WeftOp)(WeftFrame* frame, const int64_t* desc);
// Element-wise function over n elements in memory, for operations without an inline expansion.
typedef void (*WeftMath)(void* out, const void* a, const void* b, int64_t n);

// Library operations and their names in the text of schedules. A tensor operand of them is described by [slot, dtype,
// rank, sizes..., strides in elements...].
#define WEFT_OPCODES(X)                                                                                               \
  X(CONTRACT, "contract")                                                                                             \
  X(COPY, "copy") /* [dst slot, src slot, bytes] */                                                                   \
  X(ARGMINMAX, "argminmax")                                                                                           \
  X(CUMULATIVE, "cumulative")                                                                                         \
  X(SCATTER, "scatter")                                                                                               \
  X(SORT, "sort")                                                                                                     \
  X(TOP_K, "top_k")                                                                                                   \
  X(REDUCE_WINDOW, "reduce_window")                                                                                   \
  X(CONV, "conv")                                                                                                     \
  X(CHOLESKY, "cholesky")                                                                                             \
  X(TRIANGULAR_SOLVE, "triangular_solve")                                                                             \
  X(QR, "qr")                                                                                                         \
  X(EIGH, "eigh")                                                                                                     \
  X(SVD, "svd")                                                                                                       \
  X(EIG, "eig")                                                                                                       \
  X(LU, "lu")                                                                                                         \
  X(FFT, "fft")                                                                                                       \
  X(DEBUG_PRINT, "debug_print")                                                                                       \
  X(ASSERT, "assert")                                                                                                 \
  X(REQUIRE, "require") /* [message, size, least, reads]: fails unless size >= least or reads is 0 */                 \
  X(CALLBACK, "callback")                                                                                             \
  X(COLLECTIVE, "collective")                                                                                         \
  X(TRANSPOSE, "transpose") /* tiled copy of a permuted array */                                                      \
  /* Tapes (base/tape.h). A counter slot holds the number of the trip and, for loops over tapes, that of all */       \
  /* trips. */                                                                                                        \
  X(TAPE_NEW, "tape_new")     /* [tape slot, dtype, elements of a row, lanes, trips slot or -1, number of counts] */  \
  X(TAPE_START, "tape_start") /* [counter slot]: before trip 0 */                                                     \
  X(TAPE_STEP, "tape_step")   /* [predicate slot or -1, counter slot, trips slot or -1, number of counts] */          \
  X(TAPE_WRITE, "tape_write") /* [row slot, tape slot, counter slot, reverse]: points the row slot into the tape */   \
  X(TAPE_READ, "tape_read")   /* [row slot, tape slot, counter slot, reverse, scratch slot, lanes, bytes of a row] */ \
  X(TAPE_ADD, "tape_add")     /* [result slot, x slot, y slot, number of tapes] */                                    \
  X(TAPE_MARK, "tape_mark")   /* [slot]: remembers which tapes there are */                                           \
  X(TAPE_RELEASE, "tape_release") /* [slot]: frees those made since */                                                \
  /* Recursive functions; a program exports weft_f0, weft_f1, ... beside weft_main. */                                \
  /* [function, arguments, results, argument slots..., (result slot, bytes if it is a tape)...] */                    \
  X(CALL, "function")                                                                                                 \
  X(BOX, "box")     /* [box slot, n, (slot, dtype, elements)...] */                                                   \
  X(UNBOX, "unbox") /* [box slot, n, (slot, bytes)...] */

typedef enum WeftOpcode {
#define WEFT_OPCODE(id, name) WEFT_OP_##id,
  WEFT_OPCODES(WEFT_OPCODE)
#undef WEFT_OPCODE
      WEFT_OP_COUNT
} WeftOpcode;

typedef struct WeftRuntime {
  int32_t version;
  int32_t num_threads;
  // Runs kernel over [0, units), on several threads when the estimated cost of it all makes that worth while.
  void (*parallel_for)(WeftFrame*, WeftKernel, const int64_t* desc, int64_t units, int64_t nanoseconds);
  const WeftOp* ops;     // by WeftOpcode
  const WeftMath* math;  // by index: lowering/abi/math_table.h
  // Called by loops when the frame's trips have run out: sets them anew, or the frame's error if the program is to end.
  void (*poll)(WeftFrame*);
} WeftRuntime;

typedef int32_t (*WeftMain)(WeftFrame* frame);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // WEFT_LOWERING_ABI_ABI_H_
