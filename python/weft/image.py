"""Images of other sizes."""

from __future__ import annotations

import enum
import math
from collections.abc import Callable, Sequence
from typing import Any

from . import _weft
from . import numpy as wnp
from ._core import docs as _docs
from ._core.errors import is_one_of, value_error
from ._weft import Array
from .arguments import integer, is_integer
from .typing import NestedLike, Shape

__all__ = ["ResizeMethod", "resize", "scale_and_translate"]


class ResizeMethod(enum.Enum):
    """How an image is made larger or smaller.

    Example:
        >>> weft.image.ResizeMethod.from_string("bilinear")
        <ResizeMethod.LINEAR: 1>
    """

    NEAREST = 0
    LINEAR = 1
    LANCZOS3 = 2
    LANCZOS5 = 3
    CUBIC = 4
    CUBIC_PYTORCH = 5
    AREA = 6

    @staticmethod
    def from_string(s: str) -> ResizeMethod:
        """The method of a name.

        Args:
            s: "nearest", "linear" ("bilinear", "trilinear", "triangle"), "cubic" ("bicubic", "tricubic"),
                "cubic-pytorch" ("bicubic-pytorch"), "lanczos3", "lanczos5" or "area".

        Returns: the method.
        """
        if not is_one_of(s, _NAMES):
            raise value_error(f"ResizeMethod: there is no method {s!r}; the methods are {', '.join(_NAMES)}")
        return _NAMES[s]


_NAMES = {
    "nearest": ResizeMethod.NEAREST,
    **dict.fromkeys(("linear", "bilinear", "trilinear", "triangle"), ResizeMethod.LINEAR),
    **dict.fromkeys(("cubic", "bicubic", "tricubic"), ResizeMethod.CUBIC),
    **dict.fromkeys(("cubic-pytorch", "bicubic-pytorch"), ResizeMethod.CUBIC_PYTORCH),
    "area": ResizeMethod.AREA,
    "lanczos3": ResizeMethod.LANCZOS3,
    "lanczos5": ResizeMethod.LANCZOS5,
}


def _lanczos(radius: float) -> Callable[[Array], Array]:
    def kernel(x: Array) -> Array:
        inside = x <= radius
        y = wnp.where(inside & (x > 1e-3), x, 0.5)
        value = radius * wnp.sin(math.pi * y) * wnp.sin(math.pi * y / radius) / (math.pi * y) ** 2
        return wnp.where(x > 1e-3, wnp.where(inside, value, 0), 1)

    return kernel


def _keys_cubic(x: Array) -> Array:
    near = ((1.5 * x - 2.5) * x) * x + 1
    far = ((-0.5 * x + 2.5) * x - 4) * x + 2
    return wnp.where(x >= 2, 0, wnp.where(x >= 1, far, near))


def _pytorch_cubic(x: Array) -> Array:
    near = (1.25 * x - 2.25) * x * x + 1
    far = ((-0.75 * x + 3.75) * x - 6) * x + 3
    return wnp.where(x >= 2, 0, wnp.where(x >= 1, far, near))


_KERNELS: dict[ResizeMethod, Callable[[Array], Array]] = {
    ResizeMethod.LINEAR: lambda x: wnp.maximum(0, 1 - x),
    ResizeMethod.CUBIC: _keys_cubic,
    ResizeMethod.CUBIC_PYTORCH: _pytorch_cubic,
    ResizeMethod.LANCZOS3: _lanczos(3.0),
    ResizeMethod.LANCZOS5: _lanczos(5.0),
}


def _weights(old: int, new: int, scale, translation, method: ResizeMethod, antialias: bool, dtype) -> Array:
    """The matrix [old, new] of what each new element takes from the old ones."""
    inverse = 1 / scale
    width = wnp.maximum(inverse, 1) if antialias else wnp.ones((), dtype)
    place = (wnp.arange(new).astype(dtype) + 0.5) * inverse - translation * inverse - 0.5
    # Beyond its edges an image goes on with them.
    beyond = 2 if method == ResizeMethod.CUBIC_PYTORCH else 0
    if method == ResizeMethod.AREA:
        start = (wnp.arange(new).astype(dtype) * inverse - translation * inverse)[None, :]
        own = wnp.arange(old).astype(dtype)[:, None]
        weights = wnp.maximum(0, wnp.minimum(start + inverse, own + 1) - wnp.maximum(start, own))
    else:
        apart = wnp.abs(place[None, :] - wnp.arange(-beyond, old + beyond).astype(dtype)[:, None]) / width
        weights = _KERNELS[method](apart)
    if beyond:
        edges = [wnp.sum(weights[: beyond + 1], 0, keepdims=True), wnp.sum(weights[-beyond - 1 :], 0, keepdims=True)]
        weights = (
            wnp.sum(weights, 0, keepdims=True)
            if old == 1
            else wnp.concatenate([edges[0], weights[beyond + 1 : -beyond - 1], edges[1]])
        )
    total = wnp.sum(weights, 0, keepdims=True)
    counts = wnp.abs(total) > 1000 * float(wnp.finfo(dtype).eps)
    weights = wnp.where(counts, weights / wnp.where(counts, total, 1), 0)
    if beyond:
        return weights.astype(dtype)
    # Outside of the image there is nothing.
    inside = (place >= -0.5) & (place <= old - 0.5)
    return wnp.where(inside[None, :], weights, 0).astype(dtype)


def _real(x: Array) -> Any:
    """The dtype of places in an image, which are real."""
    return wnp.finfo(x.dtype).dtype


