#include "lowering/mlir/emit_kernel.h"

#include <algorithm>
#include <map>
#include <optional>

#include "ir/error.h"
#include "lowering/math_table.h"
#include "lowering/mlir/emit_body.h"

namespace weft {
namespace {

using Kind = KernelNode::Kind;

class KernelEmitter {
 public:
  KernelEmitter(const KernelSpec& spec, const LoopPlan& plan, const Target& target, MlirBuilder& m)
      : spec_(spec),
        plan_(plan),
        target_(target),
        m_(m),
        body_(m, [this](const std::string& op, DType dtype, const std::vector<Lanes>& x,
                        DType result) { return CallLibrary(op, dtype, x, result); }),
        dependence_(spec.Dependence()),
        after_reduction_(spec.nodes.size(), false),
        phases_(spec.Phases()),
        symbols_(spec.SymbolicSizes()),
        dims_(spec.sizes.size()),
        memo_(spec.nodes.size()) {
    for (size_t i = 0; i < spec.nodes.size(); ++i) {
      after_reduction_[i] = spec.nodes[i].kind == Kind::kReduce;
      for (int o : spec.nodes[i].operands) after_reduction_[i] = after_reduction_[i] || after_reduction_[o];
      for (const auto& d : spec.nodes[i].access.dynamic)
        after_reduction_[i] = after_reduction_[i] || after_reduction_[d.node];
    }
  }

  void Emit(mlir::ModuleOp module, const std::string& name);

 private:
  struct Loop {
    uint64_t dims = 0;              // the domain dimensions whose value this loop sets
    mlir::Operation* op = nullptr;  // code of the levels outside is put before it
  };
  struct Memo {
    Lanes value;
    int level = -1;  // valid while this many loops are open; -1: none
  };

  Value Size(const Dim& d) {
    if (d.is_static()) return m_.I64(*d.TryValue());
    for (size_t i = 0; i < symbols_.size(); ++i) {
      if (symbols_[i] == d) return symbol_values_[i];
    }
    WEFT_CHECK(false) << "kernel: size " << d << " is not among its parameters";
    return {};
  }
  Value CeilDiv(Value x, int64_t by) { return m_.Make<arith::DivUIOp>(m_.IAdd(x, m_.I64(by - 1)), m_.I64(by)); }

  bool IsVector(uint64_t mask) const { return plan_.lanes > 0 && ((mask >> plan_.vector_dim) & 1); }
  int LevelOf(uint64_t mask) const {
    int level = 0;
    for (size_t l = 0; l < loops_.size(); ++l) {
      if (loops_[l].dims & mask) level = static_cast<int>(l) + 1;
    }
    return level;
  }
  // Runs f with the insertion point in the innermost place where `level` loops are open.
  template <class F>
  auto AtLevel(int level, F f) {
    if (level == static_cast<int>(loops_.size())) return f();
    mlir::OpBuilder::InsertionGuard guard(m_.b);
    m_.b.setInsertionPoint(loops_[level].op);
    return f();
  }

  Value ScalarOffset(const Affine& a, bool with_vector_dim);
  struct Address {
    Value base;   // scalar part, elements
    Value lanes;  // vector part (i64 lanes), null when none
    bool contiguous = false;
  };
  Address Locate(const Access& a);
  Lanes Evaluate(int node);
  Lanes EvaluateHere(int node);
  Lanes LoadHere(const Access& a);
  Lanes ReadVector(const Access& a, Value pointer);
  std::vector<Lanes> ReadGuarded(const std::vector<Access>& accesses);
  void Prefetch(const std::vector<int>& roots);
  void CollectLoads(int node, std::vector<bool>& seen, std::vector<int>& loads);
  void StoreAll(const std::vector<const KernelStore*>& stores);
  Lanes CallLibrary(const std::string& op, DType dtype, const std::vector<Lanes>& x, DType result);

