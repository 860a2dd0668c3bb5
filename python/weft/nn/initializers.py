"""Initialisers of the weights of networks: each gives a function (key, shape, dtype) -> array.

Fans follow JAX: the last two axes of a shape are in and out, those before them count in both.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from .. import _weft, random
from .. import numpy as wnp
from .._core.errors import is_one_of, value_error
from .._weft import Array
from ..arguments import is_integer
from ..numpy._out_sharding import lying
from ..typing import DTypeLike, NestedLike, Shape

__all__ = [
    "constant",
    "delta_orthogonal",
    "glorot_normal",
    "glorot_uniform",
    "he_normal",
    "he_uniform",
    "kaiming_normal",
    "kaiming_uniform",
    "lecun_normal",
    "lecun_uniform",
    "normal",
    "ones",
    "orthogonal",
    "truncated_normal",
    "uniform",
    "variance_scaling",
    "xavier_normal",
    "xavier_uniform",
    "zeros",
]


def zeros(key: NestedLike, shape: Shape, dtype: DTypeLike = float) -> Array:
    """Zeros.

    Args:
        key: accepted, without effect.
        shape: the shape of the array.
        dtype: the dtype of the array; float: the default float dtype.

    Returns: array.

    Example:
        >>> weft.nn.initializers.zeros(weft.random.key(0), (2,))
        Array([0., 0.], dtype=float32)
    """
    del key
    return wnp.zeros(shape, dtype)


def ones(key: NestedLike, shape: Shape, dtype: DTypeLike = float) -> Array:
    """Ones.

    Args:
        key: accepted, without effect.
        shape: the shape of the array.
        dtype: the dtype of the array; float: the default float dtype.

    Returns: array.

    Example:
        >>> weft.nn.initializers.ones(weft.random.key(0), (2,))
        Array([1., 1.], dtype=float32)
    """
    del key
    return wnp.ones(shape, dtype)


def _times(numbers: Array, factor: Array | float) -> Array:
    """The numbers times a factor, in their dtype: a NumPy number would make wider ones of them."""
    return numbers * wnp.asarray(factor, numbers.dtype)


def _lying(init: Callable[..., Array]) -> Callable[..., Array]:
    """The initializer, whose caller may say how the result is cut over a mesh."""

    def init_lying(key: Any, shape: Any, *dtype: Any, out_sharding: Any = None, **named: Any) -> Array:
        if out_sharding is None:
            return init(key, shape, *dtype, **named)
        return lying(out_sharding, init, key, shape, *dtype, **named)

    return init_lying


def constant(value: NestedLike, dtype: DTypeLike = float) -> Callable[..., Array]:
    """An initialiser of one value.

    Args:
        value: the value.
        dtype: the dtype of the arrays, unless one is given to the initialiser.

    Returns: function (key, shape, dtype) -> array.

    Example:
        >>> weft.nn.initializers.constant(3.0)(weft.random.key(0), (2,))
        Array([3., 3.], dtype=float32)
    """
    return _lying(lambda key, shape, dtype=dtype: wnp.full(shape, value, float if dtype is None else dtype))


def normal(stddev: Array | float = 1e-2, dtype: DTypeLike = float) -> Callable[..., Array]:
    """An initialiser of normal numbers.

    Args:
        stddev: their standard deviation.
        dtype: the dtype of the arrays, unless one is given to the initialiser.

    Returns: function (key, shape, dtype) -> array.

    Example:
        >>> weft.nn.initializers.normal(0.1)(weft.random.key(0), (2, 3)).shape
        (2, 3)
    """
    return _lying(lambda key, shape, dtype=dtype: _times(random.normal(key, shape, dtype), stddev))


def uniform(scale: Array | float = 1e-2, dtype: DTypeLike = float) -> Callable[..., Array]:
    """An initialiser of numbers uniform in [0, scale).

    Args:
        scale: the upper end.
        dtype: the dtype of the arrays, unless one is given to the initialiser.

    Returns: function (key, shape, dtype) -> array.

    Example:
        >>> weft.nn.initializers.uniform(0.1)(weft.random.key(0), (2, 3)).shape
        (2, 3)
    """
    return _lying(lambda key, shape, dtype=dtype: _times(random.uniform(key, shape, dtype), scale))


def truncated_normal(
    stddev: Array | float = 1e-2, dtype: DTypeLike = float, lower: NestedLike = -2.0, upper: NestedLike = 2.0
) -> Callable[..., Array]:
    """An initialiser of normal numbers limited to an interval, then multiplied.

    Args:
        stddev: what they are multiplied with.
        dtype: the dtype of the arrays, unless one is given to the initialiser.
        lower: the lower end.
        upper: the upper end.

    Returns: function (key, shape, dtype) -> array.

    Example:
        >>> weft.nn.initializers.truncated_normal(0.1)(weft.random.key(0), (2, 3)).shape
        (2, 3)
    """
    return _lying(
        lambda key, shape, dtype=dtype: _times(random.truncated_normal(key, lower, upper, shape, dtype), stddev)
    )


def orthogonal(scale: Array | float = 1.0, column_axis: int = -1, dtype: DTypeLike = float) -> Callable[..., Array]:
    """An initialiser of matrices with orthonormal rows or columns (whichever are fewer).

    Args:
        scale: what they are multiplied with.
        column_axis: the axis of a shape that counts columns; the others are rows together.
        dtype: the dtype of the arrays, unless one is given to the initialiser.

    Returns: function (key, shape, dtype) -> array.

    Source: Saxe et al., "Exact solutions to the nonlinear dynamics of learning in deep linear neural networks", 2014.

    Example:
        >>> q = weft.nn.initializers.orthogonal()(weft.random.key(0), (3, 3))
        >>> bool(wnp.allclose(q @ q.T, wnp.eye(3), atol=1e-5))
        True
    """

    def init(key, shape, dtype=dtype):
        if len(shape) < 2:
            raise value_error(f"nn.initializers.orthogonal: shape is {tuple(shape)}; expected at least two dimensions")
        columns = shape[column_axis]
        rows = math.prod(n for d, n in enumerate(shape) if d != column_axis % len(shape))
        q = random.orthogonal(key, rows, (), dtype, columns)
        rest = tuple(n for d, n in enumerate(shape) if d != column_axis % len(shape))
        return _times(wnp.moveaxis(q.reshape((*rest, columns)), -1, column_axis), scale)

    return _lying(init)


def delta_orthogonal(scale: float = 1.0, column_axis: int = -1, dtype: DTypeLike = float) -> Callable[..., Array]:
    """An initialiser of kernels of convolutions: an orthogonal matrix at the middle place, zeros elsewhere.

    Args:
        scale: what it is multiplied by.
        column_axis: the axis of the matrix that counts columns.
        dtype: the dtype of the arrays, unless one is given to the initialiser.

    Returns: function (key, shape, dtype) -> array, for shapes [places ..., inputs, outputs] of one to three dimensions
        of places.

    Raises:
        ValueError: when called: the shape has fewer than three or more than five dimensions, or more inputs than
            outputs.

    Source: Xiao et al., "Dynamical isometry and a mean field theory of CNNs", 2018.

    Example:
        >>> weft.nn.initializers.delta_orthogonal()(weft.random.key(0), (3, 2, 2))[0]
        Array([[0., 0.],
               [0., 0.]], dtype=float32)
    """

    def init(key, shape, dtype=dtype):
        if not 3 <= len(shape) <= 5:
            raise value_error(f"delta_orthogonal: three to five dimensions are needed, got shape {shape}")
        if shape[-1] < shape[-2]:
            raise value_error(f"delta_orthogonal: no more inputs than outputs are possible, got shape {shape}")
        matrix = orthogonal(scale, column_axis, dtype)(key, shape[-2:])
        middle = tuple((n - 1) // 2 for n in shape[:-2])
        return wnp.zeros(shape, dtype).at[middle].set(matrix)

    return _lying(init)


def _polar(key, shape, dtype, radius: Callable[[Array], Array]) -> Array:
    """Complex numbers of uniform angle, whose distance from 0 is a function of a uniform number."""
    k1, k2 = random.split(key)
    part = wnp.finfo(dtype).dtype
    angle = (2 * math.pi) * random.uniform(k2, shape, part)
    r = radius(random.uniform(k1, shape, part))
    return wnp.asarray(r, dtype) * wnp.exp(1j * angle.astype(dtype))


# Distribution -> what draws, a factor of the variance, and the deviation of what is drawn times the factor's root.
# That of a normal number limited to [-2, 2] is 0.8796..., and of a complex one within 2 it is 0.9531...
_DISTRIBUTIONS: dict[str, tuple[Callable[..., Array], int, float]] = {
    "normal": (lambda key, shape, dtype: random.normal(key, shape, dtype), 1, 1.0),
    "uniform": (lambda key, shape, dtype: random.uniform(key, shape, dtype, -1.0), 3, 1.0),
    "truncated_normal": (
        lambda key, shape, dtype: random.truncated_normal(key, -2.0, 2.0, shape, dtype),
        1,
        0.87962566103423978,
    ),
}
_COMPLEX_DISTRIBUTIONS: dict[str, tuple[Callable[..., Array], int, float]] = {
    "normal": _DISTRIBUTIONS["normal"],
    "uniform": (lambda key, shape, dtype: _polar(key, shape, dtype, lambda u: wnp.sqrt(2 * u)), 1, 1.0),
    "truncated_normal": (
        lambda key, shape, dtype: _polar(key, shape, dtype, lambda u: wnp.sqrt(-wnp.log1p((math.exp(-4) - 1) * u))),
        1,
        0.95311164380491208,
    ),
}


def variance_scaling(
    scale: float,
    mode: str,
    distribution: str,
    in_axis: int | Sequence[int] = -2,
    out_axis: int | Sequence[int] = -1,
    batch_axis: int | Sequence[int] = (),
    dtype: DTypeLike = float,
) -> Callable[..., Array]:
    """An initialiser of random numbers whose variance is scale / n, where n counts the inputs or outputs of a layer.

    Args:
        scale: the factor.
        mode: what n is: "fan_in", "fan_out", their mean "fan_avg" or their geometric mean "fan_geo_avg".
        distribution: "normal", "uniform" or "truncated_normal" (limited to two deviations, with the variance
            corrected).
        in_axis: the axis or axes of a shape that are inputs.
        out_axis: the axis or axes that are outputs; axes of neither count in both, and one
            of both once.
        batch_axis: the axis or axes that count in neither.
        dtype: the dtype of the arrays, unless one is given to the initialiser.

    Returns: function (key, shape, dtype) -> array.

    Raises:
        ValueError: when called: the shape has fewer than two dimensions and in_axis is not given, or there is no such
            mode or distribution.

    Source: He et al., "Delving deep into rectifiers", 2015.

    Example:
        >>> weft.nn.initializers.variance_scaling(1.0, "fan_in", "normal")(weft.random.key(0), (3, 5)).shape
        (3, 5)
    """

    def size(shape, axes) -> int:
        return math.prod(shape[d] for d in ((axes,) if is_integer(axes) else axes))

    def init(key, shape, dtype=dtype):
        rank = len(shape)
        if rank <= 1 and is_integer(in_axis) and in_axis == -2:
            raise value_error(
                f"variance_scaling: two dimensions or more are needed, or an in_axis of the shape's, got shape {shape}"
            )
        inside, outside = size(shape, in_axis), size(shape, out_axis)
        # Where an axis is of both this is no whole number, and less than 1.
        receptive = math.prod(shape) / inside / outside / size(shape, batch_axis)
        fan_in, fan_out = inside * receptive, outside * receptive
        fans = {
            "fan_in": fan_in,
            "fan_out": fan_out,
            "fan_avg": (fan_in + fan_out) / 2,
            "fan_geo_avg": (fan_in * fan_out) ** 0.5,
        }
        if not is_one_of(mode, fans):
            raise value_error(f"variance_scaling: there is no mode {mode!r}; the modes are {', '.join(fans)}")
        if not is_one_of(distribution, _DISTRIBUTIONS):
            raise value_error(
                f"variance_scaling: there is no distribution {distribution!r}; there are {', '.join(_DISTRIBUTIONS)}"
            )
        draw, factor, deviation = _DISTRIBUTIONS[distribution]
        dtype = _weft.dtype(float if dtype is None else dtype)
        if wnp.issubdtype(dtype, wnp.complexfloating):
            draw, factor, deviation = _COMPLEX_DISTRIBUTIONS[distribution]
        variance = wnp.asarray(scale / fans[mode], dtype)
        return draw(key, shape, dtype) * (wnp.sqrt(factor * variance) / wnp.asarray(deviation, dtype))

    return _lying(init)


def _scaled(name: str, scale: float, mode: str, distribution: str, source: str) -> Callable[..., Callable[..., Array]]:
    def initializer(
        in_axis: int | Sequence[int] = -2,
        out_axis: int | Sequence[int] = -1,
        batch_axis: int | Sequence[int] = (),
        dtype: DTypeLike = float,
    ) -> Callable[..., Array]:
        return variance_scaling(scale, mode, distribution, in_axis, out_axis, batch_axis, dtype)

    initializer.__name__ = initializer.__qualname__ = name
    kind = "uniform" if distribution == "uniform" else "truncated normal"
    initializer.__doc__ = f"""An initialiser of {kind} numbers with variance {scale:g} / {mode}: see variance_scaling.

    Args:
        in_axis: the axis or axes of a shape that are inputs.
        out_axis: the axis or axes that are outputs.
        batch_axis: the axis or axes that count in neither.
        dtype: the dtype of the arrays, unless one is given to the initialiser.

    Returns: function (key, shape, dtype) -> array.

    Raises:
        ValueError: when called: the shape has fewer than two dimensions.

    Source: {source}.

    Example:
        >>> weft.nn.initializers.{name}()(weft.random.key(0), (3, 5)).shape
        (3, 5)
    """
    return initializer


_GLOROT = 'Glorot and Bengio, "Understanding the difficulty of training deep feedforward neural networks", 2010'
_HE = 'He et al., "Delving deep into rectifiers", 2015'
_LECUN = 'LeCun et al., "Efficient backprop", 1998'

glorot_uniform = _scaled("glorot_uniform", 1.0, "fan_avg", "uniform", _GLOROT)
glorot_normal = _scaled("glorot_normal", 1.0, "fan_avg", "truncated_normal", _GLOROT)
he_uniform = _scaled("he_uniform", 2.0, "fan_in", "uniform", _HE)
he_normal = _scaled("he_normal", 2.0, "fan_in", "truncated_normal", _HE)
lecun_uniform = _scaled("lecun_uniform", 1.0, "fan_in", "uniform", _LECUN)
lecun_normal = _scaled("lecun_normal", 1.0, "fan_in", "truncated_normal", _LECUN)
xavier_uniform, xavier_normal = glorot_uniform, glorot_normal
kaiming_uniform, kaiming_normal = he_uniform, he_normal
