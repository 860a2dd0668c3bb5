"""The operations under weft.numpy: element-wise ones straight from the registry, and structured ones with explicit
shapes."""

from __future__ import annotations

from collections.abc import Sequence

from . import _weft
from ._weft import Array
from .control import cond, fori_loop, map, scan, switch, while_loop

__all__ = [
    "argmax",
    "argmin",
    "bitcast_convert_type",
    "broadcast",
    "broadcast_in_dim",
    "clamp",
    "collapse",
    "concatenate",
    "cond",
    "conv_general_dilated",
    "convert_element_type",
    "cumlogsumexp",
    "cummax",
    "cummin",
    "cumprod",
    "cumsum",
    "dot",
    "dot_general",
    "dynamic_index_in_dim",
    "dynamic_slice",
    "dynamic_slice_in_dim",
    "dynamic_update_index_in_dim",
    "dynamic_update_slice",
    "dynamic_update_slice_in_dim",
    "expand_dims",
    "fori_loop",
    "full",
    "full_like",
    "index_in_dim",
    "integer_pow",
    "iota",
    "broadcasted_iota",
    "map",
    "pad",
    "reduce_and",
    "reduce_max",
    "reduce_min",
    "reduce_or",
    "reduce_prod",
    "reduce_sum",
    "reshape",
    "rev",
    "round",
    "scan",
    "select",
    "slice",
    "slice_in_dim",
    "sort",
    "squeeze",
    "stop_gradient",
    "switch",
    "top_k",
    "transpose",
    "while_loop",
]

# Every element-wise primitive without attributes, under its own name.
_SPECIAL = {"select", "clamp", "integer_pow", "convert", "bitcast", "round", "stop_gradient", "abs"}
for _prim in _weft.primitives():
    if _prim["elementwise"] and _prim["num_operands"] in (1, 2, 3) and _prim["name"] not in _SPECIAL:
        _name = _prim["name"] + "_" if _prim["name"] in ("and", "or", "not", "is") else _prim["name"]
        globals()[_name] = _weft.elementwise(_prim["name"], _name, False)
        __all__.append(_name)
for _alias, _target in {
    "bitwise_and": "and_",
    "bitwise_or": "or_",
    "bitwise_xor": "xor",
    "bitwise_not": "not_",
    "bessel_i0e": "",
}.items():
    if _target in globals():
        globals()[_alias] = globals()[_target]
        __all__.append(_alias)
from builtins import slice as _slice  # noqa: E402


def abs(x) -> Array:
    """|x|."""
    return _weft.absolute(x)


def select(pred, on_true, on_false) -> Array:
    """on_true where pred holds, else on_false."""
    return _weft.where(pred, on_true, on_false)


def clamp(min, x, max) -> Array:
    """x limited to [min, max]."""
    return _weft.bind_elementwise("min", (_weft.bind_elementwise("max", (x, min), {}), max), {})


def integer_pow(x, y: int) -> Array:
    """x to a known whole power."""
    return _weft.bind_elementwise("integer_pow", (x,), {"y": y})


def convert_element_type(operand, new_dtype) -> Array:
    """Converted to a dtype."""
    return _weft.astype(operand, new_dtype)


def bitcast_convert_type(operand, new_dtype) -> Array:
    """The same bits as a dtype of the same width."""
    return _weft.bind("bitcast", [operand], {"dtype": _weft.dtype(new_dtype)})[0]


def round(x, rounding_method: str = "away") -> Array:
    """The nearest whole number; halves away from zero, or to "even"."""
    return _weft.bind_elementwise("round", (x,), {"mode": rounding_method})


def stop_gradient(x):
    """x, a constant for derivatives."""
    from .api import stop_gradient as stop

    return stop(x)


def full(shape, fill_value, dtype=None) -> Array:
    """An array full of a value."""
    return _weft.full(shape, fill_value, dtype)


def full_like(x, fill_value, dtype=None, shape=None) -> Array:
    """An array like x full of a value."""
    dims, own, _, _ = _weft.abstract(x)
    return _weft.full(dims if shape is None else shape, fill_value, own if dtype is None else dtype)


