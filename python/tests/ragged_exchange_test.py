"""ragged_all_to_all over the batch elements of vmap and the devices of a mesh, against NumPy slice by slice: values,
derivatives, groups, other transforms, and what does not fit."""

import itertools
import os

os.environ["WEFT_NUM_CPU_DEVICES"] = "4"

import numpy as np
import pytest

import weft
import weft.numpy as wnp
from weft import lax

MESH = weft.make_mesh((4,), ("i",))
GROUPS = {"all": None, "pairs": [[0, 2], [3, 1]], "each alone": [[1], [0], [2], [3]], "reversed": [[3, 2, 1, 0]]}


def exchanged(x, out, starts, sizes, targets, come, groups=None):
    """The rows of `out` after everybody's slices have been written, of stacks over the axis."""
    result = out.copy()
    for group in groups or [list(range(len(x)))]:
        each = starts.shape[1] // len(group)
        for (to, receiver), (at, sender) in itertools.product(enumerate(group), repeat=2):
            for k in range(each):
                i = to * each + k
                count = come[receiver, at * each + k]
                rows = x[sender, starts[sender, i] : starts[sender, i] + count]
                result[receiver, targets[sender, i] : targets[sender, i] + count] = rows
    return result


def numbers(rng, n, each, groups, rows, room):
    """(starts, sizes, targets, come) of slices that do not overlap, with gaps between them."""
    groups = groups or [list(range(n))]
    k = each * len(groups[0])
    sizes, starts = rng.integers(0, 4, (n, k)), rng.integers(0, rows - 3, (n, k))
    targets, come = np.zeros((n, k), int), np.zeros((n, k), int)
    for group in groups:
        for to, receiver in enumerate(group):
            place = rng.integers(0, 2)
            for at, sender in enumerate(group):
                for slot in range(each):
                    i = to * each + slot
                    sizes[sender, i] = min(sizes[sender, i], room - place)
                    targets[sender, i] = place
                    come[receiver, at * each + slot] = sizes[sender, i]
                    place = min(place + sizes[sender, i] + rng.integers(0, 2), room)
    return starts, sizes, targets, come


def over_lanes(groups=None):
    return weft.vmap(lambda *a: lax.ragged_all_to_all(*a, axis_name="i", axis_index_groups=groups), axis_name="i")


def over_devices(groups=None):
    def f(*stacks):
        parts = [x[0] for x in stacks]
        return lax.ragged_all_to_all(*parts, axis_name=("i",), axis_index_groups=groups)[None]

    return weft.jit(weft.shard_map(f, mesh=MESH, in_specs=weft.P("i"), out_specs=weft.P("i")))


@pytest.mark.parametrize("over", [over_lanes, over_devices])
@pytest.mark.parametrize("groups", GROUPS.values(), ids=GROUPS)
def test_values_and_derivatives(over, groups):
    rng = np.random.default_rng(len(str(groups)))
    for each, tail in itertools.product((1, 2, 3), ((), (2,), (3, 2))):
        said = numbers(rng, 4, each, groups, 9, 14)
        x, out = (rng.normal(size=(4, rows, *tail)).astype("float32") for rows in (9, 14))
        f = over(groups)
        np.testing.assert_array_equal(f(x, out, *said), exchanged(x, out, *said, groups))
        # It is linear in operand and output: <ct, f(d)> = <f^T(ct), d>.
        value, pull = weft.vjp(lambda x, out: f(x, out, *said), x, out)  # noqa: B023
        ct, *d = (rng.normal(size=v.shape).astype("float32") for v in (value, x, out))
        moved = exchanged(*d, *said, groups)
        gradients = pull(ct)
        assert [g.dtype for g in gradients] == ["float32"] * 2
        np.testing.assert_allclose(np.vdot(ct, moved), sum(map(np.vdot, gradients, d)), rtol=1e-3, atol=1e-4)
        _, tangent = weft.jvp(lambda x, out: f(x, out, *said), (x, out), tuple(d))  # noqa: B023
        np.testing.assert_array_equal(tangent, moved)


def test_the_gradient_of_output_is_zero_where_rows_come():
    said = [np.array(v) for v in ([[0, 0], [1, 0]], [[2, 0], [1, 0]], [[1, 0], [0, 0]], [[2, 1], [0, 0]])]
    ones = np.ones((2, 4), "float32")
    loss = lambda x, out: over_lanes()(x, out, *said).sum()
    by_x, by_out = weft.grad(loss, (0, 1))(ones, ones)
    np.testing.assert_array_equal(by_x, [[1, 1, 0, 0], [0, 1, 0, 0]])
    np.testing.assert_array_equal(by_out, [[0, 0, 0, 1], [1, 1, 1, 1]])


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint32", "bfloat16", "float16", "float64", "complex64"])
@pytest.mark.parametrize("of_numbers", ["int8", "uint8", "int32", "int64"])
def test_dtypes(dtype, of_numbers):
    rng = np.random.default_rng(0)
    said = [v.astype(of_numbers) for v in numbers(rng, 4, 2, None, 9, 14)]
    x, out = (wnp.asarray(rng.integers(0, 2, (4, rows))).astype(dtype) for rows in (9, 14))
    result = over_lanes()(x, out, *said)
    assert result.dtype == dtype
    np.testing.assert_array_equal(result, exchanged(np.asarray(x), np.asarray(out), *(v.astype(int) for v in said)))


