"""Shared fixtures and settings."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from ledgers import postgres

settings.register_profile("acex", deadline=None)  # results must not depend on the load of the machine
settings.load_profile("acex")

needs_data = pytest.mark.skipif(
    "ACEX_DATA" not in os.environ, reason="needs the paper's data sets: set ACEX_DATA to their folder"
)


@pytest.fixture(scope="session", autouse=True)
def _state_of_its_own(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Local state of ledgers on a server is written to a temporary folder."""
    os.environ["ACEX_STATE"] = str(tmp_path_factory.mktemp("state"))


@pytest.fixture
def loans_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run in a folder with loans.csv and a model, for tests of the command line."""
    from commands import set_up

    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    set_up(tmp_path)


@pytest.fixture(params=["sqlite", "postgres"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The address of a new ledger: a file, or a database on a PostgreSQL server."""
    if request.param == "sqlite":
        yield str(tmp_path / "ledger.db")
    else:
        with postgres() as found:
            yield found


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print whether the ledger was tested on PostgreSQL, since skipped tests are easily overlooked."""
    ran = [r for r in terminalreporter.stats.get("passed", []) if "postgres" in r.nodeid and r.when == "call"]
    if ran and "ACEX_TEST_POSTGRES" in os.environ:
        terminalreporter.write_line(f"{len(ran)} tests passed on PostgreSQL.")
