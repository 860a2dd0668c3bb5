"""Python environments for libraries of JAX, in Weft's cache folder: one for each list of packages."""

import hashlib
import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
# What pip says where there is no network.
_NO_NETWORK = (
    "NewConnectionError",
    "NameResolutionError",
    "Max retries exceeded",
    "ProxyError",
    "Temporary failure in name resolution",
    "Network is unreachable",
    "Connection timed out",
)


class NoNetwork(Exception):
    """PyPI cannot be reached."""


def _folder(requirements: str) -> Path:
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    texts = b"".join(path.read_bytes() for path in sorted(HERE.glob("requirements*.txt")))
    key = hashlib.sha256(texts + sys.version.encode() + requirements.encode()).hexdigest()[:16]
    return Path(cache) / "weft" / f"compat-{key}"


def _run(command: list[str]) -> None:
    clean = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME")}
    done = subprocess.run(command, capture_output=True, text=True, env={**clean, "PIP_USER": "0"}, cwd=HERE)
    if done.returncode == 0:
        return
    said = done.stdout + done.stderr
    if any(text in said for text in _NO_NETWORK):
        raise NoNetwork(said.strip().splitlines()[-1])
    raise RuntimeError(f"{' '.join(command)}\n{said[-3000:]}")


def python_with(requirements: str) -> Path:
    """Python's executable in an environment with the packages of a list, which is made if it is not there yet. Raises
    NoNetwork."""
    folder = _folder(requirements)
    python = folder / "bin" / "python"
    if not (folder / ".complete").exists():
        _run([sys.executable, "-m", "venv", "--clear", str(folder)])
        # Every package is in the list: what would pull JAX in is not asked.
        _run([str(python), "-m", "pip", "install", "-q", "--no-deps", "-r", str(HERE / requirements)])
        (folder / ".complete").touch()
    return python


def folder_with_jax() -> Path:
    """A folder with JAX alone, to put beside an environment. Raises NoNetwork."""
    folder = _folder("requirements-jax.txt")
    if not (folder / ".complete").exists():
        pip = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--upgrade", "--target", str(folder)]
        _run([*pip, "-r", str(HERE / "requirements-jax.txt")])
        (folder / ".complete").touch()
    return folder
