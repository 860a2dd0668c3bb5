// Compiled programs as files: made with the compiler, run without it.
//
//   WriteFile("f.weftb", MakeBundle({fn, "cuda:sm_90a"}, {}, false).Serialize());
//   Tensors out = RunBundle(Bundle::Parse(ReadFile("f.weftb")), {x}, "cuda");
#ifndef WEFT_DRIVER_BUNDLE_BUNDLE_H_
#define WEFT_DRIVER_BUNDLE_BUNDLE_H_

#include <string>

#include "ir/fn.h"
#include "ir/tensor.h"
#include "lowering/bundle/bundle.h"

namespace weft {

struct CompileRequest;

// `captured`: values of the last parameters, which the bundle brings along. `emulation`: with a GPU's kernels also what
// runs them on this kind of CPU. Raises what compiling raises; kValue where sizes are symbolic, kUnsupported for a
// backend without code that could be written.
Bundle MakeBundle(const CompileRequest& request, const Tensors& captured, bool emulation);

// `device`: "cpu"; "cuda"; "emulation", a GPU's kernels on the CPU, checked; or "", what the bundle is for. One
// argument for each parameter that the bundle does not bring along. Raises kType for arguments that do not fit, kValue
// for a device that the bundle is not for, kRuntime where the device cannot be used or fails.
Tensors RunBundle(const Bundle& bundle, const Tensors& args, const std::string& device);
// The same for GPUs alone, "cuda" or "emulation": needs no library but the driver, and cuBLASLt for products.
Tensors RunGpuBundle(const Bundle& bundle, const Tensors& args, const std::string& device);

// All parameters' values: constants from the bundle, the rest from `args`. Raises kType for arguments that do not fit.
Tensors AllArguments(const Bundle& bundle, const Tensors& args);

}  // namespace weft
#endif  // WEFT_DRIVER_BUNDLE_BUNDLE_H_
