"""How each operation is written that is more than a name, and why some cannot be."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from .. import _weft
from .._core import composites
from .._core.ir_view import Operation, Value
from ..ad_checkpoint import NO_BARRIER
from ..program import IR
from .attributes import bool_text, direction, element_of, ints, listed, padding, quoted, shape_of, tensor_of, zero
from .body import Body, Named, Rule
from .manual import RULES as MANUAL
from .operations import REDUCTIONS, WINDOWS
from .types import ELEMENTS, listed_attributes

__all__ = ["REASONS", "RULES"]


def _first_dtype(op: Operation) -> Any:
    x = op.operands[0]
    return x.type.dtype if isinstance(x, Value) else _weft.abstract(x.array)[1]


def _convert(b: Body, op: Operation, types: list[str]) -> Sequence[Named]:
    x = b.wide(op)[0]
    if "complex" in x.type and element_of(types[0]) == "i1":  # there only the real part counts
        nothing = b.number(zero(x.type), x.type)
        return b.op("compare", [x, nothing], types, direction("NE"))
    if "complex" in x.type and "complex" not in types[0]:
        part = re.search(r"complex<(f\d+)>", x.type)
        assert part is not None
        x = b.op("real", [x], [tensor_of(shape_of(x.type), part[1])])[0]
    if x.type == types[0]:
        return [x]
    return b.op("convert", [x], types)


def _round(b: Body, op: Operation, types: list[str]) -> Sequence[Named]:
    name = {"even": "round_nearest_even", "away": "round_nearest_afz"}[op.attributes["mode"]]
    return b.op(name, b.wide(op), types)


def _polygamma(b: Body, op: Operation, types: list[str]) -> Sequence[Named]:
    return b.op("chlo.polygamma", [b.number("1.0", types[0]), *b.wide(op)], types)


def _select(b: Body, op: Operation, types: list[str]) -> Sequence[Named]:
    return b.op("select", b.wide(op), types)


def _reduce(b: Body, op: Operation, types: list[str]) -> Sequence[Named]:
    x, (name, first) = b.read(op.operands[0]), REDUCTIONS[op.name]
    number = tensor_of([], element_of(x.type))
    init = b.first(first, _first_dtype(op), number)
    attributes = {"dimensions": ints(op.attributes["dims"])}
    return b.op("reduce", [x, init], types, attributes, [b.combine(name, number)])


def _reduce_window(b: Body, op: Operation, types: list[str]) -> Sequence[Named]:
    x, (name, first), at = b.read(op.operands[0]), WINDOWS[op.name], op.attributes
    number = tensor_of([], element_of(x.type))
    init = b.first(first, _first_dtype(op), number)
    attributes = {
        "window_dimensions": ints(at["window"]),
        "window_strides": ints(at["strides"]),
        "base_dilations": ints(at["base_dilation"]),
        "window_dilations": ints(at["window_dilation"]),
        "padding": padding(at["lo"], at["hi"]),
    }
    return b.op("reduce_window", [x, init], types, attributes, [b.combine(name, number)])


def _contract(b: Body, op: Operation, types: list[str]) -> Sequence[Named]:
    x, y = b.read(op.operands[0]), b.read(op.operands[1])
    terms, out = op.attributes["spec"].split("->")
    left, right = terms.split(",")
    batch = [c for c in left if c in right and c in out]
    summed = [c for c in left if c in right and c not in out]
    order = [*batch, *(c for c in left if c not in right), *(c for c in right if c not in left)]
    sizes = {**dict(zip(left, shape_of(x.type))), **dict(zip(right, shape_of(y.type)))}
    numbers = {
        "lhs_batching_dimensions": listed([left.index(c) for c in batch]),
        "rhs_batching_dimensions": listed([right.index(c) for c in batch]),
        "lhs_contracting_dimensions": listed([left.index(c) for c in summed]),
        "rhs_contracting_dimensions": listed([right.index(c) for c in summed]),
    }
    inside = ", ".join(f"{k} = {v}" for k, v in numbers.items())
    attributes = {
        "dot_dimension_numbers": f"#stablehlo.dot<{inside}>",
        "precision_config": "[#stablehlo<precision HIGHEST>, #stablehlo<precision HIGHEST>]",
    }
    element = element_of(types[0])
    made = b.op("dot_general", [x, y], [tensor_of([sizes[c] for c in order], element)], attributes)
    if order == list(out):
        return made
    return b.op("transpose", made, types, {"permutation": ints([order.index(c) for c in out])})


def _conv(b: Body, op: Operation, types: list[str]) -> Sequence[Named]:
    at = op.attributes
    places = ", ".join(str(i) for i in range(len(at["strides"])))
    spatial = f", {places}" if places else ""
    attributes = {
        "dimension_numbers": f"#stablehlo.conv<[b, f{spatial}]x[o, i{spatial}]->[b, f{spatial}]>",
        "window_strides": ints(at["strides"]),
        "padding": padding(at["lo"], at["hi"]),
        "lhs_dilation": ints(at["lhs_dilation"]),
        "rhs_dilation": ints(at["rhs_dilation"]),
        "feature_group_count": f"{at['feature_groups']} : i64",
        "batch_group_count": f"{at['batch_groups']} : i64",
        "precision_config": "[#stablehlo<precision HIGHEST>, #stablehlo<precision HIGHEST>]",
    }
    return b.op("convolution", [b.read(x) for x in op.operands], types, attributes)


def _plain(name: str, **attributes: Callable[[Operation], str]) -> Rule:
    """An operation of the same operands, whose attributes follow from ours."""
    return lambda b, op, types: b.op(
        name, [b.read(x) for x in op.operands], types, {k: f(op) for k, f in attributes.items()}
    )


def _of(name: str) -> Callable[[Operation], str]:
    return lambda op: ints(op.attributes[name])


def _dynamic(name: str) -> Rule:
    def rule(b: Body, op: Operation, types: list[str]) -> Sequence[Named]:
        fixed = 1 if name == "dynamic_slice" else 2
        operands = [b.read(x) for x in op.operands]
        places = operands[fixed:]
        if len({p.type for p in places}) > 1:  # they are all of one type there
            places = [p if p.type == "tensor<i64>" else b.op("convert", [p], ["tensor<i64>"])[0] for p in places]
        attributes = {"slice_sizes": ints(shape_of(types[0]))} if name == "dynamic_slice" else {}
        if not places:
            return [operands[fixed - 1]]
        return b.op(name, [*operands[:fixed], *places], types, attributes)

    return rule


def _gather(b: Body, op: Operation, types: list[str]) -> Sequence[Named] | None:
    at = op.attributes
    if at["mode"] not in ("clip", "promise"):
        return None
    x, indices = (b.read(o) for o in op.operands)
    numbers = {
        "offset_dims": at["offset_dims"],
        "collapsed_slice_dims": at["collapsed_dims"],
        "operand_batching_dims": at["operand_batch_dims"],
        "start_indices_batching_dims": at["indices_batch_dims"],
        "start_index_map": at["start_index_map"],
    }
    inside = [f"{k} = {listed(v)}" for k, v in numbers.items()]
    inside.append(f"index_vector_dim = {len(shape_of(indices.type)) - 1}")
    attributes = {
        "dimension_numbers": f"#stablehlo.gather<{', '.join(inside)}>",
        "slice_sizes": ints(at["slice_sizes"]),
        "indices_are_sorted": "false",
    }
    return b.op("gather", [x, indices], types, attributes)


_SCATTERS = {"scatter": None, "scatter_add": "add", "scatter_mul": "mul", "scatter_max": "max", "scatter_min": "min"}


def _scatter(b: Body, op: Operation, types: list[str]) -> Sequence[Named] | None:
    at = op.attributes
    if at["mode"] == "clip":
        return None
    x, indices, updates = (b.read(o) for o in op.operands)
    numbers = {
        "update_window_dims": at["update_window_dims"],
        "inserted_window_dims": at["inserted_dims"],
        "input_batching_dims": at["operand_batch_dims"],
        "scatter_indices_batching_dims": at["indices_batch_dims"],
        "scatter_dims_to_operand_dims": at["scatter_dims"],
    }
    inside = [f"{k} = {listed(v)}" for k, v in numbers.items()]
    inside.append(f"index_vector_dim = {len(shape_of(indices.type)) - 1}")
    attributes = {
        "scatter_dimension_numbers": f"#stablehlo.scatter<{', '.join(inside)}>",
        "indices_are_sorted": "false",
        "unique_indices": "true" if at.get("unique") else "false",
    }
    number, join = tensor_of([], element_of(x.type)), _SCATTERS[op.name]
    region = b.region([number, number], lambda old, new: [new]) if join is None else b.combine(join, number)
    return b.op("scatter", [x, indices, updates], types, attributes, [region])


def _sort(b: Body, op: Operation, types: list[str]) -> Sequence[Named]:
    """The comparison is JAX's: zeros and NaNs are made one each, so that the total order of floats is ours."""
    operands = [b.read(x) for x in op.operands]
    numbers = [tensor_of([], element_of(o.type)) for o in operands]

    def one(x: Named) -> list[Named]:
        """The keys that compare as the element does."""
        element = element_of(x.type)
        if element.startswith("complex"):
            part = tensor_of([], element[len("complex<") : -1])
            return [k for name in ("real", "imag") for k in one(b.op(name, [x], [part])[0])]
        if "f" not in element:
            return [x]
        nothing = b.number("0.0", x.type)
        is_zero = b.op("compare", [x, nothing], ["tensor<i1>"], direction("EQ"))[0]
        with_zero = b.op("select", [is_zero, nothing, x], [x.type])[0]
        is_nan = b.op("compare", [x, x], ["tensor<i1>"], direction("NE"))[0]
        nan = b.constant(_weft.full((), float("nan"), ELEMENTS[element]), x.type)
        return b.op("select", [is_nan, nan, with_zero], [x.type])

    def compare(x: Named, y: Named, how: str) -> Named:
        attributes = direction(how)
        if "f" in element_of(x.type):
            attributes["compare_type"] = "#stablehlo<comparison_type TOTALORDER>"
        return b.op("compare", [x, y], ["tensor<i1>"], attributes)[0]

    def before(*pairs: Named) -> Sequence[Named]:
        keys = [
            pair for i in range(op.attributes["num_keys"]) for pair in zip(one(pairs[2 * i]), one(pairs[2 * i + 1]))
        ]
        less = compare(*keys[-1], "LT")
        for x, y in reversed(keys[:-1]):
            first, equal = compare(x, y, "LT"), compare(x, y, "EQ")
            rest = b.op("and", [equal, less], ["tensor<i1>"])[0]
            less = b.op("or", [first, rest], ["tensor<i1>"])[0]
        return [less]

    region = b.region([t for n in numbers for t in (n, n)], before)
    attributes = {"dimension": f"{op.attributes['dim']} : i64", "is_stable": "true"}
    return b.op("sort", operands, types, attributes, [region])


