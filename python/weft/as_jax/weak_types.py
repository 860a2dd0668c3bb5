"""Which results are weak. Weft's are where the types of the operands alone make it so; JAX's also depend on what its
functions compute with: on a constant that is of the operand's dtype where that has dimensions, on a conversion that
forgets it. Where the two differ a rule says what JAX has. Rules change no number."""

from __future__ import annotations

import copy
import functools
import importlib
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from .. import _weft
from .._core import tree as _tree
from ..numpy._reductions import narrow
from ..numpy._ufunc import ufunc
from .strict_numpy import whole_number


class Operand(NamedTuple):
    """What a rule asks of an operand: whether it is weak, how many dimensions it has, and whether it is "bool", "int",
    "float" or "complex"."""

    weak: bool
    rank: int
    kind: str


Operands = Sequence[Operand]
# (operands, whether Weft's result is weak, arguments by position) -> whether JAX's is; of several results of each.
Rule = Callable[[Operands, bool, tuple], "bool | Sequence[bool]"]

_INEXACT = ("float", "complex")


def _never(operands: Operands, own: bool, args: tuple) -> bool:
    return False


def _of_a_number(*places: int) -> Rule:
    """Where the operands at these places have no dimensions: it computes with a constant made like them."""
    return lambda operands, own, args: own and not any(operands[n].rank for n in places if n < len(operands))


def _as_first(operands: Operands, own: bool, args: tuple) -> bool:
    return operands[0].weak


def _as_all(operands: Operands, own: bool, args: tuple) -> bool:
    return all(x.weak for x in operands)


def _as_all_or_booleans(operands: Operands, own: bool, args: tuple) -> bool:
    """Booleans are as numbers that are weak."""
    return all(x.weak or x.kind == "bool" for x in operands)


def _as_all_numbers(operands: Operands, own: bool, args: tuple) -> bool:
    """... beside such numbers."""
    return any(x.weak for x in operands) and _as_all_or_booleans(operands, own, args)


def _of_numbers(operands: Operands, own: bool, args: tuple) -> bool:
    """... that have no dimensions."""
    return _as_all_numbers(operands, own, args) and not any(x.rank for x in operands)


def _with_defaults(operands: Operands, own: bool, args: tuple) -> bool:
    """... among them those that are not given, of three."""
    weak = any(x.weak for x in operands) or len(operands) < 3
    return weak and _as_all_or_booleans(operands, own, args) and not any(x.rank for x in operands)


def _promoted(operands: Operands, own: bool, args: tuple) -> bool:
    """As the operands are together."""
    for kind in ("complex", "float", "int"):
        if found := [x.weak for x in operands if x.kind == kind]:
            # A strong float makes numbers that are complex and weak strong, too.
            return all(found) and not (kind == "complex" and any(not x.weak for x in operands if x.kind == "float"))
    return False


def _promoted_number(operands: Operands, own: bool, args: tuple) -> bool:
    return _promoted(operands, own, args) and not operands[0].rank


def _power(operands: Operands, own: bool, args: tuple) -> bool:
    base, exponent = operands[:2]
    if len(args) > 1 and whole_number(args[1]) is not None:
        return base.weak  # repeated products
    weak = _promoted(operands, own, args)
    if exponent.kind == "bool" and base.kind == "int":
        return weak and isinstance(args[1], bool)
    if not weak or exponent.kind != "int":
        return weak
    return exponent.weak and base.kind != "bool" and not (base.kind == "int" and exponent.rank)


def _logaddexp(operands: Operands, own: bool, args: tuple) -> bool:
    is_complex = any(x.kind == "complex" for x in operands)
    return _promoted(operands, own, args) and not (is_complex and any(x.rank for x in operands))


def _angle(operands: Operands, own: bool, args: tuple) -> bool:
    z = operands[0]
    return z.weak and (z.kind == "complex" or (z.kind == "float" and z.rank > 0 and len(args) < 2))


def _round(operands: Operands, own: bool, args: tuple) -> bool:
    """To other places than whole numbers it multiplies by a constant."""
    a = operands[0]
    return a.weak and (a.kind == "int" or not a.rank or len(args) < 2)


def _inexact(operands: Operands, own: bool, args: tuple) -> bool:
    return operands[0].weak and operands[0].kind in _INEXACT


def _integer(operands: Operands, own: bool, args: tuple) -> bool:
    return operands[0].weak and operands[0].kind == "int"


def _real(operands: Operands, own: bool, args: tuple) -> bool:
    return operands[0].weak and operands[0].kind != "complex"


def _squareplus(operands: Operands, own: bool, args: tuple) -> bool:
    of_booleans = len(operands) > 1 and operands[0].kind == "bool" and operands[1].kind == "int"
    return _promoted(operands, own, args) and not of_booleans


