"""Devices, meshes of them, how arrays lie on them, and programs that are cut over them.

Users find it under weft, weft.mesh and weft.partitioning."""
