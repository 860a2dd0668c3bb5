"""Programs as blocks with arguments: what they compute, back to regions, dominance, and graphs that are wrong."""

import numpy as np
import pytest

import weft
import weft.numpy as wnp
from weft.ir.dominance import dominates, immediate_dominators


def _nested(x):
    """Three loops, a branch in the innermost."""

    def inner(c):
        return weft.fori_loop(0, 2, lambda i, v: weft.cond(v > 5, lambda u: u - 3, lambda u: u + x, v), c)

    def middle(c):
        return weft.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, inner(s[1])), (0, c))[1]

    return weft.fori_loop(0, 2, lambda i, c: middle(c), x)


def _nested_in_numpy(x):
    c = x
    for _ in range(2 * 3 * 2):
        c = c - 3 if c > 5 else c + x
    return c


def _branch_in_condition(x):
    def again(c):
        return weft.cond(c > 10, lambda v: v < 12, lambda v: v < 50, c)

    return weft.while_loop(again, lambda c: c * 2 + 1, x)


def _loop_in_condition(x):
    def again(c):
        return weft.fori_loop(0, 3, lambda i, v: v + i, c) < 20

    return weft.while_loop(again, lambda c: c * 2 + 1, x)


def _switch(x):
    return weft.switch(x.astype("int32"), [lambda v: v + 1, lambda v: v * 0 + 20, lambda v: 3 - v, lambda v: v], x)


def _nested_branches(x):
    return weft.cond(
        x > 0, lambda: weft.cond(x > 2, lambda: x * 3, lambda: x * 5), lambda: weft.cond(x < -2, lambda: -x, lambda: x)
    )


_PROGRAMS = {
    "straight": (lambda x: wnp.sin(x) * 2 + x, [0.5]),
    "two_results_one_number": (lambda x: (x, 3.0), [0.5]),
    "cond": (lambda x: weft.cond(x > 0, wnp.sin, wnp.cos, x), [1.0, -1.0]),
    "cond_of_a_number": (lambda x: weft.cond(True, wnp.sin, wnp.cos, x), [1.0]),
    "nested_branches": (_nested_branches, [3.0, 1.0, -1.0, -3.0]),
    "switch": (_switch, [-3.0, 0.0, 1.0, 2.0, 3.0, 9.0]),
    "while": (lambda x: weft.while_loop(lambda c: c < 10, lambda c: c * 2 + x, x), [1.0, 20.0]),
    "branch_in_condition": (_branch_in_condition, [0.0, 11.0, 60.0]),
    "loop_in_condition": (_loop_in_condition, [0.0, 30.0]),
    "scan": (lambda x: weft.scan(lambda c, y: (c + y, c * y), x, wnp.arange(5.0)), [2.0]),
    "scan_backwards": (lambda x: weft.scan(lambda c, y: (c + y, c * y), x, wnp.arange(5.0), reverse=True), [2.0]),
    "gradient_of_scan": (weft.grad(lambda x: weft.fori_loop(0, 4, lambda i, c: wnp.sin(c) * x, x)), [0.7]),
    "scan_of_nothing": (lambda x: weft.scan(lambda c, y: (c + y, (c * y, y)), x, wnp.arange(0.0)), [2.0]),
    "scan_of_nothing_inside": (
        lambda x: weft.fori_loop(0, 3, lambda i, c: weft.scan(lambda c, y: (c + y, c), c, x[None][:0])[0] * 2, x),
        [2.0],
    ),
    "nested": (_nested, [1.0, 2.5]),
}


@pytest.mark.parametrize("name", _PROGRAMS)
def test_blocks_and_back(name):
    f, values = _PROGRAMS[name]
    for value in values:
        x = np.float32(value)
        ir = weft.make_ir(f)(x)
        cfg = weft.ir.to_cfg(ir)
        back = cfg.to_ir()
        assert back.in_types == ir.in_types and back.out_types == ir.out_types
        for found, again, right in zip(cfg.run(x), weft.tree.leaves(back(x)), weft.tree.leaves(ir(x)), strict=True):
            np.testing.assert_allclose(found, right, rtol=1e-6)
            np.testing.assert_allclose(again, right, rtol=1e-6)


