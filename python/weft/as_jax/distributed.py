"""jax.distributed: several processes are started by mpirun or torchrun, which say who is who (docs/parallel.md)."""

from __future__ import annotations

from typing import Any

import weft
from weft.distributed import is_initialized, shutdown

from .._core.errors import runtime_error

__all__ = ["global_state", "initialize", "is_initialized", "shutdown"]


def initialize(*_: Any, **__: Any) -> None:
    """Joins the job that this process was started in; what JAX needs to be told is known."""
    weft.distributed.initialize()


class _State:
    client = None

    @property
    def process_id(self) -> int:
        return weft.process_index()

    @property
    def num_processes(self) -> int:
        return weft.process_count()


global_state = _State()


def reached_preemption_sync_point(step_id: int) -> bool:
    """Whether the job is to be saved because its machines are taken away; no service tells."""
    raise runtime_error(
        f"reached_preemption_sync_point({step_id}): there is no service that tells of machines that are taken away"
    )
