"""Random numbers from keys. A key determines its numbers; split it for independent ones and use each key once.

    >>> k1, k2 = weft.random.split(weft.random.key(0))
    >>> weft.random.randint(k1, (3,), 0, 10).shape
    (3,)

Keys are hashed by Threefry-2x32 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011). key() gives
keys of
a dtype of their own, PRNGKey() the same as two uint32 words; every function takes both. For the same key the bits, and
what is computed from them by exact steps (uniform, randint, permutation ...), are those of jax.random with
jax_threefry_partitionable=True; inside of weft.threefry_partitionable(False) those with that option off, as they were
before version 0.5.
"""

from . import _basic, _continuous, _counts, _gamma, _keys
from ._basic import *  # noqa: F403
from ._continuous import *  # noqa: F403
from ._counts import *  # noqa: F403
from ._gamma import *  # noqa: F403
from ._keys import *  # noqa: F403

__all__: list[str] = []
for _part in (_basic, _continuous, _counts, _gamma, _keys):
    __all__.extend(_part.__all__)
