"""Programs of several processes under mpirun: the numbers and bits of one process, arrays of which each process has a
part, and the end of a job in which one process fails."""

import functools
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import textwrap
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import several_processes

MPIRUN = shutil.which("mpirun")
pytestmark = pytest.mark.skipif(MPIRUN is None, reason="mpirun is missing (Debian's package openmpi-bin)")

DEADLINE = 3.0
BEGIN = """
    import os, signal, sys, time
    import numpy as np
    import weft
    import weft.numpy as wnp
    from weft import P, lax
    from weft.experimental import multihost_utils

    weft.distributed.initialize()
    RANK, SIZE = weft.process_index(), weft.process_count()
    mesh = weft.make_mesh((weft.device_count(),), ("x",))
    on = lambda *spec: weft.NamedSharding(mesh, P(*spec))
"""


def job(program, processes=2, devices=2, deadline=DEADLINE, timeout=120, launcher=True, begin=BEGIN, **environment):
    """Runs a program in several processes. Returns (exit status, stdout, stderr, seconds)."""
    text = textwrap.dedent(begin) + textwrap.dedent(program)
    environment = {"WEFT_DEADLINE": str(deadline), **environment}
    with tempfile.TemporaryDirectory() as folder:
        train = os.path.join(folder, "train.py")
        with open(train, "w", encoding="utf-8") as file:
            file.write(text)
        started = time.monotonic()
        if launcher:
            done = several_processes.run(processes, [train], devices, timeout, **environment)
        else:
            done = several_processes.run_alone([train], devices, timeout, **environment)
    return done.returncode, done.stdout, done.stderr, time.monotonic() - started


def succeeds(program, **options):
    status, out, err, _ = job(program, **{"deadline": 60, **options})
    assert status == 0, err + out
    return out


# --- Numbers ----------------------------------------------------------------------------------------------------------

COLLECTIVES = """
    def values(shape, dtype=np.float32):
        return (np.random.default_rng(0).standard_normal(shape) * 100).astype(dtype)

    n = weft.device_count()
    cases = {
        "psum": (lambda v: lax.psum(v, "x"), P()),
        "pmax": (lambda v: lax.pmax(v, "x"), P()),
        "pmin": (lambda v: lax.pmin(v, "x"), P()),
        "pmean": (lambda v: lax.pmean(v, "x"), P()),
        "all_gather": (lambda v: lax.all_gather(v, "x"), P("x")),
        "psum_scatter": (lambda v: lax.psum_scatter(wnp.tile(v, (n, 1)), "x", tiled=True), P("x")),
        "scatter_1": (lambda v: lax.psum_scatter(wnp.tile(v, (1, n)), "x", scatter_dimension=1, tiled=True), P("x")),
        "all_to_all": (lambda v: lax.all_to_all(wnp.tile(v, (n, 1)), "x", 0, 1, tiled=True), P("x")),
        "all_to_all_1": (lambda v: lax.all_to_all(wnp.tile(v, (1, n)), "x", 1, 0, tiled=True), P("x")),
        "ppermute": (lambda v: lax.ppermute(v, "x", [(i, (i + 3) % n) for i in range(n - 1)]), P("x")),
        "axis_index": (lambda v: v + lax.axis_index("x"), P("x")),
    }
    found = {}
    for dtype in ("float32", "bfloat16", "int32", "float64"):
        with weft.enable_x64(dtype == "float64"):
            x = wnp.asarray(values((n * 3, 5))).astype(dtype)
            for name, (f, out) in cases.items():
                y = weft.jit(weft.shard_map(f, mesh, P("x"), out))(weft.device_put(x, on("x")))
                whole = multihost_utils.process_allgather(y, tiled=True)
                wide = "float64" if dtype == "float64" else "float32"
                found[f"{name} {dtype}"] = np.asarray(wnp.asarray(whole).astype(wide))
    big = weft.jit(weft.shard_map(lambda v: lax.psum(v, "x"), mesh, P("x"), P()))
    found["large"] = np.asarray(big(weft.device_put(values((n, 300_000)), on("x"))))
    if RANK == 0:
        np.savez(os.environ["RESULTS"], **found)
"""


