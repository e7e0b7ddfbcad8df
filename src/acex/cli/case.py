"""Convert flags and files (data, rows, model, options) to the arguments of `acex.Explainer`."""

from __future__ import annotations

import re
import tomllib
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import typer

import acex
from acex.cli import flags
from acex.cli.flags import Given
from acex.cli.program import say
from acex.cli.tables import TableFlags, column_names, matching, read_table
from acex.options import ALLOWED, MODEL, WANTED, search_arguments, suggests_names
from acex.values import listed, refuse_overwriting

if TYPE_CHECKING:
    import pandas as pd

    from acex.space.feature import Direction, Feature

PASSWORD = re.compile(r"https?://[^/:@]*:(?!\d*[/?#])\S*@")  # not a port; the password may contain a slash
# Types of arguments in --model-config that `HttpModel` does not check before a row is sent.
CONFIG_TYPES = {"labels": str, "input_name": str, "version": str, "classes": list, "headers_from_env": dict}


@dataclass(frozen=True)
class ModelFlags:
    """The flags that locate the model."""

    panel: ClassVar[str] = MODEL
    model: Annotated[
        str,
        typer.Option(
            show_default=False,
            help="A file (.skops, .onnx, .json, .ubj, .txt, .cbm; .joblib, .pkl), module:name for Python code, or "
            "http(s)://...",
        ),
    ] = ""
    protocol: Annotated[
        str | None, typer.Option(metavar="v2|mlflow|json|chat", help="Protocol of an http address.")
    ] = None
    model_config: Annotated[Path | None, typer.Option(help="TOML file with more arguments of acex.HttpModel.")] = None
    header_from_env: Annotated[
        list[str] | None, typer.Option(metavar="HEADER=VARIABLE", help="Header from an environment variable.")
    ] = None
    allow_pickle: Annotated[bool, typer.Option("--allow-pickle", help="Load pickles, which may run any code.")] = False

    def open(self, timeout: float | None = None) -> Any:
        """The model, ready to be queried; `timeout` is for an HTTP endpoint.

        Raises:
            ValueError: the flags are invalid, or the model cannot be loaded.
        """
        if not self.model:
            raise ValueError("--model is needed: a file, module:name or http(s)://...")
        with warnings.catch_warnings(record=True) as raised:
            warnings.simplefilter("always", UserWarning)
            try:
                is_remote = self.model.startswith(("http://", "https://"))
                model = self._remote(timeout) if is_remote else self._local()
            except TypeError as error:
                raise ValueError(f"--model {self.model}: {error}") from error
        for warning in raised:
            say(f"warning: {warning.message}")
        return model

    def _local(self) -> Any:
        for option, value in (("protocol", self.protocol), ("model-config", self.model_config)):
            if value is not None:
                raise ValueError(f"--{option} is for an http address, not for --model {self.model}.")
        try:
            return acex.load_model(self.model, allow_pickle=self.allow_pickle)
        except (ValueError, OSError, acex.AcexError):
            raise
        except Exception as error:  # a user's module or a pickle may raise anything
            raise ValueError(f"--model {self.model}: {type(error).__name__}: {error}") from error

    def _remote(self, timeout: float | None) -> Any:
        if self.protocol is None:
            raise ValueError(f"--model {self.model} needs --protocol: v2, mlflow, json or chat.")
        if PASSWORD.match(self.model):
            raise ValueError("--model: a password in the address would be stored; give it with --header-from-env.")
        more: dict[str, Any] = {}
        if self.model_config is not None:
            try:
                more = tomllib.loads(self.model_config.read_text(encoding="utf-8"))
            except (ValueError, RecursionError) as error:
                raise ValueError(f"--model-config {self.model_config}: {error}") from None
            for name, kind in CONFIG_TYPES.items():
                if not isinstance(more.get(name, kind()), kind):
                    expected = f"expected {kind.__name__}, got {more[name]!r}"
                    raise ValueError(f"--model-config {self.model_config}: {name}: {expected}.")
        headers = {header: str(variable) for header, variable in more.pop("headers_from_env", {}).items()}
        for text in self.header_from_env or ():
            header, _, variable = text.partition("=")
            if not (header and variable):
                raise ValueError(f"--header-from-env: expected HEADER=VARIABLE, got {header!r} without a variable.")
            headers[header] = variable
        more |= {} if timeout is None else {"timeout": timeout}
        make: Any = suggests_names(acex.HttpModel)
        return make(self.model, protocol=self.protocol, headers_from_env=headers, **more)


