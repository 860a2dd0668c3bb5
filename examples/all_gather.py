"""Each device's number + 100 arrives everywhere.

    WEFT_NUM_CPU_DEVICES=8 ./bazelw run //examples:all_gather

Over four processes with a device each, where that number is the process's rank:

    ./bazelw build //examples:all_gather
    mpirun -n 4 bazel-bin/examples/all_gather
"""

import os

os.environ.setdefault("WEFT_NUM_CPU_DEVICES", "1" if "OMPI_COMM_WORLD_SIZE" in os.environ else "8")

import weft
from weft import P, lax

weft.distributed.initialize()
mesh = weft.make_mesh((weft.device_count(),), ("devices",))


def on_one_device():
    mine = lax.axis_index("devices") + 100
    return lax.all_gather(mine, "devices")[None]


exchange = weft.jit(
    weft.shard_map(on_one_device, mesh, in_specs=(), out_specs=P("devices")),
    out_shardings=weft.NamedSharding(mesh, P("devices")),
)


def main():
    everyone = [device.id + 100 for device in mesh.devices]
    for shard in exchange().addressable_shards:
        (arrived,) = shard.data.tolist()
        print(f"{shard.device}: {' '.join(map(str, arrived))}")
        assert arrived == everyone


if __name__ == "__main__":
    main()