def test_collectives_have_the_bits_of_one_process(tmp_path):
    found = {}
    for processes, devices in ((1, 6), (2, 3), (3, 2), (6, 1)):
        path = tmp_path / f"{processes}.npz"
        succeeds(COLLECTIVES, processes=processes, devices=devices, RESULTS=str(path))
        found[processes] = dict(np.load(path))
    assert len(found[1]) == 45
    for processes in (2, 3, 6):
        for name, want in found[1].items():
            np.testing.assert_array_equal(found[processes][name], want, err_msg=f"{name} on {processes} processes")
    values = (np.random.default_rng(0).standard_normal((18, 5)) * 100).astype(np.float32)
    np.testing.assert_allclose(found[6]["psum float32"], values.reshape(6, 3, 5).sum(0), rtol=1e-5, atol=1e-4)
    np.testing.assert_array_equal(found[6]["all_gather float32"].reshape(6, 18, 5)[4], values)


def test_a_program_over_a_grid_of_processes():
    succeeds(
        """
        rng = np.random.default_rng(1)
        grid = weft.make_mesh((2, 4), ("a", "b"))
        cut = lambda *spec: weft.NamedSharding(grid, P(*spec))
        w, x = (rng.standard_normal(s).astype(np.float32) for s in ((16, 8), (8, 16)))

        def loss(w, x):
            def body(c, row):
                return c + wnp.tanh(row @ w).sum(), wnp.cumsum(row)
            c, rows = weft.scan(body, 0.0, x)
            return c + (wnp.sort(x, 1) @ w).sum() + wnp.where(c > 0, rows.sum(), 0.0)

        want, wanted = weft.value_and_grad(loss, (0, 1))(w, x)
        for sw, sx in (((None, "b"), ("a",)), (("b", "a"), (None, ("b", "a"))), ((), ("b",))):
            f = weft.jit(weft.value_and_grad(loss, (0, 1)), in_shardings=(cut(*sw), cut(*sx)))
            got, gradients = f(w, x)
            np.testing.assert_allclose(got, want, rtol=1e-4)
            for g, expected in zip(gradients, wanted):
                g = multihost_utils.process_allgather(g, tiled=True)
                np.testing.assert_allclose(g, expected, rtol=2e-4, atol=1e-4)
        """,
        processes=4,
    )


@pytest.mark.parametrize("deterministic", [False, True])
def test_the_example_trains_on_two_processes(deterministic):
    pytest.importorskip("sklearn")
    example = pathlib.Path(__file__).parents[2] / "examples/digits_data_parallel.py"
    begin = "import sys; sys.argv.append('--deterministic')\n" if deterministic else ""
    out = succeeds(example.read_text(encoding="utf-8"), devices=4, begin=begin)
    curves = re.findall(r"(\d) devices: loss ([\d.]+) -> ([\d.]+)", out)
    assert [devices for devices, _, _ in curves] == ["1", "8"], out
    assert float(curves[1][2]) < 0.25 * float(curves[1][1])


@pytest.mark.parametrize("launcher", [True, False])
def test_the_example_where_every_number_arrives_everywhere(launcher):
    example = pathlib.Path(__file__).parents[2] / "examples/all_gather.py"
    devices = 1 if launcher else 4
    out = succeeds(example.read_text(encoding="utf-8"), processes=4, devices=devices, begin="", launcher=launcher)
    # mpirun joins what processes write at the same time.
    arrived = re.findall(r"CpuDevice\(id=(\d)\): ([\d ]+)", out)
    assert sorted(arrived) == [(str(i), "100 101 102 103") for i in range(4)], out


def test_without_a_launcher_there_is_one_process():
    out = succeeds("print(RANK, SIZE, len(weft.devices()), wnp.arange(2).is_fully_addressable)", launcher=False)
    assert out.split() == ["0", "1", "2", "True"]


# --- Arrays -----------------------------------------------------------------------------------------------------------


