"""A gradient as StableHLO, for other compilers, and read back; and a program as JAX writes it."""

import numpy as np

import weft
import weft.numpy as wnp


def loss(w, x, y):
    logits = wnp.tanh(x @ w["hidden"]) @ w["out"]
    return -weft.nn.log_softmax(logits)[wnp.arange(len(y)), y].mean()


# As `jax.jit(lambda x: jax.numpy.sort(x @ x.T, axis=1)).lower(x).as_text()` prints it, shortened.
FROM_JAX = """
module @jit_f attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<2x3xf32>) -> (tensor<2x2xf32> {jax.result_info = "result"}) {
    %0 = stablehlo.transpose %arg0, dims = [1, 0] : (tensor<2x3xf32>) -> tensor<3x2xf32>
    %1 = stablehlo.dot_general %arg0, %0, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT]
      : (tensor<2x3xf32>, tensor<3x2xf32>) -> tensor<2x2xf32>
    %2 = "stablehlo.sort"(%1) <{dimension = 1 : i64, is_stable = true}> ({
    ^bb0(%arg1: tensor<f32>, %arg2: tensor<f32>):
      %3 = stablehlo.compare LT, %arg1, %arg2, TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %3 : tensor<i1>
    }) : (tensor<2x2xf32>) -> tensor<2x2xf32>
    return %2 : tensor<2x2xf32>
  }
}
"""


def main():
    rng = np.random.default_rng(0)
    w = {"hidden": rng.standard_normal((6, 5), "float32"), "out": rng.standard_normal((5, 3), "float32")}
    x, y = rng.standard_normal((4, 6), "float32"), np.array([0, 2, 1, 0], "int32")

    step = weft.value_and_grad(loss)
    text = weft.ir.to_stablehlo(weft.make_ir(step)(w, x, y))
    print(text[:600], "...")
    back = weft.jit(weft.ir.from_stablehlo(text))
    leaves = weft.tree.leaves((w, x, y))
    for got, expected in zip(back(*leaves), weft.tree.leaves(step(w, x, y))):
        np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-6)

    program = weft.ir.from_stablehlo(FROM_JAX)
    print(program)
    m = rng.standard_normal((2, 3), "float32")
    np.testing.assert_allclose(program(m), np.sort(m @ m.T, 1), rtol=1e-5)
    # It is a program like any other.
    slope = weft.grad(lambda m: program(m)[0, 1])(m)
    assert slope.shape == (2, 3)

    try:
        weft.ir.to_stablehlo(weft.make_ir(wnp.linalg.eigh)(m @ m.T))
    except NotImplementedError as error:
        print(error)
    else:
        raise AssertionError("eigh was written")


if __name__ == "__main__":
    main()
