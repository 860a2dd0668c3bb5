"""The command `weft`: files that are damaged or of another kind, and what `opt` reports."""

import io
import zipfile

import numpy as np
import pytest

import weft
import weft.numpy as wnp
from weft.__main__ import main


@pytest.fixture
def program(tmp_path):
    path = tmp_path / "f.weft"
    path.write_text(weft.make_ir(lambda x: wnp.tanh(x + 0) * 2)(wnp.ones(3)).text)
    return str(path)


def _archive(**files):
    out = io.BytesIO()
    np.savez(out, **files)
    return out.getvalue()


def _zip(files, method=zipfile.ZIP_STORED):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return out.getvalue()


def _npy(x, **options):
    out = io.BytesIO()
    np.save(out, x, **options)
    return out.getvalue()


_X = np.arange(3, dtype=np.float32)
_WHOLE = _archive(x=_X)
_NPY = _npy(_X)
_PACKED = _zip({"x.npy": _NPY * 40}, zipfile.ZIP_DEFLATED)
_DAMAGED = {
    "empty": b"",
    "cut.npz": _WHOLE[:-30],
    "half.npz": _WHOLE[: len(_WHOLE) // 2],
    "crc.npz": _WHOLE.replace(_X.tobytes(), _X.tobytes()[::-1]),
    "name.npz": _WHOLE.replace(b"x.npy", b"y.npy", 1),
    "packed.npz": _PACKED[:50] + b"\xff" * 8 + _PACKED[58:],
    "text.npz": _zip({"x.npy": b"no array"}),
    "objects.npy": _npy(np.array([None]), allow_pickle=True),
    "cut.npy": _NPY[:-4],
    "header.npy": _NPY.replace(b"{", b"("),
    "sizes.npy": _NPY.replace(b"(3,)", b"(3,3"),
    "huge.npy": _NPY.replace(b"(3,), }          ", b"(9999999999999,)}"),
    "version.npy": _NPY[:6] + b"\x09" + _NPY[7:],
    "noise": bytes(range(256)),
}


@pytest.mark.parametrize("name", _DAMAGED)
def test_damaged_inputs_are_a_sentence(name, program, tmp_path, capsys):
    path = tmp_path / name
    path.write_bytes(_DAMAGED[name])
    assert main(["run", program, "--inputs", str(path)]) == 1
    error = capsys.readouterr().err
    assert error.startswith("weft: ") and f"{path} is not a whole .npz or .npy file of numbers: " in error, error


def test_a_file_that_is_not_there(program, tmp_path, capsys):
    assert main(["run", program, "--inputs", str(tmp_path / "none.npy")]) == 1
    assert "No such file" in capsys.readouterr().err


def two_results(x, y):
    return wnp.tanh(x) @ y, x.sum()


@pytest.fixture
def exported(tmp_path):
    path = str(tmp_path / "f.weftb")
    weft.jit(two_results).lower(wnp.ones((2, 3)), wnp.ones(3)).export(path)
    return path


def test_bundles_run(exported, tmp_path, capsys):
    x, y = np.random.RandomState(0).randn(2, 3).astype("float32"), np.arange(3, dtype="float32")
    np.save(tmp_path / "x.npy", x)
    np.save(tmp_path / "y.npy", y)
    np.savez(tmp_path / "named.npz", y=y, x=x)
    np.savez(tmp_path / "numbered.npz", x, y)
    files = [["x.npy", "y.npy"], ["named.npz"], ["numbered.npz"]]
    for number, inputs in enumerate(files):
        out = tmp_path / str(number)
        given = ["--inputs", *(str(tmp_path / name) for name in inputs), "--outputs", str(out), "--device=cpu"]
        assert main(["run", exported, *given]) == 0
        np.testing.assert_allclose(np.load(out / "0.npy"), np.tanh(x) @ y, rtol=1e-5)
        np.testing.assert_allclose(np.load(out / "1.npy"), x.sum(), rtol=1e-5)
    capsys.readouterr()
    assert main(["run", exported, "--inputs", str(tmp_path / "named.npz")]) == 0
    assert capsys.readouterr().out.startswith("result 0: f32[2]\n[")


def test_bundles_that_do_not_run(exported, program, tmp_path, capsys):
    np.save(tmp_path / "x.npy", np.ones((2, 3), "float32"))
    np.save(tmp_path / "wrong.npy", np.ones((3, 3), "float32"))
    np.save(tmp_path / "y.npy", np.ones(3, "float32"))
    x, y, wrong = (str(tmp_path / f"{name}.npy") for name in ("x", "y", "wrong"))
    (tmp_path / "damaged.weftb").write_bytes(b"weft bundle\n" + bytes(64))
    for arguments, error in [
        ([str(tmp_path / "damaged.weftb")], "damaged.weftb"),
        ([exported, "--inputs", x], "two_results takes 2 arrays (f32[2,3], f32[3]), --inputs names 1"),
        ([exported, "--inputs", x, wrong], "f32[3]"),
        ([exported, "--inputs", x, str(tmp_path / "none.npy")], "none.npy"),
        ([exported, "--interpret"], "--interpret: a bundle holds no program that could be interpreted"),
        ([exported, "--inputs", x, y, "--device=cuda"], "cuda"),
        ([program, "--inputs", x, "--device=cpu"], f"--device is for bundles; {program} is a program"),
    ]:
        assert main(["run", *arguments]) == 1, arguments
        said = capsys.readouterr().err
        assert said.startswith("weft: ") and error in said, said
    assert main(["opt", exported]) == 1
    assert "f.weftb is a bundle, a compiled program, which `weft run` takes" in capsys.readouterr().err


def test_what_opt_reports(program, capsys):
    assert main(["opt", program]) == 0
    plain = capsys.readouterr()
    assert plain.err == ""
    assert main(["opt", program, "--timing", "--dump-after=all"]) == 0
    reported = capsys.readouterr()
    assert reported.out == plain.out
    names = weft._weft.default_passes()
    lines = reported.err.splitlines()
    assert [line[len("# after ") :] for line in lines if line.startswith("# after ")] == names
    table = lines[-len(names) - 2 :]
    assert table[0].split() == ["ms", "share", "equations", "left", "pass"]
    assert [row.split()[-1] for row in table[1:]] == [*names, "together"]
    assert main(["opt", program, "--passes=cse,simplify", "--dump-after=simplify"]) == 0
    only = capsys.readouterr()
    assert only.err.count("# after ") == 1 and only.out in only.err
    assert main(["opt", program, "--dump-after=no-such"]) == 1
    assert "no-such" in capsys.readouterr().err
