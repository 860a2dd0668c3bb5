"""Every error names the user's line: errors of C++ code and of Python code, eager and while a function is traced."""

import ast
import functools
import os
import pathlib
import pickle

os.environ["WEFT_NUM_CPU_DEVICES"] = "4"

import numpy as np
import pytest

import weft
import weft.lax as lax
import weft.nn as nn
import weft.numpy as wnp
from weft import random

X = wnp.ones((2, 3))
N = weft.ShapeDtype(("n", 3), "float32")
MESH = weft.make_mesh((4,), ("i",))
MXFP8 = [nn.get_scaled_dot_general_config("mxfp8")] * 3


def double(x):
    return 2 * x


@weft.custom_jvp
def without_rule(x):
    return x


@weft.custom_jvp
def jvp_structure(x):
    return x


jvp_structure.defjvp(lambda primals, tangents: (primals, tangents))


@weft.custom_vjp
def vjp_forward(x):
    return x


vjp_forward.defvjp(lambda x: x, lambda residuals, ct: (ct,))


@weft.custom_vjp
def vjp_backward(x):
    return x


vjp_backward.defvjp(lambda x: (x, ()), lambda residuals, ct: (ct, ct))


@weft.custom_batching.custom_vmap
def batched(x):
    return x


batched.def_vmap(lambda size, in_batched, x: x)


def escaped():
    kept = []
    weft.jit(lambda x: kept.append(x) or x)(1.0)
    return kept[0]


ESCAPED = escaped()
NUMBERS = [wnp.zeros(3, int)] * 4  # of slices
exchange = lax.ragged_all_to_all
over = functools.partial(weft.vmap, axis_name="i")

