// Makes bundles, with the compiler.
#include "driver/bundle.h"
#include "driver/executable.h"
#include "ir/error.h"
#include "lowering/gpu/lower.h"
#include "transforms/pass.h"

namespace weft {

Bundle MakeBundle(const FnRef& fn, const std::string& target, const Tensors& captured, bool twins) {
  Bundle b;
  b.name = fn->name();
  if (!fn->Symbols().empty())
    throw ValueError("export: the size '", fn->Symbols()[0],
                     "' is not known; bundles are for arguments of fixed sizes");
  const size_t free = fn->params().size() - captured.size();
  for (size_t i = 0; i < fn->params().size(); ++i) {
    const Param& p = fn->params()[i];
    Bundle::Value v{p.name, static_cast<int32_t>(p.type.dtype), StaticSizes(p.type.dims, "export"), i >= free, ""};
    if (i >= free) {
      const Tensor& t = captured[i - free];
      WEFT_CHECK(t.type() == p.type) << "export: a captured array of another type";
      v.constant.assign(static_cast<const char*>(t.raw()), static_cast<size_t>(t.bytes()));
    }
    b.params.push_back(std::move(v));
  }
  for (const Type& t : fn->ResultTypes())
    b.results.push_back({"", static_cast<int32_t>(t.dtype), StaticSizes(t.dims, "export"), false, ""});
  if (target == "cpu") {
    CompileOptions options;
    options.pipeline_name = "default";
    options.passes = {[](const FnRef& f) { return Optimize(f); }};
    b.cpu = Compile(fn, options)->artifact();
  } else {
    b.gpu = LowerGpu(Optimize(fn), GpuTarget::Named(target), {.ptx = true, .twin = twins});
  }
  return b;
}

}  // namespace weft
