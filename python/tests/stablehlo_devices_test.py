"""StableHLO of programs that every device of a mesh runs: XLA makes of it what Weft computes."""

import os

os.environ["WEFT_NUM_CPU_DEVICES"] = "8"
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"
os.environ["JAX_PLATFORMS"] = "cpu"

import numpy as np
import pytest

import weft
import weft.numpy as wnp
from weft import P, lax

MESH = weft.make_mesh((4, 2), ("x", "y"))
RNG = np.random.default_rng(0)
X = RNG.standard_normal((8, 4)).astype("float32")
W = RNG.standard_normal((4, 6)).astype("float32")


def spread(f, in_specs, out_specs, **more):
    return weft.shard_map(f, MESH, in_specs, out_specs, **more)


def _layers(x, w):
    return wnp.tanh(lax.psum(x @ w, "y")), lax.pmean(x, ("x", "y"))


PROGRAMS = {
    "no collective": (spread(lambda x: wnp.sin(x) * 2, P("x", "y"), P("x", "y")), X),
    "psum": (spread(lambda x: lax.psum(x, "x"), P("x", "y"), P(None, "y")), X),
    "psum of all": (spread(lambda x: lax.psum(x.sum(), ("x", "y")), P("x", "y"), P()), X),
    "largest": (spread(lambda x: (lax.pmax(x, "x"), lax.pmin(x, "y")), P("x"), (P(), P("x"))), X),
    "gathered": (spread(lambda x: lax.all_gather(x, ("y", "x")), P(("y", "x")), P(None, ("y", "x"))), X),
    "gathered, tiled": (
        spread(lambda x: lax.all_gather(x, "x", axis=1, tiled=True), P("x"), P("x")),
        X,
    ),
    "scattered": (
        spread(lambda x: lax.psum_scatter(x, "y", scatter_dimension=1, tiled=True), P("x"), P("x", "y")),
        X,
    ),
    "all to all": (spread(lambda x: lax.all_to_all(x, "y", 1, 0, tiled=True), P("x"), P(("x", "y"))), X),
    "shifted": (spread(lambda x: lax.ppermute(x, "x", [(0, 1), (1, 2), (3, 0)]), P("x", "y"), P("x", "y")), X),
    "places": (
        spread(lambda x: x + lax.axis_index("x") * 10 + lax.axis_index(("y", "x")), P("x", "y"), P("x", "y")),
        X,
    ),
    "two programs": (lambda x: spread(lambda x: x * 2, P("x"), P("x"))(wnp.cos(x)).sum(), X),
    "layers": (spread(_layers, (P("x", "y"), P("y")), (P("x"), P())), X, W),
    "gradient": (weft.grad(lambda w: (spread(_layers, (P("x", "y"), P("y")), (P("x"), P()))(X, w)[0] ** 2).sum()), W),
    "loop": (
        spread(
            lambda x: weft.fori_loop(0, 3, lambda i, v: lax.ppermute(v, "x", [(0, 1), (1, 0)]) + i, x), P("x"), P("x")
        ),
        X,
    ),
    "pmap": (weft.pmap(lambda x: x - lax.pmean(x, "i"), axis_name="i"), X),
}


def by_xla(text, arguments):
    """What JAX's compiler makes of a text for eight devices: the results, put together."""
    jax = pytest.importorskip("jax")
    from jax._src import compiler
    from jax._src.interpreters import mlir
    from jax._src.lib import _jax, xla_client
    from jax._src.lib.mlir import ir
    from jax._src.sharding_impls import GSPMDSharding

    devices = tuple(jax.devices("cpu"))
    assert len(devices) == 8
    order = np.arange(8).reshape(1, 8)
    options = compiler.get_compile_options(num_replicas=1, num_partitions=8, device_assignment=order)
    options.executable_build_options.use_spmd_partitioning = True
    options.executable_build_options.use_shardy_partitioner = True
    with mlir.make_ir_context():
        module = ir.Module.parse(text)
        assert module.operation.verify()
        program = devices[0].client.compile_and_load(module, _jax.DeviceList(devices), options)
    lie = lambda found: [GSPMDSharding(devices, xla_client.HloSharding.from_proto(s)) for s in found]
    given = [jax.device_put(a, s) for a, s in zip(arguments, lie(program.get_parameter_shardings()))]
    parts = program.execute_sharded(given).disassemble_into_single_device_arrays()
    whole = []
    for of_devices, place in zip(parts, lie(program.get_output_shardings())):
        large = [n * 8 for n in of_devices[0].shape]  # which every cut divides evenly
        cuts = [n // k for n, k in zip(large, place.shard_shape(tuple(large)))]
        out = np.empty([n * cut for n, cut in zip(of_devices[0].shape, cuts)], of_devices[0].dtype)
        indices = place.devices_indices_map(out.shape)
        for device, part in zip(devices, of_devices):
            out[indices[device]] = np.asarray(part)
        whole.append(out)
    return whole


@pytest.mark.parametrize("name", PROGRAMS)
def test_xla_computes_the_same(name):
    function, *arguments = PROGRAMS[name]
    lowered = weft.jit(function).lower(*arguments)
    text = lowered.as_text("stablehlo")
    assert "sdy.manual_computation" in text and "mhlo.num_partitions = 8" in text
    expected = weft.tree.leaves(weft.jit(function)(*arguments))
    for got, want in zip(by_xla(text, arguments), expected, strict=True):
        np.testing.assert_allclose(got, np.asarray(want), rtol=1e-5, atol=1e-5)


def test_programs_for_one_device():
    ir = weft.make_ir(PROGRAMS["psum"][0])(X)
    with pytest.raises(NotImplementedError, match="writes for one device"):
        weft.ir.to_stablehlo(ir)
