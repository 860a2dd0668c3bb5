"""Counts the verdicts on test targets in an event log of Bazel's (--build_event_json_file): prints "passed failed".

A target that was to be tested and has no summary (its build failed, or Bazel stopped) is not counted; Bazel's exit code
says that something is wrong.
"""

import json
import sys

GOOD = {"PASSED", "FLAKY"}

passed = failed = 0
with open(sys.argv[1], encoding="utf-8") as log:
    for line in log:
        summary = json.loads(line).get("testSummary")
        if summary is None:
            continue
        if summary["overallStatus"] in GOOD:
            passed += 1
        else:
            failed += 1
print(passed, failed)
