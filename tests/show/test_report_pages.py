"""An explanation as a page: report or notice, with columns left out."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from acex.engine.explanation import without
from acex.show.notice import notice_page
from acex.show.sentences import one_sentence
from explanations import ended, person
from html_pages import FIELDS


def test_an_explanation_writes_its_notice(tmp_path: Path) -> None:
    path = tmp_path / "notice.toml"
    lists = ("sources",)
    path.write_text(
        "\n".join(f"{k} = {v!r}" if k in lists else f'{k} = "{v}"' for k, v in FIELDS.items()), encoding="utf-8"
    )
    text = person().to_html(tmp_path / "n.html", profile="notice", fields=path, template="german")
    assert text == (tmp_path / "n.html").read_text(encoding="utf-8") == notice_page(person(), FIELDS, "german")
    with pytest.raises(ValueError, match="profile 'notice' needs fields"):
        person().to_html(profile="notice")
    with pytest.raises(ValueError, match="'report'"):
        person().to_html(profile="letter")
    with pytest.raises(ValueError, match="no decision"):
        notice_page(replace(ended(person(), outcome="failed", error="no"), steps=()), FIELDS)


def test_redacted_columns_are_in_no_page() -> None:
    page = person().to_html(redact=["school"])
    assert "university" in person().to_html()
    assert "university" not in page and "income" in page


def test_a_redacted_change_is_counted_and_no_notice_is_written() -> None:
    e = person()
    name, n = e.changes["feature"].iloc[0], len(e.changes)
    copy = without(e, [name])
    assert f"{n} of {len(e.plan.space)} features, 1 of them redacted" in copy.summary()
    assert f"{n} of {len(e.plan.space)} features, 1 of them redacted" in e.to_html(redact=[name])
    assert "left out" in one_sentence(copy) and "left out" not in one_sentence(e)
    changed = e.changes["feature"].tolist()
    assert f"{n} of them redacted" in without(copy, changed[1:]).summary()
    page = e.to_html(redact=changed)
    assert "redacted features <b>differ</b>" in page and page.count(">nothing</td>") == 1  # the row itself
    with pytest.raises(ValueError, match=f"changes a redacted column.*{name}"):
        e.to_html(profile="notice", fields=FIELDS, redact=[name])