def iota(dtype, size: int) -> Array:
    """0, 1 ... size - 1."""
    return _weft.iota((size,), 0, dtype)


def broadcasted_iota(dtype, shape, dimension: int) -> Array:
    """Indices along one dimension of a shape."""
    return _weft.iota(tuple(shape), dimension, dtype)


def reshape(operand, new_sizes, dimensions=None) -> Array:
    """The same elements in another shape."""
    return _weft.reshape(operand if dimensions is None else _weft.transpose(operand, dimensions), new_sizes)


def transpose(operand, permutation) -> Array:
    """Dimensions in another order."""
    return _weft.transpose(operand, permutation)


def expand_dims(array, dimensions) -> Array:
    """New dimensions of size 1."""
    return _weft.expand_dims(array, dimensions)


def squeeze(array, dimensions) -> Array:
    """Without the given dimensions of size 1."""
    return _weft.squeeze(array, dimensions)


def collapse(operand, start_dimension: int, stop_dimension: int | None = None) -> Array:
    """Dimensions start ... stop - 1 made one."""
    shape = operand.shape
    stop = len(shape) if stop_dimension is None else stop_dimension
    n = 1
    for d in shape[start_dimension:stop]:
        n = n * d
    return _weft.reshape(operand, shape[:start_dimension] + (n,) + shape[stop:])


def broadcast(operand, sizes) -> Array:
    """New dimensions in front."""
    operand = _weft.array(operand, None, False)
    return _weft.broadcast_to(operand, tuple(sizes) + operand.shape)


def broadcast_in_dim(operand, shape, broadcast_dimensions) -> Array:
    """Dimension i becomes dimension broadcast_dimensions[i] of the shape, stretched if it has size 1."""
    return _weft.bind("broadcast", [operand], {"shape": tuple(shape), "dims": list(broadcast_dimensions)})[0]


def concatenate(operands, dimension: int) -> Array:
    """Joined along a dimension."""
    return _weft.concatenate(list(operands), dimension)


def rev(operand, dimensions) -> Array:
    """Reversed along dimensions."""
    return _weft.flip(operand, dimensions)


def pad(operand, padding_value, padding_config: Sequence[tuple[int, int, int]]) -> Array:
    """Widened by (low, high, interior) elements per dimension; negative low and high cut."""
    operand = _weft.array(operand, None, False)
    low, high, interior = ([c[i] for c in padding_config] for i in range(3))
    return _weft.bind(
        "pad", [operand, _weft.astype(padding_value, operand.dtype)], {"lo": low, "hi": high, "interior": interior}
    )[0]


def slice(operand, start_indices, limit_indices, strides=None) -> Array:
    """Elements start, start + stride ... below limit, per dimension."""
    return _weft.bind(
        "slice",
        [operand],
        {
            "start": list(start_indices),
            "limit": list(limit_indices),
            "strides": list(strides) if strides else [1] * len(start_indices),
        },
    )[0]


def slice_in_dim(operand, start_index, limit_index, stride: int = 1, axis: int = 0) -> Array:
    """A slice of one dimension."""
    axis = _weft.check_axis(axis, operand.ndim, "slice_in_dim")
    return operand[(_slice(None),) * axis + (_slice(start_index, limit_index, stride),)]


def index_in_dim(operand, index: int, axis: int = 0, keepdims: bool = True) -> Array:
    """One known index of a dimension."""
    axis = _weft.check_axis(axis, operand.ndim, "index_in_dim")
    out = operand[(_slice(None),) * axis + (index,)]
    return _weft.expand_dims(out, axis) if keepdims else out


def _starts(start_indices, shape) -> list:
    starts = (
        list(start_indices)
        if isinstance(start_indices, (tuple, list))
        else [start_indices[i] for i in range(start_indices.shape[0])]
    )
    # 32 bits, unless a size or a given position needs more: a position beyond 32 bits must not wrap into the array.
    starts = [_weft.array(start, None, False) for start in starts]
    wide = any(s.dtype in ("int64", "uint64", "uint32") for s in starts) or any(_beyond_int32(n) for n in shape)
    out = []
    for start, n in zip(starts, shape):
        if start.dtype == "uint64":
            start = _weft.where(start > 2**63 - 1, 2**63 - 1, start)
        negative = _weft.dtype_kind(start.dtype) == "signed"
        start = start.astype("int64" if wide else "int32")
        out.append(_weft.where(start < 0, start + n, start) if negative else start)
    return out


