"""How XLA says that arrays are cut: weft.as_jax.hlo_shardings beside JAX's own, which is XLA's."""

import os

os.environ["WEFT_NUM_CPU_DEVICES"] = "8"
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"
os.environ["JAX_PLATFORMS"] = "cpu"

import jax
import numpy as np
import pytest
from jax._src import op_shardings as theirs_of
from jax._src.lib import xla_client as xla
from jax._src.sharding_impls import GSPMDSharding as TheirGSPMD
from jax._src.sharding_impls import parse_flatten_op_sharding as theirs_parsed

import weft
from weft.as_jax import hlo_shardings as mine_of

SHAPES = {(8,): ("x",), (4, 2): ("x", "y"), (2, 2, 2): ("x", "y", "z"), (1, 4, 2): ("x", "y", "z"), (1, 1): ("x", "y")}
SPECS = [
    (),
    ("x",),
    (None, "x"),
    ("y",),
    ("x", "y"),
    ("y", "x"),
    (("x", "y"),),
    (("y", "x"), None),
    (None, ("x", "y")),
    ("z", None, "x"),
    (("x", "z"), "y"),
    ("y", "z", "x"),
    (None, None, ("z", "x")),
]
CASES = [
    (shape, spec)
    for shape, names in SHAPES.items()
    for spec in SPECS
    if {a for dim in spec for a in ([dim] if isinstance(dim, str) else dim or ())} <= set(names)
]


def both(shape, spec):
    names = SHAPES[shape]
    mine = weft.NamedSharding(weft.make_mesh(shape, names), weft.P(*spec))
    devices = np.array(jax.devices()[: np.prod(shape)]).reshape(shape)
    theirs = jax.sharding.NamedSharding(jax.sharding.Mesh(devices, names), jax.sharding.PartitionSpec(*spec))
    return mine, theirs


def described(sharding):
    return {
        name: getattr(sharding, name)()
        for name in (
            "is_tiled",
            "is_replicated",
            "is_manual",
            "tile_assignment_dimensions",
            "tile_assignment_devices",
            "replicate_on_last_tile_dim",
        )
    }


@pytest.mark.parametrize("shape, spec", CASES, ids=str)
def test_named_shardings(shape, spec):
    mine, theirs = both(shape, spec)
    for rank in (3, 4):
        a = mine_of.named_sharding_to_xla_hlo_sharding(mine, rank)
        b = theirs._to_xla_hlo_sharding(rank)
        assert described(a) == {k: list(v) if isinstance(v, (list, tuple)) else v for k, v in described(b).items()}
        assert mine_of.is_hlo_sharding_replicated(a) == theirs_of.is_hlo_sharding_replicated(b)
        assert tuple(mine_of.parse_flatten_op_sharding(a, mine.mesh)[0]) == tuple(theirs_parsed(b, theirs.mesh)[0])


@pytest.mark.parametrize("shape, spec", CASES, ids=str)
def test_parts_of_arrays(shape, spec):
    mine, theirs = both(shape, spec)
    size = (8, 16, 24)
    a = mine_of.GSPMDSharding(list(mine.mesh.devices.flat), mine_of.named_sharding_to_xla_hlo_sharding(mine, len(size)))
    b = TheirGSPMD(list(theirs.mesh.devices.flat), theirs._to_xla_hlo_sharding(len(size)))
    full = lambda index: tuple(s.indices(n)[:2] for s, n in zip(index, size))
    assert {d.id: full(i) for d, i in a.devices_indices_map(size).items()} == {
        d.id: full(i) for d, i in b.devices_indices_map(size).items()
    }
    assert a.shard_shape(size) == b.shard_shape(size) and a.is_fully_replicated == b.is_fully_replicated
    assert a.is_equivalent_to(mine, 3) and a == mine_of.GSPMDSharding(a._devices, a._hlo_sharding)
    assert hash(a) == hash(mine_of.GSPMDSharding(a._devices, a._hlo_sharding))


TILES = [
    {"dims": (2, 4)},
    {"dims": (4, 2), "reshape_dims": (2, 4), "transpose_perm": (1, 0)},
    {"dims": (2, 2, 2), "subgroups": ("REPLICATED",)},
    {"dims": (1, 1, 2, 1), "subgroups": ("REPLICATED", "MANUAL")},
    {"dims": (1, 1, 1, 2), "subgroups": ("MANUAL", "REPLICATED")},
    {"dims": (2, 4), "subgroups": ("MANUAL", "REPLICATED")},
    {"dims": (4, 1), "subgroups": ("REPLICATED",)},
]


@pytest.mark.parametrize("case", TILES, ids=str)
def test_tiles(case):
    case = dict(case)
    subgroups = case.pop("subgroups", ())
    a = mine_of.HloSharding.iota_tile(
        **case, subgroup_types=[getattr(mine_of.OpSharding.Type, name) for name in subgroups]
    )
    b = xla.HloSharding.iota_tile(**case, subgroup_types=[getattr(xla.OpSharding.Type, name) for name in subgroups])
    assert described(a) == described(b)
    assert [kind.name for kind in a.subgroup_types()] == [kind.name for kind in b.subgroup_types()]
    if a.is_tiled():
        assert (a.num_devices(), a.num_dimensions()) == (b.num_devices(), b.num_dimensions())
        assert repr(a) == repr(b)


@pytest.mark.parametrize(
    "case, message",
    [
        ({"dims": ()}, "should not be empty"),
        ({"dims": (2, 2), "reshape_dims": (2, 4), "transpose_perm": (1, 0)}, "Cannot reshape from"),
        ({"dims": (2, 2), "transpose_perm": (1, 0)}, "should have the same size"),
        ({"dims": (2,), "subgroup_types": [mine_of.OpSharding.Type.MANUAL] * 2}, "should not have more dimensions"),
    ],
)
def test_tiles_that_there_are_not(case, message):
    with pytest.raises(RuntimeError, match=message):
        mine_of.HloSharding.iota_tile(**case)


def test_records():
    record = mine_of.OpSharding()
    assert mine_of.HloSharding.from_proto(record) == mine_of.HloSharding.replicate()
    record.type, record.tile_assignment_dimensions = mine_of.OpSharding.Type.OTHER, [2, 2]
    record.tile_assignment_devices = [0, 2, 1, 3]
    a = mine_of.HloSharding.from_proto(record)
    assert a == mine_of.HloSharding.iota_tile((2, 2), reshape_dims=(2, 2), transpose_perm=(1, 0))
    assert a != mine_of.HloSharding.iota_tile((2, 2)) and len({a, mine_of.HloSharding.from_proto(record)}) == 1
    pair = mine_of.OpSharding()
    pair.type, pair.tuple_shardings = mine_of.OpSharding.Type.TUPLE, [record, mine_of.OpSharding()]
    other = mine_of.OpSharding()
    other.type, other.tuple_shardings = mine_of.OpSharding.Type.TUPLE, [mine_of.OpSharding(), record]
    assert mine_of.HloSharding.from_proto(pair) != mine_of.HloSharding.from_proto(other)
