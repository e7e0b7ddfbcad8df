"""What is to be explained: the data, the rows, and what they may become, from flags and files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import typer

import acex
from acex.cli import flags
from acex.cli.flags import Given
from acex.cli.models import ModelFlags
from acex.cli.tables import column_names, matching, read_table, refuse_overwriting

if TYPE_CHECKING:
    import pandas as pd

    from acex.space.feature import Direction, Feature


@dataclass(frozen=True)
class Case:
    """The flags about the data, the row and the search."""

    data: Annotated[Path, typer.Argument(metavar="DATA", help="Known rows: a .csv or .parquet file.")]
    row: Annotated[list[int] | None, typer.Option(help="Position of the row in DATA; the first is 0.")] = None
    where: Annotated[str | None, typer.Option(metavar="QUERY", help='Selects the row: "id == 17".')] = None
    x: Annotated[Path | None, typer.Option(help="Another file with the row: .json, .csv.")] = None
    id_column: Annotated[str | None, typer.Option(metavar="COLUMN", help="Row names, hidden from the model.")] = None
    target_range: Annotated[
        str | None,
        typer.Option(
            metavar="RANGE",
            help='Range wanted, of a regressor: "100..120", "0.8..", "+10%"; with --target and --scores, of the '
            "probability of that label.",
        ),
    ] = None
    increase: Annotated[list[str] | None, typer.Option(metavar="COLUMNS", help="May only increase.")] = None
    decrease: Annotated[list[str] | None, typer.Option(metavar="COLUMNS", help="May only decrease.")] = None
    drop: Annotated[list[str] | None, typer.Option(metavar="COLUMNS", help="Columns hidden from the model.")] = None
    schema: Annotated[Path | None, typer.Option(help="TOML file that describes columns; see acex schema.")] = None
    decimal: Annotated[str, typer.Option(metavar="MARK", help="Decimal mark of DATA: '.' or ','.")] = "."
    given: Given = field(default_factory=Given)

    takes_many: ClassVar[bool] = False

    @property
    def ledger(self) -> str | None:
        """Where answers are recorded."""
        return self.given.get("ledger")

    def open(self, black_box: ModelFlags, *written: Path | None) -> Prepared:
        """What `prepare` returns for the model of the flags; files that are read must not be among those `written`."""
        for path in written:
            read = (self.data, self.x, self.schema, self.ledger, black_box.model, black_box.model_config)
            refuse_overwriting(path, *read)
        return self.prepare(black_box.open(self.given))

    def prepare(self, model: Any) -> Prepared:
        """Everything as `acex.Explainer` takes it; the table is read once.

        Raises:
            ValueError: a flag or a file is wrong; nothing was sent.
        """
        from acex.space.schema import read_rules, read_schema, with_schema

        given, table = self.given, read_table(self.data, self.decimal)
        hidden = column_names(self.drop, table.columns, "--drop")
        for flag, name in (("--outcomes", given.get("outcomes")), ("--id-column", self.id_column)):
            hidden += column_names([] if name is None else [name], table.columns, flag, whole=True)
        missing = given.get("missing", "drop")
        if missing not in ("drop", "keep"):
            raise ValueError(f"--missing: expected drop or keep, got {missing!r}.")
        schema = read_schema(self.schema) if self.schema else ()
        rows, space = with_schema(table.drop(columns=hidden), schema, missing)
        outcomes = None if "outcomes" not in given else table[given["outcomes"]]
        known, remarks = rows, []
        if frozen := [f.name for f in space.features if f.frozen and not self.schema]:
            remarks.append(f"{', '.join(frozen)}: a number with a distinct value per row; frozen.")
        if outcomes is not None and outcomes.isna().any():
            n = int(outcomes.isna().sum())
            remarks.append(f"{n} rows have no outcome in {given['outcomes']} and were left out.")
            known, outcomes = rows[outcomes.notna()], outcomes.dropna()
        space = space.with_grid(flags.grid(given.get("grid", ()), space.names))
        by_column = partial(self._by_column, space)
        space = space.adjust(other=by_column("other", _category))
        wrapped = self._model(model)
        labels = list(wrapped.labels or ()) or ([] if outcomes is None else outcomes.unique().tolist())
        options = {
            **given.of("row"),
            "target": flags.target(given.get("target"), self.target_range, [*wrapped.class_names.values(), *labels]),
            "freeze": column_names(given.get("freeze"), rows.columns, "--freeze"),
            "directions": self._directions(space),
            "ranges": by_column("ranges", lambda feature, text: feature.range_in(text)),
            "values": by_column("values", lambda feature, text: feature.values_in(text)),
            "rules": [*(read_rules(self.schema) if self.schema else ()), *given.get("rules", ())],
            **self._strategy(space),
        }
        positions = self._positions(table)
        whole = read_table(self.x, self.decimal) if self.x else table.iloc[positions]
        factual = whole.drop(columns=[name for name in hidden if name in whole]) if self.x else rows.iloc[positions]
        if len(factual) != 1 and not self.takes_many:
            raise ValueError(f"expected exactly one row, got {len(factual)}.")
        return Prepared(table, known, outcomes, space, factual, whole, wrapped, options, self._ids(whole), remarks)

    def explainer(self, prepared: Prepared, ledger: acex.Ledger | None) -> acex.Explainer:
        """The explainer of these data and this model."""
        kind = self.given.get("plausibility")
        try:
            return acex.Explainer(
                prepared.model,
                prepared.rows,
                outcomes=None if prepared.outcomes is None else prepared.outcomes.tolist(),
                space=prepared.space,
                plausibility=None if kind == "none" else acex.Plausibility(kind=kind),
                ledger=ledger,
                share_answers=not self.given.get("share_answers", False),
                seed=prepared.options.get("seed", 0),
            )
        except TypeError as error:  # such as scores of a model without them
            raise ValueError(str(error)) from error

    def _model(self, model: Any) -> acex.Model:
        """The model with the name, class names and other options given."""
        from acex.models.adapters import known_labels

        given = self.given.of("model")
        if "class_names" in given:
            given["class_names"] = flags.class_names(given["class_names"], known_labels(model) or ())
        if "noise" in given:
            given["noise"] = flags.noise(given["noise"])
        if isinstance(model, acex.HttpModel):
            given.pop("timeout", None)  # `ModelFlags.open` has set it
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
            cost["weights"] = self._by_column(space, "weights", lambda _, text: flags.number(text))
        return {
            "strategy": replace(strategy, **own),
            "cost": acex.Cost(**{"per_category": strategy.default_per_category, **cost}),
        }

    def _by_column(self, space: acex.Space, option: str, read: Callable[[Feature, str], Any]) -> dict[str | int, Any]:
        return flags.by_column(
            self.given.get(option, ()), space.names, option, lambda name, text: read(space.feature(name), text)
        )

    def _positions(self, table: pd.DataFrame) -> list[int]:
        """The rows of the table that --row or --where select; by default all."""
        given = [f"--{name}" for name in ("row", "where", "x") if getattr(self, name) is not None]
        if len(given) > 1 or not (given or self.takes_many):
            raise ValueError(f"expected one of --row, --where and --x, got {' and '.join(given) or 'none'}.")
        if self.row is not None:
            if wrong := [i for i in self.row if not 0 <= i < len(table)]:
                raise ValueError(f"--row {wrong[0]}: {self.data} has the rows 0 to {len(table) - 1}.")
            return list(self.row)
        if self.where is None:
            return list(range(len(table)))
        found = matching(table, self.where)
        if not found:
            raise ValueError(f"--where {self.where!r}: no row of {self.data} matches.")
        return found

    def _ids(self, whole: pd.DataFrame) -> list[Any] | None:
        """The names of the rows to explain."""
        if self.id_column is None:
            return None
        if self.id_column not in whole.columns:
            raise ValueError(f"--id-column: {self.x} has no {self.id_column!r}. Use --drop {self.id_column} instead.")
        if whole[self.id_column].isna().any():
            raise ValueError(f"--id-column {self.id_column}: the name of a row is missing.")
        if (twice := whole[self.id_column].map(str).duplicated()).any():
            raise ValueError(f"--id-column {self.id_column}: {whole[self.id_column][twice].iloc[0]!r} is repeated.")
        return whole[self.id_column].tolist()

    def _directions(self, space: acex.Space) -> dict[str, Direction]:
        up = column_names(self.increase, space.names, "--increase")
        down = column_names(self.decrease, space.names, "--decrease")
        if both := set(up) & set(down):
            raise ValueError(f"{both.pop()!r} can be in --increase or in --decrease, not in both.")
        return {**dict.fromkeys(up, "increase"), **dict.fromkeys(down, "decrease")}


@dataclass(frozen=True)
class BatchCase(Case):
    """The same for many rows: by default all of DATA."""

    takes_many: ClassVar[bool] = True


@dataclass(frozen=True)
class Prepared:
    """Data, rows to explain and options in the form of `acex.Explainer`."""

    table: pd.DataFrame  # DATA with all its columns
    rows: pd.DataFrame  # known rows as the model sees them
    outcomes: pd.Series[Any] | None
    space: acex.Space
    factual: pd.DataFrame  # the rows to explain
    whole: pd.DataFrame  # the same with all columns of their file
    model: acex.Model
    options: dict[str, Any]  # of `Explainer.search`
    ids: Sequence[Any] | None  # names of the rows to explain
    remarks: list[str]  # what was assumed


def _category(feature: Feature, text: str) -> Any:
    return {str(category): category for category in getattr(feature, "categories", ())}.get(text, text)