def _beyond_int32(n) -> bool:
    return isinstance(n, int) and n > 2**31 - 1


def dynamic_slice(operand, start_indices, slice_sizes) -> Array:
    """A slice of known size at a computed place, moved inside where it would stick out."""
    return _weft.bind("dynamic_slice", [operand, *_starts(start_indices, operand.shape)], {"sizes": list(slice_sizes)})[
        0
    ]


def dynamic_update_slice(operand, update, start_indices) -> Array:
    """The array with a block replaced at a computed place, moved inside where it would stick out."""
    update = _weft.astype(update, operand.dtype)
    return _weft.bind("dynamic_update_slice", [operand, update, *_starts(start_indices, operand.shape)], {})[0]


def dynamic_slice_in_dim(operand, start_index, slice_size: int, axis: int = 0) -> Array:
    """dynamic_slice of one dimension."""
    axis = _weft.check_axis(axis, operand.ndim, "dynamic_slice_in_dim")
    return dynamic_slice(
        operand,
        [start_index if d == axis else 0 for d in range(operand.ndim)],
        [slice_size if d == axis else n for d, n in enumerate(operand.shape)],
    )


def dynamic_index_in_dim(operand, index, axis: int = 0, keepdims: bool = True) -> Array:
    """One computed index of a dimension."""
    out = dynamic_slice_in_dim(operand, index, 1, axis)
    return out if keepdims else _weft.squeeze(out, axis)


def dynamic_update_slice_in_dim(operand, update, start_index, axis: int) -> Array:
    """dynamic_update_slice of one dimension."""
    axis = _weft.check_axis(axis, operand.ndim, "dynamic_update_slice_in_dim")
    return dynamic_update_slice(operand, update, [start_index if d == axis else 0 for d in range(operand.ndim)])


def dynamic_update_index_in_dim(operand, update, index, axis: int) -> Array:
    """One computed index of a dimension replaced."""
    update = _weft.array(update, None, False)
    if update.ndim != operand.ndim:
        update = _weft.expand_dims(update, _weft.check_axis(axis, operand.ndim, "dynamic_update_index_in_dim"))
    return dynamic_update_slice_in_dim(operand, update, index, axis)


def dot(lhs, rhs) -> Array:
    """The product of vectors and matrices."""
    return _weft.dot(lhs, rhs)


def dot_general(lhs, rhs, dimension_numbers, precision=None, preferred_element_type=None) -> Array:
    """The sum over pairs of contracting dimensions, for each pair of batch dimensions:
    dimension_numbers = ((lhs contracting, rhs contracting), (lhs batch, rhs batch))."""
    del precision
    (lc, rc), (lb, rb) = dimension_numbers
    letters = iter("abcdefghijklmnopqrstuvwxyz")
    x, y = [""] * lhs.ndim, [""] * rhs.ndim
    batch = ""
    for i, j in zip(lb, rb):
        x[i] = y[j] = next(letters)
        batch += x[i]
    for i, j in zip(lc, rc):
        x[i] = y[j] = next(letters)
    free_x = free_y = ""
    for i, c in enumerate(x):
        if not c:
            x[i] = next(letters)
            free_x += x[i]
    for i, c in enumerate(y):
        if not c:
            y[i] = next(letters)
            free_y += y[i]
    out = _weft.einsum(f"{''.join(x)},{''.join(y)}->{batch}{free_x}{free_y}", [lhs, rhs])
    return out if preferred_element_type is None else out.astype(preferred_element_type)


