// What libweft_cpu.so gives to `weft-run`, which opens it when it meets a bundle for the CPU: the libraries of the
// CPU's back end would have to be there for every bundle otherwise.
#ifndef WEFT_DRIVER_BUNDLE_CPU_LIBRARY_H_
#define WEFT_DRIVER_BUNDLE_CPU_LIBRARY_H_

#include <cstddef>

extern "C" {

// Runs the bundle of these bytes, which messages call `file`, on arrays from `count` files
// (driver/files/array_files.h), and puts the results into the folder `outputs`, or prints them where that is empty.
// What went wrong, or nullptr; it stays until the next call.
typedef const char* WeftRunCpuBundle(const char* bytes, size_t size, const char* file, const char* const* inputs,
                                     size_t count, const char* outputs);
WeftRunCpuBundle weft_run_cpu_bundle;

}  // extern "C"

#endif  // WEFT_DRIVER_BUNDLE_CPU_LIBRARY_H_
