"""jax.distributed: several processes are started by mpirun or torchrun, which say who is who (docs/parallel.md)."""

from __future__ import annotations

from typing import Any

import weft
from weft.distributed import is_initialized, shutdown

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
