"""What a program says of its arguments and results, lowered or compiled."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from typing import Any

from . import _weft
from ._core import tree as _tree
from ._core.shapes import ShapeDtype
from ._core.tracing import LEAF_TREE
from ._sharding.devices import devices
from ._sharding.partitioning import places_of_results, shardings_of
from ._sharding.shardings import NamedSharding, PartitionSpec, SingleDeviceSharding, spec_of_types


class ArgInfo:
    """An argument: its type, and whether it is given away.

    Args:
        aval: its type.
        donated: whether it is given away.

    Example:
        >>> weft.jit(lambda x: x + 1).lower(wnp.ones(3)).args_info[0][0].shape
        (3,)
    """

    __slots__ = ("aval", "donated")

    def __init__(self, aval: Any, donated: bool = False):
        self.aval, self.donated = aval, donated

    @property
    def shape(self) -> tuple[int, ...]:
        """Its shape."""
        return tuple(self.aval.shape)

    @property
    def dtype(self) -> Any:
        """Its dtype."""
        return self.aval.dtype

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ArgInfo) and (self.aval, self.donated) == (other.aval, other.donated)

    def __hash__(self) -> int:
        return hash((self.aval, self.donated))

    def __repr__(self) -> str:
        return f"ArgInfo(aval={self.aval!r}, donated={self.donated})"


@dataclasses.dataclass(frozen=True)
class MemoryAnalysis:
    """Bytes of memory of a compiled program, under JAX's names. Code of the program's is not counted.

    Args:
        argument_size_in_bytes: of its arguments, and of the arrays that it captured.
        output_size_in_bytes: of its results.
        alias_size_in_bytes: of arguments that are given away, and whose memory results may take.
        temp_size_in_bytes: what it works in besides.
        generated_code_size_in_bytes: 0.

    Example:
        >>> compiled = weft.jit(lambda x: x + 1).lower(wnp.ones(8)).compile()
        >>> compiled.memory_analysis().argument_size_in_bytes
        32
    """

    argument_size_in_bytes: int
    output_size_in_bytes: int
    alias_size_in_bytes: int
    temp_size_in_bytes: int
    generated_code_size_in_bytes: int = 0

    @property
    def peak_memory_in_bytes(self) -> int:
        """All of it at once."""
        whole = self.argument_size_in_bytes + self.output_size_in_bytes + self.temp_size_in_bytes
        return whole - self.alias_size_in_bytes

    @classmethod
    def of_stages(cls, schedule: str, buffers: str) -> MemoryAnalysis:
        """Of these stages of a program: what the values take, and what memory there is for them."""
        values, taken = ({"param": 0, "result": 0}, {"param": 0, "result": 0})
        for text, pattern, sizes in (
            (schedule, r"^ *%\d+: (param|result) \d+, (\d+) bytes", values),
            (buffers, r"^ *b\d+: (param|result) \d+, (\d+) bytes", taken),
        ):
            for kind, size in re.findall(pattern, text, re.MULTILINE):
                sizes[kind] += int(size)
        arena = re.search(r"^arena (\d+) bytes", buffers, re.MULTILINE)
        # A result that takes the memory of an argument has no buffer of its own.
        alias = values["result"] - taken["result"]
        return cls(values["param"], values["result"], alias, int(arena[1]) if arena else 0)


class Described:
    """The arguments and results of a program."""

    _in_tree: Any
    _in_specs: list[Any]
    _donated: list[bool]
    _out: Any
    _traced: Any
    _ir: Any
    _optimized: Callable[[], Any]  # the program that code is made of
    _asked: Any  # how arguments have to lie

    def _describe(self, other: Described) -> None:
        self._in_tree, self._in_specs, self._donated = other._in_tree, other._in_specs, other._donated
        self._out, self._traced, self._ir = other._out, other._traced, other._ir
        self._optimized = other._optimized
        self._asked = getattr(other, "_asked", None)

    @property
    def in_tree(self) -> Any:
        """The structure of (arguments, keyword arguments), without the static ones.

        Example:
            >>> weft.jit(lambda x: x + 1).lower(1.0).in_tree.num_leaves
            1
        """
        return self._in_tree

    @property
    def out_tree(self) -> Any:
        """The structure of the result.

        Example:
            >>> weft.jit(lambda x: {"y": x}).lower(1.0).out_tree == weft.tree.structure({"y": 0})
            True
        """
        return self._result_tree()

    def _result_tree(self) -> Any:
        if self._out is None:
            return LEAF_TREE
        return _tree.structure((0,) * self._out) if isinstance(self._out, int) else self._out

    @property
    def in_avals(self) -> Any:
        """The types of (arguments, keyword arguments).

        Example:
            >>> weft.jit(lambda x: x + 1).lower(wnp.ones(3)).in_avals
            ((ShapeDtype((3,), float32),), {})
        """
        asked = getattr(self, "_asked", None) or [None] * len(self._in_specs)
        types = [
            ShapeDtype(s, d, weak_type=w, sharding=said_by_type(place))
            for (s, d, w), place in zip(self._in_specs, asked)
        ]
        return _tree.unflatten(self._in_tree, types)

    @property
    def args_info(self) -> Any:
        """Of (arguments, keyword arguments) the type of each, and whether it is donated.

        Example:
            >>> weft.jit(lambda x: x + 1, donate_argnums=0).lower(wnp.ones(3)).args_info[0][0].donated
            True
        """
        types = [ShapeDtype(s, d, weak_type=w) for s, d, w in self._in_specs]
        return _tree.unflatten(self._in_tree, [ArgInfo(t, given) for t, given in zip(types, self._donated)])

    @property
    def donate_argnums(self) -> tuple[int, ...]:
        """Which of the leaves of the arguments are donated.

        Example:
            >>> weft.jit(lambda x, y: x + y, donate_argnums=1).lower(1.0, wnp.ones(3)).donate_argnums
            (1,)
        """
        return tuple(i for i, given in enumerate(self._donated) if given)

    @property
    def out_info(self) -> Any:
        """The types of the result.

        Example:
            >>> weft.jit(lambda x: [x.sum()]).lower(wnp.ones(3)).out_info
            [ShapeDtype((), float32)]
        """
        types = [ShapeDtype(tuple(s), d, weak_type=w) for s, d, w in _weft.result_specs(self._traced)]
        return _tree.unflatten(self._result_tree(), types)

    def cost_analysis(self) -> dict[str, float]:
        """What the program costs, as IR.cost_analysis counts it, after the passes that it is compiled with.

        Returns: {"flops": number, "bytes accessed": number}.

        Example:
            >>> weft.jit(lambda x: x * x + 1).lower(wnp.ones(100)).cost_analysis()
            {'flops': 200.0, 'bytes accessed': 800.0}
        """
        flops, accessed = _weft.cost(self._optimized())
        return {"flops": flops, "bytes accessed": accessed}


def in_places(in_shardings: Any, args: tuple) -> list[NamedSharding | None]:
    """How in_shardings says that the leaves of the arguments lie."""
    return shardings_of(in_shardings, args, "jit: in_shardings")


def said_by_type(place: NamedSharding | None) -> NamedSharding | None:
    """How the type of an argument that lies so says it: along axes of type Explicit, on a mesh without devices."""
    if place is None or not place.mesh.explicit_axes:
        return None
    return NamedSharding(getattr(place.mesh, "abstract_mesh", place.mesh), spec_of_types(place.spec, place.mesh))


def places_asked_for(jitted: Any, args: tuple, named: dict, own: list) -> list[NamedSharding | None]:
    """How arguments have to lie for a program: as in_shardings says, or as those lay that it was made for."""
    asked = getattr(jitted, "_shardings", (None, None))[0]
    if asked is None or named:
        return list(own)
    return [place or lay for place, lay in zip(in_places(asked, args), own)]


class Placed(Described):
    """A compiled program, which also says where its arguments and results lie."""

    _lowered: Any

    @property
    def input_shardings(self) -> Any:
        """How (arguments, keyword arguments) lie: where nobody says it, whole on the devices of the program.

        Example:
            >>> weft.jit(lambda x: x + 1).lower(1.0).compile().input_shardings
            ((SingleDeviceSharding(device=CpuDevice(id=0)),), {})
        """
        given = self._lowered._asked
        mesh = next((found.mesh for found in given if found is not None), None)
        rest = SingleDeviceSharding(devices()[0]) if mesh is None else NamedSharding(mesh, PartitionSpec())
        return _tree.unflatten(self._in_tree, [found or rest for found in given])

    @property
    def output_shardings(self) -> Any:
        """How the results lie.

        Example:
            >>> weft.jit(lambda x: x + 1).lower(1.0).compile().output_shardings
            SingleDeviceSharding(device=CpuDevice(id=0))
        """
        return _tree.unflatten(self._result_tree(), self._places())

    def _places(self) -> list[Any]:
        lowered, alone = self._lowered, SingleDeviceSharding(devices()[0])
        return [found or alone for found in places_of_results(self._traced, lowered._shardings, lowered._fixed_order)]

    @property
    def out_info(self) -> Any:
        """The types of the result, with how it lies.

        Example:
            >>> weft.jit(lambda x: [x.sum()]).lower(wnp.ones(3)).compile().out_info[0].sharding
            SingleDeviceSharding(device=CpuDevice(id=0))
        """
        types = [
            ShapeDtype(tuple(shape), dtype, weak_type=weak, sharding=place)
            for (shape, dtype, weak), place in zip(_weft.result_specs(self._traced), self._places())
        ]
        return _tree.unflatten(self._result_tree(), types)
