"""Programs as dataflow graphs: what they compute, the firing rules, frames, and graphs that are wrong."""

import numpy as np
import pytest

import weft
import weft.numpy as wnp


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


def _collatz(n):
    return weft.while_loop(
        lambda s: s[0] != 1,
        lambda s: (weft.cond(s[0] % 2 == 0, lambda v: v // 2, lambda v: 3 * v + 1, s[0]), s[1] + 1),
        (n, 0),
    )[1]


def _loop_in_branch(x):
    return weft.cond(x > 0, lambda v: weft.fori_loop(0, 3, lambda i, c: c * 2, v), lambda v: wnp.float32(7), x)


def _switch(x):
    return weft.switch(x.astype("int32"), [lambda v: v + 1, lambda v: v * 0 + 20, lambda v: 3 - v, lambda v: v], x)


def _branches_of_numbers(x):
    return weft.cond(x > 1, lambda: 1.0, lambda: 2.0), weft.cond(
        x > 1, lambda: wnp.arange(3), lambda: wnp.arange(3) + 1
    )


def _constants_in_loop(x):
    return weft.while_loop(lambda s: s[0] < 4, lambda s: (s[0] + 1, wnp.arange(3.0) + s[1]), (0, wnp.ones(3) * x))[1]


_PROGRAMS = {
    "straight": (lambda x: wnp.sin(x) * 2 + x, [0.5]),
    "two_results_one_number": (lambda x: (x, 3.0), [0.5]),
    "cond": (lambda x: weft.cond(x > 0, wnp.sin, wnp.cos, x), [1.0, -1.0]),
    "cond_of_a_number": (lambda x: weft.cond(True, wnp.sin, wnp.cos, x), [1.0]),
    "switch": (_switch, [-3.0, 0.0, 1.0, 2.0, 3.0, 9.0]),
    "branches_of_numbers": (_branches_of_numbers, [0.0, 2.0]),
    "while": (lambda x: weft.while_loop(lambda c: c < 10, lambda c: c * 2 + x, x), [1.0, 20.0]),
    "scan": (lambda x: weft.scan(lambda c, y: (c + y, c * y), x, wnp.arange(5.0)), [2.0]),
    "scan_backwards": (lambda x: weft.scan(lambda c, y: (c + y, c * y), x, wnp.arange(5.0), reverse=True), [2.0]),
    "loop_in_branch": (_loop_in_branch, [2.0, -2.0]),
    "constants_in_loop": (_constants_in_loop, [2.0]),
    "calls": (lambda x: weft.jit(lambda y: weft.jit(wnp.tanh)(y) + 1)(x), [0.3]),
    "gradient_of_scan": (weft.grad(lambda x: weft.fori_loop(0, 4, lambda i, c: wnp.sin(c) * x, x)), [0.7]),
    "scan_of_nothing": (lambda x: weft.scan(lambda c, y: (c + y, (c * y, y)), x, wnp.arange(0.0)), [2.0]),
    "scan_of_nothing_inside": (
        lambda x: weft.fori_loop(0, 3, lambda i, c: weft.scan(lambda c, y: (c + y, c), c, x[None][:0])[0] * 2, x),
        [2.0],
    ),
    "nested": (_nested, [1.0, 2.5]),
}


@pytest.mark.parametrize("parallel", [1, 2, 10])
@pytest.mark.parametrize("seed", [None, 0, 1])
@pytest.mark.parametrize("name", _PROGRAMS)
def test_gives_what_the_program_gives(name, seed, parallel):
    f, values = _PROGRAMS[name]
    for value in values:
        x = np.float32(value)
        ir = weft.make_ir(f)(x)
        run = weft.ir.Executor(weft.ir.to_dataflow(ir), parallel_iterations=parallel, seed=seed)
        expected = weft.tree.leaves(ir(x))
        for found, right in zip(run.run(x), expected, strict=True):
            np.testing.assert_allclose(found, right, rtol=1e-6)


@pytest.mark.parametrize("x", [0.5, 1.0, 2.5])
def test_nested_loops_as_python_has_them(x):
    x = np.float32(x)
    (found,) = weft.ir.Executor(weft.ir.to_dataflow(weft.make_ir(_nested)(x)), seed=3).run(x)
    np.testing.assert_allclose(found, _nested_in_numpy(x), rtol=1e-6)


def test_collatz():
    graph = weft.ir.to_dataflow(weft.make_ir(_collatz)(7))
    for n, steps in [(1, 0), (6, 8), (7, 16), (27, 111)]:
        assert weft.ir.Executor(graph).run(n) == [steps]


def test_only_the_branch_that_is_taken_fires():
    graph = weft.ir.to_dataflow(weft.make_ir(_PROGRAMS["cond"][0])(1.0))
    run = weft.ir.Executor(graph)
    for x, fired, other in [(1.0, "sin", "cos"), (-1.0, "cos", "sin")]:
        run.run(x)
        names = [name.split("_")[0] for name, _, _ in run.fired if name != graph.results[0][0].name]
        assert fired in names and other not in names


def test_frames_have_names_and_nest():
    graph = weft.ir.to_dataflow(weft.make_ir(_nested)(1.0))
    assert [f.name for f in graph.frames] == ["", "while_0", "while_0/while_1", "while_0/while_1/while_2"]
    run = weft.ir.Executor(graph)
    run.run(1.0)
    by_frame = {}
    for frame in run.frames:
        by_frame.setdefault(frame.frame.name, []).append(frame)
    # Entered once; twice, once in each iteration; 2 * 3 times. The iteration that only finds that it is over counts.
    assert [len(frames) for frames in by_frame.values()] == [1, 1, 2, 6]
    assert [{len(f.iterations) for f in frames} for frames in by_frame.values()] == [{1}, {3}, {4}, {3}]
    assert by_frame["while_0/while_1/while_2"][-1].name == "while_0@0/while_1@1/while_2@2"
    assert len({f.name for f in run.frames}) == len(run.frames)
    inner = by_frame["while_0/while_1/while_2"][0]
    assert inner.parent is by_frame["while_0/while_1"][0] and inner.parent_iteration == 0


def test_values_by_name():
    graph = weft.ir.to_dataflow(weft.make_ir(lambda x: weft.while_loop(lambda c: c < 10, lambda c: c * 2, x))(1.0))
    run = weft.ir.Executor(graph)
    run.run(3.0)
    merge = next(n.name for n in graph.nodes if n.kind == "Merge")
    assert [float(values[merge]) for values in run.frames[1].iterations] == [3.0, 6.0, 12.0]


def _counter_and_chain(x):
    """The counter needs nothing of the chain: it may run ahead."""

    def chain(c):
        for _ in range(20):
            c = wnp.sin(c)
        return c

    return weft.while_loop(lambda s: s[0] < 8, lambda s: (s[0] + 1, chain(s[1])), (0, x))[1]


@pytest.mark.parametrize(("parallel", "expected"), [(1, 1), (2, 2), (3, 3), (100, 8)])
def test_iterations_in_flight(parallel, expected):
    run = weft.ir.Executor(weft.ir.to_dataflow(weft.make_ir(_counter_and_chain)(0.5)), parallel_iterations=parallel)
    (found,) = run.run(np.float32(0.5))
    assert run.most_in_flight == expected
    np.testing.assert_allclose(found, weft.make_ir(_counter_and_chain)(0.5)(np.float32(0.5)), rtol=1e-6)
    started = [i for name, frame, i in run.fired if frame and name.startswith("lt")]
    assert started == sorted(started) == list(range(9))


def test_a_loop_is_linear_in_its_trips():
    """No iteration costs more than those before it."""
    f = lambda n: weft.while_loop(lambda s: s[0] < n, lambda s: (s[0] + 1, s[1] + s[0]), (0, 0))[1]
    run = weft.ir.Executor(weft.ir.to_dataflow(weft.make_ir(f)(1)))
    fired = []
    for n in (100, 1000):
        assert run.run(n) == [n * (n - 1) // 2]
        fired.append(len(run.fired))
    assert fired[1] < 11 * fired[0]


def _graph_of_two():
    graph = weft.ir.Dataflow()
    x, y = (graph.add("parameter", name=name) for name in "xy")
    return graph, x, y


def test_merge_of_two_live_inputs_is_flagged():
    graph, x, y = _graph_of_two()
    graph.results = [(graph.add("Merge", (x, 0), (y, 0), name="m"), 0)]
    with pytest.raises(ValueError, match="m_2 is a Merge of x and y, which may both be there"):
        graph.verify()
    with pytest.raises(ValueError, match="m_2 is a Merge"):
        weft.ir.Executor(graph)


@pytest.mark.parametrize(
    ("first", "second", "right"),
    [
        (("p", 0), ("p", 1), True),
        (("p", 1), ("p", 1), False),
        (("p", 0), ("q", 1), False),  # of different predicates
        (("p", 0), (None, 0), False),
    ],
)
def test_merge_of_sides_of_switches(first, second, right):
    graph = weft.ir.Dataflow()
    x, p, q = (graph.add("parameter", name=name) for name in "xpq")
    of = {"p": graph.add("Switch", (x, 0), (p, 0)), "q": graph.add("Switch", (x, 0), (q, 0)), None: x}
    graph.results = [(graph.add("Merge", *((of[name], port) for name, port in (first, second)), name="m"), 0)]
    if right:
        graph.verify()
    else:
        with pytest.raises(ValueError, match="may both be there"):
            graph.verify()


def test_a_race_at_run_time():
    """Were it not for verify(): the second value is noticed when it comes."""
    graph, x, y = _graph_of_two()
    graph.results = [(graph.add("Merge", (x, 0), (y, 0), name="m"), 0)]
    graph.verify = lambda: None
    with pytest.raises(RuntimeError, match="two values came to the Merge m_2 in iteration 0"):
        weft.ir.Executor(graph).run(1.0, 2.0)


def test_graphs_that_are_wrong():
    graph, x, _ = _graph_of_two()
    inside = graph.add_frame("loop", graph.frames[0])
    graph.add("Exit", (x, 0), frame=inside)
    with pytest.raises(ValueError, match="values go from one frame to another by Enter and Exit"):
        graph.verify()

    graph, x, _ = _graph_of_two()
    graph.connect((x, 0), graph.add("Merge", name="m"))
    with pytest.raises(ValueError, match="m_2 is a Merge of 1 inputs, two are needed"):
        graph.verify()

    graph, x, y = _graph_of_two()
    op = weft.make_ir(lambda a, b: a + b)(1.0, 1.0).walk()[0]
    first = graph.add("operation", (x, 0), operation=op, name="a")
    second = graph.add("operation", (first, 0), (y, 0), operation=op, name="b")
    graph.connect((second, 0), first)
    with pytest.raises(ValueError, match=r"a_2 and b_3 wait for each other|b_3 and a_2 wait for each other"):
        graph.verify()

    graph, x, _ = _graph_of_two()
    graph.results = [(graph.add("operation", (x, 0), operation=op, name="a"), 0)]
    with pytest.raises(ValueError, match=r"Dataflow.verify: a_2 reads 1 values, add takes 2"):
        graph.verify()


def test_bad_input():
    graph, x, _ = _graph_of_two()
    with pytest.raises(ValueError, match="there is no node 'Join'; there are parameter"):
        graph.add("Join")
    with pytest.raises(ValueError, match="Switch takes 2 inputs, got 1"):
        graph.add("Switch", (x, 0))
    with pytest.raises(TypeError, match=r"expected a weft.IR"):
        weft.ir.to_dataflow(lambda x: x)
    with pytest.raises(TypeError, match=r"expected a weft.ir.Dataflow"):
        weft.ir.Executor("graph")
    for parallel in (0, True, 1.5):
        with pytest.raises(ValueError, match="parallel_iterations must be an integer of 1 or more"):
            weft.ir.Executor(graph, parallel_iterations=parallel)
    with pytest.raises(TypeError, match="takes 2 values, got 1"):
        weft.ir.Executor(graph).run(1.0)


@pytest.mark.parametrize(
    ("f", "name"),
    [
        (lambda x: (weft.debug.print("{}", x), x)[1], "debug_print"),
        (weft.grad(lambda x: weft.while_loop(lambda c: c < 9, lambda c: c * c, x)), "while|tape_scan"),
    ],
)
def test_what_has_no_dataflow_form(f, name):
    with pytest.raises(NotImplementedError, match=rf"'({name})' has no dataflow form"):
        weft.ir.to_dataflow(weft.make_ir(f)(2.0))
