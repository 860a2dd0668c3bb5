"""jax.core: values, their types, and what is being traced."""

from __future__ import annotations

import abc
import enum
import functools
import weakref
from typing import Any

import numpy as np

import weft

from .. import _weft
from .._core import stateful
from .._core.errors import name_error, value_error
from .._core.shapes import ShapedArray
from .._sharding.shardings import spec_axes
from .._sharding.typed import spec_of_dims
from .._sharding.typing_rules import typing_rules
from ..mesh import get_abstract_mesh
from ..symbolic_zeros import CustomVJPPrimal
from . import hlo_shardings

ensure_compile_time_eval = eval_context = weft.ensure_compile_time_eval
array_types = {weft.Array, np.ndarray, np.generic}
ParamDict = dict[str, Any]
Value = Any

__all__ = ["AbstractValue", "ShapedArray", "Tracer", "Value", "array_types"]


class AbstractValue(abc.ABC):  # noqa: B024
    """What types of values are instances of."""


AbstractValue.register(ShapedArray)


class _IsTraced(type):
    def __instancecheck__(cls, x: Any) -> bool:
        return _weft.is_traced(x) if cls is Tracer else super().__instancecheck__(x)


class Tracer(metaclass=_IsTraced):
    """isinstance(x, Tracer): whether x is a value of a function that is being traced. Libraries derive classes
    from it."""

    def __init__(self, trace: Any = None, aval: Any = None):
        self._trace, self._aval = trace, aval


class AxisEnv:
    """The named axes that are bound where it is asked for: of vmap, pmap and shard_map."""

    def __init__(self) -> None:
        self.axis_sizes: dict[str, Any] = dict(_weft.bound_axes())

    def axis_names(self) -> tuple[str, ...]:
        """Their names, the outermost first."""
        return tuple(self.axis_sizes)

    def axis_exists(self, axis_name: str) -> bool:
        """Whether an axis of that name is bound."""
        return axis_name in self.axis_sizes

    def axis_size(self, axis_name: str) -> Any:
        """Its size; NameError: none is bound."""
        if axis_name not in self.axis_sizes:
            raise name_error(f"unbound axis name: {axis_name}")
        return self.axis_sizes[axis_name]


def get_axis_env() -> AxisEnv:
    """The named axes that are bound here."""
    return AxisEnv()


class Trace:
    """JAX's bookkeeping of a transform; Weft's is in C++. An object of this class stands for one function that is being
    traced: the values of that function have it."""

    @property
    def main(self) -> Trace:
        return self

    def is_valid(self) -> bool:
        return True


_traces: weakref.WeakValueDictionary[int, Trace] = weakref.WeakValueDictionary()


def _trace(number: int) -> Trace:
    found = _traces.get(number)
    if found is None:
        found = _traces[number] = Trace()
    return found


weft.Tracer._trace = property(lambda value: _trace(_weft.trace_of(value)))  # type: ignore[attr-defined]


def find_top_trace(values: Any) -> Trace:
    """What stands for the function that is being traced."""
    del values
    return _trace(_weft.current_trace())


class TraceTag(Trace):
    """See Trace."""


# How JAX takes objects of further classes for arrays. Weft asks the objects: __jax_array__, __weft_array__.
pytype_aval_mappings: dict[type, Any] = dict.fromkeys(
    (weft.Array, np.ndarray, bool, int, float, complex), ShapedArray.like
)
canonicalize_dtype_handlers: dict[type, Any] = dict.fromkeys(pytype_aval_mappings, weft.numpy.asarray)


# Classes whose objects are values of a type of a library's own -> what gives it (hijax.register_hitype).
own_types: dict[type, Any] = {}


def get_aval(x: Any) -> ShapedArray:
    """The type of a value."""
    own = own_types.get(type(x))
    return ShapedArray.like(x) if own is None else own(x)


# Of arrays that lie on no device in particular, where no mesh is around.
_types: dict[Any, ShapedArray] = {}
_MOST_TYPES = 4096


def _key_of_type(x: Any) -> Any:
    """What the type of an array depends on, where that is little; None: it is more."""
    if _weft.is_traced(x) or x.is_deleted() or _weft.sharding_of(x) is not None or not get_abstract_mesh().empty:
        return None
    return _weft.abstract(x)


def typeof(x: Any) -> ShapedArray:
    """The type of a value, with its sharding: of an array that lies on devices; of a traced value as far as the types
    of the axes of the mesh around say it, which is nothing of axes that are not Explicit."""
    if type(x) is weft.Array and (key := _key_of_type(x)) is not None:
        found = _types.get(key)
        if found is None:
            if len(_types) >= _MOST_TYPES:
                _types.clear()
            found = _types[key] = _on_mesh(x, weft.typeof(x))
        return found
    own = own_types.get(type(x))
    if own is not None:
        return own(x)
    if isinstance(x, CustomVJPPrimal):  # a part of a value of a library's own, on its way to a forward rule
        return typeof(x.value)
    found = weft.typeof(x)
    if stateful.is_reference(x) and not get_abstract_mesh().empty:
        return type(found)(_on_mesh(held := stateful.references.scopes.read(x), weft.typeof(held)))
    return _on_mesh(x, found)


@functools.cache
def _on_no_mesh(rank: int) -> weft.NamedSharding:
    """The sharding that most types say."""
    return weft.NamedSharding(weft.AbstractMesh((), ()), spec_of_dims([[] for _ in range(rank)], (), ()))


# Traced values that come out of a constraint, and the meshes on which it puts them: id -> (weak reference, mesh).
_constrained: dict[int, tuple[Any, Any]] = {}


