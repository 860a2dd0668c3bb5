#include "tracer/collective_ops.h"

#include <algorithm>

namespace weft {
namespace {

// The axes of a mesh among `axes`.
Strings MeshAxes(const Strings& axes, const std::string& what) {
  Strings mesh;
  for (const std::string& axis : axes) {
    if (AxisNamed(axis, what).mesh) mesh.push_back(axis);
  }
  return mesh;
}

Dims Sizes(const Strings& axes, const std::string& what) {
  Dims sizes;
  for (const std::string& axis : axes) sizes.push_back(AxisNamed(axis, what).size);
  return sizes;
}

// The operand of a collective: it takes part on every device, as if it differed.
Atom Varying(Site& site, const Operand& x, DType dtype, const Strings& axes, const std::string& what) {
  const Strings mesh = MeshAxes(axes, what);
  return Pvary(site.b(), site.Use(x, dtype), mesh);
}
Atom Varying(Site& site, const Operand& x, const Strings& axes, const std::string& what) {
  return Varying(site, x, x.dtype().dtype, axes, what);
}

Dims WithOne(const Dims& dims, int64_t at) {
  Dims more = dims;
  more.insert(more.begin() + at, Dim(1));
  return more;
}

Dims Without(const Dims& dims, int64_t at) {
  Dims fewer = dims;
  fewer.erase(fewer.begin() + at);
  return fewer;
}

void CheckDevices(const std::string& what, const Operand& x, int64_t dim, const Dim& count) {
  if (x.dims()[dim] == count) return;
  throw ValueError(what, ": axis ", dim, " of an array of shape ", ShapeText(x.dims()), " has size ", x.dims()[dim],
                   ", but there are ", count, " devices; with tiled=True it is cut in blocks instead");
}

}  // namespace

Dim AxisSize(const Strings& axes, const std::string& what) {
  Dim n = 1;
  for (const std::string& axis : axes) n = n * AxisNamed(axis, what).size;
  return n;
}

Value ReduceOverDevices(const std::string& prim, const Operand& x, const Strings& axes) {
  DType dtype = x.dtype().dtype;
  if (IsBool(dtype)) dtype = DefaultInt();
  Sizes(axes, prim);  // all are bound
  Site site = Site::OfAxes();
  return site.Finish(site.b().Emit1(FindPrim(prim), {Varying(site, x, dtype, axes, prim)}, {{"axes", axes}}),
                     x.dtype().weak);
}

Value AllGather(const Operand& x, const Strings& axes, int64_t dim, bool tiled) {
  const Dims sizes = Sizes(axes, "all_gather");
  dim = CheckAxis(dim, x.rank() + (tiled ? 0 : 1), "all_gather");
  Site site = Site::OfAxes();
  Builder& b = site.b();
  Atom a = Varying(site, x, axes, "all_gather");
  if (!tiled) a = Reshape(b, a, WithOne(x.dims(), dim));
  return site.Finish(b.Emit1(FindPrim("all_gather"), {a}, {{"axes", axes}, {"sizes", sizes}, {"dim", dim}}),
                     x.dtype().weak);
}

Value PsumScatter(const Operand& x, const Strings& axes, int64_t dim, bool tiled) {
  const Dims sizes = Sizes(axes, "psum_scatter");
  dim = CheckAxis(dim, x.rank(), "psum_scatter");
  if (!tiled) CheckDevices("psum_scatter", x, dim, AxisSize(axes, "psum_scatter"));
  const DType dtype = IsBool(x.dtype().dtype) ? DefaultInt() : x.dtype().dtype;
  Site site = Site::OfAxes();
  Builder& b = site.b();
  Atom a = b.Emit1(FindPrim("psum_scatter"), {Varying(site, x, dtype, axes, "psum_scatter")},
                   {{"axes", axes}, {"sizes", sizes}, {"dim", dim}});
  if (!tiled) a = Reshape(b, a, Without(x.dims(), dim));
  return site.Finish(a, x.dtype().weak);
}

Value AllToAll(const Operand& x, const Strings& axes, int64_t split, int64_t concat, bool tiled) {
  const Dims sizes = Sizes(axes, "all_to_all");
  split = CheckAxis(split, x.rank(), "all_to_all: split_axis");
  concat = CheckAxis(concat, x.rank(), "all_to_all: concat_axis");
  if (!tiled) CheckDevices("all_to_all", x, split, AxisSize(axes, "all_to_all"));
  Site site = Site::OfAxes();
  Builder& b = site.b();
  Atom a = Varying(site, x, axes, "all_to_all");
  // Without `tiled` the dimension that is cut goes away, and one for the devices stands at `concat` among the others.
  const int64_t one = concat + (concat > split ? 1 : 0), cut = split + (split >= one ? 1 : 0);
  if (!tiled) a = Reshape(b, a, WithOne(x.dims(), one));
  a = b.Emit1(FindPrim("all_to_all"), {a},
              {{"axes", axes}, {"sizes", sizes}, {"split", tiled ? split : cut}, {"concat", tiled ? concat : one}});
  if (!tiled) a = Reshape(b, a, Without(b.TypeOf(a).dims, cut));
  return site.Finish(a, x.dtype().weak);
}

Value Ppermute(const Operand& x, const Strings& axes, const std::vector<std::pair<int64_t, int64_t>>& perm) {
  const Dim n = AxisSize(axes, "ppermute");
  Ints flat;
  for (const auto& [from, to] : perm) {
    if (n.is_static() && (from < 0 || to < 0 || from >= n.value() || to >= n.value()))
      throw ValueError("ppermute: perm holds (", from, ", ", to, "), but the ", n, " devices are numbered from 0");
    flat.push_back(from), flat.push_back(to);
  }
  Site site = Site::OfAxes();
  return site.Finish(
      site.b().Emit1(FindPrim("ppermute"), {Varying(site, x, axes, "ppermute")}, {{"axes", axes}, {"perm", flat}}),
      x.dtype().weak);
}

Value PvaryOver(const Operand& x, const Strings& axes) {
  Site site = Site::OfAxes();
  return site.Finish(Varying(site, x, axes, "pvary"), x.dtype().weak);
}

Value AxisIndex(const Strings& axes) {
  Sizes(axes, "axis_index");
  Site site = Site::OfAxes();
  Builder& b = site.b();
  std::optional<Atom> place;
  for (const std::string& axis : axes) {
    const NamedAxis& named = AxisNamed(axis, "axis_index");
    Attrs attrs = {{"axes", Strings{axis}}};
    if (named.mesh) attrs.Set("varying", true);
    const Atom index = b.Emit1(FindPrim("axis_index"), {}, attrs);
    if (!place) {
      place = index;
      continue;
    }
    const auto size = static_cast<double>(named.size.value("axis_index of several axes"));
    place = Add(b, Mul(b, *place, Atom::Scalar(DType::kI32, size)), index);
  }
  if (!place) throw ValueError("axis_index: axis_name names no axis; expected one or more");
  return site.Finish(*place);
}

}  // namespace weft
