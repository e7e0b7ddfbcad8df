"""A pytest plugin for benchmarks/mutants.py, which runs the tests with `-p probe` in a copy of the tree.

With PROBE_MAP it writes which test ran which lines and how long each took; with PROBE_TESTS it runs the tests of that
file in its order, ends the process when one takes much longer than it should, and writes the first that fails.
"""

from __future__ import annotations

import faulthandler
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest

hypothesis.settings.register_profile("mutants", deadline=None, derandomize=True, database=None)
hypothesis.settings.load_profile("mutants")

if "PROBE_MAP" in os.environ:
    import coverage

    measured = coverage.Coverage(data_file=None, include=["src/acex/*"], config_file=False)
    measured.start()
    seconds: dict[str, float] = {}

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
        measured.switch_context(item.nodeid)
        started = time.monotonic()
        result = yield
        seconds[item.nodeid] = time.monotonic() - started
        measured.switch_context("")
        return result

    def pytest_runtest_logreport(report: pytest.TestReport) -> None:
        if not report.passed:  # a test that is skipped or fails without a fault kills none
            left_out.add(report.nodeid)

    left_out: set[str] = set()

    def pytest_sessionfinish() -> None:
        measured.stop()
        data = measured.get_data()
        root = Path.cwd()
        lines = {
            str(Path(path).relative_to(root)): {
                line: [test for test in tests if test and test not in left_out]
                for line, tests in data.contexts_by_lineno(path).items()
            }
            for path in data.measured_files()
        }
        kept = {test: round(s, 3) for test, s in seconds.items() if test not in left_out}
        Path(os.environ["PROBE_MAP"]).write_text(json.dumps({"seconds": kept, "lines": lines}), encoding="utf-8")

elif "PROBE_TESTS" in os.environ:
    wanted: dict[str, float] = json.loads(Path(os.environ["PROBE_TESTS"]).read_text(encoding="utf-8"))

    def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
        found = {item.nodeid: item for item in items}
        items[:] = [found[name] for name in wanted if name in found]

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
        faulthandler.dump_traceback_later(wanted[item.nodeid], exit=True)
        result = yield
        faulthandler.cancel_dump_traceback_later()
        return result

    def pytest_runtest_logreport(report: pytest.TestReport) -> None:
        if report.failed:
            Path(os.environ["PROBE_KILLER"]).write_text(report.nodeid, encoding="utf-8")