def _cholesky(b: Body, op: Operation, types: list[str]) -> Sequence[Named]:
    made = b.op("cholesky", [b.read(op.operands[0])], types, {"lower": "true"})
    shape = shape_of(types[0])
    places, kept = tensor_of(shape, "i32"), tensor_of(shape, "i1")
    row, column = (b.op("iota", [], [places], {"iota_dimension": f"{len(shape) - k} : i64"})[0] for k in (2, 1))
    lower = b.op("compare", [row, column], [kept], direction("GE"))
    above = b.constant(_weft.full((), 0, op.results[0].type.dtype), types[0])
    return b.op("select", [*lower, *made, above], types)


def _triangular_solve(b: Body, op: Operation, types: list[str]) -> Sequence[Named]:
    a, x = (b.read(o) for o in op.operands)
    at = op.attributes
    if at["conjugate"] and not at["transpose"] and "complex" in a.type:
        a = b.op("chlo.conj", [a], [a.type])[0]
    kind = "NO_TRANSPOSE" if not at["transpose"] else "ADJOINT" if at["conjugate"] else "TRANSPOSE"
    attributes = {
        "left_side": bool_text(at["left"]),
        "lower": bool_text(at["lower"]),
        "unit_diagonal": bool_text(at["unit_diagonal"]),
        "transpose_a": f"#stablehlo<transpose {kind}>",
    }
    return b.op("triangular_solve", [a, x], types, attributes)


