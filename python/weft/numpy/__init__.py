"""NumPy's functions on Weft's arrays. They record into the function that is being traced, or compute at once.

dtypes follow JAX's promotion table: Python numbers are weak, float32 and int32 are the defaults, 64-bit arrays stay
64-bit. Arrays never change: there is no out=; use x.at[...].set(...) for updates.
"""

import importlib as _importlib
import math as _math
import typing as _typing

import numpy as _np

from .._core.names import belong_to as _belong_to
from .._weft import Array  # noqa: F401
from .._weft import Array as ndarray  # noqa: F401
from . import _methods, _ufunc_methods, fft, linalg  # noqa: F401
from ._apply import *  # noqa: F403
from ._choosing import *  # noqa: F403
from ._comparisons import *  # noqa: F403
from ._creation import *  # noqa: F403
from ._cumulative import *  # noqa: F403
from ._dlpack import *  # noqa: F403
from ._dtypes import *  # noqa: F403
from ._elementwise import *  # noqa: F403
from ._files import *  # noqa: F403
from ._grids import *  # noqa: F403
from ._indexing import *  # noqa: F403
from ._joining import *  # noqa: F403
from ._linalg import *  # noqa: F403
from ._matrices import *  # noqa: F403
from ._moments import *  # noqa: F403
from ._nan import *  # noqa: F403
from ._padding import *  # noqa: F403
from ._polynomials import *  # noqa: F403
from ._primitives import *  # noqa: F403
from ._quantiles import *  # noqa: F403
from ._reductions import *  # noqa: F403
from ._rounding import *  # noqa: F403
from ._sets import *  # noqa: F403
from ._shape import *  # noqa: F403
from ._sorting import *  # noqa: F403
from ._standard import __array_api_version__, __array_namespace_info__, array_namespace  # noqa: F401
from ._statistics import *  # noqa: F403

bool = bool_  # noqa: F405  # as NumPy has it
pi, e, inf, nan, euler_gamma = _math.pi, _math.e, _math.inf, _math.nan, _np.euler_gamma

_methods.attach(globals())
for _function in (logaddexp, logaddexp2):  # noqa: F405
    _ufunc_methods.attach(_function)

__all__ = [name for name in globals() if not name.startswith("_")]

_belong_to(globals(), average, cumprod, cumsum, cumulative_prod, cumulative_sum, mean, std, var)  # noqa: F405

if _typing.TYPE_CHECKING:
    from ._host import *  # noqa: F403
    from ._ufunc import *  # noqa: F403

# What few programs use is imported when one first asks for it.
_LATER = {
    "array_repr": "_host",
    "array_str": "_host",
    "einsum_path": "_host",
    "frombuffer": "_host",
    "fromfile": "_host",
    "fromiter": "_host",
    "frompyfunc": "_ufunc",
    "fromstring": "_host",
    "get_printoptions": "_host",
    "iterable": "_host",
    "place": "_host",
    "printoptions": "_host",
    "set_printoptions": "_host",
    "ufunc": "_ufunc",
}
__all__ += list(_LATER)


if not _typing.TYPE_CHECKING:  # for which a name that is not there is a mistake

    def __getattr__(name: str) -> _typing.Any:
        if name not in _LATER:
            raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
        value = globals()[name] = getattr(_importlib.import_module(f"{__name__}.{_LATER[name]}"), name)
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATER})
