"""A redacted column is nowhere: values that occur nowhere else are searched for in everything that is written."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.text import Text

import acex
from acex.audit.verify import verify
from acex.engine.explanation import without
from acex.engine.redaction import redacted
from acex.show.html import index_page
from acex.spreadsheets import write_csv
from commands import run
from html_pages import FIELDS

# Numbers and words of each column that no other text has.
MARKS = {
    "salary": r"[67][0-9][,.]?[0-9]*73",
    "clinic": r"quoll|wombat|numbat|bilby",
    "rent": r"[89][0-9][,.]?[0-9]*41",
    "grade": r"zeta|theta",
}
RNG = np.random.default_rng(0)
N = 60
DATA = pd.DataFrame(
    {
        "salary": RNG.integers(600, 799, N) * 100 + 73.0,
        "clinic": RNG.choice(["quollary", "wombatin", "numbatol", "bilbyon"], N),
        "rent": RNG.integers(800, 999, N) * 100 + 41,
        "grade": pd.Categorical(RNG.choice(["zetaplus", "thetaplus"], N), ["zetaplus", "thetaplus"], ordered=True),
        "debt": RNG.uniform(size=N).round(2),
    }
)
OPTIONS: dict[str, Any] = {
    "target": "paid",
    "budget": 9,
    "count": 2,
    "ranges": {"salary": (60073, 79973)},
    "values": {"clinic": ["quollary", "wombatin", "numbatol"]},
    "directions": {"rent": "decrease"},
    "cost": acex.Cost(weights={"grade": 2.0}),
    "rules": [
        "salary >= 60173",
        "clinic: quollary -> numbatol is impossible",
        "if grade == 'thetaplus' then rent <= 99941",
        "rent <= salary * 2",
        "debt <= 2",
    ],
}


def model(rows: pd.DataFrame) -> Any:
    good = (rows["salary"] > 72000) | ((rows["clinic"] == "wombatin") & (rows["debt"] < 0.5) & (rows["rent"] < 95000))
    return np.where(good, "paid", "refused")


def nagging(rows: pd.DataFrame) -> Any:
    """Fails for some rows, and quotes them."""
    if len(rows) and float(rows["debt"].iloc[0]) > 0.6:
        raise RuntimeError(f"cannot read {rows.iloc[0].tolist()}")
    return model(rows)


def refused() -> pd.DataFrame:
    rows: pd.DataFrame = DATA[(model(DATA) == "refused") & (DATA["clinic"] != "bilbyon") & (DATA["salary"] > 60200)]
    return rows


@cache
def explained() -> acex.Explanation:
    e = acex.explain(
        acex.Model(model, class_names={"paid": "yes", "refused": "no"}), refused().iloc[0], data=DATA, **OPTIONS
    )
    assert e.outcome == "found"
    return e


@cache
def batch() -> acex.Explanations:
    rows = pd.concat([refused()[refused()["debt"] > 0.6].head(1), refused()[refused()["debt"] < 0.5].head(2)])
    many = acex.Explainer(nagging, DATA).explain_many(rows, **OPTIONS | {"budget": 4, "count": 1}, n_jobs=1)
    assert [bool(line) for line in many.frame()["error"]].count(True) >= 1
    return many


def seen(columns: list[str], written: str) -> list[str]:
    """Marks of the columns that a text has; the sums and hashes in it are no values of anybody."""
    plain = re.sub(r"\b[0-9a-f]{64}\b|\b\w[0-9a-f]{10}\b|\d\.\d{3,}(e-?\d+)?", "", written)
    return [found[0] for name in columns for found in [re.search(MARKS[name], plain)] if found]


def everything(gone: list[str]) -> dict[str, str]:
    """All that is written about an explanation and a batch with columns left out."""
    e, many = explained(), batch()
    has_all_changes = not any(redacted(e.to_dict(), gone)[0]["settings"].get("redacted_changes", ()))
    notices = {
        name: e.to_html(redact=gone, profile="notice", fields=FIELDS, template=name)
        for name in ("english", "german")
        if has_all_changes  # a notice without a change of the counterfactual is refused
    }
    return {
        "json": e.to_json(redact=gone),
        "report": e.to_html(redact=gone),
        **notices,
        "index": index_page([("a.html", without(e, gone))]),
        "text": str(without(e, gone)) + " ".join(without(e, gone).sentences()),
        "batch json": many.to_json(redact=gone),
        "csv": write_csv(many.table(redact=gone)),
        "frame": many.frame(redact=gone).to_string(max_colwidth=None),
        "summary": str(many.summary(redact=gone)) + many.summary(redact=gone).not_found.to_string(),
    }


def test_the_marks_are_there_where_nothing_is_left_out() -> None:
    written = everything([])
    for name in MARKS:
        assert seen([name], written["json"]) and seen([name], written["csv"]), name
    for what in ("report", "english", "index", "frame", "summary"):
        assert seen(list(MARKS), written[what]), what
    failed = json.loads(written["batch json"])["rows"]
    assert any(seen(list(MARKS), str(row["error"])) for row in failed)


@settings(max_examples=8, deadline=None)
@given(st.sets(st.sampled_from(sorted(MARKS)), min_size=1))
def test_no_value_of_a_column_that_is_left_out_is_anywhere(columns: set[str]) -> None:
    gone = sorted(columns)
    for what, written in everything(gone).items():
        assert seen(gone, written) == [], what


ODD = ["no\u00a0break", "tab\tbed", "back\\slash", "right\u200fleft", "quote'd", "line\nend"]


@pytest.mark.parametrize("name", ODD)
def test_a_name_that_repr_changes_leaks_no_value(name: str) -> None:
    data = DATA[["clinic", "debt"]].rename(columns={"clinic": name}).assign(age=np.arange(N))
    space = acex.Space.infer(data, other={name: "bilbyon"})
    row = {**data.iloc[0], name: "swordfish"}
    model = lambda rows: np.where(rows["age"] > 40, "yes", "no")  # noqa: E731
    e = acex.explain(model, row, data, space=space, budget=6, target="yes")
    assert any("swordfish" in remark.text for remark in e.remarks)
    for written in (e.to_json(redact=[name]), e.to_html(redact=[name]), str(without(e, [name]))):
        assert "swordfish" not in written and not re.search(MARKS["clinic"], written)


def test_a_picture_of_a_batch_leaves_columns_out() -> None:
    def texts(**options: Any) -> str:
        return " ".join(text.get_text() for text in batch().plot(**options).findobj(match=Text))

    changed = sorted({name for changes in batch().frame()["changes"] for name in changes})
    assert changed[0] in texts() and changed[0] not in texts(redact=changed)
    with pytest.raises(ValueError, match="wage"):
        batch().plot(redact=["wage"])


def test_a_summary_by_a_redacted_column_is_refused() -> None:
    with pytest.raises(ValueError, match="'grade' is redacted"):
        batch().summary(by="grade", redact=["grade"])


def test_rules_go_with_the_columns_that_they_name_and_others_stay() -> None:
    document, private = redacted(explained().to_dict(), ["salary"])
    assert document["settings"]["rules"] == [r for r in OPTIONS["rules"] if "salary" not in r]
    assert document["settings"]["redacted_rules"] == 2
    assert private["salary"]["column"]["rules"] == [r for r in OPTIONS["rules"] if "salary" in r]
    other, _ = redacted(explained().to_dict(), ["debt"])
    assert len(other["settings"]["rules"]) == 4


def test_a_name_within_another_name_is_another_column() -> None:
    data = DATA.assign(rented=DATA["rent"] * 1.0)
    e = acex.explain(model, data.loc[refused().index[0]], data=data, target="paid", budget=3, rules=["rented >= 0"])
    assert redacted(e.to_dict(), ["rent"])[0]["settings"]["rules"] == ["rented >= 0"]


def test_what_is_left_out_needs_a_file_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "why.json"
    with pytest.raises(ValueError, match=r"why\.json has another use"):
        explained().to_json(path, redact=["salary"], left_out=str(path))
    path.write_text("a key")
    for write in (explained().to_json, explained().to_html):
        with pytest.raises(ValueError, match=r"why\.json has another use"):
            write(path, sign=path)
    assert path.read_text() == "a key"


def test_what_was_left_out_can_be_shown_later(tmp_path: Path) -> None:
    from acex.engine.certificate import parsed

    written = explained().to_json(redact=["salary", "clinic"], left_out=tmp_path / "kept.json")
    kept = json.loads((tmp_path / "kept.json").read_text())
    assert verify(parsed(written), left_out=kept).holds
    kept["salary"]["column"]["rules"][0] = "salary >= 0"
    assert not verify(parsed(written), left_out=kept).holds


BANK = """
def decide(rows):
    return ["yes" if s > 72000 else "no" for s in rows["salary"]]
