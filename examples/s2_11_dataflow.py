"""S2-11, S2-12, S2-13: a program as a dataflow graph of Enter, Switch, Merge, Exit and NextIteration, and what runs it.

Frames have names and nest, iterations of one loop overlap, and a Merge with two live inputs is refused.
"""

import weft
import weft.numpy as wnp


def model(x):
    """Two nested loops; the counter of the inner one does not wait for the chain of sines beside it."""

    def inner(y):
        def step(state):
            i, value = state
            for _ in range(5):
                value = wnp.sin(value)
            return i + 1, weft.cond(value > 0.5, lambda v: v * x, lambda v: v + x, value)

        return weft.while_loop(lambda state: state[0] < 4, step, (0, y))[1]

    return weft.fori_loop(0, 2, lambda i, y: inner(y), x)


def main():
    ir = weft.make_ir(model)(0.7)
    graph = weft.ir.to_dataflow(ir)
    print(graph)
    kinds = {node.kind for node in graph.nodes}
    assert {"Enter", "Switch", "Merge", "Exit", "NextIteration"} <= kinds

    # The same numbers, however many iterations may be under way, and in whatever order what is ready fires.
    for parallel, seed in [(1, None), (4, None), (4, 1), (4, 2)]:
        executor = weft.ir.Executor(graph, parallel_iterations=parallel, seed=seed)
        (result,) = executor.run(0.7)
        assert abs(float(result) - float(ir(0.7))) < 1e-6
        assert executor.most_in_flight <= parallel
        print(
            f"at most {parallel} iterations: {len(executor.fired)} firings, {executor.most_in_flight} under way at once"
        )
        if parallel > 1 and seed is None:
            assert executor.most_in_flight >= 2

    # Each execution of a frame, with what is in it by name.
    for frame in executor.frames:
        print(f"{frame.name or 'the program'}: {len(frame.iterations)} iterations, {len(frame.iterations[0])} values")
    assert [frame.frame.name for frame in executor.frames].count("while_0/while_1") == 2

    # A race: both inputs of the Merge may be there.
    racing = weft.ir.Dataflow()
    x, y = (racing.add("parameter", name=name) for name in "xy")
    racing.results = [(racing.add("Merge", (x, 0), (y, 0), name="either"), 0)]
    try:
        racing.verify()
    except ValueError as error:
        print(error)
    else:
        raise AssertionError("the race was not noticed")


if __name__ == "__main__":
    main()
