"""Parameters of Weft's operations under the names, and in the forms, that JAX's primitives have them: equations can be
asked for these, and primitives be bound with them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import weft

from .. import _weft
from .equation_params import AskedParams


class _Equation(NamedTuple):
    """What a parameter may follow from."""

    params: Mapping[str, Any]  # Weft's
    ranks: Sequence[int]  # of the operands


_Read = Callable[[_Equation], Any]


def _given(value: Any) -> _Read:
    return lambda _: value


def _same(name: str) -> _Read:
    return lambda eqn: eqn.params[name]


def _ints(name: str) -> _Read:
    return lambda eqn: tuple(eqn.params[name])


def _sizes(name: str) -> _Read:
    """Sizes are texts, as they may be open."""
    return lambda eqn: tuple(int(n) if str(n).isdigit() else _weft.Dim(str(n)) for n in eqn.params[name])


def _dtype(name: str) -> _Read:
    return lambda eqn: _weft.dtype(_numpy_name(*eqn.params[name]))


def _numpy_name(name: str) -> str:
    """i32 -> int32: NumPy's i8 has 8 bytes, Weft's 8 bits."""
    return f"uint{name[1:]}" if name[0] == "u" else f"int{name[1:]}" if name[0] == "i" else name


def _mode(eqn: _Equation) -> Any:
    words = {"clip": "CLIP", "drop": "FILL_OR_DROP", "fill": "FILL_OR_DROP", "promise": "PROMISE_IN_BOUNDS"}
    return weft.lax.GatherScatterMode[words.get(eqn.params["mode"], "FILL_OR_DROP")]


def _of_gather(eqn: _Equation) -> Any:
    p = eqn.params
    return weft.lax.GatherDimensionNumbers(
        tuple(p["offset_dims"]),
        tuple(p["collapsed_dims"]),
        tuple(p["start_index_map"]),
        tuple(p["operand_batch_dims"]),
        tuple(p["indices_batch_dims"]),
    )


def _of_scatter(eqn: _Equation) -> Any:
    p = eqn.params
    return weft.lax.ScatterDimensionNumbers(
        tuple(p["update_window_dims"]),
        tuple(p["inserted_dims"]),
        tuple(p["scatter_dims"]),
        tuple(p["operand_batch_dims"]),
        tuple(p["indices_batch_dims"]),
    )


def _of_convolution(eqn: _Equation) -> Any:
    in_order = tuple(range(eqn.ranks[0]))
    return weft.lax.ConvDimensionNumbers(in_order, in_order, in_order)


def _strides(eqn: _Equation) -> Any:
    """None where they skip nothing."""
    strides = tuple(eqn.params["strides"])
    return None if set(strides) <= {1} else strides


def _padding(*names: str) -> _Read:
    return lambda eqn: tuple(zip(*(eqn.params[name] for name in names)))


_OVER_AXES = {"axes": _ints("dims")}
_ALONG = {"axis": _same("dim"), "reverse": _same("reverse")}
_INDEX = {"axes": lambda eqn: (eqn.params["dim"],), "index_dtype": _dtype("dtype")}
_INDICES = {"indices_are_sorted": _given(False), "unique_indices": _given(False), "mode": _mode}
_SCATTERED = {"dimension_numbers": _of_scatter, **_INDICES}
_ACCURATE = {"accuracy": _given(None)}
_PLACED = {"sharding": _given(None)}

# Weft's name of an operation -> JAX's parameters.
READ: dict[str, dict[str, _Read]] = {
    **dict.fromkeys(
        ("reduce_max", "reduce_min", "reduce_prod", "reduce_and", "reduce_or", "reduce_xor"),
        _OVER_AXES,
    ),
    "reduce_sum": {**_OVER_AXES, "out_sharding": _given(None)},
    **dict.fromkeys(("argmax", "argmin"), _INDEX),
    **dict.fromkeys(("cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp"), _ALONG),
    "transpose": {"permutation": _ints("perm")},
    "reshape": {"new_sizes": _sizes("shape"), "dimensions": _given(None), **_PLACED},
    "broadcast": {"shape": _sizes("shape"), "broadcast_dimensions": _ints("dims"), **_PLACED},
    "concatenate": {"dimension": _same("dim")},
    "slice": {"start_indices": _ints("start"), "limit_indices": _ints("limit"), "strides": _strides},
    "pad": {"padding_config": _padding("lo", "hi", "interior")},
    "reverse": {"dimensions": _ints("dims")},
    "iota": {"dtype": _dtype("dtype"), "shape": _sizes("shape"), "dimension": _same("dim"), **_PLACED},
    "dynamic_slice": {"slice_sizes": _ints("sizes")},
    "gather": {
        "dimension_numbers": _of_gather,
        "slice_sizes": _ints("slice_sizes"),
        "fill_value": _given(None),
        **_INDICES,
    },
    **dict.fromkeys(("scatter", "scatter_add", "scatter_mul", "scatter_min", "scatter_max"), _SCATTERED),
    "sort": {"dimension": _same("dim"), "is_stable": _given(True), "num_keys": _same("num_keys")},
    "top_k": {"k": _same("k"), "axis": lambda eqn: eqn.ranks[0] - 1},
    "conv": {
        "window_strides": _ints("strides"),
        "padding": _padding("lo", "hi"),
        "lhs_dilation": _ints("lhs_dilation"),
        "rhs_dilation": _ints("rhs_dilation"),
        "dimension_numbers": _of_convolution,
        "feature_group_count": _same("feature_groups"),
        "batch_group_count": _same("batch_groups"),
        "precision": _given(None),
        "preferred_element_type": _given(None),
        "out_sharding": _given(None),
    },
    "bitcast": {"new_dtype": _dtype("dtype")},
    "fft": {
        "fft_type": lambda eqn: weft.lax.FftType[eqn.params["kind"].upper()],
        "fft_lengths": _ints("lengths"),
    },
    **dict.fromkeys(
        ("cbrt", "cos", "exp", "exp2", "expm1", "log", "log1p", "logistic", "rsqrt", "sin", "sqrt", "tan", "tanh"),
        _ACCURATE,
    ),
    "mul": {"out_dtype": _given(None)},
}


class ReadableParams(AskedParams):
    """Parameters of an equation under Weft's names, which can be asked for under JAX's. Taken one by one (items, **)
    they are Weft's."""

    def __init__(self, given: Mapping[str, Any], read: Mapping[str, _Read], ranks: Sequence[int]):
        super().__init__(given)
        self._read, self._ranks = read, ranks

    def __contains__(self, name: object) -> bool:
        return super().__contains__(name) or name in self._read

    def __getitem__(self, name: str) -> Any:
        read = self._read.get(name)
        return super().__getitem__(name) if read is None else read(_Equation(dict(self), self._ranks))


