"""What is to be explained: the data, the row, and what it may become, from flags and files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast

import typer

import acex
from acex.cli import flags
from acex.cli.flags import Given
from acex.cli.tables import column_names, matching, read_row, read_table

if TYPE_CHECKING:
    import pandas as pd

    from acex.space.feature import Direction

ROW, FILES = "The row", "The data"


@dataclass(frozen=True)
class Case:
    """What the flags say about the data, the row and the search."""

    data: Annotated[Path, typer.Argument(metavar="DATA", help="Known rows: a .csv or .parquet file.")]
    row: Annotated[
        list[int] | None, typer.Option(help="Position of the row in DATA; the first is 0.", rich_help_panel=ROW)
    ] = None
    where: Annotated[
        str | None,
        typer.Option(metavar="QUERY", help='The row to explain, such as "id == 17".', rich_help_panel=ROW),
    ] = None
    x: Annotated[
        Path | None, typer.Option(help="The row to explain in a file of its own: .json, .csv.", rich_help_panel=ROW)
    ] = None
    id_column: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="Names of the rows; the model does not see it.", rich_help_panel=ROW),
    ] = None
    target_range: Annotated[
        str | None,
        typer.Option(
            metavar="RANGE",
            help='Numbers wanted, of a regressor: "100..120", "0.8..", "+10%"; with --target and --scores, the '
            "probability of that label.",
            rich_help_panel="What is wanted",
        ),
    ] = None
    increase: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMNS", help="Columns that may only increase.", rich_help_panel="What may change"),
    ] = None
    decrease: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMNS", help="Columns that may only decrease.", rich_help_panel="What may change"),
    ] = None
    drop: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMNS", help="Columns of DATA that the model does not see.", rich_help_panel=FILES),
    ] = None
    schema: Annotated[
        Path | None,
        typer.Option(help="TOML file that says what columns hold; see acex schema.", rich_help_panel=FILES),
    ] = None
    decimal: Annotated[
        str, typer.Option(metavar="MARK", help="Decimal mark of DATA: '.' or ','.", rich_help_panel=FILES)
    ] = "."
    given: Given = field(default_factory=Given)

    @property
    def ledger(self) -> str | None:
        """Where answers are recorded."""
        return self.given.get("ledger")

    def prepare(self, model: Any) -> Prepared:
        """Everything as `acex.Explainer` takes it; the table is read once.

        Raises:
            ValueError: a flag or a file is wrong; nothing was sent.
        """
        from acex.space.schema import read_rules, read_schema, with_schema

        given, table = self.given, read_table(self.data, self.decimal)
        hidden = column_names(self.drop, table.columns, "--drop")
        for flag, name in (("--outcomes", given.get("outcomes")), ("--id-column", self.id_column)):
            if name is not None:
                hidden += column_names([name], table.columns, flag, whole=True)
        rows = table.drop(columns=hidden)
        rows, space = with_schema(rows, read_schema(self.schema) if self.schema else (), self._missing)
        outcomes = None if "outcomes" not in given else table[given["outcomes"]]
        known, remarks = rows, []
        if ids := [f.name for f in space.features if f.frozen and not self.schema]:
            remarks.append(f"{', '.join(ids)}: a number with a distinct value per row; frozen.")
        if outcomes is not None and outcomes.isna().any():
            n = int(outcomes.isna().sum())
            remarks.append(f"{n} rows have no outcome in {given['outcomes']} and were left out.")
            known, outcomes = rows[outcomes.notna()], outcomes.dropna()
        space = space.with_grid(flags.grid(given.get("grid", ()), space.names))
        other: Any = self._by_column("other", "--other", "job=other", space, _category(space))
        space = space.adjust(other=other)
        wrapped = self._model(model)
        labels = list(wrapped.labels or ()) or ([] if outcomes is None else outcomes.unique().tolist())
        options = {
            **given.of("row"),
            "target": flags.target(given.get("target"), self.target_range, [*wrapped.class_names.values(), *labels]),
            "freeze": column_names(given.get("freeze"), rows.columns, "--freeze"),
            "directions": self._directions(space),
            "ranges": self._by_column("ranges", "--range", "income=0:90000", space, _range(space)),
            "values": self._by_column("values", "--values", "job=clerk|cook", space, _values(space)),
            "rules": [*(read_rules(self.schema) if self.schema else ()), *given.get("rules", ())],
            **self._strategy(space),
        }
        factual = self._factual(table, rows, hidden)
        ids_of = None if self.id_column is None else self._ids(table, factual)
        return Prepared(table, known, outcomes, space, factual, wrapped, options, ids_of, remarks)

    def explainer(self, prepared: Prepared, ledger: acex.Ledger | None) -> acex.Explainer:
        """What explains rows of these data."""
        try:
            return acex.Explainer(
                prepared.model,
                prepared.rows,
                outcomes=None if prepared.outcomes is None else prepared.outcomes.tolist(),
                space=prepared.space,
                plausibility=self._plausibility(),
                ledger=ledger,
                share_answers=not self.given.get("share_answers", False),
                seed=prepared.options.get("seed", 0),
            )
        except TypeError as error:  # such as scores from a model that has none
            raise ValueError(str(error)) from error

    def _model(self, model: Any) -> acex.Model:
        """The model with the name, class names and so on that were given."""
        from acex.models.adapters import known_labels

        given = self.given.of("model")
        if "class_names" in given:
            given["class_names"] = flags.class_names(given["class_names"], known_labels(model) or ())
        if "noise" in given:
            given["noise"] = flags.noise(given["noise"])
        if isinstance(model, acex.HttpModel):
            given.pop("timeout", None)  # it limits its requests itself
        try:
            return acex.Model(model, **given)
        except TypeError as error:
            raise ValueError(str(error)) from error

    def _strategy(self, space: acex.Space) -> dict[str, Any]:
        """The strategy and the cost, with their own options."""
        from acex.search.search import as_strategy

        strategy: Any = as_strategy(self.given.get("strategy", "feasible"))
        own = self.given.of("strategy")
        if unknown := [name for name in own if name not in {f.name for f in fields(strategy)}]:
            raise ValueError(f"--{unknown[0]} needs --strategy feasible, got {strategy.name}.")
        cost = self.given.of("cost")
        if "weights" in cost:
            cost["weights"] = self._by_column("weights", "--weight", "income=3", space, lambda _, text: float(text))
        return {
            "strategy": replace(strategy, **own),
            "cost": acex.Cost(**{"per_category": strategy.default_per_category, **cost}),
        }

    def _by_column(self, name: str, flag: str, example: str, space: acex.Space, read: Any) -> dict[str, Any]:
        return flags.by_column(self.given.get(name, ()), space, flag, example, read)

    def _factual(self, table: pd.DataFrame, rows: pd.DataFrame, hidden: list[str]) -> pd.DataFrame:
        """The row to explain, as a frame of one row."""
        found = self._rows(table, rows, hidden)
        if found is None:
            raise ValueError("Which row? Expected one of --row, --where and --x, got none.")
        if len(found) != 1:
            raise ValueError(f"expected exactly one row, got {len(found)}.")
        return found

    def _rows(self, table: pd.DataFrame, rows: pd.DataFrame, hidden: list[str]) -> pd.DataFrame | None:
        """The rows that --row, --where or --x choose; None where none of them was given."""
        given = [f"--{name}" for name in ("row", "where", "x") if getattr(self, name) is not None]
        if len(given) > 1:
            raise ValueError(f"Which row? Expected one of --row, --where and --x, got {' and '.join(given)}.")
        if self.row is not None:
            if wrong := [i for i in self.row if not 0 <= i < len(rows)]:
                raise ValueError(f"--row {wrong[0]}: {self.data} has the rows 0 to {len(rows) - 1}.")
            return rows.iloc[list(self.row)]
        if self.where is not None:
            found = matching(table, self.where)
            if not found:
                raise ValueError(f"--where {self.where!r}: no row of {self.data} matches.")
            return rows.iloc[found]
        if self.x is not None:
            own = self._read_own(self.x)
            return own.drop(columns=[name for name in hidden if name in own.columns])
        return None

    def _read_own(self, path: Path) -> pd.DataFrame:
        return read_row(path, self.decimal)

    def _ids(self, table: pd.DataFrame, factual: pd.DataFrame) -> list[Any]:
        """The names of the rows, by a column of the file that they are from."""
        column = cast(str, self.id_column)
        whole = table if self.x is None else self._read_own(self.x)
        if column not in whole.columns:
            raise ValueError(f"--id-column {column}: {self.x} has no such column. Use --drop {column} instead.")
        names = whole[column].loc[factual.index]
        if names.isna().any():
            raise ValueError(f"--id-column {column}: a row has no name there.")
        return names.tolist()

    @property
    def _missing(self) -> Literal["drop", "keep"]:
        missing = self.given.get("missing", "drop")
        if missing not in ("drop", "keep"):
            raise ValueError(f"--missing: expected drop or keep, got {missing!r}.")
        return "keep" if missing == "keep" else "drop"

    def _plausibility(self) -> acex.Plausibility | None:
        kind = self.given.get("plausibility")
        if kind == "none":
            return None
        try:
            return acex.Plausibility(kind=kind)
        except ValueError:
            raise ValueError(f"--plausibility: expected joint, lof or none, got {kind!r}.") from None

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
                    f"--{directions[name]} {name}: its values have no order. Declare it in a schema as kind 'ordinal' "
                    f"with its categories from lowest to highest (acex schema {self.data} --out schema.toml)."
                )
        return directions


@dataclass(frozen=True)
class BatchCase(Case):
    """The same for many rows: by default all of DATA."""

    def _factual(self, table: pd.DataFrame, rows: pd.DataFrame, hidden: list[str]) -> pd.DataFrame:
        found = self._rows(table, rows, hidden)
        return rows if found is None else found

    def _read_own(self, path: Path) -> pd.DataFrame:
        return read_table(path, self.decimal)


@dataclass(frozen=True)
class Prepared:
    """Data, row (of a batch: rows) and options in the form of `acex.Explainer`."""

    table: pd.DataFrame  # DATA with all its columns
    rows: pd.DataFrame  # known rows as the model sees them
    outcomes: pd.Series[Any] | None
    space: acex.Space
    factual: pd.DataFrame
    model: acex.Model
    options: dict[str, Any]  # of `Explainer.search`
    ids: Sequence[Any] | None  # names of the rows to explain
    remarks: list[str]  # what was assumed


def _range(space: acex.Space) -> Any:
    return lambda name, text: space.feature(name).range_in(text)


def _values(space: acex.Space) -> Any:
    return lambda name, text: space.feature(name).values_in(text)


def _category(space: acex.Space) -> Any:
    def read(name: str, text: str) -> Any:
        by_text = {str(category): category for category in getattr(space.feature(name), "categories", ())}
        return by_text.get(text, text)

    return read
