// Each check of the emulated device is made to fire: by kernels of the compiler with a barrier taken out, and by
// kernels written wrongly by hand.
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "backends/cuda/emulated_device.h"
#include "ir/builder.h"
#include "ir/ops.h"
#include "tests/gpu/emulated.h"

namespace weft {
namespace {

constexpr char kBarrier[] = "call void @llvm.nvvm.barrier0()";

FnRef Softmax(int64_t rows, int64_t columns, int64_t dim) {
  Builder b("softmax");
  const Type type{DType::kF32, {rows, columns}, {}};
  const Atom x = b.Parameter(type);
  const Ints kept = {1 - dim};
  const Atom e = Exp(b, Sub(b, x, Broadcast(b, Reduce(b, "reduce_max", x, {dim}), type.dims, kept)));
  return b.Build({Div(b, e, Broadcast(b, ReduceSum(b, e, {dim}), type.dims, kept))});
}

// What the checks say of a program whose LLVM IR `edit` has changed; empty when nothing.
template <class Edit>
std::string Broken(const FnRef& fn, Edit edit) {
  std::string llvm = LowerGpuToText(fn, {}, "llvm");
  edit(llvm);
  GpuArtifact a = LowerGpu(fn, {}, {.ptx = false});
  auto device = std::make_shared<cuda::EmulatedDevice>(EmulationOfLlvm(llvm, a.kernels));
  cuda::Program program(std::move(a), device);
  const Type t = fn->params()[0].type;
  const Tensor x = Tensor::Full(t.dtype, StaticSizes(t.dims, "x"), 0.5);
  try {
    program.Run({{x.raw(), x.shape()}});
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "";
}

int Count(const std::string& text, const std::string& part) {
  int n = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

TEST(EmulationChecks, EveryBarrierOfTheCompilerIsNeeded) {
  // A block a row; rows across memory.
  for (const FnRef& fn : {Softmax(3, 4096, 1), Softmax(200, 40, 0)}) {
    EXPECT_EQ(Broken(fn, [](std::string&) {}), "");
    const int barriers = Count(LowerGpuToText(fn, {}, "llvm"), kBarrier);
    EXPECT_GE(barriers, 2);
    int needed = 0;
    for (int i = 0; i < barriers; ++i) {
      const std::string why = Broken(fn, [&](std::string& llvm) {
        size_t at = llvm.find(kBarrier);
        for (int k = 0; k < i; ++k) at = llvm.find(kBarrier, at + 1);
        llvm.replace(at, sizeof kBarrier - 1, "; no barrier");
      });
      EXPECT_TRUE(why.find("with no barrier in between") != std::string::npos ||
                  why.find("shared memory that nobody has written") != std::string::npos)
          << "barrier " << i << ": " << why;
      needed += !why.empty();
    }
    EXPECT_EQ(needed, barriers);
  }
}

// The error of a kernel written by hand: `body` of @k(ptr x, ptr out), 64 threads and one block; x and out have 64
// numbers of 32 bits, of which only out may be written. Threads' numbers are in %t.
std::string Wrong(const std::string& body, int64_t shared = 0) {
  const std::string llvm = R"(
    @k_shared = internal addrspace(3) global [256 x i8] undef, align 16
    declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
    declare void @llvm.nvvm.barrier0()
    declare i32 @llvm.nvvm.shfl.sync.bfly.i32(i32, i32, i32, i32)
    define void @k(ptr addrspace(1) %x, ptr addrspace(1) %out) {
      %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
      %low = icmp ult i32 %t, 40
      %from = getelementptr i32, ptr addrspace(1) %x, i32 %t
      %to = getelementptr i32, ptr addrspace(1) %out, i32 %t
      %in = getelementptr i32, ptr addrspace(3) @k_shared, i32 %t
    )" + body + "\n}\n";
  const GpuKernel kernel{"k", 1, 64, shared, true};
  cuda::EmulatedDevice device(EmulationOfLlvm(llvm, {kernel}));
  void *x = device.Allocate(256), *out = device.Allocate(256);
  try {
    device.Launch(kernel, {{x, 256, false}, {out, 256, true}});
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "";
}

TEST(EmulationChecks, NothingIsSaidOfARightKernel) {
  EXPECT_EQ(Wrong("%v = load i32, ptr addrspace(1) %from\n store i32 %v, ptr addrspace(1) %to\n ret void"), "");
}

TEST(EmulationChecks, OutOfBounds) {
  EXPECT_EQ(Wrong("%a = getelementptr i32, ptr addrspace(1) %from, i32 1\n %v = load i32, ptr addrspace(1) %a\n"
                  "ret void"),
            "kernel k, block 0, thread 63: reads 4 bytes outside of its operands");
  EXPECT_EQ(Wrong("%a = getelementptr i32, ptr addrspace(1) %to, i32 -1\n store i32 1, ptr addrspace(1) %a\n"
                  "ret void"),
            "kernel k, block 0, thread 0: writes 4 bytes outside of its operands");
  EXPECT_EQ(Wrong("%a = getelementptr i32, ptr addrspace(3) %in, i32 4\n store i32 1, ptr addrspace(3) %a\n"
                  "ret void",
                  256),
            "kernel k, block 0, thread 60: writes 4 bytes outside of its operands");
}

TEST(EmulationChecks, Alignment) {
  EXPECT_EQ(Wrong("%v = load <4 x i32>, ptr addrspace(1) %from, align 16\n ret void"),
            "kernel k, block 0, thread 1: reads 16 bytes at an address that is no multiple of 16");
}

TEST(EmulationChecks, WritingWhatIsRead) {
  EXPECT_EQ(Wrong("store i32 1, ptr addrspace(1) %from\n ret void"),
            "kernel k, block 0, thread 0: writes 4 bytes of an operand that is only read");
}

TEST(EmulationChecks, SharedMemoryThatNobodyHasWritten) {
  EXPECT_EQ(Wrong("%v = load i32, ptr addrspace(3) %in\n ret void", 256),
            "kernel k, block 0, thread 0: reads 4 bytes of shared memory that nobody has written");
}

TEST(EmulationChecks, TwoThreadsWriteOnePlace) {
  EXPECT_EQ(Wrong("store i32 1, ptr addrspace(1) %out\n ret void"),
            "kernel k, block 0, thread 1: writes 4 bytes that another thread touches with no barrier in between");
}

TEST(EmulationChecks, DivergentBarrier) {
  EXPECT_EQ(Wrong("br i1 %low, label %a, label %b\na:\n call void @llvm.nvvm.barrier0()\n br label %b\nb:\n ret void"),
            "kernel k, block 0: its threads wait for each other at different places; at a barrier: 0, 1, 2, 3, ...; "
            "at the end: 40, 41, 42, 43, ...");
  // The same number of barriers, but not the same ones.
  EXPECT_NE(Wrong("br i1 %low, label %a, label %b\na:\n call void @llvm.nvvm.barrier0()\n ret void\n"
                  "b:\n call void @llvm.nvvm.barrier0()\n ret void"),
            "");
}

TEST(EmulationChecks, DivergentShuffle) {
  // The second warp has 8 threads at the shuffle, and 24 at the end.
  EXPECT_EQ(Wrong("br i1 %low, label %a, label %b\na:\n"
                  "%v = call i32 @llvm.nvvm.shfl.sync.bfly.i32(i32 -1, i32 %t, i32 1, i32 31)\n br label %b\n"
                  "b:\n ret void"),
            "kernel k, block 0: its threads wait for each other at different places; at a shuffle: 32, 33, 34, 35, "
            "...; at the end: 0, 1, 2, 3, ...");
}

TEST(EmulationChecks, OverlappingOperands) {
  const GpuKernel kernel{"k", 1, 32, 0, true};
  cuda::EmulatedDevice device(
      EmulationOfLlvm("define void @k(ptr addrspace(1) %a, ptr addrspace(1) %b) {\n ret void\n}", {kernel}));
  char* x = static_cast<char*>(device.Allocate(256));
  EXPECT_NO_THROW(device.Launch(kernel, {{x, 128, false}, {x + 128, 128, true}}));
  EXPECT_NO_THROW(device.Launch(kernel, {{x, 128, false}, {x, 128, false}}));
  EXPECT_THROW(device.Launch(kernel, {{x, 132, false}, {x + 128, 128, true}}), std::runtime_error);
  EXPECT_THROW(device.Launch(kernel, {{x, 128, false}, {x + 256, 128, true}}), std::runtime_error);
}

}  // namespace
}  // namespace weft