def _top_k(b: Body, op: Operation, types: list[str]) -> Sequence[Named]:
    x = b.read(op.operands[0])
    made = [b.new(t) for t in types]
    names = ", ".join(m.name for m in made)
    b.lines.append(f"{names} = chlo.top_k({x.name}, k = {op.attributes['k']}) : {x.type} -> ({', '.join(types)})")
    return made


# Regions.


def _call(b: Body, op: Operation, types: list[str]) -> Sequence[Named]:
    operands = [b.read(x) for x in op.operands]
    if (known := composites.of_function(op.regions[0].__name__)) is not None:
        return _composite(b, op.regions[0], known, operands, types)
    if op.attributes.get("out_of_line") and operands:
        operands = _barred(b, op.regions[0], operands)
    name = b.module.call(op.regions[0], op.regions[0].__name__)
    made = [b.new(t) for t in types]
    signature = f"({', '.join(o.type for o in operands)}) -> ({', '.join(types)})"
    head = f"{', '.join(m.name for m in made)} = " if made else ""
    b.lines.append(f"{head}func.call @{name}({', '.join(o.name for o in operands)}) : {signature}")
    return made


def _composite(
    b: Body, made_of: IR, known: composites.Composite, operands: list[Named], types: list[str]
) -> Sequence[Named]:
    given = {"decomposition": f"@{b.module.call(made_of, known.name)}"}
    if known.attributes:
        given["composite_attributes"] = listed_attributes(known.attributes)
    if known.version:
        given["version"] = f"{known.version} : i32"
    made = [b.new(t) for t in types]
    head = f"{', '.join(m.name for m in made)} = " if made else ""
    said = ", ".join(f"{name} = {given[name]}" for name in sorted(given))
    results = types[0] if len(types) == 1 else f"({', '.join(types)})"
    signature = f"({', '.join(o.type for o in operands)}) -> {results}"
    names = ", ".join(o.name for o in operands)
    b.lines.append(f"{head}stablehlo.composite {quoted(known.name)} {names} {{{said}}} : {signature}")
    return made