def test_arrays_of_which_each_process_has_a_part():
    succeeds(
        """
        assert [d.process_index for d in weft.devices()] == [0, 0, 1, 1]
        assert weft.local_devices() == mesh.local_devices == weft.devices()[2 * RANK : 2 * RANK + 2]
        assert weft.local_devices(1 - RANK) == weft.devices()[2 - 2 * RANK :][:2] and weft.local_device_count() == 2
        whole = np.arange(24, dtype=np.float32).reshape(8, 3)
        x = weft.device_put(whole, on("x"))
        assert x.shape == (8, 3) and x.dtype == np.float32 and x.ndim == 2
        assert repr(x) == "Array(shape=(8, 3), dtype=float32)"
        assert not x.is_fully_addressable and not x.is_fully_replicated and not x.is_deleted()
        assert [s.device.id for s in x.addressable_shards] == [2 * RANK, 2 * RANK + 1]
        for shard in x.addressable_shards:
            np.testing.assert_array_equal(shard.data, whole[shard.index])
            assert shard.data.sharding.device_set == {shard.device}
        x.block_until_ready()

        def refused(what, error, *words):
            try:
                what()
            except error as e:
                assert all(word in str(e) for word in words), e
            else:
                raise AssertionError("not refused")

        captured = weft.jit(lambda y: y + x)
        for use in (lambda: np.asarray(x), lambda: x.tolist(), lambda: captured(wnp.ones((8, 3))),
                    lambda: weft.device_get(x)):
            refused(use, RuntimeError, "f32[8,3]", "spans devices of several processes", "process_allgather")
        refused(lambda: weft.device_put(x, weft.local_devices()[0]), ValueError, "process_allgather")
        refused(lambda: weft.device_put(whole, weft.local_devices(1 - RANK)[0]), ValueError, "another process")
        refused(lambda: weft.pmap(lambda v: v)(whole), NotImplementedError, "local_devices")

        # Operations outside of jit are programs that all processes run.
        np.testing.assert_array_equal(multihost_utils.process_allgather(x + 1), whole + 1)
        assert float(x.sum()) == whole.sum()
        np.testing.assert_array_equal(x[0], whole[0])
        np.testing.assert_array_equal(list(x)[5], whole[5])

        # What every device holds can be read; other shardings are moved to by a program.
        total = weft.jit(lambda x: x.sum())(x)
        assert float(total) == whole.sum() and total.is_fully_replicated and not total.is_fully_addressable
        columns = weft.device_put(whole.T.copy(), on(None, "x"))
        moved = weft.device_put(columns, on())
        np.testing.assert_array_equal(moved, whole.T)

        # Made from parts.
        rows = whole[4 * RANK : 4 * RANK + 4]
        for y in (
            weft.make_array_from_process_local_data(on("x"), rows),
            weft.make_array_from_process_local_data(on("x"), whole, (8, 3)),
            weft.make_array_from_callback((8, 3), on("x"), lambda index: whole[index]),
            weft.make_array_from_single_device_arrays((8, 3), on("x"), [s.data for s in x.addressable_shards]),
            multihost_utils.host_local_array_to_global_array(rows, mesh, P("x")),
        ):
            np.testing.assert_array_equal(multihost_utils.process_allgather(y), whole)
        back = multihost_utils.global_array_to_host_local_array({"x": x}, mesh, P("x"))["x"]
        np.testing.assert_array_equal(back, rows)
        assert list(back.sharding.mesh.devices.flat) == weft.local_devices() and back.sharding.spec == P("x")
        assert multihost_utils.host_local_array_to_global_array(x, mesh, P("x")) is x
        same = weft.make_array_from_process_local_data(on(), whole)
        np.testing.assert_array_equal(same, whole)
        few = lambda: weft.make_array_from_process_local_data(on("x"), whole[:3], (8, 3))
        refused(few, ValueError, "dimension 0", "4 of 8")

        # Arrays of one process, and meshes of one.
        np.testing.assert_array_equal(multihost_utils.process_allgather(RANK), [0, 1])
        np.testing.assert_array_equal(multihost_utils.process_allgather(np.array([RANK]), tiled=True), [0, 1])
        assert int(multihost_utils.broadcast_one_to_all(RANK + 7)) == 7
        multihost_utils.assert_equal(whole)
        refused(lambda: multihost_utils.assert_equal(RANK, "ranks:"), AssertionError, "ranks: processes")
        multihost_utils.sync_global_devices("here")
        own = weft.make_mesh((2,), ("own",), devices=weft.local_devices())
        z = weft.device_put(whole + RANK, weft.NamedSharding(own, P("own")))
        np.testing.assert_array_equal(weft.jit(lambda z: 2 * z)(z), 2 * (whole + RANK))
        assert weft.jit(lambda z: 2 * z)(z).is_fully_addressable
        mapped = weft.pmap(lambda v: lax.psum(v, "i"), "i", devices=weft.local_devices())
        np.testing.assert_array_equal(mapped(whole[:2]), [whole[:2].sum(0)] * 2)

        # Donation and captured arrays.
        w = np.ones((3, 2), np.float32)
        step = weft.jit(lambda x: (x @ w).sum(1), donate_argnums=0)
        np.testing.assert_allclose(multihost_utils.process_allgather(step(x)), whole.sum(1) * 2)
        assert x.is_deleted()
        refused(lambda: weft.jit(lambda x: x)(x), RuntimeError, "was donated")
        # A function for a mesh that no argument lies on, outside of jit and inside.
        f = weft.shard_map(lambda v: lax.all_gather(v, "x", tiled=True), mesh, P("x"), P("x"))
        assert f(np.arange(4)).shape == weft.jit(f)(np.arange(4)).shape == (16,)
        other = weft.Mesh(weft.devices()[::-1], ("x",))
        y = weft.device_put(whole, weft.NamedSharding(other, P("x")))
        np.testing.assert_array_equal(y.addressable_shards[0].data, whole[4 - 4 * RANK : 6 - 4 * RANK])
        np.testing.assert_array_equal(multihost_utils.process_allgather(weft.jit(lambda y: y * 2)(y)), whole * 2)
        assert weft.jit(f)(np.arange(4)).sharding.mesh == mesh
        words = "one in different orders: its functions' mesh on [0, 1, 2, 3], argument"
        refused(lambda: weft.jit(f)(y), ValueError, words)
        """
    )


