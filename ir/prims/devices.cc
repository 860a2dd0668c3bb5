#include "ir/prims/devices.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "base/fibres.h"
#include "base/run_messages.h"
#include "ir/prim_table.h"
#include "ir/prims/elementwise.h"

namespace weft {
namespace {

// --- What collectives mean -------------------------------------------------------------------------------------------

// Dimension `dim` of a shape, what is in front of it, and the bytes behind it.
struct Rows {
  int64_t outer = 1, size, inner;
  Rows(const Tensor& t, int64_t dim) : size(t.shape()[dim]), inner(ByteWidth(t.dtype())) {
    for (int64_t d = 0; d < dim; ++d) outer *= t.shape()[d];
    for (int64_t d = dim + 1; d < t.rank(); ++d) inner *= t.shape()[d];
  }
};

Tensor Joined(const Tensors& parts, int64_t dim) {
  Shape shape = parts[0].shape();
  shape[dim] *= static_cast<int64_t>(parts.size());
  Tensor whole(parts[0].dtype(), shape);
  const Rows rows(parts[0], dim);
  const int64_t bytes = rows.size * rows.inner;
  char* to = whole.data<char>();
  for (int64_t o = 0; o < rows.outer; ++o) {
    for (const Tensor& part : parts) {
      std::memcpy(to, part.data<char>() + o * bytes, static_cast<size_t>(bytes));
      to += bytes;
    }
  }
  return whole;
}

Tensors Cut(const Tensor& whole, int64_t dim, int64_t count) {
  Shape shape = whole.shape();
  shape[dim] /= count;
  Tensors parts;
  for (int64_t k = 0; k < count; ++k) parts.emplace_back(whole.dtype(), shape);
  if (whole.size() == 0) return parts;
  const Rows rows(whole, dim);
  const int64_t bytes = rows.size / count * rows.inner;
  const char* from = whole.data<char>();
  for (int64_t o = 0; o < rows.outer; ++o) {
    for (Tensor& part : parts) {
      std::memcpy(part.data<char>() + o * bytes, from, static_cast<size_t>(bytes));
      from += bytes;
    }
  }
  return parts;
}

template <class K, class F>
Tensor Folded(const Tensors& in, const F& f) {
  std::vector<K> total = LoadAs<K>(in[0]);
  for (size_t i = 1; i < in.size(); ++i) {
    const std::vector<K> x = LoadAs<K>(in[i]);
    for (size_t k = 0; k < total.size(); ++k) total[k] = f(total[k], x[k]);
  }
  return StoreAs<K>(in[0].dtype(), in[0].shape(), total);
}

template <class F>
Tensor FoldedReals(const Tensors& in, const F& f) {
  if (IsFloat(in[0].dtype())) return Folded<double>(in, f);
  return IsSigned(in[0].dtype()) ? Folded<int64_t>(in, f) : Folded<uint64_t>(in, f);
}

// Floats are added in double, in the order of the devices, and rounded once. Integers wrap.
Tensor Sum(const Tensors& in) {
  const auto add = [](const auto& a, const auto& b) { return a + b; };
  if (IsComplex(in[0].dtype())) return Folded<std::complex<double>>(in, add);
  return IsFloat(in[0].dtype()) ? Folded<double>(in, add) : Folded<uint64_t>(in, add);
}

using Meaning = Tensors (*)(const Attrs& attrs, const Tensors& in);

Tensors Everywhere(const Tensors& in, const Tensor& t) { return Tensors(in.size(), t); }

Tensors AllToAll(const Attrs& attrs, const Tensors& in) {
  const auto n = static_cast<int64_t>(in.size());
  Tensors out;
  std::vector<Tensors> blocks;
  for (const Tensor& t : in) blocks.push_back(Cut(t, attrs.GetInt("split"), n));
  for (int64_t k = 0; k < n; ++k) {
    Tensors mine;
    for (const Tensors& of : blocks) mine.push_back(of[static_cast<size_t>(k)]);
    out.push_back(Joined(mine, attrs.GetInt("concat")));
  }
  return out;
}

Tensors Permuted(const Attrs& attrs, const Tensors& in) {
  const auto n = static_cast<int64_t>(in.size());
  Tensors out;
  for (const Tensor& t : in) out.push_back(Tensor::Zeros(t.dtype(), t.shape()));
  const Ints& perm = attrs.Get<Ints>("perm");
  for (size_t i = 0; i + 1 < perm.size(); i += 2) {
    if (perm[i] >= n || perm[i + 1] >= n)
      throw ValueError("ppermute: sends ", perm[i], " to ", perm[i + 1], ", but there are ", n, " devices");
    out[static_cast<size_t>(perm[i + 1])] = in[static_cast<size_t>(perm[i])];
  }
  return out;
}

}  // namespace

Tensors CollectiveMeaning(const Prim& prim, const Attrs& attrs, const Tensors& in) {
  static const auto& meanings = *new PrimTable<Meaning>{
      {"psum", [](const Attrs&, const Tensors& x) { return Everywhere(x, Sum(x)); }},
      {"pmax",
       [](const Attrs&, const Tensors& x) {
         return Everywhere(x, FoldedReals(x, [](auto a, auto b) { return a != a || (b == b && a > b) ? a : b; }));
       }},
      {"pmin",
       [](const Attrs&, const Tensors& x) {
         return Everywhere(x, FoldedReals(x, [](auto a, auto b) { return a != a || (b == b && a < b) ? a : b; }));
       }},
      {"all_gather", [](const Attrs& a, const Tensors& x) { return Everywhere(x, Joined(x, a.GetInt("dim"))); }},
      {"psum_scatter",
       [](const Attrs& a, const Tensors& x) { return Cut(Sum(x), a.GetInt("dim"), static_cast<int64_t>(x.size())); }},
      {"all_to_all", AllToAll},
      {"ppermute", Permuted},
  };
  const Meaning meaning = meanings[prim];
  WEFT_CHECK(meaning != nullptr) << "a collective without a meaning: " << prim.name;
  return meaning(attrs, in);
}

namespace {

// --- Who waits where -------------------------------------------------------------------------------------------------

struct Pending {
  const Prim* prim;
  Attrs attrs;
  Tensor operand;
};

// The devices of one mesh while they run.
struct Devices {
  const Mesh* mesh;
  std::vector<std::optional<Pending>> pending;
  Tensors results;
  std::string diverged;  // why, if they do not meet
  Devices* outer;
};

struct Here {
  Devices* devices = nullptr;
  int64_t device = 0;
};
thread_local Here t_here;
Here& ThisHere() { return t_here; }

// Thrown in the devices that cannot go on because of another one.
struct Cancelled {};

std::string Text(const Pending& p) {
  std::string text = p.prim->name + "[";
  for (const Attrs::Entry& e : p.attrs.entries())
    text += (text.back() == '[' ? "" : ", ") + e.first + "=" + ToString(e.second);
  return text + "] of " + p.operand.type().ToString();
}

std::string NameOf(const Mesh& mesh, int64_t device) {
  const std::vector<int64_t> at = mesh.Coordinates(device);
  std::string text = "device " + std::to_string(device) + " (";
  for (size_t a = 0; a < at.size(); ++a) text += (a ? ", " : "") + mesh.axes[a].name + "=" + std::to_string(at[a]);
  return text + ")";
}

std::string WhoWaitsWhere(const Devices& d, const std::vector<bool>& waiting) {
  std::string text = "the devices of " + d.mesh->ToString() + " do not meet:";
  for (size_t i = 0; i < waiting.size(); ++i) {
    text += "\n  " + NameOf(*d.mesh, static_cast<int64_t>(i)) +
            (waiting[i] ? " waits at " + Text(*d.pending[i]) : std::string(" has ended"));
  }
  return text;
}

// The devices that take part in a collective over `axes` with `device`, in row-major order of the axes.
std::vector<size_t> GroupOf(const Mesh& mesh, const Strings& axes, int64_t device) {
  std::vector<int64_t> at = mesh.Coordinates(device);
  Mesh over;
  std::vector<size_t> places;
  for (const std::string& axis : axes) {
    for (size_t a = 0; a < mesh.axes.size(); ++a) {
      if (mesh.axes[a].name != axis) continue;
      over.axes.push_back(mesh.axes[a]);
      places.push_back(a);
    }
  }
  std::vector<size_t> group;
  for (int64_t k = 0; k < over.num_devices(); ++k) {
    const std::vector<int64_t> along = over.Coordinates(k);
    for (size_t i = 0; i < places.size(); ++i) at[places[i]] = along[i];
    int64_t number = 0;
    for (size_t a = 0; a < at.size(); ++a) number = number * mesh.axes[a].size + at[a];
    group.push_back(static_cast<size_t>(number));
  }
  return group;
}

// Groups of which every member waits at the same collective have their results; gives who may go on.
std::vector<bool> Meet(Devices& d, const std::vector<bool>& waiting) {
  std::vector<bool> ready(waiting.size(), false);
  for (size_t i = 0; i < waiting.size(); ++i) {
    if (!waiting[i] || ready[i]) continue;
    const Pending& mine = *d.pending[i];
    const std::vector<size_t> group = GroupOf(*d.mesh, mine.attrs.Get<Strings>("axes"), static_cast<int64_t>(i));
    const bool all = std::all_of(group.begin(), group.end(), [&](size_t k) {
      return waiting[k] && d.pending[k]->prim == mine.prim && d.pending[k]->attrs == mine.attrs &&
             d.pending[k]->operand.type() == mine.operand.type();
    });
    if (!all) continue;
    Tensors in;
    for (size_t k : group) in.push_back(d.pending[k]->operand);
    const Tensors out = CollectiveMeaning(*mine.prim, mine.attrs, in);
    for (size_t k = 0; k < group.size(); ++k) {
      d.results[group[k]] = out[k];
      ready[group[k]] = true;
    }
  }
  if (std::find(ready.begin(), ready.end(), true) == ready.end()) d.diverged = WhoWaitsWhere(d, waiting);
  return ready;
}

}  // namespace

void CheckMeshDevices(const Sig& sig, const Mesh& mesh) {
  if (sig.attrs.Find("devices") == nullptr) return;
  const size_t given = sig.attrs.Get<Ints>("devices").size();
  if (given != static_cast<size_t>(mesh.num_devices()))
    throw ValueError(sig.prim.name, ": numbers of ", given, " devices for ", mesh.ToString(), ", which has ",
                     mesh.num_devices());
}

void RegisterDeviceState() { RegisterFibreState<Here, ThisHere>(); }

void RunDevices(const Mesh& mesh, const std::function<void(int64_t)>& body) {
  const auto n = static_cast<size_t>(mesh.num_devices());
  Devices devices{&mesh, std::vector<std::optional<Pending>>(n), Tensors(n), "", t_here.devices};
  RunFibres(
      static_cast<int>(n),
      [&](int device) {
        t_here = {&devices, device};
        try {
          body(device);
        } catch (const Cancelled&) {
          return;  // another device failed: its error is the one that is told
        }
      },
      [&](const std::vector<bool>& waiting) { return Meet(devices, waiting); });
}

Tensors MeetAt(const EvalContext& c, const Tensors& in) {
  const Prim& prim = c.sig.prim;
  const Strings& axes = c.sig.attrs.Get<Strings>("axes");
  const Here here = t_here;
  for (const std::string& axis : axes) {
    if (here.devices != nullptr && here.devices->mesh->Has(axis)) continue;
    for (const Devices* d = here.devices; d != nullptr; d = d->outer) {
      if (d->mesh->Has(axis)) {
        throw UserError(ErrorKind::kUnsupported, {}, OuterAxisMessage(prim.name, axis, here.devices->mesh->ToString()));
      }
    }
    throw UserError(ErrorKind::kName, {}, UnboundAxisMessage(prim.name, axis));
  }
  Devices& devices = *here.devices;
  if (!prim.communicates) {  // axis_index: where this device is
    const std::vector<int64_t> at = devices.mesh->Coordinates(here.device);
    for (size_t a = 0; a < at.size(); ++a) {
      if (devices.mesh->axes[a].name == axes[0])
        return {Tensor::Scalar<int32_t>(DType::kI32, static_cast<int32_t>(at[a]))};
    }
  }
  const auto me = static_cast<size_t>(here.device);
  devices.pending[me] = Pending{&prim, c.sig.attrs, in[0]};
  if (!WaitFibre()) {
    if (!devices.diverged.empty()) throw UserError(ErrorKind::kRuntime, {}, devices.diverged);
    throw Cancelled{};
  }
  return {devices.results[me]};
}

}  // namespace weft
