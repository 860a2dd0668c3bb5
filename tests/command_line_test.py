"""`weft run` on .npy files, against NumPy."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

PASS_THROUGH = "fn f(x: {type}) -> ({type}) {{ return x }}"
DTYPES = {
    "bool": np.bool_,
    "i8": np.int8,
    "i16": np.int16,
    "i32": np.int32,
    "i64": np.int64,
    "u8": np.uint8,
    "u16": np.uint16,
    "u32": np.uint32,
    "u64": np.uint64,
    "f16": np.float16,
    "f32": np.float32,
    "f64": np.float64,
    "c64": np.complex64,
    "c128": np.complex128,
}


def weft(*arguments: object, program: str = "", check: bool = True) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        ["driver/weft", *map(str, arguments)], input=program, capture_output=True, text=True, timeout=60, check=False
    )
    assert not check or done.returncode == 0, done.stderr
    return done


@pytest.fixture(params=[[], ["--interpret"]], ids=["compiled", "interpreted"])
def how(request: pytest.FixtureRequest) -> list[str]:
    return request.param


def run(tmp_path: Path, program: str, *inputs: np.ndarray, how: list[str]) -> list[np.ndarray]:
    files = []
    for i, value in enumerate(inputs):
        files.append(tmp_path / f"input{i}.npy")
        np.save(files[-1], value)
    weft("run", "-", *how, "--inputs", *files, "--outputs", tmp_path / "out", program=program)
    return [np.load(path) for path in sorted((tmp_path / "out").iterdir())]


@pytest.mark.parametrize("made_by", [("opt", "--binary"), ("export",)], ids=lambda command: command[0])
def test_standard_input_may_hold_bytes(tmp_path: Path, made_by: tuple[str, ...]) -> None:
    """A program in the exchange form, and a bundle."""
    program, x = tmp_path / "program", np.array([1, 2, 3], np.float32)
    weft(made_by[0], "-", *made_by[1:], "-o", program, program=PASS_THROUGH.format(type="f32[3]"))
    np.save(tmp_path / "x.npy", x)
    arguments = ["driver/weft", "run", "-", "--inputs", tmp_path / "x.npy"]
    done = subprocess.run(arguments, input=program.read_bytes(), capture_output=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (0, b"f32[3] [1.0 2.0 3.0]\n"), done.stderr


@pytest.mark.parametrize("name", DTYPES)
@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (0, 4), (2, 1, 3)])
def test_arrays_pass_through_unchanged(tmp_path: Path, how: list[str], name: str, shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(0)
    value = (rng.normal(size=shape) * 50).astype(DTYPES[name])
    sizes = ",".join(map(str, shape))
    (result,) = run(tmp_path, PASS_THROUGH.format(type=f"{name}[{sizes}]"), value, how=how)
    assert result.dtype == value.dtype
    assert result.shape == value.shape
    assert result.tobytes() == value.tobytes()


def test_integers_of_few_bits_are_files_of_eight(tmp_path: Path, how: list[str]) -> None:
    program = "fn f(x: i4[3], y: u2[2]) -> (i4[3], u2[2]) {\n  z: i4[3] = mul x x\n  return z, y\n}\n"
    x, y = np.array([-8, 3, 7], np.int8), np.array([3, 0], np.uint8)
    z, same = run(tmp_path, program, x, y, how=how)
    assert z.dtype == np.int8 and z.tolist() == [0, -7, 1]
    assert same.dtype == np.uint8 and same.tolist() == [3, 0]
    np.save(tmp_path / "beyond.npy", np.array([8, 0, 0], np.int8))
    done = weft(
        "run", "-", *how, "--inputs", tmp_path / "beyond.npy", tmp_path / "input1.npy", "--outputs", tmp_path / "out",
        program=program, check=False,
    )  # fmt: skip
    assert done.returncode != 0 and "beyond.npy: it holds numbers that are beyond i4" in done.stderr


@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
@pytest.mark.parametrize("dtype", [">f4", ">c16", ">i2", "<f4"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_other_layouts_are_converted(tmp_path: Path, version: tuple[int, int], dtype: str, order: str) -> None:
    value = np.asarray(np.arange(24).reshape(2, 3, 4), dtype=dtype, order=order)
    path = tmp_path / "x.npy"
    with path.open("wb") as file:
        np.lib.format.write_array(file, value, version=version)
    name = {">f4": "f32", ">c16": "c128", ">i2": "i16", "<f4": "f32"}[dtype]
    program = PASS_THROUGH.format(type=f"{name}[2,3,4]")
    weft("run", "-", "--interpret", "--inputs", path, "--outputs", tmp_path / "out", program=program)
    result = np.load(tmp_path / "out" / "0.npy")
    assert result.flags.c_contiguous
    np.testing.assert_array_equal(result, value)


def test_symbolic_sizes_constants_and_several_results(tmp_path: Path, how: list[str]) -> None:
    program = """
    fn f(x: f32[n,3], const w: f32[3,2]) -> (f32[n,2], f32[]) {
      y = contract[spec="ij,jk->ik"] x w
      z = reduce_max[dims=[0,1]] y
      return y, z
    }"""
    rng = np.random.default_rng(0)
    for n in (1, 5):
        x, w = rng.normal(size=(n, 3)).astype(np.float32), rng.normal(size=(3, 2)).astype(np.float32)
        y, z = run(tmp_path, program, x, w, how=how)
        np.testing.assert_allclose(y, x @ w, rtol=1e-6)
        assert z == y.max()


def test_text_and_protobuf_run_alike(tmp_path: Path) -> None:
    (tmp_path / "f.weft").write_text("fn f(x: f32[3]) -> f32[3] { y = square x; return y }")
    weft("opt", tmp_path / "f.weft", "--binary", "-o", tmp_path / "f.weftpb")
    np.save(tmp_path / "x.npy", np.float32([1, 2, 3]))
    texts = {
        weft("run", tmp_path / name, "--interpret", "--inputs", tmp_path / "x.npy").stdout
        for name in ("f.weft", "f.weftpb")
    }
    assert len(texts) == 1
    assert "9" in texts.pop()


def damaged_files() -> dict[str, tuple[bytes, str]]:
    import io

    buffer = io.BytesIO()
    np.save(buffer, np.float32([1, 2, 3]))
    whole = buffer.getvalue()
    structured = io.BytesIO()
    np.save(structured, np.zeros(2, dtype=[("a", "f4"), ("b", "i4")]))
    text = io.BytesIO()
    np.save(text, np.array(["a", "b"]))
    return {
        "empty": (b"", "not an .npy file"),
        "foreign": (b"PK\x03\x04" * 100, "not an .npy file"),
        "truncated_header": (whole[:20], "truncated .npy file"),
        "truncated_data": (whole[:-1], "the array needs 12 bytes, the file has 11"),
        "more_data": (whole + b"\0", "the array needs 12 bytes, the file has 13"),
        "future_version": (whole[:6] + b"\x09" + whole[7:], "version 9"),
        "structured": (structured.getvalue(), "structured type"),
        "strings": (text.getvalue(), "is not supported"),
        "huge": (whole.replace(b"(3,), }", b"(3000000000,3000000000,3000000000)}")[: len(whole)], ""),
        "negative": (whole.replace(b"(3,)", b"(-3)"), "malformed 'shape'"),
        "no_shape": (whole.replace(b"'shape'", b"'shabe'"), "an entry 'shabe'"),
    }


@pytest.mark.parametrize("case", damaged_files())
def test_bad_arrays_are_errors(tmp_path: Path, case: str) -> None:
    content, message = damaged_files()[case]
    (tmp_path / "x.npy").write_bytes(content)
    program = PASS_THROUGH.format(type="f32[3]")
    done = weft("run", "-", "--interpret", "--inputs", tmp_path / "x.npy", program=program, check=False)
    assert done.returncode == 1, done
    assert "x.npy" in done.stderr
    assert message in done.stderr


def test_arguments_that_do_not_fit_are_errors(tmp_path: Path, how: list[str]) -> None:
    program = PASS_THROUGH.format(type="f32[3]")
    np.save(tmp_path / "x.npy", np.float32([1, 2]))
    np.save(tmp_path / "y.npy", np.float64([1, 2, 3]))
    for name, message in (("x", "f32[2]"), ("y", "f64[3]")):
        done = weft("run", "-", *how, "--inputs", tmp_path / f"{name}.npy", program=program, check=False)
        assert done.returncode == 1
        assert message in done.stderr and "expected f32[3]" in done.stderr
    done = weft("run", "-", *how, program=program, check=False)
    assert done.returncode == 1
    assert "f takes 1 arrays (f32[3]), --inputs names 0" in done.stderr


def test_arguments_that_disagree_on_a_size_are_errors(tmp_path: Path, how: list[str]) -> None:
    np.save(tmp_path / "x.npy", np.float32([1, 2]))
    np.save(tmp_path / "y.npy", np.float32([1, 2, 3]))
    program = "fn f(x: f32[n], y: f32[n]) -> (f32[n]) {\n  a = add x y\n  return a\n}"
    done = weft("run", "-", *how, "--inputs", tmp_path / "x.npy", tmp_path / "y.npy", program=program, check=False)
    assert done.returncode == 1
    assert "where n = " in done.stderr


@pytest.mark.parametrize(
    ("stage", "expected"),
    [
        ("ir", "reduce_sum"),
        ("optimized", "reduce_sum"),
        ("fusion", ""),
        ("schedule", "kernel"),
        ("liveness", "%0: 0 to 1"),
        ("buffers", "arena"),
        ("mlir", "func"),
        ("llvm", "define"),
        ("asm", ".text"),
    ],
)
def test_every_stage_can_be_looked_at(stage: str, expected: str) -> None:
    program = "fn f(x: f32[n,3]) -> f32[n] { y = sin x; z = reduce_sum[dims=[1]] y; return z }"
    assert expected in weft("dump", "-", "--stage", stage, program=program).stdout


def test_a_stage_of_another_target_says_which() -> None:
    done = weft("dump", "-", "--stage=ptx", program=PASS_THROUGH.format(type="f32[3]"), check=False)
    assert done.returncode == 1
    assert "there is no stage 'ptx' for a CPU; there are ir, optimized, fusion" in done.stderr
    assert "'cuda:sm_90a' has it" in done.stderr
    done = weft(
        "dump", "-", "--stage=asm", "--target=cuda:sm_90a", program=PASS_THROUGH.format(type="f32[3]"), check=False
    )
    assert done.returncode == 1
    assert "there is no stage 'asm' for cuda:sm_90a; there are ir, optimized, schedule, mlir, llvm, ptx" in done.stderr


LAYERS = """fn g(y: f32[8]) -> f32[8] {
  c = sin y
  d = sin y
  e = add c d
  return e
}
fn f(x: f32[8]) -> f32[8] {
  a = add x 0.0:f32
  b = call @g a
  return b
}
"""


def test_passes_are_timed_and_counted() -> None:
    done = weft("opt", "-", "--passes=inline,optimize", "--timing", program=LAYERS)
    rows = [line.split() for line in done.stderr.splitlines()]
    assert rows[0] == ["ms", "share", "equations", "left", "pass"]
    names = [row[-1] for row in rows[1:]]
    optimize = weft("opt", "--list").stdout.split("optimize: The passes before lowering: ")[1].split(".")[0].split(", ")
    assert names == ["inline", *optimize, "together"]
    assert rows[1][2:] == ["5", "4", "inline"]
    assert all(float(row[0]) >= 0 for row in rows[1:])
    assert "fn f" in done.stdout and "fn f" not in done.stderr


@pytest.mark.parametrize("file_first", [False, True])
@pytest.mark.parametrize("names", ["cse", "cse,inline-small", "all"])
def test_the_program_after_a_pass_is_dumped(names: str, file_first: bool) -> None:
    words = ["-", "--passes=optimize", f"--dump-after={names}"]
    done = weft("opt", *(words if file_first else reversed(words)), program=LAYERS)
    texts = done.stderr.split("# after ")[1:]
    optimize = weft("opt", "--list").stdout.split("optimize: The passes before lowering: ")[1].split(".")[0].split(", ")
    assert len(texts) == sum(names == "all" or name in names.split(",") for name in optimize)
    for text in texts:
        name, program = text.split("\n", 1)
        assert names == "all" or name in names
        assert "fn f(x: f32[8])" in weft("opt", "-", program=program).stdout


def test_a_pass_that_is_none_cannot_be_dumped() -> None:
    done = weft("opt", "-", "--passes=cse", "--dump-after=csee", program=LAYERS, check=False)
    assert done.returncode == 1 and "there is no pass 'csee'" in done.stderr and "cse" in done.stderr


@pytest.mark.parametrize("command", [("dump", "--stage=ir"), ("export", "-o", "unwritten")])
def test_a_target_that_is_none_is_named(command: tuple[str, ...]) -> None:
    done = weft(command[0], "-", *command[1:], "--target=tpu", program=LAYERS, check=False)
    assert done.returncode == 1
    assert (
        "there is no target or backend 'tpu'; there are cpu, interpreter, operations, cuda:sm_90a and other GPUs"
        in done.stderr
    )


def test_the_interpreter_has_nothing_to_export() -> None:
    done = weft("export", "-", "-o", "unwritten", "--target=interpreter", program=LAYERS, check=False)
    assert done.returncode == 1
    assert "export: the interpreter makes no code that could be written to a file" in done.stderr


def test_what_cannot_be_written_is_a_failure(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.float32([1, 2, 3]))
    program = tmp_path / "f.weft"
    program.write_text(PASS_THROUGH.format(type="f32[3]"))
    for arguments in (
        ["ops"],
        ["--help"],
        ["run", program, "--inputs", tmp_path / "x.npy"],
        ["dump", program],
        ["dump", program, "--stage=schedule"],
        ["opt", "--list"],
        ["opt", program],
    ):
        with open("/dev/full", "w") as full:
            done = subprocess.run(
                ["driver/weft", *map(str, arguments)],
                stdout=full,
                stderr=subprocess.PIPE,
                text=True,
                timeout=60,
                check=False,
            )
        assert done.returncode == 1, arguments
        assert done.stderr == "weft: cannot write to standard output\n", arguments


def test_a_function_that_needs_something_around_it_is_read_but_does_not_run() -> None:
    for equation, message in (
        ('psum[axes=["i"]] x', "psum: nothing binds the axis 'i'"),
        ("recur[depth=0, results=types(f32[])] x", "recur[depth=0] outside of a recursive function"),
    ):
        program = f"fn f(x: f32[]) -> (f32[]) {{\n  y: f32[] = {equation}\n  return y\n}}"
        assert equation in weft("opt", "-", "--passes=verify", program=program).stdout
        done = weft("dump", "-", "--stage=schedule", program=program, check=False)
        assert done.returncode == 1
        assert message in done.stderr


def test_a_size_that_is_none_is_the_arguments_fault() -> None:
    done = weft("opt", "-", "--passes=vmap(-3)", program=PASS_THROUGH.format(type="f32[3]"), check=False)
    assert done.returncode == 1
    assert "vmap: '-3' is no size; expected one of 0 or more, as in vmap(8) or vmap(n)" in done.stderr


def test_a_size_below_nothing_is_the_arguments_fault(tmp_path: Path, how: list[str]) -> None:
    np.save(tmp_path / "x.npy", np.zeros(4, np.float32))
    program = "fn f(x: f32[n+5]) -> (f32[n+5]) { return x }"
    done = weft("run", "-", *how, "--inputs", tmp_path / "x.npy", program=program, check=False)
    assert done.returncode == 1
    assert "is f32[4], expected f32[n+5], where n = -1" in done.stderr


def test_a_damaged_archive(tmp_path: Path) -> None:
    """One bit of the numbers, which the checksum tells."""
    path = tmp_path / "x.npz"
    np.savez(path, x=np.arange(100, dtype=np.float32))
    arguments = ["run", "-", "--inputs", path]
    program = "fn f(x: f32[100]) -> (f32[]) { y = reduce_sum[dims=[0]] x; return y }"
    assert "4950.0" in weft(*arguments, program=program).stdout
    content = bytearray(path.read_bytes())
    content[content.index(np.float32(50).tobytes()) + 2] ^= 1
    path.write_bytes(content)
    done = weft(*arguments, program=program, check=False)
    assert done.returncode == 1 and "'x' is damaged: its checksum differs" in done.stderr, done.stderr


def overlapping(path: Path, count: int, size: int) -> None:
    """An archive whose directory names one file of `size` numbers `count` times."""
    np.savez(path, x0=np.zeros(size, np.float32))
    content = path.read_bytes()
    end = content.rindex(b"PK\x05\x06")
    begin = int.from_bytes(content[end + 16 : end + 20], "little")
    entry = content[begin:end]
    assert entry.count(b"x0.npy") == 1
    directory = b"".join(entry.replace(b"x0.npy", b"%c%c.npy" % (97 + i // 26, 97 + i % 26)) for i in range(count))
    tail = bytearray(content[end:])
    tail[8:10] = tail[10:12] = count.to_bytes(2, "little")
    tail[12:16] = len(directory).to_bytes(4, "little")
    path.write_bytes(content[:begin] + directory + tail)


def test_an_archive_whose_files_lie_over_each_other(tmp_path: Path) -> None:
    """Which would be read to many times its size."""
    path = tmp_path / "x.npz"
    overlapping(path, 200, 250000)
    arguments = ["run", "-", "--inputs", path]
    program = "fn f(aa: f32[250000], ab: f32[250000]) -> (f32[250000]) { y = add aa ab; return y }"
    done = weft(*arguments, program=program, check=False)
    assert done.returncode == 1 and "files in it lie over each other" in done.stderr, done.stderr
    overlapping(path, 1, 250000)
    assert "0.0" in weft(*arguments, program="fn f(aa: f32[250000]) -> (f32[250000]) { return aa }").stdout


def test_an_archive_is_read_as_far_as_it_is_wanted(tmp_path: Path) -> None:
    """Large files in it beside the one that is wanted take no memory; what is damaged there is not seen."""
    path = tmp_path / "x.npz"
    np.savez(path, big=np.zeros(40_000_000, np.float32), x=np.float32([1, 2, 3]))
    with path.open("r+b") as file:
        file.seek(1_000_000)
        file.write(b"damaged")
    arguments = ["driver/weft", "run", "-", "--inputs", str(path), "--interpret"]
    small = ["driver/weft", "run", "-", "--inputs", str(tmp_path / "small.npz"), "--interpret"]
    np.savez(tmp_path / "small.npz", x=np.float32([1, 2, 3]))
    peaks = []
    for command in (arguments, small):
        script = (
            "import resource, subprocess, sys\n"
            "done = subprocess.run(sys.argv[1:], input='fn f(x: f32[3]) -> (f32[3]) { return x }', text=True,"
            " capture_output=True)\n"
            "print(done.stdout, done.stderr, done.returncode)\n"
            "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
        )
        done = subprocess.run([sys.executable, "-c", script, *command], capture_output=True, text=True, check=True)
        assert "[1.0 2.0 3.0]" in done.stdout, done.stdout
        peaks.append(int(done.stdout.split()[-1]))
    assert peaks[0] < peaks[1] + 40_000, peaks  # KiB, of 160,000 for the large one


@pytest.mark.parametrize("damage", ["two of one name", "beyond the end", "a name that is no text"])
def test_an_archive_whose_directory_is_damaged(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "x.npz"
    np.savez(path, x=np.float32([1, 2, 3]), y=np.float32([1, 2, 3]))
    content = bytearray(path.read_bytes())
    begin = int.from_bytes(content[-6:-2], "little")
    second = content.index(b"PK\x01\x02", begin + 4)
    if damage == "two of one name":
        content[second + 46] = ord("x")
    elif damage == "beyond the end":
        content[second + 20 : second + 24] = (1 << 30).to_bytes(4, "little")
    else:
        content[second + 46] = 0xFF
    path.write_bytes(content)
    done = weft("run", "-", "--inputs", path, program="fn f(x: f32[3]) -> (f32[3]) { return x }", check=False)
    said = {
        "two of one name": "it has two files 'x'",
        "beyond the end": "the archive ends early",
        "a name that is no text": "a name that is no UTF-8",
    }
    assert done.returncode == 1 and said[damage] in done.stderr, done.stderr


def test_bundles_for_cpus_run_as_by_the_whole_tool(tmp_path: Path) -> None:
    """By `weft-run`, which opens the back end when it needs it."""
    program = """
    fn f(x: f32[30,40], y: f32[40,20]) -> (f32[30,20], f32[]) {
      z = contract[spec="ij,jk->ik"] x y
      w = tanh z
      s = reduce_sum[dims=[0,1]] w
      return w, s
    }"""
    weft("export", "-", "-o", tmp_path / "f.weftb", program=program)
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(30, 40)).astype(np.float32), rng.normal(size=(40, 20)).astype(np.float32)
    np.savez(tmp_path / "in.npz", x=x, y=y)
    printed = []
    for tool in ("driver/weft-run", "driver/weft"):
        for more in ([], ["--device=cpu"]):
            command = [tool, "run", tmp_path / "f.weftb", "--inputs", tmp_path / "in.npz", *more]
            printed.append(subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout)
            subprocess.run([*command, "--outputs", tmp_path / "out"], check=True, timeout=60)
            np.testing.assert_allclose(np.load(tmp_path / "out" / "0.npy"), np.tanh(x @ y), rtol=1e-4, atol=1e-5)
    assert len(set(printed)) == 1
    done = subprocess.run(
        ["driver/weft-run", "run", tmp_path / "f.weftb", "--inputs", tmp_path / "in.npz", "--device=cuda"],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 1 and "the bundle is for cpu, not for cuda" in done.stderr
    done = subprocess.run(
        ["driver/weft-run", "run", tmp_path / "f.weftb", "--inputs", tmp_path / "none.npz"],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 1 and "cannot read" in done.stderr and done.stderr.startswith("weft-run: ")
    # Carried away alone, as for a GPU, it says what it lacks.
    shutil.copy("driver/weft-run", tmp_path / "weft-run")
    command = [tmp_path / "weft-run", "run", tmp_path / "f.weftb", "--inputs", tmp_path / "in.npz"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and "is for cpu, which needs libweft_cpu.so beside this program" in done.stderr


def test_paths_are_where_bazel_run_was_called(tmp_path: Path) -> None:
    """All of them, of every command: `bazel run` starts programs in a folder of its own."""
    environment = {**os.environ, "BUILD_WORKING_DIRECTORY": str(tmp_path)}
    run = lambda *command: subprocess.run(
        command, env=environment, capture_output=True, text=True, check=True, timeout=60
    )
    (tmp_path / "f.weft").write_text("fn f(x: f32[3]) -> (f32[3]) { y = square x; return y }")
    np.save(tmp_path / "x.npy", np.float32([1, 2, 3]))
    np.savez(tmp_path / "x.npz", x=np.float32([1, 2, 3]))
    tool = os.path.abspath("driver/weft")
    run(tool, "opt", "f.weft", "--binary", "-o", "f.weftpb")
    run(tool, "export", "f.weft", "-o", "f.weftb")
    assert "square" in run(tool, "dump", "f.weftpb", "--stage=ir").stdout
    for tool_of_bundles in (tool, os.path.abspath("driver/weft-run")):
        for inputs in ("x.npy", "x.npz"):
            run(tool_of_bundles, "run", "f.weftb", "--inputs", inputs, "--outputs", "out")
            assert np.load(tmp_path / "out" / "0.npy").tolist() == [1, 4, 9]
    # Elsewhere the variable, which a program under `bazel run` hands on, says nothing.
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "g.weft").write_text("fn g(x: f32[3]) -> (f32[3]) { y = exp x; return y }")
    done = subprocess.run(
        [tool, "opt", "g.weft"], env=environment, cwd=tmp_path / "other", capture_output=True, text=True, timeout=60
    )
    assert "exp" in done.stdout, done.stderr


@pytest.mark.parametrize("tool", ["driver/weft", "driver/weft-run"])
def test_a_file_that_may_grow_no_more(tmp_path: Path, tool: str) -> None:
    """Of each write of the tools: an error, not a signal."""
    program = tmp_path / "f.weft"
    program.write_text("fn f(x: f32[3000]) -> (f32[3000]) { y = square x; return y }")
    np.save(tmp_path / "x.npy", np.zeros(3000, np.float32))
    weft("export", program, "-o", tmp_path / "f.weftb")
    commands = [[tool, "run", tmp_path / "f.weftb", "--inputs", tmp_path / "x.npy", "--outputs", tmp_path / "out"]]
    if tool == "driver/weft":
        commands += [[tool, "opt", program, "-o", tmp_path / "g"], [tool, "export", program, "-o", tmp_path / "g"]]
    for command in commands:
        environment = {**os.environ, "WEFT_CACHE_DIR": "off"}
        done = subprocess.run(
            ["/bin/bash", "-c", 'ulimit -f 0; exec "$@"', "run", *command],
            capture_output=True,
            text=True,
            timeout=60,
            env=environment,
        )
        assert done.returncode == 1 and "cannot write" in done.stderr, (command, done)


@pytest.mark.parametrize(
    ("equation", "message"),
    [
        ('debug_print[format="{} {}"] x', "'{} {}' has 2 fields for values, and there are 1"),
        ('debug_print[format="x"] x', "'x' has 0 fields for values, and there are 1"),
        ('debug_print[format="{:q}"] x', "'q' is no format specification for numbers"),
    ],
)
def test_formats_are_checked_before_anything_runs(equation: str, message: str) -> None:
    program = f"fn f(x: f32[]) -> (f32[]) {{ {equation}; return x }}"
    done = weft("opt", "-", program=program, check=False)
    assert done.returncode == 1 and message in done.stderr, done.stderr


def test_usage_errors() -> None:
    done = weft("frobnicate", check=False)
    assert "there is no command 'frobnicate'; there are opt, run, export, dump, selftest, ops" in done.stderr
    for arguments in ([], ["frobnicate"], ["run"], ["opt"], ["dump", "-", "--stage=x"]):
        done = weft(*arguments, check=False)
        assert done.returncode == 2, arguments
    assert weft("--help").stdout.startswith("Looks at")


def test_a_folder_is_no_program(tmp_path: Path) -> None:
    for command in ("run", "opt", "dump"):
        done = weft(command, tmp_path, check=False)
        assert done.returncode != 0
        assert f"cannot read {tmp_path}: Is a directory" in done.stderr
