// spmd: the body is a function of its own, as a recursive one is (lowering/schedule/functions.cc), of which the runtime
// runs one instance per device in a fibre. Collectives are operations of the runtime, where the fibres meet.
#include <algorithm>
#include <unordered_map>

#include "base/run_messages.h"
#include "ir/builder.h"
#include "ir/ops.h"
#include "ir/prim.h"
#include "ir/prim_table.h"
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

// What WEFT_OP_COLLECTIVE does, by its first entry: these, and after them running the devices of a mesh.
const std::vector<std::string>& Kinds() {
  static const auto& kinds = *new std::vector<std::string>{"psum",         "pmax",       "pmin",     "all_gather",
                                                           "psum_scatter", "all_to_all", "ppermute", "axis_index"};
  return kinds;
}

// [place, bytes of a block, bytes of an element, rank, (size of the block, stride in the whole array in elements)...,
//  start of each device's block in bytes..., whether each device is the first that holds its block...]
void AppendLayout(std::vector<Schedule::Entry>& desc, int value, const Type& local, const std::vector<Dim>& strides,
                  const std::vector<Dim>& starts, const std::vector<bool>& first) {
  desc.push_back(Schedule::Entry::Place(value));
  for (const Dim& n : {Bytes(local), Dim(ByteWidth(local.dtype)), Dim(local.rank())}) desc.push_back(n);
  for (int d = 0; d < local.rank(); ++d) desc.insert(desc.end(), {local.dims[d], strides[d]});
  desc.insert(desc.end(), starts.begin(), starts.end());
  for (bool is_first : first) desc.push_back(Dim(is_first ? 1 : 0));
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
void AppendBlocks(std::vector<Schedule::Entry>& desc, int value, const Mesh& mesh, const Sharding& sharding,
                  const Type& local, const Type& whole) {
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
  AppendLayout(desc, value, local, strides, Starts(mesh, sharding, local, strides), firsts);
}

// How the devices of one process hold a stack of blocks.
void AppendStack(std::vector<Schedule::Entry>& desc, int value, const Mesh& mesh, Sharding sharding, const Type& local,
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
  AppendLayout(desc, value, local, Strides(local.dims), starts, firsts);
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

// [8, function, axes, sizes..., this process or -1, (where there are several: digest, name of the program, process of
//  each device...), operands, results, a description by AppendLayout for each operand and result, for each operand
//  whether it is overwritten, for each result the operand in whose memory it is left or -1]
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
  std::vector<Schedule::Entry> desc = {Dim(static_cast<int64_t>(Kinds().size())), Dim(index),
                                       Dim(static_cast<int64_t>(mesh.axes.size()))};
  for (const Mesh::Axis& a : mesh.axes) desc.push_back(Dim(a.size));
  const bool others = std::any_of(processes.begin(), processes.end(), [&](int64_t p) { return p != processes[0]; });
  desc.push_back(Dim(others ? processes[0] : -1));
  if (others) {
    desc.insert(desc.end(), {Dim(e.attrs.GetInt("digest")), Dim(p_.AddString(e.attrs.Get<std::string>("program")))});
    for (size_t d = 1; d < processes.size(); ++d) desc.push_back(Dim(processes[d]));
  }
  const auto append = [&](int value, const Sharding& sharding, const Type& local, const Type& whole) {
    if (processes.empty())
      AppendBlocks(desc, value, mesh, sharding, local, whole);
    else
      AppendStack(desc, value, mesh, sharding, local, processes);
  };
  desc.push_back(Dim(static_cast<int64_t>(e.operands.size())));
  desc.push_back(Dim(static_cast<int64_t>(e.num_results)));
  std::vector<Schedule::Use> uses;
  for (size_t i = 0; i < e.operands.size(); ++i) {
    uses.push_back(p_.Read(ValueOf(e.operands[i])));
    append(uses.back().value, in[i], body->params()[i].type, fn_.TypeOf(e.operands[i]));
  }
  const Types local = body->ResultTypes();
  for (uint32_t r = 0; r < e.num_results; ++r) {
    uses.push_back(p_.Write(NewResult(e.first_result + r)));
    append(uses.back().value, out[r], local[r], fn_.TypeOf(e.result(static_cast<int>(r))));
  }
  for (int i = 0; i < static_cast<int>(e.operands.size()); ++i) desc.push_back(Schedule::Entry::Overwritten(i));
  for (int r = 0; r < static_cast<int>(e.num_results); ++r) desc.push_back(Schedule::Entry::LeftIn(r));
  Schedule::Step& step = p_.AddCall(steps, WEFT_OP_COLLECTIVE, std::move(desc), std::move(uses));
  step.function = index + 1;
  step.note = "devices of " + mesh.ToString();
}

// [kind, place of the result, axes, place of each axis in the mesh..., its name, the result of the
//  body that it is and nothing else or -1, operand, parameters of the kind...]
void BlockLowering::EmitCollective(Steps& steps, const Eqn& e) {
  const std::string& name = e.prim->name;
  const Mesh* mesh = p_.CurrentMesh();
  const Strings& axes = e.attrs.Get<Strings>("axes");
  const auto kind = std::find(Kinds().begin(), Kinds().end(), name);
  WEFT_CHECK(kind != Kinds().end()) << "no compiled code for the collective " << name;
  const int to = NewResult(e.first_result);
  std::vector<Schedule::Use> uses = {p_.Write(to)};
  std::vector<Schedule::Entry> desc = {Dim(static_cast<int64_t>(kind - Kinds().begin())), Schedule::Entry::Place(to),
                                       Dim(static_cast<int64_t>(axes.size()))};
  for (const std::string& axis : axes) {
    size_t place = 0;
    while (mesh != nullptr && place < mesh->axes.size() && mesh->axes[place].name != axis) ++place;
    if (mesh == nullptr || place == mesh->axes.size()) {
      throw UserError(ErrorKind::kUnsupported, e.loc,
                      OuterAxisMessage(name, axis, mesh == nullptr ? "none" : mesh->ToString()));
    }
    desc.push_back(Dim(static_cast<int64_t>(place)));
  }
  desc.push_back(Dim(p_.AddString(name)));
  // Which result of the body it is, where nobody else reads it.
  const bool returned = std::any_of(fn_.results().begin(), fn_.results().end(),
                                    [&](const Atom& a) { return a.is_var() && plan_.Root(a.id()) == e.first_result; });
  const bool only_returned = returns_blocks_ && returned && readers_[e.first_result] == 1;
  desc.push_back(only_returned ? Schedule::Entry::ResultNumber(to) : Schedule::Entry(Dim(-1)));
  if (!e.operands.empty()) {
    AppendTensor(desc, e.operands[0]);
    uses.push_back(p_.Read(ValueOf(e.operands[0])));
  }
  for (const char* attr : {"dim", "split", "concat"}) {
    if (e.attrs.Find(attr) != nullptr) desc.push_back(Dim(e.attrs.GetInt(attr)));
  }
  if (e.attrs.Find("perm") != nullptr) {
    const Ints& perm = e.attrs.Get<Ints>("perm");
    desc.push_back(Dim(static_cast<int64_t>(perm.size() / 2)));
    for (int64_t place : perm) desc.push_back(Dim(place));
  }
  p_.AddCall(steps, WEFT_OP_COLLECTIVE, std::move(desc), std::move(uses));
}

}  // namespace weft
