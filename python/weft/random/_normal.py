"""Normal numbers from uniform ones: the inverse of the error function by the formulas that jax.random takes.

The primitive erf_inv has smaller errors; with these the numbers are those of jax.random on a CPU, to the last bit.
Sources of the polynomials: M. Giles, "Approximating the erfinv function", GPU Computing Gems (Jade edition), 2011;
log1p in S. Moshier's Cephes library.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

from .. import _weft
from .. import numpy as wnp
from .._weft import Array
from ..custom import custom_jvp
from ._all_sizes import for_all_sizes

# In 32 bits: below w = 5 in w - 2.5, above in sqrt(w) - 3. The coefficient of the highest power first.
_SINGLE = (
    (
        2.81022636e-08,
        3.43273939e-07,
        -3.5233877e-06,
        -4.39150654e-06,
        0.00021858087,
        -0.00125372503,
        -0.00417768164,
        0.246640727,
        1.50140941,
    ),
    (
        -0.000200214257,
        0.000100950558,
        0.00134934322,
        -0.00367342844,
        0.00573950773,
        -0.0076224613,
        0.00943887047,
        1.00167406,
        2.83297682,
    ),
)
# In 64 bits: below w = 6.25 in w - 3.125, below 16 in sqrt(w) - 3.25, above in sqrt(w) - 5.
_DOUBLE = (
    (
        -3.6444120640178196996e-21,
        -1.685059138182016589e-19,
        1.2858480715256400167e-18,
        1.115787767802518096e-17,
        -1.333171662854620906e-16,
        2.0972767875968561637e-17,
        6.6376381343583238325e-15,
        -4.0545662729752068639e-14,
        -8.1519341976054721522e-14,
        2.6335093153082322977e-12,
        -1.2975133253453532498e-11,
        -5.4154120542946279317e-11,
        1.051212273321532285e-09,
        -4.1126339803469836976e-09,
        -2.9070369957882005086e-08,
        4.2347877827932403518e-07,
        -1.3654692000834678645e-06,
        -1.3882523362786468719e-05,
        0.0001867342080340571352,
        -0.00074070253416626697512,
        -0.0060336708714301490533,
        0.24015818242558961693,
        1.6536545626831027356,
    ),
    (
        2.2137376921775787049e-09,
        9.0756561938885390979e-08,
        -2.7517406297064545428e-07,
        1.8239629214389227755e-08,
        1.5027403968909827627e-06,
        -4.013867526981545969e-06,
        2.9234449089955446044e-06,
        1.2475304481671778723e-05,
        -4.7318229009055733981e-05,
        6.8284851459573175448e-05,
        2.4031110387097893999e-05,
        -0.0003550375203628474796,
        0.00095328937973738049703,
        -0.0016882755560235047313,
        0.0024914420961078508066,
        -0.0037512085075692412107,
        0.005370914553590063617,
        1.0052589676941592334,
        3.0838856104922207635,
    ),
    (
        -2.7109920616438573243e-11,
        -2.5556418169965252055e-10,
        1.5076572693500548083e-09,
        -3.7894654401267369937e-09,
        7.6157012080783393804e-09,
        -1.4960026627149240478e-08,
        2.9147953450901080826e-08,
        -6.7711997758452339498e-08,
        2.2900482228026654717e-07,
        -9.9298272942317002539e-07,
        4.5260625972231537039e-06,
        -1.9681778105531670567e-05,
        7.5995277030017761139e-05,
        -0.00021503011930044477347,
        -0.00013871931833623122026,
        1.0103004648645343977,
        4.8499064014085844221,
    ),
)


def _sum(x: Array, y: Array | float) -> Array:
    """x + y, where a product among them is not rounded on CPUs that have an instruction for both, as in XLA."""
    out: Array = _weft.bind_elementwise("add", (x, y), {"fused": True})
    return out


def _difference(x: Array, y: Array | float) -> Array:
    out: Array = _weft.bind_elementwise("sub", (x, y), {"fused": True})
    return out


def _polynomial(coefficients: tuple[float, ...], x: Array) -> Array:
    out: Array = _weft.full(x.shape, coefficients[0], x.dtype)
    for c in coefficients[1:]:
        out = _sum(out * x, c)
    return out


# log(1 + x) = x - x^2 / 2 + x^3 numerator / denominator for |x| < sqrt(2) - 1.
_NUMERATOR = (
    4.5270000862445199635215e-5,
    4.9854102823193375972212e-1,
    6.5787325942061044846969,
    2.9911919328553073277375e1,
    6.0949667980987787057556e1,
    5.7112963590585538103336e1,
    2.0039553499201281259648e1,
)
_DENOMINATOR = (
    1.0,
    1.5062909083469192043167e1,
    8.3047565967967209469434e1,
    2.2176239823732856465394e2,
    3.0909872225312059774938e2,
    2.1642788614495947685003e2,
    6.0118660497603843919306e1,
)


# log(1 + x) in 32 bits, for 1 + x between sqrt(1/2) and sqrt(2): x - x^2 / 2 + x^3 times this polynomial.
_LOG = (
    7.0376836292e-2,
    -1.1514610310e-1,
    1.1676998740e-1,
    -1.2420140846e-1,
    1.4249322787e-1,
    -1.6668057665e-1,
    2.0000714765e-1,
    -2.4999993993e-1,
    3.3333331174e-1,
)


def _log(v: Array) -> Array:
    """The logarithm of positive floats of 32 bits, by jax.random's own steps: the same bits, while the order of the
    last sum lets the compiler fuse the product that XLA fuses, and _sum allows it to.
    """
    bits = v.view("int32")
    exponent = (bits >> 23) - 126
    fraction = ((bits & 0x7FFFFF) | 0x3F000000).view("float32")
    low = fraction < math.sqrt(0.5)
    power = wnp.where(low, exponent - 1, exponent).astype("float32")
    x = (fraction - 1) + wnp.where(low, fraction, 0)
    square = x * x
    cube = square * x
    parts = [_polynomial(_LOG[i : i + 3], x) for i in (0, 3, 6)]
    rest = _sum(_sum(parts[0] * cube, parts[1]) * cube, parts[2]) * cube
    # log(2) in two parts, of which the first is exact times a small integer.
    near = _sum(_difference(x, 0.5 * square), _sum(rest, power * -2.12194440e-4))
    return _sum(power * 0.693359375, near)


def _log_double(v: Array) -> Array:
    """The logarithm of floats of 64 bits as jax.random takes it: the C library's."""
    out: Array = _weft.bind_elementwise("log", (v,), {"accuracy": "highest"})
    return out