# The family, then mistakes.
MISTAKES = {
    "control flow": [
        lambda: weft.cond(X, double, double, X),
        lambda: weft.cond(True, double, lambda x: (x, x), X),
        lambda: weft.cond(True, double, lambda x: x[0], X),
        lambda: weft.cond(True, double, 3, X),
        lambda: weft.cond(True, double, double, "text"),
        lambda: weft.switch(0, [], X),
        lambda: weft.switch(1.5, [double, double], X),
        lambda: weft.switch(X[0, 0].astype(int), [double, lambda x: (x, x)], X),
        lambda: weft.while_loop(lambda c: c, double, X),
        lambda: weft.while_loop(lambda c: c < 3, lambda c: (c, c), 0.0),
        lambda: weft.while_loop(lambda c: True, lambda c: X, X[0]),
        lambda: weft.while_loop(lambda c: (c, c), double, 0.0),
        lambda: weft.while_loop(lambda c: c < 3, double, 0.0, strategy="none"),
        lambda: weft.fori_loop(0, 3, lambda i, c: (c, c), 0.0),
        lambda: weft.fori_loop(0, "n", lambda i, c: c, 0.0),
        lambda: weft.fori_loop(0, 3, lambda i, c: wnp.ones(i), 0.0),
        lambda: weft.fori_loop(0, 3.5, lambda i, c: c, 0.0),
        lambda: weft.scan(lambda c, x: c, 0.0, X),
        lambda: weft.scan(lambda c, x: ((c, c), x), 0.0, X),
        lambda: weft.scan(lambda c, x: (c, x), 0.0, 1.0),
        lambda: weft.scan(lambda c, x: (c, x), 0.0, (X, wnp.ones(3))),
        lambda: weft.scan(lambda c, x: (c, x), 0.0),
        lambda: weft.scan(lambda c, x: (c, x), 0.0, X, length=7),
        lambda: weft.map(double, 1.0),
        lambda: lax.associative_scan(wnp.add, X, axis=4),
        lambda: lax.custom_root(lambda x: x, 0.0, lambda f, x: (x, x), lambda g, y: y),
        lambda: lax.custom_linear_solve(lambda x: (x, x), X, lambda f, b: b),
    ],
    "transforms": [
        lambda: weft.jit(3),
        lambda: weft.jit(double, static_argnums=7),
        lambda: weft.jit(double, static_argnames="y"),
        lambda: weft.jit(double, static_argnums="x"),
        lambda: weft.jit(double, donate_argnums=0, static_argnums=0),
        lambda: weft.jit(double, capture="never"),
        lambda: weft.jit(double)("text"),
        lambda: weft.jit(double)({"a": object()}),
        lambda: weft.jit(lambda x: "text")(1.0),
        lambda: weft.jit(lambda x, y: x)(1.0),
        lambda: weft.jit(wnp.add)(1.0),
        lambda: weft.jit(double)(1.0, 2.0),
        lambda: weft.jit(double)(y=1.0),
        lambda: weft.jit(double, static_argnums=0)([1]),
        lambda: weft.jit(double, static_argnums=0)(X),
        lambda: weft.grad(double)(X),
        lambda: weft.grad(wnp.sum)(wnp.ones(2, int)),
        lambda: weft.grad(lambda x: (x, x))(1.0),
        lambda: weft.grad(double, argnums=1)(1.0),
        lambda: weft.grad(double, argnums=(0, 0))(1.0),
        lambda: weft.grad(double, argnums="x")(1.0),
        lambda: weft.grad(double, argnums=())(1.0),
        lambda: weft.grad(double, argnames="y")(1.0),
        lambda: weft.grad(double, has_aux=True)(1.0),
        lambda: weft.grad(double)(),
        lambda: weft.grad(lambda x: wnp.nextafter(x, 2.0))(1.0),
        lambda: weft.value_and_grad(double)(X),
        lambda: weft.jacfwd(double, 2)(X),
        lambda: weft.jacfwd(double)(wnp.ones(2, int)),
        lambda: weft.jacrev(double)(wnp.ones(2, int)),
        lambda: weft.hessian(double, 3)(X),
        lambda: weft.jvp(double, 1.0, 1.0),
        lambda: weft.jvp(double, (X,), (X, X)),
        lambda: weft.jvp(double, (X,), (wnp.ones(2),)),
        lambda: weft.jvp(double, (1,), (1.0,)),
        lambda: weft.vjp(double, X)[1](wnp.ones(2)),
        lambda: weft.vjp(double, X)[1]((X, X)),
        lambda: weft.linearize(double, X)[1](wnp.ones(2)),
        lambda: weft.linearize(double, X)[1](X, X),
        lambda: weft.linear_transpose(double, weft.ShapeDtype((2,)))(wnp.ones(3)),
        lambda: weft.linear_transpose(wnp.sin, X)(X),
        lambda: weft.jet(double, 1.0, 1.0),
        lambda: weft.jet(double, (1.0,), ([1.0], [1.0])),
        lambda: weft.vmap(double, in_axes=(0, 0))(X),
        lambda: weft.vmap(double, in_axes=5)(X),
        lambda: weft.vmap(double, in_axes="0")(X),
        lambda: weft.vmap(double, in_axes=({"a": 0},))({"b": X}),
        lambda: weft.vmap(double, in_axes=None)(X),
        lambda: weft.vmap(double)(1.0),
        lambda: weft.vmap(wnp.add)(X, wnp.ones(7)),
        lambda: weft.vmap(double, out_axes=5)(X),
        lambda: weft.vmap(double, out_axes=(0, 0))(X),
        lambda: weft.vmap(double, axis_size=4)(X),
        lambda: weft.checkpoint(double, policy=3),
        lambda: weft.checkpoint(double, static_argnums=4)(X),
        lambda: weft.make_ir(double)("text"),
        lambda: weft.make_ir(double)(1.0).stage("nowhere"),
        lambda: weft.eval_shape(double, "text"),
        lambda: weft.parse_ir("fn f("),
        lambda: weft.parse_ir(None),
        lambda: weft.deserialize_ir(b"nothing"),
        lambda: weft.ShapeDtype((2,), "float99"),
        lambda: weft.aot(3, 3),
        lambda: weft.config.update("no_such_setting", 1),
    ],
    "programs": [
        lambda: weft.make_ir(double)(1.0)(1.0, 2.0),
        lambda: weft.make_ir(double)(1.0)(X),
        lambda: weft.jit(double).lower(1.0).compile()(X),
        lambda: weft.pure_callback(double, weft.ShapeDtype((3,), "float32"), X),
        lambda: weft.closure_convert(double, 1.0)[0](X),
        lambda: weft.make_ir(double)(N)(wnp.ones((2, 4))),
        lambda: weft.make_ir(double)(N)(wnp.ones(2)),
    ],
    "rules": [
        lambda: weft.custom_jvp(3),
        lambda: weft.custom_jvp(double).defjvp(3),
        lambda: weft.grad(without_rule)(1.0),
        lambda: weft.grad(jvp_structure)(1.0),
        lambda: weft.custom_vjp(double)(1.0),
        lambda: weft.grad(weft.custom_vjp(double))(1.0),
        lambda: weft.grad(vjp_forward)(1.0),
        lambda: weft.grad(vjp_backward)(1.0),
        lambda: weft.vmap(batched)(X),
        lambda: weft.vmap(weft.custom_batching.custom_vmap(double))(X),
    ],
    "NumPy": [
        lambda: X + wnp.ones(2),
        lambda: wnp.add(X, "text"),
        lambda: X @ X,
        lambda: wnp.zeros((2, -1)),
        lambda: wnp.zeros("a"),
        lambda: wnp.zeros(2.5),
        lambda: wnp.zeros((2, None)),
        lambda: wnp.ones(2, "float99"),
        lambda: wnp.full(2, X),
        lambda: wnp.full(2, "text"),
        lambda: wnp.array([[1, 2], [3]]),
        lambda: wnp.array(object()),
        lambda: wnp.asarray("text"),
        lambda: wnp.arange(1, 2, 0),
        lambda: wnp.arange("text"),
        lambda: wnp.linspace(0, 1, -1),
        lambda: wnp.linspace(0, 1, 2.5),
        lambda: wnp.eye(-1),
        lambda: wnp.eye("a"),
        lambda: wnp.meshgrid(X[0], indexing="ab"),
        lambda: wnp.concatenate([]),
        lambda: wnp.concatenate([X, wnp.ones((2, 3, 1))]),
        lambda: wnp.stack([X, wnp.ones(2)]),
        lambda: wnp.stack([]),
        lambda: wnp.split(X, 5),
        lambda: wnp.split(X, 2, axis=7),
        lambda: X.reshape(4),
        lambda: X.reshape("a"),
        lambda: X.transpose(0, 0),
        lambda: X.swapaxes(0, 5),
        lambda: X.sum(axis=5),
        lambda: X.sum(axis="a"),
        lambda: X.sum(axis=(0, 0)),
        lambda: X.mean(axis=1.5),
        lambda: wnp.squeeze(X, 0),
        lambda: wnp.expand_dims(X, 7),
        lambda: wnp.broadcast_to(X, (3, 2)),
        lambda: wnp.tile(X, -1),
        lambda: wnp.repeat(X, -1),
        lambda: wnp.repeat(X, [1, 2, 3], axis=0),
        lambda: wnp.pad(X, 1, mode="none"),
        lambda: wnp.pad(X, -1),
        lambda: wnp.roll(X, 1, axis=3),
        lambda: wnp.flip(X, 3),
        lambda: wnp.rot90(X[0]),
        lambda: wnp.moveaxis(X, 0, 3),
        lambda: wnp.einsum("ij->k", X),
        lambda: wnp.einsum("ij", X, X),
        lambda: wnp.tensordot(X, X, 1),
        lambda: wnp.cross(wnp.ones(4), wnp.ones(4)),
        lambda: wnp.where(X > 0, X),
        lambda: wnp.where(X, wnp.ones(2), 1),
        lambda: wnp.select([X > 0], [X, X]),
        lambda: wnp.choose(wnp.asarray([7]), [1, 2]),
        lambda: wnp.sort(X, axis=3),
        lambda: wnp.partition(X, 9),
        lambda: wnp.searchsorted(X, 1.0),
        lambda: wnp.quantile(X, 0.5, method="none"),
        lambda: wnp.percentile(X, 50, axis=7),
        lambda: wnp.median(X, axis=7),
        lambda: wnp.histogram(X, bins=-1),
        lambda: wnp.bincount(wnp.ones(3)),
        lambda: wnp.interp(1.0, wnp.ones(2), wnp.ones(3)),
        lambda: wnp.polyfit(wnp.ones(2), wnp.ones(3), 1),
        lambda: wnp.polyadd(X, wnp.ones(2)),
        lambda: wnp.polyval(wnp.ones((2, 3)), wnp.ones(2)),
        lambda: wnp.sum(X, initial=wnp.ones(2)),
        lambda: wnp.max(X, initial=wnp.ones(2)),
        lambda: wnp.min(X[:0], initial=wnp.ones(2)),
        lambda: wnp.convolve(X, X),
        lambda: wnp.diff(X, n=-1),
        lambda: wnp.diff(X, axis=4),
        lambda: wnp.cumsum(X, axis=4),
        lambda: wnp.argmax(wnp.zeros(0)),
        lambda: wnp.max(wnp.zeros(0)),
        lambda: wnp.cov(wnp.ones((2, 2, 2))),
        lambda: wnp.ravel_multi_index((9, 9), (2, 3)),
        lambda: wnp.tri("a"),
        lambda: wnp.diag(wnp.ones((1, 1, 1))),
        lambda: wnp.diagonal(wnp.ones(2)),
        lambda: wnp.trace(wnp.ones(2)),
        lambda: wnp.vander(X),
        lambda: wnp.left_shift(X, 1),
        lambda: wnp.finfo(int),
        lambda: wnp.iinfo(float),
        lambda: wnp.result_type("text"),
        lambda: wnp.bitwise_and(X, X),
        lambda: wnp.piecewise(X, [X > 0], []),
        lambda: wnp.vectorize(double, signature="(n")(X),
        lambda: wnp.apply_along_axis(double, 5, X),
        lambda: wnp.fft.fft(X, n=0),
        lambda: wnp.fft.fft(X, norm="none"),
        lambda: wnp.fft.fft2(X[0]),
        lambda: wnp.ones(3, "int8") + 300,
        lambda: X.astype("U5"),
        lambda: X.item(),
        lambda: float(X),
        lambda: bool(X),
        lambda: int(X),
        lambda: len(X[0, 0]),
        lambda: [*X[0, 0]],
        lambda: pow(X, 2, 3),
        lambda: X.view("U3"),
        lambda: X.clip(0, "a"),
        lambda: weft.Array(),
    ],
    "indices": [
        lambda: X[5],
        lambda: X[0, -4],
        lambda: X[0, 0, 0],
        lambda: X["a"],
        lambda: X[1.5],
        lambda: X[None, ..., ...],
        lambda: X[::0],
        lambda: X["a":],
        lambda: X[wnp.ones(2)],
        lambda: X[[True, False, True]],
        lambda: X[[0, 1], [0, 1, 2]],
        lambda: X.at[0].set(wnp.ones(7)),
        lambda: X.at[0, 0, 0].set(1.0),
        lambda: X.at[0].set("a"),
        lambda: X.at[7].get(mode="none"),
        lambda: X.__setitem__(0, 1.0),
        lambda: wnp.take(X, 1.5),
        lambda: wnp.take(X, 1, axis=5),
        lambda: wnp.take(X, 1, mode="none"),
        lambda: wnp.take_along_axis(X, X, 0),
        lambda: lax.dynamic_slice(X, (0,), (1, 1)),
        lambda: lax.dynamic_slice(X, (0, 0), (3, 1)),
        lambda: lax.dynamic_update_slice(X, wnp.ones((3, 3)), (0, 0)),
        lambda: lax.slice(X, (0, 0), (5, 5)),
        lambda: lax.dynamic_index_in_dim(X, 0, 5),
    ],
    "lax": [
        lambda: lax.add(X, wnp.ones(2)),
        lambda: lax.broadcast_in_dim(X, (2,), (0, 1)),
        lambda: lax.concatenate([X, X], 4),
        lambda: lax.conv_general_dilated(X, X, (1,), "SAME"),
        lambda: lax.conv_general_dilated(wnp.ones((1, 1, 5)), wnp.ones((1, 1, 3)), (1,), "NONE"),
        lambda: lax.dot_general(X, X, (((0,), (1,)), ((), ()))),
        lambda: lax.top_k(X, 9),
        lambda: lax.sort(X, dimension=3),
        lambda: lax.reduce_window(X, 0.0, lax.add, (1,), (1, 1), "VALID"),
        lambda: lax.reshape(X, (4,)),
        lambda: lax.transpose(X, (0,)),
        lambda: lax.iota("text", 3),
        lambda: lax.convert_element_type(X, "text"),
        lambda: lax.clamp(0.0, X, wnp.ones(7)),
        lambda: lax.select(X, X, X),
        lambda: lax.cumsum(X, 5),
        lambda: lax.psum(X, "nowhere"),
        lambda: lax.axis_index(3),
        lambda: lax.ppermute(X, "i", [(0, 1)]),
        lambda: lax.approx_max_k(wnp.ones(3, int), 1),
        lambda: lax.scaled_dot(X, X),
        lambda: lax.scaled_dot(X, X.T, lhs_scale=X),
        lambda: lax.scaled_dot(X, X.T, rhs_scale=X),
        lambda: lax.scaled_dot(X[0], X[0]),
        lambda: lax.rng_uniform(0, 1.0, (3,)),
        lambda: lax.rng_uniform(X, X, (3,)),
        lambda: lax.rng_uniform(False, True, (3,)),
        lambda: lax.stage("text"),
        lambda: over(lambda x: exchange(X[0], X[0], *NUMBERS[1:], X[0], axis_name="i"))(X[0]),
        lambda: over(lambda x: exchange(X[0], X[0], *NUMBERS[1:], 1, axis_name="i"))(X[0]),
        lambda: over(lambda x: exchange(X[0], X, *NUMBERS, axis_name="i"))(X[0]),
        lambda: over(lambda x: exchange(X[0], NUMBERS[0], *NUMBERS, axis_name="i"))(X[0]),
        lambda: over(lambda x: exchange(X[0], X[0], *NUMBERS, axis_name="i"))(X[:, 0]),
        lambda: over(lambda x: exchange(X[0], X[0], *NUMBERS, axis_name="nowhere"))(X[0]),
        lambda: over(lambda x: exchange(X[0], X[0], *NUMBERS, axis_name="i", axis_index_groups=[[1]]))(X[0]),
    ],
    "linear algebra": [
        lambda: wnp.linalg.cholesky(X),
        lambda: wnp.linalg.inv(X),
        lambda: wnp.linalg.det(X),
        lambda: wnp.linalg.eigh(X),
        lambda: wnp.linalg.eig(X),
        lambda: wnp.linalg.svd(X[0]),
        lambda: wnp.linalg.qr(X, mode="none"),
        lambda: wnp.linalg.solve(X, X),
        lambda: wnp.linalg.solve(wnp.eye(2), wnp.ones(3)),
        lambda: wnp.linalg.lstsq(X, wnp.ones(7)),
        lambda: wnp.linalg.norm(X, ord="none"),
        lambda: wnp.linalg.norm(wnp.ones((2, 2, 2)), ord=2),
        lambda: wnp.linalg.matrix_power(X, 2),
        lambda: wnp.linalg.matrix_power(wnp.eye(2), 0.5),
        lambda: wnp.linalg.multi_dot([X]),
        lambda: wnp.linalg.pinv(X[0]),
        lambda: wnp.linalg.tensorinv(X),
        lambda: wnp.linalg.cholesky("text"),
        lambda: weft.scipy.linalg.lu_solve((wnp.eye(2), wnp.arange(2)), wnp.ones(2), trans=7),
        lambda: weft.scipy.linalg.solve_triangular(X, X),
        lambda: weft.scipy.linalg.expm(X),
        lambda: weft.scipy.linalg.qr(X[0], pivoting=True),
        lambda: weft.scipy.special.multigammaln(1.0, -1),
        lambda: lax.linalg.qdwh(X),
        lambda: lax.linalg.qdwh(X.T, max_iterations=1.5),
    ],
    "random": [
        lambda: random.key("text"),
        lambda: random.key(1.5),
        lambda: random.normal(wnp.ones(3)),
        lambda: random.normal(3),
        lambda: random.normal(random.key(0), (2, -1)),
        lambda: random.normal(random.key(0), (), int),
        lambda: random.uniform(random.key(0), (), int),
        lambda: random.uniform(random.split(random.key(0)), (2,)),
        lambda: random.randint(random.key(0), (), 0, 3, float),
        lambda: random.split(random.key(0), -1),
        lambda: random.choice(random.key(0), 3, (5,), replace=False),
        lambda: random.choice(random.key(0), -3),
        lambda: random.choice(random.key(0), 3, p=wnp.ones(2)),
        lambda: random.permutation(random.key(0), X, axis=4),
        lambda: random.bits(random.key(0), (), int),
        lambda: random.categorical(random.key(0), X, axis=4),
        lambda: random.multivariate_normal(random.key(0), wnp.ones(2), wnp.eye(3)),
        lambda: random.multivariate_normal(random.key(0), wnp.ones(2), wnp.eye(2), method="none"),
        lambda: random.gamma(random.key(0), X, (7,)),
        lambda: random.fold_in(random.key(0), "text"),
        lambda: random.key(0) + 1,
    ],
    "nn": [
        lambda: nn.softmax(X, axis=5),
        lambda: nn.logsumexp(X, axis=5),
        lambda: nn.one_hot("text", 3),
        lambda: nn.one_hot(1, -3),
        lambda: nn.glu(wnp.ones(3)),
        lambda: nn.relu("text"),
        lambda: nn.standardize(X, algorithm="none"),
        lambda: nn.dot_product_attention(X, X, X),
        lambda: nn.initializers.glorot_uniform()(random.key(0), (3,)),
        lambda: nn.initializers.variance_scaling(1.0, "none", "normal")(random.key(0), (3, 3)),
        lambda: nn.initializers.delta_orthogonal()(random.key(0), (3, 3)),
        lambda: nn.scaled_matmul(X, X, X, X),
        lambda: nn.scaled_matmul(X[None], X[None], X[None, :1], X[None]),
        lambda: nn.get_scaled_dot_general_config("fp2"),
        lambda: nn.scaled_dot_general(X, X, (((1,), (1,)), ((), ())), configs=MXFP8),
        lambda: nn.scaled_dot_general(X, X, (((1,), (0,)), ((), ())), configs=MXFP8),
        lambda: nn.scaled_dot_general(X, X, (((1,), (1,)), ((), ())), int, configs=MXFP8),
        lambda: nn.scaled_dot_general(X, X, (((1,), (1,)), ((), ())), configs=MXFP8[:2]),
    ],
    "trees": [
        lambda: weft.tree.map(wnp.add, {"a": 1}, {"b": 1}),
        lambda: weft.tree.map_with_path(lambda path, a, b: a, (1, 2), (1, 2, 3)),
        lambda: weft.tree.unflatten(weft.tree.structure((1, 2)), [1]),
        lambda: weft.tree.reduce(wnp.add, ()),
        lambda: weft.tree.transpose(weft.tree.structure([0, 0]), weft.tree.structure({"a": 0}), [{"a": 1}, {"b": 2}]),
        lambda: weft.ShapeDtype((2, -1)),
        lambda: weft.flatten_util.ravel_pytree((X, X))[1](wnp.ones(3)),
        lambda: weft.tree_util.register_pytree_node(tuple, lambda t: (t, None), lambda aux, t: t),
    ],
    "meshes": [
        lambda: weft.make_mesh((9,), ("i",)),
        lambda: weft.make_mesh((0,), ("i",)),
        lambda: weft.make_mesh((2, 2), ("i", "i")),
        lambda: weft.make_mesh((2, 2), ("i",)),
        lambda: weft.Mesh(["cpu"], ("i",)),
        lambda: weft.devices("tpu"),
        lambda: weft.NamedSharding(MESH, weft.P("j")),
        lambda: weft.NamedSharding(MESH, weft.P("i", "i")),
        lambda: weft.NamedSharding(3, weft.P()),
        lambda: weft.device_put(X, weft.NamedSharding(MESH, weft.P("i"))),
        lambda: weft.device_put(X, "cpu"),
        lambda: weft.shard_map(double, mesh=MESH, in_specs=weft.P("i"), out_specs=weft.P("i"))(X),
        lambda: weft.shard_map(double, mesh=MESH, in_specs=3, out_specs=weft.P())(X),
        lambda: weft.shard_map(double, mesh=MESH, in_specs=weft.P("j"), out_specs=weft.P())(X),
        lambda: weft.shard_map(double, in_specs=weft.P(), out_specs=weft.P())(X),
        lambda: weft.shard_map(double, mesh=MESH, in_specs=weft.P("i"), out_specs=weft.P())(wnp.ones(4)),
        lambda: weft.pmap(double, in_axes=(0, 0))(X),
        lambda: weft.pmap(double)(wnp.ones(9)),
        lambda: weft.pmap(double, in_axes=None)(X),
        lambda: weft.with_sharding_constraint(X, weft.P("i")),
        lambda: weft.jit(double, in_shardings=3)(X),
    ],
    "autograph": [
        lambda: weft.autograph(abs),
        lambda: weft.jit(abs, autograph=True)("text"),
    ],
    "symbolic sizes": [
        lambda: weft.make_ir(lambda x: x.reshape(4))(N),
        lambda: weft.make_ir(lambda x: x @ x)(N),
        lambda: weft.make_ir(lambda x: wnp.median(x, 0))(N),
        lambda: weft.make_ir(lambda x: range(x.shape[0]))(N),
        lambda: weft.make_ir(lambda x: wnp.arange(1, x.shape[0]))(N),
        lambda: weft.make_ir(lambda x: x if x.shape[0] > 3 else -x)(N),
    ],
    "tracers": [
        lambda: weft.jit(lambda x: 1 if x else 2)(1.0),
        lambda: weft.jit(lambda x: float(x))(1.0),
        lambda: weft.jit(lambda x: np.asarray(x))(1.0),
        lambda: weft.jit(lambda x: np.sin(x))(1.0),
        lambda: weft.jit(lambda x: memoryview(x))(1.0),
        lambda: weft.jit(lambda x: wnp.zeros(x))(1),
        lambda: weft.jit(lambda x: range(x))(1),
        lambda: weft.jit(lambda x: [1][x])(1),
        lambda: weft.jit(lambda x: x[x > 0])(X),
        lambda: weft.jit(lambda x: wnp.nonzero(x))(X),
        lambda: weft.jit(lambda x: wnp.unique(x))(X),
        lambda: weft.jit(lambda x: f"{x:.3f}")(1.0),
        lambda: weft.jit(lambda x: x.tolist())(X),
        lambda: weft.jit(lambda x: weft.jit(lambda n: n, static_argnums=0)(x))(1),
        lambda: ESCAPED + 1,
        lambda: wnp.sin(ESCAPED),
        lambda: weft.jit(lambda x: x + ESCAPED)(1.0),
        lambda: bool(ESCAPED),
        lambda: weft.jit(double)(ESCAPED),
    ],
    "debugging": [
        lambda: weft.debug.print("{} {}", 1.0),
        lambda: weft.debug.print("{a}", b=1.0),
        lambda: weft.debug.print("{!q}", 1.0),
        lambda: weft.debug.print("{}", object()),
    ],
}

