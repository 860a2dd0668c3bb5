// The binary interface of host emulation: GPU kernels compiled for the CPU, one call per CUDA thread. Plain C, no LLVM.
//
// The shared object exports, for a kernel `k`, `void k_launch(void** arguments)`, which runs one thread of it, and
// `k_shared`, the block's shared memory (if it has any). What a thread asks of the machine goes through the table that
// `weft_emulation` points at: entry i is the function that kEmulationFunctions names.
#ifndef WEFT_LOWERING_ABI_EMULATION_ABI_H_
#define WEFT_LOWERING_ABI_EMULATION_ABI_H_

#include <cstdint>

namespace weft {

// Before each load and store: weft_access(address, bytes, alignment, write). Barriers and shuffles carry the number of
// the instruction, the same for all threads.
inline constexpr const char* kEmulationFunctions[] = {
    "weft_thread",   // int32 ()
    "weft_block",    // int32 ()
    "weft_barrier",  // void (int32 site)
    "weft_shuffle",  // int32 (int32 site, int32 value, int32 distance)
    "weft_access",   // void (const void*, int64 bytes, int64 alignment, int32 write)
    // libdevice, in both precisions
    "__nv_exp",
    "__nv_expf",
    "__nv_exp2",
    "__nv_exp2f",
    "__nv_expm1",
    "__nv_expm1f",
    "__nv_log",
    "__nv_logf",
    "__nv_log1p",
    "__nv_log1pf",
    "__nv_cbrt",
    "__nv_cbrtf",
    "__nv_sin",
    "__nv_sinf",
    "__nv_cos",
    "__nv_cosf",
    "__nv_tan",
    "__nv_tanf",
    "__nv_asin",
    "__nv_asinf",
    "__nv_acos",
    "__nv_acosf",
    "__nv_atan",
    "__nv_atanf",
    "__nv_sinh",
    "__nv_sinhf",
    "__nv_cosh",
    "__nv_coshf",
    "__nv_tanh",
    "__nv_tanhf",
    "__nv_asinh",
    "__nv_asinhf",
    "__nv_acosh",
    "__nv_acoshf",
    "__nv_atanh",
    "__nv_atanhf",
    "__nv_erf",
    "__nv_erff",
    "__nv_erfc",
    "__nv_erfcf",
    "__nv_lgamma",
    "__nv_lgammaf",
    "__nv_erfinv",
    "__nv_erfinvf",
    "__nv_pow",
    "__nv_powf",
    "__nv_atan2",
    "__nv_atan2f",
    "__nv_fmod",
    "__nv_fmodf",
    "__nv_round",
    "__nv_roundf",
};
inline constexpr int kNumEmulationFunctions = sizeof(kEmulationFunctions) / sizeof(kEmulationFunctions[0]);

}  // namespace weft
#endif  // WEFT_LOWERING_ABI_EMULATION_ABI_H_