def _inline(at: int) -> Rule:
    def rule(b: Body, op: Operation, types: list[str]) -> Sequence[Named] | None:
        region = op.regions[min(at, len(op.regions) - 1)] if op.regions else None
        return None if region is None else b.inline(region, [b.read(x) for x in op.operands])

    return rule


def _primitive(b: Body, op: Operation, types: list[str]) -> Sequence[Named] | None:
    """A weft.Primitive: what it is made of. One that the host computes has nothing but to be shown."""
    return None if op.attributes.get("opaque") and not b.module.as_printed else _inline(0)(b, op, types)


def _remat(b: Body, op: Operation, types: list[str]) -> Sequence[Named]:
    operands = [b.read(x) for x in op.operands]
    (region,) = op.regions
    if op.attributes.get("prevent_cse", True) and operands:
        operands = _barred(b, region, operands)
    return b.inline(region, operands)


def _barred(b: Body, region: Any, operands: list[Named]) -> list[Named]:
    """The operands of what is computed again behind a barrier, but for those that may be merged."""
    at = [i for i, p in enumerate(region._view.parameters) if not _is_marked(region._view.operations, p)]
    behind = dict(zip(at, _barrier(b, [operands[i] for i in at]) if at else []))
    return [behind.get(i, operand) for i, operand in enumerate(operands)]


def _is_marked(operations: Sequence[Operation], parameter: Any) -> bool:
    """Whether a parameter of a program is read under this name alone."""
    readers = [op for op in operations if any(x is parameter for x in op.operands)]
    return bool(readers) and all(op.attributes.get("name") == NO_BARRIER for op in readers)


