"""The cache folder in every bad state: programs give the right numbers, with at most one warning, and what does not
check out is not run. Each case is a process of its own, since a process looks at its folder once."""

import os
import shutil
import stat
import subprocess
import sys

import pytest

PROGRAM = """
import numpy as np, weft, weft.numpy as wnp
x = np.linspace(0, 1, 1000, dtype=np.float32)
for k in range(3):
    f = weft.jit(lambda v: wnp.sin(v) * (k + 2))
    np.testing.assert_allclose(np.asarray(f(x)), np.sin(x) * (k + 2), rtol=1e-5)
    print(f.explain()[0]["compile_milliseconds"] > 0)
"""


def run(folder=None, more="", **environment):
    """Runs the program, and `more` after it, with the folder as its cache; what it wrote to stderr."""
    env = {k: v for k, v in os.environ.items() if k not in ("WEFT_CACHE_DIR", "XDG_CACHE_HOME", "HOME")}
    env["PYTHONPATH"] = os.pathsep.join(sys.path)
    if folder is not None:
        env["WEFT_CACHE_DIR"] = str(folder)
    env |= {k: str(v) for k, v in environment.items()}
    done = subprocess.run(
        [sys.executable, "-P", "-c", PROGRAM + more], env=env, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return done.stderr


def entries(folder):
    return sorted(folder.glob("*.weft"))


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    """A folder that the program has filled."""
    path = tmp_path_factory.mktemp("filled") / "cache"
    assert run(path) == ""
    assert len(entries(path)) == 3
    return path


@pytest.fixture
def folder(filled, tmp_path):
    """A copy of it, with its modes."""
    return shutil.copytree(filled, tmp_path / "cache")


def state(folder):
    return {e.name: (e.stat().st_ino, e.stat().st_mtime_ns) for e in entries(folder)}


def test_a_second_process_writes_nothing(folder):
    before = state(folder)
    assert run(folder) == ""
    assert state(folder) == before
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert all(stat.S_IMODE(e.stat().st_mode) == 0o600 for e in entries(folder))
    assert sorted(folder.iterdir()) == entries(folder)  # no temporary files


def test_parts_of_large_arrays_take_no_program_each(folder):
    """... as an index in the program would: each one compiled is an entry."""
    before = state(folder)
    more = """
a = np.arange(30000, dtype=np.float32).reshape(3000, 10)
b = wnp.array(a)
for row, want in zip(b, a):
    np.testing.assert_array_equal(row, want)
for i in range(0, 2990, 99):
    np.testing.assert_array_equal(b[i], a[i])
    np.testing.assert_array_equal(b[i : i + 9, 2:5], a[i : i + 9, 2:5])
    np.testing.assert_array_equal(b[wnp.array([i, 1])], a[[i, 1]])
"""
    assert run(folder, more) == ""
    assert state(folder) == before


def flip(at):
    def damage(data):
        at_ = at % len(data)
        return data[:at_] + bytes([data[at_] ^ 1]) + data[at_ + 1 :]

    return damage


DAMAGE = {
    "empty": lambda data: b"",
    "half": lambda data: data[: len(data) // 2],
    "one byte short": lambda data: data[:-1],
    "one byte more": lambda data: data + b"\0",
    "zeros": lambda data: bytes(len(data)),
    "text": lambda data: b"not a cache entry",
    "magic": flip(3),
    "version": lambda data: data.replace(b"weft artifact 1", b"weft artifact 9", 1),
    "digest": flip(20),
    "length": flip(82),
    "key": flip(120),
    "code": flip(-100),
    "end": flip(-1),
    "a shared object": lambda data: b"\x7fELF" + data[4:],
}


# A different one for each of the program's entries.
@pytest.mark.parametrize("damages", [list(DAMAGE)[i : i + 3] for i in range(0, len(DAMAGE), 3)], ids=" & ".join)
def test_damaged_entries_are_replaced(folder, damages):
    for e, damage in zip(entries(folder), damages):
        e.write_bytes(DAMAGE[damage](e.read_bytes()))
    damaged = state(folder)
    assert run(folder) == ""
    after = state(folder)
    assert set(after) == set(damaged)
    assert [after[n] != damaged[n] for n in sorted(damaged)] == [i < len(damages) for i in range(3)]
    assert run(folder) == "" and state(folder) == after


def sealed(body):
    """An entry whose digest fits: what a program that writes entries of its own would make."""
    import hashlib

    return b"weft artifact 1\n" + hashlib.sha256(body).hexdigest().encode() + body


@pytest.mark.parametrize(
    "what", ["another program's", "another build's", "another CPU's", "garbage with the right key"]
)
def test_foreign_entries_are_not_run(folder, what):
    names = [e.name for e in entries(folder)]
    good = [e.read_bytes() for e in entries(folder)]
    for i, e in enumerate(entries(folder)):
        body = good[i][16 + 64 :]
        if what == "another program's":
            e.write_bytes(good[(i + 1) % len(good)])
            continue
        length = int.from_bytes(body[:8], "little")
        key, artifact = body[8 : 8 + length], body[8 + length :]
        if what == "another build's":
            assert b"\nbuild " in key
            key = key.replace(b"\nbuild ", b"\nbuild 9", 1)
        elif what == "another CPU's":
            assert b"+sse4.2" in key
            key = key.replace(b"+sse4.2", b"+sse4.9", 1)
        else:
            artifact = bytes(reversed(artifact))
        e.write_bytes(sealed(len(key).to_bytes(8, "little") + key + artifact))
    before = state(folder)
    assert run(folder) == ""
    after = state(folder)
    assert sorted(after) == sorted(names) and all(after[n] != before[n] for n in names)
    # What was written now is as it was first.
    assert [e.read_bytes() for e in entries(folder)] == good


def test_an_entry_of_an_absurd_size(folder):
    """Its size is not believed: no memory is taken for it, and it is replaced."""
    import resource

    before = state(folder)
    for entry in entries(folder):
        os.truncate(entry, 60 << 30)  # a hole
    limit = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (24 << 30, limit[1]))
    try:
        assert run(folder) == ""
    finally:
        resource.setrlimit(resource.RLIMIT_AS, limit)
    assert state(folder).keys() == before.keys() and all(e.stat().st_size < 1 << 20 for e in entries(folder))


def test_entries_that_are_no_files(folder):
    for e, make in zip(entries(folder), [lambda e: e.mkdir(), lambda e: e.symlink_to("/dev/zero"), os.mkfifo]):
        e.unlink()
        make(e)
    run(folder)  # neither hangs nor fails; that the folder in the way stays may be said


def test_entries_of_somebody_else(folder):
    if os.geteuid() != 0:
        pytest.skip("only root can give files away")
    for e in entries(folder):
        os.chown(e, 65534, 65534)
    before = state(folder)
    assert run(folder) == ""
    after = state(folder)
    assert all(after[n] != before[n] for n in after)
    assert all(e.stat().st_uid == 0 for e in entries(folder))


def test_a_folder_of_somebody_else(folder):
    if os.geteuid() != 0:
        pytest.skip("only root can give folders away")
    os.chown(folder, 65534, 65534)
    before = state(folder)
    assert "belongs to somebody else" in run(folder)
    assert state(folder) == before


def test_a_folder_that_others_can_write(folder):
    folder.chmod(0o777)
    assert "can be written by others" in run(folder)


@pytest.mark.parametrize("levels", [1, 2, 3])
@pytest.mark.parametrize("mode", [0o777, 0o775, 0o770, 0o757])
def test_folders_above_that_others_can_write(filled, tmp_path, levels, mode):
    """Others could put a folder of theirs in its place."""
    path = tmp_path / "a" / "b" / "c" / "cache"
    path.parent.mkdir(parents=True)
    shutil.copytree(filled, path)
    path.parents[levels - 1].chmod(mode)
    before = state(path)
    warning = run(path)
    assert f"lies in {path.parents[levels - 1]}, which can be written by others" in warning, warning
    assert warning.count("\n") == 1 and state(path) == before
    path.parents[levels - 1].chmod(0o1777)  # as /tmp is
    assert run(path) == "" and state(path) == before


def test_folders_above_of_somebody_else(filled, tmp_path):
    if os.geteuid() != 0:
        pytest.skip("only root can give folders away")
    path = tmp_path / "a" / "cache"
    path.parent.mkdir()
    shutil.copytree(filled, path)
    os.chown(path.parent, 65534, 65534)
    assert f"lies in {path.parent}, which belongs to somebody else; compiling without it" in run(path)


def test_folders_above_that_are_links(filled, tmp_path):
    """What counts is where the folder lies, not how it is called."""
    (tmp_path / "real").mkdir()
    shutil.copytree(filled, tmp_path / "real" / "cache")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    before = state(tmp_path / "real" / "cache")
    assert run(tmp_path / "link" / "cache") == "" and state(tmp_path / "real" / "cache") == before
    (tmp_path / "real").chmod(0o777)
    assert "can be written by others" in run(tmp_path / "link" / "cache")


def test_a_folder_that_is_exchanged_later(folder):
    """What was judged is what is used, whatever its name is then."""
    more = f"""
import os
os.rename({str(folder)!r}, {str(folder) + "-moved"!r})
os.mkdir({str(folder)!r}, 0o777)
f = weft.jit(lambda v: wnp.cos(v) * 17)
np.testing.assert_allclose(np.asarray(f(x)), np.cos(x) * 17, rtol=1e-5)
"""
    assert run(folder, more) == ""
    assert entries(folder) == [] and len(entries(folder.parent / (folder.name + "-moved"))) == 4


def test_descriptors_that_the_program_closes(folder):
    """... and opens anew, as others: as programs do that become daemons."""
    more = """
import os
from pathlib import Path
here = Path("mine")
os.chdir(os.environ["WEFT_CACHE_DIR"] + "/..")
here.mkdir()
open_before = [int(fd) for fd in os.listdir("/proc/self/fd")]
os.closerange(3, 4096)
fds = [os.open(here, os.O_RDONLY) for _ in range(20)]
f = weft.jit(lambda v: wnp.cos(v) * 17)
np.testing.assert_allclose(np.asarray(f(x)), np.cos(x) * 17, rtol=1e-5)
assert os.listdir(here) == []
for fd in fds:
    os.fstat(fd)  # still open
"""
    assert run(folder, more) == ""
    assert len(entries(folder)) == 4


def test_what_killed_processes_left(folder):
    """Unfinished entries: swept when they are old, by the next one that writes there."""
    import time

    old = time.time() - 7200
    for name in ("old", "new"):
        (folder / f".new-{name}").write_text("unfinished")
    os.utime(folder / ".new-old", (old, old))
    assert run(folder, "f = weft.jit(lambda v: wnp.cos(v) * 17)\nf(x)\n") == ""
    assert not (folder / ".new-old").exists() and (folder / ".new-new").exists()


def test_a_folder_that_is_a_link(folder):
    link = folder.parent / "link"
    link.symlink_to(folder)
    assert run(link).count("\n") == 1


def test_a_folder_that_is_a_file(tmp_path):
    path = tmp_path / "file"
    path.write_text("mine")
    warning = run(path)
    assert "is not a folder" in warning and warning.count("\n") == 1
    assert path.read_text() == "mine"


def test_a_folder_that_cannot_be_made(tmp_path):
    (tmp_path / "file").write_text("mine")
    warning = run(tmp_path / "file" / "cache")
    assert "cannot be made; compiling without it" in warning and warning.count("\n") == 1


@pytest.mark.parametrize("variable", ["WEFT_CACHE_DIR", "XDG_CACHE_HOME"])
def test_folders_above_are_made(tmp_path, variable):
    folder = tmp_path / "a" / "b"
    assert run(**{variable: folder}) == ""
    path = folder if variable == "WEFT_CACHE_DIR" else folder / "weft"
    assert len(entries(path)) == 3 and stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o700


def test_a_folder_that_cannot_be_written(tmp_path):
    path = tmp_path / "cache"
    path.mkdir(mode=0o700)
    if os.geteuid() == 0:
        # Root may write everywhere but to a file system mounted read-only.
        path = "/proc/sys" if os.path.isdir("/proc/sys") else "/sys"
    else:
        path.chmod(0o500)
    warning = run(path)
    assert "compiling without it" in warning and warning.count("\n") == 1


def test_no_room_for_any_file():
    """Without the cache nothing that is compiled goes through a file."""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "WEFT_CACHE_DIR": "off"}
    command = ["/bin/bash", "-c", "trap '' XFSZ; ulimit -f 0; exec \"$@\"", "run", sys.executable, "-P", "-c", PROGRAM]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


