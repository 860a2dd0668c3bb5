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

#define WEFT_ABI_VERSION 8

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

// Library operations. A tensor operand of them is described by [slot, dtype, rank, sizes..., strides in elements...].
typedef enum WeftOpcode {
  WEFT_OP_CONTRACT = 0,
  WEFT_OP_COPY,  // [dst slot, src slot, bytes]
  WEFT_OP_ARGMINMAX,
  WEFT_OP_CUMULATIVE,
  WEFT_OP_SCATTER,
  WEFT_OP_SORT,
  WEFT_OP_TOP_K,
  WEFT_OP_REDUCE_WINDOW,
  WEFT_OP_CONV,
  WEFT_OP_CHOLESKY,
  WEFT_OP_TRIANGULAR_SOLVE,
  WEFT_OP_QR,
  WEFT_OP_EIGH,
  WEFT_OP_SVD,
  WEFT_OP_EIG,
  WEFT_OP_LU,
  WEFT_OP_FFT,
  WEFT_OP_DEBUG_PRINT,
  WEFT_OP_ASSERT,
  WEFT_OP_REQUIRE,  // [message, size, least, reads]: fails unless size >= least or reads is 0
  WEFT_OP_CALLBACK,
  WEFT_OP_COLLECTIVE,
  WEFT_OP_TRANSPOSE,  // tiled copy of a permuted array
  // Tapes (base/tape.h). A counter slot holds the number of the trip and, for loops over tapes, that of all trips.
  WEFT_OP_TAPE_NEW,      // [tape slot, dtype, elements of a row, lanes, trips slot or -1, number of trip counts]
  WEFT_OP_TAPE_START,    // [counter slot]: before trip 0
  WEFT_OP_TAPE_STEP,     // [predicate slot or -1, counter slot, trips slot or -1, number of trip counts]: next trip
  WEFT_OP_TAPE_WRITE,    // [row slot, tape slot, counter slot, reverse]: points the row slot into the tape
  WEFT_OP_TAPE_READ,     // [row slot, tape slot, counter slot, reverse, scratch slot, lanes, bytes of a row]
  WEFT_OP_TAPE_ADD,      // [result slot, x slot, y slot, number of tapes]
  WEFT_OP_TAPE_MARK,     // [slot]: remembers which tapes there are
  WEFT_OP_TAPE_RELEASE,  // [slot]: frees those made since
  // Recursive functions; a program exports weft_f0, weft_f1, ... beside weft_main.
  WEFT_OP_CALL,   // [function, arguments, results, argument slots..., (result slot, bytes if it is a tape)...]
  WEFT_OP_BOX,    // [box slot, n, (slot, dtype, elements)...]
  WEFT_OP_UNBOX,  // [box slot, n, (slot, bytes)...]
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