@dataclass(frozen=True)
class Case:
    """The flags about the data, the row and the search."""

    data: Annotated[Path, typer.Argument(metavar="DATA", help="Known rows: a .csv, .parquet or .json file.")]
    row: Annotated[list[int] | None, typer.Option(help="Position of the row in DATA; the first is 0.")] = None
    where: Annotated[str | None, typer.Option(metavar="QUERY", help='Selects the row: "id == 17".')] = None
    x: Annotated[Path | None, typer.Option(help="Another file with the row: .json, .csv.")] = None
    id_column: Annotated[str | None, typer.Option(metavar="COLUMN", help="Row names, hidden from the model.")] = None
    drop: Annotated[list[str] | None, typer.Option(metavar="COLUMNS", help="Columns hidden from the model.")] = None
    schema: Annotated[Path | None, typer.Option(help="TOML file that describes columns; see acex schema.")] = None
    reading: TableFlags = field(default_factory=TableFlags)
    target_range: Annotated[
        str | None,
        typer.Option(
            metavar="RANGE",
            help='Target range of a regressor: "100..120", "0.8..", "+10%"; with --target and --scores, of the '
            "probability of that label.",
            rich_help_panel=WANTED,
        ),
    ] = None
    increase: Annotated[
        list[str] | None, typer.Option(metavar="COLUMNS", help="May only increase.", rich_help_panel=ALLOWED)
    ] = None
    decrease: Annotated[
        list[str] | None, typer.Option(metavar="COLUMNS", help="May only decrease.", rich_help_panel=ALLOWED)
    ] = None
    given: Given = field(default_factory=Given)

    panel: ClassVar[str] = "The data and the row"
    takes_many: ClassVar[bool] = False

    @property
    def ledger(self) -> str | None:
        """Path or URL of the ledger; None if answers are not recorded."""
        return self.given.get("ledger")

    def open(self, black_box: ModelFlags, *written: Path | None, sign: Path | None = None) -> Prepared:
        """Load the model and call `prepare`; raise if one of the `written` files is also read."""
        code = f"{black_box.model.partition(':')[0].replace('.', '/')}.py"  # of module:name
        read = (self.data, self.x, self.schema, self.ledger, black_box.model, code, black_box.model_config, sign)
        refuse_overwriting(written, read)
        return self.prepare(black_box.open(self.given.get("timeout")))

    def prepare(self, model: Any) -> Prepared:
        """The data, model and options for `acex.Explainer`; the table is read once.

        Raises:
            ValueError: a flag or a file is invalid; nothing was sent.
        """
        from acex.space.schema import read_rules, read_schema, with_schema

        given, table = self.given, read_table(self.data, **self.reading.arguments)
        whole = read_table(self.x, **self.reading.arguments) if self.x else table
        hidden = column_names(self.drop, table.columns.union(whole.columns, sort=False), "--drop")
        for flag, name in (("--outcomes", given.get("outcomes")), ("--id-column", self.id_column)):
            hidden += column_names([] if name is None else [name], table.columns, flag, whole=True)
        schema = read_schema(self.schema) if self.schema else ()
        kinds = self.reading.kinds(table, hidden) | {"relations": not given.get("relations")}
        shown = table.drop(columns=hidden, errors="ignore")
        rows, space = with_schema(shown, schema, given.get("missing", "drop"), **kinds)
        outcomes = None if "outcomes" not in given else table[given["outcomes"]]
        known, remarks = rows, []
        if outcomes is not None and outcomes.isna().any():
            n = int(outcomes.isna().sum())
            remarks.append(f"{n} rows have no outcome in {given['outcomes']} and were left out.")
            known, outcomes = rows[outcomes.notna()], outcomes.dropna()
        holding = [name for name in rows.columns if set(given.get("target", ())) & set(rows[name].unique())]
        if len(holding) == 1:  # a word such as "yes" in several columns proves nothing
            remarks.append(f"{holding[0]} is a feature and contains the target. Is it --outcomes {holding[0]}?")
        space = space.with_grid(flags.grid(given.get("grid", ()), space))
        space = space.adjust(other=flags.by_column(given.get("other", ()), space, "other", _category))
        wrapped = self._model(model)
        labels = list(wrapped.labels or ()) or ([] if outcomes is None else outcomes.unique().tolist())
        read = {
            "ranges": flags.limits,
            "values": flags.allowed_values,
            "weights": lambda _, text: flags.number(text),
        }
        options = search_arguments(
            {
                **given.of("row", "cost", "strategy"),
                **{name: flags.by_column(given.get(name, ()), space, name, read[name]) for name in read},
                "target": flags.target(
                    given.get("target"), self.target_range, [*wrapped.class_names.values(), *labels]
                ),
                "freeze": column_names(given.get("freeze"), rows.columns, "--freeze"),
                "directions": self._directions(space),
                "rules": [*(read_rules(self.schema) if self.schema else ()), *given.get("rules", ())],
            }
        )
        positions = self._positions(table)
        whole = whole if self.x else table.iloc[positions]
        factual = whole.drop(columns=hidden, errors="ignore") if self.x else rows.iloc[positions]
        if len(factual) != 1 and not self.takes_many:
            raise ValueError(f"expected exactly one row, got {len(factual)}.")
        return Prepared(table, known, outcomes, space, factual, whole, wrapped, options, self._ids(whole), remarks)

    def explainer(self, prepared: Prepared, ledger: acex.Ledger | None) -> acex.Explainer:
        """The explainer for this data and model."""
        try:
            return acex.Explainer(
                prepared.model,
                prepared.rows,
                outcomes=None if prepared.outcomes is None else prepared.outcomes.tolist(),
                space=prepared.space,
                plausibility=self.given.get("plausibility", acex.Plausibility()),
                ledger=ledger,
                share_answers=not self.given.get("share_answers", False),
                seed=prepared.options.get("seed", 0),
            )
        except TypeError as error:  # such as --scores for a model without probabilities
            raise ValueError(str(error)) from error

    def _model(self, model: Any) -> acex.Model:
        """The model wrapped with its name, class names and the other options given."""
        from acex.models.adapters import known_labels

        given = self.given.of("model")
        if "class_names" in given:
            given["class_names"] = flags.class_names(given["class_names"], known_labels(model) or ())
        if "noise" in given:
            given["noise"] = flags.noise(given["noise"])
        if isinstance(model, acex.HttpModel):
            given.pop("timeout", None)  # already set by `ModelFlags.open`
        try:
            return acex.Model(model, **given)
        except TypeError as error:
            raise ValueError(str(error)) from error

    def _positions(self, table: pd.DataFrame) -> list[int]:
        """Positions of the rows that --row or --where select; by default all."""
        given = [f"--{name}" for name in ("row", "where", "x") if getattr(self, name) is not None]
        if len(given) > 1 or not (given or self.takes_many):
            raise ValueError(f"expected one of --row, --where and --x, got {' and '.join(given) or 'none'}.")
        if self.row is not None:
            if wrong := [i for i in self.row if not 0 <= i < len(table)]:
                raise ValueError(f"--row {wrong[0]}: {self.data} has the rows 0 to {len(table) - 1}.")
            return list(self.row)
        if self.where is None:
            return list(range(len(table)))
        if not (found := matching(table, self.where)):
            raise ValueError(f"--where {self.where!r}: no row of {self.data} matches.")
        return found

    def _ids(self, whole: pd.DataFrame) -> list[Any] | None:
        """The names of the rows to explain."""
        if self.id_column is None:
            return None
        if self.id_column not in whole.columns:
            raise ValueError(f"--id-column: {self.x} has no {self.id_column!r}. Use --drop {self.id_column} instead.")
        names = whole[self.id_column]
        if names.isna().any():
            raise ValueError(f"--id-column {self.id_column}: the name of a row is missing.")
        if (twice := names.map(str).duplicated()).any():
            raise ValueError(f"--id-column {self.id_column}: {listed(names[twice].head(1))} is repeated.")
        return names.tolist()

    def _directions(self, space: acex.Space) -> dict[str, Direction]:
        up = column_names(self.increase, space.names, "--increase")
        down = column_names(self.decrease, space.names, "--decrease")
        if both := set(up) & set(down):
            raise ValueError(f"{both.pop()!r} can be in --increase or in --decrease, not in both.")
        return {**dict.fromkeys(up, "increase"), **dict.fromkeys(down, "decrease")}


@dataclass(frozen=True)
class BatchCase(Case):
    """The flags for several rows, by default all of DATA."""

    takes_many: ClassVar[bool] = True


@dataclass(frozen=True)
class Prepared:
    """Data, rows to explain and options, in the format of `acex.Explainer`."""

    table: pd.DataFrame  # DATA with all its columns
    rows: pd.DataFrame  # known rows as the model sees them
    outcomes: pd.Series[Any] | None
    space: acex.Space
    factual: pd.DataFrame  # the rows to explain
    whole: pd.DataFrame  # the rows to explain, with all columns of their file
    model: acex.Model
    options: dict[str, Any]  # of `Explainer.search`
    ids: Sequence[Any] | None  # names of the rows to explain
    remarks: list[str]  # assumptions and problems to report


def _category(feature: Feature, text: str) -> Any:
    return {str(category): category for category in getattr(feature, "categories", ())}.get(text, text)
