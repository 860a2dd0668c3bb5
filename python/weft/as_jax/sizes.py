"""Open sizes of exported programs told from arguments, with JAX's words for those that do not fit.

A size is a polynomial: {("a",): 2, (): 1} is 2*a + 1."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from .._core.errors import value_error

Polynomial = Mapping[tuple[str, ...], int]
_DOCS = "https://docs.jax.dev/en/latest/export/shape_poly.html"


def polynomial(size: Any) -> dict[tuple[str, ...], int]:
    """A size of a shape, a number or weft.Dim."""
    if isinstance(size, int):
        return {(): size} if size else {}
    found: dict[tuple[str, ...], int] = {}
    for term in str(size).replace("-", "+-").strip("+").split("+"):
        factors = term.removeprefix("-").split("*")
        numbers = [int(f) for f in factors if f.isdigit()]
        symbols = tuple(sorted(f for f in factors if not f.isdigit()))
        found[symbols] = found.get(symbols, 0) + math.prod(numbers) * (-1 if term.startswith("-") else 1)
    return found


def _sum(a: Polynomial, b: Polynomial, times: int = 1) -> dict[tuple[str, ...], int]:
    total = dict(a)
    for symbols, n in b.items():
        total[symbols] = total.get(symbols, 0) + times * n
    return {symbols: n for symbols, n in total.items() if n}


def _product(a: Polynomial, b: Polynomial) -> dict[tuple[str, ...], int]:
    total: dict[tuple[str, ...], int] = {}
    for left, n in a.items():
        total = _sum(total, {tuple(sorted(left + right)): m for right, m in b.items()}, n)
    return total


def _substituted(size: Polynomial, values: Mapping[str, Polynomial]) -> dict[tuple[str, ...], int]:
    """A size of this program's; the values may have symbols of the program around."""
    total: dict[tuple[str, ...], int] = {}
    for symbols, n in size.items():
        product: Polynomial = {(): n}
        for symbol in symbols:
            product = _product(product, values[symbol])
        total = _sum(total, product)
    return total


def text(size: Polynomial) -> str:
    """As JAX writes it: 2*b + a - 1."""
    out = ""
    for symbols, n in sorted(size.items(), key=lambda term: (len(term[0]), term[0][::-1]), reverse=True):
        powers = [s if (k := symbols.count(s)) == 1 else f"{s}^{k}" for s in sorted(set(symbols), reverse=True)]
        factors = ([] if abs(n) == 1 and powers else [str(abs(n))]) + powers
        sign = (" - " if n < 0 else " + ") if out else ("-" if n < 0 else "")
        out += sign + "*".join(factors)
    return out or "0"


def _least(size: Polynomial) -> float:
    """The least that it can be, where symbols are 1 or more."""
    return sum(n if n > 0 or not symbols else -math.inf for symbols, n in size.items())


class _Sizes:
    """What has been told of the sizes of a program."""

    def __init__(self, names: Sequence[str], wanted: Sequence[Any], given: Sequence[Any]):
        self.values: dict[str, Polynomial] = {}
        self._said: list[str] = []
        shapes = [[polynomial(size) for size in shape] for shape in wanted]
        rows = zip(names, shapes, given)
        self._open = [
            (f"{name}.shape[{d}]", size, polynomial(have))
            for name, shape, sizes in rows
            for d, (size, have) in enumerate(zip(shape, sizes))
            if any(symbols for symbols in size)
        ]
        written = [f"({', '.join(map(text, shape))}{',' * (len(shape) == 1)})" for shape in shapes]
        self._specs = ", ".join(f"{name}.shape = {shape}" for name, shape in zip(names, written))

    def _misfit(self, problem: str) -> str:
        told = "".join(f"{one}, " for one in self._said)
        return (
            f"Input shapes do not match the polymorphic shapes specification. {problem}. Using the following "
            f"polymorphic shapes specifications: {self._specs}. Obtained dimension variables: {told}. Please see "
            f"{_DOCS}#shape-assertion-errors for more details."
        )

    def _unknown(self, size: Polynomial) -> set[str]:
        return {symbol for symbols in size for symbol in symbols if symbol not in self.values}

    def _tell(self, where: str, size: Polynomial, have: Polynomial) -> bool:
        """Whether the dimension told something: the value of its one unknown symbol, or that it fits."""
        unknown = self._unknown(size)
        if not unknown:
            wanted = _substituted(size, self.values)
            if wanted != have:
                raise value_error(
                    self._misfit(
                        f"Found inconsistency between dimension size {where} (= {text(have)}) and the specification "
                        f"'{text(size)}' (= {text(wanted)})"
                    )
                )
            return True
        symbol = next(iter(unknown))
        linear = {symbols: n for symbols, n in size.items() if symbol in symbols}
        if len(unknown) > 1 or list(linear) != [(symbol,)]:
            return False
        factor = linear[symbol,]
        rest = _sum(have, _substituted(_sum(size, linear, -1), self.values), -1)
        left = {symbols: n % factor for symbols, n in rest.items() if n % factor}
        if left:
            remainder = text(left) if set(left) == {()} else f"mod({text(rest)}, {factor})"
            raise value_error(
                self._misfit(f"Division had remainder {remainder} when computing the value of '{symbol}'")
            )
        value = {symbols: n // factor for symbols, n in rest.items()}
        self.values[symbol] = value
        self._said.append(
            f"'{symbol}' = {text(value)} from specification '{text(size)}' for dimension {where} (= {text(have)})"
        )
        if _least(value) < 1:
            raise value_error(self._misfit(f"Expected value >= 1 for dimension variable '{symbol}'"))
        return True

    def tell(self) -> None:
        """Every dimension, until none tells more."""
        while True:
            before = len(self._open)
            self._open = [row for row in self._open if not self._tell(*row)]
            if len(self._open) == before:
                break
        if self._open:
            unknown = sorted({symbol for _, size, _ in self._open for symbol in self._unknown(size)})
            unprocessed = ", ".join(f"'{text(size)}' for dimension size {where}" for where, size, _ in self._open)
            raise value_error(
                f"Cannot solve for values of dimension variables {set(unknown)}. We can only solve linear uni-variate "
                f"constraints. Using the following polymorphic shapes specifications: {self._specs}. Unprocessed "
                f"specifications: {unprocessed}. Please see {_DOCS}"
                "#dimension-variables-must-be-solvable-from-the-input-shapes for more details."
            )


def check(names: Sequence[str], wanted: Sequence[Any], given: Sequence[Any]) -> None:
    """Raises ValueError unless shapes fit those of a program with open sizes; `names` of the arguments."""
    _Sizes(names, wanted, given).tell()
