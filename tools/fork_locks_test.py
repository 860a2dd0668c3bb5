"""Locks that threads may hold while another one forks are mutexes that a fork leaves free (base/fork_safe_mutex.h)."""

import re

import pytest

from tools import tree

# Files with plain locks, and why a fork does not find them held by a thread that the child lacks.
PLAIN = {
    "base/fork_safe_mutex.h": "is what makes them safe",
    "base/fork_safe_mutex.cc": "the list of all, which a fork takes first",
    "driver/compile_gate.cc": "a fork takes it",
    "driver/single_flight.cc": "taken by threads that compile, for which a fork waits",
    "lowering/cpu/codegen.cc": "taken by threads that compile, for which a fork waits",
    "lowering/cpu/compile_parts.cc": "of one compilation, which a child begins anew",
    "backends/cpu/core/other_cpus.h": "of a pool, which a child makes anew",
    "backends/cpu/core/thread_pool.cc": "of a pool, which a child makes anew",
    "backends/cpu/distributed/process_group.h": "of a job of processes, which a child is not in",
    "backends/cpu/distributed/process_group.cc": "of a job of processes, which a child is not in",
    "python/native/flight.h": "of one tracing, which a child does not wait for",
}
LOCK = re.compile(r"\bstd::(?:\w+_)?(?:mutex|condition_variable(?:_any)?)\b(?!>)")
NOT_THE_LIBRARY = ("tests/", "examples/", "bench/", "compat/", "tools/", "docs/")


def plain_locks(text: str) -> list[str]:
    """The lines that declare or make a lock of the standard library."""
    return [line.strip() for line in text.splitlines() if LOCK.search(line.split("//")[0])]


def test_locks_survive_forks():
    found = {}
    for path in tree.files(".cc", ".h"):
        name = path.as_posix()
        if name.startswith(NOT_THE_LIBRARY) or name.endswith("_test.cc"):
            continue
        lines = plain_locks((tree.workspace() / path).read_text(encoding="utf-8"))
        if lines:
            found[name] = lines
    more = {name: lines for name, lines in found.items() if name not in PLAIN}
    assert not more, f"use ForkSafeMutex (base/fork_safe_mutex.h), or say in {__file__} why not: {more}"
    assert set(PLAIN) == set(found), "files in the table that have no lock any more"


@pytest.mark.parametrize(
    ("line", "count"),
    [
        ("  std::mutex mutex_;", 1),
        ("  mutable std::shared_mutex gate;", 1),
        ("static auto& lock = *new std::recursive_mutex;", 1),
        ("std::condition_variable_any ended;", 1),
        ("  std::lock_guard<std::mutex> lock(mutex_);", 0),
        ("  ForkSafeMutex mutex_;", 0),
        ("  // std::mutex would not do", 0),
    ],
)
def test_what_counts(line, count):
    assert len(plain_locks(line)) == count
