"""Arguments that functions of JAX take and Weft's do not.

What says where the result lies (`device`, `out_sharding`, `sharding`) is done to the result; what says how XLA computes
has no effect; what would change what is computed (`out`, `where`) may only be what it is by default."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable, Mapping
from typing import Any

import weft

from .. import _weft
from .._core.errors import not_implemented, type_error, value_error
from .._sharding.meshes import chosen_mesh
from .._sharding.placing import placed
from ..numpy._out_sharding import lying
from ..numpy._ufunc import methods_of, ufunc

_PLACES = frozenset(["device", "out_sharding", "sharding"])
_NO_EFFECT = frozenset(
    [
        "_dot_general",
        "_split_transpose",
        "accuracy",
        "algorithm",
        "enable_eigvec_derivs",
        "implementation",
        "method",
        "use_magma",
        "copy",
        "debug",
        "order",
        "overwrite_input",
        "precision",
        "reduce_axes",
        "sum_match",
    ]
)

_ONLY_PLACED = """ball bernoulli beta bits categorical cauchy chisquare dirichlet exponential f gamma generalized_normal
geometric gumbel laplace loggamma logistic lognormal maxwell multivariate_normal normal orthogonal pareto permutation
poisson rademacher randint rayleigh t triangular truncated_normal uniform wald"""
_UFUNCS = (
    "add bitwise_and bitwise_or bitwise_xor logaddexp logaddexp2 logical_and logical_or logical_xor maximum minimum"
)


def _table(*rows: tuple[str, str]) -> dict[str, tuple[str, ...]]:
    """(functions, parameters) -> function -> parameters."""
    out: dict[str, tuple[str, ...]] = {}
    for functions, parameters in rows:
        for function in functions.split():
            out[function] = (*out.get(function, ()), *parameters.split())
    return out


# Module -> function -> the parameters that it takes besides.
MORE: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "jax": _table(("grad value_and_grad vjp linear_transpose", "reduce_axes"), ("vmap", "sum_match")),
    "jax.numpy": _table(
        ("arange array asarray empty full full_like ones ones_like zeros zeros_like", "device out_sharding"),
        ("array asarray", "order"),
        ("astype empty_like eye from_dlpack linspace", "device"),
        ("bincount broadcast_to dot einsum matmul percentile ravel repeat reshape tensordot", "out_sharding"),
        ("reshape astype meshgrid", "copy"),
        ("convolve correlate vecdot", "precision preferred_element_type"),
        (f"{_UFUNCS} multiply negative subtract", "out where"),
        ("around isneginf isposinf modf nanmedian median nanpercentile nanquantile outer percentile ptp", "out"),
        ("quantile round stack einsum", "out"),
        ("median nanmedian nanpercentile nanquantile percentile quantile", "overwrite_input"),
        ("einsum", "_dot_general"),
        ("gradient", "edge_order"),
    ),
    "jax.numpy.linalg": _table(
        ("tensordot", "out_sharding"),
        ("vecdot", "precision preferred_element_type"),
        ("multi_dot", "precision"),
    ),
    "jax.numpy.fft": _table(("fftfreq rfftfreq", "device")),
    "jax.lax": _table(
        (
            "broadcast broadcast_in_dim broadcasted_iota conv_general_dilated dot dot_general empty reduce",
            "out_sharding",
        ),
        ("ragged_dot ragged_dot_general reduce_sum reshape", "out_sharding"),
        ("cbrt cos exp exp2 expm1 log log1p logistic rsqrt sin sqrt tan tanh", "accuracy"),
        ("full full_like", "sharding"),
        ("scan", "_split_transpose"),
    ),
    "jax.lax.linalg": _table(
        ("svd", "algorithm"), ("eig eigh", "implementation"), ("eig", "enable_eigvec_derivs use_magma")
    ),
    "jax.random": _table((_ONLY_PLACED, "out_sharding")),
    "jax.nn.initializers": _table(("ones zeros", "out_sharding")),
    "jax.scipy.linalg": _table(("solve solve_triangular", "debug")),
}


# What makes arrays lies on the mesh that set_mesh chose, whole on each of its devices.
_MADE = frozenset(
    f"""arange array asarray broadcasted_iota empty eye full full_like linspace ones ones_like zeros zeros_like
{_ONLY_PLACED}""".split()
)


# ... and of jax.random what gives keys, or their words.
_MAKES_KEYS = frozenset(["PRNGKey", "clone", "fold_in", "key", "key_data", "split", "wrap_key_data"])

# What gives an array of what nobody put anywhere, and takes more arguments in JAX.
_MADE_OF_ARRAYS = frozenset(
    ["bincount", "broadcast_to", "dot", "einsum", "matmul", "ravel", "repeat", "reshape", "tensordot"]
)


# What JAX puts onto the mesh without a word of its dimensions.
_OF_NO_DIMENSION = frozenset(["array", "asarray", "dot", "matmul", "ravel"])


def _on_the_mesh(x: Any, name: str) -> Any:
    mesh = chosen_mesh()
    if (
        not isinstance(mesh, weft.Mesh)
        or not isinstance(x, weft.Array)
        or _weft.is_traced(x)
        or _weft.sharding_of(x) is not None
    ):
        return x
    if _weft.is_tracing() or any(_weft.axis_is_bound(axis) for axis in mesh.axis_names):
        return x
    each = [None] * x.ndim if mesh.explicit_axes and name not in _OF_NO_DIMENSION else []
    return weft.device_put(x, weft.NamedSharding(mesh, weft.PartitionSpec(*each)))


class _Ufunc(ufunc):
    """One of weft.numpy's that takes more, and has its methods."""

    def __init__(self, of: ufunc, more: tuple[str, ...]):
        super().__init__(of._func, of.nin, of.nout, of.identity)
        self._more = more

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        for parameter, value in kwargs.items():
            if parameter in self._more and value is not None:
                raise not_implemented(
                    f"{self.__name__}: the argument '{parameter}' has no counterpart in Weft, got {value!r}"
                )
        return self._func(*args, **{name: value for name, value in kwargs.items() if name not in self._more})


