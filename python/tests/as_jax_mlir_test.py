"""weft.as_jax: StableHLO that a program builds itself with jax.extend.mlir, in modules and in lowerings. Each program
runs under JAX, too."""

import pytest
from as_jax_both import both

import weft
from weft.as_jax import mlir_func, mlir_ir, mlir_stablehlo

HEAD = """
from jax.extend.mlir import ir
from jax.extend.mlir.dialects import func, stablehlo as hlo
from jax._src import xla_bridge
from jax._src.lib import xla_client
def array(shape, kind):
    return ir.RankedTensorType.get(shape, kind.get())
def number(x):
    return hlo.constant(ir.DenseElementsAttr.get(np.asarray(x)))
def compiled(build):
    "Runs what `build` puts into a module."
    with ir.Context() as ctx, ir.Location.unknown(ctx):
        hlo.register_dialect(ctx)
        module = ir.Module.create()
        with ir.InsertionPoint(module.body):
            build(module)
        text = str(module)
    backend = xla_bridge.get_backend(None)
    program = backend.compile_and_load(text, backend.devices()[:1])
    device = backend.devices()[0]
    place = xla_client.GSPMDSharding((device,), xla_client.OpSharding())
    def run(*xs):
        put = [xla_client.batched_device_put(jax.core.ShapedArray(x.shape, x.dtype), place, [x], [device], True,
                                             enable_x64=True) for x in xs]
        return [[str(y.dtype), y.tolist()] for y in map(np.asarray, program.execute(put))]
    return run
"""


def run(code):
    return both(HEAD + code)


def test_functions_of_a_module():
    found = run("""
def build(module):
    table = ir.SymbolTable(module.operation)
    pair = array((3,), ir.F64Type)
    @func.func(pair, pair)
    def main(x, y):
        with ir.InsertionPoint(module.body):
            inner = []
            for factor in (2.0, 3.0):
                @func.func(pair)
                def scaled(x):
                    return hlo.multiply(x, hlo.broadcast_in_dim(pair, number(factor), []))
                table.insert(scaled.func_op)
                inner.append(scaled.func_op)
        (a,), (b,) = func.CallOp(inner[0], [x]).results, func.CallOp(inner[1], [y]).results
        less = hlo.compare(a, b, hlo.ComparisonDirectionAttr.get("LT"))
        return hlo.add(a, b), hlo.select(less, a, hlo.NegOp(b).result), less
f = compiled(build)
out["results"] = f(np.array([1.0, 2.0, 3.0]), np.array([1.0, 1.0, 5.0]))
""")
    assert found["results"][0] == ["float64", [5.0, 7.0, 21.0]]  # as wide as the text says, without jax_enable_x64


def test_regions():
    run("""
def build(module):
    matrix, scalar = array((2, 3), ir.F32Type), array((), ir.F32Type)
    @func.func(matrix, ir.RankedTensorType.get((), ir.IntegerType.get_signless(1)))
    def main(x, which):
        op = hlo.ReduceOp([array((2,), ir.F32Type)], [x], [number(np.float32(0))], [1])
        inside = op.body.blocks.append(scalar, scalar)
        with ir.InsertionPoint(inside):
            hlo.return_([hlo.add(*inside.arguments)])
        branch = hlo.IfOp([matrix], which)
        with ir.InsertionPoint(branch.true_branch.blocks.append()):
            hlo.return_([hlo.sine(x)])
        with ir.InsertionPoint(branch.false_branch.blocks.append()):
            hlo.return_([x])
        loop = hlo.WhileOp([scalar], [number(np.float32(1))])
        condition = loop.cond.blocks.append(scalar)
        with ir.InsertionPoint(condition):
            hlo.return_([hlo.compare(condition.arguments[0], number(np.float32(100)),
                                     hlo.ComparisonDirectionAttr.get("LT"))])
        body = loop.body.blocks.append(scalar)
        with ir.InsertionPoint(body):
            hlo.return_([hlo.add(body.arguments[0], body.arguments[0])])
        return [*op.results, *branch.results, *loop.results]
f = compiled(build)
x = np.arange(6, dtype=np.float32).reshape(2, 3)
out["no"] = f(x, np.bool_(False))
out["loop"] = f(x, np.bool_(True))[2]
""")