# While a function is traced too, except what is found when a program runs or is called with numbers.
CASES = [(family, False) for family in MISTAKES] + [(family, True) for family in MISTAKES if family != "programs"]


def innermost(info):
    """The innermost line of this file in the traceback, as messages name it."""
    frames = [entry for entry in info.traceback if str(entry.path) == __file__]
    return f"{__file__}:{frames[-1].lineno + 1} in {frames[-1].frame.code.raw.co_qualname}"


def stack_of(error):
    """The places that a message names, innermost first."""
    message = str(error.args[0])
    return message.split("\n  at ")[1:]


@pytest.mark.parametrize(("family", "traced"), CASES)
def test_the_message_names_the_line(family, traced):
    for mistake in MISTAKES[family]:
        with pytest.raises(Exception) as info:
            if traced:
                weft.jit(lambda x: (mistake(), x)[1])(1.0)  # noqa: B023
            else:
                mistake()
        stack = stack_of(info.value)
        lines = {line for *_, line in mistake.__code__.co_lines()}
        assert stack and any(stack[0].startswith(f"{__file__}:{line} in ") for line in lines), (info.value, lines)
        assert stack.count(innermost(info)) == 1, info.value
        assert not isinstance(info.value, weft.InternalError)
        assert not weft._weft.is_tracing()


