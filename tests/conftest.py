"""What tests share."""

from __future__ import annotations

import os

import pytest

needs_data = pytest.mark.skipif(
    "ACEX_DATA" not in os.environ, reason="needs the paper's data sets: set ACEX_DATA to their folder"
)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say whether the ledger was tested on PostgreSQL: tests that are skipped look much like tests that pass."""
    ran = [r for r in terminalreporter.stats.get("passed", []) if "postgres" in r.nodeid and r.when == "call"]
    if ran and "ACEX_TEST_POSTGRES" in os.environ:
        terminalreporter.write_line(f"{len(ran)} tests passed on PostgreSQL.")
