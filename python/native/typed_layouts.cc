#include "python/native/typed_layouts.h"

#include <algorithm>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "python/native/array.h"
#include "python/native/convert.h"
#include "python/native/errors.h"
#include "python/native/placed.h"
#include "tracer/context.h"
#include "transforms/shard/explicit_types.h"

namespace weft::python {

struct TypedTrace {
  Trace* trace = nullptr;
  TypedTrace* around = nullptr;  // of the trace in which this one is open
  Ref label;                     // the mesh
  Mesh mesh;
  uint32_t said = 0;
  uint32_t devices = 0;  // axes over which a shard_map runs here
  std::vector<std::optional<TypedLayout>> vars;
  std::vector<Ref> foreign;  // of those that are cut over another mesh than this one: that mesh
  size_t done = 0;           // equations

  // What was so before the axes got other types or names.
  struct Outside {
    Ref label;
    Mesh mesh;
    uint32_t said, devices;
    std::vector<std::optional<TypedLayout>> vars;
    std::vector<Ref> foreign;
  };
  std::vector<Outside> outside;

  bool says() const { return said != 0 || devices != 0; }
  ExplicitTypes types() const { return ExplicitTypes(mesh, said, devices); }
  TypedLayout Of(const Atom& a);
  TypedLayout Translated(const Value& v);
  void GoOn(const Atoms& results);
  void CheckMesh(const Eqn& e) const;
  // What is cut over the mesh lies over another one from here on.
  void Estrange();
};

namespace {

thread_local TypedTrace* t_innermost = nullptr;

PyObject* g_hook = nullptr;

// Whether some value was said to be a sum in parts: until then nobody has to look for them.
bool g_sums_in_use = false;

// What the hook says of a mesh or a sharding.
struct Described {
  Ref label;
  Mesh mesh;
  Strings said, devices;
  Sharding sharding;
  Strings unreduced, reduced;
};

template <class F>
void Each(PyObject* sequence, const F& f) {
  Ref items(Check(PySequence_Fast(sequence, "the description of a sharding")));
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items.get()); ++i) f(PySequence_Fast_GET_ITEM(items.get(), i));
}

Strings NamesIn(PyObject* sequence) {
  Strings names;
  Each(sequence, [&](PyObject* name) { names.push_back(Text(name)); });
  return names;
}

std::optional<Described> Describe(PyObject* object) {
  if (g_hook == nullptr || object == nullptr || object == Py_None) return std::nullopt;
  const Ref found(Check(RunningPython([&] { return PyObject_CallOneArg(g_hook, object); })));
  if (found.get() == Py_None) return std::nullopt;
  PyObject *label, *axes, *said, *devices, *dims = nullptr, *unreduced = nullptr, *reduced = nullptr;
  if (!PyArg_ParseTuple(found.get(), "OOOO|OOO", &label, &axes, &said, &devices, &dims, &unreduced, &reduced))
    throw PythonError();
  Described d;
  d.label = Ref::Borrow(label);
  Each(axes, [&](PyObject* axis) {
    d.mesh.axes.push_back({Text(PyTuple_GET_ITEM(axis, 0)), IntFrom(PyTuple_GET_ITEM(axis, 1), "an axis")});
  });
  d.said = NamesIn(said);
  d.devices = NamesIn(devices);
  if (dims == nullptr) return d;
  Each(dims, [&](PyObject* names) { d.sharding.dims.push_back(NamesIn(names)); });
  d.unreduced = NamesIn(unreduced);
  d.reduced = NamesIn(reduced);
  return d;
}

// Of the sharding that a concrete array was given; there are as many as a program has different ones.
const std::optional<Described>& DescriptionOf(const Placement& place) {
  static auto& known = *new std::unordered_map<const Placement*, std::optional<Described>>();
  const auto it = known.find(&place);
  if (it != known.end()) return it->second;
  return known.emplace(&place, place.one_device ? std::nullopt : Describe(static_cast<PyObject*>(place.label)))
      .first->second;
}

uint32_t BitsOf(const Mesh& mesh, const Strings& names) {
  uint32_t bits = 0;
  for (size_t a = 0; a < mesh.axes.size(); ++a) {
    if (std::find(names.begin(), names.end(), mesh.axes[a].name) != names.end()) bits |= AxisBit(static_cast<int>(a));
  }
  return bits;
}

