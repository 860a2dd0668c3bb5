"""What programs for JAX ask of meshes and of types of values besides, in one place that all look at."""

from __future__ import annotations

from collections.abc import Callable


class _TypingRules:
    """Whether types name an axis of such a size: JAX has an option for those of size 1. Whether there has been a mesh
    at all whose types say how values lie. What else than a word may name an axis."""

    keeps_axis: Callable[[int], bool] = staticmethod(lambda size: True)
    # Whether shard_map may cut by what a vmap around cuts by: another option of JAX's.
    cuts_mapped: Callable[[], bool] = staticmethod(lambda: False)
    in_use = False
    # Names of meshes that only say where devices are: no program runs on one.
    other_names: tuple[type, ...] = ()


typing_rules = _TypingRules()