def _gradient(operands: Operands, own: bool, args: tuple) -> bool:
    return operands[0].rank > 0 and _promoted(operands, own, args)


def _filled(operands: Operands, own: bool, args: tuple) -> bool:
    """Of a dtype that is given it is not weak."""
    return operands[0].weak and len(args) < 3


def _standardize(operands: Operands, own: bool, args: tuple) -> bool:
    return own or (len(operands) > 3 and _promoted(operands, own, args))


def _rest(operands: Operands, own: bool, args: tuple) -> Sequence[bool]:
    """A quotient, and what is left."""
    return [False, _promoted(operands, own, args)]


def _each(operands: Operands, own: bool, args: tuple) -> Sequence[bool]:
    return [x.weak for x in operands[:2]]


def _first_and_count(operands: Operands, own: bool, args: tuple) -> Sequence[bool]:
    return [operands[0].weak, False]


def _of(rule: Rule, names: str) -> dict[str, Rule]:
    return dict.fromkeys(names.split(), rule)


_NUMPY = {
    **_of(_never, "cross frexp log10 log2 median nanmedian"),
    **_of(_of_a_number(0), "deg2rad degrees rad2deg radians sinc"),
    **_of(_of_a_number(1), "full_like"),
    **_of(_as_first, "abs absolute argpartition diag i0 imag insert isnan real sign take_along_axis"),
    **_of(_of_numbers, "gcd lcm hypot logaddexp2 logical_and logical_or logical_xor"),
    **_of(
        _promoted, "convolve copysign correlate equal not_equal greater greater_equal less less_equal float_power fmod"
    ),
    **_of(_promoted, "polymul unravel_index"),
    **_of(_promoted_number, "heaviside iscomplex isreal logical_not"),
    **_of(_power, "power pow"),
    **_of(_round, "around round"),
    **_of(_inexact, "isfinite rint"),
    "logaddexp": _logaddexp,
    "angle": _angle,
    "gradient": _gradient,
    "nan_to_num": _integer,
    "polydiv": _rest,
}
_LAX = {
    **_of(_as_first, "abs cumlogsumexp cummax cummin cumprod cumsum dynamic_index_in_dim sign"),
    **_of(_as_all, "complex dot eq ge gt le lt mulhi ne pow"),
    **_of(_of_numbers, "random_gamma_grad"),
    "full_like": _filled,
    "sort_key_val": _each,
}
_NN = {
    **_of(_as_all_or_booleans, "mish soft_sign softplus"),
    **_of(_as_first, "log_sigmoid"),
    "gelu": _never,
    "squareplus": _squareplus,
    "standardize": _standardize,
}
_SPECIAL = {
    **_of(_never, "dawsn erfcx exp1 expi expn log_ndtr multigammaln ndtr owens_t spence wofz"),
    **_of(_of_a_number(0), "kl_div logit rel_entr"),
    **_of(_as_first, "erfinv i0 i1"),
    "loggamma": _real,
}
_DENSITIES = "cdf logcdf logpdf logsf pdf sf"
_STATS: dict[str, dict[str, Rule]] = {
    "bernoulli": {**_of(_of_a_number(0), "cdf logpmf pmf"), "ppf": _promoted_number},
    "beta": _of(_of_a_number(0), _DENSITIES),
    "betabinom": _of(_of_a_number(0), "logpmf pmf"),
    "cauchy": _of(_of_a_number(0), f"{_DENSITIES} isf ppf"),
    "chi2": {**_of(_of_a_number(0), "logpdf pdf"), **_of(_of_a_number(0, 3), "cdf logcdf logsf sf")},
    "gamma": _of(_of_a_number(0), "cdf logcdf logpdf pdf"),
    "geom": _of(_of_a_number(0), "logpmf pmf"),
    "gumbel_r": _of(_of_a_number(0), "sf"),
    "laplace": _of(_of_a_number(0), "cdf logpdf pdf"),
    "logistic": {**_of(_of_a_number(0), "isf ppf"), **_of(_with_defaults, "logpdf pdf")},
    "multivariate_normal": _of(_promoted, "logpdf pdf"),
    "nbinom": _of(_of_a_number(0), "logpmf pmf"),
    "norm": {**_of(_of_a_number(0), "logpdf pdf"), **_of(_never, "cdf logcdf logsf sf isf ppf")},
    "pareto": _of(_of_a_number(0), f"{_DENSITIES} ppf".replace("logcdf ", "")),
    "poisson": _of(_of_a_number(0), "cdf"),
    "t": _of(_of_a_number(0), "logpdf pdf"),
    "truncnorm": _of(_never, _DENSITIES),
    "uniform": _of(_never, "cdf"),
}
RULES: dict[str, dict[str, Rule]] = {
    "jax.numpy": _NUMPY,
    "jax.numpy.linalg": {"cross": _never, "tensorsolve": _as_all_numbers},
    "jax.numpy.fft": _of(_never, "fftn ifftn ihfft irfftn rfft rfftn"),
    "jax.lax": _LAX,
    "jax.nn": _NN,
    "jax.scipy.special": _SPECIAL,
    "jax.scipy.stats": {"mode": _first_and_count},
    **{f"jax.scipy.stats.{name}": rules for name, rules in _STATS.items()},
}