def _barrier(b: Body, operands: list[Named]) -> list[Named]:
    """The operands where nobody sees that they are these: what is computed of them again stays so."""
    made = [b.new(o.type) for o in operands]
    left, right = (", ".join(o.name for o in part) for part in (made, operands))
    b.lines.append(f"{left} = stablehlo.optimization_barrier {right} : {', '.join(o.type for o in operands)}")
    return made


def _cond(b: Body, op: Operation, types: list[str]) -> Sequence[Named]:
    index, *operands = (b.read(x) for x in op.operands)
    regions = [b.region([], lambda region=region: b.inline(region, operands)) for region in op.regions]
    if index.type == "tensor<i1>":
        return b.op("if", [index], types, None, regions[::-1])
    # There an index out of bounds means the last branch.
    lo, hi = b.number("0", index.type), b.number(str(len(regions) - 1), index.type)
    return b.op("case", b.op("clamp", [lo, index, hi], [index.type]), types, None, regions)


def _while(b: Body, op: Operation, types: list[str]) -> Sequence[Named] | None:
    n = op.attributes["num_carry"]
    if len(op.results) != n:
        return None
    operands = [b.read(x) for x in op.operands]
    carries, rest = operands[:n], operands[n:]
    regions = [b.region(types, lambda *c, region=region: b.inline(region, [*c, *rest])) for region in op.regions]
    return b.op("while", carries, types, None, regions)


def _scan(b: Body, op: Operation, types: list[str]) -> Sequence[Named] | None:
    """A loop over a counter, which reads a row of each array and writes a row of each result."""
    at, trips = op.attributes, op.trips
    snapshots = op.name == "snapshot_scan"
    if snapshots and (at["num_backward"] or len(op.regions) > 1 or len(op.results) < at["num_forward"]):
        return None
    operands = [b.read(x) for x in op.operands]
    first, n = at["num_consts"], at["num_forward" if snapshots else "num_carry"]
    constants, carries, xs = operands[:first], operands[first : first + n], operands[first + n :]
    region = op.regions[0]
    if len(xs) + first + n != len(region._view.parameters) or trips is None:
        return None
    stacked = types[n:]
    zeros = [b.number(zero(t), t) for t in stacked]
    if trips == 0:
        return [*carries, *zeros]
    counter = "tensor<i32>" if trips < 2**31 else "tensor<i64>"
    inside = [counter, *types]

    def goes_on(i: Named, *_: Named) -> Sequence[Named]:
        return b.op("compare", [i, b.number(str(trips), counter)], ["tensor<i1>"], direction("LT"))

    def body(i: Named, *values: Named) -> Sequence[Named]:
        carry, ys = values[:n], values[n:]
        place = i
        if at["reverse"]:
            place = b.op("subtract", [b.number(str(trips - 1), counter), i], [counter])[0]
        start = b.number("0", counter)
        where = lambda type_: [place, *[start] * (len(shape_of(type_)) - 1)]
        rows = []
        for x in xs:
            shape = shape_of(x.type)
            row = b.op(
                "dynamic_slice",
                [x, *where(x.type)],
                [tensor_of([1, *shape[1:]], element_of(x.type))],
                {"slice_sizes": ints([1, *shape[1:]])},
            )[0]
            rows.append(_reshaped(b, row, shape[1:]))
        out = b.inline(region, [*constants, *carry, *rows])
        for k, (y, row) in enumerate(zip(ys, out[n:])):
            row = _reshaped(b, row, [1, *shape_of(row.type)])
            out[n + k] = b.op("dynamic_update_slice", [y, row, *where(y.type)], [y.type])[0]
        return [b.op("add", [i, b.number("1", counter)], [counter])[0], *out]

    start = b.number("0", counter)
    regions = [b.region(inside, goes_on), b.region(inside, body)]
    return b.op("while", [start, *carries, *zeros], inside, None, regions)[1:]


def _reshaped(b: Body, x: Named, shape: Sequence[int]) -> Named:
    type_ = tensor_of(shape, element_of(x.type))
    return x if type_ == x.type else b.op("reshape", [x], [type_])[0]


