// Equations that become calls of the runtime's operations, and what each of these is told.
#include <map>
#include <string>

#include "ir/prim.h"
#include "lowering/ops/op_table.h"
#include "lowering/schedule/block_lowering.h"

namespace weft {
namespace {

abi::Array<InSchedule> ArrayAt(int value, const Type& t) {
  return {value, t.dtype, std::vector<Dim>(t.dims.begin(), t.dims.end())};
}

}  // namespace

abi::Array<InSchedule> BlockLowering::ArrayOf(const Atom& a) { return ArrayAt(ValueOf(a), fn_.TypeOf(a)); }

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
  abi::Contract<InSchedule>& told = layout.told;
  told.dtype = fn.TypeOf(e.operands[0]).dtype, told.result_dtype = result.dtype;
  told.x_start = x.start, told.y_start = y.start;
  const Dims xd = fn.TypeOf(e.operands[0]).dims, yd = fn.TypeOf(e.operands[1]).dims;
  std::string letters = out;
  for (char c : lhs) {
    if (letters.find(c) == std::string::npos) letters += c;
  }
  for (char c : letters) {
    const size_t i = lhs.find(c), j = rhs.find(c), k = out.find(c);
    const bool in_x = i != std::string::npos, in_y = j != std::string::npos, in_out = k != std::string::npos;
    auto& group = in_x && in_y ? (in_out ? told.batch : told.k) : in_x ? told.m : told.n;
    group.push_back({in_x ? xd[i] : yd[j], in_x ? x.strides[i] : Dim(0), in_y ? y.strides[j] : Dim(0),
                     in_out ? out_strides[k] : Dim(0)});
  }
  return layout;
}

void BlockLowering::EmitContract(Steps& steps, const Eqn& e) {
  ContractLayout layout = LayOutContract(fn_, defining_, e);
  const Type result = fn_.TypeOf(e.result());
  abi::Contract<InSchedule>& told = layout.told;
  told.x = layout.x_is_view ? ValueOfRoot(plan_.Root(layout.x.root)) : ValueOf(e.operands[0]);
  told.y = layout.y_is_view ? ValueOfRoot(plan_.Root(layout.y.root)) : ValueOf(e.operands[1]);
  told.result = NewResult(e.first_result);
  Schedule::Step& step = p_.AddCall(steps, told, {p_.Read(told.x), p_.Read(told.y), p_.Write(told.result)});
  for (const Type& t : {fn_.TypeOf(e.operands[0]), fn_.TypeOf(e.operands[1]), result}) {
    if (auto n = t.size().TryValue()) step.bytes_moved += *n * ByteWidth(t.dtype);
  }
}

// One call of the runtime: its operands and results, and what it reads and writes.
class BlockLowering::LibraryCall {
 public:
  using Array = abi::Array<InSchedule>;

  LibraryCall(BlockLowering& block, Steps& steps, const Eqn& e) : block_(block), steps_(steps), e_(e) {}

  const Eqn& eqn() const { return e_; }
  Type result_type(int i = 0) const { return block_.fn_.TypeOf(e_.result(i)); }
  int64_t Number(const char* attr) const { return e_.attrs.GetInt(attr); }
  bool Flag(const char* attr) const { return e_.attrs.GetBool(attr); }
  int64_t Text(const char* attr) { return block_.p_.AddString(e_.attrs.Get<std::string>(attr)); }
  std::vector<Dim> List(const char* attr) const {
    const Ints& v = e_.attrs.Get<Ints>(attr);
    return {v.begin(), v.end()};
  }
  Array Operand(size_t i) {
    uses_.push_back(block_.p_.Read(block_.ValueOf(e_.operands[i])));
    return block_.ArrayOf(e_.operands[i]);
  }
  // ... read where it lies, behind views.
  abi::Strided<InSchedule> Moved(size_t i) {
    const Atom& a = e_.operands[i];
    const Type t = block_.fn_.TypeOf(a);
    StridedView view;
    const bool moved = FindRead(block_.fn_, block_.defining_, e_, a, &view);
    const int value = moved ? block_.ValueOfRoot(block_.plan_.Root(view.root)) : block_.ValueOf(a);
    uses_.push_back(block_.p_.Read(value));
    return {value, t.dtype, moved ? view.start : Dim(0), std::vector<Dim>(t.dims.begin(), t.dims.end()),
            moved ? view.strides : Strides(t.dims)};
  }
  std::vector<Array> OperandsFrom(size_t first) {
    std::vector<Array> all;
    for (size_t i = first; i < e_.operands.size(); ++i) all.push_back(Operand(i));
    return all;
  }
  // A result's place alone.
  int Place(int i = 0) { return Written(block_.NewResult(e_.first_result + static_cast<uint32_t>(i))); }
  Array Result(int i = 0) { return ArrayAt(Place(i), result_type(i)); }
  std::vector<Array> Results() {
    std::vector<Array> all;
    for (uint32_t r = 0; r < e_.num_results; ++r) all.push_back(Result(static_cast<int>(r)));
    return all;
  }
  // The result begins as operand 0, and the call updates it.
  Array ResultFromOperand() {
    const int to = block_.NewResult(e_.first_result);
    block_.p_.AddCopy(steps_, Schedule::Copy::kStart, to, block_.ValueOf(e_.operands[0]));
    return ArrayAt(Written(to), block_.fn_.TypeOf(e_.operands[0]));
  }
  template <class S>
  void Emit(const S& told) {
    block_.p_.AddCall(steps_, told, uses_);
  }

