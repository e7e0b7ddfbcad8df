"""`acex explain`, `batch`, `subsets`, `schema` and `demo`: one row, many rows, and a description of their table."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated

import typer

import acex
from acex.cli.case import BatchCase, Case, ModelFlags, Prepared
from acex.cli.ledgers import exists
from acex.cli.program import FAILED, NOTHING_FOUND, AsJson, Price, how_to_continue, say, stopped
from acex.cli.show import as_money, console, echo, print_json, records, table
from acex.cli.tables import PICTURES, LeftOut, Seal, TableFlags, column_names, file_to_write, read_table
from acex.values import listed, plain

TABLES = (".csv", ".json", ".parquet", ".xlsx")
MAY_CHANGE = ("debt_ratio", "loan_amount", "duration_months")
QUESTION = (
    "This application was rejected. What can the applicant do? Debts and amount may decrease, the duration may change."
)


def explain(
    case: Case,
    black_box: ModelFlags,
    seal: Seal,
    out: Annotated[Path | None, file_to_write("Write the explanation here, for acex report.", ".json")] = None,
    left_out: LeftOut = None,
    price_per_row: Price = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be sent and the most it can cost; send nothing.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Find the smallest realistic change to a row that changes the decision.

    Example: acex explain loans.csv --model loans.skops --row 17 --target good
    --freeze age,sex --range "income=0:90000" --budget 40 --ledger loans.db

    With --ledger, an interrupted command continues when it is repeated with the
    same DATA, and no answer is paid for twice. Exit code 1: no counterfactual
    was found.
    """
    from acex.engine.redaction import redacted_error
    from acex.show.pages import without

    prepared = case.open(black_box, out)
    seal.check(prepared.space.names)
    if dry_run:
        _print_plan(case, prepared, price_per_row, as_json)
        return
    ledger = None if case.ledger is None else acex.Ledger(case.ledger)
    explainer = case.explainer(prepared, ledger)
    name = None if prepared.ids is None else plain(prepared.ids[0])
    if name is not None and ledger is not None:  # record the name before anything is sent
        explainer.search(prepared.factual, **prepared.options).begin([str(name)])
    try:
        explanation = explainer.explain(prepared.factual, **prepared.options)
    except (KeyboardInterrupt, acex.AcexError) as error:
        so_far: acex.Explanation | None = getattr(error, "explanation", None)
        if so_far is not None and so_far.outcome == "found":
            say(f"before that: {without(so_far, seal.columns).summary()}")
        if isinstance(error, KeyboardInterrupt):
            raise stopped(explainer.ledger) from None
        if so_far is not None and isinstance(error, acex.ModelFailed):
            error.add_note(how_to_continue(explainer.ledger))
        if so_far is not None and out is not None:
            so_far.to_json(out, left_out=left_out, **seal.options)  # it was paid for
        if seal.columns and isinstance(error, acex.ModelFailed):
            error.args = (f"the model failed: {redacted_error(str(error), seal.columns)}",)
        raise
    if name is not None:
        explanation = replace(explanation, metadata={**explanation.metadata, "id": name})
    # Stdout first: a full disk must not lose what was paid for.
    if as_json:
        echo(explanation.to_json(**seal.options))
    else:
        console().print(str(without(explanation, seal.columns)))
        for remark in prepared.remarks:
            say(remark)
    if out is not None:
        explanation.to_json(out, left_out=left_out, **seal.options)
    if explanation.outcome not in ("found", "already_target"):
        raise typer.Exit(NOTHING_FOUND)


def _print_plan(case: Case, prepared: Prepared, price: float | None, as_json: bool) -> None:
    """Print what would be sent, and the most it can cost. The ledger is only read."""
    plan = case.explainer(prepared, None).search(prepared.factual, **prepared.options).plan
    paid, left, model_id = 0, float("inf"), prepared.model.identity(is_shared=case.ledger is not None)
    if case.ledger is not None and exists(case.ledger):
        with acex.Ledger(case.ledger) as ledger:
            paid = sum(ask.paid for ask in ledger.asks(plan.identity))
            account = ledger.account(model_id)
        left, price = account.remaining, account.price_per_row if price is None else price
    most = int(min(max(plan.budget - paid, 0), left))
    values = {
        "dry_run": True,
        "explanation": plan.identity,
        "model_id": model_id,
        "factual": {name: plain(value) for name, value in plan.factual.items()},
        "allowed": plan.may_become,
        "target": plan.target.described,
        "strategy": plan.settings["strategy"]["name"],
        "budget": plan.budget,
        "paid_before": paid,
        "most_queries": most,
        "most_cost": None if price is None else most * price,
    }
    if as_json:
        print_json(values)
        return
    out = console()
    out.print("Nothing was sent. This row would be explained:", style="bold")
    row = zip(plan.space.features, plan.factual.values(), plan.may_become.values(), strict=True)
    shown = [(f.name, f.text(now), "frozen" if limits is None else f.span(limits)) for f, now, limits in row]
    out.print(table(("column", "now", "may become"), shown))
    wanted = " or ".join(plan.target.named(plan.class_names).words)
    money = "" if price is None else f", for {as_money(most * price)} at most"
    out.print(f"Wanted: {wanted}. Model: {model_id}. Strategy: {values['strategy']}.", soft_wrap=True)
    out.print(f"At most {most} rows would be sent{money} (budget {plan.budget}, {paid} paid before).")


