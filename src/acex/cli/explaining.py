"""`acex explain`, `batch`, `subsets`, `schema` and `demo`: one row, many rows, and a description of their table."""

from __future__ import annotations

import shlex
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated

import typer

import acex
from acex.cli.case import BatchCase, Case, ModelFlags, Prepared
from acex.cli.ledgers import exists
from acex.cli.program import FAILED, NOTHING_FOUND, AsJson, Price, app, how_to_continue, say, stopped
from acex.cli.show import console, echo, print_json, table
from acex.cli.tables import LeftOut, OutputFlags, TableFlags, column_names, file_to_write, read_table
from acex.values import as_money, counted, plain, records

TABLES = (".csv", ".json", ".parquet", ".xlsx")
# What `acex demo` writes, prints and runs. The examples of all commands run in its folder.
BANK = """'''The model of the demo. acex only sees what `decide` answers; put your own model here.'''
from pathlib import Path
import pandas as pd
from sklearn.ensemble import RandomForestClassifier

loans = pd.read_csv(Path(__file__).with_name("loans.csv"))
columns = ["income", "employment_years", "debt_ratio", "credit_score", "loan_amount", "duration_months"]
forest = RandomForestClassifier(50, random_state=0).fit(loans[columns], loans["decision"])

def decide(rows):
    return forest.predict(rows[columns])
"""
QUESTION = """A bank's model has rejected a loan application. What is the smallest realistic
change with which the same model approves it? acex may only send rows to the
model and read its answers. Age, education, credit score and purpose are fixed."""
DEMO = (
    "acex explain loans.csv --model bank:decide --drop id,decision --row 17 --target approved "
    "--freeze age,education,credit_score,purpose --budget 30 --out why.json",
    "acex report why.json --out why.html",
)
NEXT = """
The model itself has approved the changed row. "step" is the size of a change
in standard deviations (sd) of loans.csv; "needed (asked)": without this change
the model rejects the row. {folder}/why.html shows every query. Try next:

  cd {folder}
  acex explain loans.csv --model bank:decide --drop id,decision --row 8 --target approved
  acex batch loans.csv --model bank:decide --drop id,decision --row 8 --row 17 --target approved
  acex studio --demo        # in a browser; needs pip install 'acex[studio]'

For your own decisions, put a table of known rows in the place of loans.csv, and
a Python function, a model file (.skops, .joblib, .onnx and others) or a web
address in the place of bank:decide. All commands: acex --help"""