# --- The end of a job in which something is wrong ---------------------------------------------------------------------


def fails(program, processes=3, **options):
    status, out, err, seconds = job(program, processes=processes, devices=1, **options)
    assert status != 0, out + err
    said = [line for line in err.splitlines() if line.startswith("weft: ")]
    return said, err, seconds


WAITING = {}


def waits(*cases):
    """Marks a test that waits for a deadline most of the time: it is begun before all others, and runs beside them."""

    def add(test):
        for case in cases:
            WAITING[" ".join([test.__name__, *map(str, case)])] = functools.partial(test, *case)
        return test

    return add


@pytest.fixture(scope="module", autouse=True)
def begun():
    """What the tests that wait come to. One at a time: they measure how long it takes, on few cores."""
    with ThreadPoolExecutor(1) as pool:
        yield {name: pool.submit(test) for name, test in WAITING.items()}
        pool.shutdown(wait=False, cancel_futures=True)


STEP = """
    f = weft.jit(weft.shard_map(lambda v: lax.psum(v, "x"), mesh, P("x"), P()))
    x = np.arange(3.0)
    f(x)
    multihost_utils.sync_global_devices("warm")
    begin = time.time()
    print("go", flush=True)
"""


def test_a_process_that_raises():
    said, err, seconds = fails(
        STEP
        + """
    def broken():
        raise ValueError("no data")  # the line
    if RANK == 1:
        broken()
    f(x)
    """,
        deadline=60,
    )
    assert len(said) == 1, err
    line = re.search(r"train.py\", line (\d+), in broken", err)
    assert line and 'raise ValueError("no data")  # the line' in err
    assert re.search(rf"rank 1 of 3 raised ValueError at .*train.py:{line[1]}: no data", said[0]), said
    assert err.count("Traceback") == 1
    assert seconds < 30


def test_all_processes_raise():
    said, err, _ = fails(STEP + "    raise ValueError('on all')\n", deadline=60)
    assert len(said) == 1 and err.count("Traceback") == 1, err