"""


def content(name: str) -> str:
    """Everything that a file contains, statistics of Parquet and all sheets of a workbook included."""
    raw = Path(name).read_bytes()
    if name.endswith(".xlsx"):
        with ZipFile(name) as archive:
            raw = b" ".join(archive.read(part) for part in archive.namelist())
    table = pd.read_parquet(name).to_string(max_colwidth=None) if name.endswith(".parquet") else ""
    return raw.decode("latin-1") + table


def test_files_of_the_commands_have_no_value_either(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("redacting_bank.py").write_text(BANK)
    rows = DATA[["salary", "clinic", "rent", "debt"]]
    rows.to_csv("d.csv", index=False)
    bank = ("--model", "redacting_bank:decide", "--target", "yes")
    gone, hide = ["salary", "clinic"], ("--redact", "salary,clinic")
    lines = [i for i, salary in enumerate(DATA["salary"]) if salary < 72000][:3]
    one = ("explain", "d.csv", *bank, "--row", lines[0], "--budget", 8, "--json")
    assert seen(["salary"], run(*one).stdout)
    done = run(*one, *hide)
    assert done.exit_code == 0 and seen(gone, done.stdout) == []
    where = f"index in [{lines[0]}, {lines[1]}]"
    many = (
        "batch",
        "d.csv",
        *bank,
        "--where",
        where,
        "--budget",
        5,
        "--ledger",
        "l.db",
        "--model-name",
        "m",
        "--jobs",
        1,
    )
    assert seen(["salary"], run(*many, "--json", "--common-changes", 8).stdout)
    done = run(*many, "--json", "--common-changes", 8, "--out", "o.json", *hide)
    assert done.exit_code == 0 and seen(gone, done.stdout + Path("o.json").read_text()) == []
    assert json.loads(done.stdout)["common_changes"] == []
    for out in ("o.xlsx", "o.parquet", "o.csv"):
        assert run(*many, "--out", out).exit_code == 0 and seen(["salary"], content(out)), out
        assert run(*many, "--out", out, *hide).exit_code == 0 and seen(gone, content(out)) == [], out
    assert run("report", "l.db", "--out", "pages", *hide).exit_code == 0
    pages = sorted(Path("pages").iterdir())
    assert {page.name for page in pages} == {f"{lines[0]}.html", f"{lines[1]}.html", "index.html"}
    assert [seen(gone, page.read_text()) for page in pages] == [[], [], []]
    for i in lines[:2]:  # one by one, rows have no names, and an identity would be a hash of what is redacted
        run(*one[:-4], i, "--budget", 5, "--ledger", "k.db", "--model-name", "m")
    assert run("report", "k.db", "--out", "more", *hide).exit_code == 0
    assert {page.name for page in Path("more").iterdir()} == {"explanation-0.html", "explanation-1.html", "index.html"}
