"""What moves between the devices of a mesh in a program."""

from __future__ import annotations

from typing import Any, NamedTuple

from .. import _weft
from .meshes import AbstractMesh, mesh_axes
from .partitioning import cuts_of_arguments, program_mesh, said_by_types
from .results import spec_of, sums_in_parts


class Communication(NamedTuple):
    """A collective of a program that is cut over devices.

    Args:
        operation: psum, all_gather, psum_scatter, all_to_all, ppermute, pmax or pmin.
        axes: the axes of the mesh along which devices talk.
        bytes: that each device receives, each time, if all send as little as they can: among n devices with b bytes
            each, 2 b (n - 1) / n for psum, pmax and pmin, b (n - 1) / n for psum_scatter and all_to_all, b (n - 1) for
            all_gather, b for ppermute. Several axes are one group of devices.
        times: how often it runs; the trips of a loop of unknown length count once.
        cause: which value lies how, and who needs it otherwise.
        where: the line of who needs it.
        cheaper: the spec of an argument with which the whole program would send least, in words: of the argument that
            is moved, or else of the one that saves most; None: no other spec of one argument saves anything. Those
            that share its sizes evenly are tried, with fewer axes first: up to 256 of an argument, 1,000 in all.

    Example:
        >>> weft.Communication("psum", ("x",), 8.0, 1.0, "", "", None).operation
        'psum'
    """

    operation: str
    axes: tuple[str, ...]
    bytes: float
    times: float
    cause: str
    where: str
    cheaper: str | None

    def __str__(self) -> str:
        times = f" x {self.times:g}" if self.times != 1 else ""
        lines = f"{self.operation} over {', '.join(self.axes)}: {self.bytes:g} bytes{times} at {self.where or '?'}\n"
        lines += f"  {self.cause}\n"
        return lines + (f"  cheaper: {self.cheaper}\n" if self.cheaper else "")


# What XLA calls them.
_COLLECTIVES = {
    "psum": "all-reduce",
    "pmax": "all-reduce",
    "pmin": "all-reduce",
    "all_gather": "all-gather",
    "psum_scatter": "reduce-scatter",
    "all_to_all": "all-to-all",
    "ppermute": "collective-permute",
}


def sent(traced: Any, shardings: list, fixed_order: bool = False) -> str:
    """A line for each collective of the program of devices."""
    if any(isinstance(getattr(sharding, "mesh", None), AbstractMesh) for sharding in shardings):
        return ""  # of types alone
    try:
        found = comms(traced, shardings, [], fixed_order, cheaper=False)
    except NotImplementedError:
        return ""  # it runs on whole arrays
    lines = [f"{_COLLECTIVES[c.operation]}({c.operation} over {', '.join(c.axes)}): {c.bytes:g} bytes" for c in found]
    return "".join(f"  {line}\n" for line in lines)


def comms(
    traced: Any, shardings: list, names: list[str], fixed_order: bool = False, *, cheaper: bool = True
) -> list[Communication]:
    """What moves between devices in the program, for arguments that lie so; with `cheaper`, and how they would have to
    lie that less does."""
    mesh = program_mesh(traced, shardings)
    if mesh is None:
        return []
    found = []
    cuts = cuts_of_arguments(traced, mesh, shardings)
    said = said_by_types(traced, mesh, cuts, shardings) if mesh.are_all_axes_explicit else []
    _, _, _, records, total, _ = _weft.partition(
        traced,
        mesh_axes(mesh),
        cuts,
        cheaper,
        fixed_order,
        [dims for dims, _, _ in said],
        *sums_in_parts(mesh, cuts, shardings, said),
    )
    for operation, axes, sent, times, cause, where, better in records:
        saving = None
        if better is not None:
            param, dims, bytes_then = better
            name = names[param] if param < len(names) else "a captured array"
            saving = f"{name} as {spec_of(dims)}: {bytes_then:g} bytes in all, now {total:g}"
        found.append(Communication(operation, tuple(axes), sent, times, cause, where, saving))
    return found