def test_a_process_that_is_killed():
    said, err, seconds = fails(
        STEP
        + """
    if RANK == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    f(x)
    """,
        deadline=60,
    )
    # mpirun says it.
    assert not said
    assert re.search(r"process rank 2 .*signal 9", err.replace("\n", " ")), err
    assert seconds < 30


@waits(["time.sleep(1000)"], ["while True: pass"], ["sys.exit(0)"])
def a_process_that_never_joins(wrong):
    """From when the first of the others calls initialize() until all have ended: the deadline and 2 seconds."""
    begin = f"""
    import os, sys, time
    if os.environ["OMPI_COMM_WORLD_RANK"] == "1":
        {wrong}
    import weft
    print("joins at", time.time(), flush=True)
    weft.distributed.initialize()
    print("joined", flush=True)
    """
    status, out, err, _ = job("", processes=3, devices=1, begin=begin)
    end = time.time()
    said = [line for line in err.splitlines() if line.startswith("weft: ")]
    assert status != 0 and "joined" not in out and len(said) == 1, out + err
    assert re.search(
        r"rank [02] of 3 \(.*, process \d+\) waited 3 s in distributed.initialize\(\) for rank 1, which has not called",
        said[0],
    ), said
    first = min(float(t) for t in re.findall(r"joins at ([\d.]+)", out))
    print(f"ended {end - first:.2f} s after the first process came to initialize()")
    assert DEADLINE <= end - first < DEADLINE + 20  # 2 where nothing else runs


@waits(["while True: pass"], ["time.sleep(1000)"])
def a_process_that_is_stuck(stuck):
    program = (
        STEP
        + f"""
    if RANK == 1:
        {stuck}
    f(x)
    """
    )
    said, err, seconds = fails(program)
    assert len(said) == 1, err
    assert re.search(r"rank [02] of 3 .* waited 3 s .*\(f64|f32\[3\]\).* for rank 1, which has not come", said[0]), said
    assert seconds < 25  # the deadline, and starting three processes on a busy machine


@waits(
    *(
        (wrong, least, rest)
        for rest in ("f(x)", "sys.exit(0)")
        for wrong, least in (
            ("while True: time.sleep(1)", DEADLINE),
            ("while True: pass", DEADLINE),
            ("os.kill(os.getpid(), signal.SIGKILL)", 0),
        )
    )
)
def how_long_it_takes_to_notice(wrong, least, rest):
    """From when the process gets stuck until all have ended: the deadline and 2 seconds."""
    program = (
        STEP
        + f"""
    if RANK == 1:
        with open(os.environ["BEGIN"], "w") as file:
            file.write(str(time.time()))
        {wrong}
    {rest}
    """
    )
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "begin")
        said, err, _ = fails(program, BEGIN=path)
        end = time.time()
        with open(path) as file:
            begin = float(file.read())
    print(f"ended {end - begin:.2f} s after rank 1 got stuck")
    assert len(said) == (1 if least else 0), err
    if least and rest != "f(x)":
        assert "waited 3 s at the end of its program for rank 1, which has not come" in said[0], said
    assert least <= end - begin < DEADLINE + 20  # 2 where nothing else runs


def test_processes_that_run_different_programs():
    said, err, seconds = fails(
        """
    def step(x): return lax.psum(x, "x")
    def evaluate(x): return lax.pmax(x, "x")
    chosen = evaluate if RANK == 1 else step
    f = weft.jit(weft.shard_map(chosen, mesh, P("x"), P()))
    f(np.arange(3.0))
    """,
        deadline=60,
    )
    assert len(said) == 1, err
    assert re.search(
        r"do different things: .*rank \d runs 'step' .*rank 1 runs 'evaluate'|rank 1 runs 'evaluate'.*'step'", said[0]
    )
    assert seconds < 30


def test_the_same_function_that_computes_something_else():
    said, _, _ = fails(
        """
    f = weft.jit(weft.shard_map(lambda v: lax.psum(v * (2 if RANK == 1 else 3), "x"), mesh, P("x"), P()))
    f(np.arange(3.0))
    """,
        deadline=60,
    )
    assert len(said) == 1 and "what these functions compute differs" in said[0]