def test_a_full_file_system(tmp_path):
    mount, umount = shutil.which("mount"), shutil.which("umount")
    path = tmp_path / "cache"
    path.mkdir(mode=0o700)
    # Of the program's three files, one page holds one at the most.
    made = mount and subprocess.run([mount, "-t", "tmpfs", "-o", "size=4k,mode=700", "none", path], capture_output=True)
    if not made or made.returncode != 0:
        pytest.skip("no file system can be mounted here")
    try:
        warning = run(path)
        assert "compiling without it" in warning and warning.count("\n") == 1
        assert not list(path.glob(".new*"))
    finally:
        subprocess.run([umount, path], check=True)


@pytest.mark.parametrize(
    "environment", [{}, {"HOME": ""}, {"HOME": "/nonexistent"}, {"HOME": "/dev/null"}, {"XDG_CACHE_HOME": "/dev/null"}]
)
def test_no_home(environment):
    assert run(**environment).count("\n") <= 1


def test_off(tmp_path):
    assert run("off", HOME=tmp_path) == ""
    assert list(tmp_path.iterdir()) == []


def test_the_folder_of_the_user(tmp_path):
    assert run(HOME=tmp_path) == ""
    assert len(entries(tmp_path / ".cache" / "weft")) == 3
    assert run(XDG_CACHE_HOME=tmp_path / "x", HOME="/nonexistent") == ""
    assert len(entries(tmp_path / "x" / "weft")) == 3