  void OpenLoop(scf::ForOp loop, uint64_t dims);
  void CloseLoop();
  void UnitBody();
  void TileBody();
  void TransposeIntoScratch(int node);
  void Phases();
  void RunPhase(int phase, const std::vector<int>& reductions, const std::vector<const KernelStore*>& stores);
  Lanes Horizontal(const KernelNode& n, Lanes v);
  const KernelStore* SpillOf(int node) const {
    for (const KernelStore& s : spec_.spills) {
      if (s.node == node) return &s;
    }
    return nullptr;
  }
  bool IsInner(uint64_t mask) const { return (mask >> spec_.num_outer) != 0; }
  bool NativeMask(DType t) const {
    const int bytes = ByteWidth(t);
    return target_.vector_bytes >= 32 && (bytes >= 4 || target_.masked_bytes);
  }
  Value Pointer(int operand) { return pointers_[operand]; }
  Value Alloca(MType type) {
    mlir::OpBuilder::InsertionGuard guard(m_.b);
    m_.b.setInsertionPointToStart(entry_);
    return m_.b.create<LLVM::AllocaOp>(m_.loc, m_.ptr(), type, m_.I64(1), 64).getResult();
  }
  // Scratch memory for one raw vector, reused by everybody of the same type and role.
  Value Scratch(MType type, int role) {
    auto [it, inserted] = scratch_.try_emplace({type.getAsOpaquePointer(), role});
    if (inserted) it->second = Alloca(type);
    return it->second;
  }
  void Memcpy(Value to, Value from, Value bytes) {
    m_.b.create<LLVM::MemcpyOp>(m_.loc, to, from, bytes, /*isVolatile=*/false);
  }

  const KernelSpec& spec_;
  const LoopPlan& plan_;
  const Target& target_;
  MlirBuilder& m_;
  BodyEmitter body_;
  std::vector<uint64_t> dependence_;
  std::vector<bool>
      after_reduction_;  // uses the value of a reduction, so exists only inside of the loops over outer dimensions
  std::vector<int> phases_;
  std::vector<Dim> symbols_;
  std::vector<Value> symbol_values_, pointers_, dims_;
  std::vector<Memo> memo_;
  std::vector<Loop> loops_;
  mlir::Block* entry_ = nullptr;
  Value math_table_;
  int current_phase_ = 0;
  // Set inside the vector loop when it may end in part of a vector.
  Value full_, mask_, remaining_;
  // Tiles of transposed reads: where the current one begins, and their transposed squares by node.
  Value tile_base_;
  bool streams_ = false;  // wrote past the caches
  std::map<int, Value> squares_;
  std::map<std::pair<const void*, int>, Value> scratch_;
};

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
    return body_.FromMemory(a.dtype, gather(pointer));
  }
  if (at.contiguous) {
    return full_ ? ReadGuarded({a})[0] : ReadVector(a, pointer);
  }
  if (pair) return {m_.Load(element, pointer, align), m_.Load(element, m_.GepAt(element, pointer, 1), align)};
  return body_.FromMemory(a.dtype, m_.Load(element, pointer, align));
}

// The loads of contiguous vectors that computing `node` needs and that nobody made yet.
void KernelEmitter::CollectLoads(int node, std::vector<bool>& seen, std::vector<int>& loads) {
  if (seen[node] || memo_[node].level >= 0) return;
  seen[node] = true;
  const KernelNode& n = spec_.nodes[node];
  if (n.kind == Kind::kReduce) return;
  const KernelStore* spill = SpillOf(node);
  const Access* access = n.kind == Kind::kLoad ? &n.access : nullptr;
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
        raw.push_back(m_.b.create<LLVM::MaskedLoadOp>(m_.loc, w.raw, w.pointer, mask_, mlir::ValueRange{zero},
                                                      element.getIntOrFloatBitWidth() / 8)
                          .getRes());
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
    memo_[loads[i]] = {values[i], static_cast<int>(loops_.size())};
  }
}

