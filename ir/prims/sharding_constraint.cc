// sharding_constraint: how a value is to lie on a mesh. It says nothing about what the value is.
#include <algorithm>

#include "ir/builder.h"
#include "ir/prims/devices.h"
#include "ir/prims/families.h"
#include "ir/prims/shape.h"

namespace weft {
namespace {

// The cotangent of what all devices have is a sum in parts, and that of a sum in parts is what all devices have.
Attrs OfCotangent(const Attrs& attrs) {
  Attrs swapped;
  for (const auto& [name, value] : attrs.entries())
    swapped.Set(name == "unreduced" ? "reduced" : name == "reduced" ? "unreduced" : name, value);
  return swapped;
}

void Batch(BatchContext& c) {
  Attrs attrs = c.eqn.attrs;
  if (c.batched[0]) {
    // Nothing is said about the mapped dimension.
    Shardings s = attrs.Get<Shardings>("sharding");
    s[0].dims.insert(s[0].dims.begin(), Strings());
    attrs.Set("sharding", s);
    attrs.Set("open", Prepend(0, Shifted(attrs.Get<Ints>("open"))));
  }
  c.y = c.b.Emit(*c.eqn.prim, c.x, attrs);
  c.batched_out = c.batched;
}

}  // namespace

void RegisterShardingConstraint(PrimRegistry& r) {
  Prim& p =
      r.Add("sharding_constraint", Family::kControl, 1,
            "The operand. Where a program is cut over the devices of a mesh, the value lies on `mesh` as `sharding` "
            "says, but for the dimensions in `open`, about which it says nothing. `devices` are the numbers of the "
            "mesh's devices, where they are not 0, 1, 2 ... What follows from the result's type: along the axes "
            "`unreduced` it counts as a sum in parts, along `reduced` its cotangent does. `typed`: it is what types "
            "say, and these are the axes of which they say it.");
  p.infer = [](const Sig& s) -> Types {
    const Shardings& shardings = s.attrs.Get<Shardings>("sharding");
    const Type& x = s.operands[0];
    CheckDims(s, "open", s.attrs.Get<Ints>("open"), x.rank());
    if (shardings.size() != 1 || !shardings[0].partial.empty())
      throw ValueError("sharding_constraint: sharding=", ToString(Attr(shardings)), "; expected one, without sums");
    const Mesh& mesh = s.attrs.Get<Mesh>("mesh");
    CheckMeshDevices(s, mesh);
    CheckSharding(mesh, shardings[0], x.rank(), "sharding_constraint");
    for (int64_t d : s.attrs.Get<Ints>("open")) {
      if (!shardings[0].dims[d].empty())
        throw ValueError("sharding_constraint: dimension ", d, " is open, but sharding=", ToString(Attr(shardings)),
                         " cuts it");
    }
    for (const char* name : {"unreduced", "reduced"}) {
      const Attr* named = s.attrs.Find(name);
      if (named == nullptr) continue;
      const Strings cuts = shardings[0].Axes();
      for (const std::string& axis : std::get<Strings>(*named)) {
        mesh.Size(axis);  // raises where there is none
        if (std::find(cuts.begin(), cuts.end(), axis) != cuts.end())
          throw ValueError("sharding_constraint: '", axis, "' is ", name, ", and sharding=", ToString(Attr(shardings)),
                           " cuts along it");
      }
    }
    LocalType(mesh, shardings[0], x, "sharding_constraint");
    return {x};
  };
  p.eval = [](const EvalContext&, const Tensors& in) -> Tensors { return in; };
  p.linear = {0};
  p.more_attributes = {"devices", "unreduced", "reduced", "typed"};
  p.transpose = [](TransposeContext& c) -> OptionalAtoms {
    return {c.b.Emit1(*c.eqn.prim, {*c.ct[0]}, OfCotangent(c.eqn.attrs))};
  };
  p.batch = Batch;
  p.samples = [] {
    std::vector<Sample> samples;
    const Mesh mesh{{{"x", 2}, {"y", 3}}};
    for (DType t : {DType::kF32, DType::kF64, DType::kI32}) {
      samples.push_back(SampleOf({Type{t, {4, 3}, {}}},
                                 {{"mesh", mesh}, {"sharding", Shardings{{{{"x"}, {"y"}}, {}}}}, {"open", Ints{}}}));
    }
    samples.push_back(SampleOf({Type{DType::kF32, {4, 3}, {}}},
                               {{"mesh", mesh}, {"sharding", Shardings{{{{"x"}, {}}, {}}}}, {"open", Ints{1}}}));
    return samples;
  };
}

}  // namespace weft