def test_a_line_in_a_traced_function():
    def loss(x):
        y = x * 2
        return weft.cond(  # the call
            y.sum() > 0,
            lambda v: (v, v),
            lambda v: v,
            y,
        )

    def outer(x):
        return weft.vmap(weft.grad(loss))(x)

    call = loss.__code__.co_firstlineno + 2
    with pytest.raises(TypeError, match=r"cond: .* a tuple of length 2") as info:
        weft.jit(outer)(X)
    assert type(info.value) is TypeError
    here = test_a_line_in_a_traced_function.__qualname__
    assert stack_of(info.value)[:3] == [
        f"{__file__}:{call} in {here}.<locals>.loss",
        f"{__file__}:{outer.__code__.co_firstlineno + 1} in {here}.<locals>.outer",
        innermost_of_test(info),
    ]


def innermost_of_test(info):
    """The line of the test itself, which called what raised."""
    frame = next(entry for entry in info.traceback if str(entry.path) == __file__)
    return f"{__file__}:{frame.lineno + 1} in {frame.frame.code.raw.co_qualname}"


def vjp_of(f):
    function = weft.custom_vjp(double)
    function.defvjp(lambda x: (f(x), x), lambda x, ct: (ct,))
    return function


OF_THE_USERS = {
    "jit": lambda f: weft.jit(f)(1.0),
    "grad": lambda f: weft.grad(f)(1.0),
    "vmap": lambda f: weft.vmap(f)(X),
    "jit of vmap": lambda f: weft.jit(weft.vmap(f))(X),
    "make_ir": lambda f: weft.make_ir(f)(1.0),
    "cond": lambda f: weft.cond(True, f, f, 1.0),
    "while_loop": lambda f: weft.while_loop(f, f, 1.0),
    "scan": lambda f: weft.scan(lambda c, x: f(c), 1.0, X),
    "custom_vjp": lambda f: weft.grad(vjp_of(f))(1.0),
    "vectorize": lambda f: wnp.vectorize(f)(X),
    "autograph": lambda f: weft.autograph(f)(1.0),
    "tree.map": lambda f: weft.tree.map(f, (1, 2)),
    "tree.map_with_path": lambda f: weft.tree.map_with_path(lambda path, x: f(x), (1, 2)),
    "tree.reduce": lambda f: weft.tree.reduce(lambda a, b: f(a), (1, 2)),
}


