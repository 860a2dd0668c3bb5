"""Pictures of who holds what of an array, in JAX's proportions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import weft

from .._core.errors import value_error

_WIDTH_OF_HEIGHT = 2.5  # so many characters side by side are as wide as one is high


def _cells(shape: Sequence[int], sharding: Any) -> np.ndarray:
    """The numbers of the devices that hold each part, by its place."""
    holders: dict[tuple[int, ...], set[int]] = {}
    for device, index in sharding._parts(shape).items():
        place = tuple(s.start // (s.stop - s.start) for s in index)
        holders.setdefault(place if len(shape) == 2 else (0, *place), set()).add(device.id)
    cells = np.empty([max(sizes) + 1 for sizes in zip(*holders)], dtype=object)
    for place, ids in holders.items():
        cells[place] = ids
    return cells


def visualize_sharding(
    shape: Any,
    sharding: Any,
    *,
    use_color: bool = True,
    scale: float = 1.0,
    min_width: int = 9,
    max_width: int = 80,
    color_map: Any = None,
) -> None:
    """Prints a picture of who holds what of an array of one or two dimensions: without `scale` ten lines high, and as
    wide as the array is to it. Colors have no effect."""
    del use_color, color_map
    shape = tuple(shape)
    if len(shape) not in (1, 2):
        raise value_error(
            f"`visualize_sharding` only works for shapes with 1 and 2 dimensions, and {shape} has {len(shape)}"
        )
    cells = _cells(shape, sharding)
    kind = next(iter(sharding.device_set)).platform.upper()
    rows, columns = cells.shape
    whole = int(10 * scale)
    width = int(int(whole * (shape[1] if len(shape) == 2 else 1) / shape[0]) / columns * _WIDTH_OF_HEIGHT)
    width = min(max(width, min_width), max_width) - 2
    height = max(int(whole / rows) - 2, 0) + 1 if len(shape) == 2 else 1
    texts = [[f"{kind} {','.join(map(str, sorted(ids)))}" for ids in row] for row in cells]
    wide = [max(width, *(len(row[c]) for row in texts)) for c in range(columns)]

    def line(left: str, middle: str, right: str) -> str:
        return left + middle.join("─" * n for n in wide) + right

    drawn = []
    for row in texts:
        held = [
            "│" + "│".join(_centered(text if here else "", n) for text, n in zip(row, wide)) + "│"
            for here in (i == (height - 1) // 2 for i in range(height))
        ]
        drawn.append("\n".join(held))
    picture = f"\n{line('├', '┼', '┤')}\n".join(drawn)
    print(f"{line('┌', '┬', '┐')}\n{picture}\n{line('└', '┴', '┘')}")


def _centered(text: str, width: int) -> str:
    left = (width - len(text)) // 2
    return " " * left + text + " " * (width - len(text) - left)


def visualize_array_sharding(arr: Any, **options: Any) -> None:
    """... of an array; of a traced value when its program has run to it."""
    weft.debug.inspect_array_sharding(arr, callback=lambda place: visualize_sharding(arr.shape, place, **options))
