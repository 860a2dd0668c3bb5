#include "ir/prims/control/tapes.h"

#include <new>

#include "base/out_of_memory.h"
#include "base/run_messages.h"
#include "ir/ops.h"
#include "ir/prims/control/regions.h"
#include "ir/prims/families.h"
#include "ir/prims/shape.h"

namespace weft {
namespace {

thread_local TapeRegion* t_region = nullptr;

int64_t Product(const Shape& shape, size_t begin, size_t end) {
  int64_t n = 1;
  for (size_t i = begin; i < end; ++i) n *= shape[i];
  return n;
}

}  // namespace

Type TapeOf(const Type& row, int64_t tape_dims) {
  return Type{DType::kTape, Dims(row.dims.begin(), row.dims.begin() + tape_dims), row.varying};
}

void CheckTapeDims(const std::string& prim, const Ints& tape_dims, const Types& rows) {
  if (tape_dims.size() != rows.size())
    throw TypeError(prim, ": lanes has ", tape_dims.size(), " entries for ", rows.size(), " recorded results");
  for (size_t i = 0; i < tape_dims.size(); ++i) {
    if (tape_dims[i] < 0 || tape_dims[i] > rows[i].rank())
      throw TypeError(prim, ": lanes[", i, "]=", tape_dims[i], " for rows of type ", rows[i]);
  }
}

TapeWriter::TapeWriter(const Type& row, int64_t tape_dims, int64_t reserve) {
  const Shape shape = StaticSizes(row.dims, "eval");
  const size_t split = static_cast<size_t>(tape_dims);
  tape_ = Tensor::Zeros(DType::kTape, Shape(shape.begin(), shape.begin() + tape_dims));
  records_ = EvalTapes::Region().New(row.dtype, Product(shape, split, shape.size()), Product(shape, 0, split),
                                     tape_.data<uint64_t>());
  if (reserve > 0) records_->Reserve(reserve);
}

void TapeWriter::Write(int64_t i, const Tensor& row) {
  try {
    std::memcpy(records_->Writable(i), row.raw(), static_cast<size_t>(row.bytes()));
  } catch (const std::bad_alloc&) {
    throw OutOfMemory(TapeMemoryMessage(i, row.bytes()));
  }
}

Tensor ReadTape(const Tensor& tape, const Type& row, int64_t i) {
  Tensor out(row.dtype, StaticSizes(row.dims, "eval"));
  const int64_t tapes = tape.size();
  if (tapes > 0) ReadTapeRows(tape.data<uint64_t>(), tapes, out.bytes() / tapes, i, out.data<char>());
  return out;
}

EvalTapes::EvalTapes() {
  if (t_region != nullptr) return;
  region_ = std::make_shared<TapeRegion>();
  t_region = region_.get();
}
EvalTapes::~EvalTapes() {
  if (region_) t_region = nullptr;
}
TapeRegion& EvalTapes::Region() {
  WEFT_CHECK(t_region != nullptr) << "a tape outside an evaluation";
  return *t_region;
}

void EvalTapes::Keep(Tensors& results, const Tensors& args) const {
  if (!region_) return;
  struct Owner {
    std::shared_ptr<void> memory, region;
    std::vector<std::shared_ptr<void>> others;
  };
  for (Tensor& t : results) {
    if (t.dtype() != DType::kTape) continue;
    auto owner = std::make_shared<Owner>(Owner{t.owner(), region_, {}});
    for (const Tensor& a : args) {
      if (a.dtype() == DType::kTape) owner->others.push_back(a.owner());
    }
    t = Tensor(DType::kTape, t.shape(), owner, t.raw());
  }
}

namespace {

// The entries whose types have tangents.
Types Differentiable(const Types& types) {
  Types out;
  for (const Type& t : types) {
    if (HasTangents(t.dtype)) out.push_back(t);
  }
  return out;
}

// What the calls of a recursive function leave behind for its reverse pass: a tape of one row, whose elements are tapes
// of one row each, the contents. The tangent of a box is the box of its contents' tangents.
void RegisterBoxes(PrimRegistry& r) {
  Prim& box = r.Add("box", Family::kControl, -1,
                    "All operands, of any types, as one value: a tape that unbox takes apart. A null tape is a box of "
                    "zeros.");
  box.lane_by_lane = true;
  box.infer = [](const Sig&) -> Types { return {Type{DType::kTape, {}, {}}}; };
  box.eval = [](const EvalContext&, const Tensors& in) -> Tensors {
    TapeRegion& region = EvalTapes::Region();
    Tensor out(DType::kTape, {});
    TapeRecords* contents = region.New(DType::kTape, static_cast<int64_t>(in.size()), 1, out.data<uint64_t>());
    contents->Reserve(1);
    auto* elements = reinterpret_cast<uint64_t*>(contents->Writable(0));
    for (size_t i = 0; i < in.size(); ++i) {
      TapeRecords* one = region.New(in[i].dtype(), in[i].size(), 1, elements + i);
      one->Reserve(1);
      std::memcpy(one->Writable(0), in[i].raw(), static_cast<size_t>(in[i].bytes()));
    }
    return {out};
  };
  box.push = [](PushContext& c) {
    c.y = c.b.Emit(*c.eqn.prim, c.x);
    c.dy = {Atoms()};
    for (size_t k = 0; k < c.count; ++k) {
      Atoms contents;
      for (size_t i = 0; i < c.x.size(); ++i) {
        const Type type = c.b.TypeOf(c.x[i]);
        if (HasTangents(type.dtype)) contents.push_back(c.dx[i] ? (*c.dx[i])[k] : Zeros(c.b, type));
      }
      c.dy[0]->push_back(c.b.Emit(*c.eqn.prim, contents)[0]);
    }
  };
  box.linear = {-1};
  box.transpose = [](TransposeContext& c) -> OptionalAtoms {
    const Atoms cts = c.b.Emit(FindPrim("unbox"), {*c.ct[0]}, {{"results", c.types.list()}});
    OptionalAtoms out(cts.begin(), cts.end());
    for (size_t i = 0; i < out.size(); ++i) {
      if (!c.linear(static_cast<int>(i))) out[i] = std::nullopt;
    }
    return out;
  };
  box.batch = BatchOneByOne;
  box.samples = [] { return std::vector<Sample>{}; };  // a box equals itself only: see recursive

  Prim& unbox =
      r.Add("unbox", Family::kControl, 1, "The contents of the box that operand 0 is; results are their types.");
  unbox.lane_by_lane = true;
  unbox.says_varying = true;
  unbox.infer = [](const Sig& s) -> Types {
    if (s.operands[0].dtype != DType::kTape || s.operands[0].rank() != 0)
      throw TypeError("unbox: the operand is ", s.operands[0], "; expected tape[]");
    return s.attrs.Get<Types>("results");
  };
  unbox.eval = [](const EvalContext& c, const Tensors& in) -> Tensors {
    std::vector<uint64_t> elements(c.results.size());
    const int64_t n = static_cast<int64_t>(elements.size());
    ReadTapeRows(in[0].data<uint64_t>(), 1, n * 8, 0, reinterpret_cast<char*>(elements.data()));
    Tensors out;
    for (size_t i = 0; i < elements.size(); ++i) {
      out.emplace_back(c.results[i].dtype, StaticSizes(c.results[i].dims, "eval"));
      ReadTapeRows(&elements[i], 1, out[i].bytes(), 0, out[i].data<char>());
    }
    return out;
  };
  unbox.push = [](PushContext& c) {
    const Types& results = c.eqn.attrs.Get<Types>("results");
    c.y = c.b.Emit(*c.eqn.prim, c.x, c.eqn.attrs);
    c.dy.assign(results.size(), std::nullopt);
    if (!c.dx[0]) return;
    for (const Atom& box : *c.dx[0]) {
      const Atoms contents = c.b.Emit(*c.eqn.prim, {box}, {{"results", Differentiable(results)}});
      size_t next = 0;
      for (size_t i = 0; i < results.size(); ++i) {
        if (!HasTangents(results[i].dtype)) continue;
        if (!c.dy[i]) c.dy[i] = Atoms();
        c.dy[i]->push_back(contents[next++]);
      }
    }
  };
  unbox.linear = {-1};
  unbox.transpose = [](TransposeContext& c) -> OptionalAtoms {
    const Types& results = c.eqn.attrs.Get<Types>("results");
    Atoms cts;
    for (size_t i = 0; i < results.size(); ++i) cts.push_back(c.ct[i] ? *c.ct[i] : Zeros(c.b, results[i]));
    return {c.b.Emit(FindPrim("box"), cts)[0]};
  };
  unbox.batch = BatchOneByOne;
  unbox.samples = [] {
    Sample s =
        SampleOf({Type{DType::kTape, {}, {}}}, {{"results", Types{{DType::kF32, {3}, {}}, {DType::kI32, {}, {}}}}});
    s.values = {{0, Tensor::Zeros(DType::kTape, {})}};
    return std::vector<Sample>{s};
  };
}

}  // namespace

void RegisterTapes(PrimRegistry& r) {
  RegisterBoxes(r);
  Prim& p =
      r.Add("tape_add", Family::kControl, 2,
            "The tapes whose rows are the sums of those of operands 0 and 1, tape by tape; the shorter one counts "
            "as continued by zeros. Both tape, of one shape.");
  p.infer = [](const Sig& s) -> Types {
    if (s.operands[0].dtype != DType::kTape || !(s.operands[0] == s.operands[1]))
      throw TypeError("tape_add: operands are ", s.operands[0], " and ", s.operands[1],
                      "; expected tapes of one shape");
    return {s.operands[0]};
  };
  p.eval = [](const EvalContext& c, const Tensors& in) -> Tensors {
    (void)c;
    Tensor out(DType::kTape, in[0].shape());
    for (int64_t i = 0; i < out.size(); ++i)
      out.data<uint64_t>()[i] = AddTapes(EvalTapes::Region(), in[0].at<uint64_t>(i), in[1].at<uint64_t>(i));
    return {out};
  };
  p.linear = {-1};
  p.transpose = [](TransposeContext& c) -> OptionalAtoms {
    return {c.linear(0) ? c.ct[0] : std::nullopt, c.linear(1) ? c.ct[0] : std::nullopt};
  };
  p.batch = [](BatchContext& c) {
    c.y = c.b.Emit(*c.eqn.prim, {c.Batched(0), c.Batched(1)}, c.eqn.attrs);
    c.batched_out = {true};
  };
  p.samples = [] {
    Sample s = SampleOf({Type{DType::kTape, {2}, {}}, Type{DType::kTape, {2}, {}}});
    s.values = {{0, Tensor::Zeros(DType::kTape, {2})}, {1, Tensor::Zeros(DType::kTape, {2})}};
    return std::vector<Sample>{s};
  };
}

}  // namespace weft
