"""Writes dist/weft_gpu_selftest.tar.gz: all that a machine with an NVIDIA driver needs to check its card.

./bazelw run //tests/gpu:pack_selftest
tar xzf weft_gpu_selftest.tar.gz && ./weft-run selftest --gpu      (there; neither Bazel, LLVM nor Python)
"""

import gzip
import io
import os
import subprocess
import tarfile
import tempfile
from pathlib import Path

from tests.gpu import selftest_cases

LIMIT = 60 << 20


def pack() -> bytes:
    """The archive's bytes."""
    with tempfile.TemporaryDirectory() as folder:
        stripped = Path(folder) / "weft-run"
        subprocess.run(["strip", "-o", stripped, os.path.realpath("driver/weft-run")], check=True)
        program = stripped.read_bytes()
    out = io.BytesIO()
    with gzip.GzipFile(fileobj=out, mode="wb", mtime=0) as packed, tarfile.open(fileobj=packed, mode="w") as tar:
        for name, data, mode in [
            ("weft-run", program, 0o755),
            ("selftest.zip", selftest_cases.archive(selftest_cases.material()), 0o644),
        ]:
            info = tarfile.TarInfo(name)
            info.size, info.mode = len(data), mode
            tar.addfile(info, io.BytesIO(data))
    return out.getvalue()


def main() -> None:
    data = pack()
    if len(data) > LIMIT:
        raise SystemExit(f"the archive has {len(data)} bytes; {LIMIT} is the limit")
    target = Path(os.environ.get("BUILD_WORKSPACE_DIRECTORY", ".")) / "dist" / "weft_gpu_selftest.tar.gz"
    target.parent.mkdir(exist_ok=True)
    target.write_bytes(data)
    print(f"{target}: {len(data) / 2**20:.1f} MiB")


if __name__ == "__main__":
    main()