 private:
  int Written(int value) {
    uses_.push_back(block_.p_.Write(value));
    return value;
  }
  BlockLowering& block_;
  Steps& steps_;
  const Eqn& e_;
  std::vector<Schedule::Use> uses_;
};

void BlockLowering::EmitLibrary(Steps& steps, const Eqn& e) {
  LibraryCall call(*this, steps, e);
  RowOf(*e.prim).library(call, RowOf(*e.prim).kind);
}

void BlockLowering::EmitTapeAdd(Steps& steps, const Eqn& e) {
  abi::TapeAdd<InSchedule> told;
  told.x = ValueOf(e.operands[0]), told.y = ValueOf(e.operands[1]), told.result = NewResult(e.first_result);
  told.tapes = fn_.TypeOf(e.result()).size();
  p_.AddCall(steps, told, {p_.Read(told.x), p_.Read(told.y), p_.Write(told.result)});
}

void BlockLowering::EmitSameBytes(Steps& steps, const Eqn& e) {
  const int from = ValueOf(e.operands[0]);
  p_.AddCopy(steps, Schedule::Copy::kData, NewResult(e.first_result), from);
}

// Operands come first, then results, so that what they read and write is in that order.
namespace library {

void ArgReduction(BlockLowering::LibraryCall& call, int kind) {
  abi::ArgExtreme<InSchedule> told;
  told.x = call.Operand(0);
  told.result = call.Place();
  told.result_dtype = call.result_type().dtype;
  told.dim = call.Number("dim");
  told.smallest = kind != 0;
  call.Emit(told);
}

void Cumulative(BlockLowering::LibraryCall& call, int kind) {
  abi::Cumulative<InSchedule> told;
  told.x = call.Operand(0);
  told.result = call.Place();
  told.kind = static_cast<abi::CumulativeKind>(kind);
  told.dim = call.Number("dim");
  told.reverse = call.Flag("reverse");
  call.Emit(told);
}

void Scatter(BlockLowering::LibraryCall& call, int kind) {
  abi::Scatter<InSchedule> told;
  told.result = call.ResultFromOperand();
  told.indices = call.Operand(1);
  told.updates = call.Operand(2);
  told.kind = static_cast<abi::ScatterKind>(kind);
  told.clip = call.eqn().attrs.Get<std::string>("mode") == "clip";
  told.update_window_dims = call.List("update_window_dims");
  told.inserted_dims = call.List("inserted_dims");
  told.operand_batch_dims = call.List("operand_batch_dims");
  told.indices_batch_dims = call.List("indices_batch_dims");
  told.scatter_dims = call.List("scatter_dims");
  call.Emit(told);
}

void Sort(BlockLowering::LibraryCall& call, int) {
  abi::Sort<InSchedule> told;
  for (size_t i = 0; i < call.eqn().operands.size(); ++i) {
    abi::Array<InSchedule> x = call.Operand(i);
    told.operands.push_back({x.place, call.Place(static_cast<int>(i)), x.dtype});
    told.dims = std::move(x.dims);
  }
  told.dim = call.Number("dim");
  told.num_keys = call.Number("num_keys");
  call.Emit(told);
}

void TopK(BlockLowering::LibraryCall& call, int) {
  abi::TopK<InSchedule> told;
  told.x = call.Operand(0);
  told.values = call.Place(0);
  told.indices = call.Place(1);
  told.k = call.Number("k");
  call.Emit(told);
}

void ReduceWindow(BlockLowering::LibraryCall& call, int kind) {
  abi::ReduceWindow<InSchedule> told;
  told.x = call.Operand(0);
  told.result = call.Result();
  told.kind = static_cast<abi::WindowKind>(kind);
  told.window = call.List("window");
  told.strides = call.List("strides");
  told.lo = call.List("lo");
  told.base_dilation = call.List("base_dilation");
  told.window_dilation = call.List("window_dilation");
  call.Emit(told);
}

void Convolution(BlockLowering::LibraryCall& call, int) {
  abi::Convolution<InSchedule> told;
  told.x = call.Moved(0);
  told.w = call.Moved(1);
  told.result = call.Result();
  told.strides = call.List("strides");
  told.lo = call.List("lo");
  told.base_dilation = call.List("lhs_dilation");
  told.window_dilation = call.List("rhs_dilation");
  told.feature_groups = call.Number("feature_groups");
  told.batch_groups = call.Number("batch_groups");
  call.Emit(told);
}

void DebugPrint(BlockLowering::LibraryCall& call, int) {
  abi::DebugPrint<InSchedule> told;
  told.format = call.Text("format");
  told.operands = call.OperandsFrom(0);
  call.Emit(told);
}

void Assert(BlockLowering::LibraryCall& call, int) {
  abi::Assert<InSchedule> told;
  told.message = call.Text("message");
  told.predicate = call.Operand(0);
  told.operands = call.OperandsFrom(1);
  call.Emit(told);
}

void Callback(BlockLowering::LibraryCall& call, int) {
  abi::Callback<InSchedule> told;
  told.callback = call.Number("callback");
  told.operands = call.OperandsFrom(0);
  told.results = call.Results();
  call.Emit(told);
}

void Cholesky(BlockLowering::LibraryCall& call, int) {
  abi::Cholesky<InSchedule> told;
  told.x = call.Operand(0);
  told.l = call.Result();
  call.Emit(told);
}

void Lu(BlockLowering::LibraryCall& call, int) {
  abi::Lu<InSchedule> told;
  told.x = call.Operand(0);
  told.lu = call.Result(0);
  told.pivots = call.Result(1);
  told.permutation = call.Result(2);
  call.Emit(told);
}

void Qr(BlockLowering::LibraryCall& call, int) {
  abi::Qr<InSchedule> told;
  told.x = call.Operand(0);
  told.q = call.Result(0);
  told.r = call.Result(1);
  call.Emit(told);
}

void Eigh(BlockLowering::LibraryCall& call, int) {
  abi::Eigh<InSchedule> told;
  told.x = call.Operand(0);
  told.w = call.Result(0);
  told.v = call.Result(1);
  call.Emit(told);
}

void Eig(BlockLowering::LibraryCall& call, int) {
  abi::Eig<InSchedule> told;
  told.vectors = call.Flag("compute_v");
  told.x = call.Operand(0);
  told.w = call.Result(0);
  if (told.vectors) told.v = call.Result(1);
  call.Emit(told);
}

void Svd(BlockLowering::LibraryCall& call, int) {
  abi::Svd<InSchedule> told;
  told.vectors = call.Flag("compute_uv");
  told.x = call.Operand(0);
  if (told.vectors) told.u = call.Result(0);
  told.singular = call.Result(told.vectors ? 1 : 0);
  if (told.vectors) told.vt = call.Result(2);
  call.Emit(told);
}

void TriangularSolve(BlockLowering::LibraryCall& call, int) {
  abi::TriangularSolve<InSchedule> told;
  told.left = call.Flag("left");
  told.lower = call.Flag("lower");
  told.transpose = call.Flag("transpose");
  told.conjugate = call.Flag("conjugate");
  told.unit_diagonal = call.Flag("unit_diagonal");
  told.a = call.Operand(0);
  told.b = call.Operand(1);
  told.x = call.Result();
  call.Emit(told);
}

void Fft(BlockLowering::LibraryCall& call, int) {
  using Kind = abi::FftKind;
  static const auto& kinds = *new std::map<std::string, Kind>{
      {"fft", Kind::kFft}, {"ifft", Kind::kIfft}, {"rfft", Kind::kRfft}, {"irfft", Kind::kIrfft}};
  abi::Fft<InSchedule> told;
  told.kind = kinds.at(call.eqn().attrs.Get<std::string>("kind"));
  told.lengths = call.List("lengths");
  told.x = call.Operand(0);
  told.result = call.Result();
  call.Emit(told);
}

}  // namespace library
}  // namespace weft
