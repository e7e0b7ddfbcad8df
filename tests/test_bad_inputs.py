"""Each mistake of `bad_inputs` at each door: the message names it, and nothing is sent or written."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient
from typer.testing import CliRunner

import acex
from acex.cli import app
from acex.ledger import Question, query_id
from acex.studio.serializers import page_text
from bad_inputs import BAD_INPUTS, CONFIGS, LABELS, LOANS, REPORTS, ROWS, SCHEMAS, BadInput, X
from commands import set_up
from studios import Bank, visiting, workspace_in


def at(door: str) -> pytest.MarkDecorator:
    """The mistakes that this door can meet."""
    entries = [entry for entry in BAD_INPUTS if getattr(entry, door) is not None]
    return pytest.mark.parametrize("entry", entries, ids=[entry.name for entry in entries])


@at("library")
def test_the_library_refuses_it_before_a_row_is_sent(entry: BadInput) -> None:
    bank = Bank()
    with pytest.raises(entry.error) as caught:
        acex.explain(**{"model": bank, "x": X, "data": LOANS, **entry.arguments})
    assert entry.named in str(caught.value) and bank.asked == []


def test_without_a_mistake_the_library_finds_a_counterfactual() -> None:
    assert acex.explain(Bank(), X, LOANS, budget=12).outcome == "found"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files that the lines speak of; as each of them is refused, they can share one folder."""
    folder = tmp_path_factory.mktemp("odd")
    set_up(folder)
    files = {"schema {}.toml": SCHEMAS, "config {}.toml": CONFIGS, "report {}.json": REPORTS, "row {}.json": ROWS}
    for form, texts in files.items():
        for name, (text, _) in texts.items():
            (folder / form.format(name)).write_text(text, encoding="utf-8")
    (folder / "binary.csv").write_bytes(b"\xff\xfe\x00\x01" * 50)
    (folder / "folder.csv").mkdir()
    (folder / "empty.csv").touch()
    (folder / "page.html").write_text("<p>", encoding="utf-8")
    (folder / "schema.json").write_text("", encoding="utf-8")
    (folder / "acex_test_broken.py").write_text("1 / 0", encoding="utf-8")
    (folder / "strange.csv").write_text("acex_id,label\nabc,good\n", encoding="utf-8")
    (folder / "twice.csv").write_text("acex_id,label\nabc,good\nabc,bad\n", encoding="utf-8")
    with acex.Ledger(folder / "two.db") as ledger:
        ledger.register("a", features=["wage"])
        ledger.register("b")
    with acex.Ledger(folder / "l.db") as ledger:
        ledger.register("a", features=["age", "income", "debt", "job"])
        row = '[30, 1500, 0.2, "cook"]'
        ledger.claim("a", [Question(row)])
        key = query_id("a", row)
    for i, label in enumerate(LABELS):
        quoted = label.replace('"', '""')
        (folder / f"labels {i}.csv").write_text(f'acex_id,label\n{key},"{quoted}"\n', encoding="utf-8")
    return folder


def content(folder: Path) -> dict[str, Any]:
    """What the folder holds: files by their bytes, the ledger by its answers."""
    kept = {p.name: p.read_bytes() for p in folder.iterdir() if p.is_file() and ".db" not in p.name}
    with acex.Ledger(folder / "l.db") as ledger:
        return kept | {"answers": ledger.answers("a"), "models": json.loads(ledger.tables.models().to_json())}


@pytest.fixture(scope="module")
def before(folder: Path) -> dict[str, Any]:
    return content(folder)


@at("shell")
def test_a_command_ends_in_one_line_and_its_code(
    entry: BadInput, folder: Path, before: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    result = CliRunner().invoke(app, list(entry.shell or ()), env={"FORCE_COLOR": None, "NO_COLOR": "1"})
    assert isinstance(result.exception, SystemExit), result.exception  # no traceback
    assert (result.exit_code, result.stdout) == (entry.code, ""), result.stderr
    n_lines = 3 if result.stderr.endswith("^\n") else 1  # a rule is shown with a mark at the mistake
    assert result.stderr.startswith("acex: ") and result.stderr.count("\n") == n_lines, result.stderr
    assert entry.named in result.stderr
    assert content(folder) == before


@pytest.fixture(scope="module")
def studio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[TestClient, Bank]]:
    bank = Bank()
    with visiting(workspace_in(tmp_path_factory.mktemp("studio"), bank, rows=LOANS)) as client:
        yield client, bank


@at("studio")
@pytest.mark.parametrize("path", ["/api/plan", "/api/searches"])
def test_the_studio_answers_422(entry: BadInput, path: str, studio: tuple[TestClient, Bank]) -> None:
    client, bank = studio
    response = client.post(path, json=entry.studio)
    assert response.status_code == 422 and page_text(entry.named) in response.json()["error"], response.text
    assert bank.asked == []