def subsets(
    case: Case,
    black_box: ModelFlags,
    max_features: Annotated[int, typer.Option(min=1, max=3, help="How many features may change together.")] = 2,
    queries_each: Annotated[int, typer.Option(min=2, help="Most rows to send for one set of features.")] = 6,
    out: Annotated[Path | None, file_to_write("Write the result here.", ".html", ".json")] = None,
    as_json: AsJson = False,
) -> None:
    """Show for each feature, and each pair, whether changing it alone is enough.

    Example: acex subsets loans.csv --model loans.skops --row 17 --target good
    --budget 80 --freeze age --ledger loans.db

    --budget is for all sets together. "Asked and not found" proves nothing;
    "not asked" means that the budget was used for others. With --ledger, an
    interrupted command continues. Exit code 1: no set is enough.
    """
    prepared = case.open(black_box, out)
    explainer = case.explainer(prepared, None if case.ledger is None else acex.Ledger(case.ledger))
    options = {name: value for name, value in prepared.options.items() if name != "count"}
    try:
        found = explainer.feature_subsets(
            prepared.factual, max_features=max_features, queries_each=queries_each, **options
        )
    except KeyboardInterrupt:
        raise stopped(explainer.ledger) from None
    if as_json:
        echo(found.to_json())
    else:
        console().print(str(found))
    if out is not None:
        (found.to_html if out.suffix.lower() == ".html" else found.to_json)(out)
    if found.entries and not any(s.state == "found" for s in found.entries):
        raise typer.Exit(NOTHING_FOUND)