def test_shapes_that_differ():
    said, _, _ = fails(
        """
    f = weft.jit(weft.shard_map(lambda v: lax.psum(v, "x"), mesh, P("x"), P()))
    f(np.arange(3.0 if RANK else 6.0))
    """,
        deadline=60,
    )
    assert len(said) == 1 and "[3]" in said[0] and "[6]" in said[0]


def test_a_process_that_ends_early():
    said, _, _ = fails(STEP + "    if RANK == 1: sys.exit(0)\n    f(x)\n", deadline=60)
    assert len(said) == 1 and "rank 1 is at the end of its program" in said[0]


@waits([])
def the_message_names_the_line_that_waits():
    """Another thread that comes to its turn later has a line of its own."""
    said, err, _ = fails(
        STEP
        + """
    import threading
    if RANK == 1:
        time.sleep(1000)
    def first(): f(x)  # the line
    def second(): f(x)
    threads = [threading.Thread(target=t, daemon=True) for t in (first, second)]
    threads[0].start()
    time.sleep(1)
    threads[1].start()
    threads[0].join()
    """
    )
    assert len(said) == 1, err
    source = (textwrap.dedent(BEGIN) + textwrap.dedent(STEP)).count("\n")
    assert re.search(rf"train.py:{source + 5}\b", said[0]), said


def test_a_process_that_raises_what_cannot_be_shown():
    broken = """
    class Broken(Exception):
        def __str__(self): raise RuntimeError("no text")
"""
    for raising in ("raise Broken()", "sys.stdout.close(); raise ValueError('closed')"):
        said, err, seconds = fails(STEP + broken + f"    if RANK == 1: {raising}\n    f(x)\n", deadline=60)
        assert len(said) == 1 and "rank 1 of 3 raised" in said[0], err
        assert "Broken at " in said[0] or "closed" in said[0]
        assert seconds < 30


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="the system call's number is x86-64's")
def test_everybody_speaks_where_nobody_may_have_a_name():
    """bind() fails for another reason than that somebody else has the name."""
    said, err, _ = fails(
        STEP
        + """
    import ctypes, struct
    # If the system call is 49 (bind), it is EACCES; all others are allowed.
    rules = struct.pack("HBBI" * 4, 0x20, 0, 0, 0, 0x15, 0, 1, 49, 6, 0, 0, 0x50000 | 13, 6, 0, 0, 0x7FFF0000)
    memory = ctypes.create_string_buffer(rules)
    program = struct.pack("HxxxxxxQ", 4, ctypes.addressof(memory))
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.prctl(38, 1, 0, 0, 0) == 0
    assert libc.prctl(22, 2, program) == 0, ctypes.get_errno()
    if RANK == 1:
        raise ValueError("no data")
    f(x)
    """,
        deadline=60,
    )
    assert any("rank 1 of 3 raised ValueError" in line for line in said), err


# --- Processes that are none of the job's, or no more -----------------------------------------------------------------


def test_a_process_that_is_forked():
    succeeds(
        STEP
        + """
    def child(what):
        pid = os.fork()
        if pid == 0:
            what()
            sys.exit(0)  # what is done at exit, too
        _, status = os.waitpid(pid, 0)
        return os.waitstatus_to_exitcode(status)

    def refused():
        for use in (lambda: f(x), lambda: multihost_utils.sync_global_devices("child")):
            try:
                use()
            except RuntimeError as error:
                assert "forked" in str(error), error
            else:
                os._exit(3)

    def broken():
        raise ValueError("in a child")

    assert child(lambda: None) == 0
    assert child(weft.distributed.shutdown) == 0
    assert child(refused) == 0
    assert child(broken) == 1
    np.testing.assert_array_equal(f(x), [3])
    """,
        devices=1,
        processes=3,
    )


def test_after_shutdown():
    succeeds(
        STEP
        + """
    weft.distributed.shutdown()
    weft.distributed.shutdown()
    for use in (
        lambda: f(x),
        lambda: multihost_utils.sync_global_devices("late"),
        weft.distributed.initialize,
    ):
        try:
            use()
        except RuntimeError as error:
            assert "left" in str(error) and "shutdown" in str(error), error
        else:
            raise AssertionError("not refused")
    assert float(weft.jit(lambda x: x.sum())(x)) == 3
    """,
        devices=1,
        processes=3,
    )


