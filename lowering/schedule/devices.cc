// spmd: the body is a function of its own, as a recursive one is (lowering/schedule/functions.cc), of which the runtime
// runs one instance per device in a fibre. Collectives are operations of the runtime, where the fibres meet.
#include <algorithm>
#include <unordered_map>

#include "base/run_messages.h"
#include "ir/builder.h"
#include "ir/ops.h"
#include "ir/prim.h"
#include "ir/prim_table.h"
#include "lowering/ops/op_table.h"
#include "lowering/schedule/block_lowering.h"
#include "transforms/shard/processes.h"

namespace weft {
namespace {

Dim Bytes(const Type& t) { return t.size() * Dim(ByteWidth(t.dtype)); }

// The region without what only types say: over which axes values vary. pvary is its operand.
using Made = std::unordered_map<const Fn*, FnRef>;  // of regions: one that occurs often is made once
FnRef WithoutVarying(const Fn& fn, const Shardings* out, Made& made) {
  Builder b(fn.name());
  Atoms env;
  for (const Param& p : fn.params()) env.push_back(b.Parameter(Type{p.type.dtype, p.type.dims, {}}, p.name, p.kind));
  env.resize(fn.num_vars());
  auto get = [&](const Atom& a) { return a.is_var() ? env[a.id()] : a; };
  for (const Eqn& e : fn.eqns()) {
    if (Is<"pvary">(*e.prim)) {  // it is what made a type vary
      env[e.first_result] = get(e.operands[0]);
      continue;
    }
    Atoms operands;
    for (const Atom& a : e.operands) operands.push_back(get(a));
    std::vector<FnRef> regions;
    for (const FnRef& r : e.regions) {
      FnRef& plain = made[r.get()];
      if (!plain) plain = WithoutVarying(*r, nullptr, made);
      regions.push_back(plain);
    }
    Attrs attrs = e.attrs;
    // What it takes beside its axes says over which of them it varies.
    if (Is<"axis_index">(*e.prim)) attrs = {{"axes", e.attrs.Get<Strings>("axes")}};
    if (e.prim->says_varying && e.attrs.Find("results") != nullptr) {
      Types types = e.attrs.Get<Types>("results");
      for (Type& t : types) t.varying.clear();
      attrs.Set("results", std::move(types));
    }
    ScopedLoc loc(b, e.loc);
    const Atoms y = b.Emit(*e.prim, operands, attrs, regions);
    std::copy(y.begin(), y.end(), env.begin() + e.first_result);
  }
  Atoms results;
  for (size_t i = 0; i < fn.results().size(); ++i) {
    const Atom a = get(fn.results()[i]);
    // A sum that the sharding leaves open is taken here.
    results.push_back(out == nullptr ? a : Psum(b, a, (*out)[i].partial));
  }
  return b.Build(results);
}

// `strides`: in the whole array, in elements. `starts` and `first`: of each device's block.
abi::Blocks<InSchedule> BlocksOf(int value, const Type& local, const std::vector<Dim>& strides, std::vector<Dim> starts,
                                 const std::vector<bool>& first) {
  abi::Blocks<InSchedule> blocks;
  blocks.place = value;
  blocks.bytes = Bytes(local);
  blocks.width = ByteWidth(local.dtype);
  blocks.sizes.assign(local.dims.begin(), local.dims.end());
  blocks.strides = strides;
  blocks.starts = std::move(starts);
  for (bool is_first : first) blocks.first.push_back(Dim(is_first ? 1 : 0));
  return blocks;
}

// Where the block of each device begins in the whole array, in bytes.
std::vector<Dim> Starts(const Mesh& mesh, const Sharding& sharding, const Type& local,
                        const std::vector<Dim>& strides) {
  std::vector<Dim> starts;
  for (int64_t device = 0; device < mesh.num_devices(); ++device) {
    const std::vector<int64_t> at = mesh.Coordinates(device);
    Dim start = 0;
    for (size_t d = 0; d < sharding.dims.size(); ++d) {
      const int64_t index = BlockOf(mesh, sharding, d, at).index;
      if (index != 0) start = start + Dim(index) * local.dims[d] * strides[d];
    }
    starts.push_back(start * Dim(ByteWidth(local.dtype)));
  }
  return starts;
}

// How the devices hold an array that is in one piece.
abi::Blocks<InSchedule> WholeInBlocks(int value, const Mesh& mesh, const Sharding& sharding, const Type& local,
                                      const Type& whole) {
  const Strings cut = sharding.Axes();
  std::vector<bool> firsts;
  for (int64_t device = 0; device < mesh.num_devices(); ++device) {
    const std::vector<int64_t> at = mesh.Coordinates(device);
    bool first = true;
    for (size_t a = 0; a < at.size(); ++a)
      first = first && (at[a] == 0 || std::binary_search(cut.begin(), cut.end(), mesh.axes[a].name));
    firsts.push_back(first);
  }
  const std::vector<Dim> strides = Strides(whole.dims);
  return BlocksOf(value, local, strides, Starts(mesh, sharding, local, strides), firsts);
}

// How the devices of one process hold a stack of blocks.
abi::Blocks<InSchedule> StackOfBlocks(int value, const Mesh& mesh, Sharding sharding, const Type& local,
                                      const Ints& processes) {
  sharding.partial.clear();
  const HeldBlocks held = BlocksHeld(mesh, sharding, processes);
  std::vector<Dim> starts;
  std::vector<bool> firsts, seen(held.index.size(), false);
  for (size_t place : held.place) {
    starts.push_back(Dim(static_cast<int64_t>(place)) * Bytes(local));
    firsts.push_back(!seen[place]);
    seen[place] = true;
  }
  return BlocksOf(value, local, Strides(local.dims), std::move(starts), firsts);
}

// Numbers that are equal where two stacks have the same blocks for the same devices: of operands, then of results.
std::vector<int> StackPlaces(const Mesh& mesh, const Shardings& in, const Shardings& out, const Ints& processes) {
  std::vector<std::vector<size_t>> known;
  std::vector<int> places;
  for (const Shardings* shardings : {&in, &out}) {
    for (Sharding s : *shardings) {
      s.partial.clear();
      std::vector<size_t> place = BlocksHeld(mesh, s, processes).place;
      const auto at = std::find(known.begin(), known.end(), place);
      places.push_back(static_cast<int>(at - known.begin()));
      if (at == known.end()) known.push_back(std::move(place));
    }
  }
  return places;
}

}  // namespace

// Which operands are donated stacks that nobody reads but this: devices may write over their blocks.
std::vector<bool> BlockLowering::DonatedOperands(const Eqn& e) const {
  std::vector<bool> donated(e.operands.size(), false);
  if (e.attrs.Find("processes") == nullptr) return donated;
  for (size_t i = 0; i < donated.size(); ++i) {
    const Atom& a = e.operands[i];
    donated[i] = a.is_var() && p_.IsDonated(fn_, a.id()) && readers_[plan_.Root(a.id())] == 1 &&
                 std::count_if(e.operands.begin(), e.operands.end(),
                               [&](const Atom& b) { return b.is_var() && b.id() == a.id(); }) == 1;
  }
  return donated;
}

void BlockLowering::EmitSpmd(Steps& steps, const Eqn& e) {
  const Mesh& mesh = e.attrs.Get<Mesh>("mesh");
  const Shardings &in = e.attrs.Get<Shardings>("in_shardings"), &out = e.attrs.Get<Shardings>("out_shardings");
  if (e.regions[0]->OutwardCalls() > 0) {
    throw UserError(ErrorKind::kUnsupported, e.loc,
                    "spmd: the body calls a recursive function that is defined outside of it");
  }
  Made made;
  const FnRef body = WithoutVarying(*e.regions[0], &out, made);
  const Ints processes = e.attrs.GetOr<Ints>("processes", {});
  std::vector<bool> donated = DonatedOperands(e);
  const int index = p_.BeginFunction(body->name());
  if (std::find(donated.begin(), donated.end(), true) != donated.end())
    p_.SetDonated(std::move(donated), StackPlaces(mesh, in, out, processes));
  p_.PushMesh(mesh);
  std::vector<int> params, results;
  p_.NewEnds(*body, &params, &results);
  Steps steps_of_body;
  BlockLowering lowering(p_, *body, params, results);
  lowering.ReturnsBlocks();
  lowering.Run(steps_of_body);
  p_.PopMesh();
  p_.EndFunction(index, std::move(steps_of_body));
  abi::Spmd<InSchedule> told;
  told.function = index;
  for (const Mesh::Axis& a : mesh.axes) told.axes.push_back(Dim(a.size));
  told.spans_processes = std::any_of(processes.begin(), processes.end(), [&](int64_t p) { return p != processes[0]; });
  if (told.spans_processes) {
    // The first entry is the process that runs this.
    told.process = processes[0];
    told.digest = e.attrs.GetInt("digest");
    told.program = p_.AddString(e.attrs.Get<std::string>("program"));
    told.processes.assign(processes.begin() + 1, processes.end());
  }
  const auto blocks = [&](int value, const Sharding& sharding, const Type& local, const Type& whole) {
    return processes.empty() ? WholeInBlocks(value, mesh, sharding, local, whole)
                             : StackOfBlocks(value, mesh, sharding, local, processes);
  };
  std::vector<Schedule::Use> uses;
  for (size_t i = 0; i < e.operands.size(); ++i) {
    uses.push_back(p_.Read(ValueOf(e.operands[i])));
    told.operands.push_back(blocks(uses.back().value, in[i], body->params()[i].type, fn_.TypeOf(e.operands[i])));
  }
  const Types local = body->ResultTypes();
  for (uint32_t r = 0; r < e.num_results; ++r) {
    uses.push_back(p_.Write(NewResult(e.first_result + r)));
    told.results.push_back(blocks(uses.back().value, out[r], local[r], fn_.TypeOf(e.result(static_cast<int>(r)))));
  }
  told.overwritten.assign(told.operands.size(), Dim(0));
  told.left_in.assign(told.results.size(), Dim(-1));
  Schedule::Step& step = p_.AddCall(steps, told, std::move(uses));
  // The last two fields are known when the function's memory is.
  auto entry = step.desc.end() - static_cast<int64_t>(told.operands.size() + told.results.size());
  const auto becomes = [&](Schedule::Entry known) {
    known.field = entry->field;
    *entry++ = known;
  };
  for (size_t i = 0; i < told.operands.size(); ++i) becomes(Schedule::Entry::Overwritten(static_cast<int>(i)));
  for (size_t r = 0; r < told.results.size(); ++r) becomes(Schedule::Entry::LeftIn(static_cast<int>(r)));
  step.function = index + 1;
  step.note = "devices of " + mesh.ToString();
}

int64_t BlockLowering::PlaceInMesh(const Eqn& e, const std::string& axis) const {
  const Mesh* mesh = p_.CurrentMesh();
  size_t place = 0;
  while (mesh != nullptr && place < mesh->axes.size() && mesh->axes[place].name != axis) ++place;
  if (mesh == nullptr || place == mesh->axes.size()) {
    throw UserError(ErrorKind::kUnsupported, e.loc,
                    OuterAxisMessage(e.prim->name, axis, mesh == nullptr ? "none" : mesh->ToString()));
  }
  return static_cast<int64_t>(place);
}

void BlockLowering::EmitAxisIndex(Steps& steps, const Eqn& e) {
  const abi::AxisIndex<InSchedule> told{NewResult(e.first_result), PlaceInMesh(e, e.attrs.Get<Strings>("axes").at(0))};
  p_.AddCall(steps, told, {p_.Write(told.result)});
}

void BlockLowering::EmitCollective(Steps& steps, const Eqn& e) {
  abi::Collective<InSchedule> told;
  told.kind = static_cast<abi::CollectiveKind>(RowOf(*e.prim).kind);
  told.result = NewResult(e.first_result);
  for (const std::string& axis : e.attrs.Get<Strings>("axes")) told.axes.push_back(Dim(PlaceInMesh(e, axis)));
  told.name = p_.AddString(e.prim->name);
  // Which result of the body it is, where nobody else reads it.
  const bool returned = std::any_of(fn_.results().begin(), fn_.results().end(),
                                    [&](const Atom& a) { return a.is_var() && plan_.Root(a.id()) == e.first_result; });
  told.returned = returns_blocks_ && returned && readers_[e.first_result] == 1 ? told.result : -1;
  told.x = ArrayOf(e.operands[0]);
  const auto dimension = [&](const char* attr, int64_t* dim) {
    if (e.attrs.Find(attr) != nullptr) *dim = e.attrs.GetInt(attr);
  };
  dimension("dim", &told.dim);
  dimension("split", &told.dim);
  dimension("concat", &told.concat);
  if (e.attrs.Find("perm") != nullptr) {
    const Ints& perm = e.attrs.Get<Ints>("perm");
    for (size_t i = 0; i < perm.size(); ++i) (i % 2 == 0 ? told.senders : told.receivers).push_back(Dim(perm[i]));
  }
  p_.AddCall(steps, told, {p_.Write(told.result), p_.Read(told.x.place)});
}

}  // namespace weft
