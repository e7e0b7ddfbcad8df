"""`acex studio`: what the flags make of files, and what they refuse."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import pytest

from acex.cli.studios import _listening
from commands import run, set_up
from studios import workspace_of


def test_a_port_that_is_in_use_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ValueError, match=f"port {port}"):
            _listening("127.0.0.1", port)


def test_the_exported_command_has_the_files_and_not_what_the_page_sets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    set_up(tmp_path)
    setup = workspace_of("loans.csv", "acex_test_bank:decide", drop=["id"], outcomes="outcome", budget=5).setup
    words = " ".join(setup.shell or ())
    assert words.startswith("loans.csv --drop id --model acex_test_bank:decide") and "--budget" not in words
    assert "--outcomes outcome" in words and "loans.csv" in setup.python


def test_a_ledgers_password_is_never_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    set_up(tmp_path)
    address = "postgresql://me:secret@host/acex"
    setup = workspace_of("loans.csv", "acex_test_bank:decide", ledger=address).setup
    assert "secret" not in json.dumps([setup.python, setup.shell]) and setup.ledger_from_environment


@pytest.mark.parametrize(
    "words", [(), ("loans.csv",), ("--model", "m.skops"), ("loans.csv", "--model", "m", "--row", "3")]
)
def test_a_command_that_names_no_model_or_names_a_row_ends_in_one_line(words: tuple[str, ...]) -> None:
    result = run("studio", *words, "--port", "0")
    assert result.exit_code == 2 and result.stderr.count("\n") == 1
