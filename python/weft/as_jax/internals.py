"""Names that are private to JAX, and that programs look for or compare with: classes of errors, shardings."""

from __future__ import annotations

from typing import Any

import weft

from . import linear_util as lu
from .jaxprs import eval_jaxpr
from .shardings import common_devices_indices_map as common_devices_indices_map
from .user_primitives import Primitive

AxisName = Any


# Types of shardings do not fit; an axis cannot be cut into equal parts; an axis of a mesh is used twice.
ShardingTypeError = weft.errors.ShardingTypeError
IndivisibleError = DuplicateSpecError = weft.errors.ArgumentError


class InconclusiveDimensionOperation(Exception):
    """Two sizes that are not known cannot be compared."""


def is_optimized_build() -> bool:
    """Whether the native module was compiled with optimisation."""
    return True


def is_symbolic_dim(size: Any) -> bool:
    """Whether a size is not known until the program runs."""
    return isinstance(size, weft.Dim)


def is_constant_dim(size: Any) -> bool:
    """Whether a size is a number."""
    return not is_symbolic_dim(size)


def is_constant_shape(shape: Any) -> bool:
    """Whether all sizes of a shape are numbers."""
    return all(map(is_constant_dim, shape))


def definitely_equal(a: Any, b: Any) -> bool:
    """Whether two sizes are equal."""
    return bool(a == b)


class _Call(Primitive):
    """A primitive that calls a function: bind(*arrays, subfuns=(wrapped function,)), or the function first, gives the
    list of its results."""

    call_primitive = multiple_results = True

    def bind(self, /, *args: Any, subfuns: Any = (), **_: Any) -> list[Any]:
        """Calls the function."""
        every = [*subfuns, *args]
        result = lu.called(every[0])(*every[1:])
        return list(result) if isinstance(result, (list, tuple)) else [result]


class _ClosedCall(Primitive):
    """A primitive that runs the program that call_jaxpr is, or calls a function."""

    call_primitive = multiple_results = True

    def bind(self, /, *args: Any, call_jaxpr: Any = None, subfuns: Any = (), **_: Any) -> list[Any]:
        """Runs the program on the last arguments, which are arrays."""
        if call_jaxpr is None:
            return call_p.bind(*args, subfuns=subfuns)
        arrays = args[len(args) - len(call_jaxpr.jaxpr.invars) :]
        return eval_jaxpr(call_jaxpr.jaxpr, call_jaxpr.consts, *arrays)


class _EvalJaxpr(Primitive):
    """A primitive that runs a program: bind(*arrays, jaxpr=...)."""

    call_primitive = multiple_results = True

    def bind(self, /, *args: Any, jaxpr: Any, **_: Any) -> list[Any]:
        """Runs the program."""
        return list(eval_jaxpr(jaxpr.jaxpr, jaxpr.consts, *args))


eval_jaxpr_p = _EvalJaxpr("eval_jaxpr")
call_p, closed_call_p = _Call("core_call"), _ClosedCall("closed_call")
call = call_p.bind


def make_single_device_sharding(device: Any, *, memory_kind: Any = None) -> Any:
    """The sharding of arrays on one device."""
    return weft.SingleDeviceSharding(device, memory_kind=memory_kind)


class UnspecifiedValue:
    """No sharding was asked for."""

    def __repr__(self) -> str:
        return "UnspecifiedValue"


UNSPECIFIED = UnspecifiedValue()


class AUTO:
    """The compiler chooses."""

    def __init__(self, mesh: Any):
        self.mesh = mesh


def hashed_index(index: tuple[slice, ...]) -> int:
    """A hash of a part of an array."""
    return hash(tuple((s.start, s.stop) for s in index))


def local_to_global_shape(sharding: Any, local_shape: tuple[int, ...]) -> tuple[int | None, ...]:
    """The shape of an array, of which this process has so much: of one process all."""
    return tuple(local_shape)


# No mesh is around.
empty_abstract_mesh = empty_concrete_mesh = weft.AbstractMesh((), ())
