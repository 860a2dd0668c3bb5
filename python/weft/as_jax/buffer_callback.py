"""jax.experimental.buffer_callback: functions of Python that write their results into memory that they are given."""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

import weft

from .._core.errors import runtime_error, value_error


class ExecutionStage(enum.Enum):
    """When a callback is called."""

    INSTANTIATE = 0
    PREPARE = 1
    INITIALIZE = 2
    EXECUTE = 3


class ExecutionContext:
    """What a callback is told of the call: it runs on the host."""

    stage = ExecutionStage.EXECUTE

    @property
    def stream(self) -> Any:
        raise runtime_error("XLA FFI GPU context is not available: callbacks run on the host")


class Buffer:
    """The memory of an argument, which is read, or of a result, which is written."""

    def __init__(self, array: Any, writeable: bool):
        self._array, self.writeable = array, writeable

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self._array.shape)

    @property
    def ndim(self) -> int:
        return int(self._array.ndim)

    @property
    def dtype(self) -> Any:
        return self._array.dtype

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.array(self._array, dtype, copy=copy)

    def __dlpack__(self, **options: Any) -> Any:
        return self._array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0


def buffer_callback(
    callback: Callable[..., Any],
    result_shape_dtypes: Any,
    *,
    has_side_effect: bool = False,
    vmap_method: str | None = None,
    input_output_aliases: Mapping[int, int] | None = None,
    command_buffer_compatible: bool = False,
) -> Callable[..., Any]:
    """A function that calls callback(context, results, *arguments) when the program runs, with Buffers in the places of
    arrays: a result starts as zeros, or as the argument that `input_output_aliases` names, by number.

    Raises:
        ValueError: when called: an alias names no argument or no result, or they differ in type; the callback returns
            something.
    """
    del command_buffer_compatible
    specs, out_tree = weft.tree.flatten(result_shape_dtypes)

    def called(*args: Any, **kwargs: Any) -> Any:
        leaves, in_tree = weft.tree.flatten((args, kwargs))
        aliases = {int(i): int(o) for i, o in sorted((input_output_aliases or {}).items())}
        for i, o in aliases.items():
            for n, what, count in ((i, "input", len(leaves)), (o, "output", len(specs))):
                if n >= count:
                    raise value_error(
                        f"input_output_aliases contains the mapping '{i}:{o}' with {what} index {n} outside the range "
                        f"[0, {count})."
                    )
            given, wanted = (weft.typeof(leaves[i]), specs[o])
            if (tuple(given.shape), given.dtype) != (tuple(wanted.shape), np.dtype(wanted.dtype)):
                raise value_error(
                    f"input_output_aliases contains the mapping '{i}:{o}' referring to an input with abstract value "
                    f"{given} and an output with a different abstract value {wanted}."
                )

        def run(*values: Any) -> Any:
            arrays = [np.asarray(value) for value in values]
            # Under vmap there are axes in front.
            front = next(
                (a.shape[: a.ndim - weft.numpy.ndim(x)] for a, x in zip(arrays, leaves) if a.ndim > weft.numpy.ndim(x)),
                (),
            )
            out = [np.zeros((*front, *spec.shape), spec.dtype) for spec in specs]
            for i, o in aliases.items():
                out[o] = arrays[i] = np.array(arrays[i])
            inputs = [Buffer(a, writeable=i in aliases) for i, a in enumerate(arrays)]
            given, named = weft.tree.unflatten(in_tree, inputs)
            results = weft.tree.unflatten(out_tree, [Buffer(a, writeable=True) for a in out])
            if callback(ExecutionContext(), results, *given, **named) is not None:
                raise value_error("buffer_callback callback must not return any values.")
            return weft.tree.unflatten(out_tree, out)

        if has_side_effect:
            return weft.io_callback(run, result_shape_dtypes, *leaves)
        return weft.pure_callback(run, result_shape_dtypes, *leaves, vmap_method=vmap_method)

    return called