TypedTrace* Find(const Trace* trace) {
  for (TypedTrace* t = t_innermost; t != nullptr; t = t->around) {
    if (t->trace == trace) return t;
  }
  return nullptr;
}

TypedLayout Fitting(TypedLayout l, int rank) {
  l.dims.resize(static_cast<size_t>(rank));
  return l;
}

}  // namespace

// The same along the axes whose types say it here.
TypedLayout TypedTrace::Translated(const Value& v) {
  const ExplicitTypes types = this->types();
  if (!v.traced()) {
    if (v.placement() == nullptr) return types.Open(v.rank());
    const std::optional<Described>& d = DescriptionOf(*v.placement());
    if (!d || !(d->mesh == mesh)) return types.Open(v.rank());
    return Fitting(types.Of(d->sharding, d->unreduced, d->reduced), v.rank());
  }
  TypedTrace* const home = Find(v.home().get());
  if (home == nullptr || !home->says() || !(home->mesh == mesh)) return types.Open(v.rank());
  return types.Said(home->Of(v.var()));
}

TypedLayout TypedTrace::Of(const Atom& a) {
  const ExplicitTypes types = this->types();
  const Builder& b = trace->builder();
  if (!a.is_var()) return types.Open(b.TypeOf(a).rank());
  if (a.id() >= vars.size()) vars.resize(a.id() + 1);
  if (!vars[a.id()]) {
    const auto& params = b.param_vars();
    const auto at = std::find(params.begin(), params.end(), a.id());
    if (at == params.end()) {
      GoOn({});
    } else {
      const size_t i = static_cast<size_t>(at - params.begin()), own = static_cast<size_t>(trace->num_params());
      const TypedLayout l = i >= own && i - own < trace->captures().size() ? Translated(trace->captures()[i - own])
                                                                           : types.Open(b.TypeOf(a).rank());
      vars[a.id()] = l;
    }
  }
  return vars[a.id()] ? *vars[a.id()] : types.Open(b.TypeOf(a).rank());
}

void TypedTrace::GoOn(const Atoms& results) {
  const ExplicitTypes types = this->types();
  const Builder& b = trace->builder();
  const Eqns& eqns = b.eqns();
  if (done == eqns.size()) return;
  const size_t first = done;
  const std::vector<bool> said_later = SaidLater(eqns, first, results);
  ExplicitTypes::Context context{[&](const Atom& a) -> const Type& { return b.TypeOf(a); }, true, false};
  for (; done < eqns.size(); ++done) {
    const Eqn& e = eqns[done];
    TypedLayouts operands;
    for (const Atom& a : e.operands) operands.push_back(Of(a));
    context.strict = !trace->IsDerived(done);
    if (context.strict && !foreign.empty()) CheckMesh(e);
    context.said_later = said_later[done];
    TypedLayouts layouts = types.OfEqn(e, operands, context);
    if (vars.size() < e.first_result + e.num_results) vars.resize(e.first_result + e.num_results);
    for (uint32_t i = 0; i < e.num_results; ++i) vars[e.first_result + i] = std::move(layouts[i]);
  }
}

void TypedTrace::CheckMesh(const Eqn& e) const {
  static const Prim* const constraint = &FindPrim("sharding_constraint");
  if (e.prim == constraint) return;
  for (const Atom& a : e.operands) {
    if (!a.is_var() || a.id() >= foreign.size() || !foreign[a.id()]) continue;
    throw ShardingTypeError(e.prim->name + ": an operand lies over " + Repr(foreign[a.id()].get()) +
                                ", and the mesh around is " + Repr(label.get()) + ": weft.reshard brings it over",
                            e.loc);
  }
}

void TypedTrace::Estrange() {
  foreign.resize(vars.size());
  for (size_t i = 0; i < vars.size(); ++i) {
    if (!vars[i]) continue;
    const bool is_cut = vars[i]->unreduced != 0 || std::any_of(vars[i]->dims.begin(), vars[i]->dims.end(),
                                                               [](const auto& axes) { return !axes.empty(); });
    if (is_cut) foreign[i] = label;
    vars[i] = types().Open(static_cast<int>(vars[i]->dims.size()));
  }
}

