"""Pieces of text: types, and the values of attributes."""

from __future__ import annotations

import re
from collections.abc import Sequence

__all__ = [
    "bool_text",
    "direction",
    "element_of",
    "ints",
    "listed",
    "padding",
    "quoted",
    "shape_of",
    "tensor_of",
    "zero",
]


def ints(numbers: Sequence[int]) -> str:
    return f"array<i64: {', '.join(map(str, numbers))}>" if numbers else "array<i64>"


def listed(numbers: Sequence[int]) -> str:
    return f"[{', '.join(map(str, numbers))}]"


def padding(lo: Sequence[int], hi: Sequence[int]) -> str:
    rows = ", ".join(listed(pair) for pair in zip(lo, hi))
    return f"dense<[{rows}]> : tensor<{len(lo)}x2xi64>" if lo else "dense<> : tensor<0x2xi64>"


def quoted(text: str) -> str:
    inside = "".join(c if c.isprintable() and c not in '"\\' and ord(c) < 128 else _escaped(c) for c in text)
    return f'"{inside}"'


def _escaped(c: str) -> str:
    return "".join(f"\\{byte:02X}" for byte in c.encode())


def shape_of(type_: str) -> list[int]:
    return [int(n) for n in re.findall(r"(\d+)x", type_.partition("complex")[0])]


def element_of(type_: str) -> str:
    return re.sub(r"^tensor<(\d+x)*", "", type_)[:-1]


def tensor_of(shape: Sequence[int], element: str) -> str:
    return f"tensor<{''.join(f'{n}x' for n in shape)}{element}>"


def direction(direction: str) -> dict[str, str]:
    return {"comparison_direction": f"#stablehlo<comparison_direction {direction}>"}


def bool_text(x: bool) -> str:
    return "true" if x else "false"


def zero(type_: str) -> str:
    element = element_of(type_)
    if element.startswith("complex"):
        return "(0.0, 0.0)"
    return "false" if element == "i1" else "0.0" if "f" in element else "0"