@pytest.mark.parametrize("x", [0.5, 1.0, 2.5])
def test_three_nested_loops(x):
    x = np.float32(x)
    cfg = weft.ir.to_cfg(weft.make_ir(_nested)(x))
    heads = [b for b in cfg.blocks if b.name.startswith("loop")]
    assert len(heads) == 3
    np.testing.assert_allclose(cfg.run(x)[0], _nested_in_numpy(x), rtol=1e-6)
    back = cfg.to_ir()
    assert [op.depth for op in back.walk() if op.name == "while"] == [0, 1, 2]
    np.testing.assert_allclose(back(x), _nested_in_numpy(x), rtol=1e-6)
    # What came back is a program like any: it goes through blocks once more, and is differentiated.
    assert weft.ir.to_cfg(back).to_ir() == back
    step = 1e-3
    slope = (_nested_in_numpy(np.float64(x) + step) - _nested_in_numpy(np.float64(x) - step)) / (2 * step)
    np.testing.assert_allclose(weft.grad(back)(x), slope, rtol=1e-4)


def test_effects_stay_in_their_branch(capfd):
    def f(x):
        weft.cond(x > 0, lambda: weft.debug.print("positive"), lambda: weft.debug.print("negative"))
        return x

    back = weft.ir.to_cfg(weft.make_ir(f)(1.0)).to_ir()
    back(-1.0)
    weft.effects_barrier()
    assert "negative" in "".join(capfd.readouterr()) and back.num_eqns > 1


def test_what_control_leads_past_is_no_value_there():
    """The three kinds of a use that its definition does not dominate."""
    sin = weft.make_ir(wnp.sin)(1.0).walk()[0]
    positive = weft.make_ir(lambda x: x > 0)(1.0).walk()[0]

    def diamond():
        cfg = weft.ir.Cfg("f32[]")
        (x,) = cfg.entry.arguments
        yes, no, join = (cfg.add_block(n) for n in ("yes", "no", "join"))
        (p,) = cfg.emit(cfg.entry, positive, x, positive.operands[1])
        cfg.entry.branch(p, (yes,), (no,))
        yes.jump(join)
        no.jump(join)
        join.returns = [x]
        return cfg, x, yes, no, join

    cfg, x, yes, _, join = diamond()
    cfg.verify()
    (y,) = cfg.emit(yes, sin, x)
    join.returns = [y]  # of one side, used where both meet
    with pytest.raises(
        ValueError, match="join_3 uses sin_2, which yes_1 defines, and join_3 can be reached without it"
    ):
        cfg.verify()
    with pytest.raises(ValueError, match="dominates its uses"):
        cfg.to_ir()

    cfg, x, yes, no, _ = diamond()
    (y,) = cfg.emit(yes, sin, x)
    cfg.emit(no, sin, y)  # of one side, used on the other
    with pytest.raises(ValueError, match="no_2 uses sin_2, which yes_1 defines"):
        cfg.verify()

    cfg, x, yes, *_ = diamond()
    (y,) = cfg.emit(yes, sin, x)
    cfg.emit(yes, sin, y)
    yes.instructions.reverse()
    with pytest.raises(ValueError, match="yes_1 uses sin_2 before it is defined there"):
        cfg.verify()


def test_a_value_of_a_body_after_its_loop():
    ir = weft.make_ir(lambda x: weft.while_loop(lambda c: c < 9, lambda c: c * 2, x))(1.0)
    cfg = weft.ir.to_cfg(ir)
    body, leave = cfg.blocks[2], cfg.blocks[3]
    leave.returns = [body.instructions[0].results[0]]
    with pytest.raises(
        ValueError, match="exit_3 uses mul_3, which body_2 defines, and exit_3 can be reached without it"
    ):
        cfg.verify()