def explain(
    case: Case,
    black_box: ModelFlags,
    output: OutputFlags,
    out: Annotated[Path | None, file_to_write("Write the explanation here, for acex report.", ".json")] = None,
    left_out: LeftOut = None,
    price_per_row: Price = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be sent and the most it can cost; send nothing.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Find the smallest realistic change to a row that changes the decision.

    Example: acex explain loans.csv --model bank:decide --drop id,decision --row 17
    --target approved --freeze age,education --range "income=0:9000" --budget 20
    --ledger loans.db --model-name bank-1 --out why.json

    With --ledger, an interrupted command continues when it is repeated with the
    same DATA, and no answer is paid for twice. Exit code 1: no counterfactual
    was found.
    """
    from acex.engine.explanation import without
    from acex.engine.redaction import redacted_error

    prepared = case.open(black_box, out, left_out, sign=output.sign)
    output.check(prepared.space.names)
    if dry_run:
        _print_plan(case, prepared, price_per_row, as_json)
        return
    ledger = None if case.ledger is None else acex.Ledger(case.ledger)
    explainer = case.explainer(prepared, ledger)
    name = None if prepared.ids is None else plain(prepared.ids[0])
    if name is not None and ledger is not None:  # record the name before sending anything
        explainer.search(prepared.factual, **prepared.options).begin([str(name)])
    try:
        explanation = explainer.explain(prepared.factual, **prepared.options)
    except (KeyboardInterrupt, acex.AcexError) as error:
        so_far: acex.Explanation | None = getattr(error, "explanation", None)
        if so_far is not None and so_far.outcome == "found":
            say(f"before that: {without(so_far, output.columns).summary()}")
        if isinstance(error, KeyboardInterrupt):
            raise stopped(explainer.ledger) from None
        if so_far is not None and isinstance(error, acex.ModelFailed):
            error.add_note(how_to_continue(explainer.ledger))
        if so_far is not None and out is not None:
            so_far.to_json(out, left_out=left_out, **output.options)  # keep what was paid for
        if output.columns and isinstance(error, acex.ModelFailed):
            error.args = (f"the model failed: {redacted_error(str(error), output.columns)}",)
        raise
    if name is not None:
        explanation = replace(explanation, metadata={**explanation.metadata, "id": name})
    # Stdout first: a full disk must not lose what was paid for.
    if as_json:
        echo(explanation.to_json(**output.options))
    else:
        console().print(str(without(explanation, output.columns)))
        for remark in prepared.remarks:
            say(remark)
    if out is not None:
        explanation.to_json(out, left_out=left_out, **output.options)
    if explanation.outcome not in ("found", "already_target"):
        raise typer.Exit(NOTHING_FOUND)


def _print_plan(case: Case, prepared: Prepared, price: float | None, as_json: bool) -> None:
    """Print what would be sent, and the most it can cost, without writing to the ledger."""
    from acex.audit.quote import quote
    from acex.ledger import MemoryLedger

    plan = case.explainer(prepared, None).search(prepared.factual, **prepared.options).plan
    model_id = prepared.model.identity(is_shared=case.ledger is not None)
    with acex.Ledger(case.ledger) if case.ledger is not None and exists(case.ledger) else MemoryLedger() as ledger:
        priced = quote([plan], ledger, model_id, budget=plan.budget, price_per_row=price)
    most, paid, money = priced.most_queries, priced.paid_before, priced.money(priced.most_queries)
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
        "most_cost": money,
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
    spending = "" if money is None else f", for {as_money(money)} at most"
    out.print(f"Wanted: {wanted}. Model: {model_id}. Strategy: {values['strategy']}.", soft_wrap=True)
    out.print(f"At most {counted(most, 'row')} would be sent{spending} (budget {plan.budget}, {paid} paid before).")
    if priced.ended:
        out.print("It was explained before: the ledger has the answers.")
    if priced.beyond_budget:
        out.print("The model's budget in the ledger allows no more rows; see acex ledger budget.")


def subsets(
    case: Case,
    black_box: ModelFlags,
    max_features: Annotated[int, typer.Option(min=1, max=3, help="Maximum number of features per set.")] = 2,
    queries_each: Annotated[int, typer.Option(min=2, help="Maximum number of rows to send per set.")] = 6,
    out: Annotated[Path | None, file_to_write("Write the result here.", ".html", ".json")] = None,
    as_json: AsJson = False,
) -> None:
    """Show for each feature, and each pair, whether changing it alone is enough.

    Example: acex subsets loans.csv --model bank:decide --drop id,decision --row 17
    --target approved --freeze age,education --budget 30

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
    output: OutputFlags,
    budget_total: Annotated[
        int | None, typer.Option(min=1, help="Maximum number of rows to send for the whole batch, in all runs.")
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
        int | None,
        typer.Option(
            min=2, metavar="N", help="Look for changes that flip the decision for many rows, with N more queries."
        ),
    ] = None,
    price_per_row: Price = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Estimate the price from what the ledger contains; send nothing.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Explain many rows, which share their answers.

    Example: acex batch loans.csv --model bank:decide --drop id --outcomes decision
    --where "decision == 'rejected' and id < 20" --target approved --budget 8
    --ledger loans.db --model-name bank-1 --out rows.csv

    With --ledger, an interrupted command continues when it is repeated, and no
    answer is paid for twice. Exit code 1: no row has a counterfactual; 3: some
    rows failed.
    """
    from acex.audit.groups import grouping

    if (of_json := output.sign or left_out) and (out is None or out.suffix.lower() != ".json"):
        raise ValueError(f"{of_json}: --sign and --left-out need --out with a .json file; tables have no certificate.")
    prepared = case.open(black_box, out, left_out, sign=output.sign)
    output.check(prepared.space.names)
    names = column_names([] if by is None else [by], prepared.whole.columns, "--by")
    groups = grouping(prepared.whole[names], prepared.whole, redact=output.columns) if names else None
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
            for remark in (*prepared.remarks, *map(str, explainer.remarks)):
                say(remark)
        return
    try:
        frame = many.frame(redact=output.columns)
    except KeyboardInterrupt:
        done = int((many.frame()["outcome"] != "unfinished").sum())
        raise stopped(explainer.ledger, f" after {done} of {len(many)} rows") from None
    # Stdout first: a full disk must not lose what was paid for.
    summary = many.summary(by=groups, redact=output.columns)
    common = None if common_changes is None else many.common_changes(budget=common_changes).without(output.columns)
    n_paid = summary.queries + (0 if common is None else common.queries)
    if as_json:
        document = {
            "queries": summary.queries,
            "queries_earlier": summary.earlier,
            "rows": records(frame.reset_index(names="row")),
        }
        if price_per_row is not None:
            document |= {"price_per_row": price_per_row, "spent": n_paid * price_per_row}
        if common is not None:
            document |= {"common_changes": records(common.frame()), "queries_common_changes": common.queries}
        if summary.groups is not None:
            document["groups"] = summary.groups.to_dict()
        print_json(document)
    else:
        console().print("\n\n".join(map(str, [summary] if common is None else [summary, common])), soft_wrap=True)
        if price_per_row is not None:
            most = "" if money is None else f" of at most {as_money(money)}"
            spent = f"{as_money(n_paid * price_per_row)}{most} ({counted(n_paid, 'query', 'queries')})"
            new = f", {as_money((n_paid - summary.earlier) * price_per_row)} in this run" if summary.earlier else ""
            console().print(f"\nSpent: {spent}{new}.", soft_wrap=True)
        sensitive = [remark for remark in many[0].remarks if remark.code == "sensitive"] if len(many) else []
        for remark in (*prepared.remarks, *map(str, (*explainer.remarks, *sensitive))):
            say(remark)
    if out is not None and out.suffix.lower() == ".json":
        many.to_json(out, by=groups, left_out=left_out, **output.options)
    elif out is not None:
        many.save(out, redact=output.columns)
    if many.errors:
        position, why = next(iter(many.errors.items()))
        again = " The same command tries such rows again." if ledger and why.startswith("ModelFailed") else ""
        shown = f"row {frame.index[position]}: {frame['error'].iloc[position]}"
        say(f"{len(many.errors)} of {len(many)} rows failed, such as {shown}{again}")
        raise typer.Exit(FAILED)
    if not frame["outcome"].isin(["found", "already_target"]).any():
        raise typer.Exit(NOTHING_FOUND)


def _affordable(money: float, price: float | None, budget_total: int | None, reserved: int) -> int:
    """How many rows this amount of money pays for, minus those reserved for common changes."""
    from acex.ledger.base import rows_for

    if budget_total is not None:
        raise ValueError("--money and --budget-total limit the same; choose one of them.")
    if not price:
        raise ValueError("--money needs --price-per-row (for a model billed by tokens: money in --model-config).")
    rows = rows_for(money, price) - reserved
    if rows < 1:
        raise ValueError(f"--money {money:g} does not pay for {counted(reserved + 1, 'row')} at {price:g} each.")
    return rows


def schema(
    data: Annotated[Path, typer.Argument(metavar="DATA", help="Known rows: a .csv, .parquet or .json file.")],
    out: Annotated[Path | None, file_to_write("The TOML file to write; by default stdout.")] = None,
    drop: Annotated[list[str] | None, typer.Option(metavar="COLUMNS", help="Columns hidden from the model.")] = None,
    *,
    reading: TableFlags,
) -> None:
    """Describe the columns of a file in TOML, to be edited and used with --schema.

    Example: acex schema loans.csv --drop id,decision --out loans.toml

    Ranges and categories are those of all known values, also in rows with gaps.
    """
    from acex.space.schema import schema_text

    rows = read_table(data, **reading.arguments)
    hidden = column_names(drop, rows.columns, "--drop")
    space = acex.Space.infer(rows.drop(columns=hidden), missing="keep", **reading.kinds(rows, hidden))
    space = replace(space, features=tuple(replace(f, gaps=False) for f in space.features))  # --missing decides it later
    if out is None:
        echo(schema_text(space), nl=False)
        return
    if out.exists():
        raise ValueError(f"{out} exists and may have been edited; name another file for --out.")
    out.write_text(schema_text(space), encoding="utf-8")
    say(f"{len(space)} columns are described in {out}. Edit it, then: acex explain {data} --schema {out} ...")


def demo(
    out: Annotated[Path, typer.Option(file_okay=False, help="Folder for its files.")] = Path("acex-demo"),
) -> None:
    """Explain a rejected loan, step by step, and leave the files to try more.

    Example: acex demo

    It writes loans.csv, a table of loan applications, and bank.py, a small model
    that decides on them; the examples of all commands run in this folder.
    """
    from contextlib import chdir

    loans = acex.datasets.loan()
    out.mkdir(parents=True, exist_ok=True)
    if not (out / "bank.py").exists():  # it may have been edited
        loans.rows.assign(decision=loans.outcomes).to_csv(out / "loans.csv", index_label="id")
        (out / "bank.py").write_text(BANK, encoding="utf-8")
    console().print(QUESTION)
    with chdir(out):
        for command in DEMO:
            console().print(f"\n$ {command}")
            if code := app(shlex.split(command)[1:], standalone_mode=False):
                raise typer.Exit(code)
    console().print(NEXT.format(folder=out), soft_wrap=True)
