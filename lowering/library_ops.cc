// Equations that become calls of the runtime's operations: how each is described in `desc`.
#include <algorithm>

#include "ir/prim.h"
#include "lowering/block_lowering.h"

namespace weft {
namespace {

Dim Code(DType t) { return Dim(static_cast<int64_t>(t)); }

}  // namespace

// A dense operand: slot, dtype, rank, sizes.
void BlockLowering::AppendTensor(std::vector<Dim>& desc, const Atom& a) {
  const Type t = fn_.TypeOf(a);
  desc.push_back(Dim(SlotOf(a)));
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

// [x slot, y slot, result slot, then ContractLayout::entries]. Read by backends/cpu/contract.cc and lowering/gpu/.
void BlockLowering::EmitContract(Steps& steps, const Eqn& e) {
  const ContractLayout layout = LayOutContract(fn_, defining_, e);
  const Type result = fn_.TypeOf(e.result());
  const int x = layout.x_is_view ? slot_[plan_.Root(layout.x.root)] : SlotOf(e.operands[0]);
  const int y = layout.y_is_view ? slot_[plan_.Root(layout.y.root)] : SlotOf(e.operands[1]);
  const int to = ResultSlot(e.first_result, {});
  std::vector<Dim> desc = {Dim(x), Dim(y), Dim(to)};
  desc.insert(desc.end(), layout.entries.begin(), layout.entries.end());
  p_.EmitOp(steps, WEFT_OP_CONTRACT, desc, {x, y, to});
  for (const Type& t : {fn_.TypeOf(e.operands[0]), fn_.TypeOf(e.operands[1]), result}) {
    if (auto n = t.size().TryValue()) p_.program.artifact.counters.bytes_moved += *n * ByteWidth(t.dtype);
  }
}

void BlockLowering::EmitLibrary(Steps& steps, const Eqn& e) {
  const std::string& name = e.prim->name;
  if (name == "contract") return EmitContract(steps, e);
  if (name == "tape_add") {
    const int x = SlotOf(e.operands[0]), y = SlotOf(e.operands[1]), to = ResultSlot(e.first_result, {});
    return p_.EmitOp(steps, WEFT_OP_TAPE_ADD, {Dim(to), Dim(x), Dim(y), fn_.TypeOf(e.result()).size()}, {to, x, y});
  }
  std::vector<Dim> desc;
  std::vector<int> slots;
  auto number = [&](int64_t v) { desc.push_back(Dim(v)); };
  auto list = [&](const char* attr) {
    const Ints& v = e.attrs.Get<Ints>(attr);
    number(static_cast<int64_t>(v.size()));
    for (int64_t i : v) number(i);
  };
  auto in = [&](const Atom& a) {
    AppendTensor(desc, a);
    slots.push_back(SlotOf(a));
  };
  auto result_slot = [&](int i = 0) {
    slots.push_back(ResultSlot(e.first_result + static_cast<uint32_t>(i), {}));
    return slots.back();
  };
  auto out = [&](int i = 0) {  // slot only
    number(result_slot(i));
  };
  auto out_tensor = [&](int i = 0) {
    const Type t = fn_.TypeOf(e.result(i));
    number(result_slot(i));
    desc.push_back(Code(t.dtype));
    number(t.rank());
    desc.insert(desc.end(), t.dims.begin(), t.dims.end());
  };
  auto emit = [&](WeftOpcode op) { p_.EmitOp(steps, op, desc, slots); };

  if (name == "argmax" || name == "argmin") {
    in(e.operands[0]);
    out();
    desc.push_back(Code(fn_.TypeOf(e.result()).dtype));
    number(e.attrs.GetInt("dim"));
    number(name == "argmin");
    return emit(WEFT_OP_ARGMINMAX);
  }
  static const std::vector<std::string> kCumulative = {"cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp"};
  if (const auto at = std::find(kCumulative.begin(), kCumulative.end(), name); at != kCumulative.end()) {
    in(e.operands[0]);
    out();
    number(at - kCumulative.begin());
    number(e.attrs.GetInt("dim"));
    number(e.attrs.GetBool("reverse"));
    return emit(WEFT_OP_CUMULATIVE);
  }
  static const std::vector<std::string> kScatter = {"scatter", "scatter_add", "scatter_mul", "scatter_min",
                                                    "scatter_max"};
  if (const auto at = std::find(kScatter.begin(), kScatter.end(), name); at != kScatter.end()) {
    // In place when the operand is not needed any more.
    const Type x = fn_.TypeOf(e.operands[0]);
    const int from = SlotOf(e.operands[0]);
    bool alone = e.operands[0].is_var();
    for (size_t i = 1; i < e.operands.size(); ++i) alone = alone && SlotOf(e.operands[i]) != from;
    const int to = ResultSlot(e.first_result, alone ? std::vector<int>{from} : std::vector<int>{});
    p_.EmitCopy(steps, to, from, x);
    slots.push_back(to);
    number(to);
    desc.push_back(Code(x.dtype));
    number(x.rank());
    desc.insert(desc.end(), x.dims.begin(), x.dims.end());
    in(e.operands[1]);
    in(e.operands[2]);
    number(at - kScatter.begin());
    number(e.attrs.Get<std::string>("mode") == "clip");
    for (const char* dims :
         {"update_window_dims", "inserted_dims", "operand_batch_dims", "indices_batch_dims", "scatter_dims"})
      list(dims);
    return emit(WEFT_OP_SCATTER);
  }
  if (name == "sort") {
    number(static_cast<int64_t>(e.operands.size()));
    number(e.attrs.GetInt("num_keys"));
    number(e.attrs.GetInt("dim"));
    for (size_t i = 0; i < e.operands.size(); ++i) {
      in(e.operands[i]);
      out(static_cast<int>(i));
    }
    return emit(WEFT_OP_SORT);
  }
  if (name == "top_k") {
    in(e.operands[0]);
    out(0);
    out(1);
    number(e.attrs.GetInt("k"));
    return emit(WEFT_OP_TOP_K);
  }
  static const std::vector<std::string> kWindows = {"reduce_window_sum", "reduce_window_max", "reduce_window_min"};
  if (const auto at = std::find(kWindows.begin(), kWindows.end(), name); at != kWindows.end()) {
    in(e.operands[0]);
    out_tensor();
    number(at - kWindows.begin());
    for (const char* attr : {"window", "strides", "lo", "base_dilation", "window_dilation"}) list(attr);
    return emit(WEFT_OP_REDUCE_WINDOW);
  }
  if (name == "conv") {
    in(e.operands[0]);
    in(e.operands[1]);
    out_tensor();
    for (const char* attr : {"strides", "lo", "lhs_dilation", "rhs_dilation"}) list(attr);
    number(e.attrs.GetInt("feature_groups"));
    number(e.attrs.GetInt("batch_groups"));
    return emit(WEFT_OP_CONV);
  }
  if (name == "random_wrap" || name == "random_unwrap") {
    const int from = SlotOf(e.operands[0]);
    return p_.EmitCopy(steps, ResultSlot(e.first_result, {}), from, fn_.TypeOf(e.operands[0]));
  }
  auto all_in = [&](size_t from) {
    number(static_cast<int64_t>(e.operands.size() - from));
    for (size_t i = from; i < e.operands.size(); ++i) in(e.operands[i]);
  };
  if (name == "debug_print") {
    number(p_.AddString(e.attrs.Get<std::string>("format")));
    all_in(0);
    return emit(WEFT_OP_DEBUG_PRINT);
  }
  if (name == "assert") {
    number(p_.AddString(e.attrs.Get<std::string>("message")));
    in(e.operands[0]);
    all_in(1);
    return emit(WEFT_OP_ASSERT);
  }
  if (name == "pure_callback" || name == "io_callback") {
    number(e.attrs.GetInt("callback"));
    all_in(0);
    number(e.num_results);
    for (uint32_t r = 0; r < e.num_results; ++r) out_tensor(static_cast<int>(r));
    return emit(WEFT_OP_CALLBACK);
  }
  // Matrices, or stacks of them.
  auto matrices = [&](WeftOpcode op) {
    for (const Atom& a : e.operands) in(a);
    for (uint32_t r = 0; r < e.num_results; ++r) out_tensor(static_cast<int>(r));
    emit(op);
  };
  if (name == "cholesky") return matrices(WEFT_OP_CHOLESKY);
  if (name == "lu") return matrices(WEFT_OP_LU);
  if (name == "qr") return matrices(WEFT_OP_QR);
  if (name == "eigh") return matrices(WEFT_OP_EIGH);
  if (name == "eig") {
    number(e.attrs.GetBool("compute_v"));
    return matrices(WEFT_OP_EIG);
  }
  if (name == "svd") {
    number(e.attrs.GetBool("compute_uv"));
    return matrices(WEFT_OP_SVD);
  }
  if (name == "triangular_solve") {
    for (const char* flag : {"left", "lower", "transpose", "conjugate", "unit_diagonal"}) number(e.attrs.GetBool(flag));
    return matrices(WEFT_OP_TRIANGULAR_SOLVE);
  }
  if (name == "fft") {
    static const std::vector<std::string> kKinds = {"fft", "ifft", "rfft", "irfft"};
    number(std::find(kKinds.begin(), kKinds.end(), e.attrs.Get<std::string>("kind")) - kKinds.begin());
    list("lengths");
    return matrices(WEFT_OP_FFT);
  }
  throw Error(ErrorKind::kUnsupported, "compile: the CPU back end has no code for '" + name + "' yet", e.loc);
}

}  // namespace weft
