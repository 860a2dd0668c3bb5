"""Programs to look at, to interpret otherwise, and to rewrite:

>>> ir = weft.make_ir(lambda x: wnp.sin(x) * 2)(1.0)
>>> [op.name for op in ir.walk()]
['sin', 'mul']

docs/extend_from_python.md is the guide.
"""

from .._core.ir_view import Literal, Location, Operation, Trail, Value
from .._core.names import belong_to as _belong_to
from .._weft import Type
from ..optimization import Applied, passes, rules
from .bisecting import Culprit, bisect
from .blocks_of import to_cfg
from .cfg import Block, BlockValue, Cfg, Instruction
from .checking import check
from .dataflow import Dataflow, Frame, Node
from .dataflow_of import to_dataflow
from .executor import ExecutionFrame, Executor
from .interpreter import Interpreter, rule
from .key_reuse import Forward, KeyReuseSignature, Sink, Source, check_key_reuse
from .memory import verify_memory
from .pipelines import PipelineStep, pipeline
from .reasons import why
from .rewriting import Rewrite
from .stablehlo import from_stablehlo, to_stablehlo
from .structuring import set_structuring

set_structuring()

__all__ = [
    "Applied",
    "Block",
    "BlockValue",
    "Cfg",
    "Culprit",
    "Dataflow",
    "ExecutionFrame",
    "Executor",
    "Forward",
    "Frame",
    "Instruction",
    "Interpreter",
    "KeyReuseSignature",
    "Literal",
    "Location",
    "Node",
    "Operation",
    "PipelineStep",
    "Rewrite",
    "Sink",
    "Source",
    "Type",
    "Value",
    "bisect",
    "check",
    "check_key_reuse",
    "from_stablehlo",
    "passes",
    "pipeline",
    "rule",
    "rules",
    "to_cfg",
    "to_dataflow",
    "to_stablehlo",
    "verify_memory",
    "why",
]

_belong_to(
    globals(),
    Applied,
    Block,
    BlockValue,
    Cfg,
    Culprit,
    Dataflow,
    ExecutionFrame,
    Executor,
    Frame,
    Instruction,
    Node,
    PipelineStep,
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
    to_cfg,
    to_dataflow,
    from_stablehlo,
    to_stablehlo,
    verify_memory,
    why,
)
