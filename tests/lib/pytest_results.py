"""A pytest plugin that writes the results to the file in HEDDLE_TEST_COUNTS.

The first line is "PASSED FAILED"; then follows the node id of each failed test, one per line. A
test counts once, whichever of its phases failed; a file that cannot be collected counts as one
failed test. Skipped tests do not count.
"""

import os

passed: dict[str, None] = {}
failed: dict[str, None] = {}


def pytest_runtest_logreport(report):
    if report.failed:
        failed[report.nodeid] = None
    elif report.when == "call" and report.passed:
        passed[report.nodeid] = None


def pytest_collectreport(report):
    if report.failed:
        failed[report.nodeid] = None


def pytest_sessionfinish():
    lines = [f"{len(passed.keys() - failed.keys())} {len(failed)}", *failed]
    with open(os.environ["HEDDLE_TEST_COUNTS"], "w", encoding="utf-8") as file:
        file.write("".join(line + "\n" for line in lines))
