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

// [x slot, y slot, result slot, dtype, result dtype, x start, y start, batch dims, M dims, N dims, K dims, then per
//  dimension in that order: size, stride in x, in y, in the result].
void BlockLowering::EmitContract(Steps& steps, const Eqn& e) {
  const std::string& spec = e.attrs.Get<std::string>("spec");
  const size_t comma = spec.find(','), arrow = spec.find("->");
  const std::string lhs = spec.substr(0, comma), rhs = spec.substr(comma + 1, arrow - comma - 1), out = spec.substr(arrow + 2);
  const Type result = fn_.TypeOf(e.result());
  struct Side {
    int slot = -1;
    Dim start = 0;
    std::vector<Dim> strides;
  };
  auto side = [&](const Atom& a) {
    Side s;
    StridedView view;
    if (FindStrided(fn_, defining_, a, &view)) {
      s.slot = slot_[plan_.Root(view.root)];
      s.start = view.start;
      s.strides = view.strides;
    } else {
      s.slot = SlotOf(a);
      s.strides = Strides(fn_.TypeOf(a).dims);
    }
    return s;
  };
  const Side x = side(e.operands[0]), y = side(e.operands[1]);
  const int to = ResultSlot(e.first_result, {});
  const std::vector<Dim> out_strides = Strides(result.dims);
  std::vector<Dim> groups[4];
  const Dims xd = fn_.TypeOf(e.operands[0]).dims, yd = fn_.TypeOf(e.operands[1]).dims;
  std::string letters = out;
  for (char c : lhs) {
    if (letters.find(c) == std::string::npos) letters += c;
  }
  Dim flops = 2;
  for (char c : letters) {
    const size_t i = lhs.find(c), j = rhs.find(c), k = out.find(c);
    const bool in_x = i != std::string::npos, in_y = j != std::string::npos, in_out = k != std::string::npos;
    std::vector<Dim>& g = groups[in_x && in_y ? (in_out ? 0 : 3) : in_x ? 1 : 2];
    const Dim size = in_x ? xd[i] : yd[j];
    flops = flops * size;
    g.push_back(size);
    g.push_back(in_x ? x.strides[i] : Dim(0));
    g.push_back(in_y ? y.strides[j] : Dim(0));
    g.push_back(in_out ? out_strides[k] : Dim(0));
  }
  std::vector<Dim> desc = {Dim(x.slot), Dim(y.slot), Dim(to), Code(fn_.TypeOf(e.operands[0]).dtype), Code(result.dtype), x.start, y.start};
  for (const auto& g : groups) desc.push_back(Dim(static_cast<int64_t>(g.size() / 4)));
  for (const auto& g : groups) desc.insert(desc.end(), g.begin(), g.end());
  p_.EmitOp(steps, WEFT_OP_CONTRACT, desc, {x.slot, y.slot, to});
  for (const Type& t : {fn_.TypeOf(e.operands[0]), fn_.TypeOf(e.operands[1]), result}) {
    if (auto n = t.size().TryValue()) p_.program.artifact.counters.bytes_moved += *n * ByteWidth(t.dtype);
  }
}

void BlockLowering::EmitLibrary(Steps& steps, const Eqn& e) {
  const std::string& name = e.prim->name;
  if (name == "contract") return EmitContract(steps, e);
  throw Error(ErrorKind::kUnsupported, "compile: the CPU back end has no code for '" + name + "' yet", e.loc);
}

}  // namespace weft
