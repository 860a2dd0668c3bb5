"""./bazelw where something is missing: each failure is one clear sentence. It runs in a copy of its surroundings, with
stand-ins for the programs it calls."""

import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest

DEBIAN = 'ID=debian\nVERSION_ID="12"\nPRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\n'
NOBODY = 65534


class Machine:
    """A folder with bazelw, and a PATH of the usual tools and stand-ins."""

    def __init__(self, folder: Path):
        self.root = folder / "weft"
        self.bin = folder / "bin"
        self.home = folder / "home"
        for path in (self.root / "third_party", self.bin, self.home):
            path.mkdir(parents=True)
        self.release = folder / "os-release"
        self.release.write_text(DEBIAN)
        (self.root / "bazelw").write_text(Path("bazelw").read_text())
        self.calls("/etc/os-release", self.release)
        self.calls("bazel=/usr/bin/bazel-4", f"bazel={self.bin}/bazel-4")
        (self.root / "third_party/apt-packages.txt").write_text("# needed\nclang\nlibfoo-dev\n")
        (self.root / "third_party/requirements.txt").write_text("weft-has-no-such-package==1.0\n")
        (self.root / "third_party/requirements-test.txt").write_text("")
        for tool in [
            "bash",
            "sh",
            "env",
            "cat",
            "cut",
            "comm",
            "sort",
            "sed",
            "grep",
            "awk",
            "tail",
            "tr",
            "sleep",
            "mktemp",
            "mkdir",
            "mv",
            "rm",
            "touch",
            "find",
            "flock",
            "date",
            "head",
            "df",
            "xargs",
        ]:
            path = shutil.which(tool)
            if path:
                (self.bin / tool).symlink_to(path)
        for tool in ["ln", "dirname", "basename", "getent", "id", "nproc", "sha256sum", "chmod", "kill", "printf"]:
            (self.bin / tool).symlink_to(shutil.which(tool))
        self.fake("uname", "echo x86_64")
        self.fake("dpkg-query", "echo 'installed clang'; echo 'installed libfoo-dev'")
        self.fake("bazel-4", 'echo "bazel got: $*"')

    def fake(self, name: str, body: str):
        path = self.bin / name
        path.unlink(missing_ok=True)
        path.write_text(f"#!/bin/bash\n{body}\n")
        path.chmod(0o755)

    def calls(self, old, new):
        """Something else in the place of what the text of bazelw names."""
        text = (self.root / "bazelw").read_text()
        assert old in text
        (self.root / "bazelw").write_text(text.replace(old, str(new)))

    def run(self, *args, user=None, **environment):
        if user is not None:
            for path in [self.root.parent, *self.root.parent.rglob("*")]:
                if not path.is_symlink():
                    os.chown(path, user, user)
            parent = self.root.parent
            while parent != Path("/") and parent != parent.parent:
                if parent.stat().st_uid == os.geteuid():
                    parent.chmod(parent.stat().st_mode | 0o011)
                parent = parent.parent
        env = {"PATH": str(self.bin), "HOME": str(self.home), **environment}
        return subprocess.run(
            ["/bin/bash", str(self.root / "bazelw"), *args],
            env=env,
            capture_output=True,
            text=True,
            timeout=240,
            user=user,
            group=user,
            extra_groups=[] if user is not None else None,
            stdin=subprocess.DEVNULL,
            cwd=self.root,
        )


@pytest.fixture
def machine(tmp_path):
    return Machine(tmp_path)


def sentence(done):
    """The one sentence of a failed run."""
    assert done.returncode == 1, done.stderr
    lines = [line for line in done.stderr.splitlines() if line.startswith("bazelw: ")]
    assert len(lines) == 1 and done.stderr.splitlines()[-1] == lines[0], done.stderr
    assert done.stdout == ""
    return lines[0]


