#include "lowering/ops/op_table.h"

#include "ir/extensions.h"
#include "lowering/ops/op_rows.h"

namespace weft {
namespace {

using Kind = OpRow::Kind;
using Operands = OpRow::Operands;

OpRow Inlined() { return {.as = Kind::kInlined}; }
OpRow Replaced(OpRow::Replace by) { return {.as = Kind::kReplaced, .replace = by}; }
OpRow View(OpRow::Index index) { return {.as = Kind::kView, .index = index, .on_gpu = true}; }

// The exponent; whether halves go away from zero; whether the result is exact to the last bit; whether a sum takes a
// product in without rounding it.
int64_t Exponent(const Attrs& attrs) { return attrs.GetInt("y"); }
int64_t AwayFromZero(const Attrs& attrs) { return attrs.Get<std::string>("mode") == "away"; }
int64_t Accurate(const Attrs& attrs) { return attrs.Find("accuracy") != nullptr; }
int64_t Fused(const Attrs& attrs) { return attrs.Find("fused") != nullptr; }

}  // namespace

// A friend of BlockLowering, since rows point to its members.
class OpTable {
 public:
  OpTable() : rows_(AllPrims().size()) {
    for (const Prim* p : AllPrims()) {
      if (p->is_elementwise()) Row(p->name) = {.as = Kind::kElementwise, .kernel_op = p->name, .on_gpu = true};
      if (p->family == Family::kCollective) Row(p->name) = Step(&BlockLowering::EmitCollective);
    }
    Row("integer_pow").number = Exponent;
    Row("round").number = AwayFromZero;
    Row("log").number = Accurate;
    Row("add").number = Fused;
    Row("sub").number = Fused;
    Row("stop_gradient").identity = true;
    for (const auto& [name, op] : {std::pair("reduce_sum", "sum"),
                                   {"reduce_prod", "prod"},
                                   {"reduce_max", "max"},
                                   {"reduce_min", "min"},
                                   {"reduce_and", "and"},
                                   {"reduce_or", "or"}})
      Row(name) = {.as = Kind::kReduction, .kernel_op = op, .on_gpu = true};
    for (const char* name :
         {"call", "into", "remat", "custom_jvp", "custom_vjp", "custom_vmap", "linear_solve", "primitive"})
      Row(name) = Inlined();
    Row("custom_linear") = Inlined();
    Row("custom_linear").body = replace::LinearRegion;
    Row("checkpoint_name") = Replaced(replace::Operands);
    Row("sharding_constraint") = Replaced(replace::Operands);
    Row("snapshot_scan") = Replaced(replace::SnapshotScan);
    Row("threefry2x32") = Replaced(replace::Threefry2x32);

    Row("broadcast") = View(views::Broadcast);
    Row("transpose") = View(views::Transpose);
    Row("slice") = View(views::Slice);
    Row("reverse") = View(views::Reverse);
    Row("reshape") = View(views::Reshape);
    Row("reshape").same_bytes = true;
    Row("iota") = Computed(&KernelBuilder::IotaValue);
    Row("dim_size") = Computed(&KernelBuilder::DimSizeValue);
    Row("gather") = Computed(&KernelBuilder::GatherValue);
    Row("gather").at_data = true;
    Row("dynamic_slice") = Computed(&KernelBuilder::DynamicSliceValue);
    Row("dynamic_slice").at_data = true;

    // The explicit memory form says what lowering finds out by itself.
    Row("allocate") = Replaced(replace::Allocation);
    Row("free") = Replaced(replace::Nothing);
    Row("load") = Replaced(replace::Operands);

    Row("concatenate") = Writes(&BlockLowering::EmitConcatenate, Operands::kComputed);
    Row("pad") = Writes(&BlockLowering::EmitPad, Operands::kComputed);
    Row("dynamic_update_slice") = Writes(&BlockLowering::EmitDynamicUpdate, Operands::kFirst);
    Row("contract") = Writes(&BlockLowering::EmitProduct, Operands::kProduct);

    Row("cond") = Step(&BlockLowering::EmitCond);
    Row("while") = Step(&BlockLowering::EmitWhile);
    Row("scan") = Step(&BlockLowering::EmitScan);
    Row("tape_scan") = Step(&BlockLowering::EmitTapeScan);
    Row("spmd") = Step(&BlockLowering::EmitSpmd);
    Row("recursive") = Step(&BlockLowering::EmitRecursive);
    Row("recur") = Step(&BlockLowering::EmitRecur);
    Row("box") = Step(&BlockLowering::EmitBox);
    Row("unbox") = Step(&BlockLowering::EmitUnbox);
    Row("tape_add") = Step(&BlockLowering::EmitTapeAdd);
    Row("random_wrap") = Step(&BlockLowering::EmitSameBytes);
    Row("random_unwrap") = Step(&BlockLowering::EmitSameBytes);

    // The runtime's operations, and which of several with one number they are.
    Row("argmax") = ArgReduction("argmax", 0);
    Row("argmin") = ArgReduction("argmin", 1);
    using abi::CollectiveKind, abi::CumulativeKind, abi::ScatterKind, abi::WindowKind;
    for (const auto& [name, kind] : {std::pair("cumsum", CumulativeKind::kSum),
                                     {"cumprod", CumulativeKind::kProduct},
                                     {"cummax", CumulativeKind::kMax},
                                     {"cummin", CumulativeKind::kMin},
                                     {"cumlogsumexp", CumulativeKind::kLogSumExp}})
      Row(name) = Library(library::Cumulative, static_cast<int>(kind));
    for (const auto& [name, kind] : {std::pair("scatter", ScatterKind::kSet),
                                     {"scatter_add", ScatterKind::kAdd},
                                     {"scatter_mul", ScatterKind::kMul},
                                     {"scatter_min", ScatterKind::kMin},
                                     {"scatter_max", ScatterKind::kMax}})
      Row(name) = Library(library::Scatter, static_cast<int>(kind));
    for (const auto& [name, kind] : {std::pair("reduce_window_sum", WindowKind::kSum),
                                     {"reduce_window_max", WindowKind::kMax},
                                     {"reduce_window_min", WindowKind::kMin}})
      Row(name) = Library(library::ReduceWindow, static_cast<int>(kind));
    for (const auto& [name, kind] : {std::pair("psum", CollectiveKind::kPsum),
                                     {"pmax", CollectiveKind::kPmax},
                                     {"pmin", CollectiveKind::kPmin},
                                     {"all_gather", CollectiveKind::kAllGather},
                                     {"psum_scatter", CollectiveKind::kPsumScatter},
                                     {"all_to_all", CollectiveKind::kAllToAll},
                                     {"ppermute", CollectiveKind::kPpermute}}) {
      Row(name) = Step(&BlockLowering::EmitCollective);
      Row(name).kind = static_cast<int>(kind);
    }
    Row("axis_index") = Step(&BlockLowering::EmitAxisIndex);
    Row("sort") = Library(library::Sort);
    Row("top_k") = Library(library::TopK);
    Row("conv") = Library(library::Convolution);
    Row("conv").operands = Operands::kMoved;
    Row("debug_print") = Library(library::DebugPrint);
    Row("assert") = Library(library::Assert);
    Row("pure_callback") = Library(library::Callback);
    Row("io_callback") = Library(library::Callback);
    Row("cholesky") = Library(library::Cholesky);
    Row("lu") = Library(library::Lu);
    Row("qr") = Library(library::Qr);
    Row("eigh") = Library(library::Eigh);
    Row("eig") = Library(library::Eig);
    Row("svd") = Library(library::Svd);
    Row("triangular_solve") = Library(library::TriangularSolve);
    Row("fft") = Library(library::Fft);
  }

