"""An explanation as a page: a report, or a notice for the person concerned."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from acex.engine.explanation import Explanation
from acex.engine.redaction import redacted


def without(explanation: Explanation, columns: Iterable[str]) -> Explanation:
    """The explanation with these columns redacted."""
    gone = list(columns)
    return Explanation.from_json(json.dumps(redacted(explanation.to_dict(), gone)[0])) if gone else explanation


def page(
    explanation: Explanation,
    profile: str = "report",
    *,
    redact: Iterable[str] = (),
    price_per_row: float | None = None,
    sign: str | Path | None = None,
    fields: Mapping[str, Any] | str | Path | None = None,
    template: str | Path = "english",
) -> str:
    """The page, as text.

    Args:
        profile: "report" or "notice".
        redact: features to leave out.
        price_per_row, sign: of a report, see `acex.show.report.explanation_page`.
        fields, template: of a notice, see `acex.show.notice.notice_page`.
    """
    from acex.show.notice import notice_page
    from acex.show.report import explanation_page

    if profile not in ("report", "notice"):
        raise ValueError(f"profile must be 'report' or 'notice', got {profile!r}.")
    explanation = without(explanation, redact)
    if profile == "report":
        return explanation_page(explanation, price_per_row=price_per_row, sign=sign)
    if fields is None:
        raise ValueError("profile 'notice' needs fields: a mapping or a TOML file; see docs/audit.md.")
    if sign is not None:
        raise ValueError("sign: a notice has no certificate; sign the report.")
    return notice_page(explanation, fields, template)
