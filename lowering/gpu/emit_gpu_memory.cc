// Where a GPU kernel's values come from and go to: global memory, the other threads of a row, libdevice.
#include <algorithm>

#include "lowering/cpu/mlir/scalar_ops.h"
#include "lowering/gpu/mlir/gpu_kernel_emitter.h"

namespace weft {
namespace {

using Kind = KernelNode::Kind;

}  // namespace

Value GpuKernelEmitter::Sreg(const char* name) {
  return m_.b
      .create<LLVM::CallIntrinsicOp>(m_.loc, mlir::TypeRange{m_.i32()}, m_.b.getStringAttr(name), mlir::ValueRange{},
                                     LLVM::FastmathFlagsAttr{})
      ->getResult(0);
}

void GpuKernelEmitter::Barrier() {
  m_.b.create<LLVM::CallIntrinsicOp>(m_.loc, mlir::TypeRange{}, m_.b.getStringAttr("llvm.nvvm.barrier0"),
                                     mlir::ValueRange{}, LLVM::FastmathFlagsAttr{});
}

// Of lane `lane`; dims_ holds the position of lane 0.
Value GpuKernelEmitter::ScalarOffset(const Affine& a, int lane) {
  int64_t constant = *a.constant().TryValue();
  Value sum;
  for (const auto& [v, c] : a.terms()) {
    const int64_t step = *c.TryValue();
    if (v == plan_.vector_dim) constant += lane * step;
    Value part = step == 1 ? dims_[v] : m_.IMul(dims_[v], At(step));
    sum = sum ? m_.IAdd(sum, part) : part;
  }
  if (constant != 0 || !sum) sum = sum ? m_.IAdd(sum, At(constant)) : At(constant);
  return sum;
}

// In elements.
Value GpuKernelEmitter::Offset(const Access& a, int lane) {
  Value offset = ScalarOffset(a.offset, lane);
  for (const Access::Dynamic& d : a.dynamic) {
    const DType dtype = spec_.nodes[d.node].dtype;
    Value index = Evaluate(d.node, lane).re;
    if (m_.Element(index).getIntOrFloatBitWidth() < 64)
      index = IsSigned(dtype) ? m_.ExtS(index, m_.i64()) : m_.ExtU(index, m_.i64());
    Value limit = m_.I64(*d.limit.TryValue());
    if (IsSigned(dtype)) {
      index = m_.Select(m_.Cmp(IPred::slt, index, m_.I64(0)), m_.I64(0), index);
      index = m_.Select(m_.Cmp(IPred::sgt, index, limit), limit, index);
    } else {
      index = m_.Select(m_.Cmp(IPred::ugt, index, limit), limit, index);
    }
    if (!plan_.wide_index) index = m_.TruncI(index, m_.i32());
    offset = m_.IAdd(offset, m_.IMul(index, At(*d.stride.TryValue())));
  }
  return offset;
}

Value GpuKernelEmitter::Pointer(const Access& a, Value offset) {
  MType element = body_.Memory(a.dtype);
  if (IsComplex(a.dtype)) offset = m_.Shl(offset, 1);
  if (!plan_.wide_index) offset = m_.ExtS(offset, m_.i64());
  Value base = pointers_[static_cast<size_t>(a.operand)];
  return m_.Make<LLVM::GEPOp>(base.getType(), element, base, llvm::ArrayRef<LLVM::GEPArg>{offset});
}

Lanes GpuKernelEmitter::LoadLane(const Access& a, int lane) {
  Value pointer = Pointer(a, Offset(a, lane));
  MType element = body_.Memory(a.dtype);
  const unsigned align = element.getIntOrFloatBitWidth() / 8;
  if (!IsComplex(a.dtype)) return body_.FromMemory(a.dtype, m_.Load(element, pointer, align));
  Value both = m_.Load(m_.Vector(2, element), pointer, 2 * align);
  return {m_.Extract(both, 0), m_.Extract(both, 1)};
}

void GpuKernelEmitter::LoadVector(int node) {
  const Access& a = spec_.nodes[static_cast<size_t>(node)].access;
  const bool pair = IsComplex(a.dtype);
  MType element = body_.Memory(a.dtype);
  const std::vector<Value> parts = LoadTogether(element, lanes_ * (pair ? 2 : 1), Pointer(a, Offset(a, 0)));
  const int group = IsInner(dependence_[node]) ? group_ : -1;
  for (size_t l = 0; l < static_cast<size_t>(lanes_); ++l) {
    const Lanes v = pair ? Lanes{parts[2 * l], parts[2 * l + 1]} : body_.FromMemory(a.dtype, parts[l]);
    known_[{node, group, static_cast<int>(l)}] = {v, depth_};
  }
}

// Bytes are moved as words of 32 bits: LLVM takes vectors of bytes apart.
std::vector<Value> GpuKernelEmitter::LoadTogether(MType element, int64_t count, Value pointer) {
  const int64_t bits = element.getIntOrFloatBitWidth();
  const bool words = bits == 8 && count % 4 == 0;
  const int64_t loaded = words ? count / 4 : count;
  Value raw = m_.Load(m_.Vector(loaded, words ? m_.i32() : element), pointer, static_cast<unsigned>(count * bits / 8));
  std::vector<Value> parts;
  for (int64_t i = 0; i < loaded; ++i) {
    Value part = m_.Extract(raw, i);
    for (int64_t byte = 0; words && byte < 4; ++byte) parts.push_back(m_.TruncI(m_.ShrU(part, 8 * byte), element));
    if (!words) parts.push_back(part);
  }
  return parts;
}

// What a store writes at once: the parts one behind the other.
Value GpuKernelEmitter::Together(std::vector<Value> parts) {
  if (parts[0].getType() == m_.i8() && parts.size() % 4 == 0) {
    std::vector<Value> words;
    for (size_t i = 0; i < parts.size(); ++i) {
      Value byte = m_.Shl(m_.ExtU(parts[i], m_.i32()), static_cast<int64_t>(8 * (i % 4)));
      if (i % 4 == 0)
        words.push_back(byte);
      else
        words.back() = m_.Or(words.back(), byte);
    }
    parts = words;
  }
  if (parts.size() == 1) return parts[0];
  MType t = m_.Vector(static_cast<int64_t>(parts.size()), parts[0].getType());
  Value all = m_.Make<LLVM::PoisonOp>(t);
  for (size_t i = 0; i < parts.size(); ++i)
    all = m_.Make<LLVM::InsertElementOp>(t, all, parts[i], m_.I64(static_cast<int64_t>(i)));
  return all;
}

Lanes GpuKernelEmitter::Evaluate(int node, int lane) {
  if (LanesOf(dependence_[node]) == 1) lane = 0;
  const std::tuple<int, int, int> key{node, IsInner(dependence_[node]) ? group_ : -1, lane};
  if (const auto it = known_.find(key); it != known_.end()) return it->second.value;
  const KernelNode& n = spec_.nodes[static_cast<size_t>(node)];
  if (n.kind == Kind::kLoad && lanes_ > 1 && IsWholeVector(n.access, plan_.vector_dim, lanes_)) {
    bool same = true;  // for all lanes
    for (const Access::Dynamic& d : n.access.dynamic) same = same && LanesOf(dependence_[d.node]) == 1;
    if (same) {
      LoadVector(node);
      return known_.at(key).value;
    }
  }
  const Lanes value = EvaluateHere(node, lane);
  known_[key] = {value, depth_};
  return value;
}

Lanes GpuKernelEmitter::EvaluateHere(int node, int lane) {
  const KernelNode& n = spec_.nodes[static_cast<size_t>(node)];
  switch (n.kind) {
    case Kind::kLoad: return LoadLane(n.access, lane);
    case Kind::kLiteral: return body_.Literal(n.literal);
    case Kind::kIndex: {
      KernelNode convert;
      convert.op = "convert";
      convert.dtype = n.dtype;
      Value v = ScalarOffset(n.index, lane);
      return body_.Op(convert, {DType::kI64}, {{plan_.wide_index ? v : m_.ExtS(v, m_.i64())}});
    }
    case Kind::kReduce: WEFT_CHECK(false) << "kernel: reduction %" << node << " is used before it is computed";
    case Kind::kOp: break;
  }
  std::vector<Lanes> x;
  std::vector<DType> dtypes;
  for (int o : n.operands) {
    x.push_back(Evaluate(o, lane));
    dtypes.push_back(spec_.nodes[static_cast<size_t>(o)].dtype);
  }
  return Named(n.op, n.loc, [&] { return body_.Op(n, dtypes, x); });
}

void GpuKernelEmitter::StoreAll(const std::vector<const KernelStore*>& stores, Value guard) {
  if (stores.empty()) return;
  // Everything is read before anything is written.
  struct Write {
    Value raw, pointer;
    unsigned align;
  };
  std::vector<Write> writes;
  for (const KernelStore* s : stores) {
    const Access& a = s->access;
    MType element = body_.Memory(a.dtype);
    const unsigned bytes = element.getIntOrFloatBitWidth() / 8;
    uint64_t mask = a.offset.VarMask();
    for (const Access::Dynamic& d : a.dynamic) mask |= dependence_[d.node];
    const int lanes = LanesOf(mask);
    bool whole = lanes > 1 && IsWholeVector(a, plan_.vector_dim, lanes);
    for (const Access::Dynamic& d : a.dynamic) whole = whole && LanesOf(dependence_[d.node]) == 1;
    std::vector<Value> parts;  // one per lane, or of complex numbers two
    for (int l = 0; l < lanes; ++l) {
      const Lanes v = Evaluate(s->node, l);
      if (IsComplex(a.dtype)) {
        parts.push_back(v.re);
        parts.push_back(v.im);
      } else {
        parts.push_back(body_.ToMemory(a.dtype, v));
      }
    }
    const size_t per_lane = IsComplex(a.dtype) ? 2 : 1, together = whole ? parts.size() : per_lane;
    for (size_t first = 0; first < parts.size(); first += together) {
      const auto begin = parts.begin() + static_cast<int64_t>(first);
      writes.push_back({Together({begin, begin + static_cast<int64_t>(together)}),
                        Pointer(a, Offset(a, static_cast<int>(first / per_lane))),
                        bytes * static_cast<unsigned>(together)});
    }
  }
  If(guard, [&] {
    for (const Write& w : writes) m_.Store(w.raw, w.pointer, w.align);
  });
}

// ---- Between threads ----------------------------------------------------------------------------------------------

Value GpuKernelEmitter::Shuffle(Value v, int64_t distance) {
  MType t = v.getType();
  const unsigned bits = t.getIntOrFloatBitWidth();
  MType word = m_.b.getIntegerType(bits);
  Value x = t == word ? v : m_.Bits(v, word);
  auto move = [&](Value w) {
    return m_.b
        .create<LLVM::CallIntrinsicOp>(
            m_.loc, mlir::TypeRange{m_.i32()}, m_.b.getStringAttr("llvm.nvvm.shfl.sync.bfly.i32"),
            mlir::ValueRange{m_.I(m_.i32(), -1), w, m_.I(m_.i32(), distance), m_.I(m_.i32(), 31)},
            LLVM::FastmathFlagsAttr{})
        ->getResult(0);
  };
  if (bits == 64) {
    Value low = m_.ExtU(move(m_.TruncI(x, m_.i32())), m_.i64()),
          high = m_.ExtU(move(m_.TruncI(m_.ShrU(x, 32), m_.i32())), m_.i64());
    x = m_.Or(low, m_.Shl(high, 32));
  } else if (bits < 32) {
    x = m_.TruncI(move(m_.ExtU(x, m_.i32())), word);
  } else {
    x = move(x);
  }
  return t == word ? x : m_.Bits(x, t);
}

Lanes GpuKernelEmitter::CombineWarp(const KernelNode& n, Lanes v, int64_t width) {
  for (int64_t distance = width / 2; distance > 0; distance /= 2) {
    const Lanes other{Shuffle(v.re, distance), v.im ? Shuffle(v.im, distance) : Value()};
    v = Combine(n, v, other);
  }
  return v;
}

GpuKernelEmitter::Cells GpuKernelEmitter::NewCells(const KernelNode& n, int64_t count) {
  Cells cells;
  for (DType dtype : AccumulatorTypes(spec_, n)) {
    cells.push_back({shared_used_, dtype});
    // Counts are even, so every array begins at a multiple of 8.
    shared_used_ += SharedBytes(dtype) * count;
  }
  WEFT_CHECK(shared_used_ <= plan_.shared_bytes) << "kernel: its plan has too little shared memory";
  return cells;
}

Value GpuKernelEmitter::SharedAddress(Cell cell, Value index) {
  Value offset = m_.IAdd(m_.IMul(index, At(SharedBytes(cell.dtype))), At(cell.start));
  if (!plan_.wide_index) offset = m_.ExtU(offset, m_.i64());
  return m_.Make<LLVM::GEPOp>(shared_.getType(), m_.i8(), shared_, llvm::ArrayRef<LLVM::GEPArg>{offset});
}

void GpuKernelEmitter::StoreShared(const Cells& cells, Value index, Lanes v) {
  if (cells.size() == 1) return StoreCell(cells[0], index, v);
  StoreCell(cells[0], index, {v.re});
  StoreCell(cells[1], index, {v.im});
}

Lanes GpuKernelEmitter::LoadShared(const Cells& cells, Value index) {
  Lanes v = LoadCell(cells[0], index);
  if (cells.size() > 1) v.im = LoadCell(cells[1], index).re;
  return v;
}

void GpuKernelEmitter::StoreCell(Cell cell, Value index, Lanes v) {
  auto put = [&](Value x, int64_t part) {
    if (x.getType().isInteger(1)) x = m_.ExtU(x, m_.i8());
    Value at = SharedAddress(cell, index);
    const unsigned bytes = x.getType().getIntOrFloatBitWidth() / 8;
    if (part)
      at = m_.Make<LLVM::GEPOp>(at.getType(), x.getType(), at,
                                llvm::ArrayRef<LLVM::GEPArg>{LLVM::GEPArg(static_cast<int32_t>(part))});
    m_.Store(x, at, bytes);
  };
  put(v.re, 0);
  if (v.im) put(v.im, 1);
}

Lanes GpuKernelEmitter::LoadCell(Cell cell, Value index) {
  MType t = body_.Register(cell.dtype), memory = t.isInteger(1) ? m_.i8() : t;
  const unsigned bytes = memory.getIntOrFloatBitWidth() / 8;
  auto get = [&](int64_t part) {
    Value at = SharedAddress(cell, index);
    if (part)
      at = m_.Make<LLVM::GEPOp>(at.getType(), memory, at,
                                llvm::ArrayRef<LLVM::GEPArg>{LLVM::GEPArg(static_cast<int32_t>(part))});
    Value x = m_.Load(memory, at, bytes);
    return t.isInteger(1) ? m_.Cmp(IPred::ne, x, m_.I(m_.i8(), 0)) : x;
  };
  Lanes v{get(0)};
  if (IsComplex(cell.dtype)) v.im = get(1);
  return v;
}

void GpuKernelEmitter::CombineThreads(const std::vector<int>& reductions, std::vector<std::vector<Lanes>>* sums) {
  const int64_t threads = plan_.threads_per_row, rows = plan_.rows_per_block;
  if (threads == 1 || reductions.empty()) return;
  auto node = [&](size_t i) -> const KernelNode& { return spec_.nodes[static_cast<size_t>(reductions[i])]; };
  if (!AcrossMemory()) {
    for (size_t i = 0; i < reductions.size(); ++i)
      (*sums)[i][0] = CombineWarp(node(i), (*sums)[i][0], std::min<int64_t>(threads, 32));
    if (threads <= 32) return;
    const int64_t warps = threads / 32;
    std::vector<Cells> cells;
    Value lane = m_.And(row_thread_, At(31)), warp = m_.ShrU(row_thread_, 5);
    Value row = m_.IMul(row_in_block_, At(warps));
    If(m_.Cmp(IPred::eq, lane, At(0)), [&] {
      for (size_t i = 0; i < reductions.size(); ++i) {
        cells.push_back(NewCells(node(i), rows * warps));
        StoreShared(cells[i], m_.IAdd(row, warp), (*sums)[i][0]);
      }
    });
    Barrier();
    Value mine = m_.IAdd(row, m_.And(lane, At(warps - 1)));
    for (size_t i = 0; i < reductions.size(); ++i)
      (*sums)[i][0] = CombineWarp(node(i), LoadShared(cells[i], mine), warps);
    return;
  }
  // By halves: the threads of the lower half add what those of the upper half have.
  std::vector<Cells> cells;
  auto index = [&](Value thread, int lane) {
    Value place = m_.IAdd(m_.IMul(thread, At(rows)), row_in_block_);
    return lanes_ == 1 ? place : m_.IAdd(m_.IMul(place, At(lanes_)), At(lane));
  };
  for (size_t i = 0; i < reductions.size(); ++i) {
    cells.push_back(NewCells(node(i), rows * threads * lanes_));
    for (int l = 0; l < lanes_; ++l) StoreShared(cells[i], index(row_thread_, l), (*sums)[i][l]);
  }
  Barrier();
  for (int64_t half = threads / 2; half > 0; half /= 2) {
    If(m_.Cmp(IPred::ult, row_thread_, At(half)), [&] {
      Value other = m_.IAdd(row_thread_, At(half));
      for (size_t i = 0; i < reductions.size(); ++i) {
        for (int l = 0; l < lanes_; ++l) {
          const Lanes a = LoadShared(cells[i], index(row_thread_, l)), b = LoadShared(cells[i], index(other, l));
          StoreShared(cells[i], index(row_thread_, l), Combine(node(i), a, b));
        }
      }
    });
    Barrier();
  }
  for (size_t i = 0; i < reductions.size(); ++i) {
    for (int l = 0; l < lanes_; ++l) (*sums)[i][l] = LoadShared(cells[i], index(At(0), l));
  }
}

// ---- Functions ----------------------------------------------------------------------------------------------------

Value GpuKernelEmitter::CallDevice(const std::string& function, MType result, const std::vector<Value>& x) {
  std::vector<MType> types;
  for (Value v : x) types.push_back(v.getType());
  auto type = LLVM::LLVMFunctionType::get(result, types);
  if (!module_.lookupSymbol(function)) {
    mlir::OpBuilder::InsertionGuard guard(m_.b);
    m_.b.setInsertionPointToEnd(module_.getBody());
    m_.b.create<LLVM::LLVMFuncOp>(m_.loc, function, type, LLVM::Linkage::External);
  }
  return m_.b.create<LLVM::CallOp>(m_.loc, type, mlir::FlatSymbolRefAttr::get(m_.b.getContext(), function), x)
      .getResult();
}

// What libdevice computes on f32 or f64; null: vector code does.
Value GpuKernelEmitter::Native(const std::string& function, const std::vector<Value>& x) {
  if (!libdevice_) return {};
  return CallDevice("__nv_" + function + (m_.Element(x[0]).isF32() ? "f" : ""), x[0].getType(), x);
}

Lanes GpuKernelEmitter::CallLibrary(const std::string& op, DType dtype, const std::vector<Lanes>& x) {
  const Prim* prim = TryFindPrim(op);
  const char* function = prim == nullptr ? nullptr : ScalarOpOf(*prim).device;
  if (function == nullptr || (dtype != DType::kF32 && dtype != DType::kF64))
    throw Error(ErrorKind::kUnsupported, std::string("has no GPU code for ") + Name(dtype) + " yet");
  if (!libdevice_)
    throw Error(ErrorKind::kUnsupported, std::string("needs libdevice for ") + Name(dtype) +
                                             ", which is part of the CUDA toolkit and was not found (CUDA_HOME, "
                                             "/usr/local/cuda)");
  std::vector<Value> values;
  for (const Lanes& v : x) values.push_back(v.re);
  const std::string name = std::string("__nv_") + function + (dtype == DType::kF32 ? "f" : "");
  return {CallDevice(name, body_.Register(dtype), values)};
}

}  // namespace weft