def lies_on(x: Any, mesh: Any) -> None:
    """Notes of a traced value that it lies on a mesh, along axes of which types say nothing."""
    number = id(x)
    _constrained[number] = (weakref.ref(x, lambda _: _constrained.pop(number, None)), mesh)


def _on_mesh(x: Any, aval: Any) -> Any:
    """JAX's types: a mesh without devices, and of the axes that cut each dimension those whose types say it."""
    if not isinstance(aval, ShapedArray):  # a reference's
        return aval
    rank, around = len(aval.shape), get_abstract_mesh()
    if around.empty and _weft.is_traced(x) and (of_trace := _weft.mesh_of_trace()) is not None:
        around = of_trace.abstract_mesh
    if _weft.is_traced(x) and (constrained := _constrained.get(id(x))) is not None:
        around = constrained[1].abstract_mesh
    if around.empty and not isinstance(aval.sharding, weft.NamedSharding) and not aval.varying:
        aval.sharding = _on_no_mesh(rank)  # the type was made just now, and is nobody's yet
        return aval
    there = isinstance(x, weft.Array) and not _weft.is_traced(x) and not x.is_deleted()
    if there and isinstance(_weft.sharding_of(x), weft.SingleDeviceSharding):
        around = weft.AbstractMesh((), ())  # somebody has put it on one device
    mesh, spec = around, weft.PartitionSpec()
    if isinstance(aval.sharding, weft.NamedSharding):
        mesh, spec = aval.sharding.mesh.abstract_mesh, aval.sharding.spec
    said = [[name for name in names if name in mesh.explicit_axes] for names in spec_axes(spec)]
    said += [[] for _ in range(rank - len(said))]
    place = weft.NamedSharding(mesh, spec_of_dims(said, spec.unreduced, spec.reduced))
    if not aval.varying:
        return aval.update(sharding=place)
    sizes = get_abstract_mesh().shape
    return aval.update(sharding=place, varying=[a for a in aval.varying if typing_rules.keeps_axis(sizes.get(a, 2))])


class MemorySpace(enum.Enum):
    """Where arrays lie. There is one memory: Host and Device are the same place."""

    Device = enum.auto()
    Host = enum.auto()
    Any = enum.auto()

    def __repr__(self) -> str:
        return f"MemorySpace.{self.name}"


def install() -> None:
    """From now on x.aval is typeof(x), shardings say how XLA would put it, and the class of jitted functions has JAX's
    name, by which chex knows them."""
    hlo_shardings.install()
    jitted: Any = _weft.JitFunction
    jitted.__name__ = jitted.__qualname__ = "PjitFunction"
    array: Any = weft.Array
    array.aval = property(
        lambda self: typeof(self) if type(self) is weft.Array else _on_mesh(self, ShapedArray.like(self))
    )
    tracer: Any = _weft.Tracer
    tracer.mat = property(lambda self: self.aval.mat)
    ShapedArray.default_memory_space = MemorySpace.Device


def reduced_vary_cast(x: Any, axis_name: Any) -> Any:
    """Values that are reduced along axes of a mesh as values that vary along them: what each device has."""
    return weft.lax.pcast(x, axis_name, to="varying")


# Of types of a library's own: (what takes an axis away, what adds one).
aval_mapping_handlers: dict[type, tuple[Any, Any]] = {}


def mapped_aval(size: int, axis: int | None, aval: ShapedArray) -> ShapedArray:
    """The type of one element along an axis."""
    if type(aval) in aval_mapping_handlers:
        return aval_mapping_handlers[type(aval)][0](size, axis, aval)
    if axis is None:
        return aval
    if aval.shape[axis] != size:
        raise value_error(f"mapped_aval: axis {axis} of {aval} is not of size {size}")
    return aval.update(shape=(*aval.shape[:axis], *aval.shape[axis + 1 :]))


def unmapped_aval(size: int, axis: int | None, aval: ShapedArray, explicit_mesh_axis: Any = None) -> ShapedArray:
    """The type with an axis more."""
    if type(aval) in aval_mapping_handlers:
        return aval_mapping_handlers[type(aval)][1](size, axis, explicit_mesh_axis, aval)
    del explicit_mesh_axis
    if axis is None:
        return aval
    return aval.update(shape=(*aval.shape[:axis], size, *aval.shape[axis:]))


def primal_dtype_to_tangent_dtype(dtype: Any) -> Any:
    """The dtype of tangents of arrays of a dtype."""
    return ShapedArray((), dtype).to_tangent_aval().dtype


def valid_jaxtype(x: Any) -> bool:
    """Whether a value may be an argument of a transformed function."""
    return _weft.is_operand(x)


def is_concrete(x: Any) -> bool:
    """Whether the number behind a value is known."""
    return not _weft.is_traced(x)


def concrete_or_error(force: Any, value: Any, context: str = "") -> Any:
    """A value whose number is known, as `force` takes it; TracerError where it is not."""
    del context
    if force is not None:
        return force(value)
    return value if not _weft.is_traced(value) else weft.numpy.asarray(np.asarray(value))


def trace_state_clean() -> bool:
    """Whether no function is being traced."""
    return not _weft.is_tracing()


class OpaqueTraceState:
    """Which function is being traced: equal where it is the same one."""

    def __init__(self) -> None:
        self._trace = _weft.current_trace()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OpaqueTraceState) and self._trace == other._trace

    def __hash__(self) -> int:
        return hash(self._trace)


def get_opaque_trace_state(convention: str | None = None) -> OpaqueTraceState:
    """Which function is being traced, for comparisons."""
    del convention
    return OpaqueTraceState()


def max_dim(a: Any, b: Any) -> Any:
    """The larger of two sizes."""
    return max(a, b)


def min_dim(a: Any, b: Any) -> Any:
    """The smaller of two sizes."""
    return min(a, b)