def test_many_processes_at_once(tmp_path):
    path = tmp_path / "cache"
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "WEFT_CACHE_DIR": str(path)}
    processes = [
        subprocess.Popen([sys.executable, "-P", "-c", PROGRAM], env=env, stderr=subprocess.PIPE, stdout=subprocess.PIPE)
        for _ in range(6)
    ]
    for p in processes:
        _, err = p.communicate(timeout=120)
        assert (p.returncode, err) == (0, b"")
    assert len(entries(path)) == 3 and sorted(path.iterdir()) == entries(path)


MORE = "\nnp.testing.assert_allclose(np.asarray(weft.jit(lambda v: wnp.cos(v) - 7)(x)), np.cos(x) - 7, rtol=1e-5)"


def test_the_least_recently_used_go_first(folder):
    size = sum(e.stat().st_size for e in entries(folder))
    for e in entries(folder):
        os.utime(e, ns=(10**18, e.stat().st_mtime_ns))
    unread = folder / ("0" * 64 + ".weft")
    unread.write_bytes(b"x" * 1000)
    os.utime(unread, ns=(10**18, 10**18))
    first = entries(folder)
    # There is room: nothing goes, and reading shows in the time of the last access, wherever the folder lies.
    assert run(folder, more=MORE, WEFT_CACHE_BYTES=10 * size) == ""
    (written,) = set(entries(folder)) - set(first)
    read = set(first) - {unread}
    assert unread in entries(folder) and all(e.stat().st_atime_ns > 1.5 * 10**18 for e in read)
    # There is none for the fourth: the one that nobody reads goes first, and then one that was read before it came.
    written.unlink()
    assert run(folder, more=MORE, WEFT_CACHE_BYTES=size + size // 4) == ""
    left = set(entries(folder))
    assert unread not in left and written in left and 0 < len(read & left) < 3
    # What went is made again.
    assert run(folder) == "" and read <= set(entries(folder))


def test_a_limit_that_is_no_number(tmp_path):
    said = run(tmp_path / "cache", WEFT_CACHE_BYTES="4 GiB")
    assert said.count("WEFT_CACHE_BYTES is '4 GiB'; expected a whole number") == 1 and len(said.splitlines()) == 1
