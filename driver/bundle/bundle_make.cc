// Makes bundles, with the compiler.
#include <unordered_set>

#include "driver/backend.h"
#include "driver/bundle/bundle.h"
#include "driver/compile_request.h"
#include "ir/error.h"
#include "ir/prim.h"

namespace weft {
namespace {

// Callbacks are functions of this process.
void RefuseCallbacks(const Fn& fn, std::unordered_set<const Fn*>& seen) {
  for (const Eqn& e : fn.eqns()) {
    if (e.prim->is_callback())
      throw UserError(ErrorKind::kUnsupported, e.loc, "export: ", e.prim->name,
                      " calls a function of this process, which a bundle cannot bring along");
    for (const FnRef& r : e.regions) {
      if (seen.insert(r.get()).second) RefuseCallbacks(*r, seen);
    }
  }
}

// Tapes refer to memory of this process.
void RefuseTapes(const Types& types) {
  for (const Type& t : types) {
    if (t.dtype == DType::kTape)
      throw UserError(ErrorKind::kUnsupported, {}, "export: the program takes, captured or returns a tape ",
                      "(what a loop or a recursive function recorded), which a bundle cannot bring along");
  }
}

}  // namespace

Bundle MakeBundle(const CompileRequest& request, const Tensors& captured, bool emulation) {
  const FnRef& fn = request.program;
  Bundle b;
  b.name = fn->name();
  if (!fn->Symbols().empty())
    throw ValueError("export: the size '", fn->Symbols()[0],
                     "' is not known; bundles are for arguments of fixed sizes");
  std::unordered_set<const Fn*> seen;
  RefuseCallbacks(*fn, seen);
  RefuseTapes(fn->ParamTypes());
  RefuseTapes(fn->ResultTypes());
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
  FindBackend(request.backend)->Export(request, request.Optimized(), emulation, &b);
  return b;
}

}  // namespace weft
