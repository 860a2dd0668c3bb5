"""Element-wise functions made from the registry of primitives: their names, their signatures, and what help() says.

The registry says what an operation means and which dtypes it takes, and may say the arguments of an example. Here are
the examples, whose output docs_test checks, of operations for which it does not, and sources of definitions.
"""

from __future__ import annotations

import copyreg
import inspect
import re
import sys
from typing import Any

from .. import _pickled, _weft

# Of the primitive: arguments, and what they give.
_EXAMPLES = {
    "acos": ("wnp.array([1.0, 0.0])", "Array([0.       , 1.5707964], dtype=float32)"),
    "acosh": ("wnp.array([1.0, 2.0])", "Array([0.      , 1.316958], dtype=float32)"),
    "add": ("wnp.array([1, 2]), 0.5", "Array([1.5, 2.5], dtype=float32, weak_type=True)"),
    "and": ("wnp.array([6, 3]), 5", "Array([4, 1], dtype=int32)"),
    "asin": ("wnp.array([0.0, 1.0])", "Array([0.       , 1.5707964], dtype=float32)"),
    "asinh": ("wnp.array([0.0, 1.0])", "Array([0.       , 0.8813736], dtype=float32)"),
    "atan": ("wnp.array([0.0, 1.0])", "Array([0.       , 0.7853982], dtype=float32)"),
    "atan2": ("wnp.array([1.0, -1.0]), 1.0", "Array([ 0.7853982, -0.7853982], dtype=float32)"),
    "atanh": ("wnp.array([0.0, 0.5])", "Array([0.        , 0.54930615], dtype=float32)"),
    "cbrt": ("wnp.array([8.0, -27.0])", "Array([ 2., -3.], dtype=float32)"),
    "ceil": ("wnp.array([1.2, -1.2])", "Array([ 2., -1.], dtype=float32)"),
    "clz": ("wnp.array([1, 255])", "Array([31, 24], dtype=int32)"),
    "complex": ("wnp.array([1.0, 2.0]), 3.0", "Array([1.+3.j, 2.+3.j], dtype=complex64)"),
    "conj": ("wnp.array([1 + 2j])", "Array([1.-2.j], dtype=complex64)"),
    "cos": ("wnp.array([0.0, 1.0])", "Array([1.       , 0.5403023], dtype=float32)"),
    "cosh": ("wnp.array([0.0, 1.0])", "Array([1.       , 1.5430807], dtype=float32)"),
    "digamma": ("wnp.array([1.0, 2.0])", "Array([-0.5772157 ,  0.42278433], dtype=float32)"),
    "div": ("wnp.array([7, -7]), 2", "Array([ 3, -3], dtype=int32)"),
    "eq": ("wnp.array([1, 2]), 2", "Array([False,  True], dtype=bool)"),
    "erf": ("wnp.array([0.0, 1.0])", "Array([0.       , 0.8427008], dtype=float32)"),
    "erf_inv": ("wnp.array([0.0, 0.5, 1.0])", "Array([0.        , 0.47693628,        inf], dtype=float32)"),
    "erfc": ("wnp.array([0.0, 1.0])", "Array([1.       , 0.1572992], dtype=float32)"),
    "exp": ("wnp.array([0.0, 1.0])", "Array([1.       , 2.7182817], dtype=float32)"),
    "exp2": ("wnp.array([0.0, 3.0])", "Array([1., 8.], dtype=float32)"),
    "expm1": ("wnp.array([0.0, 1e-6])", "Array([0.0000000e+00, 1.0000005e-06], dtype=float32)"),
    "floor": ("wnp.array([1.2, -1.2])", "Array([ 1., -2.], dtype=float32)"),
    "ge": ("wnp.array([1, 2, 3]), 2", "Array([False,  True,  True], dtype=bool)"),
    "gt": ("wnp.array([1, 2, 3]), 2", "Array([False, False,  True], dtype=bool)"),
    "imag": ("wnp.array([1 + 2j])", "Array([2.], dtype=float32)"),
    "is_finite": ("wnp.array([1.0, wnp.inf, wnp.nan])", "Array([ True, False, False], dtype=bool)"),
    "le": ("wnp.array([1, 2, 3]), 2", "Array([ True,  True, False], dtype=bool)"),
    "lgamma": ("wnp.array([1.0, 5.0])", "Array([0.       , 3.1780539], dtype=float32)"),
    "log": ("wnp.array([1.0, 2.0])", "Array([0.       , 0.6931472], dtype=float32)"),
    "log1p": ("wnp.array([0.0, 1e-6])", "Array([0.000000e+00, 9.999995e-07], dtype=float32)"),
    "log2": ("wnp.array([1.0, 8.0])", "Array([0., 3.], dtype=float32)"),
    "log10": ("wnp.array([1.0, 1000.0])", "Array([0., 3.], dtype=float32)"),
    "logistic": ("wnp.array([0.0, 2.0])", "Array([0.5      , 0.8807971], dtype=float32)"),
    "logistic_density": ("wnp.array([0.0, 20.0])", "Array([2.5000000e-01, 2.0611537e-09], dtype=float32)"),
    "lt": ("wnp.array([1, 2, 3]), 2", "Array([ True, False, False], dtype=bool)"),
    "max": ("wnp.array([1.0, 3.0]), 2.0", "Array([2., 3.], dtype=float32)"),
    "min": ("wnp.array([1.0, 3.0]), 2.0", "Array([1., 2.], dtype=float32)"),
    "mul": ("wnp.array([1, 2]), wnp.array([3, 4])", "Array([3, 8], dtype=int32)"),
    "ne": ("wnp.array([1, 2]), 2", "Array([ True, False], dtype=bool)"),
    "neg": ("wnp.array([1, -2])", "Array([-1,  2], dtype=int32)"),
    "nextafter": ("wnp.array([1.0]), 2.0", "Array([1.0000001], dtype=float32)"),
    "not": ("wnp.array([0, 5])", "Array([-1, -6], dtype=int32)"),
    "or": ("wnp.array([6, 3]), 5", "Array([7, 7], dtype=int32)"),
    "population_count": ("wnp.array([1, 255])", "Array([1, 8], dtype=int32)"),
    "pow": ("wnp.array([2.0, 3.0]), 2.0", "Array([4., 9.], dtype=float32)"),
    "real": ("wnp.array([1 + 2j])", "Array([1.], dtype=float32)"),
    "rem": ("wnp.array([7, -7]), 3", "Array([ 1, -1], dtype=int32)"),
    "rsqrt": ("wnp.array([1.0, 4.0])", "Array([1. , 0.5], dtype=float32)"),
    "sech_squared": ("wnp.array([0.0, 20.0])", "Array([1.0000000e+00, 1.6993417e-17], dtype=float32)"),
    "shift_left": ("wnp.array([1, 3]), 2", "Array([ 4, 12], dtype=int32)"),
    "shift_right_arithmetic": ("wnp.array([8, -8]), 1", "Array([ 4, -4], dtype=int32)"),
    "shift_right_logical": ("wnp.array([8, -8]), 1", "Array([         4, 2147483644], dtype=int32)"),
    "sign": ("wnp.array([-2.0, 0.0, 5.0])", "Array([-1.,  0.,  1.], dtype=float32)"),
    "sin": ("wnp.array([0.0, 1.0])", "Array([0.        , 0.84147096], dtype=float32)"),
    "sinh": ("wnp.array([0.0, 1.0])", "Array([0.       , 1.1752012], dtype=float32)"),
    "sqrt": ("wnp.array([4.0, 2.0])", "Array([2.       , 1.4142135], dtype=float32)"),
    "square": ("wnp.array([3, -4])", "Array([ 9, 16], dtype=int32)"),
    "sub": ("wnp.array([1, 2]), 3", "Array([-2, -1], dtype=int32)"),
    "tan": ("wnp.array([0.0, 1.0])", "Array([0.       , 1.5574077], dtype=float32)"),
    "tanh": ("wnp.array([0.0, 1.0])", "Array([0.       , 0.7615942], dtype=float32)"),
    "trigamma": ("wnp.array([1.0])", "Array([1.644934], dtype=float32)"),
    "trunc": ("wnp.array([1.7, -1.7])", "Array([ 1., -1.], dtype=float32)"),
    "xor": ("wnp.array([6, 3]), 5", "Array([3, 6], dtype=int32)"),
}
# NumPy's functions of two arguments: what they are, arguments, and what they give.
_BINARY = {
    "add": (
        "x + y.",
        "wnp.array([1, 2]), 0.5",
        "Array([1.5, 2.5], dtype=float32, weak_type=True)",
    ),
    "subtract": (
        "x - y.",
        "wnp.array([1, 2]), 3",
        "Array([-2, -1], dtype=int32)",
    ),
    "multiply": (
        "x * y.",
        "wnp.array([1, 2]), wnp.array([3, 4])",
        "Array([3, 8], dtype=int32)",
    ),
    "true_divide": (
        "x / y, in floating point.",
        "wnp.array([1, 2]), 4",
        "Array([0.25, 0.5 ], dtype=float32)",
    ),
    "floor_divide": (
        "x / y rounded down; integers divided by 0 give -1, as in JAX.",
        "wnp.array([7, -7]), 2",
        "Array([ 3, -4], dtype=int32)",
    ),
    "remainder": (
        "x - y * floor(x / y): the remainder with the sign of y; integers modulo 0 give x.",
        "wnp.array([7, -7]), 3",
        "Array([1, 2], dtype=int32)",
    ),
    "power": (
        "x to the power y. Integers stay integers; negative powers of them are 0, but of 1 and -1.",
        "wnp.array([2, 3]), 2",
        "Array([4, 9], dtype=int32)",
    ),
    "bitwise_and": (
        "The bits that are set in both.",
        "wnp.array([6, 3]), 5",
        "Array([4, 1], dtype=int32)",
    ),
    "bitwise_or": (
        "The bits that are set in one or both.",
        "wnp.array([6, 3]), 5",
        "Array([7, 7], dtype=int32)",
    ),
    "bitwise_xor": (
        "The bits that are set in exactly one.",
        "wnp.array([6, 3]), 5",
        "Array([3, 6], dtype=int32)",
    ),
    "left_shift": (
        "x * 2^y, wrapping; 0 when y is at least the width.",
        "wnp.array([1, 3]), 2",
        "Array([ 4, 12], dtype=int32)",
    ),
    "right_shift": (
        "x shifted right by y bits: copies of the sign come in for signed integers, zeros for others.",
        "wnp.array([8, -8]), 1",
        "Array([ 4, -4], dtype=int32)",
    ),
    "equal": (
        "Whether x == y.",
        "wnp.array([1, 2]), 2",
        "Array([False,  True], dtype=bool)",
    ),
    "not_equal": (
        "Whether x != y.",
        "wnp.array([1, 2]), 2",
        "Array([ True, False], dtype=bool)",
    ),
    "less": (
        "Whether x < y.",
        "wnp.array([1, 2, 3]), 2",
        "Array([ True, False, False], dtype=bool)",
    ),
    "less_equal": (
        "Whether x <= y.",
        "wnp.array([1, 2, 3]), 2",
        "Array([ True,  True, False], dtype=bool)",
    ),
    "greater": (
        "Whether x > y.",
        "wnp.array([1, 2, 3]), 2",
        "Array([False, False,  True], dtype=bool)",
    ),
    "greater_equal": (
        "Whether x >= y.",
        "wnp.array([1, 2, 3]), 2",
        "Array([False,  True,  True], dtype=bool)",
    ),
    "maximum": (
        "The larger of x and y; NaN if either is NaN. Where they are equal each derivative is 1/2.",
        "wnp.array([1.0, wnp.nan]), 2.0",
        "Array([ 2., nan], dtype=float32)",
    ),
    "minimum": (
        "The smaller of x and y; NaN if either is NaN. Where they are equal each derivative is 1/2.",
        "wnp.array([1.0, wnp.nan]), 2.0",
        "Array([ 1., nan], dtype=float32)",
    ),
    "logical_and": (
        "Whether both are not 0.",
        "wnp.array([1, 0]), 2",
        "Array([ True, False], dtype=bool)",
    ),
    "logical_or": (
        "Whether one or both are not 0.",
        "wnp.array([1, 0]), 0",
        "Array([ True, False], dtype=bool)",
    ),
    "logical_xor": (
        "Whether exactly one is not 0.",
        "wnp.array([1, 0]), 2",
        "Array([False,  True], dtype=bool)",
    ),
    "arctan2": (
        "The angle of the point (y, x) in radians, in [-pi, pi].",
        "wnp.array([1.0, -1.0]), 1.0",
        "Array([ 0.7853982, -0.7853982], dtype=float32)",
    ),
}
_SOURCES = {
    "acos": "Abramowitz & Stegun 4.4",
    "asin": "Abramowitz & Stegun 4.4",
    "atan": "Abramowitz & Stegun 4.4",
    "acosh": "Abramowitz & Stegun 4.6",
    "asinh": "Abramowitz & Stegun 4.6",
    "atanh": "Abramowitz & Stegun 4.6",
    "digamma": "Abramowitz & Stegun 6.3.1",
    "logistic_density": 'Johnson, Kotz and Balakrishnan, "Continuous univariate distributions", 1995, 23.2',
    "sech_squared": "Abramowitz & Stegun 4.5",
    "erf": "Abramowitz & Stegun 7.1.1",
    "erfc": "Abramowitz & Stegun 7.1.2",
    "lgamma": "Abramowitz & Stegun 6.1",
    "trigamma": "Abramowitz & Stegun 6.4.1",
    "atan2": "IEEE 754-2019, 9.2.1",
    "nextafter": "IEEE 754-2019, 5.3.1",
}
_OPERANDS = "x", "y"
# Of the primitive, where JAX has other names than these.
_NAMED = {"nextafter": ("x1", "x2")}
_FLOATS = "f16|bf16|f32|f64"


