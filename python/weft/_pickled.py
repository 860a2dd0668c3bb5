"""What pickles of arrays and programs call when they are read.

Functions of this module and nothing else: an unpickler that admits only what it is told to admit can name them. (A
native function would be written as an expression for `eval`, which such an unpickler refuses.) Pickles on disk name
them, so they stay as they are.
"""

import numpy as np

from . import _weft
from . import mesh as _mesh


def array(dtype: str, shape: tuple[int, ...], data: bytes, weak: bool) -> _weft.Array:
    """An array of these bytes. Raises ValueError where they do not fit its type."""
    return _weft._array_from_bytes(dtype, shape, data, weak)


def placed_array(
    dtype: str, shape: tuple[int, ...], data: bytes, weak: bool, place: tuple[int] | tuple[list, list, tuple]
) -> _weft.Array:
    """The same array on a device, by its number, or over a mesh: its axes, the numbers of its devices, and the entries
    of a PartitionSpec. Raises ValueError where there are not so many devices."""
    whole = array(dtype, shape, data, weak)
    if len(place) == 1:
        return _mesh.put(whole, _mesh.SingleDeviceSharding(_mesh.device_of_pickle(place[0])))
    axes, numbers, spec = place
    devices = np.array([_mesh.device_of_pickle(n) for n in numbers], dtype=object).reshape([size for _, size in axes])
    mesh = _mesh.Mesh(devices, [name for name, _ in axes])
    return _mesh.put(whole, _mesh.NamedSharding(mesh, _mesh.PartitionSpec(*spec)))


def program(text: str, file: str) -> _weft.Fn:
    """The function of this text of the IR. Raises ParseError."""
    return _weft.parse_fn(text, file)