@pytest.mark.parametrize(
    "text, name",
    [
        ('ID=ubuntu\nVERSION_ID="22.04"\nPRETTY_NAME="Ubuntu 22.04.4 LTS"\n', "Ubuntu 22.04.4 LTS"),
        (DEBIAN.replace('"12"', '"11"').replace("12 (bookworm)", "11 (bullseye)"), "Debian GNU/Linux 11 (bullseye)"),
        ("", "this system"),
    ],
)
def test_wrong_system(machine, text, name):
    machine.release.write_text(text)
    assert sentence(machine.run("test")) == f"bazelw: Weft builds on Debian 12 (bookworm); this is {name}."


def test_wrong_processor(machine):
    machine.fake("uname", "echo aarch64")
    assert sentence(machine.run("test")) == "bazelw: Weft builds on x86-64; this machine is aarch64."


def test_no_root(machine):
    if os.geteuid() != 0:
        pytest.skip("needs root to become somebody else")
    machine.fake("dpkg-query", "echo 'installed clang'")
    said = sentence(machine.run("test", user=NOBODY))
    assert "only root can install them (there is no sudo): libfoo-dev" in said
    machine.fake("sudo", "echo 'sudo: a password is required' >&2; exit 1")
    said = sentence(machine.run("test", user=NOBODY))
    assert "sudo asks for a password that nobody can type here: libfoo-dev" in said


APT_WITHOUT_NETWORK = """
echo "Err:1 http://deb.debian.org/debian bookworm InRelease"
echo "  Temporary failure resolving 'deb.debian.org'"
echo "E: Failed to fetch http://deb.debian.org/x.deb  Temporary failure resolving 'deb.debian.org'" >&2
exit 100
"""


def as_root(machine):
    """Root already, or a sudo that lets everything through."""
    machine.fake("sudo", 'while [[ "${1:-}" == -* ]]; do shift; done; exec "$@"')


def test_no_network_for_debian_packages(machine):
    as_root(machine)
    machine.fake("dpkg-query", "echo 'installed clang'")
    machine.fake("apt-get", APT_WITHOUT_NETWORK)
    said = sentence(machine.run("test"))
    assert said.startswith("bazelw: Debian's package server cannot be reached") and "libfoo-dev" in said


def test_a_package_that_does_not_install(machine):
    as_root(machine)
    machine.fake("dpkg-query", "echo 'installed clang'")
    machine.fake("apt-get", "echo 'E: Unable to locate package libfoo-dev' >&2; exit 100")
    done = machine.run("test")
    assert "apt-get could not install these packages: libfoo-dev" in sentence(done)
    assert "Unable to locate package" in done.stderr


def test_no_network_for_python_packages(machine):
    # Nobody listens on this port.
    said = sentence(machine.run("test", PIP_INDEX_URL="http://127.0.0.1:9/simple", PIP_RETRIES="0"))
    assert said.startswith("bazelw: the Python package index cannot be reached")
    # Nothing half made is left that a later run would take for whole.
    assert not list(machine.home.glob(".cache/weft/venv-*/.complete"))


def test_no_network_for_oracles(machine):
    (machine.root / "third_party/requirements.txt").write_text("")
    (machine.root / "third_party/requirements-test.txt").write_text("weft-has-no-such-oracle==1.0\n")
    unreachable = {"PIP_INDEX_URL": "http://127.0.0.1:9/simple", "PIP_RETRIES": "0"}
    first = machine.run("test", **unreachable)
    assert (first.returncode, first.stdout) == (0, "bazel got: test\n"), first.stderr
    said = [line for line in first.stderr.splitlines() if line.startswith("bazelw: ")]
    assert len(said) == 1 and said[0].startswith(
        "bazelw: could not install: weft-has-no-such-oracle (tests that compare"
    )
    assert "weft-has-no-such-oracle" in said[0].partition("pip said: ")[2]
    # Not again on the same day, then once more.
    assert machine.run("test", **unreachable).stderr == ""
    (mark,) = machine.home.glob(".cache/weft/venv-*/.without-oracles")
    yesterday = mark.stat().st_mtime - 2 * 24 * 3600
    os.utime(mark, (yesterday, yesterday))
    again = machine.run("test", **unreachable)
    assert again.returncode == 0 and said[0] in again.stderr.splitlines()
    assert machine.run("test", **unreachable).stderr == ""


