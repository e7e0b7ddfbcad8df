"""Every kind of search asks the rows that are on record."""

from __future__ import annotations

import json
from itertools import zip_longest

import pytest

import recorded_searches
from conftest import needs_data


@needs_data
@pytest.mark.parametrize("name", recorded_searches.DATA)
def test_the_same_rows_are_asked(name: str) -> None:
    record = json.loads(recorded_searches.RECORD.read_text())
    assert record["revisions"] == recorded_searches.revisions(), "run PYTHONPATH=. python tests/recorded_searches.py"
    for kind, run in recorded_searches.searches(name).items():
        rows, before = recorded_searches.digests(run()), record["searches"][name][kind].split()
        differ = [i for i, (now, then) in enumerate(zip_longest(rows, before)) if now != then]
        assert not differ, f"{name}, {kind}: query {differ[0]} of {len(before)} is another row"
