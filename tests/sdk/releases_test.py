"""The promise of sdk/version.bzl: a plugin that was written for a released version builds today and computes what it
did, and one that was built for a version of the same first number finds what it needs.

A folder of tests/sdk/releases holds what a release froze: plugin.cc, and abi.txt, the layout that its plugins carry
(PluginLayout in sdk/plugin.h) and the symbols that they ask the loading Weft for. A release adds one; where abi.txt is
missing or of another layout, the test says what a plugin has that is built today.
"""

import re
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

_ROOT = Path.cwd()  # of the runfiles
_RELEASES = sorted((_ROOT / "tests/sdk/releases").iterdir())
_MAGIC = b"\x7fWEFT PLUGIN \x01\x02\0"


def _must(*command):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
    return done.stdout


def _version():
    text = (_ROOT / "sdk/version.bzl").read_text(encoding="utf-8")
    return tuple(int(re.search(rf"^SDK_{part} = (\d+)$", text, re.MULTILINE)[1]) for part in ("MAJOR", "MINOR"))


def _installed(folder):
    _must(sys.executable, _ROOT / "sdk/install.py", f"--prefix={folder}")
    return folder


def _built(sdk, release, folder):
    plugin = folder / "plugin.so"
    flags = ["-std=c++20", f"-I{sdk / 'include/weft'}", "-fPIC", "-shared", "-O1"]
    _must("g++", *flags, release / "plugin.cc", "-o", plugin)
    return plugin


def _symbols(file, kind):
    """Of Weft's own names those that the file defines, or asks for."""
    lines = _must("nm", "-D", f"--{kind}-only", file).split()
    return {name for name in lines if re.match(r"_Z.*4weft", name)}


def _abi_of_compiler():
    """The number of the compiler's own ABI, which is part of the layout."""
    command = ["g++", "-dM", "-E", "-x", "c++", "/dev/null"]
    return re.search(r"#define __GXX_ABI_VERSION (\d+)", _must(*command))[1]


def _abi(plugin):
    """Version, layout and symbols of a plugin, as abi.txt has them."""
    data = plugin.read_bytes()
    major, minor, layout = struct.unpack_from("<IIQ", data, data.index(_MAGIC) + len(_MAGIC))
    return [
        f"version {major}.{minor}",
        f"layout {layout:016x} of ABI {_abi_of_compiler()}",
        *sorted(_symbols(plugin, "undefined")),
    ]


@pytest.fixture(scope="session")
def sdk(tmp_path_factory):
    return _installed(tmp_path_factory.mktemp("sdk") / "installed")


@pytest.fixture(scope="session", params=_RELEASES, ids=lambda folder: folder.name)
def release(request, sdk, tmp_path_factory):
    """A release's folder, and its plugin built against today's headers."""
    return request.param, _built(sdk, request.param, tmp_path_factory.mktemp("built"))


def test_there_is_a_release_to_compare_with():
    assert _RELEASES
    assert max(tuple(map(int, folder.name.split("."))) for folder in _RELEASES) <= _version()


_PROGRAM = """fn f(x: f64[3]) -> (f64[3], f64[3]) {
  a: f64[3] = neg x
  b: f64[3] = release_half_square a
  c: f64[3] = exp2 x
  d: f64[3] = release_scaled[by=3.0] c
  e: f64[3] = release_scaled[by=1.0] d
  return b, e
}
"""


def test_its_plugin_builds_and_computes(sdk, release, tmp_path):
    _, plugin = release
    program, x = tmp_path / "f.weft", np.array([-1.0, 0.5, 3.0])
    program.write_text(_PROGRAM, encoding="utf-8")
    np.save(tmp_path / "x.npy", x)
    weft, load = sdk / "bin/weft", f"--load={plugin}"
    for more in ([], ["--interpret"]):
        _must(weft, "run", program, load, "--inputs", tmp_path / "x.npy", "--outputs", tmp_path / "out", *more)
        np.testing.assert_allclose(np.load(tmp_path / "out/0.npy"), x * x / 2, rtol=1e-15)
        np.testing.assert_allclose(np.load(tmp_path / "out/1.npy"), 3 * 2**x, rtol=1e-14)
    text = _must(weft, "opt", program, load, "--passes=simplify,release-exp2-by-exp,dce")
    assert "neg" not in text, "the rule release-half-square-of-neg"
    assert text.count("release_scaled") == 1, "the rule release-scaled-by-one"
    assert "exp2" not in text, "the pass release-exp2-by-exp"
    (tmp_path / "g.weft").write_text(
        "fn g(x: f64[3]) -> (f64[3]) {\n  a: f64[3] = release_half_square x\n  return a\n}\n", encoding="utf-8"
    )
    gradient = _must(weft, "opt", tmp_path / "g.weft", load, "--passes=jvp(0),dce")
    assert "mul" in gradient


def test_its_binaries_find_what_they_need(sdk, release):
    folder, plugin = release
    today = _abi(plugin)
    file = folder / "abi.txt"
    assert file.exists(), "abi.txt of a plugin that is built today:\n" + "\n".join(today)
    version, layout, *symbols = file.read_text(encoding="utf-8").splitlines()
    assert version == f"version {folder.name}"
    if int(folder.name.split(".")[0]) != _version()[0]:
        pytest.skip("of another first number: such plugins are built anew")
    if layout.split()[-1] == _abi_of_compiler():
        assert layout == today[1], "structures of the headers have changed: SDK_MAJOR in sdk/version.bzl has to grow"
    missing = set(symbols) - _symbols(sdk / "bin/weft", "defined")
    assert not missing, "functions of the headers are gone: SDK_MAJOR in sdk/version.bzl has to grow"
