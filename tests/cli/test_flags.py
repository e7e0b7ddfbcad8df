"""The flags of declared options."""

from __future__ import annotations

from typing import Any

import pytest
from typer.main import get_command

from acex.cli import app
from acex.cli.flags import as_range
from acex.options import DECLARED, GROUPS
from commands import run

COMMANDS: dict[str, Any] = dict(get_command(app).commands)  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", ["explain", "batch", "subsets", "ask"])
def test_each_declared_option_is_a_flag_in_the_panel_of_its_group(name: str) -> None:
    panels = {
        flag: p.rich_help_panel for p in COMMANDS[name].params for flag in p.opts if hasattr(p, "rich_help_panel")
    }
    for declared in DECLARED:
        if declared.flag:
            assert panels[declared.flag.split()[0]] == declared.group
    assert panels["--increase"] == panels["--freeze"]


def test_help_shows_the_panels() -> None:
    shown = run("explain", "--help").stdout
    assert all(f"─ {group} ─" in shown for group in (*GROUPS, "The data and the row", "What is written"))
    assert "Do not use answers from other explanations." in " ".join(shown.replace("│", " ").split())


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("100..120", {"between": [100.0, 120.0]}),
        (" 0.8 .. ", {"at_least": 0.8}),
        ("..-1e3", {"at_most": -1000.0}),
        ("+10%", {"relative": 0.1}),
        ("-10 %", {"relative": -0.1}),
    ],
)
def test_ranges_of_numbers(text: str, wanted: dict[str, Any]) -> None:
    assert as_range(text) == wanted


@pytest.mark.parametrize("text", ["", "..", "5", "a..b", "1..2..3", "nan..", "10%%"])
def test_other_texts_are_not_ranges(text: str) -> None:
    with pytest.raises(ValueError, match="--target-range"):
        as_range(text)
