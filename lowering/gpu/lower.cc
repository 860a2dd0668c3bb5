#include "lowering/gpu/lower.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <set>
#include <sstream>
#include <unordered_set>

#include "ir/prim.h"
#include "lowering/cpu/codegen.h"
#include "lowering/gpu/code.h"
#include "lowering/gpu/mlir/emit_gpu_kernel.h"
#include "lowering/gpu/plan.h"
#include "lowering/gpu/products.h"
#include "lowering/ops/op_table.h"
#include "lowering/program/program.h"
#include "transforms/shard/program_meshes.h"
#include "transforms/shard/propagation.h"

namespace weft {
namespace {

Error NoRule(const Eqn& e, const std::string& why) {
  return UserError(ErrorKind::kUnsupported, e.loc, e.prim->name, ": ", why);
}

// What may appear in a program for a GPU: what becomes kernels, views, products and copies.
void CheckEquations(const Fn& fn) {
  static const std::set<DType> kProducts = {DType::kF16, DType::kBF16, DType::kF32,
                                            DType::kF64, DType::kC64,  DType::kC128};
  if (!fn.Symbols().empty())
    throw ValueError("cuda: the size '", fn.Symbols()[0],
                     "' is not known when compiling; GPU code is made for arguments of fixed sizes");
  for (const Eqn& e : fn.eqns()) {
    const OpRow& row = RowOf(*e.prim);
    if (!row.on_gpu) throw NoRule(e, "has no GPU code yet");
    const bool product = row.operands == OpRow::Operands::kProduct;
    for (const Atom& a : e.operands) {
      const DType dtype = fn.TypeOf(a).dtype;
      if (product && !kProducts.count(dtype))
        throw NoRule(e, std::string("has no GPU code for ") + Name(dtype) +
                            " yet; cuBLASLt multiplies floats and complex numbers");
      if (IsOpaque(dtype)) throw NoRule(e, std::string("has no GPU code for ") + Name(dtype) + " yet");
    }
  }
}

// On one device a constraint says nothing of a value; on several it asks for a program that there is not.
void CheckPlaces(const Fn& fn, std::unordered_set<const Fn*>& seen) {
  for (const Eqn& e : fn.eqns()) {
    if (IsConstraint(e) || e.prim->region_use == RegionUse::kDevices) {
      const int64_t devices = PlacedMesh::Of(e).mesh.num_devices();
      if (devices > 1)
        throw NoRule(e, "is for " + std::to_string(devices) +
                            " devices; a program for a GPU is for one, programs over meshes have no GPU code yet");
    }
    for (const FnRef& region : e.regions) {
      if (seen.insert(region.get()).second) CheckPlaces(*region, seen);
    }
  }
}

struct GpuProgram {
  Program program;
  std::vector<GpuPlan> plans;
  GpuArtifact artifact;
};

// Bytes that a kernel moves at least: every element of a buffer once.
int64_t BytesMoved(const KernelSpec& spec) {
  std::vector<int64_t> read(static_cast<size_t>(spec.num_operands), 0), written = read;
  auto count = [&](const Access& a, std::vector<int64_t>& bytes) {
    int64_t n = ByteWidth(a.dtype);
    for (size_t v = 0; v < spec.sizes.size(); ++v) {
      if ((a.offset.VarMask() >> v) & 1) n *= *spec.sizes[v].TryValue();
    }
    int64_t& most = bytes[static_cast<size_t>(a.operand)];
    most = std::max(most, n);
  };
  for (const KernelNode& n : spec.nodes) {
    if (n.kind == KernelNode::Kind::kLoad) count(n.access, read);
  }
  for (const KernelStore& s : spec.stores) count(s.access, written);
  int64_t total = 0;
  for (size_t i = 0; i < read.size(); ++i) total += read[i] + written[i];
  return total;
}

void WriteSchedule(const GpuTarget& target, const std::string& memory, GpuProgram* p) {
  std::ostringstream out;
  out << "target " << target.ToString() << ", " << target.sm_count << " multiprocessors, " << target.hbm_gb_per_s
      << " GB/s\nsteps\n";
  double total = 0;
  int number = 0;
  const auto begin = [&] { out << number++ << ": "; };
  const auto end = [&](int64_t bytes) {
    const double us = static_cast<double>(bytes) / target.hbm_gb_per_s / 1e3;
    total += us;
    out << ", " << bytes << " bytes";
    out.precision(3);
    out << ", at least " << us << " us\n";
  };
  p->artifact.ForEachStep(StepVisitor{[&](const abi::Launch<abi::InWords>& s) {
                                        begin();
                                        out << "kernel k" << s.kernel << " (";
                                        const char* comma = "";
                                        for (const auto& o : s.operands) {
                                          out << comma << (o.written ? "-> s" : "s") << o.place;
                                          comma = ", ";
                                        }
                                        out << ")";
                                        end(s.bytes);
                                      },
                                      [&](const abi::Product<abi::InWords>& s) {
                                        begin();
                                        const GpuMatmul& m = s.product;
                                        out << "cublasLt matmul (s" << s.x << ", s" << s.y << ", -> s" << s.out << ") "
                                            << Name(m.dtype) << " [" << m.batch << ", " << m.m << ", " << m.n
                                            << "] over " << m.k;
                                        end(s.bytes);
                                      },
                                      [&](const abi::Copy<abi::InWords>& s) {
                                        begin();
                                        out << "copy (-> s" << s.to << ", s" << s.from << ")";
                                        end(s.bytes);
                                      }});
  out << "memory alone: " << total << " us\n";
  for (size_t k = 0; k < p->plans.size(); ++k) out << "k" << k << ": " << p->plans[k].ToString() << "\n";
  p->artifact.plan.schedule = out.str() + memory + KernelsText(p->program.kernels);
}

GpuProgram Plan(const FnRef& fn, const GpuTarget& target) {
  std::unordered_set<const Fn*> seen;
  CheckPlaces(*fn, seen);
  FnRef flat = WithoutCalls(fn, Functions::kInlined);
  CheckEquations(*flat);
  flat = WithDescribedProducts(flat);
  GpuProgram p;
  FusionPolicy policy;
  policy.distinct_buffers = true;
  policy.arg_reductions = true;
  p.program = BuildProgram(*flat, policy);
  p.artifact.sm = target.sm;
  for (const KernelSpec& spec : p.program.kernels) {
    try {
      p.plans.push_back(PlanGpu(spec, target));
    } catch (Error& error) {
      for (const KernelNode& n : spec.nodes) {
        if (n.loc && !error.loc()) error.set_loc(n.loc);
      }
      throw;
    }
    const GpuPlan& plan = p.plans.back();
    p.artifact.kernels.push_back({"k" + std::to_string(p.artifact.kernels.size()), plan.blocks, plan.threads,
                                  plan.shared_bytes, plan.kind != GpuPlan::Kind::kElements});
  }
  std::vector<int64_t> steps;
  for (const Step& step : p.program.steps) {
    const int64_t* told = p.program.artifact.desc.data() + step.desc;
    if (step.kind == Step::Kind::kKernel) {
      const KernelSpec& spec = p.program.kernels[static_cast<size_t>(step.index)];
      const auto kernel = abi::Decode<abi::Kernel<abi::InWords>>(told);
      abi::Launch<abi::Owned> s{step.index, {}, BytesMoved(spec)};
      const std::vector<bool> touched = spec.Touched();
      for (size_t i = 0; i < kernel.operands.size(); ++i) {
        if (touched[i]) s.operands.push_back({kernel.operands[i], spec.written[i]});
      }
      abi::EncodeWords(s, &steps);
    } else if (step.kind == Step::Kind::kOp && step.index == WEFT_OP_CONTRACT) {
      const auto contract = abi::Decode<abi::Contract<abi::InWords>>(told);
      const std::optional<GpuMatmul> product = DescribeProduct(contract);
      WEFT_CHECK(product) << "contract: a product that WithDescribedProducts let through cannot be described";
      const GpuMatmul& m = *product;
      const int64_t bytes =
          ByteWidth(m.dtype) * m.batch * m.k * (m.m + m.n) + ByteWidth(m.out_dtype) * m.batch * m.m * m.n;
      abi::EncodeWords(abi::Product<abi::Owned>{contract.x, contract.y, contract.result, m, bytes}, &steps);
    } else if (step.kind == Step::Kind::kOp && step.index == WEFT_OP_COPY) {
      abi::EncodeWords(abi::Decode<abi::Copy<abi::InWords>>(told), &steps);
    } else {
      WEFT_CHECK(false) << "cuda: a step that CheckEquations let through has no GPU code";
    }
  }
  const std::string memory = MemoryText(p.program);
  p.artifact.plan = std::move(p.program.artifact);
  p.artifact.plan.target = target.ToString();
  p.artifact.plan.desc = std::move(steps);
  WriteSchedule(target, memory, &p);
  return p;
}

std::string Code(const GpuProgram& p, const GpuTarget& target, GpuCode stage) {
  const std::string libdevice = FindLibdevice();
  return WithModule(p.program.steps.size(), [&](mlir::ModuleOp module) {
    for (size_t k = 0; k < p.program.kernels.size(); ++k)
      EmitGpuKernel(module, p.program.kernels[k], p.plans[k], p.artifact.kernels[k].name, !libdevice.empty());
    return GenerateGpuCode(module, p.artifact.kernels, target, libdevice, stage);
  });
}

}  // namespace

std::string FindLibdevice() {
  if (const char* chosen = std::getenv("WEFT_LIBDEVICE"); chosen != nullptr && *chosen != '\0')
    return std::string(chosen) == "none" ? "" : chosen;
  const char* home = std::getenv("CUDA_HOME");
  for (const std::string& root : {std::string(home == nullptr ? "" : home), std::string("/usr/local/cuda")}) {
    const std::string path = root + "/nvvm/libdevice/libdevice.10.bc";
    if (!root.empty() && access(path.c_str(), R_OK) == 0) return path;
  }
  return "";
}

GpuArtifact LowerGpu(const FnRef& fn, const GpuTarget& target, const GpuLowerOptions& options) {
  GpuProgram p = Plan(fn, target);
  if (options.ptx) p.artifact.ptx = Code(p, target, GpuCode::kPtx);
  if (options.emulation) {
    p.artifact.emulation = Code(p, target, GpuCode::kEmulation);
    p.artifact.emulation_target = Target::Host().ToString();
  }
  return std::move(p.artifact);
}

std::string LowerGpuToText(const FnRef& fn, const GpuTarget& target, const std::string& stage) {
  const GpuProgram p = Plan(fn, target);
  if (stage == "schedule") return p.artifact.plan.schedule;
  if (stage == "mlir") return Code(p, target, GpuCode::kMlir);
  if (stage == "llvm") return Code(p, target, GpuCode::kLlvm);
  if (stage == "ptx") return Code(p, target, GpuCode::kPtx);
  throw ValueError("stage: code for ", target.ToString(), " has no stage '", stage, "'");
}

}  // namespace weft