def batch(
    case: BatchCase,
    black_box: ModelFlags,
    seal: Seal,
    budget_total: Annotated[
        int | None, typer.Option(min=1, help="Most rows to send for all of them together, in all runs.")
    ] = None,
    money: Annotated[
        float | None, typer.Option(min=0, help="The same in money; needs --price-per-row, or a price in the ledger.")
    ] = None,
    jobs: Annotated[int, typer.Option(min=-1, help="Processes on this machine; -1: one per core.")] = -1,
    executor: Annotated[
        str | None, typer.Option(metavar="dask://HOST:PORT", help="A Dask cluster that does the work.")
    ] = None,
    out: Annotated[Path | None, file_to_write(f"Write the results here: {', '.join(TABLES)}.", *TABLES)] = None,
    left_out: LeftOut = None,
    by: Annotated[
        str | None,
        typer.Option(metavar="COLUMNS", help="Compare groups: sex, or crossed: sex,age_band. Any columns of the file."),
    ] = None,
    common_changes: Annotated[
        int | None, typer.Option(min=2, metavar="N", help="Look for changes that turn many rows, with N more queries.")
    ] = None,
    price_per_row: Price = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Estimate the price from what the ledger contains; send nothing.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Explain many rows, which learn from each other.

    Example: acex batch loans.csv --model loans.skops --where "decision == 'reject'"
    --target good --budget 15 --ledger loans.db --out why.parquet

    With --ledger, an interrupted command continues when it is repeated, and no
    answer is paid for twice. Exit code 1: no row has a counterfactual; 3: some
    rows failed.
    """
    prepared = case.open(black_box, out)
    seal.check(prepared.space.names)
    names = column_names([] if by is None else [by], prepared.whole.columns, "--by")
    if redacted := [name for name in names if name in seal.columns]:
        raise ValueError(f"--by: {listed(redacted)} is in --redact, and its groups would show its values.")
    ledger = None if case.ledger is None or (dry_run and not exists(case.ledger)) else acex.Ledger(case.ledger)
    explainer = case.explainer(prepared, None if dry_run else ledger)
    if price_per_row is None and ledger is not None:
        price_per_row = ledger.account(explainer.model_id).price_per_row
    if money is not None:
        budget_total = _affordable(money, price_per_row, budget_total, common_changes or 0)
    many = explainer.explain_many(
        prepared.factual if prepared.ids is None else prepared.factual.set_axis(list(prepared.ids), axis=0),
        budget_total=budget_total,
        n_jobs=1 if dry_run else jobs,
        executor=None if executor is None else acex.DaskExecutor(executor),
        **prepared.options,
    )
    if dry_run:
        quote = many.quote(price_per_row, ledger)
        quote = replace(quote, most_queries=quote.most_queries + (common_changes or 0))
        if as_json:
            queries = {"expected_money": quote.expected_queries, "most_money": quote.most_queries}
            print_json({"dry_run": True, **asdict(quote), **{name: quote.money(n) for name, n in queries.items()}})
        else:
            console().print(f"Nothing was sent. {quote}", soft_wrap=True)
        return
    try:
        frame = many.frame(redact=seal.columns)
    except KeyboardInterrupt:
        done = int((many.frame()["outcome"] != "unfinished").sum())
        raise stopped(explainer.ledger, f" after {done} of {len(many)} rows") from None
    # Stdout first: a full disk must not lose what was paid for.
    summary = many.summary(by=prepared.whole[names] if names else None, redact=seal.columns)
    common = None if common_changes is None else many.common_changes(budget=common_changes).without(seal.columns)
    n_paid = summary.queries + (0 if common is None else common.queries)
    if as_json:
        document = {"queries": summary.queries, "rows": records(frame.reset_index(names="row"))}
        if price_per_row is not None:
            document |= {"price_per_row": price_per_row, "spent": n_paid * price_per_row}
        if common is not None:
            document |= {"common_changes": records(common.frame()), "queries_common_changes": common.queries}
        if (groups := summary.groups) is not None:
            document["groups"] = {
                "by": groups.by,
                "table": records(groups.table.reset_index()),
                "features": records(groups.features),
                "differences": records(groups.differences),
                "warnings": list(groups.warnings),
            }
        print_json(document)
    else:
        console().print("\n\n".join(map(str, [summary] if common is None else [summary, common])), soft_wrap=True)
        if price_per_row is not None:
            most = "" if money is None else f" of at most {as_money(money)}"
            console().print(f"\nSpent: {as_money(n_paid * price_per_row)}{most} ({n_paid} queries).", soft_wrap=True)
        sensitive = [remark for remark in many[0].remarks if remark.code == "sensitive"] if len(many) else []
        for remark in (*prepared.remarks, *map(str, (*explainer.remarks, *sensitive))):
            say(remark)
    if out is not None and out.suffix.lower() == ".json":
        many.to_json(out, left_out=left_out, **seal.options)
    elif out is not None:
        many.save(out, redact=seal.columns)
    if many.errors:
        position, why = next(iter(many.errors.items()))
        again = " The same command tries such rows again." if ledger and why.startswith("ModelFailed") else ""
        shown = f"row {frame.index[position]}: {frame['error'].iloc[position]}"
        say(f"{len(many.errors)} of {len(many)} rows failed, such as {shown}{again}")
        raise typer.Exit(FAILED)
    if not frame["outcome"].isin(["found", "already_target"]).any():
        raise typer.Exit(NOTHING_FOUND)


def _affordable(money: float, price: float | None, budget_total: int | None, reserved: int) -> int:
    """How many rows may be sent for this much money, without those reserved for common changes."""
    from acex.ledger.base import rows_for

    if budget_total is not None:
        raise ValueError("--money and --budget-total limit the same; choose one of them.")
    if not price:
        raise ValueError(
            "--money needs --price-per-row: no price of this model is known. A model that is billed by tokens has its "
            "own limit, money in --model-config."
        )
    rows = rows_for(money, price) - reserved
    if rows < 1:
        more = f", after {reserved} rows for --common-changes" if reserved else ""
        raise ValueError(f"--money {money:g} is less than the price of one row, {price:g}{more}.")
    return rows


def schema(
    data: Annotated[Path, typer.Argument(metavar="DATA", help="Known rows: a .csv or .parquet file.")],
    out: Annotated[Path | None, file_to_write("The TOML file to write; by default stdout.")] = None,
    drop: Annotated[
        list[str] | None, typer.Option(metavar="COLUMNS", help="Columns that the model does not see.")
    ] = None,
    *,
    reading: TableFlags,
) -> None:
    """Describe the columns of a file in TOML, to be edited and used with --schema.

    Example: acex schema loans.csv --drop decision --out loans.toml
    """
    from acex.space.schema import schema_text

    rows = read_table(data, **reading.arguments)
    hidden = column_names(drop, rows.columns, "--drop")
    space = acex.Space.infer(rows.drop(columns=hidden), **reading.kinds(rows, hidden))
    if out is None:
        echo(schema_text(space), nl=False)
        return
    if out.exists():
        raise ValueError(f"{out} exists and may have been edited; name another file for --out.")
    out.write_text(schema_text(space), encoding="utf-8")
    say(f"{len(space)} columns are described in {out}. Edit it, then: acex explain {data} --schema {out} ...")


def demo(
    out: Annotated[Path, file_to_write("Where to save the picture.", *PICTURES)] = Path("acex-demo.png"),
) -> None:
    """Explain a rejected loan with a small model that is trained here, and draw it.

    Example: acex demo --out loan.png
    """
    from sklearn.ensemble import RandomForestClassifier

    loans = acex.datasets.load("loan")
    forest = RandomForestClassifier(100, random_state=0).fit(loans.codes, loans.outcomes)
    console().print(f"{loans.title}. {QUESTION}\n")
    explanation = acex.explain(
        lambda rows: forest.predict(loans.space.encode(rows)),
        loans.rows.iloc[17],
        loans.rows,
        space=loans.space,
        target="approved",
        freeze=[name for name in loans.space.names if name not in MAY_CHANGE],
        directions={"debt_ratio": "decrease", "loan_amount": "decrease"},
    )
    console().print(str(explanation))
    if explanation.outcome != "found":
        raise typer.Exit(NOTHING_FOUND)
    explanation.plot().savefig(out)
    console().print(f"Picture: {out}", soft_wrap=True)
