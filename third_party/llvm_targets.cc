// lld makes ready to optimise at link time for each processor that LLVM knows, and so brings all of them into a binary
// that has LLVM inside: half of its size. Nothing here links for others than the CPU of the machine, so for them it
// gets these.

// NOLINTBEGIN(bugprone-macro-parentheses): the names of functions
#define WEFT_LEAVE_OUT(target)                 \
  void LLVMInitialize##target##TargetInfo() {} \
  void LLVMInitialize##target##Target() {}     \
  void LLVMInitialize##target##TargetMC() {}   \
  void LLVMInitialize##target##AsmPrinter() {} \
  void LLVMInitialize##target##AsmParser() {}
// NOLINTEND(bugprone-macro-parentheses)

// All of llvm/Config/Targets.def but X86 and NVPTX.
extern "C" {
WEFT_LEAVE_OUT(AArch64)
WEFT_LEAVE_OUT(AMDGPU)
WEFT_LEAVE_OUT(ARM)
WEFT_LEAVE_OUT(AVR)
WEFT_LEAVE_OUT(BPF)
WEFT_LEAVE_OUT(Hexagon)
WEFT_LEAVE_OUT(Lanai)
WEFT_LEAVE_OUT(LoongArch)
WEFT_LEAVE_OUT(M68k)
WEFT_LEAVE_OUT(MSP430)
WEFT_LEAVE_OUT(Mips)
WEFT_LEAVE_OUT(PowerPC)
WEFT_LEAVE_OUT(RISCV)
WEFT_LEAVE_OUT(Sparc)
WEFT_LEAVE_OUT(SystemZ)
WEFT_LEAVE_OUT(VE)
WEFT_LEAVE_OUT(WebAssembly)
WEFT_LEAVE_OUT(XCore)
WEFT_LEAVE_OUT(Xtensa)
}
