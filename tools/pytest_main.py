"""Runs the test files that it is given under pytest; weft_py_test (tools/python.bzl) makes it the main program.

It speaks Bazel's test protocol: --test_filter becomes -k, results go to XML_OUTPUT_FILE, shards take every n-th test,
and a file without tests is a failure.
"""

import os
import sys
from pathlib import Path

import pytest


class _Bazel:
    """pytest hooks that follow Bazel's environment variables."""

    def pytest_configure(self, config: pytest.Config) -> None:
        # The time of one example says nothing on a shared machine; a failure must be reproducible from the log alone.
        files = [Path(argument) for argument in config.args if os.path.isfile(argument)]
        if any("hypothesis" in file.read_text(encoding="utf-8") for file in files):
            import hypothesis

            hypothesis.settings.register_profile("bazel", deadline=None, print_blob=True, database=None)
            hypothesis.settings.load_profile("bazel")

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        shards = int(os.environ.get("TEST_TOTAL_SHARDS", "1"))
        if shards > 1:
            with open(os.environ["TEST_SHARD_STATUS_FILE"], "w", encoding="utf-8"):
                pass
            items[:] = items[int(os.environ["TEST_SHARD_INDEX"]) :: shards]


def main() -> int:
    options = ["-p", "no:cacheprovider", "--import-mode=importlib", "--rootdir=."]
    options += ["-q", "--color=no", "-ra", "--tb=short"]
    if os.environ.get("XML_OUTPUT_FILE"):
        options += ["--junitxml", os.environ["XML_OUTPUT_FILE"]]
    if os.environ.get("TESTBRIDGE_TEST_ONLY"):
        options += ["-k", os.environ["TESTBRIDGE_TEST_ONLY"]]
    status = pytest.main(options + sys.argv[1:], plugins=[_Bazel()])
    # A shard may end up empty; a test file may not.
    empty_shard = status == pytest.ExitCode.NO_TESTS_COLLECTED and int(os.environ.get("TEST_TOTAL_SHARDS", "1")) > 1
    return 0 if empty_shard else int(status)


if __name__ == "__main__":
    sys.exit(main())
