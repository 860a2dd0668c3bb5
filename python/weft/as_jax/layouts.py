"""Orders of arrays' dimensions in memory, of which there is one: row-major."""

from __future__ import annotations

import copy
import dataclasses
import functools
from typing import Any, ClassVar

import weft

from .. import _weft
from .._core import tree as _tree
from .._core.errors import type_error, value_error
from .._core.shapes import ShapeDtype
from .._sharding.partitioning import OnAllDevices
from .._sharding.shardings import prefix_entries
from ..compiled import Compiled
from .internals import AUTO, UnspecifiedValue


class AutoLayout:
    """Layout.AUTO: the compiler's choice."""

    def __repr__(self) -> str:
        return "AUTO"


@dataclasses.dataclass(frozen=True)
class Layout:
    """The order of an array's dimensions in memory. Weft's is row-major; others are accepted, without effect."""

    major_to_minor: tuple[int, ...] = ()
    tiling: Any = None
    sub_byte_element_size_in_bits: int = 0

    AUTO: ClassVar[Any] = AutoLayout()


@dataclasses.dataclass(frozen=True)
class Format:
    """A layout and a sharding."""

    layout: Any = None
    sharding: Any = None

    def __post_init__(self) -> None:
        if self.layout is not None and not isinstance(self.layout, (Layout, AutoLayout)):
            raise type_error(f"Invalid value received for the device-local layout: {self.layout!r}. Expected a Layout")


def format_of(x: Any) -> Format:
    """That of an array or type: row-major, where it lies."""
    return Format(Layout(tuple(range(len(x.shape)))), x.sharding)


def check_layout(given: Any, shape: tuple[Any, ...], what: str) -> None:
    """Raises TypeError or ValueError for a Format that arrays of this shape cannot have."""
    if not isinstance(given, Format):
        return
    if isinstance(given.layout, AutoLayout):
        raise type_error(f"`Layout.AUTO` cannot be used in place of a device-local layout in {what}, got {given}")
    order = getattr(given.layout, "major_to_minor", ())
    if order and len(order) != len(shape):
        raise value_error(
            "Length of major_to_minor and the rank of the value should match. Got major_to_minor="
            f"{tuple(order)} and shape={tuple(shape)} ({what})"
        )


def _formats_among(places: Any) -> list[Format]:
    whole = (weft.PartitionSpec, Format, Layout, AutoLayout, OnAllDevices)
    return [x for x in _tree.leaves(places, is_leaf=lambda node: isinstance(node, whole)) if isinstance(x, Format)]


def leaves_open(options: dict[str, Any]) -> bool:
    """Whether jit donates arguments whose layout nobody says, where the compiler may choose that of the results."""
    chosen = [
        any(isinstance(f.layout, AutoLayout) for f in _formats_among(options.get(name)))
        for name in ("in_shardings", "out_shardings")
    ]
    return _donates(options) and chosen == [False, True]


def check_has_layouts(arguments: Any) -> None:
    """Raises ValueError for arguments that nobody has put anywhere, of which no layout is known."""
    put = lambda x: isinstance(x, weft.Array) and (_weft.is_traced(x) or _weft.sharding_of(x) is not None)
    if not all(map(put, _tree.leaves(arguments))):
        raise value_error(_BOTH.format("output", "input"))


_BOTH = (
    "jit: donated arguments where the {0} layout is AUTO need an {1} layout that is, too: their memory cannot be used "
    "otherwise. Did you mean to set the **{1} layout** to **Layout.AUTO**?"
)


def _donates(options: dict[str, Any]) -> bool:
    return options.get("donate_argnums", ()) != () or options.get("donate_argnames") is not None


