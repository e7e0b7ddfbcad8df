"""An explanation as a page: report or notice, with columns left out."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from acex.show.notice import notice_page
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
    for profile in ("report", "notice"):
        options: Any = {"profile": profile, "fields": FIELDS}
        page = person().to_html(redact=["school"], **options)
        assert "university" in person().to_html(**options)
        assert "university" not in page and "income" in page