def operands(operation: Any) -> tuple[str, ...]:
    """The names of an operation's parameters."""
    prim, _ = _WORDS.get(id(operation), (None, ""))
    return _NAMED.get(prim or "", _OPERANDS[: operation.num_operands])


def elementwise(prim: str, name: str, module: str) -> Any:
    """The element-wise primitive as a function `module.name`."""
    operation = _weft.elementwise(prim, name, False)
    _WORDS[id(operation)] = prim, f"{module}.{name}"
    return operation


def binary(name: str) -> Any:
    """NumPy's function of two arguments."""
    operation = _weft.binary(name)
    _WORDS[id(operation)] = None, f"wnp.{name}"
    return operation


# For each operation (they live as long as the process) its primitive, or None for NumPy's, and how it is spelled.
_WORDS: dict[int, tuple[str | None, str]] = {}


# Pickled by name, as functions are.
copyreg.pickle(_weft.Operation, lambda operation: (_pickled.operation, (_WORDS[id(operation)][1],)))


def _signature(operation: Any) -> Any:
    return inspect.Signature([inspect.Parameter(n, inspect.Parameter.POSITIONAL_ONLY) for n in operands(operation)])


def _renamed(text: str, names: tuple[str, ...]) -> str:
    """What the registry says, whose operands are x and w everywhere, with the names of a function's parameters."""
    if len(names) == 1:
        return text
    return re.sub(r"\b[xw]\b", lambda found: names["xw".index(found[0])], text)