def _operand(x: Any) -> Operand:
    shape, dtype, weak, _ = _weft.abstract(x)
    kind = _weft.dtype_kind(dtype)
    return Operand(weak, len(shape), "int" if kind in ("signed", "unsigned") else kind)


def _operands(args: Iterable[Any]) -> list[Operand]:
    return [_operand(x) for x in args if _weft.is_operand(x)]


def _made(x: Any, weak: bool) -> Any:
    if not isinstance(x, _weft.Array) or x.weak_type == weak:
        return x
    return _weft.weak(x) if weak else x.astype(x.dtype)


def _strong(x: Any) -> Any:
    return _weft.astype(x, _weft.abstract(x)[1]) if _weft.is_operand(x) and _operand(x).weak else x


def _first_strong(args: tuple) -> tuple:
    return _strong(args[0]), *args[1:]


def _strong_beside_strong(args: tuple) -> tuple:
    return args if all(x.weak for x in _operands(args)) else tuple(map(_strong, args))


# Functions that forget of operands that they are weak, which is the dtype of what those meet.
_FORGET: dict[tuple[str, str], Callable[[tuple], tuple]] = {
    ("jax.lax", "dot"): _strong_beside_strong,
    ("jax.scipy.stats.norm", "isf"): _first_strong,
    ("jax.scipy.stats.norm", "ppf"): _first_strong,
}
# (arguments, dtype of Weft's result) -> that of JAX's.
_DTYPES: dict[tuple[str, str], Callable[[tuple, Any], Any]] = {
    ("jax.lax", "random_gamma_grad"): lambda args, own: own if _operand(args[0]).weak else _weft.abstract(args[0])[1],
    ("jax.scipy.special", "owens_t"): lambda args, own: _weft.dtype("float32") if narrow(own) else own,
}


class _Weakly(functools.partial[Any]):
    """A function whose results are weak where JAX's are. It is pickled by its name."""

    __name__: str
    __wrapped__: Any
    _module: str

    def __reduce__(self) -> Any:
        return _of_name, (self._module, self.__name__)

    def __repr__(self) -> str:
        return repr(self.__wrapped__)


def _of_name(module: str, name: str) -> Any:
    return getattr(importlib.import_module(module), name)


def _forgetting(module: str, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    forget, dtype = _FORGET.get((module, name)), _DTYPES.get((module, name))
    if forget is None and dtype is None:
        return function

    @functools.wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        out = function(*(args if forget is None else forget(args)), **kwargs)
        return out if dtype is None or (to := dtype(args, out.dtype)) == out.dtype else out.astype(to)

    return called


def _called(function: Callable[..., Any], rule: Rule, *args: Any, **kwargs: Any) -> Any:
    out = function(*args, **kwargs)
    # Of none that is weak or a boolean, which counts as weak in some functions, nothing weak is made.
    found = _weft.weak_operands(*args, *kwargs.values())
    if found is None:
        if not isinstance(out, _weft.Array) or not out.weak_type:
            return out
        found = _operands((*args, *kwargs.values()))
    if not found:
        return out
    leaves, tree = ([out], None) if isinstance(out, _weft.Array) else _tree.flatten(out)
    own = any(isinstance(x, _weft.Array) and x.weak_type for x in leaves)
    weak = rule([Operand(*each) for each in found], own, args)
    each = [weak] * len(leaves) if isinstance(weak, bool) else weak
    made = [_made(*pair) for pair in zip(leaves, each, strict=True)]
    return made[0] if tree is None else tree.unflatten(made)


def weakly(module: str, name: str, function: Any) -> Any:
    """What a module serves under a name, with JAX's weak types."""
    rule = RULES.get(module, {}).get(name)
    if rule is None or not callable(function):
        return function
    if ufunc in type(function).__mro__:
        return called_by(function, functools.partial(_called, function, rule))
    made: Any = functools.update_wrapper(_Weakly(_called, _forgetting(module, name, function), rule), function)
    made.__name__, made._module = name, module
    return made


def called_by(function: Any, called: Callable[..., Any]) -> Any:
    """A ufunc of jax.numpy that is called by another function, and has its own methods."""
    made, kind, metaclass = copy.copy(function), type(function), type(type(function))
    own = {
        "__call__": lambda self, *args, **kwargs: called(*args, **kwargs),
        "__reduce__": lambda self: (_of_name, ("jax.numpy", self.__name__)),
    }
    made.__class__ = metaclass(kind.__name__, (kind,), own)  # type: ignore[misc]
    return made
