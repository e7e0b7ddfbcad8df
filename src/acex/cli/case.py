"""What is to be explained: the data, the row, and what it may become, from options and files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

import acex
from acex.cli.option_values import wanted
from acex.cli.tables import as_label, column_names, matching, read_row, read_table

if TYPE_CHECKING:
    import pandas as pd

    from acex.space.columns import Missing
    from acex.space.feature import Direction


@dataclass(frozen=True)
class Case:
    """What the options say about the data, the row and the search."""

    data: Annotated[Path, typer.Argument(metavar="DATA", help="Known rows: a .csv or .parquet file.")]
    row: Annotated[int | None, typer.Option(help="The row to explain by its position in DATA; the first one is 0.")] = (
        None
    )
    where: Annotated[
        str | None, typer.Option(metavar="QUERY", help='The row to explain, such as "id == 17": exactly one of DATA.')
    ] = None
    x: Annotated[Path | None, typer.Option(help="The row to explain in a file of its own: .json, .csv.")] = None
    target: Annotated[
        list[str] | None,
        typer.Option(metavar="LABEL", help="The label wanted; by default any other. Repeat it for several."),
    ] = None
    target_range: Annotated[
        str | None,
        typer.Option(
            metavar="RANGE",
            help='Numbers wanted, of a regressor: "100..120", "0.8..", "..120", "+10%"; with --target and --scores, '
            "the probability of that label.",
        ),
    ] = None
    freeze: Annotated[
        list[str] | None, typer.Option(metavar="COLUMNS", help="Columns that stay as they are: age,sex.")
    ] = None
    increase: Annotated[list[str] | None, typer.Option(metavar="COLUMNS", help="Columns that may only increase.")] = (
        None
    )
    decrease: Annotated[list[str] | None, typer.Option(metavar="COLUMNS", help="Columns that may only decrease.")] = (
        None
    )
    range: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN=VALUES", help='What a column may become: "income=0:90000", "job=clerk|cook".'),
    ] = None
    rule: Annotated[
        list[str] | None,
        typer.Option(metavar="RULE", help='What holds in every row: "duration <= 84 - age". Repeat it for several.'),
    ] = None
    weight: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN=NUMBER", help="How dear a change of a column is beside others (1): income=3."),
    ] = None
    budget: Annotated[int, typer.Option(min=2, help="Most rows to send to the model, the first included.")] = 60
    count: Annotated[int, typer.Option(min=1, help="How many counterfactuals.")] = 1
    labels: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="Column of DATA with true outcomes: a hint; the model does not see it."),
    ] = None
    drop: Annotated[
        list[str] | None, typer.Option(metavar="COLUMNS", help="Columns of DATA that the model does not see.")
    ] = None
    schema: Annotated[
        Path | None, typer.Option(help="TOML file that says what columns hold; acex schema writes a first one.")
    ] = None
    grid: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN=STEP", help='The step of a number: "loan=50", "rate=off"; off for all columns.'),
    ] = None
    decimal: Annotated[
        str, typer.Option(metavar="MARK", help="How DATA writes 0.5: with '.' or ','; the other is for thousands.")
    ] = "."
    missing: Annotated[
        str,
        typer.Option(metavar="drop|keep", help="Rows with gaps: drop, or keep them, for a model that takes gaps."),
    ] = "drop"
    other: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN=CATEGORY", help='What unknown categories count as: "job=other". Repeat it.'),
    ] = None
    class_name: Annotated[
        list[str] | None, typer.Option(metavar="LABEL=WORD", help='What a label is called: "1=approved". Repeat it.')
    ] = None
    margin: Annotated[
        float | None, typer.Option(metavar="P", help="How steady a counterfactual should be, from 0 to 1, such as 0.7.")
    ] = None
    max_changes: Annotated[int | None, typer.Option(min=1, help="Most columns that may change.")] = None
    category_cost: Annotated[
        float | None,
        typer.Option(metavar="SD", help="What a change of category counts, in standard deviations; 1 by default."),
    ] = None
    change_cost: Annotated[
        float, typer.Option(metavar="SD", help="What every change counts besides; 1 for the fewest first.")
    ] = 0.0
    strategy: Annotated[str, typer.Option(metavar="NAME", help="How to search: feasible or penalty.")] = "feasible"
    plausibility: Annotated[
        str | None,
        typer.Option(
            metavar="KIND",
            help="What looks real: joint (values fit each other; the default), lof (as in the paper), none: anything.",
        ),
    ] = None
    effort: Annotated[
        str,
        typer.Option(metavar="NAME", help="settle: stop when more hardly pays; spend: use the whole budget."),
    ] = "settle"
    seed: Annotated[int, typer.Option(min=0, help="Another seed asks other questions.")] = 0
    queries_per_round: Annotated[int, typer.Option(min=1, help="Rows that are asked at once.")] = 1
    noise: Annotated[
        str,
        typer.Option(metavar="SHARE|auto", help="Share of answers that a model which contradicts itself gets wrong."),
    ] = "0"
    confirm: Annotated[
        int, typer.Option(min=1, help="With --noise: how many more votes for than against a row that is returned.")
    ] = 3
    no_pool: Annotated[
        bool, typer.Option("--no-pool", help="Do not use what the model was asked for other explanations.")
    ] = False
    ledger: Annotated[
        str | None,
        typer.Option(metavar="FILE|URL", help="Where answers are written down, so that none is paid for twice."),
    ] = None
    model_id: Annotated[str | None, typer.Option(help="The model's name in the ledger.")] = None

    def prepare(self, known_labels: Sequence[Any] | None = None) -> Prepared:
        """Data and row as `acex.Explainer` takes them, with the labels the model can give where it says so."""
        from acex.space.schema import read_rules, read_schema, with_schema

        table = read_table(self.data, self.decimal)
        hidden = column_names(self.drop, table.columns, "--drop")
        if self.labels is not None:
            [labels] = column_names([self.labels], table.columns, "--labels", whole=True)
            hidden.append(labels)
        rows = table.drop(columns=hidden)
        outcomes = None if self.labels is None else table[self.labels]
        rows, space = with_schema(rows, read_schema(self.schema) if self.schema else (), self._missing)
        known, remarks = rows, []
        if ids := [f.name for f in space.features if f.frozen and not self.schema]:
            remarks.append(f"{', '.join(ids)}: a number for each row, which stays as it is.")
        if outcomes is not None and outcomes.isna().any():
            remarks.append(f"{int(outcomes.isna().sum())} rows have no outcome in {self.labels} and were left out.")
            known, outcomes = rows[outcomes.notna()], outcomes.dropna()
        space = space.with_grid(grid_steps(self.grid or (), space))
        space = space.adjust(other=dict(_other(text, space) for text in self.other or ()))
        names = self._class_names(known_labels or ())
        words = list(known_labels or ()) or ([] if outcomes is None else outcomes.unique().tolist())
        return Prepared(
            rows=known,
            remarks=remarks,
            labels=None if outcomes is None else outcomes.tolist(),
            space=space,
            factual=self._factual(table, rows, hidden),
            target=wanted(self.target, self.target_range, [*names.values(), *words]),
            class_names=names or None,
            freeze=column_names(self.freeze, rows.columns, "--freeze"),
            directions=self._directions(space),
            ranges=dict(_range(text, space) for text in self.range or ()),
            rules=[*(read_rules(self.schema) if self.schema else ()), *(self.rule or ())],
            weights=dict(_weight(text, space) for text in self.weight or ()),
        )

    def search_options(self, prepared: Prepared) -> dict[str, Any]:
        """The arguments of `Explainer.search`, besides the row."""
        return {
            "target": prepared.target,
            "budget": self.budget,
            "count": self.count,
            "freeze": prepared.freeze,
            "ranges": prepared.ranges,
            "rules": prepared.rules,
            "directions": prepared.directions,
            "weights": prepared.weights,
            "strategy": self.strategy,
            "margin": self.margin,
            "max_changes": self.max_changes,
            **({} if self.category_cost is None else {"category_cost": self.category_cost}),
            "change_cost": self.change_cost,
            "effort": self.effort,
            "queries_per_round": self.queries_per_round,
            "noise": _noise(self.noise),
            "confirm": self.confirm,
            "seed": self.seed,
        }

    def _class_names(self, known: Sequence[Any]) -> dict[Any, str]:
        """What labels are called; `known` are those that the model says it gives."""
        names = {}
        for text in self.class_name or ():
            label, equals, word = text.partition("=")
            if not (label and equals and word):
                raise ValueError(f"--class-name {text!r}: expected LABEL=WORD, such as 1=approved.")
            names[as_label(label, known)] = word
        return names

    def explainer(self, prepared: Prepared, model: Any, ledger: acex.Ledger | None, **options: Any) -> acex.Explainer:
        """What explains rows of these data."""
        try:
            return acex.Explainer(
                model,
                prepared.rows,
                labels=prepared.labels,
                space=prepared.space,
                missing=self._missing,
                plausibility=self._plausibility(),
                pool=not self.no_pool,
                ledger=ledger,
                model_id=self.model_id,
                class_names=prepared.class_names,
                seed=self.seed,
                **options,
            )
        except TypeError as error:  # such as scores from a model that has none
            raise ValueError(str(error)) from error

    def _factual(self, table: pd.DataFrame, rows: pd.DataFrame, hidden: list[str]) -> pd.DataFrame:
        given = [name for name in ("row", "where", "x") if getattr(self, name) is not None]
        if len(given) != 1:
            said = " and ".join(f"--{name}" for name in given) or "none"
            raise ValueError(f"Which row? Expected one of --row, --where and --x, got {said}.")
        if self.row is not None:
            if not 0 <= self.row < len(rows):
                raise ValueError(f"--row {self.row}: {self.data} has the rows 0 to {len(rows) - 1}.")
            return rows.iloc[[self.row]]
        if self.where is not None:
            found = matching(table, self.where)
            if len(found) != 1:
                raise ValueError(f"--where {self.where!r}: expected exactly one row of {self.data}, got {len(found)}.")
            return rows.iloc[found]
        assert self.x is not None
        own = read_row(self.x, self.decimal)
        return own.drop(columns=[name for name in hidden if name in own.columns])

    @property
    def _missing(self) -> Missing:
        if self.missing not in ("drop", "keep"):
            raise ValueError(f"--missing: expected drop or keep, got {self.missing!r}.")
        return "keep" if self.missing == "keep" else "drop"

    def _plausibility(self) -> acex.Plausibility | None:
        if self.plausibility == "none":
            return None
        try:
            return acex.Plausibility(kind=self.plausibility)  # type: ignore[arg-type]
        except ValueError:
            raise ValueError(f"--plausibility: expected joint, lof or none, got {self.plausibility!r}.") from None

    def _directions(self, space: acex.Space) -> dict[str, Direction]:
        directions: dict[str, Direction] = {}
        for name in column_names(self.increase, space.names, "--increase"):
            directions[name] = "increase"
        for name in column_names(self.decrease, space.names, "--decrease"):
            if name in directions:
                raise ValueError(f"{name!r} can be in --increase or in --decrease, not in both.")
            directions[name] = "decrease"
        for name in directions:
            if not space.feature(name).ordered:
                raise ValueError(
                    f"--{directions[name]} {name}: its values have no order. Say it in a schema, as kind 'ordinal' "
                    f"with its categories from lowest to highest (acex schema {self.data} --out schema.toml)."
                )
        return directions


@dataclass(frozen=True)
class Batch(Case):
    """The same for many rows: by default all of DATA."""

    where: Annotated[
        str | None, typer.Option(metavar="QUERY", help="The rows to explain, such as \"decision == 'reject'\".")
    ] = None
    x: Annotated[Path | None, typer.Option(help="The rows to explain in a file of their own: .csv, .parquet.")] = None

    def _factual(self, table: pd.DataFrame, rows: pd.DataFrame, hidden: list[str]) -> pd.DataFrame:
        if self.row is None and self.where is None and self.x is None:
            return rows
        if self.row is not None or (self.where is not None and self.x is not None):
            return super()._factual(table, rows, hidden)
        if self.where is not None:
            found = matching(table, self.where)
            if not found:
                raise ValueError(f"--where {self.where!r}: no row of {self.data} is such.")
            return rows.iloc[found]
        assert self.x is not None
        own = read_table(self.x, self.decimal)
        return own.drop(columns=[name for name in hidden if name in own.columns])


@dataclass(frozen=True)
class Prepared:
    """Data, row (of a batch: rows) and limits in the form of `acex.Explainer`."""

    rows: pd.DataFrame
    remarks: list[str]  # what was taken for granted
    labels: list[Any] | None
    space: acex.Space
    factual: pd.DataFrame
    target: Any  # as `acex.explain` takes it
    class_names: dict[Any, str] | None
    freeze: list[str]
    directions: dict[str, Direction]
    ranges: dict[str, Any]
    rules: list[str]
    weights: dict[str, float]


def _noise(text: str) -> Any:
    try:
        return text if text == "auto" else float(text)
    except ValueError:
        raise ValueError(f"--noise {text!r}: expected a share of answers, such as 0.05, or auto.") from None


def grid_steps(texts: Sequence[str], space: acex.Space) -> dict[str | int, float | None] | Literal[False]:
    if "off" in texts:
        return False
    steps: dict[str | int, float | None] = {}
    for text in texts:
        name, _, step = text.rpartition("=")
        try:
            number = None if step == "off" else float(step)
        except ValueError:
            raise ValueError(f'--grid {text!r}: expected COLUMN=STEP, such as "loan=50", COLUMN=off or off.') from None
        [name] = column_names([name], space.names, "--grid", whole=True)
        steps[name] = int(number) if number is not None and number.is_integer() else number
    return steps


def _range(text: str, space: acex.Space) -> tuple[str, Any]:

    name, equals, values = text.partition("=")
    if not equals:
        raise ValueError(f'--range {text!r}: expected COLUMN=LOW:HIGH, such as "income=0:90000", or COLUMN=A|B.')
    [name] = column_names([name], space.names, "--range", whole=True)
    feature = space.feature(name)
    if values == "missing" and not feature.gaps and "missing" not in getattr(feature, "categories", ()):
        raise ValueError(f"--range {text!r}: nothing may be missing here; for a model that takes gaps, --missing keep.")
    try:
        is_list = feature.lists_codes or (feature.gaps and values == "missing")
        return name, feature.values_in(values) if is_list else feature.range_in(values)
    except ValueError as error:
        raise ValueError(f"--range {text!r}: {error}") from None


def _other(text: str, space: acex.Space) -> tuple[str | int, Any]:
    name, equals, word = text.partition("=")
    if not equals:
        raise ValueError(f"--other {text!r}: expected COLUMN=CATEGORY, such as job=other.")
    [name] = column_names([name], space.names, "--other", whole=True)
    by_text = {str(category): category for category in getattr(space.feature(name), "categories", ())}
    return name, by_text.get(word, word)


def _weight(text: str, space: acex.Space) -> tuple[str, float]:
    name, equals, number = text.rpartition("=")
    if not equals:
        raise ValueError(f"--weight {text!r}: expected COLUMN=NUMBER, such as income=3.")
    [name] = column_names([name], space.names, "--weight", whole=True)
    try:
        return name, float(number)
    except ValueError:
        raise ValueError(f"--weight {text!r}: expected COLUMN=NUMBER, such as income=3.") from None