def _example(declared: Any, operation: Any) -> tuple[str, str]:
    """The arguments of an example as the registry says them, or those that suit most functions, and what they give."""
    wnp = sys.modules["weft.numpy"]  # above this room; loaded with the package before anybody can ask for help
    arguments = declared["example"] or ", ".join(["wnp.array([0.25, 0.5])"] * operation.num_operands)
    return arguments, repr(operation(*eval(f"({arguments},)", {"wnp": wnp})))


def _text(operation: Any) -> str:
    prim, spelled = _WORDS.get(id(operation), (None, ""))
    names = operands(operation)
    if prim is None:
        what, *example = _BINARY.get(operation.__name__, ("",))
        dtypes = source = ""
    else:
        declared = next(p for p in _weft.primitives() if p["name"] == prim)
        what, dtypes = _renamed(declared["doc"], names), f", of dtype {declared['dtypes']}"
        if _FLOATS in dtypes and "i32" not in dtypes:
            dtypes += "; integers and booleans count as floats"
        source, example = _SOURCES.get(prim, ""), list(_EXAMPLES.get(prim, ()) or _example(declared, operation))
    one, first = operation.num_operands == 1, names[0]
    lines = [what, "", "Args:", f"    {first}: array or number of any shape{dtypes}."]
    if not one:
        lines.append(
            f"    {names[1]}: array or number that broadcasts against {first}; both are promoted to one dtype."
        )
    lines += ["", f"Returns: array of the shape {f'of {first}' if one else 'that both broadcast to'}.", ""]
    lines += [
        "Raises:",
        "    TypeError: an argument is no array or number (weft.numpy.array makes one of a list), has a",
    ]
    lines += [
        f"        dtype that the operation is not defined for{'' if one else ', or shapes do not broadcast'}.",
        "",
    ]
    if source:
        lines += [f"Source: {source}.", ""]
    if example:
        lines += ["Example:", f"    >>> {spelled}({example[0]})", *("    " + x for x in example[1].split("\n")), ""]
    return "\n".join(lines)


# Composed when somebody asks.
_weft.Operation.__signature__ = property(_signature)
_weft.Operation.__doc__ = property(_text)
