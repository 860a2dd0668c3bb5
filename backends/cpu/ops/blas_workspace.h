// OpenBLAS works in memory of its own, a piece for every call that runs, which it keeps. Where the system has none it
// asks again without end, so nothing calls it before a piece is sure to be there.
#ifndef WEFT_BACKENDS_CPU_OPS_BLAS_WORKSPACE_H_
#define WEFT_BACKENDS_CPU_OPS_BLAS_WORKSPACE_H_

namespace weft::cpu {

// A piece for the calls that the thread makes while this lives. Waits where other threads have all that there are and
// the system gives no more; throws OutOfMemory where there is none at all.
class BlasWorkspace {
 public:
  BlasWorkspace();
  ~BlasWorkspace();
  BlasWorkspace(const BlasWorkspace&) = delete;
};

}  // namespace weft::cpu
#endif  // WEFT_BACKENDS_CPU_OPS_BLAS_WORKSPACE_H_
