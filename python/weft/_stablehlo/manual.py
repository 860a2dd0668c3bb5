"""Functions that every device of a mesh runs, and what devices send each other."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from .._core.ir_view import Operation
from .attributes import element_of, quoted, tensor_of
from .body import Body, Named, Rule
from .types import tensor

__all__ = ["RULES"]

_CHANNEL = {"channel_handle": "#stablehlo.channel_handle<handle = 1, type = 1>"}
_OF_PROGRAM = {"use_global_device_ids": "unit"}
_COMBINED = {"psum": "add", "pmax": "max", "pmin": "min"}


def _axes_of(mesh: str) -> dict[str, int]:
    return {name: int(size) for name, size in re.findall(r"(\w+)=(\d+)", mesh)}


def _shardings(text: str, mesh: str, is_open: bool) -> str:
    """shardings((x,-),(y.z)) -> [<@mesh, [{"x"}, {}]>, <@mesh, [{"y", "z"}]>]; open: {"x", ?}, what is left to the
    compiler."""
    each = []
    for dims in re.findall(r"\(([^()]*)\)", text[len("shardings(") : -1]):
        names = [[*map(quoted, filter("-".__ne__, dim.split(".")))] for dim in dims.split(",")] if dims else []
        cuts = [", ".join([*cut, "?"] if is_open else cut) for cut in names]
        each.append(f"<@{mesh}, [{', '.join(f'{{{cut}}}' for cut in cuts)}]>")
    return f"[{', '.join(each)}]"


def _spmd(body: Body, op: Operation, types: list[str]) -> Sequence[Named] | None:
    module = body.module
    if module.meshes is None:
        return None
    axes = _axes_of(str(op.attributes["mesh"]))
    mesh = body.mesh_of(str(op.attributes["mesh"]))
    operands = [body.read(x) for x in op.operands]
    inner = op.regions[0]
    view = inner._view
    outside, body.lines = body.lines, []
    around, module.manual = module.manual, axes
    arguments = [body.new(tensor(str(p.type))) for p in view.parameters]
    results = body.inline(inner, arguments)
    module.manual = around
    given = ", ".join(r.name for r in results)
    body.lines.append(f"sdy.return {given} : {', '.join(r.type for r in results)}" if results else "sdy.return")
    inside, body.lines = body.lines, outside
    name = body.new("").name
    made = [Named(f"{name}#{i}" if len(types) > 1 else name, type_) for i, type_ in enumerate(types)]
    head = "" if not types else f"{name}:{len(types)} = " if len(types) > 1 else f"{name} = "
    alone = op.attributes.get("alone", ())
    of = lambda which: _shardings(str(op.attributes[which]), mesh, bool(alone))
    places = [f"{which}={of(which)}" for which in ("in_shardings", "out_shardings")]
    manual = ", ".join(quoted(name) for name in axes if name not in alone)
    takes = ", ".join(f"{a.name}: {a.type}" for a in arguments)
    body.lines.append(
        f"{head}sdy.manual_computation({', '.join(o.name for o in operands)}) {' '.join(places)} "
        f"manual_axes={{{manual}}} ({takes}) {{"
    )
    body.lines += ["  " + line for line in inside]
    gives = types[0] if len(types) == 1 else f"({', '.join(types)})"
    body.lines.append(f"}} : ({', '.join(o.type for o in operands)}) -> {gives}")
    return made


def _devices(body: Body, over: Sequence[str]) -> np.ndarray[Any, Any]:
    """The numbers of the devices: a row for each group that talks along these axes."""
    axes = body.module.manual or {}
    names = list(axes)
    numbers = np.arange(int(np.prod(list(axes.values()), dtype=int))).reshape(list(axes.values()))
    rest = [d for d, name in enumerate(names) if name not in over]
    turned = numbers.transpose([*rest, *(names.index(name) for name in over)])
    return turned.reshape(-1, int(np.prod([axes[name] for name in over], dtype=int)))


def _dense(rows: np.ndarray[Any, Any]) -> str:
    return f"dense<{rows.tolist()}> : {tensor_of(rows.shape, 'i64')}"


def _all_reduce(body: Body, op: Operation, types: list[str]) -> Sequence[Named] | None:
    if body.module.manual is None:
        return None
    element = tensor_of((), element_of(types[0]))
    groups = _dense(_devices(body, op.attributes["axes"]))
    attributes = {**_CHANNEL, "replica_groups": groups, **_OF_PROGRAM}
    region = body.combine(_COMBINED[op.name], element)
    return body.op("all_reduce", [body.read(op.operands[0])], types, attributes, [region])


def _psum_scatter(body: Body, op: Operation, types: list[str]) -> Sequence[Named] | None:
    if body.module.manual is None:
        return None
    element = tensor_of((), element_of(types[0]))
    groups = _dense(_devices(body, op.attributes["axes"]))
    place = {"scatter_dimension": f"{op.attributes['dim']} : i64", **_OF_PROGRAM}
    attributes = {**_CHANNEL, "replica_groups": groups, **place}
    return body.op("reduce_scatter", [body.read(op.operands[0])], types, attributes, [body.combine("add", element)])


def _all_gather(body: Body, op: Operation, types: list[str]) -> Sequence[Named] | None:
    if body.module.manual is None:
        return None
    groups = _dense(_devices(body, op.attributes["axes"]))
    place = {"all_gather_dim": f"{op.attributes['dim']} : i64"}
    attributes = {**place, **_CHANNEL, "replica_groups": groups, **_OF_PROGRAM}
    return body.op("all_gather", [body.read(op.operands[0])], types, attributes)


def _all_to_all(body: Body, op: Operation, types: list[str]) -> Sequence[Named] | None:
    if body.module.manual is None:
        return None
    groups = _devices(body, op.attributes["axes"])
    attributes = {
        **_CHANNEL,
        "concat_dimension": f"{op.attributes['concat']} : i64",
        "replica_groups": _dense(groups),
        "split_count": f"{groups.shape[1]} : i64",
        "split_dimension": f"{op.attributes['split']} : i64",
    }
    return body.op("all_to_all", [body.read(op.operands[0])], types, attributes)


def _ppermute(body: Body, op: Operation, types: list[str]) -> Sequence[Named] | None:
    if body.module.manual is None:
        return None
    perm = op.attributes["perm"]
    pairs = [
        [int(group[i]), int(group[j])]
        for group in _devices(body, op.attributes["axes"])
        for i, j in zip(perm[::2], perm[1::2])
    ]
    attributes = {**_CHANNEL, "source_target_pairs": _dense(np.array(pairs, dtype=int).reshape(-1, 2))}
    return body.op("collective_permute", [body.read(op.operands[0])], types, attributes)


def _axis_index(body: Body, op: Operation, types: list[str]) -> Sequence[Named] | None:
    axes = body.module.manual
    if axes is None:
        return None
    unsigned, names = tensor_of((), "ui32"), list(axes)
    device = body.op("partition_id", [], [unsigned])[0]
    total: Named | None = None
    for name in op.attributes["axes"]:
        after = int(np.prod([axes[n] for n in names[names.index(name) + 1 :]], dtype=int))
        at = body.op("divide", [device, body.number(str(after), unsigned)], [unsigned])[0]
        at = body.op("remainder", [at, body.number(str(axes[name]), unsigned)], [unsigned])[0]
        if total is not None:
            total = body.op("multiply", [total, body.number(str(axes[name]), unsigned)], [unsigned])[0]
            at = body.op("add", [total, at], [unsigned])[0]
        total = at
    assert total is not None
    return body.op("convert", [total], types)


def _pvary(body: Body, op: Operation, types: list[str]) -> Sequence[Named]:
    return [body.read(op.operands[0])]


RULES: dict[str, Rule] = {
    "all_gather": _all_gather,
    "all_to_all": _all_to_all,
    "axis_index": _axis_index,
    "ppermute": _ppermute,
    "psum_scatter": _psum_scatter,
    "pvary": _pvary,
    "spmd": _spmd,
    **dict.fromkeys(_COMBINED, _all_reduce),
}
