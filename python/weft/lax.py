"""The operations under weft.numpy: element-wise ones straight from the registry, and structured ones with explicit
shapes."""

from __future__ import annotations

import enum
import itertools
from collections.abc import Callable, Sequence
from typing import Any

from . import _weft
from . import tree as _tree
from ._weft import Array
from .control import cond, fori_loop, map, scan, switch, while_loop

__all__ = [
    "associative_scan",
    "batch_matmul",
    "broadcast_shapes",
    "broadcast_to_rank",
    "conv",
    "conv_transpose",
    "conv_with_general_padding",
    "dtype",
    "linalg",
    "reciprocal",
    "reduce",
    "reduce_precision",
    "reduce_window",
    "select_n",
    "sort_key_val",
    "split",
    "tile",
    "RoundingMethod",
    "approx_max_k",
    "approx_min_k",
    "Precision",
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


class RoundingMethod(enum.IntEnum):
    """How round treats halves."""

    AWAY_FROM_ZERO = 0
    TO_NEAREST_EVEN = 1


class Precision(enum.Enum):
    """Accepted where JAX takes it; products are computed in the precision of their operands."""

    DEFAULT = 0
    HIGH = 1
    HIGHEST = 2


def round(x, rounding_method: RoundingMethod | str = RoundingMethod.AWAY_FROM_ZERO) -> Array:
    """The nearest whole number; halves away from zero, or to even."""
    mode = rounding_method
    if isinstance(mode, int):
        mode = "even" if mode == RoundingMethod.TO_NEAREST_EVEN else "away"
    return _weft.bind_elementwise("round", (x,), {"mode": mode})


def reciprocal(x) -> Array:
    """1 / x."""
    return integer_pow(x, -1)


def select_n(which, *cases) -> Array:
    """For each element the case that `which` (boolean or integer) numbers; with a boolean the first is for False."""
    which = _weft.array(which, None, False)
    if not cases:
        raise ValueError("select_n: no cases")
    if _weft.dtype_kind(which.dtype) == "bool":
        if len(cases) > 2:
            raise TypeError(f"select_n: a boolean chooses between two cases, got {len(cases)}")
        return _weft.where(which, cases[1], cases[0]) if len(cases) == 2 else _weft.array(cases[0], None, False)
    out = cases[-1]
    for i in reversed(range(len(cases) - 1)):
        out = _weft.where(which <= i, cases[i], out)
    return _weft.array(out, None, False)


def reduce_precision(operand, exponent_bits: int, mantissa_bits: int) -> Array:
    """The operand rounded to a format that Weft has: (5, 10) is float16, (8, 7) bfloat16, (8, 23) float32."""
    kinds = {(5, 10): "float16", (8, 7): "bfloat16", (8, 23): "float32", (11, 52): "float64"}
    if (exponent_bits, mantissa_bits) not in kinds:
        raise NotImplementedError(f"reduce_precision: no dtype with {exponent_bits} + {mantissa_bits} bits")
    operand = _weft.array(operand, None, False)
    return operand.astype(kinds[exponent_bits, mantissa_bits]).astype(operand.dtype)


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


def approx_max_k(operand, k: int, reduction_dimension: int = -1, **_):
    """The k largest elements along a dimension (exactly) and their indices."""
    operand = _weft.moveaxis(_weft.array(operand, None, False), reduction_dimension, -1)
    return [_weft.moveaxis(x, -1, reduction_dimension) for x in top_k(operand, k)]


def approx_min_k(operand, k: int, reduction_dimension: int = -1, **_):
    """The k smallest elements along a dimension (exactly) and their indices."""
    values, places = approx_max_k(-_weft.array(operand, None, False), k, reduction_dimension)
    return [-values, places]


def sort_key_val(keys, values, dimension: int = -1, is_stable: bool = True):
    """Keys sorted, and values in the same order."""
    del is_stable
    return sort((keys, values), dimension, 1)


def split(operand, sizes: Sequence[int], axis: int = 0) -> list[Array]:
    """Parts of the given sizes along an axis, which they fill."""
    operand = _weft.array(operand, None, False)
    axis = _weft.check_axis(axis, operand.ndim, "split")
    if sum(sizes) != operand.shape[axis]:
        raise ValueError(f"split: sizes {tuple(sizes)} do not add up to {operand.shape[axis]} along axis {axis}")
    out, at = [], 0
    for n in sizes:
        out.append(_weft.slice_axis(operand, axis, at, at + n, 1))
        at += n
    return out


def tile(operand, reps: Sequence[int]) -> Array:
    """An array repeated as a block."""
    from .numpy import tile as tiled

    return tiled(operand, tuple(reps))


def broadcast_shapes(*shapes) -> tuple:
    """The shape that arrays of these shapes have together."""
    return _weft.broadcast_shapes(*shapes)


def broadcast_to_rank(x, rank: int) -> Array:
    """New dimensions of size 1 in front."""
    x = _weft.array(x, None, False)
    return _weft.reshape(x, (1,) * (rank - x.ndim) + x.shape)


def dtype(x):
    """The dtype of an array or number."""
    return _weft.abstract(x)[1]


def batch_matmul(lhs, rhs, precision=None) -> Array:
    """Matrix products of the last two dimensions; the others are batches."""
    del precision
    return _weft.matmul(lhs, rhs)


# --- Reductions by a function -----------------------------------------------------------------------------------------


def _combiner(computation) -> str | None:
    """Which reduction a two-argument function is, if Weft has a primitive for it."""
    from . import numpy as wnp

    table: list[tuple[str, tuple]] = [
        ("sum", (globals().get("add"), wnp.add)),
        ("prod", (globals().get("mul"), wnp.multiply)),
        ("max", (globals().get("max"), wnp.maximum)),
        ("min", (globals().get("min"), wnp.minimum)),
        ("and", (globals().get("and_"), wnp.logical_and, wnp.bitwise_and)),
        ("or", (globals().get("or_"), wnp.logical_or, wnp.bitwise_or)),
    ]
    return next((name for name, functions in table if computation in functions), None)


def reduce(operands, init_values, computation: Callable, dimensions: Sequence[int]):
    """The elements along dimensions combined by a function (x, y) -> z that is associative, starting with init_values.
    Trees of arrays are combined together: computation then takes and returns trees."""
    leaves, treedef = _tree.flatten(operands)
    inits = _tree.leaves(init_values)
    name = _combiner(computation) if len(leaves) == 1 else None
    if name is not None:
        total = _weft.bind(f"reduce_{name}", [leaves[0]], {"dims": sorted(d % leaves[0].ndim for d in dimensions)})[0]
        return treedef.unflatten([computation(total, _weft.astype(inits[0], total.dtype))])
    rank = leaves[0].ndim
    dims = sorted(d % rank for d in dimensions)
    kept = [d for d in range(rank) if d not in dims]
    flat = []
    for leaf in leaves:
        moved = _weft.transpose(leaf, dims + kept)
        flat.append(_weft.reshape(moved, (-1, *moved.shape[len(dims) :])))
    start = treedef.unflatten([_weft.full(x.shape[1:], i, x.dtype) for x, i in zip(flat, inits)])
    return scan(lambda c, x: (computation(c, x), None), start, treedef.unflatten(flat))[0]


def _window_padding(padding, shape, window, strides, base, dilation) -> list[tuple[int, int]]:
    if not isinstance(padding, str):
        return [(int(lo), int(hi)) for lo, hi in padding]
    if padding.upper() == "VALID":
        return [(0, 0)] * len(shape)
    if padding.upper() != "SAME":
        raise ValueError(f"reduce_window: padding must be 'SAME', 'VALID' or pairs, got {padding!r}")
    pairs = []
    for n, w, s, b, d in zip(shape, window, strides, base, dilation):
        size, wide = (n - 1) * b + 1, (w - 1) * d + 1
        total = builtins_max((-(-size // s) - 1) * s + wide - size, 0)
        pairs.append((total // 2, total - total // 2))
    return pairs


def reduce_window(
    operand,
    init_value,
    computation: Callable,
    window_dimensions: Sequence[int],
    window_strides: Sequence[int] | None = None,
    padding="VALID",
    base_dilation: Sequence[int] | None = None,
    window_dilation: Sequence[int] | None = None,
) -> Array:
    """The elements of every window combined by a function such as lax.add or lax.max, starting with init_value. Padding
    counts as init_value. Differentiates for any function: the window's places are combined one after the other."""
    operand = _weft.array(operand, None, False)
    rank = operand.ndim
    window = list(window_dimensions)
    if len(window) != rank:
        raise ValueError(f"reduce_window: {len(window)} window dimensions for an array of shape {operand.shape}")
    strides = list(window_strides or [1] * rank)
    base, dilation = list(base_dilation or [1] * rank), list(window_dilation or [1] * rank)
    pairs = _window_padding(padding, operand.shape, window, strides, base, dilation)
    init = _weft.astype(init_value, operand.dtype)
    wide = pad(operand, init, [(lo, hi, b - 1) for (lo, hi), b in zip(pairs, base)])
    counts = [(n - (w - 1) * d - 1) // s + 1 for n, w, s, d in zip(wide.shape, window, strides, dilation)]
    if any(c <= 0 for c in counts):
        return _weft.full([builtins_max(c, 0) for c in counts], init_value, operand.dtype)
    out: Any = None
    for place in itertools.product(*(range(w) for w in window)):
        start = [p * d for p, d in zip(place, dilation)]
        limit = [a + (c - 1) * s + 1 for a, c, s in zip(start, counts, strides)]
        part = slice(wide, start, limit, strides)
        out = part if out is None else computation(out, part)
    return computation(out, init)


def associative_scan(fn: Callable, elems: Any, reverse: bool = False, axis: int = 0):
    """All partial results of combining slices along an axis with an associative function of two trees of arrays, in
    about 2 log2(n) steps (Ladner and Fischer, "Parallel prefix computation", 1980)."""
    leaves, treedef = _tree.flatten(elems)
    axis = _weft.check_axis(axis, leaves[0].ndim, "associative_scan")
    leaves = [_weft.moveaxis(leaf, axis, 0) for leaf in leaves]
    n = leaves[0].shape[0]
    if any(leaf.shape[0] != n for leaf in leaves):
        raise ValueError("associative_scan: the arrays have different sizes along the axis")
    if reverse:
        leaves = [_weft.flip(leaf, 0) for leaf in leaves]

    def combine(a: list, b: list) -> list:
        # fn takes whole arrays, as in JAX, with the axis where the caller has it.
        back = lambda xs: treedef.unflatten([_weft.moveaxis(x, 0, axis) for x in xs])
        return [_weft.moveaxis(x, axis, 0) for x in _tree.leaves(fn(back(a), back(b)))]

    def run(xs: list) -> list:
        n = xs[0].shape[0]
        if n < 2:
            return xs
        pairs = combine([x[: n - 1 : 2] for x in xs], [x[1::2] for x in xs])
        odd = run(pairs)
        rest = [x[2::2] for x in xs]
        even = combine([o[: rest[0].shape[0]] for o in odd], rest) if rest[0].shape[0] else rest
        out = []
        for first, o, e in zip(xs, odd, even):
            evens = _weft.concatenate([first[:1], e.astype(first.dtype)], 0)
            places = [(0, 1, 1), (1, 0, 1)] if n % 2 == 0 else [(0, 0, 1), (1, 1, 1)]
            tail = [(0, 0, 0)] * (first.ndim - 1)
            zero = _weft.full((), 0, first.dtype)
            spread = [pad(part, zero, [place, *tail]) for part, place in zip((evens, o.astype(first.dtype)), places)]
            out.append(spread[0] | spread[1] if first.dtype == bool else spread[0] + spread[1])
        return out

    leaves = run(leaves)
    if reverse:
        leaves = [_weft.flip(leaf, 0) for leaf in leaves]
    return treedef.unflatten([_weft.moveaxis(leaf, 0, axis) for leaf in leaves])


# --- Convolutions -----------------------------------------------------------------------------------------------------


def conv(lhs, rhs, window_strides: Sequence[int], padding: str, precision=None, preferred_element_type=None) -> Array:
    """Convolution in the layout NCHW, OIHW, NCHW."""
    del precision
    out = conv_general_dilated(lhs, rhs, window_strides, padding)
    return out if preferred_element_type is None else out.astype(preferred_element_type)


def conv_with_general_padding(lhs, rhs, window_strides, padding, lhs_dilation, rhs_dilation, precision=None) -> Array:
    """Convolution with padding and dilation in the layout NCHW, OIHW, NCHW."""
    del precision
    return conv_general_dilated(lhs, rhs, window_strides, padding, lhs_dilation, rhs_dilation)


def conv_transpose(
    lhs,
    rhs,
    strides: Sequence[int],
    padding,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers=None,
    transpose_kernel: bool = False,
    precision=None,
) -> Array:
    """The convolution that enlarges: the input is spread by the strides. padding: "SAME" (size times stride), "VALID"
    or pairs. Layout NHWC, HWIO, NHWC unless dimension_numbers say otherwise."""
    del precision
    lhs, rhs = _weft.array(lhs, None, False), _weft.array(rhs, None, False)
    n = lhs.ndim - 2
    if dimension_numbers is None:
        dimension_numbers = (
            ("NHC", "HIO", "NHC")
            if n == 1
            else ("NHWC", "HWIO", "NHWC")
            if n == 2
            else (
                "NHWDC",
                "HWDIO",
                "NHWDC",
            )
        )
    spatial = [i for i, c in enumerate(dimension_numbers[1]) if c not in "IO"]
    rhs_dilation = list(rhs_dilation or [1] * n)
    if isinstance(padding, str):
        pairs = []
        for i, s, d in zip(spatial, strides, rhs_dilation):
            k = (rhs.shape[i] - 1) * d + 1
            if padding.upper() == "SAME":
                total = k + s - 2
                lo = k - 1 if s > k - 1 else -(-total // 2)
            elif padding.upper() == "VALID":
                total, lo = k + s - 2 + builtins_max(k - s, 0), k - 1
            else:
                raise ValueError(f"conv_transpose: padding must be 'SAME', 'VALID' or pairs, got {padding!r}")
            pairs.append((lo, total - lo))
        padding = pairs
    if transpose_kernel:
        rhs = _weft.flip(rhs, spatial)
        swap = list(range(rhs.ndim))
        i, o = dimension_numbers[1].index("I"), dimension_numbers[1].index("O")
        swap[i], swap[o] = o, i
        rhs = _weft.transpose(rhs, swap)
    return conv_general_dilated(lhs, rhs, [1] * n, padding, list(strides), rhs_dilation, dimension_numbers)


class linalg:
    """Linear algebra under JAX's names in lax."""

    @staticmethod
    def cholesky(x, *, symmetrize_input: bool = True) -> Array:
        """See weft.numpy.linalg.cholesky."""
        from .numpy.linalg import cholesky

        return cholesky(x, symmetrize_input=symmetrize_input)

    @staticmethod
    def triangular_solve(
        a,
        b,
        *,
        left_side: bool = False,
        lower: bool = False,
        transpose_a: bool = False,
        conjugate_a: bool = False,
        unit_diagonal: bool = False,
    ) -> Array:
        """The x with op(a) x = b, or x op(a) = b unless left_side."""
        kind = _weft.result_type(a, b)
        attrs = {
            "left": left_side,
            "lower": lower,
            "transpose": transpose_a,
            "conjugate": conjugate_a,
            "unit_diagonal": unit_diagonal,
        }
        return _weft.bind("triangular_solve", [_weft.astype(a, kind), _weft.astype(b, kind)], attrs)[0]

    @staticmethod
    def eigh(x, *, lower: bool = True, symmetrize_input: bool = True):
        """(eigenvectors, eigenvalues), in this order."""
        from .numpy.linalg import eigh

        w, v = eigh(x, None if symmetrize_input else "L" if lower else "U")
        return v, w

    @staticmethod
    def qr(x, *, full_matrices: bool = True):
        """(q, r)."""
        from .numpy.linalg import qr

        if full_matrices and x.shape[-2] > x.shape[-1]:
            raise NotImplementedError("lax.linalg.qr: full_matrices=True of a tall matrix; pass full_matrices=False")
        return tuple(qr(x))

    @staticmethod
    def svd(x, *, full_matrices: bool = True, compute_uv: bool = True):
        """(u, s, vh)."""
        from .numpy.linalg import svd

        out = svd(x, full_matrices, compute_uv)
        return tuple(out) if compute_uv else out

    @staticmethod
    def lu(x):
        """(lu, pivots, permutation)."""
        from .numpy.linalg import lu_factor

        return lu_factor(x)
