"""`acex studio`: what the flags make of files, and what they refuse."""

from __future__ import annotations

import socket

import pytest

from acex.cli.studios import _listening
from commands import run


def test_a_port_that_is_in_use_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ValueError, match=f"port {port}"):
            _listening("127.0.0.1", port)


@pytest.mark.parametrize(
    "words", [(), ("loans.csv",), ("--model", "m.skops"), ("loans.csv", "--model", "m", "--row", "3")]
)
def test_a_command_that_names_no_model_or_names_a_row_ends_in_one_line(words: tuple[str, ...]) -> None:
    result = run("studio", *words, "--port", "0")
    assert result.exit_code == 2 and result.stderr.count("\n") == 1