def checking_layouts(fun: Any, options: dict[str, Any]) -> Any:
    """The function, which refuses arguments that the layouts of in_shardings cannot be of, and donated ones where the
    compiler may choose the layout of one side alone."""
    orders = {name: options.get(name) for name in ("in_shardings", "out_shardings")}
    formats = {name: _formats_among(given) for name, given in orders.items()}
    if not any(formats.values()):
        return fun
    chosen = {name: any(isinstance(f.layout, AutoLayout) for f in found) for name, found in formats.items()}
    donates = _donates(options)

    @functools.wraps(fun)
    def called(*args: Any, **kwargs: Any) -> Any:
        if donates and chosen["in_shardings"] and not chosen["out_shardings"]:
            raise value_error(_BOTH.format("input", "output"))
        whole = lambda node: node is None or isinstance(node, (Format, weft.Sharding, weft.PartitionSpec, OnAllDevices))
        if formats["in_shardings"] and not kwargs:
            for leaf, place in zip(_tree.leaves(args), prefix_entries(orders["in_shardings"], whole, args, "jit", "")):
                if isinstance(place, Format) and not isinstance(place.layout, AutoLayout):
                    check_layout(place, tuple(getattr(leaf, "shape", ())), "in_shardings")
        return fun(*args, **kwargs)

    return called


def without_layouts(shardings: Any) -> Any:
    """What jit's in_shardings or out_shardings say of devices; None where that is nothing, or the first device."""

    def place(node: Any) -> Any:
        if isinstance(node, (Layout, AutoLayout)):
            raise value_error(
                "`jax.jit` does not accept device-local layouts directly. Create a `Format` instance wrapping this "
                "device-local layout and pass that to `jit` instead"
            )
        node = node.sharding if isinstance(node, Format) else node
        alone = isinstance(node, weft.SingleDeviceSharding) and node == weft.SingleDeviceSharding(weft.devices()[0])
        return None if alone or isinstance(node, (UnspecifiedValue, AUTO)) else node

    whole = (weft.PartitionSpec, Format, Layout, AutoLayout, OnAllDevices)
    return _tree.map(place, shardings, is_leaf=lambda node: isinstance(node, whole))


def with_layout_constraint(x: Any, layout: Any) -> Any:
    """The array: its layout is the compiler's."""
    check_layout(Format(layout), tuple(x.shape), "with_layout_constraint")
    return x


def _placed_type(placed: Any) -> Any:
    def of(self: ShapeDtype, sharding: Any) -> Any:
        check_layout(sharding, self.shape, "a `ShapeDtypeStruct`")
        if not isinstance(sharding, Format):
            return placed(self, sharding)
        place = placed(self, sharding.sharding)
        if isinstance(sharding.layout, Layout) and isinstance(place, weft.NamedSharding):
            place = copy.copy(place)
            place.__dict__["_layout"] = sharding.layout  # what is asked for: arrays have their own
        return place

    return of


def _layout_of(kind: ShapeDtype) -> Layout | None:
    """The layout that a type was given."""
    found: Layout | None = getattr(kind.sharding, "__dict__", {}).get("_layout")
    return found


def _format_of_type(kind: ShapeDtype) -> Format | None:
    if kind.sharding is None:
        return None
    asked = _layout_of(kind)
    return format_of(kind) if asked is None else Format(asked, kind.sharding)


def _updated(update: Any) -> Any:
    @functools.wraps(update)
    def of(self: ShapeDtype, **changes: Any) -> Any:
        if _layout_of(self) is not None and isinstance(changes.get("sharding"), weft.Sharding):
            raise value_error(
                "updating ShapeDtypeStruct's sharding, where it has a layout, takes a Format of both: the layout may "
                f"not be of the new sharding. Got {changes['sharding']} beside {_layout_of(self)}"
            )
        return update(self, **changes)

    return of


def _formats(shapes: list[Any], places: Any, tree: Any) -> Any:
    each = [
        Format(Layout(tuple(range(len(shape)))), place)
        for shape, place in zip(shapes, _tree.leaves(places, is_leaf=lambda x: isinstance(x, weft.Sharding)))
    ]
    return _tree.unflatten(tree, each)


def install() -> None:
    """From now on types take Formats and have one, as compiled programs have."""
    kind: Any = ShapeDtype
    kind._placed = _placed_type(kind._placed)
    kind.format, kind.update = property(_format_of_type), _updated(kind.update)
    compiled: Any = Compiled
    compiled.input_formats = property(
        lambda self: _formats([spec[0] for spec in self._in_specs], self.input_shardings, self._in_tree)
    )
    compiled.output_formats = property(
        lambda self: _formats(
            [t.shape for t in _tree.leaves(self.out_info)], self.output_shardings, self._result_tree()
        )
    )