def test_graphs_that_are_wrong():
    sin = weft.make_ir(wnp.sin)(1.0).walk()[0]
    cfg = weft.ir.Cfg("f32[]")
    with pytest.raises(ValueError, match="entry does not end in one of jump, branch and return"):
        cfg.verify()
    loop = cfg.add_block("loop", "i32[]")
    cfg.entry.jump(loop, *cfg.entry.arguments)
    loop.returns = []
    with pytest.raises(ValueError, match=r"entry gives \(f32\[\]\) to loop_1, which takes \(i32\[\]\)"):
        cfg.verify()
    cfg.entry.jump(loop)
    with pytest.raises(ValueError, match=r"entry gives \(\) to loop_1"):
        cfg.verify()
    add = weft.make_ir(lambda x: x + 1.0)(1.0).walk()[0]
    for types, count in ((("f32[]",), 3), (("f32[]",), 1), (("f32[3]",), 2), (("i32[]",), 2), (("f32[]", "f64[]"), 2)):
        cfg = weft.ir.Cfg(*types)
        read = [*cfg.entry.arguments, *cfg.entry.arguments, *cfg.entry.arguments][:count]
        cfg.entry.returns = cfg.emit(cfg.entry, add, *read)
        with pytest.raises(
            ValueError, match=r"in entry, add is given \(.*\), and the operation takes \(f32\[\], f32\[\]\)"
        ):
            cfg.verify()
    with pytest.raises(TypeError, match=r"expected a weft.ir.Operation, got 3"):
        cfg.emit(cfg.entry, 3)
    cfg = weft.ir.Cfg("f32[]")
    cfg.entry.returns = cfg.emit(cfg.entry, add, *cfg.entry.arguments * 2)
    cfg.verify()
    assert cfg.run(2.0) == [4.0]
    cfg = weft.ir.Cfg("f32[]")
    other = weft.ir.Cfg("f32[]")
    cfg.entry.jump(other.entry, *cfg.entry.arguments)
    with pytest.raises(ValueError, match="which is no block of the graph"):
        cfg.verify()
    cfg.entry.jump(cfg.entry, *cfg.entry.arguments)
    with pytest.raises(ValueError, match="where the program begins"):
        cfg.verify()
    cfg.entry.branch(cfg.entry.arguments[0], (cfg.entry,), (cfg.entry,))
    with pytest.raises(ValueError, match=r"entry branches by a f32\[\]; expected a bool\[\]"):
        cfg.verify()
    cfg = weft.ir.Cfg("f32[]")
    cfg.emit(cfg.entry, sin, other.entry.arguments[0])
    cfg.entry.returns = []
    with pytest.raises(ValueError, match="which no block defines"):
        cfg.verify()


def test_loops_that_are_no_regions():
    positive = weft.make_ir(lambda x: x > 0)(1.0).walk()[0]

    def start(*names):
        cfg = weft.ir.Cfg("f32[]")
        (x,) = cfg.entry.arguments
        (p,) = cfg.emit(cfg.entry, positive, x, positive.operands[1])
        return cfg, x, p, [cfg.add_block(n) for n in names]

    cfg, x, p, (a, b) = start("a", "b")  # entered in two places
    cfg.entry.branch(p, (a,), (b,))
    leave = cfg.add_block("leave")
    a.jump(b)
    b.branch(p, (a,), (leave,))
    leave.returns = [x]
    with pytest.raises(NotImplementedError, match="is entered in several places"):
        cfg.to_ir()

    cfg, x, p, (a, b, leave) = start("a", "b", "leave")  # left in two
    cfg.entry.jump(a)
    a.branch(p, (b,), (leave,))
    b.branch(p, (a,), (leave,))
    leave.returns = [x]
    with pytest.raises(NotImplementedError, match="the loop of a_1 is left in several places"):
        cfg.to_ir()

    cfg, x, p, (a,) = start("a")
    cfg.entry.jump(a)
    a.jump(a)
    with pytest.raises(NotImplementedError, match="the loop of a_1 is never left"):
        cfg.to_ir()


@pytest.mark.parametrize("seed", range(20))
def test_dominators_of_random_graphs(seed):
    """By their definition: without a dominator a node is not reached."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 12))
    edges = {i: [int(j) for j in rng.integers(0, n, rng.integers(0, 3))] for i in range(n)}

    def reached(without):
        seen, new = set(), [0]
        while new:
            i = new.pop()
            if i not in seen and i != without:
                seen.add(i)
                new += edges[i]
        return seen

    above = immediate_dominators(0, edges.__getitem__)
    everything = reached(None)
    assert set(above) == everything
    for first in everything:
        rest = reached(first) if first else set()
        for second in everything:
            assert dominates(above, first, second) == (second not in rest)


@pytest.mark.parametrize("levels", [3, 12])
def test_blocks_grow_with_the_program(levels):
    def f(x):
        for i in range(levels):
            x = weft.cond(x > i, lambda v: v + 1, lambda v: v * 2, x)
        return x

    cfg = weft.ir.to_cfg(weft.make_ir(f)(1.0))
    assert len(cfg.blocks) == 1 + 3 * levels
    assert cfg.to_ir().num_eqns == weft.make_ir(f)(1.0).num_eqns


def test_bad_input():
    with pytest.raises(TypeError, match=r"expected a weft.IR"):
        weft.ir.to_cfg(wnp.sin)
    with pytest.raises(TypeError, match="takes 1 values, got 2"):
        weft.ir.to_cfg(weft.make_ir(lambda x: x)(1.0)).run(1.0, 2.0)
    reverse = weft.grad(lambda x: weft.while_loop(lambda c: c < 9, lambda c: c * c, x))
    with pytest.raises(NotImplementedError, match="has no form as blocks"):
        weft.ir.to_cfg(weft.make_ir(reverse)(2.0))
