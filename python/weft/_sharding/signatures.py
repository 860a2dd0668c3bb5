"""How the arguments and results of a program lie, for its text."""

from __future__ import annotations

from typing import Any, NamedTuple

from .. import _weft
from .._core import tree as _tree
from .meshes import mesh_axes
from .partitioning import given_layouts, meshes_of, shardings_of
from .shardings import NamedSharding, cuts_of
from .typed import spec_of_dims


class Signature(NamedTuple):
    """Of each argument and result how it lies; None where nobody says it of all axes of the mesh. Of each argument
    whether it is donated."""

    arguments: list[NamedSharding | None]
    results: list[NamedSharding | None]
    donated: list[bool]

    def donations(self, arguments: list[str], results: list[str]) -> list[str]:
        """Attributes of the arguments, of these types: the result that may have the memory of one that is donated,
        or that the compiler may choose one."""
        taken: set[int] = set()
        texts = []
        for i, (type_, given) in enumerate(zip(arguments, self.donated)):
            fits = [j for j, other in enumerate(results) if other == type_ and j not in taken] if given else []
            alike = [j for j in fits if self.results[j] == self.arguments[i]]
            taken.update(alike[:1] or fits[:1])
            text = f"tf.aliasing_output = {alike[0]} : i32" if alike else "jax.buffer_donor = true" if fits else ""
            texts.append(text)
        return texts + [""] * (len(arguments) - len(texts))


def signature_of(lowered: Any, jitted: Any) -> Signature:
    """... of a lowered function, where out_shardings, or types, say it of results."""
    traced, arguments = lowered._traced, lowered._asked
    out_shardings = jitted.__dict__.get("_shardings", (None, None))[1]
    count = len(_weft.result_specs(traced))
    meshes = [place.mesh for place in arguments if isinstance(place, NamedSharding)] + meshes_of(traced)
    mesh = next((mesh for mesh in meshes if mesh.explicit_axes), None)
    if mesh is None or not mesh.are_all_axes_explicit:
        results: list = [None] * count
        if out_shardings is not None:
            out = _tree.unflatten(lowered._result_tree(), [0] * count)
            results = shardings_of(out_shardings, out, "jit: out_shardings")
        return Signature(arguments, results, lowered._donated)
    specs = _weft.param_specs(traced)
    cuts = [
        cuts_of(mesh, place.spec, shape, "lower")
        if isinstance(place, NamedSharding) and place.mesh.shape == mesh.shape
        else None
        for place, (shape, _, _) in zip(arguments, specs)
    ]
    given = given_layouts(cuts + [None] * (len(specs) - len(cuts)), arguments)
    said = _weft.explicit_cuts(traced, mesh_axes(mesh), list(mesh.typed_axes), given)
    results = [NamedSharding(mesh, spec_of_dims(dims, *sums)) for dims, *sums in said]
    return Signature(arguments, results, lowered._donated)