def _dim_size(b: Body, op: Operation, types: list[str]) -> Sequence[Named]:
    x = b.read(op.operands[0])
    return [b.number(str(shape_of(x.type)[op.attributes["dim"]]), types[0])]


RULES: dict[str, Rule] = {
    "bitcast": lambda b, op, types: b.op("bitcast_convert", b.wide(op), types),
    "broadcast": _plain("broadcast_in_dim", broadcast_dimensions=_of("dims")),
    "call": _call,
    "cholesky": _cholesky,
    "clamp": lambda b, op, types: b.op("clamp", b.wide(op), types),
    "concatenate": _plain("concatenate", dimension=lambda op: f"{op.attributes['dim']} : i64"),
    "cond": _cond,
    "contract": _contract,
    "conv": _conv,
    "convert": _convert,
    "custom_jvp": _inline(0),
    "custom_linear": _inline(1),
    "custom_vjp": _inline(0),
    "custom_vmap": _inline(0),
    "dim_size": _dim_size,
    "dynamic_slice": _dynamic("dynamic_slice"),
    "dynamic_update_slice": _dynamic("dynamic_update_slice"),
    "fft": _plain(
        "fft",
        fft_type=lambda op: f"#stablehlo<fft_type {op.attributes['kind'].upper()}>",
        fft_length=_of("lengths"),
    ),
    "gather": _gather,
    "iota": _plain("iota", iota_dimension=lambda op: f"{op.attributes['dim']} : i64"),
    "linear_solve": _inline(0),
    "pad": _plain("pad", edge_padding_low=_of("lo"), edge_padding_high=_of("hi"), interior_padding=_of("interior")),
    "primitive": _primitive,
    "random_unwrap": _plain("bitcast_convert"),
    "random_wrap": _plain("bitcast_convert"),
    "remat": _remat,
    "reshape": _plain("reshape"),
    "reverse": _plain("reverse", dimensions=_of("dims")),
    "round": _round,
    "scan": _scan,
    "select": _select,
    "slice": _plain("slice", start_indices=_of("start"), limit_indices=_of("limit"), strides=_of("strides")),
    "snapshot_scan": _scan,
    "sort": _sort,
    "top_k": _top_k,
    "transpose": _plain("transpose", permutation=_of("perm")),
    "triangular_solve": _triangular_solve,
    "trigamma": _polygamma,
    "while": _while,
    **MANUAL,
    **dict.fromkeys(REDUCTIONS, _reduce),
    **dict.fromkeys(WINDOWS, _reduce_window),
    **dict.fromkeys(_SCATTERS, _scatter),
}

_HOST = ": it is a call of the host, and StableHLO programs run without one"
_DEVICES = ": to_stablehlo writes for one device; weft.jit(f).lower(...).as_text('stablehlo') writes for a mesh"
_FACTORS = ", nor an operation to make it of; compute it outside, or write it by products and solves"
_RECORDS = (
    ": a loop of unknown length records what its derivative needs. Give it a known one (weft.fori_loop, weft.scan)"
)
# Why an operation has no counterpart.
_MEMORY = ": there nobody says where values lie; write the program from before 'explicit-alloc'"
REASONS: dict[str, str] = {
    "primitive": _HOST + "; give it a lowering in operations on arrays: weft.Primitive(..., lower=...)",
    **dict.fromkeys(("assert", "debug_print", "io_callback", "pure_callback"), _HOST),
    **dict.fromkeys(("eig", "eigh", "svd", "qr", "lu"), _FACTORS),
    **dict.fromkeys(("recur", "recursive"), ": a function there cannot call itself"),
    **dict.fromkeys(
        ("spmd", "psum", "pmax", "pmin", "all_gather", "all_to_all", "axis_index", "ppermute", "psum_scatter", "pvary"),
        _DEVICES,
    ),
    **dict.fromkeys(("box", "unbox", "tape_add", "tape_scan"), _RECORDS),
    **dict.fromkeys(("allocate", "free", "into", "load"), _MEMORY),
    "while": _RECORDS,
}
