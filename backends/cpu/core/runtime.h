// The functions behind the ABI table: what compiled code calls.
#ifndef WEFT_BACKENDS_CPU_CORE_RUNTIME_H_
#define WEFT_BACKENDS_CPU_CORE_RUNTIME_H_

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/tape.h"
#include "lowering/abi/abi.h"
#include "lowering/abi/artifact.h"
#include "lowering/abi/steps.h"

namespace weft::cpu {

// Memory of the frames of recursive functions, last in first out.
class FrameStack {
 public:
  struct Mark {
    size_t chunk = 0;
    int64_t used = 0;
  };
  // Uninitialised; raises std::bad_alloc. `mark` is for Pop.
  char* Push(int64_t bytes, Mark* mark);
  void Pop(Mark mark) { chunk_ = mark.chunk, used_ = mark.used; }

 private:
  struct Chunk {
    std::unique_ptr<void, void (*)(void*)> memory;
    int64_t bytes;
  };
  std::vector<Chunk> chunks_;
  size_t chunk_ = 0;
  int64_t used_ = 0;
};

struct Devices;  // backends/cpu/core/devices.cc

// What a running program's operations may need besides the frame.
struct Call {
  const std::vector<std::string>* strings = nullptr;
  const std::vector<int64_t>* callbacks = nullptr;  // the host's numbers of them
  std::string error;                                // of the first operation that failed; empty: no memory for it
  std::exception_ptr failure;                       // what the host threw there, if it did
  struct Function {                                 // a recursive function of the program
    WeftMain code = nullptr;
    const std::string* name = nullptr;
    const std::vector<Artifact::Slot>* slots = nullptr;
    const std::vector<int64_t>* offsets = nullptr;  // by slot, as in Program::Layout
    int64_t arena_bytes = 0;
  };
  std::span<const Function> functions;
  char* constants = nullptr;
  FrameStack frames;
  int64_t depth = 0;                                      // of calls of recursive functions
  std::shared_ptr<TapeRegion> tapes;                      // made by this call; nullptr until there is one
  std::vector<std::shared_ptr<TapeRegion>> device_tapes;  // made by the devices of meshes inside
  Devices* devices = nullptr;                             // of the mesh that runs this, and which one it is
  int64_t device = 0;
  bool* group_failed = nullptr;  // whether any of these devices has failed
};

// What the tapes that the call makes live in.
TapeRegion& TapesOf(WeftFrame* frame);

// Marks the call as failed; the first message or exception wins.
void Fail(WeftFrame* frame, const std::string& message);
void Fail(WeftFrame* frame, std::exception_ptr exception);

const WeftRuntime& Runtime();

// The tables' parts, one file each.
void FillMath(WeftMath* table);
void FillContract(WeftOp* ops);
// Rows [first, last) of a product, on this thread (WeftRuntime::product_rows).
void ProductRows(WeftFrame* frame, const int64_t* desc, int64_t first, int64_t last);
void FillArgExtremes(WeftOp* ops);
void FillScans(WeftOp* ops);
void FillIndexing(WeftOp* ops);
void FillSorting(WeftOp* ops);
void FillWindows(WeftOp* ops);
void FillLinalg(WeftOp* ops);
void FillFft(WeftOp* ops);
void FillEffects(WeftOp* ops);
void FillTapes(WeftOp* ops);
void FillFunctions(WeftOp* ops);
void FillDevices(WeftOp* ops);

using abi::InWords;

// Puts `run`, which takes the frame and what a step is told, into the table: void (WeftFrame*, const S<InWords>&).
template <class S>
struct StepOf;
template <class S>
struct StepOf<void (*)(WeftFrame*, const S&)> {
  using type = S;
};
template <auto run>
void Put(WeftOp* ops) {
  using S = typename StepOf<decltype(run)>::type;
  ops[S::kOpcode] = [](WeftFrame* frame, const int64_t* desc) { run(frame, abi::Decode<S>(desc)); };
}

// A dense operand.
struct DenseTensor {
  void* data = nullptr;
  DType dtype{};
  std::vector<int64_t> shape;
  DenseTensor(WeftFrame* frame, const abi::Array<InWords>& a)
      : data(frame->slots[a.place]), dtype(a.dtype), shape(a.dims.begin(), a.dims.end()) {}
  int64_t size() const {
    int64_t n = 1;
    for (int64_t d : shape) n *= d;
    return n;
  }
  template <class T>
  T* as() const {
    return static_cast<T*>(data);
  }
};
inline std::vector<int64_t> Ints(std::span<const int64_t> list) { return {list.begin(), list.end()}; }

}  // namespace weft::cpu
#endif  // WEFT_BACKENDS_CPU_CORE_RUNTIME_H_
