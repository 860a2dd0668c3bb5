// The binary interface of host emulation: GPU kernels compiled for the CPU, one call per CUDA thread. Plain C, no LLVM.
//
// The shared object exports, for a kernel `k`, `void k_launch(void** arguments)`, which runs one thread of it, and
// `k_shared`, the block's shared memory (if it has any). What a thread asks of the machine goes through the table of
// functions that `weft_emulation` points at.
#ifndef WEFT_LOWERING_ABI_EMULATION_ABI_H_
#define WEFT_LOWERING_ABI_EMULATION_ABI_H_

#include <cstdint>

namespace weft {

// A row per function. MACHINE(name, type): of the machine. Before each load and store code calls weft_access(address,
// bytes, alignment, write). Barriers and shuffles (site, value, distance) carry the number of the instruction, the same
// for all threads. UNARY(name), BINARY(name): of libdevice, called __nv_name for double and __nv_namef for single
// precision.
#define WEFT_EMULATION_FUNCTIONS(MACHINE, UNARY, BINARY)             \
  MACHINE(weft_thread, int32_t())                                    \
  MACHINE(weft_block, int32_t())                                     \
  MACHINE(weft_barrier, void(int32_t))                               \
  MACHINE(weft_shuffle, int32_t(int32_t, int32_t, int32_t))          \
  MACHINE(weft_access, void(const void*, int64_t, int64_t, int32_t)) \
  UNARY(exp)                                                         \
  UNARY(exp2)                                                        \
  UNARY(expm1)                                                       \
  UNARY(log)                                                         \
  UNARY(log1p)                                                       \
  UNARY(cbrt)                                                        \
  UNARY(sin)                                                         \
  UNARY(cos)                                                         \
  UNARY(tan)                                                         \
  UNARY(asin)                                                        \
  UNARY(acos)                                                        \
  UNARY(atan)                                                        \
  UNARY(sinh)                                                        \
  UNARY(cosh)                                                        \
  UNARY(tanh)                                                        \
  UNARY(asinh)                                                       \
  UNARY(acosh)                                                       \
  UNARY(atanh)                                                       \
  UNARY(erf)                                                         \
  UNARY(erfc)                                                        \
  UNARY(lgamma)                                                      \
  UNARY(erfinv)                                                      \
  BINARY(pow)                                                        \
  BINARY(atan2)                                                      \
  BINARY(fmod)                                                       \
  UNARY(round)

// The table: a member for each, of its type. Entry i is the i-th pointer.
struct EmulationTable {
  template <class F>
  using Pointer = F*;
#define WEFT_MACHINE(name, type) Pointer<type> name{};
#define WEFT_UNARY(name)               \
  Pointer<double(double)> nv_##name{}; \
  Pointer<float(float)> nv_##name##f{};
#define WEFT_BINARY(name)                      \
  Pointer<double(double, double)> nv_##name{}; \
  Pointer<float(float, float)> nv_##name##f{};
  WEFT_EMULATION_FUNCTIONS(WEFT_MACHINE, WEFT_UNARY, WEFT_BINARY)
#undef WEFT_MACHINE
#undef WEFT_UNARY
#undef WEFT_BINARY
};

// Their names, in the order of the table.
inline constexpr const char* kEmulationFunctions[] = {
#define WEFT_MACHINE(name, type) #name,
#define WEFT_MATH(name) "__nv_" #name, "__nv_" #name "f",
    WEFT_EMULATION_FUNCTIONS(WEFT_MACHINE, WEFT_MATH, WEFT_MATH)
#undef WEFT_MACHINE
#undef WEFT_MATH
};
inline constexpr int kNumEmulationFunctions = sizeof(kEmulationFunctions) / sizeof(kEmulationFunctions[0]);
static_assert(sizeof(EmulationTable) == kNumEmulationFunctions * sizeof(void*));

}  // namespace weft
#endif  // WEFT_LOWERING_ABI_EMULATION_ABI_H_