def _inexact(image: NestedLike) -> Array:
    return _weft.promote_inexact(wnp.asarray(image))


def _scaled(x: Array, shape, dims, scales, translations, method: ResizeMethod, antialias: bool) -> Array:
    if method == ResizeMethod.CUBIC_PYTORCH and antialias:
        method = ResizeMethod.CUBIC
    for d, scale, translation in zip(dims, scales, translations):
        weights = _weights(x.shape[d], shape[d], scale, translation, method, antialias, _real(x)).astype(x.dtype)
        x = wnp.moveaxis(wnp.tensordot(x, weights, ((d,), (0,))), -1, d)
    return x


def scale_and_translate(
    image: NestedLike,
    shape: Shape,
    spatial_dims: Sequence[int],
    scale: NestedLike,
    translation: NestedLike,
    method: str | ResizeMethod,
    antialias: bool = True,
    precision: Any = None,
) -> Array:
    """An image that is made larger or smaller, and moved: what was at x is at x scale + translation.

    Args:
        image: array.
        shape: the shape of the result; what is beyond the image is 0.
        spatial_dims: the dimensions that change.
        scale: vector: the factor of each of them.
        translation: vector: by how many elements of the result each of them is moved.
        method: "linear", "cubic", "lanczos3" or "lanczos5" (or as ResizeMethod), "area", the mean over what an element
            covers, or "cubic-pytorch", which without antialias is PyTorch's and goes on beyond edges with them.
        antialias: whether the kernel is as wide as elements of the result, where the image is made smaller.

    Returns: array of the shape, of a float dtype.

    Raises:
        ValueError: the method is "nearest" or none of these, or shapes do not fit.

    Source: Keys, "Cubic convolution interpolation for digital image processing", 1981; Duchon, "Lanczos filtering in
        one and two dimensions", 1979.

    Example:
        >>> weft.image.scale_and_translate(
        ...     wnp.array([1.0, 2.0, 3.0]), (3,), (0,), wnp.array([1.0]), wnp.array([1.0]), "linear")
        Array([0., 1., 2.], dtype=float32)
    """
    x = _inexact(image)
    if len(shape) != x.ndim:
        raise value_error(f"scale_and_translate: shape must have {x.ndim} dimensions, got {tuple(shape)}")
    chosen = method if isinstance(method, ResizeMethod) else ResizeMethod.from_string(method)
    if chosen == ResizeMethod.NEAREST:
        raise value_error("scale_and_translate: method must not be 'nearest'")
    dims = [_weft.check_axis(d, x.ndim, "scale_and_translate") for d in spatial_dims]
    scale, translation = wnp.asarray(scale, _real(x)), wnp.asarray(translation, _real(x))
    if scale.shape != (len(dims),) or translation.shape != (len(dims),):
        raise value_error(
            f"scale_and_translate: scale and translation must have {len(dims)} elements, one a dimension, got shapes "
            f"{scale.shape} and {translation.shape}"
        )
    for d in range(x.ndim):
        if d not in dims and shape[d] != x.shape[d]:
            raise value_error(f"scale_and_translate: dimension {d} is not in spatial_dims, but changes its size")
    scales, translations = ([v[i] for i in range(len(dims))] for v in (scale, translation))
    return _scaled(x, shape, dims, scales, translations, chosen, antialias)


def resize(
    image: NestedLike,
    shape: int | Shape,
    method: str | ResizeMethod,
    antialias: bool = True,
    precision: Any = None,
) -> Array:
    """An image of another size.

    Args:
        image: array.
        shape: the shape of the result, of as many dimensions.
        method: "nearest", "linear", "cubic", "lanczos3" or "lanczos5" (or as ResizeMethod), "area", the mean over what
            an element covers, or "cubic-pytorch", which without antialias is PyTorch's and goes on beyond edges with
            them.
        antialias: whether the kernel is as wide as elements of the result, where the image is made smaller.

    Returns: array of the shape, of a float dtype; of the dtype of the image for "nearest".

    Raises:
        ValueError: there is no such method, or the number of dimensions differs.

    Source: as of scale_and_translate.

    Example:
        >>> weft.image.resize(wnp.array([1.0, 2.0, 4.0]), (6,), "linear")
        Array([1.  , 1.25, 1.75, 2.5 , 3.5 , 4.  ], dtype=float32)
    """
    chosen = method if isinstance(method, ResizeMethod) else ResizeMethod.from_string(method)
    x = wnp.asarray(image)
    shape = tuple(integer(n, "resize: shape") for n in ([shape] if is_integer(shape) else shape))
    if len(shape) != x.ndim:
        raise value_error(f"resize: shape must have {x.ndim} dimensions, got {tuple(shape)}")
    dims = [d for d in range(x.ndim) if shape[d] != x.shape[d]]
    if chosen == ResizeMethod.NEAREST:
        for d in dims:
            place = (wnp.arange(shape[d]).astype("float32") + 0.5) * (int(x.shape[d]) / int(shape[d]))
            x = wnp.take(x, wnp.floor(place).astype("int32"), d)
        return x
    x = _inexact(x)
    real = _real(x)
    scales = [wnp.asarray(1.0 if x.shape[d] == 0 else int(shape[d]) / int(x.shape[d]), real) for d in dims]
    return _scaled(x, shape, dims, scales, [wnp.zeros((), real)] * len(dims), chosen, antialias)


_docs.complete(globals(), {})
