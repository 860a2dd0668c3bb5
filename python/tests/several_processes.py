"""Tests that start processes of MPI: what they run in."""

import os
import subprocess
import sys

import weft


def environment(devices: int, **more: str) -> dict[str, str]:
    """Of processes with so many devices each: as root, more than there are processors, and where weft is found."""
    outside = {k: v for k, v in os.environ.items() if not k.startswith(("OMPI_", "PMIX_"))}
    package = os.path.dirname(os.path.dirname(weft.__file__))
    return {
        **outside,
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        "OMPI_MCA_rmaps_base_oversubscribe": "1",
        "OMPI_MCA_btl_vader_single_copy_mechanism": "none",
        "OMPI_MCA_orte_tmpdir_base": outside.get("TMPDIR", "/tmp"),
        "WEFT_NUM_CPU_DEVICES": str(devices),
        "PYTHONPATH": os.pathsep.join([package, *sys.path]),
        **more,
    }


def run(processes: int, arguments: list[str], devices: int, timeout: float, **more: str) -> subprocess.CompletedProcess:
    """Python with these arguments in so many processes. mpirun goes by its name: with a path it takes what stands
    before bin/ for where to look on other machines."""
    return _run(["mpirun", "-n", str(processes)], arguments, environment(devices, **more), timeout)


def run_alone(arguments: list[str], devices: int, timeout: float, **more: str) -> subprocess.CompletedProcess:
    """The same in one process that nothing has launched."""
    return _run([], arguments, environment(devices, **more), timeout)


def _run(launcher: list[str], arguments: list[str], env: dict[str, str], timeout: float):
    command = [*launcher, sys.executable, "-P", *arguments]
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=timeout, stdin=subprocess.DEVNULL)
