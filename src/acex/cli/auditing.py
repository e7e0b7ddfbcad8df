"""`acex audit`: does the model still give the same answers?"""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

import acex
from acex.cli.flags import Given
from acex.cli.ledgers import Where, chosen, gives_numbers, opened
from acex.cli.models import ModelFlags, with_timeout
from acex.cli.program import NOTHING_FOUND, AsJson, finite
from acex.cli.show import console, print_json, table


def audit(
    where: Where,
    black_box: ModelFlags,
    model_id: Annotated[str | None, typer.Option("--model-name", help="The model's name in the ledger.")] = None,
    timeout: Annotated[float | None, typer.Option(min=0.001, callback=finite, help="Seconds for a request.")] = None,
    n: Annotated[int, typer.Option("--n", min=1, help="How many rows to ask again, chosen at random.")] = 20,
    seed: Annotated[int, typer.Option(min=0, help="Another seed chooses other rows.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Ask again what was asked before, and report labels that changed.

    Example: acex audit loans.db --model loans.skops --n 20

    Each row is paid for. Labels that changed are kept as contradictions; the
    first ones stand. Exit code 1: some changed.
    """
    import numpy as np

    from acex.engine.blackbox import BlackBox
    from acex.ledger import canonical, is_vote
    from acex.space.columns import rows_in_form

    model = with_timeout(black_box.open(Given(timeout=timeout)), timeout)
    with opened(where) as book:
        name = chosen(book, model_id or model.name)
        answers = [answer for answer in book.answers(name) if not is_vote(answer.row)]
        if not answers:
            raise ValueError(f"{name!r} has no answer yet that could be asked again.")
        picked = np.random.default_rng(seed).choice(len(answers), size=min(n, len(answers)), replace=False)
        again = [answers[i] for i in sorted(picked)]
        rows = rows_in_form([json.loads(answer.row) for answer in again], _form(book, name))
        if canonical(rows) != [answer.row for answer in again]:
            raise ValueError(f"The rows of {name!r} are not all of one form and cannot be asked again.")
        box = BlackBox(model, book, len(again), model_id=name, numbers=gives_numbers(book, name))
        labels = box.ask_again(rows)
    changed = [
        {"row": json.loads(answer.row), "before": answer.label, "now": label}
        for answer, label in zip(again, labels, strict=True)
        if label != answer.label
    ]
    if as_json:
        print_json({"model_id": name, "asked": len(again), "n_changed": len(changed), "changed": changed})
    else:
        out = console()
        out.print(f"{len(changed)} of {len(again)} labels changed.", style="bold")
        if changed:
            lines = [(json.dumps(line["row"], ensure_ascii=False), line["before"], line["now"]) for line in changed]
            out.print(table(("row", "before", "now"), lines))
            out.print("The model was replaced or is not deterministic. A new model needs a new --model-version.")
    if changed:
        raise typer.Exit(NOTHING_FOUND)


def _form(book: acex.Ledger, model: str) -> dict[str, Any]:
    """How the model's rows were written when they were asked; by their names alone where all were imported."""
    settings = [json.loads(text) for text in book.tables.explanations(model)["settings"]]
    forms = [s["form"] for s in settings if "form" in s]
    if forms:
        return dict(forms[-1])
    return {"columns": list(book.account(model).features or ()) or None, "dtypes": None, "array_dtype": None}