void EnterTypedMesh(PyObject* mesh) {
  TypedTrace* const typed = t_innermost;
  if (typed == nullptr) return;
  typed->GoOn({});
  typed->outside.push_back({typed->label, typed->mesh, typed->said, typed->devices, typed->vars, typed->foreign});
  typed->Estrange();
  const std::optional<Described> here = Describe(mesh);
  if (!here) return;
  typed->label = here->label;
  typed->mesh = here->mesh;
  typed->said = BitsOf(here->mesh, here->said);
  typed->devices = BitsOf(here->mesh, here->devices);
}

void LeaveTypedMesh(bool failed) {
  TypedTrace* const typed = t_innermost;
  if (typed == nullptr || typed->outside.empty()) return;
  if (!failed) typed->GoOn({});
  typed->Estrange();
  TypedTrace::Outside& outside = typed->outside.back();
  for (size_t i = 0; i < outside.vars.size(); ++i) {
    if (outside.vars[i]) typed->vars[i] = outside.vars[i];
    typed->foreign[i] = i < outside.foreign.size() ? outside.foreign[i] : Ref();
  }
  typed->label = outside.label;
  typed->mesh = outside.mesh;
  typed->said = outside.said;
  typed->devices = outside.devices;
  typed->outside.pop_back();
}

void ScopedTypedLayouts::Begin(Trace& trace) {
  typed_->trace = &trace;
  typed_->around = t_innermost;
}

void ScopedTypedLayouts::Use(PyObject* mesh_or_sharding) {
  const std::optional<Described> here = Describe(mesh_or_sharding);
  if (!here) return;
  typed_->label = here->label;
  typed_->mesh = here->mesh;
  typed_->said = BitsOf(here->mesh, here->said);
  typed_->devices = BitsOf(here->mesh, here->devices);
}

ScopedTypedLayouts::ScopedTypedLayouts(Trace& trace, Rule rule) : typed_(new TypedTrace) {
  Begin(trace);
  if (rule.mesh != nullptr) {
    Use(rule.mesh);
  } else if (t_innermost != nullptr) {
    typed_->label = Ref::Borrow(t_innermost->label.get());  // for functions inside of it
  }
  t_innermost = typed_.get();
}

ScopedTypedLayouts::ScopedTypedLayouts(Trace& trace, PyObject* leaves) : typed_(new TypedTrace) {
  Begin(trace);
  if (Context().mesh != nullptr) {
    Use(static_cast<PyObject*>(Context().mesh));
  } else if (t_innermost != nullptr && t_innermost->label.get() != nullptr) {
    Use(t_innermost->label.get());
  } else {
    std::optional<Described> here;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(leaves); ++i) {
      PyObject* const leaf = PyList_GET_ITEM(leaves, i);
      if (!IsArray(leaf)) continue;
      const Value& value = PeekValue(leaf);
      if (value.traced() || value.placement() == nullptr) continue;
      const std::optional<Described>& d = DescriptionOf(*value.placement());
      if (d && (!here || (here->said.empty() && !d->said.empty()))) here = d;
    }
    if (here) Use(here->label.get());
  }
  t_innermost = typed_.get();
}

ScopedTypedLayouts::~ScopedTypedLayouts() { t_innermost = typed_->around; }

void ScopedTypedLayouts::Parameter(PyObject* leaf, const Value& parameter) {
  if (!typed_->says()) return;
  const ExplicitTypes types = typed_->types();
  const uint32_t id = parameter.var().id;
  if (typed_->vars.size() <= id) typed_->vars.resize(id + 1);
  if (IsArray(leaf)) {
    typed_->vars[id] = typed_->Translated(PeekValue(leaf));
    return;
  }
  typed_->vars[id] = types.Open(parameter.rank());
  const Ref sharding(RunningPython([&] { return PyObject_GetAttrString(leaf, "sharding"); }));
  if (!sharding) {
    PyErr_Clear();  // a number, or a type without a place
    return;
  }
  const std::optional<Described> d = Describe(sharding.get());
  if (d && d->mesh == typed_->mesh)
    typed_->vars[id] = Fitting(types.Of(d->sharding, d->unreduced, d->reduced), parameter.rank());
}