def _check_where(x: Any, place: Any) -> None:
    """Raises ValueError for array() of an array that somebody put elsewhere: the copy is a program, which moves
    nothing."""
    own = _weft.sharding_of(x) if isinstance(x, weft.Array) and not _weft.is_traced(x) else None
    there = getattr(place, "_device_list", lambda: [place])()
    if own is not None and isinstance(there[0], weft.Device) and own._device_list() != there:
        raise value_error(
            f"Received incompatible devices for jitted computation. Got argument object of array with device ids "
            f"{[d.id for d in own._device_list()]} and device= with device ids {[d.id for d in there]}; "
            "jax.device_put moves an array"
        )


def _with_second(function: Callable[..., Any], value: Any) -> Callable[..., Any]:
    """The function with its second argument given."""

    @functools.wraps(function)
    def called(first: Any, *args: Any, **kwargs: Any) -> Any:
        return function(first, value, *args, **kwargs)

    return called


# Functions that take some of these by position -> the names of their parameters from the first of these on.
_BY_POSITION: Mapping[str, tuple[int, tuple[str, ...]]] = {
    name: (place, tuple(names.split()))
    for functions, place, names in (
        ("percentile quantile nanpercentile nanquantile", 3, "out overwrite_input method keepdims"),
        ("median nanmedian", 2, "out overwrite_input keepdims"),
        ("ptp", 2, "out keepdims"),
        ("stack", 2, "out dtype"),
        ("around outer round", 2, "out"),
        ("isneginf isposinf", 1, "out"),
    )
    for name in functions.split()
}


def _by_position(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that takes by position what JAX's does."""
    place, names = _BY_POSITION[name]

    @functools.wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        if len(args) <= place:
            return function(*args, **kwargs)
        if len(args) > place + len(names):
            raise type_error(f"{name}: at most {place + len(names)} arguments by position are taken, got {len(args)}")
        found = dict(zip(names, args[place:]))
        if twice := found.keys() & kwargs.keys():
            raise type_error(f"{name}: the argument '{min(twice)}' is given twice, by position and by name")
        return function(*args[:place], **found, **kwargs)

    return called


def with_more(module: str, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, which takes what JAX's of this module and name does."""
    more = MORE.get(module, {}).get(name)
    if module == "jax.random" and name in _MAKES_KEYS:
        return functools.wraps(function)(lambda *args, **kwargs: _on_the_mesh(function(*args, **kwargs), name))
    if not more:
        return function
    if isinstance(function, ufunc):
        return _Ufunc(methods_of(function), more)

    @functools.wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        given = {parameter: kwargs.pop(parameter) for parameter in more if parameter in kwargs} if kwargs else {}
        if not given:
            made = name in _MADE or name in _MADE_OF_ARRAYS
            return _on_the_mesh(function(*args, **kwargs), name) if made else function(*args, **kwargs)
        for parameter, value in given.items():
            if parameter in _PLACES or parameter in _NO_EFFECT or value is None:
                continue
            if parameter != "preferred_element_type":
                raise not_implemented(f"{name}: the argument '{parameter}' has no counterpart in Weft, got {value!r}")
        wider = given.get("preferred_element_type")

        @functools.wraps(function)
        def computed(*args: Any, **kwargs: Any) -> Any:
            result = function(*args, **kwargs)
            return result if wider is None else result.astype(wider)

        places = [given[parameter] for parameter in given if parameter in _PLACES and given[parameter] is not None]
        if not places:
            return computed(*args, **kwargs)
        where = given.get("device")
        if where is None:
            where = given.get("sharding")  # says where the result lies, whatever the types of axes are
        if name == "array" and args:
            _check_where(args[0], where)
        if isinstance(where, weft.NamedSharding) and not where.mesh.explicit_axes:
            return placed(computed(*args, **kwargs), name, where)
        if isinstance(places[0], (weft.NamedSharding, weft.PartitionSpec)):
            if name == "repeat" and len(args) > 1 and not isinstance(args[1], weft.Array):  # how often, which is known
                return lying(places[0], _with_second(computed, args[1]), args[0], *args[2:], **kwargs)
            if name == "arange" and any(isinstance(x, weft.Array) for x in args):  # numbers that have to be known
                return placed(computed(*args, **kwargs), name, None, places[0])
            return lying(places[0], computed, *args, **kwargs)
        result = computed(*args, **kwargs)
        return result if isinstance(result, weft.Tracer) else weft.device_put(result, places[0])

    return _by_position(name, called) if module == "jax.numpy" and name in _BY_POSITION else called


_FUNCTIONS = (types.FunctionType, type(weft.numpy.sin))


def named(name: str, function: Any) -> Any:
    """A function that weft.numpy has under several names, as one of this name: in JAX each is a function of its own."""
    if not isinstance(function, _FUNCTIONS) or function.__name__ == name:
        return function

    @functools.wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    called.__name__ = called.__qualname__ = name
    return called
