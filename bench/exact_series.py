"""Exact values of formulas of one number, and of their first two derivatives, by mpmath."""

from __future__ import annotations

import builtins

import mpmath
from mpmath import mp, mpf


class Series:
    """A value with its first and second derivative."""

    def __init__(self, value, first=0, second=0):
        self.value, self.first, self.second = mpf(value), mpf(first), mpf(second)

    def through(self, value, first, second) -> Series:
        """f(self), where f and its derivatives here are these."""
        return Series(value, first * self.first, second * self.first**2 + first * self.second)

    def __add__(self, other):
        if isinstance(other, Vector):
            return NotImplemented
        other = of(other)
        return Series(self.value + other.value, self.first + other.first, self.second + other.second)

    def __neg__(self):
        return Series(-self.value, -self.first, -self.second)

    def __sub__(self, other):
        if isinstance(other, Vector):
            return NotImplemented
        return self + -of(other)

    def __mul__(self, other):
        if isinstance(other, Vector):
            return NotImplemented
        other = of(other)
        return Series(
            self.value * other.value,
            self.first * other.value + self.value * other.first,
            self.second * other.value + 2 * self.first * other.first + self.value * other.second,
        )

    def __truediv__(self, other):
        if isinstance(other, Vector):
            return NotImplemented
        other = of(other)
        v = other.value
        return self * other.through(1 / v, -1 / v**2, 2 / v**3)

    def __pow__(self, exponent):
        if isinstance(exponent, Series) and (exponent.first or exponent.second):
            return exp(exponent * log(self))
        n, v = of(exponent).value, self.value
        if n == 0:
            return Series(1)
        if n == 1:
            return self
        return self.through(v**n, n * v ** (n - 1), n * (n - 1) * v ** (n - 2) if n != 2 else mpf(2))

    def __radd__(self, other):
        return self + other

    def __rsub__(self, other):
        return of(other) - self

    def __rmul__(self, other):
        return self * other

    def __rtruediv__(self, other):
        return of(other) / self

    def __rpow__(self, base):
        return exp(self * mpmath.log(mpf(base)))

    def __lt__(self, other):
        return self.value < of(other).value

    def __gt__(self, other):
        return self.value > of(other).value

    def __le__(self, other):
        return self.value <= of(other).value

    def __ge__(self, other):
        return self.value >= of(other).value

    def __eq__(self, other):
        return self.value == of(other).value

    def __hash__(self):
        return hash(self.value)


def of(x) -> Series:
    """A number in a formula is the decimal that is written there."""
    return x if isinstance(x, Series) else Series(mpf(repr(float(x))))


class Vector(list):
    """Numbers that operate element by element."""

    def _each(self, other, operation):
        others = other if isinstance(other, list) else [other] * len(self)
        return Vector(operation(of(a), of(b)) for a, b in zip(self, others))

    def __add__(self, other):
        return self._each(other, lambda a, b: a + b)

    def __radd__(self, other):
        return self._each(other, lambda a, b: b + a)

    def __sub__(self, other):
        return self._each(other, lambda a, b: a - b)

    def __rsub__(self, other):
        return self._each(other, lambda a, b: b - a)

    def __mul__(self, other):
        return self._each(other, lambda a, b: a * b)

    def __rmul__(self, other):
        return self._each(other, lambda a, b: b * a)

    def __truediv__(self, other):
        return self._each(other, lambda a, b: a / b)

    def __rtruediv__(self, other):
        return self._each(other, lambda a, b: b / a)

    def __pow__(self, n):
        return Vector(of(a) ** n for a in self)

    def __neg__(self):
        return Vector(-of(a) for a in self)


def _each(function):
    def of_any(x):
        return Vector(function(of(a)) for a in x) if isinstance(x, list) else function(of(x))

    return of_any


def _unary(value, first, second):
    return _each(lambda x: x.through(value(x.value), first(x.value), second(x.value)))


exp = _unary(mpmath.exp, mpmath.exp, mpmath.exp)
expm1 = _unary(mpmath.expm1, mpmath.exp, mpmath.exp)
log = _unary(mpmath.log, lambda v: 1 / v, lambda v: -1 / v**2)
log1p = _unary(lambda v: mpmath.log(1 + v), lambda v: 1 / (1 + v), lambda v: -1 / (1 + v) ** 2)
sqrt = _unary(mpmath.sqrt, lambda v: 1 / (2 * mpmath.sqrt(v)), lambda v: -1 / (4 * v * mpmath.sqrt(v)))
sin = _unary(mpmath.sin, mpmath.cos, lambda v: -mpmath.sin(v))
cos = _unary(mpmath.cos, lambda v: -mpmath.sin(v), lambda v: -mpmath.cos(v))
tan = _unary(mpmath.tan, lambda v: mpmath.sec(v) ** 2, lambda v: 2 * mpmath.sec(v) ** 2 * mpmath.tan(v))
sinh = _unary(mpmath.sinh, mpmath.cosh, mpmath.sinh)
cosh = _unary(mpmath.cosh, mpmath.sinh, mpmath.cosh)
tanh = _unary(mpmath.tanh, lambda v: mpmath.sech(v) ** 2, lambda v: -2 * mpmath.sech(v) ** 2 * mpmath.tanh(v))
arctan = _unary(mpmath.atan, lambda v: 1 / (1 + v**2), lambda v: -2 * v / (1 + v**2) ** 2)
erf = _unary(
    mpmath.erf,
    lambda v: 2 / mpmath.sqrt(mp.pi) * mpmath.exp(-(v**2)),
    lambda v: -4 * v / mpmath.sqrt(mp.pi) * mpmath.exp(-(v**2)),
)
erfc = _unary(
    mpmath.erfc,
    lambda v: -2 / mpmath.sqrt(mp.pi) * mpmath.exp(-(v**2)),
    lambda v: 4 * v / mpmath.sqrt(mp.pi) * mpmath.exp(-(v**2)),
)
gammaln = _unary(mpmath.loggamma, mpmath.digamma, lambda v: mpmath.polygamma(1, v))
absolute = _each(lambda x: x if x.value >= 0 else -x)


def where(condition, x, y):
    """Of single numbers; a formula of which one branch has no value is not evaluated: both are functions."""
    chosen = x if condition else y
    return of(chosen() if callable(chosen) else chosen)


def maximum(x, y):
    return of(x) if of(x).value >= of(y).value else of(y)


def sum(x):
    total = Series(0)
    for a in x:
        total = total + a
    return total


def mean(x):
    return sum(x) / len(x)


def max(x):
    return builtins.max((of(a) for a in x), key=lambda a: a.value)


def prod(x):
    total = Series(1)
    for a in x:
        total = total * a
    return total


def at(formula, x, **letters) -> Series | None:
    """The value and derivatives of formula(x); None where they are no real numbers."""
    try:
        made = of(formula(Series(x, 1, 0), **letters))
    except (ZeroDivisionError, ValueError, TypeError, OverflowError):
        return None
    return made if all(mpmath.isfinite(v) for v in (made.value, made.first, made.second)) else None