def _log1p(x: Array) -> Array:
    square = x * x
    rest = _polynomial(_NUMERATOR, x) / _polynomial(_DENOMINATOR, x)
    small = wnp.abs(x)
    return wnp.where(
        small < math.sqrt(2) - 1,
        _sum(x, _sum(-0.5 * square, square * x * rest)),
        (_log_double if x.dtype == "float64" else _log)(1 - small),
    )


def _erf_inv(u: Array) -> Array:
    w = -_log1p(u * -u)
    root = wnp.sqrt(w)
    if u.dtype == "float64":
        far = wnp.where(w < 16, _polynomial(_DOUBLE[1], root - 3.25), _polynomial(_DOUBLE[2], root - 5))
        p = wnp.where(w < 6.25, _polynomial(_DOUBLE[0], w - 3.125), far)
    else:
        p = wnp.where(w < 5, _polynomial(_SINGLE[0], w - 2.5), _polynomial(_SINGLE[1], root - 3))
    return wnp.where(wnp.abs(u) == 1, u * float("inf"), p * u)


@functools.cache
def _compiled() -> Callable[[Array], Array]:
    inverse = custom_jvp(_erf_inv, elementwise=True)

    @inverse.defjvp
    def inverse_jvp(primals, tangents):
        (u,), (tangent,) = primals, tangents
        out = inverse(u)
        return out, tangent * (math.sqrt(math.pi) / 2 * wnp.exp(out * out))

    return for_all_sizes(inverse, "signed-zero")  # with the roundings that are written here


def erf_inv(u: Array) -> Array:
    """The inverse of the error function of floats in (-1, 1); 16-bit ones in 32 bits."""
    wide = u if u.dtype in ("float32", "float64") else u.astype("float32")
    return _compiled()(wide).astype(u.dtype)