@pytest.mark.parametrize("call", OF_THE_USERS)
@pytest.mark.parametrize("kind", [TypeError, ValueError, KeyError, NotImplementedError, RecursionError])
def test_exceptions_of_the_users_functions_stay_as_they_are(call, kind):
    mine = kind("mine", 3)

    def f(x):
        raise mine

    with pytest.raises(kind) as info:
        OF_THE_USERS[call](f)
    assert info.value is mine and mine.args == ("mine", 3)


class Fragile:
    """A container that cannot be taken apart or put together."""


weft.tree.register(Fragile, lambda f: f.missing(), lambda _, children: int("none"))


def test_exceptions_of_the_users_containers_stay_as_they_are():
    with pytest.raises(AttributeError) as info:
        weft.tree.leaves(Fragile())
    assert not stack_of(info.value)
    Fragile.missing = lambda self: ((1,), None)
    with pytest.raises(ValueError, match="invalid literal") as info:
        weft.tree.unflatten(weft.tree.structure(Fragile()), [1])
    assert not stack_of(info.value)


def test_exceptions_can_be_pickled():
    for raises in [
        lambda: wnp.zeros((2, -1)),
        lambda: weft.switch(1.5, [double, double], X),
        lambda: weft.debug.print("{a}", b=1.0),
        lambda: weft.debug.print("{} {}", 1.0),
        lambda: X + wnp.ones(2),
        lambda: weft.parse_ir("fn f("),
    ]:
        with pytest.raises(Exception) as info:
            raises()
        back = pickle.loads(pickle.dumps(info.value))
        assert type(back) is type(info.value) and back.args == info.value.args and stack_of(back)


