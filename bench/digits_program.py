"""The functions of examples/digits.py for any library with JAX's names: the example's own text, in which `weft` is that
library.

    digits = digits_program.of(jax, jax.numpy)       # or (weft, weft.numpy)
    jax.jit(digits.step)(*digits_program.arguments(digits))
"""

from __future__ import annotations

import importlib.util
import sys
from types import ModuleType
from typing import Any

import numpy


def of(lib: ModuleType, np: ModuleType) -> Any:
    """The example as a module over `lib`. Imports neither Weft nor JAX: both are measured in processes of their own."""
    spec = importlib.util.find_spec("examples.digits")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    names = {"weft": lib, "weft.numpy": np}
    before = {name: sys.modules.get(name) for name in names}
    sys.modules.update(names)
    try:
        spec.loader.exec_module(module)
    finally:
        for name, was in before.items():
            if was is None:
                del sys.modules[name]
            else:
                sys.modules[name] = was
    return module


def zeros(tree: Any) -> Any:
    return {k: zeros(v) for k, v in tree.items()} if isinstance(tree, dict) else numpy.zeros_like(tree)


def batch() -> tuple[numpy.ndarray, numpy.ndarray]:
    """As many images and labels as a step takes: of the kind, but of no digits."""
    rng = numpy.random.default_rng(0)
    return rng.random((32, 64), numpy.float32), rng.integers(0, 10, 32).astype(numpy.int32)


def arguments(digits: Any) -> tuple:
    """What digits.step takes: the state before the first step, and a batch."""
    params = digits.initial(0)
    return digits.Adam(numpy.float32(0), params, zeros(params), zeros(params)), *batch()