Lanes KernelEmitter::Evaluate(int node) {
  Memo& memo = memo_[node];
  if (memo.level >= 0) return memo.value;
  int level = LevelOf(dependence_[node]);
  // Not further out than what it reads: a reduction of everything depends on no dimension, but lies inside the unit
  // loop.
  const KernelStore* spill = SpillOf(node);
  if (!(spill != nullptr && current_phase_ > phases_[node])) {
    auto reads = [&](int o) {
      Evaluate(o);
      level = std::max(level, memo_[o].level);
    };
    if (spec_.nodes[node].kind == Kind::kOp) {
      for (int o : spec_.nodes[node].operands) reads(o);
    } else if (spec_.nodes[node].kind == Kind::kLoad) {
      for (const Access::Dynamic& d : spec_.nodes[node].access.dynamic) reads(d.node);
    }
  }
  Lanes value = AtLevel(level, [&] { return EvaluateHere(node); });
  memo_[node] = {value, level};
  return value;
}

Lanes KernelEmitter::EvaluateHere(int node) {
  const KernelNode& n = spec_.nodes[node];
  if (const KernelStore* spill = SpillOf(node); spill != nullptr && current_phase_ > phases_[node])
    return LoadHere(spill->access);
  switch (n.kind) {
    case Kind::kLoad:
      if (auto square = squares_.find(node); square != squares_.end()) {
        MType element = body_.Memory(n.dtype);
        Value row = m_.IMul(m_.ISub(dims_[plan_.tile_dim], tile_base_), m_.I64(plan_.lanes));
        return body_.FromMemory(n.dtype,
                                m_.Load(m_.Vector(plan_.lanes, element), m_.Gep(element, square->second, row),
                                        static_cast<unsigned>(plan_.lanes) * element.getIntOrFloatBitWidth() / 8));
      }
      return LoadHere(n.access);
    case Kind::kLiteral: return body_.Literal(n.literal);
    case Kind::kIndex: {
      Value base = ScalarOffset(n.index, true);
      KernelNode convert;
      convert.op = "convert";
      convert.dtype = n.dtype;
      const Dim c = plan_.vector_dim >= 0 ? n.index.Coefficient(plan_.vector_dim) : Dim(0);
      if (plan_.lanes == 0 || c == Dim(0)) return body_.Op(convert, {DType::kI64}, {{base}});
      // In 32 bits where the result has no more: vectors of 64-bit integers are slow.
      const bool narrow = ByteWidth(n.dtype) <= 4 && IsInteger(n.dtype);
      MType t = narrow ? m_.i32() : m_.i64();
      if (narrow) base = m_.TruncI(base, t);
      Value step = Size(c);
      if (narrow) step = m_.TruncI(step, t);
      Value lane = m_.IMul(m_.Iota(plan_.lanes, t), m_.Splat(step, plan_.lanes));
      return body_.Op(convert, {narrow ? DType::kI32 : DType::kI64}, {{m_.IAdd(m_.Splat(base, plan_.lanes), lane)}});
    }
    case Kind::kReduce:
      WEFT_CHECK(false) << "kernel: reduction %" << node << " is used before it is computed";
      return {};
    case Kind::kOp: break;
  }
  std::vector<Lanes> x;
  std::vector<DType> dtypes;
  for (int o : n.operands) {
    x.push_back(Evaluate(o));
    dtypes.push_back(spec_.nodes[o].dtype);
  }
  return body_.Op(n, dtypes, x);
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
    Value memory = Scratch(
        memory_type(dtype == DType::kF8E4M3FN || dtype == DType::kF8E5M2 ? (op == "load_f8" ? dtype : DType::kF32)
                                                                         : dtype),
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

void KernelEmitter::OpenLoop(scf::ForOp loop, uint64_t dims) {
  loops_.push_back({dims, loop.getOperation()});
  m_.b.setInsertionPointToStart(loop.getBody());
}

void KernelEmitter::CloseLoop() {
  const int level = static_cast<int>(loops_.size());
  for (Memo& memo : memo_) {
    if (memo.level >= level) memo.level = -1;
  }
  m_.b.setInsertionPointAfter(loops_.back().op);
  loops_.pop_back();
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

// Folds the lanes of an accumulator by halves.
Lanes KernelEmitter::Horizontal(const KernelNode& n, Lanes v) {
  for (int64_t lanes = m_.Lanes(v.re); lanes > 1; lanes /= 2) {
    std::vector<int32_t> low, high;
    for (int32_t i = 0; i < lanes / 2; ++i) low.push_back(i), high.push_back(i + static_cast<int32_t>(lanes / 2));
    auto half = [&](const std::vector<int32_t>& which) {
      return Lanes{m_.Shuffle(v.re, v.re, which), v.im ? m_.Shuffle(v.im, v.im, which) : Value()};
    };
    v = body_.Combine(n.op, n.dtype, half(low), half(high));
  }
  return {m_.Extract(v.re, 0), v.im ? m_.Extract(v.im, 0) : Value()};
}

void KernelEmitter::RunPhase(int phase, const std::vector<int>& reductions,
                             const std::vector<const KernelStore*>& stores) {
  current_phase_ = phase;
  const int rank = static_cast<int>(spec_.sizes.size());
  // Loops over the reduced dimensions, the vector one innermost. Accumulators travel as loop values.
  std::vector<int> order;
  for (int d = spec_.num_outer; d < rank; ++d) {
    if (d != plan_.vector_dim || plan_.lanes == 0) order.push_back(d);
  }
  if (plan_.vector_inner && plan_.lanes > 0) order.push_back(plan_.vector_dim);
  std::vector<Value> accumulators;
  for (int r : reductions) {
    Lanes neutral = body_.Neutral(spec_.nodes[r].op, spec_.nodes[r].dtype, plan_.lanes);
    accumulators.push_back(neutral.re);
    if (neutral.im) accumulators.push_back(neutral.im);
  }
  auto unpack = [&](mlir::ValueRange values) {
    std::vector<Lanes> out;
    size_t next = 0;
    for (int r : reductions) {
      Lanes v{values[next++]};
      if (IsComplex(spec_.nodes[r].dtype)) v.im = values[next++];
      out.push_back(v);
    }
    return out;
  };
  std::vector<scf::ForOp> nest;
  mlir::ValueRange carried(accumulators);
  for (int d : order) {
    const bool vector = d == plan_.vector_dim && plan_.lanes > 0;
    auto loop =
        m_.b.create<scf::ForOp>(m_.loc, m_.I64(0), Size(spec_.sizes[d]), m_.I64(vector ? plan_.lanes : 1), carried);
    dims_[d] = loop.getInductionVar();
    OpenLoop(loop, uint64_t{1} << d);
    nest.push_back(loop);
    carried = loop.getRegionIterArgs();
    if (vector && plan_.may_have_tail) {
      remaining_ = m_.ISub(Size(spec_.sizes[d]), dims_[d]);
      full_ = m_.Cmp(IPred::sge, remaining_, m_.I64(plan_.lanes));
      mask_ =
          m_.Cmp(IPred::slt, m_.Iota(plan_.lanes, m_.i32()), m_.Splat(m_.TruncI(remaining_, m_.i32()), plan_.lanes));
    }
  }
  const std::vector<Lanes> before = unpack(carried);
  std::vector<int> roots;
  for (int r : reductions) roots.push_back(spec_.nodes[r].operands[0]);
  for (const KernelStore* s : stores) roots.push_back(s->node);
  Prefetch(roots);
  std::vector<Value> after;
  for (size_t i = 0; i < reductions.size(); ++i) {
    const KernelNode& n = spec_.nodes[reductions[i]];
    Lanes v = body_.Splat(Evaluate(n.operands[0]), plan_.lanes);
    if (full_ && plan_.vector_inner) {
      // Lanes behind the end count as nothing. A branch, so that whole vectors pay only for a prediction.
      std::vector<MType> types = {v.re.getType()};
      if (v.im) types.push_back(v.im.getType());
      auto branch = m_.b.create<scf::IfOp>(m_.loc, mlir::TypeRange(types), full_, /*withElseRegion=*/true);
      mlir::OpBuilder::InsertionGuard guard(m_.b);
      auto yield = [&](const Lanes& w) {
        std::vector<Value> values = {w.re};
        if (w.im) values.push_back(w.im);
        m_.b.create<scf::YieldOp>(m_.loc, values);
      };
      m_.b.setInsertionPointToStart(branch.thenBlock());
      yield(v);
      m_.b.setInsertionPointToStart(branch.elseBlock());
      yield(body_.Select(mask_, v, body_.Neutral(n.op, n.dtype, plan_.lanes)));
      v = {branch.getResult(0), v.im ? branch.getResult(1) : Value()};
    }
    Lanes sum = body_.Combine(n.op, n.dtype, before[i], v);
    after.push_back(sum.re);
    if (sum.im) after.push_back(sum.im);
  }
  StoreAll(stores);
  for (size_t i = nest.size(); i-- > 0;) {
    if (!after.empty()) m_.b.create<scf::YieldOp>(m_.loc, after);
    CloseLoop();
    after.assign(nest[i].getResults().begin(), nest[i].getResults().end());
  }
  if (plan_.vector_inner) full_ = mask_ = remaining_ = Value();
  const std::vector<Lanes> totals = unpack(after);
  for (size_t i = 0; i < reductions.size(); ++i) {
    const int r = reductions[i];
    Lanes v = totals[i];
    if (plan_.vector_inner && plan_.lanes > 0) v = Horizontal(spec_.nodes[r], v);
    memo_[r] = {v, static_cast<int>(loops_.size())};
  }
}

void KernelEmitter::Phases() {
  int last = 0;
  for (int p : phases_) last = std::max(last, p);
  std::vector<const KernelStore*> rows;
  for (const KernelStore& s : spec_.stores) {
    if (!IsInner(dependence_[s.node]) && !IsInner(s.access.offset.VarMask())) rows.push_back(&s);
  }
  const bool has_inner = static_cast<int>(spec_.sizes.size()) > spec_.num_outer;
  for (int phase = 0; phase <= last && has_inner; ++phase) {
    std::vector<int> reductions;
    for (size_t i = 0; i < spec_.nodes.size(); ++i) {
      if (spec_.nodes[i].kind == Kind::kReduce && phases_[i] == phase) reductions.push_back(static_cast<int>(i));
    }
    std::vector<const KernelStore*> stores;
    auto available = [&](int node) { return phases_[node] + (spec_.nodes[node].kind == Kind::kReduce ? 1 : 0); };
    for (const KernelStore& s : spec_.stores) {
      if (std::find(rows.begin(), rows.end(), &s) == rows.end() && available(s.node) == phase) stores.push_back(&s);
    }
    for (const KernelStore& s : spec_.spills) {
      const bool own = std::any_of(stores.begin(), stores.end(), [&](const KernelStore* t) {
        return t->node == s.node && t->access.operand == s.access.operand;
      });
      if (phases_[s.node] == phase && !own) stores.push_back(&s);
    }
    if (!reductions.empty() || !stores.empty()) RunPhase(phase, reductions, stores);
  }
  // A reduction in the last phase makes its users available one later; stores of those inner values:
  if (has_inner) {
    std::vector<const KernelStore*> stores;
    for (const KernelStore& s : spec_.stores) {
      const int available = phases_[s.node] + (spec_.nodes[s.node].kind == Kind::kReduce ? 1 : 0);
      if (std::find(rows.begin(), rows.end(), &s) == rows.end() && available > last) stores.push_back(&s);
    }
    if (!stores.empty()) RunPhase(last + 1, {}, stores);
  }
  current_phase_ = last + 1;
  std::vector<int> roots;
  for (const KernelStore* s : rows) roots.push_back(s->node);
  Prefetch(roots);
  StoreAll(rows);
}

void KernelEmitter::UnitBody() {
  if (plan_.lanes == 0 || plan_.vector_inner) return Phases();
  const int v = plan_.vector_dim;
  Value size = Size(spec_.sizes[v]);
  const std::optional<int64_t> known = spec_.sizes[v].TryValue();
  Value begin = m_.I64(0), end = size;
  if (!known || *known > plan_.block) {
    begin = m_.IMul(dims_[v], m_.I64(plan_.block));
    Value limit = m_.IAdd(begin, m_.I64(plan_.block));
    end = m_.Select(m_.Cmp(IPred::slt, limit, size), limit, size);
  }
  auto loop = m_.b.create<scf::ForOp>(m_.loc, begin, end, m_.I64(plan_.lanes));
  dims_[v] = loop.getInductionVar();
  OpenLoop(loop, uint64_t{1} << v);
  if (plan_.may_have_tail) {
    remaining_ = m_.ISub(size, dims_[v]);
    full_ = m_.Cmp(IPred::sge, remaining_, m_.I64(plan_.lanes));
    mask_ = m_.Cmp(IPred::slt, m_.Iota(plan_.lanes, m_.i32()), m_.Splat(m_.TruncI(remaining_, m_.i32()), plan_.lanes));
  }
  if (plan_.tile_dim >= 0)
    TileBody();
  else
    Phases();
  full_ = mask_ = remaining_ = Value();
  CloseLoop();
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

void KernelEmitter::TileBody() {
  const int d = plan_.tile_dim;
  for (int node : plan_.tile_loads) TransposeIntoScratch(node);
  Value count = m_.I64(plan_.lanes);
  const std::optional<int64_t> tiled = spec_.sizes[d].TryValue();
  if (!tiled || *tiled % plan_.lanes != 0) {
    Value rest = m_.ISub(Size(spec_.sizes[d]), tile_base_);
    count = m_.Select(m_.Cmp(IPred::slt, rest, count), rest, count);
  }
  auto loop = m_.b.create<scf::ForOp>(m_.loc, m_.I64(0), count, m_.I64(1));
  OpenLoop(loop, uint64_t{1} << d);
  dims_[d] = m_.IAdd(tile_base_, loop.getInductionVar());
  Phases();
  CloseLoop();
}

void KernelEmitter::Emit(mlir::ModuleOp module, const std::string& name) {
  m_.b.setInsertionPointToEnd(module.getBody());
  auto type =
      LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(m_.b.getContext()), {m_.ptr(), m_.ptr(), m_.i64(), m_.i64()});
  auto function = m_.b.create<LLVM::LLVMFuncOp>(m_.loc, name, type, LLVM::Linkage::Internal);
  entry_ = function.addEntryBlock(m_.b);
  m_.b.setInsertionPointToStart(entry_);
  Value frame = entry_->getArgument(0), desc = entry_->getArgument(1), begin = entry_->getArgument(2),
        end = entry_->getArgument(3);
  Value slots = m_.Load(m_.ptr(), m_.GepAt(m_.i8(), frame, kFrameSlots));
  for (int i = 0; i < spec_.num_operands; ++i) {
    Value slot = m_.Load(m_.i64(), m_.GepAt(m_.i64(), desc, i));
    pointers_.push_back(m_.Load(m_.ptr(), m_.Gep(m_.ptr(), slots, slot)));
  }
  for (size_t i = 0; i < symbols_.size(); ++i)
    symbol_values_.push_back(m_.Load(m_.i64(), m_.GepAt(m_.i64(), desc, spec_.num_operands + static_cast<int64_t>(i))));
  Value runtime = m_.Load(m_.ptr(), m_.GepAt(m_.i8(), frame, kFrameRuntime));
  math_table_ = m_.Load(m_.ptr(), m_.GepAt(m_.i8(), runtime, kRuntimeMath));

  // Units: rows times blocks, last dimension fastest.
  auto loop = m_.b.create<scf::ForOp>(m_.loc, begin, end, m_.I64(1));
  uint64_t mask = 0;
  for (int d : plan_.unit_dims) mask |= d == plan_.tile_dim ? 0 : uint64_t{1} << d;
  Value unit = loop.getInductionVar();
  OpenLoop(loop, mask);
  const int v = plan_.vector_dim;
  Value row = unit;
  if (plan_.lanes > 0 && !plan_.vector_inner) {
    const std::optional<int64_t> known = spec_.sizes[v].TryValue();
    if (!known || *known > plan_.block) {
      Value blocks = CeilDiv(Size(spec_.sizes[v]), plan_.block);
      if (plan_.unit_dims.empty()) {
        dims_[v] = row;  // the block's number, until its loop opens
      } else {
        Value q = m_.Make<arith::DivUIOp>(row, blocks);
        dims_[v] = m_.ISub(row, m_.IMul(q, blocks));
        row = q;
      }
    }
  }
  for (size_t i = plan_.unit_dims.size(); i-- > 0;) {
    const int d = plan_.unit_dims[i];
    if (i == 0) {
      dims_[d] = row;
    } else {
      Value size = d == plan_.tile_dim ? CeilDiv(Size(spec_.sizes[d]), plan_.lanes) : Size(spec_.sizes[d]);
      Value q = m_.Make<arith::DivUIOp>(row, size);
      dims_[d] = m_.ISub(row, m_.IMul(q, size));
      row = q;
    }
    if (d == plan_.tile_dim) tile_base_ = m_.IMul(dims_[d], m_.I64(plan_.lanes));
  }
  UnitBody();
  if (streams_) {
    m_.b.create<LLVM::CallIntrinsicOp>(m_.loc, mlir::TypeRange{}, m_.b.getStringAttr("llvm.x86.sse.sfence"),
                                       mlir::ValueRange{}, LLVM::FastmathFlagsAttr{});
  }
  CloseLoop();
  m_.b.create<LLVM::ReturnOp>(m_.loc, mlir::ValueRange{});
}

}  // namespace

void EmitKernel(mlir::ModuleOp module, const KernelSpec& spec, const LoopPlan& plan, const Target& target,
                const std::string& name) {
  MlirBuilder m(module.getContext());
  m.avx512 = target.vector_bytes >= 64;
  KernelEmitter(spec, plan, target, m).Emit(module, name);
}

Value EmitUnits(MlirBuilder& m, const KernelSpec& spec, const LoopPlan& plan, Value desc) {
  const std::vector<Dim> symbols = spec.SymbolicSizes();
  auto size = [&](const Dim& d) -> Value {
    if (d.is_static()) return m.I64(*d.TryValue());
    const auto at = std::find(symbols.begin(), symbols.end(), d) - symbols.begin();
    return m.Load(m.i64(), m.GepAt(m.i64(), desc, spec.num_operands + at));
  };
  Dim known = 1;
  Value units;
  auto times = [&](Value v) { units = units ? m.IMul(units, v) : v; };
  for (int d : plan.unit_dims) {
    const int64_t by = d == plan.tile_dim ? plan.lanes : 1;
    if (spec.sizes[d].is_static())
      known = known * Dim((*spec.sizes[d].TryValue() + by - 1) / by);
    else
      times(by == 1 ? size(spec.sizes[d])
                    : m.Make<arith::DivUIOp>(m.IAdd(size(spec.sizes[d]), m.I64(by - 1)), m.I64(by)));
  }
  if (plan.lanes > 0 && !plan.vector_inner) {
    const Dim& n = spec.sizes[plan.vector_dim];
    if (n.is_static())
      known = known * Dim((*n.TryValue() + plan.block - 1) / plan.block);
    else
      times(m.Make<arith::DivUIOp>(m.IAdd(size(n), m.I64(plan.block - 1)), m.I64(plan.block)));
  }
  if (!units) return m.I64(*known.TryValue());
  return m.IMul(units, m.I64(*known.TryValue()));
}

}  // namespace weft
