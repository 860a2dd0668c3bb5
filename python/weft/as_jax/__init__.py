"""JAX programs run on Weft as they are, without JAX.

    python -m weft.as_jax script.py arguments      # also: -m module, -c code
    pytest -p weft.as_jax
    import weft.as_jax; weft.as_jax.install()      # before the first import of jax

`import jax` and its modules are then served from a table: name -> Weft's object, or a reason why there is none. Where
Weft differs from JAX on purpose it follows JAX (weft.config.jax_semantics). docs/jax_programs.md says more.

Nothing of Weft imports this package.
"""

from __future__ import annotations

import sys
from typing import Any

import weft

from .._core.errors import runtime_error
from ..numpy import _standard
from . import (
    agreement,
    arrays,
    core,
    dtypes,
    eager_shard_map,
    hijax,
    layouts,
    monitoring,
    prefixes,
    random_keys,
    settings,
    shardings,
    stages,
    traceback_util,
    wording,
)
from .finder import Finder
from .report import missing

__all__ = ["install", "missing"]


def install() -> None:
    """Makes `import jax` give Weft, in this process, and turns weft.config.jax_semantics on. Further calls do nothing.

    Returns: None.

    Raises:
        RuntimeError: JAX itself has been imported already.

    Example:
        >>> import weft.as_jax
        >>> weft.as_jax.install()
        >>> import jax
        >>> jax.grad(jax.numpy.sin)(0.0)
        Array(1., dtype=float32, weak_type=True)
    """
    if Finder in sys.meta_path:
        return
    for name in ("jax", "jaxlib"):
        if name in sys.modules:
            file = getattr(sys.modules[name], "__file__", None)
            raise runtime_error(
                f"weft.as_jax: {name} has been imported already{f', from {file}' if file else ''}; call "
                "weft.as_jax.install() before the first import of it, or start the program by python -m weft.as_jax"
            )
    sys.meta_path.insert(0, Finder)
    weft.config.jax_semantics = True
    settings.read_environment()
    wording.install()
    arrays.install()
    _standard.namespace = "jax.numpy"  # SciPy asks an array for it
    core.install()
    hijax.install()
    agreement.install()
    eager_shard_map.install()
    shardings.install()
    layouts.install()
    monitoring.install()
    prefixes.install()
    random_keys.install()
    stages.install()
    dtypes.install()
    traceback_util.install()


def pytest_load_initial_conftests(early_config: Any) -> None:
    """Called by pytest for `-p weft.as_jax`, before it reads any test."""
    install()
