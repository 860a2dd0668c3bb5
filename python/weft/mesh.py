"""Devices, meshes of them, and how arrays lie on them.

There is one device, the CPU, unless the environment variable WEFT_NUM_CPU_DEVICES asks for more: then the process has
that many virtual devices, which share its memory and its threads. After weft.distributed.initialize() there are those
of all processes of the job.
"""

from ._core.names import belong_to as _belong_to
from ._sharding import shardings as _shardings
from ._sharding import typed as _typed  # noqa: F401
from ._sharding.arrays import (
    Shard,
    _devices_of,
    _is_fully_addressable,
    _is_fully_replicated,
    _sharding_of,
    _shards_of,
    addressable_data,
    device_put,
    global_shards,
    to_device,
    visualize_array_sharding,
)
from ._sharding.devices import (
    Device,
    default_backend,
    device_count,
    device_of_pickle,
    devices,
    local_device_count,
    local_devices,
    process_count,
    process_index,
)
from ._sharding.meshes import (
    AbstractMesh,
    AxisType,
    Mesh,
    current_mesh,
    get_abstract_mesh,
    get_mesh,
    make_mesh,
    set_mesh,
)
from ._sharding.shardings import NamedSharding, P, PartitionSpec, Sharding, SingleDeviceSharding

__all__ = [
    "AbstractMesh",
    "AxisType",
    "Device",
    "Mesh",
    "NamedSharding",
    "P",
    "PartitionSpec",
    "Shard",
    "Sharding",
    "SingleDeviceSharding",
    "device_count",
    "device_put",
    "devices",
    "get_abstract_mesh",
    "get_mesh",
    "local_device_count",
    "local_devices",
    "make_mesh",
    "process_count",
    "process_index",
    "set_mesh",
    "visualize_array_sharding",
]

# What arrays ask this module for (array.cc).
_belong_to(globals(), _devices_of, _is_fully_addressable, _is_fully_replicated, _sharding_of, _shards_of)
_belong_to(globals(), addressable_data, global_shards, to_device)
_belong_to(globals(), current_mesh, default_backend, *(globals()[name] for name in __all__))
# Pickles of devices and specs name these, too.
_UNCONSTRAINED = _shardings._UNCONSTRAINED
_belong_to(globals(), device_of_pickle, type(_UNCONSTRAINED))

_device = device_of_pickle  # what old pickles of devices name