def readable(name: str, given: dict[str, Any], operands: Sequence[Any]) -> dict[str, Any]:
    """The parameters of an equation of an operation, which can be asked for under JAX's names."""
    read = READ.get(name)
    return given if read is None else ReadableParams(given, read, [len(atom.aval.shape) for atom in operands])


def _reduction(name: str) -> Callable[..., Any]:
    return lambda x, *, axes, out_sharding=None: getattr(weft.lax, name)(x, axes)


def _index(name: str) -> Callable[..., Any]:
    return lambda x, *, axes, index_dtype: getattr(weft.lax, name)(x, *axes, index_dtype)


def _cumulative(name: str) -> Callable[..., Any]:
    return lambda x, *, axis, reverse=False: getattr(weft.lax, name)(x, axis, reverse)


def _of_one(name: str) -> Callable[..., Any]:
    return lambda x, *, accuracy=None: getattr(weft.lax, name)(x)


def _unplaced(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *xs, sharding=None, **params: function(*xs, **params)


def _sorted(*xs: Any, dimension: int = -1, is_stable: bool = True, num_keys: int = 1) -> list[Any]:
    return list(weft.lax.sort(xs, dimension=dimension, is_stable=is_stable, num_keys=num_keys))


def _scattered(name: str) -> Callable[..., Any]:
    def bound(
        x: Any, indices: Any, updates: Any, *, dimension_numbers: Any, update_jaxpr: Any = None, **rest: Any
    ) -> Any:
        rest.pop("update_consts", None)
        return getattr(weft.lax, name)(x, indices, updates, dimension_numbers, **rest)

    return bound


def _converted(x: Any, *, new_dtype: Any, weak_type: bool = False, sharding: Any = None) -> Any:
    found = weft.lax.convert_element_type(x, new_dtype)
    return _weft.weak(found) if weak_type else found


# JAX's name of a primitive -> what binding it with JAX's parameters does.
_BIND: dict[str, Callable[..., Any]] = {
    **{f"reduce_{kind}": _reduction(f"reduce_{kind}") for kind in ("sum", "max", "min", "prod", "and", "or", "xor")},
    **{name: _index(name) for name in ("argmax", "argmin")},
    **{name: _cumulative(name) for name in ("cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp")},
    **{name: _of_one(name) for name, read in READ.items() if read is _ACCURATE},
    **{name: _scattered(name) for name, read in READ.items() if read is _SCATTERED},
    "transpose": lambda x, *, permutation: weft.lax.transpose(x, permutation),
    "reshape": _unplaced(lambda x, *, new_sizes, dimensions=None: weft.lax.reshape(x, new_sizes, dimensions)),
    "broadcast_in_dim": _unplaced(
        lambda x, *, shape, broadcast_dimensions: weft.lax.broadcast_in_dim(x, shape, broadcast_dimensions)
    ),
    "concatenate": lambda *xs, dimension: weft.lax.concatenate(xs, dimension),
    "pad": lambda x, value, *, padding_config: weft.lax.pad(x, value, padding_config),
    "rev": lambda x, *, dimensions: weft.lax.rev(x, dimensions),
    "iota": _unplaced(lambda *, dtype, shape, dimension: weft.lax.broadcasted_iota(dtype, shape, dimension)),
    "slice": lambda x, *, start_indices, limit_indices, strides=None: weft.lax.slice(
        x, start_indices, limit_indices, strides
    ),
    "dynamic_slice": lambda x, *starts, slice_sizes: weft.lax.dynamic_slice(x, starts, slice_sizes),
    "gather": lambda x, indices, *, dimension_numbers, slice_sizes, **rest: weft.lax.gather(
        x, indices, dimension_numbers, slice_sizes, **rest
    ),
    "sort": _sorted,
    "top_k": lambda x, *, k, axis: list(weft.lax.top_k(x, k, axis=axis)),
    "squeeze": lambda x, *, dimensions: weft.lax.squeeze(x, dimensions),
    "split": lambda x, *, sizes, axis: list(weft.lax.split(x, sizes, axis)),
    "conv_general_dilated": lambda x, kernel, *, out_sharding=None, **params: weft.lax.conv_general_dilated(
        x, kernel, **params
    ),
    "dot_general": lambda x, y, *, dimension_numbers, out_sharding=None, **rest: weft.lax.dot_general(
        x, y, dimension_numbers, **rest
    ),
    "bitcast_convert_type": lambda x, *, new_dtype: weft.lax.bitcast_convert_type(x, new_dtype),
    "convert_element_type": _converted,
    "fft": lambda x, *, fft_type, fft_lengths: weft.lax.fft(x, fft_type, fft_lengths),
    "mul": lambda x, y, *, out_dtype=None: weft.lax.mul(x, y),
    "reduce_precision": lambda x, *, exponent_bits, mantissa_bits: weft.lax.reduce_precision(
        x, exponent_bits, mantissa_bits
    ),
}
# Names that JAX's parameters have and Weft's have not.
_THEIRS = frozenset(
    [
        *("accuracy", "axes", "axis", "broadcast_dimensions", "dimension", "dimension_numbers", "dimensions"),
        *("exponent_bits", "fft_type", "is_stable", "new_dtype", "new_sizes", "out_dtype", "out_sharding"),
        *("padding_config", "permutation", "start_indices", "window_strides"),
    ]
)
# ... of one primitive, where others of Weft's have such a name.
_THEIRS_OF = {"dynamic_slice": "slice_sizes", "split": "sizes"}


def binding(name: str, params: Mapping[str, Any]) -> Callable[..., Any] | None:
    """What to call where a primitive of JAX's is bound with JAX's parameters; None: they are Weft's."""
    bind = _BIND.get(name) if params else None
    if bind is None or (_THEIRS.isdisjoint(params) and _THEIRS_OF.get(name) not in params):
        return None
    return bind
