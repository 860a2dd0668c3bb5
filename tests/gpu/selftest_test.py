"""`weft selftest --gpu`: what is carried to a machine with a card, and the same run here on a driver that pretends."""

import io
import json
import os
import re
import shutil
import subprocess
import tarfile
import zipfile
from pathlib import Path

import pytest

import weft
from tests.gpu import pack_selftest, selftest_cases

FAKE = str(Path("tests/gpu/libfake_cuda.so").resolve())


@pytest.fixture(scope="module")
def carried(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder into which the archive is unpacked, where nothing else is."""
    folder = tmp_path_factory.mktemp("carried")
    data = pack_selftest.pack()
    assert len(data) < pack_selftest.LIMIT
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        tar.extractall(folder)
    assert sorted(p.name for p in folder.iterdir()) == ["selftest.zip", "weft-run"]
    return folder


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same cases with small figures, and with host emulation: selftest.zip, and each bundle as a file."""
    folder = tmp_path_factory.mktemp("small")
    files = selftest_cases.material(small=True, emulation=True, targets=["sm_90a"])
    for name, data in files.items():
        if name.endswith(".weftb"):
            (folder / name).write_bytes(data)
    (folder / "selftest.zip").write_bytes(selftest_cases.archive(files))
    # Without the figures, which take most of the time.
    files["cases.txt"] = b"\n".join(line for line in files["cases.txt"].split(b"\n") if b"large" not in line)
    (folder / "checks.zip").write_bytes(selftest_cases.archive(files))
    return folder


def run(
    program: str | Path, small: Path, *options: object, cases: str = "selftest.zip", **environment: str
) -> subprocess.CompletedProcess[str]:
    """In an empty environment, but for the pretended driver."""
    return subprocess.run(
        [Path(program).resolve(), "selftest", "--gpu", f"--cases={small / cases}", *map(str, options)],
        capture_output=True,
        text=True,
        timeout=250,
        check=False,
        env={
            "WEFT_LIBCUDA": FAKE,
            "WEFT_LIBCUBLASLT": FAKE,
            "WEFT_FAKE_CUDA_BUNDLE": ":".join(map(str, sorted(small.glob("*.weftb")))),
            **environment,
        },
        cwd=small,
    )


def test_the_program_needs_the_c_library_alone(carried: Path) -> None:
    program = carried / "weft-run"
    listed = subprocess.run(["readelf", "-d", program], capture_output=True, text=True, check=True).stdout
    needed = set(re.findall(r"NEEDED.*\[(.*)\]", listed))
    # tools/sanitized.sh runs this test on a program that has the sanitizer's runtime as well.
    needed -= {name for name in needed if "LD_PRELOAD" in os.environ and re.match("lib(a|ub|t)san", name)}
    assert needed and needed <= {"libc.so.6", "libm.so.6", "ld-linux-x86-64.so.2"}
    assert b"llvm" not in program.read_bytes().lower()
    assert b"N4mlir" not in program.read_bytes()


def test_what_is_carried_starts_in_an_empty_folder(carried: Path) -> None:
    """As far as it can without a card: to the sentence that says so."""
    done = subprocess.run(
        ["./weft-run", "selftest", "--gpu"], cwd=carried, env={"WEFT_LIBCUDA": "none"}, capture_output=True, text=True
    )
    assert done.returncode == 1
    assert (
        done.stderr
        == "weft-run: cuda: there is no NVIDIA driver on this machine: WEFT_LIBCUDA says that there is none\n"
    )


def test_every_case_is_carried_for_both_architectures(carried: Path) -> None:
    with zipfile.ZipFile(carried / "selftest.zip") as archive:
        names = set(archive.namelist())
        targets, *cases = archive.read("cases.txt").decode().splitlines()
    assert targets == "targets sm_90a sm_80" and len(cases) > 30
    for case in cases:
        name = case.split()[1]
        assert {f"{name}.{t}.weftb" for t in ("sm_90a", "sm_80")} | {f"{name}.in.0.npy", f"{name}.out.0.npy"} <= names


def test_all_is_right_and_measured_on_a_late_device(carried: Path, small: Path, tmp_path: Path) -> None:
    done = run(carried / "weft-run", small, f"--json={tmp_path / 'report.json'}")
    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads((tmp_path / "report.json").read_text())
    assert (report["device"], report["capability"], report["target"]) == ("Fake GPU", 90, "sm_90a")
    cases = {case["name"]: case for case in report["cases"]}
    assert len(cases) == len(report["cases"]) > 30 and all(case["right"] for case in cases.values())
    assert cases["integers"]["of_tolerance"] == 0 < cases["exp_float32"]["of_tolerance"]
    assert "milliseconds" not in cases["exp_float32"]
    copy, softmax = cases["copy"], cases["large_softmax_float32"]
    # 16 rows of 256 numbers, read and written.
    assert copy["gigabytes_per_second"] == pytest.approx(2 * 16 * 256 * 4 / copy["milliseconds"] * 1e-6, rel=1e-4)
    assert softmax["of_copy"] == pytest.approx(copy["milliseconds"] / softmax["milliseconds"], rel=1e-4)
    product = cases["large_product_float32"]
    assert product["teraflops"] == pytest.approx(2 * 256**3 / product["milliseconds"] * 1e-9, rel=1e-4)
    assert f"{len(cases)} of {len(cases)} are right" in done.stdout
    assert re.search(r"large_softmax_float32 +right .* of the tolerance .* GB/s +\S+ % of the copy", done.stdout)


def test_what_is_wrong_is_seen(small: Path, tmp_path: Path) -> None:
    done = run("driver/weft-run", small, f"--json={tmp_path / 'r.json'}", cases="checks.zip", WEFT_FAKE_CUDA_IS="idle")
    assert done.returncode == 1
    right = {case["name"] for case in json.loads((tmp_path / "r.json").read_text())["cases"] if case["right"]}
    assert right == {"copy"}  # which has no kernel


@pytest.mark.parametrize(
    "environment, message",
    [
        ({"WEFT_LIBCUDA": "none"}, "there is no NVIDIA driver on this machine: WEFT_LIBCUDA says"),
        ({"WEFT_LIBCUDA": "libm.so.6"}, "lacks cuInit; it is too old, or none of NVIDIA's"),
        ({"WEFT_FAKE_CUDA_IS": "stub"}, "the toolkit's stub"),
        ({"WEFT_FAKE_CUDA_IS": "no_device"}, "the driver finds no GPU"),
        ({"WEFT_FAKE_CUDA_IS": "old_driver"}, "the driver is of CUDA 11.4, too old .* needs 12.0 or later"),
        ({"WEFT_FAKE_CUDA_IS": "sm_75"}, r"are compiled for sm_90a; device 0 \(Fake GPU\) is sm_75"),
    ],
)
def test_what_a_machine_lacks_is_one_sentence(small: Path, environment: dict[str, str], message: str) -> None:
    for program in ("driver/weft-run", "driver/weft"):
        done = run(program, small, **environment)
        assert done.returncode == 1 and done.stdout == ""
        assert len(done.stderr.splitlines()) == 1 and re.search(message, done.stderr), done.stderr


@pytest.mark.parametrize("program, card, taken", [("driver/weft", "", "sm_90a"), ("driver/weft-run", "sm_80", "sm_80")])
def test_the_first_target_that_the_card_runs_is_taken(
    small: Path, tmp_path: Path, program: str, card: str, taken: str
) -> None:
    files = {"cases.txt": b"targets sm_90a sm_80\ncopy copy 0 0\n"}
    for target in selftest_cases.TARGETS:
        bundle = tmp_path / f"copy.{target}.weftb"
        weft.jit(lambda x: x).lower(weft.ShapeDtypeStruct((16, 256), "float32"), target=f"cuda:{target}").export(
            bundle, emulation=True
        )
        files[bundle.name] = bundle.read_bytes()
    with zipfile.ZipFile(small / "selftest.zip") as archive:
        files |= {name: archive.read(name) for name in ("copy.in.0.npy", "copy.out.0.npy")}
    (tmp_path / "selftest.zip").write_bytes(selftest_cases.archive(files))
    done = run(program, tmp_path, WEFT_FAKE_CUDA_IS=card)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith("Fake GPU, ") and f"programs compiled for {taken}\n" in done.stdout


def test_without_cublaslt_only_products_fail(small: Path) -> None:
    done = run("driver/weft-run", small, cases="checks.zip", WEFT_LIBCUBLASLT="none")
    assert done.returncode == 1
    for line in done.stdout.splitlines()[1:-1]:
        if "product" in line:
            assert "FAILED cuda: the program multiplies matrices, which needs cuBLASLt: WEFT_LIBCUBLASLT" in line
        else:
            assert " right " in line


def test_files_that_are_no_cases(small: Path, tmp_path: Path) -> None:
    def says(message: str) -> None:
        done = run("driver/weft-run", tmp_path, WEFT_FAKE_CUDA_BUNDLE=str(small / "copy.sm_90a.weftb"))
        assert done.returncode == 1 and message in done.stdout + done.stderr, done.stdout + done.stderr

    path = tmp_path / "selftest.zip"
    says("there is no ")
    path.write_bytes(b"PK")
    says("this is no .npz archive")
    with zipfile.ZipFile(small / "selftest.zip") as archive:
        files = {name: archive.read(name) for name in archive.namelist() if name.startswith("copy.")}
    for cases, message in [
        ("targets sm_90a\ncopy copy 0 0\n", "1 of 1 are right"),
        ("targets sm_90a\n", "0 of 0 are right"),
        ("targets sm_90a\ncopy copy 0\n", 'cannot read the line "copy copy 0"'),
        ("targets sm_90a\ncheck another 0 0\n", "has no file another.sm_90a.weftb"),
    ]:
        path.write_bytes(selftest_cases.archive({**files, "cases.txt": cases.encode()}))
        if cases.endswith("copy 0 0\n"):
            done = run("driver/weft-run", tmp_path, WEFT_FAKE_CUDA_BUNDLE=str(small / "copy.sm_90a.weftb"))
            assert done.returncode == 0 and message in done.stdout
        else:
            says(message)


def test_large_kernels_assemble_without_spills(tmp_path: Path) -> None:
    """Those alone that do not run here under emulation."""
    ptxas = next((p for p in (shutil.which("ptxas"), "/usr/local/cuda/bin/ptxas") if p and os.path.exists(p)), None)
    if ptxas is None:
        pytest.skip("there is no ptxas")
    for case in selftest_cases.figures(small=False):
        for target in selftest_cases.TARGETS:
            lowered = weft.jit(case.program).lower(*(a.spec for a in case.arguments), target=f"cuda:{target}")
            (tmp_path / "f.ptx").write_text(lowered.stage("ptx"))
            command = [ptxas, "-v", f"-arch={target}", tmp_path / "f.ptx", "-o", tmp_path / "f.cubin"]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            kernels = re.findall(r"(\d+) bytes stack frame, (\d+) bytes spill stores", done.stderr)
            assert all(k == ("0", "0") for k in kernels) and (len(kernels) == 1 or case.kind == "copy"), done.stderr


def test_bundles_run_as_by_the_whole_tool(small: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(small / "selftest.zip") as archive:
        for name in ("in.0", "out.0"):
            (tmp_path / f"{name}.npy").write_bytes(archive.read(f"softmax_of_333.{name}.npy"))
    for program in ("driver/weft-run", "driver/weft"):
        command = [program, "run", small / "softmax_of_333.sm_90a.weftb", "--device=emulation"]
        command += [f"--inputs={tmp_path / 'in.0.npy'}", f"--outputs={tmp_path / Path(program).name}"]
        subprocess.run(command, check=True, env=dict(os.environ))
    one, other = ((tmp_path / tool / "0.npy").read_bytes() for tool in ("weft-run", "weft"))
    assert one == other
