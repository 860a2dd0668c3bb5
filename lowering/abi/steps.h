// What each step of a program is told: one struct per number of abi.h, whose fields are listed once (see fields.h).
// `F` says what the fields hold: values and symbolic sizes in a schedule, slots and numbers in a program.
#ifndef WEFT_LOWERING_ABI_STEPS_H_
#define WEFT_LOWERING_ABI_STEPS_H_

#include <cstdint>

#include "base/dtype.h"
#include "lowering/abi/abi.h"
#include "lowering/abi/fields.h"
#include "lowering/abi/gpu_steps.h"

namespace weft::abi {

// ---- Parts ---------------------------------------------------------------------------------------------------------

// A dense array.
template <class F>
struct Array {
  typename F::Place place{};
  weft::DType dtype{};
  typename F::Numbers dims{};
  WEFT_ABI_FIELDS { v.Place("place", s.place), v.Word("dtype", s.dtype), v.Words("dims", s.dims, kSize); }
};

// An array that lies by strides, in elements, and begins `start` elements behind its place.
template <class F>
struct Strided {
  typename F::Place place{};
  weft::DType dtype{};
  typename F::Number start{};
  typename F::Numbers dims{}, strides{};
  WEFT_ABI_FIELDS {
    v.Place("place", s.place), v.Word("dtype", s.dtype), v.Word("start", s.start, kSize);
    v.Words("dims", s.dims, kSize);
    v.Words("strides", s.strides, kNumber, static_cast<int64_t>(s.dims.size()));
  }
};

// A dimension of a contraction: its size, and its stride in each array, in elements; 0 in those that lack it.
template <class F>
struct Factor {
  typename F::Number size{}, x{}, y{}, result{};
  WEFT_ABI_FIELDS {
    v.Word("size", s.size, kSize), v.Word("x", s.x, kNumber), v.Word("y", s.y, kNumber);
    v.Word("result", s.result, kNumber);
  }
};

// ---- Memory --------------------------------------------------------------------------------------------------------

template <class F>
struct Copy {
  static constexpr WeftOpcode kOpcode = WEFT_OP_COPY;
  typename F::Place to{}, from{};
  typename F::Number bytes{};
  WEFT_ABI_FIELDS { v.Place("to", s.to), v.Place("from", s.from), v.Word("bytes", s.bytes, kSize); }
};

// ---- Numbers -------------------------------------------------------------------------------------------------------

// result[batch, m, n] = sum over k of x[batch, m, k] * y[batch, k, n]; arrays begin `start` elements behind their
// place.
template <class F>
struct Contract {
  static constexpr WeftOpcode kOpcode = WEFT_OP_CONTRACT;
  typename F::Place x{}, y{}, result{};
  weft::DType dtype{}, result_dtype{};
  typename F::Number x_start{}, y_start{};
  typename F::template List<Factor<F>> batch{}, m{}, n{}, k{};
  WEFT_ABI_FIELDS {
    v.Place("x", s.x), v.Place("y", s.y), v.Place("result", s.result);
    v.Word("dtype", s.dtype), v.Word("result_dtype", s.result_dtype);
    v.Word("x_start", s.x_start, kSize), v.Word("y_start", s.y_start, kSize);
    v.List("batch", s.batch), v.List("m", s.m), v.List("n", s.n), v.List("k", s.k);
  }
};

template <class F>
struct ArgExtreme {
  static constexpr WeftOpcode kOpcode = WEFT_OP_ARGMINMAX;
  Array<F> x{};
  typename F::Place result{};
  weft::DType result_dtype{};
  int64_t dim = 0;
  bool smallest = false;
  WEFT_ABI_FIELDS {
    v.Part("x", s.x), v.Place("result", s.result), v.Word("result_dtype", s.result_dtype);
    v.Word("dim", s.dim, Below(s.x.dims.size())), v.Word("smallest", s.smallest);
  }
};

WEFT_ABI_ENUM(CumulativeKind, kSum, kProduct, kMax, kMin, kLogSumExp)
template <class F>
struct Cumulative {
  static constexpr WeftOpcode kOpcode = WEFT_OP_CUMULATIVE;
  Array<F> x{};
  typename F::Place result{};
  CumulativeKind kind{};
  int64_t dim = 0;
  bool reverse = false;
  WEFT_ABI_FIELDS {
    v.Part("x", s.x), v.Place("result", s.result), v.Word("kind", s.kind);
    v.Word("dim", s.dim, Below(s.x.dims.size())), v.Word("reverse", s.reverse);
  }
};

WEFT_ABI_ENUM(ScatterKind, kSet, kAdd, kMul, kMin, kMax)
// `result` holds the operand, and is updated.
template <class F>
struct Scatter {
  static constexpr WeftOpcode kOpcode = WEFT_OP_SCATTER;
  Array<F> result{}, indices{}, updates{};
  ScatterKind kind{};
  bool clip = false;
  typename F::Numbers update_window_dims{}, inserted_dims{}, operand_batch_dims{}, indices_batch_dims{}, scatter_dims{};
  WEFT_ABI_FIELDS {
    v.Part("result", s.result), v.Part("indices", s.indices), v.Part("updates", s.updates);
    v.Word("kind", s.kind), v.Word("clip", s.clip);
    const Kind of_result = Below(s.result.dims.size());
    v.Words("update_window_dims", s.update_window_dims, Below(s.updates.dims.size()));
    v.Words("inserted_dims", s.inserted_dims, of_result);
    v.Words("operand_batch_dims", s.operand_batch_dims, of_result);
    v.Words("indices_batch_dims", s.indices_batch_dims, Below(s.indices.dims.size()),
            static_cast<int64_t>(s.operand_batch_dims.size()));
    v.Words("scatter_dims", s.scatter_dims, of_result);
  }
};

template <class F>
struct SortOperand {
  typename F::Place x{}, result{};
  weft::DType dtype{};
  WEFT_ABI_FIELDS { v.Place("x", s.x), v.Place("result", s.result), v.Word("dtype", s.dtype); }
};
template <class F>
struct Sort {
  static constexpr WeftOpcode kOpcode = WEFT_OP_SORT;
  typename F::Numbers dims{};  // of all operands
  int64_t dim = 0;
  typename F::template List<SortOperand<F>> operands{};
  int64_t num_keys = 0;
  WEFT_ABI_FIELDS {
    v.Words("dims", s.dims, kSize), v.Word("dim", s.dim, Below(s.dims.size()));
    v.List("operands", s.operands), v.Word("num_keys", s.num_keys, Below(s.operands.size() + 1));
  }
};

template <class F>
struct TopK {
  static constexpr WeftOpcode kOpcode = WEFT_OP_TOP_K;
  Array<F> x{};
  typename F::Place values{}, indices{};
  int64_t k = 0;
  WEFT_ABI_FIELDS {
    v.Part("x", s.x), v.Place("values", s.values), v.Place("indices", s.indices), v.Word("k", s.k, kSize);
  }
};

WEFT_ABI_ENUM(WindowKind, kSum, kMax, kMin)
template <class F>
struct ReduceWindow {
  static constexpr WeftOpcode kOpcode = WEFT_OP_REDUCE_WINDOW;
  Array<F> x{}, result{};
  WindowKind kind{};
  typename F::Numbers window{}, strides{}, lo{}, base_dilation{}, window_dilation{};
  WEFT_ABI_FIELDS {
    v.Part("x", s.x), v.Part("result", s.result), v.Word("kind", s.kind);
    const auto rank = static_cast<int64_t>(s.x.dims.size());
    v.Words("window", s.window, kSize, rank), v.Words("strides", s.strides, kPositive, rank);
    v.Words("lo", s.lo, kNumber, rank), v.Words("base_dilation", s.base_dilation, kPositive, rank);
    v.Words("window_dilation", s.window_dilation, kPositive, rank);
  }
};

// x [n, c, spatial...], w [o, i, spatial...], result [n, o, spatial...]; lists have an entry per spatial dimension.
template <class F>
struct Convolution {
  static constexpr WeftOpcode kOpcode = WEFT_OP_CONV;
  Strided<F> x{}, w{};
  Array<F> result{};
  typename F::Numbers strides{}, lo{}, base_dilation{}, window_dilation{};
  int64_t feature_groups = 1, batch_groups = 1;
  WEFT_ABI_FIELDS {
    v.Part("x", s.x), v.Part("w", s.w), v.Part("result", s.result), v.Words("strides", s.strides, kPositive);
    const auto spatial = static_cast<int64_t>(s.strides.size());
    v.Words("lo", s.lo, kNumber, spatial), v.Words("base_dilation", s.base_dilation, kPositive, spatial);
    v.Words("window_dilation", s.window_dilation, kPositive, spatial);
    v.Word("feature_groups", s.feature_groups, kPositive), v.Word("batch_groups", s.batch_groups, kPositive);
  }
};

// ---- Linear algebra: matrices, or stacks of them -------------------------------------------------------------------

template <class F>
struct Cholesky {
  static constexpr WeftOpcode kOpcode = WEFT_OP_CHOLESKY;
  Array<F> x{}, l{};
  WEFT_ABI_FIELDS { v.Part("x", s.x), v.Part("l", s.l); }
};
template <class F>
struct Lu {
  static constexpr WeftOpcode kOpcode = WEFT_OP_LU;
  Array<F> x{}, lu{}, pivots{}, permutation{};
  WEFT_ABI_FIELDS {
    v.Part("x", s.x), v.Part("lu", s.lu), v.Part("pivots", s.pivots), v.Part("permutation", s.permutation);
  }
};
template <class F>
struct Qr {
  static constexpr WeftOpcode kOpcode = WEFT_OP_QR;
  Array<F> x{}, q{}, r{};
  WEFT_ABI_FIELDS { v.Part("x", s.x), v.Part("q", s.q), v.Part("r", s.r); }
};
template <class F>
struct Eigh {
  static constexpr WeftOpcode kOpcode = WEFT_OP_EIGH;
  Array<F> x{}, w{}, v{};
  template <class V, class S>
  static constexpr void Fields(V& visit, S& s) {
    visit.Part("x", s.x), visit.Part("w", s.w), visit.Part("v", s.v);
  }
};
template <class F>
struct Eig {
  static constexpr WeftOpcode kOpcode = WEFT_OP_EIG;
  bool vectors = false;
  Array<F> x{}, w{}, v{};
  template <class V, class S>
  static constexpr void Fields(V& visit, S& s) {
    visit.Word("vectors", s.vectors), visit.Part("x", s.x), visit.Part("w", s.w);
    if (s.vectors) visit.Part("v", s.v);
  }
};
template <class F>
struct Svd {
  static constexpr WeftOpcode kOpcode = WEFT_OP_SVD;
  bool vectors = false;
  Array<F> x{}, u{}, singular{}, vt{};
  WEFT_ABI_FIELDS {
    v.Word("vectors", s.vectors), v.Part("x", s.x);
    if (s.vectors) v.Part("u", s.u);
    v.Part("singular", s.singular);
    if (s.vectors) v.Part("vt", s.vt);
  }
};
template <class F>
struct TriangularSolve {
  static constexpr WeftOpcode kOpcode = WEFT_OP_TRIANGULAR_SOLVE;
  bool left = false, lower = false, transpose = false, conjugate = false, unit_diagonal = false;
  Array<F> a{}, b{}, x{};
  WEFT_ABI_FIELDS {
    v.Word("left", s.left), v.Word("lower", s.lower), v.Word("transpose", s.transpose);
    v.Word("conjugate", s.conjugate), v.Word("unit_diagonal", s.unit_diagonal);
    v.Part("a", s.a), v.Part("b", s.b), v.Part("x", s.x);
  }
};

WEFT_ABI_ENUM(FftKind, kFft, kIfft, kRfft, kIrfft)
template <class F>
struct Fft {
  static constexpr WeftOpcode kOpcode = WEFT_OP_FFT;
  FftKind kind{};
  typename F::Numbers lengths{};  // of the last dimensions
  Array<F> x{}, result{};
  WEFT_ABI_FIELDS {
    v.Word("kind", s.kind), v.Words("lengths", s.lengths, kPositive), v.Part("x", s.x), v.Part("result", s.result);
  }
};

// ---- Effects -------------------------------------------------------------------------------------------------------

template <class F>
struct DebugPrint {
  static constexpr WeftOpcode kOpcode = WEFT_OP_DEBUG_PRINT;
  int64_t format = 0;
  typename F::template List<Array<F>> operands{};
  WEFT_ABI_FIELDS { v.Word("format", s.format, kString), v.List("operands", s.operands); }
};
template <class F>
struct Assert {
  static constexpr WeftOpcode kOpcode = WEFT_OP_ASSERT;
  int64_t message = 0;
  Array<F> predicate{};
  typename F::template List<Array<F>> operands{};
  WEFT_ABI_FIELDS {
    v.Word("message", s.message, kString), v.Part("predicate", s.predicate), v.List("operands", s.operands);
  }
};
// Fails unless size >= least or reads is 0.
template <class F>
struct Require {
  static constexpr WeftOpcode kOpcode = WEFT_OP_REQUIRE;
  int64_t message = 0;
  typename F::Number size{}, least{}, reads{};
  WEFT_ABI_FIELDS {
    v.Word("message", s.message, kString), v.Word("size", s.size, kNumber), v.Word("least", s.least, kNumber);
    v.Word("reads", s.reads, kNumber);
  }
};
template <class F>
struct Callback {
  static constexpr WeftOpcode kOpcode = WEFT_OP_CALLBACK;
  int64_t callback = 0;
  typename F::template List<Array<F>> operands{}, results{};
  WEFT_ABI_FIELDS {
    v.Word("callback", s.callback, kCallback), v.List("operands", s.operands), v.List("results", s.results);
  }
};

// ---- Devices of a mesh ---------------------------------------------------------------------------------------------

WEFT_ABI_ENUM(CollectiveKind, kPsum, kPmax, kPmin, kAllGather, kPsumScatter, kAllToAll, kPpermute)
template <class F>
struct Collective {
  static constexpr WeftOpcode kOpcode = WEFT_OP_COLLECTIVE;
  CollectiveKind kind{};
  typename F::Place result{};
  typename F::Numbers axes{};    // by their place in the mesh
  int64_t name = 0;              // of the operation, for messages
  typename F::Place returned{};  // the result of the body that this is, and nothing else
  Array<F> x{};
  int64_t dim = 0;                             // that is gathered, scattered, or split by all_to_all
  int64_t concat = 0;                          // that all_to_all puts together
  typename F::Numbers senders{}, receivers{};  // of ppermute
  WEFT_ABI_FIELDS {
    v.Word("kind", s.kind), v.Place("result", s.result), v.Words("axes", s.axes, kAxis),
        v.Word("name", s.name, kString);
    v.Place("returned", s.returned, kResult), v.Part("x", s.x);
    const Kind of_x = Below(s.x.dims.empty() ? 1 : s.x.dims.size());
    v.Word("dim", s.dim, of_x), v.Word("concat", s.concat, of_x), v.Words("senders", s.senders, kSize);
    v.Words("receivers", s.receivers, kSize, static_cast<int64_t>(s.senders.size()));
  }
};

template <class F>
struct AxisIndex {
  static constexpr WeftOpcode kOpcode = WEFT_OP_AXIS_INDEX;
  typename F::Place result{};
  int64_t axis = 0;  // its place in the mesh
  WEFT_ABI_FIELDS { v.Place("result", s.result), v.Word("axis", s.axis, kAxis); }
};

// An operand or result of Spmd, as the devices hold it.
template <class F>
struct Blocks {
  typename F::Place place{};
  typename F::Number bytes{};              // of a block
  int64_t width = 1;                       // bytes of an element
  typename F::Numbers sizes{}, strides{};  // of a block, and in elements of the whole array
  typename F::Numbers starts{};            // of each device's block, in bytes
  typename F::Numbers first{};             // whether each device is the first that holds its block
  WEFT_ABI_FIELDS {
    v.Place("place", s.place), v.Word("bytes", s.bytes, kSize), v.Word("width", s.width, kPositive);
    v.Words("sizes", s.sizes, kSize), v.Words("strides", s.strides, kSize, static_cast<int64_t>(s.sizes.size()));
    v.Words("starts", s.starts, kSize);
    v.Words("first", s.first, Below(2), static_cast<int64_t>(s.starts.size()));
  }
};

// Runs a function once for each device of a mesh.
template <class F>
struct Spmd {
  static constexpr WeftOpcode kOpcode = WEFT_OP_SPMD;
  int64_t function = 0;
  typename F::Numbers axes{};  // sizes
  bool spans_processes = false;
  // Where it does: this process, what all of them have to agree about, the program's name, the process of each device.
  int64_t process = 0, digest = 0, program = 0;
  typename F::Numbers processes{};
  typename F::template List<Blocks<F>> operands{}, results{};
  typename F::Numbers overwritten{};  // by operand: whether devices write over their blocks of it
  typename F::Numbers left_in{};      // by result: the operand in whose blocks it is left; -1: in none
  WEFT_ABI_FIELDS {
    v.Word("function", s.function, kFunction), v.Words("axes", s.axes, kDeviceCount);
    v.Word("spans_processes", s.spans_processes);
    if (s.spans_processes) {
      v.Word("process", s.process, kProcess), v.Word("digest", s.digest), v.Word("program", s.program, kString);
      v.Words("processes", s.processes, kProcess);
    }
    v.List("operands", s.operands), v.List("results", s.results);
    const auto num_operands = static_cast<int64_t>(s.operands.size());
    v.Words("overwritten", s.overwritten, Below(2), num_operands);
    v.Words("left_in", s.left_in, Kind{Kind::What::kNumber, -1, num_operands - 1},
            static_cast<int64_t>(s.results.size()));
  }
};

// ---- Tapes (base/tape.h) -------------------------------------------------------------------------------------------
// A counter is two words: the number of the trip and, of loops over tapes, of all trips.

template <class F>
struct TapeNew {
  static constexpr WeftOpcode kOpcode = WEFT_OP_TAPE_NEW;
  typename F::Place tape{};
  weft::DType dtype{};
  typename F::Number row_elements{}, tapes{};
  typename F::Place trips{};  // where it is known how many rows there will be: counts, of which the largest is taken
  typename F::Number num_trips{};
  WEFT_ABI_FIELDS {
    v.Place("tape", s.tape), v.Word("dtype", s.dtype), v.Word("row_elements", s.row_elements, kSize);
    v.Word("tapes", s.tapes, kSize), v.Place("trips", s.trips, kMaybeSlot), v.Word("num_trips", s.num_trips, kSize);
  }
};
// Before trip 0.
template <class F>
struct TapeStart {
  static constexpr WeftOpcode kOpcode = WEFT_OP_TAPE_START;
  typename F::Place counter{};
  WEFT_ABI_FIELDS { v.Place("counter", s.counter); }
};
// Counts a trip; with a predicate, says whether there is one.
template <class F>
struct TapeStep {
  static constexpr WeftOpcode kOpcode = WEFT_OP_TAPE_STEP;
  typename F::Place predicate{}, counter{}, trips{};
  typename F::Number num_trips{};
  WEFT_ABI_FIELDS {
    v.Place("predicate", s.predicate, kMaybeSlot), v.Place("counter", s.counter);
    v.Place("trips", s.trips, kMaybeSlot), v.Word("num_trips", s.num_trips, kSize);
  }
};
// Points `row` into the tape.
template <class F>
struct TapeWrite {
  static constexpr WeftOpcode kOpcode = WEFT_OP_TAPE_WRITE;
  typename F::Place row{}, tape{}, counter{};
  bool reverse = false;
  WEFT_ABI_FIELDS {
    v.Place("row", s.row), v.Place("tape", s.tape), v.Place("counter", s.counter), v.Word("reverse", s.reverse);
  }
};
// Points `row` into the tape, or at `scratch`, where rows of several tapes are put together.
template <class F>
struct TapeRead {
  static constexpr WeftOpcode kOpcode = WEFT_OP_TAPE_READ;
  typename F::Place row{}, tape{}, counter{};
  bool reverse = false;
  typename F::Place scratch{};
  typename F::Number tapes{}, row_bytes{};
  WEFT_ABI_FIELDS {
    v.Place("row", s.row), v.Place("tape", s.tape), v.Place("counter", s.counter), v.Word("reverse", s.reverse);
    v.Place("scratch", s.scratch), v.Word("tapes", s.tapes, kSize), v.Word("row_bytes", s.row_bytes, kSize);
  }
};
template <class F>
struct TapeAdd {
  static constexpr WeftOpcode kOpcode = WEFT_OP_TAPE_ADD;
  typename F::Place result{}, x{}, y{};
  typename F::Number tapes{};
  WEFT_ABI_FIELDS {
    v.Place("result", s.result), v.Place("x", s.x), v.Place("y", s.y), v.Word("tapes", s.tapes, kSize);
  }
};
// Remembers which tapes there are.
template <class F>
struct TapeMark {
  static constexpr WeftOpcode kOpcode = WEFT_OP_TAPE_MARK;
  typename F::Place mark{};
  WEFT_ABI_FIELDS { v.Place("mark", s.mark); }
};
// Frees those made since.
template <class F>
struct TapeRelease {
  static constexpr WeftOpcode kOpcode = WEFT_OP_TAPE_RELEASE;
  typename F::Place mark{};
  WEFT_ABI_FIELDS { v.Place("mark", s.mark); }
};

// ---- Recursive functions -------------------------------------------------------------------------------------------

template <class F>
struct Call {
  static constexpr WeftOpcode kOpcode = WEFT_OP_CALL;
  int64_t function = 0;
  typename F::Places arguments{}, results{};
  typename F::Numbers tape_bytes{};  // by result: what has to be cleared of it where the call fails
  WEFT_ABI_FIELDS {
    v.Word("function", s.function, kFunction), v.Places("arguments", s.arguments), v.Places("results", s.results);
    v.Words("tape_bytes", s.tape_bytes, kSize, static_cast<int64_t>(s.results.size()));
  }
};
template <class F>
struct BoxItem {
  typename F::Place place{};
  weft::DType dtype{};
  typename F::Number elements{};
  WEFT_ABI_FIELDS { v.Place("place", s.place), v.Word("dtype", s.dtype), v.Word("elements", s.elements, kSize); }
};
template <class F>
struct Box {
  static constexpr WeftOpcode kOpcode = WEFT_OP_BOX;
  typename F::Place box{};
  typename F::template List<BoxItem<F>> items{};
  WEFT_ABI_FIELDS { v.Place("box", s.box), v.List("items", s.items); }
};
template <class F>
struct UnboxItem {
  typename F::Place place{};
  typename F::Number bytes{};
  WEFT_ABI_FIELDS { v.Place("place", s.place), v.Word("bytes", s.bytes, kSize); }
};
template <class F>
struct Unbox {
  static constexpr WeftOpcode kOpcode = WEFT_OP_UNBOX;
  typename F::Place box{};
  typename F::template List<UnboxItem<F>> items{};
  WEFT_ABI_FIELDS { v.Place("box", s.box), v.List("items", s.items); }
};

// ---- What the program's code reads itself --------------------------------------------------------------------------

template <class F>
struct Kernel {
  static constexpr WeftOpcode kOpcode = WEFT_OP_KERNEL;
  typename F::Places operands{};
  typename F::Numbers sizes{};  // that depend on symbols: KernelSpec::SymbolicSizes
  WEFT_ABI_FIELDS { v.Places("operands", s.operands), v.Words("sizes", s.sizes, kNumber); }
};
// A loop over slices of arrays: how often, and how far each slice is from the one before, in bytes.
template <class F>
struct Loop {
  static constexpr WeftOpcode kOpcode = WEFT_OP_LOOP;
  typename F::Number trips{};
  typename F::Numbers strides{};
  WEFT_ABI_FIELDS { v.Word("trips", s.trips, kNumber), v.Words("strides", s.strides, kNumber); }
};

// ---- All of them ---------------------------------------------------------------------------------------------------

#define WEFT_COMPLETE(id, structure, name)                                                                       \
  static_assert(structure<InWords>::kOpcode == WEFT_OP_##id, "a struct has the number of another row of abi.h"); \
  static_assert(ListsEveryField<structure<InWords>>(),                                                           \
                "Fields of " #structure " leaves out a field, or lists one twice");
WEFT_OPCODES(WEFT_COMPLETE)
WEFT_OWN_STEPS(WEFT_COMPLETE)
WEFT_GPU_STEPS(WEFT_COMPLETE)
#undef WEFT_COMPLETE

// Calls `visit.template operator()<Struct>()` with the struct of a number, of the form F; false where there is none.
template <class F, class Visit>
bool VisitStep(int64_t opcode, const Visit& visit) {
  switch (opcode) {
#define WEFT_CASE(id, structure, name) \
  case WEFT_OP_##id: visit.template operator()<structure<F>>(); return true;
    WEFT_OPCODES(WEFT_CASE)
    WEFT_OWN_STEPS(WEFT_CASE)
    WEFT_GPU_STEPS(WEFT_CASE)
#undef WEFT_CASE
    default: return false;
  }
}

// The name of a number, in the text of schedules and in messages.
constexpr const char* StepName(int64_t opcode) {
  constexpr const char* kNames[] = {
#define WEFT_NAME(id, structure, name) name,
      WEFT_OPCODES(WEFT_NAME) WEFT_OWN_STEPS(WEFT_NAME) WEFT_GPU_STEPS(WEFT_NAME)
#undef WEFT_NAME
  };
  return opcode >= 0 && opcode < WEFT_STEP_COUNT ? kNames[opcode] : "a step of no number";
}

}  // namespace weft::abi
#endif  // WEFT_LOWERING_ABI_STEPS_H_
