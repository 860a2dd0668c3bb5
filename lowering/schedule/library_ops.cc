// Equations that become calls of the runtime's operations: how each is described in `desc`.
#include <algorithm>

#include "ir/prim.h"
#include "lowering/ops/op_table.h"
#include "lowering/schedule/block_lowering.h"

namespace weft {
namespace {

Dim Code(DType t) { return Dim(static_cast<int64_t>(t)); }

}  // namespace

// A dense operand: slot, dtype, rank, sizes.
void BlockLowering::AppendTensor(std::vector<Schedule::Entry>& desc, const Atom& a) {
  const Type t = fn_.TypeOf(a);
  desc.push_back(Schedule::Entry::Place(ValueOf(a)));
  desc.push_back(Code(t.dtype));
  desc.push_back(Dim(t.rank()));
  desc.insert(desc.end(), t.dims.begin(), t.dims.end());
}

ContractLayout LayOutContract(const Fn& fn, const std::vector<int>& defining, const Eqn& e, bool x_views,
                              bool y_views) {
  ContractLayout layout;
  const std::string& spec = e.attrs.Get<std::string>("spec");
  const size_t comma = spec.find(','), arrow = spec.find("->");
  const std::string lhs = spec.substr(0, comma), rhs = spec.substr(comma + 1, arrow - comma - 1),
                    out = spec.substr(arrow + 2);
  const Type result = fn.TypeOf(e.result());
  auto side = [&](const Atom& a, bool views, StridedView* view) {
    if (views && FindStrided(fn, defining, a, view)) return true;
    view->strides = Strides(fn.TypeOf(a).dims);
    return false;
  };
  StridedView &x = layout.x, &y = layout.y;
  layout.x_is_view = side(e.operands[0], x_views, &x);
  layout.y_is_view = side(e.operands[1], y_views, &y);
  const std::vector<Dim> out_strides = Strides(result.dims);
  std::vector<Dim> groups[4];
  const Dims xd = fn.TypeOf(e.operands[0]).dims, yd = fn.TypeOf(e.operands[1]).dims;
  std::string letters = out;
  for (char c : lhs) {
    if (letters.find(c) == std::string::npos) letters += c;
  }
  for (char c : letters) {
    const size_t i = lhs.find(c), j = rhs.find(c), k = out.find(c);
    const bool in_x = i != std::string::npos, in_y = j != std::string::npos, in_out = k != std::string::npos;
    std::vector<Dim>& g = groups[in_x && in_y ? (in_out ? 0 : 3) : in_x ? 1 : 2];
    const Dim size = in_x ? xd[i] : yd[j];
    g.push_back(size);
    g.push_back(in_x ? x.strides[i] : Dim(0));
    g.push_back(in_y ? y.strides[j] : Dim(0));
    g.push_back(in_out ? out_strides[k] : Dim(0));
  }
  layout.entries = {Code(fn.TypeOf(e.operands[0]).dtype), Code(result.dtype), x.start, y.start};
  for (const auto& g : groups) layout.entries.push_back(Dim(static_cast<int64_t>(g.size() / 4)));
  for (const auto& g : groups) layout.entries.insert(layout.entries.end(), g.begin(), g.end());
  return layout;
}

// [x slot, y slot, result slot, then ContractLayout::entries]. Read by backends/cpu/ops/contract.cc and lowering/gpu/.
void BlockLowering::EmitContract(Steps& steps, const Eqn& e) {
  const ContractLayout layout = LayOutContract(fn_, defining_, e);
  const Type result = fn_.TypeOf(e.result());
  const int x = layout.x_is_view ? ValueOfRoot(plan_.Root(layout.x.root)) : ValueOf(e.operands[0]);
  const int y = layout.y_is_view ? ValueOfRoot(plan_.Root(layout.y.root)) : ValueOf(e.operands[1]);
  const int to = NewResult(e.first_result);
  std::vector<Schedule::Entry> desc;
  for (int v : {x, y, to}) desc.push_back(Schedule::Entry::Place(v));
  desc.insert(desc.end(), layout.entries.begin(), layout.entries.end());
  Schedule::Step& step = p_.AddCall(steps, WEFT_OP_CONTRACT, std::move(desc), {p_.Read(x), p_.Read(y), p_.Write(to)});
  for (const Type& t : {fn_.TypeOf(e.operands[0]), fn_.TypeOf(e.operands[1]), result}) {
    if (auto n = t.size().TryValue()) step.bytes_moved += *n * ByteWidth(t.dtype);
  }
}

// The description of one call of the runtime, and the values that it reads and writes, as they are put together.
class BlockLowering::LibraryCall {
 public:
  LibraryCall(BlockLowering& block, Steps& steps, const Eqn& e) : block_(block), steps_(steps), e_(e) {}

