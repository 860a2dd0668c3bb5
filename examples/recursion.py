"""Adaptive quadrature: a function that calls itself until an integral is good enough, and its gradient.

Simpson's rule on the halves of an interval is compared with the rule on the whole (J. N. Lyness, "Notes on the adaptive
Simpson quadrature routine", J. ACM 16, 1969); where they differ, the function calls itself on both halves. How deep it
goes depends on the integrand and on its parameter, so there is nothing to unroll. The gradient with respect to the
parameter goes back along the same calls; vmap integrates for several parameters, each lane as deep as it needs.
"""

import math

import weft
import weft.numpy as wnp


def integrand(x, a):
    return wnp.exp(-a * x) * wnp.sin(20 * x)


def simpson(lo, hi, a):
    mid = 0.5 * (lo + hi)
    return (hi - lo) / 6 * (integrand(lo, a) + 4 * integrand(mid, a) + integrand(hi, a))


@weft.jit
def integral(lo, hi, tolerance, a):
    mid = 0.5 * (lo + hi)
    whole, halves = simpson(lo, hi, a), simpson(lo, mid, a) + simpson(mid, hi, a)
    return weft.cond(
        wnp.abs(halves - whole) < 15 * tolerance,
        lambda: halves + (halves - whole) / 15,
        lambda: integral(lo, mid, tolerance / 2, a) + integral(mid, hi, tolerance / 2, a),
    )


def exact(a, b=20.0):
    """The integral of exp(-a x) sin(b x) from 0 to 1, and its derivative by a."""
    e, s, c = math.exp(-a), math.sin(b), math.cos(b)
    top, bottom = b - e * (a * s + b * c), a * a + b * b
    slope = e * (a * s + b * c) - e * s
    return top / bottom, (slope * bottom - top * 2 * a) / bottom**2


def main():
    f64 = lambda x: wnp.asarray(x, "float64")
    f = lambda a: integral(f64(0.0), f64(1.0), f64(1e-9), a)
    print("    a   integral             error   d/da                 error")
    for a in (0.5, 1.0, 2.0):
        value, slope = weft.value_and_grad(f)(f64(a))
        want, want_slope = exact(a)
        print(f"{a:5.1f}   {value.item():.12f}  {abs(value.item() - want):.1e}   "
              f"{slope.item():.12f}  {abs(slope.item() - want_slope):.1e}")  # fmt: skip
        assert abs(value.item() - want) < 1e-8 and abs(slope.item() - want_slope) < 1e-6
    lanes = weft.vmap(f)(wnp.asarray([0.5, 1.0, 2.0], "float64"))
    print("all at once:", lanes)
    print(weft.make_ir(integral)(0.0, 1.0, 1e-3, 1.0))


if __name__ == "__main__":
    main()