void ScopedTypedLayouts::Parameter(const std::optional<ValueLayout>& layout, const Value& parameter) {
  if (!layout || !typed_->says() || layout->dims.size() != static_cast<size_t>(parameter.rank())) return;
  const uint32_t id = parameter.var().id;
  if (typed_->vars.size() <= id) typed_->vars.resize(id + 1);
  typed_->vars[id] = typed_->types().Of(Sharding{layout->dims, {}}, layout->unreduced, layout->reduced);
}

void ScopedTypedLayouts::Check(const Values& results) {
  if (!typed_->says() || (typed_->said == 0 && !g_sums_in_use)) return;
  Atoms returned;
  for (const Value& v : results) {
    if (v.traced() && v.home().get() == typed_->trace) returned.emplace_back(v.var());
  }
  typed_->GoOn(returned);
}

namespace {

ValueLayout Named(const TypedLayout& l, const Mesh& mesh, Ref label) {
  ValueLayout found;
  found.mesh = std::move(label);
  for (const auto& axes : l.dims) {
    found.dims.emplace_back();
    for (int a : axes) found.dims.back().push_back(mesh.axes[static_cast<size_t>(a)].name);
  }
  for (size_t a = 0; a < mesh.axes.size(); ++a) {
    if (l.unreduced & AxisBit(static_cast<int>(a))) found.unreduced.push_back(mesh.axes[a].name);
    if (l.reduced & AxisBit(static_cast<int>(a))) found.reduced.push_back(mesh.axes[a].name);
  }
  found.open = l.open;
  return found;
}

}  // namespace

std::optional<ValueLayout> LayoutForRules(const Value& value) {
  if (!value.traced()) return TypedLayoutOf(value);
  TypedTrace* const typed = Find(value.home().get());
  if (typed == nullptr || (typed->said == 0 && !(typed->devices && g_sums_in_use))) return std::nullopt;
  const TypedLayout l = typed->Of(value.var());
  return l.open ? std::nullopt : std::optional(Named(l, typed->mesh, typed->label));
}

std::optional<ValueLayout> TypedLayoutOf(const Value& value) {
  TypedLayout l;
  if (value.traced()) {
    TypedTrace* const typed = Find(value.home().get());
    if (typed == nullptr || typed->said == 0) return std::nullopt;
    l = typed->Of(value.var());
    l.unreduced &= typed->said;
    l.reduced &= typed->said;
    return Named(l, typed->mesh, typed->label);
  } else {
    if (value.placement() == nullptr) return std::nullopt;
    const std::optional<Described>& d = DescriptionOf(*value.placement());
    if (!d || d->said.empty()) return std::nullopt;
    const ExplicitTypes types(d->mesh, BitsOf(d->mesh, d->said));
    return Named(Fitting(types.Of(d->sharding, d->unreduced, d->reduced), value.rank()), d->mesh, d->label);
  }
}

SumsOfDevices SumsAmongDevices(const Value& value) {
  TypedTrace* const typed = g_sums_in_use && value.traced() ? Find(value.home().get()) : nullptr;
  if (typed == nullptr || typed->devices == 0) return {};
  const TypedLayout l = typed->Of(value.var());
  return {AxisNames(typed->mesh, l.unreduced & typed->devices), AxisNames(typed->mesh, l.reduced & typed->devices)};
}

void UseSumsAmongDevices() { g_sums_in_use = true; }

Ref MeshOfTrace() {
  for (const TypedTrace* t = t_innermost; t != nullptr; t = t->around) {
    if (t->label.get() != nullptr) return t->label;
  }
  return Ref();
}

void AddTypedLayout(const Value& value, Signature& signature) {
  if (!value.traced() || t_innermost == nullptr) return;
  TypedTrace* const typed = Find(value.home().get());
  if (typed == nullptr || !typed->says()) return;
  const TypedLayout l = typed->Of(value.var());
  if (l.open) return;
  auto& tokens = signature.tokens;
  tokens.push_back(kShardingToken | uint64_t{l.unreduced} << 8 | uint64_t{l.dims.size()} << 32);
  tokens.push_back(l.reduced);
  for (const auto& axes : l.dims) {
    tokens.push_back(axes.size());
    for (int a : axes) tokens.push_back(static_cast<uint64_t>(a));
  }
  signature.objects.push_back(typed->label);
}

void SetTypedHook(PyObject* hook) { g_hook = Py_NewRef(hook); }

}  // namespace weft::python
