"""What programs say to a compiler, and small operations made of others."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

from .. import _weft, tree
from .. import numpy as wnp
from .._core import composites as _composites
from .._core import docs as _docs
from .._core.errors import not_implemented, type_error, value_error
from .._core.options import keeps_calls
from .._sharding.devices import default_backend
from .._weft import Array
from ..compiled import jit
from ..typing import ArrayLike, DTypeLike, NestedLike

__all__ = [
    "broadcast_like",
    "composite",
    "mulhi",
    "optimization_barrier",
    "platform_dependent",
    "ragged_dot",
    "stage",
]

T = TypeVar("T")


def optimization_barrier(operand: T) -> T:
    """The operand as it is. Programs say it where XLA is not to move operations; Weft's passes never change results,
    and take no notice.

    Args:
        operand: a tree of arrays.

    Returns: the same.

    Example:
        >>> weft.lax.optimization_barrier(wnp.array([1.0, 2.0]))
        Array([1., 2.], dtype=float32)
    """
    return tree.map(wnp.asarray, operand)


def platform_dependent(
    *args: Any, default: Callable[..., Any] | None = None, **per_platform: Callable[..., Any]
) -> Any:
    """The function that is for the backend in use, called.

    Args:
        *args: its arguments.
        default: the function for backends that have none of their own.
        **per_platform: the functions, by name of their backend: cpu, cuda (or gpu), others for programs' sake.

    Returns: what it returns.

    Raises:
        NotImplementedError: there is neither a function for the backend nor a default.

    Example:
        >>> weft.lax.platform_dependent(3.0, cpu=lambda x: x + 1, cuda=lambda x: x + 1)
        4.0
    """
    backend = default_backend()
    names = [backend, "gpu"] if backend == "cuda" else [backend]
    for name in names:
        if name in per_platform:
            return per_platform[name](*args)
    if default is None:
        raise not_implemented(
            f"platform_dependent: there is no function for {backend!r} among {', '.join(sorted(per_platform))}, and no "
            "default"
        )
    return default(*args)


def composite(decomposition: Callable[..., Any], name: str, version: int = 0) -> Callable[..., Any]:
    """A function under a name that other compilers may know: here its decomposition. weft.ir.to_stablehlo writes it as
    a composite of StableHLO.

    Args:
        decomposition: the function.
        name: its name.
        version: its version.

    Returns: function that calls it; keyword arguments are its attributes: numbers, texts, dtypes and arrays of
        NumPy's, which the text says, too; None: there is no such attribute.

    Raises:
        TypeError: name is no text, or version no integer; when called in a program: an attribute is none of these.

    Example:
        >>> weft.lax.composite(lambda x: x * 2, "my.double")(3.0)
        6.0
    """
    if not isinstance(name, str) or not isinstance(version, int):
        raise type_error(f"composite: name must be a text and version an integer, got {name!r} and {version!r}")

    @functools.wraps(decomposition)
    def call(*args: Any, **attributes: Any) -> Any:
        if not _weft.is_tracing():
            return decomposition(*args, **attributes)

        def of_arrays(*arrays: Any) -> Any:
            return decomposition(*arrays, **attributes)

        of_arrays.__name__ = _composites.function_name(name, version, attributes)
        with keeps_calls(True):
            return jit(of_arrays)(*args)

    return call


def stage(x: ArrayLike, /) -> Array:
    """The value as an array. What is known while a function is traced stays known: Python may ask for it.

    Args:
        x: array or number of any shape.

    Returns: array of that shape and dtype; x itself, where it is one.

    Raises:
        TypeError: x is no array and no number.

    Example:
        >>> weft.lax.stage(3.0)
        Array(3., dtype=float32, weak_type=True)
    """
    return array_or_number(x, "stage: x")


def array_or_number(x: Any, what: str) -> Array:
    """The array of a value, which may be no list of numbers; `what` names the argument. Raises TypeError."""
    if not (_weft.is_operand(x) or hasattr(x, "__jax_array__") or hasattr(x, "__weft_array__")):
        raise type_error(f"{what} must be an array or a number, got {x!r} of type '{type(x).__name__}'")
    return wnp.asarray(x)


def broadcast_like(arr: NestedLike, like_arr: NestedLike) -> Array:
    """An array in the shape of another one.

    Args:
        arr: array.
        like_arr: array whose shape it takes.

    Returns: array of that shape.

    Raises:
        ValueError: it does not broadcast.

    Example:
        >>> weft.lax.broadcast_like(1.0, wnp.zeros(2))
        Array([1., 1.], dtype=float32, weak_type=True)
    """
    return wnp.broadcast_to(wnp.asarray(arr), wnp.shape(like_arr))


def mulhi(x: NestedLike, y: NestedLike) -> Array:
    """The upper half of the bits of products of integers.

    Args:
        y: array of the dtype of x.

    Returns: array of the common shape, of that dtype.

    Raises:
        TypeError: dtypes differ, or are no integer dtypes.

    Source: Warren, "Hacker's delight", 8-2.

    Example:
        >>> weft.lax.mulhi(wnp.array([2**30], "int32"), wnp.array([8], "int32"))
        Array([2], dtype=int32)
    """
    x, y = wnp.asarray(x), wnp.asarray(y)
    if x.dtype != y.dtype or not wnp.issubdtype(x.dtype, wnp.integer):
        raise type_error(f"mulhi: x and y must have one integer dtype, got {x.dtype} and {y.dtype}")
    bits = wnp.iinfo(x.dtype).bits
    if bits < 32:  # the next wider dtype may not be there: JAX mode has no 64 bits unless x64 is on
        wide = wnp.dtype(f"{'int' if wnp.iinfo(x.dtype).min < 0 else 'uint'}{2 * bits}")
        return ((x.astype(wide) * y.astype(wide)) >> bits).astype(x.dtype)
    half, unsigned = bits // 2, f"uint{bits}"
    mask = wnp.asarray(2**half - 1, x.dtype)
    (a, b), (c, d) = ((v >> half, v & mask) for v in (x, y))
    # Of unsigned lower halves; the upper ones keep their sign.
    low = ((b.astype(unsigned) * d.astype(unsigned)) >> half).astype(x.dtype)
    middle = a * d + low
    upper = b * c + (middle & mask)
    return a * c + (middle >> half) + (upper >> half)


def ragged_dot(
    lhs: NestedLike,
    rhs: NestedLike,
    group_sizes: NestedLike,
    precision: Any = None,
    preferred_element_type: DTypeLike | None = None,
    group_offset: Array | None = None,
) -> Array:
    """Products of groups of rows, each with its own matrix.

    Args:
        lhs: array [m, k].
        rhs: array [groups, k, n].
        group_sizes: vector [groups] of integers: how many rows the groups have, one after the other. Rows after all of
            them give zeros.
        group_offset: must be None.

    Returns: array [m, n].

    Raises:
        ValueError: shapes do not fit.
        NotImplementedError: group_offset is given.

    Source: Gale et al., "MegaBlocks", 2022.

    Example:
        >>> weft.lax.ragged_dot(wnp.ones((3, 1)), wnp.array([[[1.0]], [[5.0]]]), wnp.array([1, 2]))
        Array([[1.],
               [5.],
               [5.]], dtype=float32)
    """
    if group_offset is not None:
        raise not_implemented("ragged_dot: group_offset")
    lhs, rhs, sizes = wnp.asarray(lhs), wnp.asarray(rhs), wnp.asarray(group_sizes)
    if lhs.ndim != 2 or rhs.ndim != 3 or sizes.shape != rhs.shape[:1] or lhs.shape[1] != rhs.shape[1]:
        raise value_error(
            f"ragged_dot: lhs, rhs and group_sizes must have the shapes (m, k), (groups, k, n) and (groups,), got "
            f"{lhs.shape}, {rhs.shape} and {sizes.shape}"
        )
    dtype = wnp.result_type(lhs, rhs) if preferred_element_type is None else preferred_element_type
    ends = wnp.cumsum(sizes)
    rows = wnp.arange(lhs.shape[0])
    total = wnp.zeros((lhs.shape[0], rhs.shape[2]), dtype)
    for g in range(rhs.shape[0]):
        mine = (rows >= ends[g] - sizes[g]) & (rows < ends[g])
        part = wnp.where(mine[:, None], lhs, 0)
        total = total + wnp.matmul(part, rhs[g], preferred_element_type=dtype)
    return total


_docs.complete(globals(), {})