def test_everything_there(machine):
    (machine.root / "third_party/requirements.txt").write_text("")
    first = machine.run("test", "//...")
    assert (first.returncode, first.stdout) == (0, "bazel got: test //...\n")
    assert "Making a Python environment: done in" in first.stderr
    rc = machine.root / ".bazelrc.user"
    before = rc.stat()
    second = machine.run("run", "//examples:digits", "--", "a b")
    assert (second.returncode, second.stdout, second.stderr) == (0, "bazel got: run //examples:digits -- a b\n", "")
    assert rc.stat().st_mtime_ns == before.st_mtime_ns and rc.stat().st_ino == before.st_ino
    venv = machine.run("venv").stdout.strip()
    assert os.access(f"{venv}/bin/weft-python", os.X_OK)


@pytest.mark.parametrize("home", ["", "/proc/nonexistent", "/dev/null", "/"])
def test_no_home(machine, tmp_path, home):
    # An environment is a folder with a pip that has nothing to install; test_everything_there makes a real one.
    empty = 'if [[ "$*" == "-m venv "* ]]; then mkdir -p "$3/bin"; ln -s /bin/true "$3/bin/python3"; fi'
    machine.fake("python3", empty)
    machine.calls("python=/usr/bin/python3", f"python={machine.bin}/python3")
    machine.fake("getent", "exit 2")
    done = machine.run("info", HOME=home, TMPDIR=str(tmp_path))
    assert (done.returncode, done.stdout) == (0, "bazel got: info\n")
    assert list(tmp_path.glob("weft-home-*/.cache/weft/venv-*/.complete"))


def test_a_cache_folder_that_cannot_be_made(machine):
    (machine.root.parent / "file").write_text("")
    said = sentence(machine.run("test", XDG_CACHE_HOME=str(machine.root.parent / "file")))
    assert "the cache folder" in said and "cannot be made" in said


def settled(folder: Path, names: set[str]):
    """Waits for the deletions, which go on beside Bazel, and says what is left."""
    for _ in range(200):
        left = {path.name for path in folder.rglob("*") if path.is_file()}
        if left == names:
            break
        time.sleep(0.05)
    return left


def test_caches_stay_bounded(machine):
    (machine.root / "third_party/requirements.txt").write_text("")
    cache = machine.home / ".cache/weft"
    hours = {"now": 0, "an hour ago": 1, "two hours ago": 2, "yesterday": 24, "last month": 24 * 31}

    def fill(bazel, jax):
        shutil.rmtree(cache / "bazel", ignore_errors=True)
        (cache / "pruned").unlink(missing_ok=True)
        for folder, names in (("bazel/ac", bazel), ("jax", jax)):
            (cache / folder).mkdir(parents=True, exist_ok=True)
            for name in names:
                path = cache / folder / name
                path.touch()
                os.truncate(path, 3 << 30)  # holes: no room is taken
                os.utime(path, (time.time() - 3600 * hours[name],) * 2)

    def free(gibibytes):
        machine.fake("df", f"echo Avail; echo {int(gibibytes * (1 << 30))}")

    free(80)
    fill(hours, ["yesterday", "last month"])
    assert machine.run("test").stderr.endswith("s\n")  # of making the environment
    recent = {"now", "an hour ago", "two hours ago"}  # 9 GiB
    assert settled(cache / "bazel", recent) == recent
    assert settled(cache / "jax", {"yesterday"}) == {"yesterday"}

    # Not again within the hour, unless the disk fills up: 1 GiB is free, and 4 more shall be.
    (cache / "bazel/ac/yesterday").touch()
    os.utime(cache / "bazel/ac/yesterday", (0, 0))
    assert machine.run("test").stderr == ""
    time.sleep(0.5)
    assert settled(cache / "bazel", recent | {"yesterday"}) == recent | {"yesterday"}
    free(1.5)
    done = machine.run("test")
    assert done.returncode == 0 and done.stdout == "bazel got: test\n"
    assert done.stderr.startswith("bazelw: 1536 MiB are free on the disk of ")
    assert settled(cache / "bazel", {"now"}) == {"now"}
