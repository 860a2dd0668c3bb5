"""Every element-wise primitive without attributes under its own name, called straight in C++. Their types are in the
stub that tools/make_stubs.py writes."""

from __future__ import annotations

from .. import _weft
from .._core import operations as _operations

__all__: list[str] = []

_SPECIAL = {"select", "clamp", "integer_pow", "convert", "bitcast", "round", "stop_gradient", "abs"}
_SPECIAL |= {"shift_right_arithmetic"}  # of signed integers alone
for _prim in _weft.primitives():
    if _prim["elementwise"] and _prim["num_operands"] in (1, 2) and _prim["name"] not in _SPECIAL:
        _name = _prim["name"] + "_" if _prim["name"] in ("and", "or", "not") else _prim["name"]
        globals()[_name] = _operations.elementwise(_prim["name"], _name, "weft.lax")
        __all__.append(_name)
for _alias, _name in {"bitwise_and": "and_", "bitwise_or": "or_", "bitwise_xor": "xor", "bitwise_not": "not_"}.items():
    globals()[_alias] = globals()[_name]
    __all__.append(_alias)
