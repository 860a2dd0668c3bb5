"""Programs to look at, to interpret otherwise, and to rewrite:

>>> ir = weft.make_ir(lambda x: wnp.sin(x) * 2)(1.0)
>>> [op.name for op in ir.walk()]
['sin', 'mul']

docs/extend_from_python.md is the guide.
"""

from .._core.ir_view import Literal, Location, Operation, Value
from .._core.names import belong_to as _belong_to
from .._weft import Type
from ..optimization import Applied, passes, rules
from ..program import Trail
from .bisecting import Culprit, bisect
from .checking import check
from .interpreter import Interpreter, rule
from .rewriting import Rewrite

__all__ = [
    "Applied",
    "Culprit",
    "Interpreter",
    "Literal",
    "Location",
    "Operation",
    "Rewrite",
    "Type",
    "Value",
    "bisect",
    "check",
    "passes",
    "rule",
    "rules",
]

_belong_to(
    globals(),
    Applied,
    Culprit,
    Trail,
    bisect,
    check,
    Interpreter,
    Literal,
    Location,
    Operation,
    Rewrite,
    Value,
    passes,
    rule,
    rules,
)