  const Eqn& eqn() const { return e_; }
  const Fn& fn() const { return block_.fn_; }
  void Number(int64_t v) { desc_.push_back(Dim(v)); }
  void Flag(const char* attr) { Number(e_.attrs.GetBool(attr)); }
  void Text(const char* attr) { Number(block_.p_.AddString(e_.attrs.Get<std::string>(attr))); }
  void DTypeOf(const Type& t) { desc_.push_back(Code(t.dtype)); }
  void List(const char* attr) {
    const Ints& v = e_.attrs.Get<Ints>(attr);
    Number(static_cast<int64_t>(v.size()));
    for (int64_t i : v) Number(i);
  }
  void Operand(size_t i) {
    block_.AppendTensor(desc_, e_.operands[i]);
    uses_.push_back(block_.p_.Read(block_.ValueOf(e_.operands[i])));
  }
  // Their number, then each.
  void OperandsFrom(size_t first) {
    Number(static_cast<int64_t>(e_.operands.size() - first));
    for (size_t i = first; i < e_.operands.size(); ++i) Operand(i);
  }
  void ResultPlace(int i = 0) { Place(block_.NewResult(e_.first_result + static_cast<uint32_t>(i))); }
  void Result(int i = 0) {
    ResultPlace(i);
    Rest(fn().TypeOf(e_.result(i)));
  }
  void Results() {
    for (uint32_t r = 0; r < e_.num_results; ++r) Result(static_cast<int>(r));
  }
  // The result begins as operand 0, and the call updates it.
  void ResultFromOperand() {
    const int to = block_.NewResult(e_.first_result);
    block_.p_.AddCopy(steps_, Schedule::Copy::kStart, to, block_.ValueOf(e_.operands[0]));
    Place(to);
    Rest(fn().TypeOf(e_.operands[0]));
  }
  void Emit(WeftOpcode op) { block_.p_.AddCall(steps_, op, desc_, uses_); }
  // Matrices, or stacks of them: every operand, every result.
  void EmitMatrices(WeftOpcode op) {
    for (size_t i = 0; i < e_.operands.size(); ++i) Operand(i);
    Results();
    Emit(op);
  }