# What the package raises without the line, and why, by file and exception.
WITHOUT_LINE = {
    "_sharding/meshes.py": {"NotImplementedError"},  # a property that both kinds of meshes have
    # hasattr and getattr ask; the interpreter gives the message of a missing attribute no line either.
    "__init__.py": {"AttributeError"},
    "lax/__init__.py": {"AttributeError"},
    "nn/__init__.py": {"AttributeError"},
    "numpy/__init__.py": {"AttributeError"},
    "scipy/__init__.py": {"AttributeError"},
    "primitives.py": {"AttributeError"},
    # What Python itself raises for a name or module that is not there, without a line.
    "as_jax/arrays.py": {"AttributeError"},
    "as_jax/colocated_python.py": {"AttributeError"},
    "as_jax/key_reuse.py": {"KeyError"},
    "as_jax/distributions.py": {"FileNotFoundError"},
    "as_jax/finder.py": {"ImportError", "ModuleNotFoundError"},
    "as_jax/lax_primitives.py": {"AttributeError"},
    "as_jax/random_keys.py": {"AttributeError"},
    "as_jax/served.py": {"AttributeError", "error"},
    "as_jax/settings.py": {"AttributeError"},
    "as_jax/stages.py": {"AttributeError"},
    "as_jax/wording.py": {"AttributeError"},
    # JAX's own kind, for libraries that catch it.
    "as_jax/check_jaxprs.py": {"JaxprTypeError", "_invalid"},
    # As JAX refuses a class that says too little.
    "as_jax/hi_primitives.py": {"AttributeError"},
    # ... and skips a test that needs more devices.
    "as_jax/test_util.py": {"unittest.SkipTest"},
    # ... and asserts that an array lies as its type says.
    "as_jax/transforms.py": {"AssertionError", "AttributeError"},  # ... and an attribute that is not there
    # ... and that devices on a torus stand where they can.
    "as_jax/tori.py": {"AssertionError", "ArgumentError"},
    # A module's attribute that is gone; the class that a caller names.
    "as_jax/deprecations.py": {"AttributeError", "error_class"},
    # The line is that of the operation: its stack is in the message. An assertion is that of a test.
    "ir/key_reuse.py": {"_twice", "AssertionError"},
    # The exception is the user's own; the traceback is that of the place where the error was noted.
    "as_jax/callbacks.py": {"_failures.as_runtime_error"},
    "as_jax/error_check.py": {"JaxValueError", "JaxValueError(message).with_traceback"},
    # Raised before, by the tracer; made by type_error or value_error, with what the exception knows.
    "control.py": {"suspended", "carry_differs", "knowing", "of_result"},
    "custom.py": {"self._knowing", "knowing", "trees_differ"},
    "_core/facts.py": {"knowing", "of_result"},
    "_core/differentiable.py": {"trees_differ"},
    "_core/tree/prefixes.py": {"_no_prefix"},
    "compiled.py": {"trees_differ"},
    "derivatives.py": {"tangents_differ", "trees_differ"},
    "parallel.py": {"no_prefix"},
    # Caught where the function is traced again with the answer.
    "as_jax/eager_shard_map.py": {"_Asks"},
    # The message has the line that calls itself.
    "_core/tracing.py": {"RecursionError"},
    "autograph/regions.py": {"RecursionError"},
    # The message has the line of the statement (autograph_errors_test.py), which is converted later than it is called.
    "autograph/aliases.py": {"ConversionError", "StructureError", "NotImplementedError"},
    "autograph/branches.py": {"StructureError", "ConversionError", "AssertionError"},  # and `assert` of the user's own
    "autograph/conversion.py": {"ConversionError", "_refused[id(code)][1].with_traceback", "AssertionError"},
    "autograph/loops.py": {"ConversionError", "StructureError", "Grown"},  # Grown is caught there
    "autograph/memory.py": {"StructureError", "NotImplementedError"},
    "autograph/overloads.py": {"ConversionError", "StructureError"},
    "autograph/steps.py": {"ConversionError", "NotImplementedError"},
    "autograph/source.py": {"SourceError"},
    "autograph/state.py": {"error", "ConversionError", "StructureError"},  # an UnboundLocalError
    "autograph/texts.py": {"ConversionError"},
    # What the conversion or a trace has raised, which has the line.
    "scripted.py": {"fallback.error.with_traceback", "self._refused.with_traceback"},
    # The message, of the user's own check, and where it was, are those of the error that it throws.
    "_checks/errors.py": {"JaxRuntimeError"},
    # Caught by the transform that binds the reference.
    "_state/derivatives.py": {"Unbound"},
    "_state/scopes.py": {"Unbound"},
    "jitted.py": {"UsesReferences"},
    # Python's word for an attribute that is not there.
    "config.py": {"AttributeError"},
    "_core/names.py": {"AttributeError"},
    "_state/jitted.py": {"AttributeError"},
    "numpy/_ufunc.py": {"AttributeError"},
    # Makes a type_error.
    "lax/_gather_checks.py": {"_misfit"},
    # Methods of a base class, and functions that a module above sets.
    "_pickled.py": {"NotImplementedError"},
    "as_jax/sparse/matrices.py": {"NotImplementedError"},
    "as_jax/sparse/transform.py": {"NotImplementedError"},  # of which programs compare the whole text
    "as_jax/sparse/util.py": {"NotImplementedError"},
    "_sharding/arrays.py": {"NotImplementedError", "AttributeError"},  # Python's word, as above
    "_sharding/shardings.py": {"NotImplementedError"},
    "autograph/membership.py": {"NotImplementedError"},
    "autograph/operators.py": {"NotImplementedError"},
    # An assertion of the user's, with the user's message.
    "experimental/multihost_utils.py": {"AssertionError"},
}


def test_every_raise_of_the_package_gives_the_line():
    package = pathlib.Path(weft.__file__).parent
    makers = {
        node.name for node in ast.parse((package / "_core" / "errors.py").read_text()).body if hasattr(node, "name")
    }
    without, count = {}, 0
    for path in package.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Raise) and node.exc is not None:
                count += 1
                what = node.exc.body if isinstance(node.exc, ast.IfExp) else node.exc
                what = ast.unparse(what.func if isinstance(what, ast.Call) else what)
                if what not in makers:
                    without.setdefault(path.relative_to(package).as_posix(), set()).add(what)
    assert count > 300
    assert without == WITHOUT_LINE
