"""What a program goes through on its way to a target."""

from __future__ import annotations

import dataclasses

from .. import _weft
from ..arguments import text as checked_text


@dataclasses.dataclass(frozen=True)
class PipelineStep:
    """A step of a pipeline.

    Args:
        name: of a pass, as jit(passes=[...]) knows it; of a stage, as Lowered.stage and ir.stage print it.
        kind: "pass", of a program to a program, the same for all targets; or "stage", a form of the target's own.

    Example:
        >>> weft.ir.pipeline("cpu")[-1]
        PipelineStep(name='asm', kind='stage')
    """

    name: str
    kind: str


def pipeline(target: str = "cpu") -> list[PipelineStep]:
    """What a program goes through on its way to a target: first the passes, which know of no target, then the forms
    that the target makes of what they leave.

    Args:
        target: "cpu", "interpreter", or a GPU, as jit(f).lower(target=...) takes it.

    Returns: list of PipelineStep, in order.

    Raises:
        ValueError: there is no such target.

    Example:
        >>> [step.name for step in weft.ir.pipeline("cuda:sm_90a") if step.kind == "stage"]
        ['schedule', 'mlir', 'llvm', 'ptx']
    """
    stages = _weft.stages(checked_text(target, "pipeline: target"))
    passes = [PipelineStep(name, "pass") for name in _weft.default_passes()]
    return passes + [PipelineStep(name, "stage") for name in stages]
