"""jax.numpy and jax.random as strict as JAX's where Weft takes more: lists in place of arrays, diagonals beyond the
integers, shapes that are numbers; masked arrays without their masks; whole powers as operations of their own; functions
of piecewise that are traced once."""

from __future__ import annotations

import functools
import operator
import re
import types
from collections.abc import Callable
from typing import Any

import numpy as np

import weft
import weft.numpy as wnp

from .. import _weft, lax
from .._core.errors import not_implemented, of_kind, type_error

_PRODUCTS = frozenset(["cross", "dot", "inner", "kron", "matmul", "outer", "tensordot", "vdot", "vecdot"])
# Functions whose first argument is an array or a number, and no list.
_OF_ARRAYS = """
all amax amin any argmax argmin argsort argwhere around atleast_1d atleast_2d atleast_3d bincount ceil clip conj
conjugate corrcoef count_nonzero cov cumprod cumsum cumulative_prod cumulative_sum diag diagflat diff ediff1d
flatnonzero flip flipud floor i0 imag iscomplex isfinite isnan isreal max mean median min nanargmax nanargmin
nancumprod nancumsum nanmax nanmean nanmedian nanmin nanprod nanstd nansum nanvar nonzero packbits polyder
polyint positive prod ptp ravel real roots round sign signbit sort sort_complex squeeze std sum transpose
trim_zeros trunc unique_all unique_counts unique_inverse unique_values unstack unwrap vander var"""
# Functions of jax.random that draw numbers by others of it.
_DRAWS = """
ball bernoulli beta binomial categorical cauchy chisquare choice dirichlet double_sided_maxwell exponential f gamma
generalized_normal geometric gumbel laplace loggamma logistic lognormal maxwell multinomial multivariate_normal normal
orthogonal pareto permutation poisson rademacher randint rayleigh t triangular truncated_normal wald weibull_min"""
# Functions -> the place of the number of a diagonal among their arguments.
_DIAGONALS = {"tri": 2, "tril": 1, "triu": 1}


def _arrays(name: str, function: Callable[..., Any], count: int) -> Callable[..., Any]:
    """... of so many arrays or numbers."""

    @functools.wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        for i, x in enumerate(args[:count]):
            if isinstance(x, (list, tuple)):
                raise type_error(f"{name} requires ndarray or scalar arguments, got {type(x)} at position {i}.")
        return function(*args, **kwargs)

    return called


def _near(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """... whose diagonal is one that the default integer can count."""
    place = _DIAGONALS[name]

    @functools.wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        k = args[place] if len(args) > place else kwargs.get("k", 0)
        if isinstance(k, int):
            bounds = np.iinfo(np.dtype(_weft.dtype(int)))
            if not bounds.min <= k <= bounds.max:
                raise of_kind(OverflowError, f"{name}: Python int {k} too large to convert to {bounds.dtype}")
        return function(*args, **kwargs)

    return called


def _unmasked(function: Callable[..., Any]) -> Callable[..., Any]:
    """... that takes what a masked array holds, as numpy.array does."""

    @functools.wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        if args and isinstance(args[0], np.ma.MaskedArray):
            args = np.asarray(args[0]), *args[1:]
        return function(*args, **kwargs)

    return called


def whole_number(y: Any) -> int | None:
    """An exponent that is a known integer."""
    if isinstance(y, bool) or not _weft.is_operand(y) or _weft.is_traced(y):
        return None
    try:
        return operator.index(y)
    except TypeError:
        return None


def _power(function: Callable[..., Any]) -> Callable[..., Any]:
    """... by repeated products where the exponent is a known integer: one number, which leaves the dtype as it is."""

    @functools.wraps(function)
    def called(x1: Any, x2: Any, /) -> Any:
        y = whole_number(x2) if _weft.is_operand(x1) else None
        if y is None:
            return function(x1, x2)
        x = wnp.asarray(x1)
        kind = _weft.dtype_kind(x.dtype)
        if kind == "bool":
            x = x.astype(int)
        if y < 0 and kind not in ("float", "complex"):
            return function(x1, x2)
        return lax.integer_pow(x, y)

    return called


def _of_sequences(function: Callable[..., Any]) -> Callable[..., Any]:
    """random.choice, whose shape is a sequence: a number there is meant for something else."""

    @functools.wraps(function)
    def called(key: Any, a: Any, shape: Any = (), *args: Any, **kwargs: Any) -> Any:
        if isinstance(shape, (int, np.integer)):
            raise type_error(f"shape argument of jax.random.choice must be a sequence, got {shape}")
        return function(key, a, shape, *args, **kwargs)

    return called


def _of_one_key(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """... of jax.random, which names itself where it is given several keys, not what it draws numbers by."""

    @functools.wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except TypeError as error:
            found = _SEVERAL_KEYS.match(str(error))
            if found is None or found[1] == name:
                raise
            raise type_error(f"random.{name}: {found[2]}") from None

    return called


@functools.lru_cache(maxsize=256)
def _pieces(functions: tuple[Any, ...]) -> Callable[..., Any]:
    """piecewise of these functions, compiled; None stands for a number."""

    def piecewise(x: Any, condlist: Any, numbers: Any, args: Any, kw: Any) -> Any:
        given = iter(numbers)
        return wnp.piecewise(x, condlist, [next(given) if f is None else f for f in functions], *args, **kw)

    return weft.jit(piecewise)


@functools.wraps(wnp.piecewise)
def _piecewise(x: Any, condlist: Any, funclist: Any, *args: Any, **kw: Any) -> Any:
    functions = tuple(f if callable(f) else None for f in funclist)
    try:
        compiled = _pieces(functions)
    except TypeError:  # a function without a hash
        return wnp.piecewise(x, condlist, funclist, *args, **kw)
    return compiled(wnp.asarray(x), condlist, [f for f in funclist if not callable(f)], args, kw)


_SEVERAL_KEYS = re.compile(r"(?:\w+: )?random\.(\w+): (one key is needed, got an array of keys .*?)(?:\n|$)")
_NARROW = re.compile(r"(\w+): operand \d is (b?f)16\[.*?\]; expected one of ")


def _of_wide_floats(function: Callable[..., Any]) -> Callable[..., Any]:
    """... whose factorisations are not implemented for floats of 16 bits."""

    @functools.wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except TypeError as error:
            found = _NARROW.match(str(error))
            if found is None:
                raise
            dtype = {"f": "float16", "bf": "bfloat16"}[found[2]]
            raise not_implemented(f"{found[1]}: Unsupported dtype {dtype}. Convert it with astype('float32')") from None

    return called


def strictly_numpy(module: str, name: str, function: Any) -> Any:
    """What jax.numpy or jax.random serves under a name, as strict as JAX's."""
    if module == "jax.random":
        function = _of_sequences(function) if name == "choice" else function
        return _of_one_key(name, function) if name in _DRAWS.split() else function
    if module in ("jax.numpy.linalg", "jax.scipy.linalg", "jax.lax.linalg"):
        return _of_wide_floats(function) if isinstance(function, types.FunctionType) else function
    if module != "jax.numpy":
        return function
    if name in _PRODUCTS:
        return _arrays(name, function, 2)
    if name in _OF_ARRAYS.split():
        return _arrays(name, function, 1)
    if name in _DIAGONALS:
        return _near(name, function)
    if name in ("array", "asarray"):
        return _unmasked(function)
    if name == "piecewise":
        return _piecewise
    return _power(function) if name in ("power", "pow") else function
