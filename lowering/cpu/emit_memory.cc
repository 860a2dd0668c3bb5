// Where a kernel's values come from and go to: addresses, whole and partial vectors, gathers, scatters, transposed
// squares, and the memory through which library functions are called.
#include <algorithm>
#include <numeric>
#include <optional>
#include <vector>

#include "lowering/abi/math_table.h"
#include "lowering/cpu/mlir/emit_kernel.h"
#include "lowering/cpu/mlir/kernel_emitter.h"

namespace weft {

// Sum of coefficient * dimension, without the lanes.
Value KernelEmitter::ScalarOffset(const Affine& a, bool with_vector_dim) {
  Value sum;
  auto add = [&](Value v) { sum = sum ? m_.IAdd(sum, v) : v; };
  for (const auto& [v, c] : a.terms()) {
    if (v == plan_.vector_dim && !with_vector_dim) continue;
    add(c == Dim(1) ? dims_[v] : m_.IMul(dims_[v], Size(c)));
  }
  if (!(a.constant() == Dim(0)) || !sum) add(Size(a.constant()));
  return sum;
}

KernelEmitter::Address KernelEmitter::Locate(const Access& a) {
  Address at;
  at.base = ScalarOffset(a.offset, true);
  MType i64 = m_.i64();
  for (const Access::Dynamic& d : a.dynamic) {
    const DType dtype = spec_.nodes[d.node].dtype;
    Value index = Evaluate(d.node).re;
    if (m_.Element(index).getIntOrFloatBitWidth() < 64)
      index = IsSigned(dtype) ? m_.ExtS(index, i64) : m_.ExtU(index, i64);
    const int64_t lanes = m_.Lanes(index);
    Value limit = m_.Splat(Size(d.limit), lanes), stride = m_.Splat(Size(d.stride), lanes),
          zero = m_.I(index.getType(), 0);
    // As unsigned numbers, 64-bit indices above 2^63 are too large, not negative.
    if (IsSigned(dtype)) {
      index = m_.Select(m_.Cmp(IPred::slt, index, zero), zero, index);
      index = m_.Select(m_.Cmp(IPred::sgt, index, limit), limit, index);
    } else {
      index = m_.Select(m_.Cmp(IPred::ugt, index, limit), limit, index);
    }
    Value part = m_.IMul(index, stride);
    if (lanes == 0)
      at.base = m_.IAdd(at.base, part);
    else
      at.lanes = at.lanes ? m_.IAdd(at.lanes, part) : part;
  }
  if (plan_.lanes > 0) {
    const Dim c = a.offset.Coefficient(plan_.vector_dim);
    if (c == Dim(1) && !at.lanes) {
      at.contiguous = true;
    } else if (!(c == Dim(0))) {
      at.reversed = c == Dim(-1) && !at.lanes;
      Value lane = m_.Iota(plan_.lanes, i64);
      // Lanes behind the end read the first one.
      if (full_) lane = m_.Select(mask_, lane, m_.I(lane.getType(), 0));
      lane = m_.IMul(lane, m_.Splat(Size(c), plan_.lanes));
      at.lanes = at.lanes ? m_.IAdd(at.lanes, lane) : lane;
    }
  }
  return at;
}

Lanes KernelEmitter::ReadVector(const Access& a, Value pointer) {
  const bool pair = IsComplex(a.dtype);
  MType element = body_.Memory(a.dtype);
  const unsigned align = element.getIntOrFloatBitWidth() / 8;
  return body_.FromMemory(a.dtype, m_.Load(m_.Vector(plan_.lanes * (pair ? 2 : 1), element), pointer, align));
}

// The lanes of a row's last vector, `behind` where there are no more.
Value KernelEmitter::ReadMasked(MType raw, Value pointer, Value behind) {
  return m_.b
      .create<LLVM::MaskedLoadOp>(m_.loc, raw, pointer, mask_, mlir::ValueRange{behind},
                                  m_.Element(raw).getIntOrFloatBitWidth() / 8)
      .getRes();
}

// Every `stride`-th element, of which the first is `first` elements behind `pointer`, or the elements at `pointer` and
// before it, as they lie: one load, whose lanes change places. At the end of a row, where they are fewer, `by_lane`
// reads them.
Value KernelEmitter::LoadInOrder(MType element, Value pointer, int64_t stride, int64_t first,
                                 llvm::function_ref<Value()> by_lane) {
  const int64_t n = plan_.lanes;
  auto whole = [&] {
    const int64_t read = stride > 0 ? stride * n : n;
    Value v = m_.Load(m_.Vector(read, element), stride > 0 ? pointer : m_.GepAt(element, pointer, 1 - n),
                      element.getIntOrFloatBitWidth() / 8);
    std::vector<int32_t> places;
    for (int64_t i = 0; i < n; ++i) places.push_back(static_cast<int32_t>(stride > 0 ? first + i * stride : n - 1 - i));
    return m_.Shuffle(v, v, places);
  };
  if (!full_) return whole();
  MType raw = m_.Vector(n, element);
  auto branch = m_.b.create<scf::IfOp>(m_.loc, mlir::TypeRange(raw), full_, /*withElseRegion=*/true);
  mlir::OpBuilder::InsertionGuard guard(m_.b);
  m_.b.setInsertionPointToStart(branch.thenBlock());
  m_.b.create<scf::YieldOp>(m_.loc, whole());
  m_.b.setInsertionPointToStart(branch.elseBlock());
  m_.b.create<scf::YieldOp>(m_.loc, by_lane());
  return branch.getResult(0);
}

// How many elements before that of the first lane a load may begin that takes all elements between those of the lanes:
// nothing where one of them might lie outside of the array. Loads of neighbours begin at the same one.
std::optional<int64_t> KernelEmitter::GapBefore(const Access& a) const {
  constexpr int64_t kMostStride = 4;
  const int64_t stride = a.offset.Coefficient(plan_.vector_dim).TryValue().value_or(0);
  const std::optional<int64_t> at = a.offset.constant().TryValue();
  if (stride < 2 || stride > kMostStride || !at || IsComplex(a.dtype) || !a.dynamic.empty()) return std::nullopt;
  // What lies between two elements that are read at the same point of the domain is in the array, too.
  bool counts_up = true;
  for (const auto& [v, c] : a.offset.terms()) counts_up = counts_up && c.TryValue().value_or(-1) >= 0;
  int64_t least = counts_up ? 0 : *at, most = *at;
  for (const KernelNode& n : spec_.nodes) {
    if (n.kind != KernelNode::Kind::kLoad || n.access.operand != a.operand || !n.access.dynamic.empty() ||
        n.access.offset.terms() != a.offset.terms())
      continue;
    const std::optional<int64_t> other = n.access.offset.constant().TryValue();
    if (!other) continue;
    least = std::min(least, *other), most = std::max(most, *other);
  }
  const int64_t shared = (*at - least) % stride;
  if (*at + stride - 1 - shared <= most) return shared;
  return *at - (stride - 1) >= least ? std::optional<int64_t>(stride - 1) : std::nullopt;
}

Lanes KernelEmitter::LoadHere(const Access& a) {
  Address at = Locate(a);
  const bool pair = IsComplex(a.dtype);
  MType element = body_.Memory(a.dtype);
  const unsigned align = element.getIntOrFloatBitWidth() / 8;
  if (pair) at.base = m_.Shl(at.base, 1);
  Value pointer = m_.Gep(element, Pointer(a.operand), at.base);
  if (at.lanes) {
    const int64_t n = m_.Lanes(at.lanes);
    if (pair) at.lanes = m_.Shl(at.lanes, 1);
    MType pointers = LLVM::getFixedVectorType(m_.ptr(), static_cast<unsigned>(n));
    Value all = m_.I(m_.Vector(n, m_.i1()), -1);
    auto gather = [&](Value base) {
      Value addresses = m_.Make<LLVM::GEPOp>(pointers, element, base, llvm::ArrayRef<LLVM::GEPArg>{at.lanes});
      return m_.b.create<LLVM::masked_gather>(m_.loc, m_.Vector(n, element), addresses, all, mlir::ValueRange{}, align)
          .getRes();
    };
    if (pair) return {gather(pointer), gather(m_.GepAt(element, pointer, 1))};
    const std::optional<int64_t> gap = GapBefore(a);
    if (at.reversed || gap) {
      Value first = gap ? m_.GepAt(element, pointer, -*gap) : pointer;
      const int64_t stride = gap ? *a.offset.Coefficient(plan_.vector_dim).TryValue() : -1;
      return body_.FromMemory(a.dtype,
                              LoadInOrder(element, first, stride, gap.value_or(0), [&] { return gather(pointer); }));
    }
    return body_.FromMemory(a.dtype, gather(pointer));
  }
  if (at.contiguous) {
    if (!full_) return ReadVector(a, pointer);
    // Terms of a sum are read so often, each for little work, that a branch would cost more than the mask.
    if (tree_ >= 0 && NativeMask(a.dtype) && !pair) {
      MType raw = m_.Vector(plan_.lanes, element);
      return body_.FromMemory(a.dtype, ReadMasked(raw, pointer, m_.Constant(raw, m_.b.getZeroAttr(element))));
    }
    return ReadGuarded({a})[0];
  }
  if (pair) return {m_.Load(element, pointer, align), m_.Load(element, m_.GepAt(element, pointer, 1), align)};
  return body_.FromMemory(a.dtype, m_.Load(element, pointer, align));
}

// The loads of contiguous vectors that computing `node` needs and that nobody made yet.
void KernelEmitter::CollectLoads(int node, std::vector<bool>& seen, std::vector<int>& loads) {
  if (seen[node] || MemoOf(node).level >= 0) return;
  seen[node] = true;
  const KernelNode& n = spec_.nodes[node];
  if (n.kind == KernelNode::Kind::kReduce) return;
  const KernelStore* spill = SpillOf(node);
  const Access* access = n.kind == KernelNode::Kind::kLoad ? &n.access : nullptr;
  if (spill != nullptr && current_phase_ > phases_[node]) access = &spill->access;
  if (access != nullptr) {
    for (const auto& d : access->dynamic) CollectLoads(d.node, seen, loads);
    bool scalar_index = true;
    for (const auto& d : access->dynamic) scalar_index = scalar_index && !IsVector(dependence_[d.node]);
    if (scalar_index && access->offset.Coefficient(plan_.vector_dim) == Dim(1)) loads.push_back(node);
    return;
  }
  for (int o : n.operands) CollectLoads(o, seen, loads);
}

// Contiguous vectors, of which only the first lanes exist where a row ends.
std::vector<Lanes> KernelEmitter::ReadGuarded(const std::vector<Access>& accesses) {
  struct Wanted {
    Access access;
    Value pointer;
    MType raw;
  };
  std::vector<Wanted> wanted;
  std::vector<MType> types;
  for (const Access& access : accesses) {
    const bool pair = IsComplex(access.dtype);
    MType element = body_.Memory(access.dtype);
    Address at = Locate(access);
    Value pointer = m_.Gep(element, Pointer(access.operand), pair ? m_.Shl(at.base, 1) : at.base);
    wanted.push_back({access, pointer, m_.Vector(plan_.lanes * (pair ? 2 : 1), element)});
    types.push_back(wanted.back().raw);
  }
  auto branch = m_.b.create<scf::IfOp>(m_.loc, mlir::TypeRange(types), full_, /*withElseRegion=*/true);
  {
    mlir::OpBuilder::InsertionGuard guard(m_.b);
    m_.b.setInsertionPointToStart(branch.thenBlock());
    std::vector<Value> raw;
    for (const Wanted& w : wanted)
      raw.push_back(m_.Load(w.raw, w.pointer, m_.Element(w.raw).getIntOrFloatBitWidth() / 8));
    m_.b.create<scf::YieldOp>(m_.loc, raw);
    m_.b.setInsertionPointToStart(branch.elseBlock());
    raw.clear();
    for (const Wanted& w : wanted) {
      MType element = m_.Element(w.raw);
      const bool pair = IsComplex(w.access.dtype);
      Value zero = mlir::isa<mlir::FloatType>(element) ? m_.F(w.raw, 0) : m_.I(w.raw, 0);
      if (NativeMask(w.access.dtype) && !pair) {
        raw.push_back(ReadMasked(w.raw, w.pointer, zero));
      } else {
        Value memory = Scratch(w.raw, 0);
        m_.Store(zero, memory, 64);
        Memcpy(memory, w.pointer, m_.IMul(remaining_, m_.I64(ByteWidth(w.access.dtype))));
        raw.push_back(m_.Load(w.raw, memory, 64));
      }
    }
    m_.b.create<scf::YieldOp>(m_.loc, raw);
  }
  std::vector<Lanes> values;
  for (size_t i = 0; i < wanted.size(); ++i)
    values.push_back(body_.FromMemory(wanted[i].access.dtype, branch.getResult(static_cast<unsigned>(i))));
  return values;
}

// One branch decides for all of them whether whole vectors can be read.
void KernelEmitter::Prefetch(const std::vector<int>& roots) {
  if (!full_) return;
  std::vector<bool> seen(spec_.nodes.size(), false);
  std::vector<int> loads;
  for (int root : roots) CollectLoads(root, seen, loads);
  if (loads.empty()) return;
  std::vector<Access> accesses;
  for (int node : loads) {
    const KernelStore* spill = SpillOf(node);
    accesses.push_back(spill != nullptr && current_phase_ > phases_[node] ? spill->access : spec_.nodes[node].access);
  }
  const std::vector<Lanes> values = ReadGuarded(accesses);
  for (size_t i = 0; i < loads.size(); ++i) {
    MemoOf(loads[i]) = {values[i], static_cast<int>(loops_.size())};
  }
}

// Writes every store of the current point; the values are computed first, so that one branch serves all.
void KernelEmitter::StoreAll(const std::vector<const KernelStore*>& stores) {
  struct Write {
    Value raw, pointer;
    DType dtype;
    bool streamed;
  };
  std::vector<Write> writes;
  // A store may overwrite what another one's value is made from, so all is read before anything is written.
  std::vector<std::pair<Lanes, Address>> values;
  for (const KernelStore* s : stores) {
    Lanes v = Evaluate(s->node);
    values.emplace_back(v, Locate(s->access));
  }
  for (size_t i = 0; i < stores.size(); ++i) {
    auto [v, at] = values[i];
    const Access& a = stores[i]->access;
    const bool pair = IsComplex(a.dtype);
    MType element = body_.Memory(a.dtype);
    const unsigned align = element.getIntOrFloatBitWidth() / 8;
    Value pointer = m_.Gep(element, Pointer(a.operand), pair ? m_.Shl(at.base, 1) : at.base);
    if (at.contiguous) {
      writes.push_back({body_.ToMemory(a.dtype, body_.Splat(v, plan_.lanes)), pointer, a.dtype,
                        stores[i]->streamed && plan_.tile_dim < 0});
    } else if (at.lanes) {
      v = body_.Splat(v, plan_.lanes);
      MType pointers = LLVM::getFixedVectorType(m_.ptr(), static_cast<unsigned>(plan_.lanes));
      Value mask = full_ ? mask_ : m_.I(m_.Vector(plan_.lanes, m_.i1()), -1);
      if (pair) at.lanes = m_.Shl(at.lanes, 1);
      auto scatter = [&](Value raw, Value base) {
        Value addresses = m_.Make<LLVM::GEPOp>(pointers, element, base, llvm::ArrayRef<LLVM::GEPArg>{at.lanes});
        m_.b.create<LLVM::masked_scatter>(m_.loc, raw, addresses, mask, align);
      };
      if (pair) {
        scatter(v.re, pointer);
        scatter(v.im, m_.GepAt(element, pointer, 1));
      } else {
        scatter(body_.ToMemory(a.dtype, v), pointer);
      }
    } else {
      if (m_.Lanes(v.re) != 0) v = {m_.Extract(v.re, 0), v.im ? m_.Extract(v.im, 0) : Value()};
      if (pair) {
        m_.Store(v.re, pointer, align);
        m_.Store(v.im, m_.GepAt(element, pointer, 1), align);
      } else {
        m_.Store(body_.ToMemory(a.dtype, v), pointer, align);
      }
    }
  }
  if (writes.empty()) return;
  auto write_full = [&] {
    for (const Write& w : writes) {
      if (!w.streamed) {
        m_.Store(w.raw, w.pointer, m_.Element(w.raw).getIntOrFloatBitWidth() / 8);
        continue;
      }
      // Register by register: only aligned ones bypass the caches.
      const int64_t bytes = std::min<int64_t>(64, m_.Lanes(w.raw) * m_.Element(w.raw).getIntOrFloatBitWidth() / 8);
      m_.b.create<LLVM::StoreOp>(m_.loc, w.raw, w.pointer, static_cast<unsigned>(bytes), /*isVolatile=*/false,
                                 /*isNonTemporal=*/true);
      streams_ = true;
    }
  };
  if (!full_) return write_full();
  auto branch = m_.b.create<scf::IfOp>(m_.loc, full_, /*withElseRegion=*/true);
  mlir::OpBuilder::InsertionGuard guard(m_.b);
  m_.b.setInsertionPointToStart(branch.thenBlock());
  write_full();
  m_.b.setInsertionPointToStart(branch.elseBlock());
  for (const Write& w : writes) {
    if (NativeMask(w.dtype) && !IsComplex(w.dtype)) {
      m_.b.create<LLVM::MaskedStoreOp>(m_.loc, w.raw, w.pointer, mask_, m_.Element(w.raw).getIntOrFloatBitWidth() / 8);
    } else {
      Value memory = Scratch(w.raw.getType(), 0);
      m_.Store(w.raw, memory, 64);
      Memcpy(w.pointer, memory, m_.IMul(remaining_, m_.I64(ByteWidth(w.dtype))));
    }
  }
}

// Reads the square of `node` whose rows follow the vector dimension and whose columns follow the tile's, and leaves its
// transpose in memory that stays in the nearest cache.
void KernelEmitter::TransposeIntoScratch(int node) {
  const Access& a = spec_.nodes[node].access;
  const int lanes = plan_.lanes;
  const unsigned bits = body_.Memory(a.dtype).getIntOrFloatBitWidth();
  MType element = m_.b.getIntegerType(bits), vector = m_.Vector(lanes, element);
  dims_[plan_.tile_dim] = tile_base_;
  Value start = ScalarOffset(a.offset, true), step = Size(a.offset.Coefficient(plan_.vector_dim));
  const std::optional<int64_t> tiled = spec_.sizes[plan_.tile_dim].TryValue();
  Value columns;  // which of a row's lanes exist
  if (!tiled || *tiled % lanes != 0) {
    Value rest = m_.ISub(Size(spec_.sizes[plan_.tile_dim]), tile_base_);
    columns = m_.Cmp(IPred::slt, m_.Iota(lanes, m_.i32()), m_.Splat(m_.TruncI(rest, m_.i32()), lanes));
  }
  std::vector<Value> rows;
  for (int k = 0; k < lanes; ++k) {
    Value row = m_.I64(k);
    // Rows behind the end: the last one again.
    if (plan_.may_have_tail) row = m_.Select(m_.Cmp(IPred::slt, row, remaining_), row, m_.ISub(remaining_, m_.I64(1)));
    Value pointer = m_.Gep(element, Pointer(a.operand), m_.IAdd(start, m_.IMul(row, step)));
    rows.push_back(columns ? Value(m_.b.create<LLVM::MaskedLoadOp>(m_.loc, vector, pointer, columns,
                                                                   mlir::ValueRange{m_.I(vector, 0)}, bits / 8)
                                       .getRes())
                           : m_.Load(vector, pointer, bits / 8));
  }
  // Exchanges the off-diagonal blocks of blocks of half the size, and so on.
  for (int half = lanes / 2; half > 0; half /= 2) {
    std::vector<int32_t> low, high;
    for (int l = 0; l < lanes; ++l) {
      low.push_back(l & half ? lanes + l - half : l);
      high.push_back(l & half ? lanes + l : l + half);
    }
    for (int i = 0; i < lanes; ++i) {
      if (i & half) continue;
      Value x = rows[i], y = rows[i + half];
      rows[i] = m_.Shuffle(x, y, low);
      rows[i + half] = m_.Shuffle(x, y, high);
    }
  }
  Value& square = squares_[node];
  if (!square) square = Alloca(LLVM::LLVMArrayType::get(vector, static_cast<unsigned>(lanes)));
  for (int k = 0; k < lanes; ++k)
    m_.Store(rows[k], m_.GepAt(element, square, int64_t{k} * lanes), static_cast<unsigned>(lanes) * bits / 8);
}

Lanes KernelEmitter::CallLibrary(const std::string& op, DType dtype, const std::vector<Lanes>& x, DType result) {
  const int index = MathIndex(op, static_cast<int>(dtype));
  if (index < 0) throw Error(ErrorKind::kUnsupported, op + " has no compiled form for " + Name(dtype));
  int64_t lanes = 0;
  for (const Lanes& v : x) lanes = std::max(lanes, m_.Lanes(v.re));
  const int64_t n = std::max<int64_t>(lanes, 1);
  // Registers of halves are f32 already, so memory has the registers' type; complex numbers are interleaved.
  std::vector<Value> arguments;
  auto memory_type = [&](DType t) {
    return m_.Vector(n * (IsComplex(t) ? 2 : 1), t == DType::kBool ? m_.i8() : body_.Register(t));
  };
  MType out_type = memory_type(result);
  Value out = Scratch(out_type, 1);
  arguments.push_back(out);
  for (size_t i = 0; i < 2; ++i) {
    if (i >= x.size()) {
      arguments.push_back(out);
      continue;
    }
    Value memory = Scratch(memory_type(IsFloat8(dtype) ? (op == "load_f8" ? dtype : DType::kF32) : dtype),
                           2 + static_cast<int>(i));
    MType element = m_.Element(x[i].re);
    if (lanes == 0) {
      m_.Store(x[i].re, memory);
      if (x[i].im) m_.Store(x[i].im, m_.GepAt(element, memory, 1));
    } else {
      m_.Store(x[i].im ? body_.ToMemory(dtype, x[i]) : x[i].re, memory, 64);
    }
    arguments.push_back(memory);
  }
  arguments.push_back(m_.I64(n));
  Value function = m_.Load(m_.ptr(), m_.GepAt(m_.ptr(), math_table_, index));
  auto type =
      LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(m_.b.getContext()), {m_.ptr(), m_.ptr(), m_.ptr(), m_.i64()});
  arguments.insert(arguments.begin(), function);
  m_.b.create<LLVM::CallOp>(m_.loc, type, arguments);
  MType element = m_.Element(out_type);
  if (lanes == 0) {
    Lanes value{m_.Load(element, out)};
    if (IsComplex(result)) value.im = m_.Load(element, m_.GepAt(element, out, 1));
    return value;
  }
  Value raw = m_.Load(out_type, out, 64);
  return IsComplex(result) ? body_.FromMemory(result, raw) : Lanes{raw};
}

}  // namespace weft