def test_inside_of_other_transforms():
    rng = np.random.default_rng(3)
    batch = [numbers(rng, 4, 2, None, 9, 14) for _ in range(3)]
    said = [np.stack(v) for v in zip(*batch)]
    x, out = (rng.normal(size=(3, 4, rows)).astype("float32") for rows in (9, 14))
    expected = np.stack([exchanged(x[b], out[b], *batch[b]) for b in range(3)])
    for over in (over_lanes, over_devices):
        np.testing.assert_array_equal(weft.vmap(over())(x, out, *said), expected)
        # Numbers that all share.
        shared = weft.vmap(over(), in_axes=(0, 0, *[None] * 4))(x, out, *batch[0])
        np.testing.assert_array_equal(shared, [exchanged(x[b], out[b], *batch[0]) for b in range(3)])
        step = lambda carry, _: (over()(x[0], carry, *batch[0]), None)  # noqa: B023
        np.testing.assert_array_equal(lax.scan(step, out[0], None, length=2)[0], expected[0])


def test_two_axes_at_once():
    rng = np.random.default_rng(4)
    said = numbers(rng, 4, 1, None, 9, 14)
    x, out = (rng.normal(size=(4, rows)).astype("float32") for rows in (9, 14))
    mesh = weft.make_mesh((2, 2), ("a", "b"))
    spec = weft.P(("a", "b"))

    def f(*stacks):
        return lax.ragged_all_to_all(*(v[0] for v in stacks), axis_name=("a", "b"))[None]

    mapped = weft.shard_map(f, mesh=mesh, in_specs=spec, out_specs=spec)
    np.testing.assert_array_equal(weft.jit(mapped)(x, out, *said), exchanged(x, out, *said))


def test_what_comes_counts():
    """Of slices that overlap the last one, rows that operand does not have not at all, and of sizes that disagree the
    receiver's."""
    f = weft.vmap(lambda *a: lax.ragged_all_to_all(*a, axis_name="i"), axis_name="i")
    x, out = np.array([[1, 2, 3]]), np.array([[7, 8, 9, 10]])
    two = lambda *v: np.array([v])
    np.testing.assert_array_equal(f(x, out, two(0, 2), two(3, 1), two(0, 1), two(3, 1)), [[1, 3, 3, 10]])
    np.testing.assert_array_equal(f(x, out, two(2), two(2), two(1), two(2)), [[7, 3, 9, 10]])
    np.testing.assert_array_equal(f(x, out, two(-1), two(2), two(-1), two(2)), [[1, 8, 9, 10]])
    np.testing.assert_array_equal(f(x, out, two(0), two(3), two(2), two(1)), [[7, 8, 1, 10]])
    np.testing.assert_array_equal(f(x, out, two(0), two(3), two(2), two(3)), [[7, 8, 1, 2]])


K = np.array([0, 1])
X = np.zeros(3, "float32")
REFUSED = {
    "float": ((X, X, K * 1.0, K, K, K), ValueError, "input_offsets must be of an integer dtype, got float"),
    "bool": ((X, X, K, K > 0, K, K), ValueError, "send_sizes must be of an integer dtype, got bool"),
    "two dimensions": ((X, X, K, K, K[:, None], K), ValueError, r"output_offsets must have one dimension.*\(2, 1\)"),
    "none": ((X, X, K, K, K, K[:0]), ValueError, r"recv_sizes must have one dimension, of size 1 or more.*\(0,\)"),
    "a number": ((X, X, 1, K, K, K), ValueError, "input_offsets must have one dimension"),
    "lengths": ((X, X, K, K, K, K[[0, 1, 1]]), ValueError, "as many offsets as sizes, got 2 input_offsets"),
    "no multiple": ((X, X, *[K[[0, 1, 1]]] * 4), ValueError, "must be a multiple of 2.*got 3"),
    "dtypes": ((X, K, K, K, K, K), TypeError, "one dtype, got float32 and int"),
    "rows": ((X, X[:, None], K, K, K, K), ValueError, r"rows of one shape, got shapes \(3,\) and \(3, 1\)"),
    "no rows": ((X[0], X[0], K, K, K, K), ValueError, "rows of one shape"),
}


@pytest.mark.parametrize("arguments, kind, message", REFUSED.values(), ids=REFUSED)
def test_what_does_not_fit(arguments, kind, message):
    f = lambda _: lax.ragged_all_to_all(*arguments, axis_name="i")
    with pytest.raises(kind, match=message):
        weft.vmap(f, axis_name="i")(np.zeros(2))


def test_axes_and_groups_that_do_not_fit():
    f = lambda groups, axis="i": (
        lambda _: lax.ragged_all_to_all(X, X, K, K, K, K, axis_name=axis, axis_index_groups=groups)
    )
    for given, kind, message in (
        (f(None, "k"), NameError, "nothing binds the axis 'k'"),
        (f([[0], [0]]), ValueError, "each of the 2 places"),
        (f([["a"]]), TypeError, "lists of integers"),
    ):
        with pytest.raises(kind, match=message):
            weft.vmap(given, axis_name="i")(np.zeros(2))
    with pytest.raises(ValueError, match="groups of one size"):
        weft.vmap(f([[0, 1], [2]]), axis_name="i")(np.zeros(3))
    symbolic = weft.ShapeDtype(("n",), "float32")
    with pytest.raises(NotImplementedError, match="whose size is not known"):
        weft.make_ir(weft.vmap(f(None), axis_name="i"))(symbolic)


def test_the_errors_of_jax():
    """What JAX refuses when it traces, and Weft by the same kinds of exceptions: its CPU runs none of it."""
    jax = pytest.importorskip("jax")
    for name in ("float", "bool", "two dimensions", "none", "a number"):
        arguments, kind, _ = REFUSED[name]
        with pytest.raises(kind):
            jax.make_jaxpr(
                lambda: jax.lax.ragged_all_to_all(*map(jax.numpy.asarray, arguments), axis_name="i"),  # noqa: B023
                axis_env=[("i", 2)],
            )()
