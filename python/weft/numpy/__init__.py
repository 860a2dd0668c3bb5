"""NumPy's functions on Weft's arrays. They record into the function that is being traced, or compute at once.

dtypes follow JAX's promotion table: Python numbers are weak, float32 and int32 are the defaults, 64-bit arrays stay
64-bit. Arrays never change: there is no out=; use x.at[...].set(...) for updates.
"""

import math as _math

import numpy as _np

from .. import _weft
from .._weft import Array
from .._weft import Array as ndarray  # noqa: F401
from . import _creation, _elementwise, _indexing, _linalg, _reductions, _shape, _sorting, fft, linalg  # noqa: F401
from ._apply import *  # noqa: F403
from ._creation import *  # noqa: F403
from ._dtypes import *  # noqa: F403
from ._elementwise import *  # noqa: F403
from ._indexing import *  # noqa: F403
from ._linalg import *  # noqa: F403
from ._nan import *  # noqa: F403
from ._padding import *  # noqa: F403
from ._polynomials import *  # noqa: F403
from ._primitives import *  # noqa: F403
from ._quantiles import *  # noqa: F403
from ._reductions import *  # noqa: F403
from ._sets import *  # noqa: F403
from ._shape import *  # noqa: F403
from ._sorting import *  # noqa: F403
from ._statistics import *  # noqa: F403

pi, e, inf, nan, euler_gamma = _math.pi, _math.e, _math.inf, _math.nan, _np.euler_gamma


def _no_assignment(self, key, value):
    raise TypeError("arrays never change: use x = x.at[index].set(value) instead of x[index] = value")


def _attach() -> None:
    """The methods of arrays, other than those that are written in C++."""
    methods = {
        "all": _reductions.all,
        "any": _reductions.any,
        "argmax": _reductions.argmax,
        "argmin": _reductions.argmin,
        "argpartition": _sorting.argpartition,
        "argsort": _sorting.argsort,
        "clip": _elementwise.clip,
        "conj": _elementwise.conjugate,
        "conjugate": _elementwise.conjugate,
        "choose": _indexing.choose,
        "compress": lambda self, condition, axis=None: _indexing.compress(condition, self, axis),
        "cumprod": _reductions.cumprod,
        "cumsum": _reductions.cumsum,
        "diagonal": _creation.diagonal,
        "dot": _linalg.dot,
        "max": _reductions.max,
        "mean": _reductions.mean,
        "min": _reductions.min,
        "nonzero": _indexing.nonzero,
        "ptp": _reductions.ptp,
        "ravel": _shape.ravel,
        "flatten": _shape.ravel,
        "repeat": _shape.repeat,
        "round": _elementwise.round,
        "searchsorted": _sorting.searchsorted,
        "sort": _sorting.sort,
        "squeeze": _shape.squeeze,
        "std": _reductions.std,
        "swapaxes": _shape.swapaxes,
        "take": _indexing.take,
        "trace": _linalg.trace,
        "var": _reductions.var,
    }
    for name, function in methods.items():
        setattr(Array, name, function)
    at = property(
        lambda self: _indexing._At(self), doc="x.at[index].set(value) and .add, .multiply, .min, .max, .apply, .get."
    )
    more = {
        "at": at,
        "real": property(_elementwise.real, doc="The real part."),
        "imag": property(_elementwise.imag, doc="The imaginary part."),
        "flat": property(lambda self: self.ravel(), doc="The flattened array."),
        "__setitem__": _no_assignment,
        "__contains__": lambda self, value: bool((self == value).any()),
        "__round__": lambda self, n=None: _elementwise.round(self, n or 0),
        "view": _view,
    }
    for name, member in more.items():
        setattr(Array, name, member)


def _view(self, dtype):
    """The bits of the elements as another dtype of the same width."""
    return _weft.bind_elementwise("bitcast", (self,), {"dtype": _weft.dtype(dtype)})


_attach()

__all__ = [name for name in globals() if not name.startswith("_")]
