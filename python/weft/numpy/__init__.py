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
from ._creation import *  # noqa: F403
from ._elementwise import *  # noqa: F403
from ._indexing import *  # noqa: F403
from ._linalg import *  # noqa: F403
from ._reductions import *  # noqa: F403
from ._shape import *  # noqa: F403
from ._sorting import *  # noqa: F403

pi, e, inf, nan, euler_gamma = _math.pi, _math.e, _math.inf, _math.nan, _np.euler_gamma
finfo, iinfo, dtype = _np.finfo, _np.iinfo, _np.dtype
bool_ = _np.bool_
int8, int16, int32, int64 = _np.int8, _np.int16, _np.int32, _np.int64
uint8, uint16, uint32, uint64 = _np.uint8, _np.uint16, _np.uint32, _np.uint64
float16, float32, float64, complex64, complex128 = _np.float16, _np.float32, _np.float64, _np.complex64, _np.complex128
integer, floating, inexact, complexfloating, number, signedinteger, unsignedinteger = (
    _np.integer,
    _np.floating,
    _np.inexact,
    _np.complexfloating,
    _np.number,
    _np.signedinteger,
    _np.unsignedinteger,
)
bfloat16 = "bfloat16"


def result_type(*args):
    """The dtype that these arrays, numbers and dtypes have together."""
    return _weft.result_type(*args)


promote_types = result_type


def issubdtype(arg1, arg2) -> bool:
    """Whether a dtype is of a kind, as numpy.issubdtype."""
    return _np.issubdtype(_np.dtype(arg1) if isinstance(arg1, str) else arg1, arg2)


def iscomplexobj(x) -> bool:
    """Whether the elements are complex numbers."""
    return _weft.dtype_kind(_weft.array(x, None, False).dtype) == "complex"


def isrealobj(x) -> bool:
    """Whether the elements are no complex numbers."""
    return not iscomplexobj(x)


def isscalar(x) -> bool:
    """Whether x is a single number."""
    return _np.isscalar(x) or (isinstance(x, Array) and x.ndim == 0)


def apply_along_axis(func1d, axis: int, arr, *args, **kwargs):
    """func1d applied to every vector along an axis."""
    from .. import vmap

    arr = _shape.moveaxis(arr, axis, -1)
    function = lambda v: func1d(v, *args, **kwargs)
    for _ in range(arr.ndim - 1):
        function = vmap(function)
    out = function(arr)
    extra = out.ndim - (arr.ndim - 1)
    return (
        _shape.moveaxis(
            out, list(range(out.ndim - extra, out.ndim)), list(range(axis % arr.ndim, axis % arr.ndim + extra))
        )
        if extra
        else out
    )


def vectorize(pyfunc, *, excluded=(), signature=None):
    """A function of numbers made a function of arrays."""
    from .. import vmap

    if signature is not None:
        raise NotImplementedError("vectorize: signature=")

    def vectorized(*args):
        arrays = [a if i in excluded else _weft.array(a, None, False) for i, a in enumerate(args)]
        shape_ = _weft.broadcast_shapes(*(a.shape for i, a in enumerate(arrays) if i not in excluded))
        arrays = [a if i in excluded else _weft.broadcast_to(a, shape_) for i, a in enumerate(arrays)]
        function = pyfunc
        for _ in shape_:
            function = vmap(function, in_axes=tuple(None if i in excluded else 0 for i in range(len(arrays))))
        return function(*arrays)

    return vectorized


def _attach() -> None:
    """The methods of arrays, other than those that are written in C++."""
    methods = {
        "all": _reductions.all,
        "any": _reductions.any,
        "argmax": _reductions.argmax,
        "argmin": _reductions.argmin,
        "argsort": _sorting.argsort,
        "clip": _elementwise.clip,
        "conj": _elementwise.conjugate,
        "conjugate": _elementwise.conjugate,
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