def conv_general_dilated(
    lhs,
    rhs,
    window_strides,
    padding,
    lhs_dilation=None,
    rhs_dilation=None,
    dimension_numbers=None,
    feature_group_count: int = 1,
    batch_group_count: int = 1,
) -> Array:
    """Convolution of any number of spatial dimensions. padding: "SAME", "VALID" or pairs; dimension_numbers: None
    (NCHW, OIHW,
    NCHW) or three strings such as ("NHWC", "HWIO", "NHWC")."""
    n = lhs.ndim - 2
    back = None
    if dimension_numbers is not None:
        spec_l, spec_r, spec_o = dimension_numbers
        spatial = [c for c in spec_l if c not in "NC"]
        lhs = _weft.transpose(lhs, [spec_l.index(c) for c in ["N", "C", *spatial]])
        rhs = _weft.transpose(rhs, [spec_r.index(c) for c in ["O", "I", *spatial]])
        canonical = ["N", "C", *spatial]
        back = [canonical.index(c) for c in spec_o]
    strides, ld, rd = list(window_strides), list(lhs_dilation or [1] * n), list(rhs_dilation or [1] * n)
    if isinstance(padding, str):
        pairs = []
        for i in range(n):
            size, kernel = (lhs.shape[2 + i] - 1) * ld[i] + 1, (rhs.shape[2 + i] - 1) * rd[i] + 1
            total = 0
            if padding.upper() == "SAME":
                total = builtins_max((-(-size // strides[i]) - 1) * strides[i] + kernel - size, 0)
            elif padding.upper() != "VALID":
                raise ValueError(f"conv_general_dilated: padding must be 'SAME', 'VALID' or pairs, got {padding!r}")
            pairs.append((total // 2, total - total // 2))
        padding = pairs
    dtype = _weft.result_type(lhs, rhs)
    out = _weft.bind(
        "conv",
        [lhs.astype(dtype), rhs.astype(dtype)],
        {
            "strides": strides,
            "lo": [p[0] for p in padding],
            "hi": [p[1] for p in padding],
            "lhs_dilation": ld,
            "rhs_dilation": rd,
            "feature_groups": feature_group_count,
            "batch_groups": batch_group_count,
        },
    )[0]
    return out if back is None else _weft.transpose(out, back)


from builtins import max as builtins_max  # noqa: E402


def _reduction(name: str):
    def reduction(operand, axes) -> Array:
        return _weft.bind(name, [operand], {"dims": [_weft.check_axis(a, operand.ndim, name) for a in axes]})[0]

    reduction.__name__ = reduction.__qualname__ = name
    reduction.__doc__ = f"{name[7:]} over axes."
    return reduction


reduce_sum, reduce_prod, reduce_max = _reduction("reduce_sum"), _reduction("reduce_prod"), _reduction("reduce_max")
reduce_min, reduce_and, reduce_or = _reduction("reduce_min"), _reduction("reduce_and"), _reduction("reduce_or")


def _cumulative(name: str):
    def cumulative(operand, axis: int = 0, reverse: bool = False) -> Array:
        return _weft.cumulative(name, operand, axis, reverse)

    cumulative.__name__ = cumulative.__qualname__ = name
    cumulative.__doc__ = f"{name} along an axis."
    return cumulative


cumsum, cumprod, cummax = _cumulative("cumsum"), _cumulative("cumprod"), _cumulative("cummax")
cummin, cumlogsumexp = _cumulative("cummin"), _cumulative("cumlogsumexp")


def argmax(operand, axis: int, index_dtype="int32") -> Array:
    """The index of the first largest element along an axis."""
    return _weft.argreduce("argmax", operand, axis, False).astype(index_dtype)


def argmin(operand, axis: int, index_dtype="int32") -> Array:
    """The index of the first smallest element along an axis."""
    return _weft.argreduce("argmin", operand, axis, False).astype(index_dtype)


def sort(operand, dimension: int = -1, num_keys: int = 1):
    """Sorted along a dimension; several arrays are sorted together by the first num_keys."""
    many = isinstance(operand, (tuple, list))
    operands = list(operand) if many else [operand]
    out = _weft.bind(
        "sort", operands, {"dim": _weft.check_axis(dimension, operands[0].ndim, "sort"), "num_keys": num_keys}
    )
    return tuple(out) if many else out[0]


def top_k(operand, k: int):
    """The k largest elements of the last dimension, in order, and their indices."""
    return tuple(_weft.bind("top_k", [operand], {"k": k}))
