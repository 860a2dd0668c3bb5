// The binary interface between compiled code and whoever runs it. Plain C structs, no LLVM, no IR.
//
// An artifact's code exports one function, `int weft_main(WeftFrame*)`. Everything it touches is reached through the
// frame: buffers as raw pointers in `slots`, numbers that depend on dimension symbols in `desc`, and the outside world
// (thread pool, libraries, callbacks) through `runtime`. Kernels of fused groups have the type WeftKernel and compute
// the units [begin, end) of their group; units are independent, so that a pool may split the range.
//
// `desc` is the program's descriptors, one after the other: what each step is told. A descriptor is the step's number
// (WeftOpcode) and its fields, which lowering/abi/steps.h has as one struct per number.
#ifndef WEFT_LOWERING_ABI_ABI_H_
#define WEFT_LOWERING_ABI_ABI_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WEFT_ABI_VERSION 13

struct WeftRuntime;

typedef struct WeftFrame {
  void** slots;         // one pointer per buffer of the program; loops move those of their slices
  const int64_t* desc;  // of all steps, symbolic numbers filled in
  const struct WeftRuntime* runtime;
  void* call;     // belongs to the backend: error text, callbacks, scratch memory
  int32_t error;  // set by a failing operation; loops that can fail stop on it
  int32_t trips;  // of loops, until one polls (long ones count for more); an operation that fails sets it to 0
} WeftFrame;

typedef void (*WeftKernel)(WeftFrame* frame, const int64_t* desc, int64_t begin, int64_t end);
typedef void (*WeftOp)(WeftFrame* frame, const int64_t* desc);
// Element-wise function over n elements in memory, for operations without an inline expansion.
typedef void (*WeftMath)(void* out, const void* a, const void* b, int64_t n);

// X(number, struct in lowering/abi/steps.h, name in the text of schedules): operations of the runtime.
#define WEFT_OPCODES(X)                                                                \
  X(CONTRACT, Contract, "contract")                                                    \
  X(COPY, Copy, "copy")                                                                \
  X(ARGMINMAX, ArgExtreme, "argminmax")                                                \
  X(CUMULATIVE, Cumulative, "cumulative")                                              \
  X(SCATTER, Scatter, "scatter")                                                       \
  X(SORT, Sort, "sort")                                                                \
  X(TOP_K, TopK, "top_k")                                                              \
  X(REDUCE_WINDOW, ReduceWindow, "reduce_window")                                      \
  X(CONV, Convolution, "conv")                                                         \
  X(CHOLESKY, Cholesky, "cholesky")                                                    \
  X(TRIANGULAR_SOLVE, TriangularSolve, "triangular_solve")                             \
  X(QR, Qr, "qr")                                                                      \
  X(EIGH, Eigh, "eigh")                                                                \
  X(SVD, Svd, "svd")                                                                   \
  X(EIG, Eig, "eig")                                                                   \
  X(LU, Lu, "lu")                                                                      \
  X(FFT, Fft, "fft")                                                                   \
  X(DEBUG_PRINT, DebugPrint, "debug_print")                                            \
  X(ASSERT, Assert, "assert")                                                          \
  X(REQUIRE, Require, "require")                                                       \
  X(CALLBACK, Callback, "callback")                                                    \
  X(COLLECTIVE, Collective, "collective")                                              \
  X(AXIS_INDEX, AxisIndex, "axis_index")                                               \
  X(SPMD, Spmd, "spmd")                                                                \
  X(TAPE_NEW, TapeNew, "tape_new")                                                     \
  X(TAPE_START, TapeStart, "tape_start")                                               \
  X(TAPE_STEP, TapeStep, "tape_step")                                                  \
  X(TAPE_WRITE, TapeWrite, "tape_write")                                               \
  X(TAPE_READ, TapeRead, "tape_read")                                                  \
  X(TAPE_ADD, TapeAdd, "tape_add")                                                     \
  X(TAPE_MARK, TapeMark, "tape_mark")                                                  \
  X(TAPE_RELEASE, TapeRelease, "tape_release")                                         \
  /* Recursive functions; a program exports weft_f0, weft_f1, ... beside weft_main. */ \
  X(CALL, Call, "function")                                                            \
  X(BOX, Box, "box")                                                                   \
  X(UNBOX, Unbox, "unbox")
// The same of what the program's code does itself.
#define WEFT_OWN_STEPS(X)     \
  X(KERNEL, Kernel, "kernel") \
  X(LOOP, Loop, "loop")

// And of a plan for a GPU (lowering/abi/gpu_artifact.h), besides copies.
#define WEFT_GPU_STEPS(X)     \
  X(LAUNCH, Launch, "launch") \
  X(PRODUCT, Product, "product")

typedef enum WeftOpcode {
#define WEFT_OPCODE(id, structure, name) WEFT_OP_##id,
  WEFT_OPCODES(WEFT_OPCODE) WEFT_OP_COUNT,
  WEFT_OP_BEFORE_OWN = WEFT_OP_COUNT - 1,
  WEFT_OWN_STEPS(WEFT_OPCODE) WEFT_GPU_STEPS(WEFT_OPCODE)
#undef WEFT_OPCODE
      WEFT_STEP_COUNT
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
  // Rows [first, last) of a product, on this thread. The descriptor is that of the operation; what rows are and where
  // they may be cut: lowering/abi/product_form.h.
  void (*product_rows)(WeftFrame*, const int64_t* desc, int64_t first, int64_t last);
} WeftRuntime;

typedef int32_t (*WeftMain)(WeftFrame* frame);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // WEFT_LOWERING_ABI_ABI_H_
