// spmd: one program for all devices of a mesh, under pmap, shard_map and partitioned programs.
//
//   y: f32[8], s: f32[] = spmd[in_shardings=shardings((x)), mesh=mesh(x=4), out_shardings=shardings((x),())] a
//     (a: f32[2]{x}) -> (f32[2]{x}, f32[]) { ... }
//
// Operands and results are whole arrays; the region takes and gives what one device holds of them. Types in the region
// say over which axes a value varies: a parameter over those that cut it, and a result over exactly those that its
// sharding names, so that what is not cut is known to be the same on all devices.
//
// The part of it that one of several processes runs has more attributes (transforms/shard/processes.h makes it, last of
// all). Operands and results are then stacks of the blocks that this process holds, each once: dimension 0 counts them.
//
// Derivatives: the region's, with the tangents sharded as their values. The transpose has operands and results, and
// their shardings, exchanged. A residual leaves the first half as one block per device.
#include <algorithm>
#include <cstring>

#include "ir/prims/collectives.h"
#include "ir/prims/control/regions.h"
#include "ir/prims/devices.h"
#include "ir/prims/families.h"
#include "ir/prims/shape.h"

namespace weft {
namespace {

constexpr int64_t kMostDevices = 1 << 20;

Attrs SpmdAttrs(const Mesh& mesh, Shardings in, Shardings out) {
  return {{"mesh", mesh}, {"in_shardings", std::move(in)}, {"out_shardings", std::move(out)}};
}

struct Spmd {
  const Mesh& mesh;
  const Shardings &in, &out;
  const Attr* devices;
  explicit Spmd(const Attrs& attrs)
      : mesh(attrs.Get<Mesh>("mesh")),
        in(attrs.Get<Shardings>("in_shardings")),
        out(attrs.Get<Shardings>("out_shardings")),
        devices(attrs.Find("devices")) {}
  // Of an equation for the same devices.
  Attrs Like(Shardings operands, Shardings results) const {
    Attrs attrs = SpmdAttrs(mesh, std::move(operands), std::move(results));
    if (devices != nullptr) attrs.Set("devices", *devices);
    return attrs;
  }
};

// --- Types -----------------------------------------------------------------------------------------------------------

// In the part of one process, a stack of blocks.
Type StackOf(Type block, int64_t count) {
  block.dims.insert(block.dims.begin(), Dim(count));
  block.varying.clear();
  return block;
}
Type BlockOfStack(const Type& stack, const std::string& what) {
  if (stack.rank() == 0) throw TypeError(what, " is ", stack, ", which is no stack of blocks");
  Type block = stack;
  block.dims.erase(block.dims.begin());
  return block;
}

std::vector<std::string> CheckMesh(const Mesh& mesh) {
  std::vector<std::string> names;
  int64_t devices = 1;
  for (const Mesh::Axis& a : mesh.axes) {
    const bool sound = !a.name.empty() && a.size >= 1 && a.size <= kMostDevices;
    if (sound) devices *= a.size;
    if (!sound || devices > kMostDevices)
      throw ValueError("spmd: ", mesh.ToString(), " is no mesh of 1 to ", kMostDevices, " devices with named axes");
    names.push_back(a.name);
  }
  std::sort(names.begin(), names.end());
  if (std::adjacent_find(names.begin(), names.end()) != names.end())
    throw ValueError("spmd: ", mesh.ToString(), " has two axes of one name");
  return names;
}

// Collectives inside were made for axes of these sizes.
void CheckSizesInside(const Mesh& mesh, const Fn& fn) {
  if (fn.FreeAxes().empty()) return;
  for (const Eqn& e : fn.eqns()) {
    for (const FnRef& r : e.regions) {
      if (e.attrs.Find("mesh") == nullptr) CheckSizesInside(mesh, *r);
    }
    const Attr* sizes = e.prim->family == Family::kCollective ? e.attrs.Find("sizes") : nullptr;
    if (sizes == nullptr) continue;
    const Strings& axes = e.attrs.Get<Strings>("axes");
    for (size_t i = 0; i < axes.size(); ++i) {
      const Dim& size = e.attrs.Get<Dims>("sizes")[i];
      if (mesh.Has(axes[i]) && !(size == Dim(mesh.Size(axes[i]))))
        throw ValueError("spmd: ", e.prim->name, " was made for size ", size, " of the axis '", axes[i], "' of ",
                         mesh.ToString());
    }
  }
}

Types InferSpmd(const Sig& s) {
  CheckRegionCount(s, 1);
  const Spmd p(s.attrs);
  const std::vector<std::string> names = CheckMesh(p.mesh);
  CheckMeshDevices(s, p.mesh);
  const Fn& body = *s.regions[0];
  if (p.in.size() != s.operands.size() || p.out.size() != body.results().size()) {
    throw TypeError("spmd: ", p.in.size(), " and ", p.out.size(), " shardings for ", s.operands.size(),
                    " operands and ", body.results().size(), " results");
  }
  // This process, then the one of each device; how many blocks it holds of each result.
  const Attr* processes = s.attrs.Find("processes");
  const Ints held = s.attrs.GetOr<Ints>("held", {});
  if (processes != nullptr) {
    const size_t entries = s.attrs.Get<Ints>("processes").size();
    if (entries != static_cast<size_t>(p.mesh.num_devices()) + 1 || held.size() != p.out.size())
      throw ValueError("spmd: ", entries, " processes and ", held.size(), " stacks of blocks for ",
                       p.mesh.num_devices(), " devices and ", p.out.size(), " results");
  }
  Types local;
  for (size_t i = 0; i < p.in.size(); ++i) {
    if (!p.in[i].partial.empty()) throw ValueError("spmd: operand ", i, " cannot be partial");
    const std::string what = "spmd: operand " + std::to_string(i);
    if (processes == nullptr) {
      local.push_back(LocalType(p.mesh, p.in[i], s.operands[i], what));
    } else {
      Type block = BlockOfStack(s.operands[i], what);
      CheckSharding(p.mesh, p.in[i], block.rank(), what);
      block.varying = p.in[i].Axes();
      local.push_back(block);
    }
  }
  CheckRegionParams(s, 0, local);
  Types results;
  for (size_t i = 0; i < p.out.size(); ++i) {
    const Type type = body.TypeOf(body.results()[i]);
    CheckSharding(p.mesh, p.out[i], type.rank(), "spmd: result " + std::to_string(i));
    const Strings said = UnionOfAxes(p.out[i].Axes(), p.out[i].partial);
    if (AxesWithout(type.varying, AxesWithout(type.varying, names)) != said) {
      throw TypeError("spmd: result ", i, " of the region is ", type, ", but its sharding ", p.out[i].ToString(),
                      " says that it varies over exactly {", ToString(Attr(said)), "}");
    }
    results.push_back(processes == nullptr ? GlobalType(p.mesh, p.out[i], type) : StackOf(type, held[i]));
  }
  CheckSizesInside(p.mesh, body);
  return results;
}

// --- Meaning ---------------------------------------------------------------------------------------------------------

// For every element of a device's block: its place there and in the whole array.
template <class F>
void ForEachOfBlock(const Mesh& mesh, const Sharding& sharding, const Shape& block, const Shape& whole, int64_t device,
                    const F& visit) {
  const std::vector<int64_t> at = mesh.Coordinates(device), strides = RowMajorStrides(whole);
  int64_t start = 0;
  for (size_t d = 0; d < block.size(); ++d) start += BlockOf(mesh, sharding, d, at).index * block[d] * strides[d];
  int64_t place = 0;
  ForEachIndex(block, [&](const Shape& index) { visit(place++, start + Offset(index, strides)); });
}

Tensor BlockOfDevice(const Mesh& mesh, const Sharding& sharding, const Type& local, const Tensor& whole,
                     int64_t device) {
  Tensor block(whole.dtype(), StaticSizes(local.dims, "eval"));
  ForEachOfBlock(mesh, sharding, block.shape(), whole.shape(), device,
                 [&](int64_t to, int64_t from) { CopyElement(whole, from, block, to); });
  return block;
}

// The array of which the devices hold these blocks.
Tensor WholeOf(const Mesh& mesh, const Sharding& sharding, const Tensors& blocks, const Type& type, size_t result) {
  if (!sharding.partial.empty()) {
    Sharding cut = sharding;
    cut.partial.clear();
    // The parts of each block, in the order of the devices.
    std::vector<Tensors> of(blocks.size());
    for (size_t d = 0; d < blocks.size(); ++d) {
      std::vector<int64_t> at = mesh.Coordinates(static_cast<int64_t>(d));
      int64_t first = 0;
      for (size_t a = 0; a < at.size(); ++a) {
        const auto& partial = sharding.partial;
        if (std::find(partial.begin(), partial.end(), mesh.axes[a].name) != partial.end()) at[a] = 0;
        first = first * mesh.axes[a].size + at[a];
      }
      of[static_cast<size_t>(first)].push_back(blocks[d]);
    }
    Tensors sums = blocks;
    for (size_t d = 0; d < blocks.size(); ++d) {
      if (of[d].empty()) continue;
      const Tensor sum = CollectiveMeaning(FindPrim("psum"), {}, of[d])[0];
      sums[d] = sum;
    }
    Tensor whole(type.dtype, StaticSizes(type.dims, "eval"));
    for (size_t d = 0; d < blocks.size(); ++d) {
      if (of[d].empty()) continue;
      ForEachOfBlock(mesh, cut, sums[d].shape(), whole.shape(), static_cast<int64_t>(d),
                     [&](int64_t from, int64_t to) { CopyElement(sums[d], from, whole, to); });
    }
    return whole;
  }
  Tensor whole(type.dtype, StaticSizes(type.dims, "eval"));
  std::vector<bool> written(static_cast<size_t>(whole.size()), false);
  const int width = ByteWidth(type.dtype);
  for (size_t d = 0; d < blocks.size(); ++d) {
    ForEachOfBlock(
        mesh, sharding, blocks[d].shape(), whole.shape(), static_cast<int64_t>(d), [&](int64_t from, int64_t to) {
          if (!written[static_cast<size_t>(to)]) CopyElement(blocks[d], from, whole, to);
          written[static_cast<size_t>(to)] = true;
          if (std::memcmp(blocks[d].data<char>() + from * width, whole.data<char>() + to * width,
                          static_cast<size_t>(width)) != 0) {
            throw UserError(ErrorKind::kRuntime, {}, "spmd: result ", result, " has sharding ", sharding.ToString(),
                            ", but device ", d, " holds another value than those that should hold the same");
          }
        });
  }
  return whole;
}

Tensors EvalSpmd(const EvalContext& c, const Tensors& in) {
  const Spmd p(c.sig.attrs);
  if (c.sig.attrs.Find("processes") != nullptr)
    throw UserError(ErrorKind::kUnsupported, {},
                    "spmd: devices of several processes meet in compiled code; the interpreter runs one process");
  const Fn& body = *c.sig.regions[0];
  const auto n = static_cast<size_t>(p.mesh.num_devices());
  std::vector<Tensors> out(n);
  RunDevices(p.mesh, [&](int64_t device) {
    Tensors args;
    for (size_t i = 0; i < in.size(); ++i)
      args.push_back(BlockOfDevice(p.mesh, p.in[i],
                                   LocalType(p.mesh, p.in[i], in[i].type(), "spmd: operand " + std::to_string(i)),
                                   in[i], device));
    out[static_cast<size_t>(device)] = c.run(body, args);
  });
  Tensors results;
  for (size_t i = 0; i < p.out.size(); ++i) {
    Tensors blocks;
    for (const Tensors& of : out) blocks.push_back(of[i]);
    results.push_back(WholeOf(p.mesh, p.out[i], blocks, c.results[i], i));
  }
  return results;
}

// --- Transforms ------------------------------------------------------------------------------------------------------

// Series lie as their values.
Shardings WithSeries(const Shardings& shardings, const Mask& active, size_t count) {
  Shardings all = shardings;
  for (size_t i = 0; i < shardings.size(); ++i) all.insert(all.end(), active[i] ? count : 0, shardings[i]);
  return all;
}

void SpmdPush(PushContext& c) {
  const Spmd p(c.eqn.attrs);
  const Mask active = ActiveOf(c.dx);
  const JvpFn f = c.push(c.eqn.regions[0], active, Mask(c.eqn.num_results, false));
  Atoms operands = c.x;
  Append(operands, Tangents(c.b, c.x, c.dx, active, c.count));
  const Atoms all =
      c.b.Emit(*c.eqn.prim, operands,
               p.Like(WithSeries(p.in, active, c.count), WithSeries(p.out, f.active_out, c.count)), {f.fn});
  c.y = Part(all, 0, c.eqn.num_results);
  c.dy = Spread(Part(all, c.eqn.num_results, all.size()), f.active_out, c.count);
}

Shardings Behind(Shardings shardings, const Mask& batched) {
  for (size_t i = 0; i < shardings.size(); ++i) {
    if (batched[i]) shardings[i].dims.insert(shardings[i].dims.begin(), Strings());
  }
  return shardings;
}

void SpmdBatch(BatchContext& c) {
  const Spmd p(c.eqn.attrs);
  if (p.mesh.Has(c.axis)) {
    throw UserError(ErrorKind::kUnsupported, c.eqn.loc, "vmap: the mapped axis '", c.axis,
                    "' has the name of an axis of the mesh inside, ", p.mesh.ToString(), "; give it another name");
  }
  const BatchedFn f = c.regions.batch(c.eqn.regions[0], c.batched, Mask(c.eqn.num_results, false), c.size);
  c.y = c.b.Emit(*c.eqn.prim, c.x, p.Like(Behind(p.in, c.batched), Behind(p.out, f.batched_out)), {f.fn});
  c.batched_out = f.batched_out;
}

// How a residual leaves the devices: a new leading dimension has one block for each that may differ.
Sharding OfResidual(const Mesh& mesh, const Type& local) {
  Sharding s;
  s.dims.resize(static_cast<size_t>(local.rank()));
  Strings differ;
  for (const Mesh::Axis& a : mesh.axes) {
    if (std::binary_search(local.varying.begin(), local.varying.end(), a.name)) differ.push_back(a.name);
  }
  if (!differ.empty()) s.dims.insert(s.dims.begin(), differ);
  return s;
}
Dims WithBlock(const Sharding& s, const Type& local) {
  Dims dims = local.dims;
  if (static_cast<int>(s.dims.size()) > local.rank()) dims.insert(dims.begin(), Dim(1));
  return dims;
}

// The result that has all that a residual has on every device, and leaves nothing of it out: nullopt where there is
// none.
std::optional<size_t> ResultLike(const Spmd& p, const Atom& value, const Type& local, const Atoms& results,
                                 const Shardings& out) {
  if (!value.is_var()) return std::nullopt;
  Strings differ;
  for (const std::string& axis : local.varying) {
    if (p.mesh.Has(axis)) differ.push_back(axis);
  }
  for (size_t k = 0; k < results.size(); ++k) {
    if (results[k] == value && out[k].partial.empty() && out[k].Axes() == differ) return k;
  }
  return std::nullopt;
}

void SpmdSplit(SplitContext& c) {
  const Spmd p(c.eqn.attrs);
  const SplitFn f = c.regions.split(c.eqn.regions[0], c.unknown, Mask(c.eqn.num_results, false));
  const Atoms known_x = Where(c.known_x, c.unknown, false);
  const Shardings known_in = Where(p.in, c.unknown, false);
  const size_t num_known = f.known->results().size() - f.residuals.size();
  // A residual that is a parameter passes as it is, and one that is a result is the result.
  std::vector<std::optional<size_t>> passes(f.residuals.size()), results(f.residuals.size());
  const Atoms plain_results = Part(f.known->results(), 0, num_known);
  const Shardings plain_out = Where(p.out, f.unknown_out, false);
  Builder kb(f.known->name()), ub(f.unknown->name());
  const Atoms known_params = Parameters(kb, f.known->ParamTypes());
  const Atoms known_body = kb.Inline(*f.known, known_params);
  Atoms known_results = Part(known_body, 0, num_known), residual_values, residual_args;
  Shardings known_out = plain_out, unknown_in;
  for (size_t r = 0; r < f.residuals.size(); ++r) {
    const Atom& value = f.known->results()[num_known + r];
    if (value.is_var() && value.id() < known_params.size()) {
      passes[r] = value.id();
      unknown_in.push_back(known_in[value.id()]);
      residual_args.push_back(ub.Parameter(f.residuals[r]));
      continue;
    }
    results[r] = ResultLike(p, value, f.residuals[r], plain_results, plain_out);
    if (results[r]) {
      unknown_in.push_back(plain_out[*results[r]]);
      residual_args.push_back(ub.Parameter(f.residuals[r]));
      continue;
    }
    const Sharding s = OfResidual(p.mesh, f.residuals[r]);
    known_results.push_back(Reshape(kb, known_body[num_known + r], WithBlock(s, f.residuals[r])));
    known_out.push_back(s);
    unknown_in.push_back(s);
    Type type = f.residuals[r];
    type.dims = WithBlock(s, type);
    residual_args.push_back(Reshape(ub, ub.Parameter(type), f.residuals[r].dims));
  }
  const Atoms known = c.known_b.Emit(*c.eqn.prim, known_x, p.Like(known_in, known_out), {kb.Build(known_results)});
  Atoms operands;
  size_t next = num_known;
  for (size_t r = 0; r < f.residuals.size(); ++r)
    operands.push_back(c.residual(passes[r] ? known_x[*passes[r]] : known[results[r] ? *results[r] : next++]));
  Append(operands, Where(c.unknown_x, c.unknown));
  Append(unknown_in, Where(p.in, c.unknown));
  Append(residual_args, Parameters(ub, Where(c.eqn.regions[0]->ParamTypes(), c.unknown)));
  Atoms unknown;
  if (Any(f.unknown_out)) {
    const FnRef body = ub.Build(ub.Inline(*f.unknown, residual_args));
    unknown = c.unknown_b.Emit(*c.eqn.prim, operands, p.Like(unknown_in, Where(p.out, f.unknown_out)), {body});
  }
  size_t k = 0, u = 0;
  for (bool is_unknown : f.unknown_out) c.y.push_back(is_unknown ? unknown[u++] : known[k++]);
  c.unknown_out = f.unknown_out;
}

OptionalAtoms SpmdTranspose(TransposeContext& c) {
  const Spmd p(c.eqn.attrs);
  const FnRef& body = c.eqn.regions[0];
  Mask linear;
  Atoms operands;
  for (const auto& x : c.x) {
    linear.push_back(!x);
    if (x) operands.push_back(*x);
  }
  const FnRef back = c.regions.transpose(body, linear);
  // The cotangent of a sum over devices is the same on all of them.
  Shardings in = Where(p.in, linear, false);
  Builder b(body->name());
  Atoms args = Parameters(b, Where(body->ParamTypes(), linear, false));
  for (uint32_t r = 0; r < c.eqn.num_results; ++r) {
    Sharding s = p.out[r];
    Type type = body->TypeOf(body->results()[r]);
    type.varying = AxesWithout(type.varying, s.partial);
    args.push_back(Pvary(b, b.Parameter(type), s.partial));
    s.partial.clear();
    in.push_back(s);
    operands.push_back(c.ct[r] ? *c.ct[r] : Zeros(c.b, GlobalType(p.mesh, p.out[r], body->TypeOf(body->results()[r]))));
  }
  return Spread(c.b.Emit(*c.eqn.prim, operands, p.Like(in, Where(p.in, linear)), {b.Build(b.Inline(*back, args))}),
                linear);
}

// --- Samples ---------------------------------------------------------------------------------------------------------

std::vector<Sample> SpmdSamples() {
  std::vector<Sample> samples;
  for (DType t : {DType::kF32, DType::kF64}) {
    {  // (x, w) -> (sin(x) * w, the sum of all of it), x cut by rows
      const Type block{t, {2, 3}, {"x"}}, row{t, {3}, {}};
      Builder b("body");
      const Atom x = b.Parameter(block), w = b.Parameter(row);
      const Atom y = Mul(b, Sin(b, x), Broadcast(b, w, block.dims, {1}));
      const Atom s = Psum(b, ReduceSum(b, y, {0, 1}), {"x"});
      Sample sample = SampleOf({Type{t, {4, 3}, {}}, row}, SpmdAttrs(Mesh{{{"x", 2}}}, {{{{"x"}, {}}, {}}, {{{}}, {}}},
                                                                     {{{{"x"}, {}}, {}}, {{}, {}}}));
      sample.regions = {b.Build({y, s})};
      samples.push_back(sample);
    }
    {  // a matrix cut both ways times a vector cut along its rows; the sum over "y" is left to the sharding
      const Type block{t, {2, 1}, {"x", "y"}}, part{t, {1}, {"y"}};
      Builder b("body");
      const Atom m = b.Parameter(block), v = b.Parameter(part);
      const Atom y = Contract(b, "ij,j->i", m, Square(b, v));
      const Atom shifted = b.Emit1(FindPrim("ppermute"), {y}, {{"axes", Strings{"x"}}, {"perm", Ints{0, 1, 1, 0}}});
      const Atom all =
          b.Emit1(FindPrim("all_gather"), {v}, {{"axes", Strings{"y"}}, {"sizes", Dims{3}}, {"dim", int64_t{0}}});
      Sample sample = SampleOf({Type{t, {4, 3}, {}}, Type{t, {3}, {}}},
                               SpmdAttrs(Mesh{{{"x", 2}, {"y", 3}}}, {{{{"x"}, {"y"}}, {}}, {{{"y"}}, {}}},
                                         {{{{"x"}}, {"y"}}, {{{"y"}}, {}}}));
      sample.regions = {b.Build({shifted, Exp(b, all)})};
      samples.push_back(sample);
    }
  }
  return samples;
}

}  // namespace

void RegisterSpmd(PrimRegistry& r) {
  RegisterDeviceState();
  Prim& p = r.Add(
      "spmd", Family::kControl, -1,
      "The region on every device of `mesh`, each with its block of the operands as in_shardings cut them; "
      "out_shardings say how the results are put together. (x,-) is an array whose dimension 0 is cut along "
      "the axis x; ()+x a sum of what the devices along x hold. Collectives inside work between the devices. "
      "`devices` are their numbers, where they are not 0, 1, 2 ... Along the axes `alone` all devices do the same, "
      "because nobody asked for more.");
  p.region_use = RegionUse::kDevices;
  p.infer = InferSpmd;
  p.eval = EvalSpmd;
  p.push = SpmdPush;
  p.batch = SpmdBatch;
  p.split = SpmdSplit;
  p.dce = [](const DceContext& c) -> Kept {
    Kept k = KeepOfRegions(c, 0);
    k.attrs.Set("in_shardings", Where(c.eqn.attrs.Get<Shardings>("in_shardings"), k.operands));
    k.attrs.Set("out_shardings", Where(c.eqn.attrs.Get<Shardings>("out_shardings"), k.results));
    return k;
  };
  p.linear = {-1};
  p.transpose = SpmdTranspose;
  p.samples = SpmdSamples;
  p.more_attributes = {"alone", "devices", "processes", "held", "program", "digest"};
}

}  // namespace weft
