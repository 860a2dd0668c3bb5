"""Element-wise functions that are primitives of the IR, called straight in C++. Their types are in the stub that
tools/make_stubs.py writes."""

from __future__ import annotations

from .._core import operations as _operations

__all__: list[str] = []

# NumPy's name -> primitive. Promotion and broadcasting are C++.
_UNARY = {
    "negative": "neg",
    "exp": "exp",
    "exp2": "exp2",
    "expm1": "expm1",
    "log": "log",
    "log1p": "log1p",
    "sqrt": "sqrt",
    "cbrt": "cbrt",
    "sin": "sin",
    "cos": "cos",
    "tan": "tan",
    "arcsin": "asin",
    "arccos": "acos",
    "arctan": "atan",
    "sinh": "sinh",
    "cosh": "cosh",
    "tanh": "tanh",
    "arcsinh": "asinh",
    "arccosh": "acosh",
    "arctanh": "atanh",
    "square": "square",
    "invert": "not",
    "nextafter": "nextafter",
}
_BINARY = [
    "add",
    "subtract",
    "multiply",
    "true_divide",
    "floor_divide",
    "remainder",
    "power",
    "bitwise_and",
    "bitwise_or",
    "bitwise_xor",
    "left_shift",
    "right_shift",
    "equal",
    "not_equal",
    "less",
    "less_equal",
    "greater",
    "greater_equal",
    "maximum",
    "minimum",
    "logical_and",
    "logical_or",
    "logical_xor",
    "arctan2",
]

_ALIASES = {
    "asin": "arcsin",
    "acos": "arccos",
    "atan": "arctan",
    "asinh": "arcsinh",
    "acosh": "arccosh",
    "atanh": "arctanh",
    "atan2": "arctan2",
    "bitwise_not": "invert",
    "bitwise_invert": "invert",
    "bitwise_left_shift": "left_shift",
    "bitwise_right_shift": "right_shift",
    "divide": "true_divide",
    "mod": "remainder",
    "pow": "power",
}

for _name, _prim in _UNARY.items():
    globals()[_name] = _operations.elementwise(_prim, _name, "wnp")
for _name in _BINARY:
    globals()[_name] = _operations.binary(_name)
for _alias, _name in _ALIASES.items():
    globals()[_alias] = globals()[_name]
__all__.extend([*_UNARY, *_BINARY, *_ALIASES])
