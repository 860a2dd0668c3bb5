"""Each device's number + 100 arrives everywhere.

WEFT_NUM_CPU_DEVICES=8 ./bazelw run //examples:all_gather
"""

import os

os.environ.setdefault("WEFT_NUM_CPU_DEVICES", "8")

import weft
from weft import P, lax

mesh = weft.make_mesh((weft.device_count(),), ("devices",))


@weft.jit
def exchange():
    def on_one_device():
        mine = lax.axis_index("devices") + 100
        return lax.all_gather(mine, "devices")[None]

    return weft.shard_map(on_one_device, mesh, in_specs=(), out_specs=P("devices"))()


def main():
    everyone = [device.id + 100 for device in mesh.devices]
    for device, arrived in zip(mesh.devices, exchange().tolist()):
        print(f"{device}: {' '.join(map(str, arrived))}")
        assert arrived == everyone


if __name__ == "__main__":
    main()
