"""The table of changes in a terminal."""

from __future__ import annotations

import numpy as np
import pandas as pd

import acex


def test_a_printed_explanation_fits_a_terminal_and_cuts_no_text_short() -> None:
    long = {c: f"{c}{'-and-a-long-way-to-go' * 3}" for c in "abcd"}
    data = pd.DataFrame({long["a"]: [long["b"], long["c"], long["d"]] * 10, "number": np.linspace(0, 1, 30)})
    e = acex.explain(lambda rows: rows[long["a"]] == long["b"], data.iloc[1], data=data, budget=12)
    _, *table = str(e).splitlines()
    assert e.outcome == "found" and max(map(len, table)) <= 80
    assert e.changes["feature"].tolist() == [long["a"]]
    # Folded, each text is spread over some lines, but all of it is there: name, before and after.
    assert "".join(table).count("-") == 3 * long["a"].count("-")
