"""jax.extend.mlir.dialects.stablehlo: its operations, by MLIR's names.

Of values of a module they are operations of the module. Of arrays, which is what the lowering of a primitive gets, they
compute, by the same rules as those that read texts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import weft

from .. import _weft
from .._core.errors import not_implemented, type_error
from .._stablehlo.attributes import bool_text, ints
from .._stablehlo.operations import ELEMENTWISE
from .._stablehlo.reading import Reader
from .._stablehlo.rules import RULES
from .._stablehlo.syntax import Op, parse
from .._stablehlo.types import element
from . import mlir_ir as ir


def _integer(x: Any) -> str:
    return f"{int(x)} : i64"


def _word(kind: str) -> Callable[[Any], str]:
    return lambda x: f"#stablehlo<{kind} {x}>"


class _Form(NamedTuple):
    """How an operation is called from Python.

    Attributes:
        class_name: what its class is called.
        operands: names of operands; one that begins with `*` is a list of values.
        attributes: name -> how what is given for it is written.
        typed: whether the types of its results come first.
        regions: names of its regions.
    """

    class_name: str
    operands: tuple[str, ...]
    attributes: Mapping[str, Callable[[Any], str]] = MappingProxyType({})
    typed: bool = False
    regions: tuple[str, ...] = ()


# Classes that are not called what the operation is, in CamelCase.
_CLASSES = {
    "count_leading_zeros": "ClzOp", "divide": "DivOp", "exponential": "ExpOp", "exponential_minus_one": "Expm1Op",
    "log_plus_one": "Log1pOp", "maximum": "MaxOp", "minimum": "MinOp", "multiply": "MulOp", "negate": "NegOp",
    "popcnt": "PopulationCountOp", "power": "PowOp", "remainder": "RemOp",
}  # fmt: skip
_BINARY = {
    "add", "and", "atan2", "complex", "divide", "maximum", "minimum", "multiply", "or", "power", "remainder",
    "shift_left", "shift_right_arithmetic", "shift_right_logical", "subtract", "xor",
}  # fmt: skip


def _class_name(name: str) -> str:
    return _CLASSES.get(name, "".join(word.capitalize() for word in name.split("_")) + "Op")


_names = [theirs.removeprefix("stablehlo.") for theirs in ELEMENTWISE.values() if theirs.startswith("stablehlo.")]
_FORMS: dict[str, _Form] = {
    **{name: _Form(_class_name(name), ("lhs", "rhs") if name in _BINARY else ("operand",)) for name in _names},
    "broadcast_in_dim": _Form("BroadcastInDimOp", ("operand",), {"broadcast_dimensions": ints}, typed=True),
    "case": _Form("CaseOp", ("index",), typed=True),
    "clamp": _Form("ClampOp", ("min", "operand", "max")),
    "compare": _Form(
        "CompareOp",
        ("lhs", "rhs"),
        {"comparison_direction": _word("comparison_direction"), "compare_type": _word("comparison_type")},
    ),
    "concatenate": _Form("ConcatenateOp", ("*inputs",), {"dimension": _integer}),
    "constant": _Form("ConstantOp", (), {"value": str}),
    "convert": _Form("ConvertOp", ("operand",), typed=True),
    "bitcast_convert": _Form("BitcastConvertOp", ("operand",), typed=True),
    "dot_general": _Form("DotGeneralOp", ("lhs", "rhs"), {"dot_dimension_numbers": str}, typed=True),
    "dynamic_slice": _Form("DynamicSliceOp", ("operand", "*start_indices"), {"slice_sizes": ints}),
    "dynamic_update_slice": _Form("DynamicUpdateSliceOp", ("operand", "update", "*start_indices")),
    "if": _Form("IfOp", ("pred",), typed=True, regions=("true_branch", "false_branch")),
    "iota": _Form("IotaOp", (), {"iota_dimension": _integer}, typed=True),
    "pad": _Form(
        "PadOp",
        ("operand", "padding_value"),
        {"edge_padding_low": ints, "edge_padding_high": ints, "interior_padding": ints},
    ),
    "reduce": _Form("ReduceOp", ("*inputs", "*init_values"), {"dimensions": ints}, typed=True, regions=("body",)),
    "reshape": _Form("ReshapeOp", ("operand",), typed=True),
    "reverse": _Form("ReverseOp", ("operand",), {"dimensions": ints}),
    "round_nearest_afz": _Form("RoundOp", ("operand",)),
    "round_nearest_even": _Form("RoundNearestEvenOp", ("operand",)),
    "select": _Form("SelectOp", ("pred", "on_true", "on_false")),
    "slice": _Form("SliceOp", ("operand",), {"start_indices": ints, "limit_indices": ints, "strides": ints}),
    "sort": _Form(
        "SortOp",
        ("*inputs",),
        {"dimension": _integer, "is_stable": bool_text},
        typed=True,
        regions=("comparator",),
    ),
    "transpose": _Form("TransposeOp", ("operand",), {"permutation": ints}),
    "while": _Form("WhileOp", ("*operand",), typed=True, regions=("cond", "body")),
}


class ComparisonDirectionAttr(ir.Attribute):
    """The direction of a comparison: EQ, NE, LT, LE, GT, GE."""

    @classmethod
    def get(cls, value: str, context: Any = None) -> ComparisonDirectionAttr:
        """The attribute of a direction."""
        del context
        return cls(f"#stablehlo<comparison_direction {value}>")


class ComparisonTypeAttr(ir.Attribute):
    """What a comparison compares: FLOAT, TOTALORDER, SIGNED, UNSIGNED."""

    @classmethod
    def get(cls, value: str, context: Any = None) -> ComparisonTypeAttr:
        """The attribute of a kind."""
        del context
        return cls(f"#stablehlo<comparison_type {value}>")


class DotDimensionNumbers(ir.Attribute):
    """What dimensions dot_general contracts, and which it goes along."""

    @classmethod
    def get(
        cls,
        lhs_batching_dimensions: Sequence[int],
        rhs_batching_dimensions: Sequence[int],
        lhs_contracting_dimensions: Sequence[int],
        rhs_contracting_dimensions: Sequence[int],
        context: Any = None,
    ) -> DotDimensionNumbers:
        """The attribute of the dimensions."""
        del context
        named = {
            "lhs_batching_dimensions": lhs_batching_dimensions,
            "rhs_batching_dimensions": rhs_batching_dimensions,
            "lhs_contracting_dimensions": lhs_contracting_dimensions,
            "rhs_contracting_dimensions": rhs_contracting_dimensions,
        }
        return cls(f"#stablehlo.dot<{', '.join(f'{k} = {[int(n) for n in v]}' for k, v in named.items())}>")


def register_dialect(context: Any = None, load: bool = True) -> None:
    """Nothing: StableHLO is always there."""
    del context, load


class Computed:
    """An operation of arrays, which has been computed."""

    def __init__(self, name: str, results: Sequence[Any]):
        self.name, self.results = name, list(results)

    @property
    def result(self) -> Any:
        """The one result."""
        (found,) = self.results
        return found


def _value(x: Any, name: str) -> Any:
    """A value, of the operation that has it as its result."""
    if isinstance(x, (ir.Operation, Computed)):
        return x.result
    if isinstance(x, (ir.Value, weft.Array)) or _weft.is_traced(x):
        return x
    raise type_error(f"stablehlo.{name}: an operand must be a value of the module or an array, got {x!r}")


def _applied(name: str, attributes: dict[str, ir.Attribute], types: Sequence[str], values: Sequence[Any]) -> list[Any]:
    """What an operation computes of arrays."""
    told = ", ".join(f"{key} = {value}" for key, value in attributes.items())
    left = f"{', '.join(f'%r{i}' for i in range(len(types)))} = " if types else ""
    names = [f"%a{i}" for i in range(len(values))]
    taken = [f"tensor<{''.join(f'{n}x' for n in x.shape)}{element(str(x.dtype))}>" for x in values]
    text = (
        f"func.func @main({', '.join(map(': '.join, zip(names, taken)))}) -> () {{\n"
        f'{left}"{name}"({", ".join(names)}) <{{{told}}}> : ({", ".join(taken)}) -> ({", ".join(types)})\n'
        "func.return\n}"
    )
    functions = parse(text, name)
    op: Op = functions[0].body.ops[0]
    out = RULES[name](Reader(functions, name), op, list(values), {})
    return out if isinstance(out, list) else [out]


def _inferred(name: str, attributes: dict[str, ir.Attribute], operands: Sequence[ir.Value]) -> list[ir.Type]:
    """The types of the results that an operation has for operands."""
    with weft.enable_x64(True):  # the types of the module say how wide its numbers are
        specs = [weft.ShapeDtypeStruct(tuple(x.type.shape), x.type.dtype) for x in operands]  # type: ignore[attr-defined]
        found = weft.eval_shape(lambda *xs: _applied(name, attributes, (), xs), *specs)
    return [ir.RankedTensorType(x.shape, ir.Type(element(str(x.dtype)))) for x in found]


def _taken(form: _Form, name: str, args: Sequence[Any], named: dict[str, Any]) -> dict[str, Any]:
    """What is given for which parameter."""
    order = [*(["results"] if form.typed else []), *(x.lstrip("*") for x in form.operands), *form.attributes]
    if len(args) > len(order):
        raise type_error(f"stablehlo.{name} takes at most {len(order)} arguments ({', '.join(order)}), got {len(args)}")
    found = {**dict(zip(order, args)), **{k: v for k, v in named.items() if k not in ("loc", "ip")}}
    found.setdefault("results", found.pop("result", None))
    unknown = [key for key in found if key not in (*order, "results")]
    missing = [key.lstrip("*") for key in form.operands if found.get(key.lstrip("*")) is None]
    if unknown or missing:
        raise type_error(
            f"stablehlo.{name}: " + (f"no argument {unknown[0]!r}" if unknown else f"{missing[0]} is missing")
        )
    return found


def _made(name: str, args: Sequence[Any], named: dict[str, Any]) -> Any:
    """The operation: in the module, or computed."""
    form, full = _FORMS[name], f"stablehlo.{name}"
    regions = named.pop("num_branches", 0) if name == "case" else len(form.regions)
    found = _taken(form, name, args, named)
    operands: list[Any] = []
    for key in form.operands:
        given = found[key.lstrip("*")]
        operands += [_value(x, name) for x in (given if key.startswith("*") else [given])]
    attributes = {
        key: x if isinstance(x, ir.Attribute) else ir.Attribute(write(x))
        for key, write in form.attributes.items()
        if (x := found.get(key)) is not None
    }
    types = found["results"]
    types = None if types is None else [types] if isinstance(types, ir.Type) else list(types)
    if form.typed and types is None:
        raise type_error(f"stablehlo.{name}: the types of its results are missing; they are the first argument")
    if any(not isinstance(x, ir.Value) for x in operands):
        if regions:
            raise not_implemented(
                f"weft.as_jax: stablehlo.{name} in a lowering: its regions are not there when it is made; use "
                "mlir.lower_fun of a function that uses jax.lax"
            )
        return Computed(full, _applied(full, attributes, [str(t) for t in types or ()], operands))
    if types is None:
        value = found.get("value")
        types = [value.type] if isinstance(value, ir.DenseElementsAttr) else _inferred(full, attributes, operands)
    op = ir.Operation(full, operands, types, attributes, regions)
    for at, region in enumerate(form.regions):
        setattr(op, region, op.regions[at])
    return op


def _class(name: str, form: _Form) -> Callable[..., Any]:
    def make(*args: Any, **named: Any) -> Any:
        return _made(name, args, named)

    make.__name__ = make.__qualname__ = form.class_name
    make.__doc__ = f"The operation stablehlo.{name}, with `result` and `results`."
    return make


def _function(name: str) -> Callable[..., Any]:
    def make(*args: Any, **named: Any) -> Any:
        op = _made(name, args, named)
        return op.results[0] if len(op.results) == 1 else op.results

    make.__name__ = make.__qualname__ = name
    make.__doc__ = f"The result of stablehlo.{name}, or the list of them."
    return make


def ReturnOp(results: Sequence[Any], **_: Any) -> ir.Operation:
    """Ends a region."""
    return ir.Operation("stablehlo.return", [_value(x, "return") for x in results], [])


def return_(results: Sequence[Any], **_: Any) -> ir.Operation:
    """Ends a region."""
    return ReturnOp(results)


_PYTHON = {"and", "or", "not", "if", "while", "return"}  # words of Python's, which get an underscore
for _name, _form in _FORMS.items():
    globals()[_form.class_name] = _class(_name, _form)
    globals()[f"{_name}_" if _name in _PYTHON else _name] = _function(_name)

__all__ = [  # noqa: PLE0604
    "ComparisonDirectionAttr",
    "ComparisonTypeAttr",
    "Computed",
    "DotDimensionNumbers",
    "ReturnOp",
    "register_dialect",
    "return_",
    *(form.class_name for form in _FORMS.values()),
    *(f"{name}_" if name in _PYTHON else name for name in _FORMS),
]