# --- NaNs and memory --------------------------------------------------------------------------------------------------


def test_nans_are_found_by_all_processes():
    succeeds(
        """
    weft.config.update("debug_nans", True)
    scale = wnp.ones(8)

    def loss(x):
        y = wnp.log(x)  # here
        return (y * scale).sum(), y

    def raised(f, *args):
        try:
            f(*args)
        except FloatingPointError as error:
            return str(error)
        raise AssertionError("no NaN was found")

    good = weft.device_put(np.arange(1, 9, dtype=np.float32), on("x"))
    bad = weft.device_put(np.array([1, 2, 3, 4, 5, 6, 7, -8], np.float32), on("x"))  # process 1 has it
    f = weft.jit(loss)
    f(good)
    line = [i for i, text in enumerate(open(__file__), 1) if "# here" in text][0]
    for g in (f, weft.jit(loss, deterministic=True)):
        message = raised(g, bad)
        assert message.startswith("'log' gives a NaN") and f"train.py:{line}" in message, message
    # What is not cut, and a NaN that is given.
    assert raised(lambda n: weft.jit(lambda x, n: x + wnp.sqrt(n))(good, n), -1.0).startswith("'sqrt' gives a NaN")
    nan = weft.device_put(np.array([np.nan] + [1] * 7, np.float32), on("x"))  # process 0 has it
    assert "argument 'x' of 'loss' holds a NaN" in raised(f, nan)
    mapped = weft.jit(weft.shard_map(lambda v: lax.psum(wnp.log(v), "x"), mesh, P("x"), P()))
    assert raised(mapped, bad).startswith("'spmd' gives a NaN")
    gone = weft.device_put(np.full(8, -1, np.float32), on("x"))
    donating = weft.jit(lambda x: wnp.log(x), donate_argnums=0)
    assert "'log' gives a NaN" in raised(donating, gone) and gone.is_deleted()
    # One process keeps its memory, the other gives it away: both say the same.
    given = wnp.full(8, -1.0)
    view = np.asarray(given) if weft.process_index() == 0 else None
    assert "NaN" in raised(weft.jit(lambda a, b: wnp.log(a) + b, donate_argnums=0), given, good)
    del view
    # All of them go on.
    np.testing.assert_allclose(f(good)[0], np.log(np.arange(1, 9)).sum(), rtol=1e-6)
    """
    )


def test_no_memory_for_what_is_sent():
    """An error, in a process that has memory for the results and not for the messages."""
    said, err, _ = fails(
        """
    import resource
    n = 1 << 24
    f = weft.jit(weft.shard_map(lambda v: lax.all_to_all(v, "x", 1, 0, tiled=True), mesh, P("x"), P("x")))
    small = weft.device_put(np.ones((2, 2), np.float32), on("x"))
    f(small)
    x = weft.device_put(np.ones((2, n), np.float32), on("x"))
    multihost_utils.sync_global_devices("warm")
    used = int(open("/proc/self/statm").read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    resource.setrlimit(resource.RLIMIT_AS, (used + int(MOST * 4 * n), -1))
    f(x)
    """.replace("MOST", "2.6"),
        processes=2,
        deadline=30,
    )
    assert len(said) == 1, err
    assert "out of memory" in said[0] and "sends to other processes" in said[0], said


def test_initialize_after_devices():
    program = "import weft\nweft.devices()\nweft.distributed.initialize()\n"
    env = dict(os.environ, OMPI_COMM_WORLD_SIZE="2")
    done = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True, timeout=60)
    assert "comes before everything that asks for devices" in done.stderr


def test_deadlines_that_are_none():
    for given in ("soon", "0", "-1", "inf"):
        env = dict(os.environ, WEFT_DEADLINE=given)
        done = subprocess.run(
            [sys.executable, "-c", "import weft; weft.distributed.initialize()"],
            env=env,
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert "ValueError" in done.stderr and "number of seconds" in done.stderr


@pytest.mark.parametrize("name", WAITING)
def test_that_waits(begun, name):
    begun[name].result()