  const OpRow& operator[](const Prim& prim) const {
    return ExpansionOf(prim) != nullptr ? of_outside_ : rows_[static_cast<size_t>(prim.id)];
  }

 private:
  OpRow& Row(const std::string& name) { return rows_[FindPrim(name).id]; }
  static OpRow Step(OpRow::Emit emit) { return {.as = Kind::kStep, .emit = emit}; }
  static OpRow Writes(OpRow::Emit emit, Operands operands) {
    return {.as = Kind::kStep, .emit = emit, .operands = operands, .on_gpu = true};
  }
  static OpRow Library(OpRow::Library call, int kind = 0) {
    return {.as = Kind::kStep, .emit = &BlockLowering::EmitLibrary, .library = call, .kind = kind};
  }
  static OpRow Computed(OpRow::Value value) { return {.as = Kind::kView, .value = value, .on_gpu = true}; }
  static OpRow ArgReduction(const char* op, int kind) {
    OpRow row = Library(library::ArgReduction, kind);
    row.as = Kind::kArgReduction;
    row.kernel_op = op;
    row.on_gpu = true;
    return row;
  }

  std::vector<OpRow> rows_;
  const OpRow of_outside_ = Inlined();  // what it computes, see lowering/schedule/without_calls.cc
};

const OpRow& RowOf(const Prim& prim) {
  static const auto& table = *new OpTable();
  return table[prim];
}

}  // namespace weft