def test_operations():
    run("""
def build(module):
    @func.func(array((2, 3), ir.F32Type))
    def main(x):
        turned = hlo.transpose(x, ir.DenseI64ArrayAttr.get([1, 0]))
        joined = hlo.concatenate([x, x], ir.IntegerAttr.get(ir.IntegerType.get_signless(64), 0))
        part = hlo.slice(joined, [1, 0], [4, 3], [2, 1])
        whole = hlo.convert(ir.RankedTensorType.get((2, 3), ir.IntegerType.get_signless(32)), x)
        counted = hlo.iota(ir.RankedTensorType.get((4,), ir.IntegerType.get_signless(32)), 0)
        flat = hlo.reshape(array((6,), ir.F32Type), x)
        return turned, joined, part, whole, counted, flat, hlo.reverse(flat, [0]), hlo.maximum(x, hlo.negate(x))
f = compiled(build)
out["results"] = f(np.arange(6, dtype=np.float32).reshape(2, 3) - 2)
""")


def test_lowering_that_builds_operations():
    run("""
from jax.extend.core import Primitive
from jax.interpreters import mlir
p = Primitive("multiply_add")
p.def_abstract_eval(lambda x, y, z: jax.core.ShapedArray(x.shape, x.dtype))
mlir.register_lowering(p, lambda ctx, x, y, z: [hlo.AddOp(hlo.MulOp(x, y), z).result])
args = np.float32(2), np.float32(3), np.float32(4)
out["called"] = float(jax.jit(p.bind)(*args))
out["array"] = jax.jit(p.bind)(*(np.arange(3, dtype=np.float32) + x for x in args)).tolist()
""")


def test_refused():
    with pytest.raises(TypeError, match="operand is missing"):
        mlir_stablehlo.SineOp()
    with pytest.raises(TypeError, match=r"stablehlo\.sine takes at most 1"):
        mlir_stablehlo.sine(weft.numpy.ones(2), 3)
    with pytest.raises(TypeError, match="types of its results"):
        mlir_stablehlo.reshape(operand=weft.numpy.ones(2))
    with pytest.raises(NotImplementedError, match=r"stablehlo\.if in a lowering"):
        mlir_stablehlo.IfOp([], weft.numpy.asarray(True))
    with pytest.raises(ValueError, match="needs a place"):
        mlir_stablehlo.constant(mlir_ir.DenseElementsAttr.get(weft.numpy.ones(2)))
    with pytest.raises(ValueError, match="invalid tensor element type"):
        mlir_ir.RankedTensorType.get((2,), mlir_ir.Type("token"))
    module = mlir_ir.Module.create()
    with mlir_ir.InsertionPoint(module.body):
        kept = []
        pair = mlir_ir.RankedTensorType.get((2,), mlir_ir.F32Type.get())
        mlir_func.func(pair, name="first")(lambda x: kept.append(x) or x)
        mlir_func.func(pair, name="second")(lambda x: mlir_stablehlo.add(x, kept[0]))
    with pytest.raises(ValueError, match="in another function"):
        str(module)


def test_operations_in_lowerings():
    found = both("""
from jax._src.interpreters import mlir as own
from jax._src.lib.mlir.dialects import hlo
from jax.extend import core
from jax.interpreters import mlir

it = core.Primitive("it")
it.def_abstract_eval(lambda x, y: x)

def lowering(ctx, x, y):
    kind, = ctx.avals_out
    two = mlir.ir_constant(np.full(kind.shape, 2, kind.dtype))
    three = hlo.BroadcastInDimOp(
        mlir.aval_to_ir_type(ctx.module_context, kind), mlir.ir_constant(np.float32(3)), mlir.dense_int_array([])
    )
    return [hlo.AddOp(hlo.MulOp(x, two), own.hlo.add(y, three.result)).result]

mlir.register_lowering(it, lowering)
out["computed"] = jax.jit(it.bind)(jnp.arange(3.0), jnp.ones(3)).tolist()
""")
    assert found["computed"] == [4.0, 6.0, 8.0]