 private:
  // Of a value that the call writes.
  void Place(int value) {
    uses_.push_back(block_.p_.Write(value));
    desc_.push_back(Schedule::Entry::Place(value));
  }
  void Rest(const Type& t) {
    DTypeOf(t);
    Number(t.rank());
    desc_.insert(desc_.end(), t.dims.begin(), t.dims.end());
  }
  BlockLowering& block_;
  Steps& steps_;
  const Eqn& e_;
  std::vector<Schedule::Entry> desc_;
  std::vector<Schedule::Use> uses_;
};

void BlockLowering::EmitLibrary(Steps& steps, const Eqn& e) {
  LibraryCall call(*this, steps, e);
  RowOf(*e.prim).library(call, RowOf(*e.prim).kind);
}

void BlockLowering::EmitTapeAdd(Steps& steps, const Eqn& e) {
  const int x = ValueOf(e.operands[0]), y = ValueOf(e.operands[1]), to = NewResult(e.first_result);
  std::vector<Schedule::Entry> desc;
  for (int v : {to, x, y}) desc.push_back(Schedule::Entry::Place(v));
  desc.push_back(fn_.TypeOf(e.result()).size());
  p_.AddCall(steps, WEFT_OP_TAPE_ADD, std::move(desc), {p_.Read(x), p_.Read(y), p_.Write(to)});
}

void BlockLowering::EmitSameBytes(Steps& steps, const Eqn& e) {
  const int from = ValueOf(e.operands[0]);
  p_.AddCopy(steps, Schedule::Copy::kData, NewResult(e.first_result), from);
}

namespace library {

void ArgReduction(BlockLowering::LibraryCall& call, int kind) {
  call.Operand(0);
  call.ResultPlace();
  call.DTypeOf(call.fn().TypeOf(call.eqn().result()));
  call.Number(call.eqn().attrs.GetInt("dim"));
  call.Number(kind);
  call.Emit(WEFT_OP_ARGMINMAX);
}

void Cumulative(BlockLowering::LibraryCall& call, int kind) {
  call.Operand(0);
  call.ResultPlace();
  call.Number(kind);
  call.Number(call.eqn().attrs.GetInt("dim"));
  call.Flag("reverse");
  call.Emit(WEFT_OP_CUMULATIVE);
}

void Scatter(BlockLowering::LibraryCall& call, int kind) {
  call.ResultFromOperand();
  call.Operand(1);
  call.Operand(2);
  call.Number(kind);
  call.Number(call.eqn().attrs.Get<std::string>("mode") == "clip");
  for (const char* dims :
       {"update_window_dims", "inserted_dims", "operand_batch_dims", "indices_batch_dims", "scatter_dims"})
    call.List(dims);
  call.Emit(WEFT_OP_SCATTER);
}

void Sort(BlockLowering::LibraryCall& call, int) {
  const size_t count = call.eqn().operands.size();
  call.Number(static_cast<int64_t>(count));
  call.Number(call.eqn().attrs.GetInt("num_keys"));
  call.Number(call.eqn().attrs.GetInt("dim"));
  for (size_t i = 0; i < count; ++i) {
    call.Operand(i);
    call.ResultPlace(static_cast<int>(i));
  }
  call.Emit(WEFT_OP_SORT);
}

void TopK(BlockLowering::LibraryCall& call, int) {
  call.Operand(0);
  call.ResultPlace(0);
  call.ResultPlace(1);
  call.Number(call.eqn().attrs.GetInt("k"));
  call.Emit(WEFT_OP_TOP_K);
}

void ReduceWindow(BlockLowering::LibraryCall& call, int kind) {
  call.Operand(0);
  call.Result();
  call.Number(kind);
  for (const char* attr : {"window", "strides", "lo", "base_dilation", "window_dilation"}) call.List(attr);
  call.Emit(WEFT_OP_REDUCE_WINDOW);
}

void Convolution(BlockLowering::LibraryCall& call, int) {
  call.Operand(0);
  call.Operand(1);
  call.Result();
  for (const char* attr : {"strides", "lo", "lhs_dilation", "rhs_dilation"}) call.List(attr);
  call.Number(call.eqn().attrs.GetInt("feature_groups"));
  call.Number(call.eqn().attrs.GetInt("batch_groups"));
  call.Emit(WEFT_OP_CONV);
}

void DebugPrint(BlockLowering::LibraryCall& call, int) {
  call.Text("format");
  call.OperandsFrom(0);
  call.Emit(WEFT_OP_DEBUG_PRINT);
}

void Assert(BlockLowering::LibraryCall& call, int) {
  call.Text("message");
  call.Operand(0);
  call.OperandsFrom(1);
  call.Emit(WEFT_OP_ASSERT);
}

void Callback(BlockLowering::LibraryCall& call, int) {
  call.Number(call.eqn().attrs.GetInt("callback"));
  call.OperandsFrom(0);
  call.Number(call.eqn().num_results);
  call.Results();
  call.Emit(WEFT_OP_CALLBACK);
}

void Matrices(BlockLowering::LibraryCall& call, int opcode) { call.EmitMatrices(static_cast<WeftOpcode>(opcode)); }

void Eig(BlockLowering::LibraryCall& call, int) {
  call.Flag("compute_v");
  call.EmitMatrices(WEFT_OP_EIG);
}

void Svd(BlockLowering::LibraryCall& call, int) {
  call.Flag("compute_uv");
  call.EmitMatrices(WEFT_OP_SVD);
}

void TriangularSolve(BlockLowering::LibraryCall& call, int) {
  for (const char* flag : {"left", "lower", "transpose", "conjugate", "unit_diagonal"}) call.Flag(flag);
  call.EmitMatrices(WEFT_OP_TRIANGULAR_SOLVE);
}

void Fft(BlockLowering::LibraryCall& call, int) {
  static const std::vector<std::string> kKinds = {"fft", "ifft", "rfft", "irfft"};
  const std::string& kind = call.eqn().attrs.Get<std::string>("kind");
  call.Number(std::find(kKinds.begin(), kKinds.end(), kind) - kKinds.begin());
  call.List("lengths");
  call.EmitMatrices(WEFT_OP_FFT);
}

}  // namespace library
}  // namespace weft
