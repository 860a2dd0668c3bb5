"""Programs that break the law of a transform are found, made smaller, and kept, so that they can be tried again."""

import subprocess
from pathlib import Path

import pytest

BINARY = Path("tests/property/chains_test").resolve()

# The derivative that this gives of the sine is twice what it is.
WRONG = """# seed 5, chain {chain}
fn f(x: f64[3]) -> (f64[3]) {{
  a: f64[3] = exp x
  b: f64[3] = mul x 0.5:f64
  c: f64[3] = custom_jvp b (x: f64[3]) -> (f64[3]) {{
    a: f64[3] = sin x
    return a
  }} (p: f64[3], t: f64[3]) -> (f64[3], f64[3]) {{
    a: f64[3] = sin p
    b: f64[3] = cos p
    c: f64[3] = mul t b
    d: f64[3] = mul c {factor}:f64
    return a, d
  }}
  d: f64[3] = cos a
  e: f64[3] = add c d
  return e
}}
"""


def run(*arguments: object) -> subprocess.CompletedProcess:
    command = [str(BINARY), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, env={})


@pytest.mark.parametrize("chain", ["jvp", "grad", "text,grad", "jvp,vmap"])
def test_a_wrong_derivative_is_found_shrunk_and_kept(tmp_path: Path, chain: str) -> None:
    program, kept = tmp_path / "wrong.weft", tmp_path / "kept"
    kept.mkdir()
    program.write_text(WRONG.format(chain=chain, factor=2.0))
    done = run(program, "--keep", kept)
    assert done.returncode == 1 and "1 programs, 1 failed" in done.stdout
    (file,) = kept.iterdir()
    text = file.read_text()
    assert file.name == "seed5.weft" and text.startswith(f"# seed 5, chain {chain}\n# ")
    assert "= custom_jvp " in text and "= exp " not in text and "= cos a" not in text  # what does not matter is zero
    again = run(file)
    assert again.returncode == 1 and "1 programs, 1 failed" in again.stdout


def test_a_right_derivative_is_not(tmp_path: Path) -> None:
    program = tmp_path / "right.weft"
    program.write_text(WRONG.format(chain="grad,jvp", factor=1.0))
    done = run(program, "--keep", tmp_path)
    assert (done.returncode, list(tmp_path.iterdir())) == (0, [program]), done.stderr


@pytest.mark.parametrize("text", ["fn f() -> () {\n  return\n}\n", "# seed 1, chain nonsense\nfn f() -> () {}\n", ""])
def test_what_cannot_be_tried(tmp_path: Path, text: str) -> None:
    program = tmp_path / "other.weft"
    program.write_text(text)
    done = run(program)
    assert done.returncode == 2 and done.stderr.startswith("chains_test: ")
